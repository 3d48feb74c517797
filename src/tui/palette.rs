//! What the palette offers, found by a fuzzy match: every action with its key, every agent, task, decision and note.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::focus::Place;
use super::keys::{Action, KEYMAP};
use super::model::{Model, content};
use crate::protocol::{AgentId, DecisionId, MemoryId, TaskId};

/// One line of the palette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub label: String,
    /// The kind of thing, or the key that does the same.
    pub hint: String,
    pub does: Does,
}

/// What a line does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    Act(Action),
    Task(TaskId),
    Agent(AgentId),
    Decision(DecisionId),
    Note(MemoryId),
}

/// The lines that match what is typed, best first; all of them while nothing is typed.
pub fn entries(model: &Model) -> Vec<Entry> {
    let query = match model.overlays.last() {
        Some(super::model::Overlay::Palette(palette)) => content(&palette.query),
        _ => String::new(),
    };
    let all = all(model);
    if query.trim().is_empty() {
        return all;
    }
    let pattern = Pattern::parse(&query, CaseMatching::Smart, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, Entry)> = all
        .into_iter()
        .filter_map(|entry| {
            let score = pattern.score(Utf32Str::new(&entry.label, &mut buffer), &mut matcher)?;
            Some((score, entry))
        })
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().map(|(_, entry)| entry).collect()
}

fn all(model: &Model) -> Vec<Entry> {
    let decisions = model.open_decisions().into_iter().map(|d| Entry {
        label: format!("{} {}", d.id, d.question),
        hint: "decision".to_owned(),
        does: Does::Decision(d.id.clone()),
    });
    let actions = KEYMAP
        .iter()
        .filter(|b| matches!(b.place, Place::Everywhere | Place::Always))
        .filter(|b| is_command(b.action))
        .map(|b| Entry {
            label: b.what.to_owned(),
            hint: b.keys.first().copied().unwrap_or_default().to_owned(),
            does: Does::Act(b.action),
        });
    let agents = model.agents().map(|a| Entry {
        label: format!("{} {}", a.name, a.activity),
        hint: "agent".to_owned(),
        does: Does::Agent(a.id.clone()),
    });
    let tasks = model.tasks().map(|t| Entry {
        label: format!("{} {}", t.id, t.title),
        hint: t.status.as_str().to_owned(),
        does: Does::Task(t.id.clone()),
    });
    let notes = model.notes().into_iter().map(|n| Entry {
        label: format!("{} {}", n.title, n.id),
        hint: "note".to_owned(),
        does: Does::Note(n.id.clone()),
    });
    let mut list: Vec<Entry> = Vec::new();
    list.extend(decisions);
    for entry in actions {
        if !list.iter().any(|e| e.does == entry.does) {
            list.push(entry);
        }
    }
    list.extend(agents);
    list.extend(tasks);
    list.extend(notes);
    list
}

/// Whether an action makes sense by name; moving about does not.
const fn is_command(action: Action) -> bool {
    matches!(
        action,
        Action::Quit
            | Action::Suspend
            | Action::Redraw
            | Action::Help
            | Action::Focus(_)
            | Action::Zoom
            | Action::Library
            | Action::Repos
            | Action::Status
            | Action::Theme
            | Action::PauseAll
    )
}
