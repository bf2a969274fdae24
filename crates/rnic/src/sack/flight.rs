//! The fate of every packet, and the bytes in flight.

use super::ring::{Ring, Sent, State};
use model::Time;
use std::collections::{BTreeSet, VecDeque};

/// The packets that have been sent and are not acknowledged.
///
/// The bytes in flight are those of packets sent, less the bytes that the receiver reports, less those of packets that are
/// cut or lost and not sent again.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Flight {
    ring: Ring,
    /// Bytes in flight. Reports may run ahead of the fate of single packets, so it may be negative for a while.
    bytes: i64,
    /// Bytes to send again: 0 if none of the packets is missing.
    again: u64,
    /// The receiver's count of bytes, modulo 2^32.
    arrived: u32,
    gone: Option<Box<Gone>>,
}

/// Packets that a switch has cut, or that count as lost. It stands apart, since most queue pairs have none.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
struct Gone {
    /// Packets to send again, before new ones.
    missing: BTreeSet<u64>,
    /// Packets taken for lost that nobody has asked for.
    lost: VecDeque<u64>,
}

impl Flight {
    pub(super) const fn new() -> Self {
        Flight { ring: Ring::new(), bytes: 0, again: 0, arrived: 0, gone: None }
    }

    #[inline(always)]
    pub(super) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// True if packets wait to be sent again.
    #[inline(always)]
    pub(super) fn misses(&self) -> bool {
        self.again > 0
    }

    /// Bytes to send again.
    #[inline(always)]
    pub(super) fn again(&self) -> u64 {
        self.again
    }

    /// Bytes in flight.
    #[inline(always)]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.max(0) as u64
    }

    /// True if so many bytes more may be in flight under a window, bytes.
    #[inline(always)]
    pub(super) fn fits(&self, more: u32, window: u64) -> bool {
        let after = self.bytes.saturating_add(more.into());
        window == u64::MAX || after <= window.min(i64::MAX as u64) as i64
    }

    /// Notes the first transmission of the next packet.
    #[inline(always)]
    pub(super) fn launch(&mut self, now: Time, frame: u32) {
        self.ring.push(Sent { at: now, frame, state: State::Flying, again: false });
        self.bytes += i64::from(frame);
    }

    /// Takes the first packet to send again out of the list, and notes its transmission.
    #[cold]
    pub(super) fn repeat(&mut self, now: Time) -> Option<u64> {
        let seq = self.gone.as_mut()?.missing.pop_first()?;
        let packet = &mut self.ring[seq];
        debug_assert_eq!(packet.state, State::Missing);
        (packet.at, packet.state, packet.again) = (now, State::Flying, true);
        let frame = packet.frame;
        self.again -= u64::from(frame);
        self.bytes += i64::from(frame);
        Some(seq)
    }

    /// Takes a flying packet out of flight, to send it again; returns its bytes.
    pub(super) fn give_up(&mut self, seq: u64) -> u64 {
        let packet = &mut self.ring[seq];
        debug_assert_eq!(packet.state, State::Flying);
        packet.state = State::Missing;
        let frame = packet.frame;
        debug_assert!(frame > 0, "a frame has headers");
        self.gone.get_or_insert_default().missing.insert(seq);
        self.again += u64::from(frame);
        self.bytes -= i64::from(frame);
        frame.into()
    }

    /// Takes a flying packet for lost; returns its bytes.
    pub(super) fn lose(&mut self, seq: u64) -> u64 {
        self.gone.get_or_insert_default().lost.push_back(seq);
        self.give_up(seq)
    }

    /// The next packet taken for lost that nobody has asked for.
    pub(super) fn take_lost(&mut self) -> Option<u64> {
        self.gone.as_mut()?.lost.pop_front()
    }

    /// Takes the receiver's count of bytes; returns how many are new.
    #[inline(always)]
    pub(super) fn report(&mut self, arrived: u32) -> u64 {
        let more = arrived.wrapping_sub(self.arrived) as i32;
        if more <= 0 {
            return 0;
        }
        self.arrived = arrived;
        self.bytes -= i64::from(more);
        more as u64
    }

    /// Notes that a packet has arrived; returns what the sender knew of it.
    #[inline]
    pub(super) fn arrive(&mut self, seq: u64) -> Sent {
        let packet = self.ring[seq];
        self.ring[seq].state = State::Arrived;
        if packet.state == State::Missing {
            // The receiver's count has it, and it was taken off before.
            self.gone.as_mut().map(|gone| gone.missing.remove(&seq));
            self.again -= u64::from(packet.frame);
            self.bytes += i64::from(packet.frame);
        }
        packet
    }

    /// Forgets the first `count` packets, none of which waits to be sent again.
    #[inline(always)]
    pub(super) fn acknowledge(&mut self, count: u64) {
        self.ring.acknowledge(count);
        debug_assert!(
            self.gone
                .as_ref()
                .and_then(|gone| gone.missing.first())
                .is_none_or(|&seq| seq >= self.ring.una())
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three packets of 100 B.
    fn flight() -> Flight {
        let mut flight = Flight::new();
        (0..3).for_each(|us| flight.launch(Time::from_us(us), 100));
        flight
    }

    #[test]
    fn a_lost_packet_is_out_of_flight_until_it_is_sent_again() {
        let mut flight = flight();
        assert_eq!((flight.bytes(), flight.lose(1)), (300, 100));
        assert_eq!((flight.bytes(), flight.again(), flight.misses()), (200, 100, true));
        assert_eq!((flight.take_lost(), flight.take_lost()), (Some(1), None));
        assert_eq!(flight.repeat(Time::from_us(5)), Some(1));
        assert_eq!((flight.bytes(), flight.again(), flight.misses()), (300, 0, false));
        assert!(flight.ring()[1].again && flight.ring().flies(1, Time::from_us(5)));
        assert_eq!(flight.repeat(Time::from_us(6)), None);
    }

    #[test]
    fn a_packet_that_arrives_after_it_was_given_up_counts_once() {
        let mut flight = flight();
        flight.give_up(0);
        assert_eq!(flight.report(100), 100);
        assert_eq!(flight.bytes(), 100, "it was taken off twice");
        assert_eq!(flight.arrive(0).state, State::Missing);
        assert_eq!((flight.bytes(), flight.again()), (200, 0));
        assert_eq!(flight.take_lost(), None, "it was cut, not lost");
    }

    #[test]
    fn the_count_of_bytes_only_grows_modulo_2_to_the_32() {
        let mut flight = flight();
        assert_eq!((flight.report(100), flight.report(50)), (100, 0));
        flight.arrived = u32::MAX;
        assert_eq!((flight.report(99), flight.bytes()), (100, 100));
    }

    #[test]
    fn a_window_bounds_the_bytes_in_flight() {
        let flight = flight();
        assert!(flight.fits(100, 400) && !flight.fits(100, 399) && flight.fits(100, u64::MAX));
    }
}
