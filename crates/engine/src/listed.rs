//! Losses by list: a given packet is lost on a given link a given number of times.

use model::plan::ListedLoss;
use model::{LinkId, Packet};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The list of a run, with the number of losses still to come.
///
/// One node serves a link, and one thread at a time serves a node, in order of time. So the counters of one link do
/// not depend on the number of threads, and no two links share a counter.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Keys in ascending order.
    keys: Vec<Key>,
    left: Vec<AtomicU32>,
}

/// A packet that is lost on a link. Keys are ordered by link first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    link: u32,
    qp: u32,
    kind: u8,
    psn: u32,
}

impl Listed {
    pub(crate) fn new(list: &[ListedLoss]) -> Self {
        let key = |l: &ListedLoss| Key { link: l.link.0, qp: l.qp.0, kind: l.kind as u8, psn: l.psn.value() };
        let mut list: Vec<(Key, u32)> = list.iter().map(|l| (key(l), l.times)).collect();
        list.sort_unstable();
        list.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1 = first.1.saturating_add(next.1);
            }
            same
        });
        let (keys, left): (Vec<_>, Vec<_>) = list.into_iter().unzip();
        Listed { keys, left: left.into_iter().map(AtomicU32::new).collect() }
    }

    /// True if packets of the link are listed.
    pub(crate) fn concerns(&self, link: LinkId) -> bool {
        let first = self.keys.partition_point(|key| key.link < link.0);
        self.keys.get(first).is_some_and(|key| key.link == link.0)
    }

    /// True if the link loses the packet that starts on it now. Called once for every start.
    #[inline(never)]
    pub(crate) fn loses(&self, link: usize, pkt: &Packet) -> bool {
        let key = Key { link: link as u32, qp: pkt.qp().0, kind: pkt.kind() as u8, psn: pkt.psn().value() };
        let Ok(at) = self.keys.binary_search(&key) else { return false };
        let left = self.left[at].load(Relaxed);
        if left > 0 {
            self.left[at].store(left - 1, Relaxed);
        }
        left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{HostId, Kind, Psn, QpId};

    #[test]
    fn a_packet_is_lost_as_often_as_it_is_listed() {
        let lose = |link, psn, times| ListedLoss {
            link: LinkId(link),
            qp: QpId(3),
            kind: Kind::Data,
            psn: Psn::new(psn),
            times,
        };
        let listed = Listed::new(&[lose(2, 7, 1), lose(1, 5, 1), lose(2, 7, 1)]);
        let starts = |link: usize, qp, psn, kind| {
            let pkt = Packet::new(kind, QpId(qp), HostId(0), Psn::new(psn), 100);
            (0..3).map(|_| listed.loses(link, &pkt)).collect::<Vec<_>>()
        };
        assert_eq!(starts(2, 3, 7, Kind::Data), [true, true, false]);
        assert_eq!(starts(1, 3, 5, Kind::Data), [true, false, false]);
        assert_eq!(starts(1, 3, 7, Kind::Data), [false; 3]);
        assert_eq!(starts(1, 4, 5, Kind::Data), [false; 3]);
        assert_eq!(starts(1, 3, 5, Kind::Ack), [false; 3]);
        assert!(listed.concerns(LinkId(1)) && !listed.concerns(LinkId(0)) && !listed.concerns(LinkId(3)));
    }
}
