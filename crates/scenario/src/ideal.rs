//! Ideal FCT: the completion time of a flow alone on the fabric, to the picosecond. A slowdown is relative to it.
//!
//! Every packet is stored and forwarded at every hop. A hop has one or more equal-cost links, and a packet takes the link
//! that is free first. The bottleneck is therefore the source's NIC, the destination's NIC or the sum of the minimal
//! paths, whichever is slowest, and the value is the same for every scheme. Every packet is acknowledged. The flow ends
//! when the ACK of its last byte has come back, over one link of every hop.

use model::{Fabric, HostId, NodeId, Plan, Rate, Time, Wire};
use std::collections::{BTreeMap, BTreeSet};

/// Number of packets simulated if only the last packets of a flow matter.
const TAIL: u64 = 64;
/// Most packets simulated one by one; the time of further packets is extrapolated.
const MOST: u64 = 1 << 20;

/// Time from the start of a flow to the arrival of the ACK of its last byte; [`Time::NEVER`] if there is no path. For
/// many flows use [`Ideals`].
pub fn ideal_fct(plan: &Plan, from: HostId, to: HostId, bytes: u64) -> Time {
    match hops(&plan.fabric, from, to) {
        Some(hops) => alone(&plan.wire, &hops, bytes),
        None => Time::NEVER,
    }
}

/// Least time from the start of a frame of `frame` bytes at one host to its arrival at another, over a shortest path;
/// [`Time::NEVER`] if there is no path.
pub fn crossing(plan: &Plan, from: HostId, to: HostId, frame: u32) -> Time {
    let Some(hops) = hops(&plan.fabric, from, to) else { return Time::NEVER };
    let least = |lanes: &Vec<(Rate, Time)>| {
        lanes.iter().map(|&(rate, delay)| plan.wire.transmission(rate, frame) + delay).min()
    };
    hops.iter().filter_map(least).fold(Time::ZERO, |sum, hop| sum + hop)
}

/// Bandwidth-delay product in full packets, rounded up: the packets that a queue pair sends at line rate on an idle
/// fabric until the first of them is acknowledged.
pub fn bdp(ideals: &mut Ideals<'_>, from: HostId, to: HostId) -> u32 {
    let wire = &ideals.plan.wire;
    let rate = ideals.plan.fabric.ports(from.node())[0].rate;
    let packet = wire.transmission(rate, wire.max_frame());
    let packets = ideals.base_rtt(from, to).ps().div_ceil(packet.ps().max(1));
    packets.clamp(1, 1 << 22) as u32
}

/// Ideal FCTs of many flows; flows of equal size over equal paths share one computation.
#[derive(Debug)]
pub struct Ideals<'p> {
    plan: &'p Plan,
    /// Kinds of paths.
    shapes: Vec<Hops>,
    /// Index of the kind of path, by the two switches and the links of the two hosts; `None` if there is no path.
    shape_of: BTreeMap<(NodeId, NodeId, [u64; 4]), Option<usize>>,
    /// Computed times, by kind of path and size of the flow in bytes.
    known: BTreeMap<(usize, u64), Time>,
}

impl<'p> Ideals<'p> {
    /// Ideal FCTs for the flows of a plan.
    pub fn new(plan: &'p Plan) -> Self {
        Ideals { plan, shapes: Vec::new(), shape_of: BTreeMap::new(), known: BTreeMap::new() }
    }

