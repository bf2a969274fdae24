//! The command `ropewalk-frames`: Themis and RNIC loss recovery on real RoCEv2 frames.
//!
//! `ropewalk tor` and `ropewalk nic` start it with the same arguments.
//!
//! | file | what it holds |
//! |---|---|
//! | [`cli`] | the arguments of all commands |
//! | [`tor`] | `tor check` and `tor replay`: files and captures instead of real ports |
//! | [`live`] | `tor FILE` and `nic FILE`, which carry real frames |
//! | [`failure`] | exit codes with their messages |

pub mod cli;
pub mod failure;
#[cfg(target_os = "linux")]
pub mod live;
pub mod tor;

use cli::{Cli, Command};
use failure::Failure;
use scenario::terminal::note;
use std::process::ExitCode;

/// Runs the command and returns the exit code.
pub fn answer(cli: &Cli) -> ExitCode {
    let done = match &cli.command {
        Command::Tor(args) => tor::run(args),
        #[cfg(target_os = "linux")]
        Command::Nic(args) => live::nic::run(&args.file, args),
        #[cfg(not(target_os = "linux"))]
        Command::Nic(_) => Err(Failure::Asked("ropewalk nic needs Linux".to_owned())),
    };
    let Err(failure) = done else { return ExitCode::SUCCESS };
    if !matches!(failure, Failure::Broken) {
        note(&format!("error: {failure}"));
    }
    ExitCode::from(failure.code())
}
