//! The screen in memory: views as snapshots, `update` as (model, messages) -> expectations, every size, every depth.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    unreachable_pub,
    reason = "the tests' own support code is test code too"
)]

mod console;
mod fixture;
mod histories;
mod link;
mod moving;
mod podium;
mod screenshots;
mod sizes;
mod stage;
mod svg;
mod views;
