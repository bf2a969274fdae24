//! The annex: extra fields of a packet, in runs whose parts need them.

mod sack;

pub use sack::{Envelope, Sack, SackStamp};

use crate::digest::Meter;
use crate::telemetry::{TracedLink, Trail};
use crate::transport::{Heard, Reply};
use crate::{Congestion, HostId, Kind, Packet, PortIndex, Psn, QpId, RouteState, Time};
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};

/// Fields that the ends of a queue pair and switches write on packets beyond those of [`Packet`]. Runs whose parts write
/// nothing use `()`, which takes neither space nor time.
pub trait Annex: Copy + Default + Debug + PartialEq + Send + Sync + 'static {
    /// False for `()` only, whose fields are never read or written.
    const CARRIES: bool;

    /// True if switches write telemetry on data packets, and replies carry it back.
    const TELEMETRY: bool = false;

    /// True if replies carry a [`Sack`], and data packets may ask for an ACK.
    const SACKS: bool = false;

    /// True if an engine's lists have the place of the annex ([`Annex::Held`]).
    const LARGE: bool = Self::TELEMETRY || Self::SACKS;

    /// True if congestion controls get a [`crate::Feedback`] of every reply.
    const FEEDBACK: bool = Self::TELEMETRY || Self::SACKS;

    /// Form of the annex on an engine's lists of packets: the annex itself, or for a large annex its place. An engine sorts
    /// and moves packets with this form, and copies a large annex once, when the packet leaves.
    type Held: Copy + Default + Debug + PartialEq + Send + Sync + 'static;

    /// State of a port for a digest of telemetry: one [`Meter`], or none in runs without telemetry.
    type Meters: Copy + Default + Debug + Send + Sync + AsMut<[Meter]> + 'static;

    /// The form of this annex on a list; `place` computes its place.
    fn hold(&self, place: impl FnOnce() -> u32) -> Self::Held;

    /// The annex of this form; `find` returns the annex at a place.
    fn held<'s>(held: &'s Self::Held, find: impl FnOnce(u32) -> &'s Self) -> &'s Self;

    /// Entropy of a data packet: its UDP source port, counted from the first port that its sender uses. A reply carries
    /// the entropy of the packet that it answers.
    fn entropy(&self) -> u16;

    /// Entropy by which switches choose the path of a reply or a control message: 0, the base path of its flow, except in runs
    /// with SACKs.
    #[inline(always)]
    fn own_entropy(&self) -> u16 {
        0
    }

    /// Sets [`Annex::own_entropy`].
    #[inline(always)]
    fn set_own_entropy(&mut self, _entropy: u16) {}

    /// Entropy by which switches choose the path of a packet with this annex that is `forward` or not
    /// ([`crate::Packet::is_forward`]).
    #[inline(always)]
    fn path_entropy(&self, forward: bool) -> u16 {
        match Self::CARRIES {
            true if forward => self.entropy(),
            true => self.own_entropy(),
            false => 0,
        }
    }

    /// Annex of the reply to a data packet that carries this annex and arrived at `at` by its receiver's clock.
    fn answer(&self, at: Time, answer: Answer) -> Self;

    /// A reply's report on single packets.
    fn selective(&self) -> Selective;

    /// What a sender hears by a reply with this annex, which arrived at `at` by its clock. `control` is its congestion control.
    fn heard(&self, now: Time, at: Time, reply: Reply, control: &mut impl Congestion) -> Heard;

    /// The notice that a data packet carries instead of payload.
    fn notice(&self) -> Option<Notice>;

    /// True if the packet is a copy that its sender made on purpose.
    fn is_copy(&self) -> bool;

    /// Tag that switches have written on a data packet, or content of a signal: [`TAG_BITS`] bits.
    fn tag(&self) -> u64;

    /// Sets the tag.
    fn set_tag(&mut self, tag: u64);

    /// Running sum that a data packet carries to its receiver's granter, or a control message to its reader
    /// ([`crate::Granter`]). The default is the tag, so schemes that write tags need another annex.
    #[inline(always)]
    fn amount(&self) -> u64 {
        self.tag()
    }

    /// Sets [`Annex::amount`].
    #[inline(always)]
    fn set_amount(&mut self, amount: u64) {
        self.set_tag(amount);
    }

    /// Annex of a reply that a switch has turned into another kind: this annex without its report on single packets.
    #[must_use]
    fn overruled(&self) -> Self;

    /// State of the packet's route in a fabric of groups. Only switches write it.
    fn route_state(&self) -> RouteState;

    /// Sets [`Annex::route_state`].
    fn set_route_state(&mut self, way: RouteState);

    /// Adds a switch's record of a frame, see [`Trail::trace`].
    #[inline(always)]
    fn trace(&mut self, _link: &TracedLink, _at: Time, _sent: u64, _queue: u64) {}

    /// Keeps the larger code of a digest, see [`Trail::fold`].
    #[inline(always)]
    fn fold(&mut self, _code: u16) {}

    /// Records of the packet's links. A reply carries the records of the packet that it answers.
    #[inline(always)]
    fn trail(&self) -> Trail {
        Trail::default()
    }

    /// Time when the packet was sent, by its sender's clock; only in runs with telemetry or SACKs. A reply carries the time
    /// of the packet that it answers.
    #[inline(always)]
    fn sent(&self) -> Option<Time> {
        None
    }

    /// Annex of a sender's probe that starts at `at` by its clock, and asks for an ACK; only in runs with SACKs. Its entropy is
    /// the first one.
    #[must_use]
    fn probe(_at: Time) -> Self {
        Self::default()
    }

    /// Annex of a receiver's probe that starts at `at` by its clock, to test the path of this entropy to the sender; only in
    /// runs with SACKs.
    #[must_use]
    fn reverse_probe(_entropy: u16, _at: Time) -> Self {
        Self::default()
    }

    /// True if a data packet or a probe asks for an ACK; only in runs with SACKs.
    #[inline(always)]
    fn asks(&self) -> bool {
        false
    }

    /// Sets [`Annex::asks`].
    #[inline(always)]
    fn set_asks(&mut self, _asks: bool) {}

    /// A reply's report; only in runs with SACKs.
    #[inline(always)]
    fn sack(&self) -> Sack {
        Sack::default()
    }

    /// Sets [`Annex::sack`].
    #[inline(always)]
    fn set_sack(&mut self, _sack: &Sack) {}

    /// The message of a data packet, or of its headers; only in runs with SACKs.
    #[inline(always)]
    fn envelope(&self) -> Envelope {
        Envelope::default()
    }

    /// Sets [`Annex::envelope`].
    #[inline(always)]
    fn set_envelope(&mut self, _envelope: Envelope) {}

    /// Annex of the headers of a cut data packet that its receiver sends back at `at` by its clock: that of a reply, and
    /// [`Annex::envelope`] stays; only in runs with SACKs. `last_hop` is true if the receiver's own switch has cut the
    /// packet.
    #[must_use]
    fn returned(&self, at: Time, answer: Answer, _last_hop: bool) -> Self {
        self.answer(at, answer)
    }

    /// True for headers that a receiver has sent back; only in runs with SACKs.
    #[inline(always)]
    fn is_returned(&self) -> bool {
        false
    }
}

