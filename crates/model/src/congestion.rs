//! Rate and window of one queue pair.

use crate::telemetry::Trail;
use crate::{Pace, Time};

/// What a queue pair may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Packets that may be outstanding.
    pub window: u64,
    /// Spacing of packets.
    pub pace: Pace,
    /// No packet before this time (a NIC that stalls after a NACK).
    pub not_before: Time,
}

/// What a reply tells a congestion control in runs with telemetry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Feedback {
    /// Packets that it acknowledged for the first time.
    pub acked: u64,
    /// It carried a mark.
    pub echo: bool,
    /// All packets of the queue pair before this one are acknowledged.
    pub una: u64,
    /// All before this one have been sent at least once.
    pub high: u64,
    /// Time since the data packet that it answers was sent.
    pub round_trip: Time,
    /// What switches wrote on that packet.
    pub trail: Trail,
}

/// A congestion control: a pure state machine, one per sending queue pair. Its timers live inside it: every
/// call says what time it is, and the control catches up before it answers, so idle queue pairs cost nothing.
pub trait Congestion {
    /// What the queue pair may do now.
    fn allowance(&mut self, now: Time) -> Allowance;

    /// `packets` were acknowledged for the first time; `echo` says that the reply carried a mark.
    fn on_ack(&mut self, _now: Time, _packets: u64, _echo: bool) {}

    /// A NACK has come; otherwise as [`Congestion::on_ack`], which is what it does if nothing else is said.
    fn on_nacked(&mut self, now: Time, packets: u64, echo: bool) {
        self.on_ack(now, packets, echo);
    }

    /// In runs with telemetry, in place of [`Congestion::on_ack`]: a reply has come, and this is what it tells.
    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        self.on_ack(now, feedback.acked, feedback.echo);
    }

    /// A CNP has come, or the queue pair's steering takes a reply for one ([`crate::Steering::on_reply`]).
    fn on_cnp(&mut self, _now: Time) {}

    /// A NACK that the sender heeds has come.
    fn on_nack(&mut self, _now: Time) {}

    /// The retransmission timer has fired.
    fn on_timeout(&mut self, _now: Time) {}
}
