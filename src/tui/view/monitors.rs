//! The agents: a nameplate and a live log for each, or a roster with the selected one's log.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::super::focus::Pane;
use super::super::layout::{MonitorShape, areas, inside, monitor_shape, split_top};
use super::super::model::Model;
use super::super::text;
use super::super::theme::Focused;
use super::super::world::is_working;
use super::paint::{focus_of, line, pane, put, put_right, row, span};
use crate::protocol::{Agent, AgentId, AgentState, LogEntry, LogKind};

pub(super) fn draw(model: &Model, buf: &mut Buffer, area: Rect) {
    let t = &model.theme;
    let working = model.working();
    let waiting = model.agents().filter(|a| a.active && a.state == AgentState::WaitingUser).count();
    let remark = match (working, waiting) {
        (0, _) => line("nobody works", t.muted()),
        (n, 0) => line(&format!("{n} at work"), t.muted()),
        (n, w) => Line::from(vec![
            Span::styled(format!("{} at work  ", n - w), t.muted()),
            Span::styled(format!("{w} waiting for you"), t.needs()),
        ]),
    };
    let inner = pane(model, buf, area, Pane::Monitors, &remark);
    let agents: Vec<&Agent> = model.agents().collect();
    if agents.is_empty() {
        put(buf, row(inner, 0), &line(" The team is not here yet.", t.muted()), model.glyphs.ellipsis);
        return;
    }
    let selected =
        model.monitors.selected.as_ref().and_then(|id| agents.iter().find(|a| a.id == *id)).or(agents.first());
    match monitor_shape(inner, agents.len(), model.monitors.single) {
        MonitorShape::Tiles { columns, tiles } => {
            for (at, (agent, tile)) in agents.iter().zip(&tiles).enumerate() {
                if at % columns > 0 {
                    for y in tile.top()..tile.bottom() {
                        buf.set_string(tile.x - 1, y, model.glyphs.vertical, t.faint());
                    }
                }
                monitor(model, buf, agent, *tile, LogShape::Brief);
            }
        }
        MonitorShape::Roster { list, log } => {
            for (at, agent) in agents.iter().enumerate().take(usize::from(list.height)) {
                plate(model, buf, agent, row(list, at), Style::new());
            }
            if let Some(agent) = selected
                && log.height > 0
            {
                let (rule, below) = split_top(log, 1);
                let name = format!(" {} ", agent.name);
                let dash = model.glyphs.horizontal.repeat(usize::from(rule.width));
                put(buf, rule, &line(&dash, t.faint()), "");
                put(
                    buf,
                    Rect { x: rule.x + 1, width: rule.width.saturating_sub(1), ..rule },
                    &line(&name, t.agent(&agent.color)),
                    model.glyphs.ellipsis,
                );
                log_into(model, buf, agent, below, LogShape::Brief);
            }
        }
        MonitorShape::Single(area) => {
            if let Some(agent) = selected {
                monitor(model, buf, agent, area, LogShape::Full);
            }
        }
    }
}

fn monitor(model: &Model, buf: &mut Buffer, agent: &Agent, area: Rect, shape: LogShape) {
    let (head, below) = split_top(area, 1);
    plate(model, buf, agent, head, model.theme.strip());
    log_into(model, buf, agent, below, shape);
}

/// The colour and the words of an agent's state.
pub(super) fn state_style(model: &Model, agent: &Agent) -> Style {
    let t = &model.theme;
    if !agent.active || agent.paused {
        return t.faint();
    }
    match agent.state {
        AgentState::Idle => t.muted(),
        AgentState::Thinking
        | AgentState::Reading
        | AgentState::Editing
        | AgentState::Running
        | AgentState::Testing => t.info(),
        AgentState::WaitingUser => t.needs(),
        AgentState::Blocked | AgentState::Error => t.error(),
        AgentState::Done => t.ok(),
    }
}

