//! The WebSocket door: protocol v1 for clients outside this process.
//!
//! Owns the listener on the loopback interface, the guard at the upgrade, sessions, heartbeat and the limits of all of
//! them. Must not know the core: it speaks to the loop through [`Connector`] like any embedded client. A session that
//! misbehaves or panics costs its own client only. Entry points: [`bind`], then [`Bound::serve`].

mod guard;
mod handshake;
mod peer;
mod session;
mod socket;

use std::collections::BTreeMap;
use std::future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::protocol::limits::MAX_FRAME_BYTES;
use crate::transport::Connector;

/// The port clients look for first.
pub const DEFAULT_PORT: u16 = 7878;

/// Limits and times of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// 0 = any free port.
    pub port: u16,
    /// Clients at once; each costs a few file descriptors' worth of memory and up to one outbox.
    pub max_connections: usize,
    /// Connections at once that have not completed their upgrade; past it the oldest is cut, since port probes connect
    /// and say nothing. Large enough that clients which all come back at once do not cut each other.
    pub max_handshakes: usize,
    /// Time from connecting to a complete upgrade request. Real clients send theirs at once.
    pub handshake_timeout: Duration,
    /// Between two pings.
    pub ping_interval: Duration,
    /// Intervals without one byte from a client after which it is closed: clients that lag answer no ping for many
    /// seconds.
    pub silent_intervals: u32,
    /// Largest message or frame from a client, in bytes.
    pub max_message_bytes: usize,
}

impl ServerConfig {
    /// The usual limits on a port; 0 = any free one.
    pub fn on_port(port: u16) -> Self {
        Self {
            port,
            max_connections: 64,
            max_handshakes: 128,
            handshake_timeout: Duration::from_secs(5),
            ping_interval: Duration::from_secs(15),
            silent_intervals: 4,
            max_message_bytes: MAX_FRAME_BYTES,
        }
    }
}

/// The port could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("port {0} on 127.0.0.1 or [::1] is in use by another program; choose another port, or 0 for any free one")]
    InUse(u16),
    #[error("cannot listen on 127.0.0.1 port {port}: {source}")]
    Refused { port: u16, source: io::Error },
}

/// A port that is ours; connections wait in the system's queue until [`Bound::serve`].
#[derive(Debug)]
pub struct Bound {
    config: ServerConfig,
    port: u16,
    v4: TcpListener,
    /// Missing where the machine has no IPv6 loopback.
    v6: Option<TcpListener>,
}

/// Tries for a port that is free on both addresses, when any will do.
const ANY_PORT_TRIES: u32 = 16;

/// Listens on 127.0.0.1 and, where available, on ::1 with the same port.
pub async fn bind(config: ServerConfig) -> Result<Bound, BindError> {
    let mut tries = if config.port == 0 { ANY_PORT_TRIES } else { 1 };
    loop {
        let v4 = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, config.port))).await?;
        let port = v4.local_addr().map_err(|source| BindError::Refused { port: config.port, source })?.port();
        tries -= 1;
        match listen(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await {
            Ok(v6) => return Ok(Bound { config, port, v4, v6: Some(v6) }),
            Err(BindError::InUse(_)) if tries > 0 => {}
            Err(error @ BindError::InUse(_)) => return Err(error),
            Err(BindError::Refused { source, .. }) => {
                tracing::debug!(%source, "no IPv6 loopback, listening on 127.0.0.1 only");
                return Ok(Bound { config, port, v4, v6: None });
            }
        }
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse(address.port()),
        _ => BindError::Refused { port: address.port(), source },
    })
}

impl Bound {
    /// The port that clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves clients until `stop`: then every session is closed with 1001 and cut after a second, and the task ends.
    pub fn serve(self, connector: Connector, stop: CancellationToken) -> JoinHandle<()> {
        tokio::spawn(accept_all(self, connector, stop))
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let v6 = async {
            match &self.v6 {
                Some(listener) => listener.accept().await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            accepted = self.v4.accept() => accepted,
            accepted = v6 => accepted,
        }
    }
}

/// What all sessions share.
struct Shared {
    config: ServerConfig,
    connector: Connector,
    stop: CancellationToken,
    places: Arc<Semaphore>,
    handshakes: Handshakes,
}

/// Pause after a failed accept: out of file descriptors, it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time after `stop` in which sessions end by themselves; they cut their sockets earlier.
const STOP_GRACE: Duration = Duration::from_secs(3);

async fn accept_all(bound: Bound, connector: Connector, stop: CancellationToken) {
    let shared = Arc::new(Shared {
        connector,
        stop: stop.clone(),
        places: Arc::new(Semaphore::new(bound.config.max_connections)),
        handshakes: Handshakes::new(bound.config.max_handshakes),
        config: bound.config.clone(),
    });
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(ended) = sessions.join_next(), if !sessions.is_empty() => report(ended),
            accepted = bound.accept() => match accepted {
                Ok((stream, address)) => {
                    sessions.spawn(session::attend(stream, address, shared.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                    }
                }
            },
        }
    }
    drop(bound);
    let all_ended = async {
        while let Some(ended) = sessions.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(STOP_GRACE, all_ended).await.is_err() {
        sessions.shutdown().await;
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a client's session panicked; only this client is affected");
    }
}

/// Connections whose upgrade is not complete, oldest first.
struct Handshakes {
    max: usize,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    last: u64,
    cuts: BTreeMap<u64, CancellationToken>,
}

impl Handshakes {
    fn new(max: usize) -> Self {
        Self { max, pending: Mutex::default() }
    }

    /// Takes a place among the pending, at the expense of the oldest if there is none.
    fn enter(&self) -> Handshaking<'_> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        while pending.cuts.len() >= self.max.max(1) {
            let Some((_, oldest)) = pending.cuts.pop_first() else { break };
            oldest.cancel();
        }
        pending.last += 1;
        let number = pending.last;
        let cut = CancellationToken::new();
        pending.cuts.insert(number, cut.clone());
        Handshaking { all: self, number, cut }
    }
}

/// A place among the pending; given back on drop.
struct Handshaking<'a> {
    all: &'a Handshakes,
    number: u64,
    cut: CancellationToken,
}

impl Drop for Handshaking<'_> {
    fn drop(&mut self) {
        self.all.pending.lock().unwrap_or_else(PoisonError::into_inner).cuts.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_handshake_makes_room() {
        let handshakes = Handshakes::new(2);
        let (first, second) = (handshakes.enter(), handshakes.enter());
        assert!(!first.cut.is_cancelled());
        let third = handshakes.enter();
        assert!(first.cut.is_cancelled() && !second.cut.is_cancelled());
        drop((first, third));
        let _fourth = handshakes.enter();
        assert!(!second.cut.is_cancelled());
    }

    #[tokio::test]
    async fn a_port_is_taken_once() {
        let first = bind(ServerConfig::on_port(0)).await.unwrap();
        assert_ne!(first.port(), 0);
        let second = bind(ServerConfig::on_port(first.port())).await;
        assert!(matches!(second, Err(BindError::InUse(port)) if port == first.port()));
    }
}
