//! The outline of a job: its messages, its tasks, and its exchanges, which stay whole until [`Outline::lay`] makes messages and
//! tasks of them.
//!
//! Replicas of a model do the same, each on its own servers. An outline has them once, as the first *cell* of ranks; what stands in
//! it happens in every cell, except for exchanges that span all cells.

use super::communicator::{Communicator, Nic, Ports, Tally, lay, transfer};
use super::laid::{self, Cells, DraftMessage, Graph, Item};
use super::planned::Planned;
use super::scene::Scene;
use crate::traffic::{self, Counter, Kind};
use finding::Finding;
use model::plan::{Operation, Task};
use model::{HostId, NodeId};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The end of something in an outline, which may start something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The receiver has the whole message.
    Received(u32),
    /// The sender has the ACK of the message's last byte.
    Acked(u32),
    /// The task has ended.
    Done(u32),
    /// A member has left an exchange. These events are numbered by themselves.
    Left(u32),
}

/// Messages, tasks and exchanges of a job. Their numbers count within it.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    pub(crate) messages: Vec<DraftMessage>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) exchanges: Vec<Exchange>,
    /// Pairs of cause and effect.
    pub(crate) causes: Vec<(Event, Item)>,
    pub(crate) cells: Cells,
    /// Number of events [`Event::Left`].
    pub(crate) left: u32,
    /// Number of the present run of exchanges.
    run: u32,
    /// Number of steps of exchanges in all cells.
    steps: u64,
}

/// A collective, or a transfer between two ranks.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) what: What,
    /// The communicator of the first cell.
    pub(crate) communicator: Communicator,
    /// Numbers of groups from a cell to the next one; `None` if the exchange spans all cells.
    pub(crate) stride: Option<u32>,
    /// Number of its operation, which a collective has for itself.
    pub(crate) operation: u32,
    /// What every member in a cell waits for before it enters.
    pub(crate) causes: Vec<Vec<Event>>,
    /// Number of its first [`Event::Left`].
    pub(crate) left: u32,
    /// Exchanges of one run are laid out cell by cell.
    run: u32,
    /// What stands before it.
    pub(crate) before: Before,
}

/// Numbers of messages, tasks and operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    messages: usize,
    pub(crate) tasks: usize,
    operations: usize,
}

/// What an exchange does.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A collective; an event for each member tells that it has left.
    Collective(Rc<Planned>),
    /// A transfer of so many bytes from the first to the second member; two events tell that they have arrived, and that they are
    /// sent.
    Transfer(u64),
}

impl Default for Outline {
    fn default() -> Self {
        Outline {
            messages: Vec::new(),
            tasks: Vec::new(),
            operations: Vec::new(),
            exchanges: Vec::new(),
            causes: Vec::new(),
            cells: Cells::ONE,
            left: 0,
            run: 0,
            steps: 0,
        }
    }
}

impl Exchange {
    /// Number of steps in a cell.
    pub(crate) fn steps(&self) -> u64 {
        match &self.what {
            What::Collective(planned) => planned.steps,
            What::Transfer(_) => 1,
        }
    }

    /// Number of times that it happens.
    pub(crate) fn times(&self, cells: Cells) -> u32 {
        if self.stride.is_some() { cells.count } else { 1 }
    }

    /// Its communicator in a cell.
    pub(crate) fn communicator(&self, cells: Cells, cell: u32) -> Communicator {
        let mut communicator = self.communicator.clone();
        if let Some(stride) = self.stride.filter(|_| cell > 0) {
            communicator.ranks.iter_mut().for_each(|rank| *rank += cell * cells.stride);
            communicator.group += (cell * stride) as usize;
            communicator.lane += cell * stride;
        }
        communicator
    }
}

impl Outline {
    /// Begins a run of exchanges. A run is laid out cell by cell; in a job of several cells, nothing else may be added inside it.
    pub(crate) fn next_run(&mut self) {
        self.run += 1;
    }

    fn before(&self) -> Before {
        let (messages, tasks) = (self.messages.len(), self.tasks.len());
        Before { messages, tasks, operations: self.operations.len() }
    }

