//! What lies over the panes: pages, cards, the diff, the library, the palette, pickers, the question before leaving.

use tui_textarea::TextArea;

use super::super::cmd::Cmd;
use super::super::diff_model::{DiffSide, DiffState, is_cut};
use super::super::focus::Pane;
use super::super::keys::{Action, Key};
use super::super::layout::areas;
use super::super::model::{AgentCard, Leaving, Library, Model, Overlay, PaletteUi, Picker, PickerPurpose, TaskCard};
use super::super::palette::{self, Does};
use super::super::world::is_working;
use super::{act, panes, perform, podium, toast, write_to};
use crate::protocol::{
    AgentAction, AgentActionKind, AgentId, AgentRole, ClientMessage, Decision, DecisionKind, MemoryId, NotifyLevel,
    TaskAction, TaskActionKind, TaskId, TaskStatus,
};
use crate::tui::field::edit;

/// An action while something lies over the panes.
pub(super) fn on_action(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    match model.overlays.last() {
        Some(Overlay::Page(_)) => page(model, action, out),
        Some(Overlay::Diff(_)) => diff(model, action, out),
        Some(Overlay::Task(card)) => {
            let card = card.clone();
            task_card(model, &card, action, out);
        }
        Some(Overlay::Agent(card)) => {
            let card = card.clone();
            agent_card(model, &card, action, out);
        }
        Some(Overlay::Library(_)) => library(model, action, out),
        Some(Overlay::Palette(_)) => palette(model, action, out),
        Some(Overlay::Picker(picker)) => {
            let picker = picker.clone();
            pick(model, &picker, action, out);
        }
        Some(Overlay::Leaving) => match action {
            Action::Confirm => {
                model.leaving = Some(Leaving::Asked);
                out.push(Cmd::Leave);
            }
            Action::Back => close(model),
            _ => {}
        },
        None => perform(model, action, out),
    }
}

fn close(model: &mut Model) {
    model.overlays.pop();
    model.dirty = true;
}

/// Rows that a page key moves by.
fn page_rows(model: &Model) -> usize {
    usize::from(areas(model.size, model).body.height.saturating_sub(4)).max(1)
}

fn scrolled(at: usize, action: Action, page: usize) -> Option<usize> {
    match action {
        Action::Up => Some(at.saturating_sub(1)),
        Action::Down => Some(at + 1),
        Action::PageUp => Some(at.saturating_sub(page)),
        Action::PageDown => Some(at + page),
        Action::Top => Some(0),
        Action::Bottom => Some(usize::MAX),
        _ => None,
    }
}

fn page(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    let rows = page_rows(model);
    let limit = super::super::view::page_limit(model);
    let Some(Overlay::Page(page)) = model.overlays.last_mut() else { return };
    if let Some(at) = scrolled(page.scroll, action, rows) {
        page.scroll = at.min(limit);
    } else if matches!(action, Action::Back | Action::Quit) {
        close(model);
    } else {
        perform(model, action, out);
    }
}

/// Columns that one key shifts long lines by, and how far they go.
const SHIFT: usize = 20;
const SHIFT_LIMIT: usize = 4_000;

