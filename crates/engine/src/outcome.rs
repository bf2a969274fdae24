//! The outcome of a run: integers only, equal on every machine, engine and number of threads.

use crate::merge::merge;
use model::{Bytes, HostId, Kind, LinkId, MessageId, NodeId, Packet, Psn, QpId, Time};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every foreground message was delivered and acknowledged.
    Finished,
    /// The run reached the plan's `stop_after`.
    Stopped,
    /// The user interrupted it.
    Interrupted,
    /// Messages wait, and nothing moves.
    Stalled(Stall),
    /// A queue pair had no retries left.
    RetryExceeded(Exceeded),
    /// Memory was running out.
    Memory(Memory),
}

impl Ending {
    /// The ending in one word.
    pub const fn name(&self) -> &'static str {
        match self {
            Ending::Finished => "finished",
            Ending::Stopped => "stopped",
            Ending::Interrupted => "interrupted",
            Ending::Stalled(_) => "stalled",
            Ending::RetryExceeded(_) => "retry-exceeded",
            Ending::Memory(_) => "memory",
        }
    }
}

/// Memory that packets and records take in the engine, bytes. Free slots of their buffers are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Queues of ports, and packets that schemes hold.
    pub queues: u64,
    /// The link whose queue takes the most memory, and that memory; `None` if all queues are empty.
    pub longest: Option<(LinkId, u64)>,
    /// Packets on links.
    pub in_flight: u64,
    /// Events, frames and series.
    pub records: u64,
}

impl Memory {
    /// Adds the queue of a link.
    pub(crate) fn add_queue(&mut self, link: usize, bytes: u64) {
        self.queues += bytes;
        if bytes > self.longest.map_or(0, |(_, most)| most) {
            self.longest = Some((LinkId(link as u32), bytes));
        }
    }
}

/// The failure of a queue pair whose timer has fired once more than its limit of retries allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Time of the failure.
    pub at: Time,
    /// The queue pair.
    pub qp: QpId,
    /// The link that lost its last packet or reply; `None` if no link lost any.
    pub link: Option<LinkId>,
}

/// A queue pair that has left a port by which its retries were used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failover {
    /// Time of the last timeout.
    pub at: Time,
    /// The queue pair.
    pub qp: QpId,
    /// The port that it has left.
    pub from: HostId,
    /// The port to which it has moved.
    pub to: HostId,
    /// Time of its return; [`Time::NEVER`] if it has not returned.
    pub back: Time,
}

/// The reasons of a stall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// Time at which the last data packet was accepted or the last message posted.
    pub since: Time,
    /// The first few of the messages that wait, each with its reason.
    pub waiting: Vec<(MessageId, Waiting)>,
    /// Number of all messages that wait.
    pub count: u64,
    /// A cycle of ports that keep each other paused: each waits for the next, the last for the first.
    pub pfc_cycle: Vec<LinkId>,
    /// Ports of hosts or switches that are paused.
    pub paused: Vec<LinkId>,
}

/// The reason why a message waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Other messages must trigger it first.
    Triggers,
    /// Earlier messages of its queue pair are not posted yet.
    Predecessor,
    /// Some of its packets are not acknowledged.
    Packets {
        /// Packets acknowledged.
        acked: u64,
        /// Packets of the message.
        total: u64,
    },
}

/// One message (a flow of the results).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// Time at which it was posted; [`Time::NEVER`] if it was not. The other times use the same value.
    pub start: Time,
    /// Time at which all its packets had arrived, and all packets before them.
    pub received: Time,
    /// Time at which the ACK of its last byte reached the sender.
    pub acked: Time,
    /// Time at which its last transmission or retransmission ended at the sender.
    pub last_sent: Time,
    /// Bytes put on the wire; retransmissions, preambles and gaps included.
    pub wire_bytes: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Time for which its next packet waited at a pace below a hundredth of line rate.
    pub slow: Time,
}

impl Default for MessageRecord {
    fn default() -> Self {
        MessageRecord {
            start: Time::NEVER,
            received: Time::NEVER,
            acked: Time::NEVER,
            last_sent: Time::NEVER,
            wire_bytes: 0,
            retransmitted: 0,
            slow: Time::ZERO,
        }
    }
}

