//! The goal bar: what the team works towards, how far it is, what it costs, whether anyone waits for you, and whether
//! the line to the Foreman holds.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::model::{LinkState, Model};
use super::super::world::COLUMNS;
use super::paint::{put, put_right, row, span};
use crate::protocol::{AuthStatus, GoalStatus, TaskStatus};

/// Columns of the progress bar.
const BAR: usize = 12;

pub(super) fn draw(model: &Model, buf: &mut Buffer, area: Rect) {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let ellipsis = model.glyphs.ellipsis;
    let two_rows = area.height > 1;
    let mut right: Vec<Span<'static>> = Vec::new();
    progress(model, &mut right);
    needs(model, &mut right);
    if !two_rows {
        link(model, &mut right);
    } else {
        spend(model, &mut right);
    }
    let rest = put_right(buf, row(area, 0), &Line::from(right), ellipsis);
    put(buf, Rect { width: rest.width.saturating_sub(2), ..rest }, &goal(model), ellipsis);
    if two_rows {
        let mut right = Vec::new();
        // While the line is down, why it is down is worth more than which engine it was.
        if !matches!(model.link, LinkState::Down { .. } | LinkState::Ended(_)) {
            engine(model, &mut right);
        }
        link(model, &mut right);
        let below = row(area, 1);
        let rest = put_right(buf, below, &Line::from(right), ellipsis);
        put(buf, Rect { width: rest.width.saturating_sub(2), ..rest }, &counts(model), ellipsis);
    }
}

fn goal(model: &Model) -> Line<'static> {
    let t = &model.theme;
    let g = &model.glyphs;
    let Some(goal) = model.goal() else {
        let (dot, words) = match (&model.link, model.mirror().is_some()) {
            (LinkState::Up, true) => (g.dot, "No goal yet: press : and type what the team should do"),
            (LinkState::Down { .. } | LinkState::Ended(_), _) => (g.off, "Not connected"),
            (LinkState::Connecting | LinkState::Up, _) => (g.off, "Connecting to the Foreman"),
        };
        return Line::from(vec![Span::styled(format!("{dot} "), t.muted()), Span::styled(words, t.muted())]);
    };
    let (dot, style) = match goal.status {
        GoalStatus::Planning => (g.dot, t.info()),
        GoalStatus::Active => (g.dot, t.accent()),
        GoalStatus::Done => (g.ok, t.ok()),
        GoalStatus::Failed => (g.fail, t.error()),
        GoalStatus::Cancelled => (g.off, t.muted()),
    };
    let mut spans = vec![Span::styled(format!("{dot} "), style), span(&goal.text, t.strong())];
    if goal.status != GoalStatus::Active {
        spans.push(Span::styled(format!("  {}", goal.status), style));
    }
    Line::from(spans)
}

fn gap(right: &mut Vec<Span<'static>>) {
    if !right.is_empty() {
        right.push(Span::raw("   "));
    }
}

fn progress(model: &Model, right: &mut Vec<Span<'static>>) {
    let Some(goal) = model.goal() else { return };
    let t = &model.theme;
    let share = if goal.progress.is_finite() { goal.progress.clamp(0.0, 1.0) } else { 0.0 };
    let filled = ((share * BAR as f64).round() as usize).min(BAR);
    gap(right);
    right.push(Span::styled(model.glyphs.full.repeat(filled), t.accent()));
    right.push(Span::styled(model.glyphs.empty.repeat(BAR - filled), t.faint()));
    right.push(Span::styled(format!(" {:>3.0}%", share * 100.0), t.text()));
}

fn needs(model: &Model, right: &mut Vec<Span<'static>>) {
    let t = &model.theme;
    match model.needs_you() {
        0 => {}
        n => {
            gap(right);
            let words = if n == 1 { "1 needs you".to_owned() } else { format!("{n} need you") };
            right.push(Span::styled(
                format!("{} {words}", model.glyphs.state(crate::protocol::AgentState::WaitingUser)),
                t.needs(),
            ));
        }
    }
}

fn spend(model: &Model, right: &mut Vec<Span<'static>>) {
    if let Some(cost) = model.mirror().and_then(|m| m.foreman.cost_usd).filter(|c| *c > 0.0) {
        gap(right);
        right.push(Span::styled(format!("${cost:.2}"), model.theme.muted()));
    }
}

fn engine(model: &Model, right: &mut Vec<Span<'static>>) {
    let Some(status) = model.mirror().map(|m| &m.foreman) else { return };
    let t = &model.theme;
    let style = match status.auth {
        AuthStatus::Failed => t.error(),
        AuthStatus::Checking => t.warn(),
        AuthStatus::Ok | AuthStatus::Unknown => t.muted(),
    };
    gap(right);
    match (&status.message, status.auth) {
        (Some(message), _) => right.push(span(message, style)),
        (None, AuthStatus::Failed) => right.push(Span::styled(format!("{}: not logged in", status.backend), style)),
        (None, _) => right.push(Span::styled(status.backend.as_str(), style)),
    }
}

fn link(model: &Model, right: &mut Vec<Span<'static>>) {
    let t = &model.theme;
    match &model.link {
        // The usual needs no words.
        LinkState::Up => {
            if model.mirror().is_some_and(|m| m.foreman.auth == AuthStatus::Failed) && right.is_empty() {
                right.push(Span::styled("login failed", t.error()));
            }
            if model.options.read_only {
                gap(right);
                right.push(Span::styled("read-only", t.warn()));
            }
            if model.options.attached {
                gap(right);
                right.push(Span::styled("attached", t.muted()));
            }
        }
        LinkState::Ended(why) => {
            gap(right);
            right.push(span(&format!("{} the Foreman has ended: {why}; q leaves", model.glyphs.fail), t.error()));
        }
        LinkState::Connecting => {
            gap(right);
            right.push(Span::styled("connecting", t.warn()));
        }
        LinkState::Down { why, retry_at_ms } => {
            let seconds = retry_at_ms.saturating_sub(model.now.mono_ms).div_ceil(1000);
            gap(right);
            right.push(span(&format!("{} {why}", model.glyphs.fail), t.error()));
            right.push(Span::styled(format!(", again in {seconds} s"), t.error()));
        }
    }
}

fn counts(model: &Model) -> Line<'static> {
    let t = &model.theme;
    if model.tasks().next().is_none() {
        return match model.goal().map(|g| g.status) {
            Some(GoalStatus::Planning) => Line::from(Span::styled("  the lead is planning", t.muted())),
            _ => Line::default(),
        };
    }
    let mut spans = vec![Span::raw("  ")];
    for (at, status) in COLUMNS.iter().enumerate() {
        let count = model.count(*status);
        let style = match (status, count) {
            (_, 0) => t.faint(),
            (TaskStatus::Blocked, _) => t.error(),
            (TaskStatus::Review, _) => t.needs(),
            (TaskStatus::Doing, _) => t.info(),
            (TaskStatus::Done, _) => t.ok(),
            (TaskStatus::Todo | TaskStatus::Cancelled, _) => t.muted(),
        };
        if at > 0 {
            spans.push(Span::styled("   ", t.faint()));
        }
        spans.push(Span::styled(format!("{count} {status}"), style));
    }
    let working = model.working();
    if working > 0 {
        spans.push(Span::styled(format!("   {} {working} at work", model.glyphs.separator), t.muted()));
    }
    Line::from(spans)
}
