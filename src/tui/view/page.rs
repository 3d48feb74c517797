//! Pages of text: help, status, repositories, and the lists that the console's commands ask for.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::super::layout::floating;
use super::super::model::{Model, Page, PageKind};
use super::super::text;
use super::super::theme::Focused;
use super::super::world::COLUMNS;
use super::paint::{line, over, scrolled, span};
use super::{feed, help, monitors};
use crate::protocol::{AgentRole, CiStatus, DecisionStatus, WorktreeStatus};

fn area_of(body: Rect) -> Rect {
    floating(body, 100, body.height)
}

pub(super) fn draw(model: &Model, page: &Page, buf: &mut Buffer, body: Rect) -> Option<Position> {
    let area = area_of(body);
    let title = match page.kind {
        PageKind::Help(_) => "Keys",
        PageKind::Status => "Foreman",
        PageKind::Repos => "Repositories",
        PageKind::Agents => "Agents",
        PageKind::Tasks => "Tasks",
        PageKind::Decisions => "Decisions",
        PageKind::Feed => "Feed",
    };
    let remark = line("Esc closes", model.theme.muted());
    let inner = over(model, buf, area, &line(title, model.theme.title(Focused::Yes)), &remark);
    scrolled(model, buf, inner, &lines(model, page.kind, usize::from(inner.width)), page.scroll);
    None
}

pub(super) fn limit(model: &Model, page: &Page, body: Rect) -> usize {
    let area = area_of(body);
    let rows = usize::from(area.height.saturating_sub(2));
    lines(model, page.kind, usize::from(area.width.saturating_sub(4))).len().saturating_sub(rows)
}

fn lines(model: &Model, kind: PageKind, width: usize) -> Vec<Line<'static>> {
    match kind {
        PageKind::Help(place) => help::lines(model, place),
        PageKind::Status => status(model),
        PageKind::Repos => repos(model),
        PageKind::Agents => agents(model),
        PageKind::Tasks => tasks(model),
        PageKind::Decisions => decisions(model, width),
        PageKind::Feed => {
            model.feed_items().rev().flat_map(|item| feed::item_rows(model, item, width, usize::MAX)).collect()
        }
    }
}

/// A name and its value.
pub(super) fn fact(model: &Model, name: &str, value: &str) -> Line<'static> {
    Line::from(vec![span(&format!("{name:<12}"), model.theme.muted()), span(value, model.theme.text())])
}

fn status(model: &Model) -> Vec<Line<'static>> {
    let t = &model.theme;
    let Some(mirror) = model.mirror() else { return vec![line("Not connected yet.", t.muted())] };
    let f = &mirror.foreman;
    let mut lines = vec![
        fact(model, "version", &f.version),
        fact(model, "engine", f.backend.as_str()),
        fact(model, "login", f.auth.as_str()),
    ];
    lines.extend(f.message.as_ref().map(|m| fact(model, "message", m)));
    lines.extend(f.account.as_ref().map(|a| fact(model, "account", a)));
    lines.extend(f.speed.map(|s| fact(model, "speed", &format!("{s}x"))));
    lines.extend(f.cost_usd.map(|c| fact(model, "spend", &format!("${c:.2} (estimated)"))));
    lines.extend(f.user_name.as_ref().map(|n| fact(model, "works for", n)));
    lines.push(Line::default());
    for status in COLUMNS {
        lines.push(fact(model, status.as_str(), &model.count(status).to_string()));
    }
    lines.push(fact(model, "goals", &mirror.goals.len().to_string()));
    lines.push(fact(model, "notes", &mirror.memory.len().to_string()));
    lines.push(fact(model, "open", &format!("{} decisions", model.open_decisions().len())));
    lines.push(Line::default());
    for goal in mirror.goals.values().rev() {
        lines.push(Line::from(vec![
            span(
                &format!("{:<4} {:<10} {:>3.0}%  ", goal.id.as_str(), goal.status.as_str(), goal.progress * 100.0),
                t.muted(),
            ),
            span(&goal.text, t.text()),
        ]));
    }
    lines
}

