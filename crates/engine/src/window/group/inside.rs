//! Windows inside windows: a group whose inner links are shorter than the window steps through it by itself, so that
//! other groups do not wait for it at every step.
//!
//! Hosts and switches take turns. Hosts are computed up to the shortest inner delay, then switches up to two delays,
//! then hosts up to three, and so on: each side knows all that reaches it, and a step spans two delays. The lanes
//! inside the group are read as they are filled. Lanes from other groups are taken from the board when the window
//! opens, and their packets are divided among the steps.

use super::Group;
use super::nodes::Node;
use super::outputs::Outputs;
use super::ports::Feed;
use crate::window::context::{Context, Workspace};
use crate::window::lanes::{Bit, Pause, Pool, bits, first_event};
use crate::window::layout::Layout;
use crate::window::out::Window;
use crate::window::port::TO_HOST;
use crate::window::setup::Setup;
use model::{Annex, Packet, Parcel, Parts};

/// State of a group that steps through windows.
#[derive(Debug)]
pub(super) struct Inside<A> {
    /// Longest time by which hosts and switches may be ahead of each other, ps.
    lead: u64,
    /// Ends of the steps, in ps from the start of a window. Even steps are those of hosts.
    ends: Vec<u32>,
    /// Number of the open step.
    step: usize,
    /// A bit for every host among the nodes.
    hosts: Vec<u64>,
    /// A bit for every node to visit in this step.
    todo: Vec<u64>,
    /// Number of packets that the reader has taken of the lane that leads to each port.
    taken: Vec<u32>,
    /// Packets from the board, by node.
    outer: Vec<OuterMail<A>>,
    /// Packets inside the group that arrive after the last window.
    carried: Vec<Carried<A>>,
}

/// Packets of a lane inside the group that arrive in the next window.
#[derive(Debug)]
struct Carried<A> {
    /// Port that has sent them.
    port: u32,
    packets: Vec<Parcel<A>>,
    pauses: Vec<Pause>,
}

/// Packets from other groups on their way to a node, by step.
#[derive(Debug)]
struct OuterMail<A> {
    steps: Vec<Due<A>>,
    /// Last step in which any packet arrives.
    last: usize,
}

/// Packets from other groups that arrive at a node in one step. Their times count from its start.
#[derive(Debug)]
struct Due<A> {
    /// Packets from switches, by port and in order.
    from_switches: Vec<Parcel<A>>,
    /// Number of these packets in the last window that had any; sizes the next buffer.
    usual: usize,
    /// Packets from hosts, a lane for each.
    from_hosts: Vec<Vec<Parcel<A>>>,
}

/// Longest time by which the hosts and the switches of group `number` may be ahead of each other, ps. `None` if its
/// inner links are as long as the window.
pub(super) fn lead(setup: &Setup<'_>, layout: &Layout, number: usize) -> Option<u64> {
    let fabric = setup.fabric();
    let mut lead = u64::MAX;
    let mut least = u64::MAX;
    for node in &layout.groups[number] {
        for link in fabric.ports(*node) {
            if layout.locate(link.to).group as usize == number {
                let reach = setup.reach.of(setup.plan, link);
                least = least.min(reach);
                // Two nodes of one kind are computed in the same step, which spans two leads.
                let one_kind = fabric.is_host(link.from) == fabric.is_host(link.to);
                lead = lead.min(if one_kind { reach / 2 } else { reach });
            }
        }
    }
    (least < setup.window).then_some(lead)
}

impl<A: Annex> Inside<A> {
    pub(super) fn new(lead: u64, nodes: &[Node], ports: usize) -> Self {
        let mut hosts = vec![0; nodes.len().div_ceil(64)];
        for (n, _) in nodes.iter().enumerate().filter(|(_, node)| node.is_host) {
            Bit::of(0, n as u32).set(&mut hosts);
        }
        Inside {
            lead,
            ends: Vec::new(),
            step: 0,
            todo: vec![0; hosts.len()],
            hosts,
            taken: vec![0; ports],
            outer: nodes.iter().map(|_| OuterMail { steps: Vec::new(), last: 0 }).collect(),
            carried: Vec::new(),
        }
    }

    /// Packets inside the group that arrive after the last window.
    pub(super) fn carried(&self) -> impl Iterator<Item = &Parcel<A>> {
        self.carried.iter().flat_map(|carried| &carried.packets)
    }

    /// Time of the first event kept for the window opened at `opened`, ps.
    pub(super) fn next_carried(&self, opened: u64) -> u64 {
        let first = |carried: &Carried<A>| first_event(opened, &carried.packets, &carried.pauses);
        self.carried.iter().map(first).min().unwrap_or(u64::MAX)
    }

