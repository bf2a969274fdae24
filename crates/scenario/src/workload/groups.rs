//! Groups (communicators): the hosts that take part in a collective together.

use super::draft::Draft;
use super::host_sample;
use finding::{Finding, code, suggestion};
use model::HostId;
use schemars::JsonSchema;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;

/// Groups of hosts, by a rule or by name.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum Groups {
    /// Groups by a rule.
    Rule(Rule),
    /// Groups by name: a list of lists of hosts.
    List(Vec<Vec<String>>),
}

/// A rule for groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Rule {
    /// Group g has the g-th host of every leaf.
    OneHostPerLeaf,
    /// `group-size` consecutive hosts.
    Contiguous,
    /// `group-size` consecutive hosts of a random order of all hosts.
    Drawn,
    /// All hosts are one group.
    All,
}

const RULES: [(&str, Rule); 4] = [
    ("one-host-per-leaf", Rule::OneHostPerLeaf),
    ("contiguous", Rule::Contiguous),
    ("drawn", Rule::Drawn),
    ("all", Rule::All),
];

impl Default for Groups {
    fn default() -> Self {
        Groups::Rule(Rule::OneHostPerLeaf)
    }
}

impl Serialize for Groups {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Groups::Rule(rule) => {
                let name = RULES.iter().find(|(_, r)| r == rule).map_or("", |(name, _)| name);
                serializer.serialize_str(name)
            }
            Groups::List(list) => list.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Groups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Groups;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"one-host-per-leaf\", \"contiguous\", \"drawn\", \"all\" or a list of lists of host names")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Groups, E> {
                let rule = RULES.iter().find(|(name, _)| *name == text);
                rule.map(|(_, rule)| Groups::Rule(*rule)).ok_or_else(|| {
                    let hint = suggestion(text, &RULES.map(|(name, _)| name));
                    E::custom(format!("unknown rule for groups \"{text}\"; {hint}"))
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Groups, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(Groups::List)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

/// The keys of a collective that define its groups.
pub(crate) struct Members<'a> {
    pub(crate) groups: &'a Groups,
    pub(crate) size: Option<usize>,
    pub(crate) limit: Option<usize>,
}

impl Members<'_> {
    /// The key that determines the size of groups.
    pub(crate) fn key(&self) -> &'static str {
        if self.size.is_some() { "group-size" } else { "groups" }
    }

    /// The hosts of every group; each group has at least two.
    pub(crate) fn resolve(&self, draft: &Draft<'_>) -> Result<Vec<Vec<HostId>>, Finding> {
        let hosts = draft.fabric.hosts();
        let in_rows = matches!(self.groups, Groups::Rule(Rule::Contiguous | Rule::Drawn));
        if self.size.is_some() && !in_rows {
            return Err(
                code::NEEDS.at("group-size", "`group-size` needs groups = \"contiguous\" or \"drawn\"")
            );
        }
        let mut groups: Vec<Vec<HostId>> = match self.groups {
            Groups::Rule(Rule::All) => vec![(0..hosts).map(|h| HostId(h as u32)).collect()],
            Groups::Rule(rule @ (Rule::Contiguous | Rule::Drawn)) => {
                let size = self.size.ok_or_else(|| {
                    code::NEEDS.at(
                        "groups",
                        "\"contiguous\" and \"drawn\" need a `group-size`, such as group-size = 8",
                    )
                })?;
                if size < 2 {
                    let text = format!("expected a group of at least 2 hosts, found {size}");
                    return Err(code::RANGE.at("group-size", text));
                }
                if size > hosts {
                    let text =
                        format!("expected a group of at most {hosts} hosts, the whole fabric; found {size}");
                    return Err(code::FIT.at("group-size", text));
                }
                let row: Vec<HostId> = match rule {
                    Rule::Drawn => host_sample::order(draft),
                    _ => (0..hosts).map(|h| HostId(h as u32)).collect(),
                };
                row.chunks_exact(size).map(<[HostId]>::to_vec).collect()
            }
            Groups::Rule(Rule::OneHostPerLeaf) => one_per_leaf(draft),
            Groups::List(list) => named(list, draft)?,
        };
        if let Some(limit) = self.limit {
            if limit == 0 || limit > groups.len() {
                let text = format!("expected 1 to {} groups, found {limit}", groups.len());
                return Err(code::RANGE.at("group-limit", text));
            }
            groups.truncate(limit);
        }
        if groups.is_empty() {
            return Err(code::MISSING.at("groups", "expected at least 1 group, found none"));
        }
        if let Some(i) = groups.iter().position(|g| g.len() < 2) {
            let text = format!("expected at least 2 hosts in group {i}, found {}", groups[i].len());
            let path =
                if matches!(self.groups, Groups::List(_)) { format!("groups.{i}") } else { "groups".into() };
            return Err(code::RANGE.at(&path, text));
        }
        if groups.len() > usize::from(u16::MAX) {
            return Err(
                code::RANGE.at("groups", format!("expected at most 65535 groups, found {}", groups.len()))
            );
        }
        Ok(groups)
    }
}

fn one_per_leaf(draft: &Draft<'_>) -> Vec<Vec<HostId>> {
    let fabric = draft.fabric;
    let mut racks: Vec<Vec<HostId>> = vec![Vec::new(); fabric.nodes()];
    for h in 0..fabric.hosts() {
        let host = HostId(h as u32);
        racks[fabric.attachment(host).index()].push(host);
    }
    racks.retain(|r| !r.is_empty());
    racks.sort();
    // A group has one host of every leaf, so the leaf with the fewest hosts determines the number of groups.
    let whole = racks.iter().map(Vec::len).min().unwrap_or(0);
    (0..whole).map(|g| racks.iter().map(|rack| rack[g]).collect()).collect()
}

fn named(list: &[Vec<String>], draft: &Draft<'_>) -> Result<Vec<Vec<HostId>>, Finding> {
    let mut groups = Vec::new();
    for (g, names) in list.iter().enumerate() {
        let mut seen = BTreeSet::new();
        let mut group = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let path = format!("groups.{g}.{i}");
            let host = draft.host(name, &path)?;
            if !seen.insert(host) {
                return Err(code::TWICE.at(&path, format!("the host `{name}` is in this group twice")));
            }
            group.push(host);
        }
        groups.push(group);
    }
    Ok(groups)
}
