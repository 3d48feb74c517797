//! What every front-end shares: the link to a Foreman, a mirror of its state, and the console's language.
//!
//! Knows the wire and how messages cross to the Foreman; must not know the core, the runtime or any screen. Entry
//! points: [`embedded`] and [`remote`] make a [`Link`], [`Mirror::from_snapshot`] makes the view, and
//! [`console::parse`] turns a typed line into a message.

pub mod console;
pub mod link;
pub mod mirror;
#[cfg(test)]
pub(crate) mod sample;
pub mod suggest;

pub use link::{Link, LinkClosed, LinkEvent, embedded, remote};
pub use mirror::Mirror;
