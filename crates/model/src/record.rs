//! What a run records besides its results: series, the events of chosen queue pairs, frames at taps.

use crate::ids::{LinkId, QpId};
use crate::units::Time;

/// What to record. Nothing of it changes what happens in the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordPlan {
    /// Queue pairs to record over time, in order.
    pub qps: Vec<QpId>,
    /// Links to record over time, in order.
    pub links: Vec<LinkId>,
    /// The buffers of all switches, over time.
    pub switches: bool,
    /// What the schemes count, over time.
    pub counters: bool,
    /// Width of the first bins, rounded up to whole windows of the engine; it doubles whenever `bins` are full.
    pub width: Time,
    /// Most bins of a track: even, and 2 at least.
    pub bins: usize,
    /// Queue pairs of which every event is kept, in order.
    pub follow: Vec<QpId>,
    /// Most events of a queue pair, the first ones: so many packets, and so many of all else.
    pub events: usize,
    /// Links whose frames are kept, in order.
    pub taps: Vec<LinkId>,
    /// Most frames of a tap, the first ones.
    pub frames: usize,
}

impl RecordPlan {
    /// Nothing is recorded over time.
    pub fn is_blind(&self) -> bool {
        self.qps.is_empty() && self.links.is_empty() && !self.switches && !self.counters
    }

    /// The place of a queue pair among those recorded over time.
    pub fn track(&self, qp: QpId) -> Option<u32> {
        self.qps.binary_search(&qp).ok().map(|at| at as u32)
    }

    /// Whether it is followed.
    pub fn follows(&self, qp: QpId) -> bool {
        self.follow.binary_search(&qp).is_ok()
    }
}
