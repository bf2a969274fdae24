//! Load balancing at the sender: which path a queue pair's packets take.

use crate::Time;
use crate::annex::{Annex, Notice};

/// Steers the packets of one queue pair: the part of a scheme that sits in the sending NIC. A pure state machine.
///
/// A path is an *entropy*, a UDP source port; what switches make of it, their scheme says. Packets are counted as
/// [`crate::Sender`] does. All times are by the host's own clock, which others do not share.
pub trait Steering {
    /// What it writes on packets and reads on replies.
    type Annex: Annex;

    /// Packet `seq` starts now; `again` if it was sent before.
    fn on_send(&mut self, now: Time, seq: u64, again: bool) -> Self::Annex;

    /// A reply has come. All packets before `una` are acknowledged now.
    fn on_reply(&mut self, _now: Time, _una: u64, _annex: &Self::Annex) {}

    /// The retransmission timer has fired.
    fn on_timeout(&mut self, _now: Time) {}

    /// True if it has something to send ahead of all packets that the sender would send.
    fn has_aside(&self) -> bool {
        false
    }

    /// What it sends now, if [`Steering::has_aside`].
    fn aside(&mut self, _now: Time) -> Option<Aside<Self::Annex>> {
        None
    }

    /// True if replies clock its packets: it hears of [`Steering::on_room`].
    fn clocked(&self) -> bool {
        false
    }

    /// The last reply came over a path that it gives up: the congestion control shall take a packet out of its window.
    /// Asked only if [`Steering::clocked`].
    fn gives_up(&self) -> bool {
        false
    }

    /// After a reply, when everybody has heard of it: the sender has so many packets that the window lets go.
    fn on_room(&mut self, _packets: u64) {}

    /// Its counters, by name; the results sum them over all queue pairs.
    fn counters(&self, _sink: &mut dyn FnMut(&'static str, u64)) {}
}

/// What a steering sends of its own accord.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aside<A> {
    /// What it is.
    pub what: What,
    /// What it carries.
    pub annex: A,
}

/// See [`Aside`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A copy of this packet, which has been sent already and is not acknowledged.
    Copy(u64),
    /// A packet without payload; the annex carries the notice, too.
    Notice(Notice),
}

/// Nobody steers: switches choose paths by what all packets of a queue pair have in common.
impl Steering for () {
    type Annex = ();

    #[inline(always)]
    fn on_send(&mut self, _: Time, _: u64, _: bool) {}
}
