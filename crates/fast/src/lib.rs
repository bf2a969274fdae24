//! Runs that leave out exchanges which repeat.
//!
//! A fast run never approximates a packet. It leaves packets out: an exchange whose like was sent before is not sent again, and its
//! members leave it after the times that were recorded. Some repetitions are sent all the same, as audits, and tell the error.

#![forbid(unsafe_code)]

pub mod cut;
mod director;
mod footprint;
mod memo;
mod series;
mod told;

pub use director::Books;
use director::{Director, Way};
use engine::{Kind, Observer, Outcome};
use finding::Finding;
pub use footprint::Footprints;
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
    let goes_by_flow = sim::goes_by_flow(plan, schemes, nics);
    let mut direct = |may_leap| -> Result<_, Finding> {
        let live = sim::live(plan, schemes, nics, kind);
        let footprints = footprint::Footprints::new(plan, goes_by_flow);
        let mut director = Director::new(outlined, (plan, footprints), live, tolerance, (memo, may_leap));
        let way = director.run(observer)?;
        if way != Way::Stuck {
            director.keep()?;
        }
        Ok((way, director.finish(observer)))
    };
    let mut run = direct(true)?;
    if run.0 == Way::Stuck {
        run = direct(false)?;
    }
    let (way, (mut plan, mut outcome, told, books)) = run;
    if way == Way::Ended {
        told.add_to(outlined, &mut plan, &mut outcome);
    }
    Ok((plan, outcome, books))
}
