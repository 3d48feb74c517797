//! The core: the state of the team and the rules that move it.
//!
//! Pure: no I/O, no clock, no randomness. Knows the wire's types and the policy's; must not know tokio, git, the
//! database or any engine. Entry points: [`Foreman::handle`] and [`Foreman::next_wakeup`].

pub mod change;
pub mod effect;
pub mod input;
pub mod state;
