//! A queue of packets: a ring that doubles when it is full and never shrinks.
//!
//! Its packets are of two kinds: first those that wait, then those that are still to come. A packet that a
//! switch has sent to a port is to come until the port's clock has passed its arrival.

use model::{HostId, Kind, Packet, Psn, QpId};

/// Packets, first in, first out.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    /// As many as a power of two, or none.
    slots: Box<[Packet]>,
    /// Places, not reduced to the slots: of the first packet, of the first that is to come, and past the last.
    head: u32,
    coming: u32,
    tail: u32,
}

const BLANK: Packet = Packet::new(Kind::Data, QpId(0), HostId(0), Psn::new(0), 0);

impl Ring {
    #[inline(always)]
    fn slot(&mut self, place: u32) -> &mut Packet {
        let mask = self.slots.len() - 1;
        &mut self.slots[place as usize & mask]
    }

    /// Nothing waits or is to come.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Packets that wait or are to come.
    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Something waits.
    #[inline(always)]
    pub(super) fn waits(&self) -> bool {
        self.head != self.coming
    }

    /// Adds a packet that is to come, at the time that it says.
    #[inline(always)]
    pub(super) fn expect(&mut self, pkt: Packet) {
        if self.tail.wrapping_sub(self.head) as usize == self.slots.len() {
            self.grow();
        }
        *self.slot(self.tail) = pkt;
        self.tail = self.tail.wrapping_add(1);
    }

    /// Adds a packet that waits; none may be to come.
    #[inline(always)]
    pub(super) fn push(&mut self, pkt: Packet) {
        debug_assert_eq!(self.coming, self.tail, "a packet overtakes one that is to come");
        self.expect(pkt);
        self.coming = self.tail;
    }

    /// The next packet that is to come.
    #[inline(always)]
    pub(super) fn next_to_come(&mut self) -> Option<&mut Packet> {
        (self.coming != self.tail).then(|| self.slot(self.coming))
    }

    /// Likewise, to be looked at only.
    #[inline(always)]
    pub(super) fn peek_next_to_come(&self) -> Option<&Packet> {
        let mask = self.slots.len().wrapping_sub(1);
        (self.coming != self.tail).then(|| &self.slots[self.coming as usize & mask])
    }

    /// It has come, and waits.
    #[inline(always)]
    pub(super) fn arrive(&mut self) {
        self.coming = self.coming.wrapping_add(1);
    }

    /// Takes the first packet that waits.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Packet> {
        self.waits().then(|| self.take())
    }

    /// Takes the first packet; if none waits, the next to come, which then need not wait.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Packet {
        let pkt = *self.slot(self.head);
        self.coming = self.coming.wrapping_add((self.coming == self.head) as u32);
        self.head = self.head.wrapping_add(1);
        pkt
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Packet> {
        let mask = self.slots.len().wrapping_sub(1);
        (0..self.tail.wrapping_sub(self.head))
            .map(move |i| &self.slots[self.head.wrapping_add(i) as usize & mask])
    }

    #[cold]
    fn grow(&mut self) {
        let all: Vec<Packet> = self.iter().copied().collect();
        let mut slots = vec![BLANK; (2 * all.len()).max(8)];
        slots[..all.len()].copy_from_slice(&all);
        self.slots = slots.into();
        (self.head, self.coming, self.tail) = (0, self.coming.wrapping_sub(self.head), all.len() as u32);
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

    #[test]
    fn packets_to_come_wait_only_when_they_have_come() {
        let mut ring = Ring::default();
        let packet = |n| Packet::new(Kind::Data, QpId(0), HostId(0), Psn::new(n), 64);
        ring.push(packet(0));
        for n in 1..20 {
            ring.expect(packet(n));
        }
        assert_eq!(ring.pop(), Some(packet(0)));
        assert_eq!(ring.pop(), None);
        assert_eq!(ring.next_to_come().map(|p| *p), Some(packet(1)));
        ring.arrive();
        assert_eq!((ring.pop(), ring.pop()), (Some(packet(1)), None));
        assert_eq!(ring.take(), packet(2));
        assert_eq!(ring.next_to_come().map(|p| *p), Some(packet(3)));
        assert!(!ring.waits() && !ring.is_empty());
    }
}
