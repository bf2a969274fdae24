//! Schedules as messages and tasks: NVLink inside servers, NICs between them.

use crate::workload::draft::{Draft, Event, Item, part};
use crate::workload::ranks::Stream;
use collective::{After, Call, Kind, Protocol, Schedule, Step, Way};
use finding::Finding;
use model::draw::below;
use model::plan::{Operation, Role, Work};
use model::{HostId, Time};

/// The NIC by which a GPU sends to a GPU of another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nic {
    /// The GPU's own NIC.
    Own,
    /// The NIC of the channel, on both sides: its number modulo the GPUs that the group has in the server.
    Channel,
    /// The NIC of the GPU with the receiver's number, to which the bytes go over NVLink (PXN).
    Pxn,
}

/// The port of a NIC by which a message leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// A hash of sender, receiver and channel.
    Hash,
    /// Port c of channel c, modulo the number of ports.
    RoundRobin,
    /// Every message in parts, one per port.
    Stripe,
}

/// A group of ranks that does collectives.
#[derive(Clone, Debug)]
pub(crate) struct Communicator {
    /// Ranks of the fabric, server by server.
    pub(crate) ranks: Vec<u32>,
    /// Number of the group in the job.
    pub(crate) group: usize,
    /// Number that keeps its connections apart from those of other communicators of the job.
    pub(crate) lane: u32,
    pub(crate) nic: Nic,
    pub(crate) ports: Ports,
}

/// Events of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// The receiver has all bytes.
    pub(crate) arrived: Event,
    /// The bytes have left the sender, and are acknowledged.
    pub(crate) sent: Event,
}

/// Adds a collective to the draft, if there is memory. Each member enters after its `causes`, or when the job starts. Returns the
/// event at which each member has left.
pub(crate) fn lay(
    draft: &mut Draft<'_>,
    communicator: &Communicator,
    call: &Call,
    schedule: &Schedule,
    operation: Operation,
    causes: &[Vec<Event>],
) -> Result<Vec<Event>, Finding> {
    draft.fits(schedule.steps.len())?;
    let ranks = &communicator.ranks;
    let operation = draft.operation(Operation {
        name: call.kind.name(),
        bytes: call.bytes,
        ranks: ranks.len() as u32,
        bus: call.kind.bus(ranks.len() as u32),
        ..operation
    });
    let mut layer = Layer { draft, communicator, call, operation, servers: Vec::new() };
    layer.servers = layer.server_of();
    if let Some(left) = layer.behind_a_gate(schedule, causes) {
        return Ok(left);
    }
    let enter: Vec<u32> =
        ranks.iter().zip(causes).map(|(&r, causes)| layer.moment(r, Role::Enter, causes)).collect();
    let mut moved: Vec<Moved> = Vec::with_capacity(schedule.steps.len());
    let event = |after: After, moved: &[Moved]| match after {
        After::Arrived(step) => moved[step as usize].arrived,
        After::Sent(step) => moved[step as usize].sent,
        After::Entered(member) => Event::Done(enter[member as usize]),
    };
    for step in &schedule.steps {
        let mut after: Vec<Event> = step.after.iter().map(|&after| event(after, &moved)).collect();
        if after.is_empty() {
            after.push(Event::Done(enter[step.from as usize]));
        }
        let done = layer.step(step, &after);
        moved.push(done);
    }
    let leave = |(m, after): (usize, &Vec<After>)| {
        let mut causes = vec![Event::Done(enter[m])];
        causes.extend(after.iter().map(|&after| event(after, &moved)));
        Event::Done(layer.moment(ranks[m], Role::Leave, &causes))
    };
    Ok(schedule.leave.iter().enumerate().map(leave).collect())
}

/// Adds one transfer from the first to the second member of a communicator.
pub(crate) fn transfer(
    draft: &mut Draft<'_>,
    communicator: &Communicator,
    bytes: u64,
    operation: u32,
    causes: &[Event],
) -> Moved {
    let call = Call {
        kind: Kind::Broadcast,
        bytes,
        servers: vec![1, 1],
        channels: 1,
        chunk: u64::MAX,
        window: 0,
        grain: 1,
        nvlink: false,
        protocol: Protocol::Simple,
        rates: (0, 0),
    };
    let mut layer = Layer { draft, communicator, call: &call, operation, servers: vec![(0, 1), (1, 1)] };
    let enter = layer.moment(communicator.ranks[0], Role::Enter, causes);
    let step = Step {
        from: 0,
        to: 1,
        data: 0..bytes,
        more: Vec::new(),
        channel: 0,
        way: Way::Copy,
        after: Vec::new(),
    };
    layer.step(&step, &[Event::Done(enter)])
}

