//! The shell around the core: the loop, the effects, start-up, shutdown, the profile's lock.

mod clients;
mod clock;
mod core;
mod inbox;
pub mod leftovers;
mod loop_;
mod memory_files;
mod memory_watch;
mod observe;
pub mod profile;
mod runner;
