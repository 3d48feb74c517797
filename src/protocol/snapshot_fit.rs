//! Keeping a snapshot below the frame limit: what is left out, in which order, and how it is said. Pure.

use serde::Serialize;

use super::decode::json_bytes;
use super::limits::{FEED_ITEMS, SNAPSHOT_BYTES};
use super::{DecisionStatus, EpochMs, FeedItem, FeedKind, Goal, GoalStatus, LogEntry, Snapshot, WorktreeStatus};

/// The snapshot, and, if it was too large for a frame, what was left out of it, in words; its feed ends with a line
/// that says so.
///
/// Left out, oldest first and only as far as needed: log entries, feed lines, closed decisions, tasks of finished
/// goals; then, so that a client can connect at all, worktrees that are merged or abandoned, finished goals and memory
/// notes. What is open or in progress is never left out.
pub fn fit(snapshot: Snapshot) -> (Snapshot, Option<String>) {
    fit_within(snapshot, SNAPSHOT_BYTES)
}

fn fit_within(mut snapshot: Snapshot, bytes: usize) -> (Snapshot, Option<String>) {
    let mut excess = Excess(json_bytes(&snapshot).saturating_sub(bytes));
    if excess.0 == 0 {
        return (snapshot, None);
    }
    let now = latest(&snapshot);
    let finished: Vec<_> = snapshot.goals.iter().filter(|goal| is_finished(goal)).map(|goal| goal.id.clone()).collect();
    let current = snapshot.goal.as_ref().map(|goal| goal.id.clone());
    let mut left_out = Vec::new();
    let mut note = |count: usize, one: &str, many: &str| match count {
        0 => {}
        1 => left_out.push(format!("1 {one}")),
        _ => left_out.push(format!("{count} {many}")),
    };

    note(cut_logs(&mut snapshot, &mut excess), "log line", "log lines");
    note(excess.cut(&mut snapshot.feed, |_| true), "feed line", "feed lines");
    note(
        excess.cut(&mut snapshot.decisions, |decision| match decision.status {
            DecisionStatus::Open => false,
            DecisionStatus::Answered | DecisionStatus::Cancelled => true,
        }),
        "closed decision",
        "closed decisions",
    );
    note(
        excess.cut(&mut snapshot.tasks, |task| task.goal_id.as_ref().is_some_and(|goal| finished.contains(goal))),
        "task of finished goals",
        "tasks of finished goals",
    );
    let mut worktrees = 0;
    for repo in &mut snapshot.repos {
        worktrees += excess.cut(&mut repo.worktrees, |worktree| match worktree.status {
            WorktreeStatus::Active => false,
            WorktreeStatus::Merged | WorktreeStatus::Abandoned => true,
        });
    }
    note(worktrees, "former worktree", "former worktrees");
    note(
        excess.cut(&mut snapshot.goals, |goal| is_finished(goal) && Some(&goal.id) != current.as_ref()),
        "finished goal",
        "finished goals",
    );
    note(excess.cut(&mut snapshot.memory, |_| true), "memory note", "memory notes");

    let mut words = format!("The snapshot was too large to send whole; left out: {}", left_out.join(", "));
    if excess.0 > 0 {
        words.push_str(&format!(". It is still {} bytes too large", excess.0));
    }
    while snapshot.feed.len() >= FEED_ITEMS {
        snapshot.feed.remove(0);
    }
    snapshot.feed.push(FeedItem { ts: now, kind: FeedKind::System, text: words.clone(), agent_id: None, to: None });
    (snapshot, Some(words))
}

fn is_finished(goal: &Goal) -> bool {
    match goal.status {
        GoalStatus::Planning | GoalStatus::Active => false,
        GoalStatus::Done | GoalStatus::Failed | GoalStatus::Cancelled => true,
    }
}

/// The latest time that the snapshot speaks of, since this function has no clock.
fn latest(snapshot: &Snapshot) -> EpochMs {
    let feed = snapshot.feed.iter().map(|item| item.ts);
    let logs = snapshot.logs.iter().flat_map(|log| &log.entries).map(|entry| entry.ts);
    let tasks = snapshot.tasks.iter().map(|task| task.updated_at);
    let goals = snapshot.goals.iter().map(|goal| goal.updated_at);
    feed.chain(logs).chain(tasks).chain(goals).max().unwrap_or(0)
}

/// Log entries of all agents, the oldest of them all first. Every agent keeps its (perhaps empty) log.
fn cut_logs(snapshot: &mut Snapshot, excess: &mut Excess) -> usize {
    let take = |(agent, entries): (usize, &mut Vec<LogEntry>)| {
        std::mem::take(entries).into_iter().map(move |entry| Line { agent, entry })
    };
    let mut lines: Vec<Line> =
        snapshot.logs.iter_mut().map(|log| &mut log.entries).enumerate().flat_map(take).collect();
    lines.sort_by_key(|line| line.entry.ts);
    let count = excess.cut(&mut lines, |_| true);
    for Line { agent, entry } in lines {
        if let Some(log) = snapshot.logs.get_mut(agent) {
            log.entries.push(entry);
        }
    }
    count
}

/// A log entry with the place of its agent.
#[derive(Serialize)]
#[serde(transparent)]
struct Line {
    #[serde(skip)]
    agent: usize,
    entry: LogEntry,
}

/// Bytes that are still too many.
struct Excess(usize);

impl Excess {
    /// Leaves out items that may go, from the front, until enough is gone; each is measured once. Returns how many.
    fn cut<T: Serialize>(&mut self, list: &mut Vec<T>, may_go: impl Fn(&T) -> bool) -> usize {
        if self.0 == 0 {
            return 0;
        }
        let before = list.len();
        list.retain(|item| {
            if self.0 == 0 || !may_go(item) {
                return true;
            }
            // With the comma that separates it.
            self.0 = self.0.saturating_sub(json_bytes(item) + 1);
            false
        });
        before - list.len()
    }
}

#[cfg(test)]
mod tests;
