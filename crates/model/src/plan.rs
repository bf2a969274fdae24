//! The checked input of a run, which `scenario` makes and the engine runs.

use crate::digest::Digest;
use crate::draw::{Key, Purpose, scaled};
use crate::packet::Kinds;
use crate::record::RecordPlan;
use crate::{
    Bytes, Fabric, Failures, HostId, Kind, LinkId, MessageId, NodeId, Noise, PortChoice, PortSharing,
    Probability, Psn, QpId, Rate, TaskId, Time, Wire,
};
use std::collections::BTreeSet;
use std::ops::Range;

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Root of all random draws.
    pub seed: u64,
    /// Nodes, links, routes.
    pub fabric: Fabric,
    /// Frame sizes and rounding of transmission times.
    pub wire: Wire,
    /// Traffic classes of every port.
    pub classes: Classes,
    /// Queues that belong to the flows of some traffic classes alone.
    pub own_queues: OwnQueues,
    /// Classes of the queue pairs of every NIC.
    pub nic_classes: NicClasses,
    /// The digest of telemetry that switches write on data packets, if a congestion control reads it.
    pub digest: Option<Digest>,
    /// Settings of every port, by [`LinkId`] of its outgoing direction.
    pub ports: Vec<PortSettings>,
    /// Settings of every switch, by node number minus the number of hosts.
    pub switches: Vec<SwitchSettings>,
    /// True if links lose ACKs, NACKs, cut packets and control messages as well as data. CNPs, signals and PFC frames are
    /// never lost.
    pub lose_replies: bool,
    /// Queues of NICs that receive more slowly than their links, by host; empty if there is none.
    pub receive: Vec<Option<ReceiveQueue>>,
    /// Packets that links lose on purpose.
    pub lost: Vec<ListedLoss>,
    /// Noise on links.
    pub noise: Noise,
    /// Links that go down, come back or slow down, and the changes of routes that follow.
    pub failures: Failures,
    /// Queue pairs, sorted by destination host.
    pub qps: Vec<Qp>,
    /// Ports of NICs that serve all queue pairs of their NIC; `None` if every queue pair keeps its own port.
    pub sharing: Option<PortSharing>,
    /// Messages, sorted by queue pair. Each queue pair posts its messages strictly in this order.
    pub messages: Vec<Message>,
    /// Messages of workloads that are several of `messages`.
    pub wholes: Vec<Whole>,
    /// Work of hosts that sends nothing, sorted by host.
    pub tasks: Vec<Task>,
    /// Times of the slices of collectives, see [`Work::Slice`].
    pub slices: Vec<SliceTimes>,
    /// Operations to which tasks belong, for the results.
    pub operations: Vec<Operation>,
    /// Messages and tasks that wait for others, see [`Message::on_received`], [`Message::on_acked`] and [`Task::on_done`].
    pub triggers: Vec<Trigger>,
    /// Jobs, for the results.
    pub jobs: Vec<Job>,
    /// Job of the messages that a program posts while the run goes on, on the queue pairs without messages.
    pub posted: Option<u16>,
    /// Names of the traffic classes to which jobs belong.
    pub traffic_classes: Vec<String>,
    /// Largest lead of a host's clock over true time, see [`Plan::clock_ahead`].
    pub clock_spread: Time,
    /// Time at which the run ends even if messages are left.
    pub stop_after: Option<Time>,
    /// The run gives up if no data packet is accepted for this long while messages wait.
    pub no_progress: Time,
    /// By traffic class, the number of retransmission timeouts in a row, without progress, that a queue pair survives: one more
    /// ends the run. Empty if no queue pair has a limit.
    pub retries: Vec<Option<u8>>,
    /// Recordings beside the results.
    pub record: RecordPlan,
}

/// The queue of a NIC for arriving data, where its host takes data more slowly than its link brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveQueue {
    /// Rate at which the queue empties, bytes of payload.
    pub rate: Rate,
    /// Longest queue, bytes of payload. A NIC that pauses its links has room for what arrives after the pause.
    pub buffer: Bytes,
    /// Whether the NIC pauses its links when the queue is longer, or discards what does not fit.
    pub pause: bool,
}

/// A packet that a link loses on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedLoss {
    /// The link, in the packet's direction.
    pub link: LinkId,
    /// The packet's queue pair.
    pub qp: QpId,
    /// Data, ACK or NACK.
    pub kind: Kind,
    /// The packet's PSN.
    pub psn: Psn,
    /// Number of losses before the packet passes.
    pub times: u32,
}

