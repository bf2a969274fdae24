//! The graph of a trace as messages and tasks.

use super::graph::{Graph, Joint, Number, Unit, duration};
use super::{Chakra, Roofline};
use crate::values::LATEST;
use crate::workload::communicator::{Communicator, Nic, Ports};
use crate::workload::draft::Draft;
use crate::workload::laid::Item;
use crate::workload::outline::Event;
use crate::workload::planned::Schedules;
use crate::workload::ranks::Stream;
use collective::Kind;
use finding::Finding;
use formats::chakra::{Peer, Work};
use model::Time;
use model::plan::{self, Operation, Role};

/// Streams of a rank, for the order of its nodes: CPU, GPU, communication.
const STREAMS: usize = 3;

/// Adds a trace to the draft; returns its number of groups.
pub(super) fn lay(settings: &Chakra, graph: &Graph<'_>, draft: &mut Draft<'_>) -> Result<usize, Finding> {
    let first = draft.streams;
    let compute = draft.operation(Operation { name: "compute", ..Operation::default() });
    let memory = match settings.remote_memory {
        Some(_) => draft.operation(Operation { name: "memory", ..Operation::default() }),
        None => Operation::NONE,
    };
    let mut layer = Layer {
        settings,
        graph,
        cpus: first.max(draft.ranks.streams()),
        ends: vec![None; graph.count()],
        arrivals: vec![None; graph.count()],
        receives: vec![Operation::NONE; graph.count()],
        sends: false,
        last: vec![None; draft.ranks.count()],
        connected: vec![false; graph.groups.len()],
        schedules: Schedules::default(),
        total: 0,
        compute,
        memory,
        draft,
    };
    layer.refuse_times()?;
    for unit in layer.order()? {
        match &graph.units[unit as usize] {
            Unit::Single(number) => layer.node(*number)?,
            Unit::Joint(joint) => layer.collective(joint)?,
        }
    }
    // The messages, if there are any, are one more group.
    Ok(graph.groups.len() + usize::from(layer.sends))
}

struct Layer<'l, 'd> {
    settings: &'l Chakra,
    graph: &'l Graph<'l>,
    draft: &'l mut Draft<'d>,
    /// Number of the first stream of CPUs; each rank of a host has one.
    cpus: u32,
    /// Ends of the nodes laid so far; `None` is the start of the job.
    ends: Vec<Option<Event>>,
    /// Arrivals of the messages of sends.
    arrivals: Vec<Option<Event>>,
    /// Operations of the messages of sends.
    receives: Vec<u32>,
    /// True if the trace has sends.
    sends: bool,
    /// By rank: the end of its last message or collective.
    last: Vec<Option<Event>>,
    /// Groups whose queue pairs are counted.
    connected: Vec<bool>,
    schedules: Schedules,
    /// Time of all computations so far, ps.
    total: u64,
    /// Operations of the plan under which the results show computations, and transfers of memory.
    compute: u32,
    memory: u32,
}

impl Layer<'_, '_> {
    /// Refuses durations that exceed the clock, each alone.
    fn refuse_times(&self) -> Result<(), Finding> {
        for number in 0..self.graph.count() {
            let (_, node) = self.graph.node(number);
            if duration(node.micros).is_none() {
                let text =
                    format!("a duration of {} us is longer than {LATEST}, the longest possible", node.micros);
                return Err(self.graph.wrong(number, &text));
            }
        }
        Ok(())
    }

    /// The order of the units by their recorded durations. Communication without a duration takes its bytes at the rate of a NIC.
    fn order(&self) -> Result<Vec<u32>, Finding> {
        let port = self.draft.ranks.ports(0)[0];
        let rate = self.draft.fabric.uplink(port).rate;
        let cost = |unit: &Unit| {
            let number = self.graph.members(unit)[0];
            let (_, node) = self.graph.node(number);
            let bytes = match (unit, &node.work) {
                (Unit::Joint(joint), _) => joint.bytes,
                (_, Work::Send(peer)) => peer.bytes,
                (_, Work::Compute { .. } | Work::Memory { .. }) => {
                    return self.time(number).unwrap_or(LATEST);
                }
                _ => return Time::ZERO,
            };
            match node.micros {
                0 => rate.time_for(bytes.min(1 << 50)),
                micros => duration(micros).unwrap_or(LATEST),
            }
        };
        let stream = |number: Number| {
            let (rank, node) = self.graph.node(number);
            let stream = match node.work {
                Work::Compute { cpu: true, .. } => 0,
                Work::Compute { cpu: false, .. } => 1,
                Work::Send(_) | Work::Collective { .. } => 2,
                _ => return None,
            };
            Some(rank as usize * STREAMS + stream)
        };
        self.graph.order(&cost, &stream, self.last.len() * STREAMS)
    }

