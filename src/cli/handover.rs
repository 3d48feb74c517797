//! What the command line wants of a Foreman once it runs: repositories to connect, and a goal.

use std::path::{Path, PathBuf};

use super::error::CliError;
use super::output;
use super::session::{Session, refusal, result};
use crate::protocol::{ClientMessage, GoalSubmit, RepoAdd, RepoId};

/// A goal, and when to submit it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GoalWish {
    None,
    /// Now.
    Submit(String),
    /// Only when the profile never had one.
    First(String),
}

/// What a repository that can't be connected means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The person named it just now: nothing goes on without it.
    Fails,
    /// The file names it: that is said, and the rest goes on.
    IsSaid,
}

/// Connects the repositories and submits the goal, in the last repository connected.
pub(super) async fn hand_over(
    session: &mut Session,
    repos: &[PathBuf],
    missing: Missing,
    goal: GoalWish,
) -> Result<(), CliError> {
    let mut last = None;
    for path in repos {
        match (connect(session, path).await, missing) {
            (Ok(id), _) => last = Some(id),
            (Err(CliError::Refused(reason)), Missing::IsSaid) => {
                tracing::warn!(%reason, "a repository of the configuration");
                output::complain(&format!("warning: {reason}"));
            }
            (Err(error), _) => return Err(error),
        }
    }
    let text = match goal {
        GoalWish::None => return Ok(()),
        GoalWish::First(_) if !session.mirror.goals.is_empty() => return Ok(()),
        GoalWish::Submit(text) | GoalWish::First(text) => text,
    };
    session.must(ClientMessage::GoalSubmit(GoalSubmit { text, repo_id: last })).await?;
    Ok(())
}

/// Connects one repository.
async fn connect(session: &mut Session, path: &Path) -> Result<RepoId, CliError> {
    let shown = path.display();
    let wire = path.to_str().ok_or_else(|| CliError::Refused(format!("{shown}: the path is not valid UTF-8")))?;
    let ack = session.ask(ClientMessage::RepoAdd(RepoAdd { path: wire.to_owned() }), |_| {}).await?;
    if !ack.ok {
        return Err(CliError::Refused(format!("{shown} could not be connected: {}", refusal(&ack))));
    }
    Ok(RepoId::from(result(&ack, "repoId").unwrap_or_default()))
}
