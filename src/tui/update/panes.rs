//! Moving about: focus, selection and scrolling in the panes, and opening what is selected.

use super::super::cmd::Cmd;
use super::super::diff_model::DiffUi;
use super::super::focus::Pane;
use super::super::keys::Action;
use super::super::layout::{self, Direction, MonitorShape, WallShape, areas, inside, neighbour};
use super::super::model::{AgentCard, Model, Overlay, Pending, TaskCard};
use super::super::view;
use super::super::world::COLUMNS;
use super::{overlay, send, toast, write_to};
use crate::protocol::{AgentId, ClientMessage, DecisionId, DiffRequest, NotifyLevel, RepoId, TaskId, WorktreeId};

/// Gives a pane the keys; what lies over it goes.
pub(super) fn focus(model: &mut Model, pane: Pane) {
    model.overlays.clear();
    if pane == Pane::Console && model.focus != Pane::Console {
        model.before_console = model.focus;
    }
    if pane != Pane::Console && model.zoom.is_some() {
        model.zoom = Some(pane);
    }
    model.focus = pane;
    model.podium.rejecting = false;
    select_something(model);
    model.dirty = true;
}

pub(super) fn zoom(model: &mut Model) {
    model.zoom = match model.zoom {
        Some(_) => None,
        None if model.focus == Pane::Console => Some(model.before_console),
        None => Some(model.focus),
    };
}

/// A pane that got the keys has something selected, if it has anything.
fn select_something(model: &mut Model) {
    match model.focus {
        Pane::Wall => {
            let gone = model.wall.selected.as_ref().is_none_or(|id| model.task(id).is_none());
            if gone {
                model.wall.selected = layout::listed_tasks(model).into_iter().next();
            }
        }
        Pane::Monitors => {
            selected_agent(model);
        }
        Pane::Podium | Pane::Feed | Pane::Console => {}
    }
}

/// The selected agent; the first if none is.
fn selected_agent(model: &mut Model) -> Option<AgentId> {
    if model.monitors.selected.as_ref().is_none_or(|id| model.agent(id).is_none()) {
        let first = model.agents().next().map(|a| a.id.clone());
        model.monitors.selected = first;
    }
    model.monitors.selected.clone()
}

/// The pane's own meaning of an action.
pub(super) fn on_action(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    select_something(model);
    if action == Action::Back {
        back(model);
        return;
    }
    match model.focus {
        Pane::Wall => wall(model, action, out),
        Pane::Monitors => monitors(model, action, out),
        Pane::Feed => feed(model, action, out),
        Pane::Podium => match action {
            Action::Left => cross(model, Direction::Left),
            Action::Right => cross(model, Direction::Right),
            _ => {}
        },
        Pane::Console => {}
    }
}

fn back(model: &mut Model) {
    if model.zoom.is_some() {
        model.zoom = None;
    } else if model.monitors.single && model.focus == Pane::Monitors {
        model.monitors.single = false;
    } else if let Some(agent) = model.monitors.selected.clone()
        && model.focus == Pane::Monitors
        && model.monitors.back.contains_key(&agent)
    {
        model.monitors.back.remove(&agent);
    } else if model.focus == Pane::Feed && model.feed.selected.is_some() {
        model.feed.selected = None;
    } else {
        model.toasts.clear();
    }
}

fn cross(model: &mut Model, direction: Direction) {
    let areas = areas(model.size, model);
    let next = neighbour(&areas, model.focus, direction).or_else(|| {
        // One pane at a time: sideways goes through the tabs.
        let tabs = [Pane::Wall, Pane::Monitors, Pane::Podium, Pane::Feed];
        let at = tabs.iter().position(|p| *p == model.focus)?;
        match direction {
            Direction::Left if areas.panes.len() == 1 => tabs.get(at.checked_sub(1)?).copied(),
            Direction::Right if areas.panes.len() == 1 => tabs.get(at + 1).copied(),
            _ => None,
        }
    });
    if let Some(pane) = next {
        focus(model, pane);
    }
}

const fn direction(action: Action) -> Option<Direction> {
    match action {
        Action::Up => Some(Direction::Up),
        Action::Down => Some(Direction::Down),
        Action::Left => Some(Direction::Left),
        Action::Right => Some(Direction::Right),
        _ => None,
    }
}

