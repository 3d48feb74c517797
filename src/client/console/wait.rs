//! `/wait`, for scripts: what to wait for, and whether it holds.

use super::error::ConsoleError;
use super::words;
use super::{ConsoleContext, LocalCommand, answer};
use crate::client::mirror::Mirror;
use crate::client::suggest::nearest;
use crate::protocol::{DecisionId, DecisionKind, DecisionStatus, GoalStatus, TaskId, TaskStatus, WorktreeId, label};

/// Longest wait, ms: a script that hangs for half an hour has failed.
pub const WAIT_MAX_MS: u64 = 30 * 60 * 1000;

/// What a script waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Time passes, ms; at most [`WAIT_MAX_MS`].
    Pause(u64),
    /// The decision has been asked.
    Decision(DecisionId),
    /// A decision (of the kind) is open.
    AnyDecision(Option<DecisionKind>),
    /// The task has the status; without one: it is done or cancelled.
    Task(TaskId, Option<TaskStatus>),
    /// The latest goal has the status; without one: it is done, failed or cancelled.
    Goal(Option<GoalStatus>),
    /// No approved merge is under way any more.
    Merge,
    /// A worktree (this one, or any) has changes.
    Diff(Option<WorktreeId>),
    /// The Foreman is there.
    Snapshot,
}

/// How a wait stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It does not hold yet.
    Going,
    /// It holds; what to say.
    Holds(String),
    /// It can't be expected to hold any more; why.
    Missed(String),
}

impl WaitFor {
    /// Does it hold in this state? A pause never holds by itself: the caller owns the clock.
    pub fn check(&self, mirror: &Mirror) -> Waiting {
        match self {
            Self::Pause(_) => Waiting::Going,
            Self::Snapshot => Waiting::Holds(format!("the Foreman {} is there", mirror.foreman.version)),
            Self::Decision(id) => match mirror.decisions.get(id) {
                Some(decision) => Waiting::Holds(format!("{id} is {}: {}", decision.status, decision.question)),
                None => Waiting::Going,
            },
            Self::AnyDecision(kind) => {
                let open = mirror.open_decisions();
                let found = open.iter().find(|decision| kind.is_none_or(|kind| decision.kind == kind));
                match found {
                    Some(decision) => Waiting::Holds(format!("{} is open: {}", decision.id, decision.question)),
                    None => Waiting::Going,
                }
            }
            Self::Task(id, wanted) => {
                let Some(task) = mirror.tasks.get(id) else { return Waiting::Going };
                let ended = matches!(task.status, TaskStatus::Done | TaskStatus::Cancelled);
                let said = format!("{id} is {}", task.status);
                match wanted {
                    Some(wanted) if task.status == *wanted => Waiting::Holds(said),
                    Some(_) if ended => Waiting::Missed(said),
                    None if task.status == TaskStatus::Done => Waiting::Holds(said),
                    None if ended => Waiting::Missed(said),
                    Some(_) | None => Waiting::Going,
                }
            }
            Self::Goal(wanted) => {
                let Some(goal) = mirror.goal() else { return Waiting::Going };
                let said = format!("{} is {}", goal.id, goal.status);
                let ended = matches!(goal.status, GoalStatus::Done | GoalStatus::Failed | GoalStatus::Cancelled);
                match wanted {
                    Some(wanted) if goal.status == *wanted => Waiting::Holds(said),
                    Some(_) if ended => Waiting::Missed(said),
                    None if goal.status == GoalStatus::Done => Waiting::Holds(said),
                    None if ended => Waiting::Missed(said),
                    Some(_) | None => Waiting::Going,
                }
            }
            Self::Merge => {
                let under_way = mirror.decisions.values().any(|decision| {
                    decision.kind == DecisionKind::Merge
                        && decision.status == DecisionStatus::Answered
                        && decision.answer.as_ref().and_then(|answer| answer.option.as_deref()) == Some(label::MERGE)
                        && decision
                            .task_id
                            .as_ref()
                            .and_then(|task| mirror.tasks.get(task))
                            .is_some_and(|task| task.status == TaskStatus::Review)
                });
                if under_way { Waiting::Going } else { Waiting::Holds("no merge is under way".to_owned()) }
            }
            Self::Diff(wanted) => {
                let found = mirror.worktrees().find(|(_, worktree)| {
                    wanted.as_ref().is_none_or(|wanted| worktree.id == *wanted) && worktree.files > 0
                });
                match found {
                    Some((_, worktree)) => Waiting::Holds(format!("{} has changes", worktree.id)),
                    None => Waiting::Going,
                }
            }
        }
    }
}

