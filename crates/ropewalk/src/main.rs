//! The command `ropewalk`, a thin wrapper around the library.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    ropewalk::commands::dispatch(ropewalk::cli::Cli::parse())
}
