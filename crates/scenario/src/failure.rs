//! `[[failure]]`: links and switches that fail and recover, and storms of pauses; `[routing]`: the delay until routing reacts.

mod detection;
pub(crate) mod flaps;
mod words;

use crate::footprint::MemoryBudget;
use crate::nodes::node;
use crate::topology::links::possible_rate;
use crate::values::{Chance, ReducedRate};
use finding::{Finding, code, nearest};
use model::draw::{Key, Purpose};
use model::failure::{Cause, Effect, Fault};
use model::{Fabric, FabricError, Failures, HostId, LinkId, NodeId, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

pub use detection::{BySwitch, Detection, Local};
pub use flaps::{Down, Flaps, LogNormal};

/// Links that are down or slow, or that lose packets at random, for some time, or hosts that pause their switches without end. Failures
/// may overlap; the worst failure of a link counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Failure {
    /// Links that fail, each by its two ends, such as `[["leaf0", "spine1"], ["leaf*", "spine3"]]`. `*` in a name matches
    /// any characters; parallel links all match. Default: none; if only `random` is set, all links between switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<[String; 2]>,
    /// Switch whose links all fail; `*` matches as in `links`. Packets in the switch are lost on its dead links. The
    /// switch keeps its tables until it recovers. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// Number of these links that fail, drawn by the seed: a whole number of links, or a share below 1 such as `0.01`,
    /// rounded to at least one link. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random: Option<Portion>,
    /// Whether a link fails only in the direction from its first end to its second. Routing treats the link as dead in
    /// both directions. Default false (our choice).
    #[serde(default)]
    pub one_way: bool,
    /// Start of the failure. A failure that starts at `"0us"` is known to routing from the beginning. Default 0 (our
    /// choice).
    #[serde(default)]
    pub at: Time,
    /// End of the failure; with `flaps`, the time from which on none begins. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Rate of the links during the failure, at least 100 Mb/s: a rate, or a share of the link's own rate such as `0.1`.
    /// Switches keep the thresholds of the link's own rate, as configured ports do. Default: not set; the links are down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<ReducedRate>,
    /// Probability that the links lose a data packet during the failure, if it is above that of the link itself: a gray
    /// failure, such as a dirty connector, which routing never notices. With `links.lose-replies`, ACKs and NACKs are lost,
    /// too. Default: not set; the links are down, or slow if `rate` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Chance>,
    /// Whether the links are down; exclusive with `rate` and `loss`. Default: true if neither is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<bool>,
    /// Hosts whose NICs break and pause their switch from `at` until `until`, such as `["host3"]`; `*` matches as in `links`. A NIC sends
    /// a pause frame for each lossless priority, twice in the time of the longest pause (our choice), so the last one ends up to
    /// 65,535 x 512 bit times after `until` (IEEE 802.3, annex 31B.2). No link fails. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storm: Vec<String>,
    /// The failure comes and goes on each link by itself, from `at` to `until`, which has no default then. Default: one failure
    /// from `at` to `until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaps: Option<Flaps>,
}

impl Failure {
    /// True if the links are down, and not only slow or gray.
    fn is_down(&self) -> bool {
        self.rate.is_none() && self.loss.is_none() && self.storm.is_empty()
    }
}

/// When routing reacts to failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RoutingConfig {
    /// Time from a link's failure or recovery until all switches route accordingly; it is the same for all switches,
    /// including the two ends of the link. Default 1 ms, which `"all-at-once"` stands for, too (our choice: as long as a
    /// retransmission timeout. A port detects a lost signal within microseconds, rerouting in hardware takes tens of
    /// microseconds, and routing protocols with BFD, RFC 5880, take tens of milliseconds). A table: each switch learns of
    /// it by itself; the name of a clock, such as `"bfd"`, is a table with this `local`. `"never"`: routes are frozen. They
    /// lead over dead links for the whole run, over links that are dead from the start, too, and all packets there are lost.
    pub detection: Detection,
}

impl Default for RoutingConfig {
    fn default() -> Self {
        RoutingConfig { detection: Detection::AllAtOnce(detection::USUAL) }
    }
}

/// A part of the links: a share below 1, or a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Portion {
    /// A share above 0 and below 1.
    Share(f64),
    /// A number of links.
    Count(u64),
}