/// Reads what stands behind `/wait`.
pub(super) fn wait(
    rest: &str,
    _context: &ConsoleContext<'_>,
    usage: &'static str,
) -> Result<LocalCommand, ConsoleError> {
    let wrong = |problem: String| ConsoleError::Usage { usage, problem };
    let Some((what, after)) = words::first(rest) else { return Err(wrong("wait for what?".to_owned())) };
    let what = what.text.to_lowercase();
    let arg = words::first(after);
    if let Some((_, beyond)) = &arg
        && !beyond.is_empty()
    {
        return Err(wrong(format!("\"{beyond}\" is too much")));
    }
    let arg = arg.map(|(word, _)| word.text.into_owned());
    let nothing_more = |wait: WaitFor| match &arg {
        None => Ok(wait),
        Some(extra) => Err(wrong(format!("\"{extra}\" is too much"))),
    };
    let is_task = what.strip_prefix('t').is_some_and(|number| number.parse::<u64>().is_ok());
    let wait = if let Ok(seconds) = what.parse::<f64>() {
        let ms = seconds * 1000.0;
        if !(0.0..=WAIT_MAX_MS as f64).contains(&ms) {
            return Err(wrong(format!("{what} seconds is out of range: 0 to {}", WAIT_MAX_MS / 1000)));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range, checked above")]
        nothing_more(WaitFor::Pause(ms as u64))?
    } else if answer::is_id(&what) {
        nothing_more(WaitFor::Decision(DecisionId::from(what)))?
    } else if is_task {
        WaitFor::Task(TaskId::from(what), named(arg.as_deref(), TaskStatus::ALL, TaskStatus::as_str).map_err(wrong)?)
    } else {
        match what.as_str() {
            "decision" => {
                WaitFor::AnyDecision(named(arg.as_deref(), DecisionKind::ALL, DecisionKind::as_str).map_err(wrong)?)
            }
            "goal" => WaitFor::Goal(named(arg.as_deref(), GoalStatus::ALL, GoalStatus::as_str).map_err(wrong)?),
            "merge" => nothing_more(WaitFor::Merge)?,
            "snapshot" => nothing_more(WaitFor::Snapshot)?,
            "diff" => WaitFor::Diff(arg.map(WorktreeId::from)),
            other => {
                let meant = nearest(other, ["decision", "goal", "merge", "snapshot", "diff"]);
                let meant = meant.map(|word| format!(", did you mean {word}?")).unwrap_or_default();
                return Err(wrong(format!("can't wait for \"{other}\"{meant}")));
            }
        }
    };
    Ok(LocalCommand::Wait(wait))
}

/// The value of this name, if one is given.
fn named<T: Copy>(word: Option<&str>, all: &[T], name: impl Fn(T) -> &'static str) -> Result<Option<T>, String> {
    let Some(word) = word else { return Ok(None) };
    let wanted = word.to_lowercase();
    match all.iter().copied().find(|value| name(*value) == wanted) {
        Some(value) => Ok(Some(value)),
        None => {
            let names: Vec<&str> = all.iter().map(|value| name(*value)).collect();
            Err(format!("\"{word}\" is not one of {}", names.join(", ")))
        }
    }
}
