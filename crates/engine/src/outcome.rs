//! What a run leaves behind: integers only, the same on every machine, engine and thread count.

use model::{Bytes, LinkId, MessageId, NodeId, QpId, Time};

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

/// One thing recorded over time; bin `i` covers `[i, i + 1) * width`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// What it is.
    pub of: TrackOf,
    /// Bytes put on the wire per bin, preambles and gaps included.
    pub bytes: Vec<u64>,
    /// Packets put on the wire per bin.
    pub packets: Vec<u64>,
    /// Packets sent again per bin (queue pairs).
    pub retransmitted: Vec<u64>,
    /// Packets that arrived out of order per bin (queue pairs).
    pub out_of_order: Vec<u64>,
    /// Longest queue per bin, bytes (links).
    pub max_queue: Vec<u64>,
}

/// What a track follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackOf {
    /// The sending side of a queue pair.
    Qp(QpId),
    /// One direction of a link.
    Link(LinkId),
}

/// All tracks of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Width of a bin at the end of the run.
    pub width: Time,
    /// The tracks, in the plan's order: queue pairs, then links.
    pub tracks: Vec<Track>,
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
    pub series: Series,
    /// Broken rules of conservation, in words; empty in a correct engine.
    pub violations: Vec<String>,
    /// Switches that dropped although their fabric is lossless.
    pub broke_lossless: Vec<NodeId>,
    /// How hard the engine worked.
    pub effort: Effort,
}
