//! What the core and an engine say to each other about one turn: the job, the agent's tool calls, the events.
//!
//! Plain data, shared by `foreman` (which wants turns) and `engine` (which plays them), so that neither names the
//! other. Knows only the wire's entities and the policy's call type. No meaning lives here.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::{Area, ToolCall};
use crate::protocol::{
    Agent, AgentId, AgentRole, AgentState, Decision, GoalId, LogKind, RepoId, Station, Task, TaskId,
};

/// One run of an engine on a job. Counted from 1, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnId(pub u64);

/// A request inside a turn that waits for an answer: a tool call of the agent. Unique within its turn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub String);

/// What a turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Job {
    /// The lead reads the repository and makes tasks of a goal.
    Plan,
    /// A worker builds a task in its worktree.
    Work,
    /// The lead reviews finished work.
    Review,
    /// Messages to the agent, or an answer that arrived outside a turn.
    Followup,
}

/// All an engine needs to play one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnSpec {
    pub turn: TurnId,
    pub agent: AgentId,
    pub agent_name: String,
    pub role: AgentRole,
    pub job: Job,
    /// Working directory: the worker's worktree, or the goal's copy for the lead. Never the person's checkout.
    pub dir: PathBuf,
    /// Where the agent may read and write; the engine's own file tools keep to it too.
    pub area: Area,
    /// Conversation key: `<worker>:<task>` or `<lead>:<goal>`.
    pub session: String,
    /// The engine's id of a conversation to take up again; none starts a fresh one.
    pub resume: Option<String>,
    pub brief: Brief,
}

/// What the agent is told, as facts; the engine makes the words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// How the person is called.
    pub user_name: String,
    pub cause: Cause,
    pub goal: Option<GoalBrief>,
    pub repo: RepoBrief,
    pub task: Option<TaskBrief>,
    /// Tasks of the goal, in id order.
    pub board: Vec<Task>,
    /// Text of the goal's plan note, at most 3,000 characters.
    pub plan: Option<String>,
    /// Earlier questions of this task or goal with their answers, oldest first.
    pub answered: Vec<Answered>,
    /// Messages the agent has not read yet, oldest first.
    pub inbox: Vec<InboxMessage>,
    pub review: Option<ReviewBrief>,
}

/// Why the turn runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// First turn of the job.
    Start,
    /// Another worker had the task before; its work is on the branch already.
    HandOver { from: String, branch: String },
    /// The Foreman restarted in the middle of the turn before.
    Restarted,
    /// The agent was paused; `withdrawn` names a question that was withdrawn by it.
    Continue { withdrawn: Option<String> },
    /// The turn before failed for a passing reason.
    Retry { reason: String },
    /// The turn before ended without saying how the task stands.
    Nudge,
    /// The person or the lead asks for changes; empty text: no details given.
    ChangesRequested { by: String, text: String },
    /// The tests failed; the last lines of their output.
    CiFailed { command: String, output: String },
    /// The merge met conflicts in these files.
    Conflict { base: String, files: Vec<String> },
    /// An answer to a question of an earlier turn.
    Answer { question: String, answer: String },
    /// Messages wait in the inbox.
    Messages,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalBrief {
    pub id: GoalId,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoBrief {
    pub id: RepoId,
    pub base: String,
    /// The Foreman's own demo repository.
    pub demo: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskBrief {
    pub task: Task,
    /// Names of those who worked on it before, oldest first.
    pub former: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub question: String,
    pub answer: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxMessage {
    /// Agent id or "user".
    pub from: String,
    /// Display name of the sender.
    pub from_name: String,
    /// It went to everyone.
    pub to_all: bool,
    pub text: String,
}

/// What a review turn looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewBrief {
    /// Unified diff, at most 12,000 characters.
    pub diff: String,
    pub files: u32,
    pub additions: u32,
    pub deletions: u32,
    /// Last lines of the test output when the tests failed.
    pub ci_output: Option<String>,
    /// Names of those who worked on it.
    pub workers: Vec<String>,
}

/// What an engine reports while it plays a turn. Nothing may follow `Ended`; what does is ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TurnEvent {
    /// The conversation's id, as soon as it is known.
    Session(String),
    /// State, station and nameplate line; `None` leaves a part as it is.
    State {
        state: AgentState,
        station: Option<Station>,
        activity: Option<String>,
    },
    /// Lines for the agent's log.
    Log(Vec<(LogKind, String)>),
    /// Speech bubble; `to` is an agent id, "user" or "all".
    Say {
        text: String,
        to: Option<String>,
    },
    /// One of the agents' own tools; answered by [`TurnCommand::Answer`].
    Tool {
        request: RequestId,
        tool: AgentTool,
    },
    /// A tool call before it runs; answered by [`TurnCommand::Verdict`].
    Asked {
        request: RequestId,
        call: ToolCall,
    },
    /// Files of the working directory may have changed.
    Touched,
    /// Cumulative cost of the conversation in US dollars.
    Cost {
        total_usd: f64,
    },
    Ended(TurnEnd),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TurnEnd {
    /// The agent is through; its last words.
    Completed {
        text: String,
    },
    Failed(TurnFailure),
    /// The Foreman had it stopped.
    Stopped,
}

/// Why a turn failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFailure {
    /// In plain words, e.g. "error_max_turns" or "the model's service is overloaded".
    pub reason: String,
    /// A passing failure: try again after so many ms.
    pub retry_after_ms: Option<u64>,
    /// The engine cannot run at all until the person logs in.
    pub auth: bool,
}

/// What the Foreman tells a running turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TurnCommand {
    /// Answer to [`TurnEvent::Tool`].
    Answer { request: RequestId, answer: ToolAnswer },
    /// Answer to [`TurnEvent::Asked`]; a refusal's reason is for the agent.
    Verdict { request: RequestId, verdict: CallVerdict },
    /// A message for the agent, as soon as it can take one.
    Message(String),
    /// End the turn and its processes now.
    Stop,
}

