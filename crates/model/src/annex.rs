//! What a packet carries besides its label, in runs whose ends need it.

use crate::telemetry::{Record, Trail};
use crate::{HostId, Kind, Packet, PortIndex, Psn, QpId, RouteState, Time};
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};

/// What the ends of a queue pair write on packets beyond what [`Packet`] holds. Runs whose ends write nothing
/// use `()`, which takes neither room nor time.
pub trait Annex: Copy + Default + Debug + PartialEq + Send + Sync + 'static {
    /// False for `()` alone: whoever has nothing to write need not be asked.
    const CARRIES: bool;

    /// Switches write telemetry on data packets, and replies carry it back.
    const TELEMETRY: bool = false;

    /// The entropy of a packet: its UDP source port, counted from the first one that its sender uses. Replies
    /// have none of their own.
    fn entropy(&self) -> u16;

    /// The annex of the reply to a data packet that carries this one and arrived at `at`, by its receiver's clock.
    fn answer(&self, at: Time, answer: Answer) -> Self;

    /// What a reply says of single packets.
    fn selective(&self) -> Selective;

    /// The notice that a data packet is in place of payload.
    fn notice(&self) -> Option<Notice>;

    /// The packet is a copy that its sender made on purpose.
    fn is_copy(&self) -> bool;

    /// What switches have written on a data packet, or what a signal says: [`TAG_BITS`] bits.
    fn tag(&self) -> u64;

    /// Writes the tag.
    fn set_tag(&mut self, tag: u64);

    /// The same of a reply that a switch has turned into another kind: it says nothing of single packets any more.
    #[must_use]
    fn overruled(&self) -> Self;

    /// How the packet crosses a fabric of groups. Only switches write it.
    fn route_state(&self) -> RouteState;

    /// Sets [`Annex::route_state`].
    fn set_route_state(&mut self, way: RouteState);

    /// A switch adds what it says of `link`, if the packet has gathered less than `room` records.
    #[inline(always)]
    fn trace(&mut self, _link: u32, _record: Record, _room: u8) {}

    /// What switches have written about the packet's links; of a reply, about those of the packet that it answers.
    #[inline(always)]
    fn trail(&self) -> Trail {
        Trail::default()
    }

    /// When the packet was sent, or that which a reply answers, by its sender's clock. Only in runs with telemetry.
    #[inline(always)]
    fn sent(&self) -> Option<Time> {
        None
    }
}

/// Bits of a packet's tag.
pub const TAG_BITS: u32 = 40;

/// What a receiver puts into a reply besides its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// A switch had marked the data packet.
    pub marked: bool,
    /// What the reply says of single packets.
    pub selective: Selective,
    /// Too much waits for a gap to be filled, see [`crate::Receiver::crowded`].
    pub crowded: bool,
}

/// What a reply says of single packets, ahead of those that its number acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Selective {
    /// Nothing.
    #[default]
    Nothing,
    /// These have not come, though a later one has.
    Missing {
        /// The first of them.
        first: Psn,
        /// How many there are, at least 1.
        count: u16,
    },
    /// This one has.
    Arrived(Psn),
}

/// Packets that are under way on a path that their sender has left: its receiver had better not take them for
/// lost (DLBF, notification packets).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The first of them.
    pub first: Psn,
    /// How many there are, at least 1.
    pub count: u16,
}

/// How a receiver answers to notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoticeRules {
    /// How long it says nothing of gaps in a noticed range.
    pub patience: Time,
    /// It calls itself crowded when it holds more than this many packets,
    pub high: u32,
    /// and no more when it holds this many or fewer.
    pub low: u32,
}

impl Annex for () {
    const CARRIES: bool = false;

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
/// Data carries its entropy and the time at which it was sent, by its sender's clock. A reply carries back the
/// entropy of the packet that it answers, whether that was marked, and how long it took: the receiver's clock
/// less the sender's, so it contains how far the two are apart, and can be negative. The tag of data and signals
/// stands where replies and notices speak of PSNs, so a notice has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// In the upper 48 bits a time: of data when it was sent, ps, of replies how long the data took. It wraps at 2^47 ps
    /// = 140 s, which no packet is under way. In the lower 16 bits the packet's own [`RouteState`].
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
const RESENT: u32 = 1 << 31;
const PSN: u32 = COPY - 1;
const PSN_BITS: u32 = 24;
const WAY_BITS: u32 = 16;
const WAY: i64 = (1 << WAY_BITS) - 1;

impl Stamp {
    /// Of a data packet that starts at `sent`, by its sender's clock.
    #[inline]
    pub const fn new(entropy: u16, sent: Time) -> Self {
        Stamp { time: (sent.ps() as i64) << WAY_BITS, what: 0, count: 0, entropy }
    }

    /// The same for a copy made on purpose.
    #[must_use]
    pub const fn copy(mut self) -> Self {
        self.what |= COPY;
        self
    }

    /// The same for a packet that is a notice and carries no payload.
    #[must_use]
    pub const fn with_notice(mut self, notice: Notice) -> Self {
        self.what |= NOTICE | notice.first.value();
        self.count = notice.count;
        self
    }

    /// The same for a packet that was sent before if `again`. Its reply says so, too.
    #[inline]
    #[must_use]
    pub const fn again(mut self, again: bool) -> Self {
        self.what |= if again { RESENT } else { 0 };
        self
    }

    /// Data: it was sent before. A reply: the data packet was.
    #[inline]
    pub const fn resent(&self) -> bool {
        self.what & RESENT != 0
    }

