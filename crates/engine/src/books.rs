//! The books of a run: the counts of all nodes, their sums, and the rules of conservation, which are checked at the
//! end of every run.

use crate::failing::LinkLoss;
use crate::host::Host;
use crate::merge::merge;
use crate::outcome::{
    Control, Data, Effort, Ending, Exceeded, Failover, LinkRecord, LossCause, MessageRecord, Outcome,
    PriorityRoom, QueueCounts, QueueRecord, Watermarks,
};
use crate::record::sampler::Sampler;
use crate::record::{self, Recorder};
use crate::setup::Setup;
use crate::switch::Switch;
use crate::tasks::Tasks;
use model::plan::Classes;
use model::{Bytes, Kind, LinkId, Packet, Parts, Plan, Scheme, Time};
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

/// How a packet is lost outside schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// For lack of buffer.
    Buffer,
    /// On a link.
    Link(LinkLoss),
    /// At its last switch, after it has run in circles.
    Loop,
    /// At a switch whose watchdog has found a storm of pauses.
    Watchdog,
}

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

    pub(crate) fn lost(&mut self, pkt: &Packet, how: Lost) {
        match pkt.kind() {
            Kind::Data => match how {
                Lost::Buffer => self.data.dropped_buffer += 1,
                Lost::Loop => self.data.dropped_loop += 1,
                Lost::Watchdog => self.data.dropped_watchdog += 1,
                Lost::Link(loss) => {
                    self.data.dropped_link += 1;
                    match loss.cause() {
                        LossCause::Chance => self.data.by_chance += 1,
                        LossCause::Codeword => self.data.by_codeword += 1,
                        LossCause::Burst => self.data.in_bursts += 1,
                        LossCause::Outage => self.data.in_outages += 1,
                        LossCause::BlackHole => {
                            self.data.in_outages += 1;
                            self.data.black_hole += 1;
                        }
                    }
                }
            },
            Kind::Trimmed => self.data.headers_lost += 1,
            _ => self.control.dropped += 1,
        }
        self.control.looped += u64::from(how == Lost::Loop && !pkt.is_data());
    }

    /// True if these counts, with those of all hosts, leave nothing on a link, in a queue or at a scheme: each packet has had its fate, and
    /// each pause its resume.
    pub(crate) const fn is_settled(&self) -> bool {
        let Tally { data, control, .. } = self;
        let data_ended =
            data.accepted + data.duplicate + data.discarded + data.noticed + data.dropped() + data.cut;
        let headers_ended = data.headers_arrived + data.headers_lost;
        let control_ended = control.arrived + control.heard + control.blocked + control.dropped;
        data.sent == data_ended
            && data.cut == headers_ended
            && control.created == control_ended
            && control.pause == control.resume
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

/// Bytes that the end of a run takes: a record of every message, and two copies of all `records`, while they are gathered and
/// sorted.
pub(crate) fn closing(plan: &Plan, records: u64) -> u64 {
    (plan.messages.len() * size_of::<MessageRecord>()) as u64 + 2 * records
}

/// State that an engine hands over when it has stopped.
pub(crate) struct Closing<'r, P: Parts> {
    pub(crate) ending: Ending,
    pub(crate) stopped_at: Option<Time>,
    /// Time at which the last frame had left its port, ps.
    pub(crate) last_sent: u64,
    pub(crate) hosts: &'r [Host<P>],
    pub(crate) switches: &'r [Switch<P>],
    /// Tasks by host, in any order.
    pub(crate) tasks: Vec<Tasks>,
    pub(crate) links: Vec<LinkRecord>,
    /// Time since which each port is paused; [`u64::MAX`] if it is not.
    pub(crate) paused_since: Vec<u64>,
    /// Counts of queues of switches by port, in any order.
    pub(crate) queues: Vec<(usize, [QueueCounts; Classes::MOST])>,
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
        mut ending,
        stopped_at,
        last_sent,
        hosts,
        switches,
        mut tasks,
        mut links,
        paused_since,
        queues,
        recorders,
        sampler,
        tally,
        effort,
    } = run;
    let last_task = tasks.iter().map(|tasks| tasks.last_event);
    let last = hosts.iter().map(|h| h.last_event).chain(last_task).max().unwrap_or(0).max(last_sent);
    let end = stopped_at.unwrap_or(Time(last));
    for (link, since) in links.iter_mut().zip(&paused_since) {
        if *since < end.ps() {
            link.paused += Time(end.ps() - since);
        }
    }
    count_storms(recorders, end.ps(), &mut links);
    let mut messages = vec![MessageRecord::default(); plan.messages.len()];
    let Tally { mut data, mut control, data_hops, control_hops } = tally;
    let mut stormed = Vec::new();
    for storm in &setup.failing.storms {
        let (each, priorities) = (storm.frames_by(end.ps()), setup.lossless_priorities(storm.link));
        let frames = each * u64::from(priorities.count_ones());
        links[storm.link].pauses += frames;
        control.pause += frames;
        stormed.push((storm.link, priorities, each));
    }
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
    tasks.sort_by_key(Tasks::first);
    // A queue that leaves in spite of pauses may overflow the next buffer.
    let mut watchdogs =
        plan.settings_of_groups().flatten().filter_map(|switch| switch.flow_control.watchdog());
    let forwards = watchdogs.any(|watchdog| !watchdog.drops);
    let ignored = forwards && links.iter().any(|link| link.storms > 0);
    let recorders = hosts.iter().map(|h| &h.recorder).chain(recorders);
    if let Ending::RetryExceeded(Exceeded { qp, link, .. }) = &mut ending {
        *link = record::last_lost(recorders.clone(), *qp);
    }
    let mut outcome = Outcome {
        end,
        messages,
        tasks: tasks.into_iter().flat_map(|tasks| tasks.records).collect(),
        links,
        nics: hosts.iter().map(Host::nic_record).collect(),
        max_buffer: switches.iter().map(|s| Bytes(s.buffer.peak)).collect(),
        data,
        control,
        out_of_order: out_of_order(setup, hosts, &data),
        data_hops,
        control_hops,
        counters: counters(hosts, switches),
        failovers: failovers(hosts),
        recording: sampler.finish(plan, end),
        queues: queue_records(plan, queues),
        watermarks: watermarks(setup, switches),
        priorities: record::priorities(recorders.clone(), &stormed, end.ps()),
        losses: record::losses(recorders.clone()),
        notes: record::gather(setup, recorders),
        violations: Vec::new(),
        broke_lossless: (0..switches.len())
            .filter(|i| switches[*i].dropped_while_lossless && !ignored)
            .map(|i| plan.fabric.switch(i))
            .collect(),
        effort,
        ending,
    };
    outcome.violations = Ledger::of(setup, &outcome, switches).violations();
    outcome
}

