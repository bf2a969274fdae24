//! A group of nodes: the state of its nodes, and the schedule of their visits.

use super::classed::Queues;
use super::inside::{self, Inside};
use super::lanes::{Address, Bit, Board, InnerMail, Lane, Lanes, Mail, Outbox, Pause, Pool, bits, fetch};
use super::layout::Layout;
use super::local::{self, LineOf};
use super::out::{Out, Window};
use super::parked::Parked;
use super::port::{Port, WATCHED};
use super::queue::Queue;
use super::server;
use super::setup::Setup;
use super::sort::Sorter;
use super::step::PortEvents;
use super::switch::{self, Scratch, SwitchState};
use super::way::{Bound, Now, Static, Way, way};
use super::{classed_host, host};
use crate::books::Tally;
use crate::buffer::Account;
use crate::host::Host;
use crate::live::Report;
use crate::outcome::{Effort, LinkRecord, Memory};
use crate::record::Recorder;
use crate::record::sampler::Sampler;
use crate::setup::NO_TRACK;
use crate::stall::{Blocked, Liveness};
use crate::switch::Switch;
use crate::tasks::Tasks;
use crate::view::shown;
use model::{Annex, HostId, Interest, NodeId, Parcel, Parts, PortIndex, QpId, Scheme};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::ops::Range;

/// Values tagged with the number of their endpoint or node.
type Tagged<I, T> = Vec<(I, T)>;

/// The state of a group after its last window.
pub(super) struct Parted<P: Parts> {
    pub(super) hosts: Tagged<HostId, Host<P>>,
    pub(super) switches: Tagged<NodeId, Switch<P>>,
    pub(super) tasks: Vec<Tasks>,
    pub(super) tally: Tally,
    pub(super) recorder: Recorder,
}

/// A host or a switch of a group.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    /// Index of its first port among the hosts of the group, or of the switch among its switches.
    index: u32,
    pub(super) is_host: bool,
    /// First port in the group, number of ports, and number of the first port in the fabric.
    pub(super) first_port: u32,
    ports: u32,
    gp: u32,
    /// First word in the mail table of ports, and in the group's `backlog`.
    pub(super) mail_word: u32,
    backlog: u32,
    /// Time of the node's next event that needs no arrival, ps.
    pub(super) next: u64,
    /// [`Node::next`] without packets that are only handed on to lanes.
    pub(super) next_event: u64,
    /// Time of the node's valid entry in `sleepers`; [`u64::MAX`] without an entry.
    pub(super) booked: u64,
    /// Pause frames on their way to the node.
    pub(super) pauses: Vec<Pause>,
}

/// Links of a fabric whose state stays cached from one window to the next: up to 500 B each, and 1 kB for the packets of a
/// lane, in a second-level cache of 2 MB and a share of the third. Our choice.
const NEAR: usize = 4096;

/// The lane that leads to a port: the sending group, and the sending port in that group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feed {
    pub(super) group: u32,
    pub(super) port: u32,
}

/// A group of nodes. One thread at a time visits it, and no other group touches its state.
pub(super) struct Group<P: Parts> {
    pub(super) nodes: Vec<Node>,
    pub(super) hosts: Vec<Host<P>>,
    pub(super) switches: Vec<Switch<P>>,
    /// Tasks by node; empty if the plan has none and no program posts any.
    pub(super) tasks: Vec<Option<Tasks>>,
    pub(super) ports: Vec<Port<P::Annex>>,
    /// Queues of all ports, if the plan's classes are not plain; else empty.
    classed: Vec<Queues<P::Annex>>,
    /// The lane that leads to each port.
    pub(super) feeds: Vec<Feed>,
    /// A bit for every port with a queue. Every node begins a new word.
    backlog: Vec<u64>,
    pub(super) outputs: Outputs<P::Annex>,
    /// First word of the group in the mail table of nodes.
    pub(super) node_word: u32,
    /// A bit for every node with an event in the next window that needs no arrival.
    pub(super) soon: Vec<u64>,
    /// [`Group::soon`] of the window after the open one.
    pub(super) later: Vec<u64>,
    /// Time of the first event among nodes in `soon`.
    pub(super) soon_at: u64,
    /// Later events of nodes, by time. An entry is stale unless its time equals the node's `booked`.
    sleepers: BinaryHeap<Reverse<(u64, u32)>>,
    /// Number of the last window in which the group was visited.
    pub(super) visited: u64,
    pub(super) unfinished: u64,
    pub(super) liveness: Liveness,
    /// Number of packets that have arrived since the last assignment to threads.
    pub(super) load: u64,
    line_of: LineOf,
    /// By switch, what decides on the way of its visits.
    fixed: Vec<Static>,
    /// True if a node's state has left the caches when its next visit begins. The visit then first reads a word of every
    /// cache line that it will need, so that the lines come from memory side by side.
    cold: bool,
    pub(super) effort: Effort,
    /// State of a group that steps through windows.
    pub(super) inside: Option<Inside<P::Annex>>,
    /// A bit for every node of each side, in a run in which two sides take turns.
    pub(super) sides: [Vec<u64>; 2],
    /// By node, hosts whose visits wait for a program; `None` in runs without such a program.
    pub(super) parked: Option<Vec<Option<Parked<P::Annex>>>>,
}

