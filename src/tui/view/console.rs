//! The console bar and the line of hints below it.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tui_textarea::TextArea;

use super::super::field;
use super::super::focus::{Pane, Place};
use super::super::keys;
use super::super::layout::{PROMPT, split_bottom};
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
    put(
        buf,
        Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..row(area, 0) },
        &line(g.pointer, prompt),
        g.ellipsis,
    );
    let inner = Rect { x: area.x + PROMPT.min(area.width), width: area.width.saturating_sub(PROMPT + 1), ..area };
    let written = content(&model.console.text);

    // One row: the words stand at its right end. More rows: the words have the lowest.
    let (mut text_area, foot) = if inner.height > 1 { split_bottom(inner, 1) } else { (inner, inner) };
    if let Some(said) = says(model, &written, focused) {
        let most = if inner.height > 1 {
            usize::from(foot.width)
        } else {
            let typed = text::width(&text::clean(&written)) + 4;
            usize::from(foot.width).saturating_sub(typed).max(usize::from(foot.width) / 3)
        };
        let wide = u16::try_from(columns(&said).min(most)).unwrap_or(foot.width);
        let place = Rect { x: foot.right() - wide, width: wide, ..foot };
        put(buf, place, &said, g.ellipsis);
        if inner.height == 1 {
            text_area.width = text_area.width.saturating_sub(wide + 2);
        }
    }
    let first = row(text_area, 0);
    if written.is_empty() && focused == Focused::No {
        put(
            buf,
            first,
            &line("press : to give a goal, @name to write to someone, / for commands", t.faint()),
            g.ellipsis,
        );
        return None;
    }
    if written.is_empty() {
        let words = if model.goal().is_some() {
            "a goal, @name and a message, or a / command"
        } else {
            "what should the team do?"
        };
        put(
            buf,
            Rect { x: first.x + 1, width: first.width.saturating_sub(1), ..first },
            &line(words, t.faint()),
            g.ellipsis,
        );
    }
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
    model: &Model,
    buf: &mut Buffer,
    area: &TextArea<'_>,
    place: Rect,
    style: Style,
) -> Option<Position> {
    if place.is_empty() {
        return None;
    }
    let laid = field::rows(area, usize::from(place.width));
    let room = usize::from(place.height);
    let first = (laid.cursor.0 + 1).saturating_sub(room);
    for (at, content) in laid.rows.iter().skip(first).take(room).enumerate() {
        put(buf, row(place, at), &line(content, style), model.glyphs.ellipsis);
    }
    let at = row(place, laid.cursor.0 - first);
    let x = u16::try_from(laid.cursor.1).unwrap_or(0);
    Some(Position { x: (at.x + x).min(place.right().saturating_sub(1)), y: at.y })
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
