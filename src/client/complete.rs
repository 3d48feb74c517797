//! Completions of a console line. Pure, but for folders when a path is typed.

use super::console::{COMMANDS, ConsoleContext};
use crate::protocol::{DecisionId, DecisionStatus, TaskActionKind};

/// Most completions offered.
const MOST: usize = 50;

/// One way to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Byte position in the line from which `text` replaces what is typed.
    pub start: usize,
    pub text: String,
    /// What it is, in a few words.
    pub what: String,
}

/// Ways to go on from the cursor (a byte position; one inside a character counts as its beginning).
pub fn complete(line: &str, cursor: usize, context: &ConsoleContext<'_>) -> Vec<Completion> {
    let mut cursor = cursor.min(line.len());
    while !line.is_char_boundary(cursor) {
        cursor -= 1;
    }
    let typed = line.get(..cursor).unwrap_or_default();
    let start = typed
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + typed.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    let word = typed.get(start..).unwrap_or_default();
    let before: Vec<&str> = typed.get(..start).unwrap_or_default().split_whitespace().collect();
    let mut found: Vec<(String, String)> = match before.first().copied() {
        None if word.starts_with('/') => COMMANDS
            .iter()
            .map(|(name, args, what)| ((*name).to_owned(), format!("{args} {what}").trim().to_owned()))
            .collect(),
        None if word.starts_with('@') => names(context, true),
        None => Vec::new(),
        Some("/answer" | "/a") => answers(&before, context),
        Some("/pause" | "/resume" | "/stop") if before.len() == 1 => names(context, false),
        Some("/spawn") if before.len() == 1 => names(context, false),
        Some("/spawn") => tasks(context),
        Some("/task") => match before.len() {
            1 => tasks(context),
            2 => TaskActionKind::ALL.iter().map(|action| (action.as_str().to_owned(), String::new())).collect(),
            3 if before.get(2) == Some(&"reassign") => names(context, false),
            _ => Vec::new(),
        },
        Some("/diff") => {
            let mut all: Vec<(String, String)> = context
                .mirror
                .repos
                .values()
                .flat_map(|repo| repo.worktrees.iter())
                .map(|at| (at.id.to_string(), at.branch.clone()))
                .collect();
            all.extend(open(context));
            all
        }
        Some("/memory") => {
            context.mirror.memory.values().map(|note| (note.id.to_string(), note.title.clone())).collect()
        }
        Some("/repo") if before.len() == 1 => vec![("add".to_owned(), "connects a repository".to_owned())],
        Some("/repo") => folders(word),
        Some(_) => Vec::new(),
    };
    let lower = word.to_lowercase();
    found.retain(|(text, _)| text.to_lowercase().starts_with(&lower) && text != word);
    found.truncate(MOST);
    found.into_iter().map(|(text, what)| Completion { start, text, what }).collect()
}

fn names(context: &ConsoleContext<'_>, everyone: bool) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = context
        .mirror
        .agents
        .iter()
        .map(|agent| (format!("@{}", agent.id), agent.title.clone().unwrap_or_default()))
        .collect();
    if everyone {
        all.push(("@all".to_owned(), "everyone".to_owned()));
    }
    all
}

fn tasks(context: &ConsoleContext<'_>) -> Vec<(String, String)> {
    context.mirror.tasks.values().map(|task| (task.id.to_string(), task.title.clone())).collect()
}

fn open(context: &ConsoleContext<'_>) -> Vec<(String, String)> {
    context
        .mirror
        .open_decisions()
        .into_iter()
        .map(|decision| (decision.id.to_string(), decision.question.clone()))
        .collect()
}

/// Decisions first, then the options of the one that is meant.
fn answers(before: &[&str], context: &ConsoleContext<'_>) -> Vec<(String, String)> {
    let named = before.get(1).map(|word| DecisionId(word.to_lowercase()));
    let mut all = Vec::new();
    let meant = match &named {
        Some(id) if context.mirror.decisions.contains_key(id) => Some(id),
        Some(_) => return Vec::new(),
        None => {
            all.extend(open(context));
            context.shown_decision
        }
    };
    if let Some(decision) = meant.and_then(|id| context.mirror.decisions.get(id))
        && decision.status == DecisionStatus::Open
        && before.len() <= 2
    {
        all.extend(decision.options.iter().map(|option| (option.clone(), "option".to_owned())));
    }
    all
}

/// Folders that begin as typed; `~` is the home.
fn folders(word: &str) -> Vec<(String, String)> {
    let (shown, name) = match word.rfind('/') {
        Some(at) => word.split_at(at + 1),
        None => ("", word),
    };
    let home = std::env::var("HOME").unwrap_or_default();
    let dir = match shown.strip_prefix("~/") {
        Some(rest) => format!("{home}/{rest}"),
        None if shown.is_empty() => ".".to_owned(),
        None => shown.to_owned(),
    };
    let Ok(entries) = std::fs::read_dir(&dir) else { return Vec::new() };
    let mut all: Vec<(String, String)> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|entry| entry.starts_with(name) && (!entry.starts_with('.') || name.starts_with('.')))
        .map(|entry| (format!("{shown}{entry}/"), "folder".to_owned()))
        .collect();
    all.sort();
    all
}
