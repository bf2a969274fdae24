//! How a command ends when it does not end well.

use crate::results::ResultsError;
use std::process::ExitCode;

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The scenario, or another file, is wrong.
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// The results have no place.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// Something else in the question is wrong.
    #[error("{0}")]
    Asked(String),
    /// The simulation failed; the report has been printed.
    #[error("the simulation failed")]
    Simulation,
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> ExitCode {
        match self {
            Failure::Scenario(_) | Failure::Results(_) | Failure::Asked(_) => ExitCode::from(2),
            Failure::Simulation => ExitCode::from(3),
            Failure::Interrupted => ExitCode::from(crate::interrupt::EXIT_CODE),
        }
    }

    /// What to tell the user; nothing if all has been said.
    pub fn report(self) -> Option<miette::Report> {
        match self {
            Failure::Scenario(error) => Some(error.into()),
            Failure::Results(_) | Failure::Asked(_) => Some(miette::miette!("{self}")),
            Failure::Simulation | Failure::Interrupted => None,
        }
    }
}