    /// A reply: the data packet was marked.
    #[inline]
    pub const fn marked(&self) -> bool {
        self.what & MARKED != 0
    }

    /// A reply: see [`Answer::crowded`].
    #[inline]
    pub const fn crowded(&self) -> bool {
        self.what & CROWDED != 0
    }

    /// A reply: one-way delay of the data packet, ps, plus how far the receiver's clock is ahead.
    #[inline]
    pub const fn delay(&self) -> i64 {
        self.time >> WAY_BITS
    }
}

impl Annex for Stamp {
    const CARRIES: bool = true;

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
        match self.what & (NOTICE | MISSING | ARRIVED) {
            0 => (self.what & PSN) as u64 | (self.count as u64) << PSN_BITS,
            _ => 0,
        }
    }

    #[inline]
    fn set_tag(&mut self, tag: u64) {
        debug_assert!(tag >> TAG_BITS == 0, "a tag of more than {TAG_BITS} bits");
        if self.what & (NOTICE | MISSING | ARRIVED) == 0 {
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

/// The annex of runs with telemetry: a [`Stamp`], the time of sending, which the reply brings back, and the records of
/// switches. 88 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// What the ends write in other runs.
    pub stamp: Stamp,
    sent: Time,
    trail: Trail,
}

impl Traced {
    /// Of a data packet that starts at `sent`, by its sender's clock.
    #[inline]
    pub fn new(stamp: Stamp, sent: Time) -> Self {
        Traced { stamp, sent, trail: Trail::default() }
    }
}

impl Annex for Traced {
    const CARRIES: bool = true;
    const TELEMETRY: bool = true;

    #[inline]
    fn entropy(&self) -> u16 {
        self.stamp.entropy()
    }

    #[inline]
    fn answer(&self, at: Time, answer: Answer) -> Traced {
        Traced { stamp: self.stamp.answer(at, answer), ..*self }
    }

    #[inline]
    fn selective(&self) -> Selective {
        self.stamp.selective()
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

    fn overruled(&self) -> Traced {
        Traced { stamp: self.stamp.overruled(), ..*self }
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
    fn trace(&mut self, link: u32, record: Record, room: u8) {
        self.trail.push(link, record, room);
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

/// A packet on its way: what every switch reads, and what its ends have written on it besides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parcel<A> {
    /// What switches read.
    pub label: Packet,
    /// What its ends read.
    pub annex: A,
}

impl<A: Annex> Parcel<A> {
    /// A packet on which its ends have written nothing.
    #[inline]
    pub fn bare(label: Packet) -> Self {
        Parcel { label, annex: A::default() }
    }

    /// The same packet, about to arrive: see [`Packet::arriving`].
    #[inline]
    #[must_use]
    pub fn arriving(self, offset: u32, port: PortIndex) -> Self {
        Parcel { label: self.label.arriving(offset, port), ..self }
    }
}

impl<A: Annex> Default for Parcel<A> {
    /// Fills a place until a packet comes.
    fn default() -> Self {
        Parcel::bare(Packet::new(Kind::Data, QpId(0), HostId(0), Psn::new(0), 0))
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

    #[test]
    fn nothing_takes_no_room_and_a_stamp_takes_sixteen_bytes() {
        assert_eq!(size_of::<Parcel<()>>(), 16);
        assert_eq!(size_of::<Parcel<Stamp>>(), 32);
        assert_eq!(size_of::<Parcel<Traced>>(), 104);
    }

    #[test]
    fn a_reply_brings_back_what_switches_wrote_and_when_the_packet_was_sent() {
        let mut data = Traced::new(Stamp::new(7, Time::from_us(100)), Time::from_us(100));
        let record = Record::new(2, Time::from_us(101), 5_000, 800);
        data.trace(4, record, 5);
        data.set_tag(77);
        let reply = data.answer(Time::from_us(103), Answer::default());
        assert!(reply.trail().records().eq([record]));
        assert_eq!((reply.sent(), reply.stamp.delay()), (Some(Time::from_us(100)), 3_000_000));
        assert_eq!(Stamp::default().sent(), None);
    }

    #[test]
    fn a_reply_tells_the_delay_whatever_the_clocks_say() {
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
    fn a_tag_leaves_the_rest_alone_and_a_notice_has_none() {
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
    fn a_reply_tells_whether_it_answers_a_retransmission() {
        for again in [false, true] {
            let sent = Stamp::new(9, Time::ZERO).again(again);
            let reply = sent.answer(Time::ZERO, Answer::default());
            assert_eq!((sent.resent(), reply.resent(), reply.marked()), (again, again, false));
        }
    }

    #[test]
    fn times_and_ways_share_a_word_and_do_not_touch() {
        // Two hours into the run the clock has wrapped many times; delays are right all the same.
        let late = 7_200_000_000;
        let mut data = Stamp::new(7, Time::from_us(late));
        data.set_route_state(RouteState::default().by(Detour::Member(4094)).next(true, false));
        assert_eq!(data.route_state().detour(), Some(Detour::Member(4094)));
        let reply = data.answer(Time::from_us(late + 3), Answer::default());
        assert_eq!((reply.delay(), reply.route_state()), (3_000_000, RouteState::default()));
        assert_eq!(data.answer(Time::from_us(late - 3), Answer::default()).delay(), -3_000_000);
    }

    #[test]
    fn what_is_said_of_single_packets_survives_the_packing() {
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
