//! A small world around the filter: a sender, N FIFO paths, the ToR, the last hop and an RNIC with
//! selective repeat. One tick is the time of one packet at line rate.

mod world;

use std::collections::{BTreeMap, BTreeSet};
use themis::Reason;
pub(crate) use world::tell;

/// What happens on the way, by index into what happens anyway. The lists are used in turn, over and over.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    /// Sequence number of the first packet (near 2^24 to see the wrap).
    pub(crate) first: u64,
    /// Packets of the message.
    pub(crate) packets: u64,
    /// Extra ticks in the fabric, per transmission. A path stays FIFO whatever they are.
    pub(crate) delays: Vec<u32>,
    /// Transmissions that the fabric loses.
    pub(crate) fabric_loss: BTreeSet<u64>,
    /// Departures that the last hop loses.
    pub(crate) last_hop_loss: BTreeSet<u64>,
    /// Ticks down the last hop, and up again.
    pub(crate) last_hop: u32,
    /// Whether a reply finds the RNIC's link busy and waits a tick, per reply.
    pub(crate) link_busy: Vec<bool>,
    /// The RNIC sends one ACK per so many packets (NACKs at once).
    pub(crate) ack_every: u64,
    /// Whether the ToR's port sends another flow's packet first, per tick.
    pub(crate) port_busy: Vec<bool>,
}

impl Weather {
    /// Entries that a sound rule needs on this last hop (replies are infinitely short here).
    pub(crate) fn sound_ring(&self) -> u16 {
        themis::memory::sound_ring_entries(u64::from(self.last_hop), 1, 0) as u16
    }

    /// The age limit of a sound rule: as long, and a reply may wait for the packets that share its ACK.
    pub(crate) fn age_limit(&self) -> u16 {
        self.sound_ring() + self.ack_every as u16 - 1
    }
}

/// Why a packet had to wait for the sender's timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rescue {
    /// No later packet came that could have told the ToR or the RNIC.
    Tail,
    /// A second copy of it was lost, too.
    Repeat,
    /// The filter had what it needed and stayed silent.
    Missed,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) blocked: u64,
    /// NACKs let through, by reason.
    pub(crate) forwarded: BTreeMap<Reason, u64>,
    /// NACKs that the ToR made.
    pub(crate) made: u64,
    /// NACKs, let through and made, for packets of which no copy was lost.
    pub(crate) spurious_forwarded: Vec<u64>,
    pub(crate) spurious_made: Vec<u64>,
    /// Blocked losses of which the proof passed without a NACK: (lost packet, proof).
    pub(crate) slept: Vec<(u64, u64)>,
    pub(crate) timeouts: BTreeMap<Rescue, u64>,
    pub(crate) lost: u64,
}

impl Story {
    pub(crate) fn spurious(&self) -> usize {
        self.spurious_forwarded.len() + self.spurious_made.len()
    }

    pub(crate) fn forwarded(&self) -> u64 {
        self.forwarded.values().sum()
    }
}
