//! `ropewalk nic`.

use crate::cli::NicArgs;
use lab::failure::Failure;

/// Plays NICs until a signal ends it.
///
/// # Errors
/// If the file is wrong, or the system refuses.
#[cfg(target_os = "linux")]
pub fn run(args: &NicArgs) -> Result<(), Failure> {
    crate::live::nic::run(&args.file, args)
}

/// Real frames need Linux.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn run(_: &NicArgs) -> Result<(), Failure> {
    Err(Failure::Asked("ropewalk nic needs Linux".to_owned()))
}
