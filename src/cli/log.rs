//! Where the program's own log goes: a file in the profile; without a screen also standard error.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::Verbosity;

/// A log that is larger at a start is put aside as `foreman.log.old`, bytes.
const ROTATE_BYTES: u64 = 8 * 1024 * 1024;

/// Whether standard error hears the log too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stderr {
    Silent,
    Hears,
}

/// Starts logging. Without a file the program runs on; it says so on standard error when it may.
pub(crate) fn begin(dir: &Path, verbosity: Verbosity, stderr: Stderr) {
    let level = match verbosity {
        Verbosity::Quiet => "warn",
        Verbosity::Normal => "info",
        Verbosity::Debug => "debug",
    };
    let filter = EnvFilter::try_from_env("AGENTCRAFT_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let file = open(dir);
    let to_file = file.map(|file| tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Mutex::new(file)));
    let to_stderr = (stderr == Stderr::Hears).then(|| {
        tracing_subscriber::fmt::layer().with_ansi(false).without_time().with_target(false).with_writer(std::io::stderr)
    });
    // A second start in one process (tests) keeps the first.
    let _started = tracing_subscriber::registry().with(filter).with(to_file).with(to_stderr).try_init();
}

fn open(dir: &Path) -> Option<File> {
    let path = dir.join("foreman.log");
    if path.metadata().is_ok_and(|meta| meta.len() > ROTATE_BYTES) {
        let _kept = std::fs::rename(&path, dir.join("foreman.log.old"));
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(&path).ok()
}
