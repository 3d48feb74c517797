//! Answering decisions.
//!
//! The rules: permissions first, then questions, then merges, oldest first. Digits choose, Enter sends. A question
//! starts on its recommended option; a permission and a merge start on nothing. Every change of what is shown starts a
//! guard of 350 ms in which no key is taken. Keys that come in a burst never answer. Reject asks twice. Request
//! changes wants its text. A refused answer comes back with its text.

use super::super::cmd::Cmd;
use super::super::keys::{Action, Code, Key};
use super::super::model::{Draft, Model, Pending, content, field};
use super::{link, panes, perform, send};
use crate::protocol::{
    AnswerDecision, ClientMessage, Decision, DecisionId, DecisionKind, DecisionStatus, OptionChoice, label,
};
use crate::tui::field::edit;

/// How long (ms) keys are ignored after what is shown has changed: a doubled key must not answer the next one.
pub(crate) const GUARD_MS: u64 = 350;

/// How long (ms) the podium says what happened elsewhere.
const NOTICE_MS: u64 = 5_000;

/// Brings the podium in line with the open decisions: after every message.
pub(crate) fn settle(model: &mut Model) {
    if let Some(shown) = model.podium.shown.clone() {
        let open = model.decision(&shown).is_some_and(|d| d.status == DecisionStatus::Open);
        if !open {
            if !model.podium.answering.contains_key(&shown) && model.mirror.is_some() {
                let text = elsewhere(model, &shown);
                notice(model, text);
            }
            model.podium.drafts.remove(&shown);
            forget(model);
        }
    }
    let waiting: Vec<DecisionId> = model
        .open_decisions()
        .into_iter()
        .filter(|d| !model.podium.answering.contains_key(&d.id))
        .map(|d| d.id.clone())
        .collect();
    let stays = model.podium.shown.as_ref().is_some_and(|shown| {
        (model.podium.engaged && waiting.contains(shown))
            || (waiting.is_empty() && model.podium.answering.contains_key(shown))
    });
    if stays {
        return;
    }
    let next = waiting.into_iter().next().or_else(|| {
        // Nothing else waits: the one that is being answered stays in view until the Foreman has said so.
        model.open_decisions().first().map(|d| d.id.clone())
    });
    if next != model.podium.shown {
        match next {
            Some(id) => show(model, id),
            None => forget(model),
        }
    }
}

/// What became of a decision that this screen did not answer.
fn elsewhere(model: &Model, id: &DecisionId) -> String {
    let Some(decision) = model.decision(id) else {
        return format!("{id} is gone");
    };
    match (decision.status, &decision.answer) {
        (DecisionStatus::Answered, Some(answer)) => {
            let what = answer.option.as_deref().or(answer.text.as_deref()).unwrap_or("answered");
            format!("{id} was answered elsewhere: {what}")
        }
        (DecisionStatus::Answered, None) => format!("{id} was answered elsewhere"),
        (DecisionStatus::Cancelled, _) => {
            let why = decision
                .context
                .as_deref()
                .and_then(|c| c.rsplit_once("(cancelled: "))
                .map_or("it is moot", |(_, why)| why.trim_end().trim_end_matches(')'));
            format!("{id} was withdrawn: {why}")
        }
        (DecisionStatus::Open, _) => String::new(),
    }
}

fn notice(model: &mut Model, text: String) {
    model.podium.notice = Some((text, model.now.mono_ms + NOTICE_MS));
    model.dirty = true;
}

/// Takes the shown decision away; what was begun is kept.
fn put_away(model: &mut Model) {
    let Some(shown) = model.podium.shown.clone() else { return };
    let text = content(&model.podium.text);
    let choice = model.podium.choice.filter(|_| model.podium.by_hand);
    let open = model.decision(&shown).is_some_and(|d| d.status == DecisionStatus::Open);
    if open && !text.trim().is_empty() {
        let refused = model.podium.drafts.remove(&shown).and_then(|d| d.refused);
        model.podium.drafts.insert(shown, Draft { choice, text, refused });
    }
}

fn forget(model: &mut Model) {
    let podium = &mut model.podium;
    podium.shown = None;
    podium.choice = None;
    podium.by_hand = false;
    podium.engaged = false;
    podium.rejecting = false;
    podium.writing = false;
    podium.text = field("");
    podium.scroll = 0;
    podium.guard_until_ms = model.now.mono_ms + GUARD_MS;
    model.dirty = true;
}

/// Shows a decision: its draft if there is one, the guard in any case.
pub(crate) fn show(model: &mut Model, id: DecisionId) {
    put_away(model);
    forget(model);
    let recommended =
        model.decision(&id).filter(|d| d.kind == DecisionKind::Question && !d.options.is_empty()).map(|_| 0);
    let refused = model.podium.drafts.get(&id).filter(|d| d.refused.is_some()).and_then(|d| d.choice);
    let text = model.podium.drafts.get(&id).map(|d| d.text.clone()).unwrap_or_default();
    model.podium.choice = refused.or(recommended);
    model.podium.by_hand = refused.is_some();
    model.podium.text = field(&text);
    model.podium.shown = Some(id);
}

