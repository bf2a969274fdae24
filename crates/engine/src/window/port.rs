//! A port: its queues, and the times of its wire.

use super::far::Far;
use super::lanes::fetch;
use super::queue::Queue;
use crate::outcome::LinkRecord;
use crate::record::sampler;
use crate::setup::{CLASSES, DATA, PortFacts, channel};
use model::plan::{MarkAt, Marking};
use model::{Annex, Parcel, PortIndex, Time};

/// A port. Its first cache line holds the fields that every packet needs.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Port<A: Annex> {
    pub(super) data: Queue<A>,
    /// Time at which the wire is free, ps.
    pub(super) busy: u64,
    /// Start of the next packet, ps; [`u64::MAX`] if no queued packet may start.
    pub(super) due: u64,
    /// Bytes in the data queue: now, and the maximum.
    pub(super) waiting: u64,
    pub(super) most_waiting: u64,
    pub(super) peer_port: PortIndex,
    /// A bit for each class with queued packets (low bits), and for each class that may start (from [`MAY`] on).
    /// Only data may be barred, by a pause.
    classes: u8,
    flags: u8,
    /// Length up to which a data queue causes no mark for sure, bytes.
    pub(super) unmarked: u32,

    pub(super) replies: Queue<A>,
    /// Propagation delay, ps.
    pub(super) delay: u64,
    /// Time on the wire in ps, and number of frames, so far.
    pub(super) busy_for: u64,
    pub(super) frames: u64,
    pub(super) bytes: u64,
    /// Start of its rate's row of transmission times.
    pub(super) row: u32,
    /// Number of virtual channels of its link. A bit for each priority that is paused by frames, one for each that is paused by a
    /// storm, one for each that lacks credits, and one for each whose pauses do not count now, see [`Port::paused_channels`].
    channels: u8,
    by_frames: u8,
    by_storm: u8,
    by_credits: u8,
    deaf: u8,

    /// End of the last frame, ps.
    pub(super) last: u64,
    pub(super) cnps: Queue<A>,
    /// Packets in flight that arrive after the next window.
    pub(super) far: Far<A>,
    /// State of the digest of telemetry.
    pub(super) meters: A::Meters,
}

/// First bit of the classes that may start.
const MAY: u32 = 4;

/// The port leads to a host.
pub(super) const TO_HOST: u8 = 1;
/// The scheme watches departures.
pub(super) const WATCHED: u8 = 2;
/// The link loses packets.
pub(super) const LOSSY: u8 = 4;
/// A tap records every frame.
pub(super) const TAPPED: u8 = 8;
/// The port marks data that joins a queue.
pub(super) const MARKS_EARLY: u8 = 16;
/// The data queue has packets that no buffer charges, because the switch made them.
pub(super) const UNCHARGED: u8 = 32;
/// Some virtual channels are paused, but not all. Data leaves in order; packets of paused channels are skipped.
pub(super) const PARTLY_PAUSED: u8 = 64;
/// Packets in flight belong to lanes after the next one. The flag spares a cache line where there are none.
pub(super) const LATER: u8 = 128;

impl<A: Annex> Port<A> {
    pub(super) fn new(facts: &PortFacts, marking: Option<&Marking>) -> Self {
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        let unmarked = marking.map_or(u64::MAX, |m| m.kmin.get());
        Port {
            meters: A::Meters::default(),
            data: Queue::default(),
            busy: 0,
            due: u64::MAX,
            waiting: 0,
            most_waiting: 0,
            peer_port: facts.peer_port,
            classes: ((1 << CLASSES) - 1) << MAY,
            flags: flag(facts.to_host, TO_HOST)
                | flag(facts.lossy(), LOSSY)
                | flag(facts.tapped, TAPPED)
                | flag(marking.is_some_and(|m| m.at == MarkAt::Enqueue), MARKS_EARLY),
            replies: Queue::default(),
            delay: facts.delay,
            busy_for: 0,
            frames: 0,
            row: facts.row,
            unmarked: unmarked.min(u32::MAX as u64) as u32,
            bytes: 0,
            last: 0,
            far: Far::new(),
            cnps: Queue::default(),
            channels: facts.channels,
            by_frames: 0,
            by_storm: 0,
            by_credits: 0,
            deaf: 0,
        }
    }

    /// Reads a word of every cache line. This only saves time.
    #[inline]
    pub(super) fn fetch(&self) {
        std::hint::black_box((self.busy, self.frames, self.last));
    }

    /// Reads a word of every cache line of the queues. This only saves time.
    #[inline]
    pub(super) fn fetch_queue(&self) {
        self.fetch();
        fetch(self.data.packets());
        fetch(self.replies.packets());
    }

