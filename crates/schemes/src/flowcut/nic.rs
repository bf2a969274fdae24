//! Flowcut in the sending NIC: the NIC obeys its switch, or measures and decides by itself.

use super::idle::IdlePath;
use super::rtt::{PathDelay, Rules};
use super::signal::Signal;
use super::{Config, Deployment};
use model::draw::{Key, below};
use model::steering::{Room, Sent};
use model::{QpSite, Stamp, Time};
use std::collections::VecDeque;

/// State of the sending NIC for one queue pair.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Start of the current drain, and bytes that may be sent in spite of it.
    held: Option<Time>,
    credit: u64,
    /// Longest drain.
    patience: Time,
    /// The NIC's own measurement; `None` if a switch decides.
    judge: Option<Box<Judge>>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    flowcuts: u64,
    drains: u64,
    by_timer: u64,
    held: Time,
}

/// Measurement and choice of paths in a NIC.
#[derive(Clone, Debug)]
struct Judge {
    key: Key,
    drawn: u64,
    entropies: u16,
    entropy: u16,
    rules: Rules,
    keep_average: bool,
    delay: PathDelay,
    overlap: u64,
    /// Least number of unsent packets of a message for which a drain is worth it.
    enough: u64,
    left: u64,
    una: u64,
    /// Start of every packet from `una` on, plus its serialisation time: the round-trip time is measured from there. `None`
    /// for retransmitted packets, whose ACKs are ambiguous (Karn).
    sent: VecDeque<Option<Time>>,
    idle: IdlePath,
    /// Least round-trip time of the path without serialisation, ps: that of the idle path until a sample is lower.
    least: u64,
}

impl Gate {
    pub(super) fn new(config: &Config, site: QpSite<'_>) -> Self {
        let judge = (config.deployment == Deployment::Nic).then(|| {
            let idle = IdlePath::new(site.plan, site.qp);
            let payload = site.plan.wire.payload;
            Box::new(Judge {
                key: site.key(),
                drawn: 0,
                entropies: config.entropies.max(1),
                entropy: 0,
                rules: config.rules(),
                keep_average: config.keep_average,
                delay: PathDelay::default(),
                overlap: config.overlap.into(),
                enough: config.drain_if_left.get().div_ceil(payload.max(1).into()),
                left: 0,
                una: 0,
                sent: VecDeque::new(),
                least: idle.propagation,
                idle,
            })
        });
        // The first packet chooses the first path.
        Gate {
            held: None,
            credit: 0,
            patience: config.drain_timeout,
            judge,
            counts: Counts { flowcuts: 1, ..Counts::default() },
        }
    }

    fn hold(&mut self, now: Time, credit: u64) {
        self.held.get_or_insert(now);
        self.credit = credit;
    }

    fn go_on(&mut self, now: Time) {
        if let Some(since) = self.held.take() {
            self.counts.held += Time(now.ps() - since.ps());
        }
    }
}

impl Judge {
    fn in_flight(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Notes a packet that starts.
    fn note(&mut self, now: Time, sent: Sent) {
        let Some(at) = sent.seq.checked_sub(self.una) else { return };
        let at = at as usize;
        if at < self.sent.len() {
            self.sent[at] = None;
        } else {
            // Packets that were skipped are in flight since before.
            self.sent.resize(at, None);
            self.sent.push_back((!sent.again).then(|| now + self.idle.serialisation(sent.frame)));
        }
        self.left = sent.left;
    }

    /// Notes that all packets before `una` are acknowledged; true if the path is slow.
    fn acknowledged(&mut self, now: Time, una: u64) -> bool {
        let count = (una.saturating_sub(self.una) as usize).min(self.sent.len());
        let last = self.sent.drain(..count).next_back().flatten();
        self.una = self.una.max(una);
        last.is_some_and(|begun| {
            let rtt = now.ps().saturating_sub(begun.ps()).max(1);
            self.least = self.least.min(rtt);
            self.delay.sample(&self.rules, rtt, self.least)
        })
    }

    /// Takes another path.
    fn turn(&mut self) {
        self.drawn += 1;
        self.entropy = below(self.key.draw(self.drawn), self.entropies.into()) as u16;
        self.delay = if self.keep_average { self.delay.carried_over() } else { PathDelay::default() };
    }
}

impl model::Steering for Gate {
    type Annex = Stamp;

    fn on_send(&mut self, now: Time, sent: Sent) -> Stamp {
        if self.held.is_some() {
            self.credit = self.credit.saturating_sub(sent.frame.into());
        }
        match &mut self.judge {
            Some(judge) => {
                judge.note(now, sent);
                Stamp::new(judge.entropy, now)
            }
            None => Stamp::new(0, now),
        }
    }

    #[inline]
    fn holds(&self) -> bool {
        self.held.is_some() && self.credit == 0
    }

    #[inline]
    fn is_passive(&self) -> bool {
        self.held.is_none() && self.judge.is_none()
    }

    fn on_signal(&mut self, now: Time, tag: u64) {
        match Signal::read(tag) {
            Some(Signal::Off(credit)) => self.hold(now, credit.get()),
            Some(Signal::On) => self.go_on(now),
            Some(Signal::Ack { .. }) | None => {}
        }
    }

    fn on_reply(&mut self, now: Time, una: u64, _: &Stamp, _: Room<'_>) -> u32 {
        let Some(judge) = &mut self.judge else { return 0 };
        let slow = judge.acknowledged(now, una);
        let (few, enough) = (judge.in_flight() <= judge.overlap, judge.left >= judge.enough);
        if self.held.is_some() && few {
            judge.turn();
            self.counts.flowcuts += 1;
            self.go_on(now);
        } else if self.held.is_none() && slow && !few && enough {
            self.counts.drains += 1;
            self.hold(now, 0);
        }
        0
    }

    fn deadline(&self) -> Time {
        self.held.map_or(Time::NEVER, |since| Time(since.ps().saturating_add(self.patience.ps())))
    }

    fn on_deadline(&mut self, now: Time) {
        self.on_timeout(now);
    }

    fn on_timeout(&mut self, now: Time) {
        if self.held.is_some() {
            self.counts.by_timer += 1;
            self.go_on(now);
        }
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        if self.judge.is_some() {
            sink("flowcuts", self.counts.flowcuts);
            sink("drains", self.counts.drains);
        }
        sink("drains_ended_by_timer", self.counts.by_timer);
        sink("drained_us", self.counts.held.ps() / 1_000_000);
    }
}
