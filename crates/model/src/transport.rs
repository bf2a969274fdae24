//! Loss recovery: the two ends of one queue pair.
//!
//! A sender and a receiver are pure state machines. They count the packets of the queue pair from 0; this number, `seq`,
//! never wraps. On the wire it becomes a 24-bit [`Psn`], which each end unwraps.

use crate::annex::{Envelope, Notice, Sack, Selective};
use crate::{Delivery, Kind, PortIndex, Psn, Time};

/// A receiver's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// All packets up to and including this PSN have arrived.
    Ack(Psn),
    /// All packets before this PSN have arrived; this packet has not, although a later one has.
    Nack(Psn),
}

/// Fate of a data packet at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet was new, and the receiver kept it.
    Accepted,
    /// A packet with this PSN had arrived before.
    Duplicate,
    /// The packet was new, but the receiver dropped it: out of order under go-back-N, or beyond the window.
    Discarded,
}

/// A receiver's reaction to a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// Fate of the packet.
    pub fate: Fate,
    /// True if the packet's PSN was above the ePSN.
    pub out_of_order: bool,
    /// The ACK or NACK that goes back, if any.
    pub reply: Option<Reply>,
    /// True if a CNP goes back in a frame of its own.
    pub cnp: bool,
    /// True if the reply carries the mark instead of a CNP (compatibility with the ns-3 family).
    pub echo: bool,
}

impl Reception {
    /// No reaction.
    pub const IGNORED: Self =
        Reception { fate: Fate::Discarded, out_of_order: false, reply: None, cnp: false, echo: false };
}

/// Effect of a reply on a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Packets that this reply acknowledges for the first time.
    pub acked: u64,
    /// True for a NACK that the sender acts on, as it is not stale. The congestion control then gets it, too.
    pub nack: bool,
}

/// A reply or headers, as a sender hears of them. A sender takes a kind that it does not know for a plain reply, or ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A plain reply.
    Reply(Reply),
    /// A reply with a report on single packets.
    Named(Reply, Selective),
    /// A reply with a [`Sack`].
    Sacked(Reply, Sacked),
    /// The headers of a cut packet that its receiver has sent back ([`Receiver::returns_headers`]).
    Returned(Returned),
}

impl Heard {
    /// True for the answer to a sender's probe.
    #[inline(always)]
    pub const fn answers_probe(&self) -> bool {
        matches!(self, Heard::Sacked(_, Sacked { sack: Sack { probe: true, .. }, .. }))
    }

    /// The reply and its report on single packets; `None` for headers.
    #[inline(always)]
    pub const fn reply(&self) -> Option<(Reply, Selective)> {
        match *self {
            Heard::Reply(reply) => Some((reply, Selective::Nothing)),
            Heard::Named(reply, selective) => Some((reply, selective)),
            Heard::Sacked(reply, Sacked { selective, .. }) => Some((reply, selective)),
            Heard::Returned(_) => None,
        }
    }
}

/// The report of a reply in a run with SACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sacked {
    /// The report on single packets, for senders without maps.
    pub selective: Selective,
    /// The map.
    pub sack: Sack,
    /// Round trip of the packet or the probe that the reply answers.
    pub trip: Time,
    /// Delay to assume if that is a probe, and not the latest one ([`crate::Congestion::assumed_delay`]).
    pub assumed: Option<Time>,
    /// The window before the reply.
    pub window: u64,
}

/// The headers of a cut packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// PSN of the packet.
    pub psn: Psn,
    /// Its message.
    pub envelope: Envelope,
    /// True if the receiver's own switch has cut it.
    pub last_hop: bool,
    /// The window before their return.
    pub window: u64,
}

/// The sending end of a queue pair.
///
/// A window counts packets from the oldest unacknowledged one, or for senders that report a [`Delivery`] the bytes in flight.
pub trait Sender {
    /// Reads a word of each cache line that the next packet or reply will need. This only saves time; the default reads none.
    #[inline]
    fn fetch(&self) {}

    /// Adds the packets of a message that the application posts: frames of `full` bytes, and one of `last`.
    fn post_message(&mut self, packets: u64, full: u32, last: u32);

    /// The packet to send now, if `window` lets one pass, and the sender's state after it. The caller must send it.
    fn send(&mut self, now: Time, window: u64) -> Option<Departure>;

    /// True if [`Sender::send`] would return a packet.
    fn ready(&self, window: u64) -> bool;

