//! Everything one run needs, checked: what `scenario` makes and the engine obeys.

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
    /// Root of every draw.
    pub seed: u64,
    /// Nodes, links, routes.
    pub fabric: Fabric,
    /// Frame sizes and clock.
    pub wire: Wire,
    /// Traffic classes of every port.
    pub classes: Classes,
    /// Settings of every port, by [`LinkId`] of its outgoing direction.
    pub ports: Vec<PortSettings>,
    /// Settings of every switch, by node number less the number of hosts.
    pub switches: Vec<SwitchSettings>,
    /// Whether links lose ACKs and NACKs as well as data. CNPs, signals and PFC frames are never lost.
    pub lose_replies: bool,
    /// Packets that are lost on purpose.
    pub lost: Vec<ListedLoss>,
    /// Links that go down, come back or slow down, and what routing makes of it.
    pub failures: Failures,
    /// Queue pairs, sorted by destination host.
    pub qps: Vec<Qp>,
    /// Messages, sorted by queue pair; within one they are posted strictly in this order.
    pub messages: Vec<Message>,
    /// Messages that others set free, see [`Message::on_received`] and [`Message::on_acked`].
    pub triggers: Vec<MessageId>,
    /// Jobs, for the results.
    pub jobs: Vec<Job>,
    /// Names of the traffic classes to which jobs belong.
    pub traffic_classes: Vec<String>,
    /// Hosts' clocks are ahead of true time by up to this much, each by its own, see [`Plan::clock_ahead`].
    pub clock_spread: Time,
    /// End the run at this time whatever is left.
    pub stop_after: Option<Time>,
    /// Give up when no data packet has been accepted for this long while messages wait.
    pub no_progress: Time,
    /// What to record besides the results.
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
    /// The PSN that it carries.
    pub psn: Psn,
    /// How many times it is lost before it passes.
    pub times: u32,
}

/// How a port treats kinds of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classes {
    /// CNP before ACK and NACK before data, strictly; only data is charged to buffers and paused.
    #[default]
    Strict,
    /// One queue for all; everything is charged and paused.
    One,
    /// CNP first, and one queue for all else, which is charged and paused.
    CnpFirst,
}

impl Classes {
    /// The kinds that wait with data, and are charged and paused like it.
    pub const fn with_data(self) -> Kinds {
        match self {
            Classes::Strict => Kinds::of(&[Kind::Data]),
            Classes::One => Kinds::of(&[Kind::Data, Kind::Ack, Kind::Nack, Kind::Cnp, Kind::Signal]),
            Classes::CnpFirst => Kinds::of(&[Kind::Data, Kind::Ack, Kind::Nack, Kind::Signal]),
        }
    }
}

/// When a queue decides on a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkAt {
    /// When a packet leaves the queue, by what is left behind it (HPCC family of ns-3 simulators).
    #[default]
    Dequeue,
    /// When a packet joins the queue, by what stands before it.
    Enqueue,
}

/// Random early marking of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marking {
    /// No marks up to this queue.
    pub kmin: Bytes,
    /// Every packet is marked above this queue.
    pub kmax: Bytes,
    /// Probability just below `kmax`.
    pub pmax: Probability,
    /// When it is decided.
    pub at: MarkAt,
}

impl Marking {
    /// Whether it marks at a queue of so many bytes; `draw` gives a uniform 64-bit number if one is needed.
    #[inline]
    pub fn marks(&self, queue: u64, draw: impl FnOnce() -> u64) -> bool {
        let (kmin, kmax) = (self.kmin.get(), self.kmax.get());
        queue > kmin && (queue > kmax || self.pmax.scaled(queue - kmin, kmax - kmin).hits(draw()))
    }
}

/// Settings of one port of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// Marks on the way out; `None` marks nothing.
    pub marking: Option<Marking>,
    /// Buffer kept for what still arrives at this port after a pause was sent.
    pub headroom: Bytes,
}

/// Priority flow control of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Pause when an ingress holds this share of the free shared buffer: (numerator, denominator).
    pub alpha: (u32, u32),
    /// Resume this much below the threshold.
    pub resume_offset: Bytes,
}

/// What a switch does when its buffer fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It pauses its neighbours.
    Lossless(Pfc),
    /// It drops what would give one egress queue more than this share of the free buffer:
    /// (numerator, denominator).
    Lossy {
        /// Share of the free buffer for one egress queue.
        alpha: (u32, u32),
    },
}

/// Settings of one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchSettings {
    /// Packet buffer, shared by all ports.
    pub buffer: Bytes,
    /// Pause or drop.
    pub flow: Flow,
}

/// A queue pair: a reliable connection between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qp {
    /// Sender.
    pub from: HostId,
    /// Receiver.
    pub to: HostId,
    /// Its messages, as indices into [`Plan::messages`].
    pub messages: Range<u32>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The queue pair that carries it.
    pub qp: QpId,
    /// Payload.
    pub bytes: u64,
    /// Earliest start; together with `needs` it says when the message is posted.
    pub start: Time,
    /// How many triggers must fire before it is posted. All fire at its own sender.
    pub needs: u32,
    /// Triggers that fire at the receiver when it has arrived whole, as a range of [`Plan::triggers`].
    pub on_received: Range<u32>,
    /// Triggers that fire at the sender when its last byte is acknowledged, likewise.
    pub on_acked: Range<u32>,
    /// Its job.
    pub job: u16,
    /// Its group (communicator) within the job.
    pub group: u16,
}

/// A job: one entry of the scenario's workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Name.
    pub name: String,
    /// Start.
    pub start: Time,
    /// Number of groups (communicators).
    pub groups: u16,
    /// It ends with the others and does not count for completeness.
    pub background: bool,
    /// Its traffic class, as an index into [`Plan::traffic_classes`].
    pub class: u8,
}

impl Plan {
    /// The message's job.
    pub fn job(&self, message: MessageId) -> &Job {
        &self.jobs[self.messages[message.index()].job as usize]
    }

    /// The rates that links have at any time, each once, in order: a telemetry record names one by its place.
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

    /// How far a host's clock is ahead of true time: drawn once, evenly up to [`Plan::clock_spread`].
    pub fn clock_ahead(&self, host: HostId) -> Time {
        let draw = Key::new(self.seed, Purpose::Clock, host.0.into()).draw(0);
        Time(((u128::from(draw) * u128::from(self.clock_spread.ps())) >> 64) as u64)
    }
}
