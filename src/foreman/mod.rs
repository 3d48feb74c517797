//! The core: the state of the team and the rules that move it.
//!
//! Pure: no I/O, no clock, no randomness. Knows the wire's types, the words of turns and the policy's types; must not
//! know tokio, git, the database or any engine. Entry points: [`Foreman::handle`] and [`Foreman::next_wakeup`].

pub mod change;
pub mod effect;
pub mod input;
pub mod settings;
pub mod state;

mod answers;
mod brief;
mod decisions;
mod feed;
mod goals;
mod handover;
mod intents;
mod memory;
mod messages;
mod permissions;
mod reconcile;
mod repos;
mod review;
pub mod roster;
mod schedule;
mod snapshot;
mod tasks;
pub mod text;
mod timers;
mod tools;
mod turns;
mod work;

pub use change::Change;
pub use effect::{Effect, EffectId, EffectResult};
pub use input::{Input, Output, World};
pub use settings::{AutoAnswer, Settings};
pub use state::State;

use std::collections::BTreeMap;

use crate::protocol::{ClientId, DecisionId, DiffRequest, EpochMs, RepoId, Snapshot};
use crate::turn::TurnId;

/// The core of one profile.
#[derive(Debug)]
pub struct Foreman {
    settings: Settings,
    state: State,
    live: Live,
}

/// Ids from here on are of effects that die with the process; stored ones count from 1.
const PASSING: u64 = 1 << 62;

/// What belongs to this life of the process and is not stored.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// The world was observed; before that nothing is scheduled.
    ready: bool,
    /// The process is about to end; nothing new starts.
    closing: bool,
    /// Effects of this life that are not stored, counted.
    passing: u64,
    /// Effects that die with the process.
    asks: BTreeMap<EffectId, Ask>,
    /// When a repository is looked at again.
    refresh: BTreeMap<RepoId, EpochMs>,
    /// A look at a repository is under way.
    refreshing: BTreeMap<RepoId, EffectId>,
    /// When an open decision is answered by itself, and how often that was tried.
    auto: BTreeMap<DecisionId, AutoTry>,
}

#[derive(Debug)]
struct AutoTry {
    at: EpochMs,
    tries: u32,
}

/// An effect of this life that somebody waits for.
#[derive(Debug)]
enum Ask {
    Judge { turn: TurnId, request: crate::turn::RequestId },
    InspectRepo { from: ClientId, ack: Option<String> },
    Diff { from: ClientId, ack: Option<String>, request: DiffRequest },
    RefreshRepo { repo: RepoId },
}

/// One input being handled: the state and what comes out.
pub(crate) struct Step<'a> {
    now: EpochMs,
    settings: &'a Settings,
    state: &'a mut State,
    live: &'a mut Live,
    out: Vec<Output>,
}

impl Foreman {
    /// A core over a loaded (or new) state. Its first inputs must be [`Input::MemoryRead`] and [`Input::Observed`].
    pub fn new(settings: Settings, state: State) -> Self {
        Self { settings, state, live: Live::default() }
    }

    /// Takes one input and gives back what is to be stored, told and done, in that order. After it, ask
    /// [`Foreman::next_wakeup`] again.
    pub fn handle(&mut self, now: EpochMs, input: Input) -> Vec<Output> {
        let mut step =
            Step { now, settings: &self.settings, state: &mut self.state, live: &mut self.live, out: Vec::new() };
        match input {
            Input::Client { from, envelope } => step.on_client(from, envelope),
            Input::Turn { turn, event } => step.on_turn_event(turn, event),
            Input::Done { effect, result } => step.on_done(effect, result),
            Input::Tick => {}
            Input::Observed(world) => step.on_observed(&world),
            Input::MemoryRead(entries) => step.on_memory_read(entries),
            Input::Auth { auth, message, account } => step.on_auth(auth, message, account),
            Input::Shutdown => step.on_shutdown(),
        }
        step.run_timers();
        step.settle();
        step.out
    }

    /// When [`Input::Tick`] is due at the latest, if at all.
    pub fn next_wakeup(&self) -> Option<EpochMs> {
        timers::next_wakeup(&self.settings, &self.state, &self.live)
    }

