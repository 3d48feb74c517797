//! Composes the program: one call.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentcraft_tui::cli::main()
}
