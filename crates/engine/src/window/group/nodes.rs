//! The nodes of a group: their places in its tables, and the state of hosts and switches.

use crate::host::Host;
use crate::stall::Liveness;
use crate::switch::Switch;
use crate::tasks::Tasks;
use crate::window::context::Context;
use crate::window::lanes::Pause;
use crate::window::layout::Location;
use crate::window::out::LinkEvents;
use crate::window::setup::Setup;
use crate::window::way::Static;
use model::{HostId, Interest, NodeId, Parts, PortIndex, QpId};
use std::ops::Range;

/// A host or a switch of a group.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    /// Index of its first port among the hosts of the group, or of the switch among its switches.
    index: u32,
    pub(super) is_host: bool,
    first_port: u32,
    ports: u32,
    /// Number of its first port in the fabric.
    pub(super) gp: u32,
    /// First word in the mail table of ports.
    pub(super) mail_word: u32,
    /// First word in the group's tables with a bit for every port.
    first_word: u32,
    /// Pause frames on their way to the node.
    pub(super) pauses: Vec<Pause>,
}

impl Node {
    /// The node's ports in the group.
    #[inline(always)]
    pub(super) fn range(&self) -> Range<usize> {
        self.first_port as usize..(self.first_port + self.ports) as usize
    }

    /// Index of port `p` of the node in the group.
    #[inline(always)]
    pub(super) fn port(&self, p: usize) -> usize {
        debug_assert!(p < self.ports as usize);
        self.first_port as usize + p
    }

    /// True if the node is a host with one port.
    #[inline(always)]
    pub(super) fn is_endpoint(&self) -> bool {
        self.is_host && self.ports == 1
    }

    /// The node's words in tables with a bit for every port.
    #[inline(always)]
    pub(super) fn words(&self) -> Range<usize> {
        self.first_word as usize..(self.first_word + self.ports.div_ceil(64)) as usize
    }

    /// The node's ports: in the group, and in the fabric.
    pub(super) fn both(&self) -> impl Iterator<Item = (usize, usize)> {
        self.range().zip(self.gp as usize..)
    }

    /// Takes the link events of the open window.
    #[inline]
    pub(super) fn collect<A>(&mut self, context: Context<'_, A>, events: &mut LinkEvents) {
        let Context { setup, window, .. } = context;
        events.collect(&mut self.pauses, window.close);
        if !setup.failing.is_empty() {
            events.add_failures(setup.failing.events(self.id, window.opened, window.close));
        }
    }

    /// True if a failure or a repair of the node comes in the open window.
    pub(super) fn fails<A>(&self, Context { setup, window, .. }: Context<'_, A>) -> bool {
        setup.failing.next(self.id, window.opened) < window.close
    }

    /// [`Node::collect`] for one port of a host, which `fails` in the window or not.
    pub(super) fn collect_at<A>(
        &mut self,
        p: PortIndex,
        context: Context<'_, A>,
        fails: bool,
        events: &mut LinkEvents,
    ) {
        let Context { setup, window, .. } = context;
        events.collect_at(p, &mut self.pauses, window.close);
        if fails {
            let of_node = setup.failing.events(self.id, window.opened, window.close);
            events.add_failures(of_node.filter(|(_, event)| event.port() == Some(p)));
        }
    }

    /// Time of the first event that reaches the node from outside after a window, other than a packet, ps.
    #[inline(always)]
    pub(super) fn next_from_outside<A>(&self, context: Context<'_, A>) -> u64 {
        let Context { setup, window, .. } = context;
        let failure = setup.failing.next(self.id, window.close);
        self.pauses.iter().map(|frame| frame.at).fold(failure, u64::min)
    }

    fn hosts(&self) -> Range<usize> {
        debug_assert!(self.is_host);
        self.index as usize..(self.index + self.ports) as usize
    }
}

/// What waits at a host, or at all hosts of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Foreground messages and tasks that have not finished.
    unfinished: u64,
    /// Messages and tasks that wait for their start alone.
    pending_starts: u64,
}

impl Waits {
    fn of(unfinished: u64, liveness: &Liveness) -> Self {
        Waits { unfinished, pending_starts: liveness.pending_starts }
    }

