//! Equal-cost multi-path: every packet takes its flow's base path.
//!
//! The base path is a hash of the 5-tuple with the switch's own salt, reduced to the equal-cost ports (RFC 2992, Hopps,
//! compares such methods). A flow keeps its path and its order; two large flows on one path share it until they end.
//! The hash of another simulator can replace ours, so that a run there and a run here have the same paths.

mod headers;
mod members;
mod ns3;

use crate::{Facts, Recipe, palette::Look};
use finding::{Finding, code};
use members::Members;
use model::scheme::Arrived;
use model::{Cx, Interest, Packet, Plan, PortIndex, Scheme, Site, Verdict};
use ns3::{Hashes, Ports};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most buckets of a group. Our choice: above the hardware's, which has 4,096 and more (SONiC's fine-grained next hops).
const MOST_BUCKETS: u32 = 65_536;

/// `[scheme.ecmp]`: path choice by flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "SchemeEcmp")]
pub struct Config {
    /// Hash that selects a flow's path. `"salted"`: by the settings below, and without them ropewalk's own, with a salt per
    /// switch and seed. `"hpcc"` and
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
    /// Header fields that the hash reads. Default `"5-tuple"`, with a UDP source port for each queue pair, as in captured frames.
    #[serde(skip_serializing_if = "is_default")]
    pub fields: Fields,
    /// Function of the hash. Default `"ours"`: a mixer of 64 bits (our choice; SONiC's default is a CRC).
    #[serde(skip_serializing_if = "is_default")]
    pub function: Function,
    /// Seed of the hash: `"each-switch"`, `"by-role"`, or a number that all switches share. `"by-role"` is SONiC's: 0 in ToRs, 10
    /// in the tier above, whose hash is also rotated by 10 bits, and 25 in all tiers above that (`switch.json.j2` in
    /// sonic-buildimage). With equal seeds on two tiers, the upper tier leaves uplinks idle. Default `"each-switch"` (our
    /// choice).
    #[serde(skip_serializing_if = "is_default")]
    pub seed: Seed,
    /// Buckets of each group of next hops, for resilient hashing: if a next hop dies, its own flows move and no others; if it
    /// returns, it gets them back. 2 to 65536; hardware has for example 4096 (SONiC's fine-grained next hops). Default: none, so
    /// nearly all flows move if a next hop dies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buckets: Option<u32>,
    /// Shares of next hops: `"equal"`, or `"link-rate"` for weighted ECMP in proportion to the rates of the switch's own links. With
    /// `buckets`, largest remainders are rounded up (our choice). A link that a failure slows keeps its weight. Default
    /// `"equal"`.
    #[serde(skip_serializing_if = "is_default")]
    pub weights: Weights,
}

/// Hash that selects a flow's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EcmpHash")]
pub enum Hash {
    /// ropewalk's own hash, or that of the settings below.
    #[default]
    Salted,
    /// The hash and the ports of HPCC's program.
    Hpcc,
    /// The hash and the ports of ConWeave's program.
    Conweave,
    /// ropewalk's own hash, which sees hosts and no queue pairs.
    Hosts,
}

/// Header fields of a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EcmpFields")]
pub enum Fields {
    /// Addresses, protocol and UDP ports; every queue pair has a source port of its own.
    #[default]
    #[serde(rename = "5-tuple")]
    FiveTuple,
    /// The 5-tuple and the destination queue pair: Meta's E-ECMP (SIGCOMM 2024), Junos's queue-pair hashing.
    #[serde(rename = "5-tuple-qp")]
    FiveTupleQp,
    /// The 5-tuple of NICs with one UDP source port for all queue pairs: it tells pairs of hosts apart, and no queue pairs.
    #[serde(rename = "addresses")]
    Addresses,
}

