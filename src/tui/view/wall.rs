//! The Task Wall: five columns of cards, or one grouped list where it is narrow; and the tabs of the smallest shape.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::focus::Pane;
use super::super::layout::{
    WallShape, card_title, column_spots, list_start, listed_tasks, tab_label, tab_spots, wall_shape,
};
use super::super::model::{LinkState, Model};
use super::super::text;
use super::super::theme::Focused;
use super::paint::{focus_of, line, pane, put, put_right, row, span};
use crate::protocol::{CiStatus, GoalStatus, Task, TaskStatus};

pub(super) fn draw(model: &Model, buf: &mut Buffer, area: Rect) {
    let total = model.tasks().filter(|t| t.status != TaskStatus::Cancelled).count();
    let done = model.count(TaskStatus::Done);
    let remark =
        if total == 0 { Line::default() } else { line(&format!("{done} of {total} done"), model.theme.muted()) };
    let inner = pane(model, buf, area, Pane::Wall, &remark);
    if total == 0 {
        empty(model, buf, inner);
        return;
    }
    match wall_shape(inner) {
        WallShape::Columns(columns) => {
            for (status, column) in columns {
                draw_column(model, buf, status, column);
            }
        }
        WallShape::List(list) => draw_list(model, buf, list),
    }
}

fn empty(model: &Model, buf: &mut Buffer, inner: Rect) {
    let t = &model.theme;
    let words: &[&str] = match (&model.link, model.goal().map(|g| g.status)) {
        (LinkState::Up, Some(GoalStatus::Planning)) => {
            &["The lead reads the repository and makes a plan.", "Tasks appear here."]
        }
        (LinkState::Up, _) => &[
            "No tasks yet.",
            "Press : and type a goal, for example:  add a --json flag to the list command",
            "The lead plans it into tasks; workers do them; you approve each merge.",
        ],
        (LinkState::Down { .. }, _) => &["Not connected to the Foreman; trying again."],
        (LinkState::Ended(_), _) => &["The Foreman has ended."],
        (LinkState::Connecting, _) => &["Connecting to the Foreman."],
    };
    let top = usize::from(inner.height).saturating_sub(words.len()) / 2;
    let mut at = top;
    for sentence in words {
        for wrapped in text::wrap(sentence, usize::from(inner.width.saturating_sub(4))) {
            let x = inner.width.saturating_sub(u16::try_from(text::width(&wrapped)).unwrap_or(0)) / 2;
            let place = row(inner, at);
            put(
                buf,
                Rect { x: place.x + x, width: place.width.saturating_sub(x), ..place },
                &line(&wrapped, t.muted()),
                model.glyphs.ellipsis,
            );
            at += 1;
        }
    }
}

fn status_style(model: &Model, status: TaskStatus) -> Style {
    let t = &model.theme;
    match status {
        TaskStatus::Todo | TaskStatus::Cancelled => t.muted(),
        TaskStatus::Doing => t.info(),
        TaskStatus::Review => t.needs(),
        TaskStatus::Done => t.ok(),
        TaskStatus::Blocked => t.error(),
    }
}

fn capital(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Todo => "Todo",
        TaskStatus::Doing => "Doing",
        TaskStatus::Review => "Review",
        TaskStatus::Done => "Done",
        TaskStatus::Blocked => "Blocked",
        TaskStatus::Cancelled => "Cancelled",
    }
}

