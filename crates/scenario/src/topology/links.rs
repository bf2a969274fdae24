//! Any fabric: a list of hosts, switches and links.

use super::{Ground, Layout};
use crate::footprint::Size;
use crate::values::Chance;
use finding::{Finding, code, nearest};
use model::{Fabric, FabricBuilder, FabricError, HostId, NodeId, Rate, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Any fabric, as a list. A link may join two hosts without a switch. The ports of a node are numbered in the order of its
/// links. A host with several links has several endpoints: port 1 of host `h3` is the endpoint `h3p1` of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Links {
    /// The hosts: their names, or their number, which names them `host0`, `host1`, and so on. No default.
    pub hosts: NamesOrCount,
    /// The switches: names, or `{ name, role }` for switches with a role of their own. Default: none.
    #[serde(default)]
    pub switches: Vec<Switch>,
    /// Rate of links without a rate of their own. Default 100 Gb/s (our choice).
    #[serde(default = "rate")]
    pub rate: Rate,
    /// Propagation delay of links without a delay of their own. Default 1 us (our choice).
    #[serde(default = "delay")]
    pub delay: Time,
    /// The links: `{ from, to, rate, delay, loss }`, or in short `["h0", "s0"]`, `["h0", "s0", "100Gbps"]`,
    /// `["h0", "s0", "100Gbps", "1us"]`. No default.
    pub links: Vec<Cable>,
}

fn rate() -> Rate {
    Rate::from_gbps(100)
}

fn delay() -> Time {
    Time::from_us(1)
}

/// Nodes by their names, or by their number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum NamesOrCount {
    /// The number of nodes.
    Count(usize),
    /// The names of the nodes.
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for NamesOrCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = NamesOrCount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of hosts or a list of their names")
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<NamesOrCount, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(n), &self);
                usize::try_from(n).map(NamesOrCount::Count).map_err(wrong)
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<NamesOrCount, E> {
                Ok(NamesOrCount::Count(usize::try_from(n).unwrap_or(usize::MAX)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<NamesOrCount, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(NamesOrCount::List)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

/// A switch of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// Name of the switch.
    pub name: String,
    /// Role of the switch, for `[switch-role.ROLE]`.
    pub role: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchTable {
    name: String,
    #[serde(default = "switch_role")]
    role: String,
}

fn switch_role() -> String {
    "switch".into()
}

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Switch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a switch's name or { name, role }")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Switch, E> {
                Ok(Switch { name: name.to_owned(), role: switch_role() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Switch, A::Error> {
                let SwitchTable { name, role } = SwitchTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Switch { name, role })
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Switch {
    fn schema_name() -> Cow<'static, str> {
        "Switch".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string" },
            { "type": "object", "additionalProperties": false, "required": ["name"],
              "properties": { "name": { "type": "string" }, "role": { "type": "string" } } },
        ] })
    }
}

/// A link with equal settings in both directions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cable {
    /// Name of the node at one end.
    pub from: String,
    /// Name of the node at the other end.
    pub to: String,
    /// Transmission rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// Probability that the link loses a packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Chance>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CableTable {
    from: String,
    to: String,
    rate: Option<Rate>,
    delay: Option<Time>,
    loss: Option<Chance>,
}

