//! The console bar: one line (or several, pasted) to the team.

use super::super::cmd::Cmd;
use super::super::focus::Pane;
use super::super::keys::{Action, Code, Key};
use super::super::model::{Echo, Model, PageKind, Pending, content, field};
use super::{BURST_GAP_MS, leave, link, open_page, overlay, panes, perform, send, toast};
use crate::client::console::{self, ConsoleContext, ConsoleLine, DiffOf, LocalCommand};
use crate::protocol::{Ack, NotifyLevel};
use crate::tui::field::edit;

/// Lines of history kept in memory.
pub const HISTORY: usize = 1_000;

/// Before any key: an Enter that was held is now known to be inside a paste, or no longer part of one.
pub(super) fn before_key(model: &mut Model, burst: bool) {
    if model.console.held_enter.take().is_some() {
        model.console.text.insert_newline();
        model.console.pasting = burst;
    }
    if !burst {
        model.console.pasting = false;
    }
}

/// A deadline passed: an Enter that nothing followed was typed after all.
pub(super) fn on_tick(model: &mut Model, out: &mut Vec<Cmd>) {
    if model.console.held_enter.is_some_and(|until| until <= model.now.mono_ms) {
        model.console.held_enter = None;
        if model.console.pasting {
            model.console.text.insert_newline();
            model.console.pasting = false;
        } else {
            submit(model, out);
        }
    }
}

pub(super) fn on_action(model: &mut Model, action: Action, key: Key, burst: bool, out: &mut Vec<Cmd>) {
    match action {
        Action::Submit if burst => model.console.held_enter = Some(model.now.mono_ms + BURST_GAP_MS + 10),
        Action::Submit => submit(model, out),
        Action::NewLine => model.console.text.insert_newline(),
        Action::Back => back(model),
        Action::Complete => complete(model),
        Action::HistoryUp | Action::HistoryDown => {
            let cursor = model.console.text.cursor();
            let last = model.console.text.lines().len().saturating_sub(1);
            let at_edge = if action == Action::HistoryUp { cursor.0 == 0 } else { cursor.0 == last };
            if at_edge {
                recall(model, action);
            } else {
                edit(&mut model.console.text, key);
            }
        }
        other => perform(model, other, out),
    }
}

fn back(model: &mut Model) {
    let pane = if model.podium.shown.is_some() { Pane::Podium } else { model.before_console };
    panes::focus(model, pane);
}

/// A key that is text.
pub(super) fn write(model: &mut Model, key: Key) {
    let empty = content(&model.console.text).is_empty();
    if empty && key == Key::char(':') {
        // The hand that always types `:` first is right here too.
        return;
    }
    if key.code == Code::Right && !key.ctrl && !key.alt && ghost(model).is_some() {
        complete(model);
        return;
    }
    let before = content(&model.console.text);
    edit(&mut model.console.text, key);
    if content(&model.console.text) != before {
        changed(model);
    }
}

fn changed(model: &mut Model) {
    model.console.recalled = None;
    if !matches!(model.console.echo, Echo::Sending(_)) {
        model.console.echo = Echo::None;
    }
}

pub(super) fn paste(model: &mut Model, text: &str) {
    model.console.text.insert_str(text);
    changed(model);
}

fn recall(model: &mut Model, action: Action) {
    let length = model.console.history.len();
    let at = match (action, model.console.recalled) {
        (Action::HistoryUp, None) if length > 0 => {
            model.console.stash = content(&model.console.text);
            Some(length - 1)
        }
        (Action::HistoryUp, Some(at)) => Some(at.saturating_sub(1)),
        (Action::HistoryDown, Some(at)) if at + 1 < length => Some(at + 1),
        (Action::HistoryDown, Some(_)) => {
            model.console.text = field(&model.console.stash.clone());
            None
        }
        _ => return,
    };
    model.console.recalled = at;
    if let Some(line) = at.and_then(|at| model.console.history.get(at)) {
        model.console.text = field(&line.clone());
    }
}

/// The context in which a line is read.
pub(crate) fn context(model: &Model) -> Option<ConsoleContext<'_>> {
    let context = model.mirror().map(|mirror| ConsoleContext::new(mirror, model.podium.shown.as_ref()))?;
    Some(match &model.console.places {
        Some(places) => context.with_places(places),
        None => context,
    })
}

/// Asks for the directory that completing the written path needs, once.
pub(super) fn want_listing(model: &mut Model, out: &mut Vec<Cmd>) {
    let line = content(&model.console.text);
    if !line.trim_start().starts_with("/repo") {
        model.console.listing_asked = None;
        return;
    }
    let wanted = context(model).and_then(|context| console::wanted_listing(&line, &context));
    if let Some(dir) = wanted
        && model.console.listing_asked.as_ref() != Some(&dir)
    {
        model.console.listing_asked = Some(dir.clone());
        out.push(Cmd::List(dir));
    }
}