    /// Both together.
    fn and(self, other: Waits) -> Waits {
        Waits {
            unfinished: self.unfinished + other.unfinished,
            pending_starts: self.pending_starts + other.pending_starts,
        }
    }

    /// These after one host had `before` and has `after`.
    #[inline(always)]
    fn changed(self, before: Waits, after: Waits) -> Waits {
        debug_assert!(self.unfinished >= before.unfinished && self.pending_starts >= before.pending_starts);
        Waits {
            unfinished: self.unfinished - before.unfinished + after.unfinished,
            pending_starts: self.pending_starts - before.pending_starts + after.pending_starts,
        }
    }
}

/// The nodes of a group, by number.
pub(super) struct Nodes<P: Parts> {
    all: Vec<Node>,
    hosts: Vec<Host<P>>,
    switches: Vec<Switch<P>>,
    /// By switch, what decides on the way of its visits.
    fixed: Vec<Static>,
    /// Tasks by node; empty if the plan has none and no program posts any.
    tasks: Vec<Option<Tasks>>,
    waits: Waits,
    /// Time of the last progress at any host, ps.
    last_progress: u64,
    /// The first queue pair that has used up its retries, see [`Liveness`].
    exceeded: Option<(u64, QpId)>,
}

/// A switch, borrowed from its group.
pub(super) struct AtSwitch<'n, P: Parts> {
    pub(super) node: &'n mut Node,
    pub(super) switch: &'n mut Switch<P>,
    pub(super) fixed: &'n Static,
}

/// A host with its ports, borrowed from its group.
pub(super) struct AtHost<'n, P: Parts> {
    pub(super) node: &'n mut Node,
    /// By port.
    pub(super) hosts: &'n mut [Host<P>],
    pub(super) tasks: Option<&'n mut Tasks>,
}

impl<P: Parts> Nodes<P> {
    /// No nodes yet; `members` will be added.
    pub(super) fn new(setup: &Setup<'_>, members: &[NodeId]) -> Self {
        let (plan, fabric) = (setup.plan, setup.fabric());
        let hosts = members.iter().filter(|id| fabric.is_host(**id));
        let switches = members.len() - hosts.clone().count();
        Nodes {
            all: Vec::with_capacity(members.len()),
            hosts: Vec::with_capacity(hosts.map(|id| fabric.ports(*id).len()).sum()),
            switches: Vec::with_capacity(switches),
            fixed: Vec::with_capacity(switches),
            tasks: match plan.tasks.is_empty() && plan.posted.is_none() {
                true => Vec::new(),
                false => {
                    members.iter().map(|&id| Tasks::of(plan, id).filter(|_| fabric.is_host(id))).collect()
                }
            },
            waits: Waits::default(),
            last_progress: 0,
            exceeded: None,
        }
    }

    /// Adds a node, whose tables with a bit for every port begin with word `first_word`. Returns what its scheme wants.
    pub(super) fn add(
        &mut self,
        setup: &Setup<'_>,
        parts: &P,
        (id, location, first_word): (NodeId, Location, usize),
    ) -> Interest {
        let fabric = setup.fabric();
        let (is_host, gp, ports) = (fabric.is_host(id), fabric.base(id), fabric.ports(id).len() as u32);
        debug_assert_eq!(location.index as usize, self.all.len(), "nodes come in order");
        let (index, interest) = if is_host {
            self.hosts.extend((gp..gp + ports).map(|host| Host::new(setup, parts, HostId(host))));
            (self.hosts.len() - ports as usize, Interest::default())
        } else {
            let mut switch = Switch::new(setup, parts, id);
            switch.interest.local |= has_no_choice(setup, &switch.interest, id);
            let interest = switch.interest;
            self.fixed.push(Static::new(setup, &switch));
            self.switches.push(switch);
            (self.switches.len() - 1, interest)
        };
        self.all.push(Node {
            id,
            index: index as u32,
            is_host,
            first_port: location.first_port,
            ports,
            gp,
            mail_word: location.word,
            first_word: first_word as u32,
            pauses: Vec::new(),
        });
        interest
    }

    /// All nodes, in order.
    pub(super) fn all(&self) -> &[Node] {
        &self.all
    }

