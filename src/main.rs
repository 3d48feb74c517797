//! The program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentcraft_tui::cli::main(std::env::args_os())
}
