//! Ideal FCT: the completion time of a flow alone on the fabric, to the picosecond. A slowdown is relative to it.
//!
//! Every packet is stored and forwarded at every hop. A hop has one or more equal-cost links, and a packet takes the link
//! that is free first. The bottleneck is therefore the source's NIC, the destination's NIC or the sum of the minimal
//! paths, whichever is slowest, and the value is the same for every scheme. Every packet is acknowledged. The flow ends
//! when the ACK of its last byte has come back, over one link of every hop.

use model::fabric::Link;
use model::plan::{Message, Whole};
use model::{Fabric, HostId, NodeId, Pace, Plan, PortChoice, PortSharing, Rate, Time, Wire};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Number of packets simulated if only the last packets of a flow matter.
const TAIL: u64 = 64;
/// Most packets simulated one by one; the time of further packets is extrapolated.
const MOST: u64 = 1 << 20;

/// Time from the start of a flow to the arrival of the ACK of its last byte; [`Time::NEVER`] if there is no path. For
/// many flows use [`Ideals`].
pub fn ideal_fct(plan: &Plan, from: HostId, to: HostId, bytes: u64) -> Time {
    match Walks::new(&plan.fabric).path(from, to) {
        Some(path) => Shape::new(&plan.wire, path).alone(&plan.wire, bytes),
        None => Time::NEVER,
    }
}

/// The ideal FCT of every message, and then of [`Plan::wholes`].
pub fn of_flows(plan: &Plan) -> Vec<Time> {
    let mut ideals = Ideals::new(plan);
    let of = |m: &Message| (m.qp, m.bytes);
    let whole = |whole: &Whole| {
        let subflows = || whole.subflows.iter().map(|subflow| &plan.messages[subflow.index()]);
        (plan.messages[whole.subflows[0].index()].qp, subflows().map(|subflow| subflow.bytes).sum())
    };
    let flows = plan.messages.iter().map(of).chain(plan.wholes.iter().map(whole));
    let mut times: Vec<Time> = flows
        .map(|(qp, bytes)| {
            let qp = &plan.qps[qp.index()];
            ideals.fct(qp.from, qp.to, bytes)
        })
        .collect();
    for (whole, time) in plan.wholes.iter().zip(&mut times[plan.messages.len()..]) {
        let Some(request) = whole.request.map(|request| &plan.messages[request.index()]) else { continue };
        // A READ begins with its request, and ends with the last byte and not with its ACK.
        let (qp, wire) = (&plan.qps[request.qp.index()], &plan.wire);
        let request = crossing(plan, qp.from, qp.to, wire.data_frame(request.bytes as u32));
        let ack = crossing(plan, qp.from, qp.to, wire.ack);
        *time = Time(time.ps().saturating_add(request.ps()).saturating_sub(ack.ps()));
    }
    times
}

/// Least time from the start of a frame of `frame` bytes at one host to its arrival at another, over a shortest path;
/// [`Time::NEVER`] if there is no path.
pub fn crossing(plan: &Plan, from: HostId, to: HostId, frame: u32) -> Time {
    let Some(path) = Walks::new(&plan.fabric).path(from, to) else { return Time::NEVER };
    let least =
        |lanes: &Hop| lanes.iter().map(|&(rate, delay)| plan.wire.transmission(rate, frame) + delay).min();
    path.iter().filter_map(|lanes| least(lanes)).fold(Time::ZERO, |sum, hop| sum + hop)
}

/// Bandwidth-delay product in full packets, rounded up: the packets that a queue pair sends at line rate on an idle
/// fabric until the first of them is acknowledged.
pub fn bdp(ideals: &mut Ideals<'_>, from: HostId, to: HostId) -> u32 {
    let wire = &ideals.plan.wire;
    let rate = ideals.plan.line(from);
    let packet = wire.transmission(rate, wire.max_frame());
    let packets = ideals.base_rtt(from, to).ps().div_ceil(packet.ps().max(1));
    packets.clamp(1, 1 << 22) as u32
}