    /// All hosts, in order: one for each port of a node that is a host.
    pub(super) fn hosts(&self) -> &[Host<P>] {
        &self.hosts
    }

    /// [`Nodes::hosts`], to change them.
    pub(super) fn hosts_mut(&mut self) -> &mut [Host<P>] {
        &mut self.hosts
    }

    /// All switches, in order.
    pub(super) fn switches(&self) -> &[Switch<P>] {
        &self.switches
    }

    /// Node `n`.
    #[inline(always)]
    pub(super) fn node(&self, n: usize) -> &Node {
        &self.all[n]
    }

    /// [`Nodes::node`], to change it.
    #[inline(always)]
    pub(super) fn node_mut(&mut self, n: usize) -> &mut Node {
        &mut self.all[n]
    }

    /// Node `n`, which is a switch.
    #[inline(always)]
    pub(super) fn switch(&mut self, n: usize) -> AtSwitch<'_, P> {
        let node = &mut self.all[n];
        debug_assert!(!node.is_host);
        let index = node.index as usize;
        AtSwitch { node, switch: &mut self.switches[index], fixed: &self.fixed[index] }
    }

    /// True if the visits of all switches know the buffer at their middle.
    pub(super) fn knows_middles(&self) -> bool {
        self.fixed.iter().all(Static::knows_middle)
    }

    /// Node `n`, which is a host.
    #[inline(always)]
    pub(super) fn host(&mut self, n: usize) -> AtHost<'_, P> {
        let node = &mut self.all[n];
        let hosts = &mut self.hosts[node.hosts()];
        AtHost { node, hosts, tasks: self.tasks.get_mut(n).and_then(Option::as_mut) }
    }

    /// The endpoints of node `n`, which is a host.
    pub(super) fn endpoints(&self, n: usize) -> &[Host<P>] {
        &self.hosts[self.all[n].hosts()]
    }

    /// Node `n`, which is a host with one port.
    #[inline(always)]
    pub(super) fn endpoint(&mut self, n: usize) -> (&mut Node, &mut Host<P>) {
        let node = &mut self.all[n];
        debug_assert!(node.is_endpoint());
        let host = &mut self.hosts[node.index as usize];
        (node, host)
    }

    /// The endpoint of host `n` that leads to `of`, which stands at it.
    pub(super) fn endpoint_of(&mut self, setup: &Setup<'_>, n: usize, of: HostId) -> &mut Host<P> {
        let port = setup.fabric().uplink(setup.home(of)).port.index();
        &mut self.host(n).hosts[port]
    }

    /// Adds the sending side of a queue pair to node `n`.
    pub(super) fn add_outgoing(&mut self, setup: &Setup<'_>, parts: &P, n: usize, qp: QpId) {
        let from = setup.plan.qps[qp.index()].from;
        self.endpoint_of(setup, n, from).add_outgoing(setup, parts, qp);
    }

    /// The tasks of host `n`; `None` if it has none.
    #[inline(always)]
    pub(super) fn tasks(&self, n: usize) -> Option<&Tasks> {
        self.tasks.get(n).and_then(Option::as_ref)
    }

    /// [`Nodes::tasks`], to change them.
    pub(super) fn tasks_mut(&mut self, n: usize) -> Option<&mut Tasks> {
        self.tasks.get_mut(n).and_then(Option::as_mut)
    }

    /// Time of the next event of the tasks of host `n`, ps; [`u64::MAX`] if there is none.
    pub(super) fn next_of_tasks(&self, n: usize) -> u64 {
        self.tasks(n).map_or(u64::MAX, Tasks::next)
    }

    /// Time of the first event of node `n` before the first window, ps, and counts what waits there.
    pub(super) fn ready(&mut self, setup: &Setup<'_>, n: usize) -> u64 {
        let node = &self.all[n];
        let fails = setup.failing.next(node.id, 0);
        if !node.is_host {
            return fails;
        }
        let timers = self.hosts[node.hosts()].iter().map(Host::timer_at).min().unwrap_or(u64::MAX);
        self.count_waits(n, Waits::default());
        fails.min(timers).min(self.next_of_tasks(n))
    }

    /// What waits at host `n`.
    pub(super) fn waits(&self, n: usize) -> Waits {
        let hosts = self.hosts[self.all[n].hosts()].iter();
        let of_hosts = hosts.map(|host| Waits::of(host.unfinished, &host.liveness));
        let of_tasks = self.tasks(n).map(|tasks| Waits::of(tasks.unfinished, &tasks.liveness));
        of_hosts.chain(of_tasks).fold(Waits::default(), Waits::and)
    }

    /// Counts what waits at host `n`, where `before` waited when it was last counted.
    pub(super) fn count_waits(&mut self, n: usize, before: Waits) {
        self.waits = self.waits.changed(before, self.waits(n));
    }

    /// [`Nodes::count_waits`] after a visit, which may have made progress.
    pub(super) fn settle(&mut self, n: usize, before: Waits) {
        self.count_waits(n, before);
        let hosts = self.hosts[self.all[n].hosts()].iter().map(|host| &host.liveness);
        let progress = hosts.chain(self.tasks(n).map(|tasks| &tasks.liveness));
        let so_far = (self.last_progress, self.exceeded);
        (self.last_progress, self.exceeded) = progress.fold(so_far, |(last, exceeded), one| {
            (last.max(one.last_progress), exceeded.into_iter().chain(one.exceeded).min())
        });
    }

    /// [`Nodes::waits`] of a host with one port and without tasks.
    #[inline(always)]
    pub(super) fn waits_at_endpoint(&self, n: usize) -> Waits {
        let host = &self.hosts[self.all[n].index as usize];
        Waits::of(host.unfinished, &host.liveness)
    }

    /// [`Nodes::settle`] for a host with one port and without tasks.
    #[inline(always)]
    pub(super) fn settle_endpoint(&mut self, n: usize, before: Waits) {
        let host = &self.hosts[self.all[n].index as usize];
        self.waits = self.waits.changed(before, Waits::of(host.unfinished, &host.liveness));
        self.last_progress = self.last_progress.max(host.liveness.last_progress);
        if host.liveness.exceeded.is_some() {
            self.exceeded = self.exceeded.into_iter().chain(host.liveness.exceeded).min();
        }
    }

    /// Foreground messages and tasks that have not finished.
    pub(super) fn unfinished(&self) -> u64 {
        self.waits.unfinished
    }

    /// Recent progress and planned starts of all nodes.
    pub(super) fn liveness(&self) -> Liveness {
        let Nodes { last_progress, exceeded, waits, .. } = *self;
        Liveness { last_progress, pending_starts: waits.pending_starts, exceeded }
    }

    /// The hosts by endpoint, the switches by node, and all tasks.
    #[expect(clippy::type_complexity, reason = "three lists")]
    pub(super) fn split(self) -> (Vec<(HostId, Host<P>)>, Vec<(NodeId, Switch<P>)>, Vec<Tasks>) {
        let of = |host: bool| self.all.iter().filter(move |node| node.is_host == host);
        let hosts: Vec<_> = of(true).flat_map(|node| node.gp..node.gp + node.ports).map(HostId).collect();
        let switches: Vec<_> = of(false).map(|node| node.id).collect();
        (
            hosts.into_iter().zip(self.hosts).collect(),
            switches.into_iter().zip(self.switches).collect(),
            self.tasks.into_iter().flatten().collect(),
        )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_its_ports_and_whole_words() {
        let node = Node {
            id: NodeId(3),
            index: 7,
            is_host: false,
            first_port: 10,
            ports: 65,
            gp: 100,
            mail_word: 0,
            first_word: 2,
            pauses: Vec::new(),
        };
        assert_eq!((node.range(), node.words(), node.port(64)), (10..75, 2..4, 74));
        assert_eq!(node.both().last(), Some((74, 164)));
        assert!(!node.is_endpoint());
    }

    #[test]
    fn what_waits_in_a_group_follows_what_waits_at_each_host() {
        let of = |unfinished, pending_starts| Waits { unfinished, pending_starts };
        let all = Waits::default().changed(Waits::default(), of(3, 1)).changed(Waits::default(), of(2, 2));
        assert_eq!(all, of(5, 3));
        assert_eq!(all, of(3, 1).and(of(2, 2)));
        assert_eq!(all.changed(of(3, 1), of(1, 0)), of(3, 2));
    }
}
