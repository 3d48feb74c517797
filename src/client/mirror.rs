//! Snapshot and upserts, folded into what a client knows. The tests' model client is this one.

use std::collections::{BTreeMap, VecDeque};

use crate::protocol::{
    Agent, AgentId, Decision, DecisionId, DecisionStatus, FeedItem, ForemanStatus, Goal, GoalId, LogEntry, MemoryEntry,
    MemoryId, Repo, RepoId, ServerMessage, Snapshot, Task, TaskId,
};

/// Feed items kept, as many as a snapshot carries.
pub(crate) const FEED_KEPT: usize = 200;
/// Log entries kept per agent: more than a snapshot's tail, so that one can scroll back.
pub(crate) const LOG_KEPT: usize = 1_000;
/// Closed decisions kept, as many as a snapshot carries.
pub(crate) const CLOSED_KEPT: usize = 20;

/// The state as a client sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    pub foreman: ForemanStatus,
    /// Roster order.
    pub agents: Vec<Agent>,
    pub tasks: BTreeMap<TaskId, Task>,
    pub decisions: BTreeMap<DecisionId, Decision>,
    pub repos: BTreeMap<RepoId, Repo>,
    pub memory: BTreeMap<MemoryId, MemoryEntry>,
    pub goals: BTreeMap<GoalId, Goal>,
    /// Oldest first.
    pub feed: VecDeque<FeedItem>,
    /// Oldest first.
    pub logs: BTreeMap<AgentId, VecDeque<LogEntry>>,
}

fn keep<T>(items: &mut VecDeque<T>, most: usize) {
    let over = items.len().saturating_sub(most);
    items.drain(..over);
}

impl Mirror {
    /// Everything anew from a snapshot.
    pub fn from_snapshot(snapshot: Snapshot) -> Self {
        Self {
            foreman: snapshot.foreman,
            agents: snapshot.agents,
            tasks: snapshot.tasks.into_iter().map(|task| (task.id.clone(), task)).collect(),
            decisions: snapshot.decisions.into_iter().map(|decision| (decision.id.clone(), decision)).collect(),
            repos: snapshot.repos.into_iter().map(|repo| (repo.id.clone(), repo)).collect(),
            memory: snapshot.memory.into_iter().map(|entry| (entry.id.clone(), entry)).collect(),
            goals: snapshot.goals.into_iter().map(|goal| (goal.id.clone(), goal)).collect(),
            feed: snapshot.feed.into(),
            logs: snapshot.logs.into_iter().map(|log| (log.agent_id, log.entries.into())).collect(),
        }
    }

    /// Folds one broadcast in; replies and speech change nothing here.
    pub fn apply(&mut self, message: &ServerMessage) {
        match message {
            ServerMessage::Snapshot(snapshot) => *self = Self::from_snapshot((**snapshot).clone()),
            ServerMessage::AgentUpsert { agent } => match self.agents.iter_mut().find(|known| known.id == agent.id) {
                Some(known) => known.clone_from(agent),
                None => self.agents.push(agent.clone()),
            },
            ServerMessage::AgentLog { agent_id, entries } => {
                let log = self.logs.entry(agent_id.clone()).or_default();
                log.extend(entries.iter().cloned());
                keep(log, LOG_KEPT);
            }
            ServerMessage::TaskUpsert { task } => {
                self.tasks.insert(task.id.clone(), task.clone());
            }
            ServerMessage::DecisionUpsert { decision } => {
                self.decisions.insert(decision.id.clone(), decision.clone());
                self.forget_old_decisions();
            }
            ServerMessage::RepoUpsert { repo } => {
                self.repos.insert(repo.id.clone(), repo.clone());
            }
            ServerMessage::MemoryUpsert { entry } => {
                self.memory.insert(entry.id.clone(), entry.clone());
            }
            ServerMessage::GoalUpsert { goal } => {
                self.goals.insert(goal.id.clone(), goal.clone());
            }
            ServerMessage::FeedAdd { item } => {
                self.feed.push_back(item.clone());
                keep(&mut self.feed, FEED_KEPT);
            }
            ServerMessage::ForemanStatus { status } => self.foreman.clone_from(status),
            ServerMessage::AgentSay(_)
            | ServerMessage::Diff(_)
            | ServerMessage::Notify(_)
            | ServerMessage::Ack(_)
            | ServerMessage::Error(_) => {}
        }
    }

    fn forget_old_decisions(&mut self) {
        let closed: Vec<DecisionId> = self
            .decisions
            .values()
            .filter(|decision| decision.status != DecisionStatus::Open)
            .map(|decision| decision.id.clone())
            .collect();
        let over = closed.len().saturating_sub(CLOSED_KEPT);
        for id in closed.into_iter().take(over) {
            self.decisions.remove(&id);
        }
    }

    /// Open decisions in the order in which they are shown: permissions, questions, merges; oldest first.
    pub fn open_decisions(&self) -> Vec<&Decision> {
        use crate::protocol::DecisionKind::{Merge, Permission, Question};
        let mut open: Vec<&Decision> =
            self.decisions.values().filter(|decision| decision.status == DecisionStatus::Open).collect();
        open.sort_by_key(|decision| {
            let rank = match decision.kind {
                Permission => 0,
                Question => 1,
                Merge => 2,
            };
            (rank, decision.created_at, decision.id.clone())
        });
        open
    }

    /// The latest goal.
    pub fn goal(&self) -> Option<&Goal> {
        self.goals.values().next_back()
    }

    /// An agent by id or display name, any case, a leading `@` allowed.
    pub fn agent_named(&self, name: &str) -> Option<&Agent> {
        let name = name.trim().trim_start_matches('@').to_lowercase();
        self.agents.iter().find(|agent| agent.id.as_str() == name || agent.name.to_lowercase() == name)
    }
}
