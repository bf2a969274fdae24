//! What a run leaves behind: integers only, the same on every machine, engine and thread count.

use crate::merge::merge;
use model::{Bytes, Kind, LinkId, MessageId, NodeId, Packet, Psn, QpId, Time};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every message that counts was delivered and acknowledged.
    Finished,
    /// The plan's `stop_after` came first.
    Stopped,
    /// The user interrupted it.
    Interrupted,
    /// Messages wait and nothing moves.
    Stalled(Stall),
}

impl Ending {
    /// In one word.
    pub const fn name(&self) -> &'static str {
        match self {
            Ending::Finished => "finished",
            Ending::Stopped => "stopped",
            Ending::Interrupted => "interrupted",
            Ending::Stalled(_) => "stalled",
        }
    }
}

/// Why nothing moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// When the last data packet was accepted.
    pub since: Time,
    /// Messages that wait, with what each waits for; the first few.
    pub waiting: Vec<(MessageId, Waiting)>,
    /// How many messages wait in all.
    pub count: u64,
    /// Ports that hold each other paused, in order: each waits for the next, the last for the first.
    pub pfc_cycle: Vec<LinkId>,
    /// Ports of hosts or switches that are paused.
    pub paused: Vec<LinkId>,
}

/// What a message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// For other messages to set it free.
    Triggers,
    /// For its predecessors on the queue pair.
    Predecessor,
    /// For packets to be sent, received or acknowledged: acknowledged so far, and its total.
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
    /// When it was posted; [`Time::NEVER`] if it never was. Likewise below.
    pub start: Time,
    /// When its last packet had arrived and all before it.
    pub received: Time,
    /// When the ACK of its last byte came back.
    pub acked: Time,
    /// When the transmission of its last packet (or last retransmission) ended at the sender.
    pub last_sent: Time,
    /// Bytes put on the wire, retransmissions, preambles and gaps included.
    pub wire_bytes: u64,
    /// Packets sent again.
    pub retransmitted: u64,
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
        }
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkRecord {
    /// Frames sent, of all kinds.
    pub frames: u64,
    /// Bytes sent, preambles and gaps not counted.
    pub bytes: u64,
    /// Time the wire was busy.
    pub busy: Time,
    /// Longest queue of data before it, bytes, the frame on the wire not counted.
    pub max_queue: u64,
    /// Packets that it marked.
    pub marks: u64,
    /// Data packets dropped before it for lack of buffer.
    pub drops: u64,
    /// Packets lost on it.
    pub lost: u64,
    /// Pause frames that its receiver sent back.
    pub pauses: u64,
    /// Time that it stood paused (to the end of the run).
    pub paused: Time,
}

/// Data packets. `sent = accepted + duplicate + discarded + noticed + dropped_buffer + dropped_link + dropped_scheme +
/// held + in_flight`, checked at the end of every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Put on the wire by hosts, retransmissions, copies and notices included.
    pub sent: u64,
    /// Accepted by a receiver.
    pub accepted: u64,
    /// Sent again.
    pub retransmitted: u64,
    /// Retransmissions that arrived although an earlier copy had.
    pub spurious: u64,
    /// Copies that a scheme made on purpose.
    pub duplicated: u64,
    /// Arrivals of a PSN that was there already.
    pub duplicate: u64,
    /// Arrivals that the receiver threw away.
    pub discarded: u64,
    /// Arrivals with a PSN above ePSN.
    pub out_of_order: u64,
    /// Dropped for lack of buffer.
    pub dropped_buffer: u64,
    /// Lost on a link.
    pub dropped_link: u64,
    /// Dropped by a scheme.
    pub dropped_scheme: u64,
    /// Notices that arrived: packets without payload that a scheme sent in the class of data.
    pub noticed: u64,
    /// Packets that waited at their receiver for a gap to be filled, summed over the arrivals of data. Counted where
    /// receivers speak of single packets (`sr-sack`, `irn`), like the next.
    pub reorder_sum: u64,
    /// Most of them at one queue pair.
    pub reorder_peak: u64,
    /// Still held by schemes at the end.
    pub held: u64,
    /// Still on a wire or in a queue at the end.
    pub in_flight: u64,
}

