//! What one client still has to hear. Pure.
//!
//! - An entity's upserts wait by kind and id: the newest value takes the place of the first that is unsent.
//! - Appends (log, feed, speech, notices) queue in order.
//! - A reply (ack, error, diff, snapshot) fixes what is before it: no later upsert moves before it and no earlier one
//!   after it, so that an ack is never heard before what it promises.
//! - Bytes are bounded. Past the bound nothing more is taken until [`Outbox::resync`]; nothing is dropped silently.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::outgoing::Outgoing;
use crate::protocol::{AgentId, DecisionId, GoalId, MemoryId, RepoId, ServerMessage, TaskId};

/// Bound of one outbox, in bytes of frames' text: four snapshots of the largest size, or minutes of a busy stream for a
/// client that reads a tenth of it.
pub const OUTBOX_BYTES: usize = 16 * 1024 * 1024;

/// What a waiting message costs besides its text, in bytes, so that many small ones are bounded too.
const SLOT_BYTES: usize = 256;

/// The client is too far behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client does not read what it is sent")]
pub struct Overflow;

/// See the module's description.
#[derive(Debug)]
pub struct Outbox {
    waiting: VecDeque<Arc<Outgoing>>,
    /// Number of the message at the front, counted over the outbox's life.
    front: u64,
    /// Numbers of the waiting upserts that a newer one may replace.
    replaceable: BTreeMap<Entity, u64>,
    bytes: usize,
    bound: usize,
    state: Taking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    All,
    /// Over the bound: acks and errors alone, for they are lost otherwise, until the client is made whole; `limit` is
    /// in bytes, since whoever asks on and on without reading is bounded too.
    Answers {
        limit: usize,
    },
}

/// What an upsert replaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entity {
    Agent(AgentId),
    Task(TaskId),
    Decision(DecisionId),
    Repo(RepoId),
    Memory(MemoryId),
    Goal(GoalId),
    Status,
}

enum Kind {
    Upsert(Entity),
    Append,
    Snapshot,
    Diff,
    /// Ack or error: small, and somebody waits for it.
    Answer,
}

fn kind(message: &ServerMessage) -> Kind {
    match message {
        ServerMessage::AgentUpsert { agent } => Kind::Upsert(Entity::Agent(agent.id.clone())),
        ServerMessage::TaskUpsert { task } => Kind::Upsert(Entity::Task(task.id.clone())),
        ServerMessage::DecisionUpsert { decision } => Kind::Upsert(Entity::Decision(decision.id.clone())),
        ServerMessage::RepoUpsert { repo } => Kind::Upsert(Entity::Repo(repo.id.clone())),
        ServerMessage::MemoryUpsert { entry } => Kind::Upsert(Entity::Memory(entry.id.clone())),
        ServerMessage::GoalUpsert { goal } => Kind::Upsert(Entity::Goal(goal.id.clone())),
        ServerMessage::ForemanStatus { .. } => Kind::Upsert(Entity::Status),
        ServerMessage::AgentLog { .. }
        | ServerMessage::AgentSay(_)
        | ServerMessage::FeedAdd { .. }
        | ServerMessage::Notify(_) => Kind::Append,
        ServerMessage::Snapshot(_) => Kind::Snapshot,
        ServerMessage::Diff(_) => Kind::Diff,
        ServerMessage::Ack(_) | ServerMessage::Error(_) => Kind::Answer,
    }
}

fn cost(message: &Outgoing) -> usize {
    message.bytes() + SLOT_BYTES
}

impl Outbox {
    /// An empty outbox with a bound in bytes.
    pub fn new(bound: usize) -> Self {
        Self { waiting: VecDeque::new(), front: 0, replaceable: BTreeMap::new(), bytes: 0, bound, state: Taking::All }
    }

    /// Takes a message. The error means that the bound is passed: this message and all further ones are not taken
    /// (acks and errors are still kept for after the snapshot) until [`Outbox::resync`] or [`Outbox::clear`].
    pub fn push(&mut self, message: Arc<Outgoing>) -> Result<(), Overflow> {
        let kind = kind(message.message());
        if let Taking::Answers { limit } = self.state {
            self.keep_answer(&kind, message, limit);
            return Err(Overflow);
        }
        let replaced = match &kind {
            Kind::Upsert(entity) => self.replaceable.get(entity).copied().and_then(|number| self.index(number)),
            Kind::Append | Kind::Snapshot | Kind::Diff | Kind::Answer => None,
        };
        let freed = replaced.and_then(|index| self.waiting.get(index)).map_or(0, |old| cost(old));
        // A message that finds nothing else waiting is always taken, however large: else it could never be sent.
        let alone = self.waiting.len() == usize::from(replaced.is_some());
        if !alone && self.bytes - freed + cost(&message) > self.bound {
            let limit = self.bytes.saturating_add(self.bound);
            self.state = Taking::Answers { limit };
            self.keep_answer(&kind, message, limit);
            return Err(Overflow);
        }
        match (replaced.and_then(|index| self.waiting.get_mut(index)), kind) {
            (Some(place), _) => {
                self.bytes = self.bytes - freed + cost(&message);
                *place = message;
            }
            (None, Kind::Upsert(entity)) => {
                self.replaceable.insert(entity, self.front + self.waiting.len() as u64);
                self.append(message);
            }
            (None, Kind::Append) => self.append(message),
            (None, Kind::Snapshot | Kind::Diff | Kind::Answer) => {
                self.replaceable.clear();
                self.append(message);
            }
        }
        Ok(())
    }

    /// The next message to send.
    pub fn pop(&mut self) -> Option<Arc<Outgoing>> {
        let message = self.waiting.pop_front()?;
        if let Kind::Upsert(entity) = kind(message.message())
            && self.replaceable.get(&entity) == Some(&self.front)
        {
            self.replaceable.remove(&entity);
        }
        self.front += 1;
        self.bytes -= cost(&message);
        Some(message)
    }

    /// Forgets everything that waits and takes messages again.
    pub fn clear(&mut self) {
        self.front += self.waiting.len() as u64;
        self.waiting.clear();
        self.replaceable.clear();
        self.bytes = 0;
        self.state = Taking::All;
    }

    /// Makes the client whole: a snapshot takes the place of all changes that wait. Replies stay, after it, since what
    /// they promise is in it; diffs only as far as half the bound lets them, acks and errors up to twice the bound.
    pub fn resync(&mut self, snapshot: Arc<Outgoing>) {
        let waiting = std::mem::take(&mut self.waiting);
        self.front += waiting.len() as u64;
        self.clear();
        let answers = cost(&snapshot).saturating_add(self.bound.saturating_mul(2));
        self.append(snapshot);
        for message in waiting {
            match kind(message.message()) {
                Kind::Answer if self.bytes + cost(&message) <= answers => self.append(message),
                Kind::Diff if self.bytes + cost(&message) <= self.bound / 2 => self.append(message),
                Kind::Answer | Kind::Diff | Kind::Upsert(_) | Kind::Append | Kind::Snapshot => {}
            }
        }
    }

    /// Bytes that wait, messages' overhead included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn append(&mut self, message: Arc<Outgoing>) {
        self.bytes += cost(&message);
        self.waiting.push_back(message);
    }

    fn keep_answer(&mut self, kind: &Kind, message: Arc<Outgoing>, limit: usize) {
        if matches!(kind, Kind::Answer) && self.bytes + cost(&message) <= limit {
            self.replaceable.clear();
            self.append(message);
        }
    }

    fn index(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.front).and_then(|index| usize::try_from(index).ok())
    }
}

#[cfg(test)]
mod tests;