fn diff(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    let rows = isize::try_from(page_rows(model)).unwrap_or(20);
    let theme = model.theme.name();
    let height = usize::from(areas(model.size, model).body.height.saturating_sub(3)).max(1);
    let Some(Overlay::Diff(diff)) = model.overlays.last_mut() else { return };
    let in_files = diff.side == DiffSide::Files;
    match action {
        Action::Back if in_files => diff.side = DiffSide::Lines,
        Action::Back => {
            close(model);
            return;
        }
        Action::Up if in_files => diff.by_files(-1),
        Action::Down if in_files => diff.by_files(1),
        Action::Up => diff.scroll(-1, height),
        Action::Down => diff.scroll(1, height),
        Action::PageUp => diff.scroll(-rows, height),
        Action::PageDown => diff.scroll(rows, height),
        Action::Top => diff.scroll(isize::MIN, height),
        Action::Bottom => diff.scroll(isize::MAX, height),
        Action::NextFile => diff.by_files(1),
        Action::PreviousFile => diff.by_files(-1),
        Action::NextHunk => diff.by_hunk(true, height),
        Action::PreviousHunk => diff.by_hunk(false, height),
        Action::ShiftLeft => diff.shift = diff.shift.saturating_sub(SHIFT),
        Action::ShiftRight => diff.shift = (diff.shift + SHIFT).min(SHIFT_LIMIT),
        Action::Left => diff.side = DiffSide::Files,
        Action::Right | Action::Confirm => diff.side = DiffSide::Lines,
        Action::ToggleFiles => {
            diff.side = if in_files { DiffSide::Lines } else { DiffSide::Files };
        }
        Action::WholeFile => {
            let request = diff
                .files()
                .get(diff.file_here())
                .filter(|file| is_cut(file))
                .map(|file| diff.request(Some(file.path.clone())));
            match request {
                Some(request) => panes::ask_diff(model, request, out),
                None => toast(model, NotifyLevel::Info, "This file is whole already".to_owned()),
            }
            return;
        }
        Action::Remark => {
            if !diff.begin_remark() {
                toast(model, NotifyLevel::Info, "A remark belongs to a line: move to one first".to_owned());
            }
            return;
        }
        Action::RequestChanges => {
            request_changes(model);
            return;
        }
        Action::AnswerIt => {
            let decision = diff.decision.clone();
            panes::focus(model, Pane::Podium);
            if let Some(id) = decision {
                podium::turn_to(model, &id);
            }
            return;
        }
        Action::Copy => {
            match diff.patch() {
                Some(patch) => panes::copy(model, patch, out),
                None => toast(model, NotifyLevel::Info, "There is no hunk to copy".to_owned()),
            }
            return;
        }
        other => {
            perform(model, other, out);
            return;
        }
    }
    if let Some(Overlay::Diff(diff)) = model.overlays.last_mut()
        && matches!(diff.state, DiffState::Ready(_))
    {
        out.extend(diff.next_jobs(theme).into_iter().map(Cmd::Highlight));
    }
}

/// Takes the remarks to the merge decision of the diff's worktree, as the text of *Request changes*. Nothing is sent.
fn request_changes(model: &mut Model) {
    let Some(Overlay::Diff(diff)) = model.overlays.last() else { return };
    let Some(text) = diff.request_text() else {
        toast(model, NotifyLevel::Info, "There is no remark yet: c writes one on a line".to_owned());
        return;
    };
    let decision = diff.decision.clone().or_else(|| {
        let of = |d: &&Decision| d.kind == DecisionKind::Merge && d.worktree.as_ref() == Some(&diff.worktree);
        model.open_decisions().into_iter().find(of).map(|d| d.id.clone())
    });
    match decision.filter(|id| podium::takes_changes(model, id)) {
        Some(id) => {
            panes::focus(model, Pane::Podium);
            podium::turn_to(model, &id);
            podium::propose_changes(model, &text);
        }
        None => {
            toast(model, NotifyLevel::Info, "No merge of this worktree waits for you; y copies".to_owned());
        }
    }
}

/// A key of the key map while a remark is written.
pub(super) fn on_remark_action(model: &mut Model, action: Action, burst: bool, out: &mut Vec<Cmd>) {
    let Some(Overlay::Diff(diff)) = model.overlays.last_mut() else { return };
    match action {
        // A paste is text, whatever is in it.
        Action::Submit if burst => write_line(diff.writing.as_mut()),
        Action::NewLine => write_line(diff.writing.as_mut()),
        Action::Submit => diff.keep_remark(),
        Action::Back => diff.writing = None,
        other => perform(model, other, out),
    }
}