/// The word on a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallVerdict {
    Allow,
    Deny(String),
}

/// What a tool gives back to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAnswer {
    /// False: the text says what went wrong; the turn goes on.
    pub ok: bool,
    pub text: String,
}

/// The agents' own tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "tool", rename_all = "snake_case")]
pub enum AgentTool {
    /// Message to an agent (id or name), "lead", "user" or "all".
    SendMessage {
        to: String,
        text: String,
    },
    /// Question to the person; the turn waits.
    AskUser {
        question: String,
        #[serde(default)]
        options: Vec<String>,
        #[serde(default)]
        context: Option<String>,
    },
    WriteMemory {
        title: String,
        body: String,
        #[serde(default)]
        scope: MemoryScope,
        #[serde(default)]
        mode: MemoryMode,
    },
    ReadMemory {
        #[serde(default)]
        id: Option<String>,
        #[serde(default)]
        query: Option<String>,
    },
    UpdateTask(UpdateTask),
    ReportStatus {
        /// At most 80 characters.
        activity: String,
        #[serde(default)]
        note: Option<String>,
    },
    ListTasks,
    /// Lead only.
    CreateTask {
        title: String,
        description: String,
        #[serde(default)]
        deps: Vec<TaskId>,
        #[serde(default)]
        assignee: Option<String>,
        #[serde(default)]
        priority: i64,
    },
    /// Lead only: asks the person to merge a task in review.
    RequestMerge {
        task_id: TaskId,
        summary: String,
    },
}

/// Input of the `update_task` tool; what is absent stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateTask {
    pub task_id: TaskId,
    #[serde(default)]
    pub status: Option<ToolStatus>,
    #[serde(default)]
    pub summary: Option<String>,
    #[serde(default)]
    pub blocked_reason: Option<String>,
    /// Lead only.
    #[serde(default)]
    pub assignee: Option<String>,
    /// Lead only.
    #[serde(default)]
    pub title: Option<String>,
    /// Lead only.
    #[serde(default)]
    pub description: Option<String>,
    /// Lead only: replaces what the task waits for.
    #[serde(default)]
    pub deps: Option<Vec<TaskId>>,
}

/// Statuses an agent may set; a worker only `Doing`, `Review` and `Blocked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Todo,
    Doing,
    Review,
    Blocked,
    Cancelled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    #[default]
    Shared,
    Private,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMode {
    #[default]
    Replace,
    Append,
}

/// What stands on the wall and the podium, for engines whose script waits on facts. Newest values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub agents: Vec<Agent>,
    pub tasks: Vec<Task>,
    pub decisions: Vec<Decision>,
}
