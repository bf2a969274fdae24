//! What decides a comparison: the cause that dominates, the settings that it depends on, and whether the answer survives other
//! values of them.

mod blame;
mod root;
mod survival;
mod verdict;

#[cfg(test)]
mod known;

pub use blame::{Blame, Share};
pub use root::Root;
pub use survival::{Survival, Tried};
pub use verdict::{Asked, Verdict, of};

/// Smallest share of the lost time at which a cause dominates. Our choice.
pub const DOMINANT: f64 = 0.5;