/// Bits of a packet's tag.
pub const TAG_BITS: u32 = 40;

/// Fields of a reply that its receiver fills, beside the PSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// True if a switch had marked the data packet.
    pub marked: bool,
    /// Report on single packets.
    pub selective: Selective,
    /// True if the reorder buffer is above its high-water mark, see [`crate::transport::Telling::crowded`].
    pub crowded: bool,
}

/// A reply's report on packets beyond those that its PSN acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Selective {
    /// No report.
    #[default]
    Nothing,
    /// A range of packets has not arrived, although a later packet has.
    Missing {
        /// First packet of the range.
        first: Psn,
        /// Number of packets, at least 1.
        count: u16,
    },
    /// This packet has arrived.
    Arrived(Psn),
}

/// A range of packets that are in flight on a path which their sender no longer uses. The receiver should not take them
/// for lost (DLBF, notification packets).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// First packet of the range.
    pub first: Psn,
    /// Number of packets, at least 1.
    pub count: u16,
}

/// A receiver's settings for notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoticeRules {
    /// Time during which the receiver does not report gaps in a noticed range.
    pub patience: Time,
    /// High-water mark of the reorder buffer, in packets: above it the receiver reports that it is crowded.
    pub high: u32,
    /// Low-water mark, in packets: at or below it the receiver is no longer crowded.
    pub low: u32,
}

