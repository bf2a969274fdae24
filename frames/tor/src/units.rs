//! Times, rates and names of ports.

use core::fmt;
use core::ops::{Add, AddAssign};

/// An instant: nanoseconds since the start of the run. The surroundings choose what the start is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);

    /// The instant so many nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Time since an earlier instant; 0 if that instant is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;

    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

/// Seconds with nine digits, as captures show them.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// No time.
    pub const ZERO: Span = Span(0);

    /// So many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Span(nanos)
    }

    /// So many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Span(micros.saturating_mul(1_000))
    }

    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Span(millis.saturating_mul(1_000_000))
    }

    /// So many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Span(secs.saturating_mul(1_000_000_000))
    }

    /// The number of nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }
}

impl Add for Span {
    type Output = Span;

    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

/// A rate in bit/s, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// So many bits per second; `None` for 0.
    pub const fn from_bits(per_second: u64) -> Option<Self> {
        match per_second {
            0 => None,
            bits => Some(Rate(bits)),
        }
    }

    /// Bits per second.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Transmission time of so many bytes, rounded up to a nanosecond.
    pub const fn time_of(self, bytes: u64) -> Span {
        self.time_of_bits(bytes.saturating_mul(8))
    }

    /// Transmission time of so many bits, rounded up to a nanosecond.
    pub const fn time_of_bits(self, bits: u64) -> Span {
        let nanos = (bits as u128 * 1_000_000_000).div_ceil(self.0 as u128);
        Span(if nanos >> 64 == 0 { nanos as u64 } else { u64::MAX })
    }
}

/// A port of the ToR by its place in the configuration, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

impl PortId {
    /// The port's place as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmission_times_round_up() {
        let rate = Rate::from_bits(40_000_000).unwrap();
        assert_eq!(rate.time_of(1000), Span::from_micros(200));
        assert_eq!(Rate::from_bits(3).unwrap().time_of_bits(1).nanos(), 333_333_334);
        assert_eq!(Rate::from_bits(1).unwrap().time_of(u64::MAX).nanos(), u64::MAX);
        assert_eq!(Rate::from_bits(0), None);
    }

    #[test]
    fn a_time_is_written_in_seconds() {
        assert_eq!((Time::ZERO + Span::from_millis(1_500)).to_string(), "1.500000000");
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), Span::ZERO);
    }
}
