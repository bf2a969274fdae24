//! The NICs of one process.

use crate::counters::Counters;
use crate::nic::{Nic, Outs, Starts};
use crate::pairing::Flow;
use crate::personality::Personality;
use model::{Rate, Time};
use std::collections::BTreeMap;
use std::fmt;
use wire::Psn;

/// What a [`Bump`] is built from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The NICs: the rate of each one's line. Without a rate, a NIC sends at once; a congestion control that has a rate takes
    /// the line for one of 100 Gb/s.
    pub nics: Vec<Option<Rate>>,
    /// The kind of all NICs.
    pub personality: Personality,
}

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

/// The NICs of one process.
pub struct Bump {
    nics: Vec<Nic>,
    starts: Starts,
    outs: Outs,
    now: Time,
}

impl Bump {
    /// NICs that have seen nothing yet.
    pub fn new(settings: &Settings) -> Self {
        let nics = settings.nics.iter().enumerate();
        let nics = nics.map(|(place, line)| Nic::new(place, *line, &settings.personality)).collect();
        Bump { nics, starts: BTreeMap::new(), outs: Outs::new(), now: Time::ZERO }
    }

    /// Changes the kind of all NICs for connections that begin from now on.
    pub fn set_personality(&mut self, personality: &Personality) {
        for nic in &mut self.nics {
            nic.set_personality(personality);
        }
    }

    /// Takes a frame, from destination address to the last byte before the FCS. Times never run backwards. A frame for a NIC
    /// that does not exist is dropped.
    pub fn frame(&mut self, now: Time, face: Face, frame: Vec<u8>) {
        self.tick(now);
        let Some(nic) = self.nics.get_mut(face.nic) else { return };
        match face.side {
            Side::Host => nic.take_from_host(now, frame, &mut self.starts, &mut self.outs),
            Side::Network => nic.take_from_network(now, frame, &self.starts, &mut self.outs),
        }
    }

    /// The next time at which [`Bump::tick`] has something to do.
    pub fn poll_at(&mut self) -> Option<Time> {
        let now = self.now;
        self.nics.iter_mut().filter_map(|nic| nic.poll_at(now)).min()
    }

    /// Does everything that is due by `now`.
    pub fn tick(&mut self, now: Time) {
        self.now = now;
        for nic in &mut self.nics {
            nic.tick(now, &mut self.outs);
        }
    }

    /// The next thing for the surroundings to do. Call it until it returns `None`, after every [`Bump::frame`] and
    /// [`Bump::tick`].
    pub fn poll(&mut self) -> Option<Out> {
        self.outs.pop_front()
    }

    /// Counters of a NIC.
    pub fn counters(&self, nic: usize) -> Option<&Counters> {
        self.nics.get(nic).map(|nic| &nic.counters)
    }
}
