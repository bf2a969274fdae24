//! The queues of a port whose classes are not plain. Its node computes every departure in order of time.

use super::port::Port;
use super::queue::Queue;
use model::plan::{Class, Classes, Service};
use model::{Annex, Parcel};

/// The queues of a port, one for each class of the plan's table.
#[derive(Clone, Debug)]
pub(super) struct Queues<A> {
    queues: [Queue<A>; Classes::MOST],
    /// Bytes in every queue.
    bytes: [u64; Classes::MOST],
    /// Credit of every weighted class, bytes.
    credit: [u64; Classes::MOST],
    /// The class whose turn it is.
    turn: usize,
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
            credit: [0; Classes::MOST],
            turn: 0,
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

    /// The first packet of a class that the port's pauses let start.
    fn first(&self, class: usize, classes: &[Class], port: &Port<A>) -> Option<First> {
        let packets = self.queues[class].packets();
        let ahead = match classes[class].charged && port.paused_channels() != 0 {
            true => {
                let first_priority = classes[class].group * self.channels;
                packets.iter().position(|pkt| port.may_start_behind(first_priority, pkt))?
            }
            false => 0,
        };
        Some(First { ahead, frame: packets.get(ahead)?.frame().into() })
    }

    /// True if a packet waits that may start.
    pub(super) fn has_next(&self, classes: &[Class], port: &Port<A>) -> bool {
        (0..classes.len()).any(|class| self.first(class, classes, port).is_some())
    }

    /// Takes the packet that starts next, with its class.
    pub(super) fn pop(&mut self, classes: &[Class], port: &Port<A>) -> Option<(usize, Parcel<A>)> {
        let strict = |class: &usize| self.in_order || classes[*class].service == Service::Strict;
        let strict = (0..classes.len()).filter(strict);
        let mut firsts = strict.filter_map(|class| Some((class, self.first(class, classes, port)?)));
        let (class, first) = match firsts.next() {
            Some(first) => first,
            None => self.next_weighted(classes, port)?,
        };
        let pkt = self.queues[class].pop_behind(first.ahead)?;
        self.bytes[class] -= first.frame;
        self.credit[class] = match self.queues[class].is_empty() {
            true => 0,
            false => self.credit[class].saturating_sub(first.frame),
        };
        Some((class, pkt))
    }

    /// The weighted class that sends next. It gives all credit of the turns that pass until then in one step.
    fn next_weighted(&mut self, classes: &[Class], port: &Port<A>) -> Option<(usize, First)> {
        let count = classes.len() as u64;
        // Distance to the first turn that brings credit: the class whose turn it is waits for a whole round.
        let distance = |class: usize| (class as u64 + count - self.turn as u64 - 1) % count + 1;
        let mut waiting = [None; Classes::MOST];
        let mut soonest: Option<(u64, usize, First)> = None;
        for (class, settings) in classes.iter().enumerate() {
            let Service::Weighted(weight) = settings.service else { continue };
            let Some(first) = self.first(class, classes, port) else { continue };
            let quantum = u64::from(weight) * Service::QUANTUM;
            let lacks = first.frame.saturating_sub(self.credit[class]).div_ceil(quantum);
            let turns = match (class == self.turn, lacks) {
                (true, 0) => 0,
                _ => distance(class) + lacks.saturating_sub(1) * count,
            };
            waiting[class] = Some(quantum);
            if soonest.is_none_or(|(least, ..)| turns < least) {
                soonest = Some((turns, class, first));
            }
        }
        let (turns, next, first) = soonest?;
        for (class, quantum) in waiting.into_iter().enumerate() {
            if let Some(quantum) = quantum
                && let Some(after) = turns.checked_sub(distance(class))
            {
                self.credit[class] += (after / count + 1) * quantum;
            }
        }
        self.turn = next;
        Some((next, first))
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
