//! The cards of a task and of an agent: everything known, and what can be done.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::super::layout::{floating, split_bottom};
use super::super::model::{AgentCard, Model, TaskCard};
use super::super::text;
use super::super::theme::Focused;
use super::page::fact;
use super::paint::{line, over, put, scrolled, span};
use super::{feed, monitors};
use crate::protocol::{Agent, AgentRole, CiStatus, Task, TaskStatus};

/// Columns of a card.
const WIDTH: u16 = 84;

/// Lines of the feed on an agent's card.
const RECENT: usize = 12;

/// Edges, and the keys below a blank row.
const AROUND: u16 = 4;

fn area_of(body: Rect, lines: impl Fn(usize) -> usize) -> Rect {
    let width = WIDTH.min(body.width);
    let needed = u16::try_from(lines(usize::from(width.saturating_sub(4)))).unwrap_or(u16::MAX);
    floating(body, width, needed.saturating_add(AROUND).max(8))
}

fn task_area(model: &Model, card: &TaskCard, body: Rect) -> Rect {
    area_of(body, |width| model.task(&card.task).map_or(1, |t| task_lines(model, t, width).len()))
}

fn agent_area(model: &Model, card: &AgentCard, body: Rect) -> Rect {
    area_of(body, |width| model.agent(&card.agent).map_or(1, |a| agent_lines(model, a, width).len()))
}

pub(super) fn task(model: &Model, card: &TaskCard, buf: &mut Buffer, body: Rect) -> Option<Position> {
    let t = &model.theme;
    let area = task_area(model, card, body);
    let title = Line::from(vec![
        span(card.task.as_str(), t.title(Focused::Yes)),
        span(model.task(&card.task).map_or("", |_| "  task"), t.muted()),
    ]);
    let inner = over(model, buf, area, &title, &line("Esc closes", t.muted()));
    let Some(task) = model.task(&card.task) else {
        put(buf, inner, &line("This task is no longer known.", t.muted()), model.glyphs.ellipsis);
        return None;
    };
    let (text_area, foot) = split_bottom(inner, 2);
    scrolled(model, buf, text_area, &task_lines(model, task, usize::from(text_area.width)), card.scroll);
    let foot = split_bottom(foot, 1).1;
    let words = if card.cancelling {
        let held = model.holds_up(&task.id);
        let more = if held.is_empty() { String::new() } else { format!("; {} wait for it", join(&held)) };
        line(&format!("x again cancels {}{more}", task.id), t.error())
    } else {
        keys(
            model,
            &[
                ("r", "retry"),
                ("a", "reassign"),
                ("u", "to the top"),
                ("x", "cancel"),
                ("d", "diff"),
                ("Enter", "agent"),
            ],
        )
    };
    put(buf, foot, &words, model.glyphs.ellipsis);
    None
}

fn join(ids: &[&crate::protocol::TaskId]) -> String {
    ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ")
}

fn keys(model: &Model, pairs: &[(&'static str, &'static str)]) -> Line<'static> {
    let t = &model.theme;
    let mut spans = Vec::new();
    for (key, word) in pairs {
        spans.push(Span::styled(*key, t.key()));
        spans.push(Span::styled(format!(" {word}   "), t.muted()));
    }
    Line::from(spans)
}

pub(super) fn task_limit(model: &Model, card: &TaskCard, body: Rect) -> usize {
    let area = task_area(model, card, body);
    let rows = usize::from(area.height.saturating_sub(4));
    model
        .task(&card.task)
        .map_or(0, |task| task_lines(model, task, usize::from(area.width.saturating_sub(4))).len())
        .saturating_sub(rows)
}

fn paragraphs(lines: &mut Vec<Line<'static>>, model: &Model, heading: &str, content: &str, width: usize) {
    if content.trim().is_empty() {
        return;
    }
    lines.push(Line::default());
    lines.push(line(heading, model.theme.muted()));
    lines.extend(text::wrap_all(content.trim(), width).iter().map(|l| line(l, model.theme.text())));
}

fn task_lines(model: &Model, task: &Task, width: usize) -> Vec<Line<'static>> {
    let t = &model.theme;
    let mut lines: Vec<Line<'static>> =
        text::wrap_all(&task.title, width).iter().map(|l| line(l, t.strong())).collect();
    lines.push(Line::default());
    lines.push(fact(model, "status", task.status.as_str()));
    if task.status == TaskStatus::Blocked {
        let why = task.blocked_reason.as_deref().unwrap_or("no reason given");
        for (at, part) in text::wrap_all(why, width.saturating_sub(12)).iter().enumerate() {
            let name = if at == 0 { "because" } else { "" };
            lines.push(Line::from(vec![span(&format!("{name:<12}"), t.muted()), span(part, t.error())]));
        }
    }
    if let Some(agent) = task.assignee.as_ref() {
        let colour = model.agent(agent).map_or(t.text(), |a| t.agent(&a.color));
        lines.push(Line::from(vec![
            span(&format!("{:<12}", "agent"), t.muted()),
            span(&model.name_of(agent.as_str()), colour),
        ]));
    } else {
        lines.push(fact(model, "agent", "nobody yet"));
    }
    let ci = match task.ci {
        CiStatus::Unknown => "not run",
        CiStatus::Running => "running",
        CiStatus::Pass => "passed",
        CiStatus::Fail => "failed",
    };
    lines.push(fact(model, "tests", ci));
    lines.push(fact(model, "priority", &task.priority.to_string()));
    if !task.deps.is_empty() {
        let waits: Vec<&crate::protocol::TaskId> = model.waits_for(task).collect();
        let needs = task.deps.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
        let still = if waits.is_empty() { "all done".to_owned() } else { format!("waits for {}", join(&waits)) };
        lines.push(fact(model, "needs", &format!("{needs}  ({still})")));
    }
    let held = model.holds_up(&task.id);
    if !held.is_empty() {
        lines.push(fact(model, "holds up", &join(&held)));
    }
    lines.extend(task.branch.as_ref().map(|b| fact(model, "branch", b)));
    if let Some((_, worktree)) = task.worktree.as_ref().and_then(|id| model.worktree(id)) {
        lines.push(Line::from(vec![
            span(&format!("{:<12}", "worktree"), t.muted()),
            span(worktree.id.as_str(), t.text()),
            span(&format!("  {} files ", worktree.files), t.muted()),
            span(&format!("+{} ", worktree.additions), t.added()),
            span(&format!("-{}", worktree.deletions), t.removed()),
        ]));
    }
    lines.push(fact(
        model,
        "times",
        &format!(
            "made {} by {}, changed {}",
            model.clock(task.created_at),
            model.name_of(&task.created_by),
            model.clock(task.updated_at)
        ),
    ));
    paragraphs(&mut lines, model, "What is wanted", task.description.as_deref().unwrap_or(""), width);
    paragraphs(&mut lines, model, "What came of it", task.summary.as_deref().unwrap_or(""), width);
    lines
}

