//! The team's notes: who sees which, and writing them. They live in files; the state mirrors the folder.

use std::collections::BTreeMap;

use super::change::Change;
use super::effect::{Effect, EffectResult, WriteMemory};
use super::roster::lead;
use super::state::Request;
use super::text::{one_line, slugify, truncate};
use super::{EffectId, Step};
use crate::protocol::{AgentId, FeedKind, GoalId, MemoryEntry, MemoryId, text};
use crate::turn::{MemoryMode, MemoryScope, RequestId, ToolAnswer, TurnCommand, TurnId};

/// Longest slug, characters.
const SLUG_CHARS: usize = 48;
/// Longest title, characters.
const TITLE_CHARS: usize = 200;
/// Longest body, characters.
const BODY_CHARS: usize = 100_000;
/// Text of one note in a tool's answer, characters.
const SHOWN_CHARS: usize = 3000;
/// Up to so many hits are shown whole.
const SHOWN_WHOLE: usize = 3;

impl Step<'_> {
    /// The folder was read, at start or after a change by hand.
    pub(crate) fn on_memory_read(&mut self, entries: Vec<MemoryEntry>) {
        let found: BTreeMap<MemoryId, MemoryEntry> =
            entries.into_iter().map(|entry| (entry.id.clone(), entry)).collect();
        let gone: Vec<MemoryId> = self.state.memory.keys().filter(|id| !found.contains_key(*id)).cloned().collect();
        for id in gone {
            self.put(Change::MemoryGone(id));
        }
        for (id, entry) in found {
            if self.state.memory.get(&id) != Some(&entry) {
                self.put(Change::Memory(entry));
            }
        }
    }

    /// Notes an agent sees: shared ones and its own.
    fn visible(&self, agent: &AgentId) -> Vec<&MemoryEntry> {
        let mut notes: Vec<&MemoryEntry> =
            self.state.memory.values().filter(|note| note.scope == "shared" || note.scope == agent.as_str()).collect();
        notes.sort_by_key(|note| note.updated);
        notes
    }

    /// The `read_memory` tool.
    pub(crate) fn read_memory(&self, agent: &AgentId, id: Option<&str>, query: Option<&str>) -> Result<String, String> {
        let notes = self.visible(agent);
        let whole =
            |note: &MemoryEntry| format!("# {} ({})\n{}", note.title, note.id, truncate(&note.body, SHOWN_CHARS));
        let list = |notes: &[&MemoryEntry]| {
            let lines: Vec<String> = notes.iter().map(|note| format!("- {}: {}", note.id, note.title)).collect();
            if lines.is_empty() { "(no notes)".to_owned() } else { lines.join("\n") }
        };
        if let Some(id) = id.map(str::trim).filter(|id| !id.is_empty()) {
            let names = [id.to_owned(), format!("shared/{id}"), format!("{agent}/{id}")];
            return notes
                .iter()
                .find(|note| names.iter().any(|name| name == note.id.as_str()))
                .map(|note| whole(note))
                .ok_or_else(|| format!("no note \"{id}\"; there are:\n{}", list(&notes)));
        }
        let Some(query) = query.map(|query| query.trim().to_lowercase()).filter(|query| !query.is_empty()) else {
            return Ok(list(&notes));
        };
        let hits: Vec<&MemoryEntry> = notes
            .into_iter()
            .filter(|note| note.title.to_lowercase().contains(&query) || note.body.to_lowercase().contains(&query))
            .collect();
        if (1..=SHOWN_WHOLE).contains(&hits.len()) {
            return Ok(hits.iter().map(|note| whole(note)).collect::<Vec<_>>().join("\n\n"));
        }
        Ok(list(&hits))
    }

    /// The `write_memory` tool: the answer comes when the file is written.
    pub(crate) fn write_memory(
        &mut self,
        turn: TurnId,
        request: &RequestId,
        agent: &AgentId,
        note: NewNote,
        goal: Option<&GoalId>,
    ) -> Result<(), String> {
        let title = truncate(&one_line(&text::clean(&note.title)), TITLE_CHARS);
        if title.is_empty() {
            return Err("a note needs a title".to_owned());
        }
        if note.body.chars().count() > BODY_CHARS {
            return Err(format!("the note is longer than {BODY_CHARS} characters: split it"));
        }
        let scope = match note.scope {
            MemoryScope::Shared => "shared".to_owned(),
            MemoryScope::Private => agent.to_string(),
        };
        let is_plan = title.to_lowercase().starts_with("plan") && *agent == lead();
        let mut slug = slugify(&title, SLUG_CHARS);
        // Each goal has a plan of its own: a second one of the same title must not take its place.
        if is_plan
            && let Some(goal) = goal
            && self.state.goal_work.iter().any(|(other, work)| {
                other != goal && work.plan.as_ref().is_some_and(|id| id.as_str() == format!("{scope}/{slug}"))
            })
        {
            slug = slugify(&format!("{goal} {slug}"), SLUG_CHARS);
        }
        let id = MemoryId(format!("{scope}/{slug}"));
        if is_plan && let Some(goal) = goal {
            let id = id.clone();
            self.edit_goal_work(goal, |work| work.plan = Some(id));
        }
        let effect = self.want(Effect::WriteMemory(Box::new(WriteMemory {
            scope,
            slug,
            title,
            body: text::clean(&note.body.replace("\r\n", "\n")).into_owned(),
            mode: note.mode,
            author: agent.to_string(),
            now: self.now,
            seen: self.state.memory.get(&id).cloned(),
            waiter: Some((turn, request.clone())),
        })));
        self.edit_running(turn, |running| {
            running.open.insert(request.clone(), Request::Effect(effect));
        });
        Ok(())
    }

    /// A note was written, or not.
    pub(crate) fn on_memory_written(&mut self, _effect: EffectId, order: &WriteMemory, result: EffectResult) {
        let answer = match result {
            EffectResult::MemoryWritten(Ok(entry)) => {
                let line = format!("{} wrote the note \"{}\"", self.display_name(&order.author), entry.title);
                let id = entry.id.clone();
                if self.state.memory.get(&id) != Some(&entry) {
                    self.put(Change::Memory(entry));
                }
                self.feed(FeedKind::Memory, Some(&order.author), &line);
                ToolAnswer { ok: true, text: format!("written: {id}") }
            }
            EffectResult::MemoryWritten(Err(reason)) | EffectResult::Crashed(reason) => {
                ToolAnswer { ok: false, text: format!("Error: the note was not written: {reason}") }
            }
            _ => return,
        };
        if let Some((turn, request)) = &order.waiter
            && self.take_request(*turn, request).is_some()
        {
            self.tell_turn(*turn, TurnCommand::Answer { request: request.clone(), answer });
        }
    }
}

/// Input of the `write_memory` tool.
pub(crate) struct NewNote {
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) scope: MemoryScope,
    pub(crate) mode: MemoryMode,
}
