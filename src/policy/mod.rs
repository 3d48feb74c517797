//! Judging one tool call: allow, ask (with the scope keys it needs) or deny.
//!
//! Reads the disk to resolve paths, never the state. Knows nobody else in this crate. Entry point: [`judge`].

mod access;
mod args;
mod arith;
pub mod disk;
mod env;
mod eval;
mod findings;
mod git;
mod glob;
mod lex;
mod paths;
mod program;
mod run;
mod scan;
mod scope;
mod shell;
mod special;
mod tools;
mod word;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use self::disk::{Disk, RealDisk};
use self::eval::{Eval, Stdin, Step};
use self::findings::Findings;
use self::paths::Places;
use self::scope::Scope;
pub use self::scope::describe;

/// A tool call as an engine reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Tool name, for example `Bash` or `Edit`.
    pub tool: String,
    /// The tool's input object, for example `{"command": "npm test"}`.
    pub input: serde_json::Value,
}

/// Who calls: a lead changes nothing, a worker works in its own worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    Lead,
    Worker,
}

/// Where an agent may read and write unasked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    pub role: Role,
    /// Working directory of the call; for a worker the root of its worktree. Absolute.
    pub cwd: PathBuf,
    /// The git directory that commands in `cwd` must end up in.
    pub git_dir: PathBuf,
    /// Directories that may be read and written (scratch).
    pub scratch: Vec<PathBuf>,
    /// Directories that may be read.
    pub read_dirs: Vec<PathBuf>,
    /// The home directory that `~` stands for.
    pub home: PathBuf,
    /// Name of the Foreman's own MCP server, whose tools are always allowed.
    pub own_server: String,
    /// Read commands the person allows the lead: program and leading words.
    pub lead_read_commands: Vec<String>,
}

/// What *Always allow for this agent* stores: the whole text of what it covers, never a short hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScopeKey(pub String);

/// The judge's word on one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Runs unasked.
    Allow,
    /// Is the person's call, unless every key is stored for the agent.
    Ask(Ask),
    /// Refused, whatever is stored; the reason is for the agent.
    Deny(String),
}

/// Why a call asks, and what *always* would cover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// One line in plain words.
    pub reason: String,
    /// Every key that must be stored for the call to run unasked. Never empty.
    pub keys: BTreeSet<ScopeKey>,
    /// The scope of *Always allow for this agent* in plain words, one line.
    pub covers: String,
}

/// Judges a call as the set of everything it would do, looking at this machine's disk.
///
/// Never panics and always ends; what is not positively known to be harmless asks. The answer holds for the disk as
/// it is now: judge again when an approval is answered.
#[must_use]
pub fn judge(call: &ToolCall, area: &Area) -> Verdict {
    judge_on(call, area, &RealDisk)
}

/// [`judge`] with another view of the disk.
#[must_use]
pub fn judge_on(call: &ToolCall, area: &Area, disk: &dyn Disk) -> Verdict {
    let places = Places::new(area, disk);
    if call.tool == "Bash" {
        return command(call, area, &places).0;
    }
    let mut findings = Findings::default();
    tools::judge_tool(call, area, &places, &mut findings);
    findings.verdict(area, &tools::exact(call, &area.cwd))
}

/// Judges a command: the scan of the whole text first, then what each part would do.
fn command(call: &ToolCall, area: &Area, places: &Places<'_>) -> (Verdict, Vec<Step>) {
    let text = call.input.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
    let exact = Scope::Exact { cwd: area.cwd.clone(), text: text.trim().to_string() };
    let mut eval = Eval::new(area, places);
    scan::scan(text, &mut eval.findings);
    if !eval.findings.denials.is_empty() {
        return (eval.findings.verdict(area, &exact), Vec::new());
    }
    if text.trim().is_empty() {
        eval.findings.ask("the command is empty");
    }
    let mut env = eval.start();
    eval.text(text, &mut env, &Stdin::Inherited);
    (eval.findings.verdict(area, &exact), eval.steps)
}

/// One simple command of a text with the verdict on it alone, for showing how the whole came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The part of the text.
    pub text: String,
    /// What it would be alone; the whole is the strictest of all parts.
    pub verdict: Verdict,
}

/// The verdict on each simple command of a `Bash` call, in the order they were judged, those of nested texts before
/// the command they stand in. Empty for other tools, and where the whole text is refused or not understood.
#[must_use]
pub fn explain(call: &ToolCall, area: &Area) -> Vec<Explained> {
    let places = Places::new(area, &RealDisk);
    if call.tool != "Bash" {
        return Vec::new();
    }
    let (_, steps) = command(call, area, &places);
    let exact = |text: &str| Scope::Exact { cwd: area.cwd.clone(), text: text.to_string() };
    steps
        .into_iter()
        .map(|step| Explained { verdict: step.findings.verdict(area, &exact(&step.text)), text: step.text })
        .collect()
}
