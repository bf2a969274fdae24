//! The ports of a NIC that serve all its queue pairs: their state.

use super::ready::{Ready, Turn};
use crate::outcome::Failover;
use crate::setup::Setup;
use model::draw::{Key, Purpose};
use model::{HostId, PortChoice, PortSharing, Resilience, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// One end of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// The sending end, by its slot.
    Sender(u32),
    /// The receiving end, by its number among those of its host.
    Receiver(u32),
}

/// State of one end of a queue pair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// True if the ends exchange reports.
    pub(super) takes_part: bool,
    /// The peer's last report: its number above the ports that are down.
    pub(super) heard: u64,
    /// Number of the last own report that the peer has confirmed.
    pub(super) confirmed: u64,
}

/// What a NIC knows of its own ports and of those of its peers.
#[derive(Debug, Default)]
pub(super) struct PortStatus {
    /// Time from a change of an own port to its report; [`Time::NEVER`] while no queue pair takes part.
    pub(super) notice: Option<Time>,
    /// Own ports that are down, a bit for each.
    pub(super) down: u8,
    /// True from the first port on that is down at this end, and from the first report of a peer on.
    pub(super) any_down: bool,
    /// Number of the last report; 0 before the first.
    pub(super) report: u64,
    pub(super) outgoing: Vec<Told>,
    pub(super) incoming: Vec<Told>,
    /// Time of the next repetition; [`u64::MAX`] if all reports are confirmed.
    pub(super) repeat_at: u64,
    /// Number of repetitions of the last report.
    pub(super) repetitions: u32,
}

/// Bits of a report below its number.
pub(super) const PORTS: u32 = 8;

impl PortStatus {
    pub(super) fn told(&self, end: End) -> Told {
        let list = match end {
            End::Sender(slot) => self.outgoing.get(slot as usize),
            End::Receiver(index) => self.incoming.get(index as usize),
        };
        list.copied().unwrap_or_default()
    }

    pub(super) fn told_mut(&mut self, end: End) -> Option<&mut Told> {
        match end {
            End::Sender(slot) => self.outgoing.get_mut(slot as usize),
            End::Receiver(index) => self.incoming.get_mut(index as usize),
        }
    }

    /// Ports that a queue pair leaves alone, because they are down at this end or at the other one.
    #[inline]
    pub(super) fn closed(&self, end: End) -> u32 {
        if !self.any_down {
            return 0;
        }
        let told = self.told(end);
        if told.takes_part { u32::from(self.down) | told.heard as u32 & ((1 << PORTS) - 1) } else { 0 }
    }
}

/// The ports of a NIC, as far as they concern the order in which its queue pairs send.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) sharing: PortSharing,
    /// In a bond: the queue pairs of every port but the first, in the order in which they send. [`super::nic::Host::ready`] has those of
    /// the first port, and all queue pairs that spread.
    pub(super) others: Vec<Ready>,
    /// By queue pair of the sender: the ports that routes join with its destination, if it spreads.
    pub(super) open: Vec<u8>,
    pub(super) waiters: Waiters,
    /// Ports that are free now, a bit for each, and the time at which another one is free.
    pub(super) free: u32,
    pub(super) next_free: u64,
    /// The port of the packet that starts now.
    pub(super) chosen: u8,
    /// Draws of turns, and the number of packets of queue pairs that spread.
    pub(super) turns: (Key, u64),
    pub(super) status: PortStatus,
    /// Queue pairs that have left their own ports, by slot.
    pub(super) away: BTreeMap<u32, Away>,
    /// All moves of queue pairs, in order of time.
    pub(super) failovers: Vec<Failover>,
}

/// A queue pair that has left its own port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Away {
    /// Number of its move in [`Ports::failovers`].
    pub(super) failover: usize,
    /// Messages so far that asked whether the port works.
    pub(super) attempts: u8,
    /// True if the last one has arrived.
    pub(super) arrived: bool,
}

