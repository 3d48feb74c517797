//! The memory library: the list of notes, and the note itself as markdown.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::super::layout::{list_start, split_left};
use super::super::markdown;
use super::super::model::{Library, Model};
use super::super::theme::Focused;
use super::paint::{line, over, put, put_all, put_right, row, scrolled, span};
use crate::protocol::MemoryEntry;

/// A screen from this width on shows list and note side by side.
const WIDE: u16 = 96;

pub(super) fn draw(model: &Model, library: &Library, buf: &mut Buffer, body: Rect) -> Option<Position> {
    let t = &model.theme;
    let notes = model.notes();
    let title = line("Memory", t.title(Focused::Yes));
    let remark = line(&format!("{} notes", notes.len()), t.muted());
    let inner = over(model, buf, body, &title, &remark);
    if notes.is_empty() {
        let words = "The team has written nothing down yet. Notes are markdown files; you can edit them by hand too.";
        let lines: Vec<_> =
            super::super::text::wrap(words, usize::from(inner.width)).iter().map(|l| line(l, t.muted())).collect();
        put_all(buf, inner, &lines, model.glyphs.ellipsis);
        return None;
    }
    let (list, note) = halves(inner, library);
    if let Some(list) = list {
        draw_list(model, library, buf, list, &notes);
    }
    if let Some(area) = note {
        let read = library.reading.as_ref().and_then(|id| notes.iter().find(|n| n.id == *id));
        let shown = read.or_else(|| notes.get(library.selected));
        if let Some(entry) = shown {
            let scroll = if library.reading.is_some() { library.scroll } else { 0 };
            scrolled(model, buf, area, &note_lines(model, entry, usize::from(area.width)), scroll);
        }
    }
    None
}

/// List and note: side by side where there is room, else one at a time.
fn halves(inner: Rect, library: &Library) -> (Option<Rect>, Option<Rect>) {
    if inner.width >= WIDE {
        let (list, rest) = split_left(inner, 34);
        let (_, note) = split_left(rest, 2);
        return (Some(list), Some(note));
    }
    if library.reading.is_some() { (None, Some(inner)) } else { (Some(inner), None) }
}

fn draw_list(model: &Model, library: &Library, buf: &mut Buffer, list: Rect, notes: &[&MemoryEntry]) {
    let t = &model.theme;
    let room = usize::from(list.height);
    let start = list_start(notes.len(), room, Some(library.selected));
    for (at, note) in notes.iter().enumerate().skip(start).take(room) {
        let place = row(list, at - start);
        if at == library.selected {
            buf.set_style(place, t.selected(Focused::when(library.reading.is_none())));
        }
        let scope = model.name_of(&note.scope);
        let colour = model.agents().find(|a| a.id.as_str() == note.scope).map_or(t.accent(), |a| t.agent(&a.color));
        let rest =
            put_right(buf, place, &line(&format!(" {}", model.clock(note.updated)), t.faint()), model.glyphs.ellipsis);
        let content = Line::from(vec![span(&format!("{scope:<8} "), colour), span(&note.title, t.text())]);
        put(buf, rest, &content, model.glyphs.ellipsis);
    }
}

fn note_lines(model: &Model, note: &MemoryEntry, width: usize) -> Vec<Line<'static>> {
    let t = &model.theme;
    let author = note.author.as_deref().map_or_else(String::new, |a| format!(", by {}", model.name_of(a)));
    let mut lines = vec![
        line(&note.title, t.strong()),
        Line::from(vec![
            Span::styled(format!("{}  ", note.id), t.muted()),
            span(&format!("{}{author}", model.clock(note.updated)), t.faint()),
        ]),
        Line::default(),
    ];
    lines.extend(markdown::render(&note.body, width, &model.theme, &model.glyphs));
    lines
}

pub(super) fn limit(model: &Model, library: &Library, body: Rect) -> usize {
    let inner = Rect { width: body.width.saturating_sub(4), height: body.height.saturating_sub(2), ..body };
    let (_, Some(area)) = halves(inner, library) else { return 0 };
    let notes = model.notes();
    let shown = library
        .reading
        .as_ref()
        .and_then(|id| notes.iter().find(|n| n.id == *id))
        .or_else(|| notes.get(library.selected));
    shown
        .map_or(0, |note| note_lines(model, note, usize::from(area.width)).len())
        .saturating_sub(usize::from(area.height))
}