fn draw_column(model: &Model, buf: &mut Buffer, status: TaskStatus, column: Rect) {
    let t = &model.theme;
    let g = &model.glyphs;
    let count = model.count(status);
    let style = if count == 0 { t.faint() } else { status_style(model, status) };
    let spots = column_spots(model, status, column);
    let head = row(column, 0);
    let hidden = match (spots.above, spots.below) {
        (0, 0) => String::new(),
        (0, n) => format!("{n}{} ", g.down),
        (n, 0) => format!("{n}{} ", g.up),
        (a, b) => format!("{a}{} {b}{} ", g.up, g.down),
    };
    put(
        buf,
        head,
        &Line::from(vec![
            Span::styled(
                format!(" {} {}", g.status(status), capital(status)),
                style.add_modifier(ratatui::style::Modifier::BOLD),
            ),
            Span::styled(format!(" {count}"), t.muted()),
        ]),
        g.ellipsis,
    );
    put_right(buf, head, &line(&hidden, t.muted()), g.ellipsis);
    for spot in &spots.cards {
        if let Some(task) = model.task(&spot.task) {
            card(model, buf, task, spot.area);
        }
    }
}

fn card(model: &Model, buf: &mut Buffer, task: &Task, area: Rect) {
    let t = &model.theme;
    let g = &model.glyphs;
    let selected = model.wall.selected.as_ref() == Some(&task.id);
    let focus = focus_of(model, Pane::Wall);
    if selected && focus == Focused::Yes {
        buf.set_style(area.intersection(buf.area), t.selected(focus));
    }
    let bar = assignee_style(model, task);
    let title_style = match task.status {
        TaskStatus::Done | TaskStatus::Cancelled => t.muted(),
        _ if selected && focus == Focused::Yes => t.strong(),
        _ => t.text(),
    };
    let title_rows = usize::from(area.height.saturating_sub(1)).max(1);
    let wrapped = card_title(&task.id, &task.title, area.width);
    for at in 0..title_rows {
        // The last row takes the rest and is cut.
        let words = if at + 1 == title_rows {
            wrapped.get(at..).unwrap_or_default().join(" ")
        } else {
            wrapped.get(at).cloned().unwrap_or_default()
        };
        let mut spans = vec![Span::styled(g.bar, bar)];
        match words.strip_prefix(task.id.as_str()).filter(|_| at == 0) {
            Some(rest) => {
                spans.push(Span::styled(task.id.to_string(), t.muted()));
                spans.push(Span::styled(rest.to_owned(), title_style));
            }
            None => spans.push(Span::styled(words, title_style)),
        }
        put(buf, row(area, at), &Line::from(spans), g.ellipsis);
    }
    let mut below = vec![Span::styled(g.bar, bar)];
    below.extend(details(model, task, Words::Full));
    put(buf, row(area, title_rows), &Line::from(below), g.ellipsis);
}

fn assignee_style(model: &Model, task: &Task) -> Style {
    task.assignee.as_ref().and_then(|id| model.agent(id)).map_or(model.theme.faint(), |a| model.theme.agent(&a.color))
}

/// How much is said about a task beside its title.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Full,
    /// Signs rather than words.
    Few,
}

/// What stands under a title: who, what it waits for, how its tests went, how pressing it is.
fn details(model: &Model, task: &Task, words: Words) -> Vec<Span<'static>> {
    let t = &model.theme;
    let g = &model.glyphs;
    let full = words == Words::Full;
    let mut spans: Vec<Span<'static>> = Vec::new();
    let put = |spans: &mut Vec<Span<'static>>, new: Span<'static>| {
        if !spans.is_empty() {
            spans.push(Span::raw(" "));
        }
        spans.push(new);
    };
    if let Some(agent) = &task.assignee {
        put(&mut spans, span(&model.name_of(agent.as_str()), assignee_style(model, task)));
    }
    if model.open_decisions().iter().any(|d| d.task_id.as_ref() == Some(&task.id)) {
        let sign = g.state(crate::protocol::AgentState::WaitingUser);
        put(&mut spans, Span::styled(if full { format!("{sign} you") } else { sign.to_owned() }, t.needs()));
    }
    let tests = if full { " tests" } else { "" };
    match task.ci {
        CiStatus::Unknown => {}
        CiStatus::Running => put(&mut spans, Span::styled(format!("{}{tests}", g.running), t.info())),
        CiStatus::Pass => put(&mut spans, Span::styled(format!("{}{tests}", g.ok), t.ok())),
        CiStatus::Fail => put(&mut spans, Span::styled(format!("{}{tests}", g.fail), t.error())),
    }
    if task.status == TaskStatus::Blocked {
        let why = task.blocked_reason.as_deref().unwrap_or("blocked");
        put(&mut spans, span(why, t.error()));
    }
    if !matches!(task.status, TaskStatus::Done | TaskStatus::Cancelled) {
        let waits: Vec<&str> = model.waits_for(task).map(crate::protocol::TaskId::as_str).collect();
        if !waits.is_empty() {
            put(&mut spans, Span::styled(format!("{} {}", g.waits, waits.join(" ")), t.muted()));
        }
        if task.priority != 0 && full {
            put(&mut spans, Span::styled(format!("p{}", task.priority), t.muted()));
        }
    }
    if spans.is_empty() && full {
        spans.push(Span::styled("nobody yet", t.faint()));
    }
    spans
}

