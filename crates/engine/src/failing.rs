//! Failures as both engines see them: the events of each node, and the losses on a link that is down.
//! [`model::failure`] has the rules.

use model::{Failures, LinkId, NodeId, Plan, PortIndex, Rate};

/// A failure or repair at one node. At one instant they come before all other events, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureEvent {
    /// The rate of a port changes; `row` is the start of the new rate's row in [`crate::setup::Setup`].
    Rate { port: PortIndex, row: u32 },
    /// A direction of the link at a port has gone down or come back; `whole` is true if both directions work now.
    Reset { port: PortIndex, whole: bool },
    /// Routes change; the number is an index into [`Failures::route_changes`].
    RouteChange(usize),
}

impl FailureEvent {
    /// The port of the event; `None` if it concerns no single port.
    pub(crate) fn port(self) -> Option<PortIndex> {
        match self {
            FailureEvent::Rate { port, .. } | FailureEvent::Reset { port, .. } => Some(port),
            FailureEvent::RouteChange(_) => None,
        }
    }
}

/// A stretch of time, `[from, until)` in ps, in which a link is down.
#[derive(Clone, Copy, Debug)]
struct Outage {
    from: u64,
    until: u64,
}

/// An event of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scheduled {
    node: NodeId,
    at: u64,
    event: FailureEvent,
}

/// All failures of a run.
#[derive(Debug, Default)]
pub(crate) struct Failing {
    /// Outages of every link that has any, by time; sorted by link.
    down: Vec<(LinkId, Vec<Outage>)>,
    /// Events of nodes except changes of routes; sorted.
    events: Vec<Scheduled>,
    /// Times of route changes.
    route_changes: Vec<u64>,
    /// Number of hosts, which is the number of the first switch.
    hosts: u32,
    /// Time at which the last link comes back, ps.
    pub(crate) last_repair: u64,
}

impl Failing {
    /// Collects the failures of a plan; `row` finds the row of a rate.
    pub(crate) fn new(plan: &Plan, mut row: impl FnMut(Rate) -> u32) -> Self {
        let (fabric, failures) = (&plan.fabric, &plan.failures);
        let mut failing = Failing {
            route_changes: failures.route_changes().iter().map(|change| change.at.ps()).collect(),
            hosts: fabric.servers() as u32,
            last_repair: failures.last_repair().ps(),
            ..Failing::default()
        };
        for of_link in failures.changes().chunk_by(|a, b| a.link == b.link) {
            let id = of_link[0].link;
            let link = &fabric.links()[id.index()];
            let mut down: Vec<Outage> = Vec::new();
            let mut rate = link.rate;
            for change in of_link {
                let at = change.at.ps();
                if let Some(open) = down.last_mut().filter(|outage| outage.until == u64::MAX) {
                    open.until = at;
                }
                match change.rate {
                    None => down.push(Outage { from: at, until: u64::MAX }),
                    Some(new) if new != rate => {
                        rate = new;
                        let event = FailureEvent::Rate { port: link.port, row: row(new) };
                        failing.events.push(Scheduled { node: link.from, at, event });
                    }
                    Some(_) => {}
                }
            }
            if !down.is_empty() {
                failing.down.push((id, down));
            }
        }
        failing.find_resets(plan);
        failing.events.sort();
        failing
    }

    fn find_resets(&mut self, plan: &Plan) {
        let fabric = &plan.fabric;
        let mut resets = Vec::new();
        for (id, down) in &self.down {
            let link = &fabric.links()[id.index()];
            let reverse = fabric.reverse(*id);
            for at in down.iter().flat_map(|outage| [outage.from, outage.until]).filter(|&at| at != u64::MAX)
            {
                let whole = [*id, reverse].iter().all(|id| !self.is_down(id.index(), at));
                for (node, port) in [(link.from, link.port), (link.to, link.peer_port)] {
                    resets.push(Scheduled { node, at, event: FailureEvent::Reset { port, whole } });
                }
            }
        }
        resets.sort();
        resets.dedup(); // both directions may fail at once
        self.events.extend(resets);
    }

    fn outages(&self, link: usize) -> &[Outage] {
        let at = self.down.binary_search_by_key(&link, |(id, _)| id.index());
        at.map_or(&[], |at| &self.down[at].1)
    }

    fn is_down(&self, link: usize, at: u64) -> bool {
        self.outages(link).iter().any(|outage| outage.from <= at && at < outage.until)
    }

    /// True if the link is ever down.
    pub(crate) fn concerns(&self, link: LinkId) -> bool {
        !self.outages(link.index()).is_empty()
    }

    /// True if the link is down at any time between the start of a packet and its arrival.
    #[inline(never)]
    pub(crate) fn loses(&self, link: usize, start: u64, arrival: u64) -> bool {
        self.outages(link).iter().any(|outage| outage.from < arrival && start < outage.until)
    }

    /// True if a pause frame made at `start` that would arrive at `arrival` is lost on one of the two directions of
    /// its link. Pauses end when a link goes down, so a frame that would arrive at that instant is lost, too.
    #[inline(never)]
    pub(crate) fn loses_pause(&self, directions: [usize; 2], start: u64, arrival: u64) -> bool {
        let lost = |outage: &Outage| outage.from <= arrival && start < outage.until;
        directions.iter().any(|&link| self.outages(link).iter().any(lost))
    }

    /// True if nothing ever fails.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.route_changes.is_empty()
    }

    /// Events of a node in `[from, until)`, in order of time.
    pub(crate) fn events(
        &self,
        node: NodeId,
        from: u64,
        until: u64,
    ) -> impl Iterator<Item = (u64, FailureEvent)> {
        let place = |at: u64| self.events.partition_point(|s| (s.node, s.at) < (node, at));
        let mut own = self.events[place(from)..place(until)].iter().map(|s| (s.at, s.event));
        let first =
            |at: u64| if node.0 < self.hosts { 0 } else { self.route_changes.partition_point(|&t| t < at) };
        let mut changes =
            (first(from)..first(until)).map(|i| (self.route_changes[i], FailureEvent::RouteChange(i)));
        let (mut next, mut next_change) = (own.next(), changes.next());
        std::iter::from_fn(move || match (next, next_change) {
            (Some(event), change) if change.is_none_or(|change| event.0 <= change.0) => {
                next = own.next();
                Some(event)
            }
            (_, change) => {
                next_change = changes.next();
                change
            }
        })
    }

    /// Time of a node's first event from `from` on; [`u64::MAX`] if there is none.
    #[inline]
    pub(crate) fn next(&self, node: NodeId, from: u64) -> u64 {
        if self.is_empty() {
            return u64::MAX;
        }
        self.events(node, from, u64::MAX).next().map_or(u64::MAX, |(at, _)| at)
    }
}

/// The fastest rate that a link ever has.
pub(crate) fn fastest(failures: &Failures, link: LinkId, usual: Rate) -> Rate {
    failures.of(link).iter().filter_map(|change| change.rate).fold(usual, Rate::max)
}