/// Service of a traffic class at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The class leaves before all classes that stand after it in the table, and before all weighted classes.
    Strict,
    /// Weighted classes share the time that strict classes leave: deficit round robin by bytes. The weighted classes take
    /// turns in the order of the table. A turn brings the class [`Service::QUANTUM`] bytes of credit per unit of weight, and
    /// the class sends while its credit covers its first packet. A class whose packets may not start misses its turn, and a
    /// class whose queue empties loses its credit.
    Weighted(u32),
}

impl Service {
    /// Credit of a turn per unit of weight, bytes: the smallest Ethernet frame.
    pub const QUANTUM: u64 = 64;

    /// Largest weight of a class. With it, a turn brings 64 kB. Our choice.
    pub const MOST_WEIGHT: u32 = 1000;
}

/// One traffic class of a port: a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Kinds of packets that wait in this class.
    pub kinds: Kinds,
    /// 0 if packets of all flows wait in this class. Any other number means that the class belongs to some flows alone:
    /// [`OwnQueues::rows`] tells which, and [`OwnQueues::groups`] has its settings under this number minus 1.
    pub group: u8,
    /// Order of its packets among those of other classes.
    pub service: Service,
    /// Largest queue of the class at one port, if it is limited. Packets that a switch makes are exempt.
    pub cap: Option<Bytes>,
    /// True if the class is charged to the switch's buffer, and paused. All other classes are neither.
    pub charged: bool,
    /// True if the port's marking applies to the data of the class, by the length of this class's queue.
    pub marked: bool,
}

impl Class {
    /// A class of these kinds before all that follow, without limit, neither charged nor marked.
    pub const fn strict(kinds: Kinds) -> Self {
        Class { kinds, group: 0, service: Service::Strict, cap: None, charged: false, marked: false }
    }

    /// This class, charged and marked, as the class of data mostly is.
    #[must_use]
    pub const fn of_data(self) -> Self {
        Class { charged: true, marked: true, ..self }
    }
}

/// Traffic classes of every port: one to four queues, and the queue of each kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    /// The classes; those from `count` on are empty.
    table: [Class; Classes::MOST],
    count: u8,
}

impl Default for Classes {
    fn default() -> Self {
        Classes::STRICT
    }
}

impl Classes {
    /// Most classes of a port.
    pub const MOST: usize = 4;

    /// Strict priority: CNP before all other control packets before data. Only data is charged to buffers and paused.
    pub const STRICT: Classes = Classes::new(&[
        Class::strict(Kinds::of(&[Kind::Cnp])),
        Class::strict(Kinds::of(&[Kind::Cnp, Kind::Data]).others()),
        Class::strict(Kinds::of(&[Kind::Data])).of_data(),
    ]);
    /// One queue for all packets, which are all charged and paused.
    pub const ONE: Classes = Classes::new(&[Class::strict(Kinds::of(&[]).others()).of_data()]);
    /// CNP first, and one queue for all other packets, which are charged and paused.
    pub const CNP_FIRST: Classes = Classes::new(&[
        Class::strict(Kinds::of(&[Kind::Cnp])),
        Class::strict(Kinds::of(&[Kind::Cnp]).others()).of_data(),
    ]);

    /// These classes, of which each kind must have exactly one. There are at most [`Classes::MOST`].
    pub const fn new(classes: &[Class]) -> Self {
        let mut table = [Class::strict(Kinds::of(&[])); Classes::MOST];
        let mut i = 0;
        while i < classes.len() {
            table[i] = classes[i];
            i += 1;
        }
        Classes { table, count: classes.len() as u8 }
    }

    /// All classes, in the order of the table.
    #[inline]
    pub fn all(&self) -> &[Class] {
        &self.table[..usize::from(self.count)]
    }

    /// Number of the class in which packets of this kind wait, if their flow has no class of its own.
    pub fn of(&self, kind: Kind) -> usize {
        self.all().iter().position(|class| class.group == 0 && class.kinds.has(kind)).unwrap_or_default()
    }

    /// The class in which data of flows without a class of their own waits.
    pub fn data(&self) -> &Class {
        &self.table[self.of(Kind::Data)]
    }

    /// These classes, but packets of this kind wait with data.
    #[must_use]
    pub fn beside_data(self, kind: Kind) -> Self {
        let (moved, data) = (Kinds::of(&[kind]), self.of(Kind::Data));
        let mut classes = self;
        for (number, class) in classes.table.iter_mut().enumerate() {
            let others = class.kinds.others().and(moved).others();
            class.kinds = if number == data { others.and(moved) } else { others };
        }
        classes
    }