/// The counts of queues in order.
fn queue_records(plan: &Plan, mut queues: Vec<(usize, [QueueCounts; Classes::MOST])>) -> Vec<QueueRecord> {
    if !plan.record.queues {
        return Vec::new();
    }
    queues.sort_by_key(|(gp, _)| *gp);
    let classes = plan.classes.all().len();
    let of = |(gp, counts): (usize, [QueueCounts; Classes::MOST])| {
        (0..classes).map(move |class| QueueRecord {
            link: LinkId(gp as u32),
            class: class as u8,
            counts: counts[class],
        })
    };
    queues.into_iter().flat_map(of).collect()
}

/// The most room that was taken in each switch, if the run counts queues.
fn watermarks<P: Parts>(setup: &Setup<'_>, switches: &[Switch<P>]) -> Vec<Watermarks> {
    let fabric = setup.fabric();
    let of = |(i, switch): (usize, &Switch<P>)| {
        let (node, marks) = (fabric.switch(i), switch.buffer.watermarks()?);
        let base = fabric.base(node) as usize;
        let link = |port| LinkId(setup.feeding(base + port) as u32);
        let rooms = switch.rooms(marks).into_iter();
        let priorities =
            rooms.map(|(port, priority, most)| PriorityRoom { link: link(port), priority, most });
        Some(Watermarks { switch: node, all: marks.all, priorities: priorities.collect() })
    };
    switches.iter().enumerate().filter_map(of).collect()
}

