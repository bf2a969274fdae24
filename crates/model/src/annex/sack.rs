//! The annex of runs whose replies acknowledge single packets by a map (SACK).

use super::{Annex, CUT, Dialogue, Request, Stamp, Stamped, Switched};
use crate::transport::{Heard, Reply, Returned, Sacked, Telling};
use crate::{Congestion, Feedback, Psn, Time};

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
    /// [`Sack::bits`] of a reply, else [`Dialogue::amount`].
    bits: u64,
    /// Flags (8 bits) above the first packet of the map.
    base: u32,
    /// [`Sack::penalty`] above [`Sack::cause`], or [`Envelope::first`].
    cause: u32,
    /// [`Sack::arrived`], or [`Envelope::packets`].
    arrived: u32,
    /// [`Sack::ahead`], or [`Envelope::attempt`].
    ahead: u16,
    /// Entropy by which switches choose the path of a reply or a control message.
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
    /// The annex of a packet that starts at `sent` by its sender's clock, over the path of its entropy whatever its kind.
    #[inline]
    pub fn new(stamp: Stamp, sent: Time) -> Self {
        SackStamp { stamp, sent, own_entropy: stamp.entropy(), ..SackStamp::default() }
    }

    /// Time until `at` since the packet was sent.
    #[inline(always)]
    fn trip(&self, at: Time) -> Time {
        Time(at.ps().saturating_sub(self.sent.ps()))
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
}

impl Stamped for SackStamp {
    const CARRIES: bool = true;

    #[inline(always)]
    fn stamp(&self) -> Option<&Stamp> {
        Some(&self.stamp)
    }

    #[inline(always)]
    fn stamp_mut(&mut self) -> Option<&mut Stamp> {
        Some(&mut self.stamp)
    }
}

impl Switched for SackStamp {
    #[inline(always)]
    fn path_entropy(&self, forward: bool) -> u16 {
        if forward { self.stamp.entropy() } else { self.own_entropy }
    }

    fn overruled(self) -> SackStamp {
        let stamp = self.stamp.overruled();
        SackStamp { stamp, bits: 0, ..self }
    }
}

impl Dialogue for SackStamp {
    const SACKS: bool = true;
    const FEEDBACK: bool = true;

    #[inline(always)]
    fn ask(&mut self, request: impl FnOnce() -> Request) {
        let Request { asks, envelope, total } = request();
        self.base = if asks { ASKS } else { 0 };
        self.set_envelope(envelope);
        self.bits = total;
    }

    #[inline]
    fn request(&self) -> Request {
        Request { asks: self.base & ASKS != 0, envelope: self.envelope(), total: self.bits }
    }

    #[inline]
    fn amount(&self) -> u64 {
        self.bits
    }

    #[inline]
    fn answer(&self, at: Time, marked: bool, telling: impl FnOnce() -> Telling) -> SackStamp {
        let telling = telling();
        let (stamp, own_entropy) = (self.stamp.answered(at, marked, &telling), telling.entropy);
        let mut reply = SackStamp { stamp, sent: self.sent, own_entropy, ..SackStamp::default() };
        reply.set_sack(&telling.sack);
        reply
    }

    fn returned(&self, at: Time, marked: bool, last_hop: bool) -> SackStamp {
        let sack = Sack { cut: true, last_hop, ..Sack::default() };
        let mut back = self.answer(at, marked, || Telling { sack, ..Telling::default() });
        back.set_envelope(self.envelope());
        back.base |= RETURNED;
        back
    }

    #[inline]
    fn is_returned(&self) -> bool {
        self.base & RETURNED != 0
    }

    #[inline(always)]
    fn heard(&self, now: Time, at: Time, reply: Reply, control: &mut impl Congestion) -> Heard {
        let (window, sack) = (control.allowance(now).window, self.sack());
        if self.is_returned() {
            let (Reply::Ack(psn) | Reply::Nack(psn)) = reply;
            let (envelope, last_hop) = (self.envelope(), sack.last_hop);
            return Heard::Returned(Returned { psn, envelope, last_hop, window });
        }
        let assumed = if sack.probe { control.assumed_delay() } else { None };
        let (selective, trip) = (self.stamp.selective(), self.trip(at));
        Heard::Sacked(reply, Sacked { selective, sack, trip, assumed, window })
    }

    #[inline(always)]
    fn tell(&self, now: Time, at: Time, news: Feedback, control: &mut impl Congestion) {
        control.on_feedback(now, &Feedback { round_trip: self.trip(at), ..news });
    }

