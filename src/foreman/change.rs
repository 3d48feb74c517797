//! The one type that is stored and the one that is broadcast.
//!
//! `State::apply` folds changes into the state, in the running core, when the database is loaded and when the journal
//! is replayed: there is no other way to alter it.

use serde::{Deserialize, Serialize};

use super::effect::{Effect, EffectId};
use super::state::{AgentWork, Counter, GoalWork, Grant, Message, RepoWork, Session, TaskWork, Turn, Waiter};
use crate::protocol::{
    Agent, AgentId, AgentSay, Decision, DecisionId, FeedItem, ForemanStatus, Goal, GoalId, LogEntry, MemoryEntry,
    MemoryId, Notify, Repo, RepoId, ServerMessage, Task, TaskId,
};
use crate::turn::TurnId;

/// One change of the state. Upserts carry the whole entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change {
    Agent(Agent),
    Task(Task),
    Decision(Decision),
    Repo(Repo),
    Goal(Goal),
    Status(ForemanStatus),
    /// Memory notes live in files; the change is broadcast and journalled, not kept as a row.
    Memory(MemoryEntry),
    MemoryGone(MemoryId),
    Feed(FeedItem),
    Log {
        agent: AgentId,
        entries: Vec<LogEntry>,
    },
    Say(AgentSay),
    Notify(Notify),

    // Private bookkeeping: stored, never broadcast.
    AgentWork(AgentId, AgentWork),
    TaskWork(TaskId, Box<TaskWork>),
    GoalWork(GoalId, GoalWork),
    RepoWork(RepoId, RepoWork),
    Waiter(DecisionId, Box<Waiter>),
    WaiterGone(DecisionId),
    /// A closed decision past its retention is forgotten, with its waiter.
    DecisionGone(DecisionId),
    Turn(Box<Turn>),
    TurnGone(TurnId),
    EffectWanted(EffectId, Box<Effect>),
    EffectGone(EffectId),
    Message(Message),
    MessageGone(u64),
    Session(String, Session),
    Grant(Grant),
    GrantGone(Grant),
    Counter(Counter, u64),
}

impl Change {
    /// The broadcast of this change; none for private bookkeeping.
    pub fn to_message(&self) -> Option<ServerMessage> {
        Some(match self {
            Self::Agent(agent) => ServerMessage::AgentUpsert { agent: agent.clone() },
            Self::Task(task) => ServerMessage::TaskUpsert { task: task.clone() },
            Self::Decision(decision) => ServerMessage::DecisionUpsert { decision: decision.clone() },
            Self::Repo(repo) => ServerMessage::RepoUpsert { repo: repo.clone() },
            Self::Goal(goal) => ServerMessage::GoalUpsert { goal: goal.clone() },
            Self::Status(status) => ServerMessage::ForemanStatus { status: status.clone() },
            Self::Memory(entry) => ServerMessage::MemoryUpsert { entry: entry.clone() },
            Self::Feed(item) => ServerMessage::FeedAdd { item: item.clone() },
            Self::Log { agent, entries } => {
                ServerMessage::AgentLog { agent_id: agent.clone(), entries: entries.clone() }
            }
            Self::Say(say) => ServerMessage::AgentSay(say.clone()),
            Self::Notify(notify) => ServerMessage::Notify(notify.clone()),
            Self::MemoryGone(_)
            | Self::AgentWork(..)
            | Self::TaskWork(..)
            | Self::GoalWork(..)
            | Self::RepoWork(..)
            | Self::Waiter(..)
            | Self::WaiterGone(_)
            | Self::DecisionGone(_)
            | Self::Turn(_)
            | Self::TurnGone(_)
            | Self::EffectWanted(..)
            | Self::EffectGone(_)
            | Self::Message(_)
            | Self::MessageGone(_)
            | Self::Session(..)
            | Self::Grant(_)
            | Self::GrantGone(_)
            | Self::Counter(..) => return None,
        })
    }
}
