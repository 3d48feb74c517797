//! What the Foreman's state looks like as plain lines, for verbs and scripts.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::session::result;
use crate::client::Mirror;
use crate::client::console::{COMMANDS, LocalCommand};
use crate::protocol::{
    Ack, ClientMessage, Decision, DecisionStatus, Diff, DiffFileStatus, DiffLineKind, EpochMs, FeedItem, MemoryId,
    TaskStatus,
};

/// Feed lines shown.
const FEED_LINES: usize = 30;

/// What a local command shows.
pub(super) fn local(command: &LocalCommand, mirror: &Mirror) -> String {
    match command {
        LocalCommand::Status => status(mirror),
        LocalCommand::Agents => agents(mirror),
        LocalCommand::Tasks => tasks(mirror),
        LocalCommand::Decisions => decisions(mirror),
        LocalCommand::Memory(id) => memory(mirror, id.as_ref()),
        LocalCommand::Feed => {
            let skip = mirror.feed.len().saturating_sub(FEED_LINES);
            lines(mirror.feed.iter().skip(skip).map(|item| feed_line(item, mirror)))
        }
        LocalCommand::Counts => counts(mirror),
        LocalCommand::Help => lines(COMMANDS.iter().map(|command| format!("{:58} {}", command.usage, command.what))),
        LocalCommand::Diff { .. } | LocalCommand::Quit | LocalCommand::Wait(_) => String::new(),
    }
}

fn lines(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<String>>().join("\n")
}

/// The banner, the goal, how many tasks stand where, and what waits for the person.
pub(super) fn status(mirror: &Mirror) -> String {
    let foreman = &mirror.foreman;
    let mut text = format!("Foreman {}, {}, login {}", foreman.version, foreman.backend, foreman.auth);
    if let Some(message) = &foreman.message {
        let _ = write!(text, ": {message}");
    }
    if let Some(cost) = foreman.cost_usd {
        let _ = write!(text, "\nspent ${cost:.2}");
    }
    match mirror.goal() {
        Some(goal) => {
            let _ = write!(
                text,
                "\n{} ({}, {:.0}%): {}",
                goal.id,
                goal.status,
                goal.progress * 100.0,
                first_line(&goal.text)
            );
        }
        None => text.push_str("\nno goal yet"),
    }
    for repo in mirror.repos_by_age() {
        let dirty = if repo.dirty { ", uncommitted changes" } else { "" };
        let _ = write!(text, "\nrepository {} ({}{dirty}): {}", repo.id, repo.branch, repo.path);
    }
    let _ = write!(text, "\n{}", counts(mirror));
    let open = mirror.open_decisions();
    if open.is_empty() {
        text.push_str("\nnothing waits for you");
    }
    for decision in open {
        let _ = write!(text, "\n{}", decision_line(decision, mirror));
    }
    text
}

fn agents(mirror: &Mirror) -> String {
    lines(mirror.agents.iter().map(|agent| {
        let shift = match (agent.active, agent.paused) {
            (false, _) => " (off shift)",
            (true, true) => " (paused)",
            (true, false) => "",
        };
        let task = agent.task_id.as_ref().map(|task| format!(" on {task}")).unwrap_or_default();
        format!("@{:8} {:12} {}{task}{shift}", agent.id, agent.state, agent.activity)
    }))
}

fn tasks(mirror: &Mirror) -> String {
    if mirror.tasks.is_empty() {
        return "no tasks yet".to_owned();
    }
    lines(mirror.tasks.values().map(|task| {
        let who = task.assignee.as_ref().map(|agent| format!(" @{agent}")).unwrap_or_default();
        let why = task.blocked_reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("{:4} {:9} {}{who}{why}", task.id, task.status, task.title)
    }))
}

fn decisions(mirror: &Mirror) -> String {
    if mirror.decisions.is_empty() {
        return "no decisions yet".to_owned();
    }
    lines(mirror.decisions.values().map(|decision| decision_line(decision, mirror)))
}

/// One decision with its options as they are counted, or what it was answered.
pub(super) fn decision_line(decision: &Decision, mirror: &Mirror) -> String {
    let who = mirror.display_name(decision.agent_id.as_str());
    let mut line = format!("{} {} from {who}: {}", decision.id, decision.kind, decision.question);
    match decision.status {
        DecisionStatus::Open => {
            for (at, option) in decision.options.iter().enumerate() {
                let _ = write!(line, " | {} {option}", at + 1);
            }
        }
        DecisionStatus::Answered => {
            let answer = decision.answer.as_ref();
            let words = [answer.and_then(|a| a.option.as_deref()), answer.and_then(|a| a.text.as_deref())];
            let words: Vec<&str> = words.into_iter().flatten().collect();
            let _ = write!(line, " -> {}", words.join(": "));
        }
        DecisionStatus::Cancelled => line.push_str(" (withdrawn)"),
    }
    line
}

