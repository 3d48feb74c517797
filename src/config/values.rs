//! Single values, read from text the same way whatever the source. An error says what would do.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::client::suggest::nearest;
use crate::foreman::effect::MergeStyle;
use crate::foreman::roster::WORKERS;
use crate::protocol::{AgentId, BackendName, DecisionKind};

/// Slowest pace of the sim.
const SPEED_LEAST: f64 = 0.05;
/// Fastest pace of the sim: waits are gone long before.
const SPEED_MOST: f64 = 10_000.0;
/// Shortest pause between two looks at a repository, ms.
const REPO_POLL_LEAST_MS: u64 = 500;
/// Longest name of the person, characters: what a line of the feed bears.
const USER_NAME_CHARS: usize = 40;

/// Who is on the team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workers {
    /// The first so many of the roster, 1 to 5.
    First(usize),
    /// These, in the order in which they take work.
    Named(Vec<AgentId>),
}

impl Workers {
    /// Their ids.
    pub fn ids(&self) -> Vec<AgentId> {
        match self {
            Self::First(count) => WORKERS.iter().take(*count).map(|id| AgentId::from(*id)).collect(),
            Self::Named(ids) => ids.clone(),
        }
    }
}

/// What is answered without the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AutoAnswerWish {
    /// Everything in the demo repository, nothing elsewhere.
    Demo,
    /// These kinds, everywhere.
    Kinds(BTreeSet<DecisionKind>),
}

/// A static state of the sim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Showcase {
    Busy,
    Late,
}

impl Showcase {
    /// Its name in the sim's scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Late => "late",
        }
    }
}

/// The screen's theme; without one the terminal is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    Dark,
    Light,
}

/// One of a few names, with the nearest one offered for a slip.
fn one_of<T: Copy>(text: &str, all: &[(&'static str, T)]) -> Result<T, String> {
    let wanted = text.trim().to_lowercase();
    if let Some((_, value)) = all.iter().find(|(name, _)| *name == wanted) {
        return Ok(*value);
    }
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let meant = nearest(&wanted, names.iter().copied()).map(|near| format!("; did you mean {near}?"));
    Err(format!("\"{text}\" is not one of {}{}", names.join(", "), meant.unwrap_or_default()))
}

pub(crate) fn backend(text: &str) -> Result<BackendName, String> {
    one_of(text, &[("sim", BackendName::Sim), ("claude", BackendName::Claude)])
}

pub(crate) fn merge_style(text: &str) -> Result<MergeStyle, String> {
    one_of(text, &[("merge", MergeStyle::Merge), ("squash", MergeStyle::Squash)])
}

pub(crate) fn showcase(text: &str) -> Result<Showcase, String> {
    one_of(text, &[("busy", Showcase::Busy), ("late", Showcase::Late)])
}

pub(crate) fn theme(text: &str) -> Result<Theme, String> {
    one_of(text, &[("dark", Theme::Dark), ("light", Theme::Light)])
}

/// A profile's name: it becomes a directory.
pub(crate) fn profile(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.is_empty() || text.len() > 64 || !text.bytes().all(plain) {
        return Err(format!("\"{text}\" is no profile's name: letters, digits, - and _, at most 64"));
    }
    Ok(text.to_owned())
}

pub(crate) fn port(text: &str) -> Result<u16, String> {
    text.trim().parse().map_err(|_| format!("\"{text}\" is no port: 1 to 65535, or 0 for any free one"))
}

pub(crate) fn workers(text: &str) -> Result<Workers, String> {
    let most = WORKERS.len();
    if let Ok(count) = text.trim().parse::<i64>() {
        return usize::try_from(count)
            .ok()
            .filter(|count| (1..=most).contains(count))
            .map(Workers::First)
            .ok_or_else(|| format!("{text} workers: 1 to {most} can be had"));
    }
    let mut ids = Vec::new();
    for name in listed(text)? {
        let wanted = name.strip_prefix('@').unwrap_or(&name).to_lowercase();
        let Some(id) = WORKERS.iter().find(|id| **id == wanted) else {
            let near = nearest(&wanted, WORKERS).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            return Err(format!("no worker \"{name}\": a number, or some of {}{near}", WORKERS.join(", ")));
        };
        let id = AgentId::from(*id);
        if ids.contains(&id) {
            return Err(format!("{id} is named twice"));
        }
        ids.push(id);
    }
    Ok(Workers::Named(ids))
}

pub(crate) fn max_concurrent(text: &str) -> Result<usize, String> {
    text.trim()
        .parse::<usize>()
        .ok()
        .filter(|count| (1..=100).contains(count))
        .ok_or_else(|| format!("\"{text}\" is no number of turns: 1 to 100"))
}

pub(crate) fn repo_poll_ms(text: &str) -> Result<u64, String> {
    text.trim()
        .parse::<u64>()
        .ok()
        .filter(|ms| (REPO_POLL_LEAST_MS..=24 * 3_600_000).contains(ms))
        .ok_or_else(|| format!("\"{text}\" is no pause in milliseconds: {REPO_POLL_LEAST_MS} to 86400000"))
}

/// A time like `90s`, `45m` or `2h`, in ms; a minute to a week.
pub(crate) fn turn_timeout_ms(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let digits = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match trimmed.get(digits.len()..) {
        Some("s") => Some(1_000),
        Some("m") => Some(60_000),
        Some("h") => Some(3_600_000),
        _ => None,
    };
    unit.zip(digits.trim().parse::<u64>().ok())
        .and_then(|(unit, count)| count.checked_mul(unit))
        .filter(|ms| (60_000..=7 * 24 * 3_600_000).contains(ms))
        .ok_or_else(|| format!("\"{text}\" is no time like 90s, 45m or 2h (a minute to a week)"))
}

pub(crate) fn speed(text: &str) -> Result<f64, String> {
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|speed| (SPEED_LEAST..=SPEED_MOST).contains(speed))
        .ok_or_else(|| format!("\"{text}\" is no speed: {SPEED_LEAST} to {SPEED_MOST}"))
}

pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("\"{text}\" is no seed: a whole number from 0"))
}

