//! Verbs that speak to a running Foreman: `send`, `status`, `stop`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::{Failure, print};
use crate::client::console::{ConsoleContext, ConsoleLine, LocalCommand, Places, WAIT_MAX_MS, WaitFor, Waiting, parse};
use crate::client::{Link, LinkEvent, Mirror, remote};
use crate::config::Layer;
use crate::config::options::Machine;
use crate::protocol::{
    Ack, ClientMessage, Decision, DecisionId, DecisionStatus, Diff, DiffLineKind, DiffRequest, OptionChoice,
    ServerMessage, TaskStatus, label,
};
use crate::runtime::profile::find_running;

/// A Foreman that does not answer within this time is not there.
const ANSWER: Duration = Duration::from_secs(20);
/// A merge that takes longer is reported as not finished.
const MERGE: Duration = Duration::from_secs(10 * 60);
/// A Foreman that was asked to end and still runs is reported.
const END: Duration = Duration::from_secs(30);
/// Pause between two looks at whether it still runs.
const LOOK: Duration = Duration::from_millis(50);

/// Where a Foreman listens.
pub(crate) struct Door {
    port: u16,
}

/// The Foreman that is meant: by port, else by the profile's run file.
pub(super) fn find(home: &Path, layer: &Layer) -> Result<Door, Failure> {
    if let Some(port) = layer.port.filter(|port| *port != 0) {
        return Ok(Door { port });
    }
    match find_running(home, layer.profile.as_deref()) {
        Some(run) => Ok(Door { port: run.port }),
        None => Err(Failure::new(format!(
            "no Foreman runs in {}; start one with agentcraft-tui, or name its --port, --home or --profile",
            home.display()
        ))),
    }
}

/// A connected client with what it knows.
struct Caller {
    link: Link,
    mirror: Mirror,
}

impl Caller {
    async fn call(door: &Door) -> Result<Self, Failure> {
        let mut link = remote(door.port, "cli");
        let up = async {
            loop {
                match link.next().await {
                    LinkEvent::Up(snapshot) => return Ok(Mirror::from_snapshot(*snapshot)),
                    LinkEvent::Down { why, .. } | LinkEvent::Ended { why } => return Err(Failure::new(why)),
                    LinkEvent::Message(_) => {}
                }
            }
        };
        let mirror = tokio::time::timeout(ANSWER, up)
            .await
            .map_err(|_| Failure::new(format!("nothing answers on port {}", door.port)))??;
        Ok(Self { link, mirror })
    }

    /// The next message; what it changes is in the mirror.
    async fn hear(&mut self) -> Result<ServerMessage, Failure> {
        loop {
            match self.link.next().await {
                LinkEvent::Message(message) => {
                    self.mirror.apply(&message);
                    return Ok(message);
                }
                LinkEvent::Up(snapshot) => self.mirror = Mirror::from_snapshot(*snapshot),
                LinkEvent::Down { why, .. } | LinkEvent::Ended { why } => return Err(Failure::new(why)),
            }
        }
    }

    /// Sends a message and waits for its ack; a diff that came before it is given back too.
    async fn ask(&mut self, message: ClientMessage) -> Result<(Ack, Option<Box<Diff>>), Failure> {
        let id = self.link.send(message).await.map_err(Failure::new)?;
        let mut diff = None;
        let deadline = tokio::time::Instant::now() + ANSWER;
        loop {
            let heard = tokio::time::timeout_at(deadline, self.hear())
                .await
                .map_err(|_| Failure::new("the Foreman did not answer in time; look at `status`"))??;
            match heard {
                ServerMessage::Ack(ack) if ack.re == id => return Ok((ack, diff)),
                ServerMessage::Diff(made) => diff = Some(made),
                _ => {}
            }
        }
    }
}

