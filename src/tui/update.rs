//! The only thing that changes the model: `(model, moment, message) -> errands`.
//!
//! Knows no terminal and does no I/O. Rooms within: `link` (what the Foreman says), `podium` (answering), `console`,
//! `panes` (moving about), `overlay` (cards, pages, pickers), `mouse`.

mod console;
mod link;
mod mouse;
mod overlay;
mod panes;
pub(crate) mod podium;

use super::cmd::Cmd;
use super::focus::{Pane, Place};
use super::keys::{self, Action, Key};
use super::model::{Leaving, Model, Overlay, Page, PageKind, Pending, Toast};
use super::msg::{Msg, Now, TerminalFocus};
use super::theme::{Theme, ThemeName};
use crate::protocol::{ClientMessage, NotifyLevel};

/// Keys closer than this (ms) to each other were not typed by a hand: a paste without brackets, a script.
pub const BURST_GAP_MS: u64 = 20;

/// How long a toast stays (ms).
const TOAST_MS: u64 = 6_000;

/// Toasts shown at once; older ones give way.
const TOASTS: usize = 3;

/// Applies a message and says what is to be done. `now` never goes back.
pub fn update(model: &mut Model, now: Now, msg: Msg) -> Vec<Cmd> {
    model.now = now;
    let mut out = Vec::new();
    match msg {
        Msg::Key(key) => on_key(model, key, &mut out),
        Msg::Paste(text) => on_paste(model, &text),
        Msg::Mouse(event) => mouse::on_mouse(model, event, &mut out),
        Msg::Resize(size) => {
            model.size = size;
            model.dirty = true;
        }
        Msg::TerminalFocus(focus) => {
            model.terminal_focus = focus;
            if focus == TerminalFocus::Focused {
                model.attention.waiting.clear();
            }
        }
        Msg::Link(event) => link::on_link(model, *event, &mut out),
        Msg::Sent { token, result } => link::on_sent(model, token, result),
        Msg::Tick => {
            console::on_tick(model, &mut out);
            model.dirty = true;
        }
        Msg::Resumed => model.dirty = true,
        Msg::Trouble(text) => toast(model, NotifyLevel::Warn, text),
        Msg::Listed(listing) => {
            if let Some(places) = model.console.places.as_mut() {
                places.listing = Some(listing);
                model.dirty = true;
            }
        }
        Msg::Highlighted(done) => {
            if let Some(Overlay::Diff(diff)) = model.overlays.iter_mut().rev().find(|o| matches!(o, Overlay::Diff(_)))
                && diff.take_colours(done)
            {
                model.dirty = true;
            }
        }
    }
    console::want_listing(model, &mut out);
    podium::settle(model);
    expire(model);
    link::attention(model, &mut out);
    retitle(model, &mut out);
    out
}

fn on_key(model: &mut Model, key: Key, out: &mut Vec<Cmd>) {
    let now = model.now.mono_ms;
    let burst = model.last_key_ms.is_some_and(|last| now.saturating_sub(last) < BURST_GAP_MS);
    model.last_key_ms = Some(now);
    model.dirty = true;
    let place = model.place();
    if place == Place::Console {
        console::before_key(model, burst);
    }
    let Some(action) = keys::find(place, key) else {
        match place {
            Place::Console => console::write(model, key),
            Place::Answer => podium::write(model, key),
            Place::Palette => overlay::write_query(model, key),
            Place::Remark => overlay::write_remark(model, key),
            Place::TaskCard | Place::AgentCard => overlay::disarm(model),
            _ => {}
        }
        return;
    };
    match action {
        Action::Quit => leave(model, out),
        Action::Suspend => out.push(Cmd::Suspend),
        Action::Redraw => out.push(Cmd::Redraw),
        Action::Help => open_page(model, PageKind::Help(place)),
        Action::Palette => overlay::open_palette(model),
        _ => match place {
            Place::Console => console::on_action(model, action, key, burst, out),
            Place::Answer => podium::on_text_action(model, action, burst, out),
            Place::Remark => overlay::on_remark_action(model, action, burst, out),
            Place::Podium => podium::on_action(model, action, key, burst, out),
            Place::Wall | Place::Monitors | Place::Feed => perform(model, action, out),
            _ => overlay::on_action(model, action, out),
        },
    }
}

