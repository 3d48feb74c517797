//! Judging one tool call: allow, ask (with the scope keys it needs) or deny.
//!
//! Reads the disk to resolve paths, never the state. Knows nobody else in this crate. Entry point: [`judge`].

pub mod disk;
mod findings;
mod paths;
mod scope;
mod tools;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use self::disk::{Disk, RealDisk};
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
    let mut findings = Findings::default();
    if call.tool == "Bash" {
        let text = call.input.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
        if text.contains("git") && text.contains("push") {
            findings.deny("agents never push: the Foreman brings branches over");
        }
        findings.ask("runs a command");
        return findings.verdict(area, &Scope::Exact { cwd: area.cwd.clone(), text: text.trim().to_string() });
    }
    tools::judge_tool(call, area, &places, &mut findings);
    findings.verdict(area, &tools::exact(call, &area.cwd))
}
