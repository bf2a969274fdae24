//! A queue of packets: a ring that doubles when it is full and never shrinks.

use model::{HostId, Kind, Packet, Psn, QpId};

/// Packets, first in, first out.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    /// As many as a power of two, or none.
    slots: Box<[Packet]>,
    /// Places, not reduced to the slots: of the first packet, and past the last.
    head: u32,
    tail: u32,
}

const BLANK: Packet = Packet::new(Kind::Data, QpId(0), HostId(0), Psn::new(0), 0);

impl Ring {
    #[inline(always)]
    fn slot(&mut self, place: u32) -> &mut Packet {
        let mask = self.slots.len() - 1;
        &mut self.slots[place as usize & mask]
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    #[inline(always)]
    pub(super) fn push(&mut self, pkt: Packet) {
        if self.len() as usize == self.slots.len() {
            self.grow();
        }
        *self.slot(self.tail) = pkt;
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Packet> {
        if self.is_empty() {
            return None;
        }
        let pkt = *self.slot(self.head);
        self.head = self.head.wrapping_add(1);
        Some(pkt)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Packet> {
        let mask = self.slots.len().wrapping_sub(1);
        (0..self.len()).map(move |i| &self.slots[self.head.wrapping_add(i) as usize & mask])
    }

    #[cold]
    fn grow(&mut self) {
        let all: Vec<Packet> = self.iter().copied().collect();
        let mut slots = vec![BLANK; (2 * all.len()).max(8)];
        slots[..all.len()].copy_from_slice(&all);
        self.slots = slots.into();
        (self.head, self.tail) = (0, all.len() as u32);
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
                assert_eq!(ring.pop(), Some(packet(next_out)));
                next_out += 1;
            }
        }
        assert!(ring.iter().map(|p| p.psn().value()).eq(next_out..next_in));
        while let Some(p) = ring.pop() {
            assert_eq!(p, packet(next_out));
            next_out += 1;
        }
        assert!(ring.is_empty() && next_out == next_in);
    }
}