/// Trimmed and cut to its length; one line.
pub(crate) fn user_name(text: &str) -> Result<String, String> {
    let line: Vec<&str> = text.split_whitespace().collect();
    let name: String = line.join(" ").chars().filter(|c| !c.is_control()).take(USER_NAME_CHARS).collect();
    let name = name.trim().to_owned();
    if name.is_empty() { Err("the name is empty".to_owned()) } else { Ok(name) }
}

/// A command line, for the shell.
pub(crate) fn shell_command(text: &str) -> Result<String, String> {
    let command = text.trim();
    if command.is_empty() {
        return Err("the command is empty; leave the setting out to have it detected".to_owned());
    }
    if command.contains('\0') {
        return Err("the command holds a NUL".to_owned());
    }
    Ok(command.to_owned())
}

/// Kinds of decisions, separated by commas.
pub(crate) fn auto_answer(text: &str) -> Result<AutoAnswerWish, String> {
    if text.trim() == "demo" {
        return Ok(AutoAnswerWish::Demo);
    }
    let kinds = [
        ("question", DecisionKind::Question),
        ("permission", DecisionKind::Permission),
        ("merge", DecisionKind::Merge),
    ];
    let named: Result<BTreeSet<DecisionKind>, String> = listed(text)?.iter().map(|kind| one_of(kind, &kinds)).collect();
    Ok(AutoAnswerWish::Kinds(named?))
}

/// Goal text as given; blank is none.
pub(crate) fn goal(text: &str) -> Result<String, String> {
    let goal = text.trim();
    let most = crate::protocol::limits::GOAL_TEXT_CHARS;
    if goal.is_empty() {
        return Err("the goal is empty".to_owned());
    }
    if goal.chars().count() > most {
        return Err(format!("the goal is too long: at most {most} characters"));
    }
    Ok(goal.to_owned())
}

/// Paths, separated by commas; a path that exists as a whole is one, whatever commas it holds.
pub(crate) fn paths(text: &str) -> Result<Vec<PathBuf>, String> {
    let whole = PathBuf::from(text);
    if text.contains(',') && whole.exists() {
        return Ok(vec![whole]);
    }
    listed(text).map(|parts| parts.into_iter().map(PathBuf::from).collect())
}

/// Yes or no. An empty text is no answer.
pub(crate) fn truth(text: &str) -> Result<bool, String> {
    match text.trim().to_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("\"{text}\" is neither yes nor no (1, true, yes, on; 0, false, no, off)")),
    }
}

/// Parts separated by commas. Some shells glue the next flag to a list; that is an error, not a name.
fn listed(text: &str) -> Result<Vec<String>, String> {
    let parts: Vec<String> = text.split(',').map(|part| part.trim().to_owned()).collect();
    if let Some(flag) = parts.iter().find(|part| part.starts_with('-')) {
        return Err(format!("\"{flag}\" looks like a flag inside a list; put a blank before it"));
    }
    if parts.iter().any(String::is_empty) {
        return Err(format!("\"{text}\" has an empty part"));
    }
    Ok(parts)
}
