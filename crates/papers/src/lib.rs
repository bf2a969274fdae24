//! The papers: their experiments with the paper's numbers beside ours, and switch memory by their formulas.
//!
//! | file | what it holds |
//! |---|---|
//! | [`reproduce`] | the list of experiments, and how they are run |
//! | `experiments` | one file per experiment |
//! | [`experiment`] | the type of an experiment: its cases, and what is made of their runs |
//! | [`row`], [`picture`], [`report`] | numbers, figures, and all that an experiment comes to |
//! | [`memory`] | switch memory by the papers' formulas, one file per scheme that has one |
//!
//! An experiment is a list of cases (a built-in scenario and changes, as `ropewalk run` takes them) and a function from
//! their runs to rows. To add one: a file in `experiments` with a `const EXPERIMENT`, and its line in [`reproduce::ALL`].

pub mod experiment;
mod experiments;
pub mod memory;
pub mod picture;
pub mod report;
pub mod reproduce;
pub mod row;

pub use experiment::Experiment;
pub use picture::{Figure, Mark, Picture, Shape, Values};
pub use report::Report;
pub use reproduce::{ALL, Work, named};
pub use row::{Curve, Row};

use lab::{Crew, Failure, Progress};
use std::sync::atomic::AtomicBool;

/// Runs the papers' experiments of these names on all cores.
///
/// # Errors
/// If there is no such experiment.
pub fn run(names: &[String], quick: bool) -> Result<Vec<Report>, Failure> {
    let work = Work::new(&named(names)?, quick);
    work.run(Crew::of_machine(), &Progress::silent(&AtomicBool::new(false)))
}
