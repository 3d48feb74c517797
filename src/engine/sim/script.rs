//! Scripts as data: what the simulated agents do, beat by beat.
//!
//! Beats wait on facts, never on time. Names of tasks, files and decisions stand only in the scripts; so do all words.
//! In texts, `{user}`, `{goal}`, `{task}`, `{text}` and `{base}` are replaced when they are played.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::protocol::{AgentState, Station, TaskStatus};
use crate::turn::{MemoryMode, MemoryScope, ToolStatus};

/// One scripted goal, or the generic one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The goal's text; none: any.
    pub goal: Option<String>,
    /// Only in the Foreman's own demo repository.
    #[serde(default)]
    pub demo_only: bool,
    /// How many decisions a showcase answers before it holds, by its name.
    #[serde(default)]
    pub showcase: BTreeMap<String, u64>,
    /// The lead's plan turn.
    pub plan: Vec<Beat>,
    pub tasks: BTreeMap<String, TaskScript>,
    /// Conversations: the first whose conditions hold is played.
    #[serde(default)]
    pub followup: Vec<Talk>,
    /// Played when no conversation fits.
    pub replies: Vec<String>,
    /// Changes requested for a task without its own `revise`.
    pub revise: Vec<Beat>,
    /// Conflict with the base.
    pub conflict: Vec<Beat>,
    /// Lines an agent logs while it waits or holds.
    #[serde(default)]
    pub ambient: Vec<String>,
}

/// A task of a script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskScript {
    pub title: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub deps: Vec<String>,
    #[serde(default)]
    pub assignee: Option<String>,
    #[serde(default)]
    pub priority: i64,
    /// The file that a review note goes to.
    #[serde(default)]
    pub main_file: Option<String>,
    #[serde(default)]
    pub work: Vec<Beat>,
    #[serde(default)]
    pub review: Vec<Beat>,
    #[serde(default)]
    pub ci_failed: Vec<Beat>,
    #[serde(default)]
    pub revise: Vec<Beat>,
}

/// A conversation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Talk {
    pub agent: String,
    /// A message of the inbox holds this text, in any case.
    #[serde(default)]
    pub says: Option<String>,
    #[serde(default)]
    pub when: Vec<Fact>,
    pub beats: Vec<Beat>,
}

/// Something that can be seen on the wall or the podium, or in the working directory.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// A task of the script.
    #[serde(default)]
    pub task: Option<String>,
    /// The task has one of these statuses.
    #[serde(default)]
    pub status: Vec<TaskStatus>,
    /// Nobody is at the task: it is not doing, or its worker is paused or off shift.
    #[serde(default)]
    pub unattended: bool,
    /// A decision of this kind about the task exists: "question", "permission" or "merge".
    #[serde(default)]
    pub decision: Option<String>,
    /// A question with this text is closed.
    #[serde(default)]
    pub answered: Option<String>,
    /// A file of the working directory does not exist.
    #[serde(default)]
    pub missing: Option<String>,
    /// The diff under review holds this text.
    #[serde(default)]
    pub diff: Option<String>,
    /// Turns the fact around.
    #[serde(default)]
    pub not: bool,
}

/// One step of a turn. `ms` is its length at speed 1; without it, the kind has one.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Beat {
    /// Shows a state; the activity defaults to what was shown.
    State {
        state: AgentState,
        #[serde(default)]
        station: Option<Station>,
        #[serde(default)]
        activity: Option<String>,
        #[serde(default)]
        ms: Option<u64>,
    },
    /// Thinks aloud into the log.
    Think {
        text: String,
        #[serde(default)]
        ms: Option<u64>,
    },
    /// Speaks to the room, an agent or the person.
    Say {
        text: String,
        #[serde(default)]
        to: Option<String>,
    },
    /// Reads a file.
    Read { path: String },
    /// Looks for a text in all tracked files.
    Search { pattern: String },
    /// Writes a file whole.
    Write {
        path: String,
        text: String,
        #[serde(default)]
        executable: bool,
    },
    /// Puts text behind the first line that holds the anchor, once.
    Insert { path: String, after: String, text: String },
    /// Replaces text; done already when the new text is there.
    Replace { path: String, old: String, new: String },
    /// Adds text at the end, once.
    Append { path: String, text: String },
    /// Runs a command.
    Run { command: String },
    /// Runs the repository's tests.
    Test,
    /// Commits everything, if there is something.
    Commit { message: String },
    /// Takes the base in, keeping both sides of what clashes.
    MergeBase,
    /// Makes a task of the script.
    CreateTask { task: String },
    /// Sends a message.
    Send { to: String, text: String },
    /// Says how a task stands; without `task` the turn's own.
    Update {
        #[serde(default)]
        task: Option<String>,
        status: ToolStatus,
        #[serde(default)]
        summary: Option<String>,
        #[serde(default)]
        reason: Option<String>,
    },
    /// Asks the person to merge the task under review.
    RequestMerge { summary: String },
    /// Writes a note.
    Note {
        title: String,
        body: String,
        #[serde(default)]
        scope: MemoryScope,
        #[serde(default)]
        mode: MemoryMode,
    },
    /// Reports a status line.
    Report { activity: String },
    /// Looks at the board.
    ListTasks,
    /// Asks before a command, runs it if it may.
    Permission {
        command: String,
        #[serde(default)]
        allowed: Vec<Self>,
        #[serde(default)]
        denied: Vec<Self>,
    },
    /// Asks the person; each option has its beats, free text those of the first.
    Ask {
        question: String,
        options: Vec<String>,
        #[serde(default)]
        context: Option<String>,
        #[serde(default)]
        answers: Vec<Vec<Self>>,
    },
    /// Branches on an answered question of any turn: the beats of its option.
    Answered { question: String, answers: Vec<Vec<Self>> },
    /// Waits until one of the facts holds.
    WaitUntil { any: Vec<Fact> },
    /// Branches on facts: all must hold.
    If {
        all: Vec<Fact>,
        #[serde(default)]
        then: Vec<Self>,
        #[serde(default, rename = "else")]
        otherwise: Vec<Self>,
    },
    /// Fails the turn in a passing way, the first time only.
    FailOnce { reason: String, retry_ms: u64 },
    /// Holds still in a showcase of this name; nothing otherwise.
    Hold { showcase: String },
}

/// Parses a script.
///
/// # Errors
/// What TOML says, with the line.
pub fn parse(text: &str) -> Result<Script, toml::de::Error> {
    toml::from_str(text)
}
