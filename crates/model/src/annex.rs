//! The annex: extra fields of a packet, in runs whose parts need them.

mod sack;

pub use sack::{Envelope, Sack, SackStamp};

use crate::digest::Meter;
use crate::telemetry::{TracedLink, Trail};
use crate::transport::{Heard, Reply, Telling};
use crate::{Congestion, Feedback, HostId, Kind, Packet, PortIndex, Psn, QpId, RouteState, Time};
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};

/// Fields that most annexes have: a [`Stamp`], which a sender writes on its packets, and its receiver on replies. Runs whose
/// parts write nothing use `()`, which has no stamp, and takes neither space nor time.
pub trait Stamped: Copy + Default + Debug + PartialEq + Send + Sync + 'static {
    /// False for `()` only, whose fields are never read or written.
    const CARRIES: bool;

    /// The stamp; `None` for `()`.
    fn stamp(&self) -> Option<&Stamp>;

    /// The stamp, to change it.
    fn stamp_mut(&mut self) -> Option<&mut Stamp>;

    /// Entropy of a data packet: its UDP source port, counted from the first port that its sender uses. A reply carries
    /// the entropy of the packet that it answers.
    #[inline(always)]
    fn entropy(&self) -> u16 {
        self.stamp().map_or(0, Stamp::entropy)
    }

    /// The notice that a data packet carries instead of payload.
    #[inline(always)]
    fn notice(&self) -> Option<Notice> {
        self.stamp().and_then(Stamp::notice)
    }

    /// True if the packet is a copy that its sender made on purpose.
    #[inline(always)]
    fn is_copy(&self) -> bool {
        self.stamp().is_some_and(Stamp::is_copy)
    }

    /// A reply's report on single packets.
    #[inline(always)]
    fn selective(&self) -> Selective {
        self.stamp().map_or(Selective::Nothing, Stamp::selective)
    }

    /// Tag that switches have written on a data packet, or content of a signal: [`TAG_BITS`] bits.
    #[inline(always)]
    fn tag(&self) -> u64 {
        self.stamp().map_or(0, Stamp::tag)
    }

    /// Sets the tag.
    #[inline(always)]
    fn set_tag(&mut self, tag: u64) {
        if let Some(stamp) = self.stamp_mut() {
            stamp.set_tag(tag);
        }
    }
}

/// What switches read and write besides the tag.
pub trait Switched: Stamped {
    /// True if switches write telemetry on data packets, and replies carry it back.
    const TELEMETRY: bool = false;

    /// Entropy by which switches choose the path of a packet with this annex that is `forward` or not
    /// ([`crate::Packet::is_forward`]). That of a reply or a control message is 0, the base path of its flow, except in runs
    /// with SACKs.
    #[inline(always)]
    fn path_entropy(&self, forward: bool) -> u16 {
        if forward { self.entropy() } else { 0 }
    }

    /// Annex of a reply that a switch has turned into another kind: this annex without its report on single packets.
    #[must_use]
    fn overruled(mut self) -> Self {
        if let Some(stamp) = self.stamp_mut() {
            stamp.overrule();
        }
        self
    }

    /// State of the packet's route in a fabric of groups. Only switches write it.
    #[inline(always)]
    fn route_state(&self) -> RouteState {
        self.stamp().map_or(RouteState::default(), Stamp::route_state)
    }

    /// Sets [`Switched::route_state`].
    #[inline(always)]
    fn set_route_state(&mut self, way: RouteState) {
        if let Some(stamp) = self.stamp_mut() {
            stamp.set_route_state(way);
        }
    }

    /// Adds a switch's record of a frame, see [`Trail::trace`].
    #[inline(always)]
    fn trace(&mut self, _link: &TracedLink, _at: Time, _sent: u64, _queue: u64) {}

    /// Keeps the larger code of a digest, see [`Trail::fold`].
    #[inline(always)]
    fn fold(&mut self, _code: u16) {}
}

/// What the two ends of a queue pair write for each other. An end hands over what it would say; an annex without room for
/// it does not ask.
pub trait Dialogue: Stamped {
    /// True if replies carry a [`Sack`], and data packets a [`Request`].
    const SACKS: bool = false;

