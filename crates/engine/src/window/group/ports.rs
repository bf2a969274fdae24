//! The ports of a group: their queues, and the lanes that lead to them.

use super::nodes::Node;
use crate::books::Tally;
use crate::outcome::{Memory, QueueCounts};
use crate::stall::Blocked;
use crate::view::shown;
use crate::window::classed::Queues;
use crate::window::context::Context;
use crate::window::lanes::{Lane, bits, fetch};
use crate::window::layout::Layout;
use crate::window::port::{Port, TAPPED, WATCHED};
use crate::window::queue::Queue;
use crate::window::setup::Setup;
use model::fabric::Link;
use model::plan::Classes;
use model::{Annex, Interest, NodeId, Parcel};
use std::hint::black_box;

/// The lane that leads to a port: the sending group, and the sending port in that group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feed {
    group: u32,
    pub(super) port: u32,
}

impl Feed {
    pub(super) fn lane<'b, A>(&self, context: &Context<'b, A>) -> &'b Lane<A> {
        &context.board[self.group as usize][self.port as usize]
    }
}

/// The ports of a group, by number.
pub(super) struct Ports<A: Annex> {
    all: Vec<Port<A>>,
    /// Queues of all ports, if the plan's classes are not plain; else empty.
    classed: Vec<Queues<A>>,
    /// The lane that leads to each port.
    feeds: Vec<Feed>,
    /// A bit for every port with a queue. Every node begins a new word.
    backlog: Vec<u64>,
}

/// The ports of one node.
pub(super) struct PortsOf<'p, A: Annex> {
    pub(super) ports: &'p mut [Port<A>],
    /// Empty if the plan's classes are plain.
    pub(super) classed: &'p mut [Queues<A>],
    /// A bit for every port with a queue.
    pub(super) backlog: &'p mut [u64],
}

impl<A: Annex> Ports<A> {
    /// No ports yet; so many of so many nodes will be added.
    pub(super) fn new(ports: usize, nodes: usize) -> Self {
        Ports {
            all: Vec::with_capacity(ports),
            classed: Vec::new(),
            feeds: Vec::with_capacity(ports),
            backlog: Vec::with_capacity(nodes),
        }
    }

    /// Adds the ports of a node, whose scheme has this interest.
    pub(super) fn add(&mut self, setup: &Setup<'_>, layout: &Layout, id: NodeId, interest: &Interest) {
        let fabric = setup.fabric();
        for (gp, link) in (fabric.base(id) as usize..).zip(fabric.ports(id)) {
            let mut port = Port::new(&setup.ports[gp], setup.marking(gp));
            port.set(WATCHED, interest.departures || interest.host_departures && fabric.is_host(link.to));
            self.all.push(port);
            if !setup.plain_queues {
                self.classed.push(Queues::new(
                    setup.plan.classes.all(),
                    fabric.is_host(id),
                    fabric.channels(),
                ));
            }
            let &Link { to, peer_port, .. } = link;
            self.feeds.push(Feed { group: layout.locate(to).group, port: layout.port(to, peer_port) });
        }
        self.backlog.resize(self.words() + fabric.ports(id).len().div_ceil(64), 0);
    }

    /// Records the frames of all ports from now on, or no longer.
    pub(super) fn tap(&mut self, on: bool) {
        self.all.iter_mut().for_each(|port| port.set(TAPPED, on));
    }

    /// Number of words in tables with a bit for every port.
    pub(super) fn words(&self) -> usize {
        self.backlog.len()
    }

    /// A port.
    #[inline(always)]
    pub(super) fn port(&self, port: usize) -> &Port<A> {
        &self.all[port]
    }

    /// [`Ports::port`], to change it.
    pub(super) fn port_mut(&mut self, port: usize) -> &mut Port<A> {
        &mut self.all[port]
    }

    /// Counts of a port's queues, if its classes are not plain.
    pub(super) fn counts(&self, port: usize) -> Option<[QueueCounts; Classes::MOST]> {
        self.classed.get(port).map(|queues| queues.counts)
    }

    /// The lane that leads to a port.
    #[inline(always)]
    pub(super) fn feed(&self, port: usize) -> Feed {
        self.feeds[port]
    }

    /// The lanes that lead to the ports of a node.
    #[inline(always)]
    pub(super) fn feeds(&self, node: &Node) -> &[Feed] {
        &self.feeds[node.range()]
    }

