//! Engines play turns: run a job for one agent in one directory, stream what happens, take answers, stop at once.
//!
//! Knows the words of turns, never their meaning: what a tool call does is the core's business. Entry point:
//! [`Engine::start`].

pub mod ci;
pub mod process;
pub mod sim;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::protocol::{AuthStatus, BackendName};
use crate::turn::{TurnCommand, TurnEnd, TurnEvent, TurnFailure, TurnId, TurnSpec};

/// What a turn reports, with the turn it belongs to.
#[derive(Debug)]
pub struct TurnReport {
    pub turn: TurnId,
    pub event: TurnEvent,
}

/// The engines there are.
#[derive(Clone, Debug)]
pub enum Engine {
    Sim(Arc<sim::Sim>),
}

/// A running turn's ear. Cheap to clone; a turn that is gone hears nothing.
#[derive(Clone, Debug)]
pub struct TurnHandle {
    commands: mpsc::UnboundedSender<TurnCommand>,
}

impl TurnHandle {
    /// Tells the turn something, at once and without waiting.
    pub fn tell(&self, command: TurnCommand) {
        // A turn that has ended needs no answer any more.
        let _ended = self.commands.send(command);
    }
}

impl Engine {
    /// The engine's name on the wire.
    pub fn backend(&self) -> BackendName {
        match self {
            Self::Sim(_) => BackendName::Sim,
        }
    }

    /// Whether it can run, and in which words the person is told.
    pub fn status(&self) -> (AuthStatus, String) {
        match self {
            Self::Sim(sim) => (AuthStatus::Ok, sim.label()),
        }
    }

    /// Children of this engine carry the profile's id from now on, so that the next life finds what was left behind.
    pub fn mark(&self, profile_id: &str) {
        match self {
            Self::Sim(sim) => sim.mark(profile_id),
        }
    }

    /// Plays a turn as a task of its own. The last report is always [`TurnEvent::Ended`], also after a panic.
    ///
    /// Must be called within a tokio runtime.
    pub fn start(&self, spec: TurnSpec, reports: mpsc::Sender<TurnReport>) -> TurnHandle {
        let (commands, ears) = mpsc::unbounded_channel();
        let turn = spec.turn;
        let Self::Sim(sim) = self;
        let (sim, mouth) = (Arc::clone(sim), reports.clone());
        let played = tokio::spawn(async move { sim::play::play(&sim, spec, ears, mouth).await });
        tokio::spawn(async move {
            let end = played.await.unwrap_or_else(|error| {
                tracing::error!(?turn, %error, "a turn's task panicked");
                TurnEnd::Failed(TurnFailure {
                    reason: "the engine crashed while it played this turn".to_owned(),
                    retry_after_ms: None,
                    auth: false,
                })
            });
            // The Foreman is gone when nobody listens.
            let _gone = reports.send(TurnReport { turn, event: TurnEvent::Ended(end) }).await;
        });
        TurnHandle { commands }
    }
}