fn write_line(area: Option<&mut TextArea<'static>>) {
    if let Some(area) = area {
        area.insert_newline();
    }
}

/// A key that is text of a remark.
pub(super) fn write_remark(model: &mut Model, key: Key) {
    if let Some(Overlay::Diff(diff)) = model.overlays.last_mut()
        && let Some(area) = diff.writing.as_mut()
    {
        edit(area, key);
    }
}

/// The theme has changed: highlighted lines are made anew.
pub(super) fn recolour(model: &mut Model, out: &mut Vec<Cmd>) {
    let theme = model.theme.name();
    for overlay in &mut model.overlays {
        if let Overlay::Diff(diff) = overlay {
            diff.bleach();
            out.extend(diff.next_jobs(theme).into_iter().map(Cmd::Highlight));
        }
    }
}

/// Any other key takes the first half of a question asked twice back.
pub(super) fn disarm(model: &mut Model) {
    match model.overlays.last_mut() {
        Some(Overlay::Task(card)) => card.cancelling = false,
        Some(Overlay::Agent(card)) => card.stopping = false,
        _ => {}
    }
}

fn task_action(model: &mut Model, task: &TaskId, action: TaskActionKind, arg: Option<String>, out: &mut Vec<Cmd>) {
    let what = match (action, &arg) {
        (TaskActionKind::Reassign, Some(agent)) => format!("{task} goes to {}", model.name_of(agent)),
        (TaskActionKind::Reassign, None) => format!("{task} is reassigned"),
        (TaskActionKind::Cancel, _) => format!("{task} is cancelled"),
        (TaskActionKind::Retry, _) => format!("{task} is tried again"),
        (TaskActionKind::Prioritize, _) => format!("{task} comes first"),
    };
    act(model, out, ClientMessage::TaskAction(TaskAction { task_id: task.clone(), action, arg }), what);
}

fn agent_action(model: &mut Model, agent: &AgentId, action: AgentActionKind, arg: Option<String>, out: &mut Vec<Cmd>) {
    let name = model.name_of(agent.as_str());
    let what = match action {
        AgentActionKind::Pause => format!("{name} pauses"),
        AgentActionKind::Resume => format!("{name} goes on"),
        AgentActionKind::Stop => format!("{name} is stopped"),
        AgentActionKind::Spawn => format!("{name} is brought in"),
    };
    act(model, out, ClientMessage::AgentAction(AgentAction { agent_id: agent.clone(), action, arg }), what);
}

fn task_card(model: &mut Model, card: &TaskCard, action: Action, out: &mut Vec<Cmd>) {
    let armed = card.cancelling;
    disarm(model);
    let id = card.task.clone();
    match action {
        Action::Retry => task_action(model, &id, TaskActionKind::Retry, None, out),
        Action::Prioritise => task_action(model, &id, TaskActionKind::Prioritize, None, out),
        Action::CancelTask if armed => task_action(model, &id, TaskActionKind::Cancel, None, out),
        Action::CancelTask => {
            if let Some(Overlay::Task(card)) = model.overlays.last_mut() {
                card.cancelling = true;
            }
        }
        Action::Reassign => {
            model.overlays.push(Overlay::Picker(Picker { purpose: PickerPurpose::Reassign(id), selected: 0 }));
        }
        Action::Diff => {
            let target = model.diff_of_task(&id);
            panes::open_diff(model, target, None, out);
        }
        Action::Confirm => {
            if let Some(agent) = model.task(&id).and_then(|t| t.assignee.clone()) {
                panes::open_agent(model, agent);
            }
        }
        Action::Copy => {
            let text = model.task(&id).and_then(|t| t.branch.clone()).unwrap_or_else(|| id.to_string());
            panes::copy(model, text, out);
        }
        other => card_scroll(model, other, out),
    }
}

