//! What the person's answer to a decision sets off, and decisions that are answered by themselves on request.

use super::decisions::choose;
use super::effect::Effect;
use super::state::{JudgePurpose, Request, Stage, Waiter};
use super::{AutoTry, Step};
use crate::protocol::{
    AgentId, AgentState, AnswerDecision, Decision, DecisionId, DecisionKind, DecisionStatus, FeedKind, LogKind,
    OptionChoice, RepoId, Station, TaskId, TaskStatus, label, text,
};
use crate::turn::{Answered, CallVerdict, Cause, RequestId, ToolAnswer, TurnCommand, TurnId};

/// Longest answer text, characters.
const ANSWER_CHARS: usize = 8000;
/// Questions kept per task or goal for later prompts.
const ANSWERED_KEPT: usize = 20;
/// How often a refused merge is answered again by itself.
const AUTO_TRIES: u32 = 3;

impl Step<'_> {
    /// The person answers; the side effects follow in the same step.
    pub(crate) fn answer_decision(&mut self, answer: &AnswerDecision) -> Result<DecisionStatus, String> {
        let id = &answer.decision_id;
        let decision = self.open_one(id)?;
        let words = answer
            .text
            .as_deref()
            .map(|words| super::text::truncate(text::clean(words).trim(), ANSWER_CHARS))
            .filter(|words| !words.is_empty());
        let option = choose(&decision.options, answer.option.as_ref())?;
        match decision.kind {
            DecisionKind::Question if option.is_none() && words.is_none() => {
                return Err("answer needs an option or text".to_owned());
            }
            DecisionKind::Permission | DecisionKind::Merge if option.is_none() => {
                return Err(format!("{} decisions need one of: {}", decision.kind, decision.options.join(" | ")));
            }
            DecisionKind::Question | DecisionKind::Permission | DecisionKind::Merge => {}
        }
        if decision.kind == DecisionKind::Merge && option.as_deref() == Some(label::MERGE) {
            self.check_mergeable(&decision)?;
        }
        self.record_answer(decision.clone(), option.clone(), words.clone());
        match decision.kind {
            DecisionKind::Question => self.question_answered(&decision, option, words),
            DecisionKind::Permission => self.permission_answered(&decision, option.as_deref(), words),
            DecisionKind::Merge => self.merge_answered(&decision, option.as_deref(), words),
        }
        Ok(self.state.decisions.get(id).map_or(DecisionStatus::Answered, |decision| decision.status))
    }

    fn question_answered(&mut self, decision: &Decision, option: Option<String>, words: Option<String>) {
        let said = match (option, words) {
            (Some(option), Some(words)) => format!("{option} — {words}"),
            (Some(option), None) => option,
            (None, words) => words.unwrap_or_default(),
        };
        let line = format!("{} answered: {said}", self.settings.user_name);
        let Some(Waiter::Question { turn, request, job, goal }) = self.state.waiters.get(&decision.id).cloned() else {
            return;
        };
        let answered = Answered { question: decision.question.clone(), answer: said };
        match (&decision.task_id, &goal) {
            (Some(task), _) => self.edit_work(task, |work| {
                work.answered.push(answered);
                let over = work.answered.len().saturating_sub(ANSWERED_KEPT);
                work.answered.drain(..over);
            }),
            (None, Some(goal)) => self.edit_goal_work(goal, |work| {
                work.answered.push(answered);
                let over = work.answered.len().saturating_sub(ANSWERED_KEPT);
                work.answered.drain(..over);
            }),
            (None, None) => {}
        }
        let agent = decision.agent_id.clone();
        if let Some(turn) = turn
            && self.take_request(turn, &request).is_some()
        {
            self.tell_turn(turn, TurnCommand::Answer { request, answer: ToolAnswer { ok: true, text: line } });
            self.back_from_waiting(&agent, "got your answer");
            return;
        }
        // The turn that asked is gone (a restart): the answer starts a resumed one.
        let cause = Cause::Answer { question: decision.question.clone(), answer: line };
        self.want_turn(agent.clone(), job, decision.task_id.clone(), goal, cause, 0);
        self.back_from_waiting(&agent, "got your answer");
    }

    fn permission_answered(&mut self, decision: &Decision, option: Option<&str>, words: Option<String>) {
        let Some(Waiter::Permission { turn, request, call, .. }) = self.state.waiters.get(&decision.id).cloned() else {
            return;
        };
        let agent = decision.agent_id.clone();
        // After a restart nobody asks yet: the answer is kept until the resumed turn asks for the same call.
        let Some(turn) = turn.filter(|turn| self.has_request(*turn, &request)) else { return };
        if option == Some(label::DENY) {
            self.refuse_call(turn, request, words.as_deref());
        } else {
            let purpose = JudgePurpose::Confirm { decision: decision.id.clone() };
            self.judge(turn, request, call, purpose);
        }
        self.back_from_waiting(&agent, "got your answer");
    }

    /// Refuses a call in the person's name.
    pub(crate) fn refuse_call(&mut self, turn: TurnId, request: RequestId, words: Option<&str>) {
        let Some(agent) = self.state.turns.get(&turn).map(|turn| turn.agent.clone()) else { return };
        let user = self.settings.user_name.clone();
        let reason = match words {
            Some(words) => format!("{user} refused this call: {words}"),
            None => format!("{user} refused this call"),
        };
        self.log(&agent, LogKind::Error, &reason);
        self.take_request(turn, &request);
        self.tell_turn(turn, TurnCommand::Verdict { request, verdict: CallVerdict::Deny(reason) });
    }

    /// The agent goes on after it waited for the person, unless another of its turns still waits.
    pub(crate) fn back_from_waiting(&mut self, agent: &AgentId, activity: &str) {
        if !self.is_active(agent) || self.state.agents.get(agent).is_some_and(|agent| agent.paused) {
            return;
        }
        let station = if *agent == super::roster::lead() { Station::Meeting } else { Station::Desk };
        self.patch_agent_state(agent, AgentState::Thinking, station, activity);
    }

    /// The checks before *Merge* is recorded: exactly the reviewed commit, and nobody changes the task meanwhile.
    fn check_mergeable(&self, decision: &Decision) -> Result<(), String> {
        let Some(task) = decision.task_id.as_ref() else {
            return Err(format!("decision {} names no task to merge", decision.id));
        };
        match self.stage(task) {
            Stage::Deciding { decision: at } if at == decision.id => Ok(()),
            _ => Err(format!("decision {} is not about the present work on {task}", decision.id)),
        }
    }

    fn merge_answered(&mut self, decision: &Decision, option: Option<&str>, words: Option<String>) {
        let Some(task) = decision.task_id.clone() else { return };
        match option {
            Some(label::MERGE) => self.want_merge(decision, &task),
            Some(label::REQUEST_CHANGES) => {
                let words = words.unwrap_or_default();
                if !words.is_empty() {
                    self.set_summary(&task, &format!("Changes requested: {words}"));
                }
                let by = self.settings.user_name.clone();
                self.send_back(&task, Cause::ChangesRequested { by, text: words });
            }
            _ => self.reject_task(decision, &task),
        }
    }

    fn reject_task(&mut self, decision: &Decision, task: &TaskId) {
        let branch = self.state.tasks.get(task).and_then(|task| task.branch.clone()).unwrap_or_default();
        self.stop_turns_of_task(task, super::state::StopWhy::Task);
        self.edit_work(task, |work| work.stage = Stage::Board);
        self.force_status(task, TaskStatus::Cancelled, None);
        self.block_dependents(task, "rejected");
        self.give_up_worktree(task, &format!("agentcraft: {task} (rejected)"));
        self.free_agents_of(task, &format!("{task} rejected"));
        let line = format!("{task} rejected; branch {branch} is kept");
        self.feed(FeedKind::Merge, Some(decision.agent_id.as_str()), &line);
    }

    // Requests of running turns.

    /// True while the turn runs and this request waits.
    pub(crate) fn has_request(&self, turn: TurnId, request: &RequestId) -> bool {
        self.running(turn).is_some_and(|running| running.open.contains_key(request))
    }

    /// Takes a waiting request out of its turn.
    pub(crate) fn take_request(&mut self, turn: TurnId, request: &RequestId) -> Option<Request> {
        let mut taken = None;
        self.edit_running(turn, |running| taken = running.open.remove(request));
        taken
    }

    // Auto-answer.

    /// Plans an answer by itself when the settings say so for this decision.
    pub(crate) fn plan_auto_answer(&mut self, id: &DecisionId) {
        if self.answers_itself(id) {
            let at = self.now + self.settings.auto_answer.delay_ms;
            self.live.auto.insert(id.clone(), AutoTry { at, tries: 0 });
        }
    }

    /// A refused merge is tried again a few times: the refusal may have been passing.
    pub(crate) fn plan_auto_retry(&mut self, id: &DecisionId) {
        if !self.answers_itself(id) {
            return;
        }
        let tries = self.live.auto.get(id).map_or(1, |auto| auto.tries);
        if tries < AUTO_TRIES {
            let at = self.now + self.settings.auto_answer.retry_ms;
            self.live.auto.insert(id.clone(), AutoTry { at, tries });
        }
    }

    fn answers_itself(&self, id: &DecisionId) -> bool {
        let Some(decision) = self.state.decisions.get(id) else { return false };
        if decision.status != DecisionStatus::Open || decision.options.is_empty() {
            return false;
        }
        let past = |until: u64| decision.id > DecisionId::nth(until);
        if self.settings.auto_answer.until.is_some_and(past) {
            return false;
        }
        if self.settings.auto_answer.kinds.contains(&decision.kind) {
            return true;
        }
        self.settings.auto_answer.demo
            && self
                .repo_of_decision(decision)
                .and_then(|repo| self.state.repo_work.get(&repo))
                .is_some_and(|work| work.demo)
    }

    fn repo_of_decision(&self, decision: &Decision) -> Option<RepoId> {
        if let Some(repo) = &decision.repo_id {
            return Some(repo.clone());
        }
        if let Some(repo) = decision.task_id.as_ref().and_then(|task| self.state.tasks.get(task)?.repo_id.clone()) {
            return Some(repo);
        }
        match self.state.waiters.get(&decision.id) {
            Some(Waiter::Question { goal, .. } | Waiter::Permission { goal, .. }) => {
                goal.as_ref().and_then(|goal| self.state.goals.get(goal)?.repo_id.clone())
            }
            Some(Waiter::Merge { .. }) | None => None,
        }
    }

    /// Answers what is due, with the first option.
    pub(crate) fn auto_answer(&mut self) {
        let now = self.now;
        let due: Vec<DecisionId> =
            self.live.auto.iter().filter(|(_, auto)| auto.at <= now).map(|(id, _)| id.clone()).collect();
        for id in due {
            let tries = self.live.auto.remove(&id).map_or(0, |auto| auto.tries) + 1;
            let answer = AnswerDecision { decision_id: id.clone(), option: Some(OptionChoice::Index(0)), text: None };
            if self.answer_decision(&answer).is_ok()
                && self.state.decisions.get(&id).is_some_and(|decision| decision.kind == DecisionKind::Merge)
            {
                // Kept so that a refusal knows how often it was tried; due never by itself.
                self.live.auto.insert(id, AutoTry { at: u64::MAX, tries });
            }
        }
    }

    /// Wants the merge of exactly the reviewed commit.
    fn want_merge(&mut self, decision: &Decision, task: &TaskId) {
        let Some(Waiter::Merge { head }) = self.state.waiters.get(&decision.id).cloned() else {
            self.reopen_merge(&decision.id, "the reviewed commit is not known; put the task back with /task retry");
            return;
        };
        let order = self.merge_order(decision, task, &head);
        match order {
            Ok(build) => {
                let id = super::EffectId(self.count(super::state::Counter::Effect));
                let order = build(id);
                self.set_stage(task, Stage::Merging { decision: decision.id.clone(), effect: id });
                self.want_as(id, Effect::Merge(Box::new(order)));
            }
            Err(reason) => self.reopen_merge(&decision.id, &reason),
        }
    }
}
