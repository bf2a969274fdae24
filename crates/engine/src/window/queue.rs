//! A queue of packets in contiguous memory. When it reaches the end of its buffer, it moves to the front or enlarges
//! the buffer. It never releases memory.

use crate::gentle::LARGE;
use model::{Annex, Packet, Parcel};

/// A first-in first-out queue of packets.
#[derive(Clone, Debug)]
pub(super) struct Queue<A> {
    slots: Box<[Parcel<A>]>,
    /// Slot of the first packet, and the slot after the last.
    head: u32,
    tail: u32,
}

impl<A> Default for Queue<A> {
    fn default() -> Self {
        Queue { slots: Box::default(), head: 0, tail: 0 }
    }
}

impl<A: Annex> Queue<A> {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.tail - self.head
    }

    #[inline(always)]
    pub(super) fn push(&mut self, pkt: Parcel<A>) {
        if self.tail as usize == self.slots.len() {
            self.make_room();
        }
        self.slots[self.tail as usize] = pkt;
        self.tail += 1;
    }

    /// [`Queue::push`] of a packet with this label and annex, which goes straight from place to place.
    #[inline(always)]
    pub(super) fn push_with(&mut self, label: Packet, annex: &A) {
        if self.tail as usize == self.slots.len() {
            self.make_room();
        }
        let slot = &mut self.slots[self.tail as usize];
        slot.label = label;
        slot.annex = *annex;
        self.tail += 1;
    }

    /// Adds a packet for each of these elements; `fill` writes it to its slot, without a copy on the way.
    #[inline(always)]
    pub(super) fn extend_with<T>(&mut self, elements: &[T], fill: impl Fn(&mut Parcel<A>, &T)) {
        let (count, tail) = (elements.len(), self.tail as usize);
        if count > self.slots.len() - tail {
            return elements.iter().for_each(|element| {
                let mut pkt = Parcel::default();
                fill(&mut pkt, element);
                self.push(pkt);
            });
        }
        self.slots[tail..tail + count]
            .iter_mut()
            .zip(elements)
            .for_each(|(slot, element)| fill(slot, element));
        self.tail += count as u32;
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Parcel<A>> {
        if self.is_empty() {
            return None;
        }
        let pkt = self.slots[self.head as usize];
        self.head += 1;
        Some(pkt)
    }

    /// The packet that has just been removed as the first one.
    #[inline(always)]
    pub(super) fn removed(&self) -> &Parcel<A> {
        &self.slots[self.head as usize - 1]
    }

    /// The first packet. The queue must have one.
    #[inline(always)]
    pub(super) fn front(&self) -> &Parcel<A> {
        &self.slots[self.head as usize]
    }

    /// Removes the first packet. The queue must have one.
    #[inline(always)]
    pub(super) fn drop_front(&mut self) {
        self.head += 1;
    }

    /// Removes the last packet. The queue must have one.
    #[inline(always)]
    pub(super) fn drop_back(&mut self) {
        self.tail -= 1;
    }

    /// Takes the packet behind `ahead` others, which move back by one slot.
    pub(super) fn pop_behind(&mut self, ahead: usize) -> Option<Parcel<A>> {
        let (first, at) = (self.head as usize, self.head as usize + ahead);
        if at >= self.tail as usize {
            return None;
        }
        let pkt = self.slots[at];
        self.slots.copy_within(first..at, first + 1);
        self.head += 1;
        Some(pkt)
    }

    /// Takes the last packet of a kind out of the queue, if it is `suitable`.
    #[cold]
    pub(super) fn take_newest(
        &mut self,
        of_kind: impl Fn(&Parcel<A>) -> bool,
        suitable: impl Fn(&Parcel<A>) -> bool,
    ) -> Option<Parcel<A>> {
        let at = self.head as usize + self.packets().iter().rposition(of_kind)?;
        let pkt = self.slots[at];
        if !suitable(&pkt) {
            return None;
        }
        self.slots.copy_within(at + 1..self.tail as usize, at);
        self.tail -= 1;
        Some(pkt)
    }

    /// All packets, from first to last.
    #[inline(always)]
    pub(super) fn packets(&self) -> &[Parcel<A>] {
        &self.slots[self.head as usize..self.tail as usize]
    }

    /// Mutable access to all packets, from first to last.
    #[inline(always)]
    pub(super) fn packets_mut(&mut self) -> &mut [Parcel<A>] {
        &mut self.slots[self.head as usize..self.tail as usize]
    }

    /// Removes the first `count` packets.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: usize) {
        self.head += count as u32;
        if self.head == self.tail {
            (self.head, self.tail) = (0, 0);
        }
    }

    /// Removes all but the last `count` packets.
    #[inline(always)]
    pub(super) fn keep_last(&mut self, count: usize) {
        self.head = self.tail - count as u32;
        if count == 0 {
            (self.head, self.tail) = (0, 0);
        }
    }

    /// Slots per packet of a buffer that is filled again from its front. Packets with a large annex get more, because a move
    /// takes longer. Our choice.
    const ROOM: usize = if size_of::<A>() > 64 { 4 } else { 2 };

    /// Moves all packets by at least half the buffer, or enlarges the buffer: a packet is moved once or twice in its
    /// time here.
    #[cold]
    fn make_room(&mut self) {
        let count = self.len() as usize;
        if count * size_of::<Parcel<A>>() >= LARGE {
            self.make_room_for_many(count);
        } else if Self::ROOM * count > self.slots.len() || self.slots.is_empty() {
            let mut slots = vec![Parcel::default(); (Self::ROOM * count).max(8)];
            slots[..count].copy_from_slice(self.packets());
            self.slots = slots.into();
        } else {
            self.slots.copy_within(self.head as usize..self.tail as usize, 0);
        }
        (self.head, self.tail) = (0, count as u32);
    }

    /// [`Queue::make_room`] for a queue that takes a lot of memory. A quarter of free slots is enough then: packets are moved
    /// up to four times more, and the buffer is enlarged where it stands.
    fn make_room_for_many(&mut self, count: usize) {
        self.slots.copy_within(self.head as usize..self.tail as usize, 0);
        let room = count + count / 4;
        if room > self.slots.len() {
            let mut slots = std::mem::take(&mut self.slots).into_vec();
            slots.reserve_exact(room - slots.len());
            slots.resize(room, Parcel::default());
            self.slots = slots.into();
        }
    }

    /// Memory of the buffer, bytes.
    pub(super) fn memory(&self) -> u64 {
        size_of_val(&*self.slots) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{HostId, Kind, Psn, QpId};

    #[test]
    fn packets_leave_in_the_order_in_which_they_came_while_it_grows() {
        let mut queue = Queue::<()>::default();
        let packet = |n| Parcel::<()>::bare(Packet::new(Kind::Data, QpId(0), HostId(0), Psn::new(n), 64));
        let (mut next_in, mut next_out) = (0, 0);
        for round in 0..50u32 {
            for _ in 0..round % 7 + 2 {
                queue.push(packet(next_in));
                next_in += 1;
            }
            for _ in 0..round % 5 {
                assert_eq!(queue.pop(), Some(packet(next_out)));
                next_out += 1;
            }
        }
        assert!(queue.packets().iter().map(|p| p.psn().value()).eq(next_out..next_in));
        queue.keep_last(3);
        next_out = next_in - 3;
        while let Some(p) = queue.pop() {
            assert_eq!(p, packet(next_out));
            next_out += 1;
        }
        assert!(queue.is_empty() && next_out == next_in);
    }

    #[test]
    fn an_overtaking_packet_leaves_the_others_in_order() {
        let mut queue = Queue::<()>::default();
        let packet = |n| Parcel::<()>::bare(Packet::new(Kind::Data, QpId(0), HostId(0), Psn::new(n), 64));
        (0..20).for_each(|n| queue.push(packet(n)));
        assert_eq!(queue.pop_behind(7), Some(packet(7)));
        assert_eq!(queue.pop_behind(18), Some(packet(19)));
        assert_eq!(queue.pop_behind(18), None);
        assert_eq!(queue.pop_behind(0), Some(packet(0)));
        assert!(queue.packets().iter().map(|p| p.psn().value()).eq((1..19).filter(|n| *n != 7)));
    }

    #[test]
    fn a_long_queue_keeps_its_order_and_takes_little_more_memory_than_its_packets() {
        let mut queue = Queue::<()>::default();
        let packet = |n: u32| {
            Parcel::<()>::bare(Packet::new(Kind::Data, QpId(n >> 20), HostId(0), Psn::new(n & 0xf_ffff), 64))
        };
        let (mut next_in, mut next_out) = (0, 0);
        while next_in < 2_000_000 {
            for _ in 0..3 {
                queue.push(packet(next_in));
                next_in += 1;
            }
            assert_eq!(queue.pop(), Some(packet(next_out)));
            next_out += 1;
            let packets = u64::from(queue.len()) * 16;
            if packets > 2 * LARGE as u64 {
                assert!(queue.memory() * 3 <= packets * 4, "{} B for {packets} B", queue.memory());
            }
        }
        assert_eq!(queue.len(), next_in - next_out);
        while let Some(pkt) = queue.pop() {
            assert_eq!(pkt, packet(next_out));
            next_out += 1;
        }
        assert_eq!(next_out, next_in);
    }

    #[test]
    fn a_short_queue_keeps_a_small_buffer_however_many_packets_pass() {
        let mut queue = Queue::<()>::default();
        for _ in 0..1000 {
            for _ in 0..4 {
                queue.push(Parcel::default());
            }
            while queue.pop().is_some() {}
        }
        assert_eq!(queue.slots.len(), 8);
    }
}