/// Working memory that one thread uses for all nodes in turn, so that it stays in the caches.
#[derive(Debug, Default)]
pub(super) struct Workspace<A: Annex> {
    /// Packets of the lanes that reach the node.
    pub(super) incoming: Vec<Vec<Parcel<A>>>,
    pub(super) pool: Pool<A>,
    pub(super) sorter: Sorter<A>,
    scratch: Scratch<A>,
    pub(super) port_events: Vec<PortEvents>,
    pub(super) reports: Vec<Report>,
}

/// The read-only state that all visits of a window share.
pub(super) struct Context<'s, A> {
    pub(super) setup: &'s Setup<'s>,
    pub(super) window: Window,
    pub(super) board: &'s Board<A>,
    pub(super) mail: &'s Mail,
    /// The visiting thread's part of `mail`.
    pub(super) outbox: &'s Outbox,
    /// The known view of all queues.
    pub(super) view: &'s [u32],
}

/// The egress side of a group: the lanes of its ports, and their counts.
pub(super) struct Outputs<A> {
    /// Lanes of the open window. They swap places with those of the window before when the window closes.
    pub(super) lanes: Lanes<A>,
    pub(super) addresses: Vec<Address>,
    /// Mail from these lanes to nodes of the same group, in a group that steps.
    pub(super) inner: InnerMail,
    links: Vec<LinkRecord>,
    paused_since: Vec<u64>,
    /// A bit for every port with packets in flight that arrive after the next window, laid out like
    /// [`Group::backlog`].
    far: Vec<u64>,
    /// Growth increment of a lane, in packets: the data that a link carries in a window at full rate, from 11 to 64, plus one.
    /// There are about as many replies as data packets in the other direction. A lane of a short window would grow often
    /// by less than 11 packets. Our choice.
    pub(super) unit: u32,
    pub(super) tally: Tally,
    recorder: Recorder,
}

impl<A> Clone for Context<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Context<'_, A> {}

impl<A: Annex> Outputs<A> {
    /// The egress side of one node in one window.
    #[inline(always)]
    fn of<'v>(&'v mut self, node: &Node, context: Context<'v, A>, pool: &'v mut Pool<A>) -> Out<'v, A> {
        let Context { setup, window, outbox, view, .. } = context;
        let ports = node.range();
        Out {
            setup,
            window,
            view,
            unit: self.unit,
            outbox,
            inner: &mut self.inner,
            pool,
            gp: node.gp as usize,
            lanes: &mut self.lanes[ports.clone()],
            addresses: &self.addresses[ports.clone()],
            links: &mut self.links[ports.clone()],
            paused_since: &mut self.paused_since[ports],
            far: &mut self.far[node.words()],
            tally: &mut self.tally,
            recorder: &mut self.recorder,
        }
    }
}