    /// Adds a collective; returns the event at which each member in a cell has left.
    pub(crate) fn collective(
        &mut self,
        planned: Rc<Planned>,
        communicator: Communicator,
        stride: Option<u32>,
        operation: Operation,
        causes: Vec<Vec<Event>>,
    ) -> Vec<Event> {
        let (before, left) = (self.before(), self.left);
        self.operations.push(operation);
        self.left += causes.len() as u32;
        let events = (left..self.left).map(Event::Left).collect();
        let (what, operation) = (What::Collective(planned), before.operations as u32);
        self.push(Exchange { what, communicator, stride, operation, causes, left, run: 0, before });
        events
    }

    /// Adds a transfer; returns the events at which its bytes have arrived, and are sent.
    pub(crate) fn transfer(
        &mut self,
        bytes: u64,
        communicator: Communicator,
        stride: Option<u32>,
        operation: u32,
        causes: Vec<Event>,
    ) -> (Event, Event) {
        let (before, left) = (self.before(), self.left);
        self.left += 2;
        let (what, causes) = (What::Transfer(bytes), vec![causes]);
        self.push(Exchange { what, communicator, stride, operation, causes, left, run: 0, before });
        (Event::Left(left), Event::Left(left + 1))
    }

    fn push(&mut self, exchange: Exchange) {
        if self.cells.count == 1 {
            self.next_run();
        }
        self.steps += exchange.steps() * u64::from(exchange.times(self.cells));
        self.exchanges.push(Exchange { run: self.run, ..exchange });
    }

    /// Number of messages, tasks, and steps of exchanges.
    pub(crate) fn items(&self) -> u64 {
        let single = (self.messages.len() + self.tasks.len()) as u64;
        single * u64::from(self.cells.count) + self.steps
    }

    /// Streams of each host that its own tasks use, or more. Exchanges use those that ranks have.
    pub(crate) fn streams(&self) -> u32 {
        let last = self.tasks.iter().flat_map(|task| task.work.streams()).max();
        last.map_or(0, |last| last + 1)
    }

    /// Adds the job to the graph, with all exchanges as messages and tasks.
    pub(crate) fn lay(&self, scene: &Scene<'_>, graph: &mut Graph) -> Result<(), Finding> {
        let mut place = Place::of(self);
        for run in self.exchanges.chunk_by(|a, b| a.run == b.run) {
            place.up_to(run[0].before, scene, graph);
            for cell in 0..self.cells.count {
                for exchange in run.iter().filter(|exchange| cell < exchange.times(self.cells)) {
                    place.lay(exchange, cell, run.len() as u32, scene, graph)?;
                }
            }
        }
        place.up_to(self.before(), scene, graph);
        for &(cause, effect) in &self.causes {
            for cell in 0..self.cells.count {
                let effect = match effect {
                    Item::Message(m) => Item::Message(place.messages[m as usize]),
                    Item::Task(t) => Item::Task(place.tasks[t as usize] + cell),
                };
                graph.causes.push((place.event(cause, cell), effect));
            }
        }
        Ok(())
    }
}

/// Exchanges that send the same: their collective, or the bytes of a transfer; their ranks and lane, NIC, ports and costs; the kind of
/// their operation.
type Alike<'o> = (Result<*const Planned, u64>, (&'o [u32], u32), (Nic, Ports, Option<String>), Kind);

