//! What NICs ask of their surroundings: frames to send, and notes for the decision log.

use crate::pairing::Flow;
use model::Time;
use std::fmt;
use wire::Psn;

/// A side of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The host.
    Host,
    /// The network.
    Network,
}

/// Where a frame enters or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Face {
    /// The NIC by its place in the settings, from 0.
    pub nic: usize,
    /// Its side.
    pub side: Side,
}

/// Something that the surroundings must do.
#[derive(Debug, PartialEq, Eq)]
pub enum Out {
    /// Send a frame.
    Send {
        /// Where it leaves.
        face: Face,
        /// The frame from destination address to the last byte before the FCS.
        frame: Vec<u8>,
    },
    /// Write a note into the decision log.
    Note(Note),
}

/// An entry of the decision log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Time of the decision.
    pub at: Time,
    /// The NIC by its place in the settings, from 0.
    pub nic: usize,
    /// The flow.
    pub flow: Flow,
    /// What happened.
    pub what: What,
}

/// A decision of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The first request of a flow, with its PSN, comes from the host.
    Opened(Psn),
    /// A NACK for this PSN goes to the network.
    Nack(Psn),
    /// A NACK for this PSN has come from the network; true if it brings a packet back.
    Heard(Psn, bool),
    /// The packet with this PSN goes to the network again.
    Retransmit(Psn),
    /// The host sends again from this PSN on, by its timer.
    HostTimeout(Psn),
    /// The host itself asks for this PSN, and the NIC continues there.
    Resumed(Psn),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.at.ps() / 1000;
        write!(f, "{}.{:09} nic={}", nanos / 1_000_000_000, nanos % 1_000_000_000, self.nic)?;
        let Flow { requester, responder, qp } = self.flow;
        write!(f, " flow={requester}>{responder}/{} ", qp.value())?;
        match self.what {
            What::Opened(psn) => write!(f, "opened psn={}", psn.value()),
            What::Nack(psn) => write!(f, "nack-sent psn={}", psn.value()),
            What::Heard(psn, heeded) => write!(f, "nack-heard psn={} heeded={heeded}", psn.value()),
            What::Retransmit(psn) => write!(f, "retransmitted psn={}", psn.value()),
            What::HostTimeout(psn) => write!(f, "host-timeout psn={}", psn.value()),
            What::Resumed(psn) => write!(f, "resumed psn={}", psn.value()),
        }
    }
}
