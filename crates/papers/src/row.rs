//! The numbers and distributions of an experiment.

use serde::Serialize;

/// One number beside the paper's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which run.
    pub case: String,
    /// What was measured.
    pub metric: String,
    /// Its unit.
    pub unit: &'static str,
    /// The paper's number; null if it gives none, and then `note` says what was expected.
    pub paper: Option<f64>,
    /// Ours; null if the run is not complete.
    pub measured: Option<f64>,
    /// (measured - paper) / paper.
    pub deviation: Option<f64>,
    /// What to know about it.
    pub note: String,
    /// The experiment shows it in a table of its own; the text leaves it out of the list.
    #[serde(skip)]
    pub(crate) tabled: bool,
}

impl Row {
    /// A number of which the paper says nothing.
    pub(crate) fn ours(
        case: &str,
        metric: impl Into<String>,
        unit: &'static str,
        measured: Option<f64>,
        note: impl Into<String>,
    ) -> Self {
        let (case, metric, note) = (case.to_owned(), metric.into(), note.into());
        Row { case, metric, unit, paper: None, measured, deviation: None, note, tabled: false }
    }

    /// A number that the paper gives too.
    pub(crate) fn beside(
        paper: f64,
        case: &str,
        metric: impl Into<String>,
        unit: &'static str,
        measured: Option<f64>,
        note: impl Into<String>,
    ) -> Self {
        let deviation = measured.map(|m| (m - paper) / paper);
        Row { paper: Some(paper), deviation, ..Row::ours(case, metric, unit, measured, note) }
    }

    /// The same row, shown in a table of the experiment's own.
    pub(crate) fn tabled(self) -> Self {
        Row { tabled: true, ..self }
    }
}

/// A distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Which runs.
    pub case: String,
    /// What is distributed.
    pub metric: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Flows behind it.
    pub flows: usize,
    /// Value, and the share of flows that do not exceed it; about a hundred points.
    pub points: Vec<(f64, f64)>,
}
