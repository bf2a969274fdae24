//! The reference engine: one heap of events, each computed at its time, without any shortcut. It is the oracle for
//! the window engine. The two share what a plan fixes (`setup.rs`, `failing.rs`), hosts and their tasks, schemes, the arithmetic
//! of buffers, and the rule for stalls. The set-up of nodes and ports, ties between arrivals, queues of ports, wires and the order
//! of events are each engine's own.
//!
//! The order at one instant is: failures and repairs, pause and resume frames, rulings of watchdogs, departures, arrivals,
//! wake-ups. A keyed hash orders arrivals at one node.

mod credits;
mod departures;
mod live;
mod port;
mod switch;
mod ties;

pub(crate) use live::live;

use self::port::Port;
use self::ties::Ties;
use crate::books::{Closing, Tally, close, closing};
use crate::cut;
use crate::cutting;
use crate::failing::FailureEvent;
use crate::gentle::Gentle;
use crate::host::{Abroad, Host};
use crate::live::Report;
use crate::observer::{Observer, Progress};
use crate::outcome::{Effort, Ending, EventKind, LinkRecord, Memory, Outcome};
use crate::record::sampler::{self, Sampler};
use crate::record::{Note, Outlasts, Recorder, hand_over};
use crate::setup::{NO_TRACK, Setup};
use crate::stall::{self, Liveness};
use crate::switch::Switch;
use crate::tasks::{Ended, Tasks};
use crate::view::{Views, shown};
use crate::watchdog::Ruling;
use model::plan::Trigger;
use model::scheme::Effects;
use model::{HostId, NodeId, Parcel, Parts, Plan, PortIndex, QpId, Scheme, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Events between two calls of the observer. Our choice.
const OBSERVE: u64 = 65_536;
/// Bytes of memory that may be left per event before the observer is called again: an event adds a few packets, of some hundred
/// bytes each, and buffers grow by a quarter. Our choice.
const GROWTH: u64 = 4096;

/// An event at a node; the order of the variants is their order at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NodeEvent {
    Fail(FailureEvent),
    Pause {
        port: u16,
        sequence: u64,
        channel: u8,
        on: bool,
        /// As in a word that returns credits; 0 in a pause frame.
        freed: u64,
    },
    /// A watchdog decides on a queue.
    Rule,
    Depart {
        port: u16,
    },
    Arrive {
        tie: u16,
        slot: usize,
    },
    /// A task of a host.
    Task,
    /// A timer of a host's port, or of a switch (port 0).
    Wake {
        port: u16,
    },
}

/// An event in the heap. Events are ordered by time, then by node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scheduled {
    at: u64,
    node: u32,
    what: NodeEvent,
}

struct Reference<'a, P: Parts> {
    setup: Setup<'a>,
    ties: Ties,
    /// By endpoint: an endpoint has the number of its port in the fabric.
    hosts: Vec<Host<P>>,
    /// Number of nodes that are hosts.
    servers: usize,
    /// Tasks by host, and the time of each host's valid event in the heap; [`u64::MAX`] if there is none.
    tasks: Vec<Option<Tasks>>,
    task_at: Vec<u64>,
    switches: Vec<Switch<P>>,
    ports: Vec<Port<P::Annex>>,
    /// Bytes in all queues of every port.
    queued: Vec<u64>,
    links: Vec<LinkRecord>,
    paused_since: Vec<u64>,
    events: BinaryHeap<Reverse<Scheduled>>,
    flying: Vec<Option<Parcel<P::Annex>>>,
    landed: Vec<usize>,
    sequence: u64,
    /// Time of each host's valid wake-up event in the heap; [`u64::MAX`] if there is none.
    timers: Vec<u64>,
    tally: Tally,
    recorder: Recorder,
    sampler: Sampler,
    /// Longest queue of every link since the last sample.
    longest: Vec<u64>,
    views: Views,
    /// Time of the next checks, ps.
    boundary: u64,
    /// True if the run ends when all but background jobs have finished.
    background: bool,
    /// True while a program may post more messages.
    open_ended: bool,
    /// Foreground messages and tasks in all.
    total: u64,
    /// Events until the observer is called next.
    until_observer: u64,
    /// Reports of posted messages and tasks that the last event has caused.
    reports: Vec<Report>,
}

