//! Packets on their way: for every node and every coming window a list of chunks.
//!
//! A push is one store. Chunks come from a pool, last freed first used, so that the ones in use stay in the
//! cache. Packets that arrive beyond the ring of windows wait in a map until their window comes near.

use model::{Packet, PortIndex};
use std::collections::BTreeMap;

/// Packets of a chunk; the position after the last one says "full".
const CHUNK: u32 = 63;
const SHIFT: u32 = 6;
const FULL: u32 = 63;
const NONE: u32 = u32::MAX;
/// Windows that the ring covers.
const RING: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Inbox {
    first: u32,
    at: u32,
    count: u32,
}

/// Nobody wrote.
const EMPTY: Inbox = Inbox { first: NONE, at: NONE, count: 0 };

/// All inboxes.
#[derive(Debug)]
pub(crate) struct Mail {
    nodes: usize,
    window: u64,
    /// Number of the open window.
    open: u64,
    boxes: Vec<Inbox>,
    arena: Vec<Packet>,
    next: Vec<u32>,
    free: Vec<u32>,
    far: BTreeMap<u64, Vec<(u32, Packet)>>,
    /// Packets under way.
    total: u64,
    /// Where the boxes of the next window, and of the one after, start.
    ahead: [usize; 2],
}

const BLANK: Packet = Packet::new(model::Kind::Data, model::QpId(0), model::HostId(0), model::Psn::new(0), 0);

impl Mail {
    pub(crate) fn new(nodes: usize, window: u64) -> Self {
        Mail {
            nodes,
            window,
            open: 0,
            boxes: vec![EMPTY; nodes * RING],
            arena: Vec::new(),
            next: Vec::new(),
            free: Vec::new(),
            far: BTreeMap::new(),
            total: 0,
            ahead: [nodes, 2 * nodes],
        }
    }

    /// Opens window `number`; what was far comes near.
    pub(crate) fn turn(&mut self, number: u64) {
        self.open = number;
        self.ahead = [1, 2].map(|i| ((number as usize + i) & (RING - 1)) * self.nodes);
        while let Some(entry) = self.far.first_entry() {
            if *entry.key() >= number + RING as u64 {
                break;
            }
            let window = *entry.key();
            for (node, pkt) in entry.remove() {
                self.put(window, node as usize, pkt);
            }
        }
    }

    /// Sends a packet to arrive `after` picoseconds from the open window's start, at a port of `node`.
    #[inline(always)]
    pub(crate) fn push(&mut self, node: u32, port: PortIndex, after: u64, pkt: Packet) {
        self.total += 1;
        let mut offset = after - self.window;
        let mut ahead = 0;
        if offset >= self.window {
            offset -= self.window;
            ahead = 1;
            if offset >= self.window {
                return self.push_far(node, port, after, pkt);
            }
        }
        let inbox = &mut self.boxes[self.ahead[ahead] + node as usize];
        inbox.count += 1;
        let at = inbox.at;
        if at & FULL == FULL {
            return self.push_chunk(self.ahead[ahead] + node as usize, pkt.arriving(offset as u32, port));
        }
        inbox.at = at + 1;
        self.arena[at as usize] = pkt.arriving(offset as u32, port);
    }

    #[cold]
    fn push_far(&mut self, node: u32, port: PortIndex, after: u64, pkt: Packet) {
        let window = self.open + after / self.window;
        let pkt = pkt.arriving((after % self.window) as u32, port);
        if window >= self.open + RING as u64 {
            self.far.entry(window).or_default().push((node, pkt));
        } else {
            self.put(window, node as usize, pkt);
        }
    }

    fn put(&mut self, window: u64, node: usize, pkt: Packet) {
        let index = (window as usize & (RING - 1)) * self.nodes + node;
        let inbox = &mut self.boxes[index];
        inbox.count += 1;
        let at = inbox.at;
        if at & FULL == FULL {
            return self.push_chunk(index, pkt);
        }
        inbox.at = at + 1;
        self.arena[at as usize] = pkt;
    }

