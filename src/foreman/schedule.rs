//! Who works next: tasks to workers, turns to slots.
//!
//! Runs after every input; it holds no state of its own.

use super::EffectId;
use super::Step;
use super::change::Change;
use super::effect::{Effect, EffectResult, RepoRef};
use super::roster::{AgentPatch, lead};
use super::state::{Running, Stage, Turn, TurnPhase};
use super::tasks::ready;
use crate::protocol::{AgentId, AgentState, AuthStatus, GoalId, GoalStatus, LogKind, Station, TaskId, TaskStatus};
use crate::turn::{Job, TurnCommand, TurnId, TurnSpec};

/// First pause after a failed start, ms; doubles up to the second.
const START_PAUSE_MS: u64 = 2_000;
const START_PAUSE_MAX_MS: u64 = 60_000;

/// Pause before the next try after so many failures in a row, ms.
pub(crate) fn start_pause(failures: u32) -> u64 {
    START_PAUSE_MS.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(START_PAUSE_MAX_MS)
}

impl Step<'_> {
    /// Worker turns that work at this moment, and worktrees being made for one.
    pub(crate) fn slots_used(&self) -> usize {
        let lead = lead();
        let working = self
            .state
            .turns
            .values()
            .filter(|turn| turn.agent != lead)
            .filter(|turn| match &turn.phase {
                TurnPhase::Running(running) => running.working_since.is_some(),
                TurnPhase::Stopping { .. } | TurnPhase::Preparing { .. } => true,
                TurnPhase::Wanted => false,
            })
            .count();
        let preparing =
            self.state.task_work.values().filter(|work| matches!(work.stage, Stage::Preparing { .. })).count();
        working + preparing
    }

    /// Gives ready tasks to free workers.
    pub(crate) fn assign_tasks(&mut self) {
        if self.state.status.auth == AuthStatus::Failed {
            return;
        }
        let goals: Vec<GoalId> = self
            .state
            .goals
            .values()
            .filter(|goal| goal.status == GoalStatus::Active)
            .map(|goal| goal.id.clone())
            .collect();
        for goal in goals {
            for task in ready(self.state, &goal) {
                let wanted = self.wanted_turns_in_line();
                if self.slots_used() + wanted >= self.settings.max_concurrent {
                    return;
                }
                if let Some(worker) = self.worker_for(&task) {
                    self.start_work(&task, &worker);
                }
            }
        }
    }

    /// Worker turns that could start at once and take a slot before new work does.
    fn wanted_turns_in_line(&self) -> usize {
        let lead = lead();
        self.state
            .turns
            .values()
            .filter(|turn| turn.agent != lead && turn.phase == TurnPhase::Wanted && self.may_start(turn))
            .count()
    }

    /// The worker that takes a ready task now, if any.
    fn worker_for(&self, task: &TaskId) -> Option<AgentId> {
        let work = self.state.task_work.get(task).cloned().unwrap_or_default();
        if work.stage != Stage::Board || work.not_before.is_some_and(|at| at > self.now) {
            return None;
        }
        let assignee = self.state.tasks.get(task).and_then(|task| task.assignee.clone());
        if let Some(assignee) = assignee
            && self.is_active(&assignee)
        {
            return self.is_free(&assignee).then_some(assignee);
        }
        self.workers_in_order().into_iter().find(|worker| self.is_free(worker))
    }

    /// On shift, not paused, and with nothing in its hands.
    pub(crate) fn is_free(&self, agent: &AgentId) -> bool {
        self.state.agents.get(agent).is_some_and(|agent| agent.active && !agent.paused)
            && !self.state.turns.values().any(|turn| turn.agent == *agent)
            && !self
                .state
                .tasks
                .values()
                .any(|task| task.status == TaskStatus::Doing && task.assignee.as_ref() == Some(agent))
            && !self
                .state
                .task_work
                .values()
                .any(|work| matches!(&work.stage, Stage::Preparing { worker, .. } if worker == agent))
            && !self.state.waiters.iter().any(|(id, waiter)| {
                matches!(waiter, super::state::Waiter::Question { turn: None, .. })
                    && self.state.decisions.get(id).is_some_and(|decision| {
                        decision.agent_id == *agent && decision.status == crate::protocol::DecisionStatus::Open
                    })
            })
    }

    /// Starts what is wanted and can start.
    pub(crate) fn start_turns(&mut self) {
        self.release_held_answers();
        if self.state.status.auth == AuthStatus::Failed {
            return;
        }
        let wanted: Vec<TurnId> =
            self.state.turns.values().filter(|turn| turn.phase == TurnPhase::Wanted).map(|turn| turn.id).collect();
        for id in wanted {
            let Some(turn) = self.state.turns.get(&id).cloned() else { continue };
            if self.is_moot(&turn) {
                self.put(Change::TurnGone(id));
                self.drop_unasked_permissions(&turn.agent, turn.task.as_ref());
                continue;
            }
            let full = turn.agent != lead() && self.slots_used() >= self.settings.max_concurrent;
            if !full && self.may_start(&turn) {
                self.start_turn(&turn);
            }
        }
    }

    /// Answers that waited for a slot.
    fn release_held_answers(&mut self) {
        let holding: Vec<TurnId> = self
            .state
            .turns
            .values()
            .filter(|turn| matches!(&turn.phase, TurnPhase::Running(running) if !running.held.is_empty()))
            .map(|turn| turn.id)
            .collect();
        for id in holding {
            if self.slots_used() >= self.settings.max_concurrent {
                return;
            }
            let mut held: Vec<TurnCommand> = Vec::new();
            let now = self.now;
            self.edit_running(id, |running| {
                held = std::mem::take(&mut running.held);
                running.working_since.get_or_insert(now);
            });
            for command in held {
                self.tell(Effect::TellTurn { turn: id, command });
            }
        }
    }

    /// The reason for a wanted turn is gone.
    fn is_moot(&self, turn: &Turn) -> bool {
        let Some(task) = &turn.task else {
            return turn.goal.as_ref().is_some_and(|goal| {
                turn.job == Job::Plan
                    && self.state.goals.get(goal).is_none_or(|goal| goal.status != GoalStatus::Planning)
            });
        };
        let Some(record) = self.state.tasks.get(task) else { return true };
        match turn.job {
            Job::Work => {
                // Handed in, but its turn has yet to end (it was interrupted after its report).
                let handed_in = record.status == TaskStatus::Review && self.stage(task) == Stage::Board;
                !(record.status == TaskStatus::Doing || handed_in) || record.assignee.as_ref() != Some(&turn.agent)
            }
            Job::Review => self.stage(task) != Stage::Reviewing,
            Job::Plan | Job::Followup => record.status == TaskStatus::Cancelled,
        }
    }

    /// Its agent is on shift, not paused and has no other turn in the way; the lead runs one turn per goal.
    fn may_start(&self, turn: &Turn) -> bool {
        let Some(agent) = self.state.agents.get(&turn.agent) else { return false };
        if !agent.active || agent.paused || turn.not_before.is_some_and(|at| at > self.now) {
            return false;
        }
        let lead = lead();
        let in_the_way = self.state.turns.values().any(|other| {
            other.id != turn.id
                && other.agent == turn.agent
                && other.phase != TurnPhase::Wanted
                && (turn.agent != lead || other.goal == turn.goal)
        });
        let preparing = self
            .state
            .task_work
            .values()
            .any(|work| matches!(&work.stage, Stage::Preparing { worker, .. } if *worker == turn.agent));
        !in_the_way && !preparing
    }

    /// Starts a turn, or first has the copy made that it works in.
    fn start_turn(&mut self, turn: &Turn) {
        if self.works_in_task(turn) {
            self.launch(turn);
            return;
        }
        let (Some(repo), Some(dir)) = (self.repo_ref_of_turn(turn), self.dir_of_turn(turn)) else {
            self.put(Change::TurnGone(turn.id));
            return;
        };
        let effect = self.want(Effect::PrepareCopy { repo, turn: turn.id, dir });
        self.set_phase(turn.id, TurnPhase::Preparing { effect });
    }

    /// The copy of a lead's turn (or of a worker without a task) is at the base head.
    pub(crate) fn on_copy_prepared(&mut self, effect: EffectId, turn: TurnId, repo: &RepoRef, result: EffectResult) {
        let Some(record) = self.state.turns.get(&turn).cloned() else { return };
        if record.phase != (TurnPhase::Preparing { effect }) {
            return;
        }
        match result {
            EffectResult::CopyPrepared(Ok(_)) => self.launch(&record),
            EffectResult::CopyPrepared(Err(reason)) | EffectResult::Crashed(reason) => {
                self.log(&record.agent, LogKind::Error, &format!("no copy of {} to work in: {reason}", repo.id));
                let mut again = record;
                again.phase = TurnPhase::Wanted;
                again.not_before = Some(self.now + START_PAUSE_MAX_MS / 4);
                self.put(Change::Turn(Box::new(again)));
            }
            _ => {}
        }
    }

    /// Hands the turn to the engine.
    fn launch(&mut self, turn: &Turn) {
        let (Some(dir), Some(repo)) = (self.dir_of_turn(turn), self.repo_ref_of_turn(turn)) else {
            self.put(Change::TurnGone(turn.id));
            return;
        };
        let brief = self.brief(turn, &repo);
        self.set_phase(
            turn.id,
            TurnPhase::Running(Running {
                started_at: self.now,
                open: std::collections::BTreeMap::new(),
                held: Vec::new(),
                touched: false,
                used_ms: 0,
                working_since: Some(self.now),
            }),
        );
        let Some(area) = self.area_of(turn.id) else { return };
        let session = self.session_key(turn);
        let resume = self.state.sessions.get(&session).and_then(|session| session.id.clone());
        let (name, role) = match self.state.agents.get(&turn.agent) {
            Some(agent) => (agent.name.clone(), agent.role),
            None => return,
        };
        let subject = turn.task.as_ref().map(TaskId::as_str).or(turn.goal.as_ref().map(GoalId::as_str));
        let word = if resume.is_some() { "Resuming" } else { "Starting" };
        let job = match turn.job {
            Job::Plan => "plan",
            Job::Work => "work",
            Job::Review => "review",
            Job::Followup => "followup",
        };
        self.log(&turn.agent, LogKind::Text, &format!("{word} {job} {}", subject.unwrap_or_default()));
        let (state, station, activity) = match (turn.job, turn.task.as_ref()) {
            (Job::Plan, _) => (AgentState::Thinking, Station::Meeting, "planning".to_owned()),
            (Job::Review, Some(task)) => (AgentState::Reading, Station::MergeStation, format!("reviewing {task}")),
            (Job::Work, Some(task)) => (AgentState::Thinking, Station::Desk, format!("working on {task}")),
            _ if turn.agent == lead() => (AgentState::Thinking, Station::Meeting, "reading messages".to_owned()),
            _ => (AgentState::Thinking, Station::Desk, "reading messages".to_owned()),
        };
        self.patch_agent_state(&turn.agent, state, station, &activity);
        if turn.agent != lead() && turn.task.is_some() {
            let patch = AgentPatch { task: Some(turn.task.clone()), ..AgentPatch::default() };
            self.patch_agent(&turn.agent, patch);
        }
        self.tell(Effect::StartTurn(Box::new(TurnSpec {
            turn: turn.id,
            agent: turn.agent.clone(),
            agent_name: name,
            role,
            job: turn.job,
            dir,
            area,
            session,
            resume,
            brief,
        })));
    }
}
