//! `stop`: ends the running Foreman and waits until it is gone.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::CliError;
use super::locate::Found;
use super::output;
use crate::runtime::profile::find_running;

/// Longest wait: turns are told to end, then made to.
const PATIENCE: Duration = Duration::from_secs(40);
/// Pause between two looks at the profile's lock.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn stop(found: Found, home: &Path) -> Result<ExitCode, CliError> {
    let Some(run) = found.run else {
        let place = format!("on port {} with its files in {}", found.port, home.display());
        return Err(CliError::NotRunning { place });
    };
    let pid = i32::try_from(run.pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| CliError::Defect(format!("the run file names process {}", run.pid)))?;
    kill_process(pid, Signal::TERM).map_err(|error| CliError::System { what: "the signal", source: error.into() })?;
    let deadline = Instant::now() + PATIENCE;
    // The run file counts only while its owner holds the profile's lock.
    while find_running(home, Some(&run.profile)).is_some_and(|now| now.pid == run.pid) {
        if Instant::now() > deadline {
            return Err(CliError::TooLong { seconds: PATIENCE.as_secs() });
        }
        #[expect(clippy::disallowed_methods, reason = "another process can only be looked at, not waited for")]
        std::thread::sleep(LOOK);
    }
    output::say(&format!("the Foreman of profile {} (process {}) has ended", run.profile, run.pid));
    Ok(ExitCode::SUCCESS)
}