fn agent_card(model: &mut Model, card: &AgentCard, action: Action, out: &mut Vec<Cmd>) {
    let armed = card.stopping;
    disarm(model);
    let id = card.agent.clone();
    match action {
        Action::PauseAgent => pause_or_resume(model, &id, out),
        Action::StopAgent if armed => agent_action(model, &id, AgentActionKind::Stop, None, out),
        Action::StopAgent => {
            if let Some(Overlay::Agent(card)) = model.overlays.last_mut() {
                card.stopping = true;
            }
        }
        Action::SpawnAgent => {
            model.overlays.push(Overlay::Picker(Picker { purpose: PickerPurpose::SpawnFor(id), selected: 0 }));
        }
        Action::Message => write_to(model, &format!("@{id} ")),
        Action::Diff => {
            let target = model.diff_of_agent(&id);
            panes::open_diff(model, target, None, out);
        }
        Action::Confirm => {
            if let Some(task) = model.agent(&id).and_then(|a| a.task_id.clone()) {
                panes::open_task(model, task);
            }
        }
        Action::Copy => panes::copy(model, id.to_string(), out),
        other => card_scroll(model, other, out),
    }
}

fn card_scroll(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    let rows = page_rows(model);
    let limit = super::super::view::page_limit(model);
    let scroll = match model.overlays.last_mut() {
        Some(Overlay::Task(card)) => &mut card.scroll,
        Some(Overlay::Agent(card)) => &mut card.scroll,
        _ => return,
    };
    if let Some(at) = scrolled(*scroll, action, rows) {
        *scroll = at.min(limit);
    } else if matches!(action, Action::Back | Action::Quit) {
        close(model);
    } else {
        perform(model, action, out);
    }
}

/// Pauses an agent that works, lets a paused one go on.
pub(super) fn pause_or_resume(model: &mut Model, agent: &AgentId, out: &mut Vec<Cmd>) {
    let Some(paused) = model.agent(agent).map(|a| a.paused) else { return };
    let action = if paused { AgentActionKind::Resume } else { AgentActionKind::Pause };
    agent_action(model, agent, action, None, out);
}

/// Pauses everybody who works; if all who are on shift are paused, lets them go on.
pub(super) fn pause_all(model: &mut Model, out: &mut Vec<Cmd>) {
    let on_shift: Vec<(AgentId, bool, bool)> =
        model.agents().filter(|a| a.active).map(|a| (a.id.clone(), a.paused, is_working(a))).collect();
    let resume = !on_shift.is_empty()
        && on_shift.iter().all(|(_, paused, working)| *paused || !*working)
        && on_shift.iter().any(|(_, paused, _)| *paused);
    let action = if resume { AgentActionKind::Resume } else { AgentActionKind::Pause };
    for (id, paused, _) in on_shift {
        if paused == resume {
            agent_action(model, &id, action, None, out);
        }
    }
}

/// Opens the library, on a note if one is named.
pub(super) fn open_library(model: &mut Model, note: Option<MemoryId>) {
    let selected = note.as_ref().and_then(|id| model.notes().iter().position(|n| n.id == *id)).unwrap_or(0);
    model.overlays.push(Overlay::Library(Library { selected, reading: note, scroll: 0 }));
    model.dirty = true;
}

fn library(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    let rows = page_rows(model);
    let limit = super::super::view::page_limit(model);
    let ids: Vec<MemoryId> = model.notes().into_iter().map(|n| n.id.clone()).collect();
    let Some(Overlay::Library(library)) = model.overlays.last_mut() else { return };
    if library.reading.is_some() {
        if let Some(at) = scrolled(library.scroll, action, rows) {
            library.scroll = at.min(limit);
        } else if matches!(action, Action::Back | Action::Left) {
            library.reading = None;
        } else {
            perform(model, action, out);
        }
        return;
    }
    match action {
        Action::Confirm | Action::Right => {
            library.reading = ids.get(library.selected).cloned();
            library.scroll = 0;
        }
        Action::Back | Action::Quit => close(model),
        other => match scrolled(library.selected, other, rows) {
            Some(at) => library.selected = at.min(ids.len().saturating_sub(1)),
            None => perform(model, other, out),
        },
    }
}