impl<P: Parts> Group<P> {
    pub(super) fn new(setup: &Setup<'_>, parts: &P, layout: &Layout, number: usize) -> Self {
        let (plan, fabric) = (setup.plan, setup.fabric());
        let members = &layout.groups[number];
        let hosts = members.iter().filter(|&&id| fabric.is_host(id));
        let servers = hosts.clone().count();
        let hosts = hosts.map(|&id| fabric.ports(id).len()).sum();
        let ports = members.iter().map(|&id| fabric.ports(id).len()).sum();
        let mut group = Group {
            nodes: Vec::with_capacity(members.len()),
            hosts: Vec::with_capacity(hosts),
            switches: Vec::with_capacity(members.len() - servers),
            tasks: match plan.tasks.is_empty() && plan.posted.is_none() {
                true => Vec::new(),
                false => {
                    members.iter().map(|&id| Tasks::of(plan, id).filter(|_| fabric.is_host(id))).collect()
                }
            },
            ports: Vec::with_capacity(ports),
            classed: Vec::new(),
            feeds: Vec::with_capacity(ports),
            backlog: Vec::with_capacity(members.len()),
            outputs: Outputs {
                lanes: Vec::new(),
                addresses: Vec::with_capacity(ports),
                inner: InnerMail::default(),
                links: Vec::new(),
                paused_since: Vec::new(),
                far: Vec::new(),
                unit: (setup.window / setup.time_on_wire(0, plan.wire.max_frame()).max(1)).clamp(11, 64)
                    as u32
                    + 1,
                tally: Tally::default(),
                recorder: Recorder::default(),
            },
            node_word: layout.node_word(number),
            soon: vec![0; members.len().div_ceil(64)],
            later: vec![0; members.len().div_ceil(64)],
            soon_at: u64::MAX,
            sleepers: BinaryHeap::new(),
            visited: u64::MAX,
            unfinished: 0,
            liveness: Liveness::default(),
            load: 0,
            fixed: Vec::with_capacity(members.len() - servers),
            line_of: LineOf::new(setup),
            cold: fabric.links().len() > NEAR,
            effort: Effort::default(),
            inside: None,
            sides: [Vec::new(), Vec::new()],
            parked: setup.posted.as_ref().map(|_| members.iter().map(|_| None).collect()),
        };
        let lead = inside::lead(setup, layout, number).filter(|_| setup.posted.is_none());
        let first_word = members.first().map_or(0, |id| layout.locate(*id).word);
        for &id in members {
            let location = layout.locate(id);
            let is_host = fabric.is_host(id);
            let index = if is_host {
                let endpoints = fabric.base(id)..fabric.base(id) + fabric.ports(id).len() as u32;
                group.hosts.extend(endpoints.map(|host| Host::new(setup, parts, HostId(host))));
                group.hosts.len() - fabric.ports(id).len()
            } else {
                let mut switch = Switch::new(setup, parts, id);
                switch.interest.local |= has_no_choice(setup, &switch.interest, id);
                group.fixed.push(Static::new(setup, &switch));
                group.switches.push(switch);
                group.switches.len() - 1
            };
            let interest = if is_host { Interest::default() } else { group.switches[index].interest };
            let gp = fabric.base(id);
            for (p, link) in fabric.ports(id).iter().enumerate() {
                let far = layout.locate(link.to);
                let mut port = Port::new(&setup.ports[gp as usize + p], setup.marking(gp as usize + p));
                port.set(WATCHED, interest.departures || interest.host_departures && fabric.is_host(link.to));
                group.ports.push(port);
                if !plan.classes.is_plain() {
                    group.classed.push(Queues::new(is_host, fabric.channels()));
                }
                let inner = lead.is_some() && far.group as usize == number;
                let (nodes, ports) = match inner {
                    true => (0, far.word - first_word),
                    false => (layout.node_word(far.group as usize), far.word),
                };
                group.outputs.addresses.push(Address {
                    port: Bit::of(ports, link.peer_port.0 as u32),
                    node: Bit::of(nodes, far.index),
                    inner,
                });
                group.feeds.push(Feed { group: far.group, port: layout.port(link.to, link.peer_port) });
            }
            group.nodes.push(Node {
                id,
                index: index as u32,
                is_host,
                first_port: location.first_port,
                ports: fabric.ports(id).len() as u32,
                gp,
                mail_word: location.word,
                backlog: group.backlog.len() as u32,
                next: u64::MAX,
                next_event: u64::MAX,
                booked: u64::MAX,
                pauses: Vec::new(),
            });
            group.backlog.resize(group.backlog.len() + fabric.ports(id).len().div_ceil(64), 0);
        }
        group.outputs.far = vec![0; group.backlog.len()];
        group.outputs.links = vec![LinkRecord::default(); ports];
        group.outputs.paused_since = vec![u64::MAX; ports];
        group.outputs.lanes = (0..ports).map(|_| Lane::new()).collect();
        if let Some(lead) = lead {
            group.outputs.inner = InnerMail { nodes: group.soon.clone(), ports: group.backlog.clone() };
            group.inside = Some(Inside::new(lead, &group.nodes, ports));
        }
        group
    }

    /// Adds the sending side of a queue pair to a node of the group.
    pub(super) fn add_outgoing(&mut self, setup: &Setup<'_>, parts: &P, node: u32, qp: QpId) {
        let port = setup.fabric().uplink(setup.home(setup.plan.qps[qp.index()].from)).port.index();
        self.hosts[self.nodes[node as usize].index as usize + port].add_outgoing(setup, parts, qp);
    }

    /// Prepares the group for a run in which the sides of nodes take turns.
    pub(super) fn take_sides(&mut self, side_of: &[u8]) {
        for side in 0..2 {
            let mut members = vec![0; self.soon.len()];
            let own = (0..).zip(&self.nodes).filter(|(_, node)| side_of[node.id.index()] == side);
            own.for_each(|(n, _)| Bit::of(0, n).set(&mut members));
            self.sides[usize::from(side)] = members;
        }
    }

    /// Schedules all nodes before the first window.
    pub(super) fn ready(&mut self, setup: &Setup<'_>, length: u64) {
        for n in 0..self.nodes.len() {
            self.nodes[n].next = setup.failing.next(self.nodes[n].id, 0);
            if self.nodes[n].is_host {
                for host in &self.hosts[self.nodes[n].hosts()] {
                    self.unfinished += host.unfinished;
                    self.liveness.pending_starts += host.liveness.pending_starts;
                    self.nodes[n].next = self.nodes[n].next.min(host.timer_at());
                }
                if let Some(Some(tasks)) = self.tasks.get(n) {
                    self.unfinished += tasks.unfinished;
                    self.liveness.pending_starts += tasks.liveness.pending_starts;
                    self.nodes[n].next = self.nodes[n].next.min(tasks.next());
                }
            }
            self.nodes[n].next_event = self.nodes[n].next;
            self.schedule(n, length);
        }
        std::mem::swap(&mut self.soon, &mut self.later);
    }

    /// Visits all nodes that have something to do in a window.
    pub(super) fn visit(&mut self, context: Context<'_, P::Annex>, workspace: &mut Workspace<P::Annex>) {
        let load = self.load;
        match self.inside {
            Some(_) => self.visit_in_steps(context, workspace),
            None if self.sides[0].is_empty() => self.visit_at_once(context, workspace),
            None => self.visit_side(context, workspace),
        }
        context.outbox.count_read(self.load - load);
    }