    /// True if congestion controls get a [`Feedback`] of every reply.
    const FEEDBACK: bool = false;

    /// Writes on a data packet what it asks of its receiver, in runs with SACKs.
    #[inline(always)]
    fn ask(&mut self, _request: impl FnOnce() -> Request) {}

    /// What a data packet or a probe asks of its receiver.
    #[inline(always)]
    fn request(&self) -> Request {
        Request { total: self.amount(), ..Request::default() }
    }

    /// [`Request::total`] of a data packet, or content of a control message. Without SACKs it is the tag, so schemes that write
    /// tags need another annex.
    #[inline(always)]
    fn amount(&self) -> u64 {
        self.tag()
    }

    /// Annex of the reply to a data packet that carries this annex, was `marked` or not, and arrived at `at` by its receiver's
    /// clock.
    fn answer(&self, at: Time, marked: bool, telling: impl FnOnce() -> Telling) -> Self;

    /// Annex of the headers of a cut data packet that its receiver sends back: that of a reply, and [`Request::envelope`]
    /// stays. `last_hop` is true if the receiver's own switch has cut the packet. Only in runs with SACKs.
    #[must_use]
    fn returned(&self, at: Time, marked: bool, _last_hop: bool) -> Self {
        self.answer(at, marked, Telling::default)
    }

    /// True for headers that a receiver has sent back.
    #[inline(always)]
    fn is_returned(&self) -> bool {
        false
    }

    /// What a sender hears by a reply with this annex, which arrived at `at` by its clock. `control` is its congestion control.
    #[inline(always)]
    fn heard(&self, _now: Time, _at: Time, reply: Reply, _control: &mut impl Congestion) -> Heard {
        match self.stamp() {
            None => Heard::Reply(reply),
            Some(stamp) => Heard::Named(reply, stamp.selective()),
        }
    }

    /// Tells a congestion control of a reply with this annex, which arrived at `at` by its clock: of all `news`, to which the
    /// annex adds what it carries, or of acknowledged packets alone.
    #[inline(always)]
    fn tell(&self, now: Time, _at: Time, news: Feedback, control: &mut impl Congestion) {
        match news.nack {
            true => control.on_nacked(now, news.acked, news.echo),
            false => control.on_ack(now, news.acked, news.echo),
        }
    }

    /// Time when the packet was sent, by its sender's clock; only in runs with telemetry or SACKs. A reply carries the time
    /// of the packet that it answers.
    #[inline(always)]
    fn sent(&self) -> Option<Time> {
        None
    }

    /// Annex of a control message with this content, over the path of this entropy.
    #[must_use]
    fn message(amount: u64, _entropy: u16) -> Self {
        let mut annex = Self::default();
        annex.set_tag(amount);
        annex
    }

    /// Annex of a probe that starts at `at` by its sender's clock, over the path of this entropy; `asks` is true if it asks for
    /// an ACK. Only in runs with SACKs.
    #[must_use]
    fn probe(_at: Time, _entropy: u16, _asks: bool) -> Self {
        Self::default()
    }
}

/// Fields that the ends of a queue pair and switches write on packets beyond those of [`Packet`], and their form in an engine.
pub trait Annex: Switched + Dialogue {
    /// True if an engine's lists have the place of the annex ([`Annex::Held`]).
    const LARGE: bool = Self::TELEMETRY || Self::SACKS;

    /// Form of the annex on an engine's lists of packets: the annex itself, or for a large annex its place. An engine sorts
    /// and moves packets with this form, and copies a large annex once, when the packet leaves.
    type Held: Copy + Default + Debug + PartialEq + Send + Sync + 'static;

    /// State of a port for a digest of telemetry: one [`Meter`], or none in runs without telemetry.
    type Meters: Copy + Default + Debug + Send + Sync + AsMut<[Meter]> + 'static;

    /// The form of this annex on a list; `place` computes its place.
    fn hold(&self, place: impl FnOnce() -> u32) -> Self::Held;

    /// The annex of this form; `find` returns the annex at a place.
    fn held<'s>(held: &'s Self::Held, find: impl FnOnce(u32) -> &'s Self) -> &'s Self;
}

