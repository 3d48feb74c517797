//! What can go wrong with git, in words for the person.

use std::path::{Path, PathBuf};

/// An error of the git room.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("{0} does not exist")]
    NotFound(String),
    #[error("{0} is not a git repository: run `git init` there and commit something first")]
    NotGit(PathBuf),
    #[error("{path} is not a repository root: it lies in {root}; connect that one")]
    NotRoot { path: PathBuf, root: PathBuf },
    #[error("{0} has no commit yet: commit something first")]
    NoCommits(PathBuf),
    #[error("{0} has a detached HEAD: switch to a branch first")]
    Detached(PathBuf),
    #[error("{0}")]
    Unsupported(String),
    #[error("branch {branch} does not exist in {repo}")]
    MissingBranch { branch: String, repo: PathBuf },
    #[error("AgentCraft will not run git in worktree {dir}: {why}")]
    Tampered { dir: PathBuf, why: String },
    #[error("no free name for {0}: fifty are taken")]
    NoFreeName(String),
    #[error("the name of branch {branch} is not possible: {why}")]
    BadBranch { branch: String, why: String },
    #[error("git {command} failed in {dir}: {stderr}")]
    Failed { command: String, dir: PathBuf, stderr: String },
    #[error("git {command} took longer than {seconds} s in {dir} and was stopped")]
    TimedOut { command: String, dir: PathBuf, seconds: u64 },
    #[error("git can't be started: {0}. Install git 2.38 or newer")]
    NoGit(std::io::Error),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("git said something unexpected: {0}")]
    Unexpected(String),
}

/// Adds the path to an I/O error.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T, GitError>;
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, path: &Path) -> Result<T, GitError> {
        self.map_err(|source| GitError::Io { path: path.to_owned(), source })
    }
}
