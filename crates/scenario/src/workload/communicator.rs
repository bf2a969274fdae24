//! Schedules as messages and tasks: NVLink inside servers, NICs between them.

use crate::workload::cost::{CostConfig, CostTable, Costs, Path, closed_form};
use crate::workload::laid::{DraftMessage, Event, Graph, Item, part};
use crate::workload::planned::Planned;
use crate::workload::ranks::Stream;
use crate::workload::scene::Scene;
use collective::{After, Call, Kind, Schedule, Step, Way};
use finding::Finding;
use model::draw::below;
use model::plan::{Operation, Role, SliceTimes, Task, Work};
use model::{Bytes, HostId, Time};
use std::collections::BTreeMap;

/// The NIC by which a GPU sends to a GPU of another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Nic {
    /// The GPU's own NIC.
    Own,
    /// The NIC of the channel, on both sides: its number modulo the GPUs that the group has in the server.
    Channel,
    /// The NIC of the GPU with the receiver's number, to which the bytes go over NVLink (PXN).
    Pxn,
}

/// The port of a NIC by which a message leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// What a step costs; `None` for the servers' costs.
    pub(crate) cost: Option<CostConfig>,
}

/// Events of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// The receiver has all bytes.
    pub(crate) arrived: Event,
    /// The bytes have left the sender, and are acknowledged.
    pub(crate) sent: Event,
}

/// The operation of a collective, for the results.
pub(crate) fn shown(
    scene: &Scene<'_>,
    communicator: &Communicator,
    planned: &Planned,
    operation: Operation,
) -> Result<Operation, Finding> {
    let Planned { algorithm, call, near_tie, .. } = planned;
    let (made, ranks) = (algorithm.made(call), &communicator.ranks);
    let costs = costs_of(scene, communicator.cost)?.and_then(|table| table.costs(*algorithm, call));
    Ok(Operation {
        name: if operation.name.is_empty() { call.kind.name() } else { operation.name },
        bytes: call.bytes,
        ranks: ranks.len() as u32,
        algorithm: made.algorithm.name(),
        protocol: made.protocol.name(),
        channels: made.channels,
        near_tie: near_tie.map(|(algorithm, protocol, more)| (algorithm.name(), protocol.name(), more)),
        closed_form: costs
            .filter(|_| !planned.own)
            .and_then(|costs| closed_form(*algorithm, call, &costs, path(scene, ranks[0]))),
        bus: call.kind.bus(ranks.len() as u32),
        job: scene.job,
        ..operation
    })
}

/// Adds a collective to the graph. Each member enters after its `causes`, or when the job starts. Returns the event at which each
/// member has left.
pub(crate) fn lay(
    scene: &Scene<'_>,
    graph: &mut Graph,
    communicator: &Communicator,
    planned: &Planned,
    operation: u32,
    causes: &[Vec<Event>],
) -> Result<Vec<Event>, Finding> {
    let mut layer = Layer::new(scene, graph, communicator, planned, operation)?;
    match planned.gated {
        true => Ok(layer.behind_a_gate(planned, causes)),
        false => Ok(layer.collective(planned.schedule(), causes)),
    }
}

/// Messages and tasks that stand for many of their like.
pub(crate) struct Tally {
    pub(crate) graph: Graph,
    /// By message: how many there are, and how many members send the like.
    pub(crate) messages: Vec<(u64, u64)>,
    /// By task: how many there are.
    pub(crate) tasks: Vec<u64>,
}

impl Tally {
    /// The messages and tasks of a collective. `senders` has the members that stand for others, each with the number of its like; the
    /// others have 0.
    pub(crate) fn of(
        scene: &Scene<'_>,
        communicator: &Communicator,
        planned: &Planned,
        senders: Option<&[u64]>,
    ) -> Result<Self, Finding> {
        let (mut graph, mut messages, mut tasks) = (Graph::default(), Vec::new(), Vec::new());
        let nothing: Vec<Vec<Event>> = vec![Vec::new(); communicator.ranks.len()];
        let mut layer = Layer::new(scene, &mut graph, communicator, planned, 0)?;
        if planned.gated {
            layer.behind_a_gate(planned, &nothing);
        } else {
            let leave = vec![Vec::new(); communicator.ranks.len()];
            layer.collective(&Schedule { steps: Vec::new(), leave }, &nothing);
        }
        tasks.resize(layer.graph.tasks.len(), 1);
        let of_senders = senders.map(|all| planned.distinct_of(|member| all[member as usize] > 0));
        let steps =
            of_senders.as_deref().unwrap_or_else(|| if planned.gated { &[] } else { planned.distinct() });
        for (step, times) in steps {
            let like = senders.map_or(1, |all| all[step.from as usize]);
            layer.step(step, Vec::new());
            messages.resize(layer.graph.messages.len(), (*times, like));
            tasks.resize(layer.graph.tasks.len(), times * like);
        }
        Ok(Tally { graph, messages, tasks })
    }

