//! Runs the wanted points of a sweep on this machine.

use super::point::run_point;
use super::work::Work;
use crate::crew::Crew;
use crate::failure::Failure;
use crate::progress::Progress;

/// The outcome of [`run`].
#[derive(Debug, Default)]
pub struct Ran {
    /// Points that could not run on this machine, for example for lack of memory, and the reasons. A point whose simulation
    /// failed is not listed here, as its failure is a result.
    pub refused: Vec<(usize, Failure)>,
}

/// Runs the missing points on this machine and keeps each result as it arrives.
///
/// # Errors
/// If a result cannot be kept. An interruption is no error: the remaining points stay missing.
pub fn run(work: &Work, crew: Crew, progress: &Progress<'_>) -> Result<Ran, Failure> {
    let no_place = std::sync::OnceLock::new();
    let one = |number: usize, threads| {
        if progress.stopped() || no_place.get().is_some() {
            return None;
        }
        let point = work.sweep().point(number);
        match point.and_then(|point| run_point(&point, threads, progress)) {
            Ok(result) => {
                if let Err(e) = work.keep(&result) {
                    drop(no_place.set(e));
                }
                None
            }
            Err(Failure::Interrupted) => None,
            Err(failure) => Some((number, failure)),
        }
    };
    let refused = crew.side_by_side(work.wanted(), one)?.into_iter().flatten().collect();
    match no_place.into_inner() {
        Some(failure) => Err(failure),
        None => Ok(Ran { refused }),
    }
}
