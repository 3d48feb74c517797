//! `status`: how things stand, for people or as the protocol's snapshot.

use std::process::ExitCode;

use super::error::CliError;
use super::locate::Found;
use super::session::{Patience, Session, block_on};
use super::{output, show};
use crate::protocol::{ServerMessage, encode_server};

pub(super) fn status(found: Found, json: bool) -> Result<ExitCode, CliError> {
    let session = block_on(Session::open(found.port, Patience::Running))?;
    if json {
        // The snapshot's message, whole: what a client would be sent.
        output::say_exactly(&encode_server(&ServerMessage::Snapshot(Box::new(session.mirror.snapshot()))));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = match &found.run {
        Some(run) => format!("profile {}, process {}, port {}\n", run.profile, run.pid, run.port),
        None => format!("port {}\n", found.port),
    };
    text.push_str(&show::status(&session.mirror));
    output::say(&text);
    Ok(ExitCode::SUCCESS)
}