    /// Time from the start of a flow to the arrival of the ACK of its last byte; [`Time::NEVER`] if there is no path.
    pub fn fct(&mut self, from: HostId, to: HostId, bytes: u64) -> Time {
        let Some(shape) = self.shape(from, to) else { return Time::NEVER };
        let (wire, hops) = (&self.plan.wire, &self.shapes[shape]);
        // A large flow usually equals a smaller one plus a number of full packets at line rate.
        let (tail, more) = tail(wire, hops, bytes);
        let time = *self.known.entry((shape, tail)).or_insert_with(|| alone(wire, hops, tail));
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
        for host in (0..fabric.hosts()).map(|h| HostId(h as u16)) {
            let link = &fabric.ports(host.node())[0];
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
        Some(self.shapes[shape].len() - 1)
    }

    fn shape(&mut self, from: HostId, to: HostId) -> Option<usize> {
        let fabric = &self.plan.fabric;
        let link = |h: HostId| &fabric.ports(h.node())[0];
        let (a, b) = (link(from), link(to));
        // Paths between the same two switches differ only in the links of the hosts.
        let own = [a.rate.bps(), a.delay.ps(), b.rate.bps(), b.delay.ps()];
        let key = (fabric.attachment(from), fabric.attachment(to), own);
        *self.shape_of.entry(key).or_insert_with(|| {
            let hops = hops(fabric, from, to)?;
            let known = self.shapes.iter().position(|known| *known == hops);
            Some(known.unwrap_or_else(|| {
                self.shapes.push(hops);
                self.shapes.len() - 1
            }))
        })
    }
}

/// Rate and delay of the equal-cost links of every hop.
type Hops = Vec<Vec<(Rate, Time)>>;

fn hops(fabric: &Fabric, from: HostId, to: HostId) -> Option<Hops> {
    if from == to || !fabric.reaches(from, to) {
        return None;
    }
    let mut hops = Vec::new();
    let mut nodes = BTreeSet::from([from.node()]);
    while !nodes.contains(&to.node()) {
        let links = nodes
            .iter()
            .flat_map(|&n| fabric.route(n, to).iter().map(move |p| fabric.ports(n)[p.0 as usize]));
        let links: Vec<_> = links.collect();
        if links.is_empty() || hops.len() > fabric.nodes() {
            return None;
        }
        hops.push(links.iter().map(|l| (l.rate, l.delay)).collect());
        nodes = links.iter().map(|l| l.to).collect();
    }
    Some(hops)
}

/// The size in bytes of a smaller flow that ends in the same way, and the difference of the two times, ps. The flow itself
/// and 0 if there is no such flow.
fn tail(wire: &Wire, hops: &Hops, bytes: u64) -> (u64, u64) {
    let full = wire.max_frame();
    let first = wire.transmission(hops[0][0].0, full);
    // If every link after the NIC is at least as fast as the NIC, full packets never queue, and the last packets take the
    // same time however many packets came before them.
    let even = hops.iter().all(|lanes| lanes.iter().all(|lane| *lane == lanes[0]));
    let open = hops.iter().all(|lanes| {
        let slowest = wire.transmission(lanes[0].0, full).max(wire.transmission(lanes[0].0, wire.ack));
        slowest <= first
    });
    let skipped = if even && open { wire.packets(bytes).saturating_sub(TAIL) } else { 0 };
    (bytes - skipped * u64::from(wire.payload), skipped.saturating_mul(first.ps()))
}

fn alone(wire: &Wire, hops: &Hops, bytes: u64) -> Time {
    let (bytes, more) = tail(wire, hops, bytes);
    let packets = wire.packets(bytes);
    if more > 0 {
        return Time(simulate(wire, hops, bytes, packets).saturating_add(more));
    }
    if packets <= MOST {
        return Time(simulate(wire, hops, bytes, packets));
    }
    let (half, whole) = (simulate(wire, hops, bytes, MOST / 2), simulate(wire, hops, bytes, MOST));
    let rest = u128::from(packets - MOST) * u128::from(whole - half) / u128::from(MOST / 2);
    Time(whole.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX)))
}

/// Sends the last `packets` packets of a flow of `bytes` from time 0 on; returns the time, ps, at which the last ACK is
/// back.
fn simulate(wire: &Wire, hops: &Hops, bytes: u64, packets: u64) -> u64 {
    let all = wire.packets(bytes);
    let last = wire.data_frame(wire.payload_of(bytes, all - 1));
    let mut flow: Vec<(u64, u32)> = (1..packets).map(|_| (0, wire.max_frame())).collect();
    flow.push((0, last));
    for lanes in hops {
        pass(wire, lanes, &mut flow);
    }
    for (_, frame) in &mut flow {
        *frame = wire.ack;
    }
    for lanes in hops.iter().rev() {
        let base = lanes.iter().max_by_key(|(rate, _)| *rate).copied();
        pass(wire, base.as_slice(), &mut flow);
    }
    flow.last().map_or(0, |(at, _)| *at)
}

/// One hop: frames arrive in order of time and leave over the link that is free first. `flow` has the time, ps, and size
/// in bytes of each frame.
fn pass(wire: &Wire, lanes: &[(Rate, Time)], flow: &mut [(u64, u32)]) {
    // A packet prefers a link that was never used, so there are never more used links than packets.
    let mut free = vec![0u64; lanes.len().min(flow.len())];
    for (at, frame) in flow.iter_mut() {
        let lane = (0..free.len()).min_by_key(|&l| free[l]).unwrap_or(0);
        let (rate, delay) = lanes[lane];
        let end = (*at).max(free[lane]) + wire.transmission(rate, *frame).ps();
        free[lane] = end;
        *at = end + delay.ps();
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

    #[test]
    fn simulating_the_tail_gives_the_time_of_the_whole_flow() {
        let p = plan("[topology.leaf-spine]\nleaves = 2\nspines = 4\nhosts-per-leaf = 2");
        for bytes in [1, 1_438, 100_000, 1_000_001, 3_000_000] {
            for to in [HostId(1), HostId(2)] {
                let hops = hops(&p.fabric, HostId(0), to).unwrap();
                let whole = simulate(&p.wire, &hops, bytes, p.wire.packets(bytes));
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
