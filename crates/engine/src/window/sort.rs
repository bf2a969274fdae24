//! Brings the packets that reach a node in one window into the order of their arrival.
//!
//! Every lane is in order by itself. Many packets are laid into bins of time by a counting sort and put right
//! by insertion; few by insertion alone. Packets of the same instant stand in the order that their node draws.

use crate::setup::Tie;
use model::Packet;

/// Sorts, and keeps the memory that sorting takes.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    out: Vec<Packet>,
    bins: Vec<u32>,
}

/// Up to here insertion is faster than bins: measured, at 8 to 32 it makes no difference.
const FEW: usize = 12;
/// Bins stay in the first-level cache. Our choice.
const MOST_BINS: usize = 1 << 12;

const BLANK: Packet = Packet::new(model::Kind::Data, model::QpId(0), model::HostId(0), model::Psn::new(0), 0);

impl Sorter {
    /// The packets of all `lanes`, `count` together, that arrive in a window of `length` ps.
    #[inline]
    pub(super) fn sort<'p>(
        &mut self,
        lanes: impl Iterator<Item = &'p [Packet]> + Clone,
        count: usize,
        length: u64,
        tie: Tie,
    ) -> &mut [Packet] {
        if self.out.len() < count {
            self.out.resize(count.next_power_of_two(), BLANK);
        }
        let out = &mut self.out[..count];
        if count <= FEW {
            let mut at = 0;
            for lane in lanes {
                out[at..at + lane.len()].copy_from_slice(lane);
                at += lane.len();
            }
        } else {
            self.lay(lanes, count, length);
        }
        let out = &mut self.out[..count];
        let mut before = 0;
        for i in 0..out.len() {
            let offset = out[i].offset();
            if i > 0 && offset <= before {
                insert(&mut out[..=i], tie);
            } else {
                before = offset;
            }
        }
        out
    }

    /// Lays the packets out by bins of time.
    #[inline]
    fn lay<'p>(&mut self, lanes: impl Iterator<Item = &'p [Packet]> + Clone, count: usize, length: u64) {
        let bits = u64::BITS - (length - 1).leading_zeros();
        let wanted = count.next_power_of_two().min(MOST_BINS).trailing_zeros();
        let shift = bits.saturating_sub(wanted);
        let used = ((length - 1) >> shift) as usize + 1;
        self.bins.clear();
        self.bins.resize(used, 0);
        let bins = &mut self.bins[..];
        for lane in lanes.clone() {
            for p in lane {
                bins[(p.offset() >> shift) as usize] += 1;
            }
        }
        let mut sum = 0;
        for bin in bins.iter_mut() {
            sum += std::mem::replace(bin, sum);
        }
        let out = &mut self.out[..count];
        for lane in lanes {
            for p in lane {
                let at = &mut bins[(p.offset() >> shift) as usize];
                out[*at as usize] = *p;
                *at += 1;
            }
        }
    }
}

/// Moves the last packet to its place among the others, which are in order.
#[inline]
fn insert(out: &mut [Packet], tie: Tie) {
    let Some((&last, rest)) = out.split_last() else { return };
    let at = last.offset();
    let mut j = rest.len();
    while j > 0 && out[j - 1].offset() > at {
        out[j] = out[j - 1];
        j -= 1;
    }
    if j > 0 && out[j - 1].offset() == at {
        let rank = tie.rank(at, last.ingress());
        while j > 0 && out[j - 1].offset() == at && tie.rank(at, out[j - 1].ingress()) > rank {
            out[j] = out[j - 1];
            j -= 1;
        }
    }
    out[j] = last;
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{HostId, Kind, PortIndex, Psn, QpId};

    #[test]
    fn packets_come_out_by_arrival_and_no_port_is_always_first() {
        let mut sorter = Sorter::default();
        for count in [1usize, 5, 13, 300, 5000] {
            let lane = |port: u16| -> Vec<Packet> {
                let pkt = |n: usize| {
                    Packet::new(Kind::Data, QpId(n as u32), HostId(0), Psn::new(n as u32), 100)
                        .arriving((n * 1_000_000 / count) as u32, PortIndex(port))
                };
                (0..count).map(pkt).collect()
            };
            let lanes: Vec<Vec<Packet>> = (0..5).map(lane).collect();
            let tie = Tie::new(77, 3_000_000);
            let out = sorter.sort(lanes.iter().map(|l| &l[..]), 5 * count, 1_000_000, tie);
            assert!(out.is_sorted_by_key(|p| (p.offset(), tie.rank(p.offset(), p.ingress()))));
            let mut ports: Vec<_> = out.chunks(5).map(|c| c[0].ingress()).collect();
            ports.sort_unstable();
            ports.dedup();
            assert!(count < 300 || ports.len() == 5, "only {ports:?} ever come first");
        }
    }
}