/// Shows an open decision because the person asked for it, so that it stays.
pub(super) fn turn_to(model: &mut Model, id: &DecisionId) {
    if model.decision(id).is_none_or(|d| d.status != DecisionStatus::Open) {
        return;
    }
    if model.podium.shown.as_ref() != Some(id) {
        show(model, id.clone());
    }
    model.podium.engaged = true;
}

/// Whether a decision is open, not being answered, and offers *Request changes*.
pub(super) fn takes_changes(model: &Model, id: &DecisionId) -> bool {
    model
        .decision(id)
        .is_some_and(|d| d.status == DecisionStatus::Open && d.options.iter().any(|o| o == label::REQUEST_CHANGES))
        && !model.podium.answering.contains_key(id)
}

/// Chooses *Request changes* for the shown decision and adds to its text. Sending is for the person.
pub(super) fn propose_changes(model: &mut Model, text: &str) {
    let at = shown(model).and_then(|d| d.options.iter().position(|o| o == label::REQUEST_CHANGES));
    if at.is_none() {
        return;
    }
    let before = content(&model.podium.text);
    let whole = if before.trim().is_empty() || before.contains(text) {
        text.to_owned()
    } else {
        format!("{}\n\n{text}", before.trim_end())
    };
    model.podium.choice = at;
    model.podium.by_hand = true;
    model.podium.engaged = true;
    model.podium.writing = true;
    model.podium.text = field(&whole);
}

/// A key on the podium, outside its text field.
pub(super) fn on_action(model: &mut Model, action: Action, key: Key, burst: bool, out: &mut Vec<Cmd>) {
    let answers = matches!(action, Action::Choose | Action::Confirm | Action::WriteText);
    if answers {
        if model.now.mono_ms < model.podium.guard_until_ms {
            return;
        }
        if burst {
            reset_choice(model);
            notice(model, "Keys came in a burst: nothing was answered".to_owned());
            return;
        }
    }
    if !matches!(action, Action::Confirm) {
        model.podium.rejecting = false;
    }
    match action {
        Action::Choose => {
            let Code::Char(digit) = key.code else { return };
            let index = digit.to_digit(10).and_then(|d| usize::try_from(d).ok()).unwrap_or(0).wrapping_sub(1);
            choose(model, index);
        }
        Action::Up | Action::Down => step(model, action),
        Action::Confirm => try_send(model, out),
        Action::WriteText => begin_text(model),
        Action::NextDecision => browse(model, Turn::Next),
        Action::PreviousDecision => browse(model, Turn::Previous),
        Action::PageUp => model.podium.scroll = model.podium.scroll.saturating_sub(PAGE),
        Action::PageDown => model.podium.scroll = (model.podium.scroll + PAGE).min(scroll_limit(model)),
        Action::Diff => open_diff(model, out),
        Action::Copy => {
            if let Some(decision) = shown(model) {
                out.push(Cmd::Copy(decision.context.clone().unwrap_or_else(|| decision.question.clone())));
            }
        }
        Action::Back if model.podium.engaged => {
            // Back to what is most pressing.
            put_away(model);
            model.podium.engaged = false;
            reset_choice(model);
        }
        other => perform(model, other, out),
    }
}

/// Lines that a page key scrolls the context by.
const PAGE: usize = 5;

fn scroll_limit(model: &Model) -> usize {
    shown(model).and_then(|d| d.context.as_deref()).map_or(0, |c| c.lines().count())
}

/// The decision on the podium.
pub(crate) fn shown(model: &Model) -> Option<&Decision> {
    model.podium.shown.as_ref().and_then(|id| model.decision(id))
}

fn is_answering(model: &Model) -> bool {
    model.podium.shown.as_ref().is_some_and(|id| model.podium.answering.contains_key(id))
}

fn reset_choice(model: &mut Model) {
    model.podium.rejecting = false;
    model.podium.by_hand = false;
    model.podium.choice = shown(model).filter(|d| d.kind == DecisionKind::Question && !d.options.is_empty()).map(|_| 0);
}

fn choose(model: &mut Model, index: usize) {
    let count = shown(model).map_or(0, |d| d.options.len());
    if index < count && !is_answering(model) {
        model.podium.choice = Some(index);
        model.podium.by_hand = true;
        model.podium.engaged = true;
    }
}

fn step(model: &mut Model, action: Action) {
    if model.now.mono_ms < model.podium.guard_until_ms {
        return;
    }
    let count = shown(model).map_or(0, |d| d.options.len());
    if count == 0 {
        return;
    }
    let next = match (model.podium.choice, action) {
        (Some(at), Action::Up) => at.saturating_sub(1),
        (Some(at), _) => (at + 1).min(count - 1),
        (None, Action::Up) => count - 1,
        (None, _) => 0,
    };
    choose(model, next);
}

