//! What a Foreman without a screen prints: what happens, one line each, on standard error.

use std::io::Write;

use crate::client::{Link, LinkEvent};
use crate::protocol::{FeedItem, NotifyLevel, ServerMessage};

/// Local time of day of an epoch, "14:03:21".
fn clock(ms: u64) -> String {
    i64::try_from(ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map(|time| time.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string())
        .unwrap_or_default()
}

fn say(line: &str) {
    // A closed standard error hears nothing.
    let _closed = writeln!(std::io::stderr(), "{line}");
}

fn feed_line(item: &FeedItem) -> String {
    format!("{} {:8} {}", clock(item.ts), item.kind.as_str(), item.text.replace('\n', " "))
}

/// Prints the feed until the Foreman ends.
pub(crate) async fn follow(mut link: Link) {
    loop {
        match link.next().await {
            LinkEvent::Up(snapshot) => {
                if let Some(message) = &snapshot.foreman.message {
                    say(&format!("{} system   {message}", clock_now()));
                }
            }
            LinkEvent::Message(ServerMessage::FeedAdd { item }) => say(&feed_line(&item)),
            LinkEvent::Message(ServerMessage::Notify(notify)) if notify.level == NotifyLevel::NeedUser => {
                let how = notify.decision_id.map(|id| format!(" (agentcraft-tui send '/answer {id} ...')"));
                say(&format!("{} needs you {}{}", clock(notify.ts), notify.text, how.unwrap_or_default()));
            }
            LinkEvent::Message(_) | LinkEvent::Down { .. } => {}
            LinkEvent::Ended { .. } => return,
        }
    }
}

fn clock_now() -> String {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).map(clock).unwrap_or_default()
}