/// One task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Time at which nothing but its stream kept it from starting; [`Time::NEVER`] if it never was ready. The other times
    /// use the same value.
    pub ready: Time,
    /// Time at which it started.
    pub start: Time,
    /// Time at which it ended.
    pub end: Time,
}

impl Default for TaskRecord {
    fn default() -> Self {
        TaskRecord { ready: Time::NEVER, start: Time::NEVER, end: Time::NEVER }
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkRecord {
    /// Frames of all kinds sent.
    pub frames: u64,
    /// Bytes sent; preambles and gaps excluded.
    pub bytes: u64,
    /// Time during which the wire was busy.
    pub busy: Time,
    /// Longest queue of data before the link, bytes; the frame on the wire excluded.
    pub max_queue: u64,
    /// Packets that its port marked.
    pub marks: u64,
    /// Packets dropped before the link for lack of buffer.
    pub drops: u64,
    /// Packets of all kinds lost on the link.
    pub lost: u64,
    /// Pauses of its sender.
    pub pauses: u64,
    /// Time during which its sender was paused, up to the end of the run.
    pub paused: Time,
    /// Times that link-level retry sent a frame again.
    pub replays: u64,
    /// Storms of pauses that the watchdog found at its port.
    pub storms: u64,
    /// Storms among these whose end the watchdog saw.
    pub storms_restored: u64,
    /// Packets that the watchdog dropped before the link.
    pub storm_drops: u64,
    /// Packets that the watchdog dropped when they came in by its port.
    pub storm_drops_in: u64,
    /// Packets lost on the link by cause, in the order of [`LossCause::ALL`]; they add up to `lost`.
    pub lost_by: [u64; LossCause::ALL.len()],
}

impl LinkRecord {
    pub(crate) fn lose(&mut self, cause: LossCause) {
        self.lost += 1;
        self.lost_by[cause as usize] += 1;
    }

    /// Packets that the link lost by a cause.
    pub const fn lost_by(&self, cause: LossCause) -> u64 {
        self.lost_by[cause as usize]
    }
}

/// Pauses of the sender of a link by priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityRecord {
    /// The link.
    pub link: LinkId,
    /// The priority: the number of the group of classes times that of virtual channels, plus the virtual channel.
    pub priority: u8,
    /// Pauses.
    pub pauses: u64,
    /// Ends of pauses, by frames or because the link has failed or come back.
    pub resumes: u64,
    /// Time for which the priority stood paused.
    pub paused: Time,
}

/// Counts of a class of a port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRecord {
    /// The link that leaves the port.
    pub link: LinkId,
    /// The class, as an index into the plan's table.
    pub class: u8,
    /// The counts.
    pub counts: QueueCounts,
}

/// What a queue has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Frames that left.
    pub frames: u64,
    /// Their bytes, without preambles and gaps.
    pub bytes: u64,
    /// Packets dropped for lack of buffer.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Most bytes that waited, without the frame on the wire.
    pub longest: u64,
}

impl QueueCounts {
    /// Counts a frame that starts.
    pub(crate) fn leaves(&mut self, frame: u32) {
        self.frames += 1;
        self.bytes += u64::from(frame);
    }
}

/// Room in the buffer of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes of the shared part. Those of a priority that pauses leave out its guarantee.
    pub shared: u64,
    /// Bytes of headroom; with credits, of credits in use.
    pub headroom: u64,
}

/// The most room that packets have taken in a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// The switch.
    pub switch: NodeId,
    /// All packets at one time.
    pub all: Room,
    /// The packets of each priority of each link that arrives, in order of ports.
    pub priorities: Vec<PriorityRoom>,
}

/// The most room that packets of a priority of a link have taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityRoom {
    /// The link that arrives.
    pub link: LinkId,
    /// The priority, as in [`PriorityRecord`].
    pub priority: u8,
    /// The room.
    pub most: Room,
}

/// Why a link lost a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossCause {
    /// By the link's chance of loss, or because the plan lists the packet.
    Chance,
    /// The packet touched a pair of codewords that cannot be repaired.
    Codeword,
    /// The link was in a burst.
    Burst,
    /// The link went down while the packet was on its way.
    Outage,
    /// The packet started on a link that was down already.
    BlackHole,
}

