//! What the core wants done outside: turns, git, tests, memory files. Data only.
//!
//! Every effect has an id and may be started again without harm after a crash: git effects look at what is already
//! there, a merge commit carries the effect's id.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::policy::{Area, ToolCall, Verdict};
use crate::protocol::{AgentId, ClientId, DecisionId, Diff, EpochMs, MemoryEntry, RepoId, TaskId, WorktreeId};
use crate::turn::{MemoryMode, RequestId, TurnCommand, TurnId, TurnSpec};

/// Counted from 1, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EffectId(pub u64);

impl std::fmt::Display for EffectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// Work for the shell around the core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// Plays a turn; its events come back as inputs until `Ended`. No [`EffectResult`].
    StartTurn(Box<TurnSpec>),
    /// Tells a running turn something. No result; a turn that is gone ignores it.
    TellTurn { turn: TurnId, command: TurnCommand },
    /// Judges a tool call; reads the disk.
    Judge { turn: TurnId, request: RequestId, call: ToolCall, area: Area },
    /// Looks at a path that a client wants connected.
    InspectRepo { path: String },
    /// Base head, dirty flag and worktree statistics of a repository.
    RefreshRepo { repo: RepoRef, worktrees: Vec<WorktreeRef> },
    /// Makes (or takes up again) a worker's worktree and prepares it.
    PrepareWorktree(Box<PrepareWorktree>),
    /// Makes or refreshes a read-only copy at the base head, for the lead or a worker without a task.
    PrepareCopy { repo: RepoRef, turn: TurnId, dir: PathBuf },
    /// Commits what is uncommitted in a worktree and brings its branch over into the repository.
    Collect { repo: RepoRef, worktree: WorktreeRef, message: String, identity: AgentIdentity },
    /// Runs the tests of a worktree at the collected head.
    RunCi { repo: RepoRef, worktree: WorktreeRef, task: TaskId, command: Option<String> },
    /// Merges a reviewed commit into the base branch.
    Merge(Box<MergeOrder>),
    /// Collects a worktree a last time, then removes its directory; the branch stays.
    Abandon { repo: RepoRef, worktree: WorktreeRef, message: String, identity: AgentIdentity },
    /// Computes a diff for one client.
    Diff { to: ClientId, ack: Option<String>, repo: RepoRef, worktree: WorktreeRef, request: DiffOrder },
    /// Writes a memory note as a file.
    WriteMemory(Box<WriteMemory>),
}

impl Effect {
    /// True: the row is stored and the effect starts again after a restart. The others belong to a turn or a
    /// connection of this process and die with it.
    pub fn outlives_process(&self) -> bool {
        match self {
            Self::StartTurn(_)
            | Self::TellTurn { .. }
            | Self::Judge { .. }
            | Self::InspectRepo { .. }
            | Self::RefreshRepo { .. }
            | Self::Diff { .. } => false,
            Self::PrepareWorktree(_)
            | Self::PrepareCopy { .. }
            | Self::Collect { .. }
            | Self::RunCi { .. }
            | Self::Merge(_)
            | Self::Abandon { .. }
            | Self::WriteMemory(_) => true,
        }
    }
}

/// A connected repository, as git effects need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoRef {
    pub id: RepoId,
    /// The person's checkout. Absolute.
    pub path: PathBuf,
    /// Base branch, short name.
    pub base: String,
}

/// A worktree, as git effects need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeRef {
    pub id: WorktreeId,
    pub agent: AgentId,
    pub task: TaskId,
    /// Its directory. Absolute.
    pub dir: PathBuf,
    /// Short branch name, `agentcraft/...`.
    pub branch: String,
    /// The base commit it was made from (full hex).
    pub fork: String,
    /// The directory is (supposed to be) there; false for merged and abandoned ones.
    pub live: bool,
}

/// Author and committer of an agent's commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIdentity {
    /// "AgentCraft <Name>".
    pub name: String,
    /// `<id>@agentcraft.local`.
    pub email: String,
}

/// What [`Effect::PrepareWorktree`] needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrepareWorktree {
    pub repo: RepoRef,
    pub agent: AgentId,
    pub task: TaskId,
    pub id: WorktreeId,
    /// Wished branch name; taken names get `-2`, `-3`, ... (at most 50).
    pub branch: String,
    /// Wished directory; a busy one gets `-2`, ...
    pub dir: PathBuf,
    /// A former worker's branch to continue from.
    pub start: Option<String>,
    /// Branches that this profile's database made: only these are taken up again.
    pub own_branches: Vec<String>,
    /// The repository's setup command from the person's configuration.
    pub setup: Option<String>,
    pub identity: AgentIdentity,
}