/// Queue pairs that wait for another port, as they have no path by the ports that were free.
///
/// They keep their turns. With new turns at the time of the next port, all would wait for one time and go on in the order of
/// their numbers, so that the last ones starve beside a port that is closed, and therefore always free.
#[derive(Debug)]
pub(super) struct Waiters {
    pub(super) turns: BinaryHeap<Reverse<Turn>>,
    /// Those that have no path by the ports of the current attempt.
    pub(super) failed: Vec<Turn>,
    /// Ports by which none of them has a path, a bit for each.
    pub(super) tried: u32,
    /// Time of the next attempt, ps; [`u64::MAX`] without any.
    pub(super) until: u64,
    /// True if they may send in the current attempt.
    pub(super) joins: bool,
}

impl Default for Waiters {
    fn default() -> Self {
        Waiters {
            turns: BinaryHeap::new(),
            failed: Vec::new(),
            tried: u32::MAX,
            until: u64::MAX,
            joins: false,
        }
    }
}

impl Waiters {
    /// Begins an attempt with these free ports out of `all`. Queue pairs join it if one of the ports is new to them, or if all of them
    /// have tried all ports.
    pub(super) fn begin(&mut self, now: u64, free: u32, all: u32) {
        self.joins = self.until <= now && (free & !self.tried != 0 || all & !self.tried == 0);
    }

    /// The next queue pair that joins the attempt.
    pub(super) fn next(&mut self) -> Option<Turn> {
        let next = if self.joins { self.turns.pop() } else { None };
        next.map(|Reverse(turn)| turn)
    }

    /// Ends the attempt; `next_free` is given if no packet has started. An attempt before its time changes nothing: it does not matter
    /// how often an engine asks.
    pub(super) fn end(&mut self, now: u64, next_free: Option<u64>) {
        self.turns.extend(self.failed.drain(..).map(Reverse));
        if self.turns.is_empty() {
            *self = Waiters { turns: std::mem::take(&mut self.turns), ..Waiters::default() };
        } else if let Some(next_free) = next_free.filter(|_| self.until <= now) {
            self.until = next_free;
        }
    }
}

impl Ports {
    /// The ports of the NIC of `home`, if it shares them.
    pub(super) fn new(setup: &Setup<'_>, home: HostId, full_time: u64) -> Option<Box<Self>> {
        let sharing = setup.plan.sharing.filter(|sharing| sharing.home(home) == home)?;
        Some(Box::new(Ports {
            sharing,
            others: (1..sharing.ports).map(|_| Ready::new(full_time)).collect(),
            open: Vec::new(),
            waiters: Waiters::default(),
            free: 0,
            next_free: 0,
            chosen: 0,
            // The first entities of this purpose are those of `rnic`.
            turns: (Key::new(setup.plan.seed, Purpose::Nic, 2 << 32 | u64::from(home.0)), 0),
            status: PortStatus::default(),
            away: BTreeMap::new(),
            failovers: Vec::new(),
        }))
    }

    /// How its queue pairs leave dead ports, if they do.
    #[inline]
    pub(super) fn resilience(&self) -> Option<Resilience> {
        match self.sharing.choice {
            PortChoice::Devices(resilience) => Some(resilience),
            PortChoice::Failover | PortChoice::Spread => None,
        }
    }

    /// Reports the moves of queue pairs to other ports and back.
    pub(super) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        if self.resilience().is_some() {
            let back = self.failovers.iter().filter(|failover| failover.back != Time::NEVER);
            sink("failovers", self.failovers.len() as u64);
            sink("recoveries", back.count() as u64);
        }
    }

    #[inline(always)]
    pub(super) fn spreads(&self) -> bool {
        self.sharing.choice == PortChoice::Spread
    }

    /// Number of queue pairs that wait for another port.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiters.turns.len() + self.waiters.failed.len()
    }

    /// The ports that one end may use out of those that routes join; all of these if it may use none.
    #[inline]
    pub(super) fn usable(&self, open: u32, end: End) -> u32 {
        let usable = open & !self.status.closed(end);
        if usable == 0 { open } else { usable }
    }
}
