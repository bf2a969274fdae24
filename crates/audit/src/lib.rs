//! Checks of runs from the outside, for tests and for the farm of random scenarios.
//!
//! [`compare`] runs a plan on every engine and reports the first differences. [`mistakes`] checks the books of a run from its
//! outcome alone, independently of the engine's own check.

#![forbid(unsafe_code)]

mod books;
mod engines;

pub use books::mistakes;
pub use engines::{compare, difference};
