//! Loss recovery: the two ends of one queue pair.
//!
//! A sender and a receiver are pure state machines. They count the packets of the queue pair from 0; this number, `seq`,
//! never wraps. On the wire it becomes a 24-bit [`Psn`], which each end unwraps.

use crate::annex::{Envelope, Notice, Sack, Selective};
use crate::{Kind, PortIndex, Psn, Time};

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

/// Effect of a reply on a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Packets that this reply acknowledges for the first time.
    pub acked: u64,
    /// True for a NACK that the sender acts on, as it is not stale. The congestion control then gets it, too.
    pub nack: bool,
}

/// Effect of a reply on the bytes of a sender that counts bytes. Bytes are those of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes that the reply reports as arrived for the first time.
    pub arrived: u64,
    /// Bytes in flight after the reply.
    pub flight: u64,
    /// Bytes of the packet that a switch has cut, if the sender will send it again; else 0.
    pub cut: u64,
    /// True if the receiver's own switch has cut it.
    pub last_hop: bool,
    /// Bytes of packets that the sender now takes for lost.
    pub lost: u64,
    /// [`Sack::penalty`].
    pub penalty: u8,
    /// [`Sack::restore`].
    pub restore: bool,
}

/// The sending end of a queue pair.
///
/// A window counts packets from the oldest unacknowledged one, or for senders that count bytes ([`Sender::on_sack`]) the
/// bytes in flight.
pub trait Sender {
    /// Adds `packets` packets that the application posts.
    fn post(&mut self, packets: u64);

    /// Adds the packets of a message, in runs with [`crate::Annex::SACKS`]: frames of `full` bytes, and one of `last`. The
    /// default ignores these lengths.
    #[inline(always)]
    fn post_message(&mut self, packets: u64, _full: u32, _last: u32) {
        self.post(packets);
    }

    /// The packet to send now, if there is one within `window` packets of the oldest unacknowledged packet: its number, and
    /// whether it was sent before. The caller must send it.
    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)>;

    /// [`Sender::next`] and all that a host asks after it, in one call, in runs with [`crate::Annex::SACKS`].
    #[inline]
    fn send(&mut self, now: Time, window: u64) -> Option<Departure> {
        let (seq, again) = self.next(now, window)?;
        let (leaving, deadline) = (self.leaving(), self.deadline());
        Some(Departure { seq, again, leaving, deadline, goes_on: self.ready(window) })
    }

    /// True if [`Sender::next`] would return a packet.
    fn ready(&self, window: u64) -> bool;

    /// Number of packets that [`Sender::next`] would return in a row. The default is 0 or 1; override it for senders whose
    /// steering calls [`crate::steering::Room`].
    fn room(&self, window: u64) -> u64 {
        u64::from(self.ready(window))
    }

    /// Handles a reply.
    fn on_reply(&mut self, now: Time, reply: Reply) -> Progress;

    /// Number of packets that [`Sender::next`] would return one after the other under any window, all for the first time
    /// and without any effect on the timer, and after which [`Sender::ready`] would still hold. The first is number
    /// [`Sender::high`]. The default is 0.
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

    /// Handles a reply with a report on single packets. The default ignores the report.
    fn on_selective(&mut self, now: Time, reply: Reply, _selective: Selective) -> Progress {
        self.on_reply(now, reply)
    }

    /// Handles a reply in runs with [`crate::Annex::SACKS`]; `window` is that before the reply. The default ignores the SACK.
    fn on_sack(
        &mut self,
        now: Time,
        reply: Reply,
        selective: Selective,
        _sack: &Sack,
        _window: u64,
    ) -> (Progress, Delivery) {
        (self.on_selective(now, reply, selective), Delivery::default())
    }

    /// Handles the headers of a cut packet that its receiver has sent back ([`Receiver::returns_headers`]): the packet's PSN,
    /// its message, and whether the receiver's own switch has cut it. [`Progress::nack`] tells whether the packet will be
    /// sent again. The default ignores them.
    fn on_returned(
        &mut self,
        _now: Time,
        _psn: Psn,
        _envelope: Envelope,
        _last_hop: bool,
        _window: u64,
    ) -> (Progress, Delivery) {
        Default::default()
    }

    /// True if the last packet that [`Sender::next`] has returned asks for an ACK.
    fn asks(&self) -> bool {
        false
    }

    /// Message of the last packet that [`Sender::next`] has returned, in runs with [`crate::Annex::SACKS`].
    fn envelope(&self) -> Envelope {
        Envelope::default()
    }

    /// Bytes that wait to be sent for the first time or again; 0 for senders that do not count bytes.
    fn backlog(&self) -> u64 {
        0
    }

    /// The answers to [`Sender::asks`], [`Sender::envelope`] and [`Sender::backlog`], in one call.
    #[inline]
    fn leaving(&self) -> Leaving {
        Leaving { asks: self.asks(), envelope: self.envelope(), backlog: self.backlog() }
    }

    /// What a host asks after each reply of a run with [`crate::Annex::SACKS`], in one call.
    #[inline]
    fn position(&self) -> Position {
        Position { una: self.una(), high: self.high(), deadline: self.deadline() }
    }

    /// Notes that this window holds packets back, in runs with [`crate::Annex::SACKS`]; true if [`Sender::deadline`] has become
    /// earlier. Under a window of 0 with no packet in flight whose timer could fire, the sender may start a timer, so that a
    /// lost grant does not hold it forever. Under another window it may plan a probe, if no packet in flight has asked for an
    /// ACK.
    fn on_held(&mut self, _now: Time, _window: u64) -> bool {
        false
    }

    /// The next packet that the sender has taken for lost since the last call. After a reply there is none unless
    /// [`Delivery::lost`] is above 0.
    fn take_lost(&mut self) -> Option<u64> {
        None
    }

    /// Number of the oldest unacknowledged packet.
    fn una(&self) -> u64;

    /// Number of the first packet that has never been sent. The default is for congestion controls that do not use it.
    fn high(&self) -> u64 {
        self.una()
    }

    /// Time at which the retransmission timer fires, or a probe is due ([`Sender::take_probe`]); [`Time::NEVER`] if neither will
    /// happen.
    fn deadline(&self) -> Time;

    /// The kind of the probe that is due at the time of [`Sender::deadline`], in runs with [`crate::Annex::SACKS`]; its receiver
    /// answers it with an ACK. The caller must send it at once. By default, senders do not probe.
    fn take_probe(&mut self, _now: Time) -> Option<Kind> {
        None
    }

    /// Notes the round trip of a probe whose answer [`Sender::on_sack`] is about to take, and the delay to assume if the probe was not
    /// the latest one ([`crate::Congestion::assumed_delay`]).
    fn on_answer(&mut self, _now: Time, _trip: Time, _assumed: Option<Time>) {}

    /// Handles the expiry of the retransmission timer.
    fn on_timeout(&mut self, now: Time);
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

