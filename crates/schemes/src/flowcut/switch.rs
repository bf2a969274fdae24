//! Flowcut in a switch: entries for flows with bytes in flight, and the ACKs that remove them.
//!
//! # Counts
//!
//! Bytes in flight are bytes sent less bytes answered, so lost packets would stay in flight for ever. Therefore a drain that
//! ends by the timer begins a new count: the flow keeps its path, and unanswered packets of the old count no longer matter.
//! Counts are alternately even and odd. Data carries the parity of its count, its ACK repeats it, and an ACK of the other
//! count is ignored. All packets of a count take one path, behind those of the count before. So the first ACK of a count
//! proves that no packet of an earlier count is in flight. Only after that ACK may the next count begin, so two counts are
//! never confused.
//!
//! A count that three bytes cannot hold stays at its maximum, since its true value is unknown. The flow then keeps its path
//! until the next count.

use super::idle::least_round_trips;
use super::rtt::{PathDelay, Rules};
use super::signal::{Journey, MOST_HOPS, Signal};
use super::{Backpressure, Config, Deployment};
use crate::choice::{Choice, Ugal};
use crate::entropies::{Entropies, Mapping};
use crate::flows::Flows;
use model::fabric::Detours;
use model::{
    Bytes, Cx, HostId, Interest, Kind, Packet, PortIndex, Psn, QpId, Rate, Reroute, Scheme, Site, Time,
    Verdict, Wire,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum of an entry's count of bytes in flight (Table III: 3 bytes).
const COUNTED: u32 = (1 << 24) - 1;
/// Bytes in flight above which a source must stop: the count must still have room for what it sends until the XOFF arrives.
/// Our choice, a quarter of the range: 4 MiB are 170 us at 200 Gb/s.
const FULL: u32 = COUNTED / 4 * 3;
/// Most credit of a stopped source: half of the remaining range (our choice). The other half is for what the source sends
/// until the XOFF arrives.
pub(super) const MOST_CREDIT: u32 = 2 << 20;

/// State of a flow with bytes in flight.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Path out of this switch; `None` if the next packet chooses, since few enough packets are in flight.
    out: Option<Choice>,
    /// Ingress port of the newest packet.
    came: PortIndex,
    /// Parity of the current count.
    odd: bool,
    /// True if nothing of an earlier count is in flight.
    settled: bool,
    /// Bytes sent and not answered; stays at its maximum once it reaches it.
    in_flight: u32,
    /// Packets sent and not answered.
    packets: u32,
    delay: PathDelay,
    /// Time at which the source was told to stop, if it is.
    drained: Option<Time>,
    /// Routes have changed and no longer lead over `out`; the flow waits until nothing is in flight there.
    leaves: bool,
    /// The timer has ended a drain: the next data begins a new count.
    overdue: bool,
}

impl Default for Entry {
    fn default() -> Self {
        Entry::new(PortIndex::VIRTUAL, false)
    }
}

impl Entry {
    fn new(came: PortIndex, odd: bool) -> Self {
        Entry {
            out: None,
            came,
            odd,
            settled: true,
            in_flight: 0,
            packets: 0,
            delay: PathDelay::default(),
            drained: None,
            leaves: false,
            overdue: false,
        }
    }

    fn sent(&mut self, bytes: u32) {
        self.in_flight = self.in_flight.saturating_add(bytes).min(COUNTED);
        self.packets = self.packets.saturating_add(1);
    }

    /// Subtracts what an ACK answers, if it belongs to this count; true if it does.
    fn answered(&mut self, odd: bool, bytes: u32, packets: u32) -> bool {
        let counts = odd == self.odd;
        if counts {
            self.settled = true;
            if self.in_flight < COUNTED {
                self.in_flight = self.in_flight.saturating_sub(bytes);
                self.packets = self.packets.saturating_sub(packets);
            }
        }
        counts
    }

    /// Begins a new count.
    fn count_anew(&mut self, odd: bool) {
        (self.odd, self.settled, self.in_flight, self.packets) = (odd, false, 0, 0);
        (self.delay, self.overdue) = (PathDelay::default(), false);
    }

    /// Ends the drain by the timer.
    fn give_up(&mut self) {
        (self.drained, self.overdue, self.delay) = (None, true, PathDelay::default());
    }
}

/// How a flow's path fits the routes when its next packet comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// The path leads to the receiver, or the flow has none yet.
    Leads,
    /// The path no longer leads there. Its packets may be led around the dead link, so the flow drains before it moves, at
    /// most until its timer fires.
    Drains,
    /// The path no longer leads there, and its packets are lost: the flow moves at once.
    Fails,
}