    /// The ports of a node.
    #[inline(always)]
    pub(super) fn of(&mut self, node: &Node) -> PortsOf<'_, A> {
        let range = node.range();
        PortsOf {
            classed: if self.classed.is_empty() { &mut [] } else { &mut self.classed[range.clone()] },
            ports: &mut self.all[range],
            backlog: &mut self.backlog[node.words()],
        }
    }

    /// Reads a word of every cache line of the ports with a queue. This only saves time.
    pub(super) fn fetch_queues(&self, node: &Node) {
        let ports = &self.all[node.range()];
        let backlogged = self.backlog[node.words()].iter().enumerate();
        backlogged.flat_map(|(i, word)| bits(*word, i * 64)).for_each(|p| ports[p].fetch_queue());
    }

    /// Takes the mail of a node from the board: its lanes in the order of its ports. Returns the number of packets.
    #[inline]
    pub(super) fn open_mail(
        &self,
        context: Context<'_, A>,
        node: &mut Node,
        lanes: &mut Vec<Vec<Parcel<A>>>,
        cold: bool,
    ) -> usize {
        let (window, feeds) = (context.window, self.feeds(node));
        let lane_to = |p: usize| feeds[p].lane(&context);
        let mut count = 0;
        for word in 0..node.words().len() {
            let ports = bits(context.mail.take_ports(window.number, node.mail_word + word as u32), word * 64);
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

    /// Time of the first arrival among packets that are not on lanes yet, ps.
    pub(super) fn first_arrival(&self) -> u64 {
        self.all.iter().filter_map(|port| port.far.first()).min().unwrap_or(u64::MAX)
    }

    /// Link crossings so far.
    pub(super) fn hops(&self) -> u64 {
        self.all.iter().map(|port| port.frames).sum()
    }

    /// Bytes in all queues of a port, as views show them.
    pub(super) fn shown(&self, port: usize) -> u32 {
        shown(match self.classed.get(port) {
            Some(queues) => queues.queued_bytes(),
            None => self.all[port].queued_bytes(),
        })
    }

    /// The paused channels of a port and the data that waits there.
    pub(super) fn blocked(&self, setup: &Setup<'_>, p: usize) -> Blocked {
        let port = &self.all[p];
        let mut blocked = Blocked::new(port.paused_channels(), port.channels());
        if let Some(queues) = self.classed.get(p) {
            for class in (0..setup.plan.classes.all().len()).filter(|class| setup.has_data(*class)) {
                blocked.add(setup, class, queues.packets(class));
            }
        }
        blocked.add(setup, setup.data_class, port.queued_data());
        blocked
    }

    /// Adds the memory of the packets of port `p`, which has the number `gp` in the fabric.
    pub(super) fn add_memory(&self, memory: &mut Memory, (p, gp): (usize, usize)) {
        let port = &self.all[p];
        let queues = [&port.data, &port.replies, &port.cnps].map(Queue::memory).iter().sum::<u64>();
        memory.add_queue(gp, queues + self.classed.get(p).map_or(0, Queues::memory));
        memory.in_flight += port.far.memory();
    }

    /// Counts the packets in queues and on wires after the last window.
    pub(super) fn count_in_flight(&self, tally: &mut Tally) {
        for port in &self.all {
            port.far.packets().chain(port.queued()).for_each(|pkt| tally.count_in_flight(pkt));
        }
        self.classed.iter().flat_map(Queues::queued).for_each(|pkt| tally.count_in_flight(pkt));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::group::tests::racks;

    #[test]
    fn every_port_is_fed_by_the_far_end_of_its_link() {
        let plan = racks();
        let (setup, layout) = (Setup::new(&plan), Layout::new(&plan.fabric));
        let of = |members: &Vec<NodeId>| {
            let mut ports = Ports::<()>::new(0, members.len());
            members.iter().for_each(|&id| ports.add(&setup, &layout, id, &Interest::default()));
            ports
        };
        let groups: Vec<_> = layout.groups.iter().map(of).collect();
        for link in plan.fabric.links() {
            let port = layout.port(link.to, link.peer_port) as usize;
            let feed = groups[layout.locate(link.to).group as usize].feed(port);
            let sender = (layout.locate(link.from).group, layout.port(link.from, link.port));
            assert_eq!((feed.group, feed.port), sender, "{link:?}");
        }
    }
}