/// Ideal FCTs of many flows; flows of equal size over equal paths share one computation.
#[derive(Debug)]
pub struct Ideals<'p> {
    plan: &'p Plan,
    walks: Walks<'p>,
    /// Kinds of paths.
    shapes: Vec<Shape>,
    /// Index of the kind of path, by the two switches and the links of the two hosts; `None` if there is no path.
    shape_of: BTreeMap<(NodeId, NodeId, [u64; 4]), Option<usize>>,
    /// Computed times, by kind of path and size of the flow in bytes.
    known: BTreeMap<(usize, u64), Time>,
    /// Computed arrivals, by kind of path, size of the flow in bytes and time between two packets of its NIC, ps.
    arrivals: BTreeMap<(usize, u64, u64), Time>,
    /// True if a flow takes the slowest link of every hop.
    slowest: bool,
}

impl<'p> Ideals<'p> {
    /// Ideal FCTs for the flows of a plan.
    pub fn new(plan: &'p Plan) -> Self {
        let walks = Walks::new(&plan.fabric);
        let (shape_of, known, arrivals) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ideals { plan, walks, shapes: Vec::new(), shape_of, known, arrivals, slowest: false }
    }

    /// FCTs of the flows of a plan if each takes the slowest of its equal-cost paths, on the idle fabric.
    pub(crate) fn on_slowest_paths(plan: &'p Plan) -> Self {
        Ideals { slowest: true, ..Self::new(plan) }
    }

    /// Time from the start of a flow to the arrival of the ACK of its last byte; [`Time::NEVER`] if there is no path.
    pub fn fct(&mut self, from: HostId, to: HostId, bytes: u64) -> Time {
        let Some(shape) = self.shape(from, to) else { return Time::NEVER };
        let (wire, path) = (&self.plan.wire, &self.shapes[shape]);
        // A large flow usually equals a smaller one plus a number of full packets at line rate.
        let (tail, more) = path.tail(wire, bytes, 0);
        let time = *self.known.entry((shape, tail)).or_insert_with(|| path.alone(wire, tail));
        Time(time.ps().saturating_add(more))
    }

    /// Time from the start of a flow to the arrival of its last byte; [`Time::NEVER`] if there is no path. With a `pace`, its NIC sends at
    /// most so much, preamble and gap included.
    pub fn arrival(&mut self, from: HostId, to: HostId, bytes: u64, pace: Option<Rate>) -> Time {
        let Some(shape) = self.shape(from, to) else { return Time::NEVER };
        let (wire, path) = (&self.plan.wire, &self.shapes[shape]);
        let on_wire = u64::from(wire.max_frame() + wire.gap);
        let gap = pace.map_or(0, |rate| Pace::from_bps(rate.bps() as f64).gap(on_wire).ps());
        let (tail, more) = path.tail(wire, bytes, gap);
        let time = *self.arrivals.entry((shape, tail, gap)).or_insert_with(|| {
            let over = |path: &Vec<Rc<Hop>>| {
                let flow = crossed(wire, path, tail, wire.packets(tail), gap);
                flow.last().map_or(0, |(at, _)| *at)
            };
            Time(path.narrow.iter().chain([&path.path]).map(over).min().unwrap_or(0))
        });
        Time(time.ps().saturating_add(more))
    }

    /// Base round-trip time: from the start of a full packet to the arrival of its ACK on an idle fabric.
    pub fn base_rtt(&mut self, from: HostId, to: HostId) -> Time {
        self.fct(from, to, u64::from(self.plan.wire.payload))
    }

    /// Longest base round-trip time of any two hosts; zero if no two hosts reach each other.
    pub fn longest_rtt(&mut self) -> Time {
        // Hosts with equal links to the same switch have equal times. Two of them are enough, as a pair may be in one rack.
        let fabric = &self.plan.fabric;
        let mut alike: BTreeMap<(NodeId, u64, u64), Vec<HostId>> = BTreeMap::new();
        for host in (0..fabric.hosts()).map(|h| HostId(h as u32)) {
            let link = fabric.uplink(host);
            let kind = alike.entry((fabric.attachment(host), link.rate.bps(), link.delay.ps())).or_default();
            if kind.len() < 2 {
                kind.push(host);
            }
        }
        let hosts: Vec<HostId> = alike.into_values().flatten().collect();
        let pairs = hosts.iter().flat_map(|&a| hosts.iter().map(move |&b| (a, b)));
        let reachable = pairs.filter(|&(a, b)| a != b && fabric.reaches(a, b)).collect::<Vec<_>>();
        reachable.into_iter().map(|(a, b)| self.base_rtt(a, b)).max().unwrap_or(Time::ZERO)
    }