    /// Begins a new chunk of box `index` with `pkt`.
    #[inline(never)]
    fn push_chunk(&mut self, index: usize, pkt: Packet) {
        let chunk = self.free.pop().unwrap_or_else(|| {
            self.next.push(NONE);
            self.arena.resize(self.next.len() << SHIFT, BLANK);
            self.next.len() as u32 - 1
        });
        self.next[chunk as usize] = NONE;
        let inbox = &mut self.boxes[index];
        if inbox.first == NONE {
            inbox.first = chunk;
        } else {
            self.next[(inbox.at >> SHIFT) as usize] = chunk;
        }
        inbox.at = (chunk << SHIFT) + 1;
        self.arena[(chunk as usize) << SHIFT] = pkt;
    }

    /// Packets that wait for `node` in the open window.
    #[inline]
    pub(crate) fn waiting(&self, node: usize) -> usize {
        self.boxes[(self.open as usize & (RING - 1)) * self.nodes + node].count as usize
    }

    /// Nothing is under way.
    pub(crate) fn idle(&self) -> bool {
        self.total == 0
    }

    /// The first window from which on something is under way, if the ring is empty.
    pub(crate) fn nearest(&self) -> Option<u64> {
        let near = |w: u64| {
            let at = (w as usize & (RING - 1)) * self.nodes;
            self.boxes[at..at + self.nodes].iter().any(|b| b.count > 0)
        };
        (self.open..self.open + RING as u64).find(|w| near(*w)).or_else(|| self.far.keys().next().copied())
    }

    /// Takes the open window's packets for `node` into `out`, by arrival; ties by `order`.
    pub(crate) fn take(&mut self, node: usize, sorter: &mut Sorter, order: impl Fn(&Packet) -> u64) -> usize {
        let inbox =
            std::mem::replace(&mut self.boxes[(self.open as usize & (RING - 1)) * self.nodes + node], EMPTY);
        let count = inbox.count as usize;
        if count == 0 {
            return 0;
        }
        self.total -= count as u64;
        if sorter.out.len() < count {
            sorter.out.resize(count.next_power_of_two(), BLANK);
        }
        sorter.prepare(count, self.window);
        let (mut chunk, mut left) = (inbox.first, count);
        while chunk != NONE {
            let here = left.min(CHUNK as usize);
            let start = (chunk as usize) << SHIFT;
            sorter.count(&self.arena[start..start + here]);
            left -= here;
            chunk = self.next[chunk as usize];
        }
        sorter.sum();
        (chunk, left) = (inbox.first, count);
        while chunk != NONE {
            let here = left.min(CHUNK as usize);
            let start = (chunk as usize) << SHIFT;
            sorter.place(&self.arena[start..start + here]);
            left -= here;
            self.free.push(chunk);
            chunk = self.next[chunk as usize];
        }
        sorter.finish(count, order);
        count
    }

    /// Everything under way, for the books.
    pub(crate) fn under_way(&self) -> Vec<Packet> {
        let mut all: Vec<Packet> = self.far.values().flatten().map(|(_, p)| *p).collect();
        for inbox in &self.boxes {
            let (mut chunk, mut left) = (inbox.first, inbox.count as usize);
            while chunk != NONE {
                let here = left.min(CHUNK as usize);
                let start = (chunk as usize) << SHIFT;
                all.extend_from_slice(&self.arena[start..start + here]);
                left -= here;
                chunk = self.next[chunk as usize];
            }
        }
        all
    }
}

/// Sorts a window's packets by arrival: a counting sort into bins of time, then insertion inside and across
/// neighbouring bins.
#[derive(Debug)]
pub(crate) struct Sorter {
    /// The sorted packets.
    pub(crate) out: Vec<Packet>,
    bins: Vec<u32>,
    used: usize,
    shift: u32,
    /// Packets of one instant, with their order.
    tied: Vec<(u64, Packet)>,
}

const MOST_BINS: usize = 1 << 13;

impl Sorter {
    pub(crate) fn new() -> Self {
        Sorter { out: Vec::new(), bins: vec![0; MOST_BINS + 1], used: 0, shift: 0, tied: Vec::new() }
    }

