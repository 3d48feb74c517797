//! What the wire's messages carry: agents, tasks, decisions, repositories and the rest.
//!
//! Field order here is the order on the wire and in the reference document. Optional fields are omitted, never null.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::{AgentId, DecisionId, EpochMs, GoalId, MemoryId, RepoId, TaskId, WorktreeId};

macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of the document.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

wire_enum!(
    /// What the agent is doing right now.
    AgentState {
        Idle = "idle", Thinking = "thinking", Reading = "reading", Editing = "editing", Running = "running",
        Testing = "testing", WaitingUser = "waiting_user", Blocked = "blocked", Done = "done", Error = "error",
    }
);
wire_enum!(
    /// Where in the studio the agent is. `user` is next to the person.
    Station {
        Desk = "desk", Library = "library", Terminal = "terminal", Testbench = "testbench",
        MergeStation = "mergestation", Meeting = "meeting", Lounge = "lounge", User = "user",
    }
);
wire_enum!(
    /// The one who plans and reviews, or one who builds.
    AgentRole { Lead = "lead", Worker = "worker" }
);
wire_enum!(
    /// A column of the Task Wall. Cancelled tasks are kept for history and not shown on the wall.
    TaskStatus {
        Todo = "todo", Doing = "doing", Review = "review", Done = "done", Blocked = "blocked", Cancelled = "cancelled",
    }
);
wire_enum!(
    /// The latest test result.
    CiStatus { Unknown = "unknown", Running = "running", Pass = "pass", Fail = "fail" }
);
wire_enum!(
    /// The kind of a log line.
    LogKind { Text = "text", Tool = "tool", Result = "result", Error = "error", Diff = "diff" }
);
wire_enum!(
    /// What the person is asked for.
    DecisionKind { Question = "question", Permission = "permission", Merge = "merge" }
);
wire_enum!(
    /// `cancelled` means it became moot; it is shown like an answered one.
    DecisionStatus { Open = "open", Answered = "answered", Cancelled = "cancelled" }
);
wire_enum!(
    /// Planning, then active, then done; or cancelled (every task was), or failed (planning did).
    GoalStatus {
        Planning = "planning", Active = "active", Done = "done", Failed = "failed", Cancelled = "cancelled",
    }
);
wire_enum!(
    /// What a feed line is about.
    FeedKind {
        Goal = "goal", Plan = "plan", Task = "task", Message = "message", Decision = "decision", Merge = "merge",
        Ci = "ci", Memory = "memory", System = "system", Error = "error", User = "user",
    }
);
wire_enum!(
    /// `need_user` means that a decision waits.
    NotifyLevel { Info = "info", Warn = "warn", NeedUser = "need_user" }
);
wire_enum!(
    /// Life of a worktree.
    WorktreeStatus { Active = "active", Merged = "merged", Abandoned = "abandoned" }
);
wire_enum!(
    /// The engine that plays the agents.
    BackendName { Sim = "sim", Claude = "claude" }
);
wire_enum!(
    /// `failed` must be shown loudly: the engine cannot run.
    AuthStatus { Ok = "ok", Failed = "failed", Unknown = "unknown", Checking = "checking" }
);
wire_enum!(
    /// What happened to a file of a diff.
    DiffFileStatus { Added = "added", Modified = "modified", Deleted = "deleted", Renamed = "renamed" }
);
wire_enum!(
    /// A line of a hunk.
    DiffLineKind { Add = "add", Del = "del", Ctx = "ctx" }
);
wire_enum!(
    /// How the person steers a task.
    TaskActionKind { Reassign = "reassign", Cancel = "cancel", Retry = "retry", Prioritize = "prioritize" }
);
wire_enum!(
    /// How the person steers an agent.
    AgentActionKind { Pause = "pause", Resume = "resume", Stop = "stop", Spawn = "spawn" }
);

