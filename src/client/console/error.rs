//! Why a line can't be sent, in the person's words.

use thiserror::Error;

fn hint(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|word| format!("; did you mean {word}?")).unwrap_or_default()
}

/// Why a line can't be sent. The text says what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConsoleError {
    #[error("nothing to send")]
    Empty,
    #[error("no command /{name}{}", hint(suggestion).if_empty("; /help lists them, /goal TEXT takes any text as a goal"))]
    UnknownCommand { name: String, suggestion: Option<String> },
    /// A known command, wrongly written.
    #[error("{problem}; write {usage}")]
    Usage { usage: &'static str, problem: String },
    #[error("no agent named \"{name}\"{}", hint(suggestion))]
    NoAgent { name: String, suggestion: Option<String> },
    /// `@name` at the start of a line that may have been meant as a goal.
    #[error("no agent named \"{name}\"{}", hint(suggestion).if_empty("; for a goal that begins so: /goal @…"))]
    NoAgentOrGoal { name: String, suggestion: Option<String> },
    #[error("write what to tell {to} behind the name")]
    NoText { to: String },
    #[error("no repository is connected yet; connect one with /repo add PATH")]
    NoRepo,
    #[error("no repository \"{name}\"; connected: {known}")]
    UnknownRepo { name: String, known: String },
    #[error("no task {name}{}", hint(suggestion))]
    NoTask { name: String, suggestion: Option<String> },
    #[error("no decision {name}{}", open.as_ref().map(|ids| format!("; open: {ids}")).unwrap_or_default())]
    NoDecision { name: String, open: Option<String> },
    #[error("decision {name} is already {status}")]
    DecisionClosed { name: String, status: &'static str },
    #[error("no decision waits for you")]
    NothingOpen,
    #[error("which decision? name one: {open}")]
    WhichDecision { open: String },
    /// The words name no option of a merge or a permission.
    #[error("\"{words}\" is not one of: {options}{advice}")]
    NoOption { words: String, options: String, advice: &'static str },
    #[error("there is no option {number}: {options}")]
    OptionOutOfRange { number: String, options: String },
    /// A word that begins a granting option is no consent.
    #[error("write \"{label}\" in full, or its number {number}")]
    WriteInFull { label: String, number: usize },
    /// Words behind a choice that takes none: perhaps a sentence, not a choice.
    #[error("\"{label}\" stands alone: \"{extra}\" would not be sent{advice}")]
    TakesNoText { label: String, extra: String, advice: &'static str },
    #[error("write what to change behind it: /answer {id} {label} …")]
    ChangesNeedText { id: String, label: String },
    #[error("the text has {length} characters, at most {most} are taken")]
    TooLong { length: usize, most: usize },
    #[error("\"{path}\" is a relative path; give the whole path")]
    RelativePath { path: String },
    #[error("no worktree, task or decision \"{name}\"{}", hint(suggestion))]
    NoWorktree { name: String, suggestion: Option<String> },
    #[error("{name} has no worktree, so there is nothing to compare")]
    WithoutWorktree { name: String },
    #[error("no note \"{name}\"{}", hint(suggestion))]
    NoNote { name: String, suggestion: Option<String> },
    #[error("{name} is the lead; tasks go to workers")]
    LeadTakesNoTasks { name: String },
}

impl ConsoleError {
    /// The same error, where the line may have been meant as a goal.
    pub(super) fn or_as_goal(self) -> Self {
        match self {
            Self::NoAgent { name, suggestion } => Self::NoAgentOrGoal { name, suggestion },
            other => other,
        }
    }
}

trait IfEmpty {
    /// Itself, or `other` when it is empty.
    fn if_empty(self, other: &str) -> String;
}

impl IfEmpty for String {
    fn if_empty(self, other: &str) -> String {
        if self.is_empty() { other.to_owned() } else { self }
    }
}
