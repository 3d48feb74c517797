//! In which order the document shows things: as declared in the types.

use std::marker::PhantomData;

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

use crate::protocol::{
    Ack, Agent, AgentAction, AgentLogs, AgentSay, AnswerDecision, Decision, DecisionAnswer, Diff, DiffFile, DiffHunk,
    DiffLine, DiffRequest, DiffStats, ErrorReply, FeedItem, ForemanStatus, Goal, GoalSubmit, Hello, LogEntry,
    MemoryEntry, Notify, Repo, RepoAdd, Snapshot, Task, TaskAction, UserMessage, Worktree,
};

/// Gives a type's field names in order; none where the alphabet will do.
pub(super) type Order = Option<fn() -> &'static [&'static str]>;

/// Enums in the order of the document.
pub(super) const ENUMS: &[&str] = &[
    "AgentState",
    "Station",
    "AgentRole",
    "TaskStatus",
    "CiStatus",
    "LogKind",
    "DecisionKind",
    "DecisionStatus",
    "GoalStatus",
    "FeedKind",
    "NotifyLevel",
    "WorktreeStatus",
    "BackendName",
    "AuthStatus",
    "DiffFileStatus",
    "DiffLineKind",
    "TaskActionKind",
    "AgentActionKind",
];

/// Entities in the order of the document.
pub(super) const ENTITIES: &[(&str, Order)] = &[
    ("Agent", Some(fields::<Agent>)),
    ("LogEntry", Some(fields::<LogEntry>)),
    ("Task", Some(fields::<Task>)),
    ("Decision", Some(fields::<Decision>)),
    ("DecisionAnswer", Some(fields::<DecisionAnswer>)),
    ("Repo", Some(fields::<Repo>)),
    ("Worktree", Some(fields::<Worktree>)),
    ("MemoryEntry", Some(fields::<MemoryEntry>)),
    ("Goal", Some(fields::<Goal>)),
    ("FeedItem", Some(fields::<FeedItem>)),
    ("ForemanStatus", Some(fields::<ForemanStatus>)),
    ("AgentLogs", Some(fields::<AgentLogs>)),
    ("DiffFile", Some(fields::<DiffFile>)),
    ("DiffHunk", Some(fields::<DiffHunk>)),
    ("DiffLine", Some(fields::<DiffLine>)),
    ("DiffStats", Some(fields::<DiffStats>)),
];

/// Field orders of messages that have more than one or two fields.
pub(super) const MESSAGES: &[(&str, Order)] = &[
    ("snapshot", Some(fields::<Snapshot>)),
    ("agent.say", Some(fields::<AgentSay>)),
    ("diff", Some(fields::<Diff>)),
    ("notify", Some(fields::<Notify>)),
    ("ack", Some(fields::<Ack>)),
    ("error", Some(fields::<ErrorReply>)),
    ("hello", Some(fields::<Hello>)),
    ("goal.submit", Some(fields::<GoalSubmit>)),
    ("user.message", Some(fields::<UserMessage>)),
    ("decision.answer", Some(fields::<AnswerDecision>)),
    ("task.action", Some(fields::<TaskAction>)),
    ("agent.action", Some(fields::<AgentAction>)),
    ("diff.request", Some(fields::<DiffRequest>)),
    ("repo.add", Some(fields::<RepoAdd>)),
];

/// Field names of a struct as serde knows them, in the order of declaration.
fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // The asker takes the names that the struct asks for, and never gives it anything.
    let _ = T::deserialize(Asker { names: &mut names, lifetime: PhantomData });
    names
}

struct Asker<'a, 'de> {
    names: &'a mut &'static [&'static str],
    lifetime: PhantomData<&'de ()>,
}

impl<'de> Deserializer<'de> for Asker<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.names = fields;
        Err(Error::custom("only asking"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_as_declared() {
        assert_eq!(fields::<AgentSay>(), ["agentId", "text", "to", "ts"]);
        for (name, order) in ENTITIES.iter().chain(MESSAGES) {
            assert!(!order.unwrap()().is_empty(), "{name}");
        }
    }
}