impl LossCause {
    /// All causes.
    pub const ALL: [LossCause; 5] =
        [LossCause::Chance, LossCause::Codeword, LossCause::Burst, LossCause::Outage, LossCause::BlackHole];

    /// The cause in one word.
    pub const fn name(self) -> &'static str {
        match self {
            LossCause::Chance => "chance",
            LossCause::Codeword => "codeword",
            LossCause::Burst => "burst",
            LossCause::Outage => "outage",
            LossCause::BlackHole => "black-hole",
        }
    }
}

/// Counts of data packets. At the end of every run, `sent = accepted + duplicate + discarded + noticed +
/// dropped_buffer + dropped_link + dropped_loop + dropped_watchdog + dropped_scheme + cut + held + in_flight`, and `cut = headers_arrived +
/// headers_lost + headers_in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Packets put on the wire by hosts; retransmissions, copies and notices included.
    pub sent: u64,
    /// Packets accepted by receivers.
    pub accepted: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Retransmissions that reached a receiver which already had the packet.
    pub spurious: u64,
    /// Deliberate copies of packets made by a scheme.
    pub duplicated: u64,
    /// Arrivals of packets that the receiver already had.
    pub duplicate: u64,
    /// Arrivals that receivers discarded.
    pub discarded: u64,
    /// Arrivals with a PSN above the ePSN.
    pub out_of_order: u64,
    /// Packets dropped for lack of buffer.
    pub dropped_buffer: u64,
    /// Packets lost on links.
    pub dropped_link: u64,
    /// Packets among these lost by a link's chance of loss, or because the plan lists them. This count and the next three add up
    /// to `dropped_link`.
    pub by_chance: u64,
    /// Packets that touched a pair of codewords that cannot be repaired.
    pub by_codeword: u64,
    /// Packets lost in bursts.
    pub in_bursts: u64,
    /// Packets lost on links that were down.
    pub in_outages: u64,
    /// Packets among these that started on a link that was down already.
    pub black_hole: u64,
    /// Packets that ran in circles until their hop limit.
    pub dropped_loop: u64,
    /// Packets dropped by watchdogs of PFC.
    pub dropped_watchdog: u64,
    /// Packets dropped by schemes.
    pub dropped_scheme: u64,
    /// Packets that switches cut.
    pub cut: u64,
    /// Packets among these that the receiver's switch cut.
    pub cut_last_hop: u64,
    /// Cut packets that reached their receiver.
    pub headers_arrived: u64,
    /// Cut packets lost on links, refused by queues or dropped by schemes.
    pub headers_lost: u64,
    /// Cut packets on wires or in queues at the end of the run, or held by schemes.
    pub headers_in_flight: u64,
    /// Notices that arrived: packets without payload that a scheme sends in the class of data.
    pub noticed: u64,
    /// Packets in a receiver's reorder buffer, summed over the arrivals of data. Counted only where receivers
    /// report single packets, as is the peak.
    pub reorder_sum: u64,
    /// Largest reorder buffer of a queue pair, packets.
    pub reorder_peak: u64,
    /// Packets that schemes hold at the end of the run.
    pub held: u64,
    /// Packets on wires or in queues at the end of the run.
    pub in_flight: u64,
}

impl Data {
    /// Packets dropped for any reason.
    pub const fn dropped(&self) -> u64 {
        self.dropped_buffer
            + self.dropped_link
            + self.dropped_loop
            + self.dropped_watchdog
            + self.dropped_scheme
    }
}

merge!(Data {
    sum: sent, accepted, retransmitted, spurious, duplicated, duplicate, discarded, out_of_order;
    sum: dropped_buffer, dropped_link, by_chance, by_codeword, in_bursts, in_outages, black_hole, dropped_loop, dropped_watchdog, dropped_scheme, noticed, reorder_sum, held, in_flight;
    sum: cut, cut_last_hop, headers_arrived, headers_lost, headers_in_flight;
    max: reorder_peak;
});

