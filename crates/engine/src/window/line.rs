//! Lines: the arrivals of one visit that leave by the same port in the same class, in order of time.
//!
//! A packet in a line carries a *key* in place of its first word, so that comparing two words compares two events at
//! the port. A key counts in ticks. Picosecond `t` of the window has two ticks: `2 t + 2` for departures of packets
//! that were queued before, and `2 t + 3` for arrivals. The ticks 0 and 1 belong to packets that were queued when the
//! window opened. Below the tick, arrivals have their rank at that instant, departures have [`AT_DEPARTURE`], and the
//! lowest bits are those of the packet's first word.

use super::tie::Tie;
use model::{Packet, Parcel, PortIndex};

/// Lowest bit of the time in a key whose last tick bit is 0.
pub(super) const TICK_SHIFT: u32 = Packet::TIME_SHIFT + 1;
/// All bits of the tick.
const TICKS: u64 = !0 << Packet::TIME_SHIFT;
/// All bits of a tick but the lowest.
pub(super) const WHOLE_TICKS: u64 = !0 << TICK_SHIFT;
/// The bits of a first word below the ingress port.
pub(super) const LOW: u64 = Packet::LOW_MASK;
/// Rank of the departures of one instant. A packet that another port's departure makes at that instant has twice this rank:
/// it joins after the port's own departure.
pub(super) const AT_DEPARTURE: u64 = 1 << Packet::PORT_SHIFT;
/// A key after all events.
pub(super) const NEVER: u64 = u64::MAX;
/// Keys are exact for times and delays below this, ps.
pub(super) const LONGEST: u64 = 1 << (u64::BITS - TICK_SHIFT - 2);

/// The key of departures `after` ps from the window's start. Pause frames of that instant come before it, without
/// [`AT_DEPARTURE`].
#[inline(always)]
pub(super) const fn departure(after: u64) -> u64 {
    (after + 1) << TICK_SHIFT | AT_DEPARTURE
}

/// The difference between the key of the departure that follows a frame and the whole ticks of the frame's start. It takes
/// `time` ps on the wire. The frame size in the lowest bits does not change the order of keys; a sum of costs gives the sum
/// of sizes as well.
pub(crate) const fn cost(time: u64, frame: u32) -> u64 {
    time << TICK_SHIFT | AT_DEPARTURE | frame as u64
}

/// The sum of times and the sum of frame sizes of `count` frames in a sum of costs.
pub(super) const fn spent(costs: u64, count: u64) -> (u64, u64) {
    let sum = costs.wrapping_sub(count.wrapping_mul(AT_DEPARTURE));
    (sum >> TICK_SHIFT, sum & !WHOLE_TICKS)
}

/// The key of everything at `after` ps from the window's start: no event of that instant comes before it.
#[inline(always)]
pub(super) const fn instant(after: u64) -> u64 {
    (after + 1) << TICK_SHIFT
}

/// The key after all arrivals at `after` ps from the window's start, before all events of the next instant.
#[inline(always)]
pub(super) const fn after_arrivals(after: u64) -> u64 {
    ((2 * after + 4) << Packet::TIME_SHIFT) - 1
}

/// Time of an event in ps from the window's start.
#[inline(always)]
pub(super) const fn time(key: u64) -> u64 {
    (key >> TICK_SHIFT).wrapping_sub(1)
}

/// True for the key of an arrival, false for that of a departure from a queue.
#[inline(always)]
pub(super) const fn is_arrival(key: u64) -> bool {
    key >> Packet::TIME_SHIFT & 1 == 1
}

/// An arrival with its key.
#[inline(always)]
pub(super) fn keyed(pkt: Packet, tie: Tie) -> Packet {
    let ranked = pkt.order(tie.port_mask(pkt.offset()));
    // Twice the time, plus three ticks.
    let key = (ranked & TICKS).wrapping_add(ranked).wrapping_add(3 << Packet::TIME_SHIFT);
    pkt.with_word(key)
}

/// A queued packet with its key: it keeps its ingress.
#[inline(always)]
pub(super) fn queued(pkt: Packet) -> Packet {
    pkt.with_word(pkt.word() & !TICKS)
}

