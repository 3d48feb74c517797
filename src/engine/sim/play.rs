//! Playing one turn of a script.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::files::{self, EditError, Edited};
use super::script::{Beat, Fact, Script, TaskScript};
use super::{Sim, SimError};
use crate::engine::process::{ChildSpec, Finished, PROFILE_MARK, run};
use crate::engine::{TurnReport, ci};
use crate::git::{Identity, safety};
use crate::policy::ToolCall;
use crate::protocol::{
    AgentRole, AgentState, CiStatus, DecisionKind, DecisionStatus, LogKind, Station, Task, TaskId, TaskStatus,
};
use crate::turn::{
    AgentTool, CallVerdict, Cause, Facts, Job, RequestId, ToolAnswer, ToolStatus, TurnCommand, TurnEnd, TurnEvent,
    TurnFailure, TurnSpec, UpdateTask,
};

/// Longest command of a script.
const COMMAND_TIME: Duration = Duration::from_secs(120);
/// Pause between two ambient lines at speed 1, ms; drawn between the two.
const AMBIENT_MS: (u64, u64) = (6_000, 11_000);
/// Ambient lines per wait.
const AMBIENT_LINES: u32 = 12;

/// Why a turn does not go on.
enum Halt {
    Stopped,
    Failed(TurnFailure),
}

impl Halt {
    fn broken(words: String) -> Self {
        Self::Failed(TurnFailure { reason: words, retry_after_ms: None, auth: false })
    }
}

type Beats<'a> = std::pin::Pin<Box<dyn Future<Output = Result<(), Halt>> + Send + 'a>>;

/// Plays the turn to its end.
pub(crate) async fn play(
    sim: &Arc<Sim>,
    spec: TurnSpec,
    ears: mpsc::UnboundedReceiver<TurnCommand>,
    mouth: mpsc::Sender<TurnReport>,
) -> TurnEnd {
    let Some(script) = sim.script_for(spec.brief.goal.as_ref(), &spec.brief.repo) else {
        return TurnEnd::Failed(TurnFailure {
            reason: SimError::NoScript.to_string(),
            retry_after_ms: None,
            auth: false,
        });
    };
    let stop = CancellationToken::new();
    let mut player = Player {
        sim,
        script,
        ears,
        mouth,
        stop,
        facts: sim.options.facts.clone(),
        random: sim.options.seed.wrapping_add(spec.turn.0.wrapping_mul(7919)),
        requests: 0,
        spec,
    };
    match player.turn().await {
        Ok(words) => TurnEnd::Completed { text: words },
        Err(Halt::Stopped) => TurnEnd::Stopped,
        Err(Halt::Failed(failure)) => TurnEnd::Failed(failure),
    }
}

struct Player<'a> {
    sim: &'a Sim,
    script: &'a Script,
    spec: TurnSpec,
    ears: mpsc::UnboundedReceiver<TurnCommand>,
    mouth: mpsc::Sender<TurnReport>,
    stop: CancellationToken,
    facts: watch::Receiver<Arc<Facts>>,
    random: u64,
    requests: u64,
}

impl<'a> Player<'a> {
    async fn turn(&mut self) -> Result<String, Halt> {
        let session = format!("sim-{}", self.spec.session);
        self.report(TurnEvent::Session(session)).await?;
        let script = self.script;
        let task = self.own_script();
        match self.spec.job {
            Job::Plan => {
                self.beats(&script.plan).await?;
                Ok("The plan is on the wall.".to_owned())
            }
            Job::Work => self.work(task).await,
            Job::Review => {
                match task {
                    Some(task) if !task.review.is_empty() => self.beats(&task.review).await?,
                    _ => self.plain_review().await?,
                }
                Ok("Review done.".to_owned())
            }
            Job::Followup => self.follow_up().await,
        }
    }

