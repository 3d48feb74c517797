//! The real core in a simulated world: scenarios written by hand, and random histories from a seed.
#![expect(unreachable_pub, reason = "modules of a test binary")]

mod history;
mod invariants;
mod scenarios;
mod world;
