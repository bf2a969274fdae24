//! Equal-cost multi-path: every packet takes its flow's base path.
//!
//! The base path is a hash of the 5-tuple with the switch's own salt, reduced to the equal-cost ports (RFC 2992, Hopps,
//! compares such methods). A flow keeps its path and its order; two large flows on one path share it until they end.
//! The hash of another simulator can replace ours, so that a run there and a run here have the same paths.

mod config;
mod headers;
mod members;
mod ns3;

use crate::{Facts, Recipe, palette::Look};
pub use config::{Config, Fields, Function, Hash, Seed, SeedRule, Weights};
use finding::Finding;
use members::Members;
use model::scheme::Arrived;
use model::{Cx, Interest, Packet, Plan, PortIndex, Scheme, Site, Verdict};
use ns3::{Hashes, Ports};

/// The scheme.
#[derive(Clone, Debug, Default)]
pub struct Ecmp {
    /// Hashes of header fields, or of another simulator; empty with our own hash.
    foreign: Hashes,
    /// Weights and buckets; `None` without such settings.
    members: Option<Box<Members>>,
}

impl Recipe for Config {
    type Scheme = Ecmp;
    const LOOK: Option<Look> = Some(Look::new(6, 1));
    const TRIALS: &'static [&'static str] = &[
        "",
        "hash = \"hpcc\"",
        "hash = \"conweave\"",
        "hash = \"hosts\"",
        "function = \"crc32\"\nseed = \"by-role\"\nfields = \"5-tuple-qp\"",
        "seed = 7\nfields = \"addresses\"\nbuckets = 64",
        "weights = \"link-rate\"\nfunction = \"crc16\"",
    ];

    fn facts(&self) -> Facts {
        Facts::plain(false)
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        self.check(plan)
    }

    fn build(&self, site: Site<'_>) -> Ecmp {
        let plain = self.is_plain();
        let foreign = match self.hash {
            Hash::Salted if plain => Hashes::default(),
            Hash::Salted => Hashes::of_headers(self, site),
            Hash::Hosts => {
                Hashes::of_headers(&Config { fields: Fields::Addresses, ..Config::default() }, site)
            }
            Hash::Hpcc => Hashes::new(site, Ports::PerPair(self.destination_port)),
            Hash::Conweave => Hashes::new(site, Ports::PerHost),
        };
        Ecmp { foreign, members: Members::of(self, site) }
    }
}

impl Scheme for Ecmp {
    #[inline]
    fn interest(&self) -> Interest {
        let by_flow = self.foreign.is_empty() && self.members.is_none();
        Interest { local: true, by_flow, ..Interest::default() }
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        Verdict::Forward(self.choose(cx.arrived(pkt), pkt, ports))
    }