pub(crate) fn run<P: Parts>(plan: &Plan, parts: &P, observer: &mut dyn Observer) -> Outcome {
    let mut run = Reference::new(Setup::new(plan), parts);
    observer.on_start();
    run.until_observer = run.until_observer(observer).unwrap_or(1);
    let end = loop {
        match run.next_event() {
            None => break run.end(),
            Some((at, _)) => {
                if let Some(end) = run.turn(at, observer) {
                    break end;
                }
            }
        }
    };
    match cut::shorter(plan, observer.cutter()) {
        Some(plan) => run.close_with(&plan, end),
        None => run.close_with(plan, end),
    }
}

/// The way in which a run ended, and the time at which it was cut off; `None` if it ended with its last event.
type End = (Ending, Option<Time>);

impl<'a, P: Parts> Reference<'a, P> {
    /// The state before the first event.
    fn new(setup: Setup<'a>, parts: &P) -> Self {
        let plan = setup.plan;
        let fabric = &plan.fabric;
        let mut hosts: Vec<Host<P>> =
            (0..fabric.hosts()).map(|h| Host::new(&setup, parts, HostId(h as u32))).collect();
        for (i, qp) in plan.qps.iter().enumerate() {
            hosts[setup.home(qp.from).index()].add_outgoing(&setup, parts, QpId(i as u32));
        }
        let links = fabric.links().len();
        let switches: Vec<Switch<P>> = fabric.switches().map(|n| Switch::new(&setup, parts, n)).collect();
        let mut run = Reference {
            hosts,
            servers: fabric.servers(),
            tasks: (0..fabric.servers() as u32).map(|host| Tasks::of(plan, NodeId(host))).collect(),
            task_at: vec![u64::MAX; fabric.servers()],
            views: Views::new(&setup, switches.iter().find_map(|switch| switch.interest.view)),
            switches,
            ports: setup
                .ports
                .iter()
                .map(|facts| Port {
                    channels: facts.channels,
                    most_channels: fabric.channels(),
                    row: facts.row,
                    ..Port::default()
                })
                .collect(),
            queued: vec![0; links],
            links: vec![LinkRecord::default(); links],
            paused_since: vec![u64::MAX; links],
            events: BinaryHeap::new(),
            flying: Vec::new(),
            landed: Vec::new(),
            sequence: 0,
            timers: vec![u64::MAX; fabric.hosts()],
            tally: Tally::default(),
            recorder: Recorder::default(),
            sampler: Sampler::new(&setup),
            longest: vec![0; links],
            boundary: 0,
            background: plan.jobs.iter().any(|job| job.background),
            open_ended: setup.posted.is_some(),
            total: 0,
            until_observer: 1,
            reports: Vec::new(),
            ties: Ties::new(plan),
            setup,
        };
        run.total = run.unfinished();
        for h in 0..run.hosts.len() {
            run.schedule_host(h, 0);
        }
        for host in 0..run.servers {
            run.schedule_task(host);
        }
        for node in (0..fabric.nodes() as u32).map(NodeId) {
            let events: Vec<_> = run.setup.failing.events(node, 0, u64::MAX).collect();
            for (at, event) in events {
                run.schedule(at, node.0, NodeEvent::Fail(event));
            }
        }
        run
    }

    /// Closes the books; `plan` has all messages of the run.
    fn close_with(mut self, plan: &Plan, (ending, stopped_at): End) -> Outcome {
        if !self.sampler.is_blind() {
            self.sample();
        }
        self.switches.iter_mut().for_each(|s| s.buffer.sample());
        for pkt in self.flying.iter().flatten() {
            self.tally.count_in_flight(pkt);
        }
        for pkt in self.ports.iter().flat_map(|p| p.queues.iter().flatten()) {
            self.tally.count_in_flight(pkt);
        }
        let last_sent = self.ports.iter().map(|p| p.busy).max().unwrap_or(0);
        let queues = self.ports.iter().map(|port| port.counts).enumerate().skip(self.hosts.len());
        close(
            &Setup::new(plan),
            Closing {
                ending,
                stopped_at,
                last_sent,
                hosts: &self.hosts,
                switches: &self.switches,
                tasks: self.tasks.into_iter().flatten().collect(),
                links: self.links,
                paused_since: self.paused_since,
                queues: queues.collect(),
                recorders: std::slice::from_ref(&self.recorder),
                sampler: self.sampler,
                tally: self.tally,
                effort: Effort::default(),
            },
        )
    }

