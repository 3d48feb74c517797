//! AgentCraft protocol v1: the wire types, their limits, decoding with readable issues, and the documents generated
//! from the types.
//!
//! Knows nobody else in this crate. The Rust types are the one source of truth: the JSON Schema is derived from them
//! ([`contract`]), the decoder enforces exactly that schema, and the reference document prints it
//! ([`document`]). Entry points: [`ClientMessage`], [`ServerMessage`], [`decode_client`], [`encode_server`].

pub mod contract;
pub mod decode;
pub mod document;
pub mod entity;
pub mod ids;
pub mod limits;
mod shape;
pub mod snapshot_fit;
pub mod text;

pub use decode::{Rejection, decode_client, decode_server, encode_client, encode_server};
pub use entity::*;
pub use ids::*;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version in the envelope's `v` and in `hello.protocol`.
pub const PROTOCOL_VERSION: u8 = 1;

/// What a client sends, without its envelope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum ClientMessage {
    #[serde(rename = "hello")]
    Hello(Hello),
    #[serde(rename = "goal.submit")]
    GoalSubmit(GoalSubmit),
    #[serde(rename = "user.message")]
    UserMessage(UserMessage),
    #[serde(rename = "decision.answer")]
    DecisionAnswer(AnswerDecision),
    #[serde(rename = "task.action")]
    TaskAction(TaskAction),
    #[serde(rename = "agent.action")]
    AgentAction(AgentAction),
    #[serde(rename = "diff.request")]
    DiffRequest(DiffRequest),
    #[serde(rename = "repo.add")]
    RepoAdd(RepoAdd),
}

/// A client message with the correlation id its `ack` answers to.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientEnvelope {
    /// Present: the Foreman answers with an `ack`. Belongs to the connection; ids repeat across connections.
    pub id: Option<String>,
    pub message: ClientMessage,
}

/// First message after connecting; answered with a snapshot, also when repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Version of the client; may be empty.
    #[schemars(length(max = limits::NAME_CHARS))]
    pub mod_version: String,
    /// Always 1.
    #[schemars(schema_with = "contract::one")]
    pub protocol: u8,
    /// "mod", "cli", ... (informational).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAME_CHARS))]
    pub client: Option<String>,
}

/// New goal for the lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoalSubmit {
    #[schemars(length(min = 1, max = limits::GOAL_TEXT_CHARS), regex(pattern = r"\S"))]
    pub text: String,
    /// Defaults to the only or most recently added repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_id: Option<RepoId>,
}

/// A message to an agent or to everyone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Agent id or "all". With "all", a leading "@name" in the text routes to that agent.
    #[schemars(length(min = 1, max = limits::ID_CHARS), regex(pattern = r"\S"))]
    pub to: String,
    #[schemars(length(min = 1, max = limits::MESSAGE_TEXT_CHARS), regex(pattern = r"\S"))]
    pub text: String,
}

/// Answer to an open decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerDecision {
    pub decision_id: DecisionId,
    /// Option label (preferred) or 0-based index into `Decision.options`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<OptionChoice>,
    /// Free text (questions) or feedback (merge "Request changes").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::ANSWER_TEXT_CHARS))]
    pub text: Option<String>,
}

/// An option by label or by 0-based index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum OptionChoice {
    Label(#[schemars(length(max = limits::OPTION_LABEL_CHARS))] String),
    Index(u32),
}

/// Steers a task from the Task Wall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskAction {
    pub task_id: TaskId,
    pub action: TaskActionKind,
    /// Reassign: agent id. Prioritize: integer priority (default: bump to top).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::ID_CHARS))]
    pub arg: Option<String>,
}

/// Pauses, resumes or stops an agent, or brings an off-shift worker in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentAction {
    pub agent_id: AgentId,
    /// pause: interrupts the turn, the task is kept and open questions are withdrawn; resume goes on. stop: off shift
    /// until resume or spawn; its tasks go back to the board, the next worker continues on the same branch. spawn:
    /// brings an off-shift worker onto the team.
    pub action: AgentActionKind,
    /// Spawn: optional task id to assign to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::ID_CHARS))]
    pub arg: Option<String>,
}

