//! Switch part of schemes that sit in the sending NIC: a packet's entropy decides its path.

use model::{Cx, Fabric, HostId, Interest, Packet, PortIndex, QpSite, Scheme, Site, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How switches turn a UDP source port into a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// The switch's hash of the 5-tuple, as in ECMP: several source ports may share a path.
    #[default]
    Hash,
    /// A search by the sender for source ports that lead over different paths: entropy k takes the k-th path, counted
    /// from the flow's hashed path.
    Map,
}

/// The scheme of one switch.
#[derive(Clone, Copy, Debug)]
pub struct Entropies {
    mapping: Mapping,
    /// Number of paths among which switches closer to the hosts choose; this switch reads the entropy divided by it.
    below: u16,
}

impl Entropies {
    /// The scheme of the switch of `site`.
    pub fn new(mapping: Mapping, site: Site<'_>) -> Self {
        Entropies { mapping, below: if mapping == Mapping::Map { choices_below(site) } else { 1 } }
    }
}

/// Product of the uplink counts of the tiers between the hosts and this switch.
pub(crate) fn choices_below(site: Site<'_>) -> u16 {
    let fabric = site.fabric();
    let uplinks = |tier: usize| {
        let here = fabric.switches().filter(|&node| fabric.tier(node) == tier);
        let up = |node| fabric.ports(node).iter().filter(|l| fabric.tier(l.to) > tier).count();
        here.map(up).max().unwrap_or(1).max(1)
    };
    let product: usize = (1..fabric.tier(site.node)).map(uplinks).product();
    product.min(usize::from(u16::MAX)) as u16
}

/// Equal-cost paths between the ends of a queue pair: the product of the choices on the path. Under [`Mapping::Map`],
/// entropies below this number lead over all of them.
pub fn paths(site: QpSite<'_>) -> u16 {
    let qp = &site.plan.qps[site.qp.index()];
    paths_between(&site.plan.fabric, qp.from, qp.to)
}

/// Equal-cost paths between two hosts, as in [`paths`].
pub fn paths_between(fabric: &Fabric, from: HostId, to: HostId) -> u16 {
    let (mut node, mut product) = (fabric.attachment(from), 1usize);
    while !fabric.is_host(node) {
        let ports = fabric.route(node, to);
        let Some(first) = ports.first() else { break };
        product = product.saturating_mul(ports.len()).min(usize::from(u16::MAX));
        node = fabric.ports(node)[first.index()].to;
    }
    product as u16
}

impl Scheme for Entropies {
    /// Under [`Mapping::Hash`] every packet takes its hashed path, so the switch acts on each port by itself.
    #[inline]
    fn interest(&self) -> Interest {
        let hashes = self.mapping == Mapping::Hash;
        Interest { local: hashes, by_flow: hashes, ..Interest::default() }
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        Verdict::Forward(match self.mapping {
            Mapping::Hash => cx.base_path(pkt, ports),
            Mapping::Map => {
                let digit = usize::from(cx.entropy / self.below);
                cx.entropy = 0;
                let base = if ports.len() == 1 { 0 } else { cx.hash(pkt, ports.len()) };
                ports[(base + digit) % ports.len()]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnyScheme;
    use crate::bench::{Bench, leaf_spine, pods, qp};
    use model::Psn;
    use std::collections::BTreeSet;

    fn ports_of(plan: &model::Plan, switch: &str, mapping: Mapping, entropies: u16) -> Vec<usize> {
        let site = Site { plan, node: plan.fabric.find(switch).unwrap() };
        let mut bench = Bench::with(plan, switch, AnyScheme::Entropies(Entropies::new(mapping, site)));
        let last = plan.fabric.hosts() as u32 - 1;
        let send = |entropy| {
            bench.entropy = entropy;
            let pkt = bench.data(qp(plan, 0, last), Psn::new(3));
            match bench.see(pkt).verdict {
                Verdict::Forward(port) => port.index(),
                other => panic!("{other:?}"),
            }
        };
        (0..entropies).map(send).collect()
    }

    #[test]
    fn a_map_leads_over_every_path_and_a_hash_over_many() {
        let plan = leaf_spine(2, 8, 1);
        let distinct = |ports: Vec<usize>| ports.into_iter().collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(ports_of(&plan, "leaf0", Mapping::Map, 8)), 8);
        let hashed = distinct(ports_of(&plan, "leaf0", Mapping::Hash, 8));
        assert!((2..8).contains(&hashed), "{hashed}");
        assert_eq!(distinct(ports_of(&plan, "leaf0", Mapping::Hash, 200)), 8);
    }

    #[test]
    fn paths_are_counted_from_rack_to_rack() {
        let plan = pods(2, 2, &[3, 3]);
        let between = |to| paths(QpSite { plan: &plan, qp: qp(&plan, 0, to) });
        assert_eq!([between(1), between(2), between(3)], [2, 6, 6]);
        let plan = leaf_spine(2, 4, 2);
        assert_eq!([1, 2].map(|to| paths(QpSite { plan: &plan, qp: qp(&plan, 0, to) })), [1, 4]);
    }

    #[test]
    fn tiers_divide_the_digits_of_an_entropy() {
        let plan = pods(2, 1, &[3, 3]);
        let edge = ports_of(&plan, "edge0.0", Mapping::Map, 6);
        let up = ports_of(&plan, "up0.0", Mapping::Map, 6);
        let paths: BTreeSet<_> = edge.into_iter().zip(up).collect();
        assert_eq!(paths.len(), 6, "{paths:?}");
    }
}
