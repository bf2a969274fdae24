//! Path choice of the HPCC family of ns-3 simulators: a hash of addresses and UDP ports.
//!
//! Source: `SwitchNode::EcmpHash`, `SwitchNode::DoLbFlowECMP` and the flow scheduler of the
//! [HPCC](https://github.com/alibaba-edu/High-Precision-Congestion-Control) and
//! [ConWeave](https://github.com/conweave-project/conweave-ns3) programs. A switch hashes three 32-bit words with
//! MurmurHash3 (x86, 32 bit; Austin Appleby, public domain), seeded with the switch's node number: source address,
//! destination address, source port + 65536 x destination port. A reply has the addresses and ports of its data
//! exchanged. The hash modulo the number of next hops selects a next hop.

use super::{Config, headers};
use model::plan::Qp;
use model::{Fabric, NodeId, Packet, PortIndex, Site, Time};

/// Source port of the first flow.
const FIRST_SOURCE: u16 = 10_000;
/// Destination port of the first flow to a host, in ConWeave's program.
pub(super) const FIRST_DESTINATION: u16 = 100;

/// Rule by which flows get their UDP ports.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ports {
    /// The source port counts the flows of each pair of hosts; all flows have this destination port (HPCC's program).
    PerPair(u16),
    /// The source port counts the flows of each sender, the destination port those of each receiver (ConWeave's program).
    PerHost,
}

/// Hashes of one switch by queue pair, of data and of replies.
#[derive(Clone, Debug, Default)]
pub(super) struct Hashes(Box<[[u32; 2]]>);

impl Hashes {
    /// True if it chooses no port.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if its switch may choose between ports.
    fn matter(site: Site<'_>) -> bool {
        let fabric = site.fabric();
        !site.plan.failures.is_empty()
            || (0..fabric.racks().len()).any(|rack| fabric.route_to_rack(site.node, rack).len() > 1)
    }

    /// Hashes of header fields.
    pub(super) fn of_headers(config: &Config, site: Site<'_>) -> Self {
        if !Hashes::matter(site) {
            return Hashes::default();
        }
        Hashes(headers::of_queue_pairs(config, site))
    }

    /// The hash of a packet; `None` in a switch without a choice, and without these hashes.
    #[inline(always)]
    pub(super) fn hash(&self, pkt: &Packet) -> Option<u32> {
        Some(self.0.get(pkt.qp().index())?[usize::from(!pkt.kind().is_forward())])
    }

    pub(super) fn new(site: Site<'_>, rule: Ports) -> Self {
        if !Hashes::matter(site) {
            return Hashes::default();
        }
        let fabric = site.fabric();
        let seed = number(fabric, site.node);
        let both = |(qp, [source, destination]): (&Qp, [u16; 2])| {
            let [from, to] = [qp.from, qp.to].map(|host| address(number(fabric, fabric.node_of(host))));
            let ports = |low: u16, high: u16| u32::from(low) | u32::from(high) << 16;
            [
                murmur3([from, to, ports(source, destination)], seed),
                murmur3([to, from, ports(destination, source)], seed),
            ]
        };
        Hashes(site.plan.qps.iter().zip(ports(site, rule)).map(both).collect())
    }

    /// The port of a packet; `None` in a switch without a choice, and without this hash.
    #[inline(always)]
    pub(super) fn choose(&self, pkt: &Packet, ports: &[PortIndex]) -> Option<PortIndex> {
        let hash = self.hash(pkt)?;
        ports.get(hash as usize % ports.len().max(1)).copied()
    }
}

/// Number of a node in that family: the number in a name such as `n128`, as an import names nodes; any other node has its
/// position in the scenario, hosts before switches.
fn number(fabric: &Fabric, node: NodeId) -> u32 {
    fabric.name(node).strip_prefix('n').and_then(|digits| digits.parse().ok()).unwrap_or(node.0)
}

/// IPv4 address of the host with this number.
fn address(host: u32) -> u32 {
    0x0b00_0001u32.wrapping_add((host / 256).wrapping_mul(0x1_0000)).wrapping_add(host % 256 * 0x100)
}

/// Source and destination port of every queue pair. Counters rise in the order of starts; the order of queue pairs
/// decides between equal starts.
fn ports(site: Site<'_>, rule: Ports) -> Vec<[u16; 2]> {
    let qps = &site.plan.qps;
    let start = |qp: &Qp| {
        site.plan.messages.get(qp.messages.start as usize).map_or(Time::ZERO, |message| message.start)
    };
    let mut order: Vec<usize> = (0..qps.len()).collect();
    let mut given = vec![[FIRST_SOURCE, FIRST_DESTINATION]; qps.len()];
    match rule {
        Ports::PerPair(destination) => {
            order.sort_by_key(|&i| (qps[i].to, qps[i].from, start(&qps[i])));
            for pair in order.chunk_by(|&a, &b| (qps[a].to, qps[a].from) == (qps[b].to, qps[b].from)) {
                for (count, &i) in pair.iter().enumerate() {
                    given[i] = [FIRST_SOURCE.wrapping_add(count as u16), destination];
                }
            }
        }
        Ports::PerHost => {
            order.sort_by_key(|&i| start(&qps[i]));
            let mut next = vec![[FIRST_SOURCE, FIRST_DESTINATION]; site.fabric().hosts()];
            for i in order {
                let Qp { from, to, .. } = qps[i];
                given[i] = [next[from.index()][0], next[to.index()][1]];
                next[from.index()][0] = next[from.index()][0].wrapping_add(1);
                next[to.index()][1] = next[to.index()][1].wrapping_add(1);
            }
        }
    }
    given
}