    #[inline(always)]
    pub(super) fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    pub(super) fn set(&mut self, flag: u8, on: bool) {
        self.flags = self.flags & !flag | if on { flag } else { 0 };
    }

    /// True if no queued data may start.
    #[inline(always)]
    pub(super) fn paused(&self) -> bool {
        self.classes & (1 << DATA) << MAY == 0
    }

    /// True if this packet of the class of data may not start.
    #[inline(always)]
    pub(super) fn must_wait(&self, pkt: &Parcel<A>) -> bool {
        if A::CARRIES && self.is(PARTLY_PAUSED) { !self.may_start(pkt) } else { self.paused() }
    }

    /// True if the packet's channel is not paused.
    pub(super) fn may_start(&self, pkt: &Parcel<A>) -> bool {
        self.may_start_behind(0, pkt)
    }

    /// [`Port::may_start`] for a packet of the group of classes whose pauses begin with this priority.
    #[inline(always)]
    pub(super) fn may_start_behind(&self, first_priority: u8, pkt: &Parcel<A>) -> bool {
        self.paused_channels() >> (first_priority + channel(pkt.annex.route_state().leg(), self.channels)) & 1
            == 0
    }

    /// A bit for each paused priority: each virtual channel, of each group of classes.
    #[inline(always)]
    pub(super) fn paused_channels(&self) -> u8 {
        self.asked() & !self.deaf
    }

    /// A bit for each priority that the far end pauses, also if the port ignores it.
    #[inline(always)]
    pub(super) fn asked(&self) -> u8 {
        self.by_frames | self.by_storm | self.by_credits
    }

    /// True if nothing but frames pauses the port, and all of them do.
    pub(super) fn obeys_frames_alone(&self) -> bool {
        self.by_storm | self.by_credits | self.deaf == 0
    }

    /// A bit for each priority that frames have paused.
    pub(super) fn by_frames(&self) -> u8 {
        self.by_frames
    }

    /// Number of virtual channels of its link.
    pub(super) fn channels(&self) -> u8 {
        self.channels
    }

    pub(super) fn pause(&mut self, priority: u8, on: bool) {
        self.by_frames = with_bit(self.by_frames, priority, on);
        self.recheck_pauses();
    }

    /// Pauses these priorities by a storm, and no others.
    pub(super) fn storm(&mut self, priorities: u8) {
        self.by_storm = priorities;
        self.recheck_pauses();
    }

    /// A bit for each priority that lacks credits.
    pub(super) fn by_credits(&self) -> u8 {
        self.by_credits
    }

    /// Sets whether a priority lacks credits.
    pub(super) fn starve(&mut self, priority: u8, on: bool) {
        self.by_credits = with_bit(self.by_credits, priority, on);
        self.recheck_pauses();
    }

    /// True if a storm pauses the port.
    pub(super) fn by_storm(&self) -> bool {
        self.by_storm != 0
    }

    /// Sets whether pauses of a priority do not count.
    pub(super) fn deafen(&mut self, priority: u8, on: bool) {
        self.deaf = with_bit(self.deaf, priority, on);
        self.recheck_pauses();
    }

    fn recheck_pauses(&mut self) {
        let (paused, all) = (self.paused_channels(), (1 << self.channels) - 1);
        self.set(PARTLY_PAUSED, paused != 0 && paused != all);
        self.recheck_data();
    }

    /// Updates whether queued data may start.
    fn recheck_data(&mut self) {
        let may = match self.is(PARTLY_PAUSED) {
            false => self.paused_channels() == 0,
            true => self.data.packets().iter().any(|pkt| self.may_start(pkt)),
        };
        let bit = (1 << DATA) << MAY;
        self.classes = self.classes & !bit | if may { bit } else { 0 };
        self.schedule();
    }

    /// Takes the first data packet whose channel is not paused.
    #[cold]
    fn pick(&mut self) -> Option<Parcel<A>> {
        let ahead = self.data.packets().iter().position(|pkt| self.may_start(pkt))?;
        self.data.pop_behind(ahead)
    }

    /// A bit for each class that has queued packets and may start.
    #[inline(always)]
    pub(super) fn open(&self) -> u8 {
        self.classes & self.classes >> MAY
    }

