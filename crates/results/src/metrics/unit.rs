//! Units of metrics.

use serde::{Serialize, Serializer};

/// A unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A count of things that the label names.
    #[default]
    Count,
    /// Packets.
    Packets,
    /// Flows.
    Flows,
    /// Bytes.
    Bytes,
    /// 10^6 bytes.
    Megabytes,
    /// Microseconds.
    Microseconds,
    /// Seconds.
    Seconds,
    /// 10^9 bits per second.
    GigabitsPerSecond,
    /// 10^9 bytes per second.
    GigabytesPerSecond,
    /// Packets per second.
    PacketsPerSecond,
    /// Tokens of training data per second.
    TokensPerSecond,
    /// A ratio of two numbers of one unit that says how many times as large one is.
    Times,
    /// A part of a whole, from 0 to 1.
    Fraction,
    /// A word.
    Word,
}

impl Unit {
    /// In files and lists; `-` for a number without a unit.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Count | Unit::Times | Unit::Fraction | Unit::Word => "-",
            Unit::Packets => "packets",
            Unit::Flows => "flows",
            Unit::Bytes => "B",
            Unit::Megabytes => "MB",
            Unit::Microseconds => "us",
            Unit::Seconds => "s",
            Unit::GigabitsPerSecond => "Gb/s",
            Unit::GigabytesPerSecond => "GB/s",
            Unit::PacketsPerSecond => "packets/s",
            Unit::TokensPerSecond => "tokens/s",
        }
    }

    /// True for counts of things.
    pub const fn is_count(self) -> bool {
        matches!(self, Unit::Count | Unit::Packets | Unit::Flows)
    }

    /// On pages; empty for counts, whose labels say what is counted.
    pub const fn shown(self) -> &'static str {
        match self {
            Unit::Count | Unit::Packets | Unit::Flows | Unit::Fraction | Unit::Word => "",
            Unit::Microseconds => "µs",
            Unit::Times => "x",
            _ => self.name(),
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
