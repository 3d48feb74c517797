//! Decisions: opening, choosing an option, withdrawing, opening again, retention.
//!
//! What an answer sets off is in `answers`.

use super::Step;
use super::change::Change;
use super::state::{Counter, StopWhy, Waiter};
use super::text::truncate;
use crate::protocol::{
    AgentId, Decision, DecisionAnswer, DecisionId, DecisionKind, DecisionStatus, FeedKind, NotifyLevel, OptionChoice,
    RepoId, TaskId, WorktreeId, label, text,
};
use crate::turn::TurnId;

/// Closed decisions kept; a snapshot carries fewer.
const CLOSED_KEPT: usize = 100;
/// Longest question, characters.
const QUESTION_CHARS: usize = 2000;
/// Longest context, characters: a command of 64 KiB must still be shown whole.
const CONTEXT_CHARS: usize = 80_000;
/// Longest option label, characters.
const OPTION_CHARS: usize = 200;

/// A decision to open.
pub(crate) struct NewDecision {
    pub(crate) agent: AgentId,
    pub(crate) kind: DecisionKind,
    pub(crate) question: String,
    pub(crate) options: Vec<String>,
    pub(crate) context: Option<String>,
    pub(crate) task: Option<TaskId>,
    pub(crate) repo: Option<RepoId>,
    pub(crate) worktree: Option<WorktreeId>,
    pub(crate) tool: Option<String>,
    pub(crate) waiter: Waiter,
}

/// The option that an answer names, by the rules of the protocol document.
pub(crate) fn choose(options: &[String], choice: Option<&OptionChoice>) -> Result<Option<String>, String> {
    let one_of = || options.join(" | ");
    match choice {
        None => Ok(None),
        Some(OptionChoice::Index(index)) => match options.get(*index as usize) {
            Some(option) => Ok(Some(option.clone())),
            None if options.is_empty() => Err(format!("option {index} is out of range: there are no options")),
            None => Err(format!("option {index} is out of range: 0 to {}", options.len() - 1)),
        },
        Some(OptionChoice::Label(words)) => {
            if let Some(option) = options.iter().find(|option| *option == words) {
                return Ok(Some(option.clone()));
            }
            let wanted = words.trim().to_lowercase();
            if wanted.is_empty() {
                return Ok(None);
            }
            if let Some(option) = options.iter().find(|option| option.to_lowercase() == wanted) {
                return Ok(Some(option.clone()));
            }
            let mut starting = options.iter().filter(|option| option.to_lowercase().starts_with(&wanted));
            match (starting.next(), starting.next()) {
                (Some(option), None) => Ok(Some(option.clone())),
                _ => Err(format!("\"{words}\" is not one of: {}", one_of())),
            }
        }
    }
}

