//! The whole state of the team, and the one function that alters it.
//!
//! Wire entities stand beside private records of the same id. Ordered maps only: the same inputs give the same run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::change::Change;
use super::effect::{Effect, EffectId};
use crate::policy::{ScopeKey, ToolCall};
use crate::protocol::{
    Agent, AgentId, AuthStatus, BackendName, Decision, DecisionId, EpochMs, FeedItem, ForemanStatus, Goal, GoalId,
    LogEntry, MemoryEntry, MemoryId, Repo, RepoId, Task, TaskId, WorktreeId,
};
use crate::turn::{Answered, Cause, InboxMessage, Job, RequestId, TurnCommand, TurnId};

/// Feed items kept; a snapshot carries fewer. Items, a day or two of work.
pub const FEED_KEPT: usize = 300;
/// Log entries per agent kept in memory; the database keeps all.
pub const LOG_KEPT: usize = 200;

/// Everything the core knows. `Default` is a new profile.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub agents: BTreeMap<AgentId, Agent>,
    pub agent_work: BTreeMap<AgentId, AgentWork>,
    pub goals: BTreeMap<GoalId, Goal>,
    pub goal_work: BTreeMap<GoalId, GoalWork>,
    pub tasks: BTreeMap<TaskId, Task>,
    pub task_work: BTreeMap<TaskId, TaskWork>,
    pub decisions: BTreeMap<DecisionId, Decision>,
    /// Who waits for a decision; kept until the decision is settled.
    pub waiters: BTreeMap<DecisionId, Waiter>,
    pub repos: BTreeMap<RepoId, Repo>,
    pub repo_work: BTreeMap<RepoId, RepoWork>,
    pub memory: BTreeMap<MemoryId, MemoryEntry>,
    pub feed: VecDeque<FeedItem>,
    pub logs: BTreeMap<AgentId, VecDeque<LogEntry>>,
    pub messages: BTreeMap<u64, Message>,
    pub turns: BTreeMap<TurnId, Turn>,
    pub effects: BTreeMap<EffectId, Effect>,
    pub sessions: BTreeMap<String, Session>,
    pub grants: BTreeSet<Grant>,
    pub counters: BTreeMap<Counter, u64>,
    pub status: ForemanStatus,
}

impl Default for State {
    fn default() -> Self {
        Self {
            agents: BTreeMap::new(),
            agent_work: BTreeMap::new(),
            goals: BTreeMap::new(),
            goal_work: BTreeMap::new(),
            tasks: BTreeMap::new(),
            task_work: BTreeMap::new(),
            decisions: BTreeMap::new(),
            waiters: BTreeMap::new(),
            repos: BTreeMap::new(),
            repo_work: BTreeMap::new(),
            memory: BTreeMap::new(),
            feed: VecDeque::new(),
            logs: BTreeMap::new(),
            messages: BTreeMap::new(),
            turns: BTreeMap::new(),
            effects: BTreeMap::new(),
            sessions: BTreeMap::new(),
            grants: BTreeSet::new(),
            counters: BTreeMap::new(),
            status: ForemanStatus {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                backend: BackendName::Sim,
                auth: AuthStatus::Unknown,
                message: None,
                account: None,
                speed: None,
                showcase: None,
                cost_usd: None,
                user_name: None,
            },
        }
    }
}