    /// [`Group::visit`] of a group that does not step through the window.
    fn visit_at_once(&mut self, context: Context<'_, P::Annex>, workspace: &mut Workspace<P::Annex>) {
        let Context { window, mail, .. } = context;
        self.wake_sleepers(window.close);
        self.soon_at = u64::MAX;
        for word in 0..self.soon.len() {
            let todo = mail.take_nodes(window.number, self.node_word + word as u32)
                | std::mem::take(&mut self.soon[word]);
            if todo == 0 {
                continue;
            }
            self.visited = window.number;
            bits(todo, word * 64).for_each(|n| self.visit_node(context, workspace, n));
        }
        if self.parked.is_none() {
            std::mem::swap(&mut self.soon, &mut self.later);
        }
    }

    /// Marks nodes whose next event comes before `close` for a visit.
    #[inline]
    pub(super) fn wake_sleepers(&mut self, close: u64) {
        while let Some(&Reverse((at, n))) = self.sleepers.peek()
            && at < close
        {
            self.sleepers.pop();
            let node = &mut self.nodes[n as usize];
            if at == node.booked {
                node.booked = u64::MAX;
                if node.next < close {
                    self.soon[n as usize / 64] |= 1 << (n % 64);
                } else {
                    self.book(n as usize);
                }
            }
        }
    }

    /// Visits node `n` in a window or a step.
    #[inline]
    pub(super) fn visit_node(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        self.effort.visits += 1;
        match self.nodes[n].is_host {
            true if self.parked.is_some() => return self.park(context, workspace, n),
            true if self.nodes[n].ports == 1 && !self.has_tasks(n) => self.visit_host(context, workspace, n),
            true => self.visit_server(context, workspace, n),
            false => self.visit_switch(context, workspace, n),
        }
        self.schedule(n, context.window.opened + 2 * context.window.length);
    }

    #[inline]
    fn has_tasks(&self, n: usize) -> bool {
        self.tasks.get(n).is_some_and(Option::is_some)
    }

    /// Schedules the next visit of node `n`. An event before `soon` belongs to the next window.
    #[inline]
    pub(super) fn schedule(&mut self, n: usize, soon: u64) {
        let node = &self.nodes[n];
        if node.next < soon {
            self.later[n / 64] |= 1 << (n % 64);
            self.soon_at = self.soon_at.min(node.next);
        } else if node.next < node.booked {
            self.book(n);
        }
    }

    pub(super) fn book(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        node.booked = node.next;
        if node.next != u64::MAX {
            self.sleepers.push(Reverse((node.next, n as u32)));
        }
    }

    /// Time of the group's first event that needs no arrival, ps.
    pub(super) fn next(&mut self) -> u64 {
        while let Some(&Reverse((at, n))) = self.sleepers.peek() {
            let node = &self.nodes[n as usize];
            if at == node.booked && at == node.next {
                return at.min(self.soon_at);
            }
            // The entry is stale: the event was postponed, or another entry has replaced it.
            self.sleepers.pop();
            if at == node.booked {
                self.book(n as usize);
            }
        }
        self.soon_at
    }

    fn visit_switch(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        let window = context.window;
        let Workspace { incoming, pool, .. } = workspace;
        let quantum = context.setup.window;
        let number = self.sample_switch(n, window.opened, quantum);
        let node = &mut self.nodes[n];
        let (ports, words) = (node.range(), node.words());
        let feeds = &self.feeds[ports.clone()];
        if self.cold {
            let ports = &self.ports[ports.clone()];
            let backlogged = self.backlog[words.clone()].iter().enumerate();
            backlogged.flat_map(|(i, word)| bits(*word, i * 64)).for_each(|p| ports[p].fetch_queue());
        }
        let count = match &mut self.inside {
            Some(inside) => inside.open_mail(window, (n, node), &mut self.outputs, feeds, pool, incoming),
            None => open_mail(context, feeds, node, incoming, self.cold),
        };
        self.load += count as u64;
        // Only a visit of two windows has a middle.
        let middle = Some((number + 1) * quantum).filter(|middle| *middle < window.close);
        if self.compute_switch(context, workspace, (n, count), middle).is_none() {
            self.split_switch(context, workspace, n, middle);
        }
        self.add_outside_events(n, context);
    }

    /// Samples the buffer of a switch before its first event of a full window, whose length is `quantum`; returns the number of
    /// this window.
    #[inline(always)]
    pub(super) fn sample_switch(&mut self, n: usize, opened: u64, quantum: u64) -> u64 {
        let switch = &mut self.switches[self.nodes[n].index as usize];
        let number = opened / quantum;
        if switch.sampled != number {
            switch.sampled = number;
            switch.buffer.sample();
        }
        number
    }

