//! `ropewalk tor` and `ropewalk nic`: a program of their own, `ropewalk-frames`, carries real frames.

use crate::cli::PassedArgs;
use lab::failure::Failure;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the program.
const PROGRAM: &str = "ropewalk-frames";

/// Runs a command of the program in place of this one.
///
/// # Errors
/// The program is neither beside this one nor on the PATH, or the system refuses.
pub fn run(command: &str, args: &PassedArgs) -> Result<(), Failure> {
    start(Command::new(program()).arg(command).args(&args.rest)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::Asked(format!(
            "`ropewalk {command}` is the program {PROGRAM}, which is neither beside ropewalk nor on the PATH: \
             `make frames` builds it"
        )),
        _ => Failure::Asked(format!("{PROGRAM} cannot be started: {error}")),
    })?
}

/// The program beside this one, or else its name alone, for the PATH.
fn program() -> PathBuf {
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().and_then(|this| Some(this.parent()?.join(&name)));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| Path::new(&name).to_owned())
}

/// Becomes the program, so that signals reach it.
#[cfg(unix)]
fn start(command: &mut Command) -> std::io::Result<Result<(), Failure>> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

/// Waits for the program, which has printed why it failed.
#[cfg(not(unix))]
fn start(command: &mut Command) -> std::io::Result<Result<(), Failure>> {
    let done = command.status()?;
    Ok(if done.success() { Ok(()) } else { Err(Failure::Simulation) })
}