    /// The time of a computation or of a transfer of memory; `None` if it exceeds the clock.
    fn time(&self, number: Number) -> Option<Time> {
        let (_, node) = self.graph.node(number);
        let within = |time: Time| Some(time).filter(|time| *time <= LATEST);
        match (&node.work, self.settings.roofline) {
            (&Work::Compute { cpu: false, operations, bytes }, Some(Roofline { flops, memory })) => {
                if operations == 0 && bytes == 0 {
                    return duration(node.micros);
                }
                within(
                    Time::max(flops.time(operations.into()), by_rate(memory, bytes)?).max(Time::from_ns(1)),
                )
            }
            (&Work::Memory { bytes }, _) => match self.settings.remote_memory {
                Some(rate) => within(by_rate(rate, bytes)?),
                None => Some(Time::ZERO),
            },
            _ => duration(node.micros),
        }
    }

    /// Events for which a node waits.
    fn causes(&self, number: Number) -> Vec<Event> {
        let mut causes: Vec<Event> = self.graph.causes(number).filter_map(|cause| self.ends[cause]).collect();
        causes.sort_unstable();
        causes.dedup();
        causes
    }

    fn node(&mut self, number: Number) -> Result<(), Finding> {
        let (rank, node) = self.graph.node(number);
        let mut causes = self.causes(number);
        match node.work {
            Work::Nothing => self.ends[number] = self.moment(rank, &causes),
            Work::Memory { .. } if self.settings.remote_memory.is_none() => {
                self.ends[number] = self.moment(rank, &causes);
            }
            Work::Memory { .. } => {
                let time = self.checked_time(number)?;
                self.ends[number] = Some(self.task(rank, plan::Work::Free { time }, &causes));
                self.show(Role::Compute, self.memory);
            }
            Work::Compute { cpu, .. } => {
                let time = self.checked_time(number)?;
                let stream = match cpu {
                    true => self.cpus + self.draft.ranks.place(rank) as u32,
                    false => self.draft.ranks.stream(rank, Stream::Compute),
                };
                self.ends[number] = Some(self.task(rank, plan::Work::On { stream, time }, &causes));
                self.show(Role::Compute, self.compute);
            }
            Work::Send(peer) => self.send(number, rank, peer)?,
            Work::Receive(_) => {
                let send = self.graph.partner(number);
                causes.extend(send.and_then(|send| self.arrivals[send]));
                self.ends[number] = Some(self.task(rank, plan::Work::Free { time: Time::ZERO }, &causes));
                self.show(Role::Leave, send.map_or(Operation::NONE, |send| self.receives[send]));
            }
            Work::Collective { .. } => {}
        }
        Ok(())
    }

    /// The time of a node. The times of all nodes, one after another, fit the clock.
    fn checked_time(&mut self, number: Number) -> Result<Time, Finding> {
        let too_long = |text: &str| self.graph.wrong(number, &format!("expected at most {text}"));
        let time = self.time(number).ok_or_else(|| too_long(&LATEST.to_string()))?;
        self.total = self.total.saturating_add(time.ps());
        let most = Time(LATEST.ps() * 8);
        match self.total > most.ps() {
            true => Err(too_long(&format!("{most} for all computations together"))),
            false => Ok(time),
        }
    }

    /// Adds a task of a rank.
    fn task(&mut self, rank: u32, work: plan::Work, causes: &[Event]) -> Event {
        let task = self.draft.task(self.draft.ranks.node(rank), work);
        self.draft.outline.tasks[task as usize].rank = rank;
        causes.iter().for_each(|&cause| self.draft.join(cause, Item::Task(task)));
        Event::Done(task)
    }