    /// Number of switches on a shortest path; `None` if there is no path.
    pub fn switches(&mut self, from: HostId, to: HostId) -> Option<usize> {
        let shape = self.shape(from, to)?;
        Some(self.shapes[shape].path.len() - 1)
    }

    /// The path between two hosts, over all ports of their NICs if queue pairs spread over them.
    fn path(&mut self, from: HostId, to: HostId) -> Option<Vec<Rc<Hop>>> {
        let Some(PortSharing { ports, choice: PortChoice::Spread }) = self.plan.sharing else {
            return self.walks.path(from, to);
        };
        let mut all: Vec<Vec<(Rate, Time)>> = Vec::new();
        for port in 0..u32::from(ports) {
            let path = self.walks.path(HostId(from.0 + port), HostId(to.0 + port))?;
            all.resize(path.len().max(all.len()), Vec::new());
            all.iter_mut().zip(path).for_each(|(hop, lanes)| hop.extend_from_slice(&lanes));
        }
        Some(all.into_iter().map(Rc::from).collect())
    }

    fn shape(&mut self, from: HostId, to: HostId) -> Option<usize> {
        let spread = self.plan.sharing.filter(|sharing| sharing.choice == PortChoice::Spread);
        let [from, to] = [from, to].map(|host| spread.map_or(host, |sharing| sharing.home(host)));
        let fabric = &self.plan.fabric;
        let link = |h: HostId| fabric.uplink(h);
        let (a, b) = (link(from), link(to));
        // Paths between the same two switches differ only in the links of the hosts.
        let own = [a.rate.bps(), a.delay.ps(), b.rate.bps(), b.delay.ps()];
        let key = (fabric.attachment(from), fabric.attachment(to), own);
        if let Some(known) = self.shape_of.get(&key) {
            return *known;
        }
        let shape = self.path(from, to).map(|mut path| {
            if self.slowest {
                let full = self.plan.wire.max_frame();
                let time = |lane: &&(Rate, Time)| self.plan.wire.transmission(lane.0, full) + lane.1;
                path = path
                    .iter()
                    .map(|lanes| lanes.iter().max_by_key(time).copied().into_iter().collect())
                    .collect();
            }
            let known = self.shapes.iter().position(|known| known.path == path);
            known.unwrap_or_else(|| {
                self.shapes.push(Shape::new(&self.plan.wire, path));
                self.shapes.len() - 1
            })
        });
        self.shape_of.insert(key, shape);
        shape
    }
}

/// Rate and delay of the equal-cost links of a hop.
type Hop = [(Rate, Time)];

/// The hop from a set of switches towards a rack, and the number of the next set. `None` if no path leads there.
type Step = Option<(Rc<Hop>, usize)>;

/// A kind of path.
#[derive(Debug)]
struct Shape {
    path: Vec<Rc<Hop>>,
    /// The path over the fastest link of each hop; `None` if there is only one path.
    narrow: Option<Vec<Rc<Hop>>>,
    /// Time of a full frame on the first link.
    first: Time,
    /// True if every hop after the first has as many links, all at least as fast, and the links of each hop are alike. Full
    /// packets then never queue, and the last packets take the same time however many packets came before them.
    open: bool,
}

impl Shape {
    fn new(wire: &Wire, path: Vec<Rc<Hop>>) -> Self {
        let full = wire.max_frame();
        let first = wire.transmission(path[0][0].0, full);
        let even = path.iter().all(|lanes| lanes.iter().all(|lane| *lane == lanes[0]));
        let fast = path.iter().all(|lanes| {
            lanes.len() >= path[0].len()
                && wire.transmission(lanes[0].0, full).max(wire.transmission(lanes[0].0, wire.ack)) <= first
        });
        let choice = path.iter().any(|lanes| lanes.len() > 1);
        let time = |lane: &&(Rate, Time)| wire.transmission(lane.0, full) + lane.1;
        let fastest = |lanes: &Rc<Hop>| lanes.iter().min_by_key(time).copied().into_iter().collect();
        let narrow = choice.then(|| path.iter().map(fastest).collect());
        Shape { path, narrow, first, open: even && fast }
    }