/// Result of [`Effect::PrepareWorktree`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedWorktree {
    pub dir: PathBuf,
    pub branch: String,
    /// The base commit the copy borrows (full hex).
    pub fork: String,
    /// The branch's head.
    pub head: String,
    /// Files copied by `.worktreeinclude`; empty when the copy was there already.
    pub copied: Vec<String>,
    /// Output of the setup command, if one ran.
    pub setup_output: Option<String>,
}

/// Why a worktree could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrepareFailure {
    /// Try again later; the reason is for the log.
    Passing(String),
    /// The setup command failed: the task is blocked with this reason.
    Setup { reason: String, output: String },
    /// It will not work until the person does something: the task is blocked with this reason.
    Lasting(String),
}

/// What a merge needs; see the git room for how it is made safe against crashes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeOrder {
    pub repo: RepoRef,
    pub worktree: WorktreeRef,
    pub decision: DecisionId,
    pub task: Option<TaskId>,
    /// The reviewed commit (full hex); exactly this is merged.
    pub head: String,
    /// Task id, title and summary; becomes the body of the message.
    pub message: String,
    pub style: MergeStyle,
    /// Sign when the person's own git would.
    pub sign: bool,
    /// Names profile and effect in the commit's trailer, so that a merge is never done twice.
    pub mark: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MergeStyle {
    /// A commit with two parents, never a fast-forward.
    Merge,
    /// One commit on the base.
    Squash,
}

/// Result of [`Effect::Merge`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MergeOutcome {
    Merged {
        /// Full hex of the merge commit.
        commit: String,
        files: u32,
    },
    /// The branch has nothing that the base has not.
    Empty,
    Conflict {
        files: Vec<String>,
    },
    /// Nothing was changed; the reason is for the person.
    Refused {
        reason: String,
    },
}

/// What the git room saw of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoFacts {
    /// Canonical path of the checkout.
    pub path: PathBuf,
    /// For a new repository the branch that is checked out; later the base branch.
    pub branch: String,
    /// Full hex of the base branch's head; none when the branch is gone.
    pub head: Option<String>,
    pub dirty: bool,
    /// What keeps the repository from being worked on, in words.
    pub health: Option<String>,
    pub worktrees: Vec<WorktreeFacts>,
}

/// Statistics of one worktree against its base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeFacts {
    pub id: WorktreeId,
    pub ahead: u32,
    pub files: u32,
    pub additions: u32,
    pub deletions: u32,
}

/// Result of [`Effect::Collect`] and [`Effect::Abandon`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// Full hex of the branch's head in the repository.
    pub head: String,
    pub facts: WorktreeFacts,
    /// Unified diff against the base, at most 12,000 characters.
    pub diff: String,
    /// Names of the changed files, at most 200.
    pub names: Vec<String>,
}

/// Result of [`Effect::RunCi`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CiOutcome {
    /// No test command is known for this repository.
    NoCommand,
    Finished {
        command: String,
        passed: bool,
        duration_ms: u64,
        /// Last 40 lines, at most 3,000 characters.
        output: String,
        /// For example "tests 15, pass 12, fail 3".
        summary: Option<String>,
        /// Names of failed tests, at most 20.
        failures: Vec<String>,
    },
    /// The tests could not be run.
    Broken(String),
}

/// A client's diff request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffOrder {
    pub request_id: String,
    /// One file, whole.
    pub path: Option<String>,
}

/// What [`Effect::WriteMemory`] needs. The body is merged with the file as it is then: an append keeps what a hand
/// added, a replace keeps a hand-made change since `seen` as a section of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteMemory {
    /// "shared" or an agent id.
    pub scope: String,
    pub slug: String,
    pub title: String,
    pub body: String,
    pub mode: MemoryMode,
    pub author: String,
    pub now: EpochMs,
    /// The entry as the state knew it when the effect was wanted.
    pub seen: Option<MemoryEntry>,
    /// The agent's call that waits for it.
    pub waiter: Option<(TurnId, RequestId)>,
}

/// How an effect ended. A panic of its task counts as [`EffectResult::Crashed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum EffectResult {
    Judged(Verdict),
    RepoInspected(Result<RepoFacts, String>),
    RepoRefreshed(Result<RepoFacts, String>),
    WorktreePrepared(Result<PreparedWorktree, PrepareFailure>),
    CopyPrepared(Result<PathBuf, String>),
    Collected(Result<Collected, String>),
    CiRun(CiOutcome),
    Merged(MergeOutcome),
    Abandoned(Result<Collected, String>),
    DiffMade(Box<Diff>),
    MemoryWritten(Result<MemoryEntry, String>),
    /// The task that ran the effect panicked or could not be started.
    Crashed(String),
}
