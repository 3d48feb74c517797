//! What the Foreman says: snapshots, upserts, acks; and the notices of the desktop.

use super::super::cmd::Cmd;
use super::super::focus::Pane;
use super::super::model::{Draft, Echo, LinkState, Model, Overlay, Pending, content, field};
use super::super::msg::TerminalFocus;
use super::super::{text, view};
use super::{console, panes, podium, toast};
use crate::client::{LinkEvent, Mirror};
use crate::protocol::{Ack, DecisionId, DecisionStatus, Diff, NotifyLevel, ServerMessage};

/// At most one notice of the desktop in this time (ms); more become one.
const NOTICE_EVERY_MS: u64 = 20_000;

pub(super) fn on_link(model: &mut Model, event: LinkEvent, out: &mut Vec<Cmd>) {
    model.dirty = true;
    match event {
        LinkEvent::Up(snapshot) => {
            let first = model.mirror.is_none();
            // The snapshot is the truth; drafts, focus and overlays are ours and stay.
            model.mirror = Some(Mirror::from_snapshot(*snapshot));
            model.link = LinkState::Up;
            lost(model, "the connection was renewed before the Foreman answered");
            prune(model);
            overlay_again(model, out);
            if first
                && model.goal().is_some()
                && model.focus == Pane::Console
                && content(&model.console.text).is_empty()
            {
                panes::focus(model, Pane::Wall);
            }
        }
        LinkEvent::Down { why, retry_in_ms } => {
            model.link = LinkState::Down { why, retry_at_ms: model.now.mono_ms + retry_in_ms };
            lost(model, "the connection was lost before the Foreman answered");
        }
        LinkEvent::Ended { why } => {
            model.link = LinkState::Ended(why);
            lost(model, "the Foreman ended before it answered");
        }
        LinkEvent::Message(message) => on_message(model, message, out),
    }
}

fn on_message(model: &mut Model, message: ServerMessage, out: &mut Vec<Cmd>) {
    match &message {
        ServerMessage::Ack(ack) => {
            on_ack(model, ack);
            return;
        }
        ServerMessage::Diff(diff) => {
            on_diff(model, diff, out);
            return;
        }
        ServerMessage::Error(error) => {
            // With an id a failed ack follows, and that says it in the right place.
            if error.re.is_none() {
                toast(model, NotifyLevel::Warn, error.message.clone());
            }
            return;
        }
        ServerMessage::Notify(notify) => match notify.level {
            NotifyLevel::NeedUser => {
                if let Some(id) = &notify.decision_id {
                    model.attention.waiting.push((id.clone(), text::clean(&notify.text).into_owned()));
                }
                if !super::super::layout::areas(model.size, model).shows(Pane::Podium) {
                    toast(model, notify.level, notify.text.clone());
                }
            }
            NotifyLevel::Info | NotifyLevel::Warn => toast(model, notify.level, notify.text.clone()),
        },
        // A log that was scrolled back stays where it is while lines come in below.
        ServerMessage::AgentLog { agent_id, entries } if model.monitors.back.contains_key(agent_id) => {
            let more = view::log_growth(model, agent_id, entries);
            if let Some(back) = model.monitors.back.get_mut(agent_id) {
                *back += more;
            }
        }
        ServerMessage::FeedAdd { .. } => {
            if let Some(at) = model.feed.selected.as_mut() {
                *at += 1;
            }
        }
        _ => {}
    }
    if let Some(mirror) = model.mirror.as_mut() {
        mirror.apply(&message);
    }
}

/// The correlation id of a message that went out, or why it did not.
pub(super) fn on_sent(model: &mut Model, token: u64, result: Result<String, String>) {
    model.dirty = true;
    match result {
        Ok(id) => {
            model.correlation.insert(id, token);
        }
        Err(reason) => finish(model, token, Err(reason)),
    }
}

fn on_ack(model: &mut Model, ack: &Ack) {
    let Some(token) = model.correlation.remove(&ack.re) else { return };
    let result = if ack.ok {
        Ok(ack.clone())
    } else {
        Err(ack.error.clone().unwrap_or_else(|| "the Foreman refused it without a reason".to_owned()))
    };
    finish(model, token, result);
}

fn finish(model: &mut Model, token: u64, result: Result<Ack, String>) {
    let Some(pending) = model.pending.remove(&token) else { return };
    match (pending, result) {
        (Pending::Console { .. }, Ok(ack)) => {
            if model.console.echo == Echo::Sending(token) {
                model.console.echo = Echo::Done(console::acknowledged(&ack));
            }
        }
        (Pending::Console { line }, Err(reason)) => console::refused(model, line, reason),
        (Pending::Answer { decision, .. }, Ok(_)) => {
            model.podium.answering.remove(&decision);
            model.podium.drafts.remove(&decision);
        }
        (Pending::Answer { decision, draft }, Err(reason)) => answer_back(model, &decision, draft, reason),
        (Pending::Action { what }, Ok(_)) => toast(model, NotifyLevel::Info, what),
        (Pending::Action { what }, Err(reason)) => toast(model, NotifyLevel::Warn, format!("{what}: {reason}")),
        (Pending::Diff { .. }, Ok(_)) => {}
        (Pending::Diff { request }, Err(reason)) => {
            if let Some(diff) = diff_overlay(model, &request) {
                diff.fail(reason);
            }
        }
    }
}