    /// The kinds of packets that share data's queue.
    pub fn with_data(&self) -> Kinds {
        self.data().kinds
    }

    /// True if packets of this kind share a queue with data, of any flow.
    pub fn may_wait_with_data(&self, kind: Kind) -> bool {
        self.all().iter().any(|class| class.kinds.has(Kind::Data) && class.kinds.has(kind))
    }

    /// The kinds of packets that are charged to buffers and paused, if their flow has no class of its own.
    pub fn charged(&self) -> Kinds {
        self.all()
            .iter()
            .filter(|class| class.charged && class.group == 0)
            .fold(Kinds::of(&[]), |all, class| all.and(class.kinds))
    }

    /// True for the presets and for tables of their form, for which engines may be faster: CNPs before replies before data,
    /// without limits. CNPs may wait with replies, and replies with data. Probes wait with replies. Only the class of data is
    /// charged.
    pub fn is_plain(&self) -> bool {
        let (data, replies) = (self.of(Kind::Data), self.of(Kind::Ack));
        let own_cnps = self.table[0].kinds == Kinds::of(&[Kind::Cnp]);
        let plain = |(class, settings): (usize, &Class)| {
            settings.service == Service::Strict
                && settings.group == 0
                && settings.cap.is_none()
                && settings.charged == (class == data)
        };
        self.all().iter().enumerate().all(plain)
            && [Kind::Nack, Kind::Control, Kind::Probe].iter().all(|kind| self.of(*kind) == replies)
            && (own_cnps || self.of(Kind::Cnp) == replies)
            && data + 1 == self.all().len()
            && self.all().len() == 1 + usize::from(own_cnps) + usize::from(replies != data)
    }
}

/// Queues that belong to the flows of some traffic classes alone; empty if all flows share the queues of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnQueues {
    /// By traffic class: the number of the class of a port in which packets of each kind wait, by the kind's number.
    pub rows: Vec<[u8; Kind::ALL.len()]>,
    /// Settings of switches and ports for each such class of a port, by [`Class::group`] minus 1. Each has pauses of its own.
    pub groups: Vec<Group>,
}

/// Settings that apply to one class of a port in place of [`Plan::ports`] and [`Plan::switches`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// By [`LinkId`].
    pub ports: Vec<PortSettings>,
    /// By node number minus the number of hosts. The buffer is that of [`Plan::switches`].
    pub switches: Vec<SwitchSettings>,
}

impl OwnQueues {
    /// True if all flows share the queues of a port.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Classes in which the queue pairs of each port of a host take turns; empty if all take turns with one another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NicClasses {
    /// By traffic class: the number of its class in `table`.
    pub of: Vec<u8>,
    /// One to [`Classes::MOST`] classes.
    pub table: Vec<NicClass>,
}

/// A class of queue pairs at a port of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicClass {
    /// Order of its packets among those of other classes. Packets that a queue pair sends before its data count, too; replies
    /// belong to no such class.
    pub service: Service,
    /// Most that the class sends, preamble and gap included, if it is limited.
    pub rate: Option<Rate>,
}

/// The moment at which a queue decides on a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkAt {
    /// When a packet leaves the queue, by the bytes behind it (HPCC family of ns-3 simulators).
    #[default]
    Dequeue,
    /// When a packet joins the queue, by the bytes ahead of it.
    Enqueue,
}

/// Random early marking of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marking {
    /// Longest queue without marks.
    pub kmin: Bytes,
    /// Queue length above which every packet is marked.
    pub kmax: Bytes,
    /// Probability just below `kmax`.
    pub pmax: Probability,
    /// Moment of the decision.
    pub at: MarkAt,
    /// The decision goes by an average of the queue: at each decision it comes closer to the queue by this power of 1/2. 0 is the queue
    /// itself.
    pub weight: u8,
}

impl Marking {
    /// True if a queue of `queue` bytes marks a packet; `draw` yields a uniform 64-bit number if the decision is random.
    #[inline]
    pub fn marks(&self, queue: u64, draw: impl FnOnce() -> u64) -> bool {
        let (kmin, kmax) = (self.kmin.get(), self.kmax.get());
        queue > kmin && (queue > kmax || self.pmax.hits_scaled(draw(), queue - kmin, kmax - kmin))
    }
}

