//! The running turns: who to tell something, and how many have not ended yet.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::mpsc;

use super::loop_::panic_text;
use crate::engine::{Engine, TurnHandle, TurnReport};
use crate::turn::{TurnCommand, TurnEnd, TurnEvent, TurnFailure, TurnId, TurnSpec};

/// Turns between their start and the report of their end.
pub(crate) struct Turns {
    engine: Engine,
    tokio: tokio::runtime::Handle,
    reports: mpsc::Sender<TurnReport>,
    running: BTreeMap<TurnId, Option<TurnHandle>>,
}

impl Turns {
    pub(crate) fn new(engine: Engine, tokio: tokio::runtime::Handle, reports: mpsc::Sender<TurnReport>) -> Self {
        Self { engine, tokio, reports, running: BTreeMap::new() }
    }

    /// Has the engine play a turn; one that runs already goes on.
    pub(crate) fn start(&mut self, spec: TurnSpec) {
        let turn = spec.turn;
        if self.running.contains_key(&turn) {
            return;
        }
        let _guard = self.tokio.enter();
        match catch_unwind(AssertUnwindSafe(|| self.engine.start(spec, self.reports.clone()))) {
            Ok(handle) => {
                self.running.insert(turn, Some(handle));
            }
            Err(panic) => {
                self.running.insert(turn, None);
                let reason = format!("the engine could not start the turn ({})", panic_text(&*panic));
                let failure = TurnFailure { reason, retry_after_ms: None, auth: false };
                let report = TurnReport { turn, event: TurnEvent::Ended(TurnEnd::Failed(failure)) };
                let reports = self.reports.clone();
                tokio::spawn(async move { reports.send(report).await });
            }
        }
    }

    /// Tells a turn something; one that is gone does not hear it.
    pub(crate) fn tell(&self, turn: TurnId, command: TurnCommand) {
        if let Some(Some(handle)) = self.running.get(&turn) {
            handle.tell(command);
        }
    }

    pub(crate) fn ended(&mut self, turn: TurnId) {
        self.running.remove(&turn);
    }

    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    pub(crate) fn stop_all(&self) {
        for handle in self.running.values().flatten() {
            handle.tell(TurnCommand::Stop);
        }
    }
}
