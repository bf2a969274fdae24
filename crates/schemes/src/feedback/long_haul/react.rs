//! The reaction point: delays data of a remote sender that does not know yet that it is too fast.
//!
//! Packet k of a flow leaves at r(k) = max(arrival(k) + T_block, r(k-1) + size / R), and never before packet k - 1. R is
//! the rate of a DCQCN that receives the same CNPs as the sender, a long round trip earlier. With `reaction = "delay"`
//! there is no R. T_block is then rounded up to whole passes through the ingress pipeline, and within an episode no packet
//! makes fewer passes than the packet before (the paper's order rule).
//!
//! One pass takes the time in which the long link carries all bytes that the switch holds at that moment, at least the
//! packet itself. A packet's pass time stays what it was on arrival (our reading: the paper's sum over queue lengths,
//! without a wake-up for each pass). Under this rule the delay runs away. The first packet of an episode finds the switch
//! almost empty and makes a thousand short passes; later packets may make no fewer, and their passes are long.

use super::config::{Config, ReactionMode};
use super::links::{MOST, long_ports, long_round_trip, time_to_send};
use model::scheme::Handle;
use model::{Congestion, Cx, HostId, Packet, PortIndex, QpId, Rate, Reroute, Site, Time, Verdict};
use rnic::Control as _;
use rnic::congestion::dcqcn_hpcc::{self, DcqcnHpcc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A held packet.
#[derive(Clone, Copy, Debug)]
struct Held {
    handle: Handle,
    port: PortIndex,
    to: HostId,
    bytes: u32,
    /// Earliest departure.
    ready: Time,
}

/// A remote flow that has had a CNP.
#[derive(Clone, Debug)]
struct Flow {
    /// T_block.
    delay: Time,
    /// Time of the last CNP.
    heard: Time,
    /// Time of the last change of T_block.
    changed: Time,
    /// Halvings of T_block since `heard`: spans of `memory` without a CNP.
    halved: u32,
    control: Option<DcqcnHpcc>,
    /// Earliest departure of the next packet by the virtual rate.
    free: Time,
    /// Departure of the first held packet.
    due: Time,
    held: VecDeque<Held>,
    bytes: u64,
    /// Passes of the last packet of this episode.
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
    /// Settings of the virtual rate, if any.
    dcqcn: Option<dcqcn_hpcc::Config>,
    first: Time,
    most: Time,
    memory: Time,
    step: Time,
    /// Rate at which the ingress pipeline takes packets: that of the fastest long link.
    drain: Rate,
    /// Line rate of each queue pair's sender.
    lines: Vec<Rate>,
    /// Most bytes held, by queue pair.
    flow_limit: Vec<u64>,
    limit: u64,
    flows: BTreeMap<QpId, Flow>,
    /// Flows with held packets, by the departure of the first.
    due: BTreeSet<(Time, QpId)>,
    bytes: u64,
    counts: Counts,
}

/// Bytes sent at `rate` in `time`.
fn bytes_sent(rate: Rate, time: Time) -> u64 {
    let bits = u128::from(rate.bps()) * u128::from(time.ps());
    u64::try_from(bits / 8_000_000_000_000).unwrap_or(u64::MAX)
}

impl Stash {
    pub(super) fn new(config: &Config, site: Site<'_>) -> Self {
        let (plan, ports) = (site.plan, site.fabric().ports(site.node));
        let round_trip = long_round_trip(plan, site.node);
        let line = |from: HostId| site.fabric().uplink(from).rate;
        let lines: Vec<Rate> = plan.qps.iter().map(|qp| line(qp.from)).collect();
        let limit =
            |rate: &Rate| config.flow_stash.map_or(bytes_sent(*rate, round_trip), |bytes| bytes.get());
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

    /// Reacts to a CNP of a local receiver that is about to leave, and notes the reaction on the CNP.
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

    /// Counts a CNP from a long link.
    pub(super) fn hear(&mut self, pkt: &Packet) {
        self.counts.before += u64::from(pkt.reacted());
    }

    /// Data from a long link; `port` leads to its receiver.
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
            let pass = time_to_send((self.bytes + u64::from(bytes)).max(1), self.drain).max(1);
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
        // A full stash releases its oldest packets. The new packet cannot be released, since it is not held yet.
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

    /// Redirects held packets to ports that still lead to their hosts.
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
    /// Halves T_block for every span of `memory` without a CNP; a value below half of the first delay becomes 0.
    fn age(&mut self, now: Time, (memory, first): (Time, Time)) {
        let spans = ((now.ps() - self.heard.ps()) / memory.ps()).min(64) as u32;
        if spans > self.halved {
            let delay = self.delay.ps().checked_shr(spans - self.halved).unwrap_or(0);
            self.delay = if delay < first.ps() / 2 { Time::ZERO } else { Time(delay) };
            self.halved = spans;
        }
    }

    /// Charges the virtual rate for a packet that leaves now.
    fn take(&mut self, now: Time, bytes: u32) {
        if let Some(control) = &mut self.control {
            self.free = now + control.allowance(now).pace.gap(bytes.into());
        }
    }

    /// Releases the first held packet; returns its bytes.
    fn release(&mut self, cx: &mut Cx<'_>) -> u32 {
        let Some(held) = self.held.pop_front() else { return 0 };
        cx.release(held.handle, held.port);
        self.bytes -= u64::from(held.bytes);
        self.take(cx.now, held.bytes);
        self.due = self.held.front().map_or(Time::NEVER, |next| next.ready.max(self.free).max(cx.now));
        held.bytes
    }
}
