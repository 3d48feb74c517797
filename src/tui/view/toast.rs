//! Short messages at the top right corner, newest lowest.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::model::Model;
use super::super::text;
use super::super::theme::Focused;
use super::paint::{blank, frame, line, put, row};
use crate::protocol::NotifyLevel;

/// Columns a toast may take.
const WIDTH: u16 = 52;

pub(super) fn draw(model: &Model, buf: &mut Buffer, body: Rect) {
    let t = &model.theme;
    let mut y = body.y;
    for toast in &model.toasts {
        let (sign, style) = match toast.level {
            NotifyLevel::Info => (model.glyphs.dot, t.info()),
            NotifyLevel::Warn => (model.glyphs.warn, t.warn()),
            NotifyLevel::NeedUser => (model.glyphs.state(crate::protocol::AgentState::WaitingUser), t.needs()),
        };
        let most = WIDTH.min(body.width.saturating_sub(4));
        let mut lines = text::wrap(&text::clean(&toast.text), usize::from(most.saturating_sub(6)));
        lines.truncate(3);
        let wide = lines.iter().map(|l| text::width(l)).max().unwrap_or(0) + 6;
        let width = u16::try_from(wide).unwrap_or(most).min(most);
        let height = u16::try_from(lines.len()).unwrap_or(1) + 2;
        if y + height > body.bottom() {
            return;
        }
        let area = Rect { x: body.right().saturating_sub(width + 1), y, width, height };
        blank(buf, area);
        let inner = frame(model, buf, area, Focused::No, &Line::default(), &Line::default());
        for (at, content) in lines.iter().enumerate() {
            let sign = if at == 0 { sign } else { " " };
            let mut spans = vec![Span::styled(format!(" {sign} "), style)];
            spans.extend(line(content, t.text()).spans);
            put(buf, row(inner, at), &Line::from(spans), model.glyphs.ellipsis);
        }
        y += height;
    }
}
