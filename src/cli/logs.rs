//! Logs: to a file of the profile, and in headless life also to standard error.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use super::error::CliError;
use crate::config::Verbosity;

/// Size at which a log file makes room, bytes. One older file is kept.
const FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Where else than in the file the log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// Nowhere: a screen is being drawn.
    Nothing,
    /// What is worth a line of a person's attention, to standard error.
    Stderr,
}

/// Starts logging into `<dir>/<name>.log`. Called once in a process; a second call changes nothing.
pub(super) fn start(dir: &Path, name: &str, verbosity: Verbosity, beside: Beside) -> Result<(), CliError> {
    let file = LogFile::open(dir.join(format!("{name}.log")))?;
    let ours = match verbosity {
        Verbosity::Quiet => "warn,agentcraft_tui=warn",
        Verbosity::Normal => "warn,agentcraft_tui=info",
        Verbosity::Debug => "info,agentcraft_tui=debug",
    };
    let to_file = fmt::layer().with_ansi(false).with_writer(move || file.writer()).with_filter(EnvFilter::new(ours));
    // The feed's lines are printed by themselves; the log adds what went wrong.
    let loud = match verbosity {
        Verbosity::Quiet => "error",
        Verbosity::Normal => "warn",
        Verbosity::Debug => "warn,agentcraft_tui=debug",
    };
    let to_stderr = (beside == Beside::Stderr).then(|| {
        fmt::layer()
            .with_ansi(io::stderr().is_terminal())
            .with_target(false)
            .without_time()
            .with_writer(|| Forgiving)
            .with_filter(EnvFilter::new(loud))
    });
    // Fails only when a subscriber is set already, which then stays.
    let _ = tracing_subscriber::registry().with(to_file).with(to_stderr).try_init();
    Ok(())
}

/// Standard error of which nothing is expected: its terminal may be gone.
struct Forgiving;

impl Write for Forgiving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that moves itself aside when it is full.
#[derive(Clone)]
struct LogFile(std::sync::Arc<Mutex<Open>>);

struct Open {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl LogFile {
    fn open(path: PathBuf) -> Result<Self, CliError> {
        let file = append(&path).map_err(|source| CliError::File { path: path.clone(), source })?;
        let bytes = file.metadata().map_or(0, |about| about.len());
        Ok(Self(std::sync::Arc::new(Mutex::new(Open { path, file, bytes }))))
    }

    fn writer(&self) -> Self {
        self.clone()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.bytes >= FILE_BYTES {
            std::fs::rename(&open.path, open.path.with_extension("old.log"))?;
            open.file = append(&open.path)?;
            open.bytes = 0;
        }
        open.file.write_all(bytes)?;
        open.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// The log is the person's alone, goes on over restarts and makes room when it is full.
    #[test]
    fn a_full_log_makes_room() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("foreman.log");
        LogFile::open(path.clone()).expect("opened").write_all(b"one\n").expect("written");
        let mut log = LogFile::open(path.clone()).expect("opened");
        log.write_all(b"two\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "one\ntwo\n");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        log.0.lock().expect("free").bytes = FILE_BYTES;
        log.write_all(b"three\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "three\n");
        let old = std::fs::read_to_string(dir.path().join("foreman.old.log"));
        assert_eq!(old.expect("kept"), "one\ntwo\n");
    }
}
