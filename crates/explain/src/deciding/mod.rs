//! What decides a ranking: the cause that dominates, the settings that it depends on, and whether the answer survives other values of
//! them.
//!
//! | file | what |
//! |---|---|
//! | [`contender`], [`verdict`] | those that compete; the answer about them |
//! | [`blame`], [`root`] | where the time of a run went; causes, each with its settings and their variations |
//! | [`survival`] | the contenders with each variation |
//! | [`places`], [`swept`] | the rankings of a sweep or an experiment that are worth a verdict; those of a sweep |

mod blame;
mod contender;
mod places;
mod root;
mod survival;
mod swept;
mod verdict;

#[cfg(test)]
mod known;

pub use blame::{Blame, Share};
pub use contender::{Contender, hops, named, schemes};
pub use places::{Entry, apart, chosen};
pub use root::Root;
pub use survival::{Survival, Tried};
pub use swept::of_sweep;
pub use verdict::{Asked, Verdict, of};

/// Smallest share of the lost time at which a cause dominates. Our choice.
pub const DOMINANT: f64 = 0.5;
