//! The command `ropewalk`; all it does is in the library.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    ropewalk::commands::dispatch(ropewalk::cli::Cli::parse())
}
