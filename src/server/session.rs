//! One client from its TCP connection to its end.
//!
//! Three things go on at once: reading (decode, then wait for a place in the loop's inbox: a client that floods waits
//! for its own turn), writing (drain the outbox), and the heartbeat. The first to end ends the session. Messages that
//! are not valid are answered here; the loop never sees them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};

use super::handshake::{self, Asked, Refusal};
use super::peer::{self, Owner};
use super::socket::{Life, Socket};
use super::{ServerConfig, Shared};
use crate::protocol::{Ack, ErrorReply, Rejection, ServerMessage, decode_client};
use crate::transport::{CloseReason, ConnectionReceiver, ConnectionSender, Delivery, LinkKind, Outgoing, Overflow};

type Wire = WebSocketStream<Socket<TcpStream>>;

/// Time for the last words when the Foreman ends, or the client seems dead.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// Time for the last words otherwise: a client that lags has to read what the system still holds before it sees why.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// Time in which a refused client may still be sending: closing at once would destroy the answer it has not read.
const REFUSAL_GRACE: Duration = Duration::from_secs(1);
/// Read and write buffers of one client, in bytes; messages may be larger.
const BUFFER_BYTES: usize = 16 * 1024;

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client closed, or the connection broke.
    Left,
    /// The Foreman ends.
    Shutdown,
    Overflow,
    /// No sign of life for several intervals.
    Silent,
    TooLarge,
    NotUtf8,
    /// Not what RFC 6455 allows.
    Protocol,
}

impl End {
    fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Left => return None,
            Self::Shutdown => (CloseCode::Away, "foreman shutting down"),
            Self::Overflow => (CloseCode::Policy, "too far behind: read faster, then connect again for a snapshot"),
            Self::Silent => (CloseCode::Away, "no sign of life"),
            Self::TooLarge => (CloseCode::Size, "message over the limit of 4 MiB"),
            Self::NotUtf8 => (CloseCode::Invalid, "text is not UTF-8"),
            Self::Protocol => (CloseCode::Protocol, "not a valid WebSocket frame"),
        };
        Some(CloseFrame { code, reason: reason.into() })
    }

    fn grace(self) -> Duration {
        match self {
            // A client that gives no sign of life will hardly say goodbye.
            Self::Shutdown | Self::Silent => SHUTDOWN_GRACE,
            Self::Left | Self::Overflow | Self::TooLarge | Self::NotUtf8 | Self::Protocol => CLOSE_GRACE,
        }
    }
}

/// Attends to one connection until it ends.
pub(super) async fn attend(mut stream: TcpStream, address: SocketAddr, shared: Arc<Shared>) {
    let handshaking = shared.handshakes.enter();
    let shaken = tokio::select! {
        () = shared.stop.cancelled() => return,
        () = handshaking.cut.cancelled() => return,
        shaken = tokio::time::timeout(shared.config.handshake_timeout, greet(&mut stream, address, &shared)) => shaken,
    };
    // Time-outs and broken connections end here without a word: port probes are everyday.
    let Ok(Ok(greeted)) = shaken else { return };
    drop(handshaking);
    match greeted {
        Greeted::Client { rest, place } => {
            Box::pin(serve(stream, rest, &shared)).await;
            drop(place);
        }
        Greeted::Refused(refusal) => {
            tracing::debug!(%address, status = refusal.status, "connection refused");
            let parting = async {
                stream.shutdown().await?;
                drain(&mut stream).await
            };
            // Whatever goes wrong, the connection ends now.
            let _ = tokio::time::timeout(REFUSAL_GRACE, parting).await;
        }
        Greeted::Left => {}
    }
}

enum Greeted {
    Client { rest: Vec<u8>, place: OwnedSemaphorePermit },
    Refused(Refusal),
    Left,
}

async fn greet(stream: &mut TcpStream, address: SocketAddr, shared: &Shared) -> io::Result<Greeted> {
    let local = stream.local_addr()?;
    let owner = tokio::task::spawn_blocking(move || peer::owner(address, local)).await.unwrap_or(Owner::Unknown);
    let refusal = match owner {
        Owner::Ours => match handshake::read(stream).await? {
            Asked::Upgrade { accept_key, rest } => match shared.places.clone().try_acquire_owned() {
                Ok(place) => {
                    handshake::accept(stream, &accept_key).await?;
                    return Ok(Greeted::Client { rest, place });
                }
                Err(_) => Refusal::unavailable("too many clients are connected"),
            },
            Asked::Wrong(refusal) => refusal,
            Asked::Nothing => return Ok(Greeted::Left),
        },
        Owner::Other(uid) => {
            tracing::warn!(%address, uid, "a connection of another user of this machine was refused");
            Refusal::forbidden("this Foreman belongs to another user")
        }
        Owner::Unknown => Refusal::forbidden("the owner of this connection is not known"),
    };
    handshake::refuse(stream, &refusal).await?;
    Ok(Greeted::Refused(refusal))
}

