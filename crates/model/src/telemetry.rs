//! In-band network telemetry (INT): switches write a record of each link on data packets, for congestion controls that need
//! more information than a mark.
//!
//! The layout is that of HPCC (Li et al., SIGCOMM 2019, section 4.1; widths and units as in its public simulator). A packet
//! has an *area*: 2 bytes with the number of hops (4 bits) and an identifier of the path (12 bits), and 8 bytes for every
//! hop that the area has room for:
//!
//! | field | bits | unit |
//! |---|---|---|
//! | rate of the link | 3 | a code |
//! | time at which the frame starts | 24 | 1 ns; wraps after 16.8 ms |
//! | bytes that the port has sent before | 20 | 128 B; wraps after 134 MB |
//! | bytes left in the queue | 17 | 80 B, up to 10.5 MB |
//!
//! A switch makes a record when a data packet's frame starts on the wire of its egress port, which is when the packet leaves
//! the queue. Hosts make no records, so the first hop is the first switch's.
//!
//! Three bits can name eight rates, of which the paper's simulator uses five. Here a record holds the index of its rate
//! among all rates of the run ([`crate::Plan::rates`]), so every rate has a code. A control may coarsen the rate itself.

use crate::Time;

/// Most records of a packet in this simulator, whatever its area on the wire has room for. Our choice: two more than the
/// layout's usual five, which keeps packets short. A path through two data centres of three tiers takes six.
pub const MOST_HOPS: usize = 7;
/// Most different link rates in a run with telemetry.
pub const MOST_RATES: usize = 1 << RATE_BITS;

const TIME_BITS: u32 = 24;
const BYTES_BITS: u32 = 20;
const QUEUE_BITS: u32 = 17;
/// Unit of the counter of sent bytes, in bytes.
pub const BYTES_UNIT: u64 = 128;
/// Unit of the queue length, in bytes.
pub const QUEUE_UNIT: u64 = 80;

const HOPS_BITS: u32 = 4;
const PATH_BITS: u32 = 12;
const RATE_BITS: u32 = 6;

/// Length on the wire, in bytes, of an area with room for `hops` hops.
pub const fn area(hops: u8) -> u32 {
    2 + 8 * hops as u32
}

/// A switch's record of one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    rate: u8,
    word: u64,
}

impl Record {
    /// The record of a frame that starts at `at` on a link, after the port has sent `sent` bytes and while `queue` bytes
    /// wait. `rate` is the index of the link's rate in [`crate::Plan::rates`]. A queue that is too long for the layout
    /// saturates (our choice; the simulator of HPCC lets it wrap).
    #[inline]
    pub const fn new(rate: u8, at: Time, sent: u64, queue: u64) -> Self {
        Record { rate, word: Self::word(at, sent, queue) }
    }

    #[inline]
    const fn word(at: Time, sent: u64, queue: u64) -> u64 {
        let time = at.ps() / 1000 % (1 << TIME_BITS);
        let bytes = sent / BYTES_UNIT % (1 << BYTES_BITS);
        let most = (1 << QUEUE_BITS) - 1;
        let queue = queue / QUEUE_UNIT;
        let queue = if queue < most { queue } else { most };
        (time << BYTES_BITS | bytes) << QUEUE_BITS | queue
    }

    /// Index of the link's rate in [`crate::Plan::rates`].
    #[inline]
    pub const fn rate(&self) -> usize {
        self.rate as usize
    }

    /// Queue length in bytes, rounded down to [`QUEUE_UNIT`].
    #[inline]
    pub const fn queue(&self) -> u64 {
        (self.word & ((1 << QUEUE_BITS) - 1)) * QUEUE_UNIT
    }

    /// Time since an earlier record of the same link, and bytes sent since; both modulo the range of their counters.
    #[inline]
    pub const fn since(&self, earlier: &Record) -> (Time, u64) {
        let bytes = (self.bytes().wrapping_sub(earlier.bytes())) & ((1 << BYTES_BITS) - 1);
        let time = (self.time().wrapping_sub(earlier.time())) & ((1 << TIME_BITS) - 1);
        (Time::from_ns(time), bytes * BYTES_UNIT)
    }

    const fn time(&self) -> u64 {
        self.word >> (BYTES_BITS + QUEUE_BITS)
    }

    const fn bytes(&self) -> u64 {
        self.word >> QUEUE_BITS & ((1 << BYTES_BITS) - 1)
    }
}

/// The fields of a link's records that do not change from packet to packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct TracedLink {
    /// Part of the path's identifier, in its place in a trail.
    id: u64,
    /// Number of the link.
    number: u32,
    rate: u8,
    /// Most records of a packet.
    room: u8,
}

impl TracedLink {
    /// The link of this number, whose rate has this index in [`crate::Plan::rates`]. Packets have at most `room` records.
    #[inline]
    pub const fn new(link: u32, rate: u8, room: u8) -> Self {
        // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4) into 12 bits, so that paths over links with
        // regular numbers get different identifiers.
        let id = (link.wrapping_add(1).wrapping_mul(0x9E37_79B9) >> (32 - PATH_BITS)) as u64;
        let room = if room as usize > MOST_HOPS { MOST_HOPS as u8 } else { room };
        TracedLink { id: id << HOPS_BITS, number: link, rate, room }
    }

    /// Number of the link.
    #[inline]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Index of the link's rate in [`crate::Plan::rates`].
    #[inline]
    pub const fn rate(&self) -> u8 {
        self.rate
    }
}