/// Data that has left for its receiver and still needs an ACK.
#[derive(Clone, Copy, Debug)]
struct Owed {
    journey: Journey,
    bytes: u32,
    packets: u8,
    since: Time,
}

/// The time `span` after `time`, saturating.
fn after(time: Time, span: Time) -> Time {
    Time(time.ps().saturating_add(span.ps()))
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    flowcuts: u64,
    drains: u64,
    by_timer: u64,
    peak: u64,
    limit: u64,
}

/// The scheme of one switch.
#[derive(Clone, Debug)]
pub struct Flowcut {
    deployment: Deployment,
    /// Forwarding of a switch when the sending NIC chooses the path.
    entropies: Entropies,
    rules: Rules,
    /// Packets of a flow that may be in flight when it takes a new path.
    overlap: u32,
    backpressure: Backpressure,
    credit: Bytes,
    timeout: Time,
    stamp_mask: u16,
    ack_every: u8,
    ack_delay: Time,
    ack_size: u32,
    /// Slowest link to another switch, and the time of a full frame on it, ps.
    slowest: Rate,
    full: u64,
    wire: Wire,
    /// Sender of each queue pair that ends here, from `first_sender` on; `None` for a sender in the same rack.
    senders: Vec<Option<HostId>>,
    first_sender: u32,
    /// Hosts behind the ports.
    hosts: BTreeMap<PortIndex, HostId>,
    entries: Flows<Entry>,
    /// Least round-trip time by hops, ns: as measured, and on an idle fabric.
    least: [u64; MOST_HOPS + 1],
    idle: [u64; MOST_HOPS + 1],
    owed: BTreeMap<QpId, Owed>,
    /// Owed ACKs by due time; entries whose ACK has been sent meanwhile are skipped.
    due: VecDeque<(Time, QpId)>,
    /// Stopped flows by time; flows that have resumed are skipped.
    stopped: VecDeque<(Time, QpId)>,
    /// Number of flows for which a port is paused.
    paused: BTreeMap<PortIndex, u32>,
    /// Ports whose links are dead.
    dead: BTreeSet<PortIndex>,
    /// True if packets in flight at a change of routes may be led around the dead link, and arrive late.
    led_around: bool,
    /// True if the port of a flow may no longer lead to its receiver: after a change of routes, and in a fabric of groups.
    may_stray: bool,
    counts: Counts,
}

impl Flowcut {
    pub(super) fn new(config: &Config, site: Site<'_>) -> Self {
        let incoming = site.incoming();
        let sends = config.deployment != Deployment::Nic;
        let fabric = site.fabric();
        let elsewhere = |host: &HostId| fabric.attachment(*host) != site.node;
        let senders = match sends {
            true => incoming.clone().map(|qp| Some(site.qp(QpId(qp)).from).filter(elsewhere)).collect(),
            false => Vec::new(),
        };
        let hosts = (0..).map(PortIndex).zip(fabric.ports(site.node));
        let between = fabric.ports(site.node).iter().filter(|link| !fabric.is_host(link.to));
        let slowest = between.map(|link| link.rate).min().unwrap_or(Rate(u64::MAX));
        let wire = site.plan.wire;
        let ack_size = config.ack_size.get() as u32;
        Flowcut {
            deployment: config.deployment,
            entropies: Entropies::new(Mapping::Hash, site),
            rules: config.rules(),
            overlap: config.overlap.into(),
            backpressure: config.backpressure,
            credit: config.credit,
            timeout: config.drain_timeout,
            stamp_mask: (u32::from(u16::MAX) >> (16 - u32::from(config.timestamp_bits.clamp(8, 16)))) as u16,
            ack_every: config.ack_every.clamp(1, 16),
            ack_delay: config.ack_delay,
            ack_size,
            slowest,
            full: wire.transmission(slowest, wire.max_frame()).ps(),
            wire,
            senders,
            first_sender: incoming.start,
            hosts: hosts
                .filter(|(_, l)| fabric.is_host(l.to))
                .map(|(p, l)| (p, fabric.endpoint(l.to, l.peer_port)))
                .collect(),
            entries: Flows::new(),
            least: [u64::MAX; MOST_HOPS + 1],
            idle: if sends && site.is_tor() {
                least_round_trips(site, config.deployment, ack_size)
            } else {
                [0; MOST_HOPS + 1]
            },
            owed: BTreeMap::new(),
            due: VecDeque::new(),
            stopped: VecDeque::new(),
            paused: BTreeMap::new(),
            dead: BTreeSet::new(),
            led_around: false,
            may_stray: fabric.groups() > 0,
            counts: Counts::default(),
        }
    }

