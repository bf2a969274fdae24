//! A paper's experiment: its numbers beside ours.

use super::question::Asked;
use papers::{Curve, Figure, Report, Row};
use results::text::number;
use serde::Serialize;

/// Largest deviation that is called close. Our choice: about the effect of another seed or of a rounded number in a paper.
const CLOSE: f64 = 0.1;

/// An experiment.
#[derive(Debug, Serialize)]
pub(crate) struct Experiment {
    pub(super) name: String,
    source: &'static str,
    about: &'static str,
    quick: bool,
    incomplete: Vec<String>,
    rows: Vec<Row>,
    curves: Vec<Curve>,
    figures: Vec<Figure>,
    /// Label and command of each case.
    cases: Vec<(String, String)>,
    #[serde(skip)]
    answer: String,
    /// What decides the rankings among its cases.
    #[serde(skip)]
    pub(super) decides: Vec<serde_json::Value>,
}

impl Experiment {
    /// The experiment of a report with its detail.
    pub(crate) fn of(report: &Report) -> Self {
        Experiment {
            name: report.name.to_owned(),
            source: report.source,
            about: report.about,
            quick: report.quick,
            incomplete: report.incomplete().to_vec(),
            rows: report.rows.clone(),
            curves: report.curves.clone(),
            figures: report.detail.picture.figures().to_vec(),
            cases: report.cases.clone(),
            answer: report.detail.picture.answer().to_owned(),
            decides: report.decides.iter().filter_map(|verdict| serde_json::to_value(verdict).ok()).collect(),
        }
    }

    /// Schemes of the figures.
    pub(super) fn schemes(&self) -> impl Iterator<Item = &str> {
        self.figures.iter().flat_map(|figure| &figure.series).map(|series| series.scheme.as_str())
    }

    /// The answer, either the experiment's own or made from the rows, and remarks.
    pub(super) fn answer(&self) -> Vec<String> {
        let mut text = vec![if self.answer.is_empty() { self.closeness() } else { self.answer.clone() }];
        if self.quick {
            text.push(
                "Quick: scaled down from the paper's sizes; the numbers cannot be compared with the paper's."
                    .into(),
            );
        }
        if !self.incomplete.is_empty() {
            text.push(format!("NOT complete: {}.", self.incomplete.join(", ")));
        }
        text
    }

    fn closeness(&self) -> String {
        let both: Vec<(&Row, f64)> = self.rows.iter().filter_map(|row| Some((row, row.deviation?))).collect();
        let close = both.iter().filter(|(_, deviation)| deviation.abs() <= CLOSE).count();
        let farthest = both.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let Some((row, _)) = farthest else {
            return "No paper prints numbers to compare with these.".to_owned();
        };
        let (paper, ours) = (row.paper.unwrap_or(0.0), row.measured.unwrap_or(0.0));
        let case = if row.case.is_empty() { String::new() } else { format!(" of {}", row.case) };
        format!(
            "Of the {} numbers that the paper prints, ours are within 10 % of {close}. The largest deviation is that of \
             {}{case}: {} {} in the paper, {} here.",
            both.len(),
            row.metric,
            number(paper),
            row.unit,
            number(ours)
        )
    }
}

/// The question of each experiment.
pub(super) fn asked(experiments: &[Experiment]) -> Vec<Asked> {
    let mut lines = Vec::new();
    for experiment in experiments {
        lines.push(Asked { label: "Source", text: experiment.source.to_owned() });
        lines.push(Asked { label: "Shows", text: experiment.about.to_owned() });
    }
    lines
}