    /// The size in bytes of a smaller flow that ends in the same way, and the difference of the two times, ps. The flow
    /// itself and 0 if there is no such flow. `gap` is the least time between two packets, ps.
    fn tail(&self, wire: &Wire, bytes: u64, gap: u64) -> (u64, u64) {
        // The first links send so many packets at a time.
        let side_by_side = self.path[0].len() as u64;
        let side_by_side = if gap > self.first.ps() { 1 } else { side_by_side };
        let rounds = if self.open { wire.packets(bytes).saturating_sub(TAIL) / side_by_side } else { 0 };
        let skipped = rounds * side_by_side;
        (bytes - skipped * u64::from(wire.payload), rounds.saturating_mul(self.first.ps().max(gap)))
    }

    fn alone(&self, wire: &Wire, bytes: u64) -> Time {
        let (bytes, more) = self.tail(wire, bytes, 0);
        let packets = wire.packets(bytes);
        // Over several paths a short last packet may overtake, and delay, the one before it at a slow link; over one path it
        // may not.
        let simulate = |packets| {
            let over = |path: &Vec<Rc<Hop>>| simulate(wire, path, bytes, packets);
            self.narrow.iter().chain([&self.path]).map(over).min().unwrap_or(0)
        };
        if more > 0 {
            return Time(simulate(packets).saturating_add(more));
        }
        if packets <= MOST {
            return Time(simulate(packets));
        }
        let (half, whole) = (simulate(MOST / 2), simulate(MOST));
        let rest = u128::from(packets - MOST) * u128::from(whole - half) / u128::from(MOST / 2);
        Time(whole.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX)))
    }
}

/// Shortest paths, hop by hop. All packets between two hosts are at the same distance from their destination after the
/// same number of hops, so they have reached one of a set of switches. Few such sets exist, and few ways from one to
/// the next: a fat tree has the aggregation switches of each pod and the core.
#[derive(Debug)]
struct Walks<'p> {
    fabric: &'p Fabric,
    /// All hops. Equal hops share one list, so that paths compare quickly.
    hops: BTreeSet<Rc<Hop>>,
    /// Sets of switches, in ascending order, and their numbers.
    sets: Vec<Rc<[NodeId]>>,
    set_of: BTreeMap<Rc<[NodeId]>, usize>,
    /// Steps by set and rack.
    by_rack: BTreeMap<(usize, usize), Step>,
    /// Steps by set and the number of each switch's route.
    by_routes: BTreeMap<(usize, Vec<u32>), Step>,
}

impl<'p> Walks<'p> {
    fn new(fabric: &'p Fabric) -> Self {
        Walks {
            fabric,
            hops: BTreeSet::new(),
            sets: Vec::new(),
            set_of: BTreeMap::new(),
            by_rack: BTreeMap::new(),
            by_routes: BTreeMap::new(),
        }
    }

    /// All hops from one host to another; `None` if there is no path.
    fn path(&mut self, from: HostId, to: HostId) -> Option<Vec<Rc<Hop>>> {
        let fabric = self.fabric;
        if from == to || !fabric.reaches(from, to) {
            return None;
        }
        let up = fabric.uplink(from);
        let mut path = vec![self.hop(std::slice::from_ref(up))];
        if fabric.is_host(up.to) {
            return Some(path);
        }
        let end = fabric.attachment(to);
        let mut at = self.number(vec![up.to]);
        while !self.sets[at].contains(&end) {
            let (hop, next) = self.step(at, fabric.rack(to))?;
            path.push(hop);
            at = next;
        }
        let down = fabric.route(end, to).first()?;
        path.push(self.hop(std::slice::from_ref(&fabric.ports(end)[down.index()])));
        Some(path)
    }

    /// The hop over these links.
    fn hop(&mut self, links: &[Link]) -> Rc<Hop> {
        let hop: Rc<Hop> = links.iter().map(|link| (link.rate, link.delay)).collect();
        match self.hops.get(&hop) {
            Some(known) => Rc::clone(known),
            None => {
                self.hops.insert(Rc::clone(&hop));
                hop
            }
        }
    }