    fn stamp(&self, now: Time) -> u16 {
        (now.ps() / 1000) as u16 & self.stamp_mask
    }

    fn sender(&self, qp: QpId) -> Option<HostId> {
        self.senders.get(qp.0.checked_sub(self.first_sender)? as usize).copied().flatten()
    }

    /// True if the flow of a data packet has a minimal path that leads on by one of these ports, or if another switch
    /// chooses.
    fn keeps_path(&self, pkt: &Packet, ports: &[PortIndex]) -> bool {
        let elsewhere = self.deployment == Deployment::Ingress && self.hosts.is_empty();
        let chosen = || self.entries.get(pkt.qp()).and_then(|entry| entry.out);
        let leads = |out: Choice| out.via.is_none() && (!self.may_stray || ports.contains(&out.port));
        elsewhere || chosen().is_some_and(leads)
    }

    /// Forwards a data packet and updates its flow's entry.
    fn on_data(&mut self, cx: &mut Cx<'_>, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        if cx.from_host && cx.to_host {
            return cx.base_path(pkt, ports); // the packet stays inside the rack
        }
        let journey = match cx.from_host {
            true => Journey { stamp: self.stamp(cx.now), ..Journey::default() },
            false => Journey::read(cx.tag).further(),
        };
        if !cx.from_host && self.deployment == Deployment::Ingress {
            cx.tag = journey.tag();
            return cx.base_path(pkt, ports);
        }
        let entry = self.entries.entry_or(pkt.qp(), || Entry::new(cx.ingress, journey.odd));
        let leads = |Choice { port, via }: Choice| match via {
            None => !self.may_stray || ports.contains(&port),
            Some(detour) => cx.detours.toward(detour).contains(&port),
        };
        let waited = entry.drained.is_some_and(|since| cx.now >= after(since, self.timeout));
        let drains = cx.from_host && self.led_around && entry.in_flight > 0 && !waited;
        let fit = match entry.out.filter(|choice| !leads(*choice)) {
            None => Fit::Leads,
            Some(choice) if drains && !self.dead.contains(&choice.port) => Fit::Drains,
            Some(_) => Fit::Fails,
        };
        let stopped = entry.drained.is_some();
        entry.leaves = fit == Fit::Drains;
        if fit == Fit::Fails {
            (entry.out, entry.drained) = (None, None);
            entry.count_anew(entry.odd ^ cx.from_host);
        }
        if cx.from_host {
            // The source keeps the time and has resumed by now.
            let keeps = self.backpressure == Backpressure::Flow;
            if keeps && entry.drained.is_some_and(|since| cx.now >= after(since, self.timeout)) {
                entry.give_up();
            }
            if entry.overdue && entry.settled {
                entry.count_anew(!entry.odd);
            }
        } else if journey.odd != entry.odd {
            entry.count_anew(journey.odd);
        }
        cx.tag = Journey { odd: entry.odd, ..journey }.tag();
        let out = entry.out.unwrap_or_else(|| {
            self.counts.flowcuts += u64::from(cx.from_host);
            entry.delay = PathDelay::default();
            Ugal::default().choose_locally(cx, ports)
        });
        entry.out = Some(out);
        cx.via = out.via;
        entry.came = cx.ingress;
        entry.sent(pkt.frame());
        if fit == Fit::Drains && !stopped {
            self.counts.drains += 1;
            self.stop(cx, pkt.qp());
        } else if cx.from_host && entry.in_flight > FULL && entry.drained.is_none() {
            self.counts.limit += 1;
            self.stop(cx, pkt.qp());
        }
        self.counts.peak = self.counts.peak.max(self.entries.len() as u64);
        if fit == Fit::Fails && stopped && cx.from_host {
            self.go_on(cx, pkt.qp(), cx.ingress);
        }
        out.port
    }

    /// Packets that an ACK of `bytes` answers, and the frame of the last one. The end of a message is answered at once, so
    /// all packets but the last are full.
    fn answers(&self, bytes: u32) -> (u32, u32) {
        let full = self.wire.max_frame();
        (bytes.div_ceil(full), bytes.saturating_sub(1) % full + 1)
    }

    /// Serialisation time of a packet on its path, ns.
    fn serialisation(&self, frame: u32, hops: usize) -> u64 {
        let one = match frame == self.wire.max_frame() {
            true => self.full,
            false => self.wire.transmission(self.slowest, frame).ps(),
        };
        hops as u64 * one / 1000
    }

    /// Handles a switch's ACK; returns the port by which it continues, or `None` at the sender's switch.
    fn on_ack(
        &mut self,
        cx: &mut Cx<'_>,
        pkt: &Packet,
        ports: &[PortIndex],
        (journey, bytes): (Journey, u32),
    ) -> Option<PortIndex> {
        let home = cx.to_host;
        if !home && self.deployment == Deployment::Ingress {
            return Some(cx.base_path(pkt, ports));
        }
        let qp = pkt.qp();
        let (packets, frame) = self.answers(bytes);
        let hops = usize::from(journey.hops).min(MOST_HOPS);
        let serialisation = self.serialisation(frame, hops);
        let Some(entry) = self.entries.get_mut(qp) else {
            return (!home).then(|| cx.base_path(pkt, ports));
        };
        let back = entry.came;
        // An ACK from another port than the current path's answers data on a path that has failed.
        let retraced = self.deployment != Deployment::Full || entry.out.is_some_and(|o| o.port == cx.ingress);
        if !retraced || !entry.answered(journey.odd, bytes, packets) {
            return (!home).then_some(back);
        }
        let slow = home && {
            let now = (cx.now.ps() / 1000) as u16;
            let passed = u64::from(now.wrapping_sub(journey.stamp) & self.stamp_mask);
            let rtt = passed.saturating_sub(serialisation).max(self.idle[hops]).max(1);
            self.least[hops] = self.least[hops].min(rtt);
            entry.delay.sample(&self.rules, rtt, self.least[hops])
        };
        let few = self.overlap > 0 && entry.packets <= self.overlap;
        if entry.in_flight == 0 || few {
            let drained = entry.drained.take();
            match entry.in_flight {
                0 => self.entries.remove(qp),
                _ if drained.is_some() => entry.out = None,
                _ => {}
            }
            if drained.is_some() {
                self.go_on(cx, qp, back);
            }
        } else if slow && entry.drained.is_none() {
            self.counts.drains += 1;
            self.stop(cx, qp);
        }
        (!home).then_some(back)
    }

    /// Tells the source of a flow to stop.
    fn stop(&mut self, cx: &mut Cx<'_>, qp: QpId) {
        let Some(entry) = self.entries.get_mut(qp) else { return };
        entry.drained = Some(cx.now);
        match self.backpressure {
            Backpressure::Flow => {
                let came = entry.came;
                self.order(cx, qp, came, Signal::Off(self.credit));
            }
            Backpressure::Class => {
                let flows = self.paused.entry(entry.came).or_default();
                *flows += 1;
                if *flows == 1 {
                    cx.pause(entry.came, true);
                }
            }
        }
        // With XOFF the source keeps the time.
        if self.backpressure == Backpressure::Class {
            self.stopped.push_back((cx.now, qp));
            cx.wake_at(after(cx.now, self.timeout));
        }
    }

    /// Lets a stopped source resume.
    fn go_on(&mut self, cx: &mut Cx<'_>, qp: QpId, came: PortIndex) {
        match self.backpressure {
            Backpressure::Flow => self.order(cx, qp, came, Signal::On),
            Backpressure::Class => {
                let flows = self.paused.entry(came).or_default();
                *flows = flows.saturating_sub(1);
                if *flows == 0 {
                    self.paused.remove(&came);
                    cx.pause(came, false);
                }
            }
        }
    }

    /// Sends an order to the host behind `port`.
    fn order(&self, cx: &mut Cx<'_>, qp: QpId, port: PortIndex, signal: Signal) {
        let Some(&host) = self.hosts.get(&port) else { return };
        let packet = Packet::new(Kind::Signal, qp, host, Psn::new(0), self.ack_size);
        cx.signal(packet, signal.tag(), Some(port));
    }

    /// Sends the ACK that is owed for a flow.
    fn answer(&mut self, cx: &mut Cx<'_>, qp: QpId, owed: Owed) {
        let Some(sender) = self.sender(qp) else { return };
        let packet = Packet::new(Kind::Signal, qp, sender, Psn::new(0), self.ack_size);
        let port = match self.deployment {
            Deployment::Full => self.entries.get(qp).map(|entry| entry.came),
            _ => None,
        };
        let signal = Signal::Ack { journey: owed.journey, bytes: owed.bytes };
        cx.signal(packet, signal.tag(), port);
        let (packets, _) = self.answers(owed.bytes);
        if let Some(entry) = self.entries.get_mut(qp)
            && entry.answered(owed.journey.odd, owed.bytes, packets)
            && entry.in_flight == 0
        {
            self.entries.remove(qp);
        }
    }
}

