//! The failures of a command, with exit codes and messages.

use results::ResultsError;

/// Exit code of an interrupted command, as shells have it (128 + SIGINT).
pub const EXIT_INTERRUPTED: u8 = 130;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The scenario, or another file, is wrong.
    #[error(transparent)]
    Scenario(#[from] scenario::Finding),
    /// Results could not be written or read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// Another part of the request is wrong.
    #[error("{0}")]
    Asked(String),
    /// Standard output is closed.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] std::io::Error),
    /// The scenario is wrong, as the report says that has been printed.
    #[error("the scenario is wrong")]
    Told,
    /// The simulation failed; the report has been printed.
    #[error("the simulation failed")]
    Simulation,
    /// A run ended for lack of memory, so its results would not be those of its scenario.
    #[error("{0}")]
    Memory(String),
    /// The user interrupted the command.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Scenario(_)
            | Failure::Results(_)
            | Failure::Asked(_)
            | Failure::Output(_)
            | Failure::Told => 2,
            Failure::Simulation | Failure::Memory(_) => 3,
            Failure::Interrupted => EXIT_INTERRUPTED,
        }
    }

    /// The message as plain text, without the word "error".
    pub fn text(&self) -> String {
        match self {
            Failure::Scenario(error) => error.drawn().trim_start_matches("error: ").to_owned(),
            _ => self.to_string(),
        }
    }

    /// What the command prints; `None` if it has printed the message.
    pub fn report(&self) -> Option<String> {
        match self {
            Failure::Told | Failure::Simulation | Failure::Interrupted => None,
            _ => Some(format!("error: {}", self.text())),
        }
    }
}
