//! The books of a run: the counts of all nodes, their sums, and the rules of conservation, which are checked at the
//! end of every run.

use crate::host::Host;
use crate::merge::merge;
use crate::outcome::{Control, Data, Effort, Ending, LinkRecord, MessageRecord, Outcome};
use crate::record::sampler::Sampler;
use crate::record::{self, Recorder};
use crate::setup::Setup;
use crate::switch::Switch;
use model::{Bytes, Kind, Packet, Parts, Scheme, Time};
use std::collections::BTreeMap;

/// Counts that an engine keeps outside hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) data: Data,
    pub(crate) control: Control,
    pub(crate) data_hops: u64,
    pub(crate) control_hops: u64,
}

merge!(Tally {
    merge: data, control;
    sum: data_hops, control_hops;
});

impl Tally {
    #[inline]
    pub(crate) fn hop(&mut self, pkt: &Packet) {
        self.data_hops += pkt.is_data() as u64;
        self.control_hops += !pkt.is_data() as u64;
    }

    pub(crate) fn dropped_by_scheme(&mut self, pkt: &Packet) {
        match pkt.kind() {
            Kind::Data => self.data.dropped_scheme += 1,
            Kind::Trimmed => self.data.headers_lost += 1,
            Kind::Signal => self.control.heard += 1,
            _ => self.control.blocked += 1,
        }
    }

    /// Counts a packet that a switch has made.
    pub(crate) fn made(&mut self, pkt: &Packet) {
        self.control.created += 1;
        match pkt.kind() {
            Kind::Signal => self.control.signals += 1,
            _ => self.control.forged += 1,
        }
    }

    pub(crate) fn lost(&mut self, pkt: &Packet, for_lack_of_buffer: bool) {
        match (pkt.kind(), for_lack_of_buffer) {
            (Kind::Data, true) => self.data.dropped_buffer += 1,
            (Kind::Data, false) => self.data.dropped_link += 1,
            (Kind::Trimmed, _) => self.data.headers_lost += 1,
            _ => self.control.dropped += 1,
        }
    }

    /// Counts a data packet that a switch cuts.
    pub(crate) fn cut(&mut self, last_hop: bool) {
        self.data.cut += 1;
        self.data.cut_last_hop += u64::from(last_hop);
    }

    pub(crate) fn count_in_flight(&mut self, pkt: &Packet) {
        match pkt.kind() {
            Kind::Data => self.data.in_flight += 1,
            Kind::Trimmed => self.data.headers_in_flight += 1,
            _ => self.control.in_flight += 1,
        }
    }
}

/// State that an engine hands over when it has stopped.
pub(crate) struct Closing<'r, P: Parts> {
    pub(crate) ending: Ending,
    pub(crate) stopped_at: Option<Time>,
    /// Time at which the last frame had left its port, ps.
    pub(crate) last_sent: u64,
    pub(crate) hosts: &'r [Host<P>],
    pub(crate) switches: &'r [Switch<P>],
    pub(crate) links: Vec<LinkRecord>,
    /// Time since which each port is paused; [`u64::MAX`] if it is not.
    pub(crate) paused_since: Vec<u64>,
    /// Recorders outside hosts.
    pub(crate) recorders: &'r [Recorder],
    /// The sampler, after its last look.
    pub(crate) sampler: Sampler,
    pub(crate) tally: Tally,
    pub(crate) effort: Effort,
}

/// Sums up the counts and checks conservation.
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
    let Tally { mut data, mut control, data_hops, control_hops } = tally;
    for host in hosts {
        host.collect(setup, &mut messages);
        data.merge(&host.data);
        control.merge(&host.control);
    }
    for switch in switches {
        for pkt in switch.stashed() {
            match pkt.kind() {
                Kind::Data => data.held += 1,
                Kind::Trimmed => data.headers_in_flight += 1,
                _ => control.in_flight += 1,
            }
        }
    }
    let recorders = hosts.iter().map(|h| &h.recorder).chain(recorders);
    let mut outcome = Outcome {
        end,
        messages,
        links,
        max_buffer: switches.iter().map(|s| Bytes(s.buffer.peak)).collect(),
        data,
        control,
        out_of_order: out_of_order(setup, hosts, &data),
        data_hops,
        control_hops,
        counters: counters(hosts, switches),
        recording: sampler.finish(plan, end),
        notes: record::gather(setup, recorders),
        violations: Vec::new(),
        broke_lossless: (0..switches.len())
            .filter(|i| switches[*i].dropped_while_lossless)
            .map(|i| plan.fabric.switch(i))
            .collect(),
        effort,
        ending,
    };
    outcome.violations = violations(setup, &outcome, switches);
    outcome
}

/// Packets that arrived out of order, by traffic class. Hosts count them by class only if there are several.
fn out_of_order<P: Parts>(setup: &Setup<'_>, hosts: &[Host<P>], data: &Data) -> Vec<u64> {
    let plan = setup.plan;
    let mut sums = vec![0; plan.traffic_classes.len().max(1)];
    if !setup.several_classes {
        let class = plan.jobs.first().map_or(0, |job| usize::from(job.class));
        if let Some(only) = sums.get_mut(class) {
            *only = data.out_of_order;
        }
    }
    for host in hosts {
        sums.iter_mut().zip(&host.out_of_order).for_each(|(sum, one)| *sum += one);
    }
    sums
}

/// The counters of schemes, by name, summed over switches and hosts.
fn counters<P: Parts>(hosts: &[Host<P>], switches: &[Switch<P>]) -> Vec<(&'static str, u64)> {
    let mut sums: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut add = |name, value| *sums.entry(name).or_insert(0) += value;
    switches.iter().for_each(|switch| switch.scheme.counters(&mut add));
    hosts.iter().for_each(|host| host.counters(&mut add));
    sums.into_iter().collect()
}

/// Every rule of conservation that the run broke, in words.
fn violations<P: Parts>(setup: &Setup<'_>, run: &Outcome, switches: &[Switch<P>]) -> Vec<String> {
    let mut broken = Vec::new();
    let d = &run.data;
    let out = d.accepted + d.duplicate + d.discarded + d.noticed;
    let dropped = d.dropped_buffer + d.dropped_link + d.dropped_scheme;
    if d.sent != out + dropped + d.cut + d.held + d.in_flight
        || d.cut != d.headers_arrived + d.headers_lost + d.headers_in_flight
    {
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
    let in_flight = d.in_flight + d.headers_in_flight;
    let drained = run.ending == Ending::Finished && in_flight == 0 && d.held == 0;
    if d.accepted < received || drained && !plan.jobs.iter().any(|j| j.background) && d.accepted != received {
        broken.push(format!("{} packets accepted, {received} in the messages received", d.accepted));
    }
    for (i, m) in run.messages.iter().enumerate() {
        if m.acked != Time::NEVER && (m.received == Time::NEVER || m.received > m.acked) {
            broken.push(format!("message {i} was acknowledged before it was received"));
        }
    }
    if drained && c.in_flight == 0 {
        // A run may end while a background job waits for its timers. A scheme may then have paused a port for that
        // job.
        let waits = run.messages.iter().any(|m| m.acked == Time::NEVER);
        for (i, switch) in switches.iter().enumerate() {
            if !switch.buffer.idle(waits) {
                let name = plan.fabric.name(plan.fabric.switch(i));
                broken.push(format!("traffic has ended and {name} still charges its buffer or pauses"));
            }
        }
    }
    broken
}