/// The receiving end of a queue pair.
pub trait Receiver {
    /// A shortcut of [`Receiver::on_data`] for frequent packets: it handles an unmarked packet that is accepted and
    /// answered by an ACK or a NACK. For any other packet it changes nothing and returns `None`. The default takes no packet.
    /// A receiver with this shortcut holds no packets and reports no single packets.
    fn on_plain(&mut self, _psn: Psn) -> Option<Plain> {
        None
    }

    /// Handles a data packet: its PSN, whether a switch marked it, and whether it is the last of its message.
    fn on_data(&mut self, now: Time, psn: Psn, marked: bool, last: bool) -> Reception;

    /// Handles a data packet in runs with [`crate::Annex::SACKS`]. The default is [`Receiver::on_data`].
    fn on_arrived(&mut self, now: Time, packet: Arrived) -> Reception {
        self.on_data(now, packet.psn, packet.marked, packet.last)
    }

    /// [`Receiver::on_arrived`] and [`Receiver::standing`] in one call.
    #[inline]
    fn arrive(&mut self, now: Time, packet: Arrived) -> (Reception, Standing) {
        (self.on_arrived(now, packet), self.standing())
    }

    /// Handles a sender's probe, in runs with [`crate::Annex::SACKS`]; returns the ACK that answers it. The default returns
    /// none.
    fn on_probe(&mut self) -> Option<Reply> {
        None
    }

    /// Entropy of a reply by this port to a packet with this entropy ([`crate::Annex::own_entropy`]), in runs with
    /// [`crate::Annex::SACKS`]. The default is 0, the base path.
    #[inline]
    fn reply_entropy(&self, _of_packet: u16, _port: PortIndex) -> u16 {
        0
    }

    /// The entropy to probe at the time of [`Receiver::deadline`], if a probe is due, in runs with [`crate::Annex::SACKS`]: a
    /// control message over its path to the sender, which answers it. The caller must send it by the port of the last data
    /// packet. By default, receivers do not probe.
    fn take_probe(&mut self, _now: Time) -> Option<u16> {
        None
    }

    /// Handles the answer to a receiver's probe of this entropy, which has arrived by this port after this round trip.
    fn on_probed(&mut self, _entropy: u16, _round_trip: Time, _port: PortIndex) {}

    /// The report of the last reply, in runs with [`crate::Annex::SACKS`].
    fn sack(&self) -> Sack {
        Sack::default()
    }