merge!(Data {
    sum: sent, accepted, retransmitted, spurious, duplicated, duplicate, discarded, out_of_order;
    sum: dropped_buffer, dropped_link, dropped_scheme, noticed, reorder_sum, held, in_flight;
    max: reorder_peak;
});

/// Control packets. `created = arrived + heard + blocked + dropped + in_flight`, checked likewise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// ACKs sent by receivers.
    pub ack: u64,
    /// NACKs sent by receivers.
    pub nack: u64,
    /// CNPs sent by receivers.
    pub cnp: u64,
    /// Pause frames.
    pub pause: u64,
    /// Resume frames.
    pub resume: u64,
    /// Retransmission timers that fired.
    pub timeout: u64,
    /// ACKs, NACKs and CNPs made, by receivers and by schemes, and signals.
    pub created: u64,
    /// Of these made by schemes, signals not counted.
    pub forged: u64,
    /// Signals made by schemes.
    pub signals: u64,
    /// Signals that ended at a switch, which had waited for them.
    pub heard: u64,
    /// Arrived at their host.
    pub arrived: u64,
    /// Ended by a scheme.
    pub blocked: u64,
    /// Lost on a link or for lack of buffer.
    pub dropped: u64,
    /// Still under way at the end.
    pub in_flight: u64,
}

merge!(Control {
    sum: ack, nack, cnp, pause, resume, timeout, created, forged, signals, heard, arrived, blocked, dropped, in_flight;
});

/// A queue pair in a bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpBin {
    /// Bytes put on the wire by its sender, preambles and gaps included.
    pub bytes: u64,
    /// Packets put on the wire.
    pub packets: u64,
    /// Of these sent again.
    pub retransmitted: u64,
    /// NACKs that reached the sender.
    pub nacks: u64,
    /// CNPs that reached the sender.
    pub cnps: u64,
    /// Timers of the sender that fired.
    pub timeouts: u64,
    /// Packets that reached the receiver.
    pub arrived: u64,
    /// Of these with a PSN above ePSN.
    pub out_of_order: u64,
    /// ePSN at the end of the bin, counted from the start of the run and not wrapped.
    pub expected: u64,
    /// Most packets between ePSN and one that came.
    pub ahead: u64,
}

merge!(QpBin {
    sum: bytes, packets, retransmitted, nacks, cnps, timeouts, arrived, out_of_order;
    last: expected;
    max: ahead;
});

/// One direction of a link in a bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkBin {
    /// Bytes put on the wire, preambles and gaps included.
    pub bytes: u64,
    /// Frames put on the wire, of all kinds.
    pub frames: u64,
    /// Packets that were marked before it.
    pub marks: u64,
    /// Packets lost on it, or dropped before it for lack of buffer.
    pub lost: u64,
    /// Times that it was paused.
    pub pauses: u64,
    /// Longest queue of data before it, bytes; 0 at hosts.
    pub max_queue: u64,
}

merge!(LinkBin {
    sum: bytes, frames, marks, lost, pauses;
    max: max_queue;
});

/// A run over time: bin `i` of every track covers `[i, i + 1) * width`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Width of a bin.
    pub width: Time,
    /// Bins of every track; the last one may not be whole.
    pub bins: usize,
    /// Queue pairs, in the plan's order.
    pub qps: Vec<(QpId, Vec<QpBin>)>,
    /// Links, in the plan's order.
    pub links: Vec<(LinkId, Vec<LinkBin>)>,
    /// Most bytes in use of the buffers of switches.
    pub switches: Vec<(NodeId, Vec<u64>)>,
    /// What the schemes had counted at the end of each bin, by name.
    pub counters: Vec<(&'static str, Vec<u64>)>,
}