    /// Computes a visit of a switch with the `count` packets of its lanes. The buffer is sampled at `middle`. `None`, and
    /// without effect, if the state of the buffer at that instant is unknown.
    pub(super) fn compute_switch(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        (n, count): (usize, usize),
        middle: Option<u64>,
    ) -> Option<()> {
        let Context { setup, window, .. } = context;
        let Workspace { incoming, pool, sorter, scratch, .. } = workspace;
        let node = &mut self.nodes[n];
        let (ports, words) = (node.range(), node.words());
        let (switch, fixed) = (&mut self.switches[node.index as usize], &self.fixed[node.index as usize]);
        if middle.is_some() && !node.pauses.is_empty() {
            return None;
        }
        scratch.events.collect(&mut node.pauses, window.close);
        if !setup.failing.is_empty() {
            scratch.events.add_failures(setup.failing.events(node.id, window.opened, window.close));
        }
        let (backlog, ports_of) = (&mut self.backlog[words.clone()], &mut self.ports[ports.clone()]);
        let mut now = Now {
            calm: switch.route_change.is_none()
                && scratch.events.only_pauses()
                && window.close == window.opened + window.length,
            has_others: switch.uncharged + switch.held_bytes > 0,
            has_middle: middle.is_some(),
            ..Now::default()
        };
        let bytes = |packets: usize| packets as u64 * u64::from(setup.largest_frame);
        if fixed.asks_for_caps(&now) {
            now.caps = switch.buffer.caps(bytes(count));
        }
        if fixed.asks_for_thresholds(&now) {
            let longest = || {
                let waiting = ports_of.iter().map(|p| p.waiting).max().unwrap_or(0);
                // A scheme may release held packets into any queue.
                switch.held_bytes + waiting
            };
            let channels = u16::from(setup.fabric().channels());
            // In a group that steps, one lane holds the packets of several ports, one port after the other.
            let of_ports = incoming.iter().flat_map(|lane| lane.chunk_by(|a, b| a.ingress() == b.ingress()));
            let by_account = of_ports.flat_map(|packets| {
                let first = packets[0].ingress().0 * channels;
                (first..first + channels).map(move |account| (Account(account), bytes(packets.len())))
            });
            now.stays_below = switch.buffer.stays_below_thresholds(bytes(count), by_account, longest);
        }
        let way = way(fixed, &now);
        let arrivals = match way {
            Way::Split => return None,
            Way::ByPort(_) => &[],
            Way::InOrder { .. } => {
                let (lanes, tie) =
                    (incoming.iter().map(|lane| &lane[..]), setup.tie(node.id.0, window.opened));
                let arrivals = sorter.sort(lanes, count, window.length, tie);
                if switch.interest.announcements {
                    arrivals.iter().for_each(|pkt| switch.scheme.expect(pkt));
                }
                before_the_end(arrivals, window, &mut self.outputs.tally)
            }
        };
        let heavy = matches!(way, Way::ByPort(Bound::Buffer) | Way::InOrder { heavy: true });
        self.effort.heavy += u64::from(heavy);
        let mut out = self.outputs.of(node, context, pool);
        out.bring_near(ports_of);
        let state = SwitchState {
            node: node.id,
            switch,
            ports: ports_of,
            classed: if self.classed.is_empty() { &mut [] } else { &mut self.classed[ports.clone()] },
            backlog,
            scratch,
            with_data: setup.with_data,
            line_of: self.line_of,
        };
        let next = match way {
            Way::ByPort(bound) => local::visit(state, out, incoming, bound, middle),
            _ if setup.follows_any() => visit_following(heavy, state, out, arrivals),
            _ if heavy => switch::Visit::<P, true, false>::new(state, out).run(arrivals),
            _ => switch::Visit::<P, false, false>::new(state, out).run(arrivals),
        };
        incoming.drain(..).for_each(|lane| pool.give(lane, self.outputs.unit));
        self.nodes[n].next = next;
        Some(())
    }

    fn visit_host(&mut self, context: Context<'_, P::Annex>, workspace: &mut Workspace<P::Annex>, n: usize) {
        let window = context.window;
        let Workspace { incoming, pool, scratch, .. } = workspace;
        let node = &mut self.nodes[n];
        let port = node.first_port as usize;
        let host = &mut self.hosts[node.index as usize];
        let (unfinished, pending_starts) = (host.unfinished, host.liveness.pending_starts);
        let feeds = &self.feeds[port..=port];
        if self.cold {
            self.ports[port].fetch();
            host.fetch();
        }
        self.load += match &mut self.inside {
            Some(inside) => inside.open_mail(window, (n, node), &mut self.outputs, feeds, pool, incoming),
            None => open_mail(context, feeds, node, incoming, self.cold),
        } as u64;
        let lane = incoming.pop().unwrap_or_default();
        let arrivals = before_the_end(&lane, window, &mut self.outputs.tally);
        scratch.events.collect(&mut node.pauses, window.close);
        if !context.setup.failing.is_empty() {
            scratch.events.add_failures(context.setup.failing.events(node.id, window.opened, window.close));
        }
        let mut out = self.outputs.of(node, context, pool);
        out.bring_near(&mut self.ports[port..=port]);
        let (queues, port, events) = (self.classed.get_mut(port), &mut self.ports[port], &mut scratch.events);
        node.next = match queues {
            None => host::Visit { host, port, out, events, with_data: context.setup.with_data }.run(arrivals),
            Some(queues) => classed_host::Visit { host, port, queues, out, events }.run(arrivals),
        };
        pool.give(lane, self.outputs.unit);
        let host = &self.hosts[node.index as usize];
        self.unfinished -= unfinished - host.unfinished;
        let live = &mut self.liveness;
        live.pending_starts = live.pending_starts - pending_starts + host.liveness.pending_starts;
        live.last_progress = live.last_progress.max(host.liveness.last_progress);
        self.add_outside_events(n, context);
    }

