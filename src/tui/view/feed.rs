//! The activity feed, newest at the bottom.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::focus::Pane;
use super::super::model::Model;
use super::super::text;
use super::paint::{focus_of, line, pane, put, row, span};
use crate::protocol::{FeedItem, FeedKind};

pub(super) fn draw(model: &Model, buf: &mut Buffer, area: Rect) {
    let t = &model.theme;
    let remark = match model.feed.selected {
        Some(n) if n > 0 => line(&format!("{n} newer {}", model.glyphs.down), t.warn()),
        _ => Line::default(),
    };
    let inner = pane(model, buf, area, Pane::Feed, &remark);
    let room = usize::from(inner.height);
    let width = usize::from(inner.width);
    let most = if model.zoom == Some(Pane::Feed) { usize::MAX } else { 2 };
    let focused = focus_of(model, Pane::Feed);
    let mut rows: Vec<(Line<'static>, Style)> = Vec::new();
    let chosen = model.feed.selected;
    // The chosen line is kept in view by letting newer ones go below the edge.
    let skip = chosen.map_or(0, |n| n.saturating_sub(room.saturating_sub(most.min(2)) / 2));
    for (nth, item) in model.feed_items().rev().enumerate().skip(skip) {
        let ground = if chosen == Some(nth) { t.selected(focused) } else { Style::new() };
        let mut lines = item_rows(model, item, width, most);
        // A line that does not fit whole is left out: half of it, without its time and sign, says nothing.
        if !rows.is_empty() && rows.len() + lines.len() > room {
            break;
        }
        lines.reverse();
        rows.extend(lines.into_iter().map(|l| (l, ground)));
    }
    if rows.is_empty() {
        put(buf, row(inner, 0), &line(" Nothing has happened yet.", t.muted()), model.glyphs.ellipsis);
        return;
    }
    rows.truncate(room);
    for (at, (content, ground)) in rows.into_iter().rev().enumerate() {
        super::paint::put_on(buf, row(inner, at), &content, ground, model.glyphs.ellipsis);
    }
}

fn kind_style(model: &Model, kind: FeedKind) -> Style {
    let t = &model.theme;
    match kind {
        FeedKind::Goal | FeedKind::Plan => t.accent(),
        FeedKind::Decision => t.needs(),
        FeedKind::Merge => t.ok(),
        FeedKind::Error => t.error(),
        FeedKind::Ci | FeedKind::Message | FeedKind::Memory => t.info(),
        FeedKind::Task | FeedKind::System | FeedKind::User => t.muted(),
    }
}

/// The rows of a line of the feed, at most `most` of them.
pub(super) fn item_rows(model: &Model, item: &FeedItem, width: usize, most: usize) -> Vec<Line<'static>> {
    let t = &model.theme;
    let content = text::clean(&item.text);
    let agent = item.agent_id.as_ref().and_then(|id| model.agent(id));
    let mut head = vec![
        Span::styled(model.clock(item.ts), t.faint()),
        Span::styled(format!(" {} ", model.glyphs.feed(item.kind)), kind_style(model, item.kind)),
    ];
    let mut said = content.as_ref();
    let mut name_columns = 0;
    if let Some(agent) = agent {
        // Many lines begin with the name; it is then coloured in place rather than said twice.
        let name = text::clean(&agent.name).into_owned();
        said = said.strip_prefix(name.as_str()).map_or(said, str::trim_start);
        name_columns = text::width(&name) + 1;
        head.push(span(&name, t.agent(&agent.color)));
        head.push(Span::raw(if said.starts_with([':', ',', '\'']) { "" } else { " " }));
        if said.starts_with([':', ',', '\'']) {
            name_columns -= 1;
        }
    }
    let indent = 8;
    let body_style = match item.kind {
        FeedKind::Error => t.error(),
        FeedKind::System | FeedKind::Memory => t.muted(),
        _ => t.text(),
    };
    // The name stands on the first row, so that row has less room: wrap with a place-holder in front.
    let held = format!("{}{said}", "\u{a0}".repeat(name_columns));
    let mut wrapped = text::wrap(&held, width.saturating_sub(indent).max(8));
    let cut = wrapped.len() > most;
    wrapped.truncate(most);
    if cut && let Some(last) = wrapped.last_mut() {
        last.push_str(model.glyphs.ellipsis);
    }
    wrapped
        .into_iter()
        .enumerate()
        .map(|(at, part)| {
            if at == 0 {
                let mut spans = head.clone();
                spans.push(Span::styled(part.trim_start_matches('\u{a0}').to_owned(), body_style));
                Line::from(spans)
            } else {
                Line::from(vec![Span::raw(" ".repeat(indent)), Span::styled(part, body_style)])
            }
        })
        .collect()
}
