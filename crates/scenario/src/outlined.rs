//! A job whose exchanges are laid out when they start, for runs that leave some of them out.
//!
//! An [`Outlined`] job has what happens between exchanges, once for all cells of ranks: tasks, messages, and what waits for what.
//! [`Outlined::lay`] makes the messages and tasks of one exchange.

use crate::check::Checked;
use crate::nccl::Nccl;
use crate::plan::Kept;
use crate::workload::communicator::{Communicator, Tally, lay, transfer};
use crate::workload::laid::{self, Connection, Graph, Item};
use crate::workload::outline::{Event, Exchange, What};
use crate::workload::ranks::Stream;
use crate::workload::scene::Scene;
use collective::Kind;
use finding::Finding;
use model::plan::{Operation, Role, SliceTimes, Task, Work};
use model::{Fabric, HostId, NodeId, QpId, Time, Wire};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// What starts, or comes nearer to its start, at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// A task of the job that belongs to no exchange.
    Task(u32),
    /// A member of an exchange enters it.
    Enter(u32, u32),
}

/// How an exchange is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// A collective over one NVSwitch, for which all members must have entered.
    Gated,
    /// A transfer between two ranks, which the first enters; two events tell that its bytes have arrived, and are sent.
    Transfer,
    /// Any other collective. If it is `coupled`, no member leaves before all have entered.
    Collective {
        /// Whether each member needs something of all others.
        coupled: bool,
    },
}

/// An exchange of the first cell, or of all cells.
#[derive(Clone, Debug)]
pub struct Outline {
    /// How it is done.
    pub nature: Nature,
    /// Members that enter in a cell.
    pub members: u32,
    /// Events [`Outlined::left`] in a cell.
    pub leaves: u32,
    /// Whether it spans all cells; else it happens in each of them.
    pub spans: bool,
    /// Equal numbers: the same ranks of one communicator, at different times.
    pub lane: u32,
    /// Equal numbers: the same exchange in the same lane.
    pub track: u32,
    /// Equal numbers: the same exchange, whoever does it.
    pub alike: u32,
    /// Number of its first event [`Outlined::left`].
    pub left: u32,
    /// Number of its operation.
    pub operation: u32,
    /// Tasks that the plan of a whole run has before it.
    pub tasks_before: u32,
}

/// Communicator, rank and channel of an engine, see [`Graph::engines`](crate::workload::laid::Graph).
type Engine = (u16, u32, u32, u32);

/// A job whose exchanges are whole.
pub struct Outlined {
    kept: Kept,
    nccl: Nccl,
    fabric: Fabric,
    wire: Wire,
    start: Time,
    qps: BTreeMap<Connection, QpId>,
    hosts: BTreeMap<Cow<'static, str>, HostId>,
    exchanges: Vec<Outline>,
    /// By event: the end of its effects.
    ends: Vec<u32>,
    effects: Vec<Effect>,
    needs: Needs,
    /// Slices of gated collectives, by [`Outline::alike`].
    gated: BTreeMap<u32, Vec<SliceTimes>>,
    /// Numbers of engines of GPUs.
    engines: BTreeMap<(NodeId, Engine), u32>,
}

/// How many events must come before something starts.
#[derive(Debug, Default)]
pub struct Needs {
    /// By task.
    pub tasks: Vec<u32>,
    /// By member of an exchange: members of an exchange follow each other.
    pub members: Vec<u32>,
    /// By exchange: its first member in `members`.
    pub first_member: Vec<u32>,
}

/// An event of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The task of this number has ended.
    Done(u32),
    /// An exchange's event of this number has come: a member has left it, or bytes have arrived.
    Left(u32),
}

/// What something inside an exchange starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trigger {
    /// A message of the exchange.
    Message(u32),
    /// A task of the exchange.
    Task(u32),
    /// An event of the exchange: a member leaves, or bytes have arrived or are sent.
    Left(u32),
}

/// A message of an exchange.
#[derive(Clone, Debug)]
pub struct LaidMessage {
    /// Its queue pair.
    pub qp: QpId,
    /// Its payload.
    pub bytes: u64,
    /// Triggers that must fire before it is posted.
    pub needs: u32,
    /// Triggers that fire when it has arrived, and when it is acknowledged.
    pub on_received: Range<u32>,
    /// See `on_received`.
    pub on_acked: Range<u32>,
}

/// A task of an exchange.
#[derive(Clone, Debug)]
pub struct LaidTask {
    /// Its host.
    pub node: NodeId,
    /// Its work; engines are numbered over all exchanges.
    pub work: Work,
    /// Triggers that must fire before it is ready.
    pub needs: u32,
    /// Triggers that fire when it ends.
    pub on_done: Range<u32>,
}