    /// Shows the last task in the results.
    fn show(&mut self, role: Role, operation: u32) {
        if let Some(task) = self.draft.outline.tasks.last_mut() {
            (task.role, task.operation) = (role, operation);
        }
    }

    /// The moment at which all causes have happened; `None` for the start of the job.
    fn moment(&mut self, rank: u32, causes: &[Event]) -> Option<Event> {
        match *causes {
            [] => None,
            [cause] => Some(cause),
            _ => Some(self.task(rank, plan::Work::Free { time: Time::ZERO }, causes)),
        }
    }

    fn send(&mut self, number: Number, rank: u32, peer: Peer) -> Result<(), Finding> {
        let bytes = self.possible_bytes(number, peer.bytes)?;
        self.draft.reserve(1, 1, "file")?;
        let operation = Operation { name: "send", bytes, ranks: 2, bus: (1, 1), ..Operation::default() };
        let operation = self.draft.operation(operation);
        let group = self.graph.groups.len();
        let communicator = Communicator {
            ranks: vec![rank, peer.rank],
            group,
            lane: group as u32,
            nic: Nic::Own,
            ports: Ports::Hash,
            cost: None,
        };
        let mut causes = self.causes(number);
        causes.extend(self.last[rank as usize]);
        let (arrived, sent) = self.draft.transfer(communicator, bytes, operation, causes);
        (self.ends[number], self.arrivals[number]) = (Some(sent), Some(arrived));
        self.receives[number] = operation;
        self.sends = true;
        self.last[rank as usize] = Some(sent);
        Ok(())
    }

    /// The bytes of a message or collective. Nothing is sent as 1 B.
    fn possible_bytes(&self, number: Number, bytes: u64) -> Result<u64, Finding> {
        match bytes > 1 << 50 {
            true => Err(self.graph.wrong(number, &format!("expected at most 1 PiB, found {bytes} B"))),
            false => Ok(bytes.max(1)),
        }
    }

    fn collective(&mut self, joint: &Joint) -> Result<(), Finding> {
        let first = joint.members[0];
        let ranks = &self.graph.groups[joint.group];
        let causes: Vec<Vec<Event>> = joint
            .members
            .iter()
            .zip(ranks)
            .map(|(&number, &rank)| {
                let mut causes = self.causes(number);
                causes.extend(self.last[rank as usize]);
                causes
            })
            .collect();
        if let [rank] = **ranks {
            self.ends[first] = self.moment(rank, &causes[0]);
            return Ok(());
        }
        let kind = match self.graph.node(first).1.work {
            Work::Collective { kind: Some(kind), .. } => kind,
            // A barrier: no rank leaves before all have entered.
            _ => Kind::AllReduce,
        };
        let factor = if kind == Kind::AllGather { ranks.len() as u64 } else { 1 };
        let bytes = self.possible_bytes(first, joint.bytes.max(1).saturating_mul(factor))?;
        let within = |error: Finding| error.within("collectives");
        let collectives = &self.settings.collectives;
        let call = collectives
            .tuning
            .call(self.draft, kind, bytes, ranks)
            .map_err(|e| within(e.within("tuning")))?;
        let usual = self.draft.usual_algorithm(kind);
        let algorithm = collectives.algorithm.filter(|a| a.kinds().contains(&kind)).unwrap_or(usual);
        let planned = self.schedules.of(self.draft.memory, algorithm, &call).map_err(within)?;
        let steps = planned.steps;
        let connected = std::mem::replace(&mut self.connected[joint.group], true);
        let pairs = if connected { 0 } else { steps.min(ranks.len() as u64 * 64) };
        self.draft.expect(steps, pairs, "file")?;
        let communicator =
            collectives.tuning.communicator(kind, ranks.clone(), joint.group, joint.group as u32);
        let left = self.draft.collective(communicator, &planned, Operation::default(), causes)?;
        for ((&number, &rank), event) in joint.members.iter().zip(ranks).zip(left) {
            (self.ends[number], self.last[rank as usize]) = (Some(event), Some(event));
        }
        Ok(())
    }
}

/// The time of bytes at a rate; `None` if it exceeds the clock.
fn by_rate(rate: model::Rate, bytes: u64) -> Option<Time> {
    let ps = u128::from(bytes) * 8_000_000_000_000 / u128::from(rate.bps().max(1));
    u64::try_from(ps).ok().map(Time)
}
