//! A message on its way out: typed for embedded clients, encoded once for all sockets.

use std::sync::{Arc, OnceLock};

use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::protocol::decode::{envelope, json_bytes};
use crate::protocol::limits::MAX_FRAME_BYTES;
use crate::protocol::{ServerMessage, diff_fit, encode_server};

/// A server message shared by every client that hears it.
#[derive(Debug)]
pub struct Outgoing {
    message: ServerMessage,
    encoded: OnceLock<Utf8Bytes>,
    bytes: OnceLock<usize>,
}

impl Outgoing {
    pub fn new(message: ServerMessage) -> Arc<Self> {
        Arc::new(Self { message, encoded: OnceLock::new(), bytes: OnceLock::new() })
    }

    pub fn message(&self) -> &ServerMessage {
        &self.message
    }

    /// The text of its frame; made at first call, then shared. A diff over the frame limit is shortened to it here, so
    /// that only sockets lose by it.
    pub fn encoded(&self) -> Utf8Bytes {
        self.encoded.get_or_init(|| encode(&self.message).into()).clone()
    }

    /// Length of the message as text, in bytes; measured without making it, and before any shortening.
    pub fn bytes(&self) -> usize {
        // The same at every call, for an outbox adds it and takes it away again.
        *self.bytes.get_or_init(|| json_bytes(&envelope(&self.message)))
    }
}

fn encode(message: &ServerMessage) -> String {
    let text = encode_server(message);
    if text.len() <= MAX_FRAME_BYTES {
        return text;
    }
    match message {
        ServerMessage::Diff(diff) => match diff_fit::fit(diff) {
            Some(fitted) => encode_server(&ServerMessage::Diff(Box::new(fitted))),
            None => text,
        },
        // Snapshots come fitted; everything else is one entity or a few lines, whose texts their makers bound.
        ServerMessage::Snapshot(_)
        | ServerMessage::AgentUpsert { .. }
        | ServerMessage::AgentLog { .. }
        | ServerMessage::AgentSay(_)
        | ServerMessage::TaskUpsert { .. }
        | ServerMessage::DecisionUpsert { .. }
        | ServerMessage::RepoUpsert { .. }
        | ServerMessage::MemoryUpsert { .. }
        | ServerMessage::GoalUpsert { .. }
        | ServerMessage::FeedAdd { .. }
        | ServerMessage::Notify(_)
        | ServerMessage::ForemanStatus { .. }
        | ServerMessage::Ack(_)
        | ServerMessage::Error(_) => {
            tracing::warn!(bytes = text.len(), "a message over the frame limit is sent: some clients will close");
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Ack, Diff, DiffFile, DiffFileStatus, DiffStats};
    use crate::transport::Outbox;

    #[test]
    fn the_measured_length_is_that_of_the_text() {
        let ack = Ack { re: "c\"1\u{1}é".to_owned(), ok: true, error: None, result: None };
        let outgoing = Outgoing::new(ServerMessage::Ack(ack));
        let measured = outgoing.bytes();
        assert_eq!(measured, outgoing.encoded().len());
        assert_eq!(measured, outgoing.bytes());
    }

    /// Clients in the field close the connection over a larger frame. An outbox counts the same bytes in and out.
    #[test]
    fn a_diff_over_the_frame_limit_is_shortened_for_sockets_only() {
        let file = |number| DiffFile {
            path: format!("{number}/{}", "x".repeat(1000)),
            old_path: None,
            status: DiffFileStatus::Added,
            binary: false,
            additions: 1,
            deletions: 0,
            hunks: Vec::new(),
        };
        let outgoing = Outgoing::new(ServerMessage::Diff(Box::new(Diff {
            request_id: "r1".to_owned(),
            repo_id: "demo".into(),
            worktree: "kit-t1".into(),
            base: None,
            branch: None,
            files: (0..5_000).map(file).collect(),
            stats: DiffStats::default(),
            truncated: false,
            error: None,
        })));
        let mut outbox = Outbox::new(usize::MAX);
        outbox.push(outgoing.clone()).unwrap();
        let text = outgoing.encoded();
        assert!(text.len() <= MAX_FRAME_BYTES && text.contains("\"truncated\":true"), "{}", text.len());
        let ServerMessage::Diff(whole) = outgoing.message() else { panic!("another message") };
        assert_eq!(whole.files.len(), 5_000);
        outbox.pop().unwrap();
        assert_eq!(outbox.bytes(), 0);
    }
}