/// The messages and tasks of one exchange.
#[derive(Clone, Debug, Default)]
pub struct Laid {
    /// Messages, in the order of their queue pairs' posts.
    pub messages: Vec<LaidMessage>,
    /// Tasks.
    pub tasks: Vec<LaidTask>,
    /// By member: the task that begins when the member enters.
    pub enter: Vec<u32>,
    /// All triggers.
    pub triggers: Vec<Trigger>,
    /// Times of slices.
    pub slices: Vec<SliceTimes>,
    /// Number of its group in the job.
    pub group: u16,
}

impl Outlined {
    pub(crate) fn new(checked: &Checked, kept: Kept) -> Result<Self, Finding> {
        let scenario = &checked.scenario;
        let fabric = checked.plan.fabric.clone();
        let qps = (0..).map(QpId).zip(&kept.connections).map(|(qp, key)| (*key, qp)).collect();
        let mut outlined = Outlined {
            nccl: Nccl::of(scenario.nccl.as_ref())?,
            wire: checked.plan.wire,
            start: checked.plan.jobs[0].start,
            qps,
            hosts: BTreeMap::new(),
            exchanges: Vec::new(),
            ends: Vec::new(),
            effects: Vec::new(),
            needs: Needs::default(),
            gated: BTreeMap::new(),
            engines: BTreeMap::new(),
            kept,
            fabric,
        };
        outlined.number();
        outlined.join();
        outlined.gate()?;
        Ok(outlined)
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            fabric: &self.fabric,
            hosts: &self.hosts,
            key: self.kept.keys.0,
            common: self.kept.keys.1,
            job: 0,
            start: self.start,
            fresh_qps: false,
            ranks: &self.kept.ranks,
            nccl: &self.nccl,
            kind: self.kept.kind,
            wire: &self.wire,
        }
    }

    /// Gives the exchanges their tracks.
    fn number(&mut self) {
        let mut alike: BTreeMap<Result<*const crate::workload::planned::Planned, u64>, u32> = BTreeMap::new();
        let mut tracks: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut lanes: BTreeMap<(u32, &[u32]), u32> = BTreeMap::new();
        for exchange in &self.kept.outline.exchanges {
            let (what, nature) = match &exchange.what {
                What::Transfer(bytes) => (Err(*bytes), Nature::Transfer),
                What::Collective(planned) if planned.gated => (Ok(Rc::as_ptr(planned)), Nature::Gated),
                What::Collective(planned) => {
                    let coupled = match planned.call.kind {
                        Kind::AllReduce | Kind::AllGather | Kind::ReduceScatter | Kind::AllToAll => true,
                        Kind::Broadcast | Kind::Reduce => false,
                    };
                    (Ok(Rc::as_ptr(planned)), Nature::Collective { coupled })
                }
            };
            let next = alike.len() as u32;
            let alike = *alike.entry(what).or_insert(next);
            let (next, communicator) = (lanes.len() as u32, &exchange.communicator);
            let lane = *lanes.entry((communicator.lane, &communicator.ranks)).or_insert(next);
            let next = tracks.len() as u32;
            let track = *tracks.entry((alike, lane)).or_insert(next);
            let members = exchange.causes.len() as u32;
            self.exchanges.push(Outline {
                nature,
                members,
                leaves: if nature == Nature::Transfer { 2 } else { members },
                spans: exchange.stride.is_none(),
                lane,
                track,
                alike,
                left: exchange.left,
                operation: exchange.operation,
                tasks_before: exchange.before.tasks as u32,
            });
        }
    }

    /// Finds what starts at each event.
    fn join(&mut self) {
        let outline = &self.kept.outline;
        let mut first_member = Vec::with_capacity(outline.exchanges.len());
        let mut members = 0;
        for exchange in &outline.exchanges {
            first_member.push(members);
            members += exchange.causes.len() as u32;
        }
        let mut needs =
            Needs { tasks: vec![0; outline.tasks.len()], members: vec![0; members as usize], first_member };
        let own = outline.causes.iter().filter_map(|&(cause, effect)| match effect {
            Item::Task(t) => Some((cause, Effect::Task(t))),
            Item::Message(_) => None,
        });
        let entries = (0..).zip(&outline.exchanges).flat_map(|(x, exchange)| {
            let of = move |(member, causes): (u32, &'_ Vec<Event>)| {
                causes.iter().map(|&cause| (cause, Effect::Enter(x, member))).collect::<Vec<_>>()
            };
            (0..).zip(&exchange.causes).flat_map(of)
        });
        let mut all: Vec<(u32, Effect)> =
            own.chain(entries).map(|(cause, effect)| (self.slot(cause), effect)).collect();
        all.sort_unstable();
        for (_, effect) in &all {
            match *effect {
                Effect::Task(t) => needs.tasks[t as usize] += 1,
                Effect::Enter(x, member) => {
                    needs.members[(needs.first_member[x as usize] + member) as usize] += 1;
                }
            }
        }
        let slots = outline.tasks.len() + 2 * outline.messages.len() + outline.left as usize;
        let mut ends = vec![0; slots];
        all.iter().for_each(|(slot, _)| ends[*slot as usize] += 1);
        let mut end = 0;
        for slot in &mut ends {
            end += *slot;
            *slot = end;
        }
        self.effects = all.into_iter().map(|(_, effect)| effect).collect();
        (self.ends, self.needs) = (ends, needs);
    }

    fn slot(&self, event: Event) -> u32 {
        let (tasks, messages) =
            (self.kept.outline.tasks.len() as u32, self.kept.outline.messages.len() as u32);
        match event {
            Event::Done(t) => t,
            Event::Received(m) => tasks + m,
            Event::Acked(m) => tasks + messages + m,
            Event::Left(n) => tasks + 2 * messages + n,
        }
    }

    /// Lays out one gated collective of each kind.
    fn gate(&mut self) -> Result<(), Finding> {
        let mut gated: BTreeMap<u32, Vec<SliceTimes>> = BTreeMap::new();
        for (view, exchange) in self.exchanges.iter().zip(&self.kept.outline.exchanges) {
            if view.nature == Nature::Gated && !gated.contains_key(&view.alike) {
                let graph = self.graph(exchange, 0)?.0;
                let slices = graph.tasks.iter().filter_map(|task| match task.work {
                    Work::Slice { times, .. } => Some(graph.slices.all()[times as usize]),
                    _ => None,
                });
                gated.insert(view.alike, slices.collect());
            }
        }
        self.gated = gated;
        Ok(())
    }

    /// Number of cells, and of ranks from a cell to the next one.
    pub fn cells(&self) -> (u32, u32) {
        let cells = self.kept.outline.cells;
        (cells.count, cells.stride)
    }

    /// The exchanges of the first cell and of all cells.
    pub fn exchanges(&self) -> &[Outline] {
        &self.exchanges
    }

    /// The operations of the first cell and of all cells.
    pub fn operations(&self) -> &[Operation] {
        &self.kept.outline.operations
    }

    /// The tasks of the first cell that belong to no exchange.
    pub fn tasks(&self) -> &[Task] {
        &self.kept.outline.tasks
    }

    /// What must come before something starts.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// What an event starts. Effects happen in the cell of the event.
    pub fn effects(&self, cause: Cause) -> &[Effect] {
        let slot = self.slot(match cause {
            Cause::Done(t) => Event::Done(t),
            Cause::Left(n) => Event::Left(n),
        }) as usize;
        let first = slot.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.effects[first as usize..self.ends[slot] as usize]
    }

    /// The host of a rank.
    pub fn node(&self, rank: u32) -> NodeId {
        self.kept.ranks.node(rank)
    }

    /// Number of streams of a host.
    pub fn streams(&self) -> u32 {
        self.kept.ranks.streams().max(self.kept.outline.streams())
    }

    /// The ranks of an exchange in a cell, which are those of all cells if it spans them.
    pub fn ranks(&self, exchange: u32, cell: u32) -> Vec<u32> {
        let exchange = &self.kept.outline.exchanges[exchange as usize];
        exchange.communicator(self.kept.outline.cells, cell).ranks
    }

    /// The ranks of an exchange in the first cell, or in all cells if it spans them.
    pub fn first_ranks(&self, exchange: u32) -> &[u32] {
        &self.kept.outline.exchanges[exchange as usize].communicator.ranks
    }

    /// The slices of a gated collective, by member: times, and the streams by which the bytes leave and enter.
    pub fn slice(&self, exchange: &Outline, member: u32, rank: u32) -> (SliceTimes, u32, u32) {
        let (out, into) =
            (self.kept.ranks.stream(rank, Stream::Out), self.kept.ranks.stream(rank, Stream::In));
        (self.gated[&exchange.alike][member as usize], out, into)
    }

    /// What an exchange does, as a text that is equal for equal ones of any job. An all-to-all may have steps that are drawn, so it has
    /// none.
    pub fn content(&self, number: u32) -> Option<String> {
        let exchange = &self.kept.outline.exchanges[number as usize];
        let Communicator { nic, ports, cost, .. } = &exchange.communicator;
        match &exchange.what {
            What::Transfer(bytes) => Some(format!("transfer {bytes} {nic:?} {ports:?}")),
            What::Collective(planned) if planned.call.kind == Kind::AllToAll => None,
            What::Collective(planned) => {
                Some(format!("{:?} {:?} {nic:?} {ports:?} {cost:?}", planned.algorithm, planned.call))
            }
        }
    }

    /// The queue pairs of the messages of an exchange, their bytes, and how many of them there are.
    ///
    /// # Errors
    /// If the costs of its collective cannot be found.
    pub fn messages(&self, number: u32, cell: u32) -> Result<Vec<(QpId, u64, u64)>, Finding> {
        let exchange = &self.kept.outline.exchanges[number as usize];
        let (scene, communicator) = (self.scene(), exchange.communicator(self.kept.outline.cells, cell));
        let tally = match &exchange.what {
            What::Collective(planned) => Tally::of(&scene, &communicator, planned, None)?,
            What::Transfer(bytes) => Tally::of_transfer(&scene, &communicator, *bytes),
        };
        let mut all = Vec::with_capacity(tally.graph.messages.len());
        for (message, times) in tally.graph.messages.iter().zip(&tally.messages) {
            all.push((self.qps[&message.connection(0)], message.bytes, times.0));
        }
        Ok(all)
    }

    fn graph(&self, exchange: &Exchange, cell: u32) -> Result<(Graph, Vec<laid::Event>), Finding> {
        let (scene, communicator) = (self.scene(), exchange.communicator(self.kept.outline.cells, cell));
        let mut graph = Graph::default();
        let left = match &exchange.what {
            What::Transfer(bytes) => {
                let moved = transfer(&scene, &mut graph, &communicator, *bytes, 0, &[]);
                vec![moved.arrived, moved.sent]
            }
            What::Collective(planned) => {
                let nothing = vec![Vec::new(); communicator.ranks.len()];
                lay(&scene, &mut graph, &communicator, planned, 0, &nothing)?
            }
        };
        Ok((graph, left))
    }

    /// Lays out an exchange of a cell.
    ///
    /// # Errors
    /// If the costs of its collective cannot be found.
    pub fn lay(&mut self, number: u32, cell: u32) -> Result<Laid, Finding> {
        let (graph, left) = self.graph(&self.kept.outline.exchanges[number as usize], cell)?;
        let (messages, tasks) = (graph.messages.len(), graph.tasks.len());
        let slot = |event: laid::Event| match event {
            laid::Event::Received(m) => 2 * m as usize,
            laid::Event::Acked(m) => 2 * m as usize + 1,
            laid::Event::Done(t) => 2 * messages + t as usize,
        };
        let inner = graph.causes.iter().map(|&(cause, effect)| {
            let effect = match effect {
                Item::Message(m) => Trigger::Message(m),
                Item::Task(t) => Trigger::Task(t),
            };
            (slot(cause), effect)
        });
        let left = (0..).zip(left).map(|(i, event)| (slot(event), Trigger::Left(i)));
        let mut triggers: Vec<(usize, Trigger)> = inner.chain(left).collect();
        triggers.sort_unstable();
        let mut needs = (vec![0; messages], vec![0; tasks]);
        let mut ends = vec![0u32; 2 * messages + tasks + 1];
        for (slot, trigger) in &triggers {
            ends[slot + 1] += 1;
            match *trigger {
                Trigger::Message(m) => needs.0[m as usize] += 1,
                Trigger::Task(t) => needs.1[t as usize] += 1,
                Trigger::Left(_) => {}
            }
        }
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let range = |slot: usize| ends[slot]..ends[slot + 1];
        let mut laid = Laid {
            triggers: triggers.into_iter().map(|(_, trigger)| trigger).collect(),
            slices: graph.slices.all().to_vec(),
            group: graph.messages.first().map_or(0, |message| message.group),
            ..Laid::default()
        };
        for (m, message) in graph.messages.iter().enumerate() {
            laid.messages.push(LaidMessage {
                qp: self.qps[&message.connection(0)],
                bytes: message.bytes,
                needs: needs.0[m],
                on_received: range(2 * m),
                on_acked: range(2 * m + 1),
            });
        }
        for (t, task) in graph.tasks.iter().enumerate() {
            let work = match task.work {
                Work::Slice { engine, from, to, times } if engine != Work::NONE => {
                    let key = graph.engines[&task.node].all()[engine as usize];
                    let next = self.engines.len() as u32;
                    let engine = *self.engines.entry((task.node, key)).or_insert(next);
                    Work::Slice { engine, from, to, times }
                }
                work => work,
            };
            if task.role == Role::Enter {
                laid.enter.push(t as u32);
            }
            let (needs, on_done) = (needs.1[t], range(2 * messages + t));
            laid.tasks.push(LaidTask { node: task.node, work, needs, on_done });
        }
        Ok(laid)
    }
}
