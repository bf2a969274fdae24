//! `ropewalk import`.

use crate::cli::{ImportArgs, ImportFrom};
use crate::failure::Failure;

/// Makes a scenario from another tool's files.
///
/// # Errors
/// If a file is wrong, or the scenario exists already.
pub fn run(args: &ImportArgs) -> Result<(), Failure> {
    let ImportFrom::Hpcc { .. } = &args.from;
    Err(Failure::Asked("not yet".into()))
}