/// Counts rulings up to the end of the run, and leaves out pauses after it.
fn count_storms(recorders: &[Recorder], end: u64, links: &mut [LinkRecord]) {
    for (link, [since, until]) in recorders.iter().flat_map(|recorder| recorder.outlasting()) {
        links[link].paused = Time(links[link].paused.ps() - until.saturating_sub(since.max(end)));
    }
    let rulings = recorders.iter().flat_map(|recorder| &recorder.rulings);
    for &(_, link, stormed) in rulings.filter(|(at, ..)| *at <= end) {
        match stormed {
            true => links[link].storms += 1,
            false => links[link].storms_restored += 1,
        }
    }
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

/// All moves of queue pairs to other ports, by time.
fn failovers<P: Parts>(hosts: &[Host<P>]) -> Vec<Failover> {
    let mut all: Vec<Failover> = hosts.iter().flat_map(Host::failovers).copied().collect();
    all.sort_unstable();
    all
}

/// Numbers that the rules of conservation compare at the end of a run.
#[derive(Clone, Debug)]
struct Ledger<'r> {
    data: Data,
    control: Control,
    messages: &'r [MessageRecord],
    /// Packets of all messages that were received.
    received: u64,
    /// True if no foreground message waits.
    finished: bool,
    /// True if there are background jobs. Their last messages may be on the way when a run finishes.
    background: bool,
    /// Switches whose buffers are charged, or that pause a port.
    busy: Vec<&'r str>,
}

impl<'r> Ledger<'r> {
    fn of<P: Parts>(setup: &Setup<'r>, run: &'r Outcome, switches: &[Switch<P>]) -> Self {
        let plan = setup.plan;
        let received = run.messages.iter().zip(&plan.messages).filter(|(m, _)| m.received != Time::NEVER);
        // A run may finish while a background job waits for its timers. A scheme may then have paused a port for that
        // job.
        let waits = run.messages.iter().any(|m| m.acked == Time::NEVER);
        let busy = switches.iter().enumerate().filter(|(_, switch)| !switch.buffer.idle(waits));
        Ledger {
            data: run.data,
            control: run.control,
            messages: &run.messages,
            received: received.map(|(_, message)| plan.wire.packets(message.bytes)).sum(),
            finished: run.ending == Ending::Finished,
            background: plan.jobs.iter().any(|job| job.background),
            busy: busy.map(|(i, _)| plan.fabric.name(plan.fabric.switch(i))).collect(),
        }
    }

    /// Every rule of conservation that the run broke, in words.
    fn violations(&self) -> Vec<String> {
        let rules = [self.data_packets(), self.control_packets(), self.received_packets()];
        rules.into_iter().flatten().chain(self.early_acks()).chain(self.busy_switches()).collect()
    }

    /// Every data packet has one fate, and every cut packet's header has one.
    fn data_packets(&self) -> Option<String> {
        let d = &self.data;
        let out = d.accepted + d.duplicate + d.discarded + d.noticed;
        let whole = d.sent == out + d.dropped() + d.cut + d.held + d.in_flight
            && d.cut == d.headers_arrived + d.headers_lost + d.headers_in_flight
            && d.dropped_link == d.by_chance + d.by_codeword + d.in_bursts + d.in_outages
            && d.black_hole <= d.in_outages;
        (!whole).then(|| format!("data packets do not add up: {d:?}"))
    }

    fn control_packets(&self) -> Option<String> {
        let c = &self.control;
        let whole = c.created == c.arrived + c.heard + c.blocked + c.dropped + c.in_flight;
        (!whole).then(|| format!("control packets do not add up: {c:?}"))
    }