/// Methods of a small annex, which moves with its packet.
macro_rules! moves_with_its_packet {
    () => {
        type Held = Self;
        type Meters = [Meter; 0];

        #[inline(always)]
        fn hold(&self, _: impl FnOnce() -> u32) -> Self {
            *self
        }

        #[inline(always)]
        fn held<'s>(held: &'s Self, _: impl FnOnce(u32) -> &'s Self) -> &'s Self {
            held
        }
    };
}

impl Annex for () {
    const CARRIES: bool = false;

    moves_with_its_packet!();

    #[inline(always)]
    fn entropy(&self) -> u16 {
        0
    }

    #[inline(always)]
    fn answer(&self, _: Time, _: Answer) {}

    #[inline(always)]
    fn selective(&self) -> Selective {
        Selective::Nothing
    }

    #[inline(always)]
    fn heard(&self, _: Time, _: Time, reply: Reply, _: &mut impl Congestion) -> Heard {
        Heard::Reply(reply)
    }

    #[inline(always)]
    fn notice(&self) -> Option<Notice> {
        None
    }

    #[inline(always)]
    fn is_copy(&self) -> bool {
        false
    }

    #[inline(always)]
    fn tag(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn set_tag(&mut self, _: u64) {}

    #[inline(always)]
    fn overruled(&self) {}

    #[inline(always)]
    fn route_state(&self) -> RouteState {
        RouteState::default()
    }

    #[inline(always)]
    fn set_route_state(&mut self, _: RouteState) {}
}

/// The annex of runs whose ends choose paths or acknowledge single packets: 16 bytes.
///
/// A data packet carries its entropy and the time when it was sent, by its sender's clock. A reply carries the entropy of
/// the packet that it answers, whether that packet was marked, and its one-way delay: the receiver's clock minus the
/// sender's. The delay includes the difference between both clocks and can be negative. Tags share their bits with the
/// PSNs of selective replies and notices, so a notice has no tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Upper 48 bits: for data the time of sending, for replies the data packet's delay, both in ps. They wrap at 2^47 ps =
    /// 140 s, longer than any packet is in flight. Lower 16 bits: the packet's own [`RouteState`].
    time: i64,
    /// From the highest bit: flags (8), PSN (24).
    what: u32,
    count: u16,
    entropy: u16,
}

const COPY: u32 = 1 << 24;
const NOTICE: u32 = 1 << 25;
const MARKED: u32 = 1 << 26;
const CROWDED: u32 = 1 << 27;
const MISSING: u32 = 1 << 28;
const ARRIVED: u32 = 1 << 29;
const CUT: u32 = 1 << 30;
const RESENT: u32 = 1 << 31;
const PSN: u32 = COPY - 1;
const PSN_BITS: u32 = 24;
const WAY_BITS: u32 = 16;
const WAY: i64 = (1 << WAY_BITS) - 1;

impl Stamp {
    /// The stamp of a data packet that starts at `sent` by its sender's clock.
    #[inline]
    pub const fn new(entropy: u16, sent: Time) -> Self {
        Stamp { time: (sent.ps() as i64) << WAY_BITS, what: 0, count: 0, entropy }
    }

    /// This stamp for a copy that the sender makes on purpose.
    #[must_use]
    pub const fn copy(mut self) -> Self {
        self.what |= COPY;
        self
    }

    /// This stamp for a packet that carries a notice and no payload.
    #[must_use]
    pub const fn with_notice(mut self, notice: Notice) -> Self {
        self.what |= NOTICE | notice.first.value();
        self.count = notice.count;
        self
    }

