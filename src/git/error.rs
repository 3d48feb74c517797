//! What can go wrong between us and git, in words for the person.

use std::path::PathBuf;

/// An error of the git room. The text names the subject and what to do next; it is shown to the person as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    #[error("git could not be started ({0}); install git 2.38 or newer and see that it is on the PATH")]
    NoGit(String),
    #[error("git {found} is too old; AgentCraft needs git 2.38 or newer")]
    OldGit { found: String },
    #[error("path does not exist: {}", .0.display())]
    NoPath(PathBuf),
    #[error("not a git repository (with a checkout): {}", .0.display())]
    NotGit(PathBuf),
    #[error("{} is not a repository root; it lies in the repository {}", path.display(), root.display())]
    NotRoot { path: PathBuf, root: PathBuf },
    #[error("{} has no commits yet; make a first commit", .0.display())]
    NoCommits(PathBuf),
    #[error("{} has a detached HEAD; check out the branch that work should be merged into", .0.display())]
    Detached(PathBuf),
    #[error("{} is {what}; {next}", path.display())]
    Unsupported { path: PathBuf, what: String, next: String },
    #[error("the base branch {branch} is gone from {}; make it again or connect the repository anew", path.display())]
    NoBase { path: PathBuf, branch: String },
    #[error("the branch {branch} is gone from {}", path.display())]
    NoBranch { path: PathBuf, branch: String },
    #[error("AgentCraft will not run git in worktree {}: {why}", dir.display())]
    Tampered { dir: PathBuf, why: String },
    #[error(
        "commit {commit} on {branch} contains {file}, which was copied from your checkout and must not be committed; \
         take it out of the branch's history"
    )]
    Secret { commit: String, branch: String, file: String },
    #[error("{branch} is checked out in {}; switch to another branch there, AgentCraft moves it", at.display())]
    BranchInUse { branch: String, at: PathBuf },
    #[error("{command} failed: {text}")]
    Failed { command: String, text: String },
    #[error("{command} took longer than {seconds} s and was stopped")]
    TimedOut { command: String, seconds: u64 },
    #[error("{command} printed more than {bytes} bytes")]
    TooMuch { command: String, bytes: usize },
    #[error("{action} {}: {text}", path.display())]
    Disk { action: &'static str, path: PathBuf, text: String },
    #[error("{0}")]
    Other(String),
}

impl GitError {
    /// An I/O error on `path` while doing `action` ("read", "write", ...).
    pub(crate) fn disk(action: &'static str, path: impl Into<PathBuf>, error: &std::io::Error) -> Self {
        Self::Disk { action, path: path.into(), text: error.to_string() }
    }
}