/// What the first completion would add behind the cursor, when the cursor is at the end of the text.
pub(crate) fn ghost(model: &Model) -> Option<String> {
    let line = content(&model.console.text);
    let cursor = model.console.text.cursor();
    let at_end = cursor.0 + 1 == model.console.text.lines().len()
        && model.console.text.lines().last().is_some_and(|l| l.chars().count() == cursor.1);
    if line.is_empty() || !at_end {
        return None;
    }
    let context = context(model)?;
    let first = console::complete(&line, line.len(), &context).into_iter().next()?;
    let typed = line.get(first.start..)?;
    first.text.strip_prefix(typed).filter(|rest| !rest.is_empty()).map(str::to_owned)
}

fn complete(model: &mut Model) {
    let line = content(&model.console.text);
    let Some(context) = context(model) else { return };
    let Some(first) = console::complete(&line, line.len(), &context).into_iter().next() else { return };
    if let Some(kept) = line.get(..first.start) {
        model.console.text = field(&format!("{kept}{}", first.text));
        changed(model);
    }
}

fn submit(model: &mut Model, out: &mut Vec<Cmd>) {
    let line = content(&model.console.text);
    if line.trim().is_empty() {
        return;
    }
    let Some(context) = context(model) else {
        model.console.echo = Echo::Refused("not connected yet".to_owned());
        return;
    };
    match console::parse(&line, &context) {
        Err(error) => model.console.echo = Echo::Refused(error.to_string()),
        Ok(ConsoleLine::Send(message)) => match send(model, out, message, Pending::Console { line: line.clone() }) {
            Ok(token) => {
                remember(model, line, out);
                model.console.text = field("");
                model.console.echo = Echo::Sending(token);
            }
            Err(reason) => model.console.echo = Echo::Refused(reason),
        },
        Ok(ConsoleLine::Local(command)) => {
            remember(model, line, out);
            model.console.text = field("");
            model.console.echo = Echo::None;
            local(model, command, out);
        }
    }
}

fn remember(model: &mut Model, line: String, out: &mut Vec<Cmd>) {
    model.console.recalled = None;
    model.console.stash.clear();
    if model.console.history.last() == Some(&line) {
        return;
    }
    model.console.history.push(line.clone());
    if model.console.history.len() > HISTORY {
        model.console.history.remove(0);
    }
    out.push(Cmd::Remember(line));
}

fn local(model: &mut Model, command: LocalCommand, out: &mut Vec<Cmd>) {
    match command {
        LocalCommand::Quit => leave(model, out),
        LocalCommand::Help => open_page(model, PageKind::Help(super::super::focus::Place::Console)),
        LocalCommand::Status | LocalCommand::Counts => open_page(model, PageKind::Status),
        LocalCommand::Agents => open_page(model, PageKind::Agents),
        LocalCommand::Tasks => open_page(model, PageKind::Tasks),
        LocalCommand::Decisions => open_page(model, PageKind::Decisions),
        LocalCommand::Feed => open_page(model, PageKind::Feed),
        LocalCommand::Memory(id) => overlay::open_library(model, id),
        LocalCommand::Diff { repo, worktree, of } => {
            let decision = match of {
                DiffOf::Decision(id) => Some(id),
                DiffOf::Worktree | DiffOf::Task(_) => None,
            };
            panes::open_diff(model, Some((repo, worktree)), decision, out);
        }
        // For scripts; on the screen one simply looks.
        LocalCommand::Wait(_) => {
            model.console.echo = Echo::Refused("/wait is for scripts: the screen shows what happens".to_owned());
        }
    }
}

/// What an ack says at the console's right end.
pub(super) fn acknowledged(ack: &Ack) -> String {
    let value = |key: &str| ack.result.as_ref().and_then(|r| r.get(key)).and_then(|v| v.as_str()).map(str::to_owned);
    if let Some(goal) = value("goalId") {
        format!("goal {goal} is with the lead")
    } else if let Some(repo) = value("repoId") {
        format!("repository {repo} is connected")
    } else if let Some(to) = value("to") {
        format!("told {to}")
    } else {
        "done".to_owned()
    }
}

/// A line that the Foreman refused.
pub(super) fn refused(model: &mut Model, line: String, reason: String) {
    let begun = !content(&model.console.text).trim().is_empty();
    link::give_back(model, line);
    if begun {
        toast(model, NotifyLevel::Warn, format!("The line before was refused (Up brings it back): {reason}"));
    }
    model.console.echo = Echo::Refused(reason);
}
