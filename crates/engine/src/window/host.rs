//! A host in one window: everything that happens at it, in order of time. At one instant: pause and resume
//! frames, departures, arrivals, timers.

use super::out::{Frames, Out, Span};
use super::port::{LOSSY, Port, TRACKED};
use crate::host::Host;
use crate::setup::DATA;
use model::{Packet, Parts};

/// One host, one window.
pub(super) struct Visit<'v, P: Parts> {
    pub(super) host: &'v mut Host<P>,
    pub(super) port: &'v mut Port,
    pub(super) out: Out<'v>,
    pub(super) frames: &'v mut Frames,
    pub(super) one_class: bool,
    /// When the host starts its next packet, as far as it is known; [`u64::MAX`] if it has none.
    pub(super) due: u64,
    /// When something comes to pass that is no arrival.
    pub(super) next_own: u64,
}

impl<P: Parts> Visit<'_, P> {
    /// Takes the arrivals, in their order, and everything else; returns when the host starts its next packet,
    /// and when it has something to do of its own accord again.
    pub(super) fn run(mut self, arrivals: &[Packet]) -> (u64, u64) {
        let Span { opened, close, .. } = self.out.span;
        self.look_ahead();
        if self.host.crowded() {
            arrivals.iter().for_each(|pkt| self.host.expect(self.out.setup, pkt));
        }
        for pkt in arrivals {
            let now = opened + pkt.offset() as u64;
            if self.next_own <= now {
                self.catch_up(now + 1, now);
            }
            let [reply, cnp] = self.host.on_arrival(self.out.setup, now, pkt);
            if let Some(reply) = reply {
                self.enqueue(reply);
            }
            if let Some(cnp) = cnp {
                self.enqueue(cnp);
            }
            self.serve(now);
        }
        self.catch_up(close, close);
        (self.due, self.due.min(self.host.timer_at()))
    }

    /// A timer comes after the arrivals of its instant.
    #[inline(always)]
    fn look_ahead(&mut self) {
        self.next_own = self.due.min(self.frames.next()).min(self.host.timer_at().saturating_add(1));
    }

    /// Does everything of the host's own that comes before `limit`; timers before `timer_limit`.
    #[inline(never)]
    fn catch_up(&mut self, limit: u64, timer_limit: u64) {
        loop {
            let (due, frame, timer) = (self.due, self.frames.next(), self.host.timer_at());
            if frame < limit && frame <= due && frame <= timer {
                if let Some((_, on)) = self.frames.take() {
                    self.out.paused(0, self.port, frame, on);
                }
                self.serve(frame);
            } else if due < limit && due <= timer {
                self.serve(due);
            } else if timer < timer_limit {
                self.host.on_timer(self.out.setup, timer);
                self.serve(timer);
            } else {
                return;
            }
        }
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

    /// Starts at `now` what may start, and plans the next departure.
    #[inline(always)]
    fn serve(&mut self, now: u64) {
        while self.port.busy <= now {
            let pkt = if self.port.open() != 0 {
                self.port.pop()
            } else if self.port.paused() {
                None
            } else {
                self.host.pull(self.out.setup, now)
            };
            let Some(pkt) = pkt else { break };
            if self.port.is(LOSSY | TRACKED) {
                self.out.launch_oddly(0, self.port, now, pkt);
            } else {
                self.out.launch(0, self.port, now, pkt);
            }
        }
        self.due = if self.port.open() != 0 {
            self.port.busy
        } else if self.port.paused() {
            u64::MAX
        } else {
            self.host.eligible_at().max(self.port.busy)
        };
        self.look_ahead();
    }
}
