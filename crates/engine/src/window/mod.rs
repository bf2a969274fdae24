//! The window engine: time is cut into windows shorter than any link's delay, and inside a window nodes are
//! taken one after the other, without a global queue of events.
//!
//! What a node does inside a window reaches another node in a later one, so inside a window nodes are
//! independent and can be taken in any order. [`mail`] carries packets between windows, [`visit`] is one node
//! in one window, [`port`] what happens at a port.
//!
//! A visit to a switch is *light* where its buffer cannot reach any threshold whatever happens in the window:
//! then ports are advanced each by itself, in any order. Otherwise it is *heavy*: all departures of the switch
//! are taken in order of time, and pauses and drops get their exact times.

mod mail;
mod port;
mod ring;
mod visit;

use crate::books::{Closing, Tally, close};
use crate::host::Host;
use crate::outcome::{Effort, Ending, LinkRecord, Outcome};
use crate::series::Recorder;
use crate::setup::Setup;
use crate::stall;
use crate::switch::Switch;
use crate::{Observer, Progress};
use mail::{Mail, Sorter};
use model::plan::Classes;
use model::scheme::Effects;
use model::{HostId, Parts, Plan, QpId, Time};
use port::Port;
use std::ops::Range;

struct Engine<'a, P: Parts> {
    setup: &'a Setup<'a>,
    hosts: Vec<Host<P>>,
    switches: Vec<Switch<P>>,
    ports: Vec<Port>,
    /// When each host starts its next packet, as far as it is known; [`u64::MAX`] if it has none.
    host_due: Vec<u64>,
    /// When the next packet of a port starts, kept for watched ports (all, in a heavy visit).
    due: Vec<u64>,
    /// Bytes that wait at every port, kept if a scheme reads them.
    queued: Vec<u32>,
    links: Vec<LinkRecord>,
    paused_since: Vec<u64>,
    /// When a node has something to do of its own accord.
    next: Vec<u64>,
    mail: Mail,
    /// Pause frames on their way to each node: arrival, port, on.
    pauses: Vec<Vec<(u64, u16, bool)>>,
    /// Of each switch: its ports whose departures are watched.
    watch: Vec<Range<usize>>,
    largest_frame: u64,
    /// All kinds of packets share one queue.
    one_class: bool,
    /// Some scheme reads queue lengths.
    reads_queues: bool,
    /// The open window.
    opened: u64,
    close: u64,
    /// Of the visit under way.
    heavy: bool,
    watched: Range<usize>,
    /// Something other than an arrival comes to pass no earlier than this.
    next_own: u64,
    frames: Vec<(u64, u16, bool)>,
    frame: usize,
    sorter: Option<Sorter>,
    effects: Effects,
    tally: Tally,
    recorder: Recorder,
    effort: Effort,
}

/// Runs with windows of the plan's full length divided by `divisor`; the result does not depend on it.
pub(crate) fn run<P: Parts>(plan: &Plan, parts: &P, divisor: u64, observer: &mut impl Observer) -> Outcome {
    let setup = Setup::new(plan);
    let fabric = &plan.fabric;
    let window = (setup.window / divisor).max(1);
    let mut hosts: Vec<Host<P>> =
        (0..fabric.hosts()).map(|h| Host::new(&setup, parts, HostId(h as u16))).collect();
    for (i, qp) in plan.qps.iter().enumerate() {
        hosts[qp.from.index()].add_outgoing(&setup, parts, QpId(i as u32));
    }
    let switches: Vec<Switch<P>> = fabric.switches().map(|n| Switch::new(&setup, parts, n)).collect();
    let links = fabric.links().len();
    let largest_frame = plan.wire.max_frame().max(plan.wire.ack).max(plan.wire.cnp) as u64;
    let mut ports: Vec<Port> =
        setup.ports.iter().zip(&setup.marking).map(|(p, m)| Port::new(p, m.as_ref())).collect();
    let reads_queues = switches.iter().any(|s| s.interest.queues);
    let mut watch = Vec::new();
    for (node, switch) in fabric.switches().zip(&switches) {
        let base = fabric.base(node) as usize;
        let mut range = base..base;
        for (i, link) in fabric.ports(node).iter().enumerate() {
            if switch.interest.host_departures && fabric.is_host(link.to) {
                ports[base + i].watch();
                if range.is_empty() {
                    range.start = base + i;
                }
                range.end = base + i + 1;
            }
        }
        watch.push(range);
    }
    let mut run = Engine {
        setup: &setup,
        next: hosts.iter().map(Host::timer_at).chain(switches.iter().map(|_| u64::MAX)).collect(),
        hosts,
        switches,
        ports,
        host_due: vec![u64::MAX; fabric.hosts()],
        due: vec![u64::MAX; links],
        queued: vec![0; links],
        links: vec![LinkRecord::default(); links],
        paused_since: vec![u64::MAX; links],
        mail: Mail::new(fabric.nodes(), window),
        pauses: vec![Vec::new(); fabric.nodes()],
        watch,
        largest_frame,
        reads_queues,
        one_class: plan.classes == Classes::One,
        opened: 0,
        close: 0,
        heavy: false,
        watched: 0..0,
        next_own: u64::MAX,
        frames: Vec::new(),
        frame: 0,
        sorter: None,
        effects: Effects::default(),
        tally: Tally::default(),
        recorder: Recorder::new(&plan.series),
        effort: Effort::default(),
    };
    let (ending, stopped_at) = run.go(window, observer);
    run.finish(ending, stopped_at)
}

