//! AgentCraft in a terminal: a team of coding agents works on your git repositories, you stay in charge.
//!
//! The map (see `docs/architecture.md`): `protocol` wire types, `turn` what core and engines say to each other,
//! `policy` judging tool calls, `foreman` the pure core, `store` the database, `git` repositories and worktrees,
//! `engine` who plays the agents, `transport` and `server` how clients are connected, `runtime` the shell around the
//! core, `client` what front-ends share, `tui` the screen, `cli` and `config` what composes them.

pub mod client;
pub mod engine;
pub mod foreman;
pub mod git;
pub mod policy;
pub mod protocol;
pub mod runtime;
pub mod server;
pub mod store;
pub mod transport;
pub mod tui;
pub mod turn;
