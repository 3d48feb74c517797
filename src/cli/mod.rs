//! The command line: reads it, composes the rooms, ends with an exit code.
//!
//! May name every room; decides nothing about the team. Entry point: [`main`].

pub mod flags;
mod headless;
mod log;
mod start;
mod verbs;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::options::Machine;
use crate::config::{ConfigError, Layer, environment, file};
use flags::{CommandLine, Verb};

/// The program could not do what was asked.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong.
const USAGE: u8 = 2;

/// Worker threads of the asynchronous part: it waits far more than it works.
const THREADS: usize = 2;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let line = match CommandLine::read(std::env::args_os()) {
        Ok(line) => line,
        Err(error) => error.exit(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return say_failed(&format!("the system gave no threads: {error}"), FAILED),
    };
    let ended = runtime.block_on(run(line));
    // What still runs in the background holds nothing that is not on disk.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    match ended {
        Ok(code) => code,
        Err(Failure { text, code }) => say_failed(&text, code),
    }
}

/// Why the program ends, in words for the person.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    code: u8,
}

impl Failure {
    pub(crate) fn new(text: impl std::fmt::Display) -> Self {
        Self { text: text.to_string(), code: FAILED }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self { text: error.to_string(), code: USAGE }
    }
}

fn say_failed(text: &str, code: u8) -> ExitCode {
    // A closed standard error hears nothing.
    let _closed = writeln!(std::io::stderr(), "agentcraft-tui: {text}");
    ExitCode::from(code)
}

/// Prints to standard output; a reader that went away is no error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _closed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// All settings but the defaults: the file in the home, the environment, the flags.
fn layers(flags: Layer, machine: &Machine) -> Result<(PathBuf, Layer), ConfigError> {
    let upper = flags.over(environment::layer(|name| std::env::var_os(name))?);
    let home = machine.home(upper.home.as_deref())?;
    let lower = file::layer(&home, machine.user_home.as_deref())?;
    Ok((home, upper.over(lower)))
}

async fn run(line: CommandLine) -> Result<ExitCode, Failure> {
    match &line.verb {
        Some(Verb::Protocol { schema: false }) => {
            print(&crate::protocol::document::reference());
            return Ok(ExitCode::SUCCESS);
        }
        Some(Verb::Protocol { schema: true }) => {
            print(&format!("{:#}\n", crate::protocol::document::schema()));
            return Ok(ExitCode::SUCCESS);
        }
        Some(Verb::Completions { shell }) => {
            let mut script = Vec::new();
            flags::completions(*shell, &mut script);
            print(&String::from_utf8_lossy(&script));
            return Ok(ExitCode::SUCCESS);
        }
        Some(Verb::Send { .. } | Verb::Status { .. } | Verb::Stop) | None => {}
    }
    let machine = Machine::here();
    let (home, layer) = layers(line.layer.clone(), &machine)?;
    match line.verb.clone() {
        Some(Verb::Send { no_wait, line }) => verbs::send(&verbs::find(&home, &layer)?, &line, no_wait, &machine).await,
        Some(Verb::Status { json }) => verbs::status(&verbs::find(&home, &layer)?, json).await,
        Some(Verb::Stop) => verbs::stop(&home, &layer).await,
        Some(Verb::Protocol { .. } | Verb::Completions { .. }) => Ok(ExitCode::SUCCESS),
        None => start::start(line, layer, &machine).await,
    }
}