impl Serialize for Portion {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Portion::Share(share) => to.serialize_f64(*share),
            Portion::Count(count) => to.serialize_u64(*count),
        }
    }
}

impl<'de> Deserialize<'de> for Portion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl Visitor<'_> for ValueVisitor {
            type Value = Portion;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share above 0 and below 1 such as 0.01, or a whole number of links")
            }

            fn visit_f64<E: de::Error>(self, share: f64) -> Result<Portion, E> {
                match share > 0.0 && share < 1.0 {
                    true => Ok(Portion::Share(share)),
                    false => Err(E::invalid_value(de::Unexpected::Float(share), &self)),
                }
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Portion, E> {
                match u64::try_from(count) {
                    Ok(count) if count > 0 => Ok(Portion::Count(count)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(count), &self)),
                }
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Portion, E> {
                self.visit_i64(i64::try_from(count).unwrap_or(i64::MAX))
            }
        }

        from.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Portion {
    fn schema_name() -> Cow<'static, str> {
        "Portion".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 },
            { "type": "integer", "minimum": 1 },
        ] })
    }
}

/// Most times at which links fail or recover (our choice): every set of dead links has routes of its own.
const MOST_TURNS: usize = 1000;
/// Most failures of single links (our choice), about 50 bytes each.
const MOST_FAULTS: usize = 1 << 20;

/// Turns `[[failure]]` entries into changes of single links.
pub(crate) struct FailurePlanner<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) seed: u64,
    pub(crate) latest: Time,
}

