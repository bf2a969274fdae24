//! Packets on their way to the next window. Every port has a lane: the port fills it in one window, and the far end
//! reads it in the next.
//!
//! A group fills the lanes of its own ports. When the window closes, they go onto the [`Board`], which all groups
//! read and no group writes. [`Mail`] marks the nodes and ports that have lanes to read.

use model::{Annex, Packet, Parcel, PortIndex};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Packets that a port sends in one window and that arrive in the next, in order of arrival.
#[derive(Debug)]
pub(super) struct Lane<A> {
    /// Number of the window in which it was filled; the content is valid for that window only.
    pub(super) window: u64,
    /// The packets. The writer has exclusive access, and one reader takes them from the board, so the lock is never
    /// contended.
    packets: Mutex<Vec<Parcel<A>>>,
    /// Packet count at the last read; sizes the next buffer.
    last: AtomicU32,
    /// Pause frames, with any time of arrival.
    pub(super) pauses: Vec<Pause>,
}

/// A pause or resume frame on its way to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    /// Time of arrival, ps.
    pub(super) at: u64,
    /// Port at which it arrives.
    pub(super) port: PortIndex,
    /// Virtual channel that it pauses or resumes.
    pub(super) channel: u8,
    /// True for a pause, false for a resume.
    pub(super) on: bool,
    /// In a word that returns credits, bytes of all credits that were freed so far; 0 in a pause or resume frame.
    pub(super) freed: u64,
}

/// A number that no window has.
const NEVER: u64 = u64::MAX;

impl<A: Annex> Lane<A> {
    pub(super) fn new() -> Self {
        Lane { window: NEVER, packets: Mutex::default(), last: AtomicU32::new(0), pauses: Vec::new() }
    }

    /// Restarts the lane for window `number`.
    #[inline(never)]
    pub(super) fn begin(&mut self, number: u64, packets: Vec<Parcel<A>>) {
        self.window = number;
        *self.packets() = packets;
        self.pauses.clear();
    }

    /// The packets, for the writer.
    #[inline(always)]
    pub(super) fn packets(&mut self) -> &mut Vec<Parcel<A>> {
        self.packets.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time of the first event on the lane, in the window opened at `opened`, ps.
    pub(super) fn next_event(&mut self, opened: u64) -> u64 {
        let packets = self.packets.get_mut().unwrap_or_else(PoisonError::into_inner);
        first_event(opened, packets, &self.pauses)
    }

    /// Takes the packets, for the reader.
    #[inline]
    pub(super) fn take(&self) -> Vec<Parcel<A>> {
        let packets = std::mem::take(&mut *self.packets.lock().unwrap_or_else(PoisonError::into_inner));
        self.last.store(packets.len() as u32, Ordering::Relaxed);
        packets
    }
}

/// Time of the first of these events, ps: packets that arrive in the window opened at `opened`, and pause frames.
pub(super) fn first_event<A>(opened: u64, packets: &[Parcel<A>], pauses: &[Pause]) -> u64 {
    let arrivals = packets.iter().map(|pkt| opened + u64::from(pkt.offset()));
    arrivals.chain(pauses.iter().map(|pause| pause.at)).min().unwrap_or(u64::MAX)
}

/// Spare buffers for lanes. The reader of a lane passes its buffer to the next lane that is filled, while the
/// buffer is still cached. So lanes take little more memory than the packets in flight.
#[derive(Debug, Default)]
pub(super) struct Pool<A> {
    /// Buffers by size in units.
    spare: [Vec<Vec<Parcel<A>>>; SIZES],
}

/// Larger buffers, and further ones of one size, go back to the allocator: a thread may read more lanes than it
/// fills. Our choice.
const SIZES: usize = 16;
const MOST_SPARE: usize = 256;

impl<A: Annex> Pool<A> {
    /// Takes the buffer of packets that have been read.
    #[inline]
    pub(super) fn give(&mut self, mut packets: Vec<Parcel<A>>, unit: u32) {
        let size = packets.capacity() as u32 / unit;
        if let Some(spare) = self.spare.get_mut(size as usize)
            && spare.len() < MOST_SPARE
        {
            packets.clear();
            spare.push(packets);
        }
    }

    /// A buffer for `lane`, sized by its last packet count.
    #[inline]
    pub(super) fn take(&mut self, lane: &mut Lane<A>, unit: u32) -> Vec<Parcel<A>> {
        if lane.packets().capacity() > 0 {
            // A lane inside a group keeps its buffer.
            return std::mem::take(lane.packets());
        }
        self.buffer(lane.last.load(Ordering::Relaxed) as usize, unit)
    }