/// Option labels that clients compare exactly.
pub mod label {
    /// Merges the reviewed commit.
    pub const MERGE: &str = "Merge";
    /// Sends the work back with the answer's text.
    pub const REQUEST_CHANGES: &str = "Request changes";
    /// Gives the branch up; it is kept.
    pub const REJECT: &str = "Reject";
    /// Runs this one call.
    pub const ALLOW_ONCE: &str = "Allow once";
    /// Runs this call and all that the card says the choice covers.
    pub const ALLOW_ALWAYS: &str = "Always allow for this agent";
    /// Refuses the call.
    pub const DENY: &str = "Deny";
    /// The options of a merge decision, in order.
    pub const MERGE_OPTIONS: [&str; 3] = [MERGE, REQUEST_CHANGES, REJECT];
    /// The options of a permission decision, in order.
    pub const PERMISSION_OPTIONS: [&str; 3] = [ALLOW_ONCE, ALLOW_ALWAYS, DENY];
}

/// A member of the team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Stable lower-case id, e.g. "kit".
    pub id: AgentId,
    /// Display name, e.g. "Kit".
    pub name: String,
    pub role: AgentRole,
    /// Short descriptive role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Agent colour.
    pub color: Color,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accent: Option<Color>,
    /// Skin id: characters of `[a-z0-9_./-]` only.
    pub skin: String,
    pub state: AgentState,
    /// One short line for the nameplate, at most 48 characters.
    pub activity: String,
    pub station: Station,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_id: Option<RepoId>,
    /// Id of the worktree the agent is working in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeId>,
    pub paused: bool,
    /// False = off shift.
    pub active: bool,
}

/// A colour `#RRGGBB`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Color(String);

impl JsonSchema for Color {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Color".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": super::contract::COLOR_PATTERN })
    }
}

impl Color {
    /// `#000000`.
    pub fn black() -> Self {
        Self("#000000".to_owned())
    }

    /// The text `#RRGGBB`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Red, green and blue, 0 to 255 each.
    pub fn rgb(&self) -> (u8, u8, u8) {
        let part = |at: usize| self.0.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(0);
        (part(1), part(3), part(5))
    }
}

impl TryFrom<String> for Color {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let digits = text.strip_prefix('#').unwrap_or("");
        if digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            Ok(Self(text))
        } else {
            Err("expected a colour #RRGGBB".to_owned())
        }
    }
}

impl From<Color> for String {
    fn from(color: Color) -> Self {
        color.0
    }
}

/// A line of an agent's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    pub ts: EpochMs,
    pub kind: LogKind,
    /// May contain newlines; `diff` entries use unified +/- line prefixes.
    pub text: String,
}

/// A card of the Task Wall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// E.g. "t3".
    pub id: TaskId,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub status: TaskStatus,
    /// Agent id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<AgentId>,
    /// Task ids that must be done before this one can start.
    pub deps: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_id: Option<RepoId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_id: Option<GoalId>,
    /// Higher = sooner; default 0.
    pub priority: i64,
    /// Git branch, e.g. "agentcraft/kit/t2-tag-parser".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeId>,
    pub ci: CiStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_reason: Option<String>,
    /// Summary of the result by worker or lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Agent id or "user".
    pub created_by: String,
    pub created_at: EpochMs,
    pub updated_at: EpochMs,
}

/// Something that is the person's call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// E.g. "d4".
    pub id: DecisionId,
    /// Agent waiting on this decision.
    pub agent_id: AgentId,
    pub kind: DecisionKind,
    pub question: String,
    /// Button labels; the first is the default or recommended choice.
    pub options: Vec<String>,
    /// Extra detail, plain text of several lines. Permission: why it asks, the cwd, and a line
    /// `"Always allow for this agent" covers: ...`. Merge: summary and diff stat; after a refused merge the decision is
    /// open again and this ends with `Merge refused: <reason>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    pub status: DecisionStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<DecisionAnswer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Merge decisions: repository to request the diff from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_id: Option<RepoId>,
    /// Merge decisions: worktree to request the diff for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeId>,
    /// Permission decisions: tool name, e.g. "Bash".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub created_at: EpochMs,
}