/// Settings of one port of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// Marking of the egress queue; `None` for no marks.
    pub marking: Option<Marking>,
    /// Buffer that is reserved for packets that arrive at this port after it has sent a pause frame. Under [`FlowControl::Credits`],
    /// all that a virtual channel of this port may hold.
    pub headroom: Bytes,
    /// Largest queue of data under [`FlowControl::Capped`].
    pub cap: Bytes,
    /// Under [`FlowControl::Lossless`], threshold of this ingress port in place of [`Pfc::alpha`], and at least that.
    pub alpha: Option<(u32, u32)>,
}

/// Priority flow control of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Threshold of an ingress port: this share of the free shared buffer, (numerator, denominator). Above it the port
    /// pauses its neighbour. If ports differ, the least of them.
    pub alpha: (u32, u32),
    /// The port resumes its neighbour this far below the threshold.
    pub resume_offset: Bytes,
    /// What the switch does if a neighbour pauses it for too long.
    pub watchdog: Option<Watchdog>,
}

/// Credit-based flow control of a switch: each virtual channel of an ingress port has [`PortSettings::headroom`] for itself, and the
/// neighbour counts what of it is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    /// Bytes of one credit: a frame takes whole credits.
    pub unit: u32,
    /// Bytes of wire between two words that return credits of a virtual channel.
    pub spacing: Bytes,
}

impl Credits {
    /// Most credits of a virtual channel: counters have 20 bits (SAI, doc/CBFC).
    pub const MOST: u64 = (1 << 20) - 1;

    /// Bytes of all credits that a frame takes.
    #[inline]
    pub const fn of(self, frame: u32) -> u64 {
        frame.div_ceil(self.unit) as u64 * self.unit as u64
    }
}

/// The watchdog of a switch, which looks for egress queues that stay paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// Time between two polls.
    pub poll: Time,
    /// A queue is stormed after so many polls that each found it paused since the poll before, see [`Watchdog::held`].
    pub detection: u64,
    /// It is restored after so many polls that each found no pause since the poll before.
    pub restoration: u64,
    /// True if the queue's packets are dropped, and those that come from its port; false if they leave in spite of pauses.
    pub drops: bool,
    /// True if a poll finds a storm only where a queue holds packets, has sent none since the poll before, and was paused for nearly
    /// all of the time.
    pub held: bool,
}

/// Behaviour of a switch whose buffer fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControl {
    /// The switch pauses its neighbours.
    Lossless(Pfc),
    /// The switch grants credits to its neighbours, who send nothing without.
    Credits(Credits),
    /// The switch refuses packets beyond a share of the free buffer.
    Lossy {
        /// Largest share of the free buffer for one egress queue: (numerator, denominator).
        alpha: (u32, u32),
    },
    /// The switch refuses packets beyond a fixed length of the egress queue ([`PortSettings::cap`]).
    Capped {
        /// The smallest cap of its ports.
        least: Bytes,
    },
}

impl FlowControl {
    /// True if the switch pauses its neighbours, or grants them credits, instead of dropping packets.
    pub const fn is_lossless(self) -> bool {
        matches!(self, FlowControl::Lossless(_) | FlowControl::Credits(_))
    }

    /// The credits of the switch, if it grants any.
    pub const fn credits(self) -> Option<Credits> {
        match self {
            FlowControl::Credits(credits) => Some(credits),
            _ => None,
        }
    }

    /// The watchdog of PFC, if the switch has one.
    pub const fn watchdog(self) -> Option<Watchdog> {
        match self {
            FlowControl::Lossless(pfc) => pfc.watchdog,
            _ => None,
        }
    }
}

/// Fate of the packets that a switch refuses. Lossless switches drop them in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The switch drops the packet.
    #[default]
    Drop,
    /// The switch cuts a data packet: its headers go on to the receiver in their own class, and its payload is lost.
    /// Packets of all other kinds are dropped.
    Cut(Cut),
}

/// Rule by which a switch cuts data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Frame of a cut packet, bytes. Shorter packets keep their size.
    pub frame: u32,
    /// Packet that is cut.
    pub victim: Victim,
}

/// Packet that a switch cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The packet that arrives.
    Arriving,
    /// By a coin, either the packet that arrives or the newest data packet that waits in the queue. The waiting packet gives
    /// its place to the arriving one; it is exempt if it is the shorter of the two.
    Even,
}

/// Settings of one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchSettings {
    /// Packet buffer that all ports share.
    pub buffer: Bytes,
    /// Bound on queues.
    pub flow_control: FlowControl,
    /// Fate of refused packets.
    pub overflow: Overflow,
    /// Units and parts of the buffer.
    pub memory: Memory,
}

