//! A queue of packets: a ring that doubles when it is full and never shrinks.

use model::{HostId, Kind, Packet, Psn, QpId};

/// Packets, first in, first out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    slots: Box<[Packet]>,
    head: u32,
    len: u32,
}

const BLANK: Packet = Packet::new(Kind::Data, QpId(0), HostId(0), Psn::new(0), 0);

impl Ring {
    #[inline]
    pub(crate) fn push(&mut self, pkt: Packet) {
        if self.len as usize == self.slots.len() {
            self.grow();
        }
        // The length is a power of two once there is one.
        let mask = self.slots.len() - 1;
        self.slots[(self.head + self.len) as usize & mask] = pkt;
        self.len += 1;
    }

    /// The first packet, and whether it was the last one.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Packet, bool)> {
        if self.len == 0 {
            return None;
        }
        let mask = self.slots.len() - 1;
        let pkt = self.slots[self.head as usize & mask];
        self.head = self.head.wrapping_add(1) & mask as u32;
        self.len -= 1;
        Some((pkt, self.len == 0))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Packet> {
        let mask = self.slots.len().wrapping_sub(1);
        (self.head..self.head + self.len).map(move |i| &self.slots[i as usize & mask])
    }

    #[cold]
    fn grow(&mut self) {
        let all: Vec<Packet> = self.iter().copied().collect();
        let mut slots = vec![BLANK; (2 * all.len()).max(8)];
        slots[..all.len()].copy_from_slice(&all);
        self.slots = slots.into();
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_the_order_in_which_they_came_while_it_grows() {
        let mut ring = Ring::default();
        let packet = |n| Packet::new(Kind::Data, QpId(0), HostId(0), Psn::new(n), 64);
        let (mut next_in, mut next_out) = (0, 0);
        for round in 0..50u32 {
            for _ in 0..round % 7 + 2 {
                ring.push(packet(next_in));
                next_in += 1;
            }
            for _ in 0..round % 5 {
                assert_eq!(ring.pop().map(|(p, _)| p), Some(packet(next_out)));
                next_out += 1;
            }
        }
        assert!(ring.iter().map(|p| p.psn().value()).eq(next_out..next_in));
        while let Some((p, last)) = ring.pop() {
            assert_eq!(p, packet(next_out));
            next_out += 1;
            assert_eq!(last, next_out == next_in);
        }
    }
}