/// Function of a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EcmpFunction")]
pub enum Function {
    /// ropewalk's own mixer.
    #[default]
    Ours,
    /// CRC-16 with the polynomial 0x1021 (Junos names "CRC16" for queue-pair hashing; which one is unpublished).
    Crc16,
    /// CRC-32 of Ethernet (SONiC names "CRC"; which one is unpublished).
    Crc32,
    /// XOR of all 16-bit words (SAI's XOR; its width is our choice).
    Xor,
}

/// Seeds of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected \"each-switch\", \"by-role\", or a number from 0 to 4294967295")]
#[schemars(rename = "EcmpSeed")]
pub enum Seed {
    /// A rule.
    Rule(SeedRule),
    /// One seed for all switches.
    Number(u32),
}

/// Rule for the seeds of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EcmpSeedRule")]
pub enum SeedRule {
    /// A seed for each switch.
    EachSwitch,
    /// SONiC's seeds by role.
    ByRole,
}

impl Default for Seed {
    fn default() -> Self {
        Seed::Rule(SeedRule::EachSwitch)
    }
}

/// How next hops share the flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EcmpWeights")]
pub enum Weights {
    /// Equal shares.
    #[default]
    Equal,
    /// Shares in proportion to the rates of links.
    LinkRate,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_first_destination(port: &u16) -> bool {
    *port == ns3::FIRST_DESTINATION
}

impl Default for Config {
    fn default() -> Self {
        Config {
            hash: Hash::default(),
            destination_port: ns3::FIRST_DESTINATION,
            fields: Fields::default(),
            function: Function::default(),
            seed: Seed::default(),
            buckets: None,
            weights: Weights::default(),
        }
    }
}

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

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        if self.hash != Hash::Hpcc && !is_first_destination(&self.destination_port) {
            let text = "only `hash = \"hpcc\"` reads the destination port";
            return Err(code::NEEDS.at("destination-port", text));
        }
        let own = [
            ("fields", !is_default(&self.fields)),
            ("function", !is_default(&self.function)),
            ("seed", !is_default(&self.seed)),
        ];
        if self.hash != Hash::Salted
            && let Some((field, _)) = own.into_iter().find(|(_, set)| *set)
        {
            let text =
                "`hash` names a whole hash, with fields, function and seed of its own: leave out one of both";
            return Err(code::CONFLICT.at(field, text));
        }
        if let Some(count) = self.buckets {
            if !(2..=MOST_BUCKETS).contains(&count) {
                let text = format!("{count} buckets; 2 to {MOST_BUCKETS} are possible");
                return Err(code::RANGE.at("buckets", text));
            }
            let most = tiers_with_choice(plan).into_iter().map(|(_, most)| most).max().unwrap_or(0);
            if (count as usize) < most {
                let text = format!("{count} buckets for groups of up to {most} next hops; each needs one");
                return Err(code::FIT.at("buckets", text));
            }
        }
        let mut warnings = Vec::new();
        if let Seed::Number(seed) = self.seed
            && let [(low, _), (high, _), ..] = tiers_with_choice(plan)[..]
        {
            let text = format!(
                "switches of the tiers {low} and {high} choose next hops by one hash with the seed {seed}: flows that meet in a \
                 switch have equal hashes, so some of its uplinks stay idle"
            );
            warnings.push(code::POOR_MATCH.at("seed", text));
        }
        Ok(warnings)
    }

    fn build(&self, site: Site<'_>) -> Ecmp {
        let plain = is_default(&self.fields) && is_default(&self.function) && is_default(&self.seed);
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

/// Tiers whose switches have a choice, from below, each with its largest number of next hops.
fn tiers_with_choice(plan: &Plan) -> Vec<(usize, usize)> {
    let fabric = &plan.fabric;
    let mut tiers = std::collections::BTreeMap::new();
    for node in fabric.switches() {
        let choices = (0..fabric.racks().len()).map(|rack| fabric.route_to_rack(node, rack).len());
        let most = choices.max().unwrap_or(0);
        if most > 1 {
            let tier = tiers.entry(fabric.tier(node)).or_insert(0);
            *tier = most.max(*tier);
        }
    }
    tiers.into_iter().collect()
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