    /// Time and node of the next event.
    fn next_event(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse(Scheduled { at, node, what })) = self.events.peek() {
            if !self.is_stale(at, node, what) {
                return Some((at, node));
            }
            self.events.pop();
        }
        None
    }

    /// The end of a run without further events.
    fn end(&self) -> End {
        match self.unfinished() {
            0 => (Ending::Finished, self.end_of_background()),
            _ => self.stalled(),
        }
    }

    fn end_of_background(&self) -> Option<Time> {
        let horizon = self.setup.plan.stop_after.map_or(u64::MAX, Time::ps);
        self.background.then_some(Time(self.boundary.min(horizon)))
    }

    /// Handles the next event, at `now`, unless the run ends before it.
    fn turn(&mut self, now: u64, observer: &mut dyn Observer) -> Option<End> {
        let plan = self.setup.plan;
        if plan.stop_after.is_some_and(|stop| now >= stop.ps()) {
            return Some(match self.unfinished() {
                0 => (Ending::Finished, self.end_of_background()),
                _ => self.exceeded().unwrap_or((Ending::Stopped, plan.stop_after)),
            });
        }
        if now >= self.boundary
            && let Some(end) = self.check(now, observer)
        {
            return Some(end);
        }
        let Reverse(Scheduled { node, what, .. }) = self.events.pop()?;
        self.handle(now, node, what);
        self.until_observer -= 1;
        if self.until_observer == 0 {
            let recorders = self.hosts.iter_mut().map(|host| &mut host.recorder).chain([&mut self.recorder]);
            hand_over(observer, recorders, now);
            let finished = self.hosts.iter().map(|h| h.finished).sum();
            let hops = self.tally.data_hops + self.tally.control_hops;
            let accepted = self.hosts.iter().map(|h| h.data.accepted).sum();
            let progress = Progress { now: Time(now), finished, messages: self.total, accepted, hops };
            if !observer.on_progress(progress) {
                return Some((Ending::Interrupted, Some(Time(now))));
            }
            match self.until_observer(observer) {
                Some(events) => self.until_observer = events,
                None => return Some((Ending::Memory(self.memory()), Some(Time(now)))),
            }
        }
        None
    }

    /// Checks that take place once per window length, before the first event of a window.
    fn check(&mut self, now: u64, observer: &mut dyn Observer) -> Option<End> {
        let quantum = self.setup.window;
        let unfinished = self.unfinished();
        let crossed = now / quantum * quantum;
        if unfinished == 0 && self.background && !self.open_ended {
            return Some((Ending::Finished, self.end_of_background()));
        }
        if unfinished > 0 && self.is_stalled(crossed) {
            return Some(self.stalled());
        }
        if self.sampler.is_due(crossed) {
            self.sample();
            self.sampler.close(crossed, unfinished == 0 && !self.open_ended);
        }
        if let Some(cutter) = observer.cutter() {
            let before = self.setup.by_run(0);
            let recorders = self.hosts.iter_mut().map(|host| &mut host.recorder).chain([&mut self.recorder]);
            let frames = cutting::frames(recorders);
            let tasks_rest = self.tasks.iter().flatten().all(|tasks| tasks.next() == u64::MAX);
            let hosts = (self.hosts.iter_mut(), tasks_rest);
            if let Some(on) = cutting::between(&self.setup, crossed, cutter, frames, hosts) {
                self.setup.ports.iter_mut().for_each(|port| port.tapped = on);
            }
            if self.setup.by_run(0) != before {
                self.draw_ties_again();
            }
        }
        self.switches.iter_mut().for_each(|s| s.buffer.sample());
        self.boundary = crossed + quantum;
        let first = self.hosts.len();
        self.views.advance(crossed, |all| {
            all[first..].iter_mut().zip(&self.queued[first..]).for_each(|(all, &now)| *all = shown(now));
        });
        None
    }
}

