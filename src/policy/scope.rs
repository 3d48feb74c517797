//! Scope keys: what *Always allow for this agent* covers, as key text and in plain words.
//!
//! Owns the shape of a key. A key's text is the JSON of a [`Scope`] with the repository and the role it was made
//! for, so two keys are equal exactly when they cover the same thing; nothing is shortened or hashed. Knows nothing
//! of how a command is judged. Entry points: [`Scope::key`], [`describe`].

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Area, Role, ScopeKey};

/// How a place outside the area is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Read,
    Write,
    Run,
}

/// One thing an agent may be allowed to do from now on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Scope {
    /// An action inside the worktree, for example `rm -r`.
    Capability { action: String },
    /// An action on exactly one target, for example `git checkout` of one branch.
    Target { action: String, target: String },
    /// A program on files directly in one directory outside.
    OutsideDir { program: String, mode: Mode, dir: PathBuf },
    /// A program on one outside path and what is below it.
    OutsideTree { program: String, mode: Mode, path: PathBuf },
    /// Changing to one directory.
    Cd { dir: PathBuf },
    /// A network tool with hosts (sorted) or its two subcommand words.
    Net { tool: String, to: Vec<String> },
    /// One package through one runner.
    Package { runner: String, package: String },
    /// One script file run by one shell.
    Script { shell: String, path: PathBuf },
    /// One module run as a program.
    Module { program: String, module: String },
    /// One entry of a git directory.
    GitEntry { tool: String, file: PathBuf },
    /// A client tool on files directly in one directory.
    ToolDir { tool: String, dir: PathBuf },
    /// A client tool on one tree.
    ToolTree { tool: String, path: PathBuf },
    /// A client tool with exactly one pattern, seen from one directory.
    ToolPattern { tool: String, cwd: PathBuf, pattern: String },
    /// A client tool and one host.
    ToolHost { tool: String, host: String },
    /// A client tool or MCP tool whatever its input.
    Tool { tool: String },
    /// A client tool with exactly this input.
    ToolInput { tool: String, cwd: PathBuf, input: String },
    /// Exactly this command text in this directory.
    Exact { cwd: PathBuf, text: String },
}

/// What is stored: the scope and whom and where it was granted for.
#[derive(Serialize, Deserialize)]
struct Stored {
    repository: PathBuf,
    role: Role,
    scope: Scope,
}

impl Scope {
    /// The key of this scope for calls in `area`; another repository or role makes another key.
    pub(crate) fn key(&self, area: &Area) -> ScopeKey {
        let stored = Stored { repository: area.git_dir.clone(), role: area.role, scope: self.clone() };
        // A path that is not UTF-8 has no JSON form; its debug form is as exact and matches nothing else.
        ScopeKey(
            serde_json::to_string(&stored)
                .unwrap_or_else(|_| format!("{:?}", (&stored.repository, stored.role, &stored.scope))),
        )
    }

    /// What the scope covers, one line of plain words for the decision card.
    pub(crate) fn covers(&self) -> String {
        match self {
            Self::Capability { action } => format!("`{action}` inside the worktree"),
            Self::Target { action, target } => format!("`{action}` of exactly `{target}`"),
            Self::OutsideDir { program, mode, dir } => {
                format!("`{program}` {} files directly in {}", mode.verb(), shown(dir))
            }
            Self::OutsideTree { program, mode, path } => {
                format!("`{program}` {} {} and what is below it", mode.verb(), shown(path))
            }
            Self::Cd { dir } => format!("changing to {} (what runs there is judged by itself)", shown(dir)),
            Self::Net { tool, to } => format!("`{tool}` with exactly {}", to.join(", ")),
            Self::Package { runner, package } => format!("`{runner}` with the package `{package}`"),
            Self::Script { shell, path } => format!("running the script {} with `{shell}`", shown(path)),
            Self::Module { program, module } => format!("`{program} -m {module}`"),
            Self::GitEntry { tool, file } => format!("`{tool}` changing the git entry {}", shown(file)),
            Self::ToolDir { tool, dir } => format!("{tool} on files directly in {}", shown(dir)),
            Self::ToolTree { tool, path } => format!("{tool} on {} and what is below it", shown(path)),
            Self::ToolPattern { tool, cwd, pattern } => {
                format!("{tool} with exactly the pattern `{pattern}` in {}", shown(cwd))
            }
            Self::ToolHost { tool, host } => format!("{tool} on the host {host}"),
            Self::Tool { tool } => format!("the tool {tool}, whatever its input"),
            Self::ToolInput { tool, cwd, input } => {
                format!("{tool} with exactly the input {input} in {}", shown(cwd))
            }
            Self::Exact { cwd, text } => format!("exactly this command in {}: {text}", shown(cwd)),
        }
    }
}

impl Mode {
    fn verb(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Write => "writing",
            Self::Run => "running",
        }
    }
}

/// A stored key in plain words, for lists of what an agent was granted; `None` for a text that is no key (any more).
#[must_use]
pub fn describe(key: &ScopeKey) -> Option<String> {
    serde_json::from_str::<Stored>(&key.0).ok().map(|stored| stored.scope.covers())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