    /// The messages and tasks of a transfer.
    pub(crate) fn of_transfer(scene: &Scene<'_>, communicator: &Communicator, bytes: u64) -> Self {
        let mut graph = Graph::default();
        transfer(scene, &mut graph, communicator, bytes, 0, &[]);
        let (messages, tasks) = (vec![(1, 1); graph.messages.len()], vec![1; graph.tasks.len()]);
        Tally { graph, messages, tasks }
    }
}

/// Adds one transfer from the first to the second member of a communicator to the graph.
pub(crate) fn transfer(
    scene: &Scene<'_>,
    graph: &mut Graph,
    communicator: &Communicator,
    bytes: u64,
    operation: u32,
    causes: &[Event],
) -> Moved {
    let call = Call::plain(Kind::Broadcast, vec![1, 1], bytes);
    let servers = vec![(0, 1), (1, 1)];
    let mut layer = Layer {
        scene,
        graph,
        communicator,
        call: &call,
        operation,
        servers,
        costs: None,
        sent: BTreeMap::new(),
    };
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
    layer.step(&step, vec![Event::Done(enter)])
}

struct Layer<'l, 'd> {
    scene: &'l Scene<'d>,
    graph: &'l mut Graph,
    communicator: &'l Communicator,
    call: &'l Call,
    operation: u32,
    /// By member: the first member of its server, and the number of members there.
    servers: Vec<(u32, u32)>,
    costs: Option<Costs>,
    /// What each engine has sent to whom.
    sent: BTreeMap<(u32, u32, u32), Sent>,
}

impl<'l, 'd> Layer<'l, 'd> {
    fn new(
        scene: &'l Scene<'d>,
        graph: &'l mut Graph,
        communicator: &'l Communicator,
        planned: &'l Planned,
        operation: u32,
    ) -> Result<Self, Finding> {
        let Planned { algorithm, call, .. } = planned;
        let costs = costs_of(scene, communicator.cost)?.and_then(|table| table.costs(*algorithm, call));
        let (servers, sent) = (Vec::new(), BTreeMap::new());
        let mut layer = Layer { scene, graph, communicator, call, operation, servers, costs, sent };
        layer.servers = layer.server_of();
        Ok(layer)
    }

    fn server_of(&self) -> Vec<(u32, u32)> {
        let mut first = 0;
        let of = |&members: &u32| {
            let mine = vec![(first, members); members as usize];
            first += members;
            mine
        };
        self.call.servers.iter().flat_map(of).collect()
    }

