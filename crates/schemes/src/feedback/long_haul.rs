//! Long-haul: a notification point and a reaction point for congestion control, in the switches at a datacentre's edge.
//!
//! "THEMIS: Efficiently Mitigating Congestion-Induced Fairness Disparities in Long-Haul RDMA Networks" (Liu et al.), a
//! poster of two pages, and its public prototype. It is called long-haul here because another system is called Themis. A
//! report of congestion to a sender in another datacentre arrives a long round trip too late, and local flows pay for the
//! delay. So the *external* switch between a datacentre and the long link answers on behalf of the remote end:
//!
//! * **Notification point** ([`notify`]), for local senders. Data that was marked in its own datacentre and is about to
//!   leave loses its mark, and its sender gets a CNP from the external switch, at most one per interval. CNPs from the long
//!   link count against the same interval.
//! * **Reaction point** ([`react`]), for local receivers. A CNP that is about to leave shows that a remote flow is too
//!   fast. The switch notes on the CNP that it has reacted, forwards the CNP, and delays the flow's data for a while.
//!
//! The authors' full version ("THEMIS: Addressing Congestion-Induced Unfairness in Long-Haul RDMA Networks", Niu et al.,
//! ICNP'25) calls the two PNP and TRP, and has others in their place: `notification = "proactive"` and `reaction = "loop"`
//! ([`circuit`]), as read in its public artefact.
//!
//! A *long port* leads to another switch of the same role, so it belongs in external switches.
//!
//! In a datacentre with several external switches, a flow's data and its CNPs take independent hashed paths. If they cross
//! different external switches, the switch that sees the CNPs is not the one that could delay the data.
//!
//! A congestion flag on an ACK is treated like a CNP frame: where a CNP would be dropped, the flag is cleared.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `marks_seen` | marked data packets that were about to leave their sender's datacentre |
//! | `cnps_made` | CNPs to local senders |
//! | `cnps_passed` | CNPs from a long link that were forwarded |
//! | `cnps_gated` | CNPs from a long link that ended here |
//! | `cnps_unaddressed` | CNPs that were due for flows without an entry in the table (`cnp-table`) |
//! | `cnp_table_peak` | most entries at one time, summed over switches (`cnp-table`) |
//! | `reactions` | CNPs of local receivers that changed a flow's delay or passes, or that paused a long link |
//! | `reacted_before` | CNPs from a long link that carried the note of the remote switch's reaction |
//! | `episodes` | times that the delay of a flow began |
//! | `holds` | packets held |
//! | `resubmissions` | further passes of held packets through the ingress pipeline (`delay`), returns to the tail of their port (`prototype`), or passes through the loop (`loop`) |
//! | `most_passes` | passes of the flow that has the most, summed over switches (`loop`) |
//! | `left_early` | packets that recovery let out of the loop (`loop`) |
//! | `collisions` | flows whose place was taken (`loop` with `slots`) |
//! | `overflows` | packets released early because the stash was full |
//! | `stash_flow_peak` | most bytes held of one flow, summed over switches |
//! | `stash_peak` | most bytes held at one time, summed over switches |
//! | `stash_left` | bytes held at the end of the run |

mod circuit;
mod config;
mod links;
mod notify;
mod pause;
mod prototype;
mod react;
#[cfg(test)]
mod tests;

pub use config::{
    Circuit, CnpTable, Collision, Config, Notification, Ramp, ReactionMode, Recovery, RecoveryMode,
    VirtualRate,
};
use finding::Finding;

use super::{Feedback, FeedbackRecipe, Needs};
use crate::palette::Look;
use circuit::Ring;
pub(crate) use links::{MOST, long_by_port, long_ports};
use model::{Cx, Kind, Packet, Plan, PortIndex, Reroute, Site, Verdict};
pub(crate) use notify::Notifier;
use pause::Pauses;
use prototype::Prototype;
use react::Stash;