    /// Divides a window into steps, once for all windows of the run.
    fn divide(&mut self, length: u64) {
        if self.ends.is_empty() {
            let pairs = length.div_ceil(2 * self.lead);
            let end = |step: u64| (length * (step + 1).min(2 * pairs) / (2 * pairs)) as u32;
            self.ends = (0..=2 * pairs).map(end).collect();
        }
    }

    /// Takes the arrivals of node `n` in the open step. Returns their number.
    pub(super) fn open_mail(
        &mut self,
        window: Window,
        (n, node): (usize, &mut Node),
        outputs: &mut Outputs<A>,
        feeds: &[Feed],
        pool: &mut Pool<A>,
        lanes: &mut Vec<Vec<Parcel<A>>>,
    ) -> usize {
        let base = window.next - window.span;
        let (passed, limit) = (window.opened - base, (window.close - base) as u32);
        let mut count = 0;
        let mut more = false;
        for word in 0..node.words().len() {
            let at = node.words().start + word;
            for p in bits(std::mem::take(&mut outputs.inner.ports[at]), word * 64) {
                let lane = &mut outputs.lanes[feeds[p].port as usize];
                node.pauses.append(&mut lane.pauses);
                let (packets, taken) = (lane.packets(), &mut self.taken[node.port(p)]);
                let waiting = &packets[*taken as usize..];
                let due = match waiting.last() {
                    Some(last) if last.offset() < limit => waiting.len(),
                    _ => waiting.iter().position(|pkt| pkt.offset() >= limit).unwrap_or(0),
                };
                if due > 0 {
                    let mut arrivals = pool.buffer(due, outputs.unit);
                    arrivals.extend(waiting[..due].iter().map(|pkt| earlier(pkt, passed)));
                    lanes.push(arrivals);
                    count += due;
                }
                if due == waiting.len() {
                    packets.clear();
                    *taken = 0;
                } else {
                    *taken += due as u32;
                    outputs.inner.ports[at] |= 1 << (p % 64);
                    more = true;
                }
            }
        }
        let outer = &mut self.outer[n];
        if let Some(due) = outer.steps.get_mut(self.step) {
            due.usual = due.from_switches.len().max(due.usual / 2);
            for arrivals in std::iter::once(&mut due.from_switches).chain(&mut due.from_hosts) {
                if !arrivals.is_empty() {
                    count += arrivals.len();
                    lanes.push(std::mem::take(arrivals));
                }
            }
            if !due.from_hosts.is_empty() {
                // Lanes from hosts must come by port.
                due.from_hosts.clear();
                lanes.sort_by_key(|lane| lane[0].ingress());
            }
            more |= self.step < outer.last;
        }
        if more {
            outputs.inner.nodes[n / 64] |= 1 << (n % 64);
        }
        count
    }
}

impl<A: Annex> OuterMail<A> {
    /// Adds the packets of a lane. Its first step is `first`, and every second step is one of the node.
    fn add(
        &mut self,
        packets: &[Parcel<A>],
        (first, from_host): (usize, bool),
        ends: &[u32],
        (pool, unit): (&mut Pool<A>, u32),
    ) {
        if self.steps.is_empty() {
            let due = || Due { from_switches: Vec::new(), usual: 0, from_hosts: Vec::new() };
            self.steps.resize_with(ends.len(), due);
        }
        let (mut step, mut start, mut left) = (first, 0, packets);
        while let Some(pkt) = left.first() {
            while pkt.offset() >= ends[step] {
                start = u64::from(ends[step]);
                step += 2;
            }
            let count = left.iter().position(|pkt| pkt.offset() >= ends[step]).unwrap_or(left.len());
            let (now, later) = left.split_at(count);
            let due = &mut self.steps[step];
            if from_host {
                due.from_hosts.push(Vec::new());
            } else if due.from_switches.is_empty() {
                due.from_switches = pool.buffer(due.usual, unit);
            }
            let lane = due.from_hosts.last_mut().filter(|_| from_host).unwrap_or(&mut due.from_switches);
            lane.extend(now.iter().map(|pkt| earlier(pkt, start)));
            left = later;
            self.last = self.last.max(step);
        }
    }
}

/// A packet whose time counts from a start that is `by` ps later.
#[inline(always)]
pub(super) fn earlier<A: Annex>(pkt: &Parcel<A>, by: u64) -> Parcel<A> {
    let word = pkt.word().wrapping_sub(by << Packet::TIME_SHIFT);
    Parcel { label: pkt.label.with_word(word), annex: pkt.annex }
}