async fn serve(stream: TcpStream, rest: Vec<u8>, shared: &Shared) {
    // Small messages leave at once; a failure costs only delay.
    let _ = stream.set_nodelay(true);
    let life = Arc::new(Life::default());
    let socket = Socket::new(stream, life.clone());
    let limits = limits(&shared.config);
    let wire = WebSocketStream::from_partially_read(socket, rest, Role::Server, Some(limits)).await;
    let (mut sink, mut source) = wire.split();
    let connection = tokio::select! {
        () = shared.stop.cancelled() => None,
        connection = shared.connector.connect(LinkKind::Socket) => connection.ok(),
    };
    let Some(connection) = connection else {
        if let Ok(wire) = sink.reunite(source) {
            part(wire, End::Shutdown, None).await;
        }
        return;
    };
    let client = connection.id().0;
    tracing::debug!(client, "connected");
    let (sender, mut receiver) = connection.split();
    let ping = Notify::new();
    let end = tokio::select! {
        () = shared.stop.cancelled() => End::Shutdown,
        end = read(&mut source, &sender, &life) => end,
        end = write(&mut sink, &mut receiver, &ping) => end,
        end = watch(&life, &ping, &shared.config) => end,
    };
    tracing::debug!(client, ?end, "session ended");
    // Dropping both halves tells the loop now; a shutdown has the rest to deliver.
    drop(sender);
    let rest = (end == End::Shutdown).then_some(receiver);
    if let Ok(wire) = sink.reunite(source) {
        part(wire, end, rest).await;
    }
}

fn limits(config: &ServerConfig) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(config.max_message_bytes))
        .max_frame_size(Some(config.max_message_bytes))
}

/// Reads messages until the client leaves or breaks a rule.
async fn read(source: &mut SplitStream<Wire>, sender: &ConnectionSender, life: &Life) -> End {
    while let Some(message) = source.next().await {
        let answered = match message {
            Ok(Message::Text(text)) => match decode_client(&text) {
                Ok(envelope) => {
                    life.set_held_up(true);
                    let sent = sender.send(envelope).await;
                    life.set_held_up(false);
                    match sent {
                        Ok(()) => Ok(()),
                        Err(_) => return End::Shutdown,
                    }
                }
                Err(rejection) => reject(sender, rejection),
            },
            Ok(Message::Binary(_)) => {
                reply(sender, ServerMessage::Error(error("binary frames are not supported".to_owned(), None)))
            }
            // Pings are answered by the library at its next write or read.
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => Ok(()),
            Ok(Message::Close(_)) => return End::Left,
            Err(error) => return broken(&error),
        };
        if answered.is_err() {
            return End::Overflow;
        }
    }
    End::Left
}

fn broken(error: &Error) -> End {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. } | CapacityError::TooManyHeaders) => End::TooLarge,
        Error::Utf8(_) => End::NotUtf8,
        Error::Protocol(_) | Error::AttackAttempt => End::Protocol,
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Io(_)
        | Error::Tls(_)
        | Error::WriteBufferFull(_)
        | Error::Url(_)
        | Error::Http(_)
        | Error::HttpFormat(_) => End::Left,
    }
}

/// First the `error`, then, if the message had an id, its failed `ack`.
fn reject(sender: &ConnectionSender, rejection: Rejection) -> Result<(), Overflow> {
    let message = rejection.to_string();
    let Rejection { re, issues } = rejection;
    reply(sender, ServerMessage::Error(error(message, re.clone())))?;
    match re {
        Some(re) => reply(sender, ServerMessage::Ack(Ack { re, ok: false, error: Some(issues), result: None })),
        None => Ok(()),
    }
}

fn error(message: String, re: Option<String>) -> ErrorReply {
    ErrorReply { message, re }
}

fn reply(sender: &ConnectionSender, message: ServerMessage) -> Result<(), Overflow> {
    sender.reply(Outgoing::new(message))
}

/// Writes what the outbox holds, and pings when due, until the loop closes the connection.
async fn write(sink: &mut SplitSink<Wire, Message>, receiver: &mut ConnectionReceiver, ping: &Notify) -> End {
    loop {
        let message = tokio::select! {
            delivery = receiver.next() => match delivery {
                Delivery::Message(message) => Message::Text(message.encoded()),
                Delivery::Closed(reason) => return ended(reason),
            },
            () = ping.notified() => Message::Ping(Bytes::new()),
        };
        let sent = tokio::select! {
            sent = sink.send(message) => sent,
            // A shutdown lets the write go on; the session's own time limit ends it.
            CloseReason::Overflow = receiver.closed() => return End::Overflow,
        };
        if sent.is_err() {
            return End::Left;
        }
    }
}

fn ended(reason: CloseReason) -> End {
    match reason {
        CloseReason::Overflow => End::Overflow,
        CloseReason::Shutdown => End::Shutdown,
    }
}

/// Asks for a ping at each interval; ends after several of them without a sign of life.
async fn watch(life: &Life, ping: &Notify, config: &ServerConfig) -> End {
    let mut silent = 0;
    let mut signs = life.signs();
    loop {
        tokio::time::sleep(config.ping_interval).await;
        let now = life.signs();
        silent = if now == signs && !life.is_held_up() { silent + 1 } else { 0 };
        signs = now;
        if silent >= config.silent_intervals {
            return End::Silent;
        }
        ping.notify_one();
    }
}

/// Says goodbye within the time that the reason allows, then cuts.
async fn part(mut wire: Wire, end: End, rest: Option<ConnectionReceiver>) {
    let parting = async {
        if let Some(mut rest) = rest {
            while let Some(message) = rest.take_waiting() {
                wire.send(Message::Text(message.encoded())).await?;
            }
        }
        match end.frame() {
            Some(frame) => wire.close(Some(frame)).await?,
            None => wire.flush().await?,
        }
        // Until the client has said goodbye too, or nothing more can be understood.
        while let Some(Ok(_)) = wire.next().await {}
        let socket = wire.get_mut();
        socket.shutdown().await.map_err(Error::Io)?;
        drain(socket).await.map_err(Error::Io)
    };
    // The connection ends now in any case.
    let _ = tokio::time::timeout(end.grace(), parting).await;
}

/// Reads and forgets until the peer closes: a socket closed over unread bytes is reset, and the peer loses what it has
/// not read yet.
async fn drain(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}