/// Counts of control packets. At the end of every run, `created = arrived + heard + blocked + dropped + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// ACKs sent by receivers.
    pub ack: u64,
    /// NACKs sent by receivers.
    pub nack: u64,
    /// CNPs sent by receivers.
    pub cnp: u64,
    /// Grants sent by receiving hosts.
    pub grants: u64,
    /// Headers of cut packets that receivers sent back.
    pub returned: u64,
    /// Bytes of these frames, from the Ethernet header to the FCS.
    pub returned_bytes: u64,
    /// Probes sent by senders, and the answers to them.
    pub probes: u64,
    /// Reports on the ports of NICs, and their confirmations.
    pub port_status: u64,
    /// Pause frames sent.
    pub pause: u64,
    /// Resume frames sent.
    pub resume: u64,
    /// Retransmission timeouts.
    pub timeout: u64,
    /// ACKs, NACKs, CNPs and signals made by receivers and by schemes.
    pub created: u64,
    /// ACKs, NACKs and CNPs made by schemes.
    pub forged: u64,
    /// Signals made by schemes.
    pub signals: u64,
    /// Signals that reached the switch for which they were meant.
    pub heard: u64,
    /// Control packets that reached their host.
    pub arrived: u64,
    /// ACKs, NACKs and CNPs blocked by schemes.
    pub blocked: u64,
    /// Control packets lost on links or dropped for lack of buffer.
    pub dropped: u64,
    /// Control packets among these, and headers of cut packets, that ran in circles until their hop limit.
    pub looped: u64,
    /// Control packets on wires or in queues at the end of the run, or held by schemes.
    pub in_flight: u64,
}

merge!(Control {
    sum: ack, nack, cnp, grants, probes, port_status, returned, returned_bytes, pause, resume, timeout, created, forged, signals, heard, arrived, blocked, dropped, looped, in_flight;
});

/// Counts of a NIC's port, or of a NIC whose ports serve all its queue pairs. The counts of all NICs add up to those in [`Data`] and
/// [`Control`], which also have what schemes make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicRecord {
    /// Data packets put on the wire; retransmissions included.
    pub sent: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Data packets accepted.
    pub accepted: u64,
    /// Arrivals of packets that it already had.
    pub duplicate: u64,
    /// Arrivals that it discarded.
    pub discarded: u64,
    /// Packets among these for which it had no room: its queue was full, or they came in a burst of losses at a full port.
    pub no_room: u64,
    /// Arrivals with a PSN above the ePSN.
    pub out_of_order: u64,
    /// Arrivals of data with a mark.
    pub marked: u64,
    /// ACKs sent.
    pub acks_sent: u64,
    /// NACKs sent.
    pub nacks_sent: u64,
    /// NACKs that arrived.
    pub nacks_received: u64,
    /// CNPs sent.
    pub cnps_sent: u64,
    /// CNPs that arrived.
    pub cnps_received: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// Arrivals at a host that the totals do not tell apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) no_room: u64,
    pub(crate) marked: u64,
    pub(crate) nacks: u64,
    pub(crate) cnps: u64,
}

/// Counts of a queue pair in a bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpBin {
    /// Bytes put on the wire by the sender; preambles and gaps included.
    pub bytes: u64,
    /// Packets put on the wire by the sender.
    pub packets: u64,
    /// Retransmissions among these packets.
    pub retransmitted: u64,
    /// NACKs that reached the sender.
    pub nacks: u64,
    /// CNPs that reached the sender.
    pub cnps: u64,
    /// Retransmission timeouts of the sender.
    pub timeouts: u64,
    /// Packets that reached the receiver.
    pub arrived: u64,
    /// Packets among these with a PSN above the ePSN.
    pub out_of_order: u64,
    /// ePSN at the end of the bin, counted from the start of the run without wrapping.
    pub expected: u64,
    /// Longest distance of an arriving packet from the ePSN, packets.
    pub ahead: u64,
}

merge!(QpBin {
    sum: bytes, packets, retransmitted, nacks, cnps, timeouts, arrived, out_of_order;
    last: expected;
    max: ahead;
});

