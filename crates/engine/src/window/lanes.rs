//! Packets on their way to the next window. Every port has a lane: it fills it while its window is open, and
//! the far end reads it in the next one.
//!
//! A group writes the lanes of its own ports. When the window closes, what it wrote goes onto the [`Board`],
//! which all read and nobody writes. [`Mail`] tells who has something to read.

use model::{Annex, Parcel, PortIndex};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a port sends in one window and arrives in the next, in the order of arrival.
#[derive(Debug)]
pub(super) struct Lane<A> {
    /// Number of the window in which it was written; anything else in it is old.
    pub(super) window: u64,
    /// The writer has it to itself; the one reader takes them out of the board. So the lock is never contended.
    packets: Mutex<Vec<Parcel<A>>>,
    /// How many they were when they were last read.
    last: AtomicU32,
    /// Pause frames, whenever they arrive.
    pub(super) pauses: Vec<Pause>,
}

/// A pause or resume frame, under way to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    /// When it arrives, ps.
    pub(super) at: u64,
    /// Where.
    pub(super) port: PortIndex,
    /// The virtual channel.
    pub(super) channel: u8,
    /// Pause, or resume.
    pub(super) on: bool,
}

/// No window has this number.
const NEVER: u64 = u64::MAX;

impl<A: Annex> Lane<A> {
    pub(super) fn new() -> Self {
        Lane { window: NEVER, packets: Mutex::default(), last: AtomicU32::new(0), pauses: Vec::new() }
    }

    /// Begins it anew for window `number`.
    #[inline(never)]
    pub(super) fn begin(&mut self, number: u64, packets: Vec<Parcel<A>>) {
        self.window = number;
        *self.packets() = packets;
        self.pauses.clear();
    }

    /// The packets, to be written.
    #[inline(always)]
    pub(super) fn packets(&mut self) -> &mut Vec<Parcel<A>> {
        self.packets.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the packets, to be read.
    #[inline]
    pub(super) fn take(&self) -> Vec<Parcel<A>> {
        let packets = std::mem::take(&mut *self.packets.lock().unwrap_or_else(PoisonError::into_inner));
        self.last.store(packets.len() as u32, Ordering::Relaxed);
        packets
    }
}

/// Room for the packets of lanes. Who has read a lane gives its room to the next one that is written, while it is
/// in the nearest caches: so what lanes take is little more than what is under way.
#[derive(Debug, Default)]
pub(super) struct Pool<A> {
    /// By size, in units.
    spare: [Vec<Vec<Parcel<A>>>; SIZES],
}

/// Larger ones, and more of one size, go back to the allocator: threads may read more than they write. Our choice.
const SIZES: usize = 16;
const MOST_SPARE: usize = 256;

impl<A: Annex> Pool<A> {
    /// Takes the room of packets that have been read.
    #[inline]
    pub(super) fn give(&mut self, mut packets: Vec<Parcel<A>>, unit: u32) {
        let size = packets.capacity() / unit as usize;
        if let Some(spare) = self.spare.get_mut(size)
            && spare.len() < MOST_SPARE
        {
            packets.clear();
            spare.push(packets);
        }
    }

    /// Room for what `lane` will carry, which is taken to be as much as the last time.
    #[inline]
    pub(super) fn take(&mut self, lane: &Lane<A>, unit: u32) -> Vec<Parcel<A>> {
        let size = lane.last.load(Ordering::Relaxed).div_ceil(unit).max(1) as usize;
        let spare = self.spare.get_mut(size).and_then(Vec::pop);
        spare.unwrap_or_else(|| Vec::with_capacity(size * unit as usize))
    }
}

/// Adds a packet to a lane. Lanes are most of an engine's memory in a large fabric, and a window's traffic is
/// alike from one to the next: so they grow by `unit` packets, not by doubling.
#[inline(always)]
pub(super) fn add<A>(lane: &mut Vec<Parcel<A>>, pkt: Parcel<A>, unit: u32) {
    if lane.len() == lane.capacity() {
        grow(lane, unit);
    }
    lane.push(pkt);
}

#[cold]
#[inline(never)]
fn grow<A>(lane: &mut Vec<Parcel<A>>, unit: u32) {
    lane.reserve_exact(unit as usize);
}

/// The lanes of one group, by port.
pub(super) type Lanes<A> = Vec<Lane<A>>;

/// The lanes of all groups as they were written in the last window.
pub(super) type Board<A> = Vec<Lanes<A>>;

/// The far end of a lane, as two bits of [`Mail`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) port: Bit,
    pub(super) node: Bit,
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
}

/// Who has mail in the next window: a bit for every node, and one for every port.
#[derive(Debug)]
pub(super) struct Mail {
    nodes: [Vec<AtomicU64>; 2],
    ports: [Vec<AtomicU64>; 2],
    /// Number of the last window in which somebody has mail.
    last: AtomicU64,
    /// Only one thread uses it.
    alone: bool,
}

/// Lengths of [`Mail`]'s tables, in words of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct MailWords {
    pub(super) nodes: usize,
    pub(super) ports: usize,
}

impl Mail {
    /// With room for so many words of nodes and of ports.
    pub(super) fn new(words: MailWords, alone: bool) -> Self {
        let MailWords { nodes, ports } = words;
        let words = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        Mail {
            nodes: [words(nodes), words(nodes)],
            ports: [words(ports), words(ports)],
            last: AtomicU64::new(u64::MAX),
            alone,
        }
    }

    /// Announces a lane written in window `number` to its reader.
    #[inline(never)]
    pub(super) fn announce(&self, number: u64, to: Address) {
        let next = (number + 1) as usize & 1;
        self.last.store(number + 1, Ordering::Relaxed);
        if self.set(&self.ports[next], to.port) == 0 {
            self.set(&self.nodes[next], to.node);
        }
    }

    /// Sets a bit; gives the word as it was. Threads only meet at the barrier between windows, so no order of
    /// memory is asked for here.
    #[inline]
    fn set(&self, words: &[AtomicU64], at: Bit) -> u64 {
        let (word, mask) = (&words[at.word as usize], 1 << at.bit);
        if self.alone {
            let before = word.load(Ordering::Relaxed);
            word.store(before | mask, Ordering::Relaxed);
            before
        } else {
            word.fetch_or(mask, Ordering::Relaxed)
        }
    }

    /// Somebody has mail in window `number`.
    pub(super) fn awaits(&self, number: u64) -> bool {
        self.last.load(Ordering::Relaxed) == number
    }

    /// Takes a word of nodes that have mail in window `number`.
    #[inline]
    pub(super) fn take_nodes(&self, number: u64, word: u32) -> u64 {
        self.take(&self.nodes[number as usize & 1], word)
    }

    /// Takes a word of ports that have mail in window `number`.
    #[inline]
    pub(super) fn take_ports(&self, number: u64, word: u32) -> u64 {
        self.take(&self.ports[number as usize & 1], word)
    }

    #[inline]
    fn take(&self, words: &[AtomicU64], word: u32) -> u64 {
        let word = &words[word as usize];
        // Its writers are done since the last barrier, and one reader takes it.
        let taken = word.load(Ordering::Relaxed);
        if taken != 0 {
            word.store(0, Ordering::Relaxed);
        }
        taken
    }
}

/// The numbers of the bits set in `words`, `first` being the number of the lowest one.
#[inline]
pub(super) fn bits(mut word: u64, first: usize) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(first + bit)
    })
}