/// Asks for the structured diff of a worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffRequest {
    #[schemars(length(min = 1, max = limits::ID_CHARS), regex(pattern = r"\S"))]
    pub request_id: String,
    pub repo_id: RepoId,
    /// Worktree id; an agent id resolves to that agent's current worktree.
    pub worktree: WorktreeId,
    /// One file of the diff, whole, however large: an addition of this Foreman that others ignore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::PATH_CHARS), regex(pattern = r"\S"))]
    pub path: Option<String>,
}

/// Registers a local git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepoAdd {
    #[schemars(length(min = 1, max = limits::PATH_CHARS), regex(pattern = r"\S"))]
    pub path: String,
}

/// What the Foreman sends, without its envelope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum ServerMessage {
    #[serde(rename = "snapshot")]
    Snapshot(Box<Snapshot>),
    /// An agent was created or changed. Replace by `agent.id`.
    #[serde(rename = "agent.upsert")]
    AgentUpsert { agent: Agent },
    /// New log lines of an agent: append, keep a bounded tail.
    #[serde(rename = "agent.log", rename_all = "camelCase")]
    AgentLog { agent_id: AgentId, entries: Vec<LogEntry> },
    #[serde(rename = "agent.say")]
    AgentSay(AgentSay),
    /// A task was created or changed. Replace by `task.id`.
    #[serde(rename = "task.upsert")]
    TaskUpsert { task: Task },
    /// A decision was opened, answered or cancelled. Replace by `decision.id`.
    #[serde(rename = "decision.upsert")]
    DecisionUpsert { decision: Decision },
    /// A repository was added or changed (worktrees, tests, head, dirty). Replace by `repo.id`.
    #[serde(rename = "repo.upsert")]
    RepoUpsert { repo: Repo },
    /// A memory note was written. Replace by `entry.id`.
    #[serde(rename = "memory.upsert")]
    MemoryUpsert { entry: MemoryEntry },
    /// A goal was created, or its progress or status changed. Replace by `goal.id`; the latest is the current one.
    #[serde(rename = "goal.upsert")]
    GoalUpsert { goal: Goal },
    /// One more line of the activity feed: append, keep a bounded tail.
    #[serde(rename = "feed.add")]
    FeedAdd { item: FeedItem },
    #[serde(rename = "diff")]
    Diff(Box<Diff>),
    #[serde(rename = "notify")]
    Notify(Notify),
    /// State of the engine or its login changed.
    #[serde(rename = "foreman.status")]
    ForemanStatus { status: ForemanStatus },
    #[serde(rename = "ack")]
    Ack(Ack),
    #[serde(rename = "error")]
    Error(ErrorReply),
}

/// Full state, in reply to every `hello`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub foreman: ForemanStatus,
    pub agents: Vec<Agent>,
    pub tasks: Vec<Task>,
    /// Open decisions and the most recent closed ones.
    pub decisions: Vec<Decision>,
    pub repos: Vec<Repo>,
    pub memory: Vec<MemoryEntry>,
    /// Current (latest) goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// All goals, oldest first.
    pub goals: Vec<Goal>,
    /// Most recent feed items, oldest first (at most 200).
    pub feed: Vec<FeedItem>,
    /// Recent log tail per agent (at most 60 entries each).
    pub logs: Vec<AgentLogs>,
}

/// Speech bubble above the agent; also mirrored to the feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSay {
    pub agent_id: AgentId,
    pub text: String,
    /// Agent id, "user" or "all"; omitted = said to the room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    pub ts: EpochMs,
}

/// Reply to `diff.request`, to the requesting client only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    #[schemars(length(min = 1))]
    pub request_id: String,
    pub repo_id: RepoId,
    pub worktree: WorktreeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    pub files: Vec<DiffFile>,
    pub stats: DiffStats,
    /// True if very large files or hunks were cut.
    pub truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Toast for the person. `need_user`: a decision is waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notify {
    pub level: NotifyLevel,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<DecisionId>,
    pub ts: EpochMs,
}

/// Reply to any client message that carried an `id`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ack {
    /// The `id` of the client message being acknowledged.
    #[schemars(length(min = 1))]
    pub re: String,
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// E.g. `{goalId}` for goal.submit, `{repoId}` for repo.add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<BTreeMap<String, serde_json::Value>>,
}

/// A client message was invalid or failed (a failed `ack` follows when it had an id).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorReply {
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub re: Option<String>,
}

#[cfg(test)]
mod tests;
