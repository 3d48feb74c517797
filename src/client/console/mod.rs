//! The console's language: one line of the person is one message to the Foreman, or one thing to look at.
//!
//! Pure; knows the wire and the [`Mirror`], neither a screen nor a link. Every front-end reads lines with it, so that
//! `/answer d2 Merge` means the same on the screen and in a script. Where the protocol document's console table and
//! safety pull apart, safety wins: see [`answer`]. Entry points: [`parse`], [`preview`], [`complete`].

mod answer;
mod commands;
mod complete;
mod error;
mod preview;
mod see;
mod steer;
#[cfg(test)]
mod tests;
mod wait;
mod words;

use std::path::PathBuf;

pub use commands::{COMMANDS, Command};
pub use complete::{Completion, complete, wanted_listing};
pub use error::ConsoleError;
pub use preview::preview;
pub use wait::{WAIT_MAX_MS, WaitFor, Waiting};

use super::mirror::Mirror;
use crate::protocol::limits::{GOAL_TEXT_CHARS, MESSAGE_TEXT_CHARS};
use crate::protocol::{ClientMessage, DecisionId, GoalSubmit, MemoryId, RepoId, TaskId, UserMessage, WorktreeId};

/// What a line is read against.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleContext<'a> {
    pub mirror: &'a Mirror,
    /// The decision that `/answer` without an id means: the one the person is looking at.
    pub shown_decision: Option<&'a DecisionId>,
    /// Where relative paths start; without it only absolute paths are taken.
    pub places: Option<&'a Places>,
}

impl<'a> ConsoleContext<'a> {
    /// A context without places.
    pub fn new(mirror: &'a Mirror, shown_decision: Option<&'a DecisionId>) -> Self {
        Self { mirror, shown_decision, places: None }
    }

    /// The same context, in which `~` and relative paths are understood.
    pub fn with_places(self, places: &'a Places) -> Self {
        Self { places: Some(places), ..self }
    }
}

/// What is known of the file system around the person; read by the caller, so that reading lines stays pure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Absolute: where relative paths start.
    pub cwd: PathBuf,
    /// Absolute: what `~` means.
    pub home: Option<PathBuf>,
    /// The directory that [`wanted_listing`] last asked for.
    pub listing: Option<Listing>,
}

/// The subdirectories of one directory, for completing paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub dir: PathBuf,
    /// Names, without the path.
    pub names: Vec<String>,
}

/// What a line means.
#[derive(Clone, Debug, PartialEq)]
pub enum ConsoleLine {
    /// To be sent to the Foreman.
    Send(ClientMessage),
    /// To be shown or done by the front-end itself.
    Local(LocalCommand),
}

/// Commands the front-end carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalCommand {
    Status,
    Agents,
    Tasks,
    Decisions,
    /// One note, or all.
    Memory(Option<MemoryId>),
    Feed,
    Counts,
    /// Ask for a worktree's diff (`diff.request`) and show it.
    Diff {
        repo: RepoId,
        worktree: WorktreeId,
        of: DiffOf,
    },
    Help,
    Quit,
    /// For scripts: wait until something holds.
    Wait(WaitFor),
}

/// What the person named when asking for a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffOf {
    Worktree,
    Decision(DecisionId),
    Task(TaskId),
}

/// Reads one line, or one pasted text of several lines.
///
/// Text that is sent keeps its line breaks and inner blanks; only its ends are trimmed.
pub fn parse(line: &str, context: &ConsoleContext<'_>) -> Result<ConsoleLine, ConsoleError> {
    let text = line.trim();
    if text.is_empty() {
        return Err(ConsoleError::Empty);
    }
    if let Some(command) = text.strip_prefix('/') {
        return commands::run(command, context);
    }
    if let Some(message) = text.strip_prefix('@') {
        return user_message(message, context);
    }
    goal(text, None, context)
}

/// `@name text`; `rest` is what stands behind the `@`.
fn user_message(rest: &str, context: &ConsoleContext<'_>) -> Result<ConsoleLine, ConsoleError> {
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ':')).unwrap_or(rest.len());
    let (name, body) = rest.split_at(end);
    let body = body.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ':'));
    let to_all = name.eq_ignore_ascii_case("all");
    let to = if to_all {
        "all".to_owned()
    } else {
        steer::agent(name, context).map_err(|error| error.or_as_goal())?.id.to_string()
    };
    if body.is_empty() {
        let name = if to_all { "the team" } else { context.mirror.display_name(&to) };
        return Err(ConsoleError::NoText { to: name.to_owned() });
    }
    limit(body, MESSAGE_TEXT_CHARS)?;
    // To everyone, a name at the start of the text would be taken as the receiver.
    let text = if to_all && body.starts_with('@') { format!("@all {body}") } else { body.to_owned() };
    Ok(ConsoleLine::Send(ClientMessage::UserMessage(UserMessage { to, text })))
}

/// A goal for the lead, in the named repository or the one connected last.
fn goal(text: &str, repo: Option<RepoId>, context: &ConsoleContext<'_>) -> Result<ConsoleLine, ConsoleError> {
    if context.mirror.repos.is_empty() {
        return Err(ConsoleError::NoRepo);
    }
    limit(text, GOAL_TEXT_CHARS)?;
    Ok(ConsoleLine::Send(ClientMessage::GoalSubmit(GoalSubmit { text: text.to_owned(), repo_id: repo })))
}

/// Refuses a text of more than `most` characters.
fn limit(text: &str, most: usize) -> Result<(), ConsoleError> {
    let length = text.chars().count();
    if length > most { Err(ConsoleError::TooLong { length, most }) } else { Ok(()) }
}
