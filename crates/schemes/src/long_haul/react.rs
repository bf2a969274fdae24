//! The reaction point: holds back what comes from far while its sender does not know yet that it is too fast.
//!
//! Packet k of a flow leaves at r(k) = max(arrival(k) + T_block, r(k-1) + size / R), and never before packet k - 1. R is the
//! rate of a DCQCN that hears the same CNPs as the sender will, a long round trip earlier; with `reaction = "delay"` there
//! is none, and T_block is rounded up to whole passes through the ingress pipeline, of which a packet never makes fewer
//! than the one before it in the same episode (the paper's order rule).
//!
//! What one pass takes is the time that the switch needs, at the rate of the long link, for all that it holds at that
//! moment, and at least for the packet itself; it is taken to stay what it was when the packet came (our reading: the paper's
//! sum over queue lengths, without a wake-up for each pass). By that letter the delay runs away: the first packet of an episode
//! finds little in the switch and makes a thousand short passes, the ones after it may make no fewer, and their passes are long.

use super::{Config, MOST, ReactionMode, long_ports, long_round_trip};
use model::scheme::Handle;
use model::{Congestion, Cx, HostId, Packet, PortIndex, QpId, Rate, Reroute, Site, Time, Verdict};
use rnic::Control as _;
use rnic::congestion::dcqcn::{self, Dcqcn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A packet that is held.
#[derive(Clone, Copy, Debug)]
struct Held {
    handle: Handle,
    port: PortIndex,
    to: HostId,
    bytes: u32,
    /// Not before this.
    ready: Time,
}

/// A flow from far that has had a CNP.
#[derive(Clone, Debug)]
struct Flow {
    /// T_block.
    delay: Time,
    /// When the last CNP came.
    heard: Time,
    /// When T_block changed last.
    changed: Time,
    /// Spans without a CNP after which T_block has been halved, since `heard`.
    halved: u32,
    control: Option<Dcqcn>,
    /// Before this no packet leaves: the last one's share of the virtual rate.
    free: Time,
    /// When the first of those held leaves.
    due: Time,
    held: VecDeque<Held>,
    bytes: u64,
    /// Passes that the last packet of this episode was given.
    passes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    reactions: u64,
    before: u64,
    episodes: u64,
    holds: u64,
    passes: u64,
    overflows: u64,
    flow_peak: u64,
    peak: u64,
}

/// The reaction point of one switch.
#[derive(Clone, Debug)]
pub(super) struct Stash {
    /// Settings of the virtual rate, if there is one.
    dcqcn: Option<dcqcn::Config>,
    first: Time,
    most: Time,
    memory: Time,
    step: Time,
    /// Rate at which the ingress pipeline takes packets: the fastest long link's.
    drain: Rate,
    /// By queue pair: line rate of its sender.
    lines: Vec<Rate>,
    /// By queue pair.
    flow_limit: Vec<u64>,
    limit: u64,
    flows: BTreeMap<QpId, Flow>,
    /// Flows of which something is held, by when the first of it leaves.
    due: BTreeSet<(Time, QpId)>,
    bytes: u64,
    counts: Counts,
}

/// Bytes that `rate` brings in `time`.
fn brought(rate: Rate, time: Time) -> u64 {
    let bits = u128::from(rate.bps()) * u128::from(time.ps());
    u64::try_from(bits / 8_000_000_000_000).unwrap_or(u64::MAX)
}

/// Time that `rate` takes for so many bytes.
fn taken(bytes: u64, rate: Rate) -> u64 {
    let time = u128::from(bytes) * 8_000_000_000_000 / u128::from(rate.bps().max(1));
    u64::try_from(time).unwrap_or(u64::MAX)
}

impl Stash {
    pub(super) fn new(config: &Config, site: Site<'_>) -> Self {
        let (plan, ports) = (site.plan, site.fabric().ports(site.node));
        let round_trip = long_round_trip(plan, site.node);
        let line = |from: HostId| site.fabric().ports(from.node())[0].rate;
        let lines: Vec<Rate> = plan.qps.iter().map(|qp| line(qp.from)).collect();
        let limit = |rate: &Rate| config.flow_stash.map_or(brought(*rate, round_trip), |bytes| bytes.get());
        let rates = long_ports(plan, site.node).into_iter().map(|port| ports[usize::from(port.0)].rate);
        Stash {
            dcqcn: (config.reaction == ReactionMode::Rate).then(|| config.rate.dcqcn()),
            first: config.first_delay.min(MOST),
            most: config.most_delay.unwrap_or(round_trip.max(config.first_delay)).min(MOST),
            memory: config.memory.max(Time(1)),
            step: config.step(),
            drain: rates.max().unwrap_or(Rate::from_gbps(1)),
            flow_limit: lines.iter().map(limit).collect(),
            lines,
            limit: config.stash.get(),
            flows: BTreeMap::new(),
            due: BTreeSet::new(),
            bytes: 0,
            counts: Counts::default(),
        }
    }

    /// A CNP of a local receiver is about to leave: notes on it that this switch has reacted, and reacts.
    pub(super) fn report(&mut self, now: Time, pkt: &mut Packet) {
        if pkt.reacted() {
            return;
        }
        pkt.react();
        let (qp, control) = (pkt.qp(), &self.dcqcn);
        let line = self.lines.get(qp.index()).copied().unwrap_or(Rate::from_gbps(1));
        let flow = self.flows.entry(qp).or_insert_with(|| Flow {
            delay: Time::ZERO,
            heard: now,
            changed: Time::ZERO,
            halved: 0,
            control: control.as_ref().map(|config| config.control(line, None)),
            free: Time::ZERO,
            due: Time::NEVER,
            held: VecDeque::new(),
            bytes: 0,
            passes: 0,
        });
        if let Some(control) = &mut flow.control {
            control.on_cnp(now);
        }
        flow.age(now, (self.memory, self.first));
        let often = now.ps() - flow.heard.ps() <= self.memory.ps() && flow.delay > Time::ZERO;
        if flow.delay == Time::ZERO {
            flow.delay = self.first;
            flow.changed = now;
            self.counts.reactions += 1;
            self.counts.episodes += u64::from(flow.held.is_empty());
        } else if now.ps() - flow.changed.ps() >= self.step.ps() {
            let doubled = Time(flow.delay.ps().saturating_mul(2)).min(self.most);
            flow.delay = flow.delay.max(if often { doubled } else { self.first });
            flow.changed = now;
            self.counts.reactions += 1;
        }
        flow.heard = now;
        flow.halved = 0;
    }

    /// A CNP has come over a long link.
    pub(super) fn hear(&mut self, pkt: &Packet) {
        self.counts.before += u64::from(pkt.reacted());
    }

    /// Data has come over a long link, and its port is this one.
    pub(super) fn arrive(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex) -> Verdict {
        let qp = pkt.qp();
        let Some(flow) = self.flows.get_mut(&qp) else { return Verdict::Forward(port) };
        let (now, bytes) = (cx.now, pkt.frame());
        flow.age(now, (self.memory, self.first));
        let mut ready = now + flow.delay;
        if flow.held.is_empty() {
            flow.passes = 0;
        }
        if flow.control.is_none() && flow.delay > Time::ZERO {
            let pass = taken((self.bytes + u64::from(bytes)).max(1), self.drain).max(1);
            flow.passes = flow.passes.max(flow.delay.ps().div_ceil(pass));
            self.counts.passes += flow.passes;
            ready = Time(now.ps().saturating_add(flow.passes.saturating_mul(pass)));
        }
        let leaves = ready.max(flow.free);
        if flow.held.is_empty() && leaves <= now {
            flow.take(now, bytes);
            return Verdict::Forward(port);
        }
        if flow.held.is_empty() {
            flow.due = leaves;
            self.due.insert((leaves, qp));
        }
        flow.held.push_back(Held { handle: cx.handle(), port, to: pkt.to(), bytes, ready });
        flow.bytes += u64::from(bytes);
        self.bytes += u64::from(bytes);
        self.counts.holds += 1;
        // For want of room the first ones go, if that brings any: the packet itself cannot be released before it is held.
        let limit = self.flow_limit.get(qp.index()).copied().unwrap_or(u64::MAX);
        while flow.held.len() > 1 && (flow.bytes > limit || self.bytes > self.limit) {
            self.due.remove(&(flow.due, qp));
            let first = flow.release(cx);
            self.bytes -= u64::from(first);
            self.counts.overflows += 1;
            self.due.insert((flow.due, qp));
        }
        self.counts.flow_peak = self.counts.flow_peak.max(flow.bytes);
        self.counts.peak = self.counts.peak.max(self.bytes);
        self.alarm(cx);
        Verdict::Hold
    }

    pub(super) fn wake(&mut self, cx: &mut Cx<'_>) {
        while let Some(&(at, qp)) = self.due.first() {
            if at > cx.now {
                break;
            }
            self.due.pop_first();
            let Some(flow) = self.flows.get_mut(&qp) else { continue };
            self.bytes -= u64::from(flow.release(cx));
            if !flow.held.is_empty() {
                self.due.insert((flow.due, qp));
            }
        }
        self.alarm(cx);
    }

    fn alarm(&self, cx: &mut Cx<'_>) {
        if let Some(&(at, _)) = self.due.first() {
            cx.wake_at(at.max(Time(cx.now.ps() + 1)));
        }
    }

    /// What is held leaves by a port that still leads to its host.
    pub(super) fn reroute(&mut self, news: &Reroute<'_>) {
        let router = news.router();
        for held in self.flows.values_mut().flat_map(|flow| &mut flow.held) {
            if news.is_dead(held.port)
                && let Some(&port) = router.ports(held.to).0.first()
            {
                held.port = port;
            }
        }
    }

    pub(super) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let Counts { reactions, before, episodes, holds, passes, overflows, flow_peak, peak } = self.counts;
        for (name, count) in [
            ("reactions", reactions),
            ("reacted_before", before),
            ("episodes", episodes),
            ("holds", holds),
            ("resubmissions", passes),
            ("overflows", overflows),
            ("stash_flow_peak", flow_peak),
            ("stash_peak", peak),
            ("stash_left", self.bytes),
        ] {
            sink(name, count);
        }
    }
}

impl Flow {
    /// Halves T_block for every span without a CNP; below half of the first delay it is nothing.
    fn age(&mut self, now: Time, (memory, first): (Time, Time)) {
        let spans = ((now.ps() - self.heard.ps()) / memory.ps()).min(64) as u32;
        if spans > self.halved {
            let delay = self.delay.ps().checked_shr(spans - self.halved).unwrap_or(0);
            self.delay = if delay < first.ps() / 2 { Time::ZERO } else { Time(delay) };
            self.halved = spans;
        }
    }

    /// A packet leaves now: the next one waits for its share of the rate.
    fn take(&mut self, now: Time, bytes: u32) {
        if let Some(control) = &mut self.control {
            self.free = now + control.allowance(now).pace.gap(bytes.into());
        }
    }

    /// Lets the first of those held go; gives its bytes.
    fn release(&mut self, cx: &mut Cx<'_>) -> u32 {
        let Some(held) = self.held.pop_front() else { return 0 };
        cx.release(held.handle, held.port);
        self.bytes -= u64::from(held.bytes);
        self.take(cx.now, held.bytes);
        self.due = self.held.front().map_or(Time::NEVER, |next| next.ready.max(self.free).max(cx.now));
        held.bytes
    }
}