fn wall(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    let selected = model.wall.selected.clone();
    match action {
        Action::Up | Action::Down | Action::Left | Action::Right => {
            let Some(direction) = direction(action) else { return };
            match wall_step(model, direction) {
                Some(task) => model.wall.selected = Some(task),
                None => cross(model, direction),
            }
        }
        Action::Top | Action::PageUp => model.wall.selected = edge_of_column(model, Edge::First),
        Action::Bottom | Action::PageDown => model.wall.selected = edge_of_column(model, Edge::Last),
        Action::Confirm => {
            if let Some(task) = selected {
                open_task(model, task);
            }
        }
        Action::Diff => {
            if let Some(task) = selected {
                let target = model.diff_of_task(&task);
                open_diff(model, target, None, out);
            }
        }
        Action::Copy => {
            if let Some(task) = selected.and_then(|id| model.task(&id)) {
                let text = task.branch.clone().unwrap_or_else(|| task.id.to_string());
                copy(model, text, out);
            }
        }
        _ => {}
    }
}

enum Edge {
    First,
    Last,
}

fn edge_of_column(model: &Model, edge: Edge) -> Option<TaskId> {
    let status = model.wall.selected.as_ref().and_then(|id| model.task(id)).map(|t| t.status)?;
    let column = model.column(status);
    let task = match edge {
        Edge::First => column.first(),
        Edge::Last => column.last(),
    };
    task.map(|t| t.id.clone())
}

/// The task next to the selected one; none at the edge.
fn wall_step(model: &Model, direction: Direction) -> Option<TaskId> {
    let selected = model.wall.selected.as_ref()?;
    let inner = inside(areas(model.size, model).pane(Pane::Wall)?);
    match layout::wall_shape(inner) {
        WallShape::List(_) => {
            let tasks = layout::listed_tasks(model);
            let at = tasks.iter().position(|t| t == selected)?;
            match direction {
                Direction::Up => tasks.get(at.checked_sub(1)?).cloned(),
                Direction::Down => tasks.get(at + 1).cloned(),
                Direction::Left | Direction::Right => None,
            }
        }
        WallShape::Columns(_) => {
            let status = model.task(selected)?.status;
            let column = model.column(status);
            let row = column.iter().position(|t| t.id == *selected)?;
            let nearest = |status| {
                let tasks = model.column(status);
                tasks.get(row.min(tasks.len().checked_sub(1)?)).map(|t| t.id.clone())
            };
            let at = COLUMNS.iter().position(|s| *s == status)?;
            match direction {
                Direction::Up => column.get(row.checked_sub(1)?).map(|t| t.id.clone()),
                Direction::Down => column.get(row + 1).map(|t| t.id.clone()),
                Direction::Left => COLUMNS.iter().take(at).rev().find_map(|s| nearest(*s)),
                Direction::Right => COLUMNS.iter().skip(at + 1).find_map(|s| nearest(*s)),
            }
        }
    }
}

/// Rows that a page key scrolls a log by.
const PAGE: usize = 8;

fn monitors(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    let Some(selected) = selected_agent(model) else {
        if let Some(direction) = direction(action) {
            cross(model, direction);
        }
        return;
    };
    match action {
        Action::Up | Action::Down | Action::Left | Action::Right => {
            let Some(direction) = direction(action) else { return };
            if model.monitors.single && matches!(direction, Direction::Up | Direction::Down) {
                scroll_log(model, selected, direction, 1);
                return;
            }
            match monitor_step(model, &selected, direction) {
                Some(agent) => model.monitors.selected = Some(agent),
                None => cross(model, direction),
            }
        }
        Action::PageUp => scroll_log(model, selected, Direction::Up, PAGE),
        Action::PageDown => scroll_log(model, selected, Direction::Down, PAGE),
        Action::Top => scroll_log(model, selected, Direction::Up, usize::MAX / 2),
        Action::Bottom => {
            model.monitors.back.remove(&selected);
        }
        Action::Maximise => model.monitors.single = !model.monitors.single,
        Action::Confirm => open_agent(model, selected),
        Action::Diff => {
            let target = model.diff_of_agent(&selected);
            open_diff(model, target, None, out);
        }
        Action::Message => write_to(model, &format!("@{selected} ")),
        Action::PauseAgent => overlay::pause_or_resume(model, &selected, out),
        Action::Copy => {
            let last = model.log(&selected).next_back().map(|e| e.text.clone());
            copy(model, last.unwrap_or_else(|| selected.to_string()), out);
        }
        _ => {}
    }
}

/// Scrolls a log; at its end it follows again.
pub(super) fn scroll_log(model: &mut Model, agent: AgentId, direction: Direction, by: usize) {
    let limit = view::log_limit(model, &agent);
    let back = model.monitors.back.get(&agent).copied().unwrap_or(0).min(limit);
    let back = if direction == Direction::Up { (back + by).min(limit) } else { back.saturating_sub(by) };
    if back == 0 {
        model.monitors.back.remove(&agent);
    } else {
        model.monitors.back.insert(agent, back);
    }
}