    /// All steps of a collective; returns the event at which each member has left.
    fn collective(&mut self, schedule: &Schedule, causes: &[Vec<Event>]) -> Vec<Event> {
        let ranks = &self.communicator.ranks;
        let call_takes = self.costs.as_ref().map_or(Time::ZERO, Costs::call);
        let mut enter: Vec<u32> = Vec::with_capacity(ranks.len());
        for (&rank, causes) in ranks.iter().zip(causes) {
            let entered = self.moment(rank, Role::Enter, causes);
            enter.push(match call_takes {
                Time::ZERO => entered,
                time => self.task(rank, Work::Free { time }, &[Event::Done(entered)]),
            });
        }
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
            let done = self.step(step, after);
            moved.push(done);
        }
        let leave = |(m, after): (usize, &Vec<After>)| {
            let mut causes = vec![Event::Done(enter[m])];
            causes.extend(after.iter().map(|&after| event(after, &moved)));
            Event::Done(self.moment(ranks[m], Role::Leave, &causes))
        };
        schedule.leave.iter().enumerate().map(leave).collect()
    }

    /// The steps of a [gated](Planned::gated) collective: one task that waits for all members, and one task for each member. Steps of
    /// training models have many such collectives.
    fn behind_a_gate(&mut self, planned: &Planned, causes: &[Vec<Event>]) -> Vec<Event> {
        let causes: Vec<Event> = causes.iter().flatten().copied().collect();
        let gate = Event::Done(self.moment(self.communicator.ranks[0], Role::Enter, &causes));
        let left = |(step, _): &(Step, u64)| {
            let rank = self.communicator.ranks[step.from as usize];
            let task = self.through_the_switch(rank, step, &[gate]);
            self.graph.tasks[task as usize].role = Role::Leave;
            Event::Done(task)
        };
        planned.distinct().iter().map(left).collect()
    }

    /// Adds a task that takes no time.
    fn moment(&mut self, rank: u32, role: Role, after: &[Event]) -> u32 {
        let task = self.task(rank, Work::Free { time: Time::ZERO }, after);
        self.graph.tasks[task as usize].role = role;
        task
    }

    /// Adds the messages and tasks of a step, which starts after these events.
    fn step(&mut self, step: &Step, mut after: Vec<Event>) -> Moved {
        let bytes = self.call.protocol.wire(step.bytes());
        let (from, to) =
            (self.communicator.ranks[step.from as usize], self.communicator.ranks[step.to as usize]);
        if step.over_switch() {
            let task = self.through_the_switch(from, step, &after);
            return Moved { arrived: Event::Done(task), sent: Event::Done(task) };
        }
        if self.costs.is_none() || from == to {
            return self.transfer(step, (from, to), bytes, &after);
        }
        if self.scene.ranks.nvlink(from, to).is_some() {
            let task = self.slice(step, (from, to), bytes, &after);
            return Moved { arrived: Event::Done(task), sent: Event::Done(task) };
        }
        let posted = self.post(step, from, bytes, &mut after);
        let moved = self.transfer(step, (from, to), bytes, &[Event::Done(posted)]);
        self.way(step).events.push(moved.sent);
        moved
    }

    /// Adds the messages and tasks that move bytes from one rank to another.
    fn transfer(&mut self, step: &Step, (from, to): (u32, u32), bytes: u64, after: &[Event]) -> Moved {
        if from == to {
            let task = self.task(from, Work::Free { time: Time::from_ns(1) }, after);
            return Moved { arrived: Event::Done(task), sent: Event::Done(task) };
        }
        if self.scene.ranks.nvlink(from, to).is_some() {
            let task = self.copy(from, to, bytes, 1, after);
            return Moved { arrived: Event::Done(task), sent: Event::Done(task) };
        }
        // Without NVLink, GPUs of one server use their own NICs, and the ToR between them.
        if self.scene.ranks.node(from) == self.scene.ranks.node(to) {
            return self.message(from, to, bytes, step.channel, after);
        }
        let nic = match self.communicator.nic {
            Nic::Pxn if !self.scene.nccl.pxn => Nic::Own,
            nic => nic,
        };
        match nic {
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
                let relay = self.scene.ranks.beside(from, self.scene.ranks.place(to));
                if relay == from || self.scene.ranks.nvlink(from, relay).is_none() {
                    return self.message(from, to, bytes, step.channel, after);
                }
                let copy = self.copy(from, relay, bytes, 1, after);
                // With costs, slices of several GPUs come in turns, and each GPU has a connection of its own.
                let own = self.scene.ranks.place(from) as u32 * MOST_CHANNELS;
                let channel = step.channel + if self.costs.is_some() { own } else { 0 };
                let Moved { arrived, .. } = self.message(relay, to, bytes, channel, &[Event::Done(copy)]);
                Moved { arrived, sent: Event::Done(copy) }
            }
        }
    }

    fn task(&mut self, rank: u32, work: Work, after: &[Event]) -> u32 {
        let task = self.graph.tasks.len() as u32;
        let new = self.scene.new_task(self.scene.ranks.node(rank), work);
        self.graph.tasks.push(Task { rank, operation: self.operation, ..new });
        self.graph.causes.extend(after.iter().map(|&cause| (cause, Item::Task(task))));
        task
    }

    /// The bytes of a step through a rank's port, to the NVSwitch and back.
    fn through_the_switch(&mut self, rank: u32, step: &Step, after: &[Event]) -> u32 {
        let nvlink = self.scene.ranks.nvlink(rank, rank).unwrap_or_default();
        let time = |bytes| nvlink.in_switch().time_for(self.call.protocol.wire(bytes));
        let own_bytes = step.data.end - step.data.start;
        let (all, own) = (time(step.bytes()), time(own_bytes));
        let (out, enter) = match step.way {
            Way::SwitchReduce => (all, own),
            Way::SwitchCopy => (own, all),
            _ => (all, all),
        };
        let delay = Time(2 * nvlink.delay.ps());
        let bytes = if step.way == Way::SwitchCopy { own_bytes } else { step.bytes() };
        let times = SliceTimes { out, enter, delay, bytes, ..SliceTimes::default() };
        let ranks = self.scene.ranks;
        let (from, to) = (ranks.stream(rank, Stream::Out), ranks.stream(rank, Stream::In));
        let times = self.graph.slices.number(times);
        self.task(rank, Work::Slice { engine: Work::NONE, from, to, times }, after)
    }

    /// A slice over NVLink.
    fn slice(&mut self, step: &Step, (from, to): (u32, u32), bytes: u64, after: &[Event]) -> u32 {
        let nvlink = self.scene.ranks.nvlink(from, to).unwrap_or_default();
        let copied = nvlink.rate.time_for(bytes);
        let Start { engine, busy, lasts } = self.start(step, after, bytes, true);
        let times = SliceTimes { busy, out: copied, enter: copied, delay: nvlink.delay, lasts, bytes };
        let (ranks, times) = (self.scene.ranks, self.graph.slices.number(times));
        let (out, enter) = (ranks.stream(from, Stream::Out), ranks.stream(to, Stream::In));
        self.task(from, Work::Slice { engine, from: out, to: enter, times }, after)
    }

    /// The task after which a NIC has the slice.
    fn post(&mut self, step: &Step, from: u32, bytes: u64, after: &mut Vec<Event>) -> u32 {
        let Start { engine, busy, lasts } = self.start(step, after, bytes, false);
        let limit = self.costs.as_ref().and_then(Costs::in_flight).map_or(u64::MAX, Bytes::get);
        // As many slices as the receiver's buffer has room for.
        let window = (limit / bytes.max(1)).max(1) as usize;
        let way = self.way(step);
        after.extend(way.events.len().checked_sub(window).map(|earlier| way.events[earlier]));
        let times = SliceTimes { busy, lasts, ..SliceTimes::default() };
        let times = self.graph.slices.number(times);
        self.task(from, Work::Slice { engine, from: Work::NONE, to: Work::NONE, times }, after)
    }

    /// How the engine of a step starts it.
    fn start(&mut self, step: &Step, after: &[Event], bytes: u64, nvlink: bool) -> Start {
        let rank = self.communicator.ranks[step.from as usize];
        let node = self.scene.ranks.node(rank);
        let key = |channel| (self.scene.job, self.communicator.lane, rank, channel);
        match self.costs {
            None => Start::default(),
            // Others copy NVLink's bytes, so they do not wait for what the engine sends.
            Some(Costs::Direct { costs, .. }) if nvlink && costs.peer == Time::ZERO => {
                Start { lasts: costs.hop, ..Start::default() }
            }
            Some(Costs::Direct { costs, .. }) => {
                // All channels share the engine, and others copy NVLink's bytes.
                let engine = self.graph.engines.entry(node).or_default().number(key(0));
                let way = self.sent.entry((step.from, step.to, u32::MAX)).or_default();
                let peer = if way.bytes.end == 0 { costs.peer } else { Time::ZERO };
                let before = way.bytes.end;
                way.bytes.end += bytes;
                let first = bytes.min(costs.first_bytes.get().saturating_sub(before));
                let of_first = costs.first_rate.unwrap_or(costs.rate).time_for(first);
                let moved = if nvlink { Time::ZERO } else { of_first + costs.rate.time_for(bytes - first) };
                Start { engine, busy: peer + moved, lasts: costs.hop }
            }
            Some(Costs::Step { costs, rate, .. }) => {
                let take = rate.time_for(bytes);
                let arrive = if costs.cut_through { Time::ZERO } else { take };
                let lasts = if nvlink { costs.hop_nvlink + arrive } else { costs.hop_network };
                // A GPU that sends the same bytes to a second receiver does not read them again.
                let last = self.sent.entry((step.from, u32::MAX, step.channel)).or_default();
                if step.way == Way::Copy && last.bytes == step.data && last.events == after {
                    return Start { lasts, ..Start::default() };
                }
                *last = Sent { events: after.to_vec(), bytes: step.data.clone() };
                let engine = self.graph.engines.entry(node).or_default().number(key(step.channel));
                Start { engine, busy: costs.busy + take, lasts }
            }
        }
    }

    /// What a member has sent to another on a channel.
    fn way(&mut self, step: &Step) -> &mut Sent {
        self.sent.entry((step.from, step.to, step.channel)).or_default()
    }

    /// A copy over NVLink that passes so many links in a row.
    fn copy(&mut self, from: u32, to: u32, bytes: u64, links: u64, after: &[Event]) -> u32 {
        let nvlink = self.scene.ranks.nvlink(from, to).unwrap_or_default();
        let ranks = self.scene.ranks;
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
        let (ranks, sender) = (self.scene.ranks, from);
        let (own, peers) = (ranks.ports(from), ranks.ports(to));
        let ports = own.len().min(peers.len());
        let pair = |port: usize| (own[port % own.len()], peers[port % peers.len()]);
        let port = match self.communicator.ports {
            Ports::Stripe if ports > 1 && own[0] != peers[0] => {
                return self.stripes(from, to, bytes, channel, after, ports);
            }
            Ports::Hash => {
                let pair = u64::from(from) << 32 | u64::from(to);
                below(self.scene.key.draw2(pair, channel.into()), ports)
            }
            Ports::RoundRobin | Ports::Stripe => channel as usize % ports,
        };
        if pair(port).0 == pair(port).1 {
            // GPUs that share a NIC port. Our choice: the port copies the bytes at its rate.
            let (from, to) = (ranks.stream(from, Stream::Out), ranks.stream(to, Stream::In));
            let time = self.scene.fabric.uplink(pair(port).0).rate.time_for(bytes);
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
                let ends = (self.scene.ranks.ports(from)[port], self.scene.ranks.ports(to)[port]);
                self.send(ends, part(bytes, ports, port), channel, after)
            })
            .collect();
        let arrived: Vec<Event> = parts.iter().map(|&m| Event::Received(m)).collect();
        let sent: Vec<Event> = parts.iter().map(|&m| Event::Acked(m)).collect();
        let (arrived, sent) = (self.task(to, free, &arrived), self.task(from, free, &sent));
        Moved { arrived: Event::Done(arrived), sent: Event::Done(sent) }
    }

    fn send(&mut self, (from, to): (HostId, HostId), bytes: u64, channel: u32, after: &[Event]) -> u32 {
        let message = self.graph.messages.len() as u32;
        let new = self.scene.new_message(self.communicator.group, from, to, bytes);
        let lane = self.communicator.lane * LANES + channel;
        self.graph.messages.push(DraftMessage { lane, operation: self.operation, ..new });
        self.graph.causes.extend(after.iter().map(|&cause| (cause, Item::Message(message))));
        message
    }
}

