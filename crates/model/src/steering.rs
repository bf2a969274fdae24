//! Load balancing at the sender: the choice of paths for the packets of a queue pair.

use crate::Time;
use crate::annex::{Annex, Notice, SackStamp, Stamp, TelemetryStamp};

/// The part of a scheme in the sending NIC: it chooses the path of each packet of one queue pair. A pure state machine.
///
/// A path is an *entropy*, a UDP source port, which the scheme in the switches maps to links. Packets have the numbers of
/// [`crate::Sender`]. All times are by the host's own clock, which differs from other hosts' clocks.
pub trait Steering {
    /// Fields that the steering writes on packets and reads on replies.
    type Annex: Annex;

    /// Reads a word of each cache line that the next packet or reply will need. This only saves time; the default reads none.
    #[inline]
    fn fetch(&self) {}

    /// Chooses the path of a packet that starts now.
    fn on_send(&mut self, now: Time, sent: Sent) -> Self::Annex;

    /// The port of the NIC for the packet that starts now, out of these (a bit for each), in runs whose queue pairs spread
    /// over the ports of their NIC. [`Steering::on_send`] follows, unless the steering returns `None`: no path of its own
    /// leads through any of these ports. Unlike all other times, `now` is the time of the run, by which controllers act.
    #[inline]
    fn port(&mut self, _now: Time, ports: u32) -> Option<u8> {
        (ports != 0).then(|| ports.trailing_zeros() as u8)
    }

    /// Handles a change of the ports that the queue pair may use, a bit for each.
    fn on_ports(&mut self, _usable: u32) {}

    /// True if the steering holds its queue pair back: no packet may start until a handler has changed this.
    #[inline]
    fn holds(&self) -> bool {
        false
    }

    /// True if replies change nothing, and the queue pair may send at any time, until a signal or a timer changes this. A
    /// host may then handle replies before it computes the packets that start earlier.
    #[inline]
    fn is_passive(&self) -> bool {
        false
    }

    /// Time of the next [`Steering::on_deadline`]; [`Time::NEVER`] if none is due. It may become later at any time, but
    /// earlier only in a handler.
    #[inline]
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// Handles the time of [`Steering::deadline`].
    fn on_deadline(&mut self, _now: Time) {}

    /// Handles a signal with this tag from a switch.
    fn on_signal(&mut self, _now: Time, _tag: u64) {}

    /// Handles a reply, after the sender and the congestion control have processed it. All packets before `una` are
    /// acknowledged now; `room` computes the number of packets that the window releases.
    ///
    /// Returns the number of CNPs that the reply counts for at the congestion control, in addition to its mark. It is above
    /// 0 if the steering finds the reply's path congested.
    fn on_reply(&mut self, _now: Time, _una: u64, _annex: &Self::Annex, _room: Room<'_>) -> u32 {
        0
    }

    /// Handles the answer to an [`AsideKind::Probe`]. The annex has the probe's entropy, and whether it was marked.
    fn on_probed(&mut self, _now: Time, _annex: &Self::Annex) {}

    /// Handles the expiry of the retransmission timer.
    fn on_timeout(&mut self, _now: Time) {}

    /// Handles a packet that the sender takes for lost, in runs with SACKs.
    fn on_lost(&mut self, _now: Time, _seq: u64) {}

    /// True if the steering has a packet of its own, which goes ahead of the sender's packets.
    fn has_aside(&self) -> bool {
        false
    }

    /// The steering's own packet to send now, if [`Steering::has_aside`].
    fn aside(&mut self, _now: Time) -> Option<Aside<Self::Annex>> {
        None
    }

    /// Reports the steering's counters by name; the results sum them over all queue pairs.
    fn counters(&self, _sink: &mut dyn FnMut(&'static str, u64)) {}
}

/// Computes the number of packets that a queue pair may send now. Most steerings do not call it.
pub type Room<'a> = &'a mut dyn FnMut() -> u64;

/// A packet that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Number of the packet.
    pub seq: u64,
    /// True for a retransmission.
    pub again: bool,
    /// Number of later packets in the same message.
    pub left: u64,
    /// Length of the frame, bytes.
    pub frame: u32,
}

/// A packet that a steering sends in addition to the sender's packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aside<A> {
    /// Content of the packet.
    pub kind: AsideKind,
    /// Annex of the packet.
    pub annex: A,
}

/// Content of an [`Aside`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsideKind {
    /// A copy of the packet of this number, which was sent before and is not acknowledged.
    Copy(u64),
    /// A notice instead of payload; the annex carries it, too.
    Notice(Notice),
    /// A control message that the receiver sends back, to test the path of its entropy.
    Probe,
}

/// No steering: all packets of a queue pair have the same entropy.
impl Steering for () {
    type Annex = ();

    #[inline(always)]
    fn on_send(&mut self, _: Time, _: Sent) {}

    #[inline(always)]
    fn is_passive(&self) -> bool {
        true
    }
}

/// Defines a steering that writes a [`Stamp`] into a larger annex.
macro_rules! within {
    ($(#[$doc:meta])* $with:ident, $annex:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $with<S>(pub S);

        impl<S: Steering<Annex = Stamp>> Steering for $with<S> {
            type Annex = $annex;

            #[inline]
            fn fetch(&self) {
                self.0.fetch();
            }

            #[inline]
            fn on_send(&mut self, now: Time, sent: Sent) -> $annex {
                $annex::new(self.0.on_send(now, sent), now)
            }

            #[inline]
            fn port(&mut self, now: Time, ports: u32) -> Option<u8> {
                self.0.port(now, ports)
            }

            fn on_ports(&mut self, usable: u32) {
                self.0.on_ports(usable);
            }

            #[inline]
            fn holds(&self) -> bool {
                self.0.holds()
            }

            #[inline]
            fn is_passive(&self) -> bool {
                self.0.is_passive()
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

            fn on_reply(&mut self, now: Time, una: u64, annex: &$annex, room: Room<'_>) -> u32 {
                self.0.on_reply(now, una, &annex.stamp, room)
            }

            fn on_probed(&mut self, now: Time, annex: &$annex) {
                self.0.on_probed(now, &annex.stamp);
            }

            fn on_timeout(&mut self, now: Time) {
                self.0.on_timeout(now);
            }

            fn on_lost(&mut self, now: Time, seq: u64) {
                self.0.on_lost(now, seq);
            }

            fn has_aside(&self) -> bool {
                self.0.has_aside()
            }

            fn aside(&mut self, now: Time) -> Option<Aside<$annex>> {
                let Aside { kind, annex } = self.0.aside(now)?;
                Some(Aside { kind, annex: $annex::new(annex, now) })
            }

            fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
                self.0.counters(sink);
            }
        }
    };
}

within!(
    /// A steering that writes a [`Stamp`], in a run with telemetry.
    WithTelemetry, TelemetryStamp
);
within!(
    /// A steering that writes a [`Stamp`], in a run with SACKs.
    WithSacks, SackStamp
);