impl<P: Parts> Reference<'_, P> {
    /// Events until the observer is called next; `None` if memory is short.
    fn until_observer(&self, observer: &mut dyn Observer) -> Option<u64> {
        let room = observer.room();
        if room == u64::MAX {
            return Some(OBSERVE);
        }
        let left = room.saturating_sub(closing(self.setup.plan, self.records()));
        (left > 0).then(|| (left / GROWTH).clamp(1, OBSERVE))
    }

    /// Memory of everything that is recorded, bytes.
    fn records(&self) -> u64 {
        let recorders = self.hosts.iter().map(|host| &host.recorder).chain([&self.recorder]);
        recorders.map(Recorder::memory).sum::<u64>() + self.sampler.memory()
    }

    /// Memory of packets and records. Packets on links include their events.
    fn memory(&self) -> Memory {
        let parcel = size_of::<Parcel<P::Annex>>();
        let mut memory = Memory { records: self.records(), ..Memory::default() };
        for (gp, port) in self.ports.iter().enumerate() {
            let packets: usize = port.queues.iter().map(VecDeque::capacity).sum();
            memory.add_queue(gp, (packets * parcel) as u64);
        }
        let held: usize = self.switches.iter().map(|switch| switch.stashed().count()).sum();
        memory.queues += (held * parcel) as u64;
        let flying = self.flying.capacity() * size_of::<Option<Parcel<P::Annex>>>();
        memory.in_flight = (flying + self.events.capacity() * size_of::<Scheduled>()) as u64;
        memory
    }

    /// Orders the packets under way anew, as their arrivals have moved by the run's clock.
    fn draw_ties_again(&mut self) {
        let mut events = std::mem::take(&mut self.events).into_vec();
        for Reverse(Scheduled { at, node, what }) in &mut events {
            if let NodeEvent::Arrive { tie, slot } = what
                && let Some(pkt) = &self.flying[*slot]
            {
                *tie = self.ties.rank(*node, self.setup.by_run(*at), pkt.ingress());
            }
        }
        self.events = events.into();
    }

    fn schedule(&mut self, at: u64, node: u32, what: NodeEvent) {
        self.events.make_room();
        self.events.push(Reverse(Scheduled { at, node, what }));
    }

    /// Samples all series.
    fn sample(&mut self) {
        let hosts = self.hosts.len();
        self.hosts.iter_mut().for_each(|host| host.sample(&mut self.sampler));
        for (gp, facts) in self.setup.ports.iter().enumerate().filter(|(_, facts)| facts.track != NO_TRACK) {
            let (link, waits) = (&self.links[gp], self.ports[gp].waiting_data(&self.setup));
            let is_host = gp < hosts;
            let port = sampler::Port {
                frames: link.frames,
                bytes: link.bytes,
                marks: link.marks,
                lost: link.lost + link.drops,
                pauses: link.pauses,
                waits: if is_host { 0 } else { waits },
            };
            let most = std::mem::replace(&mut self.longest[gp], waits);
            self.sampler.link(facts.track, port, if is_host { 0 } else { most });
        }
        for (i, switch) in self.switches.iter_mut().enumerate() {
            self.sampler.buffer(i, switch.buffer.take_recent());
        }
        if self.setup.plan.record.counters {
            let mut sink = |name, value| self.sampler.counter(name, value);
            self.switches.iter().for_each(|switch| switch.scheme.counters(&mut sink));
            self.hosts.iter().for_each(|host| host.counters(&mut sink));
        }
    }

    /// Records an event of a packet, if its queue pair is followed.
    fn note(&mut self, now: u64, node: u32, what: EventKind, pkt: &Parcel<P::Annex>) {
        if self.setup.follows(pkt.qp()) {
            self.recorder.note(&self.setup, Note::new(now, NodeId(node), what), pkt);
        }
    }

    /// True for a stale event: a later one has replaced it.
    fn is_stale(&self, now: u64, node: u32, what: NodeEvent) -> bool {
        let base = self.setup.fabric().base(NodeId(node)) as usize;
        match what {
            NodeEvent::Depart { port } => self.ports[base + port as usize].planned != now,
            NodeEvent::Wake { port } if (node as usize) < self.servers => {
                self.timers[base + port as usize] != now
            }
            NodeEvent::Wake { .. } => self.switches[node as usize - self.servers].wake != now,
            NodeEvent::Task => self.task_at[node as usize] != now,
            NodeEvent::Rule => self.switches[node as usize - self.servers].next_ruling() != now,
            _ => false,
        }
    }

    fn liveness(&self) -> impl Iterator<Item = Liveness> {
        let tasks = self.tasks.iter().flatten().map(|tasks| tasks.liveness);
        self.hosts.iter().map(|host| host.liveness).chain(tasks)
    }

    fn is_stalled(&self, now: u64) -> bool {
        stall::is_stalled(&self.setup, now, self.liveness())
    }

    fn exceeded(&self) -> Option<End> {
        stall::exceeded(&self.setup, self.liveness())
    }

    fn stalled(&self) -> End {
        if let Some(end) = self.exceeded() {
            return end;
        }
        let blocked = |gp: usize| {
            let port = &self.ports[gp];
            let mut blocked = stall::Blocked::new(port.paused(), port.channels);
            let classes = 0..self.setup.plan.classes.all().len();
            for class in classes.filter(|class| self.setup.has_data(*class)) {
                blocked.add(&self.setup, class, &port.queues[class]);
            }
            blocked
        };
        let since = self.hosts.iter().map(|host| host.liveness.last_progress).max();
        let waiting = self.hosts.iter().flat_map(|host| host.waiting(&self.setup)).collect();
        (Ending::Stalled(stall::explain(&self.setup, waiting, since, blocked)), None)
    }

    fn handle(&mut self, now: u64, node: u32, what: NodeEvent) {
        let is_host = (node as usize) < self.servers;
        let base = self.setup.fabric().base(NodeId(node)) as usize;
        match what {
            NodeEvent::Fail(event) => self.on_failure(now, node, event),
            NodeEvent::Pause { port, channel, on, freed, .. } => {
                match freed {
                    0 => self.on_pause(now, node, base + port as usize, channel, on),
                    _ => self.take_word(now, node, base + port as usize, (channel, freed)),
                }
                if is_host {
                    self.schedule_host(base + port as usize, now);
                }
            }
            NodeEvent::Rule => self.rule(now, node),
            NodeEvent::Depart { port } => {
                let gp = base + port as usize;
                self.ports[gp].planned = 0;
                self.serve(now, node, gp);
                if is_host {
                    self.schedule_host(gp, now);
                }
            }
            NodeEvent::Arrive { slot, .. } => {
                let Some(pkt) = self.flying[slot].take() else { return };
                self.landed.make_room();
                self.landed.push(slot);
                if is_host {
                    let gp = self.home(base + pkt.ingress().index());
                    let replies = self.hosts[gp].on_arrival_by(&self.setup, now, &pkt);
                    replies.into_iter().flatten().for_each(|reply| self.queue_at_host(gp, reply));
                    self.serve(now, node, gp);
                    self.schedule_host(gp, now);
                    self.hand_on_triggers(now, node, gp);
                } else {
                    self.forward(now, node, pkt);
                }
            }
            NodeEvent::Task => {
                self.task_at[node as usize] = u64::MAX;
                let plan = self.setup.plan;
                while let Some((_, task)) =
                    self.tasks[node as usize].as_mut().and_then(|tasks| tasks.advance(plan, now + 1))
                {
                    match task {
                        Ended::Planned(task) => {
                            task.on_done
                                .clone()
                                .for_each(|i| self.fire(now, node, plan.triggers[i as usize]));
                        }
                        Ended::Posted(number) => {
                            self.reports.push(Report::Ended(number));
                            break; // the program reacts before the next task ends
                        }
                    }
                }
                self.schedule_task(node as usize);
            }
            NodeEvent::Wake { port } if is_host => {
                let gp = base + port as usize;
                self.timers[gp] = u64::MAX;
                self.hosts[gp].on_timer(&self.setup, now);
                if let Some(on) = self.hosts[gp].take_pause() {
                    let ports = self.setup.plan.sharing.map_or(1, |sharing| sharing.ports);
                    for p in port..port + ports {
                        for channel in 0..self.setup.priorities() {
                            let at = self.send_pause(now, node, PortIndex(p), channel, on);
                            self.hosts[gp].last_event = self.hosts[gp].last_event.max(at);
                        }
                    }
                }
                let made = self.hosts[gp].take_made();
                made.into_iter().for_each(|pkt| self.queue_at_host(gp, pkt));
                self.serve(now, node, gp);
                self.schedule_host(gp, now);
            }
            NodeEvent::Wake { .. } => {
                let switch = &mut self.switches[node as usize - self.servers];
                if switch.wake == now {
                    let mut effects = Effects::default();
                    let ports = self.setup.fabric().ports(NodeId(node)).len();
                    let queued: Vec<u32> =
                        self.queued[base..base + ports].iter().map(|&bytes| shown(bytes)).collect();
                    switch.woken(now, &queued, &mut effects);
                    self.carry_out(now, node, effects);
                }
            }
        }
    }

    /// Queues a packet that a host has made.
    fn queue_at_host(&mut self, gp: usize, pkt: Parcel<P::Annex>) {
        let gp = gp + pkt.ingress().index();
        self.queued[gp] += u64::from(pkt.frame());
        self.ports[gp].push(self.setup.class_in_table(&pkt), pkt);
    }

    /// Fires the triggers that port `gp` of a host has collected for tasks and other ports.
    fn hand_on_triggers(&mut self, now: u64, node: u32, gp: usize) {
        while let Some(abroad) = self.hosts[gp].take_abroad() {
            match abroad {
                Abroad::Trigger(trigger) => self.fire(now, node, trigger),
                Abroad::Acked(qp) => self.reports.push(Report::Acked(qp)),
                Abroad::Received(qp) => self.reports.push(Report::Received(qp)),
            }
        }
    }

    fn fire(&mut self, now: u64, node: u32, trigger: Trigger) {
        let plan = self.setup.plan;
        match trigger {
            Trigger::Message(m) => {
                let sender = self.home(plan.qps[plan.messages[m.index()].qp.index()].from.index());
                self.hosts[sender].on_trigger(&self.setup, now, m);
                self.serve(now, node, sender);
                self.schedule_host(sender, now);
            }
            Trigger::Task(task) => {
                if let Some(tasks) = &mut self.tasks[node as usize] {
                    tasks.fire(plan, now, task);
                }
                self.schedule_task(node as usize);
            }
        }
    }

    /// Schedules the next event of a host's tasks.
    fn schedule_task(&mut self, host: usize) {
        let next = self.tasks[host].as_ref().map_or(u64::MAX, Tasks::next);
        if next != self.task_at[host] {
            self.task_at[host] = next;
            if next != u64::MAX {
                self.schedule(next, host as u32, NodeEvent::Task);
            }
        }
    }

    /// Foreground messages and tasks that have not finished.
    fn unfinished(&self) -> u64 {
        let tasks = self.tasks.iter().flatten().map(|tasks| tasks.unfinished);
        self.hosts.iter().map(|host| host.unfinished).chain(tasks).sum()
    }

    fn on_failure(&mut self, now: u64, node: u32, event: FailureEvent) {
        let is_host = (node as usize) < self.servers;
        let base = self.setup.fabric().base(NodeId(node)) as usize;
        let index = (node as usize).wrapping_sub(self.servers);
        match event {
            FailureEvent::Rate { port, row } => {
                let gp = base + port.0 as usize;
                self.ports[gp].row = row;
                if is_host && self.setup.plan.sharing.is_none() {
                    self.hosts[gp].set_rate(&self.setup, row);
                }
            }
            FailureEvent::Reset { port, whole } => {
                let priorities = self.setup.priorities();
                for priority in 0..priorities {
                    if whole && !is_host && self.switches[index].pauses(port, priority) {
                        self.send_pause(now, node, port, priority, true);
                    }
                    if whole && !is_host {
                        // Words may have been lost.
                        self.return_credits(now, node, port, priority);
                    }
                }
                for priority in 0..priorities {
                    self.on_pause(now, node, base + port.0 as usize, priority, false);
                }
                if is_host {
                    self.schedule_host(base + port.0 as usize, now);
                }
            }
            FailureEvent::Storm { port, on } => {
                let gp = base + port.index();
                let priorities = if on { self.setup.lossless_priorities(gp) } else { 0 };
                self.repause(now, node, gp, |port| port.by_storm = priorities);
            }
            FailureEvent::RouteChange(route_change) => {
                let mut effects = Effects::default();
                self.switches[index].rerouted(&self.setup, NodeId(node), now, route_change, &mut effects);
                self.carry_out(now, node, effects);
            }
        }
    }

    /// Pauses or resumes a channel at the sender of link `gp`.
    fn on_pause(&mut self, now: u64, node: u32, gp: usize, channel: u8, on: bool) {
        let before = self.ports[gp].by_frames;
        let asked = if on { before | 1 << channel } else { before & !(1 << channel) };
        if asked != before {
            self.links[gp].pauses += u64::from(on);
            self.recorder.repaused(gp, channel, on);
            self.repause(now, node, gp, |port| port.by_frames = asked);
        }
    }

    /// Lets `change` change the pauses of the sender of link `gp`.
    fn repause(&mut self, now: u64, node: u32, gp: usize, change: impl FnOnce(&mut Port<P::Annex>)) {
        let (before, port) = (self.ports[gp].paused(), &self.ports[gp]);
        let outlasts = Outlasts { storm: port.by_storm != 0, credits: port.by_credits != 0 };
        change(&mut self.ports[gp]);
        let (held, asked) = (self.ports[gp].paused(), self.ports[gp].asked());
        self.recorder.held(gp, [before, held], [self.paused_since[gp], now], outlasts);
        if before == 0 && held != 0 {
            self.paused_since[gp] = now;
        } else if before != 0 && held == 0 {
            self.links[gp].paused += Time(now - self.paused_since[gp]);
            self.paused_since[gp] = u64::MAX;
        }
        if gp < self.hosts.len() {
            let host = &mut self.hosts[self.setup.home(HostId(gp as u32)).index()];
            host.on_pause(&self.setup, now, before, held);
        } else {
            let port = gp - self.setup.fabric().base(NodeId(node)) as usize;
            if let Some(dog) = &mut self.switches[node as usize - self.servers].watchdog {
                dog.hear(now, port, asked);
            }
            self.plan_ruling(node);
        }
        if before & !held != 0 {
            self.serve(now, node, gp);
        }
    }

    /// Schedules the next ruling of a switch's watchdog.
    fn plan_ruling(&mut self, node: u32) {
        let at = self.switches[node as usize - self.servers].next_ruling();
        if at != u64::MAX {
            self.schedule(at, node, NodeEvent::Rule);
        }
    }

    /// Lets a switch's watchdog look into its queues, if it polls now.
    fn look(&mut self, now: u64, node: u32) {
        let (index, base) = (node as usize - self.servers, self.setup.fabric().base(NodeId(node)) as usize);
        let Some(mut dog) = self.switches[index].watchdog.take() else { return };
        let (switch, setup) = (&self.switches[index], &self.setup);
        dog.look(now, |p, priority| {
            let port = &self.ports[base + p];
            let of = |pkt| switch.priority_out(setup, pkt, port.channels) == Some(priority);
            port.queues.iter().flatten().any(of)
        });
        self.switches[index].watchdog = Some(dog);
    }

    /// Carries out a ruling of a switch's watchdog.
    fn rule(&mut self, now: u64, node: u32) {
        let index = node as usize - self.servers;
        self.look(now, node);
        let Some(ruling) = self.switches[index].watchdog.as_mut().and_then(|dog| dog.decide(now)) else {
            return self.plan_ruling(node);
        };
        let Ruling { port, priority, stormed, drops } = ruling;
        let gp = self.setup.fabric().base(NodeId(node)) as usize + port.index();
        self.recorder.rulings.push((now, gp, stormed));
        if stormed && drops {
            self.flush(now, node, gp, priority);
        }
        let bit = 1 << priority;
        self.repause(now, node, gp, |port| {
            port.deaf = if stormed { port.deaf | bit } else { port.deaf & !bit }
        });
    }

    /// The port whose host has the queue pairs of port `gp`.
    fn home(&self, gp: usize) -> usize {
        self.setup.home(HostId(gp as u32)).index()
    }

    /// Schedules the next timer of a host's port.
    fn schedule_host(&mut self, gp: usize, now: u64) {
        let gp = self.home(gp);
        let at = self.hosts[gp].timer_at();
        if at < self.timers[gp] {
            self.timers[gp] = at.max(now);
            let link = &self.setup.fabric().links()[gp];
            self.schedule(at.max(now), link.from.0, NodeEvent::Wake { port: link.port.0 });
        }
    }
}
