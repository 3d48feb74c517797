//! Completion of the word under the cursor.

use std::path::{MAIN_SEPARATOR, PathBuf};

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::commands::{self, COMMANDS};
use super::{ConsoleContext, answer, steer};
use crate::protocol::{
    AgentRole, DecisionKind, DecisionStatus, GoalStatus, TaskActionKind, TaskStatus, WorktreeStatus,
};

/// Most completions offered: what fits on a screen.
const OFFERED: usize = 50;

/// One way to go on: the text from byte `start` to the cursor is replaced by `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Byte offset into the line, on a character boundary.
    pub start: usize,
    /// What to put there, with a blank behind it where more words follow.
    pub text: String,
    /// What it is, a short phrase.
    pub what: String,
}

/// Something that could stand where the cursor is.
struct Candidate {
    text: String,
    what: String,
    /// Put a blank behind it.
    more: bool,
}

fn candidate(text: impl Into<String>, what: impl Into<String>, more: bool) -> Candidate {
    Candidate { text: text.into(), what: what.into(), more }
}

/// Ways to complete the word before `cursor` (a byte offset), the likeliest first. Those that begin with what is
/// written come before those that merely contain its letters.
pub fn complete(line: &str, cursor: usize, context: &ConsoleContext<'_>) -> Vec<Completion> {
    let Some(written) = line.get(..cursor) else { return Vec::new() };
    let indent = written.len() - written.trim_start().len();
    let Some(text) = written.get(indent..) else { return Vec::new() };
    if let Some(name) = text.strip_prefix('@') {
        let names = if name.contains(char::is_whitespace) { Vec::new() } else { agents(context, true, true) };
        return rank(text, indent, names);
    }
    let Some(command) = text.strip_prefix('/') else { return Vec::new() };
    let Some(end) = command.find(char::is_whitespace) else {
        let names = COMMANDS.iter().map(|command| {
            let more = command.usage.contains(['<', '@', ' ']);
            candidate(format!("/{}", command.name), command.what, more)
        });
        return rank(text, indent, names.collect());
    };
    let (name, rest) = command.split_at(end);
    let Some(command) = commands::find(name) else { return Vec::new() };
    let rest_at = indent + 1 + name.len();
    arguments(command.name, rest, rest_at, context)
}

