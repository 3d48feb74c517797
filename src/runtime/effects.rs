//! What each effect is: which room does it, where it waits, and what its result is called.
//!
//! Exhaustive over [`Effect`]; decides nothing. Results come back as words of the inbox.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::commands;
use super::git_work;
use super::inbox::{Senders, Word};
use super::leftovers::end_leftovers;
use super::loop_::{Shell, panic_text};
use super::memory_watch::MemoryKeeper;
use super::observe::{Beliefs, look};
use super::runner::{Lane, Outcome, Runner, blocking, waiting};
use super::turns::Turns;
use crate::engine::Engine;
use crate::foreman::effect::{Effect, EffectId, EffectResult, PrepareWorktree, PreparedWorktree};
use crate::foreman::input::World;
use crate::foreman::state::State;
use crate::git::{self, GitHome};
use crate::policy;
use crate::turn::TurnId;

/// Where effects work.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) git: GitHome,
    /// Scratch directories, one per agent.
    pub(crate) scratch: PathBuf,
    /// Which worktrees were set up with which command.
    pub(crate) prepared: PathBuf,
    /// Marks every process started for this profile.
    pub(crate) profile_id: String,
}

/// Starts the effects of the loop.
pub(crate) struct EffectShell {
    runner: Runner,
    turns: Turns,
    keeper: MemoryKeeper,
    places: Arc<Places>,
    senders: Senders,
    tokio: Handle,
    life: Life,
}

/// Only the first look of a process ends what a former one left: later its own children are alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    First,
    Later,
}

impl EffectShell {
    pub(crate) fn new(tokio: Handle, engine: Engine, senders: Senders, keeper: MemoryKeeper, places: Places) -> Self {
        Self {
            runner: Runner::new(tokio.clone(), senders.words.clone()),
            turns: Turns::new(engine, tokio.clone(), senders.turns.clone()),
            keeper,
            places: Arc::new(places),
            senders,
            tokio,
            life: Life::First,
        }
    }

    /// Runs blocking work of the git room; it has a result whatever happens.
    fn blocking(&mut self, id: EffectId, lane: Lane, work: impl FnOnce(&Places) -> EffectResult + Send + 'static) {
        let places = Arc::clone(&self.places);
        self.runner.run(id, lane, blocking(move || Outcome::Done(work(&places))));
    }

    fn prepare(&mut self, id: EffectId, order: PrepareWorktree) {
        let places = Arc::clone(&self.places);
        let lane = Lane::Repo(order.repo.path.clone());
        let work = blocking(move || match git_work::prepare(&places.git, &order) {
            Ok(made) => set_up(&places, order, made),
            Err(failure) => Outcome::Done(EffectResult::WorktreePrepared(Err(failure))),
        });
        self.runner.run(id, lane, work);
    }
}

/// The person's setup command runs once in each new worktree, outside the repository's queue.
fn set_up(places: &Arc<Places>, order: PrepareWorktree, made: PreparedWorktree) -> Outcome {
    let Some(command) = order.setup.clone() else {
        return Outcome::Done(EffectResult::WorktreePrepared(Ok(made)));
    };
    let places = Arc::clone(places);
    let work = waiting(move |cancel| async move {
        match commands::set_up(&places, &order, made, &command, cancel).await {
            Some(result) => Outcome::Done(EffectResult::WorktreePrepared(result)),
            None => Outcome::Dropped,
        }
    });
    Outcome::Then(Lane::Command, work)
}