/// Something that happens to a packet or to its queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happening {
    /// Data starts on the wire of its sender for the first time, or a copy of it made on purpose; the value is the rate
    /// that paces what comes after it, bits per second.
    Sent,
    /// Data has arrived and is what its receiver expected.
    Arrived,
    /// Data has arrived with a PSN above ePSN and is kept; the value is its distance from ePSN.
    Ahead,
    /// Data has arrived that was there already.
    Duplicate,
    /// Data has arrived and is thrown away; the value is its distance from ePSN.
    Discarded,
    /// Data starts on the wire again; the value is as for the first time.
    Resent,
    /// A receiver has sent a NACK or a CNP.
    Answered,
    /// A NACK or a CNP has reached its sender; the value is the rate that it may send at now, bits per second.
    Heard,
    /// A sender's timer has fired; the value is as above.
    TimedOut,
    /// The port of the sender has been paused; it may send no data.
    Paused,
    /// The port of the sender has been let go.
    Resumed,
    /// A scheme has ended a packet.
    Blocked,
    /// A scheme has made a packet.
    Made,
    /// Dropped for lack of buffer.
    Dropped,
    /// Lost on a link.
    Lost,
}

impl Happening {
    /// A packet of data sets out or arrives as it should: there are many of these.
    pub fn is_passage(self) -> bool {
        matches!(self, Happening::Sent | Happening::Arrived | Happening::Ahead | Happening::Duplicate)
    }
}

/// An event of a queue pair that is followed. Events go by queue pair, then by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whose.
    pub qp: QpId,
    /// When.
    pub at: Time,
    /// Where.
    pub node: NodeId,
    /// What.
    pub what: Happening,
    /// Kind of the packet.
    pub kind: Kind,
    /// Its PSN.
    pub psn: Psn,
    /// See [`Happening`].
    pub value: u64,
    /// Since when a packet that starts might have done so as far as its own rate and window are concerned: from then on it
    /// waited for its port. Of all other events, when they happened.
    pub ready: Time,
}

/// The data of a followed queue pair that went over a link from a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Whose.
    pub qp: QpId,
    /// The link.
    pub link: LinkId,
    /// Packets.
    pub packets: u64,
    /// Bytes that waited there when each of them came, summed.
    pub queue: u64,
    /// Most of them.
    pub most: u64,
}

/// What has passed a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// A packet; whether the link lost it.
    Packet(Packet, bool),
    /// A pause frame for a virtual channel, or the one that ends it.
    Pause {
        /// Virtual channel.
        channel: u8,
        /// Pause, or resume.
        on: bool,
    },
}

/// A frame at a tap: the start of its transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The link.
    pub link: LinkId,
    /// When its first bit was sent.
    pub at: Time,
    /// The frame.
    pub what: Passed,
}

/// What was written down of single packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// By queue pair and time.
    pub events: Vec<Event>,
    /// Events beyond the limits, which were not kept.
    pub more_events: u64,
    /// By queue pair and link.
    pub hops: Vec<Hop>,
    /// By time and link.
    pub frames: Vec<Frame>,
    /// Frames beyond the limit.
    pub more_frames: u64,
}

/// How the engine itself fared; the only part that may differ between engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Windows that had something to do.
    pub windows: u64,
    /// Node visits.
    pub visits: u64,
    /// Visits with exact buffer accounting.
    pub heavy: u64,
}

merge!(Effort {
    sum: windows, visits, heavy;
});

/// Everything a run leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Simulated time at the end: the last thing that happened, or `stop_after`.
    pub end: Time,
    /// By [`MessageId`].
    pub messages: Vec<MessageRecord>,
    /// By [`LinkId`].
    pub links: Vec<LinkRecord>,
    /// Per switch, by node less the number of hosts: most buffer in use at once.
    pub max_buffer: Vec<Bytes>,
    /// Data packets.
    pub data: Data,
    /// Control packets.
    pub control: Control,
    /// Of the data, what came out of order, by traffic class of the plan.
    pub out_of_order: Vec<u64>,
    /// Link crossings of data.
    pub data_hops: u64,
    /// Link crossings of ACKs, NACKs and CNPs.
    pub control_hops: u64,
    /// What the schemes counted, summed over switches, by name.
    pub counters: Vec<(&'static str, u64)>,
    /// Over time.
    pub recording: Recording,
    /// Of single packets.
    pub notes: Notes,
    /// Broken rules of conservation, in words; empty in a correct engine.
    pub violations: Vec<String>,
    /// Switches that dropped although their fabric is lossless.
    pub broke_lossless: Vec<NodeId>,
    /// How hard the engine worked.
    pub effort: Effort,
}
