//! One live connection: a channel into this process, or a WebSocket.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::Lost;
use crate::protocol::{ClientEnvelope, ServerMessage, decode_server, encode_client};
use crate::transport::{CloseReason, Connection, Connector, Delivery, LinkKind};

/// A connection that is silent for so long is dead, ms: a Foreman pings every 15 s.
const SILENCE_MS: u64 = 60_000;
/// Largest message taken from a Foreman, bytes: some way above what one sends (4 MiB), against a stray service.
const MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Where a Foreman can be reached.
#[derive(Debug)]
pub(super) enum Door {
    Embedded(Connector),
    Port(u16),
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded(_) => f.write_str("the Foreman"),
            Self::Port(port) => write!(f, "port {port}"),
        }
    }
}

impl Door {
    /// Connects, without hello.
    pub(super) async fn open(&self) -> Result<Wire, Lost> {
        match self {
            Self::Embedded(connector) => match connector.connect(LinkKind::Embedded).await {
                Ok(connection) => Ok(Wire::Embedded(connection)),
                Err(gone) => Err(Lost::Ended(gone.to_string())),
            },
            Self::Port(port) => socket(*port).await.map(|socket| Wire::Socket(Box::new(socket))),
        }
    }
}

async fn socket(port: u16) -> Result<WebSocketStream<TcpStream>, Lost> {
    let broken = |what: &dyn fmt::Display| Lost::Broken(format!("port {port}: {what}"));
    let stream = match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
        Ok(stream) => stream,
        Err(first) => TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.map_err(|_| broken(&first))?,
    };
    stream.set_nodelay(true).map_err(|error| broken(&error))?;
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES)).max_frame_size(Some(MESSAGE_BYTES));
    let (socket, _) = client_async_with_config(format!("ws://127.0.0.1:{port}/"), stream, Some(config))
        .await
        .map_err(|error| broken(&error))?;
    Ok(socket)
}

/// One live connection.
#[derive(Debug)]
pub(super) enum Wire {
    Embedded(Connection),
    Socket(Box<WebSocketStream<TcpStream>>),
}

/// What came over it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "messages are what is heard; a box for each would cost more")]
pub(super) enum Heard {
    Message(ServerMessage),
    Lost(Lost),
}

impl Wire {
    pub(super) async fn send(&mut self, envelope: ClientEnvelope) -> Result<(), Lost> {
        match self {
            Self::Embedded(connection) => connection.send(envelope).await.map_err(|gone| Lost::Ended(gone.to_string())),
            Self::Socket(socket) => socket
                .send(Message::text(encode_client(&envelope)))
                .await
                .map_err(|error| Lost::Broken(error.to_string())),
        }
    }

    /// The next message, or the end. Safe to cancel.
    pub(super) async fn next(&mut self) -> Heard {
        match self {
            Self::Embedded(connection) => match connection.next().await {
                Delivery::Message(outgoing) => Heard::Message(outgoing.message().clone()),
                Delivery::Closed(CloseReason::Shutdown) => Heard::Lost(Lost::Ended("the Foreman has ended".to_owned())),
                Delivery::Closed(CloseReason::Overflow) => {
                    Heard::Lost(Lost::Broken("this screen was too slow".to_owned()))
                }
            },
            Self::Socket(socket) => loop {
                let heard = tokio::time::timeout(Duration::from_millis(SILENCE_MS), socket.next()).await;
                let message = match heard {
                    Err(_) => return Heard::Lost(Lost::Broken("the Foreman is silent".to_owned())),
                    Ok(None) => return Heard::Lost(Lost::Broken("the Foreman closed the connection".to_owned())),
                    Ok(Some(Err(error))) => return Heard::Lost(Lost::Broken(error.to_string())),
                    Ok(Some(Ok(message))) => message,
                };
                match message {
                    Message::Text(text) => match decode_server(text.as_str()) {
                        Ok(message) => return Heard::Message(message),
                        // A newer Foreman may say more than we understand.
                        Err(rejection) => tracing::warn!(issues = %rejection.issues, "message not understood"),
                    },
                    Message::Close(Some(frame)) if !frame.reason.is_empty() => {
                        return Heard::Lost(Lost::Broken(frame.reason.to_string()));
                    }
                    Message::Close(_) => {
                        return Heard::Lost(Lost::Broken("the Foreman closed the connection".to_owned()));
                    }
                    Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
                }
            },
        }
    }
}
