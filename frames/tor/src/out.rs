//! What the ToR wants done: frames that leave, and notes about its decisions.

use crate::events::Action;
use crate::guard::Judged;
use crate::paths::Loss;
use crate::pool::Frame;
use crate::qp::Unknown;
use crate::units::{PortId, Time};
use core::fmt;
use themis::{Psn, Verdict};
use wire::bth::Qpn;

/// Something that the surroundings must do.
#[derive(Debug, PartialEq, Eq)]
pub enum Out {
    /// Send a frame, and put it back into the pool.
    Send {
        /// Instant at which the frame leaves. It is in the past by as much as [`crate::Tor::tick`] came late.
        at: Time,
        /// Instant at which its transmission started, before its time on the wire and the last hop.
        started: Time,
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

/// A RoCEv2 packet's name in notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Queue pair at its receiver.
    pub qp: Qpn,
    /// Opcode.
    pub opcode: u8,
    /// PSN.
    pub psn: Psn,
}

/// A decision of the ToR. Data packets that go their way cause none.
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
    /// A path lost a frame.
    Lost {
        /// The spine.
        path: u16,
        /// The packet, if it was one of RoCEv2.
        packet: Option<Label>,
        /// The reason.
        loss: Loss,
    },
    /// A NACK was judged.
    Judged(Judged),
    /// A NACK passed unjudged.
    Passed {
        /// Queue pair at the requester, to which the NACK goes.
        requester: Qpn,
        /// PSN that it names.
        psn: Psn,
        /// The reason.
        why: Unknown,
    },
    /// The ToR sends a NACK that it had blocked.
    Compensated {
        /// Queue pair at the responder.
        responder: Qpn,
        /// PSN that it names.
        psn: Psn,
    },
    /// The two queue pairs of a connection are known.
    Learnt {
        /// Queue pair at the requester.
        requester: Qpn,
        /// Queue pair at the responder.
        responder: Qpn,
    },
    /// A connection was another one: it acknowledged a packet that was never sent.
    Unlearnt {
        /// Queue pair at the requester.
        requester: Qpn,
        /// Queue pair at the responder.
        responder: Qpn,
    },
    /// A queue pair was set up again.
    Again {
        /// Queue pair at the responder.
        responder: Qpn,
    },
    /// A receiver throws away packets that arrive out of order, so Themis does not help its connection.
    DropsOutOfOrder {
        /// Queue pair at the responder.
        responder: Qpn,
    },
    /// Packets overtake each other on the path of one slot, so this connection's NACKs pass from now on.
    NoFifo {
        /// Queue pair at the responder.
        responder: Qpn,
    },
    /// An injected event: this run is not clean.
    Injected {
        /// What happened to the packet.
        action: Action,
        /// The packet.
        packet: Option<Label>,
    },
    /// A spine failed or came back, and slots moved.
    SlotsMoved {
        /// The spine.
        path: u16,
        /// True if it came back.
        up: bool,
        /// Number of slots that moved.
        moved: u16,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Dropped { port, why } => write!(f, "dropped port={} why={}", port.0, why.name()),
            Event::Lost { path, packet, loss } => {
                let why = match loss {
                    Loss::Random => "random",
                    Loss::Down => "down",
                };
                write!(f, "lost path={path} why={why}")?;
                labelled(f, packet)
            }
            Event::Injected { action, packet } => {
                write!(f, "injected {}", action.name())?;
                labelled(f, packet)
            }
            Event::Judged(Judged { responder, psn, verdict, .. }) => {
                let (verdict, reason) = match verdict {
                    Verdict::Forward(reason) => ("forwarded", reason),
                    Verdict::Block(reason) => ("blocked", reason),
                };
                write!(f, "nack {verdict} qp={responder} psn={psn} why={}", reason.name())
            }
            Event::Passed { requester, psn, why } => {
                write!(f, "nack passed requester={requester} psn={psn} why={}", why.name())
            }
            Event::Compensated { responder, psn } => write!(f, "nack sent qp={responder} psn={psn}"),
            Event::Learnt { requester, responder } => {
                write!(f, "learnt qp={responder} requester={requester}")
            }
            Event::Unlearnt { requester, responder } => {
                write!(f, "unlearnt qp={responder} requester={requester}")
            }
            Event::Again { responder } => write!(f, "again qp={responder}"),
            Event::DropsOutOfOrder { responder } => {
                write!(f, "warning qp={responder}: receiver drops out-of-order packets: Themis does not help")
            }
            Event::NoFifo { responder } => {
                write!(f, "warning qp={responder}: packets of one slot overtake each other: its NACKs pass")
            }
            Event::SlotsMoved { path, up, moved } => {
                write!(f, "path {path} {} slots-moved={moved}", if *up { "up" } else { "down" })
            }
        }
    }
}

fn labelled(f: &mut fmt::Formatter<'_>, packet: &Option<Label>) -> fmt::Result {
    match packet {
        Some(Label { qp, opcode, psn }) => write!(f, " qp={qp} opcode={opcode:#04x} psn={psn}"),
        None => Ok(()),
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
    /// The destination is behind the port from which the frame came.
    SamePort,
    /// The queue or the buffer was full.
    Full,
    /// The class was paused for too long.
    Watchdog,
    /// A test asked for it.
    Injected,
}

impl Drop {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Drop; 7] = [
        Drop::Runt,
        Drop::Source,
        Drop::NoBuffer,
        Drop::SamePort,
        Drop::Full,
        Drop::Watchdog,
        Drop::Injected,
    ];

    /// The reason's name in counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Drop::Runt => "runt",
            Drop::Source => "source-address",
            Drop::NoBuffer => "no-buffer",
            Drop::SamePort => "same-port",
            Drop::Full => "full",
            Drop::Watchdog => "watchdog",
            Drop::Injected => "injected",
        }
    }
}
