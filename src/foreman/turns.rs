//! A turn's life: what an engine reports, and what its end means for agent, task and goal.

use super::Step;
use super::change::Change;
use super::effect::Effect;
use super::roster::{AgentPatch, lead};
use super::state::{Counter, Running, Session, Stage, StopWhy, Turn, TurnPhase};
use super::text::{one_line, truncate};
use crate::protocol::{
    AgentId, AgentState, AuthStatus, FeedKind, GoalId, LogKind, NotifyLevel, RepoId, Station, TaskId, TaskStatus,
};
use crate::turn::{Cause, Job, TurnCommand, TurnEnd, TurnEvent, TurnFailure, TurnId};

/// Follow-ups in which a worker that forgot to report is asked to.
const NUDGES: u32 = 1;
/// Passing failures in a row after which a task is blocked.
const RETRIES: u32 = 5;

impl Step<'_> {
    /// Wants a turn; it starts when its agent is free.
    pub(crate) fn want_turn(
        &mut self,
        agent: AgentId,
        job: Job,
        task: Option<TaskId>,
        goal: Option<GoalId>,
        cause: Cause,
        hops: u8,
    ) -> TurnId {
        let id = TurnId(self.count(Counter::Turn));
        let goal = goal.or_else(|| task.as_ref().and_then(|task| self.state.tasks.get(task)?.goal_id.clone()));
        self.put(Change::Turn(Box::new(Turn {
            id,
            agent,
            job,
            task,
            goal,
            cause,
            phase: TurnPhase::Wanted,
            created_at: self.now,
            not_before: None,
            inbox: Vec::new(),
            hops,
        })));
        id
    }

    /// Wants an interrupted turn again; a follow-up keeps the messages it is about, and a turn that was asked for
    /// something in particular is still asked for it.
    pub(crate) fn want_again(&mut self, turn: &Turn, cause: Cause, not_before: Option<u64>) {
        let cause = match &turn.cause {
            Cause::ChangesRequested { .. }
            | Cause::CiFailed { .. }
            | Cause::Conflict { .. }
            | Cause::Answer { .. } => turn.cause.clone(),
            Cause::Start
            | Cause::HandOver { .. }
            | Cause::Restarted
            | Cause::Continue { .. }
            | Cause::Retry { .. }
            | Cause::Nudge
            | Cause::Messages => cause,
        };
        let id = self.want_turn(turn.agent.clone(), turn.job, turn.task.clone(), turn.goal.clone(), cause, turn.hops);
        let Some(mut wanted) = self.state.turns.get(&id).cloned() else { return };
        wanted.not_before = not_before;
        if turn.job == Job::Followup {
            wanted.inbox.clone_from(&turn.inbox);
        }
        self.put(Change::Turn(Box::new(wanted)));
    }

    /// The running part of a turn.
    pub(crate) fn running(&self, id: TurnId) -> Option<&Running> {
        match &self.state.turns.get(&id)?.phase {
            TurnPhase::Running(running) => Some(running),
            TurnPhase::Wanted | TurnPhase::Preparing { .. } | TurnPhase::Stopping { .. } => None,
        }
    }

    /// Changes the running part of a turn.
    pub(crate) fn edit_running(&mut self, id: TurnId, edit: impl FnOnce(&mut Running)) {
        let Some(mut turn) = self.state.turns.get(&id).cloned() else { return };
        let TurnPhase::Running(running) = &mut turn.phase else { return };
        let before = running.clone();
        edit(running);
        if before != *running {
            self.put(Change::Turn(Box::new(turn)));
        }
    }

    pub(crate) fn set_phase(&mut self, id: TurnId, phase: TurnPhase) {
        let Some(mut turn) = self.state.turns.get(&id).cloned() else { return };
        turn.phase = phase;
        self.put(Change::Turn(Box::new(turn)));
    }

    /// Stops the clock of a turn that waits for the person; it holds no slot from now on.
    pub(crate) fn mark_waiting(&mut self, id: TurnId) {
        let now = self.now;
        self.edit_running(id, |running| {
            if let Some(since) = running.working_since.take() {
                running.used_ms += now.saturating_sub(since);
            }
        });
    }

    /// Tells a running turn an answer. A turn that gave its slot up gets it when one is free.
    pub(crate) fn tell_turn(&mut self, id: TurnId, command: TurnCommand) {
        let Some(turn) = self.state.turns.get(&id) else { return };
        let TurnPhase::Running(running) = &turn.phase else { return };
        let worker = turn.agent != lead();
        let still_waiting = !running.open.is_empty()
            && running.open.values().any(|request| matches!(request, super::state::Request::Decision(_)));
        if worker
            && running.working_since.is_none()
            && !still_waiting
            && self.slots_used() >= self.settings.max_concurrent
        {
            self.edit_running(id, |running| running.held.push(command));
            return;
        }
        let now = self.now;
        if !still_waiting {
            self.edit_running(id, |running| {
                running.working_since.get_or_insert(now);
            });
        }
        self.tell(Effect::TellTurn { turn: id, command });
    }

    /// Something an engine reports. Only a running turn has a say; one that is being stopped can only end.
    pub(crate) fn on_turn_event(&mut self, id: TurnId, event: TurnEvent) {
        let Some(turn) = self.state.turns.get(&id).cloned() else { return };
        match (&turn.phase, event) {
            (TurnPhase::Running(_), TurnEvent::Ended(end)) => self.turn_ended(&turn, &end),
            (TurnPhase::Stopping { why, withdrawn, .. }, TurnEvent::Ended(_)) => {
                let (why, withdrawn) = (*why, withdrawn.clone());
                self.put(Change::TurnGone(id));
                if !matches!(why, StopWhy::Pause | StopWhy::Shutdown) {
                    self.drop_unasked_permissions(&turn.agent, turn.task.as_ref());
                }
                self.turn_stopped(&turn, why, withdrawn);
            }
            (TurnPhase::Running(_), event) => self.turn_reports(&turn, event),
            (TurnPhase::Wanted | TurnPhase::Preparing { .. } | TurnPhase::Stopping { .. }, _) => {}
        }
    }

    fn turn_reports(&mut self, turn: &Turn, event: TurnEvent) {
        match event {
            TurnEvent::Session(session) => {
                let key = self.session_key(turn);
                self.edit_session(&key, |record| record.id = Some(session));
            }
            TurnEvent::State { state, station, activity } => {
                if self.waits_for_person(&turn.agent) {
                    return;
                }
                let patch = AgentPatch { state: Some(state), station, activity, ..AgentPatch::default() };
                self.patch_agent(&turn.agent, patch);
            }
            TurnEvent::Log(lines) => self.log_lines(&turn.agent, lines),
            TurnEvent::Say { text, to } => {
                let to = to.map(|to| self.resolve_agent(&to).map_or(to, |agent| agent.to_string()));
                self.say(&turn.agent, to.as_deref(), &text);
            }
            TurnEvent::Tool { request, tool } => self.on_tool(turn.id, request, tool),
            TurnEvent::Asked { request, call } => self.on_asked(turn.id, request, call),
            TurnEvent::Touched => {
                self.edit_running(turn.id, |running| running.touched = true);
                if let Some(repo) = self.repo_of_turn(turn) {
                    self.refresh_soon(&repo, super::repos::AFTER_WORK_MS);
                }
            }
            TurnEvent::Cost { total_usd } => self.add_cost(turn, total_usd),
            TurnEvent::Ended(_) => {}
        }
    }

    /// Sets state and station, unless a turn of the agent waits for the person: that is the more pressing one.
    pub(crate) fn patch_agent_state(&mut self, agent: &AgentId, state: AgentState, station: Station, activity: &str) {
        if !self.waits_for_person(agent) {
            self.patch_agent(agent, AgentPatch::doing(state, station, activity));
        }
    }

    /// A turn of the agent waits for an open decision.
    pub(crate) fn waits_for_person(&self, agent: &AgentId) -> bool {
        self.state
            .turns
            .values()
            .filter(|turn| turn.agent == *agent)
            .any(|turn| !self.open_decisions_of_turn(turn.id).is_empty())
    }

    /// Conversation of a turn: one per worker and task, one per lead and goal.
    pub(crate) fn session_key(&self, turn: &Turn) -> String {
        match (&turn.task, &turn.goal) {
            (Some(task), _) if turn.agent != lead() => format!("{}:{task}", turn.agent),
            (_, Some(goal)) => format!("{}:{goal}", turn.agent),
            (Some(task), None) => format!("{}:{task}", turn.agent),
            (None, None) => turn.agent.to_string(),
        }
    }

    pub(crate) fn edit_session(&mut self, key: &str, edit: impl FnOnce(&mut Session)) {
        let mut session = self.state.sessions.get(key).cloned().unwrap_or_default();
        edit(&mut session);
        session.updated_at = self.now;
        self.put(Change::Session(key.to_owned(), session));
    }

    fn add_cost(&mut self, turn: &Turn, total_usd: f64) {
        if !total_usd.is_finite() || total_usd < 0.0 {
            return;
        }
        let key = self.session_key(turn);
        let before = self.state.sessions.get(&key).map_or(0.0, |session| session.cost_usd);
        if total_usd > before {
            self.edit_session(&key, |session| session.cost_usd = total_usd);
            self.show_engine_status();
        }
    }

    /// Repository of a turn's task or goal.
    pub(crate) fn repo_of_turn(&self, turn: &Turn) -> Option<RepoId> {
        turn.task
            .as_ref()
            .and_then(|task| self.state.tasks.get(task)?.repo_id.clone())
            .or_else(|| turn.goal.as_ref().and_then(|goal| self.state.goals.get(goal)?.repo_id.clone()))
    }

    // Stopping.

    /// Stops a turn. What it says from now on counts for nothing.
    pub(crate) fn stop_turn(&mut self, id: TurnId, why: StopWhy) {
        let Some(turn) = self.state.turns.get(&id).cloned() else { return };
        match turn.phase {
            TurnPhase::Wanted | TurnPhase::Preparing { .. } => {
                // A pause keeps what is wanted; it does not start while the agent is paused.
                if !matches!(why, StopWhy::Pause | StopWhy::Shutdown) {
                    self.put(Change::TurnGone(id));
                    self.drop_unasked_permissions(&turn.agent, turn.task.as_ref());
                } else if matches!(turn.phase, TurnPhase::Preparing { .. }) {
                    self.set_phase(id, TurnPhase::Wanted);
                }
            }
            TurnPhase::Running(_) => {
                let withdrawn = if why == StopWhy::Shutdown { None } else { self.withdraw_turn_decisions(id, why) };
                self.set_phase(id, TurnPhase::Stopping { why, since: self.now, withdrawn });
                self.tell(Effect::TellTurn { turn: id, command: TurnCommand::Stop });
            }
            TurnPhase::Stopping { why: before, since, withdrawn } => {
                // Being put off shift outweighs a pause.
                if before == StopWhy::Pause && why != StopWhy::Pause {
                    self.set_phase(id, TurnPhase::Stopping { why, since, withdrawn });
                }
            }
        }
    }

    pub(crate) fn stop_turns_of_task(&mut self, task: &TaskId, why: StopWhy) {
        for id in self.turns_of_task(task) {
            self.stop_turn(id, why);
        }
    }

    /// Stops the turns on a task of all but one agent; a running review of the lead goes on.
    pub(crate) fn stop_turns_of_others(&mut self, task: &TaskId, keep: &AgentId) {
        for id in self.turns_of_task(task) {
            let other = self.state.turns.get(&id).is_some_and(|turn| turn.agent != *keep && turn.agent != lead());
            if other {
                self.stop_turn(id, StopWhy::Task);
            }
        }
    }

    pub(crate) fn turns_of_task(&self, task: &TaskId) -> Vec<TurnId> {
        self.state.turns.values().filter(|turn| turn.task.as_ref() == Some(task)).map(|turn| turn.id).collect()
    }

    /// A stopped turn is gone for good.
    pub(crate) fn turn_stopped(&mut self, turn: &Turn, why: StopWhy, withdrawn: Option<String>) {
        match why {
            StopWhy::Pause => {
                self.want_again(turn, Cause::Continue { withdrawn }, None);
                self.log(&turn.agent, LogKind::Text, "paused; the work goes on where it was");
            }
            StopWhy::Stop | StopWhy::Shutdown => {}
            StopWhy::Task => {
                let shows = self
                    .state
                    .agents
                    .get(&turn.agent)
                    .is_some_and(|agent| agent.task_id.is_some() && agent.task_id == turn.task);
                if shows && turn.agent != lead() {
                    let patch = AgentPatch::doing(AgentState::Idle, Station::Lounge, "task put aside").free();
                    self.patch_agent(&turn.agent, patch);
                } else if turn.agent == lead() {
                    self.patch_agent_state(&lead(), AgentState::Idle, Station::Meeting, "watching the task wall");
                }
            }
            StopWhy::Timeout => {
                let failure = TurnFailure { reason: "timeout".to_owned(), retry_after_ms: None, auth: false };
                self.log(&turn.agent, LogKind::Error, "the turn took too long and was stopped");
                self.turn_failed(turn, &failure);
            }
        }
    }

    // Ends.

    fn turn_ended(&mut self, turn: &Turn, end: &TurnEnd) {
        // A turn that ends takes what it waited for with it.
        for id in self.open_decisions_of_turn(turn.id) {
            self.withdraw_decision(&id, "the turn ended");
        }
        let touched = self.running(turn.id).is_some_and(|running| running.touched);
        let key = self.session_key(turn);
        self.edit_session(&key, |session| session.turns += 1);
        self.put(Change::TurnGone(turn.id));
        self.drop_unasked_permissions(&turn.agent, turn.task.as_ref());
        match end {
            TurnEnd::Completed { text } => {
                self.log(&turn.agent, LogKind::Result, "turn complete");
                if turn.agent == lead() {
                    self.lead_turn_done(turn, text);
                } else {
                    self.worker_turn_done(turn, text, touched);
                }
            }
            TurnEnd::Failed(failure) => {
                self.log(&turn.agent, LogKind::Error, &format!("turn failed: {}", failure.reason));
                self.turn_failed(turn, failure);
            }
            TurnEnd::Stopped => {
                // Nobody asked for it: as a passing failure.
                let failure = TurnFailure {
                    reason: "the turn was ended from outside".to_owned(),
                    retry_after_ms: Some(2_000),
                    auth: false,
                };
                self.turn_failed(turn, &failure);
            }
        }
        if let Some(repo) = self.repo_of_turn(turn) {
            self.refresh_soon(&repo, super::repos::SOON_MS);
        }
    }

    fn lead_turn_done(&mut self, turn: &Turn, text: &str) {
        self.patch_agent_state(&lead(), AgentState::Idle, Station::Meeting, "watching the task wall");
        if let Some(goal) = &turn.goal {
            self.planning_ended(goal, turn.job == Job::Plan, None);
        }
        if turn.job == Job::Review
            && let Some(task) = &turn.task
        {
            self.review_ended(task, text);
        }
    }

    fn worker_turn_done(&mut self, turn: &Turn, text: &str, touched: bool) {
        let agent = &turn.agent;
        let Some(task) = turn.task.as_ref().and_then(|task| self.state.tasks.get(task)).cloned() else {
            self.rest(agent, "ready");
            return;
        };
        if task.assignee.as_ref() != Some(agent) {
            self.rest(agent, "ready");
            return;
        }
        self.edit_work(&task.id, |work| work.retries = 0);
        match task.status {
            TaskStatus::Review => {
                self.rest(agent, &format!("{} in review", task.id));
                match self.stage(&task.id) {
                    Stage::Board => self.collect(&task.id),
                    Stage::Reviewing | Stage::Deciding { .. } if touched => {
                        self.withdraw_task_decisions(&task.id, "the work changed since");
                        self.stop_turns_of_task(&task.id, StopWhy::Task);
                        self.collect(&task.id);
                    }
                    _ => {}
                }
            }
            TaskStatus::Doing => self.worker_said_nothing(agent, &task.id, text),
            TaskStatus::Blocked => self.worker_is_blocked(agent, &task.id),
            TaskStatus::Todo | TaskStatus::Done | TaskStatus::Cancelled => self.rest(agent, "ready"),
        }
    }

    /// A work turn ended without saying how the task stands.
    fn worker_said_nothing(&mut self, agent: &AgentId, task: &TaskId, text: &str) {
        if self.state.turns.values().any(|turn| turn.task.as_ref() == Some(task) && turn.agent == *agent) {
            return;
        }
        let nudges = self.state.task_work.get(task).map_or(0, |work| work.nudges);
        if nudges < NUDGES {
            self.edit_work(task, |work| work.nudges += 1);
            self.want_turn(agent.clone(), Job::Work, Some(task.clone()), None, Cause::Nudge, 0);
            return;
        }
        // What there is goes to review; an unchanged worktree blocks the task when it was looked at.
        let last_words = truncate(&one_line(text), 400);
        if !last_words.is_empty() {
            self.set_summary(task, &last_words);
        }
        self.rest(agent, &format!("{task} in review"));
        self.collect_silent(task);
    }

    pub(crate) fn worker_is_blocked(&mut self, agent: &AgentId, task: &TaskId) {
        self.patch_agent_state(agent, AgentState::Blocked, Station::Desk, &format!("{task} is blocked"));
        self.tell_blocked(task);
    }

    /// Tells lead and person that a task is blocked.
    pub(crate) fn tell_blocked(&mut self, task: &TaskId) {
        let Some(record) = self.state.tasks.get(task) else { return };
        let reason = record.blocked_reason.clone().unwrap_or_default();
        let line = format!("{task} is blocked: {reason}");
        self.feed(FeedKind::Task, record.assignee.clone().as_ref().map(AgentId::as_str), &line);
        self.notify(NotifyLevel::Warn, &format!("{line} (/task {task} retry)"), None);
    }

    fn turn_failed(&mut self, turn: &Turn, failure: &TurnFailure) {
        let agent = turn.agent.clone();
        let words = truncate(&one_line(&failure.reason), 36);
        let station = if agent == lead() { Station::Meeting } else { Station::Desk };
        if failure.auth {
            let message = format!("{} can't run: {}", self.settings.engine_label, failure.reason);
            self.on_auth(AuthStatus::Failed, message, None);
        }
        if agent != lead()
            && let Some(task) = turn.task.clone()
            && self.state.tasks.get(&task).is_some_and(|task| task.status == TaskStatus::Review)
        {
            // It had handed its work in before it failed.
            self.rest(&agent, &format!("{task} in review"));
            if self.stage(&task) == Stage::Board {
                self.collect(&task);
            }
            return;
        }
        let retries = turn.task.as_ref().and_then(|task| self.state.task_work.get(task)).map_or(0, |work| work.retries);
        if (failure.auth || failure.retry_after_ms.is_some()) && retries < RETRIES {
            let station = self.state.agents.get(&agent).map_or(station, |agent| agent.station);
            self.patch_agent_state(&agent, AgentState::Error, station, &words);
            if let Some(task) = &turn.task
                && !failure.auth
            {
                self.edit_work(task, |work| work.retries += 1);
            }
            let cause = Cause::Retry { reason: failure.reason.clone() };
            let at = self.now + failure.retry_after_ms.unwrap_or(0);
            self.want_again(turn, cause, Some(at));
            return;
        }
        self.patch_agent_state(&agent, AgentState::Error, station, &format!("turn failed: {words}"));
        if agent == lead() {
            if let Some(goal) = &turn.goal {
                self.planning_ended(goal, turn.job == Job::Plan, Some(&failure.reason));
            }
            if turn.job == Job::Review
                && let Some(task) = &turn.task
            {
                self.review_ended(task, &format!("the review failed: {}", failure.reason));
            }
            return;
        }
        let Some(task) = turn.task.clone() else { return };
        if self.state.tasks.get(&task).is_some_and(|task| task.status == TaskStatus::Doing) {
            let reason = format!("session ended: {}", failure.reason);
            self.force_status(&task, TaskStatus::Blocked, Some(&reason));
            self.tell_blocked(&task);
        }
    }

    /// The agent has nothing to do for now.
    pub(crate) fn rest(&mut self, agent: &AgentId, activity: &str) {
        if !self.is_active(agent) {
            return;
        }
        let station = if *agent == lead() { Station::Meeting } else { Station::Lounge };
        self.patch_agent_state(agent, AgentState::Idle, station, activity);
    }
}