    fn step(&mut self, set: usize, rack: usize) -> Step {
        if let Some(known) = self.by_rack.get(&(set, rack)) {
            return known.clone();
        }
        let (fabric, nodes) = (self.fabric, Rc::clone(&self.sets[set]));
        let routes: Vec<u32> = nodes.iter().map(|&node| fabric.route_number(node, rack)).collect();
        let step = match self.by_routes.get(&(set, routes.clone())) {
            Some(known) => known.clone(),
            None => {
                let of = |&node| {
                    fabric.route_to_rack(node, rack).iter().map(move |port| fabric.ports(node)[port.index()])
                };
                let links: Vec<Link> = nodes.iter().flat_map(of).collect();
                let next = self.number(links.iter().map(|link| link.to).collect());
                let step = (!links.is_empty()).then(|| (self.hop(&links), next));
                self.by_routes.insert((set, routes), step.clone());
                step
            }
        };
        self.by_rack.insert((set, rack), step.clone());
        step
    }

    /// The number of a set of switches.
    fn number(&mut self, mut nodes: Vec<NodeId>) -> usize {
        nodes.sort_unstable();
        nodes.dedup();
        let nodes: Rc<[NodeId]> = nodes.into();
        *self.set_of.entry(Rc::clone(&nodes)).or_insert_with(|| {
            self.sets.push(nodes);
            self.sets.len() - 1
        })
    }
}

/// Sends the last `packets` packets of a flow of `bytes` from time 0 on; returns the time, ps, at which the last ACK is
/// back.
fn simulate(wire: &Wire, path: &[Rc<Hop>], bytes: u64, packets: u64) -> u64 {
    let mut flow = crossed(wire, path, bytes, packets, 0);
    for (_, frame) in &mut flow {
        *frame = wire.ack;
    }
    for lanes in path.iter().rev() {
        // All ACKs take one link, the one over which the last of them arrives first.
        let mut kinds = lanes.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        let over = |lane: &(Rate, Time)| {
            let mut acks = flow.clone();
            pass(wire, std::slice::from_ref(lane), &mut acks);
            acks
        };
        flow = kinds.iter().map(over).min_by_key(|acks| acks.last().map(|(at, _)| *at)).unwrap_or_default();
    }
    flow.last().map_or(0, |(at, _)| *at)
}

/// The arrivals of the last `packets` packets of a flow of `bytes`, one of which may start every `gap` from time 0 on.
fn crossed(wire: &Wire, path: &[Rc<Hop>], bytes: u64, packets: u64, gap: u64) -> Vec<(u64, u32)> {
    let all = wire.packets(bytes);
    let last = wire.data_frame(wire.payload_of(bytes, all - 1));
    let mut flow: Vec<(u64, u32)> = (0..packets - 1).map(|i| (i * gap, wire.max_frame())).collect();
    flow.push(((packets - 1) * gap, last));
    for lanes in path {
        pass(wire, lanes, &mut flow);
    }
    flow
}

