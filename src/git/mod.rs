//! Repositories, isolated worktrees, diffs and merges.
//!
//! An agent's worktree is a working copy with its own git directory that borrows the repository's objects. Its agent
//! may write all of it, so nothing in there is trusted: the Foreman reads and commits it through a git directory of
//! its own (the *shadow*), with its own configuration, index and no hooks, filters or includes. Only the Foreman brings
//! commits over, checked, and only into `refs/heads/agentcraft/` and `refs/agentcraft/`.
//!
//! Plain blocking functions: no async, no state of the team. Entry points: [`inspect`], [`refresh`],
//! [`prepare_worktree`], [`prepare_copy`], [`collect`], [`abandon`], [`diff`] and [`merge`].

mod checkout;
mod collect;
mod copy;
mod diff;
mod error;
pub mod failpoint;
mod include;
mod merge;
mod repo;
mod run;
pub mod safety;
mod shadow;
mod snapshot;

pub use collect::{abandon, collect, sweep};
pub use copy::{prepare_copy, prepare_worktree, verify};
pub use diff::diff;
pub use error::GitError;
pub use merge::merge;
pub use repo::{inspect, refresh};

use std::path::PathBuf;

use crate::protocol::{DiffFile, DiffStats};

/// Where the Foreman keeps what git effects need.
#[derive(Clone, Debug)]
pub struct GitHome {
    /// Unique id of the profile's database.
    pub profile: String,
    /// Worktrees are made below this directory.
    pub worktrees: PathBuf,
    /// The Foreman's own git data: shadow directories, indexes. Agents can't write here.
    pub meta: PathBuf,
}

/// A connected repository.
#[derive(Clone, Debug)]
pub struct RepoAt {
    /// Short id, also a directory name.
    pub id: String,
    /// The person's checkout.
    pub path: PathBuf,
    /// Base branch, short name.
    pub base: String,
}

/// A worktree.
#[derive(Clone, Debug)]
pub struct WorktreeAt {
    pub id: String,
    pub dir: PathBuf,
    /// Short branch name, `agentcraft/...`.
    pub branch: String,
    /// The base commit it was made from (full hex).
    pub fork: String,
    /// The directory is (supposed to be) there.
    pub live: bool,
}

/// Author and committer of commits.
#[derive(Clone, Debug)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

/// A repository as seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoView {
    /// Canonical path of the checkout.
    pub path: PathBuf,
    /// [`inspect`]: the branch that is checked out; [`refresh`]: the base branch.
    pub branch: String,
    /// Head of that branch, full hex; none when the branch is gone.
    pub head: Option<String>,
    /// The checkout that has the base branch holds uncommitted tracked changes.
    pub dirty: bool,
    /// What keeps the repository from being worked on.
    pub health: Option<String>,
    pub worktrees: Vec<WorktreeStats>,
}

/// A worktree against its base, uncommitted changes included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeStats {
    pub id: String,
    /// Commits on the branch that are not on the base.
    pub ahead: u32,
    pub files: u32,
    pub additions: u32,
    pub deletions: u32,
}

/// A worktree to make or take up again.
#[derive(Clone, Debug)]
pub struct WorktreeOrder {
    pub repo: RepoAt,
    pub id: String,
    /// Wished branch; taken names get `-2` to `-50`.
    pub branch: String,
    /// Wished directory; a busy one gets `-2` to `-50`.
    pub dir: PathBuf,
    /// Branch of a former worker to continue from.
    pub start: Option<String>,
    /// Branches of this profile that may be taken up again.
    pub own_branches: Vec<String>,
    pub identity: Identity,
}

/// A worktree that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub dir: PathBuf,
    pub branch: String,
    pub fork: String,
    pub head: String,
    /// It was made just now (not taken up again as it was).
    pub fresh: bool,
    /// Files copied by `.worktreeinclude`.
    pub copied: Vec<String>,
}

/// Work that was committed and brought over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedWork {
    /// Head of the branch in the repository, full hex.
    pub head: String,
    pub stats: WorktreeStats,
    /// Unified diff against the base, at most 12,000 characters.
    pub diff: String,
    /// Changed files, at most 200.
    pub names: Vec<String>,
}

/// A structured diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireDiff {
    pub base: String,
    pub branch: String,
    pub files: Vec<DiffFile>,
    /// Totals; they count what was cut, too.
    pub stats: DiffStats,
    pub truncated: bool,
}

/// A merge of exactly one reviewed commit.
#[derive(Clone, Debug)]
pub struct MergeRequest {
    pub repo: RepoAt,
    pub branch: String,
    /// The reviewed commit, full hex.
    pub head: String,
    /// "t2: title", blank line, summary.
    pub message: String,
    /// Names decision and task for the message's last line.
    pub approved: String,
    pub style: Style,
    /// Sign when the person's `commit.gpgsign` is true.
    pub sign: bool,
    /// Unique per profile and effect; the trailer of the commit. Letters, digits and dashes.
    pub mark: String,
}

/// Shape of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Merge,
    Squash,
}

/// How a merge ended. All but `Merged` changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeResult {
    Merged { commit: String, files: u32 },
    Empty,
    Conflict { files: Vec<String> },
    Refused { reason: String },
}
