//! The whole team in one process: real loop, store, git and simulated engine; a client over the embedded link.
#![expect(unreachable_pub, reason = "modules of a test binary")]

mod demo;
mod studio;