/// The first word of a packet that stays in its queue. It regains its ingress.
#[inline(always)]
pub(super) fn unkeyed(pkt: Packet, tie: Tie) -> Packet {
    let key = pkt.word();
    if key & TICKS == 0 {
        return pkt;
    }
    let after = time(key) as u32;
    let pkt = pkt.with_word(key & !TICKS);
    let mask = tie.port_mask(after);
    pkt.arriving(0, PortIndex(pkt.ingress().0 ^ (mask & MASK)))
}

/// Bits of a port number.
const MASK: u16 = PortIndex::VIRTUAL.0;

/// The first key of a line from index `i` on.
#[inline(always)]
pub(super) fn key<A>(line: &[Parcel<A>], i: usize) -> u64 {
    match line.get(i) {
        None => NEVER,
        Some(pkt) => pkt.label.word(),
    }
}

/// The place of an event at port `p` in the order of all ports. Departures of one instant go by port, and no two arrivals
/// have the same rank.
#[inline(always)]
pub(super) fn place(key: u64, p: usize) -> u64 {
    key & !LOW | p as u64
}

/// Number of bins of time. 64 counts of a byte are eight words, so their sums take eight multiplications.
const BINS: usize = 64;
/// Up to this many packets are sorted by insertion alone. Our choice, measured.
const FEW: usize = 9;
/// Most packets whose counts fit a byte.
const MANY: usize = 255;

/// Sorts the packets of a line by key. `shift` leaves the bin of a key.
#[inline(always)]
pub(super) fn sort<A: Copy + Default>(packets: &mut [Parcel<A>], room: &mut Vec<Parcel<A>>, shift: u32) {
    if packets.len() > 1 {
        sort_some(packets, room, shift);
    }
}

/// The shift that divides a window of `length` ps into at most [`BINS`] bins.
pub(super) fn bin_shift(length: u64) -> u32 {
    TICK_SHIFT + (u64::BITS - length.leading_zeros()).saturating_sub(BINS.trailing_zeros())
}

#[inline(never)]
fn sort_some<A: Copy + Default>(packets: &mut [Parcel<A>], room: &mut Vec<Parcel<A>>, shift: u32) {
    let count = packets.len();
    if count > MANY {
        return packets.sort_unstable_by_key(|pkt| pkt.word());
    }
    let mut last = 0;
    if count > FEW {
        into_bins(packets, room, shift);
        // The packets come back one by one, each to its place.
        for i in 0..count {
            let pkt = room[i];
            if pkt.word() >= last {
                last = pkt.word();
                packets[i] = pkt;
            } else {
                insert(packets, i, pkt);
            }
        }
        return;
    }
    for i in 0..count {
        let pkt = packets[i];
        if pkt.word() >= last {
            last = pkt.word();
        } else {
            insert(packets, i, pkt);
        }
    }
}

/// Inserts a packet into the first `count` ones, which are in order and have a later one.
#[inline(always)]
fn insert<A: Copy>(packets: &mut [Parcel<A>], count: usize, pkt: Parcel<A>) {
    let mut at = count;
    while at > 0 && packets[at - 1].word() > pkt.word() {
        packets[at] = packets[at - 1];
        at -= 1;
    }
    packets[at] = pkt;
}

/// Puts packets into `room` in the order of their bins.
#[inline(always)]
fn into_bins<A: Copy + Default>(packets: &[Parcel<A>], room: &mut Vec<Parcel<A>>, shift: u32) {
    if room.len() < MANY + 1 {
        room.resize(MANY + 1, Parcel::default());
    }
    let room = &mut room[..=MANY];
    let mut ends = [0u8; BINS];
    let bin = |pkt: &Parcel<A>| (pkt.word() >> shift) as usize % BINS;
    for pkt in packets {
        ends[bin(pkt)] += 1;
    }
    // Eight counts become eight sums in one multiplication.
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut before = 0u64;
    for eight in ends.as_chunks_mut::<8>().0 {
        let sums = u64::from_le_bytes(*eight).wrapping_mul(ONES);
        *eight = (sums << 8).wrapping_add(before.wrapping_mul(ONES)).to_le_bytes();
        before += sums >> 56;
    }
    for pkt in packets {
        let slot = &mut ends[bin(pkt)];
        room[*slot as usize] = *pkt;
        *slot += 1;
    }
}
