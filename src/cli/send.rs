//! `send LINE`: one line of the console, to the running Foreman; prints what it answered.

use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::Instant;

use super::error::CliError;
use super::locate::Found;
use super::session::{Patience, Session, block_on, refusal, result};
use super::{output, show};
use crate::client::Mirror;
use crate::client::console::{self, ConsoleContext, ConsoleLine, LocalCommand, Places, WAIT_MAX_MS, WaitFor, Waiting};
use crate::config::options::Machine;
use crate::protocol::{
    Ack, ClientMessage, DecisionId, DecisionKind, DecisionStatus, DiffRequest, OptionChoice, RepoId, ServerMessage,
    TaskStatus, WorktreeId, WorktreeStatus, label,
};

/// The line that the words make; a single `-` reads it from standard input.
pub(super) fn text(words: &[String]) -> Result<String, CliError> {
    if words == ["-"] {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(CliError::Input)?;
        return Ok(text);
    }
    Ok(words.join(" "))
}

pub(super) fn send(found: Found, text: &str, no_wait: bool, machine: &Machine) -> Result<ExitCode, CliError> {
    block_on(async {
        let mut session = Session::open(found.port, patience(text)).await?;
        let places = Places { cwd: machine.cwd.clone(), home: machine.user_home.clone(), listing: None };
        let line = read(text, &session.mirror, &places)?;
        match line {
            ConsoleLine::Send(message) => deliver(&mut session, message, no_wait).await,
            ConsoleLine::Local(LocalCommand::Diff { repo, worktree, .. }) => diff(&mut session, repo, worktree).await,
            ConsoleLine::Local(LocalCommand::Wait(what)) => wait(&mut session, &what).await,
            ConsoleLine::Local(LocalCommand::Quit) => {
                Err(CliError::Refused("there is no screen to leave; `agentcraft-tui stop` ends the Foreman".to_owned()))
            }
            ConsoleLine::Local(command) => {
                output::say(&show::local(&command, &session.mirror));
                Ok(ExitCode::SUCCESS)
            }
        }
    })
}

/// A script that waits may be there before its Foreman.
fn patience(text: &str) -> Patience {
    if text.trim_start().starts_with("/wait") {
        Patience::Until(Instant::now() + Duration::from_millis(WAIT_MAX_MS))
    } else {
        Patience::Running
    }
}

/// Reads the line; without an id the only open decision is meant.
fn read(text: &str, mirror: &Mirror, places: &Places) -> Result<ConsoleLine, CliError> {
    let open = mirror.open_decisions();
    let shown = match open.as_slice() {
        [only] => Some(&only.id),
        _ => None,
    };
    Ok(console::parse(text, &ConsoleContext::new(mirror, shown).with_places(places))?)
}