    /// Number of the next packet in order (ePSN, unwrapped).
    fn expected(&self) -> u64;

    /// The reply's report on single packets, after the last data packet.
    #[inline]
    fn selective(&self) -> Selective {
        Selective::Nothing
    }

    /// Handles a notice; `marked` if a switch marked it. The receiver replies as to a data packet without payload, and
    /// [`Reception::fate`] has no meaning.
    fn on_notice(&mut self, _now: Time, _notice: Notice, _marked: bool) -> Reception {
        Reception { fate: Fate::Discarded, out_of_order: false, reply: None, cnp: false, echo: false }
    }

    /// Handles the headers of a data packet that a switch has cut; `marked` if a switch marked it, `last_hop` if the
    /// receiver's own switch cut it. The reply concerns its PSN, and [`Reception::fate`] has no meaning. The default sends
    /// no reply.
    fn on_cut(&mut self, _now: Time, _psn: Psn, _marked: bool, _last_hop: bool) -> Reception {
        Reception { fate: Fate::Discarded, out_of_order: false, reply: None, cnp: false, echo: false }
    }

    /// True if the headers of cut packets go back to their sender at once, in runs with [`crate::Annex::SACKS`]. Nothing else
    /// reaches the receiver then, and [`Receiver::on_cut`] is not called.
    #[inline]
    fn returns_headers(&self) -> bool {
        false
    }

    /// Number of packets that count towards the end of messages: a message is complete once this number reaches its last
    /// packet. The default is ePSN, so that messages complete in order. A receiver that counts accepted packets in any
    /// order returns their number. The number only grows, and only with packets that are accepted or duplicates.
    #[inline]
    fn completed(&self) -> u64 {
        self.expected()
    }

    /// Time of the next [`Receiver::on_deadline`]; [`Time::NEVER`] if none is due, as by default. It may become later at
    /// any time, but earlier only in a handler.
    #[inline]
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// Handles the time of [`Receiver::deadline`]; returns a reply, and whether it carries a mark. The reply has the annex
    /// of a reply to the last data packet.
    fn on_deadline(&mut self, _now: Time) -> Option<(Reply, bool)> {
        None
    }

    /// What a host asks after each packet of a run with [`crate::Annex::SACKS`], in one call.
    #[inline]
    fn standing(&self) -> Standing {
        Standing { completed: self.completed(), held: self.held(), deadline: self.deadline() }
    }

    /// What a host asks for each reply of a run with [`crate::Annex::SACKS`], in one call. The arguments are those of
    /// [`Receiver::reply_entropy`].
    #[inline]
    fn reporting(&self, of_packet: u16, port: PortIndex) -> Reporting {
        Reporting {
            selective: self.selective(),
            crowded: self.crowded(),
            sack: self.sack(),
            entropy: self.reply_entropy(of_packet, port),
        }
    }

    /// True if the reorder buffer is above its high-water mark.
    #[inline]
    fn crowded(&self) -> bool {
        false
    }

    /// Number of packets in the reorder buffer.
    #[inline]
    fn held(&self) -> u64 {
        0
    }
}

/// The answers to [`Sender::asks`], [`Sender::envelope`] and [`Sender::backlog`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaving {
    /// [`Sender::asks`].
    pub asks: bool,
    /// [`Sender::envelope`].
    pub envelope: Envelope,
    /// [`Sender::backlog`].
    pub backlog: u64,
}

/// A packet that [`Sender::send`] has returned, and the sender's state after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// Its number.
    pub seq: u64,
    /// True if it was sent before.
    pub again: bool,
    /// [`Sender::leaving`].
    pub leaving: Leaving,
    /// [`Sender::deadline`].
    pub deadline: Time,
    /// [`Sender::ready`] under the same window.
    pub goes_on: bool,
}

/// The answers to [`Sender::una`], [`Sender::high`] and [`Sender::deadline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// [`Sender::una`].
    pub una: u64,
    /// [`Sender::high`].
    pub high: u64,
    /// [`Sender::deadline`].
    pub deadline: Time,
}

/// The answers to [`Receiver::completed`], [`Receiver::held`] and [`Receiver::deadline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// [`Receiver::completed`].
    pub completed: u64,
    /// [`Receiver::held`].
    pub held: u64,
    /// [`Receiver::deadline`].
    pub deadline: Time,
}

/// The answers to [`Receiver::selective`], [`Receiver::crowded`], [`Receiver::sack`] and [`Receiver::reply_entropy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporting {
    /// [`Receiver::selective`].
    pub selective: Selective,
    /// [`Receiver::crowded`].
    pub crowded: bool,
    /// [`Receiver::sack`].
    pub sack: Sack,
    /// [`Receiver::reply_entropy`].
    pub entropy: u16,
}
