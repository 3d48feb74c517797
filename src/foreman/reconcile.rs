//! What a start repairs: the state says what is wanted, the world says what is there.
//!
//! After it, everything that is not final has an effect, a turn, a timer or an open decision, or says what the person
//! can do.

use super::Step;
use super::change::Change;
use super::effect::Effect;
use super::goals::tasks_of;
use super::input::World;
use super::roster::{AgentPatch, lead};
use super::state::{Request, Stage, Turn, TurnPhase, Waiter};
use super::{EffectId, Output};
use crate::protocol::{
    AgentId, AgentState, AuthStatus, BackendName, DecisionId, DecisionKind, DecisionStatus, FeedKind, GoalId,
    GoalStatus, Station, TaskId, TaskStatus,
};
use crate::turn::{Cause, Job};

impl Step<'_> {
    /// The first thing in each life.
    pub(crate) fn on_observed(&mut self, world: &World) {
        let fresh = self.state.agents.is_empty();
        self.live.ready = true;
        self.muster();
        let (backend, speed, showcase) =
            (self.settings.backend, self.settings.speed, self.settings.showcase.then_some(true));
        let user = self.settings.user_name.clone();
        self.set_status_fields(|status| {
            env!("CARGO_PKG_VERSION").clone_into(&mut status.version);
            status.backend = backend;
            status.auth = match backend {
                BackendName::Sim => AuthStatus::Ok,
                BackendName::Claude => AuthStatus::Checking,
            };
            status.speed = speed;
            status.showcase = showcase;
            status.user_name = Some(user);
        });
        self.show_engine_status();
        let mut repaired = Vec::new();
        self.restart_effects();
        self.report_world(world, &mut repaired);
        self.end_old_turns(&mut repaired);
        self.repair_tasks(&mut repaired);
        self.repair_goals(&mut repaired);
        self.settle_agents();
        let open: Vec<DecisionId> = self
            .state
            .decisions
            .values()
            .filter(|decision| decision.status == DecisionStatus::Open)
            .map(|decision| decision.id.clone())
            .collect();
        for id in open {
            self.plan_auto_answer(&id);
        }
        let repos: Vec<_> = self.state.repos.keys().cloned().collect();
        for repo in repos {
            self.refresh_soon(&repo, 0);
        }
        if !fresh && !repaired.is_empty() {
            self.feed(FeedKind::System, None, &format!("Foreman restarted: {}", repaired.join("; ")));
        }
    }

    /// Effects that were wanted are wanted still; those of the old life's turns and connections are not.
    fn restart_effects(&mut self) {
        let effects: Vec<(EffectId, Effect)> =
            self.state.effects.iter().map(|(id, effect)| (*id, effect.clone())).collect();
        for (id, effect) in effects {
            if effect.outlives_process() {
                self.out.push(Output::Effect(id, effect));
            } else {
                self.put(Change::EffectGone(id));
            }
        }
    }

    fn report_world(&mut self, world: &World, repaired: &mut Vec<String>) {
        for line in &world.ended {
            repaired.push(line.clone());
        }
        for path in &world.unknown {
            self.feed(FeedKind::System, None, &format!("an unknown directory was left alone: {path}"));
        }
        for (worktree, reason) in &world.missing {
            let found = self.state.repos.values().find_map(|repo| {
                let at = repo.worktrees.iter().find(|at| at.id == *worktree)?;
                Some((repo.id.clone(), at.task_id.clone()))
            });
            let Some((repo, task)) = found else { continue };
            if let Some(at) = self.worktree_ref(&repo, worktree) {
                self.lose_worktree(&repo, &at.id);
            }
            let Some(task) = task else { continue };
            let needs_it = self.state.tasks.get(&task).is_some_and(|record| {
                record.worktree.as_ref() == Some(worktree)
                    && matches!(record.status, TaskStatus::Doing | TaskStatus::Review)
            });
            if needs_it && !matches!(self.stage(&task), Stage::Merging { .. } | Stage::Deciding { .. }) {
                for turn in self.turns_of_task(&task) {
                    self.put(Change::TurnGone(turn));
                }
                self.set_stage(&task, Stage::Board);
                let words = format!("its worktree is not there any more ({reason}); /task {task} retry starts again");
                self.force_status(&task, TaskStatus::Blocked, Some(&words));
                self.tell_blocked(&task);
            }
        }
    }

    fn lose_worktree(&mut self, repo: &crate::protocol::RepoId, id: &crate::protocol::WorktreeId) {
        self.edit_repo(repo, |repo| {
            if let Some(at) = repo.worktrees.iter_mut().find(|at| at.id == *id)
                && at.status == crate::protocol::WorktreeStatus::Active
            {
                at.status = crate::protocol::WorktreeStatus::Abandoned;
            }
        });
        self.edit_repo_work(repo, |work| {
            if let Some(work) = work.worktrees.get_mut(id) {
                work.live = false;
            }
        });
    }

    /// Turns of the old life ended with it. Each is resumed, waits for its answer, or is settled as it was meant to.
    fn end_old_turns(&mut self, repaired: &mut Vec<String>) {
        let turns: Vec<Turn> = self.state.turns.values().cloned().collect();
        for turn in turns {
            match &turn.phase {
                TurnPhase::Wanted => {}
                TurnPhase::Preparing { effect } => {
                    if !self.state.effects.contains_key(effect) {
                        self.set_phase(turn.id, TurnPhase::Wanted);
                    }
                }
                TurnPhase::Stopping { why, withdrawn, .. } => {
                    self.put(Change::TurnGone(turn.id));
                    self.turn_stopped(&turn, *why, withdrawn.clone());
                }
                TurnPhase::Running(running) => {
                    self.put(Change::TurnGone(turn.id));
                    let mut waits_for_answer = false;
                    for (request, open) in &running.open {
                        let Request::Decision(id) = open else { continue };
                        let Some(waiter) = self.state.waiters.get(id).cloned() else { continue };
                        match waiter {
                            Waiter::Question { job, goal, .. } => {
                                let request = request.clone();
                                let waiter = Waiter::Question { turn: None, request, job, goal };
                                self.put(Change::Waiter(id.clone(), Box::new(waiter)));
                                waits_for_answer = true;
                            }
                            Waiter::Permission { request, call, keys, cwd, goal, .. } => {
                                let waiter = Waiter::Permission { turn: None, request, call, keys, cwd, goal };
                                self.put(Change::Waiter(id.clone(), Box::new(waiter)));
                            }
                            Waiter::Merge { .. } => {}
                        }
                    }
                    // An answered permission that was being confirmed is kept for the resumed turn.
                    self.detach_answered(turn.id);
                    if waits_for_answer {
                        continue;
                    }
                    if !self.settings.resume {
                        continue;
                    }
                    let name = self.display_name(turn.agent.as_str());
                    let what =
                        turn.task.as_ref().map(ToString::to_string).or(turn.goal.as_ref().map(ToString::to_string));
                    repaired.push(format!("{name} goes on with {}", what.unwrap_or_default()));
                    self.want_again(&turn, Cause::Restarted, None);
                }
            }
        }
    }

    fn detach_answered(&mut self, turn: crate::turn::TurnId) {
        let mine: Vec<(DecisionId, Waiter)> = self
            .state
            .waiters
            .iter()
            .filter(|(id, waiter)| {
                matches!(waiter, Waiter::Permission { turn: Some(at), .. } if *at == turn)
                    && self.state.decisions.get(*id).is_some_and(|decision| decision.status == DecisionStatus::Answered)
            })
            .map(|(id, waiter)| (id.clone(), waiter.clone()))
            .collect();
        for (id, waiter) in mine {
            if let Waiter::Permission { request, call, keys, cwd, goal, .. } = waiter {
                let waiter = Waiter::Permission { turn: None, request, call, keys, cwd, goal };
                self.put(Change::Waiter(id, Box::new(waiter)));
            }
        }
    }

    fn repair_tasks(&mut self, repaired: &mut Vec<String>) {
        let tasks: Vec<TaskId> = self.state.tasks.keys().cloned().collect();
        for id in tasks {
            let Some(task) = self.state.tasks.get(&id).cloned() else { continue };
            let effect = match self.stage(&id) {
                Stage::Preparing { effect, .. }
                | Stage::Abandoning { effect }
                | Stage::Collecting { effect }
                | Stage::Testing { effect }
                | Stage::Merging { effect, .. } => Some(effect),
                Stage::Board | Stage::Quieting { .. } | Stage::Reviewing | Stage::Deciding { .. } => None,
            };
            if effect.is_some_and(|effect| self.state.effects.contains_key(&effect)) {
                continue;
            }
            if effect.is_some() {
                self.set_stage(&id, Stage::Board);
            }
            match task.status {
                TaskStatus::Doing => self.repair_doing(&id, repaired),
                TaskStatus::Review => self.repair_review(&id, repaired),
                TaskStatus::Todo | TaskStatus::Done | TaskStatus::Blocked | TaskStatus::Cancelled => {}
            }
        }
    }

    fn repair_doing(&mut self, id: &TaskId, repaired: &mut Vec<String>) {
        let waits = self.state.decisions.values().any(|decision| {
            decision.status == DecisionStatus::Open
                && decision.kind == DecisionKind::Question
                && decision.task_id.as_ref() == Some(id)
        });
        if waits || !self.turns_of_task(id).is_empty() {
            return;
        }
        repaired.push(format!("{id} is back on the board"));
        self.edit_task(id, |task| task.status = TaskStatus::Todo);
        let worker = self.state.tasks.get(id).and_then(|task| task.assignee.clone());
        if worker.is_some_and(|worker| !self.is_active(&worker)) {
            self.edit_task(id, |task| task.assignee = None);
        }
    }

    fn repair_review(&mut self, id: &TaskId, repaired: &mut Vec<String>) {
        match self.stage(id) {
            Stage::Deciding { decision } => {
                if self.state.decisions.get(&decision).is_some_and(|at| at.status == DecisionStatus::Open) {
                    return;
                }
            }
            Stage::Reviewing => {
                if self
                    .turns_of_task(id)
                    .iter()
                    .any(|turn| self.state.turns.get(turn).is_some_and(|turn| turn.job == Job::Review))
                {
                    return;
                }
            }
            Stage::Quieting { .. } => return,
            Stage::Board
            | Stage::Preparing { .. }
            | Stage::Abandoning { .. }
            | Stage::Collecting { .. }
            | Stage::Testing { .. }
            | Stage::Merging { .. } => {
                // The worker's turn may still be to end; then it collects.
                let working = self
                    .state
                    .turns
                    .values()
                    .any(|turn| turn.task.as_ref() == Some(id) && matches!(turn.job, Job::Work | Job::Followup));
                if working {
                    return;
                }
            }
        }
        repaired.push(format!("{id} is tested and reviewed again"));
        self.collect(id);
    }

    fn repair_goals(&mut self, repaired: &mut Vec<String>) {
        let planning: Vec<GoalId> = self
            .state
            .goals
            .values()
            .filter(|goal| goal.status == GoalStatus::Planning)
            .map(|goal| goal.id.clone())
            .collect();
        for id in planning {
            let lead_at_it =
                self.state.turns.values().any(|turn| turn.agent == lead() && turn.goal.as_ref() == Some(&id));
            let question = self.state.waiters.iter().any(|(decision, waiter)| {
                matches!(waiter, Waiter::Question { turn: None, goal: Some(goal), .. } if *goal == id)
                    && self.state.decisions.get(decision).is_some_and(|at| at.status == DecisionStatus::Open)
            });
            if lead_at_it || question {
                continue;
            }
            if tasks_of(self.state, &id).next().is_some() {
                repaired.push(format!("{id} was picked up after a restart"));
                self.planning_ended(&id, false, None);
            } else {
                repaired.push(format!("{id} is planned again"));
                self.want_turn(lead(), Job::Plan, None, Some(id), Cause::Restarted, 0);
            }
        }
    }

    /// Nobody shows work of the old life: waiting ones wait, the rest is ready.
    fn settle_agents(&mut self) {
        let agents: Vec<AgentId> = self.state.agents.keys().cloned().collect();
        for agent in agents {
            if !self.is_active(&agent) {
                continue;
            }
            let waiting =
                self.state.waiters.iter().any(|(id, waiter)| {
                    matches!(waiter, Waiter::Question { .. } | Waiter::Permission { .. })
                        && self.state.decisions.get(id).is_some_and(|decision| {
                            decision.agent_id == agent && decision.status == DecisionStatus::Open
                        })
                });
            let Some(record) = self.state.agents.get(&agent).cloned() else { continue };
            if waiting {
                self.settle_agent(&agent, AgentState::WaitingUser, Station::User, "waiting for your answer");
            } else if !matches!(record.state, AgentState::Done | AgentState::Blocked | AgentState::Idle) {
                let station = if agent == lead() { Station::Meeting } else { Station::Lounge };
                self.settle_agent(&agent, AgentState::Idle, station, "ready");
            }
            let attached = record.task_id.as_ref().is_some_and(|task| {
                self.state.tasks.get(task).is_some_and(|task| {
                    !matches!(task.status, TaskStatus::Done | TaskStatus::Cancelled)
                        && task.assignee.as_ref() == Some(&agent)
                })
            });
            if record.task_id.is_some() && !attached {
                self.patch_agent(&agent, AgentPatch::default().free());
            }
        }
    }
}
