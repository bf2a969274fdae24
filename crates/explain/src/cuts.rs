//! The cuts of a queue pair's rate, and the notifications that caused them.

use crate::kept::Kept;
use crate::trace::Step;
use engine::outcome::EventKind;
use model::Kind;
use std::collections::BTreeSet;

/// A cut of the rate that congestion control allows.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    /// The event at which the rate is seen to be lower.
    pub(crate) seen: usize,
    /// The last CNP, NACK or timeout before it, if it was one of these: the event.
    pub(crate) news: Option<usize>,
    /// What the sender heard since the cut before.
    pub(crate) by: Vec<Kept>,
    /// From which rate, Gb/s.
    pub(crate) from: f64,
    /// To which.
    pub(crate) to: f64,
}

/// What tells a sender to slow down.
fn news(step: &Step) -> Option<Kept> {
    match (step.what, step.kind) {
        (EventKind::FeedbackReceived, Kind::Cnp) => Some(Kept::CnpCut),
        (EventKind::FeedbackReceived, Kind::Nack) => Some(Kept::NackCut),
        (EventKind::TimedOut, _) => Some(Kept::TimeoutCut),
        _ => None,
    }
}

/// All cuts. A congestion control may cut at once or, as DCQCN does, at its next timer: so what it has heard since
/// the last cut has done it, and only if that is nothing the event itself.
pub(crate) fn cuts(steps: &[Step]) -> Vec<Cut> {
    let (mut cuts, mut rate) = (Vec::new(), None);
    let (mut heard, mut last) = (BTreeSet::new(), None);
    for (seen, step) in steps.iter().enumerate() {
        let told = news(step);
        if let (Some(from), Some(to)) = (rate, step.gbps)
            // Rates are floats: less than a millionth is no cut.
            && to < from * (1.0 - 1e-6)
        {
            if heard.is_empty() {
                heard.extend(told);
                last = told.map(|_| seen);
            }
            cuts.push(Cut { seen, news: last, by: heard.iter().copied().collect(), from, to });
            heard.clear();
        }
        rate = step.gbps.or(rate);
        if let Some(told) = told {
            heard.insert(told);
            last = Some(seen);
        }
    }
    cuts
}
