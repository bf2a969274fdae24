//! Experiments of papers with the paper's numbers beside ours, and switch memory by the papers' formulas.
//!
//! | file | what it holds |
//! |---|---|
//! | [`reproduce`] | the list of experiments, and running them |
//! | `experiments` | one file per experiment |
//! | [`experiment`] | the type of an experiment: its cases, and the rows that their runs give |
//! | [`row`], [`picture`], [`report`] | numbers, figures, and the report of an experiment |
//! | `deciding` | the rankings among an experiment's cases, and what decides them |
//! | `seeds` | means of a metric over seeds, with their ranges |
//! | [`memory`] | switch memory by the papers' formulas, one file per scheme that has one |
//!
//! An experiment is a list of cases and a function from their runs to rows. A case is a built-in scenario with
//! changes, as for `ropewalk run`. To add one: a file in `experiments` with a `const EXPERIMENT`, and its line in
//! [`reproduce::ALL`].

mod deciding;
pub mod experiment;
mod experiments;
pub mod memory;
pub mod picture;
pub mod report;
pub mod reproduce;
pub mod row;
mod seeds;

pub use deciding::{Measure, Ranker};
pub use experiment::Experiment;
pub use picture::{Figure, PaperValue, Picture, Shape, Values};
pub use report::Report;
pub use reproduce::{ALL, Work, named};
pub use row::{Curve, Row};

use lab::{Crew, Failure, Progress};
use std::sync::atomic::AtomicBool;

/// Runs the experiments of these names on all cores.
///
/// # Errors
/// If there is no such experiment.
pub fn run(names: &[String], quick: bool) -> Result<Vec<Report>, Failure> {
    let work = Work::new(&named(names)?, quick);
    work.run(Crew::of_machine(), &Progress::silent(&AtomicBool::new(false)))
}