    /// True if all queues are empty.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.classes & ((1 << MAY) - 1) == 0
    }

    /// Updates the start of the next packet.
    #[inline(always)]
    pub(super) fn schedule(&mut self) {
        self.due = if self.open() != 0 { self.busy } else { u64::MAX };
    }

    /// Updates which classes have queued packets, and the start of the next packet.
    #[inline(always)]
    pub(super) fn recount(&mut self) {
        let waits = !self.cnps.is_empty() as u8
            | (!self.replies.is_empty() as u8) << 1
            | (!self.data.is_empty() as u8) << DATA;
        self.classes = self.classes & !((1 << MAY) - 1) | waits;
        self.schedule();
    }

    /// Takes the next packet by class and order that may start.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Parcel<A>> {
        let class = self.open().trailing_zeros() as usize;
        let picky = A::CARRIES && class == DATA && self.is(PARTLY_PAUSED);
        let picked = if picky { self.pick() } else { None };
        let queue = match class {
            DATA => &mut self.data,
            1 => &mut self.replies,
            _ => &mut self.cnps,
        };
        let pkt = if picky { picked? } else { queue.pop()? };
        let last = queue.is_empty();
        if class == DATA {
            self.waiting -= u64::from(pkt.frame());
        }
        self.classes &= !((last as u8) << class);
        if picky {
            self.recheck_data();
        }
        Some(pkt)
    }

    /// Takes the first packet of a virtual channel out of the queue of data.
    #[cold]
    pub(super) fn take_of(&mut self, own: u8) -> Option<Parcel<A>> {
        let channels = self.channels;
        let is_own = |pkt: &Parcel<A>| channel(pkt.annex.route_state().leg(), channels) == own;
        let ahead = self.data.packets().iter().position(is_own)?;
        let pkt = self.data.pop_behind(ahead)?;
        self.waiting -= u64::from(pkt.frame());
        self.recount();
        self.recheck_data();
        Some(pkt)
    }

    /// Takes the newest data packet out of its queue, if it is `suitable`.
    #[cold]
    pub(super) fn take_newest(&mut self, suitable: impl Fn(&Parcel<A>) -> bool) -> Option<Parcel<A>> {
        let pkt = self.data.take_newest(|pkt| pkt.is_data(), suitable)?;
        self.waiting -= u64::from(pkt.frame());
        self.recount();
        if self.is(PARTLY_PAUSED) {
            self.recheck_data();
        }
        Some(pkt)
    }

    /// Queues a packet of the class of data.
    #[inline(always)]
    pub(super) fn push_data(&mut self, pkt: Parcel<A>) {
        self.classes |= 1 << DATA;
        self.waiting += u64::from(pkt.frame());
        self.most_waiting = self.most_waiting.max(self.waiting);
        self.data.push(pkt);
        if A::CARRIES && self.is(PARTLY_PAUSED) {
            self.recheck_data();
        }
        self.schedule();
    }

    /// Queues a packet of a class before data.
    #[inline(always)]
    pub(super) fn push_reply(&mut self, class: usize, pkt: Parcel<A>) {
        self.classes |= 1 << class;
        match class {
            0 => self.cnps.push(pkt),
            _ => self.replies.push(pkt),
        }
        self.due = self.busy;
    }

    /// All queued packets.
    pub(super) fn queued(&self) -> impl Iterator<Item = &Parcel<A>> {
        self.cnps.packets().iter().chain(self.replies.packets()).chain(self.data.packets())
    }

    /// Bytes of all queued packets.
    #[inline]
    pub(super) fn queued_bytes(&self) -> u64 {
        let replies = self.replies.packets().iter().chain(self.cnps.packets());
        self.waiting + replies.map(|pkt| u64::from(pkt.frame())).sum::<u64>()
    }

    /// Queued packets of the class of data.
    pub(super) fn queued_data(&self) -> &[Parcel<A>] {
        self.data.packets()
    }

    /// The counts of the port and of its link so far.
    pub(super) fn counted(&self, link: &LinkRecord) -> sampler::Port {
        sampler::Port {
            frames: self.frames,
            bytes: self.bytes,
            marks: link.marks,
            lost: link.lost + link.drops,
            pauses: link.pauses,
            waits: self.waiting,
        }
    }

    /// The longest queue since the last call; `link` keeps the maximum of the run.
    pub(super) fn longest_queue(&mut self, link: &mut LinkRecord) -> u64 {
        let most = std::mem::replace(&mut self.most_waiting, self.waiting);
        link.max_queue = link.max_queue.max(most);
        most
    }

    /// Writes the counts of the port.
    pub(super) fn report(&self, link: &mut LinkRecord) {
        link.frames = self.frames;
        link.bytes = self.bytes;
        link.busy = Time(self.busy_for);
        link.max_queue = link.max_queue.max(self.most_waiting);
    }
}

/// A mask with one bit set or cleared.
fn with_bit(mask: u8, bit: u8, on: bool) -> u8 {
    mask & !(1 << bit) | u8::from(on) << bit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_every_packet_needs_fit_one_cache_line() {
        assert_eq!(std::mem::offset_of!(Port<()>, replies), 64);
        assert_eq!(size_of::<Port<()>>(), 256);
    }
}