/// The sign of an agent's state.
pub(super) fn state_sign(model: &Model, agent: &Agent) -> &'static str {
    if !agent.active {
        model.glyphs.off
    } else if agent.paused {
        model.glyphs.paused
    } else {
        model.glyphs.state(agent.state)
    }
}

/// What an agent does, in words.
pub(super) fn doing(agent: &Agent) -> String {
    if agent.paused {
        return "paused".to_owned();
    }
    match (agent.activity.trim(), agent.active) {
        ("", false) => "off shift".to_owned(),
        ("", true) => agent.state.as_str().replace('_', " "),
        (activity, _) => activity.to_owned(),
    }
}

fn plate(model: &Model, buf: &mut Buffer, agent: &Agent, area: Rect, usual: Style) {
    let t = &model.theme;
    let g = &model.glyphs;
    let focus = focus_of(model, Pane::Monitors);
    let selected = model.monitors.selected.as_ref() == Some(&agent.id) && focus == Focused::Yes;
    let ground = if selected { t.selected(focus) } else { usual };
    buf.set_style(area.intersection(buf.area), ground);
    let colour = if agent.active { t.agent(&agent.color) } else { t.faint() };
    let mut right = Vec::new();
    if model.monitors.back.contains_key(&agent.id) {
        right.push(Span::styled(format!(" {} scrolled", g.up), t.warn()));
    }
    if let Some(task) = &agent.task_id {
        right.push(Span::styled(format!(" {task} "), t.muted()));
    }
    let rest = put_right(buf, area, &Line::from(right), g.ellipsis);
    let activity = match agent.state {
        _ if !agent.active || agent.paused => t.faint(),
        AgentState::WaitingUser => t.needs(),
        AgentState::Blocked | AgentState::Error => t.error(),
        _ if is_working(agent) => t.text(),
        _ => t.muted(),
    };
    put(
        buf,
        rest,
        &Line::from(vec![
            Span::styled(g.bar, colour),
            Span::styled(format!("{} ", state_sign(model, agent)), state_style(model, agent)),
            span(&format!("{:<8}", agent.name), colour.add_modifier(Modifier::BOLD)),
            Span::raw(" "),
            span(&doing(agent), activity),
        ]),
        g.ellipsis,
    );
}

/// How much of each entry is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LogShape {
    /// A few rows of each entry, as many entries as possible.
    Brief,
    Full,
}

/// Where the log of an agent is drawn, and how.
fn log_place(model: &Model, agent: &AgentId) -> Option<(Rect, LogShape)> {
    let pane = areas(model.size, model).pane(Pane::Monitors)?;
    let at = model.agents().position(|a| a.id == *agent)?;
    let (area, shape) = match monitor_shape(inside(pane), model.agents().count(), model.monitors.single) {
        MonitorShape::Tiles { tiles, .. } => (split_top(*tiles.get(at)?, 1).1, LogShape::Brief),
        MonitorShape::Roster { log, .. } => (split_top(log, 1).1, LogShape::Brief),
        MonitorShape::Single(area) => (split_top(area, 1).1, LogShape::Full),
    };
    Some((log_inside(area), shape))
}

fn log_inside(area: Rect) -> Rect {
    Rect { x: area.x + 1.min(area.width), width: area.width.saturating_sub(2), ..area }
}

/// How many rows a log can be scrolled back.
pub(in crate::tui) fn log_limit(model: &Model, agent: &AgentId) -> usize {
    let Some((area, shape)) = log_place(model, agent) else { return 0 };
    let width = usize::from(area.width);
    let rows: usize = model.log(agent).map(|e| entry_rows(model, e, width, shape).len()).sum();
    rows.saturating_sub(usize::from(area.height))
}

/// How many rows new entries add to a log.
pub(in crate::tui) fn log_growth(model: &Model, agent: &AgentId, entries: &[LogEntry]) -> usize {
    let Some((area, shape)) = log_place(model, agent) else { return 0 };
    entries.iter().map(|e| entry_rows(model, e, usize::from(area.width), shape).len()).sum()
}

