//! Commands that show something: diffs and notes.

use super::error::ConsoleError;
use super::words;
use super::{ConsoleContext, DiffOf, LocalCommand, answer, steer};
use crate::client::suggest::nearest;
use crate::protocol::{DecisionId, MemoryId, Repo, RepoId, Task, Worktree, WorktreeId, WorktreeStatus};

/// `/diff [worktree|dN|tN|@agent]`; without a name, the decision the person looks at.
pub(super) fn diff(
    rest: &str,
    context: &ConsoleContext<'_>,
    usage: &'static str,
) -> Result<LocalCommand, ConsoleError> {
    let mirror = context.mirror;
    let Some((word, beyond)) = words::first(rest) else {
        return match context.shown_decision.filter(|id| mirror.decisions.contains_key(*id)) {
            Some(id) => of_decision(id, context),
            None => Err(ConsoleError::Usage { usage, problem: "whose changes?".to_owned() }),
        };
    };
    if !beyond.is_empty() {
        return Err(ConsoleError::Usage { usage, problem: format!("\"{beyond}\" is too much") });
    }
    let name = word.text.as_ref();
    if let Some((repo, worktree)) = mirror.worktrees().find(|(_, worktree)| worktree.id.as_str() == name) {
        return Ok(local(&repo.id, &worktree.id, DiffOf::Worktree));
    }
    if answer::is_id(name) {
        return of_decision(&DecisionId::from(name.to_lowercase()), context);
    }
    if let Some(task) = mirror.tasks.get(name.to_lowercase().as_str()) {
        let (repo, worktree) =
            of_task(task, context).ok_or_else(|| ConsoleError::WithoutWorktree { name: task.id.to_string() })?;
        return Ok(local(&repo.id, &worktree.id, DiffOf::Task(task.id.clone())));
    }
    if name.starts_with('@') || mirror.agent_named(name).is_some() {
        let agent = steer::agent(name, context)?;
        let current = agent.worktree.as_ref();
        let newest =
            mirror.worktrees().filter(|(_, worktree)| worktree.agent_id == agent.id).max_by_key(|(_, worktree)| {
                (Some(&worktree.id) == current, worktree.status == WorktreeStatus::Active, worktree.task_id.clone())
            });
        let (repo, worktree) = newest.ok_or_else(|| ConsoleError::WithoutWorktree { name: agent.name.clone() })?;
        return Ok(local(&repo.id, &worktree.id, DiffOf::Worktree));
    }
    let known = mirror.worktrees().map(|(_, worktree)| worktree.id.as_str());
    Err(ConsoleError::NoWorktree { name: name.to_owned(), suggestion: nearest(name, known).map(str::to_owned) })
}

fn local(repo: &RepoId, worktree: &WorktreeId, of: DiffOf) -> LocalCommand {
    LocalCommand::Diff { repo: repo.clone(), worktree: worktree.clone(), of }
}

fn of_decision(id: &DecisionId, context: &ConsoleContext<'_>) -> Result<LocalCommand, ConsoleError> {
    let Some(decision) = context.mirror.decisions.get(id) else {
        return Err(ConsoleError::NoDecision { name: id.to_string(), open: None });
    };
    let of = DiffOf::Decision(id.clone());
    if let (Some(repo), Some(worktree)) = (&decision.repo_id, &decision.worktree) {
        return Ok(local(repo, worktree, of));
    }
    decision
        .task_id
        .as_ref()
        .and_then(|task| context.mirror.tasks.get(task))
        .and_then(|task| of_task(task, context))
        .map(|(repo, worktree)| local(&repo.id, &worktree.id, of))
        .ok_or_else(|| ConsoleError::WithoutWorktree { name: id.to_string() })
}

/// The worktree a task is worked on in, or the last one it had.
fn of_task<'a>(task: &Task, context: &ConsoleContext<'a>) -> Option<(&'a Repo, &'a Worktree)> {
    context
        .mirror
        .worktrees()
        .filter(|(_, worktree)| {
            task.worktree.as_ref() == Some(&worktree.id) || worktree.task_id.as_ref() == Some(&task.id)
        })
        .max_by_key(|(_, worktree)| {
            (task.worktree.as_ref() == Some(&worktree.id), worktree.status == WorktreeStatus::Active)
        })
}

/// `/memory [note]`: a note by its id or the last part of it.
pub(super) fn memory(rest: &str, context: &ConsoleContext<'_>) -> Result<LocalCommand, ConsoleError> {
    let Some((_, _)) = words::first(rest) else { return Ok(LocalCommand::Memory(None)) };
    let wanted = rest.to_lowercase();
    let ids = || context.mirror.memory.keys();
    let exact = ids().find(|id| id.as_str() == rest).or_else(|| ids().find(|id| id.as_str().to_lowercase() == wanted));
    if let Some(id) = exact {
        return Ok(LocalCommand::Memory(Some(id.clone())));
    }
    let slug = |id: &MemoryId| id.as_str().rsplit('/').next().unwrap_or_default().to_lowercase();
    let mut named = ids().filter(|id| slug(id) == wanted);
    if let (Some(id), None) = (named.next(), named.next()) {
        return Ok(LocalCommand::Memory(Some(id.clone())));
    }
    let suggestion = nearest(rest, ids().map(MemoryId::as_str))
        .or_else(|| ids().find(|id| nearest(rest, [slug(id).as_str()]).is_some()).map(MemoryId::as_str));
    Err(ConsoleError::NoNote { name: rest.to_owned(), suggestion: suggestion.map(str::to_owned) })
}
