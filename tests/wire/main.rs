//! The wire as clients meet it: real sockets on a real port, byte by byte.
//!
//! Most tests talk through [`peer::Peer`], which knows nothing but a port.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod clients;
mod core;
mod guard;
mod hostile;
mod life;
mod peer;
mod pressure;
