//! The failures of a command, with exit codes and messages.

use scenario::Finding;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file is wrong.
    #[error("{}", .0.drawn().trim_start_matches("error: "))]
    Input(#[from] Finding),
    /// Another part of the request is wrong, or the system refuses.
    #[error("{0}")]
    Asked(String),
    /// Standard output is closed.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] std::io::Error),
    /// Frames break a rule; the report has been printed.
    #[error("frames break a rule")]
    Broken,
}

impl Failure {
    /// The exit code.
    pub const fn code(&self) -> u8 {
        match self {
            Failure::Input(_) | Failure::Asked(_) | Failure::Output(_) => 2,
            Failure::Broken => 3,
        }
    }
}