/// How a switch divides its packet buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Size of a cell, bytes: a packet takes whole cells. With 1, a packet takes its own size.
    pub cell: u32,
    /// Number of equal slices of the shared part. A port uses one of them, see [`Memory::slice`].
    pub slices: u16,
    /// Buffer of each ingress port and class that pauses, and of each queue of a class that drops, which no other uses. It lies beside
    /// [`SwitchSettings::buffer`].
    pub guarantee: Bytes,
    /// Headroom that all ports together may use, if it is less than the sum of theirs. It lies beside [`SwitchSettings::buffer`].
    pub shared_headroom: Option<Bytes>,
    /// True if the headrooms lie beside [`SwitchSettings::buffer`], false if they are part of it.
    pub headroom_beside: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Memory::PLAIN
    }
}

impl Memory {
    /// A buffer in bytes that all ports share whole, headrooms included.
    pub const PLAIN: Memory =
        Memory { cell: 1, slices: 1, guarantee: Bytes(0), shared_headroom: None, headroom_beside: false };

    /// True if the buffer counts bytes in one pool that has the headrooms of all ports.
    pub fn is_plain(&self) -> bool {
        *self == Memory::PLAIN
    }

    /// Bytes that a packet takes: whole cells.
    #[inline]
    pub fn room(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.cell.into()).saturating_mul(self.cell.into())
    }

    /// The slice of a port of a switch with `ports` ports: neighbouring ports share a slice. Our choice, as which port of a chip has
    /// which slice is not public.
    #[inline]
    pub fn slice(&self, port: usize, ports: usize) -> usize {
        port * usize::from(self.slices) / ports.max(1)
    }
}

/// A queue pair: a reliable connection between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qp {
    /// Sender.
    pub from: HostId,
    /// Receiver.
    pub to: HostId,
    /// Messages of the queue pair, as indices into [`Plan::messages`].
    pub messages: Range<u32>,
    /// Number of the path to which the plan pins the queue pair. Only schemes that follow such paths read it.
    pub path: Option<u16>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The queue pair that carries the message.
    pub qp: QpId,
    /// Payload in bytes.
    pub bytes: u64,
    /// Earliest time at which the message is posted; see also `needs`.
    pub start: Time,
    /// Number of triggers that must fire before the message is posted. All of them fire at its sender's node, at any port.
    pub needs: u32,
    /// Triggers that fire at the receiver when the whole message has arrived, as a range of [`Plan::triggers`].
    pub on_received: Range<u32>,
    /// Triggers that fire at the sender when the message's last byte is acknowledged, as a range of [`Plan::triggers`].
    pub on_acked: Range<u32>,
    /// Index of the message's job in [`Plan::jobs`].
    pub job: u16,
    /// Number of the message's group (communicator) within the job.
    pub group: u16,
    /// Index of the operation in [`Plan::operations`], or [`Operation::NONE`].
    pub operation: u32,
}

impl Message {
    /// A message that waits for its start alone, and triggers nothing.
    pub const fn plain(qp: QpId, bytes: u64, start: Time, job: u16) -> Self {
        let operation = Operation::NONE;
        Message { qp, bytes, start, needs: 0, on_received: 0..0, on_acked: 0..0, job, group: 0, operation }
    }
}

/// A message of a workload that is several messages of the plan: split into subflows, or a READ with its request. What waits for it
/// waits for all its subflows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The subflows, in ascending order: two or more, or the data of a READ.
    pub subflows: Box<[MessageId]>,
    /// The request of a READ, which goes from the receiver of the data to its sender.
    pub request: Option<MessageId>,
}

/// What a trigger starts, once all its triggers have fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trigger {
    /// A message, which is posted.
    Message(MessageId),
    /// A task of the same host, which is ready.
    Task(TaskId),
}

/// Work of a host that takes time and sends nothing: compute, or a copy between the GPUs of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The host.
    pub node: NodeId,
    /// What it occupies, and for how long.
    pub work: Work,
    /// Earliest time at which the task is ready; see also `needs`.
    pub start: Time,
    /// Number of triggers that must fire before the task is ready. All of them fire at its host.
    pub needs: u32,
    /// Triggers that fire when the task ends, as a range of [`Plan::triggers`].
    pub on_done: Range<u32>,
    /// Index of the task's job in [`Plan::jobs`].
    pub job: u16,
    /// Part of an operation that the task is, for the results.
    pub role: Role,
    /// GPU to which the task belongs: its rank.
    pub rank: u32,
    /// Index of the operation in [`Plan::operations`], or [`Operation::NONE`].
    pub operation: u32,
}

