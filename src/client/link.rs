//! The link to a Foreman, in this process or behind a socket: above this file there is no difference.
//!
//! A link says hello, numbers its requests, comes back after a loss (250 ms, doubling to 5 s, for ever) and begins
//! every connection with a snapshot: *a snapshot rebuilds everything, then messages*. Its work runs in a task of its
//! own, so that a screen that stalls never keeps a ping unanswered. Entry points: [`embedded`], [`remote`].

mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::wire::{Door, Heard, Wire};
use crate::protocol::{ClientEnvelope, ClientMessage, Hello, PROTOCOL_VERSION, ServerMessage, Snapshot};
use crate::transport::Connector;

/// Pause before the first try to come back, ms.
pub const FIRST_RETRY_MS: u64 = 250;
/// Longest pause between two tries, ms.
pub const LAST_RETRY_MS: u64 = 5_000;
/// A connection that is not made within this time has failed, ms.
const CONNECT_MS: u64 = 5_000;
/// A Foreman that does not send its snapshot within this time is none, ms.
const SNAPSHOT_MS: u64 = 15_000;
/// A message that can't be handed over within this time means that nobody reads, ms.
const SEND_MS: u64 = 15_000;
/// Messages that may wait for a slow screen; behind them the Foreman's outbox takes over.
const EVENTS: usize = 256;
/// Requests that may wait to be handed over; nobody types faster.
const REQUESTS: usize = 64;

/// What a link reports.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "messages are what links carry; a box for each would cost more")]
pub enum LinkEvent {
    /// Connected, or brought up to date: forget everything known before.
    Up(Box<Snapshot>),
    Message(ServerMessage),
    /// Not connected. Requests without an ack may or may not have been heard.
    Down {
        why: String,
        retry_in_ms: u64,
    },
    /// Over for good: the Foreman in this process has ended, or [`LinkCloser::close`] was called. Every further call
    /// gives it again.
    Ended {
        why: String,
    },
}

/// A request could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LinkClosed {
    #[error("not connected to the Foreman; trying again")]
    Down,
    #[error("the link to the Foreman is closed")]
    Ended,
}

/// One client of a Foreman. Dropping it closes the connection.
#[derive(Debug)]
pub struct Link {
    /// Until the first use.
    worker: Option<Worker>,
    requests: mpsc::Sender<ClientEnvelope>,
    events: mpsc::Receiver<LinkEvent>,
    up: Arc<AtomicBool>,
    closing: CancellationToken,
    last_request: u64,
}

/// Ends a link from elsewhere, for example on a signal.
#[derive(Clone, Debug)]
pub struct LinkCloser(CancellationToken);

impl LinkCloser {
    /// The link reports [`LinkEvent::Ended`] and nothing after it.
    pub fn close(&self) {
        self.0.cancel();
    }
}

/// A link to the Foreman in this process; `client_name` is told in `hello`.
pub fn embedded(connector: Connector, client_name: &str) -> Link {
    Link::new(Door::Embedded(connector), client_name)
}

/// A link to the Foreman that listens on this port of the machine; `client_name` is told in `hello`.
pub fn remote(port: u16, client_name: &str) -> Link {
    Link::new(Door::Port(port), client_name)
}

impl Link {
    fn new(door: Door, client_name: &str) -> Self {
        let (requests, asked) = mpsc::channel(REQUESTS);
        let (told, events) = mpsc::channel(EVENTS);
        let up = Arc::new(AtomicBool::new(false));
        let closing = CancellationToken::new();
        let worker = Worker {
            door,
            hello: Hello {
                mod_version: env!("CARGO_PKG_VERSION").to_owned(),
                protocol: PROTOCOL_VERSION,
                client: Some(client_name.to_owned()),
            },
            asked,
            told,
            up: up.clone(),
            closing: closing.clone(),
        };
        Self { worker: Some(worker), requests, events, up, closing, last_request: 0 }
    }

    /// Does the link's work on this runtime. Without it the work starts at the first use, on the caller's runtime.
    pub fn start_on(&mut self, runtime: &Handle) {
        if let Some(worker) = self.worker.take() {
            runtime.spawn(worker.run());
        }
    }

    /// Something that can end this link from elsewhere.
    pub fn closer(&self) -> LinkCloser {
        LinkCloser(self.closing.clone())
    }

    /// Sends a request and gives its correlation id, unique in the life of this link; the ack names it. Waits while
    /// the Foreman's inbox is full.
    pub async fn send(&mut self, message: ClientMessage) -> Result<String, LinkClosed> {
        self.start_on(&Handle::current());
        if self.closing.is_cancelled() {
            return Err(LinkClosed::Ended);
        }
        if !self.up.load(Ordering::Acquire) {
            return Err(LinkClosed::Down);
        }
        self.last_request += 1;
        let id = format!("c{}", self.last_request);
        let envelope = ClientEnvelope { id: Some(id.clone()), message };
        self.requests.send(envelope).await.map_err(|_| LinkClosed::Ended)?;
        Ok(id)
    }

