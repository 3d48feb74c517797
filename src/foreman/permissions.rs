//! Tool calls that wait for the judge or the person: `(turn, request)` is the only key.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::change::Change;
use super::decisions::{NewDecision, fixed_options};
use super::effect::{Effect, EffectResult};
use super::state::{Grant, JudgePurpose, Request, Waiter};
use super::text::{one_line, truncate};
use super::{Ask, EffectId, Step};
use crate::policy::{Area, Ask as Asked, Role, ScopeKey, ToolCall, Verdict};
use crate::protocol::{
    AgentId, AgentState, DecisionId, DecisionKind, DecisionStatus, LogKind, RepoId, Station, TaskId, label,
};
use crate::turn::{CallVerdict, RequestId, TurnCommand, TurnId};

/// Name of the agents' own tool server; its tools are answered here and never asked for.
pub(crate) const OWN_SERVER: &str = "agentcraft";

impl Step<'_> {
    /// An engine asks before a tool call.
    pub(crate) fn on_asked(&mut self, turn: TurnId, request: RequestId, call: ToolCall) {
        if self.has_request(turn, &request) {
            return;
        }
        self.judge(turn, request, call, JudgePurpose::First);
    }

    /// Has a call judged; the request waits for it.
    pub(crate) fn judge(&mut self, turn: TurnId, request: RequestId, call: ToolCall, purpose: JudgePurpose) {
        let Some(area) = self.area_of(turn) else { return };
        let effect = Effect::Judge { turn, request: request.clone(), call: call.clone(), area };
        let id = self.ask(effect, Ask::Judge { turn, request: request.clone() });
        self.edit_running(turn, |running| {
            running.open.insert(request, Request::Judging { effect: id, call, purpose });
        });
    }

    /// The judge's word arrived.
    pub(crate) fn on_judged(&mut self, effect: EffectId, turn: TurnId, request: &RequestId, result: EffectResult) {
        let (call, purpose) = match self.running(turn).and_then(|running| running.open.get(request)) {
            Some(Request::Judging { effect: at, call, purpose }) if *at == effect => (call.clone(), purpose.clone()),
            _ => return,
        };
        let verdict = match result {
            EffectResult::Judged(verdict) => verdict,
            EffectResult::Crashed(reason) => Verdict::Deny(format!("the call could not be judged: {reason}")),
            _ => Verdict::Deny("the call could not be judged".to_owned()),
        };
        match verdict {
            Verdict::Allow => {
                if let JudgePurpose::Confirm { decision } = &purpose {
                    self.store_grants(turn, decision);
                }
                self.allow_call(turn, request);
            }
            Verdict::Deny(reason) => {
                if let Some(agent) = self.state.turns.get(&turn).map(|turn| turn.agent.clone()) {
                    self.log(&agent, LogKind::Error, &format!("refused: {reason}"));
                }
                self.take_request(turn, request);
                self.tell_turn(
                    turn,
                    TurnCommand::Verdict { request: request.clone(), verdict: CallVerdict::Deny(reason) },
                );
            }
            Verdict::Ask(ask) => self.call_asks(turn, request, call, &purpose, ask),
        }
    }

    fn call_asks(&mut self, turn: TurnId, request: &RequestId, call: ToolCall, purpose: &JudgePurpose, ask: Asked) {
        if let JudgePurpose::Confirm { decision } = purpose {
            let covered = match self.state.waiters.get(decision) {
                Some(Waiter::Permission { keys, .. }) => ask.keys.is_subset(keys),
                Some(Waiter::Question { .. } | Waiter::Merge { .. }) | None => false,
            };
            if covered {
                self.store_grants(turn, decision);
                self.allow_call(turn, request);
                return;
            }
            // The world changed since the card: more is needed than it said.
        }
        if self.granted(turn, &ask.keys) {
            self.allow_call(turn, request);
            return;
        }
        if let Some(decision) = self.waiting_answer(turn, &call, &ask.keys) {
            self.attach(turn, request, call, &decision);
            return;
        }
        self.open_permission(turn, request, call, ask, matches!(purpose, JudgePurpose::Confirm { .. }));
    }

    fn allow_call(&mut self, turn: TurnId, request: &RequestId) {
        self.take_request(turn, request);
        self.tell_turn(turn, TurnCommand::Verdict { request: request.clone(), verdict: CallVerdict::Allow });
    }

    fn granted(&self, turn: TurnId, keys: &BTreeSet<ScopeKey>) -> bool {
        let Some((agent, repo)) = self.agent_and_repo(turn) else { return false };
        !keys.is_empty()
            && keys.iter().all(|key| {
                self.state.grants.contains(&Grant { agent: agent.clone(), repo: repo.clone(), key: key.clone() })
            })
    }

    fn agent_and_repo(&self, turn: TurnId) -> Option<(AgentId, RepoId)> {
        let turn = self.state.turns.get(&turn)?;
        Some((turn.agent.clone(), self.repo_of_turn(turn)?))
    }

    /// Stores the keys of an answered *always*, and releases nothing else: other cards are judged when answered.
    fn store_grants(&mut self, turn: TurnId, decision: &DecisionId) {
        let always = self
            .state
            .decisions
            .get(decision)
            .and_then(|decision| decision.answer.as_ref()?.option.as_deref())
            .is_some_and(|option| option == label::ALLOW_ALWAYS);
        if !always {
            return;
        }
        let Some((agent, repo)) = self.agent_and_repo(turn) else { return };
        let Some(Waiter::Permission { keys, .. }) = self.state.waiters.get(decision).cloned() else { return };
        for key in keys {
            self.put(Change::Grant(Grant { agent: agent.clone(), repo: repo.clone(), key }));
        }
    }

    /// A permission from before a restart that this call is the same as.
    fn waiting_answer(&self, turn: TurnId, call: &ToolCall, keys: &BTreeSet<ScopeKey>) -> Option<DecisionId> {
        let agent = &self.state.turns.get(&turn)?.agent;
        let cwd = self.area_of(turn)?.cwd;
        self.state.waiters.iter().find_map(|(id, waiter)| match waiter {
            Waiter::Permission { turn: None, call: at, keys: had, cwd: was, .. }
                if at == call && had == keys && *was == cwd =>
            {
                let decision = self.state.decisions.get(id)?;
                (decision.agent_id == *agent && decision.status != DecisionStatus::Cancelled).then(|| id.clone())
            }
            Waiter::Permission { .. } | Waiter::Question { .. } | Waiter::Merge { .. } => None,
        })
    }

    /// The resumed turn asks again for what a card from before the restart is about.
    fn attach(&mut self, turn: TurnId, request: &RequestId, call: ToolCall, id: &DecisionId) {
        let Some(Waiter::Permission { keys, cwd, goal, .. }) = self.state.waiters.get(id).cloned() else { return };
        let waiter =
            Waiter::Permission { turn: Some(turn), request: request.clone(), call: call.clone(), keys, cwd, goal };
        self.put(Change::Waiter(id.clone(), Box::new(waiter)));
        let Some(decision) = self.state.decisions.get(id).cloned() else { return };
        match decision.answer {
            None => {
                self.edit_running(turn, |running| {
                    running.open.insert(request.clone(), Request::Decision(id.clone()));
                });
                self.wait_for_person(turn, "asking permission");
            }
            Some(answer) if answer.option.as_deref() == Some(label::DENY) => {
                self.refuse_call(turn, request.clone(), answer.text.as_deref());
            }
            Some(_) => self.judge(turn, request.clone(), call, JudgePurpose::Confirm { decision: id.clone() }),
        }
    }

    fn open_permission(&mut self, turn: TurnId, request: &RequestId, call: ToolCall, ask: Asked, again: bool) {
        let Some(wanted) = self.state.turns.get(&turn).cloned() else { return };
        let Some(area) = self.area_of(turn) else { return };
        let name = self.display_name(wanted.agent.as_str());
        let shown = shown_call(&call);
        let mut context = String::new();
        if again {
            context.push_str("Something changed since you allowed it; it needs more than the card said.\n");
        }
        context.push_str(&format!("{}\ncwd: {}\n", ask.reason, area.cwd.display()));
        if shown.contains('\n') || shown.chars().count() > 160 {
            context.push_str(&format!("{shown}\n"));
        }
        context.push_str(&format!("\"{}\" covers: {}", label::ALLOW_ALWAYS, one_line(&ask.covers)));
        let repo = self.repo_of_turn(&wanted);
        let id = self.open_decision(NewDecision {
            agent: wanted.agent.clone(),
            kind: DecisionKind::Permission,
            question: format!("{name} wants to run {}", truncate(&one_line(&shown), 160)),
            options: fixed_options(DecisionKind::Permission),
            context: Some(context),
            task: wanted.task.clone(),
            repo,
            worktree: None,
            tool: Some(call.tool.clone()),
            waiter: Waiter::Permission {
                turn: Some(turn),
                request: request.clone(),
                call,
                keys: ask.keys,
                cwd: area.cwd,
                goal: wanted.goal.clone(),
            },
        });
        self.edit_running(turn, |running| {
            running.open.insert(request.clone(), Request::Decision(id));
        });
        self.wait_for_person(turn, "asking permission");
    }

    /// The agent of a turn stands next to the person.
    pub(crate) fn wait_for_person(&mut self, turn: TurnId, activity: &str) {
        let Some(agent) = self.state.turns.get(&turn).map(|turn| turn.agent.clone()) else { return };
        self.patch_agent(&agent, super::roster::AgentPatch::doing(AgentState::WaitingUser, Station::User, activity));
        self.mark_waiting(turn);
    }

    /// Where the agent of a turn may read and write.
    pub(crate) fn area_of(&self, turn: TurnId) -> Option<Area> {
        let turn = self.state.turns.get(&turn)?;
        let dir = self.dir_of_turn(turn)?;
        let has_worktree = turn.task.is_some() && turn.agent != super::roster::lead() && self.works_in_task(turn);
        let scratch: PathBuf = self.settings.scratch.join(turn.agent.as_str());
        Some(Area {
            role: if has_worktree { Role::Worker } else { Role::Lead },
            git_dir: dir.join(".git"),
            cwd: dir,
            scratch: vec![scratch],
            read_dirs: vec![self.settings.memory.clone()],
            home: self.settings.user_home.clone(),
            own_server: OWN_SERVER.to_owned(),
            lead_read_commands: Vec::new(),
        })
    }

    /// Permissions from before a restart that the resumed turn of this agent did not ask for again.
    pub(crate) fn drop_unasked_permissions(&mut self, agent: &AgentId, task: Option<&TaskId>) {
        let stale: Vec<DecisionId> = self
            .state
            .waiters
            .iter()
            .filter(|(id, waiter)| {
                matches!(waiter, Waiter::Permission { turn: None, .. })
                    && self
                        .state
                        .decisions
                        .get(*id)
                        .is_some_and(|decision| decision.agent_id == *agent && decision.task_id.as_ref() == task)
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in stale {
            self.withdraw_decision(&id, "the resumed turn did not ask for it again");
            // An answer that nobody asked for again must not serve a later call.
            self.put(Change::WaiterGone(id));
        }
    }
}

/// A call as the card shows it.
fn shown_call(call: &ToolCall) -> String {
    let field = |name: &str| call.input.get(name).and_then(serde_json::Value::as_str);
    if let Some(command) = field("command") {
        return command.to_owned();
    }
    for name in ["file_path", "path", "notebook_path", "url", "query", "pattern"] {
        if let Some(value) = field(name) {
            return format!("{} {value}", call.tool);
        }
    }
    if call.input.is_null() { call.tool.clone() } else { format!("{} {}", call.tool, call.input) }
}