fn memory(mirror: &Mirror, id: Option<&MemoryId>) -> String {
    match id.and_then(|id| mirror.memory.get(id)) {
        Some(note) => format!("{} ({})\n\n{}", note.title, note.id, note.body.trim_end()),
        None if mirror.memory.is_empty() => "no notes yet".to_owned(),
        None => lines(mirror.memory.values().map(|note| format!("{:28} {}", note.id, note.title))),
    }
}

/// How many of what there is.
fn counts(mirror: &Mirror) -> String {
    let mut by_status: BTreeMap<TaskStatus, usize> = BTreeMap::new();
    for task in mirror.tasks.values() {
        *by_status.entry(task.status).or_default() += 1;
    }
    let wall: Vec<String> = by_status.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let wall = if wall.is_empty() { "none".to_owned() } else { wall.join(", ") };
    format!(
        "tasks: {wall}; open decisions: {}; goals: {}; repositories: {}; notes: {}",
        mirror.open_decisions().len(),
        mirror.goals.len(),
        mirror.repos.len(),
        mirror.memory.len()
    )
}

/// One line of the feed with its local time.
pub(super) fn feed_line(item: &FeedItem, mirror: &Mirror) -> String {
    let who = item.agent_id.as_ref().map(|id| format!("{}: ", mirror.display_name(id.as_str()))).unwrap_or_default();
    format!("{} {:8} {who}{}", clock(item.ts), item.kind, item.text)
}

/// The local time of day.
pub(super) fn clock(ts: EpochMs) -> String {
    i64::try_from(ts)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map(|time| jiff::tz::TimeZone::system().to_datetime(time).strftime("%H:%M:%S").to_string())
        .unwrap_or_else(|| "--:--:--".to_owned())
}

/// What the Foreman took, in words.
pub(super) fn accepted(message: &ClientMessage, ack: &Ack, mirror: &Mirror) -> String {
    match message {
        ClientMessage::GoalSubmit(_) => format!("{} given to the team", result(ack, "goalId").unwrap_or("the goal")),
        ClientMessage::UserMessage(_) => match result(ack, "to") {
            Some("all") | None => "told everyone".to_owned(),
            Some(agent) => format!("told {}", mirror.display_name(agent)),
        },
        ClientMessage::DecisionAnswer(answer) => {
            let decision = mirror.decisions.get(&answer.decision_id);
            let chosen = decision.and_then(|decision| decision.answer.as_ref()?.option.clone());
            match chosen {
                Some(option) => format!("{} answered: {option}", answer.decision_id),
                None => format!("{} answered", answer.decision_id),
            }
        }
        ClientMessage::TaskAction(action) => format!("{}: {}", action.task_id, action.action),
        ClientMessage::AgentAction(action) => {
            format!("{}: {}", mirror.display_name(action.agent_id.as_str()), action.action)
        }
        ClientMessage::RepoAdd(_) => format!("repository {} connected", result(ack, "repoId").unwrap_or_default()),
        ClientMessage::Hello(_) | ClientMessage::DiffRequest(_) => "done".to_owned(),
    }
}

/// A diff as unified text.
pub(super) fn diff(diff: &Diff) -> String {
    let stats = diff.stats;
    let base = diff.base.as_deref().unwrap_or("its base");
    let mut text =
        format!("{} against {base}: {} files, +{} -{}", diff.worktree, stats.files, stats.additions, stats.deletions);
    for file in &diff.files {
        let old = file.old_path.as_deref().unwrap_or(&file.path);
        let (from, to) = match file.status {
            DiffFileStatus::Added => ("/dev/null".to_owned(), format!("b/{}", file.path)),
            DiffFileStatus::Deleted => (format!("a/{old}"), "/dev/null".to_owned()),
            DiffFileStatus::Modified | DiffFileStatus::Renamed => (format!("a/{old}"), format!("b/{}", file.path)),
        };
        let _ = write!(text, "\n--- {from}\n+++ {to}");
        if file.binary {
            text.push_str("\n(binary)");
        }
        for hunk in &file.hunks {
            let _ = write!(text, "\n{}", hunk.header);
            for line in &hunk.lines {
                let sign = match line.kind {
                    DiffLineKind::Add => '+',
                    DiffLineKind::Del => '-',
                    DiffLineKind::Ctx => ' ',
                };
                let _ = write!(text, "\n{sign}{}", line.text);
            }
        }
    }
    if diff.truncated {
        text.push_str("\n(cut: the whole is in the worktree)");
    }
    text
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
