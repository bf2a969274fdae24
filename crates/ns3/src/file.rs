//! A file of the simulators.

use finding::Finding;
use formats::foreign;

/// A file with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Name of the file in messages.
    pub name: &'a str,
    /// Content of the file.
    pub text: &'a str,
}

/// The error with the import option that reads the file, if the file looks like one of another kind.
pub(super) fn hinted(file: File<'_>, error: Finding) -> Finding {
    match foreign::help(file.text) {
        Some(help) => error.with_help(help),
        None => error,
    }
}
