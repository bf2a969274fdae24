//! Quantities as types: integers inside, units outside.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time or a span of it: picoseconds, 213 days at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// Bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// The inverse of a rate, for pacing: picoseconds per byte in steps of 2^-20. Zero means "as fast as the
/// port goes".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pace(u64);

/// A probability as a threshold for a 64-bit draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Time {
    /// The beginning.
    pub const ZERO: Time = Time(0);
    /// Later than anything: "not set".
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

    /// The span since `earlier`, zero if that is later.
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

    /// Bytes that pass in `span`, rounded down.
    pub const fn bytes_in(self, span: Time) -> Bytes {
        Bytes((self.0 as u128 * span.0 as u128 / 8_000_000_000_000) as u64)
    }

    /// Time that `bytes` take, rounded to the nearest picosecond.
    pub const fn time_for(self, bytes: u64) -> Time {
        let bits = bytes as u128 * 8_000_000_000_000;
        Time(((bits + self.0 as u128 / 2) / self.0 as u128) as u64)
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
    /// No pacing: as fast as the port goes.
    pub const UNPACED: Pace = Pace(0);

    /// The pace of a flow that sends `bps` bits per second; rounded down, so that a flow at line rate never
    /// waits for its pacing. At least one bit per second.
    #[inline]
    pub fn from_bps(bps: f64) -> Self {
        // 8e12 ps·bit/byte/s × 2^20; a float division and a conversion, both exact in every IEEE-754 machine.
        Pace((8e12 * 1_048_576.0 / bps.max(1.0)) as u64)
    }

    /// The rate that it stands for, bits per second; without pacing that of the finest pace.
    pub fn bps(self) -> f64 {
        8e12 * 1_048_576.0 / (self.0.max(1)) as f64
    }

    /// Time between the starts of a packet of `bytes` on the wire and of the next one.
    #[inline]
    pub const fn gap(self, bytes: u64) -> Time {
        Time(((self.0 as u128 * bytes as u128) >> 20) as u64)
    }
}

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);

    /// From a share between 0 and 1; values outside are clamped.
    pub fn new(p: f64) -> Self {
        // `as` saturates: 1.0 becomes u64::MAX, which a draw misses once in 2^64.
        Probability((p.clamp(0.0, 1.0) * 18_446_744_073_709_551_616.0) as u64)
    }

    /// The share it stands for.
    pub fn share(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }

    /// True if a uniform 64-bit `draw` falls to it.
    #[inline]
    pub const fn hits(self, draw: u64) -> bool {
        draw < self.0
    }

    /// True if it can never happen.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This probability times `part / whole`.
    #[inline]
    pub const fn scaled(self, part: u64, whole: u64) -> Self {
        Probability((self.0 as u128 * part as u128 / whole as u128) as u64)
    }
}

/// Writes `value` in the largest of `units` (largest first, down to 1) that it is a whole number of.
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

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "B")];
        let units = if self.0 == 0 { &units[3..] } else { &units[..] };
        write_whole(f, self.0, units)
    }
}
