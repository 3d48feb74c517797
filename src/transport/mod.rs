//! How messages cross between the Foreman's loop and one client, embedded or behind a socket.
//!
//! Owns the outbox (pure: what one client still has to hear) and the connection around it. Must not know sockets, the
//! core or the loop. Entry points: [`Connector::connect`] for whoever brings a client, [`OutboxHandle`] for the loop.
//!
//! Nothing here makes the loop wait: what a client does not read is coalesced, and past a bound the loop is told
//! ([`Overflow`]) and either sends a fresh snapshot ([`OutboxHandle::resync`]) or closes ([`OutboxHandle::close`]).

mod connection;
mod outbox;
mod outgoing;

pub use connection::{
    ClientEvent, CloseReason, Connection, ConnectionReceiver, ConnectionSender, Connector, Delivery, Gone, LinkKind,
    OutboxHandle,
};
pub use outbox::{OUTBOX_BYTES, Outbox, Overflow};
pub use outgoing::Outgoing;
