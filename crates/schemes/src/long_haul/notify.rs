//! The notification point: sends CNPs to local senders on behalf of remote receivers.

use super::config::{Config, Notification};
use crate::flows::Flows;
use model::{Cx, HostId, Kind, Packet, Psn, QpId, Time};

/// Time of the last CNP to a flow's sender, if any. An entry older than the interval has no effect, so a switch may forget
/// it.
#[derive(Clone, Copy, Debug, Default)]
struct LastCnp(Option<Time>);

/// The notification point of one switch.
#[derive(Clone, Debug)]
pub(super) struct Notifier {
    mode: Notification,
    gates: bool,
    interval: Time,
    /// Sending host of every queue pair.
    senders: Vec<HostId>,
    /// Frame of a CNP, bytes.
    frame: u32,
    last_cnp: Flows<LastCnp>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    seen: u64,
    made: u64,
    passed: u64,
    gated: u64,
}

impl Notifier {
    pub(super) fn new(config: &Config, senders: Vec<HostId>, frame: u32) -> Self {
        Notifier {
            mode: config.notification,
            gates: config.gates(),
            interval: config.interval,
            senders,
            frame,
            last_cnp: Flows::new(),
            counts: Counts::default(),
        }
    }

    /// Handles marked data that is about to leave for the other datacentre.
    pub(super) fn notify(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet) {
        self.counts.seen += 1;
        let qp = pkt.qp();
        match self.mode {
            Notification::Off => return,
            Notification::Paper => {
                if self.due(cx.now, qp) {
                    self.send_cnp(cx, qp);
                }
            }
            Notification::Prototype => {
                if self.due(cx.now, qp) {
                    self.send_cnp(cx, qp);
                }
                self.send_cnp(cx, qp);
            }
        }
        // With the mark, the receiver or a later switch would report the same congestion again.
        pkt.unmark();
    }

    /// True if a CNP from a long link may be forwarded.
    pub(super) fn passes(&mut self, now: Time, pkt: &Packet) -> bool {
        let passes = !self.gates || self.due(now, pkt.qp());
        match passes {
            true => self.counts.passed += 1,
            false => self.counts.gated += 1,
        }
        passes
    }

    /// True if a flow's sender may get a CNP now; then this starts a new interval.
    fn due(&mut self, now: Time, qp: QpId) -> bool {
        let last_cnp = self.last_cnp.entry(qp);
        let due = last_cnp.0.is_none_or(|at| now.ps() - at.ps() > self.interval.ps());
        if due {
            last_cnp.0 = Some(now);
        }
        due
    }

    fn send_cnp(&mut self, cx: &mut Cx<'_>, qp: QpId) {
        if let Some(&sender) = self.senders.get(qp.index()) {
            self.counts.made += 1;
            cx.emit(Packet::new(Kind::Cnp, qp, sender, Psn::new(0), self.frame));
        }
    }

    pub(super) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let Counts { seen, made, passed, gated } = self.counts;
        for (name, count) in
            [("marks_seen", seen), ("cnps_made", made), ("cnps_passed", passed), ("cnps_gated", gated)]
        {
            sink(name, count);
        }
    }
}