struct Layer<'l, 'd> {
    draft: &'l mut Draft<'d>,
    communicator: &'l Communicator,
    call: &'l Call,
    operation: u32,
    /// By member: the first member of its server, and the number of members there.
    servers: Vec<(u32, u32)>,
}

impl Layer<'_, '_> {
    fn server_of(&self) -> Vec<(u32, u32)> {
        let mut first = 0;
        let of = |&members: &u32| {
            let mine = vec![(first, members); members as usize];
            first += members;
            mine
        };
        self.call.servers.iter().flat_map(of).collect()
    }

    /// If every step is one over the NVSwitch of a single server, for which all members must have entered: one task that waits for
    /// all members, and one task for each member. Steps of training models have many such collectives.
    fn behind_a_gate(&mut self, schedule: &Schedule, causes: &[Vec<Event>]) -> Option<Vec<Event>> {
        let all = |step: &Step| {
            step.way == Way::Switch && step.after.iter().all(|a| matches!(a, After::Entered(_)))
        };
        let single = self.call.servers.len() == 1 && schedule.steps.len() == self.communicator.ranks.len();
        if !single || !schedule.steps.iter().all(all) {
            return None;
        }
        let causes: Vec<Event> = causes.iter().flatten().copied().collect();
        let gate = Event::Done(self.moment(self.communicator.ranks[0], Role::Enter, &causes));
        let left = |step: &Step| {
            let rank = self.communicator.ranks[step.from as usize];
            let task = self.copy(rank, rank, self.call.protocol.wire(step.bytes()), 2, &[gate]);
            self.draft.graph.tasks[task as usize].role = Role::Leave;
            Event::Done(task)
        };
        Some(schedule.steps.iter().map(left).collect())
    }

    /// Adds a task that takes no time.
    fn moment(&mut self, rank: u32, role: Role, after: &[Event]) -> u32 {
        let task = self.task(rank, Work::Free { time: Time::ZERO }, after);
        self.draft.graph.tasks[task as usize].role = role;
        task
    }

    /// Adds the messages and tasks of a step, which starts after these events.
    fn step(&mut self, step: &Step, after: &[Event]) -> Moved {
        let bytes = self.call.protocol.wire(step.bytes());
        let (from, to) =
            (self.communicator.ranks[step.from as usize], self.communicator.ranks[step.to as usize]);
        if step.way == Way::Switch {
            let task = self.copy(from, to, bytes, 2, after);
            return Moved { arrived: Event::Done(task), sent: Event::Done(task) };
        }
        if from == to {
            let task = self.task(from, Work::Free { time: Time::from_ns(1) }, after);
            return Moved { arrived: Event::Done(task), sent: Event::Done(task) };
        }
        if self.draft.ranks.nvlink(from, to).is_some() {
            let task = self.copy(from, to, bytes, 1, after);
            return Moved { arrived: Event::Done(task), sent: Event::Done(task) };
        }
        // Without NVLink, GPUs of one server use their own NICs, and the ToR between them.
        if self.draft.ranks.node(from) == self.draft.ranks.node(to) {
            return self.message(from, to, bytes, step.channel, after);
        }
        match self.communicator.nic {
            Nic::Own => self.message(from, to, bytes, step.channel, after),
            Nic::Channel => {
                let nic = |member: u32| {
                    let (first, members) = self.servers[member as usize];
                    self.communicator.ranks[(first + step.channel % members) as usize]
                };
                let (from, to) = (nic(step.from), nic(step.to));
                self.message(from, to, bytes, step.channel, after)
            }
            Nic::Pxn => {
                let relay = self.draft.ranks.beside(from, self.draft.ranks.place(to));
                if relay == from || self.draft.ranks.nvlink(from, relay).is_none() {
                    return self.message(from, to, bytes, step.channel, after);
                }
                let copy = self.copy(from, relay, bytes, 1, after);
                let Moved { arrived, .. } =
                    self.message(relay, to, bytes, step.channel, &[Event::Done(copy)]);
                Moved { arrived, sent: Event::Done(copy) }
            }
        }
    }