    /// This stamp for a retransmission if `again`. The reply carries the flag back.
    #[inline]
    #[must_use]
    pub const fn again(mut self, again: bool) -> Self {
        self.what |= if again { RESENT } else { 0 };
        self
    }

    /// True for a retransmission, and for the reply to one.
    #[inline]
    pub const fn resent(&self) -> bool {
        self.what & RESENT != 0
    }

    /// For a reply: true if the data packet was marked.
    #[inline]
    pub const fn marked(&self) -> bool {
        self.what & MARKED != 0
    }

    /// For a reply to a packet that a switch has cut: whether the receiver's own switch has. Only in runs with SACKs.
    #[inline]
    pub const fn cut(&self) -> Option<bool> {
        if self.what & CUT != 0 { Some(self.count != 0) } else { None }
    }

    /// For a reply: [`Answer::crowded`].
    #[inline]
    pub const fn crowded(&self) -> bool {
        self.what & CROWDED != 0
    }

    /// For a reply: one-way delay of the data packet in ps, plus the lead of the receiver's clock over the sender's.
    #[inline]
    pub const fn delay(&self) -> i64 {
        self.time >> WAY_BITS
    }
}

impl Annex for Stamp {
    const CARRIES: bool = true;

    moves_with_its_packet!();

    #[inline]
    fn entropy(&self) -> u16 {
        self.entropy
    }

    #[inline]
    fn answer(&self, at: Time, answer: Answer) -> Stamp {
        let (flag, psn, count) = match answer.selective {
            Selective::Nothing => (0, 0, 0),
            Selective::Missing { first, count } => (MISSING, first.value(), count),
            Selective::Arrived(psn) => (ARRIVED, psn.value(), 1),
        };
        let marked = if answer.marked { MARKED } else { 0 };
        let crowded = if answer.crowded { CROWDED } else { 0 };
        Stamp {
            time: ((at.ps() as i64) << WAY_BITS).wrapping_sub(self.time & !WAY),
            what: flag | marked | crowded | self.what & RESENT | psn,
            count,
            entropy: self.entropy,
        }
    }

    #[inline]
    fn selective(&self) -> Selective {
        let psn = Psn::new(self.what & PSN);
        if self.what & MISSING != 0 {
            Selective::Missing { first: psn, count: self.count }
        } else if self.what & ARRIVED != 0 {
            Selective::Arrived(psn)
        } else {
            Selective::Nothing
        }
    }

    #[inline(always)]
    fn heard(&self, _: Time, _: Time, reply: Reply, _: &mut impl Congestion) -> Heard {
        Heard::Named(reply, self.selective())
    }

    #[inline]
    fn notice(&self) -> Option<Notice> {
        let is = self.what & NOTICE != 0;
        is.then(|| Notice { first: Psn::new(self.what & PSN), count: self.count })
    }

    #[inline]
    fn is_copy(&self) -> bool {
        self.what & COPY != 0
    }

    #[inline]
    fn tag(&self) -> u64 {
        match self.what & (NOTICE | MISSING | ARRIVED | CUT) {
            0 => (self.what & PSN) as u64 | (self.count as u64) << PSN_BITS,
            _ => 0,
        }
    }

    #[inline]
    fn set_tag(&mut self, tag: u64) {
        debug_assert!(tag >> TAG_BITS == 0, "a tag of more than {TAG_BITS} bits");
        if self.what & (NOTICE | MISSING | ARRIVED | CUT) == 0 {
            self.what = self.what & !PSN | tag as u32 & PSN;
            self.count = (tag >> PSN_BITS) as u16;
        }
    }

    fn overruled(&self) -> Stamp {
        Stamp { what: self.what & !(MISSING | ARRIVED), ..*self }
    }

    #[inline]
    fn route_state(&self) -> RouteState {
        RouteState::from_bits((self.time & WAY) as u16)
    }

    #[inline]
    fn set_route_state(&mut self, way: RouteState) {
        self.time = self.time & !WAY | way.bits() as i64;
    }
}

/// The annex of runs with telemetry, 88 bytes: a [`Stamp`], the time of sending, and the records of switches. A reply carries
/// all three back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TelemetryStamp {
    /// The annex of runs without telemetry.
    pub stamp: Stamp,
    sent: Time,
    trail: Trail,
}

