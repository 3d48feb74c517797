//! When the loop cannot go on: the core panicked or a commit failed.
//!
//! The state in memory is thrown away; acks that are owed fail in words. After a panic the state is loaded again and
//! the life begins anew without the input; while nothing can be stored, nothing is accepted.

use tokio::time::Instant;

use super::{About, Broken, Ended, Loop, PANICS, PANICS_WINDOW_MS, Phase, RETRY_LONGEST, Shell, Shows, Starting};
use crate::protocol::{
    Ack, ClientEnvelope, ClientId, ClientMessage, ErrorReply, Notify, NotifyLevel, ServerMessage, Snapshot,
};
use crate::runtime::core::{Core, MakeCore};
use crate::store::StoreError;

impl<M: MakeCore, S: Shell> Loop<M, S> {
    /// The core panicked: the input is set aside, the state loaded again.
    pub(super) fn start_over(&mut self, broken: Broken) {
        let Broken { input, panic } = broken;
        tracing::error!(%input, %panic, "the core failed; the input was set aside");
        let report = format!("{input} made the Foreman fail and was set aside ({panic})");
        self.clients.fail_all_owed(&report, &|| None);
        if self.ended.is_some() {
            return;
        }
        if matches!(self.phase, Phase::Closing { .. }) {
            self.ended = Some(Ended::Failed(report));
            return;
        }
        // What a client can set off must not end the team.
        if !matches!(input, About::Client(..)) && self.fails_too_often() {
            self.give_up(format!("{report}; starting over did not help"));
            return;
        }
        self.reports.push(report);
        self.shell.stop_turns();
        self.load_again();
    }

    /// A commit failed: nobody was told anything of it, and nothing of it will be done.
    pub(super) fn not_stored(&mut self, error: &StoreError) {
        let reason = error.to_string();
        tracing::error!(%error, "a commit failed");
        self.clients.fail_all_owed(&format!("not done: {reason}"), &|| None);
        if matches!(self.phase, Phase::Closing { .. }) {
            self.ended = Some(Ended::Failed(reason));
            return;
        }
        self.shell.stop_turns();
        match error {
            StoreError::Encode { .. } => {
                if self.fails_too_often() {
                    return self.give_up(reason);
                }
                self.reports.push(reason);
                self.load_again();
            }
            _ if error.is_passing() => self.suspend(reason),
            _ => self.give_up(reason),
        }
    }

    fn fails_too_often(&mut self) -> bool {
        let now = self.clock.now();
        self.panics.push_back(now);
        self.panics.retain(|at| at + PANICS_WINDOW_MS > now);
        self.panics.len() >= PANICS
    }

    fn load_again(&mut self) {
        match self.store.reload() {
            Ok(state) => {
                self.core = self.make.make(state);
                self.phase = Phase::Starting(Box::new(Starting::again()));
                self.shell.observe(self.core.state());
            }
            Err(error) if error.is_passing() => self.suspend(error.to_string()),
            Err(error) => self.give_up(error.to_string()),
        }
    }

    /// Stops accepting until something can be stored again. What is shown meanwhile is the stored state.
    fn suspend(&mut self, reason: String) {
        let before = match &self.phase {
            Phase::Suspended { reason, shows, .. } => Some((reason.clone(), *shows)),
            Phase::Starting(_) | Phase::Running | Phase::Closing { .. } => None,
        };
        let shows = match before {
            Some((_, Shows::Stored)) => Shows::Stored,
            Some((_, Shows::Nothing)) | None => match self.store.reload() {
                Ok(state) => {
                    self.core = self.make.make(state);
                    Shows::Stored
                }
                Err(_) => Shows::Nothing,
            },
        };
        if before.is_none_or(|(before, _)| before != reason) && self.clients.anyone_hears() {
            let words = suspended(&reason);
            let mut status = self.core.state().status.clone();
            status.message = Some(words.clone());
            let notify = Notify { level: NotifyLevel::Warn, text: words, decision_id: None, ts: self.clock.now() };
            self.clients.broadcast(ServerMessage::ForemanStatus { status }, &|| None);
            self.clients.broadcast(ServerMessage::Notify(notify), &|| None);
        }
        self.phase = Phase::Suspended { reason, again: Instant::now() + self.retry, shows };
        self.retry = (self.retry * 2).min(RETRY_LONGEST);
    }

    pub(super) fn try_again(&mut self) {
        match self.store.probe() {
            Ok(()) => {
                tracing::info!("the database can be written again");
                self.load_again();
            }
            Err(error) if error.is_passing() => self.suspend(error.to_string()),
            Err(error) => self.give_up(error.to_string()),
        }
    }

    fn give_up(&mut self, reason: String) {
        let notify = Notify { level: NotifyLevel::Warn, text: reason.clone(), decision_id: None, ts: self.clock.now() };
        self.clients.broadcast(ServerMessage::Notify(notify), &|| None);
        self.shell.stop_turns();
        self.shell.cancel();
        self.ended = Some(Ended::Failed(reason));
    }

    /// While nothing can be stored a client may look, and everything else fails in words.
    pub(super) fn answer_suspended(&mut self, client: ClientId, envelope: ClientEnvelope, reason: &str, shows: Shows) {
        let words = suspended(reason);
        self.clients.ready(client);
        let seen = matches!(envelope.message, ClientMessage::Hello(_)) && shows == Shows::Stored;
        let message = if seen {
            ServerMessage::Snapshot(Box::new(self.stored_view(&words)))
        } else {
            ServerMessage::Error(ErrorReply { message: words.clone(), re: envelope.id.clone() })
        };
        self.clients.reply(client, message, &|| None);
        if let Some(re) = envelope.id {
            let ack = Ack { re, ok: seen, error: (!seen).then_some(words), result: None };
            self.clients.reply(client, ServerMessage::Ack(ack), &|| None);
        }
    }

    /// The stored state with `words` in the banner.
    fn stored_view(&self, words: &str) -> Snapshot {
        let mut view = self.core.snapshot();
        view.foreman.message = Some(words.to_owned());
        if view.memory.is_empty() {
            view.memory.clone_from(&self.notes);
        }
        view
    }
}

fn suspended(reason: &str) -> String {
    format!("The Foreman has stopped accepting: {reason}")
}
