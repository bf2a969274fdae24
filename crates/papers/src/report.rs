//! The report of an experiment.

use crate::experiment::{Case, Experiment, Runs};
use crate::picture::Picture;
use crate::row::{Curve, Row};
use comfy_table::CellAlignment;
use explain::deciding::Verdict;
use results::text;
use serde::Serialize;
use std::fmt::Write;

/// Most cases whose commands are printed.
const COMMANDS: usize = 3;

/// A finished experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the experiment.
    pub name: &'static str,
    /// Paper and figure.
    pub source: &'static str,
    /// True if the experiment was scaled down.
    pub quick: bool,
    /// Numbers beside the paper's.
    pub rows: Vec<Row>,
    /// Distributions; empty for most experiments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
    /// What decides the rankings among the cases, if that was asked.
    pub decides: Vec<Verdict>,
    /// Why that is missing although it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
    /// Text below the rows.
    #[serde(skip)]
    more: String,
    /// Labels of the cases that are not complete.
    #[serde(skip)]
    incomplete: Vec<String>,
    /// What the experiment shows, in one sentence.
    #[serde(skip)]
    pub about: &'static str,
    /// Label of each case, and the command that runs it alone.
    #[serde(skip)]
    pub cases: Vec<(String, String)>,
    /// Content of the page; empty unless a page was requested.
    #[serde(skip)]
    pub detail: Detail,
}

/// Content of a page besides the rows.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Figures of the experiment.
    pub picture: Picture,
    /// Results of some runs, with their labels.
    pub runs: Vec<(String, results::Results)>,
}

/// Most runs that a page shows if the experiment does not select them. Our choice: a chart can distinguish this many.
const KEPT: usize = 8;

impl Report {
    pub(crate) fn new(experiment: &Experiment, runs: &Runs, quick: bool) -> Self {
        let mut more = (experiment.more)(runs);
        if !runs.0.is_empty() {
            more.push_str("\nTo run one case:\n");
        }
        for (case, _) in runs.0.iter().take(COMMANDS) {
            let _ = writeln!(more, "  {}\n    {}", case.label, case.command());
        }
        if runs.0.len() > COMMANDS {
            let _ = writeln!(more, "  and {} more with other values", runs.0.len() - COMMANDS);
        }
        let bad = runs.0.iter().filter(|(_, run)| !run.summary.complete);
        Report {
            name: experiment.name,
            source: experiment.source,
            // An experiment without a smaller version is not scaled down.
            quick: quick && (experiment.cases)(true) != (experiment.cases)(false),
            rows: (experiment.rows)(runs, quick),
            curves: (experiment.curves)(runs),
            decides: Vec::new(),
            undecided: None,
            more,
            incomplete: bad.map(|(case, _)| case.label.clone()).collect(),
            about: experiment.about,
            cases: runs.0.iter().map(|(case, _)| (case.label.clone(), case.command())).collect(),
            detail: Detail::default(),
        }
    }

    /// The report with its figures and the results of some of its runs.
    pub(crate) fn detailed(self, experiment: &Experiment, runs: &Runs) -> Self {
        let picture = (experiment.picture)(runs);
        let every = runs.0.len().div_ceil(KEPT).max(1);
        let chosen = runs.0.iter().enumerate().filter(|(i, (case, _))| match picture.detailed.is_empty() {
            true => i % every == 0,
            false => picture.detailed.contains(&case.label),
        });
        let of = |(_, (case, run)): (usize, &(Case, lab::Run))| {
            let mut command = vec!["ropewalk".to_owned(), "run".into(), case.scenario.to_owned()];
            command.extend(case.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
            (case.label.clone(), run.results(command))
        };
        let runs = chosen.map(of).collect();
        Report { detail: Detail { picture, runs }, ..self }
    }

    /// Labels of the cases that are not complete.
    pub fn incomplete(&self) -> &[String] {
        &self.incomplete
    }

    /// True if all runs are complete.
    pub fn complete(&self) -> bool {
        self.incomplete.is_empty()
    }

    /// Figures; empty unless the experiment was run in detail ([`crate::Work::detailed`]).
    pub fn picture(&self) -> &Picture {
        &self.detail.picture
    }

    /// Results of some runs, with their labels; empty unless the experiment was run in detail.
    pub fn runs(&self) -> &[(String, results::Results)] {
        &self.detail.runs
    }

    /// The report for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.source);
        if self.quick {
            text.push_str(
                "QUICK: scaled down from the paper's sizes; the numbers cannot be compared with the paper's.\n",
            );
        }
        if !self.complete() {
            let _ = writeln!(text, "NOT COMPLETE: {}", self.incomplete.join(", "));
        }
        let header = ["case", "metric", "paper", "ours", "unit", "off by", "note"].map(str::to_owned);
        let mut rows = text::table(&header, 2);
        if let Some(unit) = rows.column_mut(4) {
            unit.set_cell_alignment(CellAlignment::Left);
        }
        let mut notes: Vec<&str> = Vec::new();
        let mut last = "";
        for row in self.rows.iter().filter(|row| !row.tabled) {
            let off = row.deviation.map_or_else(String::new, |d| format!("{:+.0} %", d * 100.0));
            let paper = row.paper.map_or_else(String::new, text::number);
            let case = if row.case == last { "" } else { &row.case };
            last = &row.case;
            let note = footnote(&mut notes, &row.note);
            rows.add_row([case, &row.metric, &paper, &text::maybe(row.measured), row.unit, &off, &note]);
        }
        if rows.row_count() > 0 {
            let _ = writeln!(text, "{rows}");
        }
        for (i, note) in notes.iter().enumerate() {
            let _ = writeln!(text, "  [{}] {note}", i + 1);
        }
        for verdict in &self.decides {
            let _ = writeln!(text, "{}\n", text::wrapped(&verdict.answer.join(" ")));
        }
        if let Some(why) = &self.undecided {
            let _ = writeln!(text, "note: what decides the answer is left out: {why}\n");
        }
        let _ = writeln!(text, "{}", self.more);
        text
    }
}

/// A footnote mark for a note, so that a row fits in one line.
fn footnote<'a>(notes: &mut Vec<&'a str>, note: &'a str) -> String {
    if note.is_empty() {
        return String::new();
    }
    let known = notes.iter().position(|n| *n == note);
    let number = known.unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    });
    format!("[{}]", number + 1)
}