impl TelemetryStamp {
    /// The annex of a data packet that starts at `sent` by its sender's clock.
    #[inline]
    pub fn new(stamp: Stamp, sent: Time) -> Self {
        TelemetryStamp { stamp, sent, trail: Trail::default() }
    }
}

impl Annex for TelemetryStamp {
    const CARRIES: bool = true;
    const TELEMETRY: bool = true;

    type Held = u32;
    type Meters = [Meter; 1];

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

    #[inline]
    fn answer(&self, at: Time, answer: Answer) -> TelemetryStamp {
        TelemetryStamp { stamp: self.stamp.answer(at, answer), ..*self }
    }

    #[inline]
    fn selective(&self) -> Selective {
        self.stamp.selective()
    }

    #[inline(always)]
    fn heard(&self, _: Time, _: Time, reply: Reply, _: &mut impl Congestion) -> Heard {
        Heard::Named(reply, self.selective())
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

    fn overruled(&self) -> TelemetryStamp {
        TelemetryStamp { stamp: self.stamp.overruled(), ..*self }
    }

    #[inline]
    fn route_state(&self) -> RouteState {
        self.stamp.route_state()
    }

    #[inline]
    fn set_route_state(&mut self, way: RouteState) {
        self.stamp.set_route_state(way);
    }

    #[inline(always)]
    fn trace(&mut self, link: &TracedLink, at: Time, sent: u64, queue: u64) {
        self.trail.trace(link, at, sent, queue);
    }

    #[inline]
    fn fold(&mut self, code: u16) {
        self.trail.fold(code);
    }

    #[inline]
    fn trail(&self) -> Trail {
        self.trail
    }

    #[inline]
    fn sent(&self) -> Option<Time> {
        Some(self.sent)
    }
}

/// A packet with its annex.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parcel<A> {
    /// Fields of every packet.
    pub label: Packet,
    /// Further fields.
    pub annex: A,
}

impl<A: Annex> Parcel<A> {
    /// A packet with an empty annex.
    #[inline]
    pub fn bare(label: Packet) -> Self {
        Parcel { label, annex: A::default() }
    }

    /// This packet, about to arrive, see [`Packet::arriving`].
    #[inline]
    #[must_use]
    pub fn arriving(self, offset: u32, port: PortIndex) -> Self {
        Parcel { label: self.label.arriving(offset, port), ..self }
    }
}

impl<A: Default> Default for Parcel<A> {
    /// A placeholder for an empty slot.
    fn default() -> Self {
        let label = Packet::new(Kind::Data, QpId(0), HostId(0), Psn::new(0), 0);
        Parcel { label, annex: A::default() }
    }
}

impl<A> Deref for Parcel<A> {
    type Target = Packet;

    #[inline]
    fn deref(&self) -> &Packet {
        &self.label
    }
}

impl<A> DerefMut for Parcel<A> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Packet {
        &mut self.label
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route_state::Detour;
    use crate::telemetry::Record;

    #[test]
    fn an_empty_annex_takes_no_space_and_a_stamp_takes_sixteen_bytes() {
        assert_eq!(size_of::<Parcel<()>>(), 16);
        assert_eq!(size_of::<Parcel<Stamp>>(), 32);
        assert_eq!(size_of::<Parcel<TelemetryStamp>>(), 104);
    }

    #[test]
    fn a_large_annex_stays_in_its_place_and_a_small_one_moves() {
        let sent = |us| TelemetryStamp::new(Stamp::new(7, Time::from_us(us)), Time::from_us(us));
        let places = [sent(5), sent(6)];
        let held = places[1].hold(|| 1);
        assert_eq!(TelemetryStamp::held(&held, |place| &places[place as usize]), &places[1]);
        assert_eq!(size_of::<Parcel<<TelemetryStamp as Annex>::Held>>(), 24);
        let stamp = Stamp::new(7, Time::ZERO);
        assert_eq!(Stamp::held(&stamp.hold(|| unreachable!()), |_| unreachable!()), &stamp);
    }