impl FailurePlanner<'_> {
    /// The failures of all entries.
    pub(crate) fn plan(
        &self,
        list: &[Failure],
        routing: &RoutingConfig,
        memory: &mut MemoryBudget,
    ) -> Result<Failures, Finding> {
        let own = |clocks: BySwitch| {
            [("local", clocks.local.0), ("per-hop", clocks.per_hop), ("install", clocks.install)]
        };
        let times = match routing.detection {
            Detection::Never => Vec::new(),
            Detection::AllAtOnce(time) => vec![("", time)],
            Detection::BySwitch(clocks) => own(clocks).to_vec(),
        };
        if let Some((key, time)) = times.into_iter().find(|(_, time)| *time > self.latest) {
            let text = format!("expected at most {}, found {time}", self.latest);
            return Err(code::RANGE.at(key, text).within("routing.detection"));
        }
        let (mut faults, mut times, mut causes) = (Vec::new(), BTreeSet::new(), Vec::new());
        for (i, entry) in list.iter().enumerate() {
            let within = |error: Finding| error.within(&format!("failure.{i}"));
            let links = self.entry(i as u64, entry).map_err(within)?;
            let effects = usize::from(entry.rate.is_some() && entry.loss.is_some()) + 1;
            for link in links {
                let spans = self.spans(i as u64, entry, link);
                if spans.len() > MOST_TURNS {
                    let text = format!("expected at most {MOST_TURNS} flaps of a link, found more");
                    return Err(within(code::RANGE.at("flaps", text)));
                }
                if faults.len() + effects * spans.len() > MOST_FAULTS {
                    let text = format!("expected at most {MOST_FAULTS} failures of single links, found more");
                    return Err(within(code::RANGE.at("", text)));
                }
                if entry.is_down() {
                    times.extend(
                        spans.iter().flat_map(|span| [span.0, span.1]).filter(|at| *at < Time::NEVER),
                    );
                    if times.len() > MOST_TURNS {
                        let text =
                            format!("expected at most {MOST_TURNS} times of failure or recovery, found more");
                        let key = if entry.flaps.is_some() { "flaps" } else { "at" };
                        return Err(within(code::RANGE.at(key, text)));
                    }
                }
                let rate = entry.rate.map(|reduced| reduced.of(self.fabric.links()[link.index()].rate));
                if let Some(rate) = rate {
                    possible_rate("rate", rate).map_err(within)?;
                }
                let effects = [
                    (!entry.storm.is_empty()).then_some(Effect::Storm),
                    entry.is_down().then_some(Effect::Down),
                    rate.map(Effect::Slow),
                    entry.loss.map(|chance| Effect::Gray(chance.probability())),
                ];
                for (at, until) in spans {
                    if entry.is_down() || entry.loss.is_some() {
                        causes.push(Cause { link, gray: !entry.is_down(), at, entry: i as u32, until });
                    }
                    let fault = |effect| Fault { link, at, until, effect };
                    faults.extend(effects.into_iter().flatten().map(fault));
                }
            }
        }
        let fabric = self.fabric;
        let targets = (fabric.racks().len(), fabric.groups());
        let too_large = |e: FabricError| code::RANGE.at("failure", e.to_string());
        let (sets, detection) = match routing.detection {
            Detection::Never => (0, Time::NEVER),
            Detection::AllAtOnce(time) => (times.len(), time),
            Detection::BySwitch(clocks) => {
                if fabric.groups() > 0 {
                    let text = "a fabric of groups, such as a Dragonfly, changes all routes at once: routes of switches that know \
                                different links could deadlock; set a time";
                    return Err(code::CONFLICT.at("routing.detection", text));
                }
                let mut failures = Failures::without_routes(fabric, &faults);
                let Some(learned) = failures.learned(fabric, self.seed, clocks.clocks()) else {
                    let text = "too many switches learn of too many links; set a time, such as \"1ms\", for all switches";
                    return Err(code::RANGE.at("routing.detection", text));
                };
                memory.add_routes(learned.sets(), fabric.switch_count(), targets)?;
                failures.route_by(fabric, learned).map_err(too_large)?;
                return Ok(failures.caused_by(causes));
            }
        };
        memory.add_routes(sets, fabric.switch_count(), targets)?;
        Ok(Failures::new(fabric, &faults, detection).map_err(too_large)?.caused_by(causes))
    }

    /// When one direction of a link fails in an entry. Both directions of a link flap at once.
    fn spans(&self, number: u64, entry: &Failure, link: LinkId) -> Vec<(Time, Time)> {
        let until = entry.until.unwrap_or(Time::NEVER);
        let Some(flaps) = &entry.flaps else { return vec![(entry.at, until)] };
        let cable = link.min(self.fabric.reverse(link));
        let key = Key::new(self.seed, Purpose::Flap, (number << 32) | u64::from(cable.0));
        let spans = flaps.of_link(key, (entry.at, until), MOST_TURNS).into_iter();
        spans.map(|(at, until)| (at, if until > self.latest { Time::NEVER } else { until })).collect()
    }

    /// The directed links that fail in an entry.
    fn entry(&self, number: u64, entry: &Failure) -> Result<Vec<LinkId>, Finding> {
        match entry.down {
            Some(true) if !entry.is_down() => {
                let text = "set either `down`, or `rate` and `loss`; a link that is down has no rate";
                return Err(code::CONFLICT.at("down", text));
            }
            Some(false) if entry.is_down() => {
                let text = "no link fails; set `rate` to slow links down, or `loss` to let them lose packets";
                return Err(code::NEEDS.at("down", text));
            }
            _ => {}
        }
        if entry.at > self.latest {
            let text = format!("expected a failure before {}, found {}", self.latest, entry.at);
            return Err(code::RANGE.at("at", text));
        }
        if entry.until.is_some_and(|until| until <= entry.at) {
            let text = format!("the failure ends before it begins at {}", entry.at);
            return Err(code::RANGE.at("until", text));
        }
        if let Some(until) = entry.until.filter(|until| *until > self.latest) {
            let text = format!("expected a recovery before {}, found {until}", self.latest);
            return Err(code::RANGE.at("until", text));
        }
        if let Some(flaps) = &entry.flaps {
            flaps.check().map_err(|error| error.within("flaps"))?;
            if entry.until.is_none() {
                let text = "flaps end at a time; set `until`";
                return Err(code::NEEDS.at("flaps", text));
            }
        }
        if !entry.storm.is_empty() {
            return self.storming(entry);
        }
        let fabric = self.fabric;
        let mut cables = BTreeSet::new();
        for (i, ends) in entry.links.iter().enumerate() {
            self.between(ends, &mut cables).map_err(|error| error.within(&format!("links.{i}")))?;
        }
        if let Some(switch) = &entry.switch {
            let found = self.nodes(switch, "switch")?;
            if let Some(&host) = found.iter().find(|&&node| fabric.is_host(node)) {
                let text = format!("`{}` is a host; name its link in `links`", fabric.name(host));
                return Err(code::NO_NODE.at("switch", text));
            }
            for node in found {
                cables.extend(fabric.ports(node).iter().map(|l| fabric.link(l.from, l.port)));
            }
        }
        if entry.links.is_empty() && entry.switch.is_none() {
            if entry.random.is_none() {
                let mut error =
                    code::NEEDS.at("", "no link fails; set `links`, `switch`, `random` or `storm`");
                error.at_key = true;
                return Err(error);
            }
            let between = fabric.links().iter().filter(|l| !fabric.is_host(l.from) && !fabric.is_host(l.to));
            cables.extend(between.map(|l| fabric.link(l.from, l.port)));
        }
        // If the set has both directions of a link, the one with the smaller number stands for the link.
        let first = |link: &LinkId| !cables.contains(&fabric.reverse(*link)) || *link < fabric.reverse(*link);
        let mut chosen: Vec<LinkId> = cables.iter().copied().filter(first).collect();
        if let Some(portion) = entry.random {
            let count = match portion {
                Portion::Share(share) => ((chosen.len() as f64 * share).round() as u64).max(1),
                Portion::Count(count) if count > chosen.len() as u64 => {
                    let text = format!("expected at most {} links, found {count}", chosen.len());
                    return Err(code::RANGE.at("random", text));
                }
                Portion::Count(count) => count,
            };
            let key = Key::new(self.seed, Purpose::Failure, number);
            chosen.sort_by_key(|link| (key.draw(link.0.min(fabric.reverse(*link).0).into()), *link));
            chosen.truncate(count as usize);
        }
        match entry.one_way {
            true => Ok(chosen),
            false => Ok(chosen.into_iter().flat_map(|link| [link, fabric.reverse(link)]).collect()),
        }
    }

    /// The links by which the hosts of a storm send their pauses.
    fn storming(&self, entry: &Failure) -> Result<Vec<LinkId>, Finding> {
        let others = [
            ("links", !entry.links.is_empty()),
            ("switch", entry.switch.is_some()),
            ("random", entry.random.is_some()),
            ("one-way", entry.one_way),
            ("rate", entry.rate.is_some()),
            ("loss", entry.loss.is_some()),
            ("down", entry.down.is_some()),
            ("flaps", entry.flaps.is_some()),
        ];
        if let Some((key, _)) = others.into_iter().find(|(_, set)| *set) {
            let text = format!("a storm takes no link down; set `{key}` in a `[[failure]]` of its own");
            return Err(code::CONFLICT.at(key, text));
        }
        let (fabric, mut links) = (self.fabric, BTreeSet::new());
        for (i, name) in entry.storm.iter().enumerate() {
            let path = format!("storm.{i}");
            let one = endpoint(fabric, name);
            for node in self.nodes(name, &path)? {
                if !fabric.is_host(node) {
                    return Err(code::NO_NODE
                        .at(&path, format!("expected a host; `{}` is a switch", fabric.name(node))));
                }
                let own = fabric.ports(node).iter().map(|link| fabric.link(link.from, link.port));
                links.extend(own.filter(|link| one.is_none_or(|host| *link == LinkId(host.0))));
            }
        }
        Ok(links.into_iter().collect())
    }

    /// Adds the links from the nodes that match `from` to the nodes that match `to`.
    pub(crate) fn between(
        &self,
        [from, to]: &[String; 2],
        cables: &mut BTreeSet<LinkId>,
    ) -> Result<(), Finding> {
        let fabric = self.fabric;
        let (froms, tos) = (self.nodes(from, "0")?, self.nodes(to, "1")?);
        // The name of an endpoint, such as `s3g5`, stands for one port of its server.
        let ports = [endpoint(fabric, from), endpoint(fabric, to)];
        let is_of = |link: LinkId, [from, to]: [Option<HostId>; 2]| {
            from.is_none_or(|host| link == LinkId(host.0))
                && to.is_none_or(|host| fabric.reverse(link) == LinkId(host.0))
        };
        let before = cables.len();
        for &node in &froms {
            let links = fabric.ports(node).iter().filter(|link| tos.binary_search(&link.to).is_ok());
            let links = links.map(|link| fabric.link(link.from, link.port));
            cables.extend(links.filter(|link| is_of(*link, ports)));
        }
        if cables.len() > before {
            return Ok(());
        }
        // No new link; earlier entries of the list may contain the same links.
        let joined = |node: &NodeId| {
            let links = fabric.ports(*node).iter().filter(|l| tos.binary_search(&l.to).is_ok());
            links.map(|l| fabric.link(l.from, l.port)).any(|link| is_of(link, ports))
        };
        if froms.iter().any(joined) {
            return Ok(());
        }
        let mut hint = String::new();
        if let [node] = froms[..] {
            let neighbours = fabric.ports(node).iter().map(|link| fabric.name(link.to));
            if let Some(near) = nearest(to, neighbours) {
                hint = format!("; did you mean `{near}`?");
            }
        }
        Err(code::NO_NODE.at("1", format!("no link joins `{from}` and `{to}`{hint}")))
    }

    /// The nodes that match a name, in ascending order.
    fn nodes(&self, name: &str, path: &str) -> Result<Vec<NodeId>, Finding> {
        let fabric = self.fabric;
        let all = (0..fabric.nodes() as u32).map(NodeId);
        let found: Vec<NodeId> = match name.contains('*') {
            true => all.filter(|&node| fits(name, fabric.name(node))).collect(),
            false => Vec::new(),
        };
        match (found.is_empty(), endpoint(fabric, name)) {
            (true, Some(host)) => Ok(vec![fabric.node_of(host)]),
            (true, None) => Ok(vec![node(fabric, name, path)?]),
            (false, _) => Ok(found),
        }
    }
}