impl State {
    /// Folds one change in. Total: any sequence of changes is accepted.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Agent(agent) => {
                self.agents.insert(agent.id.clone(), agent.clone());
            }
            Change::Task(task) => {
                self.tasks.insert(task.id.clone(), task.clone());
            }
            Change::Decision(decision) => {
                self.decisions.insert(decision.id.clone(), decision.clone());
            }
            Change::Repo(repo) => {
                self.repos.insert(repo.id.clone(), repo.clone());
            }
            Change::Goal(goal) => {
                self.goals.insert(goal.id.clone(), goal.clone());
            }
            Change::Status(status) => self.status = status.clone(),
            Change::Memory(entry) => {
                self.memory.insert(entry.id.clone(), entry.clone());
            }
            Change::MemoryGone(id) => {
                self.memory.remove(id);
            }
            Change::Feed(item) => {
                self.feed.push_back(item.clone());
                while self.feed.len() > FEED_KEPT {
                    self.feed.pop_front();
                }
            }
            Change::Log { agent, entries } => {
                let log = self.logs.entry(agent.clone()).or_default();
                log.extend(entries.iter().cloned());
                while log.len() > LOG_KEPT {
                    log.pop_front();
                }
            }
            Change::Say(_) | Change::Notify(_) => {}
            Change::AgentWork(id, work) => {
                self.agent_work.insert(id.clone(), work.clone());
            }
            Change::TaskWork(id, work) => {
                self.task_work.insert(id.clone(), (**work).clone());
            }
            Change::GoalWork(id, work) => {
                self.goal_work.insert(id.clone(), work.clone());
            }
            Change::RepoWork(id, work) => {
                self.repo_work.insert(id.clone(), work.clone());
            }
            Change::Waiter(id, waiter) => {
                self.waiters.insert(id.clone(), (**waiter).clone());
            }
            Change::WaiterGone(id) => {
                self.waiters.remove(id);
            }
            Change::DecisionGone(id) => {
                self.decisions.remove(id);
                self.waiters.remove(id);
            }
            Change::Turn(turn) => {
                self.turns.insert(turn.id, (**turn).clone());
            }
            Change::TurnGone(id) => {
                self.turns.remove(id);
            }
            Change::EffectWanted(id, effect) => {
                self.effects.insert(*id, (**effect).clone());
            }
            Change::EffectGone(id) => {
                self.effects.remove(id);
            }
            Change::Message(message) => {
                self.messages.insert(message.number, message.clone());
            }
            Change::MessageGone(number) => {
                self.messages.remove(number);
            }
            Change::Session(key, session) => {
                self.sessions.insert(key.clone(), session.clone());
            }
            Change::Grant(grant) => {
                self.grants.insert(grant.clone());
            }
            Change::GrantGone(grant) => {
                self.grants.remove(grant);
            }
            Change::Counter(counter, value) => {
                self.counters.insert(*counter, *value);
            }
        }
    }
}

/// What ids are counted by. Stored, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Counter {
    Goal,
    Task,
    Decision,
    Message,
    Turn,
    Effect,
}

/// Private record of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentWork {
    /// The person sent it off shift; it stays off over restarts until resume or spawn.
    pub stopped: bool,
    /// Spawned by the person beyond the configured team.
    pub spawned: bool,
}

/// Private record of a goal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalWork {
    /// The plan note written for this goal.
    pub plan: Option<MemoryId>,
    /// Completion was announced.
    pub announced: bool,
    /// Questions of the lead and their answers, oldest first.
    pub answered: Vec<Answered>,
}

/// Private record of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoWork {
    /// Order of connection, the newest is the default of a new goal.
    pub added: u64,
    /// The Foreman's own demo repository.
    pub demo: bool,
    /// Why it cannot be worked on, in words.
    pub health: Option<String>,
    /// Full hex of the base head as last seen.
    pub head: Option<String>,
    /// Private parts of its worktrees.
    pub worktrees: BTreeMap<WorktreeId, WorktreeWork>,
}

/// Private record of a worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeWork {
    /// Base commit it was made from (full hex).
    pub fork: String,
    /// Head of the branch as last brought over (full hex).
    pub head: String,
    /// The merge commit, once merged.
    pub merged: Option<String>,
    /// Its directory is (supposed to be) there.
    pub live: bool,
}

/// Where a task stands between two statuses of the wall.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// On the board, or in the hands of a work turn (see [`State::turns`]).
    #[default]
    Board,
    /// Its worktree is being made for this worker.
    Preparing { effect: EffectId, worker: AgentId },
    /// Its worktree is to be given up as soon as no turn works in it; held off the board until then.
    Quieting { message: String },
    /// Its worktree is being given up.
    Abandoning { effect: EffectId },
    /// The finished work is being committed and brought over.
    Collecting { effect: EffectId },
    /// The tests run.
    Testing { effect: EffectId },
    /// Waits for, or is in, the lead's review turn.
    Reviewing,
    /// A merge decision is open.
    Deciding { decision: DecisionId },
    /// The answered merge is being done.
    Merging { decision: DecisionId, effect: EffectId },
}