impl Outline {
    /// Counts what the job sends, with all its exchanges. If `few`, the counter gets a part of the queue pairs of servers that do the same.
    pub(crate) fn count(
        &self,
        scene: &Scene<'_>,
        counter: &mut Counter<'_>,
        few: bool,
    ) -> Result<(), Finding> {
        let alike_servers = if few { self.alike_servers(scene) } else { None };
        let operation = |number: u32| self.operations.get(number as usize);
        let mut times: Vec<u64> = vec![1; self.operations.len()];
        let mut alike: BTreeMap<Alike<'_>, (&Exchange, u64)> = BTreeMap::new();
        for exchange in &self.exchanges {
            let Some(shown) = operation(exchange.operation) else { continue };
            let what = match &exchange.what {
                What::Collective(planned) => {
                    times[exchange.operation as usize] = exchange.times(self.cells).into();
                    Ok(Rc::as_ptr(planned))
                }
                What::Transfer(bytes) => Err(*bytes),
            };
            let Communicator { ranks, lane, nic, ports, cost, .. } = &exchange.communicator;
            let cost = cost.map(|cost| format!("{cost:?}"));
            let key = (what, (&ranks[..], *lane), (*nic, *ports, cost), traffic::kind(shown));
            alike.entry(key).or_insert((exchange, 0)).1 += 1;
        }
        self.operations.iter().zip(times).for_each(|(operation, times)| counter.operation(operation, times));
        for message in &self.messages {
            counter.message(message, operation(message.operation), 1, 1);
        }
        for task in &self.tasks {
            counter.task(task, &[], operation(task.operation), 1, self.cells);
        }
        for (exchange, number) in alike.into_values() {
            let (all, shown) = (exchange.times(self.cells), operation(exchange.operation));
            for cell in 0..all {
                let communicator = exchange.communicator(self.cells, cell);
                let senders = alike_servers.as_ref().map(|servers| &servers.senders[..]);
                let before = counter.sent().to_vec();
                let tally = match &exchange.what {
                    What::Collective(planned) => Tally::of(scene, &communicator, planned, senders)?,
                    What::Transfer(bytes) => Tally::of_transfer(scene, &communicator, *bytes),
                };
                for (message, (times, like)) in tally.graph.messages.iter().zip(&tally.messages) {
                    counter.message(message, shown, number * times, *like);
                }
                for (port, like) in alike_servers.iter().flat_map(|servers| &servers.ports) {
                    counter.sends_as(*like, *port, &before);
                }
                if cell == 0 {
                    for (task, times) in tally.graph.tasks.iter().zip(&tally.tasks) {
                        let cells = Cells { count: all, ..self.cells };
                        counter.task(task, tally.graph.slices.all(), shown, number * times, cells);
                    }
                }
                if tally.messages.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Servers that stand for others, whose GPUs do the same behind the same switches.
struct AlikeServers {
    /// By member: the number of its like if its server stands for others, else 0.
    senders: Vec<u64>,
    /// NIC ports, each with the one that stands for it.
    ports: Vec<(HostId, HostId)>,
}

/// The switch of each GPU of a server, and its parts of the buffers.
type Doing = Vec<(NodeId, Vec<u64>)>;

impl Outline {
    /// The servers that stand for others in all exchanges of the job; `None` if its exchanges differ by more than their senders.
    fn alike_servers(&self, scene: &Scene<'_>) -> Option<AlikeServers> {
        let first = &self.exchanges.first()?.communicator;
        let same = |exchange: &Exchange| {
            let by_sender = matches!(&exchange.what, What::Collective(planned) if planned.by_sender);
            let Communicator { ranks, lane, .. } = &exchange.communicator;
            by_sender && (ranks, lane) == (&first.ranks, &first.lane)
        };
        let all = first.ranks.len() == scene.ranks.count() && scene.ranks.are_alike(scene.fabric);
        let single = first.ranks.iter().all(|&rank| scene.ranks.ports(rank).len() == 1);
        let alone = self.messages.is_empty() && self.cells.count == 1 && !scene.fresh_qps;
        if !(all && single && alone && self.exchanges.iter().all(same)) {
            return None;
        }
        let port = |rank: u32| scene.ranks.ports(rank)[0];
        // Parts of a buffer may differ by a byte, and a rank sends all but its own.
        let shares = |member: u32| -> Vec<u64> {
            let share = |exchange: &Exchange| match &exchange.what {
                What::Collective(planned) => planned.call.part_of(member),
                What::Transfer(bytes) => *bytes,
            };
            self.exchanges.iter().map(share).collect()
        };
        let mut alike: BTreeMap<Doing, Vec<(u32, &[u32])>> = BTreeMap::new();
        let mut member = 0;
        for server in first.ranks.chunk_by(|&a, &b| scene.ranks.node(a) == scene.ranks.node(b)) {
            let of = |(i, &rank): (u32, &u32)| (scene.fabric.uplink(port(rank)).to, shares(member + i));
            alike.entry((0..).zip(server).map(of).collect()).or_default().push((member, server));
            member += server.len() as u32;
        }
        let mut servers = AlikeServers { senders: vec![0; scene.ranks.count()], ports: Vec::new() };
        for alike in alike.values() {
            let (member, shown) = alike[0];
            for (i, &rank) in shown.iter().enumerate() {
                servers.senders[member as usize + i] = alike.len() as u64;
                servers.ports.extend(alike[1..].iter().map(|(_, server)| (port(server[i]), port(rank))));
            }
        }
        Some(servers)
    }
}

/// Numbers in the graph of what stands in an outline.
struct Place<'o> {
    outline: &'o Outline,
    messages: Vec<u32>,
    /// By task: its number in the first cell; those of the other cells follow.
    tasks: Vec<u32>,
    /// By operation: its number in the first cell, and the numbers from cell to cell.
    operations: Vec<(u32, u32)>,
    /// By event [`Event::Left`] and cell.
    left: Vec<laid::Event>,
}

impl<'o> Place<'o> {
    fn of(outline: &'o Outline) -> Self {
        let left = vec![laid::Event::Done(u32::MAX); outline.left as usize * outline.cells.count as usize];
        Place { outline, messages: Vec::new(), tasks: Vec::new(), operations: Vec::new(), left }
    }

    fn event(&self, event: Event, cell: u32) -> laid::Event {
        match event {
            Event::Received(m) => laid::Event::Received(self.messages[m as usize]),
            Event::Acked(m) => laid::Event::Acked(self.messages[m as usize]),
            Event::Done(t) => laid::Event::Done(self.tasks[t as usize] + cell),
            Event::Left(n) => self.left[n as usize * self.outline.cells.count as usize + cell as usize],
        }
    }

    fn operation(&self, operation: u32, cell: u32) -> u32 {
        let number = |&(first, stride): &(u32, u32)| first + cell * stride;
        self.operations.get(operation as usize).map_or(Operation::NONE, number)
    }

    /// Adds what stands before something to the graph.
    fn up_to(&mut self, before: Before, scene: &Scene<'_>, graph: &mut Graph) {
        let Outline { messages, tasks, operations, cells, .. } = self.outline;
        for operation in &operations[self.operations.len()..before.operations] {
            self.operations.push((graph.operations.len() as u32, 0));
            graph.operations.push(operation.clone());
        }
        for message in &messages[self.messages.len()..before.messages] {
            self.messages.push(graph.messages.len() as u32);
            let operation = self.operation(message.operation, 0);
            graph.messages.push(DraftMessage { operation, ..*message });
        }
        for task in &tasks[self.tasks.len()..before.tasks] {
            self.tasks.push(graph.tasks.len() as u32);
            for cell in 0..cells.count {
                let rank = task.rank + cell * cells.stride;
                let node = if cell == 0 { task.node } else { scene.ranks.node(rank) };
                let operation = self.operation(task.operation, cell);
                graph.tasks.push(Task { node, rank, operation, ..task.clone() });
            }
        }
    }

    /// Adds an exchange of a run of so many to the graph.
    fn lay(
        &mut self,
        exchange: &Exchange,
        cell: u32,
        run: u32,
        scene: &Scene<'_>,
        graph: &mut Graph,
    ) -> Result<(), Finding> {
        let cells = self.outline.cells;
        let communicator = exchange.communicator(cells, cell);
        let of_cell = if exchange.stride.is_some() { cell..cell + 1 } else { 0..cells.count };
        let causes: Vec<Vec<laid::Event>> = of_cell
            .clone()
            .flat_map(|cell| exchange.causes.iter().map(move |causes| (cell, causes)))
            .map(|(cell, causes)| causes.iter().map(|&cause| self.event(cause, cell)).collect())
            .collect();
        let left = match &exchange.what {
            What::Transfer(bytes) => {
                let operation = self.operation(exchange.operation, cell);
                let moved = transfer(scene, graph, &communicator, *bytes, operation, &causes[0]);
                vec![moved.arrived, moved.sent]
            }
            What::Collective(planned) => {
                let number = graph.operations.len() as u32;
                graph.operations.push(self.outline.operations[exchange.operation as usize].clone());
                if cell == 0 {
                    let stride = exchange.stride.map_or(0, |_| run);
                    self.operations.push((number, stride));
                }
                lay(scene, graph, &communicator, planned, number, &causes)?
            }
        };
        let each = left.len().max(1) / of_cell.len();
        for (cell, left) in of_cell.zip(left.chunks(each)) {
            for (i, &event) in left.iter().enumerate() {
                self.left[(exchange.left as usize + i) * cells.count as usize + cell as usize] = event;
            }
        }
        Ok(())
    }
}