/// Does what works from every pane; the rest is the pane's own.
pub(super) fn perform(model: &mut Model, action: Action, out: &mut Vec<Cmd>) {
    match action {
        Action::Quit => leave(model, out),
        Action::Suspend => out.push(Cmd::Suspend),
        Action::Redraw => out.push(Cmd::Redraw),
        Action::Help => open_page(model, PageKind::Help(model.place())),
        Action::Palette => overlay::open_palette(model),
        Action::Focus(pane) => panes::focus(model, pane),
        Action::FocusNext => panes::focus(model, model.focus.next()),
        Action::FocusPrevious => panes::focus(model, model.focus.previous()),
        Action::Zoom => panes::zoom(model),
        Action::Library => {
            model.overlays.push(Overlay::Library(super::model::Library::default()));
        }
        Action::Repos => open_page(model, PageKind::Repos),
        Action::Status => open_page(model, PageKind::Status),
        Action::Theme => {
            let other = match model.theme.name() {
                ThemeName::Dark => ThemeName::Light,
                ThemeName::Light => ThemeName::Dark,
            };
            model.theme = Theme::new(other, model.theme.depth());
            // Highlighted lines were coloured for the other background.
            overlay::recolour(model, out);
        }
        Action::PauseAll => overlay::pause_all(model, out),
        _ => panes::on_action(model, action, out),
    }
}

fn on_paste(model: &mut Model, text: &str) {
    model.dirty = true;
    // Some terminals send the line ends of a paste as carriage returns.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    match model.place() {
        Place::Console => console::paste(model, &text),
        Place::Answer => podium::paste(model, &text),
        Place::Palette | Place::Remark => overlay::paste(model, &text),
        // A paste over a pane is a text without a place; it is never read as keys.
        _ => toast(model, NotifyLevel::Info, "A paste goes into the console: press : first".to_owned()),
    }
}

/// Leaves, or asks first while turns run. In an attached screen the team goes on anyway, so nothing is asked.
pub(super) fn leave(model: &mut Model, out: &mut Vec<Cmd>) {
    let asks = !model.options.attached && model.working() > 0;
    if asks && !matches!(model.overlays.last(), Some(Overlay::Leaving)) {
        model.overlays.push(Overlay::Leaving);
    } else {
        model.leaving = Some(Leaving::Asked);
        out.push(Cmd::Leave);
    }
    model.dirty = true;
}

pub(super) fn open_page(model: &mut Model, kind: PageKind) {
    if let Some(Overlay::Page(page)) = model.overlays.last_mut() {
        *page = Page { kind, scroll: 0 };
    } else {
        model.overlays.push(Overlay::Page(Page { kind, scroll: 0 }));
    }
    model.dirty = true;
}

/// Puts a message on its way. A read-only screen sends nothing that changes the team.
pub(super) fn send(
    model: &mut Model,
    out: &mut Vec<Cmd>,
    message: ClientMessage,
    pending: Pending,
) -> Result<u64, String> {
    if model.options.read_only && !matches!(message, ClientMessage::DiffRequest(_)) {
        return Err("this screen is read-only".to_owned());
    }
    let token = model.next_token;
    model.next_token += 1;
    model.pending.insert(token, pending);
    out.push(Cmd::Send { token, message });
    Ok(token)
}

/// Sends an action of a card; a refusal comes as a toast.
pub(super) fn act(model: &mut Model, out: &mut Vec<Cmd>, message: ClientMessage, what: String) {
    if let Err(reason) = send(model, out, message, Pending::Action { what }) {
        toast(model, NotifyLevel::Warn, reason);
    }
}

/// Shows a short message; the same text is not shown twice at once.
pub(super) fn toast(model: &mut Model, level: NotifyLevel, text: String) {
    let until_ms = model.now.mono_ms + TOAST_MS;
    model.toasts.retain(|t| t.text != text);
    model.toasts.push(Toast { level, text, until_ms });
    if model.toasts.len() > TOASTS {
        model.toasts.remove(0);
    }
    model.dirty = true;
}

fn expire(model: &mut Model) {
    let now = model.now.mono_ms;
    let before = model.toasts.len();
    model.toasts.retain(|t| t.until_ms > now);
    if model.toasts.len() != before {
        model.dirty = true;
    }
    if model.podium.notice.as_ref().is_some_and(|(_, until)| *until <= now) {
        model.podium.notice = None;
        model.dirty = true;
    }
}

fn retitle(model: &mut Model, out: &mut Vec<Cmd>) {
    let title = match model.needs_you() {
        0 => "agentcraft".to_owned(),
        n => format!("agentcraft: {n} need you"),
    };
    if title != model.title {
        model.title.clone_from(&title);
        out.push(Cmd::Title(title));
    }
}

/// Focus as `:` gives it, with a text to begin with.
pub(super) fn write_to(model: &mut Model, start: &str) {
    model.overlays.clear();
    panes::focus(model, Pane::Console);
    if super::model::content(&model.console.text).trim().is_empty() {
        model.console.text = super::model::field(start);
    }
}

pub use console::HISTORY;
pub(crate) use console::ghost;
pub(crate) use overlay::choices;
pub(crate) use podium::shown;

/// What Enter will do with a console line, or why it cannot; and which of the two it is.
pub(crate) fn preview(model: &Model, line: &str) -> Option<(String, bool)> {
    let context = console::context(model)?;
    let words = crate::client::console::preview(line, &context);
    Some((words, crate::client::console::parse(line, &context).is_ok()))
}
