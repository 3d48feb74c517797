//! The whole view for one client.

use super::roster::roster;
use super::state::State;
use crate::protocol::{AgentLogs, Decision, DecisionStatus, LogEntry, MemoryEntry, Snapshot};

/// Closed decisions in a snapshot, newest.
pub(crate) const SNAPSHOT_CLOSED: usize = 20;
/// Feed items in a snapshot, newest.
pub(crate) const SNAPSHOT_FEED: usize = 200;
/// Log entries per agent in a snapshot, newest.
pub(crate) const SNAPSHOT_LOG: usize = 60;

fn tail<T: Clone>(items: impl ExactSizeIterator<Item = T>, keep: usize) -> Vec<T> {
    let skip = items.len().saturating_sub(keep);
    items.skip(skip).collect()
}

pub(crate) fn snapshot(state: &State) -> Snapshot {
    let agents: Vec<_> = roster().filter_map(|id| state.agents.get(&id).cloned()).collect();
    let (open, closed): (Vec<&Decision>, Vec<&Decision>) =
        state.decisions.values().partition(|decision| decision.status == DecisionStatus::Open);
    let mut decisions: Vec<Decision> = tail(closed.into_iter(), SNAPSHOT_CLOSED).into_iter().cloned().collect();
    decisions.extend(open.into_iter().cloned());
    decisions.sort_by(|a, b| a.created_at.cmp(&b.created_at).then_with(|| a.id.cmp(&b.id)));
    let mut memory: Vec<MemoryEntry> = state.memory.values().cloned().collect();
    memory.sort_by(|a, b| a.updated.cmp(&b.updated).then_with(|| a.id.cmp(&b.id)));
    let mut repos: Vec<_> = state.repos.values().cloned().collect();
    repos.sort_by_key(|repo| state.repo_work.get(&repo.id).map_or(0, |work| work.added));
    let logs = agents
        .iter()
        .map(|agent| AgentLogs {
            agent_id: agent.id.clone(),
            entries: state
                .logs
                .get(&agent.id)
                .map(|log| tail(log.iter(), SNAPSHOT_LOG).into_iter().cloned().collect::<Vec<LogEntry>>())
                .unwrap_or_default(),
        })
        .collect();
    let whole = Snapshot {
        foreman: state.status.clone(),
        agents,
        tasks: state.tasks.values().cloned().collect(),
        decisions,
        repos,
        memory,
        goal: state.goals.values().next_back().cloned(),
        goals: state.goals.values().cloned().collect(),
        feed: tail(state.feed.iter(), SNAPSHOT_FEED).into_iter().cloned().collect(),
        logs,
    };
    crate::protocol::snapshot_fit::fit(whole).0
}
