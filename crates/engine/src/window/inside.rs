//! Windows inside windows: a group whose inner links are shorter than the window steps through it by itself, so that
//! other groups do not wait for it at every step.
//!
//! Hosts and switches take turns. Hosts are computed up to the shortest inner delay, then switches up to two delays,
//! then hosts up to three, and so on: each side knows all that reaches it, and a step spans two delays. The lanes
//! inside the group are read as they are filled. Lanes from other groups are taken from the board when the window
//! opens, and wait in inboxes. Packets that arrive after the window go onto the board, as if to another group.

use super::group::{Context, Feed, Group, Node, Outputs, Workspace};
use super::lanes::{Address, Bit, Pool, bits};
use super::layout::Layout;
use super::out::Window;
use crate::setup::Setup;
use model::{Annex, Parcel, Parts, PortIndex};

/// State of a group that steps through windows.
#[derive(Debug)]
pub(super) struct Inside<A> {
    /// Longest time by which hosts and switches may be ahead of each other, ps.
    lead: u64,
    /// A bit for every host among the nodes.
    hosts: Vec<u64>,
    /// A bit for every node to visit in this step.
    todo: Vec<u64>,
    /// Packets from the board that have not arrived, by port.
    inboxes: Vec<Inbox<A>>,
}

/// Packets of one lane, in order of arrival. The first ones have arrived.
#[derive(Debug, Default)]
struct Inbox<A> {
    packets: Vec<Parcel<A>>,
    /// Number of packets that have arrived.
    arrived: usize,
}

/// Mail inside a group: a bit for every node and every port with packets on their way.
#[derive(Debug, Default)]
pub(super) struct InnerMail {
    pub(super) nodes: Vec<u64>,
    /// Laid out like [`Group::backlog`].
    pub(super) ports: Vec<u64>,
}

impl InnerMail {
    /// Announces a lane to its reader in the same group.
    pub(super) fn announce(&mut self, to: Address) {
        to.port.set(&mut self.ports);
        to.node.set(&mut self.nodes);
    }
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
        let inboxes = (0..ports).map(|_| Inbox { packets: Vec::new(), arrived: 0 }).collect();
        Inside { lead, todo: vec![0; hosts.len()], hosts, inboxes }
    }

    /// Takes the arrivals of node `n` in a step, by port in order. Returns their number.
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
        let (passed, limit) = ((window.opened - base) as u32, (window.close - base) as u32);
        let mut count = 0;
        for word in 0..node.words().len() {
            let at = node.words().start + word;
            for p in bits(std::mem::take(&mut outputs.inner.ports[at]), word * 64) {
                let port = node.first_port as usize + p;
                let (mut arrivals, mut more) = self.inboxes[port].take_before(limit, pool, outputs.unit);
                if outputs.addresses[port].inner
                    && let lane = &mut outputs.lanes[feeds[p].port as usize]
                    && lane.window == window.number
                {
                    node.pauses.append(&mut lane.pauses);
                    let (others, left) = lane.take_before(limit, pool, outputs.unit);
                    more |= left;
                    if arrivals.is_empty() {
                        pool.give(std::mem::replace(&mut arrivals, others), outputs.unit);
                    } else {
                        arrivals.extend(&others);
                        pool.give(others, outputs.unit);
                    }
                }
                if more {
                    outputs.inner.ports[at] |= 1 << (p % 64);
                    outputs.inner.nodes[n / 64] |= 1 << (n % 64);
                }
                if arrivals.is_empty() {
                    pool.give(arrivals, outputs.unit);
                    continue;
                }
                let ingress = PortIndex(p as u16);
                arrivals.iter_mut().for_each(|pkt| *pkt = pkt.arriving(pkt.offset() - passed, ingress));
                count += arrivals.len();
                lanes.push(arrivals);
            }
        }
        count
    }
}

impl<A: Annex> Inbox<A> {
    /// Takes the packets that arrive before `limit`. True if others are left.
    fn take_before(&mut self, limit: u32, pool: &mut Pool<A>, unit: u32) -> (Vec<Parcel<A>>, bool) {
        let waiting = &self.packets[self.arrived..];
        let count = waiting.partition_point(|pkt| pkt.offset() < limit);
        if self.arrived == 0 && count == waiting.len() {
            return (std::mem::take(&mut self.packets), false);
        }
        let mut arrivals = pool.buffer(count, unit);
        arrivals.extend(&waiting[..count]);
        self.arrived += count;
        let left = self.arrived < self.packets.len();
        if !left {
            pool.give(std::mem::take(self).packets, unit);
        }
        (arrivals, left)
    }
}

