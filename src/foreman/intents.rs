//! Client messages: one function per message type, each with its checks, effects and ack.

use super::Step;
use super::roster::{AgentPatch, lead};
use super::state::StopWhy;
use crate::protocol::{
    AgentAction, AgentActionKind, AgentId, AgentState, AuthStatus, ClientEnvelope, ClientId, ClientMessage, FeedKind,
    ForemanStatus, NotifyLevel, ServerMessage, Station, TaskId, TaskStatus,
};

impl Step<'_> {
    /// A valid message of a client. Answers in order: what it changed, then the ack.
    pub(crate) fn on_client(&mut self, from: ClientId, envelope: ClientEnvelope) {
        let ack = envelope.id;
        if self.live.closing && !matches!(envelope.message, ClientMessage::Hello(_)) {
            self.refuse(from, ack, "the Foreman is shutting down");
            return;
        }
        match envelope.message {
            ClientMessage::Hello(_) => {
                let snapshot = super::snapshot::snapshot(self.state);
                self.reply(from, ServerMessage::Snapshot(Box::new(snapshot)));
                self.accept(from, ack, &[]);
            }
            ClientMessage::GoalSubmit(goal) => match self.submit_goal(&goal.text, goal.repo_id.as_ref()) {
                Ok(id) => self.accept(from, ack, &[("goalId", id.as_str())]),
                Err(reason) => self.refuse(from, ack, &reason),
            },
            ClientMessage::UserMessage(message) => match self.user_message(&message) {
                Ok(to) => self.accept(from, ack, &[("to", &to)]),
                Err(reason) => self.refuse(from, ack, &reason),
            },
            ClientMessage::DecisionAnswer(answer) => match self.answer_decision(&answer) {
                Ok(status) => {
                    let id = answer.decision_id.to_string();
                    self.accept(from, ack, &[("decisionId", &id), ("status", status.as_str())]);
                }
                Err(reason) => self.refuse(from, ack, &reason),
            },
            ClientMessage::TaskAction(action) => {
                match self.task_action(&action.task_id, action.action, action.arg.as_deref()) {
                    Ok(()) => self.accept(from, ack, &[("taskId", action.task_id.as_str())]),
                    Err(reason) => self.refuse(from, ack, &reason),
                }
            }
            ClientMessage::AgentAction(action) => match self.agent_action(&action) {
                Ok(()) => self.accept(from, ack, &[("agentId", action.agent_id.as_str())]),
                Err(reason) => self.refuse(from, ack, &reason),
            },
            ClientMessage::DiffRequest(request) => self.request_diff(from, ack, &request),
            ClientMessage::RepoAdd(add) => self.add_repo(from, ack, &add.path),
        }
    }

    fn agent_action(&mut self, action: &AgentAction) -> Result<(), String> {
        let agent = self.agent_named(action.agent_id.as_str())?;
        let task = match (action.action, action.arg.as_deref().map(str::trim).filter(|arg| !arg.is_empty())) {
            (AgentActionKind::Spawn, Some(arg)) => {
                let task = TaskId::from(arg);
                if !self.state.tasks.contains_key(&task) {
                    return Err(format!("no task \"{arg}\""));
                }
                if agent == lead() {
                    return Err("tasks are assigned to workers, not the lead".to_owned());
                }
                Some(task)
            }
            _ => None,
        };
        match action.action {
            AgentActionKind::Pause => self.pause(&agent)?,
            AgentActionKind::Resume => self.resume(&agent),
            AgentActionKind::Stop => self.stop_agent(&agent),
            AgentActionKind::Spawn => self.back_on_shift(&agent),
        }
        let name = self.display_name(agent.as_str());
        let arg = action.arg.as_deref().map(|arg| format!(" {arg}")).unwrap_or_default();
        self.feed(FeedKind::System, Some("user"), &format!("{name}: {}{arg}", action.action));
        if let Some(task) = task {
            self.reassign(&task, &agent)?;
            if self.state.tasks.get(&task).is_some_and(|task| task.status == TaskStatus::Blocked) {
                self.force_status(&task, TaskStatus::Todo, None);
            }
        }
        Ok(())
    }

    fn pause(&mut self, agent: &AgentId) -> Result<(), String> {
        if !self.is_active(agent) {
            return Err(format!("{} is off shift; /spawn brings it in", self.display_name(agent.as_str())));
        }
        let turns: Vec<_> = self.state.turns.values().filter(|turn| turn.agent == *agent).map(|turn| turn.id).collect();
        for turn in turns {
            self.stop_turn(turn, StopWhy::Pause);
        }
        self.show_paused(agent);
        Ok(())
    }

    fn resume(&mut self, agent: &AgentId) {
        if !self.is_active(agent) {
            self.back_on_shift(agent);
            return;
        }
        if self.state.agents.get(agent).is_some_and(|agent| agent.paused) {
            let patch = AgentPatch { paused: Some(false), activity: Some("ready".to_owned()), ..AgentPatch::default() };
            self.patch_agent(agent, patch);
        }
    }

    /// The engine's login changed, for better or worse.
    pub(crate) fn on_auth(&mut self, auth: AuthStatus, message: String, account: Option<String>) {
        let before = self.state.status.auth;
        self.set_status_fields(|status| {
            status.auth = auth;
            status.message = Some(message.clone());
            status.account = account;
        });
        if auth == AuthStatus::Failed && before != AuthStatus::Failed {
            self.feed(FeedKind::Error, None, &message);
            self.notify(NotifyLevel::Warn, &message, None);
        }
        if auth == AuthStatus::Ok && before == AuthStatus::Failed {
            self.feed(FeedKind::System, None, "the engine can run again");
            self.show_engine_status();
        }
    }

    /// Changes the Foreman's status; broadcasts only a real change.
    pub(crate) fn set_status_fields(&mut self, edit: impl FnOnce(&mut ForemanStatus)) {
        let mut status = self.state.status.clone();
        edit(&mut status);
        if status != self.state.status {
            self.put(super::Change::Status(status));
        }
    }

    /// What the engine does now, in the status line, and what was spent.
    pub(crate) fn show_engine_status(&mut self) {
        use crate::protocol::GoalStatus::{Active, Done, Planning};
        let label = &self.settings.engine_label;
        let goals = &self.state.goals;
        let running = goals.values().rfind(|goal| matches!(goal.status, Planning | Active));
        let message = match (self.settings.showcase, running, goals.values().next_back()) {
            (true, ..) => "Showcase (static)".to_owned(),
            (false, Some(goal), _) => format!("{label} - working on {}", goal.id),
            (false, None, Some(goal)) if goal.status == Done => format!("{label} - goal done"),
            _ => label.clone(),
        };
        let cents: f64 = self.state.sessions.values().map(|session| session.cost_usd).sum();
        let cost = (cents > 0.0).then(|| (cents * 1000.0).round() / 1000.0);
        self.set_status_fields(|status| {
            if status.auth != AuthStatus::Failed {
                status.message = Some(message);
            }
            status.cost_usd = cost;
        });
    }

    /// The process is about to end: turns are interrupted, what they are about stays as it is.
    pub(crate) fn on_shutdown(&mut self) {
        self.live.closing = true;
        let turns: Vec<_> = self.state.turns.keys().copied().collect();
        for turn in turns {
            // Stored as it is: the next start goes on from there. The engine is told to stop.
            if self.running(turn).is_some() {
                self.tell(super::Effect::TellTurn { turn, command: crate::turn::TurnCommand::Stop });
            }
        }
    }

    /// Shows an agent's place without a reason to speak of.
    pub(crate) fn settle_agent(&mut self, agent: &AgentId, state: AgentState, station: Station, activity: &str) {
        self.patch_agent(agent, AgentPatch::doing(state, station, activity));
    }
}
