//! The command line: reads it, composes the rooms, and ends with an exit code.
//!
//! The outermost room; it may use every other one and none may use it. A start is `start`, a verb is a file of its
//! name. Exit codes: 0 done, 1 not done (the reason is on standard error), 2 wrongly written. Entry point: [`main`].

mod attach;
mod error;
pub mod flags;
mod handover;
mod headless;
mod locate;
mod logs;
mod offer;
mod output;
mod ports;
mod screen;
mod send;
mod session;
mod show;
mod start;
mod status;
mod stop;

use std::ffi::OsString;
use std::process::ExitCode;

use self::error::CliError;
use self::flags::{CommandLine, Verb};
use crate::config::options::Machine;
use crate::config::{ConfigError, Layer, Options, environment, file};

/// Runs the program with these arguments, its name first.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line = match CommandLine::read(args) {
        Ok(line) => line,
        Err(error) => {
            // Nothing can be done when even this can't be printed.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match run(line) {
        Ok(code) => code,
        Err(error) => {
            output::complain(&format!("error: {error}"));
            for hint in error.hints() {
                output::complain(&format!("hint: {hint}"));
            }
            error.exit_code()
        }
    }
}

fn run(line: CommandLine) -> Result<ExitCode, CliError> {
    let machine = Machine::here();
    // These two say the same everywhere, whatever the settings.
    match &line.verb {
        Some(Verb::Protocol { schema }) => return document(*schema),
        Some(Verb::Completions { shell }) => {
            let mut script = Vec::new();
            flags::completions(*shell, &mut script);
            output::say_exactly(&String::from_utf8_lossy(&script));
            return Ok(ExitCode::SUCCESS);
        }
        Some(Verb::Send { .. } | Verb::Status { .. } | Verb::Stop) | None => {}
    }
    let layer = layers(&line, &machine)?;
    match &line.verb {
        Some(Verb::Send { no_wait, line: words }) => {
            let text = send::text(words)?;
            let found = locate::running(&line, &layer, &machine)?;
            send::send(found, &text, *no_wait, &machine)
        }
        Some(Verb::Status { json }) => status::status(locate::running(&line, &layer, &machine)?, *json),
        Some(Verb::Stop) => {
            stop::stop(locate::running(&line, &layer, &machine)?, &machine.home(layer.home.as_deref())?)
        }
        Some(Verb::Protocol { .. } | Verb::Completions { .. }) => Ok(ExitCode::SUCCESS),
        None => start::start(&line, Options::resolve(layer, &machine)?, &machine),
    }
}

/// All sources laid over each other.
fn layers(line: &CommandLine, machine: &Machine) -> Result<Layer, ConfigError> {
    let above = line.layer.clone().over(environment::layer(|name| std::env::var_os(name))?);
    let home = machine.home(above.home.as_deref())?;
    let file = file::layer(&home, machine.user_home.as_deref())?;
    Ok(above.over(file))
}

fn document(schema: bool) -> Result<ExitCode, CliError> {
    use crate::protocol::document;
    let text = if schema {
        serde_json::to_string_pretty(&document::schema()).map_err(|error| CliError::Defect(error.to_string()))?
    } else {
        document::reference()
    };
    output::say_exactly(text.trim_end());
    Ok(ExitCode::SUCCESS)
}