    /// The whole view for one client.
    pub fn snapshot(&self) -> Snapshot {
        snapshot::snapshot(&self.state)
    }

    /// The state, for checks.
    pub fn state(&self) -> &State {
        &self.state
    }
}

impl Step<'_> {
    /// The only way to alter the state: folds the change in and hands it out.
    fn put(&mut self, change: Change) {
        self.state.apply(&change);
        self.out.push(Output::Change(change));
    }

    /// The next number of a counter.
    fn count(&mut self, counter: state::Counter) -> u64 {
        let next = self.state.counters.get(&counter).copied().unwrap_or(0) + 1;
        self.put(Change::Counter(counter, next));
        next
    }

    /// Wants an effect whose result matters after a crash: its row is stored.
    fn want(&mut self, effect: Effect) -> EffectId {
        let id = EffectId(self.count(state::Counter::Effect));
        self.want_as(id, effect);
        id
    }

    /// As [`Step::want`], for an effect that carries its own id.
    fn want_as(&mut self, id: EffectId, effect: Effect) {
        self.put(Change::EffectWanted(id, Box::new(effect.clone())));
        self.out.push(Output::Effect(id, effect));
    }

    /// Id of an effect that dies with the process: nothing is stored for it, so that an idle Foreman writes nothing.
    fn passing_id(&mut self) -> EffectId {
        self.live.passing += 1;
        EffectId(PASSING + self.live.passing)
    }

    /// Wants an effect that dies with the process.
    fn ask(&mut self, effect: Effect, ask: Ask) -> EffectId {
        let id = self.passing_id();
        self.live.asks.insert(id, ask);
        self.out.push(Output::Effect(id, effect));
        id
    }

    /// Tells the shell something that has no result.
    fn tell(&mut self, effect: Effect) {
        let id = self.passing_id();
        self.out.push(Output::Effect(id, effect));
    }

    /// An effect ended: whoever wanted it goes on. Results of effects that are no longer wanted change nothing.
    fn on_done(&mut self, id: EffectId, result: EffectResult) {
        if let Some(ask) = self.live.asks.remove(&id) {
            match ask {
                Ask::Judge { turn, request } => self.on_judged(id, turn, &request, result),
                Ask::InspectRepo { from, ack } => self.on_repo_inspected(from, ack, result),
                Ask::Diff { from, ack, request } => self.on_diff_made(from, ack, &request, result),
                Ask::RefreshRepo { repo } => self.on_refreshed(&repo, result),
            }
            return;
        }
        let Some(effect) = self.state.effects.get(&id).cloned() else { return };
        self.put(Change::EffectGone(id));
        match effect {
            Effect::PrepareWorktree(order) => self.on_prepared(id, &order, result),
            Effect::PrepareCopy { turn, repo, .. } => self.on_copy_prepared(id, turn, &repo, result),
            Effect::Collect { repo, worktree, .. } => self.on_collected(id, &repo.id, &worktree, result),
            Effect::RunCi { task, repo, .. } => self.on_ci(id, &repo.id, &task, result),
            Effect::Merge(order) => self.on_merged(id, &order, result),
            Effect::Abandon { repo, worktree, .. } => self.on_abandoned(id, &repo.id, &worktree, result),
            Effect::WriteMemory(order) => self.on_memory_written(id, &order, result),
            Effect::StartTurn(_)
            | Effect::TellTurn { .. }
            | Effect::RefreshRepo { .. }
            | Effect::Judge { .. }
            | Effect::InspectRepo { .. }
            | Effect::Diff { .. } => {}
        }
    }

    /// Brings everything that follows from the state to rest: goals, deliveries, who works next.
    fn settle(&mut self) {
        if !self.live.ready {
            return;
        }
        self.release_quiet_worktrees();
        self.pick_up_handed_in();
        self.review_goals();
        if !self.live.closing {
            self.deliver_messages();
            self.assign_tasks();
            self.start_turns();
            // What these put aside is given up in the same step.
            self.release_quiet_worktrees();
        }
    }
}
