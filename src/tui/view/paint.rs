//! The brushes: rows of styled text that are cleaned and cut to their place, boxes, lists that scroll.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::focus::Pane;
use super::super::layout::inside;
use super::super::model::Model;
use super::super::text;
use super::super::theme::Focused;

/// Foreign text as a span: cleaned.
pub(super) fn span(content: &str, style: Style) -> Span<'static> {
    Span::styled(text::clean(content).into_owned(), style)
}

/// Columns of a line.
pub(super) fn columns(line: &Line<'_>) -> usize {
    line.spans.iter().map(|s| text::width(&s.content)).sum()
}

/// `count` rows further down, one row high; empty when that is outside.
pub(super) fn row(area: Rect, count: usize) -> Rect {
    let down = u16::try_from(count).unwrap_or(u16::MAX);
    if down >= area.height {
        return Rect { height: 0, ..area };
    }
    Rect { y: area.y + down, height: 1, ..area }
}

/// Draws a line into the first row of `area`, cut with an ellipsis; the answer is the columns used.
pub(super) fn put(buf: &mut Buffer, area: Rect, line: &Line<'_>, ellipsis: &str) -> u16 {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return 0;
    }
    let room = usize::from(area.width);
    let cut = columns(line) > room;
    let limit = if cut { room.saturating_sub(text::width(ellipsis)) } else { room };
    let mut x = area.x;
    let mut used = 0;
    let mut last = Style::new();
    for span in &line.spans {
        let (kept, wide) = text::take(&span.content, limit - used);
        last = line.style.patch(span.style);
        buf.set_stringn(x, area.y, kept, wide, last);
        used += wide;
        x = area.x + u16::try_from(used).unwrap_or(area.width).min(area.width);
        if kept.len() < span.content.len() {
            break;
        }
    }
    if cut {
        buf.set_stringn(x, area.y, ellipsis, room - used, last);
        used += text::width(ellipsis);
    }
    u16::try_from(used).unwrap_or(area.width)
}

/// Draws a line at the right end of the first row of `area`; the answer is what is left of the row on its left.
pub(super) fn put_right(buf: &mut Buffer, area: Rect, line: &Line<'_>, ellipsis: &str) -> Rect {
    let wide = u16::try_from(columns(line)).unwrap_or(area.width).min(area.width);
    let at = Rect { x: area.right() - wide, width: wide, ..area };
    put(buf, at, line, ellipsis);
    Rect { width: area.width - wide, ..area }
}

/// Draws lines from the top of `area` and says how many rows it took.
pub(super) fn put_all(buf: &mut Buffer, area: Rect, lines: &[Line<'_>], ellipsis: &str) -> usize {
    for (at, line) in lines.iter().enumerate().take(usize::from(area.height)) {
        put(buf, row(area, at), line, ellipsis);
    }
    lines.len().min(usize::from(area.height))
}

/// Empties an area for something that lies over the panes.
pub(super) fn blank(buf: &mut Buffer, area: Rect) {
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            if let Some(cell) = buf.cell_mut((x, y)) {
                cell.reset();
            }
        }
    }
}

/// A box with a title at its left and a remark at its right; the answer is its inside.
pub(super) fn frame(
    model: &Model,
    buf: &mut Buffer,
    area: Rect,
    focused: Focused,
    title: &Line<'_>,
    remark: &Line<'_>,
) -> Rect {
    let area = area.intersection(buf.area);
    if area.width < 2 || area.height < 2 {
        return Rect { width: 0, height: 0, ..area };
    }
    let g = &model.glyphs;
    let style = model.theme.edge(focused);
    let [top_left, top_right, bottom_left, bottom_right] = g.corners;
    let line = g.horizontal.repeat(usize::from(area.width - 2));
    let (top, bottom) = (area.y, area.bottom() - 1);
    buf.set_string(area.x, top, format!("{top_left}{line}{top_right}"), style);
    buf.set_string(area.x, bottom, format!("{bottom_left}{line}{bottom_right}"), style);
    for y in top + 1..bottom {
        buf.set_string(area.x, y, g.vertical, style);
        buf.set_string(area.right() - 1, y, g.vertical, style);
    }
    let edge = Rect { x: area.x + 2, y: top, width: area.width.saturating_sub(4), height: 1 };
    let padded = |line: &Line<'_>| {
        let mut spans = vec![Span::raw(" ")];
        spans.extend(line.spans.iter().map(|s| Span::styled(s.content.clone().into_owned(), s.style)));
        spans.push(Span::raw(" "));
        Line::from(spans)
    };
    let mut rest = edge;
    if !remark.spans.is_empty() && columns(remark) + columns(title) + 6 < usize::from(edge.width) {
        rest = put_right(buf, edge, &padded(remark), g.ellipsis);
    }
    if !title.spans.is_empty() {
        put(buf, rest, &padded(title), g.ellipsis);
    }
    inside(area)
}

/// The box of a pane, its title styled by focus.
pub(super) fn pane(model: &Model, buf: &mut Buffer, area: Rect, pane: Pane, remark: &Line<'_>) -> Rect {
    let focused = focus_of(model, pane);
    let title = Line::from(Span::styled(pane.title(), model.theme.title(focused)));
    frame(model, buf, area, focused, &title, remark)
}

/// Whether a pane has the keys.
pub(super) fn focus_of(model: &Model, pane: Pane) -> Focused {
    Focused::when(model.focus == pane && model.overlays.is_empty())
}

/// A box over the panes, emptied first, one blank column of air left and right.
pub(super) fn over(model: &Model, buf: &mut Buffer, area: Rect, title: &Line<'_>, remark: &Line<'_>) -> Rect {
    blank(buf, area);
    let inner = frame(model, buf, area, Focused::Yes, title, remark);
    Rect { x: inner.x + 1.min(inner.width), width: inner.width.saturating_sub(2), ..inner }
}

/// Lines from `top` on, and how far down one is at the right edge.
pub(super) fn scrolled(model: &Model, buf: &mut Buffer, area: Rect, lines: &[Line<'_>], top: usize) {
    let room = usize::from(area.height);
    let top = top.min(lines.len().saturating_sub(room));
    for (at, line) in lines.iter().skip(top).take(room).enumerate() {
        put(buf, row(area, at), line, model.glyphs.ellipsis);
    }
    thumb(model, buf, area, lines.len(), top);
}

/// The thumb of a scrolled area, on the box's right edge one column beyond the air.
pub(super) fn thumb(model: &Model, buf: &mut Buffer, area: Rect, total: usize, top: usize) {
    let room = usize::from(area.height);
    if total <= room || room == 0 {
        return;
    }
    let length = (room * room / total).clamp(1, room);
    let start = (top * (room - length)).checked_div(total - room).unwrap_or(0);
    let x = area.right() + 1;
    for at in start..(start + length).min(room) {
        let y = area.y + u16::try_from(at).unwrap_or(0);
        if buf.area.contains((x, y).into()) {
            buf.set_string(x, y, model.glyphs.thumb, model.theme.accent());
        }
    }
}

/// Styles a whole row's ground, then draws the line on it.
pub(super) fn put_on(buf: &mut Buffer, area: Rect, line: &Line<'_>, ground: Style, ellipsis: &str) {
    let area = Rect { height: area.height.min(1), ..area }.intersection(buf.area);
    buf.set_style(area, ground);
    put(buf, area, line, ellipsis);
}

/// A line of text in one style.
pub(super) fn line(content: &str, style: Style) -> Line<'static> {
    Line::from(span(content, style))
}