/// Private record of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWork {
    pub stage: Stage,
    /// Times the tests' failure was sent back to the worker.
    pub ci_fixes: u32,
    /// Nudges since the last report of the worker.
    pub nudges: u32,
    /// The commit that CI, review and the merge decision are about (full hex).
    pub head: Option<String>,
    /// Statistics and diff text of that commit, for review and decision.
    pub files: u32,
    pub additions: u32,
    pub deletions: u32,
    pub diff: String,
    pub ci_command: Option<String>,
    pub ci_output: Option<String>,
    /// Those who worked on it before, oldest first.
    pub former: Vec<AgentId>,
    /// Branch of a former worker to continue from.
    pub start: Option<String>,
    /// Questions about this task and their answers, oldest first.
    pub answered: Vec<Answered>,
    /// Why the next work turn runs; [`Cause::Start`] when none.
    pub cause: Option<Cause>,
    /// Failures in a row to start work; sets the pause before the next try.
    pub start_failures: u32,
    /// Not before this time (a failed start, a passing failure).
    pub not_before: Option<EpochMs>,
    /// Passing failures of turns in a row.
    pub retries: u32,
}

/// A turn that is wanted or runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    pub id: TurnId,
    pub agent: AgentId,
    pub job: Job,
    pub task: Option<TaskId>,
    pub goal: Option<GoalId>,
    pub cause: Cause,
    pub phase: TurnPhase,
    pub created_at: EpochMs,
    /// Not before this time (a passing failure).
    pub not_before: Option<EpochMs>,
    /// Messages that the turn was started with; a follow-up that is taken up again is about them still.
    pub inbox: Vec<InboxMessage>,
    /// Messages between agents that led here without anything else happening; bounds conversations.
    pub hops: u8,
}

/// Life of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TurnPhase {
    /// Waits for its agent, a free slot, or the lead's copy.
    Wanted,
    /// The lead's copy is being refreshed for it.
    Preparing {
        effect: EffectId,
    },
    Running(Running),
    /// Told to stop; nothing it says counts. Gone when the engine reports its end. `withdrawn` is a question that the
    /// stop withdrew.
    Stopping {
        why: StopWhy,
        since: EpochMs,
        withdrawn: Option<String>,
    },
}

/// A running turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    pub started_at: EpochMs,
    /// Requests that wait for an answer.
    pub open: BTreeMap<RequestId, Request>,
    /// Answers held back until a slot is free.
    pub held: Vec<TurnCommand>,
    /// Files of its worktree may have changed.
    pub touched: bool,
    /// ms of its time-out used up before the present wait; the clock stands still while it waits for the person.
    pub used_ms: u64,
    /// Since when it works (not waiting for the person).
    pub working_since: Option<EpochMs>,
}

/// A request of a running turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Being judged.
    Judging { effect: EffectId, call: ToolCall, purpose: JudgePurpose },
    /// Waits for the person.
    Decision(DecisionId),
    /// Waits for an effect (a memory note).
    Effect(EffectId),
}

/// Why a call is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum JudgePurpose {
    /// It was just asked.
    First,
    /// The person allowed it; the world may have changed since.
    Confirm { decision: DecisionId },
}

/// Why a turn is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopWhy {
    Pause,
    Stop,
    /// The task was cancelled, reassigned or put back.
    Task,
    Timeout,
    Shutdown,
}

/// Who waits for a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Waiter {
    /// A question of a turn. After a restart the turn is gone and the answer starts a resumed one.
    Question { turn: Option<TurnId>, request: RequestId, job: Job, goal: Option<GoalId> },
    /// A permission prompt. After a restart no turn waits until the resumed one asks for the same call again; an
    /// answer that came first is kept for it.
    Permission {
        turn: Option<TurnId>,
        request: RequestId,
        call: ToolCall,
        keys: BTreeSet<ScopeKey>,
        cwd: PathBuf,
        goal: Option<GoalId>,
    },
    /// A merge of exactly this commit.
    Merge { head: String },
}

/// A message between people and agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub number: u64,
    /// Agent id or "user".
    pub from: String,
    /// Agent id, "user" or "all".
    pub to: String,
    pub text: String,
    pub ts: EpochMs,
    pub read_by: BTreeSet<AgentId>,
    /// See [`Turn::hops`].
    pub hops: u8,
}

/// An engine's conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The engine's id, once known.
    pub id: Option<String>,
    pub turns: u32,
    /// Sum over its processes, US dollars.
    pub cost_usd: f64,
    pub updated_at: EpochMs,
}

/// A stored *always allow*.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    pub agent: AgentId,
    pub repo: RepoId,
    pub key: ScopeKey,
}