/// The endpoint of that name, if the name is not that of a node.
fn endpoint(fabric: &Fabric, name: &str) -> Option<HostId> {
    if fabric.find(name).is_some() { None } else { fabric.find_host(name) }
}

/// Whether a name fits a pattern in which `*` matches any characters.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checked, Source, check};

    fn laid(failures: &str) -> Checked {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 4\nspines = 4\nhosts-per-leaf = 2\n[[workload]]\npermutation = {{}}\n\
             {failures}"
        );
        check(&Source::new("f.toml", text), &[]).unwrap()
    }

    /// The links that fail, by name.
    fn failing(checked: &Checked) -> BTreeSet<String> {
        let fabric = &checked.plan.fabric;
        let name = |c: &model::failure::LinkChange| {
            let link = &fabric.links()[c.link.index()];
            format!("{} {}", fabric.name(link.from), fabric.name(link.to))
        };
        checked.plan.failures.changes().iter().map(name).collect()
    }

    #[test]
    fn links_are_named_by_their_ends_in_both_directions_or_one() {
        let seen = failing(&laid("[[failure]]\nlinks = [[\"leaf0\", \"spine1\"]]\nat = \"3us\""));
        assert_eq!(seen, ["leaf0 spine1", "spine1 leaf0"].map(String::from).into());
        let seen = failing(&laid("[[failure]]\nlinks = [[\"leaf*\", \"spine1\"]]\none-way = true"));
        assert_eq!(seen.len(), 4);
        assert!(seen.iter().all(|name| name.starts_with("leaf")));
        let seen = failing(&laid("[[failure]]\nlinks = [[\"leaf0\", \"spine1\"], [\"spine1\", \"leaf0\"]]"));
        assert_eq!(seen.len(), 2, "a link named from both ends is one link");
    }

    #[test]
    fn an_endpoint_stands_for_its_own_port() {
        let text = "[server]\ngpus = 8\nnics = 8\n[topology.rails]\nservers = 4\nspines = 1\n[[workload]]\n\
                    collective = { kind = \"all-reduce\", bytes = \"1MB\" }\n";
        let failing = |links: &str| {
            let text = format!("{text}[[failure]]\nlinks = [{links}]\none-way = true\nrate = 0.5\n");
            check(&Source::new("f.toml", text), &[]).map(|checked| {
                let fabric = &checked.plan.fabric;
                let changes = checked.plan.failures.changes().iter();
                changes.map(|c| c.link).filter(|l| fabric.is_host(fabric.links()[l.index()].from)).count()
            })
        };
        assert_eq!(failing("[\"s3g5\", \"*\"]").unwrap(), 1);
        assert_eq!(failing("[\"s3\", \"*\"]").unwrap(), 8);
        assert!(failing("[\"s3g9\", \"*\"]").unwrap_err().text.contains("no node `s3g9`"));
    }

    #[test]
    fn a_switch_fails_with_all_its_links() {
        let checked = laid("[[failure]]\nswitch = \"spine2\"\nat = \"1us\"\nuntil = \"2us\"");
        let seen = failing(&checked);
        assert_eq!(seen.len(), 8);
        assert!(seen.iter().all(|name| name.contains("spine2")));
        let turns: Vec<u64> =
            checked.plan.failures.route_changes().iter().map(|t| t.at.ps() / 1_000_000).collect();
        assert_eq!(turns, [1001, 1002], "routing reacts a millisecond later");
    }

    #[test]
    fn frozen_routes_are_a_word_that_is_written_back_and_cut_off_only_hosts_without_a_path() {
        let of = |failures: &str| laid(&format!("{failures}\n[routing]\ndetection = \"never\""));
        let spine = of("[[failure]]\nswitch = \"spine2\"");
        assert!(spine.plan.failures.route_changes().is_empty());
        assert!(spine.to_toml().contains("detection = \"never\""), "{}", spine.to_toml());
        assert_eq!(spine.warnings(), [""; 0]);
        let host = of("[[failure]]\nlinks = [[\"host0\", \"leaf0\"]]");
        assert!(host.warnings().iter().any(|w| w.contains("cut off")), "{:?}", host.warnings());
    }

    #[test]
    fn a_share_of_links_is_drawn_by_the_seed() {
        // A fifth of 16 links between switches, both directions.
        let text = "[[failure]]\nrandom = 0.2\nrate = 0.1\n";
        let one = laid(text);
        assert_eq!(failing(&one).len(), 6);
        assert!(failing(&one).iter().all(|name| !name.contains("host")));
        assert_eq!(failing(&one), failing(&laid(text)));
        let other = failing(&one.with_seed(2).unwrap());
        assert_ne!(failing(&one), other);
        let rates = one.plan.failures.changes().iter().map(|c| c.rate.unwrap().bps());
        let usual = one.plan.fabric.links()[0].rate.bps();
        assert!(rates.into_iter().all(|rate| rate == usual / 10));
        let two =
            failing(&laid("[[failure]]\nrandom = 2\nlinks = [[\"spine*\", \"leaf1\"]]\none-way = true"));
        assert_eq!(two.len(), 2);
        assert!(two.iter().all(|name| name.ends_with("leaf1")));
    }

    #[test]
    fn a_gray_link_loses_packets_and_keeps_its_rate_and_its_routes() {
        let gray = laid("[[failure]]\nlinks = [[\"leaf0\", \"spine1\"]]\nloss = 0.01\nat = \"5us\"");
        let failures = &gray.plan.failures;
        assert!(failures.changes().is_empty() && failures.route_changes().is_empty());
        let seen: Vec<_> = failures.losses().iter().map(|c| (c.at, c.loss)).collect();
        assert_eq!(seen, [(Time::from_us(5), model::Probability::new(0.01)); 2]);
        let both = laid("[[failure]]\nswitch = \"spine1\"\nloss = 0.01\nrate = 0.5").plan.failures;
        assert_eq!((both.changes().len(), both.losses().len()), (8, 8));
    }

    #[test]
    fn a_comparison_replaces_the_scheme_of_all_classes() {
        let builtin = crate::builtin::find("themis-failed-spine").unwrap();
        let checked = check(&Source::new(builtin.name, builtin.text), &[]).unwrap();
        let swapped = checked.with_scheme(None, "ar").unwrap().scenario;
        assert!(
            ["before", "hit", "during", "after"].iter().all(|class| swapped.scheme_of(class).name() == "ar")
        );
        let one = checked.with_scheme(Some("hit"), "ar").unwrap().scenario;
        assert_eq!((one.scheme_of("hit").name(), one.scheme_of("after").name()), ("ar", "themis"));
    }

    #[test]
    fn a_star_matches_any_characters() {
        for (pattern, name, fit) in [
            ("leaf*", "leaf0", true),
            ("leaf*", "spine0", false),
            ("*", "anything", true),
            ("pod*-edge*", "pod1-edge0", true),
            ("pod*-edge*", "pod1-agg0", false),
            ("*-edge1", "pod0-edge1", true),
            ("*-edge1", "pod0-edge12", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }
}
