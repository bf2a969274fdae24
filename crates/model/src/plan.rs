//! The checked input of a run, which `scenario` makes and the engine runs.

use crate::draw::{Key, Purpose};
use crate::packet::Kinds;
use crate::record::RecordPlan;
use crate::{
    Bytes, Fabric, Failures, HostId, Kind, LinkId, MessageId, Probability, Psn, QpId, Rate, Time, Wire,
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
    /// Settings of every port, by [`LinkId`] of its outgoing direction.
    pub ports: Vec<PortSettings>,
    /// Settings of every switch, by node number minus the number of hosts.
    pub switches: Vec<SwitchSettings>,
    /// True if links lose ACKs and NACKs as well as data. CNPs, signals and PFC frames are never lost.
    pub lose_replies: bool,
    /// Packets that links lose on purpose.
    pub lost: Vec<ListedLoss>,
    /// Links that go down, come back or slow down, and the changes of routes that follow.
    pub failures: Failures,
    /// Queue pairs, sorted by destination host.
    pub qps: Vec<Qp>,
    /// Messages, sorted by queue pair. Each queue pair posts its messages strictly in this order.
    pub messages: Vec<Message>,
    /// Messages that wait for other messages, see [`Message::on_received`] and [`Message::on_acked`].
    pub triggers: Vec<MessageId>,
    /// Jobs, for the results.
    pub jobs: Vec<Job>,
    /// Names of the traffic classes to which jobs belong.
    pub traffic_classes: Vec<String>,
    /// Largest lead of a host's clock over true time, see [`Plan::clock_ahead`].
    pub clock_spread: Time,
    /// Time at which the run ends even if messages are left.
    pub stop_after: Option<Time>,
    /// The run gives up if no data packet is accepted for this long while messages wait.
    pub no_progress: Time,
    /// Recordings beside the results.
    pub record: RecordPlan,
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

/// Traffic classes of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classes {
    /// Strict priority: CNP before ACK and NACK before data. Only data is charged to buffers and paused.
    #[default]
    Strict,
    /// One queue for all packets, which are all charged and paused.
    One,
    /// CNP first, and one queue for all other packets, which are charged and paused.
    CnpFirst,
}

impl Classes {
    /// The kinds of packets that share data's queue, and are charged and paused like data.
    pub const fn with_data(self) -> Kinds {
        match self {
            Classes::Strict => Kinds::of(&[Kind::Data]),
            Classes::One => Kinds::of(&[Kind::Data, Kind::Ack, Kind::Nack, Kind::Cnp, Kind::Signal]),
            Classes::CnpFirst => Kinds::of(&[Kind::Data, Kind::Ack, Kind::Nack, Kind::Signal]),
        }
    }
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
}

impl Marking {
    /// True if a queue of `queue` bytes marks a packet; `draw` yields a uniform 64-bit number if the decision is random.
    #[inline]
    pub fn marks(&self, queue: u64, draw: impl FnOnce() -> u64) -> bool {
        let (kmin, kmax) = (self.kmin.get(), self.kmax.get());
        queue > kmin && (queue > kmax || self.pmax.scaled(queue - kmin, kmax - kmin).hits(draw()))
    }
}

/// Settings of one port of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// Marking of the egress queue; `None` for no marks.
    pub marking: Option<Marking>,
    /// Buffer that is reserved for packets that arrive at this port after it has sent a pause frame.
    pub headroom: Bytes,
}

/// Priority flow control of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Threshold of an ingress port: this share of the free shared buffer, (numerator, denominator). Above it the port
    /// pauses its neighbour.
    pub alpha: (u32, u32),
    /// The port resumes its neighbour this far below the threshold.
    pub resume_offset: Bytes,
}

/// Behaviour of a switch whose buffer fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControl {
    /// The switch pauses its neighbours.
    Lossless(Pfc),
    /// The switch drops packets.
    Lossy {
        /// Largest share of the free buffer for one egress queue: (numerator, denominator).
        alpha: (u32, u32),
    },
}

/// Settings of one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchSettings {
    /// Packet buffer that all ports share.
    pub buffer: Bytes,
    /// Pauses or drops.
    pub flow_control: FlowControl,
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
    /// Number of triggers that must fire before the message is posted. All of them fire at its own sender.
    pub needs: u32,
    /// Triggers that fire at the receiver when the whole message has arrived, as a range of [`Plan::triggers`].
    pub on_received: Range<u32>,
    /// Triggers that fire at the sender when the message's last byte is acknowledged, as a range of [`Plan::triggers`].
    pub on_acked: Range<u32>,
    /// Index of the message's job in [`Plan::jobs`].
    pub job: u16,
    /// Number of the message's group (communicator) within the job.
    pub group: u16,
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
}

impl Plan {
    /// The job of a message.
    pub fn job(&self, message: MessageId) -> &Job {
        &self.jobs[self.messages[message.index()].job as usize]
    }

    /// All rates that links have at any time of the run, each once, in ascending order. A telemetry record holds the index
    /// of a rate.
    pub fn rates(&self) -> Vec<Rate> {
        let changed = self.failures.changes().iter().filter_map(|change| change.rate);
        let all: BTreeSet<Rate> = self.fabric.links().iter().map(|link| link.rate).chain(changed).collect();
        all.into_iter().collect()
    }

    /// The traffic class of a queue pair, as an index into [`Plan::traffic_classes`].
    pub fn class_of(&self, qp: QpId) -> u8 {
        let first = self.qps[qp.index()].messages.start as usize;
        self.messages.get(first).map_or(0, |m| self.jobs[m.job as usize].class)
    }

    /// Lead of a host's clock over true time: drawn once per host, uniform up to [`Plan::clock_spread`].
    pub fn clock_ahead(&self, host: HostId) -> Time {
        let draw = Key::new(self.seed, Purpose::Clock, host.0.into()).draw(0);
        Time(((u128::from(draw) * u128::from(self.clock_spread.ps())) >> 64) as u64)
    }
}