fn repos(model: &Model) -> Vec<Line<'static>> {
    let t = &model.theme;
    let mut lines = Vec::new();
    for repo in model.repos() {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        let dirty = if repo.dirty { "  uncommitted changes: merges are refused until they are committed" } else { "" };
        lines.push(Line::from(vec![
            span(&repo.name, t.strong()),
            span(&format!("  {}", repo.branch), t.accent()),
            span(&format!(" {}", repo.head.as_deref().unwrap_or("")), t.muted()),
            span(dirty, t.warn()),
        ]));
        lines.push(line(&format!("  {}", repo.path), t.muted()));
        for worktree in &repo.worktrees {
            let style = match worktree.status {
                WorktreeStatus::Active => t.text(),
                WorktreeStatus::Merged | WorktreeStatus::Abandoned => t.muted(),
            };
            let colour = model.agent(&worktree.agent_id).map_or(t.muted(), |a| t.agent(&a.color));
            lines.push(Line::from(vec![
                span(&format!("  {:<14}", worktree.id.as_str()), colour),
                span(&format!("{:<10}", worktree.status.as_str()), style),
                span(&format!("+{} ", worktree.additions), t.added()),
                span(&format!("-{} ", worktree.deletions), t.removed()),
                span(&format!("{} files, {} ahead of {}  ", worktree.files, worktree.ahead, worktree.base), t.muted()),
                span(&worktree.branch, t.muted()),
            ]));
        }
    }
    if lines.is_empty() {
        lines.push(line("No repository yet. In the console:  /repo add PATH", t.muted()));
    }
    lines
}

fn agents(model: &Model) -> Vec<Line<'static>> {
    let t = &model.theme;
    model
        .agents()
        .map(|a| {
            let role = match a.role {
                AgentRole::Lead => "lead",
                AgentRole::Worker => a.title.as_deref().unwrap_or("worker"),
            };
            Line::from(vec![
                span(&format!("{} ", monitors::state_sign(model, a)), monitors::state_style(model, a)),
                span(&format!("{:<10}", a.name), t.agent(&a.color)),
                span(&format!("{role:<22}"), t.muted()),
                span(&format!("{:<5}", a.task_id.as_ref().map_or("", |id| id.as_str())), t.muted()),
                span(&monitors::doing(a), t.text()),
            ])
        })
        .collect()
}

fn tasks(model: &Model) -> Vec<Line<'static>> {
    let t = &model.theme;
    model
        .tasks()
        .map(|task| {
            let ci = match task.ci {
                CiStatus::Unknown => Span::raw("   "),
                CiStatus::Pass => Span::styled(format!(" {} ", model.glyphs.ok), t.ok()),
                CiStatus::Fail => Span::styled(format!(" {} ", model.glyphs.fail), t.error()),
                CiStatus::Running => Span::styled(format!(" {} ", model.glyphs.running), t.info()),
            };
            Line::from(vec![
                span(&format!("{:<5}{:<10}", task.id.as_str(), task.status.as_str()), t.muted()),
                ci,
                span(
                    &format!("{:<10}", task.assignee.as_ref().map_or_else(String::new, |a| model.name_of(a.as_str()))),
                    t.info(),
                ),
                span(&task.title, t.text()),
            ])
        })
        .collect()
}

fn decisions(model: &Model, width: usize) -> Vec<Line<'static>> {
    let t = &model.theme;
    let mut lines = Vec::new();
    let all = model.mirror().map(|m| m.decisions.values().rev().collect::<Vec<_>>()).unwrap_or_default();
    for decision in all {
        let (word, style) = match decision.status {
            DecisionStatus::Open => ("open", t.needs()),
            DecisionStatus::Answered => ("answered", t.muted()),
            DecisionStatus::Cancelled => ("withdrawn", t.faint()),
        };
        let answer = decision
            .answer
            .as_ref()
            .and_then(|a| a.option.as_deref().or(a.text.as_deref()))
            .map_or_else(String::new, |a| format!("  {} {a}", model.glyphs.arrow));
        lines.push(Line::from(vec![
            span(&format!("{:<5}{word:<10}", decision.id.as_str()), style),
            span(&format!("{:<12}", decision.kind.as_str()), t.muted()),
            span(&model.name_of(decision.agent_id.as_str()), t.info()),
            span(&answer, t.ok()),
        ]));
        lines.extend(
            text::wrap_all(&decision.question, width.saturating_sub(5))
                .iter()
                .map(|l| line(&format!("     {l}"), t.text())),
        );
    }
    if lines.is_empty() {
        lines.push(line("There was none yet.", t.muted()));
    }
    lines
}