impl<P: Parts> Group<P> {
    /// [`Group::visit`] of a group that steps through the window.
    pub(super) fn visit_in_steps(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
    ) {
        let Window { opened, length, close, .. } = context.window;
        let Some(lead) = self.inside.as_ref().map(|inside| inside.lead) else { return };
        self.receive(context);
        let pairs = length.div_ceil(2 * lead);
        // Times up to which switches and hosts are computed.
        let mut computed = [opened; 2];
        for turn in 0..=2 * pairs {
            let hosts = turn % 2 == 0;
            let edge = (turn + 1).min(2 * pairs);
            let until = (opened + length * edge / (2 * pairs)).min(close);
            let from = std::mem::replace(&mut computed[hosts as usize], until);
            if from < until {
                let window = Window { opened: from, close: until, length: until - from, ..context.window };
                self.step(Context { window, ..context }, workspace, hosts);
            }
        }
        self.hand_over(context);
    }

    /// Takes the group's mail of the window from the board.
    fn receive(&mut self, context: Context<'_, P::Annex>) {
        let Context { window, board, mail, .. } = context;
        let Some(inside) = &mut self.inside else { return };
        for word in 0..self.soon.len() {
            let nodes = mail.take_nodes(window.number, self.node_word + word as u32);
            self.outputs.inner.nodes[word] |= nodes;
            for n in bits(nodes, word * 64) {
                let node = &mut self.nodes[n];
                for word in 0..node.words().len() {
                    let ports = mail.take_ports(window.number, node.mail_word + word as u32);
                    self.outputs.inner.ports[node.words().start + word] |= ports;
                    for p in bits(ports, word * 64) {
                        let port = node.first_port as usize + p;
                        let lane = &board[self.feeds[port].group as usize][self.feeds[port].port as usize];
                        debug_assert_eq!(lane.window + 1, window.number, "mail without a lane");
                        inside.inboxes[port] = Inbox { packets: lane.take(), arrived: 0 };
                        node.pauses.extend(&lane.pauses);
                    }
                }
            }
        }
    }

    /// Visits all hosts, or all switches, that have something to do in a step.
    fn step(&mut self, context: Context<'_, P::Annex>, workspace: &mut Workspace<P::Annex>, hosts: bool) {
        self.wake_sleepers(context.window.close);
        let Some(inside) = &mut self.inside else { return };
        for (word, todo) in inside.todo.iter_mut().enumerate() {
            let kind = if hosts { inside.hosts[word] } else { !inside.hosts[word] };
            let (mail, soon) = (&mut self.outputs.inner.nodes[word], &mut self.soon[word]);
            *todo = (*mail | *soon) & kind;
            (*mail, *soon) = (*mail & !kind, *soon & !kind);
        }
        for word in 0..self.soon.len() {
            let todo = self.inside.as_ref().map_or(0, |inside| inside.todo[word]);
            if todo != 0 {
                self.visited = context.window.number;
            }
            for n in bits(todo, word * 64) {
                self.visit_node(context, workspace, n);
            }
        }
        for (soon, later) in self.soon.iter_mut().zip(&mut self.later) {
            *soon |= std::mem::take(later);
        }
    }

    /// Passes packets that arrive after the window to the board, and finds the group's next event.
    fn hand_over(&mut self, context: Context<'_, P::Annex>) {
        let Context { window, outbox, .. } = context;
        let Some(inside) = &mut self.inside else { return };
        for word in 0..self.soon.len() {
            for n in bits(std::mem::take(&mut self.outputs.inner.nodes[word]), word * 64) {
                let node = &self.nodes[n];
                for word in 0..node.words().len() {
                    let ports = std::mem::take(&mut self.outputs.inner.ports[node.words().start + word]);
                    for p in bits(ports, word * 64) {
                        let port = node.first_port as usize + p;
                        // Packets are left in an inbox only if the run ends within the window.
                        let inbox = std::mem::take(&mut inside.inboxes[port]);
                        inbox.packets[inbox.arrived..]
                            .iter()
                            .for_each(|p| self.outputs.tally.count_in_flight(p));
                        if self.outputs.addresses[port].inner
                            && let lane = &mut self.outputs.lanes[self.feeds[port].port as usize]
                            && lane.window == window.number
                        {
                            let next = |pkt: &Parcel<_>| pkt.offset().wrapping_sub(window.span as u32);
                            let ingress = PortIndex(p as u16);
                            lane.packets().iter_mut().for_each(|pkt| *pkt = pkt.arriving(next(pkt), ingress));
                            let port = Bit::of(node.mail_word, p as u32);
                            let node = Bit::of(self.node_word, n as u32);
                            outbox.announce(window.number, Address { port, node, inner: false });
                        }
                    }
                }
            }
        }
        let soon = self.soon.iter().enumerate().flat_map(|(word, soon)| bits(*soon, word * 64));
        self.soon_at = soon.map(|n| self.nodes[n].next).min().unwrap_or(u64::MAX);
    }
}