    /// Visits a host with several ports, or with tasks.
    #[inline(never)]
    fn visit_server(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        let Context { setup, window, .. } = context;
        let (hosts, waits) = (self.nodes[n].hosts(), self.waits(n));
        let count = self.open_server(context, workspace, n);
        let Workspace { incoming, pool, sorter, port_events, reports, .. } = workspace;
        let lanes = incoming.iter().map(Vec::as_slice);
        let tie = setup.tie(self.nodes[n].id.0, window.opened);
        let arrivals = sorter.sort(lanes, count, window.length, tie);
        let arrivals = before_the_end(arrivals, window, &mut self.outputs.tally);
        let next = self.server(n, context, pool, &mut port_events[..hosts.len()], reports).run(arrivals);
        incoming.drain(..).for_each(|lane| pool.give(lane, self.outputs.unit));
        self.close_server(context, n, next, waits);
    }

    /// Opens the visit of such a host: takes its mail and collects its link events. Returns the number of packets.
    pub(super) fn open_server(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) -> usize {
        let Context { setup, window, .. } = context;
        let Workspace { incoming, pool, port_events, .. } = workspace;
        let node = &mut self.nodes[n];
        let ports = node.range();
        let feeds = &self.feeds[ports.clone()];
        let count = match &mut self.inside {
            Some(inside) => inside.open_mail(window, (n, node), &mut self.outputs, feeds, pool, incoming),
            None => open_mail(context, feeds, node, incoming, self.cold),
        };
        self.load += count as u64;
        port_events.resize_with(port_events.len().max(ports.len()), PortEvents::default);
        for (p, PortEvents { links, .. }) in (0..).map(PortIndex).zip(&mut port_events[..ports.len()]) {
            links.collect_at(p, &mut node.pauses, window.close);
            if !setup.failing.is_empty() {
                let events = setup.failing.events(node.id, window.opened, window.close);
                links.add_failures(events.filter(|(_, event)| event.port() == Some(p)));
            }
        }
        self.outputs.of(node, context, pool).bring_near(&mut self.ports[ports]);
        count
    }

