//! Repositories and worktrees: looking at them, making isolated working copies, bringing agents' commits over, diffs,
//! merges.
//!
//! Plain blocking functions over paths; nothing is kept between calls but what lies on disk. Uses the wire's entity
//! types and ids; must not know the core, the database, tokio or any engine. Entry points: [`inspect`], [`refresh`],
//! [`prepare_worktree`], [`prepare_lead_copy`], [`collect`], [`diff`], [`merge`], [`abandon`], [`sweep`].
//!
//! Three kinds of git calls, never mixed:
//! - in the person's repository, with the person's configuration, hooks off ([`safety::foreman_git`]);
//! - over an agent's tree, with a git directory of our own, so that nothing an agent can write is ever read as
//!   configuration (`lens`);
//! - in an agent's own git directory: none. It is read and written as plain files, links refused (`copy`).

mod bring;
mod collect;
mod copy;
mod diff;
mod error;
pub mod failpoint;
mod include;
mod inspect;
mod lead;
mod lens;
mod manifest;
mod merge;
mod names;
mod person;
mod prepare;
mod remove;
mod run;
pub mod safety;

use std::path::PathBuf;

pub use collect::collect;
pub use diff::diff;
pub use error::GitError;
pub use inspect::{inspect, refresh};
pub use lead::prepare_lead_copy;
pub use merge::merge;
pub use prepare::prepare_worktree;
pub use remove::{abandon, sweep};

use crate::protocol::{AgentId, DecisionId, DiffFile, DiffStats, RepoId, TaskId, WorktreeId};

/// Where this profile keeps what the git room makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHome {
    /// Unique id of this profile's database; names it in hidden refs and in the notes beside worktrees.
    pub profile: String,
    /// Root of all worktrees: `<profile dir>/worktrees`. Nothing outside it is ever removed.
    pub worktrees: PathBuf,
    /// For temporary files; may be emptied while nothing runs.
    pub scratch: PathBuf,
}

/// A connected repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoAt {
    pub id: RepoId,
    /// The person's checkout. Absolute.
    pub path: PathBuf,
    /// Base branch, short name.
    pub base: String,
}

/// A worktree as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeAt {
    pub id: WorktreeId,
    pub agent: AgentId,
    pub task: TaskId,
    /// Its directory. Absolute.
    pub dir: PathBuf,
    /// Short branch name, `agentcraft/...`.
    pub branch: String,
    /// The base commit it was made from (full hex).
    pub fork: String,
    /// False for merged and abandoned ones, whose directory is gone.
    pub live: bool,
}

/// Author and committer of an agent's commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

/// What [`prepare_worktree`] needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeOrder {
    pub repo: RepoAt,
    pub agent: AgentId,
    pub task: TaskId,
    pub id: WorktreeId,
    /// Wished branch name, `agentcraft/...`; a taken one gets `-2` to `-50`.
    pub branch: String,
    /// Wished directory below [`GitHome::worktrees`]; a busy one gets `-2` to `-50`.
    pub dir: PathBuf,
    /// A former worker's branch to continue from.
    pub start: Option<String>,
    /// Branches that this profile's database made: only these are taken up again.
    pub own_branches: Vec<String>,
    pub identity: Identity,
}

/// A worktree that is ready for its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub dir: PathBuf,
    pub branch: String,
    /// Where the branch left the base (full hex).
    pub fork: String,
    /// The branch's head (full hex).
    pub head: String,
    /// Files copied by `.worktreeinclude`; empty when the worktree was there already.
    pub copied: Vec<String>,
    /// The worktree was there already.
    pub reused: bool,
    /// What the person should know, for example files that were not copied and why.
    pub notes: Vec<String>,
}

/// Why a worktree could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// Try again later.
    #[error("{0}")]
    Passing(String),
    /// It will not work until the person does something.
    #[error("{0}")]
    Lasting(String),
}

/// What was seen of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoView {
    /// Canonical path of the checkout.
    pub path: PathBuf,
    /// From [`inspect`] the branch that is checked out; from [`refresh`] the base branch.
    pub branch: String,
    /// Full hex of the branch's head; none when it is gone.
    pub head: Option<String>,
    /// Uncommitted changes of tracked files in whichever checkout has the branch checked out.
    pub dirty: bool,
    /// What keeps the repository from being worked on, in words.
    pub health: Option<String>,
    pub worktrees: Vec<WorktreeStats>,
}

/// Statistics of one worktree against its base, uncommitted work included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeStats {
    pub id: WorktreeId,
    /// Commits that the base has not.
    pub ahead: u32,
    pub files: u32,
    pub additions: u32,
    pub deletions: u32,
}

/// A worktree's work, committed and in the person's repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedWork {
    /// Full hex of the branch's head in the repository.
    pub head: String,
    pub facts: WorktreeStats,
    /// Unified diff against the base, at most 12,000 characters.
    pub diff: String,
    /// Names of the changed files, at most 200.
    pub names: Vec<String>,
    /// A commit was made for work that was uncommitted.
    pub committed: bool,
    /// What the person should know, for example nested repositories that were left out or a directory that was kept.
    pub notes: Vec<String>,
}

/// What a merge needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRequest {
    pub repo: RepoAt,
    pub worktree: WorktreeAt,
    pub decision: DecisionId,
    pub task: Option<TaskId>,
    /// The reviewed commit (full hex); exactly this is merged.
    pub head: String,
    /// Task id, title and summary.
    pub message: String,
    pub style: MergeStyle,
    /// Sign when the person's own git would.
    pub sign: bool,
    /// Names profile and effect; becomes a trailer and a hidden ref, so that a merge is never done twice.
    pub mark: String,
}

/// The form of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeStyle {
    /// A commit with two parents, never a fast-forward.
    Merge,
    /// One commit on the base.
    Squash,
}

/// How a merge ended. Only `Merged` changed the base branch or a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeResult {
    Merged {
        /// Full hex of the merge commit.
        commit: String,
        files: u32,
    },
    /// The commit has nothing that the base has not.
    Empty,
    Conflict {
        files: Vec<String>,
    },
    Refused {
        reason: String,
    },
}

/// A diff in the wire's types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireDiff {
    /// Base branch.
    pub base: String,
    pub branch: String,
    pub files: Vec<DiffFile>,
    /// Counts everything, also what was cut.
    pub stats: DiffStats,
    /// Lines were left out.
    pub truncated: bool,
}

/// Where a worktree's HEAD is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadAt {
    /// On this branch (short name).
    Branch(String),
    /// Detached at this commit (full hex).
    Detached(String),
}

/// A worktree whose git directory is as we made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub head: HeadAt,
}

/// Checks that a worktree's git directory is its own: a real directory of ours that borrows the repository's objects
/// and nothing else, no link in the way.
///
/// # Errors
/// [`GitError::Tampered`] with what is wrong.
pub fn verify(home: &GitHome, repo: &RepoAt, worktree: &WorktreeAt) -> Result<Verified, GitError> {
    run::require_git()?;
    let person = person::Person::open(&repo.path)?;
    let copy = copy::Copy::verified(home, &person, &worktree.dir)?;
    Ok(Verified { head: copy.head()? })
}
