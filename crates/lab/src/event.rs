//! What happens in a run that a program drives, and what such a run can do.

use crate::failure::Failure;
use model::{QpId, Time};

/// What an event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A timer has fired.
    Timer,
    /// The sender has the acknowledgement of the whole message, or has copied it inside its server.
    Sent,
    /// The receiver has the whole message.
    Received,
    /// The receivers have all bytes of a transfer.
    Transferred,
}

impl Kind {
    /// The name in programs' interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Timer => "timer",
            Kind::Sent => "sent",
            Kind::Received => "received",
            Kind::Transferred => "transferred",
        }
    }
}

/// An event for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event.
    pub at: Time,
    /// Rank at which it happens: the sender, the receiver, or the owner of the timer.
    pub rank: u32,
    /// What has happened.
    pub kind: Kind,
    /// The program's number of the message or timer.
    pub id: u64,
}

/// The result of [`crate::session::Session::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next event.
    Event(Event),
    /// No event comes up to the given time, which is now.
    Until,
    /// No event comes unless the program sends more.
    Idle,
    /// The run has ended early: it stalled, was interrupted, ran out of memory or reached `stop.after`.
    Ended,
}

/// A run that a program drives.
pub(crate) trait Line {
    /// See [`crate::session::Session::next`].
    fn next(&mut self, until: Option<Time>) -> Result<Next, Failure>;

    /// See [`crate::session::Session::send`].
    fn send(&mut self, id: u64, pair: (u32, u32), bytes: u64, tag: u32) -> Result<(), Failure>;

    /// The queue pair of a pair of ranks; `None` if they are of one server, or have none.
    fn queue_pair(&self, pair: (u32, u32), tag: u32) -> Option<QpId>;

    /// See [`engine::live::Live::forgets`].
    fn forgets(&mut self, qp: QpId, at: Time) -> bool;
}