impl Scheme for Flowcut {
    fn interest(&self) -> Interest {
        match self.deployment {
            Deployment::Nic => Interest::default(),
            _ => Interest {
                queues: true,
                detours: true,
                every_packet: true,
                plain_replies: true,
                host_departures: true,
                makes_replies: true,
                ..Interest::default()
            },
        }
    }

    /// A flow keeps its path while packets are in flight, and an ACK retraces it.
    #[inline(always)]
    fn reads_queues(&self, pkt: &Packet, ports: &[PortIndex], detours: &Detours<'_>) -> bool {
        pkt.is_data() && (ports.len() > 1 || !detours.is_empty()) && !self.keeps_path(pkt, ports)
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        if self.deployment == Deployment::Nic {
            return self.entropies.on_packet(cx, pkt, ports);
        }
        let port = match pkt.kind() {
            Kind::Data => Some(self.on_data(cx, pkt, ports)),
            Kind::Signal => match Signal::read(cx.tag) {
                Some(Signal::Ack { journey, bytes }) => self.on_ack(cx, pkt, ports, (journey, bytes)),
                _ => Some(cx.base_path(pkt, ports)),
            },
            _ => Some(cx.base_path(pkt, ports)),
        };
        port.map_or(Verdict::Drop, Verdict::Forward)
    }

