//! The numbers and distributions of an experiment.

use serde::Serialize;

/// One number of ours beside the paper's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Label of the run.
    pub case: String,
    /// Metric.
    pub metric: String,
    /// Unit.
    pub unit: &'static str,
    /// The paper's number; null if the paper gives none. In that case `note` says what we expected.
    pub paper: Option<f64>,
    /// Our number; null if the run is not complete.
    pub measured: Option<f64>,
    /// (measured - paper) / paper.
    pub deviation: Option<f64>,
    /// Remark about the number.
    pub note: String,
    /// True if the experiment shows the number in its own table, so that the list of rows leaves it out.
    #[serde(skip)]
    pub(crate) tabled: bool,
}

impl Row {
    /// A number that the paper does not give.
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

    /// A number that the paper also gives.
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

    /// The same row, marked as shown in the experiment's own table.
    pub(crate) fn tabled(self) -> Self {
        Row { tabled: true, ..self }
    }
}

/// A distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Label of the runs.
    pub case: String,
    /// Metric.
    pub metric: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Number of flows.
    pub flows: usize,
    /// Values, each with the share of flows that do not exceed it; about a hundred points.
    pub points: Vec<(f64, f64)>,
}