/// Completions behind a command's name; `rest` begins at byte `at` of the line, with the blank behind the name.
fn arguments(name: &str, rest: &str, at: usize, context: &ConsoleContext<'_>) -> Vec<Completion> {
    let last_at = rest
        .rfind(char::is_whitespace)
        .map_or(0, |blank| blank + rest.get(blank..).and_then(|tail| tail.chars().next()).map_or(1, char::len_utf8));
    let (before, last) = rest.split_at(last_at);
    let words: Vec<&str> = before.split_whitespace().collect();
    let last_start = at + last_at;
    let mirror = context.mirror;
    match (name, words.as_slice()) {
        ("answer", before_words) => answers(before_words, rest, at, context),
        ("diff", []) => {
            let mut all: Vec<Candidate> = mirror
                .worktrees()
                .filter(|(_, worktree)| worktree.status == WorktreeStatus::Active)
                .map(|(repo, worktree)| {
                    candidate(
                        worktree.id.as_str(),
                        format!("{} +{} -{}", repo.name, worktree.additions, worktree.deletions),
                        false,
                    )
                })
                .collect();
            all.extend(
                mirror
                    .open_decisions()
                    .into_iter()
                    .filter(|decision| decision.kind == DecisionKind::Merge)
                    .map(|decision| candidate(decision.id.as_str(), decision.question.as_str(), false)),
            );
            all.extend(tasks(context, false));
            rank(last, last_start, all)
        }
        ("pause" | "resume" | "stop" | "spawn", []) => rank(last, last_start, agents(context, false, name == "spawn")),
        ("spawn", [_]) | ("task", []) => rank(last, last_start, tasks(context, name == "task")),
        ("task", [_]) => {
            let actions = TaskActionKind::ALL.iter().map(|action| {
                let (what, more) = match action {
                    TaskActionKind::Reassign => ("give it to another worker", true),
                    TaskActionKind::Cancel => ("give it up, keep its branch", false),
                    TaskActionKind::Retry => ("put it back on the board", false),
                    TaskActionKind::Prioritize => ("to the top, or to a number", false),
                };
                candidate(action.as_str(), what, more)
            });
            rank(last, last_start, actions.collect())
        }
        ("task", [_, action]) if action.eq_ignore_ascii_case("reassign") => {
            let workers = agents(context, false, false)
                .into_iter()
                .filter(|agent| mirror.agent_named(&agent.text).is_some_and(|agent| agent.role == AgentRole::Worker));
            rank(last, last_start, workers.collect())
        }
        ("repo", []) => rank(last, last_start, vec![candidate("add", "connect a git repository", true)]),
        ("repo", [verb, ..]) if verb.eq_ignore_ascii_case("add") => directories(rest, at, context),
        ("memory", []) => {
            let notes = mirror.memory.values().map(|note| candidate(note.id.as_str(), note.title.as_str(), false));
            rank(last, last_start, notes.collect())
        }
        ("goal", []) => {
            let repos =
                mirror.repos_by_age().map(|repo| candidate(format!("repo={}", repo.id), repo.path.as_str(), true));
            if last.is_empty() { Vec::new() } else { rank(last, last_start, repos.collect()) }
        }
        ("wait", []) => {
            let whats = [
                ("decision", "one is open", true),
                ("goal", "the latest goal ended", true),
                ("merge", "no merge is under way", false),
                ("diff", "a worktree has changes", true),
                ("snapshot", "the Foreman is there", false),
            ];
            let mut all: Vec<Candidate> =
                whats.into_iter().map(|(text, what, more)| candidate(text, what, more)).collect();
            all.extend(tasks(context, true));
            rank(last, last_start, all)
        }
        ("wait", ["decision"]) => {
            rank(last, last_start, DecisionKind::ALL.iter().map(|kind| candidate(kind.as_str(), "", false)).collect())
        }
        ("wait", ["goal"]) => {
            rank(last, last_start, GoalStatus::ALL.iter().map(|status| candidate(status.as_str(), "", false)).collect())
        }
        ("wait", [task]) if mirror.tasks.contains_key(*task) => {
            rank(last, last_start, TaskStatus::ALL.iter().map(|status| candidate(status.as_str(), "", false)).collect())
        }
        _ => Vec::new(),
    }
}

/// Behind `/answer`: an open decision or, once it is clear which one is meant, its options.
fn answers(before: &[&str], rest: &str, at: usize, context: &ConsoleContext<'_>) -> Vec<Completion> {
    let named = before.first().filter(|word| answer::is_id(word));
    let (decision, from) = match named {
        Some(id) => {
            let decision = context.mirror.decisions.get(id.to_lowercase().as_str());
            let behind = rest.find(id).map_or(rest.len(), |start| start + id.len());
            (decision, behind)
        }
        None => (context.shown_decision.and_then(|id| context.mirror.decisions.get(id)), 0),
    };
    let tail = rest.get(from..).unwrap_or_default();
    let typed = tail.trim_start();
    let start = at + from + (tail.len() - typed.len());
    let mut all = Vec::new();
    if let Some(decision) = decision.filter(|decision| decision.status == DecisionStatus::Open) {
        all.extend(decision.options.iter().enumerate().map(|(index, option)| {
            let more = option == crate::protocol::label::REQUEST_CHANGES;
            candidate(option.as_str(), format!("option {} of {}", index + 1, decision.id), more)
        }));
    }
    if named.is_none() {
        all.extend(context.mirror.open_decisions().into_iter().map(|decision| {
            candidate(decision.id.as_str(), format!("{}: {}", decision.kind, decision.question), true)
        }));
    }
    rank(typed, start, all)
}

/// Agents as `@id`; `more` puts a blank behind, `everyone` offers `@all` where a line may go to all.
fn agents(context: &ConsoleContext<'_>, everyone: bool, more: bool) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = context
        .mirror
        .agents
        .iter()
        .map(|agent| {
            let how = if !agent.active {
                "off shift".to_owned()
            } else if agent.paused {
                "paused".to_owned()
            } else {
                agent.state.to_string()
            };
            candidate(format!("@{}", agent.id), format!("{}, {how}", agent.name), more)
        })
        .collect();
    if everyone {
        all.push(candidate("@all", "everyone", true));
    }
    all
}

