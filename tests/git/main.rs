//! The git room against real git in temporary directories.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stderr)]

mod collecting;
mod diffs;
mod guard;
mod inspecting;
mod kills;
mod lab;
mod merging;
mod preparing;
mod refusals;