    /// Number of packets that [`Sender::send`] would return in a row. The default is 0 or 1; override it for senders whose
    /// steering calls [`crate::steering::Room`].
    fn room(&self, window: u64) -> u64 {
        u64::from(self.ready(window))
    }

    /// Handles what the receiver has sent. [`Progress::nack`] of returned headers tells whether their packet will be sent again.
    fn hear(&mut self, now: Time, heard: &Heard) -> (Progress, Delivery);

    /// The sender's place in the packets of its queue pair, and its deadline.
    fn position(&self) -> Position;

    /// Handles the time of [`Position::deadline`], or any other time.
    fn on_deadline(&mut self, now: Time) -> Due;

    /// Number of packets that [`Sender::send`] would return one after the other under any window, all for the first time
    /// and without any effect on the timer, and after which [`Sender::ready`] would still hold. The first is number
    /// [`Position::high`]. The default is 0.
    fn row(&self) -> u64 {
        0
    }

    /// Sends as many packets, at most [`Sender::row`].
    fn send_row(&mut self, _packets: u64) {}

    /// Handles an ACK if the sender would send the same packets at the same times had the ACK come up to `burst`
    /// transmissions earlier or later; otherwise it changes nothing and returns false. A host may then handle the ACK before
    /// it computes the packets that start earlier. The deadline must not move forward. The default handles no ACK.
    fn on_free_ack(&mut self, _now: Time, _psn: Psn, _burst: u32) -> bool {
        false
    }

    /// Notes that this window holds packets back; true if [`Position::deadline`] has become earlier. Under a window of 0 with no
    /// packet in flight whose timer could fire, the sender may start a timer, so that a lost grant does not hold it forever.
    /// Under another window it may plan a probe, if no packet in flight has asked for an ACK. The default does nothing.
    fn on_held(&mut self, _now: Time, _window: u64) -> bool {
        false
    }

    /// Begins anew with the oldest unacknowledged packet: all that has not arrived, as far as the sender knows, will be sent again,
    /// timeouts count from 0, and no timer runs until a packet leaves. The default, for senders with SACKs, does nothing.
    fn restart(&mut self) {}

    /// True if the sender knows the packets to come by their number alone, so that [`Sender::shorten`] changes nothing but their end. The
    /// default is false.
    fn may_shorten(&self) -> bool {
        false
    }

    /// Removes as many posted packets that were never sent, and would come before others. Requires [`Sender::may_shorten`].
    fn shorten(&mut self, _packets: u64) {}

    /// The next packet that the sender has taken for lost since the last call. A host asks after deadlines, and after replies
    /// with a [`Delivery::lost`] above 0.
    fn take_lost(&mut self) -> Option<u64> {
        None
    }
}

/// What a sender does at its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Kind of the probe that is due; its receiver answers it with an ACK. The caller must send it at once.
    pub probe: Option<Kind>,
    /// True if the retransmission timer has fired.
    pub timeout: bool,
    /// If it has fired for packets in flight, the number of timeouts in a row without progress, this one included; else 0.
    pub fired: u8,
}

/// The packet that [`Receiver::on_plain`] has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// PSN of the reply that goes back.
    pub psn: Psn,
    /// True if the reply is a NACK, false for an ACK.
    pub nack: bool,
    /// [`Reception::out_of_order`].
    pub out_of_order: bool,
}

/// A data packet that has arrived whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its PSN.
    pub psn: Psn,
    /// Length of the frame, bytes.
    pub frame: u32,
    /// True if a switch marked it.
    pub marked: bool,
    /// True for the last packet of its message.
    pub last: bool,
    /// True if it asks for an ACK.
    pub asks: bool,
    /// Its message.
    pub envelope: Envelope,
}

/// What arrives at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inbound {
    /// A data packet.
    Data(Arrived),
    /// The headers of a data packet that a switch has cut. The reply concerns its PSN.
    Headers {
        /// Its PSN.
        psn: Psn,
        /// True if a switch marked it.
        marked: bool,
        /// True if the receiver's own switch cut it.
        last_hop: bool,
    },
    /// A notice. The receiver replies as to a data packet without payload.
    Notice {
        /// The notice.
        notice: Notice,
        /// True if a switch marked it.
        marked: bool,
    },
    /// A sender's probe, which an ACK answers.
    Probe,
}

