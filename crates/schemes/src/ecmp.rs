//! Equal-cost multi-path: every packet takes its flow's base path.
//!
//! The base path is a hash of the 5-tuple with the switch's own salt, reduced to the equal-cost ports (RFC 2992, Hopps,
//! compares such methods). A flow keeps its path and its order; two large flows on one path share it until they end.
//! The hash of another simulator can replace ours, so that a run there and a run here have the same paths.

mod ns3;

use crate::{Facts, Recipe, palette::Look};
use finding::{Finding, code};
use model::scheme::Arrived;
use model::{Cx, Interest, Packet, Plan, PortIndex, Scheme, Site, Verdict};
use ns3::{Hashes, Ports};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.ecmp]`: path choice by flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "SchemeEcmp")]
pub struct Config {
    /// Hash that selects a flow's path. `"salted"`: ropewalk's own, with a salt per switch and seed. `"hpcc"` and
    /// `"conweave"`: MurmurHash3 of addresses and UDP ports with the switch's node number as seed, as in these two
    /// programs of the HPCC family of ns-3 simulators. They differ in the ports of flows: in HPCC's program, source ports
    /// count up from 10000 for each pair of hosts, and destination ports are given; in ConWeave's, source ports count up
    /// from 10000 for each sender, and destination ports from 100 for each receiver. The next hops stand in the order of
    /// the topology's links. A node whose name is `n` and a number has that number; any other node has its position,
    /// hosts before switches. `"hosts"`: ropewalk's own, of the addresses alone, so all queue pairs from one host to another
    /// take one path, as with NICs that give their queue pairs one UDP source port (Meta, SIGCOMM 2024, made its switches hash the
    /// queue pair for this reason). Default `"salted"`, which sees the queue pair (our choice).
    #[serde(skip_serializing_if = "is_default")]
    pub hash: Hash,
    /// Destination port of every flow, with the hash `"hpcc"`. Default 100 (flow files of HPCC's program).
    #[serde(skip_serializing_if = "is_first_destination")]
    pub destination_port: u16,
}

/// Hash that selects a flow's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EcmpHash")]
pub enum Hash {
    /// ropewalk's own hash.
    #[default]
    Salted,
    /// The hash and the ports of HPCC's program.
    Hpcc,
    /// The hash and the ports of ConWeave's program.
    Conweave,
    /// ropewalk's own hash, which sees hosts and no queue pairs.
    Hosts,
}

fn is_default(hash: &Hash) -> bool {
    *hash == Hash::default()
}

fn is_first_destination(port: &u16) -> bool {
    *port == ns3::FIRST_DESTINATION
}

impl Default for Config {
    fn default() -> Self {
        Config { hash: Hash::default(), destination_port: ns3::FIRST_DESTINATION }
    }
}

/// The scheme.
#[derive(Clone, Debug, Default)]
pub struct Ecmp {
    /// Hashes of another simulator; empty with our own hash.
    foreign: Hashes,
}

impl Recipe for Config {
    type Scheme = Ecmp;
    const LOOK: Option<Look> = Some(Look::new(6, 1));
    const TRIALS: &'static [&'static str] =
        &["", "hash = \"hpcc\"", "hash = \"conweave\"", "hash = \"hosts\""];

    fn facts(&self) -> Facts {
        Facts {
            sprays: false,
            judges_nacks: false,
            tags: false,
            signal: 0,
            view: None,
            nic: None,
            pinned: false,
        }
    }

    fn validate(&self, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        if self.hash != Hash::Hpcc && !is_first_destination(&self.destination_port) {
            let text = "only `hash = \"hpcc\"` reads the destination port";
            return Err(code::NEEDS.at("destination-port", text));
        }
        Ok(Vec::new())
    }

    fn build(&self, site: Site<'_>) -> Ecmp {
        let foreign = match self.hash {
            Hash::Salted => Hashes::default(),
            Hash::Hosts => Hashes::of_hosts(site),
            Hash::Hpcc => Hashes::new(site, Ports::PerPair(self.destination_port)),
            Hash::Conweave => Hashes::new(site, Ports::PerHost),
        };
        Ecmp { foreign }
    }
}

impl Scheme for Ecmp {
    #[inline]
    fn interest(&self) -> Interest {
        Interest { local: true, by_flow: self.foreign.is_empty(), ..Interest::default() }
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        Verdict::Forward(self.foreign.choose(pkt, ports).unwrap_or_else(|| cx.base_path(pkt, ports)))
    }

    #[inline(always)]
    fn choose(&self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        self.foreign.choose(pkt, ports).unwrap_or_else(|| arrived.base_path(ports))
    }
}

#[cfg(test)]
mod tests {
    use crate::SchemeConfig;
    use crate::bench::{Bench, leaf_spine};
    use model::{Psn, QpId};
    use std::collections::BTreeSet;

    #[test]
    fn a_flow_keeps_its_path_and_many_flows_use_every_path() {
        let plan = leaf_spine(2, 4, 8);
        let mut bench = Bench::new(&plan, "leaf0", &SchemeConfig::default());
        let mut used = BTreeSet::new();
        for (i, qp) in (0..).map(QpId).zip(&plan.qps) {
            if qp.from.0 >= 8 || qp.to.0 < 8 {
                continue;
            }
            let mut ports = BTreeSet::new();
            for psn in 0..20 {
                let pkt = bench.data(i, Psn::new(psn));
                ports.insert(format!("{:?}", bench.see(pkt).verdict));
            }
            assert_eq!(ports.len(), 1, "qp {i} moved");
            used.append(&mut ports);
        }
        assert_eq!(used.len(), 4);
    }
}
