//! Data packets. `sent` equals the sum of `accepted`, `duplicate`, `discarded`, `noticed`, `dropped`, `cut.packets`, `held`
//! and `in_flight`.

use super::{Better, Digest, Shown, Unit};
use crate::data::RunData;
use std::collections::BTreeMap;

const SENT: &str = "packets.sent";

section! {
    /// Data packets. `sent` = `accepted` + `duplicate` + `discarded` + `noticed` + `dropped` + `cut.packets` + `held` +
    /// `in_flight`.
    pub struct Packets read from run: RunData<'_>;

    /// Data packets that hosts put on the wire, including retransmissions, copies and notices.
    sent: u64 = run.outcome.data.sent => { label: "packets sent", unit: Unit::Packets, digest: Digest::Always(1) };

    /// Data packets that their receiver accepted.
    accepted: u64 = run.outcome.data.accepted => { unit: Unit::Packets, share_of: SENT, digest: Digest::Always(2) };

    /// Retransmissions.
    retransmitted: u64 = run.outcome.data.retransmitted => {
        heading: "retx\n%", unit: Unit::Packets, better: Better::Less, shown: Shown::Sweep,
        share_of: SENT, percent: true, digest: Digest::Always(3),
    };

    /// Retransmissions that arrived although an earlier copy had arrived.
    spurious: u64 = run.outcome.data.spurious => {
        heading: "spurious\n%", unit: Unit::Packets, better: Better::Less, shown: Shown::Sweep,
        share_of: SENT, percent: true, digest: Digest::Always(4),
    };

    /// Copies that a scheme made on purpose.
    duplicated: u64 = run.outcome.data.duplicated => {
        unit: Unit::Packets, share_of: SENT, digest: Digest::Always(5),
    };

    /// Arrivals of a PSN that had arrived before.
    duplicate: u64 = run.outcome.data.duplicate => {
        unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Always(6),
    };

    /// Arrivals that the receiver discarded; under go-back-N these are the packets that arrived out of order.
    discarded: u64 = run.outcome.data.discarded => {
        unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Always(7),
    };

    /// Arrivals with a PSN above ePSN.
    out_of_order: u64 = run.outcome.data.out_of_order => {
        heading: "ooo\n%", unit: Unit::Packets, better: Better::Less, shown: Shown::Sweep,
        share_of: SENT, percent: true, digest: Digest::Always(8),
    };

    /// Arrivals with a PSN above ePSN in each traffic class; empty if the run has one class.
    out_of_order_by_class: BTreeMap<String, u64> = out_of_order_by_class(run) => {
        label: "out of order, *", unit: Unit::Packets, better: Better::Less, part: "traffic class *",
    };

    /// Data packets dropped for lack of buffer.
    dropped_buffer: u64 = run.outcome.data.dropped_buffer => {
        unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Always(9),
    };

    /// Data packets lost on a link.
    dropped_link: u64 = run.outcome.data.dropped_link => {
        unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Always(10),
    };

    /// Data packets among these lost by a link's chance of loss, or because `links.lose` lists them. This count and the next three
    /// add up to `dropped_link`.
    lost_by_chance: u64 = run.outcome.data.by_chance => {
        label: "lost by chance", unit: Unit::Packets, better: Better::Less, share_of: SENT,
    };

    /// Data packets that touched a pair of codewords that FEC could not repair.
    lost_codeword: u64 = run.outcome.data.by_codeword => {
        label: "lost with a codeword", unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Named,
    };

    /// Data packets lost in bursts (`links.gilbert`).
    lost_burst: u64 = run.outcome.data.in_bursts => {
        label: "lost in bursts", unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Named,
    };

    /// Data packets lost on links that were down.
    lost_outage: u64 = run.outcome.data.in_outages => {
        label: "lost to dead links", unit: Unit::Packets, better: Better::Less, share_of: SENT,
    };

    /// Data packets among these that started on a link that was down already.
    lost_black_hole: u64 = run.outcome.data.black_hole => {
        label: "lost into dead links", unit: Unit::Packets, better: Better::Less, share_of: SENT,
    };

    /// Data packets that ran in circles until their hop limit of 64 switches.
    lost_loop: u64 = run.outcome.data.dropped_loop => {
        label: "lost in loops", unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Named,
    };

    /// Data packets dropped by watchdogs of PFC (`switch.pfc.watchdog`).
    lost_watchdog: u64 = run.outcome.data.dropped_watchdog => {
        label: "lost to watchdogs", unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Named,
    };

    /// Data packets dropped by a scheme.
    dropped_scheme: u64 = run.outcome.data.dropped_scheme => {
        unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Always(11),
    };

    /// Data packets dropped for lack of buffer, lost on a link or in a loop, or dropped by a watchdog or a scheme.
    dropped: u64 = run.outcome.data.dropped() => {
        unit: Unit::Packets, better: Better::Less, shown: Shown::Page, share_of: SENT,
    };

    /// Data packets that schemes still hold at the end.
    held: u64 = run.outcome.data.held => { unit: Unit::Packets, share_of: SENT, digest: Digest::Always(12) };

    /// Data packets on a wire or in a queue at the end.
    in_flight: u64 = run.outcome.data.in_flight => {
        unit: Unit::Packets, share_of: SENT, digest: Digest::Always(13),
    };

    /// Notices that arrived: packets without payload that a scheme sent in the class of data.
    noticed: u64 = run.outcome.data.noticed => { unit: Unit::Packets, share_of: SENT, digest: Digest::Together(1) };

    /// Data packets that switches trimmed; null if they trimmed none.
    cut: Option<CutPackets> = CutPackets::of(run) => {};

    /// Packets that wait at a receiver for a gap to be filled; null if no receiver keeps packets above a gap and counts them.
    reorder_buffer: Option<ReorderBuffer> = ReorderBuffer::of(run) => {};
}

