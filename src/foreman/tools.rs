//! Meaning of the agents' own tools. Every answer carries the caller's unread messages; an error never ends the turn.

use super::Step;
use super::decisions::NewDecision;
use super::memory::NewNote;
use super::roster::{AgentPatch, lead};
use super::state::{Request, Stage, Turn, Waiter};
use super::tasks::{NewTask, Transition};
use super::text::{one_line, truncate};
use crate::protocol::{AgentId, AgentState, DecisionKind, FeedKind, LogKind, Station, TaskId, TaskStatus, text};
use crate::turn::{AgentTool, Cause, RequestId, ToolAnswer, ToolStatus, TurnCommand, TurnId, UpdateTask};

/// Options of a question.
const OPTIONS: usize = 6;

/// What a tool gives back at once; `Later` when something outside must happen first.
enum Answered {
    Now(String),
    Later,
}

impl Step<'_> {
    /// An agent calls one of its own tools.
    pub(crate) fn on_tool(&mut self, turn: TurnId, request: RequestId, tool: AgentTool) {
        let Some(record) = self.state.turns.get(&turn).cloned() else { return };
        if self.has_request(turn, &request) {
            return;
        }
        let answer = match self.call_tool(&record, &request, tool) {
            Ok(Answered::Later) => return,
            Ok(Answered::Now(words)) => {
                let words = words + &self.inbox_block(&record.agent);
                ToolAnswer { ok: true, text: words }
            }
            Err(reason) => {
                let words = format!("Error: {reason}") + &self.inbox_block(&record.agent);
                ToolAnswer { ok: false, text: words }
            }
        };
        self.tell_turn(turn, TurnCommand::Answer { request, answer });
    }

    fn call_tool(&mut self, turn: &Turn, request: &RequestId, tool: AgentTool) -> Result<Answered, String> {
        let agent = &turn.agent;
        let is_lead = *agent == lead();
        match tool {
            AgentTool::SendMessage { to, text } => self.tool_send(turn, &to, &text).map(Answered::Now),
            AgentTool::AskUser { question, options, context } => {
                self.tool_ask(turn, request, &question, options, context).map(|()| Answered::Later)
            }
            AgentTool::WriteMemory { title, body, scope, mode } => {
                let note = NewNote { title, body, scope, mode };
                self.write_memory(turn.id, request, agent, note, turn.goal.as_ref()).map(|()| Answered::Later)
            }
            AgentTool::ReadMemory { id, query } => {
                self.read_memory(agent, id.as_deref(), query.as_deref()).map(Answered::Now)
            }
            AgentTool::UpdateTask(update) if is_lead => self.lead_updates(turn, &update).map(Answered::Now),
            AgentTool::UpdateTask(update) => self.worker_updates(turn, &update).map(Answered::Now),
            AgentTool::ReportStatus { activity, note } => {
                let activity = truncate(&one_line(&text::clean(&activity)), 80);
                if !self.waits_for_person(agent) {
                    self.patch_agent(agent, AgentPatch { activity: Some(activity), ..AgentPatch::default() });
                }
                if let Some(note) = note.filter(|note| !note.trim().is_empty()) {
                    self.log(agent, LogKind::Text, &note);
                }
                Ok(Answered::Now("ok".to_owned()))
            }
            AgentTool::ListTasks => Ok(Answered::Now(self.board_text())),
            AgentTool::CreateTask { .. } | AgentTool::RequestMerge { .. } if !is_lead => {
                Err("only the lead may do that".to_owned())
            }
            AgentTool::CreateTask { title, description, deps, assignee, priority } => {
                let assignee = assignee.filter(|name| !name.trim().is_empty());
                let new = NewTask {
                    title,
                    description,
                    deps,
                    assignee: None,
                    priority,
                    repo: None,
                    goal: turn.goal.clone(),
                    created_by: agent.to_string(),
                };
                self.tool_create(new, assignee.as_deref()).map(Answered::Now)
            }
            AgentTool::RequestMerge { task_id, summary } => {
                self.tool_request_merge(&task_id, &summary).map(Answered::Now)
            }
        }
    }

    fn tool_send(&mut self, turn: &Turn, to: &str, words: &str) -> Result<String, String> {
        if words.trim().is_empty() {
            return Err("the message is empty".to_owned());
        }
        let to = to.trim();
        let to = match to.to_lowercase().as_str() {
            "all" | "everyone" => "all".to_owned(),
            "user" => "user".to_owned(),
            "lead" => lead().to_string(),
            name if name == self.settings.user_name.to_lowercase() => "user".to_owned(),
            name => match self.resolve_agent(name) {
                Some(agent) => agent.to_string(),
                None => {
                    let team: Vec<String> = self
                        .state
                        .agents
                        .values()
                        .filter(|agent| agent.active)
                        .map(|agent| agent.name.clone())
                        .collect();
                    return Err(format!("no agent named \"{to}\"; on shift: {}", team.join(", ")));
                }
            },
        };
        if to == turn.agent.as_str() {
            return Err("that is you".to_owned());
        }
        self.agent_message(&turn.agent, &to, words, turn.hops);
        let name = self.display_name(&to);
        let off_shift = self.state.agents.get(to.as_str()).is_some_and(|agent| !agent.active);
        Ok(if off_shift {
            format!("stored; {name} is off shift and reads it when back")
        } else {
            format!("sent to {name}")
        })
    }

    fn tool_ask(
        &mut self,
        turn: &Turn,
        request: &RequestId,
        question: &str,
        options: Vec<String>,
        context: Option<String>,
    ) -> Result<(), String> {
        if question.trim().is_empty() {
            return Err("the question is empty".to_owned());
        }
        if options.len() > OPTIONS {
            return Err(format!("at most {OPTIONS} options"));
        }
        let mut distinct: Vec<String> = Vec::new();
        for option in options {
            if !distinct.iter().any(|at| at.trim().eq_ignore_ascii_case(option.trim())) {
                distinct.push(option);
            }
        }
        let id = self.open_decision(NewDecision {
            agent: turn.agent.clone(),
            kind: DecisionKind::Question,
            question: question.to_owned(),
            options: distinct,
            context,
            task: turn.task.clone(),
            repo: self.repo_of_turn(turn),
            worktree: None,
            tool: None,
            waiter: Waiter::Question {
                turn: Some(turn.id),
                request: request.clone(),
                job: turn.job,
                goal: turn.goal.clone(),
            },
        });
        self.edit_running(turn.id, |running| {
            running.open.insert(request.clone(), Request::Decision(id));
        });
        self.wait_for_person(turn.id, "waiting for your answer");
        Ok(())
    }

    fn tool_create(&mut self, mut new: NewTask, assignee: Option<&str>) -> Result<String, String> {
        let Some(goal) = new.goal.clone() else { return Err("there is no goal to make tasks of".to_owned()) };
        if let Some(name) = assignee {
            let agent = self.agent_named(name)?;
            if agent == lead() {
                return Err("tasks are assigned to workers, not the lead".to_owned());
            }
            new.assignee = Some(agent);
        }
        new.repo = self.state.goals.get(&goal).and_then(|goal| goal.repo_id.clone());
        let assignee = new.assignee.clone();
        let id = self.create_task(new)?;
        let title = self.state.tasks.get(&id).map(|task| task.title.clone()).unwrap_or_default();
        let whom = assignee.map(|agent| format!(" for {}", self.display_name(agent.as_str()))).unwrap_or_default();
        self.feed(FeedKind::Task, Some(lead().as_str()), &format!("New task {id}{whom}: {title}"));
        Ok(format!("created {id}"))
    }

    fn tool_request_merge(&mut self, task: &TaskId, summary: &str) -> Result<String, String> {
        let Some(record) = self.state.tasks.get(task) else { return Err(format!("no task {task}")) };
        if let Some(open) = self.open_merge_of(task) {
            return Ok(format!("{task} is waiting for the answer to {open} already"));
        }
        match self.stage(task) {
            Stage::Reviewing => {}
            Stage::Merging { .. } => return Ok(format!("{task} is being merged")),
            _ if record.status == TaskStatus::Done => return Ok(format!("{task} is done already")),
            _ if record.status != TaskStatus::Review => return Err(format!("{task} is not in review")),
            _ => return Err(format!("{task} is not ready: its tests still run or it was sent back")),
        }
        let summary = truncate(text::clean(summary).trim(), 4000);
        let note = (!summary.is_empty()).then_some(summary);
        match self.open_merge(task, note.as_deref()) {
            Some(id) => Ok(format!("{} was asked to merge {task} ({id})", self.settings.user_name)),
            None => Err(format!("{task} has nothing to merge")),
        }
    }

    fn worker_updates(&mut self, turn: &Turn, update: &UpdateTask) -> Result<String, String> {
        let id = &update.task_id;
        let Some(task) = self.state.tasks.get(id).cloned() else { return Err(format!("no task {id}")) };
        if task.assignee.as_ref() != Some(&turn.agent) || turn.task.as_ref() != Some(id) {
            return Err(format!("{id} is not your current task"));
        }
        if update.assignee.is_some() || update.title.is_some() || update.description.is_some() || update.deps.is_some()
        {
            return Err("only the lead may change assignee, title, description or dependencies".to_owned());
        }
        if let Some(summary) = &update.summary {
            self.set_summary(id, summary);
        }
        let Some(status) = update.status else { return Ok("ok".to_owned()) };
        let from = task.status;
        if matches!(self.stage(id), Stage::Merging { .. }) || matches!(from, TaskStatus::Done | TaskStatus::Cancelled) {
            return Err(format!("{id} is {from}; it can't be changed any more"));
        }
        let to = match status {
            ToolStatus::Doing => TaskStatus::Doing,
            ToolStatus::Review => TaskStatus::Review,
            ToolStatus::Blocked => TaskStatus::Blocked,
            ToolStatus::Todo | ToolStatus::Cancelled => {
                return Err("a worker sets doing, review or blocked only".to_owned());
            }
        };
        if from != to {
            self.withdraw_task_decisions_but_questions(id);
            if to != TaskStatus::Review
                && matches!(
                    self.stage(id),
                    Stage::Reviewing | Stage::Deciding { .. } | Stage::Testing { .. } | Stage::Collecting { .. }
                )
            {
                self.set_stage(id, Stage::Board);
            }
            self.force_status(id, to, update.blocked_reason.as_deref());
            self.edit_work(id, |work| work.nudges = 0);
            self.feed(FeedKind::Task, Some(turn.agent.as_str()), &format!("{id} {from} -> {to}"));
        } else if to == TaskStatus::Blocked {
            self.force_status(id, to, update.blocked_reason.as_deref());
        }
        Ok(format!("{id} is {to}"))
    }

    /// The task moves on by its worker's word: a merge decision about the former work is moot.
    fn withdraw_task_decisions_but_questions(&mut self, id: &TaskId) {
        if let Some(open) = self.open_merge_of(id) {
            self.withdraw_decision(&open, "the work goes on");
        }
    }

    fn lead_updates(&mut self, turn: &Turn, update: &UpdateTask) -> Result<String, String> {
        let id = &update.task_id;
        let Some(task) = self.state.tasks.get(id).cloned() else { return Err(format!("no task {id}")) };
        if matches!(self.stage(id), Stage::Merging { .. }) {
            return Err(format!("{id} is being merged right now"));
        }
        if let Some(title) = &update.title {
            let title = truncate(&one_line(&text::clean(title)), 200);
            if title.is_empty() {
                return Err("a task needs a title".to_owned());
            }
            self.edit_task(id, |task| task.title = title);
        }
        if let Some(description) = &update.description {
            let description = truncate(text::clean(description).trim(), 8000);
            self.edit_task(id, |task| task.description = (!description.is_empty()).then_some(description));
        }
        if let Some(deps) = &update.deps {
            self.set_deps(id, deps.clone())?;
        }
        if let Some(name) = &update.assignee {
            let agent = self.agent_named(name)?;
            self.reassign(id, &agent)?;
        }
        let sends_back = update.status == Some(ToolStatus::Doing)
            && task.status == TaskStatus::Review
            && !matches!(self.stage(id), Stage::Collecting { .. } | Stage::Testing { .. });
        if sends_back {
            let words = update.summary.clone().unwrap_or_else(|| "see review comments".to_owned());
            self.feed(FeedKind::Task, Some(turn.agent.as_str()), &format!("{id} sent back: {words}"));
            let by = self.display_name(turn.agent.as_str());
            self.send_back(id, Cause::ChangesRequested { by, text: words });
            return Ok(format!("{id} goes back to its worker"));
        }
        if let Some(summary) = &update.summary {
            self.set_summary(id, summary);
        }
        let Some(status) = update.status else { return Ok("ok".to_owned()) };
        let from = task.status;
        match status {
            ToolStatus::Cancelled => {
                self.cancel_task(id);
            }
            ToolStatus::Blocked => {
                self.stop_turns_of_task_workers(id);
                self.withdraw_task_decisions(id, "task blocked");
                if self.stage(id) == Stage::Reviewing || matches!(self.stage(id), Stage::Deciding { .. }) {
                    self.set_stage(id, Stage::Board);
                }
                self.force_status(id, TaskStatus::Blocked, update.blocked_reason.as_deref());
            }
            ToolStatus::Todo => {
                if matches!(from, TaskStatus::Review | TaskStatus::Doing) {
                    return Err(format!("{id} is {from}: cancel it, or send it back with doing"));
                }
                self.force_status(id, TaskStatus::Todo, None);
            }
            ToolStatus::Doing => {
                // The scheduler starts work; the lead only frees the task for it.
                if from == TaskStatus::Blocked {
                    self.set_status(id, TaskStatus::Todo, Transition::Checked, None)?;
                } else if from != TaskStatus::Doing {
                    return Err(format!("{id} is {from}; it starts by itself when its dependencies are done"));
                }
            }
            ToolStatus::Review => return Err("a worker hands its own task in".to_owned()),
        }
        let to = self.state.tasks.get(id).map_or(from, |task| task.status);
        if from != to {
            self.feed(FeedKind::Task, Some(turn.agent.as_str()), &format!("{id} {from} -> {to}"));
        }
        Ok(format!("{id} is {to}"))
    }

    fn stop_turns_of_task_workers(&mut self, id: &TaskId) {
        for turn in self.turns_of_task(id) {
            if self.state.turns.get(&turn).is_some_and(|turn| turn.agent != lead()) {
                self.stop_turn(turn, super::state::StopWhy::Task);
            }
        }
    }

    fn board_text(&self) -> String {
        let lines: Vec<String> = self
            .state
            .tasks
            .values()
            .map(|task| {
                let who = task.assignee.as_ref().map_or("-", AgentId::as_str);
                let deps: Vec<&str> = task.deps.iter().map(TaskId::as_str).collect();
                let deps = if deps.is_empty() { String::new() } else { format!(" (after {})", deps.join(", ")) };
                format!("{} [{}] {} - {who}{deps}", task.id, task.status, task.title)
            })
            .collect();
        if lines.is_empty() { "(no tasks)".to_owned() } else { lines.join("\n") }
    }

    /// Sets what an agent shows without a turn's say.
    pub(crate) fn show_paused(&mut self, agent: &AgentId) {
        let patch = AgentPatch {
            state: Some(AgentState::Idle),
            activity: Some("paused".to_owned()),
            paused: Some(true),
            ..AgentPatch::default()
        };
        self.patch_agent(agent, patch);
        if self.state.agents.get(agent).is_some_and(|agent| agent.station == Station::User) {
            let station = if *agent == lead() { Station::Meeting } else { Station::Desk };
            self.patch_agent(agent, AgentPatch { station: Some(station), ..AgentPatch::default() });
        }
    }
}
