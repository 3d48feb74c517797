//! The wire as clients meet it: real sockets on a real port, byte by byte.
//!
//! Most tests talk through [`peer::Peer`], which knows nothing but a port.

mod clients;
mod core;
mod guard;
mod hostile;
mod life;
mod peer;
mod pressure;