    #[inline(always)]
    fn choose(&self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        match &self.members {
            Some(members) => {
                let hash = self.foreign.hash(pkt).unwrap_or((arrived.flow >> 32) as u32);
                members.choose(hash, pkt.to(), ports)
            }
            None => self.foreign.choose(pkt, ports).unwrap_or_else(|| arrived.base_path(ports)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemeConfig;
    use crate::bench::{Bench, leaf_spine, pods};
    use model::{Psn, QpId};
    use std::collections::{BTreeMap, BTreeSet};

    /// The uplinks, counted from 0, of flows from the first pod to the second: at the first edge switch, and at the aggregation
    /// switch that they reach.
    fn climbs(plan: &Plan, config: &Config, uplinks: usize) -> Vec<(usize, usize)> {
        let config = SchemeConfig::Ecmp(config.clone());
        let mut switches = BTreeMap::new();
        let edges = plan.fabric.switches().filter(|&node| plan.fabric.role(node) == "edge").count() / 2;
        let mut uplink = |switch: String, qp: QpId| {
            let bench = switches.entry(switch.clone()).or_insert_with(|| Bench::new(plan, &switch, &config));
            match bench.see(bench.data(qp, Psn::new(0))).verdict {
                // Ports downwards come first: a host below an edge switch, and edge switches below the others.
                Verdict::Forward(port) => port.index() - if switch.starts_with("edge") { 1 } else { edges },
                other => panic!("{other:?}"),
            }
        };
        let across = (0..)
            .map(QpId)
            .zip(&plan.qps)
            .filter(|(_, qp)| (qp.from.0 as usize) < edges && (qp.to.0 as usize) >= edges);
        let climb = |(i, qp): (QpId, &model::plan::Qp)| {
            let first = uplink(format!("edge0.{}", qp.from.0), i);
            assert!(first < uplinks);
            (first, uplink(format!("up0.{first}"), i))
        };
        across.map(climb).collect()
    }

    #[test]
    fn with_one_seed_on_all_tiers_flows_that_reach_aggregation_switch_j_leave_by_uplink_j() {
        let plan = pods(2, 24, &[4, 4, 4, 4]);
        for function in [Function::Ours, Function::Crc16, Function::Crc32, Function::Xor] {
            let one = Config { function, seed: Seed::Number(5), ..Config::default() };
            let climbs = climbs(&plan, &one, 4);
            assert!(climbs.iter().all(|(first, second)| first == second), "{function:?}");
            assert_eq!(climbs.iter().collect::<BTreeSet<_>>().len(), 4, "{function:?} uses 4 of 16 paths");
        }
    }

    /// SONiC's offset keeps the tiers of a fat tree apart, where its seeds alone would not.
    #[test]
    fn seeds_for_each_switch_and_sonics_by_role_use_all_paths() {
        let plan = pods(2, 24, &[4, 4, 4, 4]);
        for (function, seed) in [
            (Function::Ours, Seed::default()),
            (Function::Crc32, Seed::Rule(SeedRule::ByRole)),
            (Function::Ours, Seed::Rule(SeedRule::ByRole)),
        ] {
            let climbs = climbs(&plan, &Config { function, seed, ..Config::default() }, 4);
            assert_eq!(climbs.iter().collect::<BTreeSet<_>>().len(), 16, "{function:?}");
        }
    }

    #[test]
    fn settings_that_say_nothing_new_change_no_path() {
        let plan = leaf_spine(2, 4, 8);
        let paths = |config: Config| {
            let mut bench = Bench::new(&plan, "leaf0", &SchemeConfig::Ecmp(config));
            (0..plan.qps.len() as u32)
                .map(|qp| bench.see(bench.data(QpId(qp), Psn::new(0))).verdict)
                .collect::<Vec<_>>()
        };
        let hosts = paths(Config { hash: Hash::Hosts, ..Config::default() });
        assert_eq!(paths(Config { fields: Fields::Addresses, ..Config::default() }), hosts);
        let table: Config =
            toml::from_str("fields = \"5-tuple\"\nfunction = \"ours\"\nseed = \"each-switch\"").unwrap();
        assert_eq!(table, Config::default());
        assert_eq!(serde_json::to_string(&table).unwrap(), "{}");
    }

    #[test]
    fn settings_that_exclude_each_other_and_equal_seeds_on_two_tiers_are_named() {
        let (flat, tree) = (leaf_spine(2, 4, 2), pods(2, 2, &[2, 2]));
        let config = |text: &str| toml::from_str::<Config>(text).unwrap();
        for (text, field) in [
            ("hash = \"hosts\"\nseed = 4", "seed"),
            ("hash = \"hpcc\"\nfunction = \"xor\"", "function"),
            ("buckets = 1", "buckets"),
            ("buckets = 3", "buckets"),
            ("destination-port = 5", "destination-port"),
        ] {
            assert_eq!(config(text).validate(&flat).unwrap_err().path(), field, "{text}");
        }
        assert_eq!(config("seed = 4").validate(&flat), Ok(vec![]), "one tier has a choice");
        assert_eq!(config("seed = 4").validate(&tree).unwrap().len(), 1);
        assert_eq!(config("seed = \"by-role\"\nbuckets = 4").validate(&tree), Ok(vec![]));
        let error = toml::from_str::<Config>("seed = \"by-rack\"").unwrap_err().to_string();
        assert!(error.contains("each-switch"), "{error}");
    }

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
