//! Sorts the packets that reach a node in one window by time of arrival.
//!
//! Packets go into bins of time, about four bins per packet. Packets of one bin are chained and sorted when the
//! bins are emptied; most bins have at most one packet. The node's tie key orders packets of the same instant.

use super::lanes::bits;
use super::tie::Tie;
use model::{Annex, Parcel};

/// A sorter with reusable memory.
#[derive(Debug, Default)]
pub(super) struct Sorter<A> {
    /// All packets, each with the index of the previous packet in its bin.
    laid: Vec<(Parcel<A>, u32)>,
    /// Index of the last packet of every bin.
    bins: Vec<u32>,
    /// A bit for every bin that has packets; all are clear between two visits.
    filled: Vec<u64>,
    out: Vec<Parcel<A>>,
}

/// The index of no packet.
const NONE: u32 = u32::MAX;
/// Most bins, so that they stay in the first caches. Our choice.
const MOST_BINS: usize = 1 << 13;
/// Most packets of a bin that are sorted by insertion. More are rare: windows of milliseconds, or senders in step.
/// Our choice.
const FEW: usize = 32;

impl<A: Annex> Sorter<A> {
    /// Sorts the packets of all `lanes`, `count` in total, that arrive in a window of `length` ps.
    #[inline]
    pub(super) fn sort<'p>(
        &mut self,
        lanes: impl Iterator<Item = &'p [Parcel<A>]>,
        count: usize,
        length: u64,
        tie: Tie,
    ) -> &[Parcel<A>] {
        let Sorter { laid, bins, filled, out } = self;
        let digits = u64::BITS - (length - 1).leading_zeros();
        let wanted = (4 * count).next_power_of_two().min(MOST_BINS).trailing_zeros();
        let shift = digits.saturating_sub(wanted);
        let used = ((length - 1) >> shift) as usize + 1;
        if bins.len() < used {
            bins.resize(used, NONE);
            filled.resize(used.div_ceil(64), 0);
        }
        let (bins, filled) = (&mut bins[..used], &mut filled[..used.div_ceil(64)]);
        laid.clear();
        laid.reserve(count);
        for lane in lanes {
            let numbers = laid.len() as u32..;
            laid.extend(lane.iter().zip(numbers).map(|(pkt, number)| {
                let bin = (pkt.offset() >> shift) as usize;
                filled[bin / 64] |= 1 << (bin % 64);
                (*pkt, std::mem::replace(&mut bins[bin], number))
            }));
        }
        if out.len() < count {
            out.resize(count.next_power_of_two(), Parcel::default());
        }
        let (laid, out) = (&laid[..], &mut out[..count]);
        let mut end = 0;
        for (word, filled) in filled.iter_mut().enumerate() {
            for bin in bits(std::mem::take(filled), word * 64) {
                let (pkt, mut before) = laid[std::mem::replace(&mut bins[bin], NONE) as usize];
                out[end] = pkt;
                end += 1;
                if before == NONE {
                    continue;
                }
                let start = end - 1;
                while let Some(&(pkt, next)) = laid.get(before as usize) {
                    out[end] = pkt;
                    end += 1;
                    before = next;
                }
                order(&mut out[start..end], tie);
            }
        }
        out
    }
}

/// Sorts the packets of a bin, by insertion if they are few.
#[inline(never)]
fn order<A: Annex>(packets: &mut [Parcel<A>], tie: Tie) {
    if packets.len() > FEW {
        return packets.sort_unstable_by_key(|pkt| pkt.order(tie.port_mask(pkt.offset())));
    }
    for end in 1..packets.len() {
        let pkt = packets[end];
        let mask = tie.port_mask(pkt.offset());
        let key = pkt.order(mask);
        let mut at = end;
        while at > 0 && packets[at - 1].order(mask) > key {
            packets[at] = packets[at - 1];
            at -= 1;
        }
        packets[at] = pkt;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{HostId, Kind, Packet, PortIndex, Psn, QpId};

    #[test]
    fn packets_come_out_by_arrival_and_no_port_is_always_first() {
        let mut sorter = Sorter::default();
        for count in [1usize, 5, 13, 300, 5000] {
            let lane = |port: u16| -> Vec<Parcel<()>> {
                let pkt = |n: usize| {
                    let label = Packet::new(Kind::Data, QpId(n as u32), HostId(0), Psn::new(n as u32), 100);
                    Parcel::bare(label).arriving((n * 1_000_000 / count) as u32, PortIndex(port))
                };
                (0..count).map(pkt).collect()
            };
            let lanes: Vec<Vec<Parcel<()>>> = (0..5).map(lane).collect();
            let tie = Tie::new(77, 3_000_000);
            let out = sorter.sort(lanes.iter().map(|l| &l[..]), 5 * count, 1_000_000, tie);
            assert_eq!(out.len(), 5 * count);
            assert!(out.is_sorted_by_key(|p| (p.offset(), tie.rank(p))));
            let mut ports: Vec<_> = out.chunks(5).map(|c| c[0].ingress()).collect();
            ports.sort_unstable();
            ports.dedup();
            assert!(count < 300 || ports.len() == 5, "only {ports:?} ever come first");
        }
    }
}
