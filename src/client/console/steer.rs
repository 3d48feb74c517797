//! Steering agents, tasks and repositories.

use std::path::{Component, Path, PathBuf};

use super::error::ConsoleError;
use super::words;
use super::{ConsoleContext, Places};
use crate::client::suggest::nearest;
use crate::protocol::limits::PATH_CHARS;
use crate::protocol::{
    Agent, AgentAction, AgentActionKind, AgentRole, ClientMessage, RepoAdd, Task, TaskAction, TaskActionKind, TaskId,
};

/// The agent of this name, with or without `@`.
pub(super) fn agent<'a>(name: &str, context: &ConsoleContext<'a>) -> Result<&'a Agent, ConsoleError> {
    context.mirror.agent_named(name).ok_or_else(|| {
        let name = name.strip_prefix('@').unwrap_or(name).to_owned();
        let known = context.mirror.agents.iter().map(|agent| agent.id.as_str());
        let suggestion = nearest(&name, known).map(|id| format!("@{id}"));
        ConsoleError::NoAgent { name, suggestion }
    })
}

/// The task of this id, whatever the case.
pub(super) fn task<'a>(name: &str, context: &ConsoleContext<'a>) -> Result<&'a Task, ConsoleError> {
    let id = TaskId::from(name.to_lowercase());
    context.mirror.tasks.get(&id).ok_or_else(|| {
        let numbered = format!("t{name}");
        let suggestion = context.mirror.tasks.contains_key(numbered.as_str()).then_some(numbered);
        ConsoleError::NoTask { name: name.to_owned(), suggestion }
    })
}

/// `/pause @agent` and its like; `/spawn @agent [tN]`.
pub(super) fn agent_action(
    action: AgentActionKind,
    rest: &str,
    context: &ConsoleContext<'_>,
    usage: &'static str,
) -> Result<ClientMessage, ConsoleError> {
    let Some((name, after)) = words::first(rest) else {
        return Err(ConsoleError::Usage { usage, problem: format!("whom to {action}?") });
    };
    let agent = agent(&name.text, context)?;
    let mut arg = None;
    if let Some((extra, beyond)) = words::first(after) {
        if action != AgentActionKind::Spawn || !beyond.is_empty() {
            return Err(ConsoleError::Usage { usage, problem: format!("\"{after}\" is too much") });
        }
        let task = task(&extra.text, context)?;
        if agent.role == AgentRole::Lead {
            return Err(ConsoleError::LeadTakesNoTasks { name: agent.name.clone() });
        }
        arg = Some(task.id.to_string());
    }
    Ok(ClientMessage::AgentAction(AgentAction { agent_id: agent.id.clone(), action, arg }))
}

/// `/task <id> <action> [arg]`.
pub(super) fn task_action(
    rest: &str,
    context: &ConsoleContext<'_>,
    usage: &'static str,
) -> Result<ClientMessage, ConsoleError> {
    let Some((id, after)) = words::first(rest) else {
        return Err(ConsoleError::Usage { usage, problem: "which task?".to_owned() });
    };
    let task = task(&id.text, context)?;
    let Some((verb, after)) = words::first(after) else {
        return Err(ConsoleError::Usage { usage, problem: format!("what to do with {}?", task.id) });
    };
    let named = verb.text.to_lowercase();
    let Some(action) = TaskActionKind::ALL.iter().copied().find(|action| action.as_str() == named) else {
        let suggestion = nearest(&named, TaskActionKind::ALL.iter().map(|action| action.as_str()));
        let meant = suggestion.map(|word| format!(", did you mean {word}?")).unwrap_or_default();
        return Err(ConsoleError::Usage { usage, problem: format!("a task can't \"{}\"{meant}", verb.text) });
    };
    let arg = words::first(after);
    if let Some((_, beyond)) = &arg
        && !beyond.is_empty()
    {
        return Err(ConsoleError::Usage { usage, problem: format!("\"{beyond}\" is too much") });
    }
    let arg = arg.map(|(word, _)| word.text.into_owned());
    let arg = match (action, arg) {
        (TaskActionKind::Cancel | TaskActionKind::Retry | TaskActionKind::Prioritize, None) => None,
        (TaskActionKind::Cancel | TaskActionKind::Retry, Some(extra)) => {
            return Err(ConsoleError::Usage { usage, problem: format!("\"{extra}\" is too much for {action}") });
        }
        (TaskActionKind::Prioritize, Some(number)) => match number.parse::<i64>() {
            Ok(number) => Some(number.to_string()),
            Err(_) => {
                let problem = format!("\"{number}\" is no whole number; a higher one is sooner");
                return Err(ConsoleError::Usage { usage, problem });
            }
        },
        (TaskActionKind::Reassign, None) => {
            return Err(ConsoleError::Usage { usage, problem: format!("who should get {}?", task.id) });
        }
        (TaskActionKind::Reassign, Some(name)) => {
            let agent = agent(&name, context)?;
            if agent.role == AgentRole::Lead {
                return Err(ConsoleError::LeadTakesNoTasks { name: agent.name.clone() });
            }
            Some(agent.id.to_string())
        }
    };
    Ok(ClientMessage::TaskAction(TaskAction { task_id: task.id.clone(), action, arg }))
}

/// `/repo add <path>`; the path is all that follows, blanks included.
pub(super) fn repo(
    rest: &str,
    context: &ConsoleContext<'_>,
    usage: &'static str,
) -> Result<ClientMessage, ConsoleError> {
    let Some((verb, after)) = words::first(rest) else {
        return Err(ConsoleError::Usage { usage, problem: "what to do with a repository?".to_owned() });
    };
    if !verb.text.eq_ignore_ascii_case("add") {
        let problem = format!("repositories can be added, not \"{}\"", verb.text);
        return Err(ConsoleError::Usage { usage, problem });
    }
    if after.is_empty() {
        return Err(ConsoleError::Usage { usage, problem: "which directory?".to_owned() });
    }
    let path = match words::first(after) {
        Some((word, "")) if word.quoted => word.text.into_owned(),
        _ => after.to_owned(),
    };
    let path = absolute(&path, context.places)?;
    super::limit(&path, PATH_CHARS)?;
    Ok(ClientMessage::RepoAdd(RepoAdd { path }))
}

/// The path from the root on, with `~`, `.` and `..` at its start worked out.
fn absolute(path: &str, places: Option<&Places>) -> Result<String, ConsoleError> {
    if Path::new(path).is_absolute() {
        return Ok(path.to_owned());
    }
    let relative = || ConsoleError::RelativePath { path: path.to_owned() };
    let places = places.ok_or_else(relative)?;
    let whole = expand(path, places).ok_or_else(relative)?;
    whole.into_os_string().into_string().map_err(|_| relative())
}

/// The same path from the root on; `None` when `~` is meant and no home is known.
pub(super) fn expand(path: &str, places: &Places) -> Option<PathBuf> {
    let (start, rest) = match path.strip_prefix('~') {
        Some("") => (places.home.clone()?, ""),
        Some(rest) if rest.starts_with('/') => (places.home.clone()?, rest.trim_start_matches('/')),
        _ => (places.cwd.clone(), path),
    };
    let mut whole = start;
    let mut named = false;
    for part in Path::new(rest).components() {
        match part {
            Component::CurDir => {}
            // Behind a link, `a/../b` is not `b`: only dots before any name are worked out.
            Component::ParentDir if !named => {
                whole.pop();
            }
            other => {
                named = true;
                whole.push(other);
            }
        }
    }
    Some(whole)
}
