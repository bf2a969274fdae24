//! The annex of runs whose replies acknowledge single packets by a map (SACK).

use super::{Annex, Answer, CUT, Notice, Selective, Stamp};
use crate::transport::{Heard, Reply, Returned, Sacked};
use crate::{Congestion, Psn, RouteState, Time};

/// A receiver's report on its packets, beside the ePSN of the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sack {
    /// First packet of the map.
    pub base: Psn,
    /// The map: bit i is 1 if packet `base` + i has arrived; 0 leaves its fate open.
    pub bits: u64,
    /// Packet that the reply answers.
    pub cause: Psn,
    /// Bytes of all frames that have arrived, each packet once if the receiver can tell; wraps at 2^32.
    pub arrived: u32,
    /// Number of packets beyond ePSN that have arrived.
    pub ahead: u16,
    /// True if a switch has cut the packet that the reply answers.
    pub cut: bool,
    /// True if the receiver's own switch has cut it.
    pub last_hop: bool,
    /// True if the reply answers a probe.
    pub probe: bool,
    /// Penalty of the receiver for the window, in 1/128 of the arrived bytes.
    pub penalty: u8,
    /// True if penalties are over, and the window may be what it was before.
    pub restore: bool,
}

/// The message of a data packet, for receivers that count the packets of each message. A packet of 0 packets has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// First packet of the message.
    pub first: Psn,
    /// Packets of the message.
    pub packets: u32,
    /// Number of times that the sender has begun the message anew; wraps at 2^8.
    pub attempt: u8,
}

/// The annex of runs with [`Sack`]s: 48 bytes.
///
/// A data packet carries a running sum for its receiver's granter, whether it asks for an ACK, and its [`Envelope`]. A reply
/// carries the receiver's report and the time when the packet was sent that it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackStamp {
    /// The annex of runs without SACKs.
    pub stamp: Stamp,
    sent: Time,
    /// [`Sack::bits`] of a reply, else [`Annex::amount`].
    bits: u64,
    /// Flags (8 bits) above the first packet of the map.
    base: u32,
    /// [`Sack::penalty`] above [`Sack::cause`], or [`Envelope::first`].
    cause: u32,
    /// [`Sack::arrived`], or [`Envelope::packets`].
    arrived: u32,
    /// [`Sack::ahead`], or [`Envelope::attempt`].
    ahead: u16,
    /// [`Annex::own_entropy`].
    own_entropy: u16,
}

const ASKS: u32 = 1 << 24;
const WAS_CUT: u32 = 1 << 25;
const LAST_HOP: u32 = 1 << 26;
const RETURNED: u32 = 1 << 27;
const PROBE: u32 = 1 << 28;
const RESTORE: u32 = 1 << 29;
/// Bits of [`SackStamp::cause`] below the penalty of a reply.
const PENALTY: u32 = 24;

impl SackStamp {
    /// The annex of a data packet that starts at `sent` by its sender's clock.
    #[inline]
    pub fn new(stamp: Stamp, sent: Time) -> Self {
        SackStamp { stamp, sent, ..SackStamp::default() }
    }
}

impl Annex for SackStamp {
    const CARRIES: bool = true;
    const SACKS: bool = true;

    type Held = u32;
    type Meters = [crate::digest::Meter; 0];

    #[inline(always)]
    fn hold(&self, place: impl FnOnce() -> u32) -> u32 {
        place()
    }

    #[inline(always)]
    fn held<'s>(held: &'s u32, find: impl FnOnce(u32) -> &'s Self) -> &'s Self {
        find(*held)
    }

    #[inline]
    fn entropy(&self) -> u16 {
        self.stamp.entropy()
    }

    #[inline(always)]
    fn own_entropy(&self) -> u16 {
        self.own_entropy
    }

    #[inline(always)]
    fn set_own_entropy(&mut self, entropy: u16) {
        self.own_entropy = entropy;
    }

    #[inline]
    fn answer(&self, at: Time, answer: Answer) -> SackStamp {
        SackStamp { stamp: self.stamp.answer(at, answer), sent: self.sent, ..SackStamp::default() }
    }

    #[inline]
    fn selective(&self) -> Selective {
        self.stamp.selective()
    }

