//! Drawing: functions of the model into a buffer, nothing else. No view changes anything or asks a clock.
//!
//! [`draw`] is the entry; every pane and overlay is a module. Foreign text goes through `paint::span` or
//! `text::clean` on its way, and [`draw`] looks over the whole buffer once more at the end.

mod card;
mod console;
mod diff;
mod feed;
mod goal_bar;
mod help;
mod memory;
mod monitors;
mod page;
mod paint;
mod palette;
mod podium;
mod toast;
mod wall;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use super::focus::Pane;
use super::layout::{SMALLEST, Shape, areas};
use super::model::{Model, Overlay};
use super::text;

/// Draws the whole screen; the answer is where the terminal's cursor belongs, if anywhere.
pub fn draw(model: &Model, buf: &mut Buffer) -> Option<Position> {
    let areas = areas(model.size, model);
    let area = areas.screen.intersection(buf.area);
    if areas.shape == Shape::TooSmall {
        too_small(model, buf, area);
        return None;
    }
    goal_bar::draw(model, buf, areas.goal);
    if let Some(tabs) = areas.tabs {
        wall::tabs(model, buf, tabs);
    }
    let mut cursor = None;
    for (pane, area) in &areas.panes {
        match pane {
            Pane::Wall => wall::draw(model, buf, *area),
            Pane::Monitors => monitors::draw(model, buf, *area),
            Pane::Podium => cursor = podium::draw(model, buf, *area).or(cursor),
            Pane::Feed => feed::draw(model, buf, *area),
            Pane::Console => {}
        }
    }
    cursor = console::draw(model, buf, areas.console).or(cursor);
    console::hints(model, buf, areas.hints);
    for overlay in &model.overlays {
        cursor = match overlay {
            Overlay::Page(page) => page::draw(model, page, buf, areas.body),
            Overlay::Diff(diff) => diff::draw(model, diff, buf, areas.body),
            Overlay::Task(card) => card::task(model, card, buf, areas.body),
            Overlay::Agent(card) => card::agent(model, card, buf, areas.body),
            Overlay::Library(library) => memory::draw(model, library, buf, areas.body),
            Overlay::Palette(ui) => palette::draw(model, ui, buf, areas.body),
            Overlay::Picker(picker) => palette::picker(model, picker, buf, areas.body),
            Overlay::Leaving => palette::leaving(model, buf, areas.body),
        };
    }
    toast::draw(model, buf, areas.body);
    scrub(buf);
    cursor.filter(|at| area.contains(*at))
}

/// The furthest that the text on top can be scrolled.
pub fn page_limit(model: &Model) -> usize {
    let body = areas(model.size, model).body;
    match model.overlays.last() {
        Some(Overlay::Page(page)) => page::limit(model, page, body),
        Some(Overlay::Task(card)) => card::task_limit(model, card, body),
        Some(Overlay::Agent(card)) => card::agent_limit(model, card, body),
        Some(Overlay::Library(library)) => memory::limit(model, library, body),
        Some(Overlay::Diff(_) | Overlay::Palette(_) | Overlay::Picker(_) | Overlay::Leaving) | None => 0,
    }
}

pub(super) use monitors::{log_growth, log_limit};

fn too_small(model: &Model, buf: &mut Buffer, area: Rect) {
    let sentence = format!(
        "agentcraft needs {}x{}; this is {}x{}. {}",
        SMALLEST.width,
        SMALLEST.height,
        model.size.width,
        model.size.height,
        match model.needs_you() {
            0 => "The team goes on.".to_owned(),
            n => format!("{n} need you."),
        }
    );
    for (row, line) in (0u16..).zip(text::wrap(&sentence, usize::from(area.width))).take(usize::from(area.height)) {
        paint::put(buf, Rect { y: area.y + row, height: 1, ..area }, &Line::raw(line), model.glyphs.ellipsis);
    }
}

/// The last look before the terminal: nothing in a cell may be a command, or reorder what stands beside it.
fn scrub(buf: &mut Buffer) {
    for cell in &mut buf.content {
        if !cell.symbol().is_ascii() && cell.symbol().chars().any(text::is_unsafe) {
            let kept: String = cell.symbol().chars().filter(|c| !text::is_unsafe(*c)).collect();
            cell.set_symbol(if kept.is_empty() { " " } else { &kept });
        }
    }
}
