//! The command `ropewalk-frames`, a thin wrapper around the library.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    frames::answer(&frames::cli::Cli::parse())
}
