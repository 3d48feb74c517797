//! `/answer [dN] <number|label> [text]`.
//!
//! Safety comes before brevity here. A merge is granted, a permission given and a branch given up only by the whole
//! label or its number, standing alone: a word that merely begins the label, or a sentence that happens to start with
//! it (`merge conflicts look wrong`, `allow once you have checked`), is refused with a hint. Labels in quotes were set
//! off on purpose and may have text behind them. Questions are different: what names no option is an answer in the
//! person's own words.

use super::ConsoleContext;
use super::error::ConsoleError;
use super::words::{self, Word};
use crate::protocol::limits::ANSWER_TEXT_CHARS;
use crate::protocol::{
    AnswerDecision, ClientMessage, Decision, DecisionId, DecisionKind, DecisionStatus, OptionChoice, label,
};

/// What was chosen: an option of the decision and words beside it.
struct Choice<'a> {
    option: Option<&'a str>,
    text: &'a str,
}

pub(super) fn answer(
    rest: &str,
    context: &ConsoleContext<'_>,
    usage: &'static str,
) -> Result<ClientMessage, ConsoleError> {
    let (decision, words) = decision(rest, context)?;
    if words.is_empty() {
        let problem = match decision.options.as_slice() {
            [] => format!("the answer to {} is missing", decision.id),
            _ => format!("choose one for {}: {}", decision.id, listed(decision)),
        };
        return Err(ConsoleError::Usage { usage, problem });
    }
    let choice = match decision.kind {
        DecisionKind::Question => choose_for_question(decision, words)?,
        DecisionKind::Merge | DecisionKind::Permission => choose_for_grant(decision, words)?,
    };
    super::limit(choice.text, ANSWER_TEXT_CHARS)?;
    Ok(ClientMessage::DecisionAnswer(AnswerDecision {
        decision_id: decision.id.clone(),
        option: choice.option.map(|label| OptionChoice::Label(label.to_owned())),
        text: Some(choice.text).filter(|text| !text.is_empty()).map(str::to_owned),
    }))
}

