//! The command `ropewalk`, a thin wrapper around the library.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    command_line::commands::dispatch(command_line::cli::Cli::parse())
}
