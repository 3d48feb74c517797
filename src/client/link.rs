//! The link to a Foreman: in this process or over a WebSocket, the same above.
//!
//! Both kinds say hello, number their requests, and come back by themselves: a [`LinkEvent::Up`] with a snapshot
//! rebuilds everything, then messages follow.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::protocol::decode::{decode_server, encode_client};
use crate::protocol::{ClientEnvelope, ClientMessage, Hello, PROTOCOL_VERSION, ServerMessage, Snapshot};
use crate::transport::{Connector, Delivery, LinkKind};

/// First pause before a new try, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A connection that is not up by then is given up.
const CONNECT: Duration = Duration::from_secs(10);
/// Messages that wait between the link's task and its owner. Full: the task waits, and the Foreman's outbox coalesces.
const WAITING: usize = 256;

/// What a link reports.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkEvent {
    /// Connected (again): everything anew.
    Up(Box<Snapshot>),
    Message(ServerMessage),
    /// Not connected; the next try comes by itself.
    Down {
        why: String,
        retry_in_ms: u64,
    },
}

/// The link is gone for good: the Foreman of this process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Foreman has ended")]
pub struct LinkClosed;

/// A link to a Foreman.
#[derive(Debug)]
pub struct Link {
    out: mpsc::Sender<ClientEnvelope>,
    events: mpsc::Receiver<LinkEvent>,
    sent: u64,
}

impl Link {
    /// Sends a message; gives back its correlation id, which the ack will name. While the link is down the message
    /// is lost, and `Down` has said so.
    ///
    /// # Errors
    /// [`LinkClosed`] when the Foreman of this process has ended.
    pub async fn send(&mut self, message: ClientMessage) -> Result<String, LinkClosed> {
        self.sent += 1;
        let id = format!("c{}", self.sent);
        self.out.send(ClientEnvelope { id: Some(id.clone()), message }).await.map_err(|_| LinkClosed)?;
        Ok(id)
    }

    /// What comes next. After the link is gone for good: `Down`, once, then never anything.
    pub async fn next(&mut self) -> LinkEvent {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }
}

fn hello(client: &str) -> ClientEnvelope {
    ClientEnvelope {
        id: None,
        message: ClientMessage::Hello(Hello {
            mod_version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL_VERSION,
            client: Some(client.to_owned()),
        }),
    }
}

/// A snapshot is the link coming up; everything else passes.
fn event(message: ServerMessage) -> LinkEvent {
    match message {
        ServerMessage::Snapshot(snapshot) => LinkEvent::Up(snapshot),
        other => LinkEvent::Message(other),
    }
}

/// A link inside the process. Must be called within a tokio runtime.
pub fn embedded(connector: Connector, client: &str) -> Link {
    let (out, mut outgoing) = mpsc::channel::<ClientEnvelope>(WAITING);
    let (mouth, events) = mpsc::channel(WAITING);
    let client = client.to_owned();
    tokio::spawn(async move {
        let ended = |why: &str| LinkEvent::Down { why: why.to_owned(), retry_in_ms: u64::MAX };
        let Ok(connection) = connector.connect(LinkKind::Embedded).await else {
            let _gone = mouth.send(ended("the Foreman has ended")).await;
            return;
        };
        let (sender, mut receiver) = connection.split();
        if sender.send(hello(&client)).await.is_err() {
            let _gone = mouth.send(ended("the Foreman has ended")).await;
            return;
        }
        loop {
            tokio::select! {
                envelope = outgoing.recv() => match envelope {
                    Some(envelope) => if sender.send(envelope).await.is_err() {
                        break;
                    },
                    None => return,
                },
                delivery = receiver.next() => match delivery {
                    Delivery::Message(message) => {
                        if mouth.send(event(message.message().clone())).await.is_err() {
                            return;
                        }
                    }
                    Delivery::Closed(_) => break,
                },
            }
        }
        let _gone = mouth.send(ended("the Foreman has ended")).await;
    });
    Link { out, events, sent: 0 }
}

/// A link to a Foreman on a port of this machine; it comes back for ever. Must be called within a tokio runtime.
pub fn remote(port: u16, client: &str) -> Link {
    let (out, mut outgoing) = mpsc::channel::<ClientEnvelope>(WAITING);
    let (mouth, events) = mpsc::channel(WAITING);
    let client = client.to_owned();
    tokio::spawn(async move {
        let mut pause = FIRST_PAUSE;
        loop {
            let why = match dial(port).await {
                Ok(socket) => match talk(socket, &client, &mut outgoing, &mouth, &mut pause).await {
                    Some(why) => why,
                    None => return,
                },
                Err(why) => why,
            };
            let retry_in_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            if mouth.send(LinkEvent::Down { why, retry_in_ms }).await.is_err() {
                return;
            }
            // What is sent meanwhile can't arrive; it must not arrive later, when nobody expects it any more.
            let wake = tokio::time::Instant::now() + pause;
            loop {
                tokio::select! {
                    lost = outgoing.recv() => if lost.is_none() {
                        return;
                    },
                    () = tokio::time::sleep_until(wake) => break,
                }
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    });
    Link { out, events, sent: 0 }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn dial(port: u16) -> Result<Socket, String> {
    let connecting = tokio_tungstenite::connect_async(format!("ws://127.0.0.1:{port}/"));
    match tokio::time::timeout(CONNECT, connecting).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(error)) => Err(format!("no Foreman on port {port}: {error}")),
        Err(_) => Err(format!("no Foreman on port {port}: no answer")),
    }
}

/// One connection's life; gives back why it ended, or none when nobody needs the link any more.
async fn talk(
    socket: Socket,
    client: &str,
    outgoing: &mut mpsc::Receiver<ClientEnvelope>,
    mouth: &mpsc::Sender<LinkEvent>,
    pause: &mut Duration,
) -> Option<String> {
    let (mut sink, mut stream) = socket.split();
    if let Err(error) = sink.send(Message::text(encode_client(&hello(client)))).await {
        return Some(error.to_string());
    }
    loop {
        tokio::select! {
            envelope = outgoing.recv() => {
                let text = encode_client(&envelope?);
                if let Err(error) = sink.send(Message::text(text)).await {
                    return Some(error.to_string());
                }
            }
            message = stream.next() => match message {
                Some(Ok(Message::Text(text))) => match decode_server(&text) {
                    Ok(message) => {
                        let event = event(message);
                        if matches!(event, LinkEvent::Up(_)) {
                            *pause = FIRST_PAUSE;
                        }
                        mouth.send(event).await.ok()?;
                    }
                    // A newer Foreman may say more than this client knows.
                    Err(rejection) => tracing::debug!(issues = rejection.issues, "a message was not understood"),
                },
                Some(Ok(Message::Close(frame))) => {
                    let why = frame.map(|frame| frame.reason.to_string()).filter(|reason| !reason.is_empty());
                    return Some(why.unwrap_or_else(|| "the Foreman closed the connection".to_owned()));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Some(error.to_string()),
                None => return Some("the connection ended".to_owned()),
            },
        }
    }
}