    /// The open visit of such a host.
    pub(super) fn server<'v>(
        &'v mut self,
        n: usize,
        context: Context<'v, P::Annex>,
        pool: &'v mut Pool<P::Annex>,
        events: &'v mut [PortEvents],
        reports: &'v mut Vec<Report>,
    ) -> server::Visit<'v, P> {
        let node = &self.nodes[n];
        let ports = node.range();
        server::Visit {
            hosts: &mut self.hosts[node.hosts()],
            classed: self.classed.get_mut(ports.clone()).unwrap_or_default(),
            ports: &mut self.ports[ports],
            events,
            tasks: self.tasks.get_mut(n).and_then(Option::as_mut),
            out: self.outputs.of(node, context, pool),
            with_data: context.setup.with_data,
            reports,
        }
    }

    /// Closes the visit of such a host, whose next event comes at `next`; `waits` is what waited when it opened.
    pub(super) fn close_server(
        &mut self,
        context: Context<'_, P::Annex>,
        n: usize,
        next: u64,
        (unfinished, pending_starts): (u64, u64),
    ) {
        let (now_unfinished, now_pending) = self.waits(n);
        self.unfinished = self.unfinished - unfinished + now_unfinished;
        self.liveness.pending_starts = self.liveness.pending_starts - pending_starts + now_pending;
        let progress = self.hosts[self.nodes[n].hosts()].iter().map(|host| host.liveness.last_progress);
        let of_tasks = self.tasks.get(n).into_iter().flatten().map(|tasks| tasks.liveness.last_progress);
        let last = &mut self.liveness.last_progress;
        *last = progress.chain(of_tasks).fold(*last, u64::max);
        self.nodes[n].next = next;
        self.add_outside_events(n, context);
    }

    /// Foreground messages and tasks of a host that have not finished, and those that wait for their start alone.
    pub(super) fn waits(&self, n: usize) -> (u64, u64) {
        let tasks = self.tasks.get(n).into_iter().flatten();
        let of_tasks = tasks.map(|tasks| (tasks.unfinished, tasks.liveness.pending_starts));
        let hosts = self.hosts[self.nodes[n].hosts()].iter();
        hosts
            .map(|host| (host.unfinished, host.liveness.pending_starts))
            .chain(of_tasks)
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Adds the events outside the visit to the node's next event: packets to hand on to lanes, pause frames,
    /// failures and repairs.
    fn add_outside_events(&mut self, n: usize, context: Context<'_, P::Annex>) {
        let Context { setup, window, .. } = context;
        let node = &mut self.nodes[n];
        node.next = node.next.min(setup.failing.next(node.id, window.close));
        for frame in &node.pauses {
            node.next = node.next.min(frame.at);
        }
        node.next_event = node.next;
        let words = node.words();
        for (i, word) in self.outputs.far[words].iter().enumerate() {
            for p in bits(*word, i * 64) {
                let Some(at) = self.ports[node.first_port as usize + p].far.first() else { continue };
                // The packet goes onto its lane one window before it arrives, which is mostly the next window of the node.
                let Window { next, span, again, .. } = window;
                let hand_on =
                    if at < next + 2 * span { again } else { again + ((at - next) / span - 1) * span };
                node.next = node.next.min(hand_on);
                if node.next <= again {
                    return;
                }
            }
        }
    }

    /// Time of the group's first event in a run without mail, ps. In contrast to [`Group::next`], a packet counts when it
    /// arrives.
    pub(super) fn next_event(&self) -> u64 {
        let arrivals = self.ports.iter().filter_map(|port| port.far.first());
        self.nodes.iter().map(|node| node.next_event).chain(arrivals).min().unwrap_or(u64::MAX)
    }

    /// Time of the first event that the group has kept for the window opened at `opened`, ps.
    pub(super) fn next_carried(&self, opened: u64) -> u64 {
        self.inside.iter().map(|inside| inside.next_carried(opened)).min().unwrap_or(u64::MAX)
    }

    /// Link crossings so far.
    pub(super) fn hops(&self) -> u64 {
        self.ports.iter().map(|p| p.frames).sum()
    }

    /// Writes the queue lengths of all switch ports to a table of all ports of the fabric.
    pub(super) fn write_queues(&self, all: &mut [u32]) {
        for node in self.nodes.iter().filter(|node| !node.is_host) {
            let of = |p: usize| match self.classed.get(p) {
                Some(queues) => queues.queued_bytes(),
                None => self.ports[p].queued_bytes(),
            };
            all[node.gp as usize..].iter_mut().zip(node.range()).for_each(|(all, p)| *all = shown(of(p)));
        }
    }

    /// Samples the counts of the group's nodes.
    pub(super) fn sample(&mut self, setup: &Setup<'_>, sampler: &mut Sampler) {
        self.hosts.iter_mut().for_each(|host| host.sample(sampler));
        for node in &self.nodes {
            for p in 0..node.ports as usize {
                let (own, gp) = (node.first_port as usize + p, node.gp as usize + p);
                let track = setup.ports[gp].track;
                if track != NO_TRACK {
                    let (port, link) = (&mut self.ports[own], &mut self.outputs.links[own]);
                    let (mut most, mut counted) = (port.longest_queue(link), port.counted(link));
                    if node.is_host {
                        (most, counted.waits) = (0, 0); // a host queues only replies
                    }
                    sampler.link(track, counted, most);
                }
            }
            if !node.is_host {
                let switch = &mut self.switches[node.index as usize];
                sampler.buffer(setup.fabric().switch_number(node.id), switch.buffer.take_recent());
            }
        }
        if setup.plan.record.counters {
            let mut sink = |name, value| sampler.counter(name, value);
            self.switches.iter().for_each(|switch| switch.scheme.counters(&mut sink));
            self.hosts.iter().for_each(|host| host.counters(&mut sink));
        }
    }

    /// The paused channels of a port and the data that waits there.
    pub(super) fn blocked(&self, setup: &Setup<'_>, port: u32) -> Blocked {
        let (p, port) = (port as usize, &self.ports[port as usize]);
        let mut blocked = Blocked::new(port.paused_channels(), port.channels());
        match self.classed.get(p) {
            Some(queues) => {
                for class in (0..setup.plan.classes.all().len()).filter(|class| setup.has_data(*class)) {
                    blocked.add(setup, class, queues.packets(class));
                }
            }
            None => blocked.add(setup, setup.data_class, port.queued_data()),
        }
        blocked
    }

    /// The records of the group's nodes.
    pub(super) fn recorders(&mut self) -> impl Iterator<Item = &mut Recorder> {
        self.hosts.iter_mut().map(|host| &mut host.recorder).chain([&mut self.outputs.recorder])
    }

    /// Memory of the recorded events and frames, bytes.
    pub(super) fn records(&self) -> u64 {
        let recorders = self.hosts.iter().map(|host| &host.recorder).chain([&self.outputs.recorder]);
        recorders.map(Recorder::memory).sum()
    }

    /// Adds the memory of the group's packets and records; `written` are its lanes on the board.
    pub(super) fn add_memory(&mut self, memory: &mut Memory, written: &mut Lanes<P::Annex>) {
        let parcel = size_of::<Parcel<P::Annex>>();
        for node in &self.nodes {
            for p in 0..node.ports as usize {
                let (own, gp) = (node.first_port as usize + p, node.gp as usize + p);
                let port = &self.ports[own];
                let queues = [&port.data, &port.replies, &port.cnps].map(Queue::memory).iter().sum::<u64>();
                memory.add_queue(gp, queues + self.classed.get(own).map_or(0, Queues::memory));
                memory.in_flight += port.far.memory();
            }
        }
        for lane in self.outputs.lanes.iter_mut().chain(written) {
            memory.in_flight += (lane.packets().capacity() * parcel) as u64;
        }
        let held: usize = self.switches.iter().map(|switch| switch.stashed().count()).sum();
        memory.queues += (held * parcel) as u64;
        memory.records += self.records();
    }

    /// True if arrivals in the last window come after the end of the run.
    pub(super) fn cut_short(&self) -> bool {
        let Tally { data, control, .. } = &self.outputs.tally;
        data.in_flight + data.headers_in_flight + control.in_flight > 0
    }

    /// Counts the packets on wires and in queues after the last window, `number`; `written` are the group's lanes
    /// on the board.
    pub(super) fn count_in_flight(&mut self, number: u64, written: &Lanes<P::Annex>) {
        for lane in written.iter().filter(|lane| lane.window == number) {
            lane.take().iter().for_each(|p| self.outputs.tally.count_in_flight(p));
        }
        for pkt in self.inside.iter().flat_map(Inside::carried) {
            self.outputs.tally.count_in_flight(pkt);
        }
        for port in &self.ports {
            port.far.packets().for_each(|p| self.outputs.tally.count_in_flight(p));
            port.queued().for_each(|p| self.outputs.tally.count_in_flight(p));
        }
        self.classed.iter().flat_map(Queues::queued).for_each(|p| self.outputs.tally.count_in_flight(p));
    }

    /// Writes the counts of the group's ports to the tables of the whole fabric; returns the end of the last frame, ps.
    pub(super) fn report(&mut self, links: &mut [LinkRecord], paused_since: &mut [u64]) -> u64 {
        let mut last = 0;
        for node in &self.nodes {
            for p in 0..node.ports as usize {
                let (own, all) = (node.first_port as usize + p, node.gp as usize + p);
                let port = &self.ports[own];
                port.report(&mut self.outputs.links[own]);
                if node.is_host {
                    self.outputs.links[own].max_queue = 0; // a host queues only replies
                }
                links[all] = self.outputs.links[own];
                paused_since[all] = self.outputs.paused_since[own];
                last = last.max(port.last);
            }
        }
        last
    }

    /// Returns the group's hosts, switches, tasks, counts and records.
    pub(super) fn split(self) -> Parted<P> {
        let of = |host: bool| self.nodes.iter().filter(move |n| n.is_host == host);
        let hosts: Vec<_> = of(true).flat_map(|n| n.gp..n.gp + n.ports).map(HostId).collect();
        let switches: Vec<_> = of(false).map(|n| n.id).collect();
        Parted {
            hosts: hosts.into_iter().zip(self.hosts).collect(),
            switches: switches.into_iter().zip(self.switches).collect(),
            tasks: self.tasks.into_iter().flatten().collect(),
            tally: self.outputs.tally,
            recorder: self.outputs.recorder,
        }
    }
}