pub(super) fn agent(model: &Model, card: &AgentCard, buf: &mut Buffer, body: Rect) -> Option<Position> {
    let t = &model.theme;
    let area = agent_area(model, card, body);
    let Some(agent) = model.agent(&card.agent) else {
        let inner = over(model, buf, area, &line("Agent", t.title(Focused::Yes)), &Line::default());
        put(buf, inner, &line("This agent is no longer known.", t.muted()), model.glyphs.ellipsis);
        return None;
    };
    let title = span(&agent.name, t.agent(&agent.color).add_modifier(Modifier::BOLD));
    let inner = over(model, buf, area, &Line::from(title), &line("Esc closes", t.muted()));
    let (text_area, foot) = split_bottom(inner, 2);
    scrolled(model, buf, text_area, &agent_lines(model, agent, usize::from(text_area.width)), card.scroll);
    let foot = split_bottom(foot, 1).1;
    let words = if card.stopping {
        line(&format!("x again stops {}: the turn ends, the work is kept", agent.name), t.error())
    } else {
        let pause = if agent.paused { "go on" } else { "pause" };
        keys(
            model,
            &[("s", pause), ("x", "stop"), ("b", "bring in"), ("m", "message"), ("d", "diff"), ("Enter", "task")],
        )
    };
    put(buf, foot, &words, model.glyphs.ellipsis);
    None
}

pub(super) fn agent_limit(model: &Model, card: &AgentCard, body: Rect) -> usize {
    let area = agent_area(model, card, body);
    let rows = usize::from(area.height.saturating_sub(4));
    model
        .agent(&card.agent)
        .map_or(0, |agent| agent_lines(model, agent, usize::from(area.width.saturating_sub(4))).len())
        .saturating_sub(rows)
}

fn agent_lines(model: &Model, agent: &Agent, width: usize) -> Vec<Line<'static>> {
    let t = &model.theme;
    let role = match agent.role {
        AgentRole::Lead => "lead",
        AgentRole::Worker => "worker",
    };
    let state = if !agent.active {
        "off shift".to_owned()
    } else if agent.paused {
        "paused".to_owned()
    } else {
        agent.state.as_str().replace('_', " ")
    };
    let mut lines = vec![
        fact(model, "role", &agent.title.as_ref().map_or_else(|| role.to_owned(), |title| format!("{role}, {title}"))),
        Line::from(vec![
            span(&format!("{:<12}", "state"), t.muted()),
            span(&format!("{} {state}", monitors::state_sign(model, agent)), monitors::state_style(model, agent)),
            span(&format!("  at the {}", station(agent)), t.muted()),
        ]),
        fact(model, "does", &monitors::doing(agent)),
    ];
    if let Some(task) = agent.task_id.as_ref().and_then(|id| model.task(id)) {
        lines.push(fact(model, "task", &format!("{}  {}", task.id, task.title)));
    }
    if let Some((repo, worktree)) = agent.worktree.as_ref().and_then(|id| model.worktree(id)) {
        lines.push(fact(model, "worktree", &format!("{} in {}", worktree.id, repo.name)));
        lines.push(fact(model, "path", &worktree.path));
    }
    let waiting: Vec<_> = model.open_decisions().into_iter().filter(|d| d.agent_id == agent.id).collect();
    for decision in waiting {
        lines.push(Line::from(vec![
            span(&format!("{:<12}", "needs you"), t.muted()),
            span(&format!("{}  {}", decision.id, decision.question), t.needs()),
        ]));
    }
    let notes: Vec<_> = model.notes().into_iter().filter(|n| n.scope == agent.id.as_str()).collect();
    for note in notes {
        lines.push(fact(model, "note", &note.title));
    }
    let recent: Vec<_> = model
        .feed_items()
        .rev()
        .filter(|i| i.agent_id.as_ref() == Some(&agent.id) || i.to.as_deref() == Some(agent.id.as_str()))
        .take(RECENT)
        .collect();
    if !recent.is_empty() {
        lines.push(Line::default());
        lines.push(line("Lately", t.muted()));
        for item in recent {
            lines.extend(feed::item_rows(model, item, width, 2));
        }
    }
    lines
}

fn station(agent: &Agent) -> &'static str {
    use crate::protocol::Station;
    match agent.station {
        Station::Desk => "desk",
        Station::Library => "library",
        Station::Terminal => "terminal",
        Station::Testbench => "test bench",
        Station::MergeStation => "merge station",
        Station::Meeting => "meeting table",
        Station::Lounge => "lounge",
        Station::User => "your door",
    }
}
