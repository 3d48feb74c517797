//! What reaches the core.

use serde::{Deserialize, Serialize};

use super::effect::{EffectId, EffectResult};
use crate::protocol::{AuthStatus, ClientEnvelope, ClientId, MemoryEntry, ServerMessage, WorktreeId};
use crate::turn::{TurnEvent, TurnId};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A valid message of a client.
    Client { from: ClientId, envelope: ClientEnvelope },
    /// An engine reports.
    Turn { turn: TurnId, event: TurnEvent },
    /// An effect ended.
    Done { effect: EffectId, result: EffectResult },
    /// A timer of [`super::Foreman::next_wakeup`] is due, or nothing: handled the same.
    Tick,
    /// What start-up saw of the world. First input of every life; nothing is scheduled before it.
    Observed(World),
    /// The memory folder, whole, at start and after each change by hand.
    MemoryRead(Vec<MemoryEntry>),
    /// The engine's login changed.
    Auth { auth: AuthStatus, message: String, account: Option<String> },
    /// The process is about to end: turns are interrupted, nothing new starts.
    Shutdown,
}

/// The world as found at start-up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct World {
    /// Live worktrees of the state whose directory is gone or is not what it should be, with the reason.
    pub missing: Vec<(WorktreeId, String)>,
    /// Directories below the profile's worktrees that the state does not know.
    pub unknown: Vec<String>,
    /// Processes of the former life that had to be ended, in words.
    pub ended: Vec<String>,
}

/// What the core gives back, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// To be stored, then broadcast if it has a message.
    Change(super::change::Change),
    /// For one client only.
    Reply { to: ClientId, message: ServerMessage },
    /// To be started after the commit.
    Effect(EffectId, super::effect::Effect),
}