/// Tasks that are not through yet, by id.
fn tasks(context: &ConsoleContext<'_>, more: bool) -> Vec<Candidate> {
    context
        .mirror
        .tasks
        .values()
        .filter(|task| !matches!(task.status, TaskStatus::Done | TaskStatus::Cancelled))
        .map(|task| candidate(task.id.as_str(), format!("{}, {}", task.title, task.status), more))
        .collect()
}

/// The directory whose subdirectories would complete this line, when it is not the one already listed. The caller
/// reads it (off the screen's thread) and puts the names into the context's places.
pub fn wanted_listing(line: &str, context: &ConsoleContext<'_>) -> Option<PathBuf> {
    let (_, typed) = written_path(line)?;
    let (dir, _) = split_path(typed, context)?;
    let places = context.places?;
    let known = places.listing.as_ref().is_some_and(|listing| listing.dir == dir);
    (!known).then_some(dir)
}

/// Where the path of a `/repo add` line begins, and the path as far as it is written.
fn written_path(line: &str) -> Option<(usize, &str)> {
    let indent = line.len() - line.trim_start().len();
    let rest = line.get(indent..)?.strip_prefix("/repo")?;
    let verb = rest.trim_start();
    if verb.len() == rest.len() {
        return None;
    }
    let path = verb.strip_prefix("add")?;
    let typed = path.trim_start();
    (typed.len() < path.len()).then_some((line.len() - typed.len(), typed))
}

/// The directory in which the last part of `typed` is looked for, and that last part.
fn split_path<'a>(typed: &'a str, context: &ConsoleContext<'_>) -> Option<(PathBuf, &'a str)> {
    let typed = typed.strip_prefix('"').unwrap_or(typed);
    if typed == "~" {
        return None;
    }
    let (dir, last) = match typed.rfind(MAIN_SEPARATOR) {
        Some(at) => typed.split_at(at + 1),
        None => ("", typed),
    };
    Some((steer::expand(dir, context.places?)?, last))
}

fn directories(rest: &str, at: usize, context: &ConsoleContext<'_>) -> Vec<Completion> {
    let line = format!("/repo{rest}");
    let Some((path_at, typed)) = written_path(&line) else { return Vec::new() };
    let Some((dir, last)) = split_path(typed, context) else { return Vec::new() };
    let Some(listing) = context.places.and_then(|places| places.listing.as_ref()) else { return Vec::new() };
    if listing.dir != dir {
        return Vec::new();
    }
    let hidden = last.starts_with('.');
    let names = listing
        .names
        .iter()
        .filter(|name| hidden || !name.starts_with('.'))
        .map(|name| candidate(format!("{name}{MAIN_SEPARATOR}"), "directory", false));
    // The path begins as far into `rest` as into the line it was put in above.
    let start = at + (path_at - "/repo".len()) + (typed.len() - last.len());
    rank(last, start, names.collect())
}

/// Those that fit `typed`: first those that begin with it, in their order, then those that contain its letters in
/// order, the closest first.
fn rank(typed: &str, start: usize, candidates: Vec<Candidate>) -> Vec<Completion> {
    let wanted = typed.to_lowercase();
    let begins = |candidate: &Candidate| {
        let text = candidate.text.to_lowercase();
        text.starts_with(&wanted) || text.strip_prefix('@').is_some_and(|name| name.starts_with(&wanted))
    };
    let (begin, other): (Vec<Candidate>, Vec<Candidate>) = candidates.into_iter().partition(begins);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(typed, CaseMatching::Ignore, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut fuzzy: Vec<(u32, Candidate)> = other
        .into_iter()
        .filter(|_| typed.chars().count() > 1)
        .filter_map(|candidate| {
            let score = pattern.score(Utf32Str::new(&candidate.text, &mut buffer), &mut matcher)?;
            Some((score, candidate))
        })
        .collect();
    fuzzy.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    begin
        .into_iter()
        .chain(fuzzy.into_iter().map(|(_, candidate)| candidate))
        .filter(|candidate| candidate.text != typed)
        .take(OFFERED)
        .map(|candidate| Completion {
            start,
            text: if candidate.more { format!("{} ", candidate.text) } else { candidate.text },
            what: candidate.what,
        })
        .collect()
}
