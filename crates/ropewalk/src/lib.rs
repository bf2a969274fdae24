//! ropewalk: a packet-level lab for RDMA fabrics, as a library.
//!
//! The same that the command does, without printing:
//!
//! ```no_run
//! let checked = ropewalk::load("quickstart", &["seed=7".to_owned()])?;
//! let run = ropewalk::run(checked);
//! println!("{} us", run.summary.sim_time_us);
//! # Ok::<(), ropewalk::Failure>(())
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | [`cli`], [`commands`] | the command line, and one file per command |
//! | [`mod@execute`] | a checked scenario through the engine, with a stopwatch |
//! | [`summary`], [`stats`], [`digest`] | what a run comes to: the JSON contract |
//! | [`results`] | the result directory: Parquet, CSV, manifest |
//! | [`capture`] | what passed a link, as RoCEv2 frames for Wireshark |
//! | [`mod@compare`], [`crew`] | schemes and seeds side by side; who gets which threads |
//! | [`mod@sweep`] | one scenario at many points, interrupted and resumed |
//! | [`mod@reproduce`] | the papers' experiments, one file each |
//! | [`memory`] | switch memory by the papers' formulas |
//! | [`report`] | a page to look at: one HTML file |
//! | [`explain`] | the life of one flow: why it was slow |
//! | [`tables`], [`stall`], [`progress`], [`shell`] | what people read, and may type again |
//! | [`clock`], [`interrupt`] | the only contacts with the world's time and with Ctrl-C |

pub mod capture;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod compare;
pub mod crew;
pub mod digest;
pub mod execute;
pub mod explain;
pub mod failure;
pub mod interrupt;
pub mod memory;
pub mod print;
pub mod progress;
pub mod report;
pub mod reproduce;
pub mod results;
pub mod shell;
pub mod stall;
pub mod stats;
pub mod summary;
pub mod sweep;
pub mod tables;
#[cfg(test)]
mod testing;

pub use compare::Comparison;
pub use crew::Crew;
pub use execute::{Prepared, Run, execute};
pub use failure::Failure;
pub use progress::Progress;
pub use reproduce::Report;
pub use summary::Summary;

use std::sync::atomic::AtomicBool;

/// Reads and checks a scenario: a path or the name of a built-in one, with `KEY=VALUE` changes.
///
/// # Errors
/// What is wrong with it first.
pub fn load(scenario: &str, set: &[String]) -> Result<Prepared, Failure> {
    Ok(Prepared::by(|| scenario::load(scenario, set))?)
}

/// Runs it to its end on this thread.
pub fn run(prepared: Prepared) -> Run {
    execute(prepared, engine::Kind::Window, &Progress::silent(&AtomicBool::new(false)))
}

/// Runs several schemes and seeds side by side.
///
/// # Errors
/// If a scheme cannot work there; then nothing has run.
pub fn compare(comparison: &Comparison) -> Result<Vec<Run>, Failure> {
    comparison.run(&Progress::silent(&AtomicBool::new(false)))
}

/// Runs the papers' experiments of these names.
///
/// # Errors
/// If there is no such experiment.
pub fn reproduce(names: &[String], quick: bool) -> Result<Vec<Report>, Failure> {
    let experiments = reproduce::named(names)?;
    let work = reproduce::Work::new(&experiments, quick);
    work.run(Crew::of_machine(), &Progress::silent(&AtomicBool::new(false)))
}
