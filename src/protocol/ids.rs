//! Identifiers and time of the wire.
//!
//! All are strings (or an integer for time) on the wire. Newtypes keep a task id from being passed where a goal id is
//! meant. Counter ids order by number: `t2 < t10`.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Epoch milliseconds, the only form of time in state and on the wire.
pub type EpochMs = u64;

/// One connection of a client, embedded or remote. Not on the wire; never reused while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClientId(pub u64);

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(#[schemars(length(min = 1, max = super::limits::ID_CHARS))] pub String);

        impl $name {
            /// The id as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

macro_rules! text_order {
    ($name:ident) => {
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.cmp(&other.0)
            }
        }
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
    };
}

/// Ids made from a counter: a letter and a number without leading zeros, so that the shorter is the smaller.
macro_rules! counter_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        id!($(#[$doc])* $name);

        impl $name {
            /// The `number`-th id of its kind, counted from 1.
            pub fn nth(number: u64) -> Self {
                Self(format!(concat!($prefix, "{}"), number))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
            }
        }
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
    };
}

id!(
    /// A stable lower-case agent id, for example `kit`.
    AgentId
);
text_order!(AgentId);
id!(
    /// A repository, for example `demo-app`.
    RepoId
);
text_order!(RepoId);
id!(
    /// A worktree, `<agent>-<task>`, for example `kit-t2`.
    WorktreeId
);
text_order!(WorktreeId);
id!(
    /// A memory entry, `shared/<slug>` or `<agent>/<slug>`.
    MemoryId
);
text_order!(MemoryId);
counter_id!(
    /// A goal: `g1`, `g2`, ...
    GoalId, "g"
);
counter_id!(
    /// A task: `t1`, `t2`, ...
    TaskId, "t"
);
counter_id!(
    /// A decision: `d1`, `d2`, ...
    DecisionId, "d"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_ids_order_by_number() {
        let mut ids = vec![TaskId::nth(10), TaskId::nth(2), TaskId::nth(1)];
        ids.sort();
        assert_eq!(ids, [TaskId::nth(1), TaskId::nth(2), TaskId::nth(10)]);
    }
}