    fn task(&mut self, rank: u32, work: Work, after: &[Event]) -> u32 {
        let task = self.draft.task(self.draft.ranks.node(rank), work);
        let made = &mut self.draft.graph.tasks[task as usize];
        (made.rank, made.operation) = (rank, self.operation);
        after.iter().for_each(|&cause| self.draft.join(cause, Item::Task(task)));
        task
    }

    /// A copy over NVLink that passes so many links in a row.
    fn copy(&mut self, from: u32, to: u32, bytes: u64, links: u64, after: &[Event]) -> u32 {
        let nvlink = self.draft.ranks.nvlink(from, to).unwrap_or_default();
        let ranks = self.draft.ranks;
        let work = Work::Copy {
            from: ranks.stream(from, Stream::Out),
            to: ranks.stream(to, Stream::In),
            time: nvlink.rate.time_for(bytes),
            delay: Time(nvlink.delay.ps() * links),
        };
        self.task(from, work, after)
    }

    /// A message over the fabric, in one part or in one for each port of the NIC.
    fn message(&mut self, from: u32, to: u32, bytes: u64, channel: u32, after: &[Event]) -> Moved {
        let (ranks, sender) = (self.draft.ranks, from);
        let (own, peers) = (ranks.ports(from), ranks.ports(to));
        let ports = own.len().min(peers.len());
        let pair = |port: usize| (own[port % own.len()], peers[port % peers.len()]);
        let port = match self.communicator.ports {
            Ports::Stripe if ports > 1 && own[0] != peers[0] => {
                return self.stripes(from, to, bytes, channel, after, ports);
            }
            Ports::Hash => {
                let pair = u64::from(from) << 32 | u64::from(to);
                below(self.draft.key.draw2(pair, channel.into()), ports)
            }
            Ports::RoundRobin | Ports::Stripe => channel as usize % ports,
        };
        if pair(port).0 == pair(port).1 {
            // GPUs that share a NIC port. Our choice: the port copies the bytes at its rate.
            let (from, to) = (ranks.stream(from, Stream::Out), ranks.stream(to, Stream::In));
            let time = self.draft.fabric.uplink(pair(port).0).rate.time_for(bytes);
            let task = self.task(sender, Work::Copy { from, to, time, delay: Time::ZERO }, after);
            return Moved { arrived: Event::Done(task), sent: Event::Done(task) };
        }
        let message = self.send(pair(port), bytes, channel, after);
        Moved { arrived: Event::Received(message), sent: Event::Acked(message) }
    }

    fn stripes(
        &mut self,
        from: u32,
        to: u32,
        bytes: u64,
        channel: u32,
        after: &[Event],
        ports: usize,
    ) -> Moved {
        let free = Work::Free { time: Time::ZERO };
        let parts: Vec<u32> = (0..ports)
            .map(|port| {
                let ends = (self.draft.ranks.ports(from)[port], self.draft.ranks.ports(to)[port]);
                self.send(ends, part(bytes, ports, port), channel, after)
            })
            .collect();
        let arrived: Vec<Event> = parts.iter().map(|&m| Event::Received(m)).collect();
        let sent: Vec<Event> = parts.iter().map(|&m| Event::Acked(m)).collect();
        let (arrived, sent) = (self.task(to, free, &arrived), self.task(from, free, &sent));
        Moved { arrived: Event::Done(arrived), sent: Event::Done(sent) }
    }

    fn send(&mut self, (from, to): (HostId, HostId), bytes: u64, channel: u32, after: &[Event]) -> u32 {
        let message = self.draft.send(self.communicator.group, from, to, bytes);
        let made = &mut self.draft.graph.messages[message as usize];
        made.lane = self.communicator.lane * MOST_CHANNELS + channel;
        made.operation = self.operation;
        after.iter().for_each(|&cause| self.draft.join(cause, Item::Message(message)));
        message
    }
}

/// Most channels of a communicator (NCCL's limit is 32, doubled for trees).
pub(crate) const MOST_CHANNELS: u32 = 64;
