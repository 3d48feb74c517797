//! The mouse: a click focuses and selects, a second click opens, the wheel scrolls what is under it.

use super::super::cmd::Cmd;
use super::super::focus::Pane;
use super::super::keys::Action;
use super::super::layout::{Direction, Hit, hit};
use super::super::model::{Model, Overlay};
use super::super::msg::{Mouse, MouseKind};
use super::{overlay, panes};

/// Rows that one notch of the wheel scrolls.
const NOTCH: usize = 3;

pub(super) fn on_mouse(model: &mut Model, event: Mouse, out: &mut Vec<Cmd>) {
    model.dirty = true;
    if !model.overlays.is_empty() {
        let action = match event.kind {
            MouseKind::WheelUp => Action::Up,
            MouseKind::WheelDown => Action::Down,
            MouseKind::Press => return,
        };
        if !matches!(model.overlays.last(), Some(Overlay::Leaving)) {
            for _ in 0..NOTCH {
                overlay::on_action(model, action, out);
            }
        }
        return;
    }
    let target = hit(model, event.at);
    match event.kind {
        MouseKind::Press => press(model, target),
        MouseKind::WheelUp => wheel(model, target, Action::Up, out),
        MouseKind::WheelDown => wheel(model, target, Action::Down, out),
    }
}

fn press(model: &mut Model, target: Hit) {
    match target {
        Hit::Nothing => {}
        Hit::Pane(pane) => panes::focus(model, pane),
        Hit::Task(task) => {
            let again = model.focus == Pane::Wall && model.wall.selected.as_ref() == Some(&task);
            panes::focus(model, Pane::Wall);
            model.wall.selected = Some(task.clone());
            if again {
                panes::open_task(model, task);
            }
        }
        Hit::Agent(agent) => {
            let again = model.focus == Pane::Monitors && model.monitors.selected.as_ref() == Some(&agent);
            panes::focus(model, Pane::Monitors);
            model.monitors.selected = Some(agent.clone());
            if again {
                panes::open_agent(model, agent);
            }
        }
    }
}

fn wheel(model: &mut Model, target: Hit, action: Action, out: &mut Vec<Cmd>) {
    match target {
        Hit::Agent(agent) => {
            let direction = if action == Action::Up { Direction::Up } else { Direction::Down };
            panes::scroll_log(model, agent, direction, NOTCH);
        }
        Hit::Pane(Pane::Podium) => {
            let by = if action == Action::Up { Action::PageUp } else { Action::PageDown };
            super::podium::on_action(model, by, super::Key::plain(super::super::keys::Code::PageUp), false, out);
        }
        Hit::Pane(Pane::Feed) => {
            let count = model.feed_items().count();
            let at = model.feed.selected.unwrap_or(0);
            model.feed.selected = if action == Action::Up {
                count.checked_sub(1).map(|last| (at + NOTCH).min(last))
            } else {
                at.checked_sub(NOTCH).filter(|n| *n > 0)
            };
        }
        Hit::Pane(Pane::Monitors | Pane::Wall | Pane::Console) | Hit::Task(_) | Hit::Nothing => {}
    }
}
