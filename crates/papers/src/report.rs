//! What an experiment comes to.

use crate::experiment::{Case, Experiment, Runs};
use crate::picture::Picture;
use crate::row::{Curve, Row};
use comfy_table::CellAlignment;
use results;
use results::text;
use serde::Serialize;
use std::fmt::Write;

/// Cases whose commands are printed.
const COMMANDS: usize = 3;

/// An experiment that was run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the experiment.
    pub name: &'static str,
    /// Paper and figure.
    pub source: &'static str,
    /// It was scaled down.
    pub quick: bool,
    /// Its numbers.
    pub rows: Vec<Row>,
    /// Its distributions, if it has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
    /// What else there is to read.
    #[serde(skip)]
    more: String,
    /// Cases that are not complete.
    #[serde(skip)]
    incomplete: Vec<String>,
    /// What it shows, in a sentence.
    #[serde(skip)]
    pub about: &'static str,
    /// Labels of its cases, and the command that runs each alone.
    #[serde(skip)]
    pub cases: Vec<(String, String)>,
    /// For a page, if one was asked for.
    #[serde(skip)]
    pub detail: Detail,
}

/// What a page shows besides the rows.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// The picture of the experiment.
    pub picture: Picture,
    /// Some of the runs, with their labels.
    pub runs: Vec<(String, results::Results)>,
}

/// Most runs that are kept for a page, if the experiment does not say which; our choice, what a chart can tell apart.
const KEPT: usize = 8;

impl Report {
    pub(crate) fn new(experiment: &Experiment, results: &Runs, quick: bool) -> Self {
        let mut more = (experiment.more)(results);
        if !results.0.is_empty() {
            more.push_str("\nA case alone:\n");
        }
        for (case, _) in results.0.iter().take(COMMANDS) {
            let _ = writeln!(more, "  {}\n    {}", case.label, case.command());
        }
        if results.0.len() > COMMANDS {
            let _ = writeln!(more, "  and {} more with other values", results.0.len() - COMMANDS);
        }
        let bad = results.0.iter().filter(|(_, run)| !run.summary.complete);
        Report {
            name: experiment.name,
            source: experiment.source,
            // Where there is nothing to scale down, nothing was.
            quick: quick && (experiment.cases)(true) != (experiment.cases)(false),
            rows: (experiment.rows)(results, quick),
            curves: (experiment.curves)(results),
            more,
            incomplete: bad.map(|(case, _)| case.label.clone()).collect(),
            about: experiment.about,
            cases: results.0.iter().map(|(case, _)| (case.label.clone(), case.command())).collect(),
            detail: Detail::default(),
        }
    }

    /// The same with its picture and the results of some of its runs.
    pub(crate) fn detailed(self, experiment: &Experiment, results: &Runs) -> Self {
        let picture = (experiment.picture)(results);
        let every = results.0.len().div_ceil(KEPT).max(1);
        let chosen =
            results.0.iter().enumerate().filter(|(i, (case, _))| match picture.detailed.is_empty() {
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

    /// Cases that are not complete.
    pub fn incomplete(&self) -> &[String] {
        &self.incomplete
    }

    /// Every run is complete.
    pub fn complete(&self) -> bool {
        self.incomplete.is_empty()
    }

    /// Its picture: empty unless it was run in detail ([`crate::Work::detailed`]).
    pub fn picture(&self) -> &Picture {
        &self.detail.picture
    }

    /// The results of some of its runs, with their labels; likewise.
    pub fn runs(&self) -> &[(String, results::Results)] {
        &self.detail.runs
    }

    /// The report for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.source);
        if self.quick {
            text.push_str(
                "QUICK: scaled down; these are not the paper's sizes, and its numbers need not appear.\n",
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
        let _ = writeln!(text, "{}", self.more);
        text
    }
}

/// A mark in place of a note, so that a row stays a line.
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
