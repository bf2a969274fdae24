//! Loss recovery: the two ends of one queue pair.
//!
//! A sender and a receiver are pure state machines. They count packets of the queue pair from 0 (`seq`,
//! never wrapping); on the wire a `seq` is a 24-bit [`Psn`], and each end unwraps what it gets.

use crate::annex::{Notice, Selective};
use crate::{Psn, Time};

/// What a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// All packets up to and including this PSN have arrived.
    Ack(Psn),
    /// All packets before this PSN have arrived, and a later one came before it.
    Nack(Psn),
}

/// What became of a data packet at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// New, and kept.
    Accepted,
    /// Its PSN was there before.
    Duplicate,
    /// New, but thrown away (out of order under go-back-N, or beyond the window).
    Discarded,
}

/// A receiver's reaction to a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// What became of the packet.
    pub fate: Fate,
    /// It came with a PSN above ePSN.
    pub out_of_order: bool,
    /// The ACK or NACK that goes back, if any.
    pub reply: Option<Reply>,
    /// A CNP goes back as a frame of its own.
    pub cnp: bool,
    /// The reply carries the mark instead (compatibility mode).
    pub echo: bool,
}

/// What a sender learns from a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Packets that this reply acknowledged for the first time.
    pub acked: u64,
    /// It was a NACK that the sender heeds (not a stale one): the congestion control hears of it.
    pub nack: bool,
}

/// The sending end.
pub trait Sender {
    /// The application posts `packets` more packets.
    fn post(&mut self, packets: u64);

    /// The packet to send now, if there is one within `window` packets of the oldest unacknowledged one:
    /// its number, and whether it was sent before. The caller sends it.
    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)>;

    /// True if [`Sender::next`] would return a packet.
    fn ready(&self, window: u64) -> bool;

    /// How many packets [`Sender::next`] would return in a row; senders that nobody asks answer 1 for any number.
    fn room(&self, window: u64) -> u64 {
        u64::from(self.ready(window))
    }

    /// A reply has come.
    fn on_reply(&mut self, now: Time, reply: Reply) -> Progress;

    /// A reply has come that may say something of single packets, too. Senders that do not listen to that need
    /// not know.
    fn on_selective(&mut self, now: Time, reply: Reply, _selective: Selective) -> Progress {
        self.on_reply(now, reply)
    }

    /// All packets before this one are acknowledged.
    fn una(&self) -> u64;

    /// All packets before this one have been sent at least once. Senders under controls that don't ask may answer as
    /// [`Sender::una`].
    fn high(&self) -> u64 {
        self.una()
    }

    /// When its retransmission timer fires, [`Time::NEVER`] if none runs.
    fn deadline(&self) -> Time;

    /// The time of [`Sender::deadline`] has come.
    fn on_timeout(&mut self, now: Time);
}

/// The receiving end.
pub trait Receiver {
    /// A data packet has arrived: its PSN, whether a switch marked it, whether it ends its message.
    fn on_data(&mut self, now: Time, psn: Psn, marked: bool, last: bool) -> Reception;

    /// All packets before this one have arrived (ePSN, unwrapped).
    fn expected(&self) -> u64;

    /// What the answer to the last data packet says of single packets.
    fn selective(&self) -> Selective {
        Selective::Nothing
    }

    /// A notice has come; `marked` if a switch marked it. It is answered like a data packet that brings nothing:
    /// [`Reception::fate`] means nothing.
    fn on_notice(&mut self, _now: Time, _notice: Notice, _marked: bool) -> Reception {
        Reception { fate: Fate::Discarded, out_of_order: false, reply: None, cnp: false, echo: false }
    }

    /// So much waits for a gap to be filled that nobody should ask it to wait for more.
    fn crowded(&self) -> bool {
        false
    }

    /// Packets that wait for a gap to be filled.
    fn held(&self) -> u64 {
        0
    }
}