impl Task {
    /// A task of the first job that belongs to no operation.
    pub fn new(node: NodeId, work: Work) -> Self {
        let (role, rank, operation) = (Role::Inner, 0, Operation::NONE);
        Task { node, work, start: Time::ZERO, needs: 0, on_done: 0..0, job: 0, role, rank, operation }
    }
}

/// Part of an operation that a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The rank computes.
    Compute,
    /// The rank enters the operation.
    Enter,
    /// The rank has its result.
    Leave,
    /// The task is inside an operation.
    #[default]
    Inner,
}

/// A piece of a job: a collective of some ranks, a transfer between two ranks, or a computation that several ranks do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// What is done, such as `all-reduce` or `forward`.
    pub name: &'static str,
    /// Kind of parallelism that needs the operation, such as `tp`; empty for none.
    pub dimension: &'static str,
    /// Size as nccl-tests count it, bytes; 0 for computations.
    pub bytes: u64,
    /// Number of ranks of a collective.
    pub ranks: u32,
    /// Algorithm of a collective; empty for all others.
    pub algorithm: &'static str,
    /// Protocol of a collective; empty for all others.
    pub protocol: &'static str,
    /// Number of channels of a collective.
    pub channels: u32,
    /// The next best algorithm and protocol by NCCL's model, and by how many per cent it takes longer, if that is 10 at most.
    pub near_tie: Option<(&'static str, &'static str, u8)>,
    /// Time of a collective on an idle fabric by the closed form of its costs, where there is one.
    pub closed_form: Option<Time>,
    /// Bytes on the bus per byte of size, as nccl-tests define it: (numerator, denominator).
    pub bus: (u32, u32),
    /// Index of the operation's job in [`Plan::jobs`].
    pub job: u16,
    /// Training step, counted from 0.
    pub step: u32,
    /// Micro-batch, counted from 0.
    pub micro_batch: u32,
    /// Layer or bucket, counted from 0.
    pub layer: u32,
}

impl Operation {
    /// The number of the operation of messages and tasks that belong to none.
    pub const NONE: u32 = u32::MAX;
}

/// The work of a task. A stream, which is a number within the host, does one piece of work after another, in the order in
/// which they are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing is occupied.
    Free {
        /// Time from ready to end.
        time: Time,
    },
    /// A stream is occupied.
    On {
        /// The stream.
        stream: u32,
        /// Time for which it is occupied.
        time: Time,
    },
    /// A copy cuts through: its first byte enters `to` a `delay` after it has left `from`.
    Copy {
        /// Stream by which the bytes leave.
        from: u32,
        /// Stream by which they enter.
        to: u32,
        /// Time for which each of the two is occupied.
        time: Time,
        /// Time from one to the other.
        delay: Time,
    },
    /// A slice of a collective: an engine of a GPU starts it, and it is copied as by `Copy` or handed to a NIC.
    Slice {
        /// The engine, a number within the host apart from its streams; [`Work::NONE`] if no engine is occupied.
        engine: u32,
        /// Stream by which the bytes leave; [`Work::NONE`] if a NIC takes them.
        from: u32,
        /// Stream by which they enter.
        to: u32,
        /// Index of its times in [`Plan::slices`].
        times: u32,
    },
}

/// Times of a slice of a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SliceTimes {
    /// For which the engine is occupied.
    pub busy: Time,
    /// For which the stream is occupied by which the bytes leave.
    pub out: Time,
    /// For which the stream is occupied by which they enter.
    pub enter: Time,
    /// From one to the other.
    pub delay: Time,
    /// From the engine's start to the end of the task, at least.
    pub lasts: Time,
    /// Bytes that leave by a stream.
    pub bytes: u64,
}

impl SliceTimes {
    /// The end of a slice that its engine starts at `start`, ps, and whose bytes leave from `left` and enter from `entered` on.
    pub fn end(&self, start: u64, left: u64, entered: u64) -> u64 {
        let copied = (left + self.delay.ps() + self.out.ps()).max(entered + self.enter.ps());
        copied.max(start + self.lasts.ps())
    }
}

impl Work {
    /// No engine, or no stream.
    pub const NONE: u32 = u32::MAX;