    /// The next event. Safe to cancel: nothing is lost.
    pub async fn next(&mut self) -> LinkEvent {
        self.start_on(&Handle::current());
        self.events.recv().await.unwrap_or_else(|| LinkEvent::Ended { why: LinkClosed::Ended.to_string() })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// The pause after this one, ms.
fn longer(pause: u64) -> u64 {
    (pause * 2).min(LAST_RETRY_MS)
}

/// The task that owns the connection.
#[derive(Debug)]
struct Worker {
    door: Door,
    hello: Hello,
    asked: mpsc::Receiver<ClientEnvelope>,
    told: mpsc::Sender<LinkEvent>,
    up: Arc<AtomicBool>,
    closing: CancellationToken,
}

/// How a connection ended.
#[derive(Debug)]
enum Lost {
    /// Worth another try.
    Broken(String),
    /// For good.
    Ended(String),
}

impl Worker {
    async fn run(mut self) {
        let closing = self.closing.clone();
        let mut pause = FIRST_RETRY_MS;
        loop {
            let lost = tokio::select! {
                biased;
                () = closing.cancelled() => Lost::Ended("closed".to_owned()),
                lost = self.connection(&mut pause) => lost,
            };
            self.up.store(false, Ordering::Release);
            // What was asked of the lost connection is not repeated on the next: it may have been heard.
            while self.asked.try_recv().is_ok() {}
            match lost {
                Lost::Ended(why) => {
                    closing.cancel();
                    // Nobody listens any more: then nobody needs to know.
                    let _ = self.told.send(LinkEvent::Ended { why }).await;
                    return;
                }
                Lost::Broken(why) => {
                    if self.told.send(LinkEvent::Down { why, retry_in_ms: pause }).await.is_err() {
                        return;
                    }
                    tokio::select! {
                        biased;
                        () = closing.cancelled() => {}
                        () = tokio::time::sleep(Duration::from_millis(pause)) => {}
                    }
                    pause = longer(pause);
                }
            }
        }
    }

    /// One connection, from its making to its loss.
    async fn connection(&mut self, pause: &mut u64) -> Lost {
        let opened = tokio::time::timeout(Duration::from_millis(CONNECT_MS), self.door.open()).await;
        let mut wire = match opened {
            Ok(Ok(wire)) => wire,
            Ok(Err(lost)) => return lost,
            Err(_) => return Lost::Broken(format!("{} does not answer", self.door)),
        };
        let hello = ClientEnvelope { id: None, message: ClientMessage::Hello(self.hello.clone()) };
        if let Err(lost) = self.hand_over(&mut wire, hello).await {
            return lost;
        }
        let greeted_by = tokio::time::Instant::now() + Duration::from_millis(SNAPSHOT_MS);
        loop {
            let up = self.up.load(Ordering::Acquire);
            let next = tokio::select! {
                biased;
                heard = wire.next() => Next::Heard(heard),
                Some(envelope) = self.asked.recv(), if up => Next::Asked(envelope),
                () = tokio::time::sleep_until(greeted_by), if !up => Next::Silence,
            };
            let done = match next {
                Next::Heard(Heard::Message(ServerMessage::Snapshot(snapshot))) => {
                    *pause = FIRST_RETRY_MS;
                    // First, so that whoever hears of it can send at once.
                    self.up.store(true, Ordering::Release);
                    self.tell(LinkEvent::Up(snapshot)).await
                }
                Next::Heard(Heard::Message(message)) if up => self.tell(LinkEvent::Message(message)).await,
                // Before the snapshot nothing can be made of it, and the snapshot holds it.
                Next::Heard(Heard::Message(_)) => Ok(()),
                Next::Heard(Heard::Lost(lost)) => return lost,
                Next::Asked(envelope) => self.hand_over(&mut wire, envelope).await,
                Next::Silence => return Lost::Broken(format!("{} sent no snapshot", self.door)),
            };
            if let Err(lost) = done {
                return lost;
            }
        }
    }

    async fn tell(&self, event: LinkEvent) -> Result<(), Lost> {
        self.told.send(event).await.map_err(|_| Lost::Ended("nobody listens".to_owned()))
    }

    async fn hand_over(&self, wire: &mut Wire, envelope: ClientEnvelope) -> Result<(), Lost> {
        let sent = tokio::time::timeout(Duration::from_millis(SEND_MS), wire.send(envelope)).await;
        sent.unwrap_or_else(|_| Err(Lost::Broken(format!("{} does not read", self.door))))
    }
}

enum Next {
    Heard(Heard),
    Asked(ClientEnvelope),
    Silence,
}

#[cfg(test)]
mod tests;