/// What a data packet asks of its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// True if it asks for an ACK.
    pub asks: bool,
    /// Its message.
    pub envelope: Envelope,
    /// Running sum for the receiver's granter ([`crate::Granter`]).
    pub total: u64,
}

/// Bits of a packet's tag.
pub const TAG_BITS: u32 = 40;

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

impl Stamped for () {
    const CARRIES: bool = false;

    #[inline(always)]
    fn stamp(&self) -> Option<&Stamp> {
        None
    }

    #[inline(always)]
    fn stamp_mut(&mut self) -> Option<&mut Stamp> {
        None
    }
}

impl Switched for () {}

impl Dialogue for () {
    #[inline(always)]
    fn answer(&self, _: Time, _: bool, _: impl FnOnce() -> Telling) {}
}

impl Annex for () {
    moves_with_its_packet!();
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

    /// For a reply: [`Telling::crowded`].
    #[inline]
    pub const fn crowded(&self) -> bool {
        self.what & CROWDED != 0
    }

    /// For a reply: one-way delay of the data packet in ps, plus the lead of the receiver's clock over the sender's.
    #[inline]
    pub const fn delay(&self) -> i64 {
        self.time >> WAY_BITS
    }

    /// See [`Stamped::entropy`].
    #[inline]
    pub const fn entropy(&self) -> u16 {
        self.entropy
    }

    /// See [`Stamped::selective`].
    #[inline]
    pub fn selective(&self) -> Selective {
        let psn = Psn::new(self.what & PSN);
        if self.what & MISSING != 0 {
            Selective::Missing { first: psn, count: self.count }
        } else if self.what & ARRIVED != 0 {
            Selective::Arrived(psn)
        } else {
            Selective::Nothing
        }
    }

    /// See [`Stamped::notice`].
    #[inline]
    pub fn notice(&self) -> Option<Notice> {
        let is = self.what & NOTICE != 0;
        is.then(|| Notice { first: Psn::new(self.what & PSN), count: self.count })
    }

    /// See [`Stamped::is_copy`].
    #[inline]
    pub const fn is_copy(&self) -> bool {
        self.what & COPY != 0
    }

    /// See [`Stamped::tag`].
    #[inline]
    pub const fn tag(&self) -> u64 {
        match self.what & (NOTICE | MISSING | ARRIVED | CUT) {
            0 => (self.what & PSN) as u64 | (self.count as u64) << PSN_BITS,
            _ => 0,
        }
    }

    /// See [`Stamped::set_tag`].
    #[inline]
    pub fn set_tag(&mut self, tag: u64) {
        debug_assert!(tag >> TAG_BITS == 0, "a tag of more than {TAG_BITS} bits");
        if self.what & (NOTICE | MISSING | ARRIVED | CUT) == 0 {
            self.what = self.what & !PSN | tag as u32 & PSN;
            self.count = (tag >> PSN_BITS) as u16;
        }
    }

    /// See [`Dialogue::answer`].
    #[inline]
    fn answered(&self, at: Time, marked: bool, telling: &Telling) -> Stamp {
        let (flag, psn, count) = match telling.selective {
            Selective::Nothing => (0, 0, 0),
            Selective::Missing { first, count } => (MISSING, first.value(), count),
            Selective::Arrived(psn) => (ARRIVED, psn.value(), 1),
        };
        let marked = if marked { MARKED } else { 0 };
        let crowded = if telling.crowded { CROWDED } else { 0 };
        Stamp {
            time: ((at.ps() as i64) << WAY_BITS).wrapping_sub(self.time & !WAY),
            what: flag | marked | crowded | self.what & RESENT | psn,
            count,
            entropy: self.entropy,
        }
    }