    /// Streams that the work occupies.
    pub fn streams(&self) -> impl Iterator<Item = u32> {
        let (first, second) = match *self {
            Work::Free { .. } | Work::Slice { from: Work::NONE, .. } => (None, None),
            Work::On { stream, .. } => (Some(stream), None),
            Work::Copy { from, to, .. } | Work::Slice { from, to, .. } => (Some(from), Some(to)),
        };
        first.into_iter().chain(second)
    }
}

/// A job: one entry of the scenario's workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Name of the job.
    pub name: String,
    /// Time at which the job starts.
    pub start: Time,
    /// Number of groups (communicators).
    pub groups: u16,
    /// True for a background job: the run ends when all other jobs have finished, and is complete without it.
    pub background: bool,
    /// Index of the job's traffic class in [`Plan::traffic_classes`].
    pub class: u8,
    /// Tokens that each step trains on; 0 if the job is no training of a whole model.
    pub tokens: u64,
}

impl Plan {
    /// The job of a message.
    pub fn job(&self, message: MessageId) -> &Job {
        &self.jobs[self.messages[message.index()].job as usize]
    }

    /// The limit of [`Plan::retries`] on a queue pair.
    pub fn retries_of(&self, qp: QpId) -> Option<u8> {
        *self.retries.get(usize::from(self.class_of(qp)))?
    }

    /// Number of flows: the messages of workloads. A message that is several messages of the plan counts once.
    pub fn flows(&self) -> usize {
        let parts = |whole: &Whole| whole.subflows.len() + usize::from(whole.request.is_some());
        self.wholes.iter().fold(self.messages.len(), |flows, whole| flows + 1 - parts(whole))
    }

    /// The salt of a switch's hashes.
    pub fn salt(&self, switch: NodeId) -> u64 {
        Key::new(self.seed, Purpose::Salt, u64::from(switch.0)).salt()
    }

    /// Rate at which the queue pairs of a host may send: that of its link, or of all ports of its NIC if they spread over them.
    pub fn line(&self, host: HostId) -> Rate {
        let rate = self.fabric.uplink(host).rate;
        match self.sharing {
            Some(PortSharing { ports, choice: PortChoice::Spread }) => Rate(rate.bps() * u64::from(ports)),
            _ => rate,
        }
    }

    /// All rates that links have at any time of the run, each once, in ascending order. A telemetry record holds the index
    /// of a rate.
    pub fn rates(&self) -> Vec<Rate> {
        let changed = self.failures.changes().iter().filter_map(|change| change.rate);
        let all: BTreeSet<Rate> = self.fabric.links().iter().map(|link| link.rate).chain(changed).collect();
        all.into_iter().collect()
    }

    /// True if engines may be faster, because the queues of ports have a simple order, see [`Classes::is_plain`], no marking averages, no
    /// port counts credits, no watchdog reads queues, and no queue is counted by itself.
    pub fn has_plain_queues(&self) -> bool {
        let averages = |port: &PortSettings| port.marking.is_some_and(|marking| marking.weight > 0);
        self.classes.is_plain()
            && !self.ports.iter().any(averages)
            && !self.has_credits()
            && !self.record.queues
            && !self
                .settings_of_groups()
                .flatten()
                .any(|switch| switch.flow_control.watchdog().is_some_and(|dog| dog.held))
    }

    /// True if a switch grants credits.
    pub fn has_credits(&self) -> bool {
        self.settings_of_groups().flatten().any(|switch| switch.flow_control.credits().is_some())
    }

    /// True if a switch cuts data packets that do not fit into a queue.
    pub fn cuts(&self) -> bool {
        let own = self.own_queues.groups.iter().flat_map(|group| &group.switches);
        self.switches.iter().chain(own).any(|switch| matches!(switch.overflow, Overflow::Cut(_)))
    }

    /// The traffic class of a queue pair, as an index into [`Plan::traffic_classes`].
    pub fn class_of(&self, qp: QpId) -> u8 {
        let messages = &self.qps[qp.index()].messages;
        let job = match messages.is_empty() {
            true => self.posted,
            false => Some(self.messages[messages.start as usize].job),
        };
        job.map_or(0, |job| self.jobs[usize::from(job)].class)
    }

    /// The class of a port in which packets of a queue pair wait.
    pub fn port_class(&self, qp: QpId, kind: Kind) -> &Class {
        let own = match self.own_queues.is_empty() {
            true => None,
            false => self.own_queues.rows.get(usize::from(self.class_of(qp))),
        };
        let number = own.map_or_else(|| self.classes.of(kind), |row| row[kind as usize].into());
        &self.classes.all()[number]
    }