impl Step<'_> {
    /// Opens a decision and tells the person.
    pub(crate) fn open_decision(&mut self, new: NewDecision) -> DecisionId {
        self.forget_old_decisions();
        let id = DecisionId::nth(self.count(Counter::Decision));
        let options =
            new.options.iter().map(|option| truncate(text::clean(option).trim(), OPTION_CHARS)).collect::<Vec<_>>();
        let decision = Decision {
            id: id.clone(),
            agent_id: new.agent.clone(),
            kind: new.kind,
            question: truncate(text::clean(&new.question).trim(), QUESTION_CHARS),
            options: options.into_iter().filter(|option| !option.is_empty()).collect(),
            context: new.context.map(|context| truncate(text::clean(&context).trim_end(), CONTEXT_CHARS)),
            status: DecisionStatus::Open,
            answer: None,
            task_id: new.task,
            repo_id: new.repo,
            worktree: new.worktree,
            tool: new.tool,
            created_at: self.now,
        };
        let question = decision.question.clone();
        self.put(Change::Waiter(id.clone(), Box::new(new.waiter)));
        self.put(Change::Decision(decision));
        let who = self.display_name(new.agent.as_str());
        let kind = match new.kind {
            DecisionKind::Question => "question",
            DecisionKind::Permission => "permission",
            DecisionKind::Merge => "merge review",
        };
        let line = format!("{who} needs you ({kind}): {question}");
        self.feed_to(FeedKind::Decision, Some(new.agent.as_str()), Some("user"), &line);
        self.notify(NotifyLevel::NeedUser, &format!("{who}: {}", truncate(&question, 120)), Some(&id));
        self.plan_auto_answer(&id);
        id
    }

    /// Keeps the open ones and the latest closed ones.
    fn forget_old_decisions(&mut self) {
        let closed: Vec<DecisionId> = self
            .state
            .decisions
            .values()
            .filter(|decision| decision.status != DecisionStatus::Open)
            .filter(|decision| !self.state.waiters.contains_key(&decision.id) || self.is_settled(&decision.id))
            .map(|decision| decision.id.clone())
            .collect();
        if closed.len() >= CLOSED_KEPT {
            for id in closed.iter().take(closed.len() + 1 - CLOSED_KEPT) {
                self.put(Change::DecisionGone(id.clone()));
            }
        }
    }

    /// Nobody waits for it any more.
    fn is_settled(&self, id: &DecisionId) -> bool {
        !self.state.task_work.values().any(|work| match &work.stage {
            super::state::Stage::Merging { decision, .. } => decision == id,
            _ => false,
        })
    }

    /// The open decision, or why it can't be answered.
    pub(crate) fn open_one(&self, id: &DecisionId) -> Result<Decision, String> {
        let Some(decision) = self.state.decisions.get(id) else { return Err(format!("no decision {id}")) };
        match decision.status {
            DecisionStatus::Open => Ok(decision.clone()),
            status => Err(format!("decision {id} is already {status}")),
        }
    }

    /// Records an answer that was found valid.
    pub(crate) fn record_answer(&mut self, mut decision: Decision, option: Option<String>, words: Option<String>) {
        let who = self.display_name(decision.agent_id.as_str());
        let said = match (&option, &words) {
            (Some(option), Some(words)) => format!("{option} — {words}"),
            (Some(option), None) => option.clone(),
            (None, Some(words)) => words.clone(),
            (None, None) => String::new(),
        };
        let agent = decision.agent_id.clone();
        decision.status = DecisionStatus::Answered;
        decision.answer = Some(DecisionAnswer { option, text: words, ts: self.now });
        self.live.auto.remove(&decision.id);
        self.put(Change::Decision(decision));
        let line = format!("{} answered {who}: {said}", self.settings.user_name);
        self.feed_to(FeedKind::Decision, Some("user"), Some(agent.as_str()), &line);
    }

    /// Closes an open decision that became moot. A closed one stays as it is.
    pub(crate) fn withdraw_decision(&mut self, id: &DecisionId, why: &str) {
        let Some(decision) = self.state.decisions.get(id) else { return };
        if decision.status != DecisionStatus::Open {
            return;
        }
        let mut decision = decision.clone();
        decision.status = DecisionStatus::Cancelled;
        let note = format!("(cancelled: {why})");
        decision.context = Some(match decision.context {
            Some(context) if !context.is_empty() => format!("{context}\n{note}"),
            _ => note,
        });
        self.live.auto.remove(id);
        self.put(Change::Decision(decision));
    }

    /// Opens an answered merge decision again, with the reason at its end.
    pub(crate) fn reopen_merge(&mut self, id: &DecisionId, reason: &str) {
        let Some(decision) = self.state.decisions.get(id) else { return };
        let mut decision = decision.clone();
        let old = decision.context.unwrap_or_default();
        let old = old.split("\n\nMerge refused: ").next().unwrap_or_default().to_owned();
        let reason = text::clean(reason).into_owned();
        decision.context = Some(format!("{old}\n\nMerge refused: {reason}").trim_start().to_owned());
        decision.status = DecisionStatus::Open;
        decision.answer = None;
        let agent = decision.agent_id.clone();
        self.put(Change::Decision(decision));
        self.feed(FeedKind::Error, Some(agent.as_str()), &format!("Merge refused ({id}): {reason}"));
        self.notify(NotifyLevel::NeedUser, &format!("Merge refused: {reason}"), Some(id));
        self.plan_auto_retry(id);
    }

    /// Withdraws every open decision about a task.
    pub(crate) fn withdraw_task_decisions(&mut self, task: &TaskId, why: &str) {
        let open: Vec<DecisionId> = self
            .state
            .decisions
            .values()
            .filter(|decision| decision.status == DecisionStatus::Open && decision.task_id.as_ref() == Some(task))
            .map(|decision| decision.id.clone())
            .collect();
        for id in open {
            self.withdraw_decision(&id, why);
        }
    }

    /// Withdraws the open questions and permissions of a task's worker; a merge decision stays.
    pub(crate) fn withdraw_work_decisions(&mut self, task: &TaskId, why: &str) {
        let open: Vec<DecisionId> = self
            .state
            .decisions
            .values()
            .filter(|decision| decision.status == DecisionStatus::Open && decision.task_id.as_ref() == Some(task))
            .filter(|decision| decision.kind != DecisionKind::Merge && decision.agent_id != super::roster::lead())
            .map(|decision| decision.id.clone())
            .collect();
        for id in open {
            self.withdraw_decision(&id, why);
        }
    }

    /// Withdraws the open questions and permissions that a turn waits for; gives back a question's text.
    pub(crate) fn withdraw_turn_decisions(&mut self, turn: TurnId, why: StopWhy) -> Option<String> {
        let agent = self.state.turns.get(&turn).map(|turn| turn.agent.clone())?;
        let name = self.display_name(agent.as_str());
        let mut question = None;
        for id in self.open_decisions_of_turn(turn) {
            let Some(decision) = self.state.decisions.get(&id) else { continue };
            let reason = match (why, decision.kind) {
                (StopWhy::Stop, _) => format!("{name} was stopped"),
                (_, DecisionKind::Permission) => "turn stopped".to_owned(),
                (_, DecisionKind::Question | DecisionKind::Merge) => format!("{name}'s turn was stopped"),
            };
            if decision.kind == DecisionKind::Question {
                question = Some(decision.question.clone());
            }
            self.withdraw_decision(&id, &reason);
        }
        question
    }

    /// Open questions and permissions of a turn.
    pub(crate) fn open_decisions_of_turn(&self, turn: TurnId) -> Vec<DecisionId> {
        self.state
            .decisions
            .values()
            .filter(|decision| decision.status == DecisionStatus::Open)
            .filter(|decision| match self.state.waiters.get(&decision.id) {
                Some(Waiter::Question { turn: at, .. } | Waiter::Permission { turn: at, .. }) => *at == Some(turn),
                Some(Waiter::Merge { .. }) | None => false,
            })
            .map(|decision| decision.id.clone())
            .collect()
    }

    /// The open merge decision of a task.
    pub(crate) fn open_merge_of(&self, task: &TaskId) -> Option<DecisionId> {
        self.state
            .decisions
            .values()
            .find(|decision| {
                decision.kind == DecisionKind::Merge
                    && decision.status == DecisionStatus::Open
                    && decision.task_id.as_ref() == Some(task)
            })
            .map(|decision| decision.id.clone())
    }
}

/// The fixed options of a kind.
pub(crate) fn fixed_options(kind: DecisionKind) -> Vec<String> {
    match kind {
        DecisionKind::Merge => label::MERGE_OPTIONS.iter().map(|option| (*option).to_owned()).collect(),
        DecisionKind::Permission => label::PERMISSION_OPTIONS.iter().map(|option| (*option).to_owned()).collect(),
        DecisionKind::Question => Vec::new(),
    }
}
