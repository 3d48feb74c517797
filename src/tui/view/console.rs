//! The console bar and the line of hints below it.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tui_textarea::TextArea;

use super::super::focus::{Pane, Place};
use super::super::keys;
use super::super::model::{Echo, Model, content};
use super::super::text;
use super::super::theme::Focused;
use super::super::update;
use super::paint::{columns, focus_of, line, put, put_right, row, span};

pub(super) fn draw(model: &Model, buf: &mut Buffer, area: Rect) -> Option<Position> {
    let t = &model.theme;
    let g = &model.glyphs;
    let focused = focus_of(model, Pane::Console);
    buf.set_style(area.intersection(buf.area), t.strip());
    let prompt = if focused == Focused::Yes { t.key() } else { t.muted() };
    put(buf, Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..row(area, 0) }, &line(g.pointer, prompt), g.ellipsis);
    let inner = Rect { x: area.x + 3.min(area.width), width: area.width.saturating_sub(4), ..area };
    let written = content(&model.console.text);

    let said = says(model, &written, focused);
    let mut first = row(inner, 0);
    if let Some(said) = said {
        // What is typed comes first: the words at the right take at most half, and less when the text is long.
        let typed = text::width(model.console.text.lines().first().map_or("", String::as_str)) + 6;
        let room = usize::from(first.width).saturating_sub(typed).max(usize::from(first.width) / 3);
        let wide = columns(&said).min(room);
        let place = Rect {
            x: first.right() - u16::try_from(wide).unwrap_or(0),
            width: u16::try_from(wide).unwrap_or(0),
            ..first
        };
        put(buf, place, &said, g.ellipsis);
        first.width = first.width.saturating_sub(place.width + 2);
    }
    if written.is_empty() && focused == Focused::No {
        put(buf, first, &line("press : to give a goal, @name to write to someone, / for commands", t.faint()), g.ellipsis);
        return None;
    }
    if written.is_empty() {
        let words = if model.goal().is_some() { "a goal, @name and a message, or a / command" } else { "what should the team do?" };
        put(buf, Rect { x: first.x + 1, width: first.width.saturating_sub(1), ..first }, &line(words, t.faint()), g.ellipsis);
    }
    // The words at the right stand on the first row only.
    let text_area = if inner.height > 1 { inner } else { first };
    let style = if focused == Focused::Yes { t.text() } else { t.muted() };
    let cursor = field_rows(model, buf, &model.console.text, text_area, style)?;
    if focused == Focused::No {
        return None;
    }
    if let Some(ghost) = update::ghost(model) {
        let place = Rect { x: cursor.x, y: cursor.y, width: text_area.right().saturating_sub(cursor.x), height: 1 };
        put(buf, place, &line(&ghost, t.faint()), g.ellipsis);
    }
    Some(cursor)
}

/// The right end: the answer to the last line, or what Enter will do with this one.
fn says(model: &Model, written: &str, focused: Focused) -> Option<Line<'static>> {
    let t = &model.theme;
    let g = &model.glyphs;
    match &model.console.echo {
        Echo::Sending(_) => return Some(Line::from(Span::styled(format!("sending{}", g.ellipsis), t.info()))),
        Echo::Done(what) => {
            return Some(Line::from(vec![Span::styled(format!("{} ", g.ok), t.ok()), span(what, t.ok())]));
        }
        Echo::Refused(why) => {
            return Some(Line::from(vec![Span::styled(format!("{} ", g.fail), t.error()), span(why, t.error())]));
        }
        Echo::None => {}
    }
    if focused == Focused::No || written.trim().is_empty() {
        return None;
    }
    let (words, sends) = update::preview(model, written)?;
    let style = if sends { t.muted() } else { t.warn() };
    let sign = if sends { "Enter " } else { "" };
    Some(Line::from(vec![Span::styled(sign, t.key()), span(&words, style)]))
}

/// Draws a text field, scrolled so that the cursor is in view; the answer is the cursor's place.
pub(super) fn field_rows(
    model: &Model, buf: &mut Buffer, area: &TextArea<'_>, place: Rect, style: Style,
) -> Option<Position> {
    if place.is_empty() {
        return None;
    }
    let cursor = area.cursor();
    let (cursor_row, cursor_column) = (cursor.0, cursor.1);
    let room = usize::from(place.height);
    let first = (cursor_row + 1).saturating_sub(room);
    let mut at = None;
    for (shown, (number, content)) in area.lines().iter().enumerate().skip(first).take(room).enumerate() {
        let before: String = content.chars().take(if number == cursor_row { cursor_column } else { 0 }).collect();
        let before = text::width(&text::clean(&before));
        let width = usize::from(place.width);
        let shift = (before + 1).saturating_sub(width);
        let clean = text::clean(content);
        let (hidden, taken) = text::take(&clean, shift);
        let rest = clean.get(hidden.len()..).unwrap_or("");
        let spot = row(place, shown);
        put(buf, spot, &line(rest, style), model.glyphs.ellipsis);
        if number == cursor_row {
            let x = u16::try_from(before.saturating_sub(taken)).unwrap_or(0);
            at = Some(Position { x: (spot.x + x).min(place.right().saturating_sub(1)), y: spot.y });
        }
    }
    at
}

/// The line of keys at the bottom: those of the place, from the key map.
pub(super) fn hints(model: &Model, buf: &mut Buffer, area: Rect) {
    let t = &model.theme;
    let area = Rect { x: area.x + 1.min(area.width), width: area.width.saturating_sub(2), ..area };
    let place = model.place();
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut used = 0;
    for (key, word) in keys::hints(place) {
        if place == Place::Podium && model.podium.shown.is_none() && key != ":" && key != "?" {
            continue;
        }
        let wide = text::width(key) + text::width(word) + 3;
        if used + wide > usize::from(area.width) {
            break;
        }
        used += wide;
        spans.push(Span::styled(key, t.accent()));
        spans.push(Span::styled(format!(" {word}  "), t.faint()));
    }
    put_right(buf, Rect { width: 0, ..area }, &Line::default(), "");
    put(buf, area, &Line::from(spans), model.glyphs.ellipsis);
}