    #[inline]
    fn prepare(&mut self, count: usize, window: u64) {
        let bins = (2 * count).next_power_of_two().min(MOST_BINS);
        let bits = 64 - (window - 1).leading_zeros();
        self.shift = bits.saturating_sub(bins.trailing_zeros());
        self.used = ((window - 1) >> self.shift) as usize + 1;
        self.bins[..self.used].fill(0);
    }

    #[inline]
    fn count(&mut self, packets: &[Packet]) {
        let bins = &mut self.bins[..self.used];
        for p in packets {
            bins[(p.offset() >> self.shift) as usize] += 1;
        }
    }

    #[inline]
    fn sum(&mut self) {
        let mut sum = 0;
        for bin in &mut self.bins[..self.used] {
            sum += std::mem::replace(bin, sum);
        }
    }

    #[inline]
    fn place(&mut self, packets: &[Packet]) {
        let bins = &mut self.bins[..self.used];
        let out = &mut self.out[..];
        for p in packets {
            let at = &mut bins[(p.offset() >> self.shift) as usize];
            out[*at as usize] = *p;
            *at += 1;
        }
    }

    #[inline]
    fn finish(&mut self, count: usize, order: impl Fn(&Packet) -> u64) {
        let out = &mut self.out[..count];
        let mut ties = false;
        let mut before = out[0].offset();
        for i in 1..out.len() {
            let p = out[i];
            let at = p.offset();
            ties |= at == before;
            if at >= before {
                before = at;
                continue;
            }
            let mut j = i;
            while j > 0 && out[j - 1].offset() > at {
                out[j] = out[j - 1];
                j -= 1;
            }
            ties |= j > 0 && out[j - 1].offset() == at;
            out[j] = p;
        }
        if ties {
            self.untie(count, order);
        }
    }

    /// Orders packets of the same instant.
    fn untie(&mut self, count: usize, order: impl Fn(&Packet) -> u64) {
        let out = &mut self.out[..count];
        let mut i = 0;
        while i + 1 < count {
            let at = out[i].offset();
            let mut end = i + 1;
            while end < count && out[end].offset() == at {
                end += 1;
            }
            if end - i > 1 {
                self.tied.clear();
                self.tied.extend(out[i..end].iter().map(|p| (order(p), *p)));
                self.tied.sort_unstable_by_key(|(key, _)| *key);
                for (slot, (_, p)) in out[i..end].iter_mut().zip(&self.tied) {
                    *slot = *p;
                }
            }
            i = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{HostId, Kind, Psn, QpId};

    fn packet(n: u32) -> Packet {
        Packet::new(Kind::Data, QpId(n), HostId(0), Psn::new(n), 100)
    }

    #[test]
    fn packets_come_out_by_arrival_and_ties_by_order() {
        let mut mail = Mail::new(2, 1000);
        let mut sorter = Sorter::new();
        for n in 0..500u32 {
            let after = 1000 + (n as u64 * 7919) % 1000 / 2 * 2;
            mail.push(1, PortIndex((n % 3) as u16), after, packet(n));
        }
        mail.turn(1);
        assert_eq!(mail.waiting(1), 500);
        let count = mail.take(1, &mut sorter, |p| p.ingress().0 as u64);
        let out = &sorter.out[..count];
        assert!(out.is_sorted_by_key(|p| (p.offset(), p.ingress())));
        assert_eq!(count, 500);
        assert!(mail.idle());
    }

    #[test]
    fn a_packet_for_a_distant_window_arrives_in_it() {
        let mut mail = Mail::new(1, 1000);
        let mut sorter = Sorter::new();
        mail.push(0, PortIndex(0), 500_123, packet(1));
        assert_eq!(mail.nearest(), Some(500));
        for w in 1..500 {
            mail.turn(w);
            assert_eq!(mail.waiting(0), 0);
        }
        mail.turn(500);
        assert_eq!(mail.take(0, &mut sorter, |_| 0), 1);
        assert_eq!(sorter.out[0].offset(), 123);
    }
}