/// How an engine starts a slice.
struct Start {
    /// The engine, or [`Work::NONE`].
    engine: u32,
    /// Time for which it is busy.
    busy: Time,
    /// Time from its start until the bytes arrive over NVLink, or a NIC has them.
    lasts: Time,
}

impl Default for Start {
    fn default() -> Self {
        Start { engine: Work::NONE, busy: Time::ZERO, lasts: Time::ZERO }
    }
}

/// What a member has sent to another on a channel, or on a channel at last.
#[derive(Default)]
struct Sent {
    /// Ends of what was sent; of an engine, the causes of its last slice.
    events: Vec<Event>,
    /// The bytes of an engine's last slice; in an all-to-all, all bytes to a peer so far.
    bytes: std::ops::Range<u64>,
}

/// The path over one switch between two NICs like those of a rank.
fn path(scene: &Scene<'_>, rank: u32) -> Path {
    let link = scene.fabric.uplink(scene.ranks.ports(rank)[0]);
    Path::over(scene.wire, link.rate, link.delay)
}

/// The costs that count: those of a collective's tuning, or else those of the servers.
pub(crate) fn costs_of(scene: &Scene<'_>, own: Option<CostConfig>) -> Result<Option<CostTable>, Finding> {
    let servers = scene.ranks.server().map(|server| server.cost);
    own.or(servers).map_or(Ok(None), |cost| cost.costs().map_err(|error| error.within("cost")))
}

/// Most channels of a communicator (NCCL's limit is 32, doubled for trees).
pub(crate) const MOST_CHANNELS: u32 = 64;

/// Numbers of a communicator's connections between two members: more than the channels of each of 576 GPUs.
const LANES: u32 = 1 << 16;