/// Counts of one direction of a link in a bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkBin {
    /// Bytes put on the wire; preambles and gaps included.
    pub bytes: u64,
    /// Frames of all kinds put on the wire.
    pub frames: u64,
    /// Packets marked by its port.
    pub marks: u64,
    /// Packets lost on the link, or dropped before it for lack of buffer.
    pub lost: u64,
    /// Pauses of its sender.
    pub pauses: u64,
    /// Longest queue of data before the link, bytes; 0 at hosts.
    pub max_queue: u64,
}

merge!(LinkBin {
    sum: bytes, frames, marks, lost, pauses;
    max: max_queue;
});

/// Time series of a run: bin `i` of every track covers `[i, i + 1) * width`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Width of a bin.
    pub width: Time,
    /// Number of bins of every track. The last bin may be cut short.
    pub bins: usize,
    /// Tracks of queue pairs, in the plan's order.
    pub qps: Vec<(QpId, Vec<QpBin>)>,
    /// Tracks of links, in the plan's order.
    pub links: Vec<(LinkId, Vec<LinkBin>)>,
    /// Tracks of switches: most bytes of the buffer in use.
    pub switches: Vec<(NodeId, Vec<u64>)>,
    /// Tracks of the schemes' counters by name: values at the end of each bin.
    pub counters: Vec<(&'static str, Vec<u64>)>,
}

/// An event of a packet or of its queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// A data packet, or a deliberate copy of one, starts on its sender's wire for the first time. The value is the
    /// rate that paces the next packets, bits per second.
    Sent,
    /// The data packet that the receiver expected arrives.
    Arrived,
    /// A data packet with a PSN above the ePSN arrives and is kept. The value is its distance from the ePSN.
    Ahead,
    /// A data packet arrives that the receiver already has.
    Duplicate,
    /// A data packet arrives and is discarded. The value is its distance from the ePSN.
    Discarded,
    /// A data packet starts on its sender's wire again. The value is the rate, as for `Sent`.
    Resent,
    /// A receiver sends a NACK or a CNP.
    FeedbackSent,
    /// A NACK or a CNP reaches its sender. The value is the rate that is now allowed, bits per second.
    FeedbackReceived,
    /// A retransmission timeout occurs. The value is the rate that is now allowed, bits per second.
    TimedOut,
    /// The sender's port is paused.
    Paused,
    /// The sender's port is resumed.
    Resumed,
    /// A scheme ends a packet.
    Blocked,
    /// A scheme makes a packet.
    Made,
    /// A packet is dropped for lack of buffer.
    Dropped,
    /// A packet is lost on a link. [`Event::loss`] reads the value.
    Lost,
    /// A switch cuts a data packet.
    Cut,
}

impl EventKind {
    /// True for the normal passage of a data packet; most events are of these kinds.
    pub fn is_passage(self) -> bool {
        matches!(self, EventKind::Sent | EventKind::Arrived | EventKind::Ahead | EventKind::Duplicate)
    }
}

/// An event of a followed queue pair. Events are sorted by queue pair, then by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Queue pair that the event belongs to.
    pub qp: QpId,
    /// Time of the event.
    pub at: Time,
    /// Host or switch at which the event happens.
    pub node: NodeId,
    /// Kind of the event.
    pub what: EventKind,
    /// Kind of the packet.
    pub kind: Kind,
    /// PSN of the packet.
    pub psn: Psn,
    /// Value of the event; [`EventKind`] gives its meaning.
    pub value: u64,
    /// For the start of a packet, the time from which rate and window allowed it; it waited for its port from then
    /// on. For all other events, the time of the event.
    pub ready: Time,
}

impl Event {
    /// The link that lost the packet, and why; `None` for other events.
    pub fn loss(&self) -> Option<(LinkId, LossCause)> {
        let causes = LossCause::ALL.len() as u64;
        let cause = LossCause::ALL[(self.value % causes) as usize];
        (self.what == EventKind::Lost).then_some((LinkId((self.value / causes) as u32), cause))
    }

    /// The value of an event at which link `gp` loses a packet.
    pub(crate) fn value_of_loss(gp: usize, cause: LossCause) -> u64 {
        (gp * LossCause::ALL.len() + cause as usize) as u64
    }
}