    /// The settings of all switches for each group of queues, see [`Class::group`].
    pub fn settings_of_groups(&self) -> impl Iterator<Item = &[SwitchSettings]> {
        let own = self.own_queues.groups.iter().map(|group| &group.switches[..]);
        std::iter::once(&self.switches[..]).chain(own)
    }

    /// Lead of a host's clock over true time: drawn once per host, uniform up to [`Plan::clock_spread`].
    pub fn clock_ahead(&self, host: HostId) -> Time {
        let draw = Key::new(self.seed, Purpose::Clock, host.0.into()).draw(0);
        Time(scaled(draw, self.clock_spread.ps()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_certain_only_above_kmax() {
        let marking = Marking {
            kmin: Bytes(10_000),
            kmax: Bytes(20_000),
            pmax: Probability::new(0.2),
            at: MarkAt::Dequeue,
            weight: 0,
        };
        // Of 1,000 packets with evenly spread draws, this many are marked.
        let marks = |queue| {
            let draws = (0..1_000).map(|i| u64::MAX / 2_000 * (2 * i + 1));
            draws.filter(|draw| marking.marks(queue, || *draw)).count()
        };
        let queues = [0, 9_999, 10_000, 15_000, 20_000, 20_001, u64::MAX];
        assert_eq!(queues.map(marks), [0, 0, 0, 100, 200, 1_000, 1_000]);
    }

    #[test]
    fn plain_classes_have_the_order_of_the_presets() {
        const ACKS: [Kind; 4] = [Kind::Ack, Kind::Nack, Kind::Control, Kind::Probe];
        let strict = |kinds: &[Kind]| Class::strict(Kinds::of(kinds));
        let (acks, cnps) = (Kinds::of(&ACKS), Kinds::of(&[Kind::Cnp]));
        let rest = |others: Kinds| Class::strict(others.others()).of_data();
        for plain in [Classes::STRICT, Classes::ONE, Classes::CNP_FIRST] {
            assert!(plain.is_plain());
        }
        let probes = Classes::STRICT.beside_data(Kind::Probe);
        assert!(!probes.is_plain(), "probes with data");
        assert_eq!((probes.of(Kind::Probe), probes.of(Kind::Control)), (2, 1));
        assert_eq!(Classes::ONE.beside_data(Kind::Probe), Classes::ONE);
        assert!(Classes::new(&[Class::strict(acks.and(cnps)), rest(acks.and(cnps))]).is_plain());
        assert!(Classes::new(&[Class::strict(cnps), Class::strict(acks), rest(acks.and(cnps))]).is_plain());
        let capped = Class { cap: Some(Bytes(1_000_000)), ..Class::strict(acks.and(cnps)) };
        let weighted = Class { service: Service::Weighted(3), ..Class::strict(acks.and(cnps)) };
        let charged = Class { charged: true, ..Class::strict(acks.and(cnps)) };
        for first in [capped, weighted, charged] {
            assert!(!Classes::new(&[first, rest(acks.and(cnps))]).is_plain(), "{first:?}");
        }
        let uncharged = Class { charged: false, ..rest(acks.and(cnps)) };
        assert!(!Classes::new(&[Class::strict(acks.and(cnps)), uncharged]).is_plain());
        let data = strict(&[Kind::Data]).of_data();
        let others = Kinds::of(&[Kind::Data]).others();
        assert!(!Classes::new(&[data, Class::strict(others)]).is_plain(), "data first");
        assert!(
            !Classes::new(&[Class::strict(acks), rest(acks)]).is_plain(),
            "CNPs with data, ACKs before it"
        );
        let trimmed = Kinds::of(&[Kind::Trimmed]);
        assert!(
            !Classes::new(&[Class::strict(trimmed), Class::strict(acks.and(cnps)), {
                rest(trimmed.and(acks).and(cnps))
            }])
            .is_plain(),
            "a class of cut packets alone"
        );
        let few = Kinds::of(&[Kind::Ack, Kind::Cnp]);
        assert!(
            !Classes::new(&[Class::strict(few), rest(few)]).is_plain(),
            "NACKs with data, ACKs before it"
        );
    }

    #[test]
    fn equal_thresholds_mark_every_packet_above_them_without_a_draw() {
        let limit = Bytes(64_000);
        let marking =
            Marking { kmin: limit, kmax: limit, pmax: Probability::new(1.0), at: MarkAt::Enqueue, weight: 0 };
        let marks = |queue| marking.marks(queue, || panic!("the decision is certain"));
        assert_eq!([63_999, 64_000, 64_001].map(marks), [false, false, true]);
    }
}
