//! One client's connection to the Foreman's loop.
//!
//! Towards the loop: a sender into the bounded inbox, where a client that floods waits for its own turn. From the loop:
//! an [`Outbox`] that the loop fills without ever waiting. Dropping the connection tells the loop.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::runtime;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::outbox::{OUTBOX_BYTES, Outbox, Overflow};
use super::outgoing::Outgoing;
use crate::protocol::{ClientEnvelope, ClientId};

/// Where a client sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// In this process: past the outbox's bound it gets a fresh snapshot.
    Embedded,
    /// Behind a socket: past the bound it is closed, and made whole when it comes back.
    Socket,
}

/// What the loop receives from connections.
#[derive(Debug)]
pub enum ClientEvent {
    Opened { client: ClientId, kind: LinkKind, outbox: OutboxHandle },
    Message { client: ClientId, envelope: ClientEnvelope },
    Closed { client: ClientId },
}

/// The Foreman ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Foreman has ended")]
pub struct Gone;

/// Why the loop closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The client did not read; what still waited is dropped.
    Overflow,
    /// The Foreman ends; what still waits is delivered first.
    Shutdown,
}

/// What a connection hears.
#[derive(Clone, Debug)]
pub enum Delivery {
    Message(Arc<Outgoing>),
    /// The last one; every further call gives it again.
    Closed(CloseReason),
}

/// Makes connections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Connector {
    inbox: mpsc::Sender<ClientEvent>,
    last_id: Arc<AtomicU64>,
    outbox_bytes: usize,
}

impl Connector {
    /// Connections of this connector report to `inbox`. There is one connector (and its clones) per Foreman: ids are
    /// counted in it.
    pub fn new(inbox: mpsc::Sender<ClientEvent>) -> Self {
        Self::with_outbox_bytes(inbox, OUTBOX_BYTES)
    }

    /// As [`Connector::new`], with a bound of the outboxes in bytes.
    pub fn with_outbox_bytes(inbox: mpsc::Sender<ClientEvent>, outbox_bytes: usize) -> Self {
        Self { inbox, last_id: Arc::default(), outbox_bytes }
    }

    /// Connects a client and tells the loop; waits for a place in the inbox.
    pub async fn connect(&self, kind: LinkKind) -> Result<Connection, Gone> {
        let client = ClientId(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        let shared = Arc::new(Shared {
            outbox: Mutex::new(Outbox::new(self.outbox_bytes)),
            filled: Notify::new(),
            closed: OnceLock::new(),
            closing: CancellationToken::new(),
            abandoned: AtomicBool::new(false),
        });
        let outbox = OutboxHandle { producer: Arc::new(Producer(shared.clone())) };
        self.inbox.send(ClientEvent::Opened { client, kind, outbox }).await.map_err(|_| Gone)?;
        let end = Arc::new(ClientEnd {
            client,
            inbox: self.inbox.clone(),
            shared,
            runtime: runtime::Handle::try_current().ok(),
        });
        Ok(Connection { sender: ConnectionSender { end: end.clone() }, receiver: ConnectionReceiver { end } })
    }
}

/// A client's end. Dropping it (both halves, after [`Connection::split`]) tells the loop `Closed`.
#[derive(Debug)]
pub struct Connection {
    sender: ConnectionSender,
    receiver: ConnectionReceiver,
}

impl Connection {
    pub fn id(&self) -> ClientId {
        self.sender.id()
    }

    /// Sends a message to the loop; waits for a place in the inbox.
    pub async fn send(&self, envelope: ClientEnvelope) -> Result<(), Gone> {
        self.sender.send(envelope).await
    }

    /// The next delivery. Safe to cancel: nothing is lost.
    pub async fn next(&mut self) -> Delivery {
        self.receiver.next().await
    }

    /// One half for each direction.
    pub fn split(self) -> (ConnectionSender, ConnectionReceiver) {
        (self.sender, self.receiver)
    }
}

/// The half that sends.
#[derive(Clone, Debug)]
pub struct ConnectionSender {
    end: Arc<ClientEnd>,
}

impl ConnectionSender {
    pub fn id(&self) -> ClientId {
        self.end.client
    }

    /// Sends a message to the loop; waits for a place in the inbox.
    pub async fn send(&self, envelope: ClientEnvelope) -> Result<(), Gone> {
        let client = self.end.client;
        self.end.inbox.send(ClientEvent::Message { client, envelope }).await.map_err(|_| Gone)
    }