/// A refused answer: text and choice come back, and its decision with them unless the person is busy with another.
pub(super) fn answer_back(model: &mut Model, decision: &DecisionId, draft: Draft, reason: String) {
    model.podium.answering.remove(decision);
    if model.decision(decision).is_none_or(|d| d.status != DecisionStatus::Open) {
        // Whatever the answer was, it is decided; the podium or the feed says how.
        toast(model, NotifyLevel::Warn, format!("{decision}: {reason}"));
        return;
    }
    model.podium.drafts.insert(decision.clone(), Draft { refused: Some(reason.clone()), ..draft });
    let busy = model.podium.engaged && model.podium.shown.as_ref() != Some(decision);
    if busy {
        toast(model, NotifyLevel::Warn, format!("Your answer to {decision} was refused: {reason}"));
    } else {
        model.podium.shown = None;
        podium::show(model, decision.clone());
        model.podium.engaged = true;
    }
}

/// Everything on its way when the connection went: it may have arrived or not, so it is given back with that reason.
fn lost(model: &mut Model, reason: &str) {
    let tokens: Vec<u64> = model.pending.keys().copied().collect();
    model.correlation.clear();
    for token in tokens {
        if let Some(Pending::Diff { .. }) = model.pending.get(&token) {
            // It is asked for again on the new connection.
            model.pending.remove(&token);
            continue;
        }
        if let Some(Pending::Answer { decision, .. }) = model.pending.get(&token)
            && model.decision(decision).is_none_or(|d| d.status != DecisionStatus::Open)
        {
            let decision = decision.clone();
            model.pending.remove(&token);
            model.podium.answering.remove(&decision);
            continue;
        }
        finish(model, token, Err(reason.to_owned()));
    }
}

/// Drops what points at things that the new snapshot no longer has.
fn prune(model: &mut Model) {
    let open: Vec<DecisionId> = model.open_decisions().iter().map(|d| d.id.clone()).collect();
    model.podium.drafts.retain(|id, _| open.contains(id));
    model.podium.answering.retain(|id, _| open.contains(id));
}

/// A diff that still waits is asked for again after a new connection.
fn overlay_again(model: &mut Model, out: &mut Vec<Cmd>) {
    let waiting = model.overlays.iter().find_map(|o| match o {
        Overlay::Diff(diff) if diff.is_waiting() => Some(diff.request(None)),
        _ => None,
    });
    if let Some(request) = waiting {
        panes::ask_diff(model, request, out);
    }
}

fn diff_overlay<'a>(model: &'a mut Model, request: &str) -> Option<&'a mut super::super::diff_model::DiffUi> {
    model.overlays.iter_mut().find_map(|o| match o {
        Overlay::Diff(diff) if diff.awaits(request) => Some(&mut **diff),
        _ => None,
    })
}

fn on_diff(model: &mut Model, diff: &Diff, out: &mut Vec<Cmd>) {
    let dark = model.theme.name();
    if let Some(ui) = diff_overlay(model, &diff.request_id) {
        ui.arrived(diff.clone());
        out.extend(ui.next_jobs(dark).into_iter().map(Cmd::Highlight));
    }
}

impl Model {
    /// When the next notice of the desktop is due (monotonic ms); none: nothing waits to be told.
    pub(crate) fn attention_due(&self) -> Option<u64> {
        if self.attention.waiting.is_empty() || self.terminal_focus == TerminalFocus::Focused {
            return None;
        }
        Some(self.attention.last_ms.map_or(self.now.mono_ms, |last| last + NOTICE_EVERY_MS).max(self.now.mono_ms + 1))
    }
}

/// Rings when a decision waits and the terminal is not looked at: at once, then at most once in twenty seconds.
pub(super) fn attention(model: &mut Model, out: &mut Vec<Cmd>) {
    if model.terminal_focus == TerminalFocus::Focused || !model.options.notify {
        model.attention.waiting.clear();
        return;
    }
    let open: Vec<DecisionId> = model.open_decisions().iter().map(|d| d.id.clone()).collect();
    if model.mirror.is_some() {
        model.attention.waiting.retain(|(id, _)| open.contains(id));
    }
    let quiet = model.attention.last_ms.is_some_and(|last| model.now.mono_ms < last + NOTICE_EVERY_MS);
    if model.attention.waiting.is_empty() || quiet {
        return;
    }
    let waiting = std::mem::take(&mut model.attention.waiting);
    model.attention.last_ms = Some(model.now.mono_ms);
    let (title, body) = match waiting.as_slice() {
        [(_, text)] => ("AgentCraft needs you".to_owned(), text.clone()),
        many => (
            format!("AgentCraft: {} decisions waiting", many.len()),
            many.iter().rev().take(3).rev().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("; "),
        ),
    };
    out.push(Cmd::Notice { title, body: text::fit(&body, 160, "…").into_owned() });
}

/// Puts a refused console line back, unless the person has begun another.
pub(super) fn give_back(model: &mut Model, line: String) {
    if content(&model.console.text).trim().is_empty() {
        model.console.text = field(&line);
    }
}
