//! Load balancing at the sender: which path a queue pair's packets take.

use crate::Time;
use crate::annex::{Annex, Notice, Stamp, TelemetryStamp};

/// Steers the packets of one queue pair: the part of a scheme that sits in the sending NIC. A pure state machine.
///
/// A path is an *entropy*, a UDP source port; what switches make of it, their scheme says. Packets are counted as
/// [`crate::Sender`] does. All times are by the host's own clock, which others do not share.
pub trait Steering {
    /// What it writes on packets and reads on replies.
    type Annex: Annex;

    /// A packet starts now.
    fn on_send(&mut self, now: Time, sent: Sent) -> Self::Annex;

    /// True if it holds its queue pair back: no packet may start until that changes, which it does in a handler.
    #[inline]
    fn holds(&self) -> bool {
        false
    }

    /// When it wants to be called at [`Steering::on_deadline`]; [`Time::NEVER`] if it does not. It may put that off at
    /// any time, and bring it forward in a handler.
    #[inline]
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// Its deadline has come.
    fn on_deadline(&mut self, _now: Time) {}

    /// A switch has sent a signal that says `tag`.
    fn on_signal(&mut self, _now: Time, _tag: u64) {}

    /// A reply has come, and the sender and the congestion control have processed it. All packets before `una` are
    /// acknowledged now; `room` computes how many of the sender's packets the window releases.
    ///
    /// Returns the number of CNPs that the congestion control shall take the reply for besides the mark that it carries:
    /// more than 0 if the steering finds the reply's path congested.
    fn on_reply(&mut self, _now: Time, _una: u64, _annex: &Self::Annex, _room: Room<'_>) -> u32 {
        0
    }

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

    /// Its counters, by name; the results sum them over all queue pairs.
    fn counters(&self, _sink: &mut dyn FnMut(&'static str, u64)) {}
}

/// Computes how many packets a queue pair may send now. Most steerings never ask.
pub type Room<'a> = &'a mut dyn FnMut() -> u64;

/// A packet that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub seq: u64,
    /// It was sent before.
    pub again: bool,
    /// Packets of its message that come after it.
    pub left: u64,
    /// Bytes of its frame.
    pub frame: u32,
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
    fn on_send(&mut self, _: Time, _: Sent) {}
}

/// A steering that writes a [`Stamp`], in a run with telemetry.
#[derive(Clone, Copy, Debug, Default)]
pub struct WithTelemetry<S>(pub S);

impl<S: Steering<Annex = Stamp>> Steering for WithTelemetry<S> {
    type Annex = TelemetryStamp;

    #[inline]
    fn on_send(&mut self, now: Time, sent: Sent) -> TelemetryStamp {
        TelemetryStamp::new(self.0.on_send(now, sent), now)
    }

    #[inline]
    fn holds(&self) -> bool {
        self.0.holds()
    }

    #[inline]
    fn deadline(&self) -> Time {
        self.0.deadline()
    }

    fn on_deadline(&mut self, now: Time) {
        self.0.on_deadline(now);
    }

    fn on_signal(&mut self, now: Time, tag: u64) {
        self.0.on_signal(now, tag);
    }

    fn on_reply(&mut self, now: Time, una: u64, annex: &TelemetryStamp, room: Room<'_>) -> u32 {
        self.0.on_reply(now, una, &annex.stamp, room)
    }

    fn on_timeout(&mut self, now: Time) {
        self.0.on_timeout(now);
    }

    fn has_aside(&self) -> bool {
        self.0.has_aside()
    }

    fn aside(&mut self, now: Time) -> Option<Aside<TelemetryStamp>> {
        let Aside { what, annex } = self.0.aside(now)?;
        Some(Aside { what, annex: TelemetryStamp::new(annex, now) })
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.0.counters(sink);
    }
}