impl Node {
    /// The node's ports in the group.
    pub(super) fn range(&self) -> Range<usize> {
        self.first_port as usize..(self.first_port + self.ports) as usize
    }

    /// The ports of a host among the hosts of the group.
    pub(super) fn hosts(&self) -> Range<usize> {
        self.index as usize..(self.index + self.ports) as usize
    }

    /// The node's words in tables with a bit for every port.
    pub(super) fn words(&self) -> Range<usize> {
        self.backlog as usize..(self.backlog + self.ports.div_ceil(64)) as usize
    }
}

/// True if the scheme of a switch is called for no packet, because one port alone leads to every other rack.
fn has_no_choice(setup: &Setup<'_>, interest: &Interest, id: NodeId) -> bool {
    let fabric = setup.fabric();
    let called = interest.every_packet || interest.watches() || interest.detours;
    !called
        && fabric.groups() == 0
        && (0..fabric.racks().len()).all(|rack| fabric.route_to_rack(id, rack).len() <= 1)
}

/// Visits a switch in a run that follows queue pairs.
#[inline(never)]
fn visit_following<'v, P: Parts>(
    heavy: bool,
    state: SwitchState<'v, P>,
    out: Out<'v, P::Annex>,
    arrivals: &[Parcel<P::Annex>],
) -> u64 {
    match heavy {
        true => switch::Visit::<P, true, true>::new(state, out).run(arrivals),
        false => switch::Visit::<P, false, true>::new(state, out).run(arrivals),
    }
}

/// The arrivals before the end of the run, out of arrivals in order of time.
pub(super) fn before_the_end<'p, A>(
    arrivals: &'p [Parcel<A>],
    window: Window,
    tally: &mut Tally,
) -> &'p [Parcel<A>] {
    if window.close == window.opened + window.length {
        return arrivals;
    }
    let count = arrivals.partition_point(|p| window.opened + (p.offset() as u64) < window.close);
    arrivals[count..].iter().for_each(|p| tally.count_in_flight(p));
    &arrivals[..count]
}

/// Takes the mail of a node from the board: its lanes in the order of its ports. Returns the number of packets.
#[inline]
fn open_mail<A: Annex>(
    context: Context<'_, A>,
    feeds: &[Feed],
    node: &mut Node,
    lanes: &mut Vec<Vec<Parcel<A>>>,
    cold: bool,
) -> usize {
    let Context { window, board, mail, .. } = context;
    let lane_to = |p: usize| {
        let Feed { group, port } = feeds[p];
        &board[group as usize][port as usize]
    };
    let mut count = 0;
    for word in 0..node.words().len() {
        let ports = bits(mail.take_ports(window.number, node.mail_word + word as u32), word * 64);
        if cold {
            black_box(ports.clone().fold(0, |sum, p| sum ^ lane_to(p).window));
        }
        for p in ports {
            let lane = lane_to(p);
            debug_assert_eq!(lane.window + 1, window.number, "mail without a lane");
            let packets = lane.take();
            count += packets.len();
            lanes.push(packets);
            if !lane.pauses.is_empty() {
                node.pauses.extend(&lane.pauses);
            }
        }
    }
    if cold {
        lanes.iter().for_each(|lane| fetch(lane));
    }
    count
}
