//! Life without a screen: what happens goes to standard error, line by line.

use super::output;
use super::show;
use crate::client::{Link, LinkEvent, Mirror};
use crate::config::Verbosity;
use crate::protocol::{Decision, DecisionStatus, FeedKind, NotifyLevel, ServerMessage};

/// Whether the terminal rings when a decision waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bell {
    Rings,
    Silent,
}

/// Prints what the team does until the link ends.
pub(super) async fn watch(mut link: Link, verbosity: Verbosity, bell: Bell) {
    let mut mirror: Option<Mirror> = None;
    loop {
        match link.next().await {
            LinkEvent::Up(snapshot) => {
                let fresh = Mirror::from_snapshot(*snapshot);
                // What was open before this life was said in another one.
                if mirror.is_none() {
                    for decision in fresh.open_decisions() {
                        output::complain(&waiting(decision, &fresh));
                    }
                }
                mirror = Some(fresh);
            }
            LinkEvent::Message(message) => {
                let Some(mirror) = &mut mirror else { continue };
                if let Some(line) = line(&message, mirror, verbosity) {
                    output::complain(&line);
                }
                if bell == Bell::Rings
                    && matches!(&message, ServerMessage::Notify(notify) if notify.level == NotifyLevel::NeedUser)
                {
                    output::ring();
                }
                mirror.apply(&message);
            }
            LinkEvent::Down { .. } => {}
            LinkEvent::Ended { .. } => return,
        }
    }
}

/// What is worth a line, before the message is folded into the mirror.
fn line(message: &ServerMessage, mirror: &Mirror, verbosity: Verbosity) -> Option<String> {
    match message {
        ServerMessage::FeedAdd { item } => {
            // Decisions get a line with their options below.
            let loud = item.kind == FeedKind::Error;
            (loud || verbosity > Verbosity::Quiet).then(|| show::feed_line(item, mirror))
        }
        ServerMessage::DecisionUpsert { decision } if decision.status == DecisionStatus::Open => {
            let known = mirror.decisions.get(&decision.id);
            let fresh = known.is_none_or(|known| known.status != DecisionStatus::Open);
            fresh.then(|| waiting(decision, mirror))
        }
        ServerMessage::ForemanStatus { status } if status.auth != mirror.foreman.auth => {
            let words = status.message.as_deref().unwrap_or_default();
            Some(format!("login {}: {words}", status.auth))
        }
        _ => None,
    }
}

/// A decision that waits, and how to answer it from a shell.
fn waiting(decision: &Decision, mirror: &Mirror) -> String {
    let how = if decision.options.is_empty() { "<text>" } else { "<number or label>" };
    format!(
        "{} waits    {}\n         answer: agentcraft-tui send '/answer {} {how}'",
        show::clock(decision.created_at),
        show::decision_line(decision, mirror),
        decision.id
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::sample;
    use crate::protocol::FeedItem;

    /// The feed and decisions that open are told; what merely changes is not. Quiet keeps errors and what waits.
    #[test]
    fn what_is_told() {
        let mirror = Mirror::from_snapshot(sample::snapshot());
        let feed = |kind| {
            let item = FeedItem { ts: 0, kind, text: "words".to_owned(), agent_id: None, to: None };
            ServerMessage::FeedAdd { item }
        };
        let told = |message: &ServerMessage, verbosity| line(message, &mirror, verbosity).is_some();
        assert!(told(&feed(FeedKind::Goal), Verbosity::Normal));
        assert!(!told(&feed(FeedKind::Goal), Verbosity::Quiet));
        assert!(told(&feed(FeedKind::Error), Verbosity::Quiet));
        let d2 = mirror.decisions["d2"].clone();
        assert!(!told(&ServerMessage::DecisionUpsert { decision: d2.clone() }, Verbosity::Normal), "it waits already");
        let d8 = Decision { id: "d8".into(), ..d2 };
        let text = line(&ServerMessage::DecisionUpsert { decision: d8 }, &mirror, Verbosity::Quiet).expect("told");
        assert!(text.contains("1 Merge") && text.contains("send '/answer d8"), "{text}");
    }
}
