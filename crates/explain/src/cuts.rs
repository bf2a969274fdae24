//! The cuts of a queue pair's rate, and the feedback that caused them.

use crate::cause::Cause;
use crate::trace::Step;
use engine::outcome::EventKind;
use model::Kind;
use std::collections::BTreeSet;

/// A cut of the rate that congestion control allows.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    /// Index of the first event with the lower rate.
    pub(crate) seen: usize,
    /// Index of the last CNP, NACK or timeout before the cut; `None` if there was none since the cut before.
    pub(crate) trigger: Option<usize>,
    /// Kinds of feedback that the sender received since the cut before.
    pub(crate) by: Vec<Cause>,
    /// Rate before the cut, Gb/s.
    pub(crate) from: f64,
    /// Rate after the cut, Gb/s.
    pub(crate) to: f64,
}

/// The cause of delay if this event asks a sender to slow down.
fn feedback(step: &Step) -> Option<Cause> {
    match (step.what, step.kind) {
        (EventKind::FeedbackReceived, Kind::Cnp) => Some(Cause::CnpCut),
        (EventKind::FeedbackReceived, Kind::Nack) => Some(Cause::NackCut),
        (EventKind::TimedOut, _) => Some(Cause::TimeoutCut),
        _ => None,
    }
}

/// All cuts. A congestion control may cut at once or, as DCQCN does, at its next timer. So a cut is due to all
/// feedback since the cut before. If there was none, it is due to the event at which the rate is lower.
pub(crate) fn cuts(steps: &[Step]) -> Vec<Cut> {
    let (mut cuts, mut rate) = (Vec::new(), None);
    let (mut received, mut last) = (BTreeSet::new(), None);
    for (seen, step) in steps.iter().enumerate() {
        let asked = feedback(step);
        if let (Some(from), Some(to)) = (rate, step.gbps)
            // Rates are floats, so a decrease by less than a millionth is rounding.
            && to < from * (1.0 - 1e-6)
        {
            if received.is_empty() {
                received.extend(asked);
                last = asked.map(|_| seen);
            }
            cuts.push(Cut { seen, trigger: last, by: received.iter().copied().collect(), from, to });
            received.clear();
        }
        rate = step.gbps.or(rate);
        if let Some(asked) = asked {
            received.insert(asked);
            last = Some(seen);
        }
    }
    cuts
}
