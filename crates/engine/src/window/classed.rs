//! The queues of a port whose classes are not plain. Its node computes every departure in order of time.

use super::port::Port;
use super::queue::Queue;
use crate::average::Averages;
use crate::credits::{Ledger, PRIORITIES};
use crate::outcome::QueueCounts;
use crate::service::Turns;
use crate::setup::channel;
use model::plan::{Class, Classes, Service};
use model::{Annex, Parcel};

/// The queues of a port, one for each class of the plan's table.
#[derive(Clone, Debug)]
pub(super) struct Queues<A> {
    queues: [Queue<A>; Classes::MOST],
    /// Bytes in every queue.
    bytes: [u64; Classes::MOST],
    pub(super) averages: Averages,
    /// Counts by class.
    pub(super) counts: [QueueCounts; Classes::MOST],
    /// Credits by priority.
    pub(super) ledgers: [Ledger; PRIORITIES],
    turns: Turns,
    /// True at hosts, where all classes leave in the order of the table.
    in_order: bool,
    /// Number of virtual channels in the fabric: the distance between the pauses of two groups of classes.
    channels: u8,
}

/// The first packet of a class that may start.
#[derive(Clone, Copy)]
struct First {
    /// Number of packets ahead in the queue, whose channels are paused.
    ahead: usize,
    frame: u64,
}

impl<A: Annex> Queues<A> {
    pub(super) fn new(in_order: bool, channels: u8) -> Self {
        Queues {
            queues: Default::default(),
            bytes: [0; Classes::MOST],
            averages: Averages::default(),
            counts: Default::default(),
            ledgers: Default::default(),
            turns: Turns::default(),
            in_order,
            channels,
        }
    }

    /// Bytes in the queue of a class.
    pub(super) fn bytes(&self, class: usize) -> u64 {
        self.bytes[class]
    }

    /// Bytes of all queued packets.
    pub(super) fn queued_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Memory of the queues, bytes.
    pub(super) fn memory(&self) -> u64 {
        self.queues.iter().map(Queue::memory).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(Queue::is_empty)
    }

    /// All packets of a class, from first to last.
    pub(super) fn packets(&self, class: usize) -> &[Parcel<A>] {
        self.queues[class].packets()
    }

    /// All packets.
    pub(super) fn queued(&self) -> impl Iterator<Item = &Parcel<A>> {
        self.queues.iter().flat_map(Queue::packets)
    }

    pub(super) fn push(&mut self, class: usize, pkt: Parcel<A>) {
        self.bytes[class] += pkt.frame() as u64;
        self.queues[class].push(pkt);
    }

    /// True if a packet waits that may start.
    pub(super) fn has_next(&self, classes: &[Class], port: &Port<A>) -> bool {
        let first = |class: usize| first(&self.queues[class], &classes[class], self.channels, port);
        (0..classes.len()).any(|class| first(class).is_some())
    }

    /// Takes the packet that starts next, with its class.
    pub(super) fn pop(&mut self, classes: &[Class], port: &Port<A>) -> Option<(usize, Parcel<A>)> {
        let Queues { queues, turns, in_order, channels, .. } = self;
        let service = |class: &Class| if *in_order { Service::Strict } else { class.service };
        let first = |class: usize| first(&queues[class], &classes[class], *channels, port);
        let class = turns.next(classes.iter().map(service), |class| Some(first(class)?.frame))?;
        let First { ahead, frame } = first(class)?;
        let pkt = queues[class].pop_behind(ahead)?;
        turns.spend(class, frame, queues[class].is_empty());
        self.bytes[class] -= frame;
        Some((class, pkt))
    }

    /// Takes the first packet of a class that has this priority, at a port with so many virtual channels.
    pub(super) fn take_of(
        &mut self,
        (class, of): (usize, &Class),
        channels: u8,
        priority: u8,
    ) -> Option<Parcel<A>> {
        let first_priority = of.group * self.channels;
        let is_own =
            |pkt: &Parcel<A>| first_priority + channel(pkt.annex.route_state().leg(), channels) == priority;
        let ahead = self.queues[class].packets().iter().position(is_own)?;
        let pkt = self.queues[class].pop_behind(ahead)?;
        self.bytes[class] -= pkt.frame() as u64;
        Some(pkt)
    }

    /// Takes the newest data packet of a class out of its queue, if it is `suitable`.
    pub(super) fn take_newest(
        &mut self,
        class: usize,
        suitable: impl Fn(&Parcel<A>) -> bool,
    ) -> Option<Parcel<A>> {
        let pkt = self.queues[class].take_newest(|pkt| pkt.is_data(), suitable)?;
        self.bytes[class] -= pkt.frame() as u64;
        Some(pkt)
    }
}

/// The first packet of a class that the port's pauses let start.
fn first<A: Annex>(queue: &Queue<A>, class: &Class, channels: u8, port: &Port<A>) -> Option<First> {
    let packets = queue.packets();
    let ahead = match class.charged && port.paused_channels() != 0 {
        true => {
            let first_priority = class.group * channels;
            packets.iter().position(|pkt| port.may_start_behind(first_priority, pkt))?
        }
        false => 0,
    };
    Some(First { ahead, frame: packets.get(ahead)?.frame().into() })
}
