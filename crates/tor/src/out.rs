//! What the ToR wants done: frames that leave, and notes about its decisions.

use crate::pool::Frame;
use crate::units::{PortId, Time};
use core::fmt;

/// Something that the surroundings must do.
#[derive(Debug, PartialEq, Eq)]
pub enum Out {
    /// Send a frame, and put it back into the pool.
    Send {
        /// Instant at which the frame leaves. It is in the past by as much as [`crate::Tor::tick`] came late.
        at: Time,
        /// The port.
        port: PortId,
        /// The frame.
        frame: Frame,
    },
    /// Write a note into the decision log.
    Note(Note),
}

/// An entry of the decision log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Instant of the decision.
    pub at: Time,
    /// What was decided.
    pub event: Event,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.event)
    }
}

/// A decision of the ToR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A frame was dropped.
    Dropped {
        /// The port at which the frame came in.
        port: PortId,
        /// The reason.
        why: Drop,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Dropped { port, why } => write!(f, "dropped from={port} why={}", why.name()),
        }
    }
}

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Drop {
    /// The frame has less than an Ethernet header.
    Runt,
    /// The source address is a group's, or zero.
    Source,
    /// The pool had no buffer for a copy.
    NoBuffer,
}

impl Drop {
    /// The reason's name in counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Drop::Runt => "runt",
            Drop::Source => "source-address",
            Drop::NoBuffer => "no-buffer",
        }
    }
}