    #[inline(always)]
    fn heard(&self, now: Time, at: Time, reply: Reply, control: &mut impl Congestion) -> Heard {
        let (window, sack) = (control.allowance(now).window, self.sack());
        if self.is_returned() {
            let (Reply::Ack(psn) | Reply::Nack(psn)) = reply;
            let (envelope, last_hop) = (self.envelope(), sack.last_hop);
            return Heard::Returned(Returned { psn, envelope, last_hop, window });
        }
        let (trip, assumed) = match sack.probe {
            true => (Time(at.ps().saturating_sub(self.sent.ps())), control.assumed_delay()),
            false => (Time::ZERO, None),
        };
        Heard::Sacked(reply, Sacked { selective: self.selective(), sack, trip, assumed, window })
    }

    #[inline]
    fn notice(&self) -> Option<Notice> {
        self.stamp.notice()
    }

    #[inline]
    fn is_copy(&self) -> bool {
        self.stamp.is_copy()
    }

    #[inline]
    fn tag(&self) -> u64 {
        self.stamp.tag()
    }

    #[inline]
    fn set_tag(&mut self, tag: u64) {
        self.stamp.set_tag(tag);
    }

    #[inline]
    fn amount(&self) -> u64 {
        self.bits
    }

    #[inline]
    fn set_amount(&mut self, amount: u64) {
        self.bits = amount;
    }

    fn overruled(&self) -> SackStamp {
        SackStamp { stamp: self.stamp.overruled(), bits: 0, ..*self }
    }

    #[inline]
    fn route_state(&self) -> RouteState {
        self.stamp.route_state()
    }

    #[inline]
    fn set_route_state(&mut self, way: RouteState) {
        self.stamp.set_route_state(way);
    }

    #[inline]
    fn sent(&self) -> Option<Time> {
        Some(self.sent)
    }

    fn probe(at: Time) -> SackStamp {
        SackStamp { base: ASKS, ..SackStamp::new(Stamp::new(0, at), at) }
    }

    fn reverse_probe(entropy: u16, at: Time) -> SackStamp {
        SackStamp { own_entropy: entropy, ..SackStamp::new(Stamp::new(entropy, at), at) }
    }

    #[inline]
    fn asks(&self) -> bool {
        self.base & ASKS != 0
    }

    #[inline]
    fn set_asks(&mut self, asks: bool) {
        self.base = self.base & !ASKS | if asks { ASKS } else { 0 };
    }

    #[inline]
    fn sack(&self) -> Sack {
        Sack {
            base: Psn::new(self.base),
            bits: self.bits,
            cause: Psn::new(self.cause),
            arrived: self.arrived,
            ahead: self.ahead,
            cut: self.base & WAS_CUT != 0,
            last_hop: self.base & LAST_HOP != 0,
            probe: self.base & PROBE != 0,
            penalty: (self.cause >> PENALTY) as u8,
            restore: self.base & RESTORE != 0,
        }
    }

    #[inline]
    fn set_sack(&mut self, sack: &Sack) {
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(sack.cut, WAS_CUT)
            | flag(sack.last_hop, LAST_HOP)
            | flag(sack.probe, PROBE)
            | flag(sack.restore, RESTORE);
        self.base = flags | sack.base.value();
        self.cause = u32::from(sack.penalty) << PENALTY | sack.cause.value();
        (self.bits, self.arrived, self.ahead) = (sack.bits, sack.arrived, sack.ahead);
        if sack.cut {
            self.stamp.what |= CUT;
            self.stamp.count = u16::from(sack.last_hop);
        }
    }

    #[inline]
    fn envelope(&self) -> Envelope {
        Envelope { first: Psn::new(self.cause), packets: self.arrived, attempt: self.ahead as u8 }
    }

    #[inline]
    fn set_envelope(&mut self, envelope: Envelope) {
        let Envelope { first, packets, attempt } = envelope;
        (self.cause, self.arrived, self.ahead) = (first.value(), packets, attempt.into());
    }

    fn returned(&self, at: Time, answer: Answer, last_hop: bool) -> SackStamp {
        let mut back = self.answer(at, answer);
        back.set_sack(&Sack { cut: true, last_hop, ..Sack::default() });
        back.set_envelope(self.envelope());
        back.base |= RETURNED;
        back
    }

