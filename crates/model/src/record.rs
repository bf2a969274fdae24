//! Recordings of a run beside its results: time series, events of chosen queue pairs, and frames at taps.

use crate::ids::{LinkId, QpId};
use crate::units::Time;

/// Settings of all recordings. Recording never changes a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordPlan {
    /// Queue pairs with a time series, in ascending order.
    pub qps: Vec<QpId>,
    /// Links with a time series, in ascending order.
    pub links: Vec<LinkId>,
    /// True for time series of the buffers of all switches.
    pub switches: bool,
    /// True for time series of the schemes' counters.
    pub counters: bool,
    /// True to count frames, drops and marks of each class of the ports of switches.
    pub queues: bool,
    /// Initial width of a bin, rounded up to whole windows of the engine. The width doubles whenever all bins are full.
    pub width: Time,
    /// Most bins of a series: an even number, at least 2.
    pub bins: usize,
    /// Queue pairs whose events are recorded, in ascending order.
    pub follow: Vec<QpId>,
    /// Most events that are kept of a queue pair, counted separately for packets and for other events; the first are kept.
    pub events: usize,
    /// Links whose frames are recorded, in ascending order.
    pub taps: Vec<LinkId>,
}

impl RecordPlan {
    /// True if no time series is recorded.
    pub fn is_blind(&self) -> bool {
        self.qps.is_empty() && self.links.is_empty() && !self.switches && !self.counters
    }

    /// Index of a queue pair in [`RecordPlan::qps`].
    pub fn track(&self, qp: QpId) -> Option<u32> {
        self.qps.binary_search(&qp).ok().map(|at| at as u32)
    }

    /// True if the events of the queue pair are recorded.
    pub fn follows(&self, qp: QpId) -> bool {
        self.follow.binary_search(&qp).is_ok()
    }
}
