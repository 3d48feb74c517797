//! The Foreman's state as a client sees it: a snapshot, then every message folded in. Pure.
//!
//! Knows only the wire. It keeps what a snapshot keeps, so a mirror that heard every broadcast shows what a fresh
//! snapshot would (see [`Mirror::snapshot`]); only the live log tail is longer. Entry points:
//! [`Mirror::from_snapshot`], [`Mirror::apply`].

use std::collections::{BTreeMap, VecDeque};

use crate::protocol::{
    Agent, AgentId, AgentLogs, AgentRole, Decision, DecisionId, DecisionKind, DecisionStatus, FeedItem, ForemanStatus,
    Goal, GoalId, LogEntry, MemoryEntry, MemoryId, Repo, RepoId, ServerMessage, Snapshot, Task, TaskId, Worktree,
};

/// Feed items kept, as in a snapshot.
pub const FEED_KEPT: usize = 200;
/// Log entries per agent in a snapshot.
pub const LOG_IN_SNAPSHOT: usize = 60;
/// Log entries per agent kept while connected: more than a snapshot brings, so that a person can scroll back through
/// some minutes of work.
pub const LOG_KEPT: usize = 500;
/// Closed decisions kept, as in a snapshot; open ones are all kept.
pub const CLOSED_DECISIONS_KEPT: usize = 20;

/// What a client knows of a Foreman.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    pub foreman: ForemanStatus,
    /// In the Foreman's order.
    pub agents: Vec<Agent>,
    pub tasks: BTreeMap<TaskId, Task>,
    /// Every open decision and the last closed ones.
    pub decisions: BTreeMap<DecisionId, Decision>,
    pub repos: BTreeMap<RepoId, Repo>,
    pub memory: BTreeMap<MemoryId, MemoryEntry>,
    pub goals: BTreeMap<GoalId, Goal>,
    /// Oldest first.
    pub feed: VecDeque<FeedItem>,
    /// Oldest first.
    pub logs: BTreeMap<AgentId, VecDeque<LogEntry>>,
    /// Repositories as they were connected; the last one is the default of a new goal.
    repo_order: Vec<RepoId>,
}

impl Mirror {
    /// The view that a snapshot describes; nothing of an earlier view survives.
    pub fn from_snapshot(snapshot: Snapshot) -> Self {
        let repo_order = snapshot.repos.iter().map(|repo| repo.id.clone()).collect();
        let mut mirror = Self {
            foreman: snapshot.foreman,
            agents: snapshot.agents,
            tasks: snapshot.tasks.into_iter().map(|task| (task.id.clone(), task)).collect(),
            decisions: snapshot.decisions.into_iter().map(|decision| (decision.id.clone(), decision)).collect(),
            repos: snapshot.repos.into_iter().map(|repo| (repo.id.clone(), repo)).collect(),
            memory: snapshot.memory.into_iter().map(|entry| (entry.id.clone(), entry)).collect(),
            goals: snapshot.goals.into_iter().map(|goal| (goal.id.clone(), goal)).collect(),
            feed: snapshot.feed.into(),
            logs: snapshot.logs.into_iter().map(|logs| (logs.agent_id, logs.entries.into())).collect(),
            repo_order,
        };
        mirror.forget_old();
        mirror
    }

    /// Folds one message in. Messages that carry no state (acks, diffs, errors, notices) change nothing.
    pub fn apply(&mut self, message: &ServerMessage) {
        match message {
            ServerMessage::Snapshot(snapshot) => *self = Self::from_snapshot((**snapshot).clone()),
            ServerMessage::AgentUpsert { agent } => match self.agents.iter_mut().find(|known| known.id == agent.id) {
                Some(known) => *known = agent.clone(),
                None => self.agents.push(agent.clone()),
            },
            ServerMessage::AgentLog { agent_id, entries } => {
                let log = self.logs.entry(agent_id.clone()).or_default();
                log.extend(entries.iter().cloned());
                keep_last(log, LOG_KEPT);
            }
            ServerMessage::TaskUpsert { task } => {
                self.tasks.insert(task.id.clone(), task.clone());
            }
            ServerMessage::DecisionUpsert { decision } => {
                self.decisions.insert(decision.id.clone(), decision.clone());
                self.forget_old();
            }
            ServerMessage::RepoUpsert { repo } => {
                if self.repos.insert(repo.id.clone(), repo.clone()).is_none() {
                    self.repo_order.push(repo.id.clone());
                }
            }
            ServerMessage::MemoryUpsert { entry } => {
                self.memory.insert(entry.id.clone(), entry.clone());
            }
            ServerMessage::GoalUpsert { goal } => {
                self.goals.insert(goal.id.clone(), goal.clone());
            }
            ServerMessage::FeedAdd { item } => {
                self.feed.push_back(item.clone());
                keep_last(&mut self.feed, FEED_KEPT);
            }
            ServerMessage::ForemanStatus { status } => self.foreman = status.clone(),
            ServerMessage::AgentSay(_)
            | ServerMessage::Diff(_)
            | ServerMessage::Notify(_)
            | ServerMessage::Ack(_)
            | ServerMessage::Error(_) => {}
        }
    }