    #[inline]
    fn is_returned(&self) -> bool {
        self.base & RETURNED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_carries_the_report_and_the_time_of_sending() {
        let mut data = SackStamp::new(Stamp::new(7, Time::from_us(100)), Time::from_us(100));
        data.set_asks(true);
        assert!(data.asks() && data.amount() == 0 && data.sack() == Sack::default());
        data.set_amount(u64::MAX);
        assert!(data.asks() && data.amount() == u64::MAX);
        let mut reply = data.answer(Time::from_us(103), Answer { marked: true, ..Answer::default() });
        assert!(!reply.asks() && reply.amount() == 0);
        let sack = Sack {
            base: Psn::new(0xFF_FFFF),
            bits: 1 << 63 | 5,
            cause: Psn::new(0),
            arrived: u32::MAX,
            ahead: u16::MAX,
            cut: false,
            last_hop: false,
            probe: true,
            penalty: 127,
            restore: true,
        };
        reply.set_sack(&sack);
        assert_eq!((reply.sack(), reply.sent(), reply.entropy()), (sack, Some(Time::from_us(100)), 7));
        assert_eq!((reply.stamp.marked(), reply.stamp.cut(), reply.stamp.delay()), (true, None, 3_000_000));
    }

    #[test]
    fn a_reply_has_an_entropy_of_its_own_beside_that_of_its_packet() {
        let data = SackStamp::new(Stamp::new(7, Time::ZERO), Time::ZERO);
        let mut reply = data.answer(Time::ZERO, Answer::default());
        assert_eq!(data.path_entropy(true), 7);
        assert_eq!(reply.path_entropy(false), 0);
        reply.set_own_entropy(9);
        assert_eq!((reply.entropy(), reply.path_entropy(false)), (7, 9));
        assert_eq!(data.stamp.answer(Time::ZERO, Answer::default()).path_entropy(false), 0);
    }

    #[test]
    fn a_probe_asks_for_an_ack_and_its_answer_brings_its_time_back() {
        let probe = SackStamp::probe(Time::from_us(5));
        assert!(probe.asks() && !probe.sack().probe);
        let answer = probe.answer(Time::from_us(6), Answer::default());
        assert_eq!((answer.sent(), answer.asks()), (Some(Time::from_us(5)), false));
    }

    #[test]
    fn a_steering_learns_where_its_packet_was_cut() {
        let sent = SackStamp::new(Stamp::new(7, Time::ZERO), Time::ZERO);
        for last_hop in [false, true] {
            let mut reply = sent.answer(Time::ZERO, Answer::default());
            let sack = Sack { cut: true, last_hop, ..Sack::default() };
            reply.set_sack(&sack);
            assert_eq!((reply.sack(), reply.stamp.cut()), (sack, Some(last_hop)));
        }
        assert_eq!(sent.answer(Time::ZERO, Answer::default()).stamp.cut(), None);
    }

    #[test]
    fn headers_that_come_back_name_their_message() {
        let mut data = SackStamp::new(Stamp::new(7, Time::from_us(100)), Time::from_us(100));
        let envelope = Envelope { first: Psn::new(0xFF_FFFF), packets: u32::MAX, attempt: u8::MAX };
        data.set_amount(5);
        data.set_envelope(envelope);
        assert_eq!(
            (data.envelope(), data.amount(), data.asks(), data.is_returned()),
            (envelope, 5, false, false)
        );
        for last_hop in [false, true] {
            let back =
                data.returned(Time::from_us(103), Answer { marked: true, ..Answer::default() }, last_hop);
            assert_eq!((back.envelope(), back.is_returned(), back.amount()), (envelope, true, 0));
            assert_eq!(
                (back.stamp.cut(), back.stamp.marked(), back.stamp.delay()),
                (Some(last_hop), true, 3_000_000)
            );
            assert_eq!((back.sent(), back.entropy(), back.asks()), (Some(Time::from_us(100)), 7, false));
        }
        assert!(!data.answer(Time::ZERO, Answer::default()).is_returned());
    }

    #[test]
    fn with_its_label_it_takes_as_much_as_a_cache_line() {
        assert_eq!(size_of::<SackStamp>(), 48);
    }
}