impl Shell for EffectShell {
    fn start(&mut self, id: EffectId, effect: Effect) {
        match effect {
            Effect::StartTurn(spec) => self.turns.start(*spec),
            Effect::TellTurn { turn, command } => self.turns.tell(turn, command),
            Effect::Judge { call, area, .. } => {
                self.blocking(id, Lane::Now, move |_| EffectResult::Judged(policy::judge(&call, &area)));
            }
            Effect::InspectRepo { path } => {
                self.blocking(id, Lane::Read, move |_| EffectResult::RepoInspected(git_work::inspect(&path)));
            }
            Effect::RefreshRepo { repo, worktrees } => self.blocking(id, Lane::Read, move |places| {
                EffectResult::RepoRefreshed(git_work::refresh(&places.git, &repo, &worktrees))
            }),
            Effect::PrepareWorktree(order) => self.prepare(id, *order),
            Effect::PrepareCopy { repo, turn: _, dir } => {
                self.blocking(id, Lane::Repo(repo.path.clone()), move |places| {
                    EffectResult::CopyPrepared(git_work::prepare_copy(&places.git, &repo, &dir))
                });
            }
            Effect::Collect { repo, worktree, message, identity } => {
                self.blocking(id, Lane::Repo(repo.path.clone()), move |places| {
                    EffectResult::Collected(git_work::collect(&places.git, &repo, &worktree, &message, &identity))
                });
            }
            Effect::RunCi { repo: _, worktree, task: _, command } => {
                let places = Arc::clone(&self.places);
                let work = waiting(move |cancel| async move {
                    match commands::run_tests(&places, &worktree, command, cancel).await {
                        Some(outcome) => Outcome::Done(EffectResult::CiRun(outcome)),
                        None => Outcome::Dropped,
                    }
                });
                self.runner.run(id, Lane::Command, work);
            }
            Effect::Merge(order) => self.blocking(id, Lane::Repo(order.repo.path.clone()), move |places| {
                EffectResult::Merged(git_work::merge(&places.git, &order))
            }),
            Effect::Abandon { repo, worktree, message, identity } => {
                self.blocking(id, Lane::Repo(repo.path.clone()), move |places| {
                    EffectResult::Abandoned(git_work::abandon(&places.git, &repo, &worktree, &message, &identity))
                });
            }
            Effect::Diff { to: _, ack: _, repo, worktree, request } => {
                self.blocking(id, Lane::Read, move |places| {
                    EffectResult::DiffMade(Box::new(git_work::diff(&places.git, &repo, &worktree, &request)))
                });
            }
            Effect::WriteMemory(order) => {
                if self.runner.runs_elsewhere(id) {
                    self.keeper.write(id, order);
                }
            }
        }
    }

    fn effect_ended(&mut self, id: EffectId) {
        self.runner.ended(id);
    }

    fn turn_ended(&mut self, turn: TurnId) {
        self.turns.ended(turn);
    }

    fn turns_running(&self) -> usize {
        self.turns.running()
    }

    fn effects_running(&self) -> usize {
        self.runner.running()
    }

    fn stop_turns(&mut self) {
        self.turns.stop_all();
    }

    fn cancel(&mut self) {
        self.runner.cancel();
    }

    fn observe(&mut self, state: &State) {
        self.keeper.read();
        let beliefs = Beliefs::of(state);
        let places = Arc::clone(&self.places);
        let words = self.senders.words.clone();
        let life = std::mem::replace(&mut self.life, Life::Later);
        let looked = self.tokio.spawn_blocking(move || see(&beliefs, &places, life));
        self.tokio.spawn(async move {
            let world = match looked.await {
                Ok(world) => world,
                Err(error) => {
                    let why = error.try_into_panic().map_or_else(|error| error.to_string(), |p| panic_text(&*p));
                    tracing::error!(%why, "the look at the world failed");
                    World { ended: vec![format!("the look at the worktrees failed ({why})")], ..World::default() }
                }
            };
            // Only fails when the loop is gone.
            words.send(Word::Observed(world)).await.ok();
        });
    }
}

fn see(beliefs: &Beliefs, places: &Places, life: Life) -> World {
    let ended = match life {
        Life::First => end_leftovers(&places.profile_id),
        Life::Later => Vec::new(),
    };
    if life == Life::First {
        let known: Vec<PathBuf> = beliefs.known.iter().chain(&beliefs.wished).cloned().collect();
        for line in git::sweep(&places.git, &known) {
            tracing::info!("{line}");
        }
    }
    let world = look(beliefs, &places.git.worktrees, |repo, worktree| git_work::verify(&places.git, repo, worktree));
    World { ended, ..world }
}