    fn forget_old(&mut self) {
        let closed: Vec<DecisionId> = self
            .decisions
            .values()
            .filter(|decision| decision.status != DecisionStatus::Open)
            .map(|decision| decision.id.clone())
            .collect();
        let over = closed.len().saturating_sub(CLOSED_DECISIONS_KEPT);
        for id in closed.iter().take(over) {
            self.decisions.remove(id);
        }
    }

    /// The same view as a snapshot of the protocol.
    pub fn snapshot(&self) -> Snapshot {
        let mut decisions: Vec<Decision> = self.decisions.values().cloned().collect();
        decisions.sort_by(|a, b| a.created_at.cmp(&b.created_at).then_with(|| a.id.cmp(&b.id)));
        let mut memory: Vec<MemoryEntry> = self.memory.values().cloned().collect();
        memory.sort_by(|a, b| a.updated.cmp(&b.updated).then_with(|| a.id.cmp(&b.id)));
        let logs = self.agents.iter().map(|agent| {
            let entries = self.logs.get(&agent.id).map(|log| {
                let skip = log.len().saturating_sub(LOG_IN_SNAPSHOT);
                log.iter().skip(skip).cloned().collect()
            });
            AgentLogs { agent_id: agent.id.clone(), entries: entries.unwrap_or_default() }
        });
        Snapshot {
            foreman: self.foreman.clone(),
            agents: self.agents.clone(),
            tasks: self.tasks.values().cloned().collect(),
            decisions,
            repos: self.repos_by_age().cloned().collect(),
            memory,
            goal: self.goal().cloned(),
            goals: self.goals.values().cloned().collect(),
            feed: self.feed.iter().cloned().collect(),
            logs: logs.collect(),
        }
    }

    /// The latest goal, whatever its status.
    pub fn goal(&self) -> Option<&Goal> {
        self.goals.values().next_back()
    }

    /// Repositories, first connected first.
    pub fn repos_by_age(&self) -> impl Iterator<Item = &Repo> {
        self.repo_order.iter().filter_map(|id| self.repos.get(id))
    }

    /// The repository a goal goes to when none is named: the last connected.
    pub fn default_repo(&self) -> Option<&Repo> {
        self.repo_order.last().and_then(|id| self.repos.get(id))
    }

    /// The agent of this id or display name, whatever the case, with or without `@`.
    pub fn agent_named(&self, name: &str) -> Option<&Agent> {
        let name = name.trim();
        let wanted = name.strip_prefix('@').unwrap_or(name).to_lowercase();
        self.agents.iter().find(|agent| agent.id.as_str() == wanted || agent.name.to_lowercase() == wanted)
    }

    /// How an agent, `user` or `all` is called on screen.
    pub fn display_name<'a>(&'a self, id: &'a str) -> &'a str {
        if id == "user" {
            return self.foreman.user_name.as_deref().unwrap_or("you");
        }
        self.agents.iter().find(|agent| agent.id.as_str() == id).map_or(id, |agent| agent.name.as_str())
    }

    /// The one who plans and reviews.
    pub fn lead(&self) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.role == AgentRole::Lead)
    }

    /// Open decisions as they should be answered: permissions first, then questions, then merges; oldest first.
    pub fn open_decisions(&self) -> Vec<&Decision> {
        let rank = |kind: DecisionKind| match kind {
            DecisionKind::Permission => 0,
            DecisionKind::Question => 1,
            DecisionKind::Merge => 2,
        };
        let mut open: Vec<&Decision> =
            self.decisions.values().filter(|decision| decision.status == DecisionStatus::Open).collect();
        open.sort_by(|a, b| {
            (rank(a.kind), a.created_at).cmp(&(rank(b.kind), b.created_at)).then_with(|| a.id.cmp(&b.id))
        });
        open
    }

    /// Every worktree with its repository, oldest repository first.
    pub fn worktrees(&self) -> impl Iterator<Item = (&Repo, &Worktree)> {
        self.repos_by_age().flat_map(|repo| repo.worktrees.iter().map(move |worktree| (repo, worktree)))
    }
}

fn keep_last<T>(items: &mut VecDeque<T>, keep: usize) {
    let over = items.len().saturating_sub(keep);
    items.drain(..over);
}

#[cfg(test)]
mod tests;
