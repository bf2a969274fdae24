//! Runs scenarios: one, several side by side, or a sweep.
//!
//! ```no_run
//! let prepared = lab::load("quickstart", &["seed=7".to_owned()])?;
//! let run = lab::run(prepared);
//! println!("{} us", run.summary.sim_time_us);
//! # Ok::<(), lab::Failure>(())
//! ```
//!
//! | file | task |
//! |---|---|
//! | [`mod@execute`] | runs a checked scenario in the engine and measures the time |
//! | [`mod@compare`] | runs several schemes and seeds of one scenario |
//! | [`mod@sweep`] | runs one scenario at many points; an interrupted sweep can be resumed |
//! | [`crew`] | shares the machine's threads among runs |
//! | [`session`] | a run that a program drives |
//! | `event` | what happens in such a run |
//! | `serve` | a run whose messages inference serving posts |
//! | [`progress`] | reports the progress of runs, and stops them |
//! | [`tape`] | takes captured frames while a run goes on |
//! | `headroom` | looks at the memory that is left while a run goes on |
//! | [`failure`] | defines the failures of a command |
//! | [`shell`] | quotes commands that users can type again |
//! | [`clock`] | reads wall time, CPU time and memory; no other code reads a real clock |

pub mod clock;
pub mod compare;
pub mod crew;
mod event;
pub mod execute;
pub mod failure;
pub mod fast;
mod headroom;
pub mod progress;
mod serve;
pub mod session;
pub mod shell;
#[cfg(test)]
mod step_ends;
pub mod sweep;
pub mod tape;

pub use compare::Comparison;
pub use crew::Crew;
pub use execute::{Prepared, Run, execute, execute_on};
pub use failure::Failure;
pub use progress::Progress;
pub use session::Session;
pub use tape::Tape;

use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The changes that record everything, as `run --record` does.
pub const RECORD_EVERYTHING: [&str; 5] = [
    "record.flows=all",
    "record.links=all",
    "record.switches=true",
    "record.counters=true",
    "record.events=8",
];

/// Reads and checks a scenario: a path or the name of a built-in one, with `KEY=VALUE` changes.
///
/// # Errors
/// The first mistake in the scenario or in a change.
pub fn load(scenario: &str, set: &[String]) -> Result<Prepared, Failure> {
    Ok(Prepared::by(|| scenario::load(scenario, set))?)
}

/// Reads and checks a scenario whose workload is replaced by a file of another tool, with `KEY=VALUE` changes.
///
/// # Errors
/// The first mistake in the scenario, in the file or in a change.
pub fn load_on(topology: &str, workload: &str, set: &[String]) -> Result<Prepared, Failure> {
    Ok(Prepared::by(|| scenario::load_on(topology, Path::new(workload), set))?)
}

/// Runs a scenario to its end on this thread.
pub fn run(prepared: Prepared) -> Run {
    execute(prepared, engine::Kind::Window, &Progress::silent(&AtomicBool::new(false)))
}

/// Runs several schemes and seeds side by side.
///
/// # Errors
/// If a scheme does not fit the scenario. No run has started in this case.
pub fn compare(comparison: &Comparison) -> Result<Vec<Run>, Failure> {
    comparison.run(&Progress::silent(&AtomicBool::new(false)))
}
