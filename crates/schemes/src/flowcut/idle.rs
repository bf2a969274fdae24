//! Round-trip times on an idle fabric, known to a controller that configures switches and NICs.
//!
//! A minimum over samples is only as good as its worst sample. A wrapped timestamp makes a path look instantaneous, and
//! afterwards every correct sample would look slow for ever. So no sample counts for less than the time on an idle fabric.

use super::Deployment;
use super::signal::MOST_HOPS;
use model::{NodeId, Plan, QpId, Rate, Site, Time, Wire};

/// Most links between two switches of a fabric of groups: three legs of two links each.
const MOST_GROUPED: usize = 6;
/// Extra links of a path around a dead link, compared with the longest path otherwise. Our choice: one more up and down.
const AROUND: usize = 2;

/// Least round-trip time, ns, by number of links: from this switch over this number of links to another switch with hosts,
/// and for the ACK back, without serialisation of the data. A number that no path has gets the value of the next lower number.
pub(super) fn least_round_trips(
    site: Site<'_>,
    deployment: Deployment,
    ack_size: u32,
) -> [u64; MOST_HOPS + 1] {
    const FAR: u64 = u64::MAX;
    let (fabric, wire) = (site.fabric(), &site.plan.wire);
    let first = fabric.servers();
    let count = fabric.switch_count();
    let here = site.node.index() - first;
    let ends: Vec<usize> = fabric.racks().iter().filter_map(|tor| tor.index().checked_sub(first)).collect();
    let fewest = if fabric.groups() > 0 { MOST_GROUPED } else { 0 };
    // By number of links and switch: ps to get there, and for an ACK to come back.
    let mut layers = vec![vec![(FAR, FAR); count]];
    layers[0][here] = (0, 0);
    let mut unreached = ends.len();
    let mut met = vec![false; count];
    let mut more = AROUND;
    while layers.len() <= MOST_HOPS && (unreached > 0 || more > 0 || layers.len() <= fewest) {
        let mut next = vec![(FAR, FAR); count];
        let last = layers.last().map_or(&[][..], Vec::as_slice);
        for (switch, &(there, back)) in last.iter().enumerate().filter(|(_, time)| time.0 < FAR) {
            let links = fabric.ports(NodeId((first + switch) as u32)).iter();
            for link in links.filter(|link| !fabric.is_host(link.to)) {
                let home = &fabric.links()[fabric.reverse(fabric.link(link.from, link.port)).index()];
                let ack = home.delay.ps() + wire.transmission(home.rate, ack_size).ps();
                let least = &mut next[link.to.index() - first];
                *least = (least.0.min(there + link.delay.ps()), least.1.min(back + ack));
            }
        }
        if unreached == 0 {
            more = more.saturating_sub(1);
        }
        layers.push(next);
        if let Some(last) = layers.last() {
            for &end in ends.iter().filter(|&&end| last[end].0 < FAR || end == here) {
                unreached -= usize::from(!std::mem::replace(&mut met[end], true));
            }
        }
    }
    let any_way_back = |end: usize| layers.iter().map(|layer| layer[end].1).min().unwrap_or(FAR);
    let mut least = [0; MOST_HOPS + 1];
    for hops in 1..=MOST_HOPS {
        let whole = ends.iter().filter(|&&end| end != here).filter_map(|&end| {
            let (there, back) = *layers.get(hops)?.get(end)?;
            let back = if deployment == Deployment::Full { back } else { any_way_back(end) };
            (there < FAR).then(|| there.saturating_add(back) / 1000)
        });
        least[hops] = whole.min().unwrap_or(least[hops - 1]);
    }
    least
}

/// Idle path of a queue pair, as its NIC knows it; among several links it takes the one with the shortest delay.
#[derive(Clone, Debug)]
pub(super) struct IdlePath {
    /// Propagation there and back, ps.
    pub(super) propagation: u64,
    wire: Wire,
    /// Rates of its links.
    rates: Box<[Rate]>,
    /// Serialisation of a full frame and its ACK, ps.
    full: u64,
}

impl IdlePath {
    pub(super) fn new(plan: &Plan, qp: QpId) -> Self {
        let (from, to) = (plan.qps[qp.index()].from, plan.qps[qp.index()].to);
        let (fabric, wire) = (&plan.fabric, plan.wire);
        let up = fabric.uplink(from);
        let (mut node, mut propagation, mut rates) = (up.to, 2 * up.delay.ps(), vec![up.rate]);
        while !fabric.is_host(node) {
            let ports = fabric.ports(node);
            let links = fabric.route(node, to).iter().map(|port| &ports[port.index()]);
            let time = |rate| wire.transmission(rate, wire.max_frame());
            let Some(link) = links.min_by_key(|link| (link.delay, time(link.rate))) else { break };
            propagation += 2 * link.delay.ps();
            rates.push(link.rate);
            node = link.to;
        }
        let mut path = IdlePath { propagation, wire, rates: rates.into(), full: 0 };
        path.full = path.walk(wire.max_frame());
        path
    }

    /// Serialisation of a packet with this frame and of its ACK.
    pub(super) fn serialisation(&self, frame: u32) -> Time {
        Time(if frame == self.wire.max_frame() { self.full } else { self.walk(frame) })
    }

    fn walk(&self, frame: u32) -> u64 {
        let time = |&rate: &Rate| {
            self.wire.transmission(rate, frame).ps() + self.wire.transmission(rate, self.wire.ack).ps()
        };
        self.rates.iter().map(time).sum()
    }
}