/// One hop: frames are taken in order of time, and each takes the link over which it arrives first. `flow` has the time, ps,
/// and size in bytes of each frame.
fn pass(wire: &Wire, lanes: &Hop, flow: &mut [(u64, u32)]) {
    // Of links that are alike, no more than there are frames can be of use.
    let mut alike: BTreeMap<(Rate, Time), usize> = BTreeMap::new();
    let mut free: Vec<(u64, Rate, Time)> = Vec::new();
    for &(rate, delay) in lanes {
        let count = alike.entry((rate, delay)).or_default();
        *count += 1;
        if *count <= flow.len() {
            free.push((0, rate, delay));
        }
    }
    for (at, frame) in flow.iter_mut() {
        let arrival = |(free, rate, delay): &(u64, Rate, Time)| {
            let end = (*at).max(*free) + wire.transmission(*rate, *frame).ps();
            (end + delay.ps(), end)
        };
        let Some(lane) = free.iter_mut().min_by_key(|lane| arrival(lane).0) else { return };
        let (arrives, end) = arrival(lane);
        lane.0 = end;
        *at = arrives;
    }
    flow.sort_by_key(|(at, _)| *at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, check};

    fn plan(text: &str) -> Plan {
        let workload = "\n[[workload]]\npermutation = { kind = \"shift\" }\n";
        check(&Source::new("t.toml", format!("{text}{workload}")), &[]).unwrap().plan
    }

    #[test]
    fn ideal_fcts_equal_those_of_the_ns3_family() {
        let two_tiers =
            "compat = \"ns3\"\n[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n";
        let p = plan(&format!("{two_tiers}rate = \"100Gbps\""));
        assert_eq!(ideal_fct(&p, HostId(0), HostId(2), 10_000_000), Time::from_ns(838_265));
        assert_eq!(ideal_fct(&p, HostId(0), HostId(2), 1_000), Time::from_ns(8_348));
        let p = plan(&format!("{two_tiers}rate = \"400Gbps\""));
        assert_eq!(ideal_fct(&p, HostId(0), HostId(1), 10_000_000), Time::from_ns(204_022));
    }

    #[test]
    fn the_ack_of_a_short_last_packet_waits_for_the_ack_before_it() {
        // 1438 + 1 bytes inside a rack at 400 Gb/s: 30.4 ns and (64 + 20) B = 1.68 ns, then 1.72 ns per ACK.
        let p = plan("[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2");
        let data = 2 * 30_400 + 1_680 + 2 * 1_000_000;
        let acks = 1_720 + 1_720 + 2 * 1_000_000;
        // The second ACK waits 0.04 ns for the first ACK, which started 1.68 ns earlier and takes 1.72 ns.
        assert_eq!(ideal_fct(&p, HostId(0), HostId(1), 1_439), Time(data + 40 + acks));
    }

    /// The links of all shortest paths, by hop, found host by host and link by link.
    fn search(fabric: &Fabric, from: HostId, to: HostId) -> Vec<Vec<(Rate, Time)>> {
        let (mut path, mut nodes) = (Vec::new(), BTreeSet::from([fabric.node_of(from)]));
        while !nodes.contains(&fabric.node_of(to)) {
            let of = |&n: &NodeId| fabric.route(n, to).iter().map(move |p| fabric.ports(n)[p.index()]);
            let links: Vec<Link> = nodes.iter().flat_map(of).collect();
            path.push(links.iter().map(|l| (l.rate, l.delay)).collect());
            nodes = links.iter().map(|l| l.to).collect();
        }
        path
    }

    #[test]
    fn walks_find_all_shortest_paths_of_all_pairs() {
        for fabric in [
            "[topology.fat-tree]\nk = 4\naggregation-rate = \"200Gbps\"\ncore-delay = \"2us\"",
            "[topology.leaf-spine]\nleaves = 3\nspines = 2\nhosts-per-leaf = 2\nuplink-rate = \"100Gbps\"",
            "[topology.dragonfly]\ngroups = 3\nrouters-per-group = 3\nhosts-per-router = 2\n[scheme.minimal]",
            "[topology.links]\nhosts = 2\nlinks = [[\"host0\", \"host1\", \"400Gbps\", \"1us\"]]",
        ] {
            let p = plan(fabric);
            let mut walks = Walks::new(&p.fabric);
            let hosts = || (0..p.fabric.hosts()).map(|h| HostId(h as _));
            for (from, to) in hosts().flat_map(|a| hosts().map(move |b| (a, b))).filter(|(a, b)| a != b) {
                let path = walks.path(from, to).unwrap();
                let found = search(&p.fabric, from, to);
                assert!(path.iter().map(|hop| &hop[..]).eq(found.iter().map(|hop| &hop[..])), "{from} {to}");
            }
        }
    }

    #[test]
    fn a_small_flow_takes_the_shorter_of_two_equal_paths() {
        let links = "[topology.links]\nhosts = 2\nswitches = [\"a\", \"b\"]\ndelay = \"1us\"\nlinks = [\n\
                     [\"host0\", \"a\"], [\"a\", \"b\", \"100Gbps\", \"9us\"], [\"a\", \"b\"], [\"host1\", \"b\"]]";
        let p = plan(links);
        // With preamble and gap, 1 B of payload takes 6.72 ns at 100 Gb/s and its ACK 6.88 ns; each link adds 1 us.
        assert_eq!(ideal_fct(&p, HostId(0), HostId(1), 1), Time(3 * (2_000_000 + 6_720 + 6_880)));
    }

    /// The ACKs of 1 MB take 479 us on a link of 1 Gb/s.
    #[test]
    fn many_acks_take_the_longer_and_faster_link() {
        let links = "[topology.links]\nhosts = 2\nswitches = [\"a\", \"b\"]\nrate = \"100Gbps\"\nlinks = [\n\
                     [\"host0\", \"a\"], [\"a\", \"b\", \"1Gbps\"], [\"a\", \"b\", \"100Gbps\", \"20us\"], [\"host1\", \"b\"]]";
        let fct = ideal_fct(&plan(links), HostId(0), HostId(1), 1_000_000);
        assert!(fct < Time::from_us(140), "{fct}");
    }

    #[test]
    fn a_short_last_packet_need_not_overtake_before_a_slow_link() {
        let links = "[topology.links]\nhosts = 2\nswitches = [\"a\", \"b\", \"c\"]\nrate = \"100Gbps\"\nlinks = [\n\
                     [\"host0\", \"a\"], [\"a\", \"b\"], [\"a\", \"b\"], [\"b\", \"c\", \"1Gbps\"], [\"host1\", \"c\"]]";
        let several = plan(links);
        let one = plan(&links.replace("[\"a\", \"b\"], [\"a\", \"b\"],", "[\"a\", \"b\"],"));
        for bytes in [1, 1_439, 10_000, 1_000_000] {
            let of = |plan| ideal_fct(plan, HostId(0), HostId(1), bytes);
            assert!(of(&several) <= of(&one), "{bytes}");
        }
    }

    #[test]
    fn simulating_the_tail_gives_the_time_of_the_whole_flow() {
        let p = plan("[topology.leaf-spine]\nleaves = 2\nspines = 4\nhosts-per-leaf = 2");
        for bytes in [1, 1_438, 100_000, 1_000_001, 3_000_000] {
            for to in [HostId(1), HostId(2)] {
                let path = Walks::new(&p.fabric).path(HostId(0), to).unwrap();
                let whole = simulate(&p.wire, &path, bytes, p.wire.packets(bytes));
                assert_eq!(ideal_fct(&p, HostId(0), to, bytes), Time(whole), "{bytes}");
            }
        }
    }

    #[test]
    fn a_bandwidth_delay_product_is_the_number_of_packets_sent_in_one_base_rtt() {
        let p = plan("[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2");
        // Four links each way at 400 Gb/s: 8 us of delay, 4 x 30.4 ns for the packet and 4 x 1.68 ns for the ACK.
        assert_eq!(bdp(&mut Ideals::new(&p), HostId(0), HostId(2)), (8_128_320u32).div_ceil(30_400));
        assert_eq!(bdp(&mut Ideals::new(&p), HostId(0), HostId(1)), (4_064_160u32).div_ceil(30_400));
    }

    #[test]
    fn the_sum_of_all_slow_paths_is_the_bottleneck() {
        let text = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\nrate = \"400Gbps\"\n";
        let p = plan(&format!("{text}uplink-rate = \"100Gbps\""));
        let fct = ideal_fct(&p, HostId(0), HostId(2), 143_800_000).ps();
        // 100,000 packets of 1520 B on the wire over 2 x 100 Gb/s, 60.8 ns each.
        assert!(fct.abs_diff(100_000 * 60_800) < 10_000_000, "{fct}");
        let mut ideals = Ideals::new(&p);
        assert_eq!(ideals.fct(HostId(0), HostId(2), 143_800_000), Time(fct));
        assert_eq!(ideals.fct(HostId(1), HostId(3), 143_800_000), Time(fct));
        assert_eq!((ideals.known.len(), ideals.shapes.len()), (1, 1));
        let long = ideals.fct(HostId(0), HostId(2), 14_380_000_000).ps();
        assert!(long.abs_diff(100 * 100_000 * 60_800) < 20_000_000, "{long}");
    }
}