/// The records that a packet has collected, or in a run with a digest its largest code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// From the lowest bit: number of hops (4 bits), path (12 bits), indices of the rates (6 bits each).
    head: u64,
    /// The records; in a run with a digest, the first word is the largest code plus 1, or 0.
    words: [u64; MOST_HOPS],
}

impl Trail {
    /// Keeps the larger of two codes of a digest ([`crate::digest`]), each plus 1.
    #[inline]
    pub fn fold(&mut self, code: u16) {
        self.words[0] = self.words[0].max(code.into());
    }

    /// The largest code of a digest, if the packet carries one; only in runs with a digest.
    #[inline]
    pub const fn digest(&self) -> Option<u16> {
        match self.words[0] {
            0 => None,
            code => Some((code - 1) as u16),
        }
    }

    /// Adds the record of `link`, unless the trail already has `room` records.
    #[inline]
    pub fn push(&mut self, link: u32, record: Record, room: u8) {
        self.add(&TracedLink::new(link, record.rate, room), record.word);
    }

    /// [`Trail::push`] of the record of a frame, see [`Record::new`].
    #[inline(always)]
    pub fn trace(&mut self, hop: &TracedLink, at: Time, sent: u64, queue: u64) {
        self.add(hop, Record::word(at, sent, queue));
    }

    #[inline(always)]
    fn add(&mut self, hop: &TracedLink, word: u64) {
        let hops = self.hops();
        if hops < hop.room.into()
            && let Some(free) = self.words.get_mut(hops)
        {
            *free = word;
            self.head ^= hop.id;
            self.head |= u64::from(hop.rate) << (HOPS_BITS + PATH_BITS + RATE_BITS * hops as u32);
            self.head += 1;
        }
    }

    /// Number of records.
    #[inline]
    pub const fn hops(&self) -> usize {
        (self.head & ((1 << HOPS_BITS) - 1)) as usize
    }

    /// True if both trails come from the same links, as far as a 12-bit XOR of hashed link numbers can tell. HPCC, section
    /// 4.1, uses switch numbers; link numbers distinguish parallel links, too (our choice).
    #[inline]
    pub const fn same_path(&self, other: &Trail) -> bool {
        let path = (1 << (HOPS_BITS + PATH_BITS)) - 1;
        self.head & path == other.head & path
    }

    /// The records in the order of hops.
    #[inline]
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let rate = |hop: usize| self.head >> (HOPS_BITS + PATH_BITS + RATE_BITS * hop as u32);
        let mask = (1 << RATE_BITS) - 1;
        (0..self.hops()).map(move |hop| Record { rate: (rate(hop) & mask) as u8, word: self.words[hop] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_rounded_down_to_its_units() {
        let record = Record::new(5, Time(1_999), 1_000, 1_000);
        assert_eq!((record.rate(), record.queue()), (5, 960));
        let later = Record::new(5, Time(42_000), 1_280, 0);
        assert_eq!(later.since(&record), (Time::from_ns(41), 384));
    }

    #[test]
    fn counters_wrap_and_a_long_queue_does_not() {
        // After 16.8 ms and 134 MB both counters have their old values; a little later they have passed zero.
        let turn = (Time::from_ns(1 << 24), 128 << 20);
        let before = Record::new(0, Time::from_ns((1 << 24) - 10), (128 << 20) - 256, 0);
        let after = Record::new(0, Time::from_ns((1 << 24) + 20), (128 << 20) + 128, 99_000_000);
        assert_eq!(after.since(&before), (Time::from_ns(30), 384));
        assert_eq!(after.queue(), ((1 << 17) - 1) * 80);
        let again =
            Record::new(0, Time(turn.0.ps() + Time::from_ns((1 << 24) - 10).ps()), 2 * turn.1 - 256, 0);
        assert_eq!(again.since(&before), (Time::ZERO, 0));
    }

    #[test]
    fn a_trail_keeps_its_records_in_order_until_it_is_full() {
        let record = |hop: u8| Record::new(63 - hop, Time::from_ns(hop.into()), 128, 80 * u64::from(hop));
        let mut trail = Trail::default();
        for hop in 0..9 {
            trail.push(hop.into(), record(hop), 5);
        }
        assert_eq!(trail.hops(), 5);
        assert!(trail.records().eq((0..5).map(record)));
        for hop in 5..9 {
            trail.push(hop.into(), record(hop), 15);
        }
        assert!(trail.records().eq((0..7).map(record)), "at most as many as a packet holds");
    }

    #[test]
    fn different_links_give_different_paths() {
        let of = |links: &[u32]| {
            let mut trail = Trail::default();
            links.iter().for_each(|&link| trail.push(link, Record::new(0, Time(link.into()), 0, 0), 7));
            trail
        };
        let path = of(&[3, 20, 41]);
        assert!(path.same_path(&of(&[3, 20, 41])));
        let leaf_spine = (0..64).filter(|s| *s != 17).map(|spine| of(&[64 + spine, 1024 + 16 * spine]));
        let one = of(&[64 + 17, 1024 + 16 * 17]);
        assert_eq!(leaf_spine.filter(|other| one.same_path(other)).count(), 0);
        assert!(!path.same_path(&of(&[3, 20])) && !path.same_path(&Trail::default()));
    }

    #[test]
    fn an_area_of_five_hops_takes_42_bytes() {
        assert_eq!((area(5), area(10)), (42, 82));
    }
}
