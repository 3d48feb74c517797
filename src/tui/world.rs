//! What the screen asks the mirror: one place for every query, in the order in which things are shown.

use std::cmp::Reverse;

use super::model::Model;
use crate::client::Mirror;
use crate::protocol::{
    Agent, AgentId, AgentState, Decision, DecisionId, DecisionKind, DecisionStatus, FeedItem, Goal, GoalStatus,
    LogEntry, MemoryEntry, Repo, RepoId, Task, TaskId, TaskStatus, Worktree, WorktreeId,
};

/// The wall's columns in their order.
pub(crate) const COLUMNS: [TaskStatus; 5] =
    [TaskStatus::Todo, TaskStatus::Doing, TaskStatus::Review, TaskStatus::Done, TaskStatus::Blocked];

impl Model {
    /// The mirror, once a snapshot has come.
    pub fn mirror(&self) -> Option<&Mirror> {
        self.mirror.as_ref()
    }

    /// Every agent in the order of the roster.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.mirror.iter().flat_map(|m| m.agents.iter())
    }

    /// The agent with this id.
    pub fn agent(&self, id: &AgentId) -> Option<&Agent> {
        self.agents().find(|a| a.id == *id)
    }

    /// The display name of an agent, `you` for the person, else the id itself.
    pub fn name_of(&self, id: &str) -> String {
        match id {
            "user" => "you".to_owned(),
            "all" => "all".to_owned(),
            _ => self.agents().find(|a| a.id.as_str() == id).map_or_else(|| id.to_owned(), |a| a.name.clone()),
        }
    }

    /// The task with this id.
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.mirror.as_ref().and_then(|m| m.tasks.get(id))
    }

    /// Every task by id.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.mirror.iter().flat_map(|m| m.tasks.values())
    }

    /// The tasks of a column: finished ones by what was finished last, others by priority, then age.
    pub fn column(&self, status: TaskStatus) -> Vec<&Task> {
        let mut tasks: Vec<&Task> = self.tasks().filter(|t| t.status == status).collect();
        match status {
            TaskStatus::Done | TaskStatus::Cancelled => tasks.sort_by_key(|t| (Reverse(t.updated_at), &t.id)),
            TaskStatus::Todo | TaskStatus::Doing | TaskStatus::Review | TaskStatus::Blocked => {
                tasks.sort_by_key(|t| (Reverse(t.priority), t.created_at, &t.id));
            }
        }
        tasks
    }

    /// How many tasks a column has.
    pub fn count(&self, status: TaskStatus) -> usize {
        self.tasks().filter(|t| t.status == status).count()
    }

    /// The dependencies of a task that are not done yet.
    pub fn waits_for<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a TaskId> {
        task.deps.iter().filter(|id| self.task(id).is_none_or(|dep| dep.status != TaskStatus::Done))
    }

    /// The tasks that wait for this one.
    pub fn holds_up(&self, id: &TaskId) -> Vec<&TaskId> {
        self.tasks()
            .filter(|t| t.deps.contains(id) && !matches!(t.status, TaskStatus::Done | TaskStatus::Cancelled))
            .map(|t| &t.id)
            .collect()
    }

    /// The decision with this id.
    pub fn decision(&self, id: &DecisionId) -> Option<&Decision> {
        self.mirror.as_ref().and_then(|m| m.decisions.get(id))
    }

    /// Open decisions: permissions first, then questions, then merges, each oldest first.
    pub fn open_decisions(&self) -> Vec<&Decision> {
        let mut open: Vec<&Decision> = self
            .mirror
            .iter()
            .flat_map(|m| m.decisions.values())
            .filter(|d| d.status == DecisionStatus::Open)
            .collect();
        open.sort_by_key(|d| {
            let rank = match d.kind {
                DecisionKind::Permission => 0,
                DecisionKind::Question => 1,
                DecisionKind::Merge => 2,
            };
            (rank, d.created_at, &d.id)
        });
        open
    }

    /// How many decisions wait for the person and are not being answered right now.
    pub fn needs_you(&self) -> usize {
        self.open_decisions().iter().filter(|d| !self.podium.answering.contains_key(&d.id)).count()
    }

    /// The goal that the bar shows: the newest that is not over, else the newest.
    pub fn goal(&self) -> Option<&Goal> {
        let mirror = self.mirror.as_ref()?;
        let live = |g: &&Goal| matches!(g.status, GoalStatus::Planning | GoalStatus::Active);
        mirror.goals.values().rev().find(live).or_else(|| mirror.goals.values().next_back())
    }

    /// The log of an agent, oldest first.
    pub fn log(&self, id: &AgentId) -> impl DoubleEndedIterator<Item = &LogEntry> {
        self.mirror.iter().flat_map(|m| m.logs.get(id)).flatten()
    }

    /// The feed, oldest first.
    pub fn feed_items(&self) -> impl DoubleEndedIterator<Item = &FeedItem> {
        self.mirror.iter().flat_map(|m| m.feed.iter())
    }

    /// Every note, shared ones first.
    pub fn notes(&self) -> Vec<&MemoryEntry> {
        let mut notes: Vec<&MemoryEntry> = self.mirror.iter().flat_map(|m| m.memory.values()).collect();
        notes.sort_by_key(|n| (n.scope != "shared", &n.id));
        notes
    }

    /// Every repository.
    pub fn repos(&self) -> impl Iterator<Item = &Repo> {
        self.mirror.iter().flat_map(|m| m.repos.values())
    }

    /// A worktree and its repository.
    pub fn worktree(&self, id: &WorktreeId) -> Option<(&Repo, &Worktree)> {
        self.repos().find_map(|r| r.worktrees.iter().find(|w| w.id == *id).map(|w| (r, w)))
    }

    /// What to ask a diff for: of a task.
    pub fn diff_of_task(&self, id: &TaskId) -> Option<(RepoId, WorktreeId)> {
        let task = self.task(id)?;
        let worktree = task.worktree.clone()?;
        let repo = task.repo_id.clone().or_else(|| self.worktree(&worktree).map(|(r, _)| r.id.clone()))?;
        Some((repo, worktree))
    }

    /// What to ask a diff for: of an agent.
    pub fn diff_of_agent(&self, id: &AgentId) -> Option<(RepoId, WorktreeId)> {
        let agent = self.agent(id)?;
        let worktree = agent.worktree.clone()?;
        let repo = agent.repo_id.clone().or_else(|| self.worktree(&worktree).map(|(r, _)| r.id.clone()))?;
        Some((repo, worktree))
    }

    /// Agents in the middle of a turn.
    pub fn working(&self) -> usize {
        self.agents().filter(|a| is_working(a)).count()
    }
}

/// Whether an agent looks as if a turn of it runs.
pub(crate) fn is_working(agent: &Agent) -> bool {
    agent.active
        && match agent.state {
            AgentState::Thinking
            | AgentState::Reading
            | AgentState::Editing
            | AgentState::Running
            | AgentState::Testing
            | AgentState::WaitingUser => true,
            AgentState::Idle | AgentState::Blocked | AgentState::Done | AgentState::Error => false,
        }
}