fn monitor_step(model: &Model, selected: &AgentId, direction: Direction) -> Option<AgentId> {
    let agents: Vec<&AgentId> = model.agents().map(|a| &a.id).collect();
    let at = agents.iter().position(|id| *id == selected)?;
    let inner = inside(areas(model.size, model).pane(Pane::Monitors)?);
    let next = match (layout::monitor_shape(inner, agents.len(), model.monitors.single), direction) {
        (MonitorShape::Tiles { columns, .. }, Direction::Up) => at.checked_sub(columns)?,
        (MonitorShape::Tiles { columns, .. }, Direction::Down) => at + columns,
        (MonitorShape::Tiles { columns, .. }, Direction::Left) if at % columns > 0 => at - 1,
        (MonitorShape::Tiles { columns, .. }, Direction::Right) if at % columns + 1 < columns => at + 1,
        (MonitorShape::Tiles { .. }, Direction::Left | Direction::Right) => return None,
        (MonitorShape::Roster { .. }, Direction::Up) => at.checked_sub(1)?,
        (MonitorShape::Roster { .. }, Direction::Down) => at + 1,
        (MonitorShape::Single(_), Direction::Left) => at.checked_sub(1)?,
        (MonitorShape::Single(_), Direction::Right) => at + 1,
        (MonitorShape::Roster { .. }, Direction::Left | Direction::Right)
        | (MonitorShape::Single(_), Direction::Up | Direction::Down) => return None,
    };
    agents.get(next).map(|id| (*id).clone())
}

fn feed(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    let count = model.feed_items().count();
    let at = model.feed.selected;
    match action {
        // The newest line is the lowest; up goes back in time.
        Action::Up if count > 0 && at.map_or(0, |n| n + 1) < count => {
            model.feed.selected = Some(at.map_or(0, |n| n + 1));
        }
        Action::Up => cross(model, Direction::Up),
        Action::Down => match at {
            Some(0) => model.feed.selected = None,
            Some(n) => model.feed.selected = Some(n - 1),
            None => cross(model, Direction::Down),
        },
        Action::Left => cross(model, Direction::Left),
        Action::Right => cross(model, Direction::Right),
        Action::PageUp => model.feed.selected = count.checked_sub(1).map(|last| (at.unwrap_or(0) + PAGE).min(last)),
        Action::PageDown => model.feed.selected = at.and_then(|n| n.checked_sub(PAGE)),
        Action::Top => model.feed.selected = count.checked_sub(1),
        Action::Bottom => model.feed.selected = None,
        Action::Confirm => {
            let agent = model.feed_items().rev().nth(at.unwrap_or(0)).and_then(|item| item.agent_id.clone());
            if let Some(agent) = agent {
                open_agent(model, agent);
            }
        }
        Action::Copy => {
            let text = model.feed_items().rev().nth(at.unwrap_or(0)).map(|i| i.text.clone());
            if let Some(text) = text {
                copy(model, text, out);
            }
        }
        _ => {}
    }
}

pub(super) fn copy(model: &mut Model, text: String, out: &mut Vec<Cmd>) {
    let clean: Vec<_> = super::super::text::lines(&text).map(std::borrow::Cow::into_owned).collect();
    out.push(Cmd::Copy(clean.join("\n")));
    toast(model, NotifyLevel::Info, "Copied".to_owned());
}

pub(super) fn open_task(model: &mut Model, task: TaskId) {
    model.overlays.push(Overlay::Task(TaskCard { task, scroll: 0, cancelling: false }));
    model.dirty = true;
}

pub(super) fn open_agent(model: &mut Model, agent: AgentId) {
    model.overlays.push(Overlay::Agent(AgentCard { agent, scroll: 0, stopping: false }));
    model.dirty = true;
}

/// Opens a diff and asks for it.
pub(super) fn open_diff(
    model: &mut Model,
    target: Option<(RepoId, WorktreeId)>,
    decision: Option<DecisionId>,
    out: &mut Vec<Cmd>,
) {
    let Some((repo, worktree)) = target else {
        toast(model, NotifyLevel::Info, "There is no worktree yet, so no diff".to_owned());
        return;
    };
    let diff = DiffUi::new(repo, worktree, decision);
    let request = diff.request(None);
    model.overlays.push(Overlay::Diff(Box::new(diff)));
    ask_diff(model, request, out);
}

/// Sends a diff request for the topmost diff.
pub(super) fn ask_diff(model: &mut Model, mut request: DiffRequest, out: &mut Vec<Cmd>) {
    request.request_id = format!("screen-{}", model.next_token);
    if let Some(Overlay::Diff(diff)) = model.overlays.iter_mut().rev().find(|o| matches!(o, Overlay::Diff(_))) {
        diff.sent(&request);
    }
    let pending = Pending::Diff { request: request.request_id.clone() };
    if let Err(reason) = send(model, out, ClientMessage::DiffRequest(request), pending) {
        toast(model, NotifyLevel::Warn, reason);
    }
}
