//! A port of the reference engine: its queues by class, and which packet leaves next.

use crate::average::Averages;
use crate::credits::{Ledger, PRIORITIES};
use crate::gentle::Gentle;
use crate::outcome::QueueCounts;
use crate::setup::{Setup, channel};
use model::plan::{Class, Classes, Service};
use model::{Annex, Parcel};
use std::collections::VecDeque;

/// The position of a packet at a port: its class, and its place in that queue.
pub(super) struct Position {
    pub(super) class: usize,
    pub(super) place: usize,
}

#[derive(Default)]
pub(super) struct Port<A: Annex> {
    /// Queues by class, and their bytes.
    pub(super) queues: [VecDeque<Parcel<A>>; Classes::MOST],
    pub(super) bytes: [u64; Classes::MOST],
    /// Averages of the queues.
    pub(super) averages: Averages,
    /// Credit of every weighted class, bytes, and the class whose turn it is.
    pub(super) credit: [u64; Classes::MOST],
    pub(super) turn: usize,
    pub(super) busy: u64,
    /// Number of virtual channels of its link and of the fabric.
    pub(super) channels: u8,
    pub(super) most_channels: u8,
    /// A bit for each priority, which is a virtual channel of a group of classes: paused by frames, paused by a storm, without
    /// credits, and deaf to pauses.
    pub(super) by_frames: u8,
    pub(super) by_storm: u8,
    pub(super) by_credits: u8,
    pub(super) deaf: u8,
    /// Counts of its queues by class.
    pub(super) counts: [QueueCounts; Classes::MOST],
    /// Credits by priority.
    pub(super) ledgers: [Ledger; PRIORITIES],
    /// Start of its rate's row of transmission times.
    pub(super) row: u32,
    /// Time of the valid departure event in the heap; 0 if there is none.
    pub(super) planned: u64,
    /// State of the digest of telemetry.
    pub(super) meters: A::Meters,
}

impl<A: Annex> Port<A> {
    /// A bit for each priority that the far end pauses.
    pub(super) fn asked(&self) -> u8 {
        self.by_frames | self.by_storm | self.by_credits
    }

    /// A bit for each priority that may not start.
    pub(super) fn paused(&self) -> u8 {
        self.asked() & !self.deaf
    }

    /// Position of the first packet of a class that may start. Charged classes are paused: they leave in order, and
    /// packets of paused channels are skipped.
    fn first(&self, classes: &[Class], class: usize) -> Option<Position> {
        let first_priority = classes[class].group * self.most_channels;
        let priority =
            |pkt: &Parcel<A>| first_priority + channel(pkt.annex.route_state().leg(), self.channels);
        let may = |pkt: &Parcel<A>| !classes[class].charged || self.paused() >> priority(pkt) & 1 == 0;
        self.queues[class].iter().position(may).map(|place| Position { class, place })
    }

    /// True if a packet waits that may start.
    pub(super) fn has_next(&self, classes: &[Class]) -> bool {
        (0..classes.len()).any(|class| self.first(classes, class).is_some())
    }

    /// Position of the packet that starts next. At hosts, all classes leave in the order of the table.
    fn next(&mut self, classes: &[Class], host: bool) -> Option<Position> {
        let weight = |class: usize| match classes[class].service {
            Service::Weighted(weight) if !host => Some(u64::from(weight)),
            _ => None,
        };
        for class in (0..classes.len()).filter(|class| weight(*class).is_none()) {
            if let Some(first) = self.first(classes, class) {
                return Some(first);
            }
        }
        if !self.has_next(classes) {
            return None;
        }
        loop {
            if weight(self.turn).is_some()
                && let Some(first) = self.first(classes, self.turn)
                && self.credit[self.turn] >= self.queues[first.class][first.place].frame().into()
            {
                return Some(first);
            }
            self.turn = (self.turn + 1) % classes.len();
            if let Some(weight) = weight(self.turn)
                && self.first(classes, self.turn).is_some()
            {
                self.credit[self.turn] += weight * Service::QUANTUM;
            }
        }
    }

    /// Bytes in all queues of data.
    pub(super) fn waiting_data(&self, setup: &Setup<'_>) -> u64 {
        (0..setup.plan.classes.all().len())
            .filter(|class| setup.has_data(*class))
            .map(|class| self.bytes[class])
            .sum()
    }

    /// Adds a packet to the end of its class.
    pub(super) fn push(&mut self, class: usize, pkt: Parcel<A>) {
        self.bytes[class] += pkt.frame() as u64;
        self.queues[class].make_room();
        self.queues[class].push_back(pkt);
    }

    /// Takes a packet out of its queue.
    pub(super) fn remove(&mut self, Position { class, place }: Position) -> Option<Parcel<A>> {
        let pkt = self.queues[class].remove(place)?;
        self.bytes[class] -= pkt.frame() as u64;
        Some(pkt)
    }

    /// Takes the packet that starts next.
    pub(super) fn pop(&mut self, classes: &[Class], host: bool) -> Option<Parcel<A>> {
        let next = self.next(classes, host)?;
        let class = next.class;
        let pkt = self.remove(next)?;
        self.credit[class] = match self.queues[class].is_empty() {
            true => 0,
            false => self.credit[class].saturating_sub(pkt.frame().into()),
        };
        Some(pkt)
    }
}
