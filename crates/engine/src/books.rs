//! The books of a run: what nodes count, how it is summed, and the rules of conservation that are checked at
//! the end of every run.

use crate::host::Host;
use crate::outcome::{Control, Data, Effort, Ending, LinkRecord, MessageRecord, Outcome};
use crate::record::sampler::Sampler;
use crate::record::{self, Recorder};
use crate::setup::Setup;
use crate::switch::Switch;
use model::{Bytes, Kind, NodeId, Packet, Parts, Scheme, Time};
use std::collections::BTreeMap;

/// What an engine counts outside hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) data_hops: u64,
    pub(crate) control_hops: u64,
    pub(crate) dropped_buffer: u64,
    pub(crate) dropped_link: u64,
    pub(crate) dropped_scheme: u64,
    pub(crate) control_dropped: u64,
    pub(crate) blocked: u64,
    pub(crate) forged: u64,
    pub(crate) signals: u64,
    pub(crate) heard: u64,
    pub(crate) pause: u64,
    pub(crate) resume: u64,
    /// Found on wires and in queues at the end.
    pub(crate) data_in_flight: u64,
    pub(crate) control_in_flight: u64,
}

impl Tally {
    #[inline]
    pub(crate) fn hop(&mut self, pkt: &Packet) {
        self.data_hops += pkt.is_data() as u64;
        self.control_hops += !pkt.is_data() as u64;
    }

    /// Takes in what another one has counted.
    pub(crate) fn add(&mut self, other: &Tally) {
        let Tally {
            data_hops,
            control_hops,
            dropped_buffer,
            dropped_link,
            dropped_scheme,
            control_dropped,
            blocked,
            forged,
            signals,
            heard,
            pause,
            resume,
            data_in_flight,
            control_in_flight,
        } = *other;
        self.data_hops += data_hops;
        self.control_hops += control_hops;
        self.dropped_buffer += dropped_buffer;
        self.dropped_link += dropped_link;
        self.dropped_scheme += dropped_scheme;
        self.control_dropped += control_dropped;
        self.blocked += blocked;
        self.forged += forged;
        self.signals += signals;
        self.heard += heard;
        self.pause += pause;
        self.resume += resume;
        self.data_in_flight += data_in_flight;
        self.control_in_flight += control_in_flight;
    }

    pub(crate) fn dropped_by_scheme(&mut self, pkt: &Packet) {
        match pkt.kind() {
            Kind::Data => self.dropped_scheme += 1,
            Kind::Signal => self.heard += 1,
            _ => self.blocked += 1,
        }
    }

    /// A switch has made a packet.
    pub(crate) fn made(&mut self, pkt: &Packet) {
        match pkt.kind() {
            Kind::Signal => self.signals += 1,
            _ => self.forged += 1,
        }
    }

    pub(crate) fn lost(&mut self, pkt: &Packet, for_lack_of_buffer: bool) {
        match (pkt.is_data(), for_lack_of_buffer) {
            (true, true) => self.dropped_buffer += 1,
            (true, false) => self.dropped_link += 1,
            (false, _) => self.control_dropped += 1,
        }
    }

    pub(crate) fn under_way(&mut self, pkt: &Packet) {
        self.data_in_flight += pkt.is_data() as u64;
        self.control_in_flight += !pkt.is_data() as u64;
    }
}

/// What an engine hands over when it has stopped.
pub(crate) struct Closing<'r, P: Parts> {
    pub(crate) ending: Ending,
    pub(crate) stopped_at: Option<Time>,
    /// When the last frame had left its port.
    pub(crate) last_sent: u64,
    pub(crate) hosts: &'r [Host<P>],
    pub(crate) switches: &'r [Switch<P>],
    pub(crate) links: Vec<LinkRecord>,
    /// Since when each port is paused; [`u64::MAX`] if it is not.
    pub(crate) paused_since: Vec<u64>,
    /// What was recorded outside hosts.
    pub(crate) recorders: &'r [Recorder],
    /// It has looked at everything after the last event.
    pub(crate) sampler: Sampler,
    pub(crate) tally: Tally,
    pub(crate) effort: Effort,
}