    #[inline]
    fn sent(&self) -> Option<Time> {
        Some(self.sent)
    }

    fn message(amount: u64, entropy: u16) -> SackStamp {
        SackStamp { bits: amount, own_entropy: entropy, ..SackStamp::default() }
    }

    fn probe(at: Time, entropy: u16, asks: bool) -> SackStamp {
        SackStamp { base: if asks { ASKS } else { 0 }, ..SackStamp::new(Stamp::new(entropy, at), at) }
    }
}

impl Annex for SackStamp {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_carries_the_report_and_the_time_of_sending() {
        let mut data = SackStamp::new(Stamp::new(7, Time::from_us(100)), Time::from_us(100));
        assert_eq!((data.request(), data.sack()), (Request::default(), Sack::default()));
        let request = Request { asks: true, total: u64::MAX, ..Request::default() };
        data.ask(|| request);
        assert_eq!((data.request(), data.amount()), (request, u64::MAX));
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
        let reply = data.answer(Time::from_us(103), true, || Telling { sack, ..Telling::default() });
        assert!(!reply.request().asks);
        assert_eq!((reply.sack(), reply.sent(), reply.entropy()), (sack, Some(Time::from_us(100)), 7));
        assert_eq!((reply.stamp.marked(), reply.stamp.cut(), reply.stamp.delay()), (true, None, 3_000_000));
    }

    #[test]
    fn a_reply_has_an_entropy_of_its_own_beside_that_of_its_packet() {
        let data = SackStamp::new(Stamp::new(7, Time::ZERO), Time::ZERO);
        assert_eq!((data.path_entropy(true), data.path_entropy(false)), (7, 7));
        for entropy in [0, 9] {
            let telling = || Telling { entropy, ..Telling::default() };
            let reply = data.answer(Time::ZERO, false, telling);
            assert_eq!((reply.entropy(), reply.path_entropy(false)), (7, entropy));
            assert_eq!(data.stamp.answer(Time::ZERO, false, telling).path_entropy(false), 0);
        }
    }

    #[test]
    fn a_probe_asks_for_an_ack_and_its_answer_brings_its_time_back() {
        let probe = SackStamp::probe(Time::from_us(5), 3, true);
        assert!(probe.request().asks && !probe.sack().probe && probe.path_entropy(false) == 3);
        let answer = probe.answer(Time::from_us(6), false, Telling::default);
        assert_eq!((answer.sent(), answer.request().asks), (Some(Time::from_us(5)), false));
    }

    #[test]
    fn a_steering_learns_where_its_packet_was_cut() {
        let sent = SackStamp::new(Stamp::new(7, Time::ZERO), Time::ZERO);
        for last_hop in [false, true] {
            let sack = Sack { cut: true, last_hop, ..Sack::default() };
            let reply = sent.answer(Time::ZERO, false, || Telling { sack, ..Telling::default() });
            assert_eq!((reply.sack(), reply.stamp.cut()), (sack, Some(last_hop)));
        }
        assert_eq!(sent.answer(Time::ZERO, false, Telling::default).stamp.cut(), None);
    }

    #[test]
    fn headers_that_come_back_name_their_message() {
        let mut data = SackStamp::new(Stamp::new(7, Time::from_us(100)), Time::from_us(100));
        let envelope = Envelope { first: Psn::new(0xFF_FFFF), packets: u32::MAX, attempt: u8::MAX };
        let request = Request { asks: false, envelope, total: 5 };
        data.ask(|| request);
        assert_eq!((data.request(), data.is_returned()), (request, false));
        for last_hop in [false, true] {
            let back = data.returned(Time::from_us(103), true, last_hop);
            assert_eq!((back.envelope(), back.is_returned(), back.amount()), (envelope, true, 0));
            assert_eq!(
                (back.stamp.cut(), back.stamp.marked(), back.stamp.delay()),
                (Some(last_hop), true, 3_000_000)
            );
            assert_eq!(
                (back.sent(), back.entropy(), back.request().asks),
                (Some(Time::from_us(100)), 7, false)
            );
        }
        assert!(!data.answer(Time::ZERO, false, Telling::default).is_returned());
    }

    #[test]
    fn with_its_label_it_takes_as_much_as_a_cache_line() {
        assert_eq!(size_of::<SackStamp>(), 48);
    }
}
