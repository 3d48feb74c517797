//! The palette, the pickers, and the question before leaving.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::super::layout::{floating, list_start, split_top};
use super::super::model::{Model, PaletteUi, Picker, PickerPurpose, content};
use super::super::palette::entries;
use super::super::theme::Focused;
use super::super::update;
use super::console::field_rows;
use super::paint::{line, over, put, put_on, put_right, row, span};

pub(super) fn draw(model: &Model, ui: &PaletteUi, buf: &mut Buffer, body: Rect) -> Option<Position> {
    let t = &model.theme;
    let g = &model.glyphs;
    let area = floating(body, 76, body.height.min(24));
    let entries = entries(model);
    let remark = line(&format!("{}", entries.len()), t.muted());
    let inner = over(model, buf, area, &line("Palette", t.title(Focused::Yes)), &remark);
    let (query, list) = split_top(inner, 1);
    buf.set_style(query, t.strip());
    put(buf, query, &line(g.pointer, t.accent()), g.ellipsis);
    let field = Rect { x: query.x + 2.min(query.width), width: query.width.saturating_sub(2), ..query };
    if content(&ui.query).is_empty() && field.width > 1 {
        put(
            buf,
            Rect { x: field.x + 1, width: field.width - 1, ..field },
            &line("an action, agent, task, decision or note", t.faint()),
            g.ellipsis,
        );
    }
    let cursor = field_rows(model, buf, &ui.query, field, t.text());
    let room = usize::from(list.height);
    let start = list_start(entries.len(), room, Some(ui.selected));
    if entries.is_empty() {
        put(buf, row(list, 0), &line("nothing matches", t.muted()), g.ellipsis);
    }
    for (at, entry) in entries.iter().enumerate().skip(start).take(room) {
        let place = row(list, at - start);
        let ground = if at == ui.selected { t.selected(Focused::Yes) } else { t.text() };
        buf.set_style(place, ground);
        let rest = put_right(buf, place, &line(&entry.hint, t.muted()), g.ellipsis);
        put(buf, Rect { width: rest.width.saturating_sub(2), ..rest }, &line(&entry.label, t.text()), g.ellipsis);
    }
    cursor
}

pub(super) fn picker(model: &Model, picker: &Picker, buf: &mut Buffer, body: Rect) -> Option<Position> {
    let t = &model.theme;
    let g = &model.glyphs;
    let choices = update::choices(model, &picker.purpose);
    let title = match &picker.purpose {
        PickerPurpose::Reassign(task) => format!("Give {task} to"),
        PickerPurpose::SpawnFor(agent) => format!("Bring {} in for", model.name_of(agent.as_str())),
    };
    let rows = u16::try_from(choices.len().max(1)).unwrap_or(10).min(14) + 2;
    let area = floating(body, 60, rows);
    let inner = over(model, buf, area, &line(&title, t.title(Focused::Yes)), &Line::default());
    let room = usize::from(inner.height);
    let start = list_start(choices.len(), room, Some(picker.selected));
    for (at, (_, label)) in choices.iter().enumerate().skip(start).take(room) {
        let ground = if at == picker.selected { t.selected(Focused::Yes) } else { t.text() };
        let sign = if at == picker.selected { g.pointer } else { " " };
        let content = Line::from(vec![Span::styled(format!("{sign} "), t.accent()), span(label, t.text())]);
        put_on(buf, row(inner, at - start), &content, ground, g.ellipsis);
    }
    None
}

pub(super) fn leaving(model: &Model, buf: &mut Buffer, body: Rect) -> Option<Position> {
    let t = &model.theme;
    let area = floating(body, 58, 7);
    let inner = over(model, buf, area, &line("Leave?", t.title(Focused::Yes)), &Line::default());
    let working = match model.working() {
        0 => "Nobody works right now.".to_owned(),
        1 => "One agent is in the middle of a turn.".to_owned(),
        n => format!("{n} agents are in the middle of a turn."),
    };
    let lines = [
        line(&working, t.strong()),
        line("Their turns are interrupted; work and sessions are kept,", t.muted()),
        line("and the next start goes on from here.", t.muted()),
        Line::default(),
        Line::from(vec![
            Span::styled("y", t.key()),
            Span::styled(" leave    ", t.text()),
            Span::styled("n", t.key()),
            Span::styled(" stay", t.text()),
        ]),
    ];
    super::paint::put_all(buf, inner, &lines, model.glyphs.ellipsis);
    None
}