impl FeedbackRecipe for Config {
    type Feedback = LongHaul;
    const LOOK: Look = Look::new(2, 1);
    const TRIALS: &'static [&'static str] = &[
        "interval = \"2us\"\nstash = \"30kB\"",
        "interval = \"0us\"\nreaction = \"delay\"\nfirst-delay = \"700ns\"\nmost-delay = \"40us\"",
        "interval = \"5us\"\nnotification = \"prototype\"\nreaction = \"prototype\"\nmemory = \"9us\"",
        "interval = \"1us\"\nnotification = \"proactive\"\nreaction = \"loop\"\n\
         loop = { recovery = { after = \"20us\" }, background = 3 }",
        "notification = \"proactive\"\ncnp-delay-most = \"5us\"\ncnp-table = { entries = 2 }\nreaction = \"loop\"\n\
         loop = { ramp = \"twenty\", slots = 2, recovery = { after = \"3us\", mode = \"direct\" } }",
    ];

    fn build(&self, site: Site<'_>) -> LongHaul {
        let plan = site.plan;
        let reactor = match self.reaction {
            ReactionMode::Off => Reactor::Off,
            ReactionMode::Rate | ReactionMode::Delay => Reactor::Stash(Box::new(Stash::new(self, site))),
            ReactionMode::Prototype => Reactor::Prototype(Box::new(Prototype::new(self, site))),
            ReactionMode::Loop => Reactor::Loop(Box::new(Ring::new(&self.circuit, site))),
            ReactionMode::Pause => Reactor::Pause(Pauses::new(self.pause())),
        };
        let notifier = Box::new(Notifier::new(self, plan));
        LongHaul { long: long_by_port(plan, site.node), notifier, reactor }
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        self.checked(plan)
    }

    fn needs_long_link(&self) -> bool {
        true
    }
}

/// The feedback of one external switch.
#[derive(Clone, Debug)]
pub struct LongHaul {
    /// True for long ports, by port.
    long: Vec<bool>,
    notifier: Box<Notifier>,
    reactor: Reactor,
}

#[derive(Clone, Debug)]
enum Reactor {
    Off,
    Stash(Box<Stash>),
    Prototype(Box<Prototype>),
    Loop(Box<Ring>),
    Pause(Pauses),
}

impl LongHaul {
    fn is_long(&self, port: PortIndex) -> bool {
        self.long.get(usize::from(port.0)).copied().unwrap_or(false)
    }
}

/// True for a CNP, and for a reply that carries a congestion flag.
pub(crate) fn reports(pkt: &Packet) -> bool {
    match pkt.kind() {
        Kind::Cnp => true,
        Kind::Ack | Kind::Nack => pkt.echo(),
        Kind::Data | Kind::Signal | Kind::Trimmed | Kind::Control | Kind::Probe => false,
    }
}

impl Feedback for LongHaul {
    fn needs(&self) -> Needs {
        Needs { replies: true, departures: self.notifier.is_proactive(), ..Needs::default() }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) -> Verdict {
        let (came, leaves) = (self.is_long(cx.ingress), self.is_long(port));
        if reports(pkt) {
            match &mut self.reactor {
                Reactor::Stash(stash) if leaves && !came => stash.report(cx.now, pkt),
                Reactor::Stash(stash) if came => stash.hear(pkt),
                // The prototype does not tell CNPs of local receivers from CNPs of the long link.
                Reactor::Prototype(prototype) => prototype.report(cx.now, pkt.qp()),
                Reactor::Loop(ring) if leaves && !came => ring.report(cx, pkt),
                Reactor::Pause(pauses) if leaves && !came => pauses.report(cx, port),
                _ => {}
            }
            if came && !self.notifier.passes(cx.now, pkt) {
                if pkt.kind() == Kind::Cnp {
                    return Verdict::Drop;
                }
                *pkt = pkt.with_echo(false);
            }
        }
        if pkt.is_data() {
            self.notifier.note(cx.now, pkt);
            if leaves && !came && pkt.marked() {
                self.notifier.notify(cx, pkt);
            }
        }
        match &mut self.reactor {
            Reactor::Stash(stash) if pkt.is_data() && came && !leaves => stash.arrive(cx, pkt, port),
            Reactor::Prototype(prototype) if !leaves => prototype.arrive(cx, pkt, port),
            Reactor::Loop(ring) if pkt.is_data() && came && !leaves => ring.arrive(cx, pkt, port),
            _ => Verdict::Forward(port),
        }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, _: PortIndex) {
        if pkt.marked() {
            self.notifier.start(cx, pkt);
        }
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.notifier.wake(cx);
        match &mut self.reactor {
            Reactor::Off => {}
            Reactor::Stash(stash) => stash.wake(cx),
            Reactor::Prototype(prototype) => prototype.wake(cx),
            Reactor::Loop(ring) => ring.wake(cx),
            Reactor::Pause(pauses) => pauses.wake(cx),
        }
    }

    fn on_routes_change(&mut self, news: &Reroute<'_>) {
        match &mut self.reactor {
            Reactor::Off | Reactor::Prototype(_) | Reactor::Pause(_) => {}
            Reactor::Stash(stash) => stash.reroute(news),
            Reactor::Loop(ring) => ring.reroute(news),
        }
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.notifier.counters(sink);
        match &self.reactor {
            Reactor::Off => {}
            Reactor::Stash(stash) => stash.counters(sink),
            Reactor::Prototype(prototype) => prototype.counters(sink),
            Reactor::Loop(ring) => ring.counters(sink),
            Reactor::Pause(pauses) => pauses.counters(sink),
        }
    }
}