pub(super) fn open_palette(model: &mut Model) {
    if !matches!(model.overlays.last(), Some(Overlay::Palette(_) | Overlay::Leaving)) {
        model.overlays.push(Overlay::Palette(Box::new(PaletteUi { query: TextArea::default(), selected: 0 })));
    }
}

pub(super) fn write_query(model: &mut Model, key: Key) {
    if let Some(Overlay::Palette(palette)) = model.overlays.last_mut() {
        edit(&mut palette.query, key);
        palette.selected = 0;
    }
}

pub(super) fn paste(model: &mut Model, text: &str) {
    match model.overlays.last_mut() {
        Some(Overlay::Palette(palette)) => {
            palette.query.insert_str(text.replace('\n', " "));
            palette.selected = 0;
        }
        Some(Overlay::Diff(diff)) => {
            if let Some(area) = diff.writing.as_mut() {
                area.insert_str(text);
            }
        }
        _ => {}
    }
}

fn palette(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    let entries = palette::entries(model);
    let Some(Overlay::Palette(ui)) = model.overlays.last_mut() else { return };
    match action {
        Action::Up => ui.selected = ui.selected.saturating_sub(1),
        Action::Down => ui.selected = (ui.selected + 1).min(entries.len().saturating_sub(1)),
        Action::Back => close(model),
        Action::Submit => {
            let chosen = entries.into_iter().nth(ui.selected);
            close(model);
            match chosen.map(|e| e.does) {
                Some(Does::Act(action)) => perform(model, action, out),
                Some(Does::Task(task)) => panes::open_task(model, task),
                Some(Does::Agent(agent)) => panes::open_agent(model, agent),
                Some(Does::Note(note)) => open_library(model, Some(note)),
                Some(Does::Decision(decision)) => {
                    panes::focus(model, Pane::Podium);
                    podium::turn_to(model, &decision);
                }
                None => {}
            }
        }
        _ => {}
    }
}

/// What a picker offers: the value and how it reads.
pub(crate) fn choices(model: &Model, purpose: &PickerPurpose) -> Vec<(Option<String>, String)> {
    match purpose {
        PickerPurpose::Reassign(_) => model
            .agents()
            .filter(|a| a.role == AgentRole::Worker)
            .map(|a| (Some(a.id.to_string()), format!("{}  {}", a.name, a.activity)))
            .collect(),
        PickerPurpose::SpawnFor(_) => {
            let tasks = model
                .tasks()
                .filter(|t| matches!(t.status, TaskStatus::Todo | TaskStatus::Blocked))
                .map(|t| (Some(t.id.to_string()), format!("{}  {}", t.id, t.title)));
            std::iter::once((None, "without a task: the lead gives one".to_owned())).chain(tasks).collect()
        }
    }
}

fn pick(model: &mut Model, picker: &Picker, action: Action, out: &mut Vec<Cmd>) {
    let choices = choices(model, &picker.purpose);
    let rows = page_rows(model);
    match action {
        Action::Back | Action::Quit => close(model),
        Action::Confirm => {
            close(model);
            let Some((value, _)) = choices.into_iter().nth(picker.selected) else { return };
            match &picker.purpose {
                PickerPurpose::Reassign(task) => task_action(model, task, TaskActionKind::Reassign, value, out),
                PickerPurpose::SpawnFor(agent) => agent_action(model, agent, AgentActionKind::Spawn, value, out),
            }
        }
        other => {
            if let (Some(at), Some(Overlay::Picker(picker))) =
                (scrolled(picker.selected, other, rows), model.overlays.last_mut())
            {
                picker.selected = at.min(choices.len().saturating_sub(1));
            }
        }
    }
}
