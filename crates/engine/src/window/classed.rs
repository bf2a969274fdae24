//! The queues of a port whose classes are not plain. Its node computes every departure in order of time.

use super::port::Port;
use super::queue::Queue;
use crate::average::Averages;
use crate::credits::{Ledger, PRIORITIES};
use crate::outcome::QueueCounts;
use crate::service::{Turns, Waiting};
use crate::setup::channel;
use model::plan::{Class, Classes, Service};
use model::{Annex, Kind, Packet, Parcel};

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
    /// A bit for each class with packets, for each strict class (at hosts all are), and for each class with data.
    filled: u8,
    strict: u8,
    with_data: u8,
    /// All weighted classes.
    weighted: Waiting,
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
    pub(super) fn new(classes: &[Class], in_order: bool, channels: u8) -> Self {
        let mask = |has: &dyn Fn(&Class) -> bool| {
            (0..).zip(classes).fold(0, |mask, (class, of)| mask | u8::from(has(of)) << class)
        };
        Queues {
            queues: Default::default(),
            bytes: [0; Classes::MOST],
            averages: Averages::default(),
            counts: Default::default(),
            ledgers: Default::default(),
            turns: Turns::default(),
            filled: 0,
            strict: mask(&|class| in_order || class.service == Service::Strict),
            weighted: Waiting::all(classes.iter().map(|class| class.service)),
            with_data: mask(&|class| class.kinds.has(Kind::Data)),
            in_order,
            channels,
        }
    }

    /// Bytes in the queue of a class.
    #[inline(always)]
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

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// All packets of a class, from first to last.
    pub(super) fn packets(&self, class: usize) -> &[Parcel<A>] {
        self.queues[class].packets()
    }

    /// All packets.
    pub(super) fn queued(&self) -> impl Iterator<Item = &Parcel<A>> {
        self.queues.iter().flat_map(Queue::packets)
    }

    /// True if data waits in a class.
    #[inline(always)]
    pub(super) fn has_data(&self, class: usize) -> bool {
        self.with_data >> class & 1 != 0
    }

    pub(super) fn push(&mut self, class: usize, pkt: Parcel<A>) {
        self.push_with(class, pkt.label, &pkt.annex);
    }

    /// Queues a packet with this label and annex.
    #[inline(always)]
    pub(super) fn push_with(&mut self, class: usize, label: Packet, annex: &A) {
        self.filled |= 1 << class;
        self.bytes[class] += u64::from(label.frame());
        self.queues[class].push_with(label, annex);
    }

    /// True if a packet waits that may start.
    #[inline(always)]
    pub(super) fn has_next(&self, classes: &[Class], port: &Port<A>) -> bool {
        match port.paused_channels() {
            0 => !self.is_empty(),
            _ => self.has_next_beside_pauses(classes, port),
        }
    }

    #[inline(never)]
    fn has_next_beside_pauses(&self, classes: &[Class], port: &Port<A>) -> bool {
        let first = |class: usize| first(&self.queues[class], &classes[class], self.channels, port);
        (0..classes.len()).any(|class| first(class).is_some())
    }

    /// Notes a packet of a class that starts when it arrives, as nothing waits.
    #[inline(always)]
    pub(super) fn pass(&mut self, class: usize, classes: &[Class]) {
        debug_assert!(self.is_empty() && !self.in_order, "the packet of a switch is alone");
        self.turns.serve_alone(class, classes[class].service, 0, true);
    }

    /// Takes the packet that starts next, with its class.
    #[inline]
    pub(super) fn pop(&mut self, classes: &[Class], port: &Port<A>) -> Option<(usize, Parcel<A>)> {
        match port.paused_channels() {
            0 => self.remove_first(classes).map(|(class, _)| (class, *self.removed(class))),
            _ => self.pop_beside_pauses(classes, port),
        }
    }

    /// The packet of a class that has just been removed.
    #[inline(always)]
    pub(super) fn removed(&self, class: usize) -> &Parcel<A> {
        self.queues[class].removed()
    }

    /// Removes the packet that starts next, if none is paused. Returns its class and its label.
    #[inline(always)]
    pub(super) fn remove_first(&mut self, classes: &[Class]) -> Option<(usize, Packet)> {
        let strict = self.filled & self.strict;
        let is_alone = self.filled.is_power_of_two();
        let class = if strict != 0 {
            strict.trailing_zeros() as usize
        } else if is_alone {
            self.filled.trailing_zeros() as usize
        } else {
            self.next_weighted(classes)?
        };
        let (queue, service) = (self.queues.get_mut(class)?, classes.get(class)?.service);
        if queue.is_empty() {
            return None;
        }
        let label = queue.front().label;
        queue.drop_front();
        let (frame, is_last) = (label.frame().into(), queue.is_empty());
        match (strict, is_alone) {
            (0, true) => self.turns.serve_alone(class, service, frame, is_last),
            (0, false) => self.turns.spend(class, frame, is_last),
            _ => {}
        }
        self.took(class, frame);
        Some((class, label))
    }

    /// The weighted class that sends next. No strict class has packets, and no packet is paused.
    #[inline(never)]
    fn next_weighted(&mut self, classes: &[Class]) -> Option<usize> {
        let (queues, waiting) = (&self.queues, self.weighted.among(self.filled));
        self.turns.next_weighted(&waiting, classes.len(), |class| queues[class].front().frame().into())
    }

    /// [`Queues::pop`] if some packets may not start.
    #[inline(never)]
    fn pop_beside_pauses(&mut self, classes: &[Class], port: &Port<A>) -> Option<(usize, Parcel<A>)> {
        let Queues { queues, turns, in_order, channels, .. } = self;
        let service = |class: &Class| if *in_order { Service::Strict } else { class.service };
        let first = |class: usize| first(&queues[class], &classes[class], *channels, port);
        let class = turns.next(classes.iter().map(service), |class| Some(first(class)?.frame))?;
        let First { ahead, frame } = first(class)?;
        let pkt = queues[class].pop_behind(ahead)?;
        turns.spend(class, frame, queues[class].is_empty());
        self.took(class, frame);
        Some((class, pkt))
    }

    /// Notes that a packet has left the queue of a class.
    #[inline(always)]
    fn took(&mut self, class: usize, frame: u64) {
        self.bytes[class] -= frame;
        self.filled &= !(u8::from(self.queues[class].is_empty()) << class);
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
        self.took(class, pkt.frame().into());
        Some(pkt)
    }

    /// Takes the newest data packet of a class out of its queue, if it is `suitable`.
    pub(super) fn take_newest(
        &mut self,
        class: usize,
        suitable: impl Fn(&Parcel<A>) -> bool,
    ) -> Option<Parcel<A>> {
        let pkt = self.queues[class].take_newest(|pkt| pkt.is_data(), suitable)?;
        self.took(class, pkt.frame().into());
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
