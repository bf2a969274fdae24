//! Runs that leave out exchanges which repeat.
//!
//! A fast run never approximates a packet. It leaves packets out: an exchange whose like was sent before is not sent again, and its
//! members leave it after the times that were recorded. Some repetitions are sent all the same, as audits, and tell the error.

#![forbid(unsafe_code)]

mod director;
mod footprint;
mod memo;
mod series;
mod told;

pub use director::Books;
use engine::{Kind, Observer, Outcome};
use finding::Finding;
pub use memo::Memo;
use model::Plan;
use scenario::Checked;
use scenario::outlined::Outlined;

/// Runs a job. `tolerance` is the largest error of the end that what is left out may add up to, as a share of the end; `None` sends
/// everything. Returns the plan of what was sent, with the tasks of the first cells, its outcome, and the books. What a memo knows need
/// not be sent, and it learns the rest. The engines agree on everything.
///
/// # Errors
/// If an exchange cannot be laid out, or the memo cannot be read or written.
pub fn run(
    checked: &Checked,
    outlined: &mut Outlined,
    tolerance: Option<f64>,
    (memo, kind): (Option<&Memo>, Kind),
    observer: &mut dyn Observer,
) -> Result<(Plan, Outcome, Books), Finding> {
    let Checked { plan, schemes, nics, .. } = checked;
    let live = sim::live(plan, schemes, nics, kind);
    let footprints = footprint::Footprints::new(plan, sim::goes_by_flow(plan, schemes, nics));
    let mut director = director::Director::new(outlined, (plan, footprints), live, tolerance, memo);
    let complete = director.run(observer)?;
    director.keep()?;
    let (mut plan, mut outcome, told, books) = director.finish(observer);
    if complete {
        told.add_to(outlined, &mut plan, &mut outcome);
    }
    Ok((plan, outcome, books))
}
