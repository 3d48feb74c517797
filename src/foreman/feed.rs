//! Feed lines, toasts, speech and log lines: what people read. Texts are cleaned and cut here, once.

use super::Step;
use super::change::Change;
use super::text::{one_line, truncate};
use crate::protocol::{
    AgentId, AgentSay, DecisionId, FeedItem, FeedKind, LogEntry, LogKind, Notify, NotifyLevel, text,
};

/// Longest feed line, characters: two lines of a wide screen.
const FEED_CHARS: usize = 400;
/// Longest log entry, characters.
const LOG_CHARS: usize = 2000;
/// Longest speech, characters.
const SAY_CHARS: usize = 600;
/// Longest toast, characters.
const NOTIFY_CHARS: usize = 160;

impl Step<'_> {
    /// Adds a feed line about or from `agent`.
    pub(crate) fn feed(&mut self, kind: FeedKind, agent: Option<&str>, text: &str) {
        self.feed_to(kind, agent, None, text);
    }

    /// Adds a feed line with a recipient.
    pub(crate) fn feed_to(&mut self, kind: FeedKind, agent: Option<&str>, to: Option<&str>, line: &str) {
        let item = FeedItem {
            ts: self.now,
            kind,
            text: truncate(&text::clean(line), FEED_CHARS),
            agent_id: agent.map(AgentId::from),
            to: to.map(str::to_owned),
        };
        self.put(Change::Feed(item));
    }

    /// Shows a toast.
    pub(crate) fn notify(&mut self, level: NotifyLevel, line: &str, decision: Option<&DecisionId>) {
        let notify = Notify {
            level,
            text: truncate(&one_line(&text::clean(line)), NOTIFY_CHARS),
            decision_id: decision.cloned(),
            ts: self.now,
        };
        self.put(Change::Notify(notify));
    }

    /// Lets an agent speak; the feed repeats it.
    pub(crate) fn say(&mut self, agent: &AgentId, to: Option<&str>, words: &str) {
        let text = truncate(text::clean(words).trim(), SAY_CHARS);
        if text.is_empty() {
            return;
        }
        self.put(Change::Say(AgentSay {
            agent_id: agent.clone(),
            text: text.clone(),
            to: to.map(str::to_owned),
            ts: self.now,
        }));
        self.feed_to(FeedKind::Message, Some(agent.as_str()), to, &text);
    }

    /// Adds one line to an agent's log.
    pub(crate) fn log(&mut self, agent: &AgentId, kind: LogKind, line: &str) {
        self.log_lines(agent, vec![(kind, line.to_owned())]);
    }

    /// Adds lines to an agent's log.
    pub(crate) fn log_lines(&mut self, agent: &AgentId, lines: Vec<(LogKind, String)>) {
        let now = self.now;
        let entries: Vec<LogEntry> = lines
            .into_iter()
            .map(|(kind, line)| {
                let line = line.replace("\r\n", "\n");
                LogEntry { ts: now, kind, text: truncate(&text::clean(&line), LOG_CHARS) }
            })
            .collect();
        if !entries.is_empty() {
            self.put(Change::Log { agent: agent.clone(), entries });
        }
    }
}
