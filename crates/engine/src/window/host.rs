//! A host in one window: everything that happens at it, in order of time. At one instant: pause and resume
//! frames, departures, arrivals, timers.
//!
//! Arrivals and departures are what there is plenty of. A departure is taken when the next thing comes that it
//! precedes: until then it is only known when it is due.

use super::out::{Frames, Out, Span};
use super::port::{LOSSY, Port, TRACKED};
use super::wire::Wire;
use crate::host::Host;
use crate::setup::DATA;
use model::{Packet, Parts};

/// One host, one window.
pub(super) struct Visit<'v, P: Parts> {
    host: &'v mut Host<P>,
    port: &'v mut Port,
    out: Out<'v>,
    frames: &'v mut Frames,
    wire: Wire<'v>,
    one_class: bool,
    /// When the host starts its next packet, as far as it is known; [`u64::MAX`] if it has none.
    due: u64,
}

impl<'v, P: Parts> Visit<'v, P> {
    /// `due` is what the last visit returned.
    #[inline(always)]
    pub(super) fn new(
        host: &'v mut Host<P>,
        port: &'v mut Port,
        mut out: Out<'v>,
        frames: &'v mut Frames,
        one_class: bool,
        due: u64,
    ) -> Self {
        let wire = Wire::take(port, &mut out, 0);
        Visit { host, port, out, frames, wire, one_class, due }
    }

    /// Takes the arrivals, in their order, and everything else; returns when the host starts its next packet,
    /// and when it has something to do of its own accord again.
    #[inline(always)]
    pub(super) fn run(mut self, arrivals: &[Packet]) -> (u64, u64) {
        let Span { opened, close, .. } = self.out.span;
        if self.host.crowded() {
            arrivals.iter().for_each(|pkt| self.host.expect(self.out.setup, pkt));
        }
        let mut arrivals = arrivals.iter();
        loop {
            let arrival = arrivals.next();
            let (limit, timer_limit) = match arrival {
                Some(pkt) => {
                    let now = opened + pkt.offset() as u64;
                    (now + 1, now)
                }
                None => (close, close),
            };
            loop {
                // A timer comes after what departs at its instant.
                let special = self.frames.next().min(self.host.timer_at().saturating_add(1));
                if self.due < limit.min(special) {
                    self.depart();
                } else if special > timer_limit || !self.on_special(limit, timer_limit) {
                    break;
                }
            }
            let Some(pkt) = arrival else { break };
            self.arrive(timer_limit, pkt);
        }
        self.wire.put_back(self.port, &mut self.out, 0);
        (self.due, self.due.min(self.host.timer_at()))
    }

    #[inline(always)]
    fn arrive(&mut self, now: u64, pkt: &Packet) {
        let [reply, cnp] = self.host.on_arrival(self.out.setup, now, pkt);
        if let Some(reply) = reply {
            self.enqueue(reply);
        }
        if let Some(cnp) = cnp {
            self.enqueue(cnp);
        }
        self.plan(now);
    }

    /// Lets the pause frame or the timer act that is next, if it comes before its limit.
    #[cold]
    #[inline(never)]
    fn on_special(&mut self, limit: u64, timer_limit: u64) -> bool {
        let (frame, timer) = (self.frames.next(), self.host.timer_at());
        if frame < limit && frame <= timer {
            if let Some((_, on)) = self.frames.take() {
                self.out.paused(0, self.port, frame, on);
            }
            self.plan(frame);
            // What waits starts at once, even if the next frame of this instant pauses the port again.
            while self.due <= frame {
                self.depart();
            }
        } else if timer < timer_limit {
            self.host.on_timer(self.out.setup, timer);
            self.plan(timer);
        } else {
            return false;
        }
        true
    }

    #[inline(always)]
    fn enqueue(&mut self, pkt: Packet) {
        if self.one_class {
            self.port.push_data(pkt);
        } else {
            let class = self.out.setup.class(&pkt);
            debug_assert_ne!(class, DATA, "hosts queue replies only");
            self.port.push_reply(class, pkt);
        }
    }

    /// Starts the packet that is due.
    #[inline(always)]
    fn depart(&mut self) {
        let now = self.due;
        let pkt = match self.port.open() {
            0 => self.host.pull(self.out.setup, now),
            _ => self.port.pop(),
        };
        if let Some(pkt) = pkt {
            if self.port.is(LOSSY | TRACKED) {
                self.launch_oddly(now, pkt);
            } else if let Some((after, sent)) = self.wire.launch(now, pkt) {
                self.out.send_far(0, self.port, after, sent);
            }
        }
        self.plan(now);
    }

    #[inline(never)]
    fn launch_oddly(&mut self, now: u64, pkt: Packet) {
        self.wire.put_back(self.port, &mut self.out, 0);
        self.out.launch_oddly(0, self.port, now, pkt);
        self.wire = Wire::take(self.port, &mut self.out, 0);
    }

    /// Works out anew when the next packet starts, which is not before `now`.
    #[inline(always)]
    fn plan(&mut self, now: u64) {
        let first = if self.port.open() != 0 {
            now
        } else if self.port.paused() {
            u64::MAX
        } else {
            self.host.eligible_at().max(now)
        };
        self.due = first.max(self.wire.free);
    }
}