    /// The script of the turn's task.
    fn own_script(&self) -> Option<&'a TaskScript> {
        let title = &self.spec.brief.task.as_ref()?.task.title;
        self.script.tasks.values().find(|task| task.title == *title)
    }

    async fn work(&mut self, task: Option<&'a TaskScript>) -> Result<String, Halt> {
        let script = self.script;
        match self.spec.brief.cause.clone() {
            Cause::ChangesRequested { .. } => {
                let own = task.map(|task| &task.revise).filter(|beats| !beats.is_empty());
                self.beats(own.unwrap_or(&script.revise)).await?;
            }
            Cause::Conflict { .. } => self.beats(&script.conflict).await?,
            Cause::CiFailed { .. } => match task.map(|task| &task.ci_failed).filter(|beats| !beats.is_empty()) {
                Some(beats) => self.beats(beats).await?,
                None => self.hand_in("The tests still fail; please have a look.").await?,
            },
            Cause::Start
            | Cause::HandOver { .. }
            | Cause::Restarted
            | Cause::Continue { .. }
            | Cause::Retry { .. }
            | Cause::Nudge
            | Cause::Answer { .. }
            | Cause::Messages => match task {
                Some(task) => self.beats(&task.work).await?,
                None => self.hand_in("There is no script for this task; nothing was changed.").await?,
            },
        }
        Ok("Done for now.".to_owned())
    }

    async fn hand_in(&mut self, summary: &str) -> Result<(), Halt> {
        let update =
            Beat::Update { task: None, status: ToolStatus::Review, summary: Some(summary.to_owned()), reason: None };
        self.beat(&update).await
    }

    async fn plain_review(&mut self) -> Result<(), Halt> {
        let review = self.spec.brief.review.clone();
        let ci = self.spec.brief.task.as_ref().map_or(CiStatus::Unknown, |task| task.task.ci);
        self.think("reading the diff", 1200).await?;
        let words = match (review, ci) {
            (Some(review), CiStatus::Fail) => {
                format!("Read {} changed file(s). The tests fail; your call.", review.files)
            }
            (Some(review), _) => format!("Read {} changed file(s); does what the task asks for.", review.files),
            (None, _) => "Does what the task asks for.".to_owned(),
        };
        self.beat(&Beat::RequestMerge { summary: words }).await
    }

    async fn follow_up(&mut self) -> Result<String, Halt> {
        let script = self.script;
        let inbox = self.spec.brief.inbox.clone();
        for talk in &script.followup {
            let said = talk.says.as_ref().is_none_or(|wanted| {
                inbox.iter().any(|message| message.text.to_lowercase().contains(&wanted.to_lowercase()))
            });
            let holds = talk.when.iter().all(|fact| self.holds(fact));
            if talk.agent == self.spec.agent.as_str() && said && holds {
                self.beats(&talk.beats).await?;
                return Ok("Answered.".to_owned());
            }
        }
        // A question that was interrupted goes on where it was asked.
        if matches!(self.spec.brief.cause, Cause::Answer { .. } | Cause::Restarted) && inbox.is_empty() {
            for talk in script.followup.iter().filter(|talk| talk.agent == self.spec.agent.as_str()) {
                let asks = |question: &str| self.spec.brief.answered.iter().any(|at| at.question == question);
                let wanted = talk.beats.iter().any(|beat| match beat {
                    Beat::Ask { question, .. } => asks(question),
                    _ => false,
                });
                if wanted {
                    self.beats(&talk.beats).await?;
                    return Ok("Answered.".to_owned());
                }
            }
        }
        let pick = usize::try_from(self.roll() % (script.replies.len().max(1) as u64)).unwrap_or(0);
        if let Some(reply) = script.replies.get(pick) {
            self.nap(1200).await?;
            let to = inbox.last().map_or("user", |message| message.from.as_str()).to_owned();
            let text = self.fill(reply);
            if to == "user" {
                self.report(TurnEvent::Say { text, to: Some(to) }).await?;
            } else {
                self.tool(AgentTool::SendMessage { to, text }).await?;
            }
        }
        Ok("Answered.".to_owned())
    }

    // Beats.

    fn beats<'b>(&'b mut self, beats: &'b [Beat]) -> Beats<'b> {
        Box::pin(async move {
            for beat in beats {
                self.beat(beat).await?;
            }
            Ok(())
        })
    }

    /// The turn takes up again what an earlier one began.
    fn goes_on(&self) -> bool {
        matches!(
            self.spec.brief.cause,
            Cause::Restarted | Cause::Continue { .. } | Cause::Retry { .. } | Cause::Nudge | Cause::Answer { .. }
        )
    }

    async fn beat(&mut self, beat: &Beat) -> Result<(), Halt> {
        match beat {
            Beat::State { state, station, activity, ms } => {
                let activity = activity.as_ref().map(|text| self.fill(text));
                self.state(*state, *station, activity).await?;
                self.nap(ms.unwrap_or(700)).await
            }
            Beat::Think { text, ms } => {
                let text = self.fill(text);
                self.think(&text, ms.unwrap_or(1500)).await
            }
            Beat::Say { text, to } => {
                if self.goes_on() {
                    return Ok(());
                }
                let text = self.fill(text);
                self.report(TurnEvent::Say { text, to: to.clone() }).await?;
                self.nap(800).await
            }
            Beat::Read { path } => self.read(path).await,
            Beat::Search { pattern } => self.search(pattern).await,
            Beat::Write { path, text, executable } => {
                let (path, text) = (self.fill(path), self.fill(text));
                let done = files::write(&self.spec.dir, &path, &text, *executable);
                self.edited(&path, "Write", done).await
            }
            Beat::Insert { path, after, text } => {
                let (path, text) = (self.fill(path), self.fill(text));
                let done = files::insert(&self.spec.dir, &path, after, &text);
                self.edited(&path, "Edit", done).await
            }
            Beat::Replace { path, old, new } => {
                let done = files::replace(&self.spec.dir, path, old, new);
                self.edited(path, "Edit", done).await
            }
            Beat::Append { path, text } => {
                let path = match path.as_str() {
                    "{main_file}" => self.main_file(),
                    path => self.fill(path),
                };
                let text = self.fill(text);
                let done = files::append(&self.spec.dir, &path, &text);
                self.edited(&path, "Edit", done).await
            }
            Beat::Run { command } => {
                let command = self.fill(command);
                self.run_shown(&command).await.map(|_| ())
            }
            Beat::Test => self.test().await,
            Beat::Commit { message } => {
                let message = self.fill(message);
                self.commit(&message).await
            }
            Beat::MergeBase => self.merge_base().await,
            Beat::CreateTask { task } => self.create_task(task).await,
            Beat::Send { to, text } => {
                let text = self.fill(text);
                self.tool(AgentTool::SendMessage { to: to.clone(), text }).await?;
                self.nap(900).await
            }
            Beat::Update { task, status, summary, reason } => {
                self.update(task.as_deref(), *status, summary.as_deref(), reason.as_deref()).await
            }
            Beat::RequestMerge { summary } => {
                let Some(task_id) = self.spec.brief.task.as_ref().map(|task| task.task.id.clone()) else {
                    return Ok(());
                };
                let summary = self.fill(summary);
                self.tool(AgentTool::RequestMerge { task_id, summary }).await.map(|_| ())
            }
            Beat::Note { title, body, scope, mode } => {
                self.state(AgentState::Editing, Some(Station::Library), Some("writing memory".to_owned())).await?;
                let (title, body) = (self.fill(title), self.fill(body));
                self.tool(AgentTool::WriteMemory { title, body, scope: *scope, mode: *mode }).await?;
                self.nap(900).await
            }
            Beat::Report { activity } => {
                let activity = self.fill(activity);
                self.tool(AgentTool::ReportStatus { activity, note: None }).await.map(|_| ())
            }
            Beat::ListTasks => self.tool(AgentTool::ListTasks).await.map(|_| ()),
            Beat::Permission { command, allowed, denied } => self.permission(command, allowed, denied).await,
            Beat::Ask { question, options, context, answers } => {
                self.ask(question, options, context.as_deref(), answers).await
            }
            Beat::Answered { question, answers } => {
                let said = self.answer_on_podium(question);
                self.branch(said.as_deref(), question, answers).await
            }
            Beat::WaitUntil { any } => self.wait_until(any).await,
            Beat::If { all, then, otherwise } => {
                let beats = if all.iter().all(|fact| self.holds(fact)) { then } else { otherwise };
                self.beats(beats).await
            }
            Beat::FailOnce { reason, retry_ms } => {
                if matches!(self.spec.brief.cause, Cause::Retry { .. }) {
                    return Ok(());
                }
                let retry = self.scaled(*retry_ms);
                Err(Halt::Failed(TurnFailure { reason: reason.clone(), retry_after_ms: Some(retry), auth: false }))
            }
            Beat::Hold { showcase } => {
                if self.sim.options.showcase.as_deref() == Some(showcase) {
                    return self.hold().await;
                }
                Ok(())
            }
        }
    }

    // Hands.

    async fn edited(&mut self, path: &str, verb: &str, done: Result<Edited, EditError>) -> Result<(), Halt> {
        match done {
            Ok(Edited::Already) => Ok(()),
            Ok(Edited::Changed(lines)) => {
                let activity = format!("editing {}", short_path(path));
                self.state(AgentState::Editing, Some(Station::Desk), Some(activity)).await?;
                self.log(LogKind::Tool, &format!("{verb} {path}")).await?;
                self.log(LogKind::Diff, &lines).await?;
                self.report(TurnEvent::Touched).await?;
                self.nap(1800).await
            }
            Err(error) => {
                // What a person changed meanwhile is theirs: the agent says so and goes on.
                self.log(LogKind::Error, &error.to_string()).await
            }
        }
    }

    async fn read(&mut self, path: &str) -> Result<(), Halt> {
        self.state(AgentState::Reading, Some(Station::Library), Some(format!("reading {}", short_path(path)))).await?;
        self.log(LogKind::Tool, &format!("Read {path}")).await?;
        let text = files::inside(&self.spec.dir, path).ok().and_then(|path| std::fs::read_to_string(path).ok());
        self.nap(1100).await?;
        match text {
            Some(text) => self.log(LogKind::Result, &format!("{} lines", text.lines().count())).await,
            None => self.log(LogKind::Result, "no such file").await,
        }
    }

    async fn search(&mut self, pattern: &str) -> Result<(), Halt> {
        self.state(AgentState::Reading, Some(Station::Library), Some(format!("searching \"{pattern}\""))).await?;
        self.log(LogKind::Tool, &format!("Grep {pattern}")).await?;
        let quoted = pattern.replace('\'', r"'\''");
        let found = self.child(&format!("git grep -n --fixed-strings -- '{quoted}' | head -n 4")).await?;
        self.nap(900).await?;
        let text = if found.output.trim().is_empty() { "no match".to_owned() } else { found.output };
        self.log(LogKind::Result, text.trim_end()).await
    }

    /// Runs a command of the script in the working directory.
    async fn child(&mut self, command: &str) -> Result<Finished, Halt> {
        let identity = Identity {
            name: format!("AgentCraft {}", self.spec.agent_name),
            email: format!("{}@agentcraft.local", self.spec.agent),
        };
        let scratch = self.sim.options.scratch.join(self.spec.agent.as_str());
        if let Err(error) = std::fs::create_dir_all(&scratch) {
            return Err(Halt::broken(format!("{}: {error}", scratch.display())));
        }
        let inherited = self.sim.options.env.iter().cloned();
        let extra: [(OsString, OsString); 2] = [
            ("TMPDIR".into(), scratch.into_os_string()),
            (PROFILE_MARK.into(), self.sim.profile().into()),
        ];
        let env = safety::agent_environment(inherited, &self.spec.dir, &identity, extra);
        let spec = ChildSpec::shell(command, self.spec.dir.clone(), env);
        let running = run(spec, COMMAND_TIME, self.stop.clone());
        tokio::pin!(running);
        loop {
            tokio::select! {
                done = &mut running => {
                    let done = done.map_err(|error| Halt::broken(format!("{command}: {error}")))?;
                    return if done.cancelled { Err(Halt::Stopped) } else { Ok(done) };
                }
                command = self.ears.recv() => match command {
                    // The child is ended and waited for before the turn ends.
                    Some(TurnCommand::Stop) | None => self.stop.cancel(),
                    Some(_) => {}
                },
            }
        }
    }

    async fn run_shown(&mut self, command: &str) -> Result<Finished, Halt> {
        let activity = format!("$ {command}");
        self.state(AgentState::Running, Some(Station::Terminal), Some(activity)).await?;
        self.log(LogKind::Tool, &format!("$ {command}")).await?;
        let done = self.child(command).await?;
        self.nap(1000).await?;
        self.log_output(&done).await?;
        self.report(TurnEvent::Touched).await?;
        Ok(done)
    }

    async fn log_output(&mut self, done: &Finished) -> Result<(), Halt> {
        let lines: Vec<&str> = done.output.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(8)..).unwrap_or_default().join("\n");
        let text = if tail.is_empty() { "(no output)".to_owned() } else { tail };
        let kind = if done.ok() { LogKind::Result } else { LogKind::Error };
        self.log(kind, &text).await
    }

    async fn test(&mut self) -> Result<(), Halt> {
        let Some(command) = ci::detect(&self.spec.dir) else {
            return self.log(LogKind::Text, "no test command here").await;
        };
        self.state(AgentState::Testing, Some(Station::Testbench), Some(format!("testing: {command}"))).await?;
        self.log(LogKind::Tool, &format!("$ {command}")).await?;
        let done = self.child(&command).await?;
        self.nap(1400).await?;
        let summary = ci::summary(&done.output).unwrap_or_default();
        if done.ok() {
            self.log(LogKind::Result, &format!("tests passed - {summary}")).await
        } else {
            let failed: Vec<&str> = done.output.lines().filter(|line| line.starts_with("not ok")).take(6).collect();
            self.log(LogKind::Error, &format!("tests FAILED - {summary}\n{}", failed.join("\n"))).await
        }
    }

    async fn commit(&mut self, message: &str) -> Result<(), Halt> {
        let quoted = message.replace('\'', r"'\''");
        let command = format!(
            "git add --all && {{ git diff --cached --quiet || git commit --quiet -m '{quoted}'; }} && git log --oneline -1"
        );
        self.state(AgentState::Running, Some(Station::Terminal), Some("$ git commit".to_owned())).await?;
        self.log(LogKind::Tool, &format!("$ git commit -m \"{message}\"")).await?;
        let done = self.child(&command).await?;
        self.log_output(&done).await?;
        self.report(TurnEvent::Touched).await?;
        self.nap(700).await
    }

    async fn merge_base(&mut self) -> Result<(), Halt> {
        let base = self.spec.brief.repo.base.clone();
        self.commit("Work in progress before taking the base in").await?;
        let quoted = base.replace('\'', r"'\''");
        self.run_shown(&format!("git merge --no-edit '{quoted}' || git status --short")).await?;
        let clash = self.child("git diff --name-only --diff-filter=U -z").await?;
        let names: Vec<String> =
            clash.output.split('\0').map(str::to_owned).filter(|name| !name.trim().is_empty()).collect();
        for name in &names {
            let Ok(path) = files::inside(&self.spec.dir, name) else { continue };
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let both = files::keep_both(&text);
            let done = files::write(&self.spec.dir, name, &both, false);
            self.edited(name, "Edit", done).await?;
        }
        if !names.is_empty() {
            self.run_shown("git add --all && git commit --quiet --no-edit && git log --oneline -1").await?;
        }
        Ok(())
    }

    // Tools and people.

    async fn create_task(&mut self, key: &str) -> Result<(), Halt> {
        let Some(task) = self.script.tasks.get(key) else { return Ok(()) };
        if self.task_of(key).is_some() {
            return Ok(());
        }
        let mut deps = Vec::new();
        for dep in &task.deps {
            deps.extend(self.task_of(dep).map(|task| task.id));
        }
        let (title, description) = (task.title.clone(), self.fill(&task.description));
        let mut assignee = task.assignee.clone();
        // Whoever is off shift gets nothing assigned; the scheduler finds somebody.
        let facts = self.facts.borrow().clone();
        if let Some(name) = &assignee
            && !facts.agents.iter().any(|agent| agent.id.as_str() == name && agent.active)
        {
            assignee = None;
        }
        self.tool(AgentTool::CreateTask { title, description, deps, assignee, priority: task.priority }).await?;
        self.wait_for_task(key).await?;
        self.nap(500).await
    }

    /// The board shows a new task a moment after the tool's answer.
    async fn wait_for_task(&mut self, key: &str) -> Result<(), Halt> {
        while self.task_of(key).is_none() {
            self.facts_changed().await?;
        }
        Ok(())
    }

    /// Waits for new facts, or for the turn's end.
    async fn facts_changed(&mut self) -> Result<(), Halt> {
        let mut facts = self.facts.clone();
        // What was there before the last look is no news.
        facts.mark_unchanged();
        self.facts.mark_unchanged();
        loop {
            tokio::select! {
                changed = facts.changed() => {
                    self.facts = facts;
                    return changed.map_err(|_| Halt::Stopped);
                }
                command = self.ears.recv() => match command {
                    Some(TurnCommand::Stop) | None => return Err(Halt::Stopped),
                    Some(_) => {}
                },
                // A change between the look and the wait must not be missed.
                () = tokio::time::sleep(Duration::from_millis(250)) => return Ok(()),
            }
        }
    }

    async fn update(
        &mut self,
        task: Option<&str>,
        status: ToolStatus,
        summary: Option<&str>,
        reason: Option<&str>,
    ) -> Result<(), Halt> {
        let id = match task {
            Some(key) => self.task_of(key).map(|task| task.id),
            None => self.spec.brief.task.as_ref().map(|task| task.task.id.clone()),
        };
        let Some(task_id) = id else { return Ok(()) };
        let update = UpdateTask {
            task_id,
            status: Some(status),
            summary: summary.map(|text| self.fill(text)),
            blocked_reason: reason.map(|text| self.fill(text)),
            assignee: None,
            title: None,
            description: None,
            deps: None,
        };
        self.tool(AgentTool::UpdateTask(update)).await?;
        self.nap(600).await
    }

    async fn permission(&mut self, command: &str, allowed: &[Beat], denied: &[Beat]) -> Result<(), Halt> {
        let command = self.fill(command);
        self.state(AgentState::Running, Some(Station::Terminal), Some(format!("$ {command}"))).await?;
        self.log(LogKind::Tool, &format!("$ {command}")).await?;
        let request = self.next_request();
        let call = ToolCall { tool: "Bash".to_owned(), input: serde_json::json!({ "command": command }) };
        self.report(TurnEvent::Asked { request: request.clone(), call }).await?;
        let verdict = self
            .hear(|heard| match heard {
                TurnCommand::Verdict { request: at, verdict } if at == request => Some(verdict),
                _ => None,
            })
            .await?;
        match verdict {
            CallVerdict::Allow => {
                let done = self.child(&command).await?;
                self.log_output(&done).await?;
                self.report(TurnEvent::Touched).await?;
                self.beats(allowed).await
            }
            CallVerdict::Deny(reason) => {
                self.log(LogKind::Error, &reason).await?;
                self.beats(denied).await
            }
        }
    }

    async fn ask(
        &mut self,
        question: &str,
        options: &[String],
        context: Option<&str>,
        answers: &[Vec<Beat>],
    ) -> Result<(), Halt> {
        let question = self.fill(question);
        let before = self.spec.brief.answered.iter().rev().find(|at| at.question == question);
        let said = match before {
            Some(answered) => answered.answer.clone(),
            None => {
                let tool = AgentTool::AskUser {
                    question: question.clone(),
                    options: options.to_vec(),
                    context: context.map(str::to_owned),
                };
                self.tool(tool).await?.text
            }
        };
        let at = options.iter().position(|option| said.contains(option.as_str())).unwrap_or(0);
        match answers.get(at) {
            Some(beats) => self.beats(beats).await,
            None => Ok(()),
        }
    }

    /// The option (or text) with which the person closed a question.
    fn answer_on_podium(&self, question: &str) -> Option<String> {
        let facts = self.facts.borrow();
        let decision = facts.decisions.iter().rev().find(|decision| decision.question == question)?;
        let answer = decision.answer.as_ref()?;
        answer.option.clone().or_else(|| answer.text.clone())
    }

    async fn branch(&mut self, said: Option<&str>, question: &str, answers: &[Vec<Beat>]) -> Result<(), Halt> {
        let at = {
            let facts = self.facts.borrow();
            let options = facts
                .decisions
                .iter()
                .rev()
                .find(|decision| decision.question == question)
                .map(|decision| decision.options.clone())
                .unwrap_or_default();
            said.and_then(|said| options.iter().position(|option| option == said)).unwrap_or(0)
        };
        match answers.get(at) {
            Some(beats) => self.beats(beats).await,
            None => Ok(()),
        }
    }

    // Facts.

    /// A task of the script, as it stands on the wall in this goal.
    fn task_of(&self, key: &str) -> Option<Task> {
        let title = &self.script.tasks.get(key)?.title;
        let goal = self.spec.brief.goal.as_ref().map(|goal| goal.id.clone());
        let facts = self.facts.borrow();
        facts.tasks.iter().find(|task| task.title == *title && task.goal_id == goal).cloned()
    }

    fn holds(&self, fact: &Fact) -> bool {
        let facts = self.facts.borrow().clone();
        let mut all = true;
        let task = fact.task.as_ref().map(|key| self.task_of(key));
        if !fact.status.is_empty() {
            all &= match &task {
                Some(Some(task)) => fact.status.contains(&task.status),
                // A task that is not on the wall is as good as cancelled.
                Some(None) => fact.status.contains(&TaskStatus::Cancelled),
                None => false,
            };
        }
        if fact.unattended {
            all &= match &task {
                Some(Some(task)) => {
                    let worker = task
                        .assignee
                        .as_ref()
                        .and_then(|id| facts.agents.iter().find(|agent| agent.id == *id))
                        .is_some_and(|agent| agent.active && !agent.paused);
                    !worker || !matches!(task.status, TaskStatus::Doing | TaskStatus::Todo | TaskStatus::Review)
                }
                _ => true,
            };
        }
        if let Some(kind) = &fact.decision {
            all &= facts.decisions.iter().any(|decision| {
                let same_kind = match decision.kind {
                    DecisionKind::Question => kind == "question",
                    DecisionKind::Permission => kind == "permission",
                    DecisionKind::Merge => kind == "merge",
                };
                let same_task = match &task {
                    Some(Some(task)) => decision.task_id.as_ref() == Some(&task.id),
                    Some(None) => false,
                    None => true,
                };
                same_kind && same_task
            });
        }
        if let Some(question) = &fact.answered {
            all &= facts
                .decisions
                .iter()
                .rev()
                .find(|decision| decision.question == *question)
                .is_some_and(|decision| decision.status != DecisionStatus::Open);
        }
        if let Some(path) = &fact.missing {
            all &= !self.spec.dir.join(path).exists();
        }
        if let Some(text) = &fact.diff {
            all &= self.spec.brief.review.as_ref().is_some_and(|review| review.diff.contains(text));
        }
        all != fact.not
    }

    async fn wait_until(&mut self, any: &[Fact]) -> Result<(), Halt> {
        if any.iter().any(|fact| self.holds(fact)) {
            return Ok(());
        }
        let mut quiet = self.ambient_pause();
        let mut lines = 0;
        let mut next = tokio::time::Instant::now() + quiet;
        while !any.iter().any(|fact| self.holds(fact)) {
            self.facts_changed().await?;
            if self.sim.options.ambient && lines < AMBIENT_LINES && tokio::time::Instant::now() >= next {
                lines += 1;
                self.ambient_line().await?;
                quiet = self.ambient_pause();
                next = tokio::time::Instant::now() + quiet;
            }
        }
        Ok(())
    }

    fn ambient_pause(&mut self) -> Duration {
        let span = AMBIENT_MS.1 - AMBIENT_MS.0;
        let ms = AMBIENT_MS.0 + self.roll() % span;
        Duration::from_millis(self.scaled(ms).max(50))
    }

    async fn ambient_line(&mut self) -> Result<(), Halt> {
        let count = self.script.ambient.len().max(1) as u64;
        let pick = usize::try_from(self.roll() % count).unwrap_or(0);
        match self.script.ambient.get(pick) {
            Some(line) => self.log(LogKind::Text, line).await,
            None => Ok(()),
        }
    }

    /// Stands still until the turn is stopped.
    async fn hold(&mut self) -> Result<(), Halt> {
        loop {
            match self.ears.recv().await {
                Some(TurnCommand::Stop) | None => return Err(Halt::Stopped),
                Some(_) => {}
            }
        }
    }

    // Mouth and ears.

    async fn report(&mut self, event: TurnEvent) -> Result<(), Halt> {
        let report = TurnReport { turn: self.spec.turn, event };
        self.mouth.send(report).await.map_err(|_| Halt::Stopped)
    }

    async fn log(&mut self, kind: LogKind, text: &str) -> Result<(), Halt> {
        self.report(TurnEvent::Log(vec![(kind, text.to_owned())])).await
    }

    async fn think(&mut self, text: &str, ms: u64) -> Result<(), Halt> {
        let station = if self.spec.role == AgentRole::Lead { Station::Meeting } else { Station::Desk };
        let activity = text.lines().next().unwrap_or_default().to_owned();
        self.state(AgentState::Thinking, Some(station), Some(activity)).await?;
        self.log(LogKind::Text, text).await?;
        self.nap(ms).await
    }

    async fn state(
        &mut self,
        state: AgentState,
        station: Option<Station>,
        activity: Option<String>,
    ) -> Result<(), Halt> {
        self.report(TurnEvent::State { state, station, activity }).await
    }

    fn next_request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(format!("sim-{}", self.requests))
    }

    async fn tool(&mut self, tool: AgentTool) -> Result<ToolAnswer, Halt> {
        let request = self.next_request();
        self.report(TurnEvent::Tool { request: request.clone(), tool }).await?;
        let answer = self
            .hear(|heard| match heard {
                TurnCommand::Answer { request: at, answer } if at == request => Some(answer),
                _ => None,
            })
            .await?;
        if !answer.ok {
            self.log(LogKind::Error, &answer.text).await?;
        }
        Ok(answer)
    }

    /// Waits for one command; a stop ends everything.
    async fn hear<T>(&mut self, mut wanted: impl FnMut(TurnCommand) -> Option<T>) -> Result<T, Halt> {
        loop {
            match self.ears.recv().await {
                Some(TurnCommand::Stop) | None => return Err(Halt::Stopped),
                Some(command) => {
                    if let Some(found) = wanted(command) {
                        return Ok(found);
                    }
                }
            }
        }
    }

    /// Lets time pass, as much as the pace says.
    async fn nap(&mut self, ms: u64) -> Result<(), Halt> {
        let ms = self.scaled(ms);
        let end = tokio::time::Instant::now() + Duration::from_millis(ms);
        loop {
            tokio::select! {
                biased;
                command = self.ears.recv() => match command {
                    Some(TurnCommand::Stop) | None => return Err(Halt::Stopped),
                    Some(_) => {}
                },
                () = tokio::time::sleep_until(end) => return Ok(()),
            }
        }
    }

    /// A length at this pace, with 20 % either way; nothing in a showcase.
    fn scaled(&mut self, ms: u64) -> u64 {
        if self.sim.options.showcase.is_some() {
            return 0;
        }
        let percent = 80 + self.roll() % 41;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "milliseconds of a beat are small"
        )]
        let scaled = (ms as f64 * percent as f64 / 100.0 / self.sim.options.speed.max(0.05)) as u64;
        scaled
    }

    /// The next number of a small generator (splitmix64): the same seed and turn give the same pace.
    fn roll(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn main_file(&self) -> String {
        self.own_script().and_then(|task| task.main_file.clone()).unwrap_or_else(|| "NOTES.md".to_owned())
    }

    /// Puts names and words of the turn into a text of the script.
    fn fill(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let brief = &self.spec.brief;
        let asked = match &brief.cause {
            Cause::ChangesRequested { text, .. } if !text.trim().is_empty() => one_line(text, 140),
            _ => "please tidy this up".to_owned(),
        };
        let task = brief.task.as_ref().map(|task| task.task.id.clone()).unwrap_or_else(|| TaskId::from("the task"));
        let goal = brief.goal.as_ref().map(|goal| one_line(&goal.text, 200)).unwrap_or_default();
        text.replace("{user}", &brief.user_name)
            .replace("{goal}", &goal)
            .replace("{task}", task.as_str())
            .replace("{text}", &asked)
            .replace("{base}", &brief.repo.base)
    }
}

fn one_line(text: &str, max: usize) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(max).collect()
}

/// The last two parts of a path.
fn short_path(path: &str) -> String {
    let parts: Vec<&str> = path.rsplit('/').take(2).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}