/// One line of the console; exit 0 only when it was done.
pub(crate) async fn send(door: &Door, words: &[String], no_wait: bool, machine: &Machine) -> Result<ExitCode, Failure> {
    let line = if words == ["-"] {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut std::io::stdin(), &mut text).map_err(Failure::new)?;
        text
    } else {
        words.join(" ")
    };
    let mut caller = Caller::call(door).await?;
    let open: Vec<DecisionId> = caller.mirror.open_decisions().iter().map(|decision| decision.id.clone()).collect();
    // Without a podium, an answer without an id is meant for the only open decision.
    let only = match open.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    let places = Places { cwd: machine.cwd.clone(), home: machine.user_home.clone(), listing: None };
    let context = ConsoleContext::new(&caller.mirror, only.as_ref()).with_places(&places);
    match parse(&line, &context).map_err(Failure::new)? {
        ConsoleLine::Send(message) => tell(&mut caller, message, no_wait).await,
        ConsoleLine::Local(LocalCommand::Diff { repo, worktree, .. }) => {
            let request = DiffRequest { request_id: "cli".to_owned(), repo_id: repo, worktree, path: None };
            let (_, diff) = caller.ask(ClientMessage::DiffRequest(request)).await?;
            let diff = diff.ok_or_else(|| Failure::new("no diff came"))?;
            match diff.error {
                Some(error) => Err(Failure::new(error)),
                None => {
                    print(&diff_text(&diff));
                    Ok(ExitCode::SUCCESS)
                }
            }
        }
        ConsoleLine::Local(LocalCommand::Wait(wait)) => wait_for(&mut caller, &wait).await,
        ConsoleLine::Local(command) => {
            print(&look(&caller.mirror, &command));
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn tell(caller: &mut Caller, message: ClientMessage, no_wait: bool) -> Result<ExitCode, Failure> {
    let merge = match &message {
        ClientMessage::DecisionAnswer(answer) => {
            let option = match &answer.option {
                Some(OptionChoice::Label(label)) => Some(label.clone()),
                Some(OptionChoice::Index(at)) => caller
                    .mirror
                    .decisions
                    .get(&answer.decision_id)
                    .and_then(|decision| decision.options.get(*at as usize).cloned()),
                None => None,
            };
            (option.as_deref() == Some(label::MERGE)).then(|| answer.decision_id.clone())
        }
        _ => None,
    };
    let (ack, _) = caller.ask(message).await?;
    if !ack.ok {
        return Err(Failure::new(ack.error.unwrap_or_else(|| "refused".to_owned())));
    }
    let result: Vec<String> = ack
        .result
        .unwrap_or_default()
        .iter()
        .map(|(key, value)| format!("{key} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    match merge {
        Some(id) if !no_wait => merged(caller, &id).await,
        _ => {
            print(&format!("ok {}\n", result.join(", ")));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Waits until git is through with an answered merge.
async fn merged(caller: &mut Caller, id: &DecisionId) -> Result<ExitCode, Failure> {
    let deadline = tokio::time::Instant::now() + MERGE;
    loop {
        let Some(decision) = caller.mirror.decisions.get(id).cloned() else {
            return Err(Failure::new(format!("{id} is gone")));
        };
        let task = decision.task_id.as_ref().and_then(|task| caller.mirror.tasks.get(task)).cloned();
        if decision.status == DecisionStatus::Open {
            return Err(Failure::new(refusal(&decision)));
        }
        match task {
            Some(task) if task.status == TaskStatus::Done => {
                print(&format!("merged {} ({})\n", task.id, task.branch.unwrap_or_default()));
                return Ok(ExitCode::SUCCESS);
            }
            Some(task) if matches!(task.status, TaskStatus::Doing | TaskStatus::Todo) => {
                return Err(Failure::new(format!(
                    "{} conflicts with the base branch: it went back to its worker",
                    task.id
                )));
            }
            Some(_) => {}
            None => return Ok(ExitCode::SUCCESS),
        }
        tokio::time::timeout_at(deadline, caller.hear())
            .await
            .map_err(|_| Failure::new("the merge is not through yet; look at `status`"))??;
    }
}

fn refusal(decision: &Decision) -> String {
    let context = decision.context.clone().unwrap_or_default();
    match context.rsplit_once("Merge refused: ") {
        Some((_, reason)) => format!("merge refused: {reason}"),
        None => "the merge was refused".to_owned(),
    }
}

async fn wait_for(caller: &mut Caller, wait: &WaitFor) -> Result<ExitCode, Failure> {
    if let WaitFor::Pause(ms) = wait {
        tokio::time::sleep(Duration::from_millis(*ms)).await;
        return Ok(ExitCode::SUCCESS);
    }
    let deadline = tokio::time::Instant::now() + Duration::from_millis(WAIT_MAX_MS);
    loop {
        match wait.check(&caller.mirror) {
            Waiting::Holds(said) => {
                print(&format!("{said}\n"));
                return Ok(ExitCode::SUCCESS);
            }
            Waiting::Missed(why) => return Err(Failure::new(why)),
            Waiting::Going => {}
        }
        tokio::time::timeout_at(deadline, caller.hear())
            .await
            .map_err(|_| Failure::new("waited for half an hour"))??;
    }
}

fn diff_text(diff: &Diff) -> String {
    let mut text = String::new();
    for file in &diff.files {
        text.push_str(&format!("{} {} +{} -{}\n", file.status, file.path, file.additions, file.deletions));
        for hunk in &file.hunks {
            text.push_str(&format!("{}\n", hunk.header));
            for line in &hunk.lines {
                let sign = match line.kind {
                    DiffLineKind::Add => '+',
                    DiffLineKind::Del => '-',
                    DiffLineKind::Ctx => ' ',
                };
                text.push_str(&format!("{sign}{}\n", line.text));
            }
        }
    }
    let stats = diff.stats;
    text.push_str(&format!("{} files, +{} -{}\n", stats.files, stats.additions, stats.deletions));
    if diff.truncated {
        text.push_str("(cut; the screen shows single files whole)\n");
    }
    text
}

/// A view as text.
fn look(mirror: &Mirror, command: &LocalCommand) -> String {
    match command {
        LocalCommand::Agents => agents(mirror),
        LocalCommand::Tasks => tasks(mirror),
        LocalCommand::Decisions => decisions(mirror),
        LocalCommand::Memory(Some(id)) => {
            mirror.memory.get(id).map(|note| format!("# {}\n{}\n", note.title, note.body)).unwrap_or_default()
        }
        LocalCommand::Memory(None) => {
            mirror.memory.values().map(|note| format!("{}: {}\n", note.id, note.title)).collect()
        }
        LocalCommand::Feed => {
            mirror.feed.iter().rev().take(30).rev().map(|item| format!("{} {}\n", item.kind, item.text)).collect()
        }
        LocalCommand::Counts => format!(
            "{} tasks, {} open decisions, {} goals, {} repositories, {} notes\n",
            mirror.tasks.len(),
            mirror.open_decisions().len(),
            mirror.goals.len(),
            mirror.repos.len(),
            mirror.memory.len()
        ),
        LocalCommand::Help => crate::client::console::COMMANDS
            .iter()
            .map(|command| format!("{:44} {}\n", command.usage, command.what))
            .collect(),
        LocalCommand::Status | LocalCommand::Quit | LocalCommand::Wait(_) | LocalCommand::Diff { .. } => people(mirror),
    }
}

fn agents(mirror: &Mirror) -> String {
    mirror
        .agents
        .iter()
        .map(|agent| {
            let shift = match (agent.active, agent.paused) {
                (false, _) => "off shift",
                (true, true) => "paused",
                (true, false) => agent.state.as_str(),
            };
            let task = agent.task_id.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{:8} {:13} {:4} {}\n", agent.name, shift, task, agent.activity)
        })
        .collect()
}

fn tasks(mirror: &Mirror) -> String {
    mirror
        .tasks
        .values()
        .map(|task| {
            let who = task.assignee.as_ref().map(ToString::to_string).unwrap_or_else(|| "-".to_owned());
            let why = task.blocked_reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{:4} {:9} {:8} ci {:7} {}{why}\n", task.id, task.status, who, task.ci, task.title)
        })
        .collect()
}

fn decisions(mirror: &Mirror) -> String {
    let mut text = String::new();
    for decision in mirror.open_decisions() {
        text.push_str(&format!("{} {}: {}\n", decision.id, decision.kind, decision.question));
        for (at, option) in decision.options.iter().enumerate() {
            text.push_str(&format!("   {} {option}\n", at + 1));
        }
    }
    if text.is_empty() { "nothing waits for you\n".to_owned() } else { text }
}

/// How things stand, for people.
fn people(mirror: &Mirror) -> String {
    let foreman = &mirror.foreman;
    let mut text = format!(
        "Foreman {} ({}), login {}{}\n",
        foreman.version,
        foreman.backend,
        foreman.auth,
        foreman.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default()
    );
    for repo in mirror.repos.values() {
        let dirty = if repo.dirty { ", uncommitted changes" } else { "" };
        text.push_str(&format!("{} {} at {}{dirty}\n", repo.path, repo.branch, repo.head.clone().unwrap_or_default()));
    }
    for goal in mirror.goals.values() {
        text.push_str(&format!("{} {} {:.0} %: {}\n", goal.id, goal.status, goal.progress * 100.0, goal.text));
    }
    text.push_str(&format!("\n{}\n{}\n{}", agents(mirror), tasks(mirror), decisions(mirror)));
    text
}

/// The snapshot, or its summary.
pub(crate) async fn status(door: &Door, json: bool) -> Result<ExitCode, Failure> {
    let caller = Caller::call(door).await?;
    if json {
        let snapshot = serde_json::to_string_pretty(&caller.mirror.snapshot()).map_err(Failure::new)?;
        print(&format!("{snapshot}\n"));
    } else {
        print(&people(&caller.mirror));
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends the running Foreman and waits until it has ended.
pub(crate) async fn stop(home: &Path, layer: &Layer) -> Result<ExitCode, Failure> {
    let run = find_running(home, layer.profile.as_deref())
        .filter(|run| layer.port.is_none_or(|port| port == 0 || port == run.port))
        .ok_or_else(|| Failure::new(format!("no Foreman runs in {}", home.display())))?;
    let pid = i32::try_from(run.pid).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::new("the run file names no process"))?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)
        .map_err(|error| Failure::new(format!("process {} can't be ended: {error}", run.pid)))?;
    let deadline = tokio::time::Instant::now() + END;
    while find_running(home, Some(&run.profile)).is_some() {
        if tokio::time::Instant::now() > deadline {
            return Err(Failure::new(format!("process {} has not ended yet", run.pid)));
        }
        tokio::time::sleep(LOOK).await;
    }
    print(&format!("the Foreman of profile {:?} has ended\n", run.profile));
    Ok(ExitCode::SUCCESS)
}