impl<P: Parts> Group<P> {
    /// [`Group::visit`] of a group that steps through the window.
    pub(super) fn visit_in_steps(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
    ) {
        let Window { opened, length, close, .. } = context.window;
        let steps = match &mut self.inside {
            Some(inside) => {
                inside.divide(length);
                inside.ends.len()
            }
            None => return,
        };
        self.receive(context, workspace);
        // Times up to which hosts and switches are computed.
        let mut computed = [opened; 2];
        for step in 0..steps {
            let Some(inside) = &mut self.inside else { return };
            inside.step = step;
            let (from, end) = (computed[step % 2], opened + u64::from(inside.ends[step]));
            computed[step % 2] = end;
            if from < end.min(close) {
                let (close, length) = (end.min(close), end - from);
                let window = Window { opened: from, close, length, ..context.window };
                self.step(Context { window, ..context }, workspace, step.is_multiple_of(2));
            }
        }
        self.hand_over(context);
    }

    /// Takes the group's mail of the window from the board.
    fn receive(&mut self, context: Context<'_, P::Annex>, workspace: &mut Workspace<P::Annex>) {
        let Context { window, mail, .. } = context;
        let Some(inside) = &mut self.inside else { return };
        for Carried { port, packets, pauses } in inside.carried.drain(..) {
            let lane = &mut self.outputs.lanes[port as usize];
            lane.begin(window.number, packets);
            lane.pauses = pauses;
            self.outputs.inner.announce(self.outputs.addresses[port as usize]);
        }
        for word in 0..self.schedule.words() {
            let nodes = mail.take_nodes(window.number, self.node_word + word as u32);
            self.outputs.inner.nodes[word] |= nodes;
            for n in bits(nodes, word * 64) {
                let node = self.nodes.node_mut(n);
                for word in 0..node.words().len() {
                    let ports = mail.take_ports(window.number, node.mail_word + word as u32);
                    for p in bits(ports, word * 64) {
                        let port = node.port(p);
                        let lane = self.ports.feed(port).lane(&context);
                        debug_assert_eq!(lane.window + 1, window.number, "mail without a lane");
                        let packets = lane.take();
                        let from_host = !node.is_host && self.ports.port(port).is(TO_HOST);
                        let (kind, pool) =
                            ((!node.is_host as usize, from_host), (&mut workspace.pool, self.outputs.unit));
                        inside.outer[n].add(&packets, kind, &inside.ends, pool);
                        self.outputs.give(&mut workspace.pool, [packets]);
                        node.pauses.extend(&lane.pauses);
                    }
                }
            }
        }
    }

    /// Visits all hosts, or all switches, that have something to do in a step.
    fn step(&mut self, context: Context<'_, P::Annex>, workspace: &mut Workspace<P::Annex>, hosts: bool) {
        self.schedule.wake(context.window.close);
        let Some(inside) = &mut self.inside else { return };
        for (word, todo) in inside.todo.iter_mut().enumerate() {
            let kind = if hosts { inside.hosts[word] } else { !inside.hosts[word] };
            let mail = &mut self.outputs.inner.nodes[word];
            *todo = *mail & kind | self.schedule.take(word, kind);
            *mail &= !kind;
        }
        for word in 0..self.schedule.words() {
            let todo = self.inside.as_ref().map_or(0, |inside| inside.todo[word]);
            self.visit_nodes(context, workspace, word, todo);
        }
        self.schedule.close_step();
    }

    /// Keeps packets that arrive after the window, and finds the group's next event.
    fn hand_over(&mut self, context: Context<'_, P::Annex>) {
        let Context { window, outbox, .. } = context;
        let Some(inside) = &mut self.inside else { return };
        for word in 0..self.schedule.words() {
            for n in bits(std::mem::take(&mut self.outputs.inner.nodes[word]), word * 64) {
                let node = self.nodes.node(n);
                // Packets from the board are left only if the run ends within the window.
                for due in &mut inside.outer[n].steps {
                    let left = due.from_switches.drain(..).chain(due.from_hosts.drain(..).flatten());
                    left.for_each(|pkt| self.outputs.count_in_flight([&pkt]));
                }
                for word in 0..node.words().len() {
                    let ports = std::mem::take(&mut self.outputs.inner.ports[node.words().start + word]);
                    for p in bits(ports, word * 64) {
                        let port = node.port(p);
                        let sender = self.ports.feed(port).port;
                        let lane = &mut self.outputs.lanes[sender as usize];
                        let (mut packets, pauses) =
                            (std::mem::take(lane.packets()), std::mem::take(&mut lane.pauses));
                        packets.drain(..std::mem::take(&mut inside.taken[port]) as usize);
                        packets.iter_mut().for_each(|pkt| *pkt = earlier(pkt, window.span));
                        inside.carried.push(Carried { port: sender, packets, pauses });
                    }
                }
            }
        }
        if !inside.carried.is_empty() {
            outbox.expect(window.number);
        }
        inside.outer.iter_mut().for_each(|outer| outer.last = 0);
        self.schedule.close_steps();
    }
}