async fn deliver(session: &mut Session, message: ClientMessage, no_wait: bool) -> Result<ExitCode, CliError> {
    let asked = message.clone();
    let ack = session.must(message).await?;
    output::say(&show::accepted(&asked, &ack, &session.mirror));
    if let ClientMessage::DecisionAnswer(answer) = &asked
        && answer.option == Some(OptionChoice::Label(label::MERGE.to_owned()))
        && session.mirror.decisions.get(&answer.decision_id).is_some_and(|known| known.kind == DecisionKind::Merge)
        && !no_wait
    {
        return merged(session, &answer.decision_id, &ack).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until git has merged, or has refused to.
async fn merged(session: &mut Session, id: &DecisionId, ack: &Ack) -> Result<ExitCode, CliError> {
    let deadline = Instant::now() + Duration::from_millis(WAIT_MAX_MS);
    // A Foreman that merges before it acks says in the ack how it went.
    let mut reopened = result(ack, "status") == Some(DecisionStatus::Open.as_str());
    loop {
        match merge_stands(&session.mirror, id) {
            Waiting::Holds(said) => {
                output::say(&said);
                return Ok(ExitCode::SUCCESS);
            }
            Waiting::Missed(why) => return Err(CliError::Refused(why)),
            Waiting::Going if reopened => return Err(CliError::Refused("the merge was refused".to_owned())),
            Waiting::Going => {}
        }
        if session.next(deadline).await?.is_none() {
            return Err(CliError::TooLong { seconds: WAIT_MAX_MS / 1000 });
        }
        reopened = false;
    }
}

/// How an answered merge stands in this state.
fn merge_stands(mirror: &Mirror, id: &DecisionId) -> Waiting {
    let Some(decision) = mirror.decisions.get(id) else {
        return Waiting::Missed(format!("{id} is no longer known; see /tasks"));
    };
    match decision.status {
        DecisionStatus::Open => {
            let context = decision.context.as_deref().unwrap_or_default();
            let reason = context.rsplit_once("Merge refused: ").map_or("no reason given", |(_, reason)| reason.trim());
            return Waiting::Missed(format!("merge refused: {reason}"));
        }
        DecisionStatus::Cancelled => return Waiting::Missed(format!("{id} was withdrawn before the merge was done")),
        DecisionStatus::Answered => {}
    }
    let worktree = decision.worktree.as_ref();
    let worktree = mirror.worktrees().find(|(_, known)| Some(&known.id) == worktree);
    if let Some((_, worktree)) = worktree
        && worktree.status == WorktreeStatus::Merged
    {
        return Waiting::Holds(format!("merged {} into {}", worktree.branch, worktree.base));
    }
    let Some(task) = decision.task_id.as_ref().and_then(|task| mirror.tasks.get(task)) else { return Waiting::Going };
    match task.status {
        TaskStatus::Done => Waiting::Holds(format!("{} is done", task.id)),
        TaskStatus::Review => Waiting::Going,
        TaskStatus::Todo | TaskStatus::Doing => {
            let why = "the merge met conflicts and the task went back to its worker";
            Waiting::Missed(format!("{} was not merged: {why}", task.id))
        }
        TaskStatus::Blocked => {
            let why = task.blocked_reason.as_deref().unwrap_or("no reason given");
            Waiting::Missed(format!("{} was not merged, it is blocked: {why}", task.id))
        }
        TaskStatus::Cancelled => Waiting::Missed(format!("{} was cancelled", task.id)),
    }
}

async fn diff(session: &mut Session, repo_id: RepoId, worktree: WorktreeId) -> Result<ExitCode, CliError> {
    let request = DiffRequest { request_id: "cli".to_owned(), repo_id, worktree, path: None };
    let mut found = None;
    let ack = session
        .ask(ClientMessage::DiffRequest(request), |message| {
            if let ServerMessage::Diff(diff) = message {
                found = Some(diff.clone());
            }
        })
        .await?;
    match found {
        _ if !ack.ok => Err(CliError::Refused(refusal(&ack))),
        Some(diff) => match &diff.error {
            Some(error) => Err(CliError::Refused(error.clone())),
            None => {
                output::say(&show::diff(&diff));
                Ok(ExitCode::SUCCESS)
            }
        },
        None => Err(CliError::Refused("the Foreman sent no diff".to_owned())),
    }
}

async fn wait(session: &mut Session, what: &WaitFor) -> Result<ExitCode, CliError> {
    let longest = match what {
        WaitFor::Pause(ms) => *ms,
        _ => WAIT_MAX_MS,
    };
    let deadline = Instant::now() + Duration::from_millis(longest);
    loop {
        match what.check(&session.mirror) {
            Waiting::Holds(said) => {
                output::say(&said);
                return Ok(ExitCode::SUCCESS);
            }
            Waiting::Missed(why) => return Err(CliError::Refused(why)),
            Waiting::Going => {}
        }
        if session.next(deadline).await?.is_none() {
            return match what {
                WaitFor::Pause(_) => Ok(ExitCode::SUCCESS),
                _ => Err(CliError::TooLong { seconds: WAIT_MAX_MS / 1000 }),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::sample;
    use crate::protocol::DecisionAnswer;

    /// The sample with d2 answered *Merge* and altered further.
    fn stands(alter: impl FnOnce(&mut Mirror)) -> Waiting {
        let mut mirror = Mirror::from_snapshot(sample::snapshot());
        let d2 = mirror.decisions.get_mut("d2").expect("the sample has it");
        d2.status = DecisionStatus::Answered;
        d2.answer = Some(DecisionAnswer { option: Some("Merge".to_owned()), text: None, ts: 9 });
        alter(&mut mirror);
        merge_stands(&mirror, &"d2".into())
    }

    /// An answered merge goes on until git is through; every way it can end is told apart.
    #[test]
    fn how_a_merge_ends() {
        let task = |status: TaskStatus| {
            move |mirror: &mut Mirror| mirror.tasks.get_mut("t2").expect("the sample has it").status = status
        };
        assert_eq!(stands(|_| {}), Waiting::Going);
        assert_eq!(stands(task(TaskStatus::Done)), Waiting::Holds("t2 is done".to_owned()));
        let merged = stands(|mirror| {
            let repo = mirror.repos.get_mut("demo-app").expect("the sample has it");
            repo.worktrees[0].status = WorktreeStatus::Merged;
        });
        assert_eq!(merged, Waiting::Holds("merged agentcraft/kit/t2-x into main".to_owned()));
        let refused = stands(|mirror| {
            let d2 = mirror.decisions.get_mut("d2").expect("the sample has it");
            d2.status = DecisionStatus::Open;
            d2.context = Some("2 files\n\nMerge refused: the checkout is dirty".to_owned());
        });
        assert_eq!(refused, Waiting::Missed("merge refused: the checkout is dirty".to_owned()));
        assert!(matches!(stands(task(TaskStatus::Doing)), Waiting::Missed(why) if why.contains("conflicts")));
        assert!(matches!(stands(task(TaskStatus::Cancelled)), Waiting::Missed(_)));
        assert!(matches!(
            stands(|mirror| {
                mirror.decisions.remove("d2");
            }),
            Waiting::Missed(_)
        ));
    }
}
