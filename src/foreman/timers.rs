//! What is due by time: retries, time-outs, looks at repositories, answers by themselves.
//!
//! The core never sleeps: it says when it wants to be asked again.

use super::settings::Settings;
use super::state::{Running, Stage, State, StopWhy, TurnPhase};
use super::{Live, Step};
use crate::protocol::{EpochMs, TaskStatus};
use crate::turn::TurnId;

/// When a running turn is over its time, if its clock runs.
fn deadline(settings: &Settings, running: &Running) -> Option<EpochMs> {
    let since = running.working_since?;
    Some(since + settings.turn_timeout_ms.saturating_sub(running.used_ms))
}

/// The earliest time at which something is due.
pub(crate) fn next_wakeup(settings: &Settings, state: &State, live: &Live) -> Option<EpochMs> {
    if !live.ready {
        return None;
    }
    let mut earliest: Option<EpochMs> = None;
    let mut at = |time: EpochMs| earliest = Some(earliest.map_or(time, |before| before.min(time)));
    for turn in state.turns.values() {
        match &turn.phase {
            TurnPhase::Wanted => {
                if let Some(time) = turn.not_before {
                    at(time);
                }
            }
            TurnPhase::Running(running) => {
                if let Some(time) = deadline(settings, running) {
                    at(time);
                }
            }
            TurnPhase::Preparing { .. } | TurnPhase::Stopping { .. } => {}
        }
    }
    for (id, work) in &state.task_work {
        let todo = state.tasks.get(id).is_some_and(|task| task.status == TaskStatus::Todo);
        if let Some(time) = work.not_before
            && todo
            && work.stage == Stage::Board
        {
            at(time);
        }
    }
    for (id, time) in &live.refresh {
        if !live.refreshing.contains_key(id) {
            at(*time);
        }
    }
    for auto in live.auto.values() {
        if auto.at != EpochMs::MAX {
            at(auto.at);
        }
    }
    earliest
}

impl Step<'_> {
    /// Does what is due.
    pub(crate) fn run_timers(&mut self) {
        if !self.live.ready {
            return;
        }
        // A pause that is over must not be reported as due again and again.
        let over: Vec<_> = self
            .state
            .task_work
            .iter()
            .filter(|(_, work)| work.not_before.is_some_and(|at| at <= self.now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in over {
            self.edit_work(&id, |work| work.not_before = None);
        }
        let waited: Vec<TurnId> = self
            .state
            .turns
            .values()
            .filter(|turn| turn.not_before.is_some_and(|at| at <= self.now))
            .map(|turn| turn.id)
            .collect();
        for id in waited {
            if let Some(mut turn) = self.state.turns.get(&id).cloned() {
                turn.not_before = None;
                self.put(super::Change::Turn(Box::new(turn)));
            }
        }
        let late: Vec<TurnId> = self
            .state
            .turns
            .values()
            .filter(|turn| match &turn.phase {
                TurnPhase::Running(running) => deadline(self.settings, running).is_some_and(|time| time <= self.now),
                TurnPhase::Wanted | TurnPhase::Preparing { .. } | TurnPhase::Stopping { .. } => false,
            })
            .map(|turn| turn.id)
            .collect();
        for id in late {
            self.stop_turn(id, StopWhy::Timeout);
        }
        if !self.live.closing {
            self.auto_answer();
            self.refresh_due();
        }
    }
}