section! {
    /// Data packets that switches trimmed. The headers of a trimmed packet go on to the receiver.
    pub struct CutPackets read from run: RunData<'_>;

    /// Data packets that switches trimmed.
    packets: u64 = run.outcome.data.cut => {
        label: "cut", heading: "cut\n%", unit: Unit::Packets, better: Better::Less, shown: Shown::Comparison,
        share_of: SENT, percent: true, rare: true, digest: Digest::Named,
    };

    /// Data packets that their receiver's switch trimmed.
    last_hop: u64 = run.outcome.data.cut_last_hop => {
        label: "cut at the last hop", unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Named,
    };

    /// Trimmed packets whose headers were lost on a link, did not fit into their queue or were dropped by a scheme.
    headers_lost: u64 = run.outcome.data.headers_lost => {
        label: "headers lost", unit: Unit::Packets, better: Better::Less, share_of: SENT, digest: Digest::Named,
    };
}

impl CutPackets {
    fn of(run: RunData<'_>) -> Option<Self> {
        (run.outcome.data.cut > 0).then(|| Self::read(run))
    }
}

section! {
    /// Packets of one queue pair that wait at the receiver for a gap to be filled.
    pub struct ReorderBuffer read from run: RunData<'_>;

    /// Packets of one queue pair that wait for a gap to be filled, mean over the arrivals of data.
    mean: f64 = mean_waiting(run) => { label: "waiting, mean", unit: Unit::Packets, better: Better::Less };

    /// Most packets of one queue pair that waited for a gap to be filled at one time.
    max: u64 = run.outcome.data.reorder_peak => {
        label: "waiting, max", unit: Unit::Packets, better: Better::Less, digest: Digest::Together(3),
    };

    /// Packets that waited for a gap to be filled, summed over the arrivals of data.
    sum: u64 = run.outcome.data.reorder_sum => {
        label: "waiting, sum", unit: Unit::Packets, digest: Digest::Together(2),
    };
}

impl ReorderBuffer {
    fn of(run: RunData<'_>) -> Option<Self> {
        (run.outcome.data.reorder_sum > 0).then(|| Self::read(run))
    }
}

fn mean_waiting(run: RunData<'_>) -> f64 {
    let data = &run.outcome.data;
    data.reorder_sum as f64 / (data.accepted + data.duplicate + data.discarded).max(1) as f64
}

fn out_of_order_by_class(run: RunData<'_>) -> BTreeMap<String, u64> {
    let of = |class: u8| run.outcome.out_of_order.get(usize::from(class)).copied().unwrap_or(0);
    let all: BTreeMap<_, _> = run.classes().map(|(class, name)| (name.clone(), of(class))).collect();
    if all.len() > 1 { all } else { BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{keys, outcome, plan};

    #[test]
    fn the_keys_are_the_contract() {
        let (plan, outcome) = (plan(3), outcome(3));
        let section = Packets::read(RunData { plan: &plan, ideal: &[], outcome: &outcome, served: None });
        assert_eq!(
            keys(&section),
            "sent accepted retransmitted spurious duplicated duplicate discarded out_of_order \
             out_of_order_by_class dropped_buffer dropped_link lost_by_chance lost_codeword lost_burst lost_outage lost_black_hole lost_loop lost_watchdog dropped_scheme dropped held in_flight \
             noticed cut reorder_buffer"
        );
    }
}
