//! A message on its way out: typed for embedded clients, encoded once for all sockets.

use std::sync::{Arc, OnceLock};

use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::protocol::decode::{envelope, json_bytes};
use crate::protocol::{ServerMessage, encode_server};

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

    /// The text of its frame; made at first call, then shared.
    pub fn encoded(&self) -> Utf8Bytes {
        self.encoded.get_or_init(|| encode_server(&self.message).into()).clone()
    }

    /// Length of the frame's text, in bytes; measured without making it.
    pub fn bytes(&self) -> usize {
        match self.encoded.get() {
            Some(text) => text.len(),
            None => *self.bytes.get_or_init(|| json_bytes(&envelope(&self.message))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Ack;

    #[test]
    fn the_measured_length_is_that_of_the_text() {
        let ack = Ack { re: "c\"1\u{1}é".to_owned(), ok: true, error: None, result: None };
        let outgoing = Outgoing::new(ServerMessage::Ack(ack));
        let measured = outgoing.bytes();
        assert_eq!(measured, outgoing.encoded().len());
        assert_eq!(measured, outgoing.bytes());
    }
}
