//! Finding a running Foreman: by its port, or by the run file of its profile.

use std::path::Path;

use super::error::CliError;
use super::flags::CommandLine;
use crate::config::Layer;
use crate::config::options::Machine;
use crate::runtime::profile::{RunFile, find_running};

/// A Foreman to talk to.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) port: u16,
    /// What it wrote about itself, when it is one of this home.
    pub(super) run: Option<RunFile>,
}

/// The Foreman that `--port`, the profile or the home names.
pub(super) fn running(line: &CommandLine, layer: &Layer, machine: &Machine) -> Result<Found, CliError> {
    let home = machine.home(layer.home.as_deref())?;
    if let Some(port) = line.layer.port {
        return Ok(Found { port, run: by_port(&home, port) });
    }
    let profile = layer.profile.as_deref();
    let run = find_running(&home, profile).ok_or_else(|| CliError::NotRunning {
        place: match profile {
            Some(profile) => format!("for profile \"{profile}\" in {}", home.display()),
            None => format!("in {}", home.display()),
        },
    })?;
    Ok(Found { port: run.port, run: Some(run) })
}

/// The living Foreman of this home that has the port.
pub(super) fn by_port(home: &Path, port: u16) -> Option<RunFile> {
    std::fs::read_dir(home)
        .ok()?
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| find_running(home, Some(&name)))
        .find(|run| run.port == port)
}
