//! Groups of ranks, by a rule or as lists of ranks.

use super::ranks::Ranks;
use finding::{Finding, code, suggestion};
use schemars::JsonSchema;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

/// Groups of ranks.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum RankGroups {
    /// Groups by a rule.
    Rule(Rule),
    /// Lists of ranks.
    List(Vec<Vec<u32>>),
}

/// A rule for groups of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Rule {
    /// All ranks are one group.
    All,
    /// The ranks of a server.
    Server,
    /// The ranks with the same number in their servers.
    Rail,
    /// `group-size` consecutive ranks.
    Contiguous,
}

const RULES: [(&str, Rule); 4] =
    [("all", Rule::All), ("server", Rule::Server), ("rail", Rule::Rail), ("contiguous", Rule::Contiguous)];

impl Default for RankGroups {
    fn default() -> Self {
        RankGroups::Rule(Rule::All)
    }
}

impl Serialize for RankGroups {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RankGroups::Rule(rule) => {
                let name = RULES.iter().find(|(_, r)| r == rule).map_or("", |(name, _)| name);
                serializer.serialize_str(name)
            }
            RankGroups::List(list) => list.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RankGroups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = RankGroups;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"all\", \"server\", \"rail\", \"contiguous\" or a list of lists of ranks")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RankGroups, E> {
                let rule = RULES.iter().find(|(name, _)| *name == text);
                rule.map(|(_, rule)| RankGroups::Rule(*rule)).ok_or_else(|| {
                    let hint = suggestion(text, &RULES.map(|(name, _)| name));
                    E::custom(format!("unknown rule for groups \"{text}\"; {hint}"))
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<RankGroups, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(RankGroups::List)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl RankGroups {
    /// The ranks of every group, in ascending order; each group has at least two.
    pub(crate) fn resolve(&self, size: Option<usize>, ranks: &Ranks) -> Result<Vec<Vec<u32>>, Finding> {
        let count = ranks.count() as u32;
        if size.is_some() && *self != RankGroups::Rule(Rule::Contiguous) {
            return Err(code::NEEDS.at("group-size", "`group-size` needs groups = \"contiguous\""));
        }
        let by = |key: &dyn Fn(u32) -> usize, groups: usize| {
            let mut all = vec![Vec::new(); groups];
            (0..count).for_each(|rank| all[key(rank)].push(rank));
            all
        };
        let each = ranks.per_server();
        let groups: Vec<Vec<u32>> = match self {
            RankGroups::Rule(Rule::All) => vec![(0..count).collect()],
            RankGroups::Rule(Rule::Server) => {
                by(&|rank| rank as usize / each, count.div_ceil(each as u32) as usize)
            }
            RankGroups::Rule(Rule::Rail) => by(&|rank| rank as usize % each, each),
            RankGroups::Rule(Rule::Contiguous) => {
                let size = size.filter(|&size| size >= 2 && size <= count as usize).ok_or_else(|| {
                    let found = size.map_or(String::new(), |size| format!(", found {size}"));
                    let text = format!("\"contiguous\" needs a `group-size` of 2 to {count} ranks{found}");
                    code::RANGE.at(if size.is_some() { "group-size" } else { "groups" }, text)
                })?;
                (0..count).collect::<Vec<_>>().chunks_exact(size).map(<[u32]>::to_vec).collect()
            }
            RankGroups::List(list) => {
                let mut list = list.clone();
                for (g, group) in list.iter_mut().enumerate() {
                    if let Some(i) = group.iter().position(|&rank| rank >= count) {
                        let text = format!("there are ranks 0 to {}, found {}", count - 1, group[i]);
                        return Err(code::NO_NODE.at(&format!("groups.{g}.{i}"), text));
                    }
                    let given = group.len();
                    group.sort_unstable();
                    group.dedup();
                    if group.len() < given {
                        return Err(code::TWICE.at(&format!("groups.{g}"), "a rank is in this group twice"));
                    }
                }
                list
            }
        };
        if groups.is_empty() {
            return Err(code::MISSING.at("groups", "expected at least 1 group, found none"));
        }
        if let Some(i) = groups.iter().position(|group| group.len() < 2) {
            let text = format!("expected at least 2 ranks in group {i}, found {}", groups[i].len());
            return Err(code::RANGE.at("groups", text));
        }
        if groups.len() > usize::from(u16::MAX) {
            return Err(
                code::RANGE.at("groups", format!("expected at most 65535 groups, found {}", groups.len()))
            );
        }
        Ok(groups)
    }
}
