//! Sweeps: one scenario at many points, interrupted and resumed, on this machine or elsewhere.
//!
//! ```no_run
//! use lab::{Crew, Progress, sweep};
//! use std::sync::atomic::AtomicBool;
//!
//! let stop = AtomicBool::new(false);
//! let quiet = Progress::silent(&stop);
//! let sweep = sweep::Sweep::load("themis-timers", &[], Crew::of_machine(), &quiet)?;
//! let mut work = sweep::Work::open(sweep, "results/timers".as_ref(), true)?;
//! for number in work.wanted() {
//!     let point = work.sweep().point(number)?.to_json();
//!     let result = sweep::run_point_json(&point)?; // Here, in another process, or on another machine.
//!     work.keep_json(&result)?;
//! }
//! work.finish()?;
//! # Ok::<(), lab::Failure>(())
//! ```
//!
//! | file | what |
//! |---|---|
//! | [`checked`] | a sweep whose points were all checked |
//! | [`point`] | a point as text for other machines, and its result |
//! | `run` | runs the wanted points of a sweep on this machine |
//! | [`work`] | the directory of a sweep under way: finished points and missing points |
//! | [`dataset`] | the tables of a finished sweep |

pub mod checked;
pub mod dataset;
pub mod point;
mod run;
pub mod work;

pub use checked::Sweep;
pub use point::{Point, PointResult, run_point, run_point_json};
pub use run::{Ran, run};
pub use work::{Finished, Work};

#[cfg(test)]
mod tests;
