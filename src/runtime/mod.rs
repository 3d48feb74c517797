//! The shell around the core: the loop, the effects, start-up, shutdown, the profile's lock.

mod memory_files;