    #[test]
    fn a_reply_carries_the_records_and_the_time_of_sending() {
        let mut data = TelemetryStamp::new(Stamp::new(7, Time::from_us(100)), Time::from_us(100));
        let record = Record::new(2, Time::from_us(101), 5_000, 800);
        data.trace(&TracedLink::new(4, 2, 5), Time::from_us(101), 5_000, 800);
        data.set_tag(77);
        let reply = data.answer(Time::from_us(103), Answer::default());
        assert!(reply.trail().records().eq([record]));
        assert_eq!((reply.sent(), reply.stamp.delay()), (Some(Time::from_us(100)), 3_000_000));
        assert_eq!(Stamp::default().sent(), None);
    }

    #[test]
    fn a_reply_carries_the_delay_between_two_clocks() {
        let sent = Stamp::new(7, Time::from_us(100));
        let answer = Answer { marked: true, ..Answer::default() };
        let fast = sent.answer(Time::from_us(103), answer);
        assert_eq!(
            (fast.delay(), fast.entropy(), fast.marked(), fast.crowded()),
            (3_000_000, 7, true, false)
        );
        // The receiver's clock is 2 us behind a delay of 1 us.
        let behind = sent.answer(Time::from_us(99), answer);
        assert_eq!(behind.delay(), -1_000_000);
    }

    #[test]
    fn a_tag_changes_no_other_field_and_a_notice_has_no_tag() {
        let mut sent = Stamp::new(9, Time::from_us(4)).copy();
        let untagged = sent;
        sent.set_tag((1 << TAG_BITS) - 1);
        assert_eq!((sent.tag(), sent.entropy(), sent.is_copy()), ((1 << TAG_BITS) - 1, 9, true));
        assert_eq!(sent.notice(), None);
        assert_eq!(sent.answer(Time::from_us(5), Answer::default()).delay(), 1_000_000);
        sent.set_tag(0);
        assert_eq!(sent, untagged);
        let notice = Notice { first: Psn::new(3), count: 4 };
        let mut noticed = sent.with_notice(notice);
        noticed.set_tag(77);
        assert_eq!((noticed.tag(), noticed.notice()), (0, Some(notice)));
    }

    #[test]
    fn a_reply_carries_the_retransmission_flag() {
        for again in [false, true] {
            let sent = Stamp::new(9, Time::ZERO).again(again);
            let reply = sent.answer(Time::ZERO, Answer::default());
            assert_eq!((sent.resent(), reply.resent(), reply.marked()), (again, again, false));
        }
    }

    #[test]
    fn time_and_route_state_share_a_word_independently() {
        // Two hours into the run the clock has wrapped many times; delays are still right.
        let late = 7_200_000_000;
        let mut data = Stamp::new(7, Time::from_us(late));
        data.set_route_state(RouteState::default().with_detour(Detour::Member(4094)).next(true, false));
        assert_eq!(data.route_state().detour(), Some(Detour::Member(4094)));
        let reply = data.answer(Time::from_us(late + 3), Answer::default());
        assert_eq!((reply.delay(), reply.route_state()), (3_000_000, RouteState::default()));
        assert_eq!(data.answer(Time::from_us(late - 3), Answer::default()).delay(), -3_000_000);
    }

    #[test]
    fn packing_keeps_selective_reports_and_notices() {
        let sent = Stamp::new(u16::MAX, Time::ZERO);
        for selective in [
            Selective::Nothing,
            Selective::Missing { first: Psn::new(0xFF_FFFF), count: u16::MAX },
            Selective::Arrived(Psn::new(0)),
        ] {
            let reply = sent.answer(Time::ZERO, Answer { selective, crowded: true, ..Answer::default() });
            assert_eq!((reply.selective(), reply.crowded(), reply.marked()), (selective, true, false));
            assert_eq!((reply.notice(), reply.is_copy()), (None, false));
        }
        let notice = Notice { first: Psn::new(0xFF_FFFF), count: 9 };
        assert_eq!(sent.with_notice(notice).notice(), Some(notice));
        assert!(sent.copy().is_copy() && sent.copy().notice().is_none());
    }
}