    /// Receivers have accepted every packet of the messages received. They have accepted no other packet once all
    /// messages have arrived.
    fn received_packets(&self) -> Option<String> {
        let (accepted, received) = (self.data.accepted, self.received);
        let all_received = self.drained() && !self.background;
        let broken = accepted < received || all_received && accepted > received;
        broken.then(|| format!("{accepted} packets accepted, {received} in the messages received"))
    }

    /// No message is acknowledged before it is received; [`Time::NEVER`] is later than all times.
    fn early_acks(&self) -> impl Iterator<Item = String> {
        let early = |m: &MessageRecord| m.acked != Time::NEVER && m.received > m.acked;
        let numbers = self.messages.iter().enumerate().filter(move |(_, m)| early(m));
        numbers.map(|(i, _)| format!("message {i} was acknowledged before it was received"))
    }

    /// Without traffic, no switch charges its buffer or pauses a port.
    fn busy_switches(&self) -> impl Iterator<Item = String> {
        let ended = self.drained() && self.control.in_flight == 0;
        let busy = self.busy.iter().filter(move |_| ended);
        busy.map(|name| format!("traffic has ended and {name} still charges its buffer or pauses"))
    }

    /// True if the run has finished and no data packet is on the way.
    fn drained(&self) -> bool {
        let d = &self.data;
        self.finished && d.in_flight == 0 && d.headers_in_flight == 0 && d.held == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{HostId, Psn, QpId};

    /// Two messages of 40 packets each. Data and control packets meet every fate, except that none is in flight.
    const MESSAGES: [MessageRecord; 2] = [message(5, 8), message(7, 9)];

    const fn message(received: u64, acked: u64) -> MessageRecord {
        let (received, acked) = (Time(received), Time(acked));
        MessageRecord {
            start: Time::ZERO,
            received,
            acked,
            last_sent: Time(4),
            wire_bytes: 60_000,
            retransmitted: 0,
            slow: Time::ZERO,
        }
    }

    fn balanced() -> Ledger<'static> {
        Ledger {
            data: Data {
                sent: 80 + 28 + 9,
                accepted: 80,
                duplicate: 1,
                discarded: 2,
                noticed: 3,
                dropped_buffer: 5,
                dropped_link: 7,
                by_chance: 1,
                by_codeword: 1,
                in_bursts: 2,
                in_outages: 3,
                black_hole: 2,
                dropped_scheme: 10,
                cut: 9,
                headers_arrived: 6,
                headers_lost: 3,
                ..Data::default()
            },
            control: Control {
                created: 50,
                arrived: 40,
                heard: 1,
                blocked: 2,
                dropped: 7,
                ..Control::default()
            },
            messages: &MESSAGES,
            received: 80,
            finished: true,
            background: false,
            busy: Vec::new(),
        }
    }