/// Is this word the id of a decision? Such a word is never taken as a label.
pub(super) fn is_id(word: &str) -> bool {
    word.strip_prefix(['d', 'D']).is_some_and(|number| {
        !number.is_empty() && !number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The open decision that is meant, and the words that answer it.
pub(super) fn decision<'a, 'b>(
    rest: &'b str,
    context: &ConsoleContext<'a>,
) -> Result<(&'a Decision, &'b str), ConsoleError> {
    if let Some((word, after)) = words::first(rest)
        && !word.quoted
        && is_id(&word.text)
    {
        let id = DecisionId::from(word.text.to_lowercase());
        let Some(decision) = context.mirror.decisions.get(&id) else {
            return Err(ConsoleError::NoDecision { name: id.to_string(), open: open_ids(context) });
        };
        return match decision.status {
            DecisionStatus::Open => Ok((decision, after)),
            status @ (DecisionStatus::Answered | DecisionStatus::Cancelled) => {
                Err(ConsoleError::DecisionClosed { name: id.to_string(), status: status.as_str() })
            }
        };
    }
    let shown = context.shown_decision.and_then(|id| context.mirror.decisions.get(id));
    match shown.filter(|decision| decision.status == DecisionStatus::Open) {
        Some(decision) => Ok((decision, rest)),
        None => Err(match open_ids(context) {
            Some(open) => ConsoleError::WhichDecision { open },
            None => ConsoleError::NothingOpen,
        }),
    }
}

fn open_ids(context: &ConsoleContext<'_>) -> Option<String> {
    let ids: Vec<&str> = context.mirror.open_decisions().iter().map(|decision| decision.id.as_str()).collect();
    (!ids.is_empty()).then(|| ids.join(", "))
}

/// The options with their numbers, as the person counts them.
fn listed(decision: &Decision) -> String {
    let options: Vec<String> =
        decision.options.iter().enumerate().map(|(at, option)| format!("{} {option}", at + 1)).collect();
    options.join(" | ")
}

/// A merge or a permission: one option must be named, plainly.
fn choose_for_grant<'a>(decision: &'a Decision, words: &'a str) -> Result<Choice<'a>, ConsoleError> {
    let Some((word, after)) = words::first(words) else { return Err(not_an_option(decision, words)) };
    let found = match number(decision, &word) {
        Some(Ok(option)) => Some((option, after)),
        Some(Err(number)) => {
            return Err(ConsoleError::OptionOutOfRange { number, options: listed(decision) });
        }
        None if word.quoted => whole_label(decision, &word.text).map(|option| (option, after)),
        None => leading_label(decision, words),
    };
    if let Some((option, text)) = found {
        let set_off = word.quoted;
        if text.is_empty() || set_off || takes_text(option) {
            return with_wanted_text(decision, Choice { option: Some(option), text });
        }
        let advice = match decision.kind {
            DecisionKind::Merge => "; to send the work back: Request changes …",
            DecisionKind::Permission => "; to refuse with a reason: Deny …",
            DecisionKind::Question => "",
        };
        return Err(ConsoleError::TakesNoText { label: option.to_owned(), extra: text.to_owned(), advice });
    }
    let wanted = word.text.to_lowercase();
    let mut starting = decision
        .options
        .iter()
        .enumerate()
        .filter(|(_, option)| !wanted.is_empty() && option.to_lowercase().starts_with(&wanted));
    match (starting.next(), starting.next()) {
        (Some((_, option)), None) if takes_text(option) => {
            with_wanted_text(decision, Choice { option: Some(option), text: after })
        }
        (Some((at, option)), None) if after.is_empty() => {
            Err(ConsoleError::WriteInFull { label: option.clone(), number: at + 1 })
        }
        _ => Err(not_an_option(decision, words)),
    }
}

/// *Request changes* and *Deny* carry words to the agent; the others decide and stand alone.
fn takes_text(option: &str) -> bool {
    option == label::REQUEST_CHANGES || option == label::DENY
}

fn with_wanted_text<'a>(decision: &Decision, choice: Choice<'a>) -> Result<Choice<'a>, ConsoleError> {
    if choice.option == Some(label::REQUEST_CHANGES) && choice.text.is_empty() {
        let id = decision.id.to_string();
        return Err(ConsoleError::ChangesNeedText { id, label: label::REQUEST_CHANGES.to_owned() });
    }
    Ok(choice)
}

fn not_an_option(decision: &Decision, words: &str) -> ConsoleError {
    let advice = match decision.kind {
        DecisionKind::Merge => "; to send the work back: Request changes …",
        DecisionKind::Permission | DecisionKind::Question => "",
    };
    ConsoleError::NoOption { words: words.to_owned(), options: listed(decision), advice }
}

/// A question: an option, an option with words, or the person's own words.
fn choose_for_question<'a>(decision: &'a Decision, words: &'a str) -> Result<Choice<'a>, ConsoleError> {
    let own_words = Choice { option: None, text: words };
    if decision.options.is_empty() {
        return Ok(own_words);
    }
    let Some((word, after)) = words::first(words) else { return Ok(own_words) };
    match number(decision, &word) {
        Some(Ok(option)) => return Ok(Choice { option: Some(option), text: after }),
        Some(Err(number)) if after.is_empty() => {
            return Err(ConsoleError::OptionOutOfRange { number, options: listed(decision) });
        }
        Some(Err(_)) | None => {}
    }
    if word.quoted {
        let option = whole_label(decision, &word.text).or_else(|| unique_prefix(decision, &word.text));
        return Ok(option.map_or(own_words, |option| Choice { option: Some(option), text: after }));
    }
    if let Some((option, text)) = leading_label(decision, words) {
        return Ok(Choice { option: Some(option), text });
    }
    Ok(match unique_prefix(decision, words) {
        Some(option) => Choice { option: Some(option), text: "" },
        None => own_words,
    })
}

/// A bare number counts options from 1. `Err` is a number that counts none.
fn number<'a>(decision: &'a Decision, word: &Word<'_>) -> Option<Result<&'a str, String>> {
    if word.quoted || word.text.is_empty() || !word.text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let at = word.text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let option = at.and_then(|at| decision.options.get(at));
    Some(option.map(String::as_str).ok_or_else(|| word.text.to_string()))
}

fn whole_label<'a>(decision: &'a Decision, words: &str) -> Option<&'a str> {
    let wanted = words.trim().to_lowercase();
    let exact = decision.options.iter().find(|option| *option == words);
    exact.or_else(|| decision.options.iter().find(|option| option.trim().to_lowercase() == wanted)).map(String::as_str)
}

fn unique_prefix<'a>(decision: &'a Decision, words: &str) -> Option<&'a str> {
    let wanted = words.trim().to_lowercase();
    let mut starting =
        decision.options.iter().filter(|option| !wanted.is_empty() && option.to_lowercase().starts_with(&wanted));
    match (starting.next(), starting.next()) {
        (Some(option), None) => Some(option),
        _ => None,
    }
}

/// The longest label that `words` begins with, whatever the case, ending at a word's end; and what follows it.
fn leading_label<'a, 'b>(decision: &'a Decision, words: &'b str) -> Option<(&'a str, &'b str)> {
    decision
        .options
        .iter()
        .filter_map(|option| {
            let rest = strip_label(words, option)?;
            Some((option.as_str(), rest))
        })
        .max_by_key(|(option, _)| option.len())
}

fn strip_label<'b>(words: &'b str, option: &str) -> Option<&'b str> {
    let label = option.trim();
    let mut left = words.char_indices();
    for wanted in label.chars() {
        let (_, found) = left.next()?;
        if !found.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
    }
    let rest = left.as_str();
    let ends = rest.chars().next().is_none_or(char::is_whitespace);
    (ends && !label.is_empty()).then(|| rest.trim())
}
