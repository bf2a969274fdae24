//! The packets that have been sent and are not acknowledged, in a ring.

use model::{Psn, Time};
use std::ops::{Index, IndexMut};

/// A packet that has been sent and is not below the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Sent {
    /// Time at which the packet was sent last.
    pub(super) at: Time,
    /// Bytes of its frame.
    pub(super) frame: u32,
    pub(super) state: State,
    /// True if the packet was sent more than once.
    pub(super) again: bool,
}

/// What the sender knows of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(super) enum State {
    Flying,
    /// Cut or lost; waits to be sent again.
    Missing,
    Arrived,
}

impl Sent {
    /// True for a packet in flight that was sent once.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        self.state == State::Flying && !self.again
    }
}

/// A ring in which a packet has the slot of its number modulo the number of slots, a power of two. So an acknowledgement moves
/// nothing.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// First packet not acknowledged.
    una: u64,
    /// First packet that was never sent.
    next: u64,
    slots: Vec<Sent>,
}

/// Slots of the first packets. Our choice: as many as a `VecDeque` begins with.
const FIRST_SLOTS: usize = 4;

impl Ring {
    pub(super) const fn new() -> Self {
        Ring { una: 0, next: 0, slots: Vec::new() }
    }

    /// First packet not acknowledged.
    #[inline(always)]
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// First packet that was never sent.
    #[inline(always)]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Number of packets.
    #[inline(always)]
    pub(super) fn len(&self) -> u64 {
        self.next - self.una
    }

    /// Adds packet [`Ring::next`].
    #[inline]
    pub(super) fn push(&mut self, packet: Sent) {
        if self.len() == self.slots.len() as u64 {
            self.grow(packet);
        }
        let seq = self.next;
        self.next += 1;
        self[seq] = packet;
    }

    /// Removes the first `count` packets.
    #[inline(always)]
    pub(super) fn acknowledge(&mut self, count: u64) {
        debug_assert!(count <= self.len(), "an ACK of a packet that was never sent");
        self.una += count;
    }

    /// Doubles the number of slots; new ones have `any` packet.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, any: Sent) {
        let count = (2 * self.slots.len()).max(FIRST_SLOTS);
        let mut grown = Ring { slots: vec![any; count], ..*self };
        (self.una..self.next).for_each(|seq| grown[seq] = self[seq]);
        *self = grown;
    }

    /// Packet with that PSN, if it was sent and is not acknowledged by ePSN.
    #[inline]
    pub(super) fn outstanding(&self, psn: Psn) -> Option<u64> {
        let distance = psn.distance_from(Psn::from_seq(self.una));
        let seq = self.una + u64::try_from(distance).ok()?;
        (seq < self.next).then_some(seq)
    }

    /// True if the last transmission of that packet began at `at` and is in flight.
    #[inline]
    pub(super) fn flies(&self, seq: u64, at: Time) -> bool {
        (self.una..self.next).contains(&seq) && self[seq].state == State::Flying && self[seq].at == at
    }
}

impl Index<u64> for Ring {
    type Output = Sent;

    #[inline]
    fn index(&self, seq: u64) -> &Sent {
        &self.slots[seq as usize & self.slots.len().wrapping_sub(1)]
    }
}

impl IndexMut<u64> for Ring {
    #[inline]
    fn index_mut(&mut self, seq: u64) -> &mut Sent {
        let mask = self.slots.len().wrapping_sub(1);
        &mut self.slots[seq as usize & mask]
    }
}

/// Only packets matter, not what is left in other slots.
#[cfg(test)]
impl std::hash::Hash for Ring {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.una, self.next).hash(state);
        (self.una..self.next).for_each(|seq| self[seq].hash(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(us: u64) -> Sent {
        Sent { at: Time::from_us(us), frame: 1, state: State::Flying, again: false }
    }

    #[test]
    fn packets_stay_in_their_order_when_the_ring_wraps_and_grows() {
        let mut ring = Ring::new();
        (0..4).for_each(|us| ring.push(sent(us)));
        ring.acknowledge(3);
        (4..12).for_each(|us| ring.push(sent(us)));
        assert_eq!((ring.una(), ring.next(), ring.len()), (3, 12, 9));
        assert!((3..12).all(|seq| ring[seq] == sent(seq)));
    }

    #[test]
    fn a_psn_names_a_packet_only_between_the_acknowledgement_and_the_next_packet() {
        let mut ring = Ring::new();
        (0..5).for_each(|us| ring.push(sent(us)));
        ring.acknowledge(2);
        let of = |psn: u32| ring.outstanding(Psn::new(psn));
        assert_eq!((of(1), of(2), of(4), of(5)), (None, Some(2), Some(4), None));
    }

    #[test]
    fn a_transmission_flies_until_the_packet_arrives_or_is_sent_again() {
        let mut ring = Ring::new();
        (0..3).for_each(|us| ring.push(sent(us)));
        ring[1].at = Time::from_us(9);
        ring[2].state = State::Arrived;
        let flies = |seq: u64| ring.flies(seq, Time::from_us(seq));
        assert_eq!([0, 1, 2, 3].map(flies), [true, false, false, false]);
    }
}