/// The receiving end of a queue pair.
pub trait Receiver {
    /// Reads a word of each cache line that the next arrival will need. This only saves time; the default reads none.
    #[inline]
    fn fetch(&self) {}

    /// A shortcut of [`Receiver::on_arrival`] for frequent packets: it handles an unmarked packet that is accepted and
    /// answered by an ACK or a NACK. For any other packet it changes nothing and returns `None`. The default takes no packet.
    /// A receiver with this shortcut holds no packets, reports no single packets, and has no deadline.
    fn on_plain(&mut self, _psn: Psn) -> Option<Plain> {
        None
    }

    /// Handles an arrival. What is no data packet has no [`Reception::fate`], and a receiver that does not know its kind answers
    /// by [`Reception::IGNORED`].
    fn on_arrival(&mut self, now: Time, inbound: Inbound) -> (Reception, Standing);

    /// The receiver's place in the packets of its queue pair, and its deadline.
    fn standing(&self) -> Standing;

    /// Number of packets that an arrival may complete at most, beside itself. The default knows no bound.
    #[inline]
    fn kept(&self) -> u64 {
        u64::MAX
    }

    /// What the last reply tells the sender beside its PSN, if it leaves by this port and answers a packet with this entropy. The
    /// default tells nothing.
    #[inline]
    fn telling(&self, _of_packet: u16, _port: PortIndex) -> Telling {
        Telling::default()
    }

    /// Handles the time of [`Standing::deadline`], or any other time. By default nothing is due.
    fn on_deadline(&mut self, _now: Time) -> Overdue {
        Overdue::default()
    }

    /// Handles the answer to a receiver's probe of this entropy, which has arrived by this port after this round trip.
    fn on_probed(&mut self, _entropy: u16, _round_trip: Time, _port: PortIndex) {}

    /// True if the headers of cut packets go back to their sender at once. They do not reach the receiver then.
    #[inline]
    fn returns_headers(&self) -> bool {
        false
    }
}

/// What a receiver does at its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overdue {
    /// The entropy to probe: a control message over its path to the sender, which answers it. The caller must send it by the port
    /// of the last data packet.
    pub probe: Option<u16>,
    /// A reply, and whether it carries a mark. It has the annex of a reply to the last data packet.
    pub reply: Option<(Reply, bool)>,
}

/// A packet that [`Sender::send`] has returned, and the sender's state after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// Its number.
    pub seq: u64,
    /// True if it was sent before.
    pub again: bool,
    /// True if it asks for an ACK.
    pub asks: bool,
    /// Its message, for receivers that count the packets of each message.
    pub envelope: Envelope,
    /// Bytes that wait to be sent for the first time or again; 0 for senders that do not count bytes.
    pub backlog: u64,
    /// [`Position::deadline`].
    pub deadline: Time,
    /// [`Sender::ready`] under the same window.
    pub goes_on: bool,
}

/// A sender's place in the packets of its queue pair, and its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Number of the oldest unacknowledged packet.
    pub una: u64,
    /// Number of the first packet that has never been sent.
    pub high: u64,
    /// Time at which the retransmission timer fires, or a probe is due; [`Time::NEVER`] if neither will happen.
    pub deadline: Time,
}

/// A receiver's place in the packets of its queue pair, and its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Number of the next packet in order (ePSN, unwrapped).
    pub expected: u64,
    /// Number of packets that count towards the end of messages: a message is complete once this number reaches its last packet.
    /// It is ePSN where messages complete in order, and the number of accepted packets where they are counted in any order. It
    /// only grows, and only with packets that are accepted or duplicates.
    pub completed: u64,
    /// Number of packets in the reorder buffer.
    pub held: u64,
    /// Time of the next [`Receiver::on_deadline`]; [`Time::NEVER`] if none is due. It may become later at any time, but earlier
    /// only in a handler.
    pub deadline: Time,
}

impl Standing {
    /// Standing of a receiver whose messages complete in order, and that neither counts held packets nor has a deadline.
    #[inline(always)]
    pub const fn at(expected: u64) -> Self {
        Standing { expected, completed: expected, held: 0, deadline: Time::NEVER }
    }
}

/// What a reply tells the sender beside its PSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    /// The report on single packets.
    pub selective: Selective,
    /// True if the reorder buffer is above its high-water mark.
    pub crowded: bool,
    /// The map, in runs with SACKs.
    pub sack: Sack,
    /// Entropy of the reply, in the same runs; 0 is the base path.
    pub entropy: u16,
}
