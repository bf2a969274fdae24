//! How a command ends when it does not end well.

use miette::{GraphicalReportHandler, GraphicalTheme};
use results::ResultsError;

/// Exit code of an interrupted command, as shells have it (128 + SIGINT).
pub const EXIT_INTERRUPTED: u8 = 130;

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
    /// Standard output takes nothing.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] std::io::Error),
    /// The simulation failed; the report has been printed.
    #[error("the simulation failed")]
    Simulation,
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Scenario(_) | Failure::Results(_) | Failure::Asked(_) | Failure::Output(_) => 2,
            Failure::Simulation => 3,
            Failure::Interrupted => EXIT_INTERRUPTED,
        }
    }

    /// What the command prints, as plain text for lines of 80 columns.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let plain = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(80);
        match self {
            Failure::Scenario(error) if plain.render_report(&mut text, error).is_ok() => {
                text.trim_end().to_owned()
            }
            _ => self.to_string(),
        }
    }

    /// What to tell the user; nothing if all has been said.
    pub fn report(self) -> Option<miette::Report> {
        match self {
            Failure::Scenario(error) => Some(error.into()),
            Failure::Results(_) | Failure::Asked(_) | Failure::Output(_) => Some(miette::miette!("{self}")),
            Failure::Simulation | Failure::Interrupted => None,
        }
    }
}