/// MurmurHash3 (x86, 32 bit) of three words.
fn murmur3(words: [u32; 3], seed: u32) -> u32 {
    let mixed = words.into_iter().fold(seed, |hash, word| {
        let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    });
    let length = 12;
    let hash = mixed ^ length;
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemeConfig;
    use crate::bench::{Bench, leaf_spine};
    use crate::ecmp::{Config, Hash};
    use model::{HostId, Psn, QpId, Verdict};
    use std::collections::{BTreeMap, BTreeSet};

    fn words(from: u32, to: u32, source: u16, destination: u16) -> [u32; 3] {
        [address(from), address(to), u32::from(source) | u32::from(destination) << 16]
    }

    #[test]
    fn a_hash_of_hosts_gives_all_queue_pairs_of_two_hosts_one_path_and_spreads_pairs_of_hosts() {
        let mut plan = leaf_spine(2, 4, 8);
        let thrice = |qp: &Qp| [qp.clone(), qp.clone(), qp.clone()];
        plan.qps = plan.qps.iter().flat_map(thrice).collect();
        let config = SchemeConfig::Ecmp(Config { hash: Hash::Hosts, ..Config::default() });
        let mut bench = Bench::new(&plan, "leaf0", &config);
        let mut paths = BTreeMap::<_, BTreeSet<_>>::new();
        for (i, qp) in (0..).map(QpId).zip(&plan.qps).filter(|(_, qp)| qp.from.0 < 8 && qp.to.0 >= 8) {
            let seen = bench.see(bench.data(i, Psn::new(0)));
            paths.entry((qp.from, qp.to)).or_default().insert(format!("{:?}", seen.verdict));
        }
        assert!(paths.len() > 8 && paths.values().all(|of_pair| of_pair.len() == 1), "{paths:?}");
        assert_eq!(paths.values().flatten().collect::<BTreeSet<_>>().len(), 4, "{paths:?}");
    }

    /// The values come from a separate program in Python, which agrees with the published test vector
    /// MurmurHash3("test", seed 0) = 0xba6bd213.
    #[test]
    fn hashes_of_five_tuples_equal_those_of_a_separate_program() {
        for (seed, words, hash) in [
            (0, words(0, 127, 10_000, 100), 0xa5ed_24c0),
            (128, words(0, 127, 10_000, 100), 0x3da7_cf8d),
            (128, words(127, 0, 100, 10_000), 0xbb75_738f),
            (4, words(0, 2, 10_001, 100), 0xf24c_5a42),
            (200, words(300, 1, 10_007, 100), 0x7d16_a312),
        ] {
            assert_eq!(murmur3(words, seed), hash, "{words:x?} with seed {seed}");
        }
        assert_eq!([0, 255, 256, 511].map(address), [0x0b00_0001, 0x0b00_ff01, 0x0b01_0001, 0x0b01_ff01]);
    }

    #[test]
    fn a_node_has_the_number_in_its_name_or_its_position() {
        let plan = leaf_spine(2, 2, 2);
        let leaf = plan.fabric.find("leaf0").unwrap();
        assert_eq!(number(&plan.fabric, leaf), 4, "four hosts come before the first leaf");
        assert_eq!(plan.fabric.node_of(HostId(3)).0, 3);
    }

    #[test]
    fn the_hash_modulo_the_number_of_ports_selects_the_port_of_data() {
        let plan = leaf_spine(2, 4, 4);
        let config = SchemeConfig::Ecmp(Config { hash: Hash::Hpcc, ..Config::default() });
        let mut bench = Bench::new(&plan, "leaf0", &config);
        // Eight hosts come first, so the number of this leaf is 8.
        for (i, qp) in (0..).map(QpId).zip(&plan.qps).filter(|(_, qp)| qp.from.0 < 4 && qp.to.0 >= 4) {
            let seen = bench.see(bench.data(i, Psn::new(0)));
            let hash = murmur3(words(qp.from.0, qp.to.0, 10_000, 100), 8);
            assert_eq!(seen.verdict, Verdict::Forward(seen.ports[hash as usize % 4]), "{qp:?}");
        }
    }
}
