//! A switch with a scheme and a feedback: the scheme chooses the port of a packet, then the feedback sees the packet.
//!
//! The feedback does not see a packet that the scheme drops or holds. A switch without feedback holds its scheme alone, so
//! that it pays nothing.

use crate::feedback::{AnyFeedback, Feedback, Needs};
use model::fabric::Detours;
use model::{Cx, Interest, Packet, PortIndex, Reroute, Scheme, Time, Verdict};

/// The scheme and the feedback of one switch.
pub struct WithFeedback<S> {
    scheme: S,
    /// What the scheme alone asks for.
    interest: Interest,
    feedback: AnyFeedback,
    needs: Needs,
}

impl<S: Scheme> WithFeedback<S> {
    /// A switch with this scheme and this feedback.
    pub fn new(scheme: S, feedback: AnyFeedback) -> Self {
        WithFeedback { interest: scheme.interest(), scheme, needs: feedback.needs(), feedback }
    }
}

impl<S: Scheme> Scheme for WithFeedback<S> {
    fn interest(&self) -> Interest {
        Interest {
            queues: self.interest.queues || self.needs.queues,
            every_packet: true,
            plain_replies: self.interest.plain_replies && !self.needs.replies,
            departures: self.interest.departures || self.needs.departures,
            makes_replies: true,
            local: false,
            by_arrivals: false,
            ..self.interest
        }
    }

    fn expect(&self, pkt: &Packet) {
        self.scheme.expect(pkt);
    }

    fn reads_queues(&self, pkt: &Packet, ports: &[PortIndex], detours: &Detours<'_>) -> bool {
        self.needs.queues && pkt.is_data()
            || self.interest.queues && self.scheme.reads_queues(pkt, ports, detours)
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        let asks = self.interest.every_packet || self.interest.detours && !cx.detours.is_empty();
        let verdict = match ports {
            [port] if !asks => Verdict::Forward(*port),
            _ => self.scheme.on_packet(cx, pkt, ports),
        };
        match verdict {
            Verdict::Forward(port) => {
                // A scheme that goes by flow draws nothing.
                if !self.interest.by_flow {
                    cx.draw_anew();
                }
                self.feedback.on_packet(cx, pkt, port)
            }
            Verdict::Hold | Verdict::Drop => verdict,
        }
    }

    fn note_reply(&mut self, now: Time, pkt: &Packet, port: PortIndex) {
        if self.interest.every_packet {
            self.scheme.note_reply(now, pkt, port);
        }
    }

    fn on_depart(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex) {
        self.scheme.on_depart(cx, pkt, port);
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) {
        if self.interest.departures {
            self.scheme.on_start(cx, pkt, port);
        }
        if self.needs.departures {
            self.feedback.on_start(cx, pkt, port);
        }
    }

    /// Wakes both, whichever of them asked: each compares the time.
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.scheme.on_wake(cx);
        self.feedback.on_wake(cx);
    }

    fn on_routes_change(&mut self, cx: &mut Cx<'_>, news: &Reroute<'_>) {
        self.scheme.on_routes_change(cx, news);
        self.feedback.on_routes_change(news);
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.scheme.counters(sink);
        self.feedback.counters(sink);
    }
}