impl<P: Parts> Engine<'_, P> {
    fn go(&mut self, window: u64, observer: &mut impl Observer) -> (Ending, Option<Time>) {
        let plan = self.setup.plan;
        let quantum = self.setup.window;
        let background = plan.jobs.iter().any(|j| j.background);
        let total: u64 = self.hosts.iter().map(|h| h.unfinished).sum();
        let horizon = plan.stop_after.map_or(u64::MAX, Time::ps);
        let mut number = 0u64;
        let mut visits = 0;
        let mut boundary = 0;
        loop {
            let next = self.next.iter().copied().min().unwrap_or(u64::MAX);
            if self.mail.idle() && next == u64::MAX {
                return match self.unfinished() {
                    0 => (Ending::Finished, background.then_some(Time(boundary.min(horizon)))),
                    _ => (self.stalled(), None),
                };
            }
            number = number.max(self.mail.nearest().unwrap_or(u64::MAX).min(next / window));
            self.opened = number * window;
            if self.opened >= boundary {
                let crossed = self.opened / quantum * quantum;
                self.switches.iter_mut().for_each(|s| s.buffer.sample());
                let unfinished = self.unfinished();
                if unfinished == 0 && background {
                    return (Ending::Finished, Some(Time(boundary.min(horizon))));
                }
                if unfinished > 0 && stall::stuck(&self.hosts, crossed, plan.no_progress) {
                    return (self.stalled(), None);
                }
                boundary = crossed + quantum;
            }
            if self.opened >= horizon {
                return match self.unfinished() {
                    0 => (Ending::Finished, background.then_some(Time(boundary.min(horizon)))),
                    _ => (Ending::Stopped, plan.stop_after),
                };
            }
            self.close = (self.opened + window).min(horizon);
            self.mail.turn(number);
            self.effort.windows += 1;
            for node in 0..self.next.len() {
                if self.mail.waiting(node) > 0 || self.next[node] < self.close {
                    self.effort.visits += 1;
                    if node < self.hosts.len() {
                        self.visit_host(node as u32);
                    } else {
                        self.visit_switch(node as u32);
                    }
                }
            }
            if self.effort.visits - visits > 20_000 {
                visits = self.effort.visits;
                if !observer.on_progress(self.progress(total)) {
                    return (Ending::Interrupted, Some(Time(self.close)));
                }
            }
            number += 1;
        }
    }

    fn progress(&self, messages: u64) -> Progress {
        Progress {
            now: Time(self.close),
            finished: self.hosts.iter().map(|h| h.finished).sum(),
            messages,
            accepted: self.hosts.iter().map(|h| h.data.accepted).sum(),
            hops: self.ports.iter().map(Port::frames).sum(),
        }
    }

    fn unfinished(&self) -> u64 {
        self.hosts.iter().map(|h| h.unfinished).sum()
    }

    fn stalled(&self) -> Ending {
        let blocked = |gp: usize| {
            (self.ports[gp].paused(), self.ports[gp].queued_data().map(|p| p.ingress()).collect())
        };
        Ending::Stalled(stall::explain(self.setup, &self.hosts, blocked))
    }

    fn finish(mut self, ending: Ending, stopped_at: Option<Time>) -> Outcome {
        self.switches.iter_mut().for_each(|s| s.buffer.sample());
        for pkt in self.mail.under_way() {
            self.tally.under_way(&pkt);
        }
        for pkt in self.ports.iter().flat_map(Port::queued) {
            self.tally.under_way(pkt);
        }
        for (gp, link) in self.links.iter_mut().enumerate() {
            self.ports[gp].report(link);
        }
        self.tally.data_hops = self.links.iter().map(|l| l.frames).sum::<u64>() - self.tally.control_hops;
        let last_sent = self.ports.iter().map(|p| p.busy).max().unwrap_or(0);
        let Engine { setup, hosts, switches, links, paused_since, recorder, tally, effort, .. } = self;
        let (hosts, switches, recorder) = (&hosts[..], &switches[..], &recorder);
        close(
            setup,
            Closing {
                ending,
                stopped_at,
                last_sent,
                hosts,
                switches,
                links,
                paused_since,
                recorder,
                tally,
                effort,
            },
        )
    }
}
