//! A small simulation around the filter: a sender, N FIFO paths, the ToR, the last hop, and an RNIC with selective repeat.
//! One tick is the time of one packet at line rate.

mod world;

use std::collections::{BTreeMap, BTreeSet};
use themis::Reason;
pub(crate) use world::simulate;

/// Delays and losses of one simulation. The lists are cyclic: event number i uses element i modulo the length.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    /// Sequence number of the first packet (near 2^24 to see the wrap).
    pub(crate) first: u64,
    /// Packets of the message.
    pub(crate) packets: u64,
    /// Extra ticks in the fabric, per transmission. A path stays FIFO in any case.
    pub(crate) delays: Vec<u32>,
    /// Numbers of the transmissions that the fabric loses.
    pub(crate) fabric_loss: BTreeSet<u64>,
    /// Numbers of the departures that the last hop loses.
    pub(crate) last_hop_loss: BTreeSet<u64>,
    /// Delay of the last hop in each direction, ticks.
    pub(crate) last_hop: u32,
    /// By reply: whether the RNIC's link is busy, so that the reply waits one tick.
    pub(crate) link_busy: Vec<bool>,
    /// Packets per ACK of the RNIC, which sends NACKs at once.
    pub(crate) ack_every: u64,
    /// By tick: whether the ToR's port is busy with another flow's packet.
    pub(crate) port_busy: Vec<bool>,
}

impl Conditions {
    /// Entries that a sound rule needs on this last hop; replies take no link time here.
    pub(crate) fn sound_ring(&self) -> u16 {
        themis::memory::sound_ring_entries(u64::from(self.last_hop), 1, 0) as u16
    }

    /// Age limit of a sound rule: the length of its ring, plus the packets that an ACK may wait for.
    pub(crate) fn age_limit(&self) -> u16 {
        self.sound_ring() + self.ack_every as u16 - 1
    }
}

/// Why a packet had to wait for the sender's timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rescue {
    /// No later packet came that could have proved the loss.
    Tail,
    /// A retransmission of the packet was lost, too.
    Repeat,
    /// The filter had the proof and sent no NACK.
    Missed,
}

/// Counts of one simulation.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) blocked: u64,
    /// Forwarded NACKs, by reason.
    pub(crate) forwarded: BTreeMap<Reason, u64>,
    /// NACKs that the ToR sent itself.
    pub(crate) made: u64,
    /// Packets that a forwarded NACK named although no copy of them was lost.
    pub(crate) spurious_forwarded: Vec<u64>,
    /// The same for NACKs that the ToR sent itself.
    pub(crate) spurious_made: Vec<u64>,
    /// Losses whose NACK was blocked and whose proof passed without a NACK: (lost packet, proof).
    pub(crate) unsent: Vec<(u64, u64)>,
    pub(crate) timeouts: BTreeMap<Rescue, u64>,
    pub(crate) lost: u64,
}

impl Outcome {
    pub(crate) fn spurious(&self) -> usize {
        self.spurious_forwarded.len() + self.spurious_made.len()
    }

    pub(crate) fn forwarded(&self) -> u64 {
        self.forwarded.values().sum()
    }
}