impl<'de> Deserialize<'de> for Cable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Cable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a link: [from, to, rate, delay] or { from, to, rate, delay, loss }")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Cable, A::Error> {
                let short = || de::Error::custom("expected two ends of a link: [from, to, rate, delay]");
                let from = seq.next_element()?.ok_or_else(short)?;
                let to = seq.next_element()?.ok_or_else(short)?;
                let (rate, delay) = (seq.next_element()?, seq.next_element()?);
                if seq.next_element::<de::IgnoredAny>()?.is_some() {
                    return Err(de::Error::custom(
                        "expected at most four values of a link: [from, to, rate, delay]",
                    ));
                }
                Ok(Cable { from, to, rate, delay, loss: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Cable, A::Error> {
                let CableTable { from, to, rate, delay, loss } =
                    CableTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Cable { from, to, rate, delay, loss })
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Cable {
    fn schema_name() -> Cow<'static, str> {
        "Cable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (rate, delay, loss) = (
            generator.subschema_for::<Rate>(),
            generator.subschema_for::<Time>(),
            generator.subschema_for::<Chance>(),
        );
        json_schema!({ "anyOf": [
            { "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 4 },
            { "type": "object", "additionalProperties": false, "required": ["from", "to"],
              "properties": { "from": { "type": "string" }, "to": { "type": "string" },
                              "rate": rate, "delay": delay, "loss": loss } },
        ] })
    }
}

/// Checks the rate of a link. At the least rate the largest frame takes less than 2^32 ps.
pub(crate) fn possible_rate(path: &str, rate: Rate) -> Result<(), Finding> {
    if rate.bps() < 100_000_000 {
        return Err(code::RANGE.at(path, format!("expected a rate of at least 100Mbps, found {rate}")));
    }
    if rate > Rate::from_gbps(100_000) {
        return Err(code::RANGE.at(path, format!("expected a rate of at most 100Tbps, found {rate}")));
    }
    Ok(())
}

/// Checks the propagation delay of a link.
pub(super) fn possible_delay(path: &str, delay: Time) -> Result<(), Finding> {
    if delay == Time::ZERO {
        return Err(code::RANGE.at(path, "a link needs a delay above 0"));
    }
    if delay > Time::from_ms(10_000) {
        return Err(code::RANGE.at(path, format!("expected a delay of at most 10s, found {delay}")));
    }
    Ok(())
}

impl Links {
    fn host_count(&self) -> usize {
        match &self.hosts {
            NamesOrCount::Count(n) => *n,
            NamesOrCount::List(names) => names.len(),
        }
    }
}

impl Layout for Links {
    fn size(&self, _: &Ground<'_>) -> Result<Size, Finding> {
        let hosts = self.host_count();
        if hosts == 0 || hosts > HostId::MOST {
            return Err(
                code::RANGE.at("hosts", format!("expected 1 to {} hosts, found {hosts}", HostId::MOST))
            );
        }
        let switches = self.switches.len();
        Ok(Size { hosts, switches, links: self.links.len(), racks: hosts.min(switches), key: "links" })
    }

    fn lay(&self, ground: &Ground<'_>) -> Result<Fabric, Finding> {
        possible_rate("rate", self.rate)?;
        possible_delay("delay", self.delay)?;
        let mut builder = FabricBuilder::new();
        let mut nodes: BTreeMap<String, NodeId> = BTreeMap::new();
        let mut add = |name: &str, node: NodeId, path: String| match nodes.insert(name.to_owned(), node) {
            Some(_) => Err(code::TWICE.at(&path, format!("another node is named `{name}`, too"))),
            None => Ok(()),
        };
        for i in 0..self.host_count() {
            let (name, path) = match &self.hosts {
                NamesOrCount::Count(_) => (format!("host{i}"), "hosts".to_owned()),
                NamesOrCount::List(names) => (names[i].clone(), format!("hosts.{i}")),
            };
            let node = builder.host(&*name);
            add(&name, node, path)?;
        }
        for (i, switch) in self.switches.iter().enumerate() {
            let node = builder.switch(&*switch.name, &switch.role);
            add(&switch.name, node, format!("switches.{i}"))?;
        }
        for (i, cable) in self.links.iter().enumerate() {
            // A path ends in a key even for the short form, whose error then points at the whole link.
            let at = |key: &str| format!("links.{i}.{key}");
            let end = |name: &str, key: &str| {
                nodes.get(name).copied().ok_or_else(|| {
                    let near = nearest(name, nodes.keys().map(String::as_str));
                    let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                    code::NO_NODE.at(&at(key), format!("there is no node `{name}`{hint}"))
                })
            };
            let (from, to) = (end(&cable.from, "from")?, end(&cable.to, "to")?);
            if from == to {
                return Err(
                    code::TO_ITSELF.at(&at("to"), format!("the link connects `{}` with itself", cable.to))
                );
            }
            if let Some(rate) = cable.rate {
                possible_rate(&at("rate"), rate)?;
            }
            if let Some(delay) = cable.delay {
                possible_delay(&at("delay"), delay)?;
            }
            let loss = cable.loss.map_or(ground.loss, Chance::probability);
            builder.connect(
                from,
                to,
                cable.rate.unwrap_or(self.rate),
                cable.delay.unwrap_or(self.delay),
                loss,
            );
        }
        builder.build().map_err(|e| match &e {
            FabricError::HostWithoutLink(name) => match &self.hosts {
                NamesOrCount::List(names) => {
                    let i = names.iter().position(|n| n == name).unwrap_or(0);
                    code::RANGE.at(&format!("hosts.{i}"), e.to_string())
                }
                NamesOrCount::Count(_) => code::RANGE.at("hosts", e.to_string()),
            },
            _ => code::RANGE.at("links", e.to_string()),
        })
    }
}