fn log_into(model: &Model, buf: &mut Buffer, agent: &Agent, area: Rect, shape: LogShape) {
    let t = &model.theme;
    let area = log_inside(area);
    let room = usize::from(area.height);
    if room == 0 || area.width == 0 {
        return;
    }
    let back = model.monitors.back.get(&agent.id).copied().unwrap_or(0);
    let mut rows: Vec<(Line<'static>, Style)> = Vec::new();
    // From the end, and no further than what is in view.
    for entry in model.log(&agent.id).rev() {
        let mut lines = entry_rows(model, entry, usize::from(area.width), shape);
        lines.reverse();
        rows.extend(lines);
        if rows.len() >= room + back {
            break;
        }
    }
    if rows.is_empty() {
        if agent.active {
            put(buf, row(area, 0), &line("nothing yet", t.faint()), model.glyphs.ellipsis);
        }
        return;
    }
    let back = back.min(rows.len().saturating_sub(room));
    let shown: Vec<_> = rows.into_iter().skip(back).take(room).collect();
    for (at, (content, ground)) in shown.into_iter().rev().enumerate() {
        super::paint::put_on(buf, row(area, at), &content, ground, model.glyphs.ellipsis);
    }
    if back > 0 {
        let note = format!(" {back} below {} ", model.glyphs.down);
        put_right(buf, row(area, room.saturating_sub(1)), &line(&note, t.warn()), model.glyphs.ellipsis);
    }
}

fn entry_rows(model: &Model, entry: &LogEntry, width: usize, shape: LogShape) -> Vec<(Line<'static>, Style)> {
    let t = &model.theme;
    let g = &model.glyphs;
    let most = match shape {
        LogShape::Full => usize::MAX,
        LogShape::Brief => match entry.kind {
            LogKind::Text => 3,
            LogKind::Tool => 1,
            LogKind::Result => 3,
            LogKind::Error => 4,
            LogKind::Diff => 8,
        },
    };
    let mut rows: Vec<(Line<'static>, Style)> = Vec::new();
    let plain = Style::new();
    match entry.kind {
        LogKind::Text => {
            let (content, style) = match entry.text.strip_prefix("~ ") {
                Some(thought) => (thought, t.muted().add_modifier(Modifier::ITALIC)),
                None => (entry.text.as_str(), t.text()),
            };
            rows.extend(text::wrap_all(content.trim_end(), width).iter().map(|l| (line(l, style), plain)));
        }
        LogKind::Tool => {
            for (at, content) in text::lines(entry.text.trim_end()).enumerate() {
                let sign = if at == 0 { format!("{} ", g.tool) } else { "  ".to_owned() };
                rows.push((Line::from(vec![Span::styled(sign, t.accent()), span(&content, t.accent())]), plain));
            }
        }
        LogKind::Result => {
            for content in text::lines(entry.text.trim_end()) {
                rows.push((line(&format!("  {content}"), t.muted()), plain));
            }
        }
        LogKind::Error => {
            for (at, content) in text::wrap_all(entry.text.trim_end(), width.saturating_sub(2)).into_iter().enumerate()
            {
                let sign = if at == 0 { format!("{} ", g.fail) } else { "  ".to_owned() };
                rows.push((Line::from(vec![Span::styled(sign, t.error()), span(&content, t.error())]), plain));
            }
        }
        LogKind::Diff => {
            for content in text::lines(entry.text.trim_end()) {
                let (style, ground) = match content.chars().next() {
                    Some('+') => (t.added(), t.added_ground()),
                    Some('-') => (t.removed(), t.removed_ground()),
                    Some('@') => (t.info(), plain),
                    _ => (t.muted(), plain),
                };
                rows.push((line(&content, style), ground));
            }
        }
    }
    if rows.len() > most {
        let hidden = rows.len() - most + 1;
        rows.truncate(most.saturating_sub(1));
        rows.push((line(&format!("  {} {hidden} more lines", g.ellipsis), t.faint()), plain));
    }
    rows
}
