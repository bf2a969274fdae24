//! Settings of `[scheme.ecmp]`.

use super::ns3;
use finding::{Finding, code};
use model::Plan;
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
    /// Header fields that the hash reads. Default `"5-tuple"`, with a UDP source port for each queue pair (as in captured frames).
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
    /// `"equal"` (RFC 2992).
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

impl Config {
    /// True if the hash has our fields, function and seed.
    pub(super) fn is_plain(&self) -> bool {
        is_default(&self.fields) && is_default(&self.function) && is_default(&self.seed)
    }

    /// Checks the settings against a plan; returns warnings.
    pub(super) fn check(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
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
        if self.function != Function::Ours
            && self.seed == Seed::default()
            && let [(low, _), (high, _), ..] = tiers_with_choice(plan)[..]
        {
            let text = format!(
                "a CRC or XOR is linear in its seed: with 2, 4 or 8 uplinks, flows that meet in a switch of tier {high} have equal \
                 choices from tier {low}, so some of its uplinks stay idle; `seed = \"by-role\"` rotates the hash"
            );
            warnings.push(code::POOR_MATCH.at("function", text));
        }
        Ok(warnings)
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