fn begin_text(model: &mut Model) {
    let Some(decision) = shown(model) else { return };
    if is_answering(model) {
        return;
    }
    let changes = decision.options.iter().position(|o| o == label::REQUEST_CHANGES);
    let kind = decision.kind;
    if !model.podium.by_hand {
        // A text of one's own to a question stands for itself; to a merge it can only be a request for changes.
        model.podium.choice = match kind {
            DecisionKind::Merge => changes,
            DecisionKind::Question | DecisionKind::Permission => None,
        };
        model.podium.by_hand = model.podium.choice.is_some();
    }
    model.podium.engaged = true;
    model.podium.writing = true;
}

enum Turn {
    Next,
    Previous,
}

fn browse(model: &mut Model, turn: Turn) {
    let open: Vec<DecisionId> = model.open_decisions().into_iter().map(|d| d.id.clone()).collect();
    let Some(at) = model.podium.shown.as_ref().and_then(|s| open.iter().position(|id| id == s)) else { return };
    let next = match turn {
        Turn::Next => (at + 1) % open.len(),
        Turn::Previous => (at + open.len() - 1) % open.len(),
    };
    if next != at
        && let Some(id) = open.get(next)
    {
        show(model, id.clone());
        model.podium.engaged = true;
    }
}

/// Sends the answer if all that it needs is there; else asks for what is missing.
fn try_send(model: &mut Model, out: &mut Vec<Cmd>) {
    let Some(decision) = shown(model).cloned() else { return };
    if is_answering(model) {
        return;
    }
    let text = content(&model.podium.text).trim().to_owned();
    let chosen = model.podium.choice.and_then(|at| decision.options.get(at)).cloned();
    let asks_for_choice = match decision.kind {
        DecisionKind::Question => chosen.is_none() && text.is_empty(),
        DecisionKind::Permission | DecisionKind::Merge => chosen.is_none(),
    };
    if asks_for_choice {
        model.podium.writing = false;
        if decision.options.is_empty() {
            begin_text(model);
        } else {
            notice(model, format!("Choose first: 1 to {}", decision.options.len()));
        }
        return;
    }
    if decision.kind == DecisionKind::Merge {
        match chosen.as_deref() {
            Some(label::REQUEST_CHANGES) if text.is_empty() => {
                model.podium.writing = true;
                model.podium.engaged = true;
                notice(model, "Say what should change, then Enter".to_owned());
                return;
            }
            Some(label::REJECT) if !model.podium.rejecting => {
                model.podium.rejecting = true;
                model.podium.writing = false;
                model.podium.engaged = true;
                model.podium.guard_until_ms = model.now.mono_ms + GUARD_MS;
                return;
            }
            _ => {}
        }
    }
    let draft = Draft { choice: model.podium.choice, text: text.clone(), refused: None };
    let message = ClientMessage::DecisionAnswer(AnswerDecision {
        decision_id: decision.id.clone(),
        option: chosen.map(OptionChoice::Label),
        text: (!text.is_empty()).then_some(text),
    });
    match send(model, out, message, Pending::Answer { decision: decision.id.clone(), draft: draft.clone() }) {
        Ok(token) => {
            model.podium.drafts.remove(&decision.id);
            model.podium.text = field("");
            model.podium.writing = false;
            model.podium.rejecting = false;
            model.podium.engaged = false;
            model.podium.answering.insert(decision.id, token);
        }
        Err(reason) => link::answer_back(model, &decision.id, draft, reason),
    }
}

/// A key of the key map within the text field.
pub(super) fn on_text_action(model: &mut Model, action: Action, burst: bool, out: &mut Vec<Cmd>) {
    match action {
        // What comes in a burst is a paste: it is text and sends nothing.
        Action::Submit if burst => model.podium.text.insert_newline(),
        Action::Submit if model.now.mono_ms < model.podium.guard_until_ms => {}
        Action::Submit => try_send(model, out),
        Action::NewLine => model.podium.text.insert_newline(),
        Action::Back => model.podium.writing = false,
        other => perform(model, other, out),
    }
}

/// A key that is text.
pub(super) fn write(model: &mut Model, key: Key) {
    if model.now.mono_ms < model.podium.guard_until_ms {
        return;
    }
    edit(&mut model.podium.text, key);
    if let Some(id) = model.podium.shown.clone()
        && let Some(draft) = model.podium.drafts.get_mut(&id)
    {
        draft.refused = None;
    }
}

pub(super) fn paste(model: &mut Model, text: &str) {
    model.podium.text.insert_str(text);
}

/// Opens the diff that the shown decision is about.
fn open_diff(model: &mut Model, out: &mut Vec<Cmd>) {
    let Some(decision) = shown(model) else { return };
    let target = match (&decision.repo_id, &decision.worktree) {
        (Some(repo), Some(worktree)) => Some((repo.clone(), worktree.clone())),
        _ => decision
            .task_id
            .as_ref()
            .and_then(|t| model.diff_of_task(t))
            .or_else(|| model.diff_of_agent(&decision.agent_id)),
    };
    let id = decision.id.clone();
    panes::open_diff(model, target, Some(id), out);
}