    fn on_depart(&mut self, cx: &mut Cx<'_>, pkt: &Packet, _: PortIndex) {
        let qp = pkt.qp();
        if self.sender(qp).is_none() {
            return;
        }
        let journey = Journey::read(cx.tag);
        let mut owed = self.owed.get(&qp).copied();
        if let Some(earlier) = owed.filter(|owed| owed.journey.odd != journey.odd) {
            self.owed.remove(&qp);
            self.answer(cx, qp, earlier);
            owed = None;
        }
        let owed = Owed {
            journey,
            bytes: owed.map_or(0, |o| o.bytes) + pkt.frame(),
            packets: owed.map_or(0, |o| o.packets) + 1,
            since: owed.map_or(cx.now, |o| o.since),
        };
        if owed.packets >= self.ack_every || pkt.last() {
            self.owed.remove(&qp);
            return self.answer(cx, qp, owed);
        }
        self.owed.insert(qp, owed);
        if owed.packets == 1 {
            self.due.push_back((cx.now, qp));
            cx.wake_at(after(cx.now, self.ack_delay));
        }
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        while let Some(&(since, qp)) = self.due.front() {
            let at = after(since, self.ack_delay);
            if at > cx.now {
                cx.wake_at(at);
                break;
            }
            self.due.pop_front();
            if let Some(owed) = self.owed.get(&qp).copied().filter(|owed| owed.since == since) {
                self.owed.remove(&qp);
                self.answer(cx, qp, owed);
            }
        }
        while let Some(&(since, qp)) = self.stopped.front() {
            let at = after(since, self.timeout);
            if at > cx.now {
                cx.wake_at(at);
                break;
            }
            self.stopped.pop_front();
            if let Some(entry) = self.entries.get_mut(qp).filter(|entry| entry.drained == Some(since)) {
                entry.give_up();
                let came = entry.came;
                if std::mem::take(&mut entry.leaves) {
                    entry.out = None;
                    entry.count_anew(!entry.odd);
                }
                self.counts.by_timer += 1;
                self.go_on(cx, qp, came);
            }
        }
    }

    fn on_routes_change(&mut self, _: &mut Cx<'_>, news: &Reroute<'_>) {
        self.led_around = news.leads_around();
        self.may_stray = true;
        let ports = (0..news.site.fabric().ports(news.site.node).len()).map(|p| PortIndex(p as u16));
        self.dead = ports.filter(|&port| news.is_dead(port)).collect();
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        if self.deployment == Deployment::Nic {
            return;
        }
        sink("flowcuts", self.counts.flowcuts);
        sink("drains", self.counts.drains);
        sink("drains_ended_by_timer", self.counts.by_timer);
        sink("in_flight_limit", self.counts.limit);
        sink("entries_peak", self.counts.peak);
        sink("entries_left", self.entries.len() as u64);
    }
}