    /// A buffer for `count` packets.
    #[inline]
    pub(super) fn buffer(&mut self, count: usize, unit: u32) -> Vec<Parcel<A>> {
        let size = (count as u32).div_ceil(unit).max(1) as usize;
        let spare = self.spare.get_mut(size).and_then(Vec::pop);
        spare.unwrap_or_else(|| Vec::with_capacity(size * unit as usize))
    }
}

/// Adds a packet to a lane. Lanes take most of an engine's memory in a large fabric, and consecutive windows carry
/// similar traffic. So lanes grow by `unit` packets instead of doubling.
#[inline(always)]
pub(super) fn add<A>(lane: &mut Vec<Parcel<A>>, pkt: Parcel<A>, unit: u32) {
    if lane.len() == lane.capacity() {
        grow(lane, unit);
    }
    lane.push(pkt);
}

/// Adds a packet with this label and annex, which goes straight from place to place.
#[inline(always)]
pub(super) fn add_with<A: Annex>(lane: &mut Vec<Parcel<A>>, label: Packet, annex: &A, unit: u32) {
    if lane.len() == lane.capacity() {
        grow(lane, unit);
    }
    lane.push(Parcel { label, annex: *annex });
}

/// Adds a packet with this label and the annex of another one. Returns the packet on the lane. The other packet is copied as
/// a whole, because then its annex goes straight from place to place.
#[inline(always)]
pub(super) fn add_copy<'l, A: Annex>(
    lane: &'l mut Vec<Parcel<A>>,
    other: &Parcel<A>,
    label: Packet,
    unit: u32,
) -> &'l mut Parcel<A> {
    let at = lane.len();
    if at == lane.capacity() {
        grow(lane, unit);
    }
    lane.extend_from_slice(std::slice::from_ref(other));
    let added = &mut lane[at];
    added.label = label;
    added
}

/// Adds packets to a lane.
#[inline]
pub(super) fn add_all<A: Annex>(lane: &mut Vec<Parcel<A>>, packets: &[Parcel<A>], unit: u32) {
    if lane.capacity() - lane.len() < packets.len() {
        lane.reserve_exact(packets.len().next_multiple_of(unit as usize));
    }
    lane.extend_from_slice(packets);
}

#[cold]
#[inline(never)]
fn grow<A>(lane: &mut Vec<Parcel<A>>, unit: u32) {
    lane.reserve_exact(unit as usize);
}

/// The lanes of one group, by port.
pub(super) type Lanes<A> = Vec<Lane<A>>;

/// The lanes of all groups, as filled in the last window.
pub(super) type Board<A> = Vec<Lanes<A>>;

/// The far end of a lane, as two bits of [`Mail`] or of the mail inside a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) port: Bit,
    pub(super) node: Bit,
    /// True if the bits are in the mail inside a group.
    pub(super) inner: bool,
}

/// A bit in a table of words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bit {
    word: u32,
    bit: u32,
}

impl Bit {
    /// Bit `number` of a table that begins with word `first`.
    pub(super) fn of(first: u32, number: u32) -> Self {
        Bit { word: first + number / 64, bit: number % 64 }
    }

    /// Sets the bit.
    #[inline]
    pub(super) fn set(self, words: &mut [u64]) {
        words[self.word as usize] |= 1 << self.bit;
    }
}

/// Mail inside a group: a bit for every node and every port with packets on their way.
#[derive(Debug, Default)]
pub(super) struct InnerMail {
    pub(super) nodes: Vec<u64>,
    /// Laid out like the group's table of ports with a queue.
    pub(super) ports: Vec<u64>,
}

impl InnerMail {
    /// Announces a lane to its reader in the same group.
    pub(super) fn announce(&mut self, to: Address) {
        to.port.set(&mut self.ports);
        to.node.set(&mut self.nodes);
    }
}

/// Nodes and ports with lanes to read in the next window: a bit for every node, and one for every port.
///
/// Every thread announces lanes in tables of its own, and a reader takes the union of all tables. So a word has one
/// writer, who needs no read-modify-write operation.
#[derive(Debug)]
pub(super) struct Mail {
    outboxes: Vec<Outbox>,
}

/// The tables that one thread writes, and its counts. The counts lie in cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Outbox {
    nodes: [Vec<Line>; 2],
    ports: [Vec<Line>; 2],
    /// Number of the last window for which the thread has announced a lane, and the number of such lanes.
    last: AtomicU64,
    lanes: AtomicU64,
    /// Number of packets that the thread has read in the run.
    packets: AtomicU64,
}

/// Eight words in a cache line of their own. The words of a group begin with a new line, so that two threads that
/// read different groups share none.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; WORDS_PER_LINE]);

/// Words in a cache line.
pub(super) const WORDS_PER_LINE: usize = 8;

/// Lengths of [`Mail`]'s tables, in words of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct MailWords {
    pub(super) nodes: usize,
    pub(super) ports: usize,
}

