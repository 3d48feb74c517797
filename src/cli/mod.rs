//! The command line: reads it, composes the rooms, ends with an exit code.
pub mod flags;