/// Sums up, and checks conservation.
pub(crate) fn close<P: Parts>(setup: &Setup<'_>, run: Closing<'_, P>) -> Outcome {
    let plan = setup.plan;
    let Closing {
        ending,
        stopped_at,
        last_sent,
        hosts,
        switches,
        mut links,
        paused_since,
        recorders,
        sampler,
        tally,
        effort,
    } = run;
    let last = hosts.iter().map(|h| h.last_event).max().unwrap_or(0).max(last_sent);
    let end = stopped_at.unwrap_or(Time(last));
    for (link, since) in links.iter_mut().zip(&paused_since) {
        if *since < end.ps() {
            link.paused += Time(end.ps() - since);
        }
    }
    let mut messages = vec![MessageRecord::default(); plan.messages.len()];
    let mut data = Data {
        dropped_buffer: tally.dropped_buffer,
        dropped_link: tally.dropped_link,
        dropped_scheme: tally.dropped_scheme,
        in_flight: tally.data_in_flight,
        ..Data::default()
    };
    let mut control = Control {
        pause: tally.pause,
        resume: tally.resume,
        created: tally.forged + tally.signals,
        forged: tally.forged,
        signals: tally.signals,
        heard: tally.heard,
        blocked: tally.blocked,
        dropped: tally.control_dropped,
        in_flight: tally.control_in_flight,
        ..Control::default()
    };
    for host in hosts {
        host.collect(setup, &mut messages);
        data.sent += host.data.sent;
        data.accepted += host.data.accepted;
        data.retransmitted += host.data.retransmitted;
        data.spurious += host.data.spurious;
        data.duplicate += host.data.duplicate;
        data.discarded += host.data.discarded;
        data.out_of_order += host.data.out_of_order;
        data.duplicated += host.data.duplicated;
        data.noticed += host.data.noticed;
        data.reorder_sum += host.data.reorder_sum;
        data.reorder_peak = data.reorder_peak.max(host.data.reorder_peak);
        control.ack += host.control.ack;
        control.nack += host.control.nack;
        control.cnp += host.control.cnp;
        control.timeout += host.control.timeout;
        control.created += host.control.created;
        control.arrived += host.control.arrived;
    }
    let mut out_of_order = vec![0; plan.traffic_classes.len().max(1)];
    if !setup.several_classes {
        let class = plan.jobs.first().map_or(0, |job| usize::from(job.class));
        if let Some(only) = out_of_order.get_mut(class) {
            *only = data.out_of_order;
        }
    }
    for host in hosts {
        out_of_order.iter_mut().zip(&host.out_of_order).for_each(|(sum, one)| *sum += one);
    }
    let mut counters: BTreeMap<&'static str, u64> = BTreeMap::new();
    for switch in switches {
        let (held, held_control) = switch.held();
        data.held += held;
        control.in_flight += held_control;
        switch.scheme.counters(&mut |name, value| *counters.entry(name).or_insert(0) += value);
    }
    for host in hosts {
        host.counters(&mut |name, value| *counters.entry(name).or_insert(0) += value);
    }
    let recorders = hosts.iter().map(|h| &h.recorder).chain(recorders);
    let mut outcome = Outcome {
        end,
        messages,
        links,
        max_buffer: switches.iter().map(|s| Bytes(s.buffer.peak)).collect(),
        data,
        control,
        out_of_order,
        data_hops: tally.data_hops,
        control_hops: tally.control_hops,
        counters: counters.into_iter().collect(),
        recording: sampler.finish(plan, end),
        notes: record::gather(setup, recorders),
        violations: Vec::new(),
        broke_lossless: (0..switches.len())
            .filter(|i| switches[*i].dropped_while_lossless)
            .map(|i| NodeId((plan.fabric.hosts() + i) as u32))
            .collect(),
        effort,
        ending,
    };
    outcome.violations = violations(setup, &outcome, switches);
    outcome
}

/// Every rule of conservation that the run broke, in words.
fn violations<P: Parts>(setup: &Setup<'_>, run: &Outcome, switches: &[Switch<P>]) -> Vec<String> {
    let mut broken = Vec::new();
    let d = &run.data;
    let out = d.accepted + d.duplicate + d.discarded + d.noticed;
    let dropped = d.dropped_buffer + d.dropped_link + d.dropped_scheme;
    if d.sent != out + dropped + d.held + d.in_flight {
        broken.push(format!("data packets do not add up: {d:?}"));
    }
    let c = &run.control;
    if c.created != c.arrived + c.heard + c.blocked + c.dropped + c.in_flight {
        broken.push(format!("control packets do not add up: {c:?}"));
    }
    let plan = setup.plan;
    let whole = |(i, record): (usize, &MessageRecord)| match record.received {
        Time::NEVER => 0,
        _ => plan.wire.packets(plan.messages[i].bytes),
    };
    let received: u64 = run.messages.iter().enumerate().map(whole).sum();
    let drained = run.ending == Ending::Finished && d.in_flight == 0 && d.held == 0;
    if d.accepted < received || drained && !plan.jobs.iter().any(|j| j.background) && d.accepted != received {
        broken.push(format!("{} packets accepted, {received} in the messages received", d.accepted));
    }
    for (i, m) in run.messages.iter().enumerate() {
        if m.acked != Time::NEVER && (m.received == Time::NEVER || m.received > m.acked) {
            broken.push(format!("message {i} was acknowledged before it was received"));
        }
    }
    if drained && c.in_flight == 0 {
        // A run may end while a background job waits for its timers; a scheme may have paused a port for it.
        let waits = run.messages.iter().any(|m| m.acked == Time::NEVER);
        for (i, switch) in switches.iter().enumerate() {
            if !switch.buffer.idle(waits) {
                let name = plan.fabric.name(NodeId((plan.fabric.hosts() + i) as u32));
                broken.push(format!("traffic has ended and {name} still charges its buffer or pauses"));
            }
        }
    }
    broken
}
