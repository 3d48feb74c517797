//! Text of a frame to a message and back.
//!
//! Decoding is strict on types, enums, ranges and lengths, ignores unknown fields, and says everything that is wrong at
//! once. Knows nothing of sockets.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::contract::{Sender, contract, head};
use super::limits::{CORRELATION_ID_CHARS, MAX_FRAME_BYTES};
use super::shape::{Issues, Shape, quoted};
use super::{ClientEnvelope, ClientMessage, PROTOCOL_VERSION, ServerMessage};

/// A message that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bad message: {issues}")]
pub struct Rejection {
    /// The correlation id, if the text was an object with a usable one: the sender is owed a failed `ack`.
    pub re: Option<String>,
    /// At most five, `path: what is wrong`, joined by "; "; `(root)` is the message itself.
    pub issues: String,
}

/// Decodes what a client sent.
pub fn decode_client(text: &str) -> Result<ClientEnvelope, Rejection> {
    if text.len() > MAX_FRAME_BYTES {
        let issues = format!("(root): {} bytes are over the limit of {MAX_FRAME_BYTES}", text.len());
        return Err(Rejection { re: None, issues });
    }
    let (id, message) = decode::<ClientMessage>(text, Sender::Client)?;
    Ok(ClientEnvelope { id, message })
}

/// Decodes what a Foreman sent. Unknown fields are ignored; an unknown type is a rejection, which a client skips.
pub fn decode_server(text: &str) -> Result<ServerMessage, Rejection> {
    decode::<ServerMessage>(text, Sender::Foreman).map(|(_, message)| message)
}

/// The frame's text of a Foreman's message.
pub fn encode_server(message: &ServerMessage) -> String {
    json(&envelope(message))
}

/// The frame's text of a client's message.
pub fn encode_client(envelope: &ClientEnvelope) -> String {
    json(&client_envelope(envelope))
}

#[derive(Serialize)]
struct Envelope<'a, M> {
    v: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(flatten)]
    message: &'a M,
}

/// A Foreman's message with its envelope, to be written in whatever form.
pub(crate) fn envelope(message: &ServerMessage) -> impl Serialize {
    Envelope { v: PROTOCOL_VERSION, id: None, message }
}

/// A client's message with its envelope.
pub(crate) fn client_envelope(client: &ClientEnvelope) -> impl Serialize {
    Envelope { v: PROTOCOL_VERSION, id: client.id.as_deref(), message: &client.message }
}

/// Length of a value as JSON, in bytes; nothing is kept while counting.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting can't fail, and our types always encode.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

fn json(message: &impl Serialize) -> String {
    // Our types have string keys and finite numbers only, so this can't fail; were it to, the peer gets valid JSON.
    serde_json::to_string(message).unwrap_or_else(|error| {
        serde_json::json!({ "v": 1, "type": "error", "message": error.to_string() }).to_string()
    })
}

fn decode<M: DeserializeOwned>(text: &str, from: Sender) -> Result<(Option<String>, M), Rejection> {
    let invalid = |error: serde_json::Error| Rejection { re: None, issues: format!("invalid JSON: {error}") };
    // First the envelope alone: the shape of the rest hangs on the type, which may come last.
    let envelope = head().read(text).map_err(invalid)?;
    let re = envelope.get("id").and_then(Value::as_str).filter(|id| is_usable(id)).map(str::to_owned);
    let mut issues = Issues::default();
    let message = match shape_of(&envelope, from, &mut issues) {
        Some(shape) => {
            let value = shape.read(text).map_err(invalid)?;
            shape.check(&value, &mut issues);
            value
        }
        None => Value::Null,
    };
    if !issues.is_empty() {
        return Err(Rejection { re, issues: issues.join() });
    }
    match serde_json::from_value(message) {
        Ok(message) => Ok((re, message)),
        Err(error) => Err(Rejection { re, issues: format!("(root): {error}") }),
    }
}

/// The shape that a message's type asks for; without one, what is wrong with the envelope is in `issues`.
fn shape_of(envelope: &Value, from: Sender, issues: &mut Issues) -> Option<&'static Shape> {
    let Value::Object(fields) = envelope else {
        head().check(envelope, issues);
        return None;
    };
    let name = fields.get("type");
    if let Some(shape) = name.and_then(Value::as_str).and_then(|name| contract().shapes(from).get(name)) {
        return Some(shape);
    }
    match fields.get("v") {
        Some(_) => head().check(&serde_json::json!({ "v": fields.get("v") }), issues),
        None => issues.at_field("v", |issues| issues.add("missing, expected the number 1")),
    }
    issues.at_field("type", |issues| match name {
        Some(Value::String(name)) => issues.add(format!("unknown message type {}", quoted(name))),
        Some(_) => issues.add("expected a string"),
        None => issues.add("missing, expected a message type"),
    });
    None
}

/// Fit to be echoed in an `ack`: an empty id matches nothing, a huge one would be sent back twice.
fn is_usable(id: &str) -> bool {
    !id.is_empty() && (id.len() <= CORRELATION_ID_CHARS || id.chars().count() <= CORRELATION_ID_CHARS)
}

#[cfg(test)]
mod tests;