fn draw_list(model: &Model, buf: &mut Buffer, list: Rect) {
    let t = &model.theme;
    let g = &model.glyphs;
    let tasks = listed_tasks(model);
    let selected = model.wall.selected.as_ref().and_then(|id| tasks.iter().position(|task| task == id));
    let start = list_start(tasks.len(), usize::from(list.height), selected);
    let mut before = None;
    for (at, id) in tasks.iter().skip(start).take(usize::from(list.height)).enumerate() {
        let Some(task) = model.task(id) else { continue };
        let place = row(list, at);
        let focus = focus_of(model, Pane::Wall);
        let is_selected = model.wall.selected.as_ref() == Some(id) && focus == Focused::Yes;
        if is_selected {
            buf.set_style(place.intersection(buf.area), t.selected(focus));
        }
        let heading = if before == Some(task.status) { "" } else { task.status.as_str() };
        before = Some(task.status);
        // The title is worth more than the details.
        let share = (place.width / 3).max(14).min(place.width);
        let side = Rect { x: place.right() - share, width: share, ..place };
        let mut right = details(model, task, if place.width > 70 { Words::Full } else { Words::Few });
        right.insert(0, Span::raw("  "));
        let kept = put_right(buf, side, &Line::from(right), g.ellipsis);
        let room = Rect { width: place.width - share + kept.width, ..place };
        let head = Line::from(vec![
            Span::styled(format!("{} ", g.status(task.status)), status_style(model, task.status)),
            Span::styled(format!("{heading:<8}"), status_style(model, task.status)),
            Span::styled(g.bar, assignee_style(model, task)),
            Span::styled(format!("{:<3} ", task.id.as_str()), t.muted()),
            span(&task.title, if task.status == TaskStatus::Done { t.muted() } else { t.text() }),
        ]);
        put(buf, room, &head, g.ellipsis);
    }
    if tasks.len() > start + usize::from(list.height)
        && let Some(last) = usize::from(list.height).checked_sub(1)
    {
        let more = format!(" {} more {}", tasks.len() - start - last - 1, g.down);
        let edge = Rect { y: list.bottom(), height: 1, x: list.x, width: list.width.saturating_sub(2) };
        put_right(buf, edge, &line(&format!("{more} "), t.muted()), g.ellipsis);
    }
}

/// The tabs of the smallest shape.
pub(super) fn tabs(model: &Model, buf: &mut Buffer, area: Rect) {
    let t = &model.theme;
    let here = if model.focus == Pane::Console { model.before_console } else { model.focus };
    for (pane, spot) in tab_spots(model, area) {
        let style = match (pane == here, pane == Pane::Podium && model.needs_you() > 0) {
            (true, _) => t.title(Focused::Yes).patch(t.selected(Focused::Yes)),
            (false, true) => t.needs(),
            (false, false) => t.muted(),
        };
        put(
            buf,
            spot,
            &Line::from(Span::styled(format!(" {} ", tab_label(model, pane)), style)),
            model.glyphs.ellipsis,
        );
    }
}