    /// See [`Switched::overruled`].
    const fn overrule(&mut self) {
        self.what &= !(MISSING | ARRIVED);
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

impl Stamped for Stamp {
    const CARRIES: bool = true;

    #[inline(always)]
    fn stamp(&self) -> Option<&Stamp> {
        Some(self)
    }

    #[inline(always)]
    fn stamp_mut(&mut self) -> Option<&mut Stamp> {
        Some(self)
    }
}

impl Switched for Stamp {}

impl Dialogue for Stamp {
    #[inline]
    fn answer(&self, at: Time, marked: bool, telling: impl FnOnce() -> Telling) -> Stamp {
        self.answered(at, marked, &telling())
    }
}

impl Annex for Stamp {
    moves_with_its_packet!();
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

impl Stamped for TelemetryStamp {
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

impl Switched for TelemetryStamp {
    const TELEMETRY: bool = true;

    #[inline(always)]
    fn trace(&mut self, link: &TracedLink, at: Time, sent: u64, queue: u64) {
        self.trail.trace(link, at, sent, queue);
    }

    #[inline]
    fn fold(&mut self, code: u16) {
        self.trail.fold(code);
    }
}

impl Dialogue for TelemetryStamp {
    const FEEDBACK: bool = true;

    #[inline]
    fn answer(&self, at: Time, marked: bool, telling: impl FnOnce() -> Telling) -> TelemetryStamp {
        TelemetryStamp { stamp: self.stamp.answer(at, marked, telling), ..*self }
    }

    #[inline(always)]
    fn tell(&self, now: Time, at: Time, news: Feedback, control: &mut impl Congestion) {
        let round_trip = Time(at.ps().saturating_sub(self.sent.ps()));
        control.on_feedback(now, &Feedback { round_trip, trail: self.trail, ..news });
    }

    #[inline]
    fn sent(&self) -> Option<Time> {
        Some(self.sent)
    }
}

impl Annex for TelemetryStamp {
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
        let reply = data.answer(Time::from_us(103), false, Telling::default);
        assert!(reply.trail.records().eq([record]));
        assert_eq!((reply.sent(), reply.stamp.delay()), (Some(Time::from_us(100)), 3_000_000));
        assert_eq!(Stamp::default().sent(), None);
    }

    #[test]
    fn a_reply_carries_the_delay_between_two_clocks() {
        let sent = Stamp::new(7, Time::from_us(100));
        let fast = sent.answer(Time::from_us(103), true, Telling::default);
        assert_eq!(
            (fast.delay(), fast.entropy(), fast.marked(), fast.crowded()),
            (3_000_000, 7, true, false)
        );
        // The receiver's clock is 2 us behind a delay of 1 us.
        let behind = sent.answer(Time::from_us(99), true, Telling::default);
        assert_eq!(behind.delay(), -1_000_000);
    }

    #[test]
    fn a_tag_changes_no_other_field_and_a_notice_has_no_tag() {
        let mut sent = Stamp::new(9, Time::from_us(4)).copy();
        let untagged = sent;
        sent.set_tag((1 << TAG_BITS) - 1);
        assert_eq!((sent.tag(), sent.entropy(), sent.is_copy()), ((1 << TAG_BITS) - 1, 9, true));
        assert_eq!(sent.notice(), None);
        assert_eq!(sent.answer(Time::from_us(5), false, Telling::default).delay(), 1_000_000);
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
            let reply = sent.answer(Time::ZERO, false, Telling::default);
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
        let reply = data.answer(Time::from_us(late + 3), false, Telling::default);
        assert_eq!((reply.delay(), reply.route_state()), (3_000_000, RouteState::default()));
        assert_eq!(data.answer(Time::from_us(late - 3), false, Telling::default).delay(), -3_000_000);
    }

    #[test]
    fn packing_keeps_selective_reports_and_notices() {
        let sent = Stamp::new(u16::MAX, Time::ZERO);
        for selective in [
            Selective::Nothing,
            Selective::Missing { first: Psn::new(0xFF_FFFF), count: u16::MAX },
            Selective::Arrived(Psn::new(0)),
        ] {
            let telling = || Telling { selective, crowded: true, ..Telling::default() };
            let reply = sent.answer(Time::ZERO, false, telling);
            assert_eq!((reply.selective(), reply.crowded(), reply.marked()), (selective, true, false));
            assert_eq!((reply.notice(), reply.is_copy()), (None, false));
        }
        let notice = Notice { first: Psn::new(0xFF_FFFF), count: 9 };
        assert_eq!(sent.with_notice(notice).notice(), Some(notice));
        assert!(sent.copy().is_copy() && sent.copy().notice().is_none());
    }
}
