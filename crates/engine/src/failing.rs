//! Failures as both engines see them: the events of each node, and the losses on a link that is down or gray.
//! [`model::failure`] has the rules.

use crate::outcome::LossCause;
use model::{Failures, LinkId, NodeId, Plan, PortIndex, Rate, Time};

/// A failure or repair at one node. At one instant they come before all other events, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureEvent {
    /// The rate of a port changes; `row` is the start of the new rate's row in [`crate::setup::Setup`].
    Rate { port: PortIndex, row: u32 },
    /// A direction of the link at a port has gone down or come back; `whole` is true if both directions work now.
    Reset { port: PortIndex, whole: bool },
    /// A storm pauses all priorities of a port, or it has ended.
    Storm { port: PortIndex, on: bool },
    /// Routes change; the number is that of [`Failures::change_at_switch`].
    RouteChange(usize),
}

impl FailureEvent {
    /// The port of the event; `None` if it concerns no single port.
    pub(crate) fn port(self) -> Option<PortIndex> {
        match self {
            FailureEvent::Rate { port, .. }
            | FailureEvent::Reset { port, .. }
            | FailureEvent::Storm { port, .. } => Some(port),
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

/// Pause frames of a storm that arrive while no direction of their link goes down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storm {
    /// Number of the link that they pause.
    pub(crate) link: usize,
    /// Arrival of the first frame, and the time until the next one, ps.
    first: u64,
    step: u64,
    /// Number of frames of each priority.
    frames: u64,
}

impl Storm {
    /// Number of frames of each priority that have arrived by `end`, ps.
    pub(crate) fn frames_by(&self, end: u64) -> u64 {
        end.checked_sub(self.first).map_or(0, |time| (1 + time / self.step).min(self.frames))
    }
}

/// Length of the longest pause in bytes at the rate of the paused link: 65,535 quanta of 512 bits (IEEE 802.3, annex 31B.2).
const LONGEST_PAUSE: u64 = 65_535 * 64;
/// A storm sends so many frames in the time of the longest pause. Our choice: no standard says when to renew one.
const RENEWALS: u64 = 2;

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
    /// Events of nodes except changes of all routes at once; sorted.
    events: Vec<Scheduled>,
    /// Times of the changes of all routes at once.
    route_changes: Vec<u64>,
    /// Storms of pauses, by link and time.
    pub(crate) storms: Vec<Storm>,
    /// Number of hosts, which is the number of the first switch.
    hosts: u32,
    /// Times at which links go down or come back, in order.
    turns: Vec<u64>,
    /// Time at which the last link comes back or the last storm ends, ps.
    pub(crate) last_repair: u64,
}

/// How a link lost a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkLoss {
    /// By its own chance of loss, or because the plan lists the packet.
    Chance,
    /// By the chance of loss that a failure gives it. `since`: the time from which the chance applies.
    Gray { since: u64 },
    /// The packet touched a pair of codewords that cannot be repaired.
    Codeword,
    /// The link was in a burst.
    Burst,
    /// The link was down. `since`: the start of the outage; `into`: the packet started on a link that was down already.
    Outage { since: u64, into: bool },
}

impl LinkLoss {
    pub(crate) fn cause(self) -> LossCause {
        match self {
            LinkLoss::Chance | LinkLoss::Gray { .. } => LossCause::Chance,
            LinkLoss::Codeword => LossCause::Codeword,
            LinkLoss::Burst => LossCause::Burst,
            LinkLoss::Outage { into: false, .. } => LossCause::Outage,
            LinkLoss::Outage { into: true, .. } => LossCause::BlackHole,
        }
    }
}

