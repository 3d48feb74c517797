//! AgentCraft in a terminal: a team of coding agents works on your git repositories, you stay in charge.
//!
//! The map (see `docs/architecture.md`): `protocol` wire types, `turn` what core and engines say to each other,
//! `policy` judging tool calls, `foreman` the pure core.

pub mod client;
pub mod foreman;
pub mod policy;
pub mod protocol;
pub mod transport;
pub mod tui;
pub mod turn;