    /// Violations of the balanced ledger after one change.
    fn after(change: impl FnOnce(&mut Ledger<'_>)) -> Vec<String> {
        let mut ledger = balanced();
        change(&mut ledger);
        ledger.violations()
    }

    fn none() -> Vec<String> {
        Vec::new()
    }

    /// Counts of data, control, and hops after one event of a packet of each kind.
    fn tally(event: impl Fn(&mut Tally, &Packet)) -> Tally {
        let mut tally = Tally::default();
        for kind in [Kind::Data, Kind::Ack, Kind::Ack, Kind::Trimmed, Kind::Signal] {
            event(&mut tally, &Packet::new(kind, QpId(0), HostId(0), Psn::new(0), 64));
        }
        tally
    }

    #[test]
    fn every_kind_of_packet_has_its_own_count_of_each_fate() {
        let hops = tally(|tally, pkt| tally.hop(pkt));
        assert_eq!((hops.data_hops, hops.control_hops), (1, 4));
        let Tally { data, control, .. } = tally(|tally, pkt| tally.dropped_by_scheme(pkt));
        assert_eq!(data, Data { dropped_scheme: 1, headers_lost: 1, ..Data::default() });
        assert_eq!(control, Control { blocked: 2, heard: 1, ..Control::default() });
        let made = tally(|tally, pkt| tally.made(pkt)).control;
        assert_eq!(made, Control { created: 5, forged: 4, signals: 1, ..Control::default() });
        let Tally { data, control, .. } = tally(|tally, pkt| tally.lost(pkt, Lost::Buffer));
        assert_eq!(data, Data { dropped_buffer: 1, headers_lost: 1, ..Data::default() });
        assert_eq!(control, Control { dropped: 3, ..Control::default() });
        let lost = |how| tally(|tally, pkt| tally.lost(pkt, how)).data;
        let one = Data { headers_lost: 1, ..Data::default() };
        let on_link = Data { dropped_link: 1, ..one };
        assert_eq!(lost(Lost::Link(LinkLoss::Chance)), Data { by_chance: 1, ..on_link });
        assert_eq!(lost(Lost::Link(LinkLoss::Codeword)), Data { by_codeword: 1, ..on_link });
        assert_eq!(lost(Lost::Link(LinkLoss::Burst)), Data { in_bursts: 1, ..on_link });
        let outage = |into| lost(Lost::Link(LinkLoss::Outage { since: 5, into }));
        assert_eq!(outage(false), Data { in_outages: 1, ..on_link });
        assert_eq!(outage(true), Data { in_outages: 1, black_hole: 1, ..on_link });
        assert_eq!(lost(Lost::Loop), Data { dropped_loop: 1, ..one });
        assert_eq!(lost(Lost::Watchdog), Data { dropped_watchdog: 1, ..one });
        let Tally { data, control, .. } = tally(|tally, pkt| tally.count_in_flight(pkt));
        assert_eq!(data, Data { in_flight: 1, headers_in_flight: 1, ..Data::default() });
        assert_eq!(control, Control { in_flight: 3, ..Control::default() });
        let mut cuts = Tally::default();
        [true, false, false].into_iter().for_each(|last_hop| cuts.cut(last_hop));
        assert_eq!((cuts.data.cut, cuts.data.cut_last_hop), (3, 1));
    }

    #[test]
    fn a_balanced_ledger_breaks_no_rule() {
        assert_eq!(after(|_| {}), none());
    }

    #[test]
    fn a_data_packet_without_a_fate_is_reported() {
        let report = |change: fn(&mut Data)| {
            let mut ledger = balanced();
            change(&mut ledger.data);
            let words = format!("data packets do not add up: {:?}", ledger.data);
            assert_eq!(ledger.violations(), [words]);
        };
        report(|d| d.sent += 1);
        report(|d| d.sent -= 1);
        report(|d| d.duplicate += 1);
        report(|d| d.discarded += 1);
        report(|d| d.noticed += 1);
        report(|d| d.dropped_buffer += 1);
        report(|d| d.dropped_link += 1);
        // Causes of losses on links add up, and a black hole is an outage.
        report(|d| d.by_codeword += 1);
        report(|d| d.in_bursts -= 1);
        report(|d| d.black_hole = 4);
        report(|d| d.dropped_watchdog += 1);
        report(|d| d.dropped_scheme += 1);
        report(|d| d.cut += 1);
        report(|d| d.held += 1);
        report(|d| d.in_flight += 1);
    }

    #[test]
    fn the_header_of_a_cut_packet_without_a_fate_is_reported() {
        let report = |change: fn(&mut Data)| {
            let mut ledger = balanced();
            change(&mut ledger.data);
            let words = format!("data packets do not add up: {:?}", ledger.data);
            assert_eq!(ledger.violations(), [words]);
        };
        report(|d| d.headers_arrived += 1);
        report(|d| d.headers_lost -= 1);
        report(|d| d.headers_in_flight += 1);
        // One packet more was cut, and its header is missing.
        report(|d| (d.sent, d.cut) = (d.sent + 1, d.cut + 1));
    }

    #[test]
    fn a_control_packet_without_a_fate_is_reported() {
        let report = |change: fn(&mut Control)| {
            let mut ledger = balanced();
            change(&mut ledger.control);
            let words = format!("control packets do not add up: {:?}", ledger.control);
            assert_eq!(ledger.violations(), [words]);
        };
        report(|c| c.created += 1);
        report(|c| c.created -= 1);
        report(|c| c.arrived += 1);
        report(|c| c.heard += 1);
        report(|c| c.blocked += 1);
        report(|c| c.dropped += 1);
        report(|c| c.in_flight += 1);
    }

    #[test]
    fn a_message_received_without_all_its_packets_is_reported() {
        let words = "79 packets accepted, 80 in the messages received";
        let lost = |ledger: &mut Ledger<'_>| {
            ledger.data.accepted -= 1;
            ledger.data.dropped_link += 1;
            ledger.data.by_chance += 1;
        };
        assert_eq!(after(lost), [words]);
        let stopped = |ledger: &mut Ledger<'_>| {
            lost(ledger);
            ledger.finished = false;
        };
        assert_eq!(after(stopped), [words], "a stopped run has no excuse");
    }

    #[test]
    fn a_packet_accepted_twice_is_reported_when_all_messages_have_arrived() {
        let twice = |ledger: &mut Ledger<'_>| {
            ledger.data.accepted += 1;
            ledger.data.duplicate -= 1;
        };
        assert_eq!(after(twice), ["81 packets accepted, 80 in the messages received"]);
        // The packet may belong to a message that is on its way.
        let on_its_way: [fn(&mut Ledger<'_>); 5] = [
            |ledger| ledger.finished = false,
            |ledger| ledger.background = true,
            |ledger| (ledger.data.in_flight, ledger.data.dropped_link, ledger.data.by_chance) = (1, 6, 0),
            |ledger| (ledger.data.held, ledger.data.dropped_link, ledger.data.by_chance) = (1, 6, 0),
            |ledger| (ledger.data.headers_in_flight, ledger.data.headers_lost) = (1, 2),
        ];
        for change in on_its_way {
            let both = |ledger: &mut Ledger<'_>| {
                twice(ledger);
                change(ledger);
            };
            assert_eq!(after(both), none());
        }
    }

    #[test]
    fn a_message_acknowledged_before_it_was_received_is_reported() {
        let first_message = |first: MessageRecord| {
            let messages = [first, MESSAGES[1]];
            Ledger { messages: &messages, ..balanced() }.violations()
        };
        let words = "message 0 was acknowledged before it was received";
        assert_eq!(first_message(message(9, 8)), [words]);
        assert_eq!(first_message(message(Time::NEVER.ps(), 8)), [words], "it never arrived");
        assert_eq!(first_message(message(8, 8)), none());
        assert_eq!(first_message(message(8, Time::NEVER.ps())), none(), "its ACK was lost");
        assert_eq!(first_message(MessageRecord::default()), none(), "it was never posted");
    }

    #[test]
    fn a_switch_that_pauses_without_traffic_is_reported() {
        let busy = |ledger: &mut Ledger<'_>| ledger.busy.push("leaf1");
        assert_eq!(after(busy), ["traffic has ended and leaf1 still charges its buffer or pauses"]);
        let traffic: [fn(&mut Ledger<'_>); 3] = [
            |ledger| ledger.finished = false,
            |ledger| (ledger.data.in_flight, ledger.data.dropped_link, ledger.data.by_chance) = (1, 6, 0),
            |ledger| (ledger.control.in_flight, ledger.control.dropped) = (1, 6),
        ];
        for change in traffic {
            let both = |ledger: &mut Ledger<'_>| {
                busy(ledger);
                change(ledger);
            };
            assert_eq!(after(both), none());
        }
    }
}