impl Failing {
    /// Collects the failures of a plan; `row` finds the row of a rate.
    pub(crate) fn new(plan: &Plan, mut row: impl FnMut(Rate) -> u32) -> Self {
        let (fabric, failures) = (&plan.fabric, &plan.failures);
        let at_once = if failures.is_by_switch() { &[] } else { failures.route_changes() };
        let mut failing = Failing {
            route_changes: at_once.iter().map(|change| change.at.ps()).collect(),
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
        failing.find_storms(plan);
        for (i, (node, change)) in failures.of_switches().iter().enumerate() {
            let (node, at) = (*node, change.at.ps());
            failing.events.push(Scheduled { node, at, event: FailureEvent::RouteChange(i) });
        }
        failing.events.sort();
        let ends = |(_, down): &(LinkId, Vec<Outage>)| {
            let ends = down.iter().flat_map(|outage| [outage.from, outage.until]);
            ends.filter(|&at| at != u64::MAX).collect::<Vec<_>>()
        };
        failing.turns = failing.down.iter().flat_map(ends).collect();
        failing.turns.sort();
        failing.turns.dedup();
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

    /// Finds when storms pause ports of switches. A pause lasts for the longest time that a frame can ask for, unless another frame
    /// renews it or the link goes down.
    fn find_storms(&mut self, plan: &Plan) {
        let fabric = &plan.fabric;
        for of_link in plan.failures.storms().chunk_by(|a, b| a.0 == b.0) {
            let id = of_link[0].0;
            let (link, reverse) = (&fabric.links()[id.index()], fabric.reverse(id));
            let lasts = fabric.links()[reverse.index()].rate.time_for(LONGEST_PAUSE).ps();
            let step = lasts / RENEWALS;
            let frame = match plan.wire.pfc {
                0 => Time::ZERO,
                frame => plan.wire.transmission(link.rate, frame),
            };
            let way = link.delay.ps() + frame.ps();
            let mut cuts: Vec<Outage> =
                [id, reverse].iter().flat_map(|id| self.outages(id.index())).copied().collect();
            cuts.sort_by_key(|cut| cut.from);
            let mut paused: Vec<(u64, u64)> = Vec::new();
            for &(_, at, until) in of_link {
                let mut from = at.ps();
                let none = Outage { from: u64::MAX, until: u64::MAX };
                for cut in cuts.iter().copied().chain([none]) {
                    // Frames that would arrive from this time on are lost.
                    let end = until.ps().saturating_add(way).min(cut.from);
                    let first = from.saturating_add(way);
                    if first < end {
                        let frames = (end - 1 - first) / step + 1;
                        self.storms.push(Storm { link: reverse.index(), first, step, frames });
                        let last = first.saturating_add((frames - 1).saturating_mul(step));
                        let over =
                            if end == u64::MAX { end } else { last.saturating_add(lasts).min(cut.from) };
                        match paused.last_mut() {
                            Some(before) if first <= before.1 => before.1 = before.1.max(over),
                            _ => paused.push((first, over)),
                        }
                    }
                    from = from.max(cut.until);
                    if from >= until.ps() {
                        break;
                    }
                }
            }
            for (first, over) in paused {
                for (at, on) in [(first, true), (over, false)].into_iter().filter(|(at, _)| *at != u64::MAX) {
                    let event = FailureEvent::Storm { port: link.peer_port, on };
                    self.events.push(Scheduled { node: link.to, at, event });
                    self.last_repair = self.last_repair.max(at);
                }
            }
        }
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

    /// The first outage of the link between the start of a packet and its arrival.
    #[inline(never)]
    pub(crate) fn loses(&self, link: usize, start: u64, arrival: u64) -> Option<LinkLoss> {
        let outage =
            self.outages(link).iter().find(|outage| outage.from < arrival && start < outage.until)?;
        Some(LinkLoss::Outage { since: outage.from, into: outage.from <= start })
    }

    /// Time of the last change of a link's state until `at`; 0 if there is none.
    pub(crate) fn last_turn(&self, at: u64) -> u64 {
        let until = self.turns.partition_point(|turn| *turn <= at);
        self.turns[..until].last().copied().unwrap_or(0)
    }

    /// True if a pause frame made at `start` that would arrive at `arrival` is lost on one of the two directions of
    /// its link. Pauses end when a link goes down, so a frame that would arrive at that instant is lost, too.
    #[inline(never)]
    pub(crate) fn loses_pause(&self, directions: [usize; 2], start: u64, arrival: u64) -> bool {
        let lost = |outage: &Outage| outage.from <= arrival && start < outage.until;
        directions.iter().any(|&link| self.outages(link).iter().any(lost))
    }

    /// True if no node has an event.
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

#[cfg(test)]
mod tests {
    use super::*;
    use FailureEvent::{Rate as NewRate, Reset, RouteChange};
    use scenario::{Checked, Source, check};

    const US: u64 = 1_000_000;
    /// Numbers of the links' directions and of the nodes.
    const A_S: usize = 0;
    const B_S: usize = 1;
    const S_A: usize = 2;
    const S_B: usize = 3;
    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);
    const S: NodeId = NodeId(2);

    /// Hosts `a` and `b` at a switch. The link of `a` is down from 10 us to 20 us, one direction of that of `b` from 30 us to
    /// 40 us. From 50 us to 60 us the link of `b` has a quarter of its rate.
    fn checked(more: &str) -> Checked {
        let text = format!(
            "[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\nlinks = [[\"a\", \"s\"], [\"s\", \"b\"]]\n\
             [routing]\ndetection = \"1us\"\n{more}\
             [[workload]]\nflows = {{ list = [{{ from = \"a\", to = \"b\", bytes = \"1kB\" }}] }}\n"
        );
        check(&Source::new("story.toml", text), &[]).unwrap_or_else(|e| panic!("{e}"))
    }

    const FAULTS: &str = "[[failure]]\nlinks = [[\"a\", \"s\"]]\nat = \"10us\"\nuntil = \"20us\"\n\
         [[failure]]\nlinks = [[\"s\", \"b\"]]\none-way = true\nat = \"30us\"\nuntil = \"40us\"\n\
         [[failure]]\nlinks = [[\"s\", \"b\"]]\nrate = 0.25\nat = \"50us\"\nuntil = \"60us\"\n";

    /// The row of a rate is the rate in Gb/s here.
    fn failing(checked: &Checked) -> Failing {
        Failing::new(&checked.plan, |rate| (rate.bps() / 1_000_000_000) as u32)
    }

    fn all(failing: &Failing, node: NodeId) -> Vec<(u64, FailureEvent)> {
        failing.events(node, 0, u64::MAX).map(|(at, event)| (at / US, event)).collect()
    }

    #[test]
    fn both_ends_of_a_link_learn_of_it_and_switches_change_routes_after_detection() {
        let failing = failing(&checked(FAULTS));
        let reset = |port, whole| Reset { port: PortIndex(port), whole };
        let rate = |port, row| NewRate { port: PortIndex(port), row };
        assert_eq!(all(&failing, A), [(10, reset(0, false)), (20, reset(0, true))]);
        let at_b = [(30, reset(0, false)), (40, reset(0, true)), (50, rate(0, 25)), (60, rate(0, 100))];
        assert_eq!(all(&failing, B), at_b);
        let at_s = [
            (10, reset(0, false)),
            (11, RouteChange(0)),
            (20, reset(0, true)),
            (21, RouteChange(1)),
            (30, reset(1, false)),
            (31, RouteChange(2)),
            (40, reset(1, true)),
            (41, RouteChange(3)),
            (50, rate(1, 25)),
            (60, rate(1, 100)),
        ];
        assert_eq!(all(&failing, S), at_s);
        assert_eq!(failing.last_repair, 40 * US);
        let ports = at_s.map(|(_, event)| event.port().map(|port| port.0));
        assert_eq!(ports[..4], [Some(0), None, Some(0), None]);
        assert_eq!(ports[8], Some(1));
    }

    #[test]
    fn a_window_has_the_events_from_its_start_up_to_its_end() {
        let failing = failing(&checked(FAULTS));
        let times = |node, from, until| -> Vec<u64> {
            failing.events(node, from, until).map(|(at, _)| at / US).collect()
        };
        assert_eq!(times(S, 10 * US, 20 * US), [10, 11]);
        assert_eq!(times(S, 10 * US + 1, 20 * US + 1), [11, 20]);
        assert!(times(S, 11 * US, 11 * US).is_empty());
        assert!(times(S, 11 * US + 1, 20 * US).is_empty());
        assert_eq!(times(A, 0, 21 * US), [10, 20]);
        assert_eq!(failing.next(S, 10 * US), 10 * US);
        assert_eq!(failing.next(S, 10 * US + 1), 11 * US);
        assert_eq!(failing.next(A, 10 * US + 1), 20 * US);
        assert_eq!(failing.next(A, 20 * US + 1), u64::MAX);
    }

    #[test]
    fn at_one_instant_links_change_before_routes() {
        let failing = failing(&checked(&FAULTS.replace("30us", "11us")));
        let reset = |port, whole| Reset { port: PortIndex(port), whole };
        assert_eq!(
            all(&failing, S)[..3],
            [(10, reset(0, false)), (11, reset(1, false)), (11, RouteChange(0))]
        );
    }

    #[test]
    fn a_packet_is_lost_if_its_link_is_down_between_its_start_and_its_arrival() {
        let failing = failing(&checked(FAULTS));
        let loses = |start, arrival| failing.loses(A_S, start, arrival).is_some();
        assert!(!loses(9 * US, 10 * US) && loses(9 * US, 10 * US + 1));
        assert!(loses(20 * US - 1, 21 * US) && !loses(20 * US, 21 * US));
        assert!(loses(12 * US, 13 * US) && loses(9 * US, 21 * US));
        let outage = |from, into| Some(LinkLoss::Outage { since: from * US, into });
        assert_eq!(failing.loses(S_A, 12 * US, 13 * US), outage(10, true), "both directions are down");
        assert_eq!(failing.loses(S_A, 9 * US, 13 * US), outage(10, false), "it was on the way");
        assert_eq!(failing.loses(S_B, 32 * US, 33 * US), outage(30, true));
        assert_eq!(failing.loses(B_S, 32 * US, 33 * US), None);
        assert_eq!([9, 10, 15, 20, 99].map(|at| failing.last_turn(at * US) / US), [0, 10, 10, 20, 40]);
        let concerned = [A_S, B_S, S_A, S_B].map(|link| failing.concerns(LinkId(link as u32)));
        assert_eq!(concerned, [true, false, true, true]);
    }

    #[test]
    fn a_pause_is_lost_on_either_direction_also_at_the_instant_of_the_failure() {
        let failing = failing(&checked(FAULTS));
        for directions in [[S_B, B_S], [B_S, S_B]] {
            let loses = |start, arrival| failing.loses_pause(directions, start, arrival);
            assert!(!loses(29 * US, 30 * US - 1) && loses(29 * US, 30 * US));
            assert!(loses(40 * US - 1, 41 * US) && !loses(40 * US, 41 * US));
        }
    }

    #[test]
    fn without_failures_nothing_ever_happens() {
        let calm = failing(&checked(""));
        assert!(calm.is_empty() && all(&calm, S).is_empty());
        assert_eq!((calm.next(S, 0), calm.last_repair), (u64::MAX, 0));
        let slow = "[[failure]]\nlinks = [[\"s\", \"b\"]]\nrate = 0.5\nat = \"5us\"\n";
        assert!(!failing(&checked(slow)).is_empty(), "a new rate is a failure, too");
        let gone = "[[failure]]\nlinks = [[\"a\", \"s\"]]\nat = \"5us\"\n";
        let gone = failing(&checked(gone));
        assert_eq!((all(&gone, A).len(), gone.last_repair), (1, 0), "the link never comes back");
        assert!(gone.loses(A_S, u64::MAX - 2, u64::MAX - 1).is_some());
    }

    #[test]
    fn the_fastest_rate_counts_the_usual_one_and_all_changes() {
        let checked = checked(FAULTS);
        let fastest =
            |link: usize, usual| fastest(&checked.plan.failures, LinkId(link as u32), Rate::from_gbps(usual));
        assert_eq!(fastest(S_B, 10), Rate::from_gbps(100));
        assert_eq!(fastest(S_B, 400), Rate::from_gbps(400));
        assert_eq!(fastest(A_S, 10), Rate::from_gbps(100), "its repair is a change to the usual rate");
    }
}
