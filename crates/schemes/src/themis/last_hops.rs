//! Required length of a ring: the number of packets that the links to the hosts of one ToR hold.

use super::config::{Config, Entries, Judging};
use ::themis::memory::{ring_entries, sound_ring_entries};
use model::{NodeId, Plan, QpId};

/// Unit of the ring factor: parts per thousand.
const FACTOR_UNIT: u64 = 1000;

/// Ring lengths that the last hops of one ToR require.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LastHops {
    /// Entries by the paper's formula, for the most demanding host.
    pub(super) paper: u64,
    /// Entries for sound judging, for the most demanding host.
    pub(super) sound: u64,
}

impl LastHops {
    /// Requirement of the hosts at `tor` that receive from queue pairs of other racks.
    pub(super) fn of(config: &Config, plan: &Plan, tor: NodeId, qps: impl Iterator<Item = QpId>) -> Self {
        let mut frames = vec![None; plan.fabric.ports(tor).len()];
        for qp in qps.map(|qp| &plan.qps[qp.index()]) {
            let Some(port) = plan.fabric.route(tor, qp.to).first() else { continue };
            let frame = &mut frames[port.index()];
            let least = frame.unwrap_or(plan.wire.max_frame());
            *frame = Some(shortest_mean(plan, qp.messages.clone()).min(least));
        }
        let factor = (config.ring_factor * FACTOR_UNIT as f64).round() as u64;
        let mut all = LastHops::default();
        for (link, frame) in plan.fabric.ports(tor).iter().zip(frames) {
            let Some(frame) = frame else { continue };
            let wire = &plan.wire;
            let (full, mean) =
                (wire.transmission(link.rate, wire.max_frame()), wire.transmission(link.rate, frame));
            // Waiting time of the reply: one full frame on the NIC's link (the library counts a mean frame), and the
            // replies and CNPs of the two packets that arrive meanwhile.
            let replies =
                wire.transmission(link.rate, wire.ack).ps() + wire.transmission(link.rate, wire.cnp).ps();
            let wait = full.since(mean).ps() + 2 * replies;
            let sound = sound_ring_entries(link.delay.ps(), mean.ps(), wait);
            // The short last packet of a message may come on top of the mean.
            all.sound = all.sound.max(sound + u64::from(frame < wire.max_frame()));
            let round_trip = 2 * link.delay.ps();
            let mtu = u64::from(wire.max_frame());
            all.paper = all.paper.max(ring_entries(link.rate.bps(), round_trip, (factor, FACTOR_UNIT), mtu));
        }
        all
    }

    /// Entries of every ring, and the age limit in packets.
    pub(super) fn lengths(&self, config: &Config) -> (u16, u16) {
        let cut = |entries: u64| u16::try_from(entries.max(1)).unwrap_or(u16::MAX);
        let formula = match config.mode {
            Judging::Literal => self.paper,
            Judging::Sound => self.paper.max(self.sound),
        };
        let or = |entries, formula| match entries {
            Entries::Formula => cut(formula),
            Entries::Count(n) => n,
        };
        (or(config.ring, formula), or(config.age_limit, self.sound))
    }
}

/// Mean frame of the message with the shortest mean frame, bytes. Consecutive packets of a queue pair are no shorter on
/// average, except for the end of one message.
fn shortest_mean(plan: &Plan, messages: std::ops::Range<u32>) -> u32 {
    let mean = |m: u32| {
        let bytes = plan.messages[m as usize].bytes;
        let before = plan.wire.packets(bytes) - 1;
        let last = plan.wire.data_frame(plan.wire.payload_of(bytes, before));
        ((before * u64::from(plan.wire.max_frame()) + u64::from(last)) / (before + 1)) as u32
    };
    messages.map(mean).min().unwrap_or(plan.wire.max_frame())
}
