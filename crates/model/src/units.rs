//! Quantities as types: integers with a fixed unit.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time, or a span of it, in picoseconds; at most 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// Bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Messages per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageRate(pub u64);

/// The inverse of a rate, for pacing: picoseconds per byte in steps of 2^-20. Zero means no pacing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pace(u64);

/// A probability as a threshold for a 64-bit draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Time {
    /// Start of the simulation, or an empty span.
    pub const ZERO: Time = Time(0);
    /// Later than any other time; stands for "not set".
    pub const NEVER: Time = Time(u64::MAX);

    /// From picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Time(ps)
    }

    /// From nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Time(ns * 1_000)
    }

    /// From microseconds.
    pub const fn from_us(us: u64) -> Self {
        Time(us * 1_000_000)
    }

    /// From milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Time(ms * 1_000_000_000)
    }

    /// Picoseconds.
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Microseconds, for printing.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds, for printing.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// The span since `earlier`; zero if `earlier` is later than this time.
    #[inline]
    pub const fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl Rate {
    /// From gigabits per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        Rate(gbps * 1_000_000_000)
    }

    /// Bits per second.
    #[inline]
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Gigabits per second, for printing.
    pub fn as_gbps(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Bytes transmitted in `span`, rounded down.
    pub const fn bytes_in(self, span: Time) -> Bytes {
        Bytes((self.0 as u128 * span.0 as u128 / 8_000_000_000_000) as u64)
    }

    /// Transmission time of `bytes`, rounded to the nearest picosecond.
    pub const fn time_for(self, bytes: u64) -> Time {
        let bits = bytes as u128 * 8_000_000_000_000;
        Time(((bits + self.0 as u128 / 2) / self.0 as u128) as u64)
    }
}

impl MessageRate {
    /// Time from one message to the next, rounded to the nearest picosecond. The rate is not zero.
    pub const fn gap(self) -> Time {
        Time((1_000_000_000_000 + self.0 / 2) / self.0)
    }
}

impl Bytes {
    /// The number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Pace {
    /// No pacing: the port's rate is the only limit.
    pub const UNPACED: Pace = Pace(0);

    /// The pace of a flow that sends `bps` bits per second, at least 1. It is rounded down, so that pacing never delays a
    /// flow at line rate.
    #[inline]
    pub fn from_bps(bps: f64) -> Self {
        // 8e12 ps·bit/byte/s × 2^20. A float division and a conversion give equal results on every IEEE-754 machine.
        Pace((8e12 * 1_048_576.0 / bps.max(1.0)) as u64)
    }

    /// The rate in bits per second; without pacing the rate of the smallest pace.
    pub fn bps(self) -> f64 {
        8e12 * 1_048_576.0 / (self.0.max(1)) as f64
    }

    /// True if this pace is more than `factor` times as slow as `other`.
    #[inline]
    pub const fn exceeds(self, other: Pace, factor: u64) -> bool {
        self.0 / factor > other.0
    }

    /// Time from the start of a packet of `bytes` on the wire to the start of the next packet.
    #[inline]
    pub const fn gap(self, bytes: u64) -> Time {
        Time(((self.0 as u128 * bytes as u128) >> 20) as u64)
    }
}

impl Probability {
    /// The probability of an impossible event.
    pub const ZERO: Probability = Probability(0);

    /// The probability `p`, clamped to 0 to 1.
    pub fn new(p: f64) -> Self {
        // `as` saturates: 1.0 becomes u64::MAX, which a draw misses once in 2^64.
        Probability((p.clamp(0.0, 1.0) * 18_446_744_073_709_551_616.0) as u64)
    }

    /// This probability as a number from 0 to 1.
    pub fn share(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }

    /// True if the event happens for a uniform 64-bit `draw`.
    #[inline]
    pub const fn hits(self, draw: u64) -> bool {
        draw < self.0
    }

    /// True if the event can never happen.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// True if an event of this probability times `part / whole` happens for a uniform 64-bit `draw`. `part` is at most
    /// `whole`, which is at least 1.
    #[inline]
    pub const fn hits_scaled(self, draw: u64, part: u64, whole: u64) -> bool {
        // draw < probability * part / whole, rounded down, without a division.
        (draw as u128 + 1) * whole as u128 <= self.0 as u128 * part as u128
    }
}

/// Writes `value` in the largest of `units` that divides it; `units` come in descending order, and the last is 1.
fn write_whole(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let whole = |(size, _): &&(u64, &str)| value.is_multiple_of(*size);
    match units.iter().find(whole) {
        Some((size, unit)) => write!(f, "{}{unit}", value / size),
        None => write!(f, "{value}"),
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units =
            [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns"), (1, "ps")];
        write_whole(f, self.0, &units)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whole(f, self.0, &[(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps"), (1, "bps")])
    }
}

impl fmt::Display for MessageRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whole(f, self.0, &[(1_000_000_000, "G/s"), (1_000_000, "M/s"), (1_000, "k/s"), (1, "/s")])
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "B")];
        let units = if self.0 == 0 { &units[3..] } else { &units[..] };
        write_whole(f, self.0, units)
    }
}