/// What the person answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionAnswer {
    /// The chosen option label (one of `Decision.options`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// Free-text answer or feedback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub ts: EpochMs,
}

/// A connected repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Repo {
    /// E.g. "demo-app".
    pub id: RepoId,
    pub name: String,
    /// Absolute path of the person's checkout.
    pub path: String,
    /// Base branch that agents branch from and merge into.
    pub branch: String,
    /// Short sha of the base branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The checkout has uncommitted tracked changes (merges are refused while dirty).
    pub dirty: bool,
    pub worktrees: Vec<Worktree>,
    /// Latest test result across this repository.
    pub ci: CiStatus,
}

/// An agent's working copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Worktree {
    /// E.g. "kit-t2"; use as `worktree` in diff.request.
    pub id: WorktreeId,
    pub agent_id: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    pub branch: String,
    /// Branch it was created from and will merge into.
    pub base: String,
    pub path: String,
    pub status: WorktreeStatus,
    /// Commits on the branch that are not on base.
    pub ahead: u32,
    /// Files changed against base, uncommitted ones included.
    pub files: u32,
    pub additions: u32,
    pub deletions: u32,
}

/// A note of the team's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryEntry {
    /// `shared/<slug>` or `<agentId>/<slug>`.
    pub id: MemoryId,
    /// "shared" or an agent id.
    pub scope: String,
    pub title: String,
    /// Markdown.
    pub body: String,
    pub updated: EpochMs,
    /// Agent id or "user" that last wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// What the person asked the team for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Goal {
    /// E.g. "g1".
    pub id: GoalId,
    pub text: String,
    /// 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "finite")]
    pub progress: f64,
    pub status: GoalStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_id: Option<RepoId>,
    pub created_at: EpochMs,
    pub updated_at: EpochMs,
}

/// A line of the activity feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedItem {
    pub ts: EpochMs,
    pub kind: FeedKind,
    /// At most 400 characters.
    pub text: String,
    /// Who it is about or from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Message recipient: agent id, "user" or "all".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// State of the Foreman and its engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForemanStatus {
    pub version: String,
    pub backend: BackendName,
    pub auth: AuthStatus,
    /// Status of engine and login in words, for the banner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// E.g. organisation and plan when auth is ok.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Sim: speed multiplier.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "finite_option")]
    pub speed: Option<f64>,
    /// Sim: holding a static showcase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub showcase: Option<bool>,
    /// Estimated spend of this profile in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "finite_option")]
    pub cost_usd: Option<f64>,
    /// The person the team works for, as the agents address them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
}

/// JSON has no infinities: they would become `null`, and a `null` number costs clients the whole message.
fn finite<S: serde::Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(if number.is_finite() { *number } else { 0.0 })
}

fn finite_option<S: serde::Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    finite(&number.unwrap_or(0.0), serializer)
}

/// The recent log of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentLogs {
    pub agent_id: AgentId,
    pub entries: Vec<LogEntry>,
}

/// One file of a diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffFile {
    pub path: String,
    /// Renames only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    pub status: DiffFileStatus,
    pub binary: bool,
    pub additions: u32,
    pub deletions: u32,
    pub hunks: Vec<DiffHunk>,
}

/// A hunk of a diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffHunk {
    /// E.g. "@@ -12,6 +12,9 @@ export function run".
    pub header: String,
    pub old_start: u32,
    pub old_lines: u32,
    pub new_start: u32,
    pub new_lines: u32,
    pub lines: Vec<DiffLine>,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffLine {
    pub kind: DiffLineKind,
    /// Line content without the +, - or space prefix.
    pub text: String,
    /// Line number in base (del, ctx).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_no: Option<u32>,
    /// Line number in the branch (add, ctx).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_no: Option<u32>,
}

/// Totals of a diff; they count everything, also what was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffStats {
    pub files: u32,
    pub additions: u32,
    pub deletions: u32,
}