    /// Puts a reply of the session itself (to a message that never reaches the loop) into this client's own outbox.
    pub fn reply(&self, message: Arc<Outgoing>) -> Result<(), Overflow> {
        self.end.shared.push(message)
    }
}

/// The half that receives.
#[derive(Debug)]
pub struct ConnectionReceiver {
    end: Arc<ClientEnd>,
}

impl ConnectionReceiver {
    /// The next delivery. Safe to cancel: nothing is lost.
    pub async fn next(&mut self) -> Delivery {
        let shared = &self.end.shared;
        loop {
            let closed = shared.closed.get().copied();
            if closed == Some(CloseReason::Overflow) {
                return Delivery::Closed(CloseReason::Overflow);
            }
            if let Some(message) = shared.outbox().pop() {
                return Delivery::Message(message);
            }
            if let Some(reason) = closed {
                return Delivery::Closed(reason);
            }
            shared.filled.notified().await;
        }
    }

    /// What waits in the outbox right now, one by one: for a session that delivers the rest before it ends.
    pub fn take_waiting(&mut self) -> Option<Arc<Outgoing>> {
        self.end.shared.outbox().pop()
    }

    /// Waits until the loop closes this connection, whatever still waits in the outbox: for a session that is stuck in
    /// a write.
    pub async fn closed(&self) -> CloseReason {
        self.end.shared.closing.cancelled().await;
        self.end.shared.closed.get().copied().unwrap_or(CloseReason::Shutdown)
    }
}

/// The loop's end: fills a client's outbox. Never blocks. When the last clone is dropped, the client is closed as by
/// a shutdown.
#[derive(Clone)]
pub struct OutboxHandle {
    producer: Arc<Producer>,
}

impl OutboxHandle {
    /// Puts a message into the outbox. On overflow the loop must [`resync`](Self::resync) an embedded client or
    /// [`close`](Self::close) a socket; until then nothing more is taken. A client that is gone takes everything.
    pub fn push(&self, message: Arc<Outgoing>) -> Result<(), Overflow> {
        self.producer.0.push(message)
    }

    /// Replaces what waits by a snapshot; see [`Outbox::resync`].
    pub fn resync(&self, snapshot: Arc<Outgoing>) {
        let shared = &self.producer.0;
        if !shared.is_abandoned() {
            shared.outbox().resync(snapshot);
            shared.filled.notify_one();
        }
    }

    /// Closes the connection; the first reason counts.
    pub fn close(&self, reason: CloseReason) {
        self.producer.0.close(reason);
    }
}

impl fmt::Debug for OutboxHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxHandle").field("closed", &self.producer.0.closed.get()).finish_non_exhaustive()
    }
}

/// What both ends share.
#[derive(Debug)]
struct Shared {
    outbox: Mutex<Outbox>,
    /// One permit: something was pushed or closed since the receiver looked.
    filled: Notify,
    closed: OnceLock<CloseReason>,
    closing: CancellationToken,
    /// The client's end was dropped: nobody will read any more.
    abandoned: AtomicBool,
}

impl Shared {
    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        // The outbox keeps no half-done change across a panic that matters more than going on.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, message: Arc<Outgoing>) -> Result<(), Overflow> {
        if self.is_abandoned() {
            return Ok(());
        }
        let pushed = self.outbox().push(message);
        self.filled.notify_one();
        pushed
    }

    fn close(&self, reason: CloseReason) {
        // A second close keeps the first reason.
        let _ = self.closed.set(reason);
        self.closing.cancel();
        self.filled.notify_one();
    }

    fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }
}

/// Ends the connection with the last handle of the loop.
#[derive(Debug)]
struct Producer(Arc<Shared>);

impl Drop for Producer {
    fn drop(&mut self) {
        self.0.close(CloseReason::Shutdown);
    }
}

/// Tells the loop when the client's last half is dropped.
#[derive(Debug)]
struct ClientEnd {
    client: ClientId,
    inbox: mpsc::Sender<ClientEvent>,
    shared: Arc<Shared>,
    /// Where to wait for a place in a full inbox.
    runtime: Option<runtime::Handle>,
}

impl Drop for ClientEnd {
    fn drop(&mut self) {
        self.shared.abandoned.store(true, Ordering::Release);
        self.shared.outbox().clear();
        match self.inbox.try_send(ClientEvent::Closed { client: self.client }) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(event)) => {
                // Without a runtime the loop keeps an entry that takes everything and holds nothing.
                if let Some(runtime) = &self.runtime {
                    let inbox = self.inbox.clone();
                    runtime.spawn(async move {
                        let _ = inbox.send(event).await;
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
