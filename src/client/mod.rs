//! What front-ends share: the link to a Foreman, the mirror of its state, the console's lines.
//!
//! Knows the wire and the transport, nothing of the Foreman's inside. Entry points: [`embedded`], [`remote`],
//! [`Mirror`], [`console::parse`].

pub mod complete;
pub mod console;
mod link;
mod mirror;
mod words;

pub use link::{Link, LinkClosed, LinkEvent, embedded, remote};
pub use mirror::Mirror;