impl Mail {
    /// Empty tables of these lengths for a number of threads.
    pub(super) fn new(words: MailWords, threads: usize) -> Self {
        let lines = |n: usize| (0..n.div_ceil(WORDS_PER_LINE)).map(|_| Line::default()).collect::<Vec<_>>();
        let both = |n: usize| [lines(n), lines(n)];
        let outbox = |_| Outbox {
            nodes: both(words.nodes),
            ports: both(words.ports),
            last: AtomicU64::new(u64::MAX),
            lanes: AtomicU64::new(0),
            packets: AtomicU64::new(0),
        };
        Mail { outboxes: (0..threads).map(outbox).collect() }
    }

    /// The tables that thread `me` writes.
    pub(super) fn outbox(&self, me: usize) -> &Outbox {
        &self.outboxes[me]
    }

    /// True if any node has mail in window `number`.
    pub(super) fn awaits(&self, number: u64) -> bool {
        self.outboxes.iter().any(|outbox| outbox.last.load(Ordering::Relaxed) == number)
    }

    /// Number of lanes that are announced for window `number`.
    pub(super) fn lanes(&self, number: u64) -> u64 {
        let current = self.outboxes.iter().filter(|outbox| outbox.last.load(Ordering::Relaxed) == number);
        current.map(|outbox| outbox.lanes.load(Ordering::Relaxed)).sum()
    }

    /// Number of packets that all threads have read in the run.
    pub(super) fn packets(&self) -> u64 {
        self.outboxes.iter().map(|outbox| outbox.packets.load(Ordering::Relaxed)).sum()
    }

    /// Takes a word of the tables of nodes for window `number`.
    #[inline]
    pub(super) fn take_nodes(&self, number: u64, word: u32) -> u64 {
        self.outboxes.iter().fold(0, |all, outbox| all | take(&outbox.nodes[number as usize & 1], word))
    }

    /// Takes a word of the tables of ports for window `number`.
    #[inline]
    pub(super) fn take_ports(&self, number: u64, word: u32) -> u64 {
        self.outboxes.iter().fold(0, |all, outbox| all | take(&outbox.ports[number as usize & 1], word))
    }
}

impl Outbox {
    /// Announces a lane that is filled in window `number` to its reader.
    #[inline(never)]
    pub(super) fn announce(&self, number: u64, to: Address) {
        self.expect(number);
        let slot = (number + 1) as usize & 1;
        if set(&self.ports[slot], to.port) == 0 {
            set(&self.nodes[slot], to.node);
        }
    }

    /// Announces that the window after window `number` has arrivals.
    #[inline]
    pub(super) fn expect(&self, number: u64) {
        let next = number + 1;
        let before =
            if self.last.load(Ordering::Relaxed) == next { self.lanes.load(Ordering::Relaxed) } else { 0 };
        self.last.store(next, Ordering::Relaxed);
        self.lanes.store(before + 1, Ordering::Relaxed);
    }

    /// Counts packets that the thread has read.
    pub(super) fn count_read(&self, packets: u64) {
        self.packets.store(self.packets.load(Ordering::Relaxed) + packets, Ordering::Relaxed);
    }
}

/// Sets a bit; returns the word as it was. Only the thread that owns the table calls it, in the window before the
/// reader's. Threads synchronise at the barrier between windows, so relaxed order is enough.
#[inline]
fn set(lines: &[Line], at: Bit) -> u64 {
    let word = word(lines, at.word);
    let before = word.load(Ordering::Relaxed);
    word.store(before | 1 << at.bit, Ordering::Relaxed);
    before
}

/// Takes a word. All writers finished before the last barrier and write the other slot now, and only one reader takes
/// the word, so it may clear it.
#[inline]
fn take(lines: &[Line], at: u32) -> u64 {
    let word = word(lines, at);
    let taken = word.load(Ordering::Relaxed);
    if taken != 0 {
        word.store(0, Ordering::Relaxed);
    }
    taken
}

#[inline]
fn word(lines: &[Line], at: u32) -> &AtomicU64 {
    &lines[at as usize / WORDS_PER_LINE].0[at as usize % WORDS_PER_LINE]
}

/// Reads a word of every cache line of these packets. This only saves time.
#[inline]
pub(super) fn fetch<A: Annex>(packets: &[Parcel<A>]) {
    let per_line = (64 / size_of::<Parcel<A>>()).max(1);
    let words = packets.chunks(per_line).map(|line| line[0].word());
    std::hint::black_box(words.fold(0, |sum, word| sum ^ word));
}

/// The numbers of the set bits of `word`, if its lowest bit has number `first`.
#[inline]
pub(super) fn bits(mut word: u64, first: usize) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(first + bit)
    })
}