/// Data packets of a followed queue pair on a link that leaves a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Queue pair of the packets.
    pub qp: QpId,
    /// The link.
    pub link: LinkId,
    /// Number of packets.
    pub packets: u64,
    /// Bytes queued at each packet's arrival, summed.
    pub queue: u64,
    /// Most bytes queued at a packet's arrival.
    pub most: u64,
}

/// Data packets that a failure of a link cost, by an outage or by its chance of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Losses {
    /// The direction of a link that lost them; `None` for packets that ran in circles.
    pub link: Option<LinkId>,
    /// Start of the link's outage or of its chance of loss, or the last time before that any link went down or came back.
    pub since: Time,
    /// True if the link was gray rather than down.
    pub gray: bool,
    /// Number of packets.
    pub packets: u64,
    /// Packets among these that started on a link that was down already.
    pub black_hole: u64,
    /// Time of the first loss: the start of the packet on the link, or its arrival at the last switch.
    pub first: Time,
    /// Time of the last loss.
    pub last: Time,
}

/// A frame that a tap has recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// A packet, and whether the link lost it.
    Packet(Packet, bool),
    /// A pause or resume frame of a virtual channel.
    Pause {
        /// Virtual channel.
        channel: u8,
        /// True for a pause, false for a resume.
        on: bool,
    },
}

/// The start of a frame at a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The link.
    pub link: LinkId,
    /// Time at which its first bit was sent.
    pub at: Time,
    /// The frame.
    pub what: Passed,
}

/// Records of single packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Events of followed queue pairs, by queue pair and time.
    pub events: Vec<Event>,
    /// Number of events beyond the limits, which were not kept.
    pub more_events: u64,
    /// Hops of followed queue pairs, by queue pair and link.
    pub hops: Vec<Hop>,
    /// Frames at taps that the observer has not taken, by time and link.
    pub frames: Vec<Frame>,
}

/// Work that the engine did; the only part of an outcome that may differ between engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Windows in which any node had something to do.
    pub windows: u64,
    /// Visits of nodes.
    pub visits: u64,
    /// Heavy visits, which keep exact account of the buffer.
    pub heavy: u64,
}

merge!(Effort {
    sum: windows, visits, heavy;
});

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The way the run ended.
    pub ending: Ending,
    /// Simulated time at the end: the time of the last event, or `stop_after`.
    pub end: Time,
    /// Records of messages, by [`MessageId`].
    pub messages: Vec<MessageRecord>,
    /// Records of tasks, by [`TaskId`](model::TaskId).
    pub tasks: Vec<TaskRecord>,
    /// Records of links, by [`LinkId`].
    pub links: Vec<LinkRecord>,
    /// Pauses of links by priority, by link; only links that have been paused.
    pub priorities: Vec<PriorityRecord>,
    /// Counts of queues of switches, by link and class; empty unless the plan records them.
    pub queues: Vec<QueueRecord>,
    /// The most room that packets have taken, by switch; empty unless the plan records queues.
    pub watermarks: Vec<Watermarks>,
    /// Records of NICs, by [`HostId`].
    pub nics: Vec<NicRecord>,
    /// Most bytes of buffer in use at once, by switch (its node number less the number of hosts).
    pub max_buffer: Vec<Bytes>,
    /// Counts of data packets.
    pub data: Data,
    /// Counts of control packets.
    pub control: Control,
    /// Data packets that arrived out of order, by traffic class of the plan.
    pub out_of_order: Vec<u64>,
    /// Link crossings of data packets.
    pub data_hops: u64,
    /// Link crossings of control packets.
    pub control_hops: u64,
    /// Counters of the schemes by name, summed over switches and hosts.
    pub counters: Vec<(&'static str, u64)>,
    /// Queue pairs that have left their ports, by time.
    pub failovers: Vec<Failover>,
    /// Data packets that failures cost, by link and time; those that ran in circles first.
    pub losses: Vec<Losses>,
    /// Time series.
    pub recording: Recording,
    /// Records of single packets.
    pub notes: Notes,
    /// Broken rules of conservation, in words; a correct engine leaves none.
    pub violations: Vec<String>,
    /// Switches of a lossless fabric that dropped a packet.
    pub broke_lossless: Vec<NodeId>,
    /// Work that the engine did.
    pub effort: Effort,
}
