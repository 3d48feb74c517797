//! Why the program could not do what it was asked, and what to do now.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use thiserror::Error;

use crate::client::console::ConsoleError;
use crate::config::ConfigError;
use crate::runtime::StartError;
use crate::runtime::profile::{ProfileError, RunFile};
use crate::server::BindError;
use crate::tui::UiError;

/// Why the program could not do what it was asked.
#[derive(Debug, Error)]
pub(super) enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("no Foreman is running {place}")]
    NotRunning { place: String },
    #[error("the Foreman of profile \"{}\" runs already (process {}, port {})", .0.profile, .0.pid, .0.port)]
    AlreadyRunning(Box<RunFile>),
    #[error("profile \"{profile}\" is held by a process that tells no port")]
    Held { profile: String },
    #[error("the Foreman of profile \"{}\" runs already (process {}, port {}) and can't take {flags} now", run.profile, run.pid, run.port)]
    CannotApply { run: Box<RunFile>, flags: String },
    #[error("port {port} is taken{}", owner.as_ref().map(|owner| format!(" by {owner}")).unwrap_or_default())]
    PortTaken { port: u16, owner: Option<String> },
    #[error(transparent)]
    Bind(BindError),
    #[error("standard input and output are no terminal, so there can be no screen")]
    NoTerminal,
    #[error("--reset begins the profile \"{profile}\" anew; there is no terminal to ask on")]
    CannotAsk { profile: String },
    #[error("nothing was changed")]
    Declined,
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Screen(#[from] UiError),
    #[error("the Foreman ended: {0}")]
    Ended(String),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("standard input: {0}")]
    Input(io::Error),
    #[error(transparent)]
    Line(#[from] ConsoleError),
    /// The Foreman said no.
    #[error("{0}")]
    Refused(String),
    /// The connection was lost between asking and answer.
    #[error("{0}; whether it was done is not known")]
    Unknown(String),
    #[error("the Foreman on port {port} could not be reached: {why}")]
    Unreachable { port: u16, why: String },
    #[error("gave up waiting after {seconds} s")]
    TooLong { seconds: u64 },
    #[error("the system refused {what}: {source}")]
    System { what: &'static str, source: io::Error },
    #[error("{0} (this is a defect)")]
    Defect(String),
}

impl CliError {
    /// What to do now, where the text does not say it.
    pub(super) fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NotRunning { .. } => "start one: `agentcraft-tui`, or `agentcraft-tui --no-ui`",
            Self::AlreadyRunning(_) => "see it with `agentcraft-tui`, end it with `agentcraft-tui stop`",
            Self::Held { .. } => "wait until it has started or ended, or choose another --profile",
            Self::CannotApply { .. } => "end it first with `agentcraft-tui stop`, or leave the flags out",
            Self::PortTaken { .. } => "choose another --port, or leave it out to take the next free one",
            Self::NoTerminal => "run it in a terminal, or with --no-ui",
            Self::CannotAsk { .. } => "add --yes",
            Self::Unknown(_) | Self::Unreachable { .. } => "see how things stand with `agentcraft-tui status`",
            Self::Config(_)
            | Self::Bind(_)
            | Self::Declined
            | Self::Profile(_)
            | Self::Start(_)
            | Self::Screen(_)
            | Self::Ended(_)
            | Self::File { .. }
            | Self::Input(_)
            | Self::Line(_)
            | Self::Refused(_)
            | Self::TooLong { .. }
            | Self::System { .. }
            | Self::Defect(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }

    /// 2 for what was wrongly written, 1 for the rest.
    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::CannotApply { .. } | Self::CannotAsk { .. } | Self::Line(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}
