//! `switch.classes`: the priority classes of every port, by name or as a table.

use crate::switch::{CutConfig, EcnConfig, PfcConfig, RoleConfig};
use crate::values::{Share, Switched};
use finding::{Finding, code, suggestion};
use model::packet::Kinds;
use model::plan::{Class, Service};
use model::{Bytes, Kind, Wire};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde::{Deserialize as DeriveDeserialize, Serialize as DeriveSerialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Priority classes of a port: a name, or an array of one to four classes.
#[derive(Clone, Debug, PartialEq)]
pub enum Classes {
    /// CNPs before all other control packets before data.
    Strict,
    /// One queue for all packets.
    One,
    /// CNPs before all other packets, which share one queue.
    CnpFirst,
    /// The classes, from first to last.
    Table(Vec<PortClass>),
}

/// One class of a port: a queue.
#[derive(Clone, Debug, Default, PartialEq, DeriveSerialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PortClass {
    /// Kinds of packets in the class: `"data"`, `"ack"`, `"nack"`, `"cnp"`, `"signal"` (between the switches of a scheme),
    /// `"trimmed"` (data that a switch has cut), `"control"` (from end to end), `"probe"` (of a sender that infers losses). Kinds
    /// that no class lists wait with data.
    pub kinds: Vec<PacketKind>,
    /// Traffic classes (`[class.NAME]`, `"foreground"`, `"background"`) whose packets alone wait in the class, such as
    /// `["legacy"]`; packets of these kinds of all other flows need a class without `of`. A class with `of` is paused by itself.
    /// Default: packets of all flows wait in the class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// Weight of the class. The classes with a weight share the time that the classes without a weight leave, in proportion
    /// to their weights, by deficit round robin in bytes. Default: none, and the class leaves before all classes below it
    /// and before all classes with a weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Longest queue of the class at one port of a switch. Default: no limit but that of the buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Bytes>,
    /// Whether the class is charged to the buffer and paused. Default true for the class of data, else false (our choice).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged: Option<bool>,
    /// Whether data of the class is marked when its queue is long. Default true for the class of data, else false (our
    /// choice).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<bool>,
    /// With `of`, priority flow control of the class. `"on"` puts `queue-cap`, `queue-cap-to-hosts`, `queue-cap-at-rate` and `cut` of
    /// the switches aside. Default: `pfc` of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pfc: Option<Switched<PfcConfig>>,
    /// With `of` and without PFC, largest share of the free buffer that one queue of the class may hold, in place of the
    /// switch's `drop-alpha` and `queue-cap`s. Default: the limits of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_alpha: Option<Share>,
    /// With `of` and without PFC, cutting of the class's data. Default: `cut` of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Switched<CutConfig>>,
    /// With `of`, marking of the class's data by the length of its queue. Default: `ecn` of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Switched<EcnConfig>>,
}

impl PortClass {
    /// The keys that need `of`, with whether they are set.
    fn own_keys(&self) -> [(&'static str, bool); 4] {
        let Self { pfc, drop_alpha, cut, ecn, .. } = self;
        [
            ("pfc", pfc.is_some()),
            ("drop-alpha", drop_alpha.is_some()),
            ("cut", cut.is_some()),
            ("ecn", ecn.is_some()),
        ]
    }

    /// The class's own settings of switches, in the form of a role's.
    pub(crate) fn own(&self) -> RoleConfig {
        RoleConfig {
            pfc: self.pfc.clone(),
            drop_alpha: self.drop_alpha,
            cut: self.cut.clone(),
            ecn: self.ecn.clone(),
            ..RoleConfig::default()
        }
    }
}

/// A kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeriveSerialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacketKind {
    /// RDMA Write payload.
    Data,
    /// Positive acknowledgement.
    Ack,
    /// Negative acknowledgement.
    Nack,
    /// Congestion notification packet.
    Cnp,
    /// Message between the switches of a scheme.
    Signal,
    /// Headers of data that a switch has cut.
    Trimmed,
    /// Control message from end to end.
    Control,
    /// Probe of a sender that infers losses.
    Probe,
}

impl From<PacketKind> for Kind {
    fn from(kind: PacketKind) -> Self {
        match kind {
            PacketKind::Data => Kind::Data,
            PacketKind::Ack => Kind::Ack,
            PacketKind::Nack => Kind::Nack,
            PacketKind::Cnp => Kind::Cnp,
            PacketKind::Signal => Kind::Signal,
            PacketKind::Trimmed => Kind::Trimmed,
            PacketKind::Control => Kind::Control,
            PacketKind::Probe => Kind::Probe,
        }
    }
}

impl Classes {
    const NAMES: [&str; 3] = ["strict", "one", "cnp-first"];

    /// The classes of a plan, and for each of its traffic classes, `flows`, the class of each kind of packets. The latter is
    /// empty if no class belongs to some flows alone. Some senders may probe (`probes`); without them, the class of probes matters
    /// to no packet, and is that of control messages, for the engine is faster then.
    pub(crate) fn plan(
        &self,
        wire: &Wire,
        flows: &[&str],
        probes: bool,
    ) -> Result<(model::plan::Classes, Rows), Finding> {
        let preset = |classes: model::plan::Classes| match probes {
            true => Ok((classes.beside_data(Kind::Probe), Rows::new())),
            false => Ok((classes, Rows::new())),
        };
        match self {
            Classes::Strict => preset(model::plan::Classes::STRICT),
            Classes::One => preset(model::plan::Classes::ONE),
            Classes::CnpFirst => preset(model::plan::Classes::CNP_FIRST),
            Classes::Table(table) => {
                check(table, wire, flows)?;
                let listed = table.iter().any(|class| class.kinds.contains(&PacketKind::Probe));
                let with = if probes { Kind::Data } else { Kind::Control };
                let probes_with = if listed { Kind::Probe } else { with };
                let classes = planned(table, probes_with);
                Ok((classes, rows(table, &classes, flows, probes_with)))
            }
        }
    }

    /// The classes that belong to some flows alone, with their numbers in the table.
    pub(crate) fn own(&self) -> impl Iterator<Item = (usize, &PortClass)> {
        let table = match self {
            Classes::Table(table) => &table[..],
            _ => &[],
        };
        table.iter().enumerate().filter(|(_, class)| !class.of.is_empty())
    }
}

/// By traffic class: the number of the class of each kind of packets.
type Rows = Vec<[u8; Kind::ALL.len()]>;

fn check(table: &[PortClass], wire: &Wire, flows: &[&str]) -> Result<(), Finding> {
    let most = model::plan::Classes::MOST;
    if table.len() > most {
        return Err(code::RANGE
            .at("switch.classes", format!("expected at most {most} classes, found {}", table.len())));
    }
    let mut listed: BTreeSet<(Option<&str>, usize)> = BTreeSet::new();
    for (i, class) in table.iter().enumerate() {
        let wrong = |key: &str, text: String| Err(code::RANGE.at(&format!("switch.classes.{i}.{key}"), text));
        for (n, name) in class.of.iter().enumerate() {
            if !flows.contains(&name.as_str()) {
                let text = format!("there is no traffic class `{name}`; {}", suggestion(name, flows));
                return wrong(&format!("of.{n}"), text);
            }
        }
        let of: Vec<Option<&str>> = match class.of.is_empty() {
            true => vec![None],
            false => class.of.iter().map(|name| Some(name.as_str())).collect(),
        };
        for (k, kind) in class.kinds.iter().map(|kind| Kind::from(*kind)).enumerate() {
            if kind == Kind::Signal && !class.of.is_empty() {
                return wrong(
                    &format!("kinds.{k}"),
                    "signals of a scheme belong to no traffic class".to_owned(),
                );
            }
            for name in &of {
                if !listed.insert((*name, kind as usize)) {
                    let text = match name {
                        None => {
                            "a class has this kind already; with `of` a class takes it for some flows alone"
                                .to_owned()
                        }
                        Some(name) => format!("a class has this kind of `{name}` already"),
                    };
                    return wrong(&format!("kinds.{k}"), text);
                }
            }
        }
        if class.weight.is_some_and(|weight| !(1..=Service::MOST_WEIGHT).contains(&weight)) {
            return wrong("weight", format!("expected a weight from 1 to {}", Service::MOST_WEIGHT));
        }
        let data = class.kinds.contains(&PacketKind::Data);
        if let Some(cap) = class.cap.filter(|cap| data && cap.get() < u64::from(wire.max_frame())) {
            return wrong("cap", format!("a cap of {cap} cannot hold one frame of {} B", wire.max_frame()));
        }
        if let Some((key, _)) = class.own_keys().into_iter().find(|(_, set)| *set) {
            if class.of.is_empty() {
                let text = format!("this key needs `of`; `switch.{key}` is for all other flows");
                return wrong(key, text);
            }
            if !data {
                return wrong(key, "this key needs the kind \"data\" in its class".to_owned());
            }
        }
    }
    if !listed.contains(&(None, Kind::Data as usize)) {
        let text = match table.iter().any(|class| class.kinds.contains(&PacketKind::Data)) {
            true => "no class without `of` has the kind \"data\"",
            false => "no class has the kind \"data\"",
        };
        return Err(code::MISSING.at("switch.classes", text));
    }
    Ok(())
}

/// The classes of a table; probes wait where packets of another kind do.
fn planned(table: &[PortClass], probes_with: Kind) -> model::plan::Classes {
    let kinds = |class: &PortClass| {
        let kinds =
            class.kinds.iter().fold(Kinds::of(&[]), |all, kind| all.and(Kinds::of(&[(*kind).into()])));
        if kinds.has(probes_with) { kinds.and(Kinds::of(&[Kind::Probe])) } else { kinds }
    };
    let common = table.iter().filter(|class| class.of.is_empty());
    let listed = common.fold(Kinds::of(&[]), |all, class| all.and(kinds(class)));
    let mut groups = 0;
    let classes = table.iter().map(|class| {
        let mut kinds = kinds(class);
        let (data, own) = (kinds.has(Kind::Data), !class.of.is_empty());
        if data && !own {
            kinds = kinds.and(listed.others());
        }
        groups += u8::from(own);
        Class {
            kinds,
            group: if own { groups } else { 0 },
            service: class.weight.map_or(Service::Strict, Service::Weighted),
            cap: class.cap,
            charged: class.charged.unwrap_or(data),
            marked: class.marked.unwrap_or(data),
        }
    });
    model::plan::Classes::new(&classes.collect::<Vec<_>>())
}

fn rows(table: &[PortClass], classes: &model::plan::Classes, flows: &[&str], probes_with: Kind) -> Rows {
    if table.iter().all(|class| class.of.is_empty()) {
        return Rows::new();
    }
    let class_of = |name: &str, kind: Kind| {
        let listed = if kind == Kind::Probe { probes_with } else { kind };
        let has = |class: &PortClass| {
            class.of.iter().any(|of| of == name) && class.kinds.iter().any(|own| Kind::from(*own) == listed)
        };
        table.iter().position(has).unwrap_or_else(|| classes.of(kind)) as u8
    };
    flows.iter().map(|name| Kind::ALL.map(|kind| class_of(name, kind))).collect()
}

impl Serialize for Classes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Classes::Strict => serializer.serialize_str("strict"),
            Classes::One => serializer.serialize_str("one"),
            Classes::CnpFirst => serializer.serialize_str("cnp-first"),
            Classes::Table(table) => table.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Classes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Classes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"strict\", \"one\", \"cnp-first\" or an array of classes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Classes, E> {
                match text {
                    "strict" => Ok(Classes::Strict),
                    "one" => Ok(Classes::One),
                    "cnp-first" => Ok(Classes::CnpFirst),
                    _ => Err(E::unknown_variant(text, &Classes::NAMES)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Classes, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Classes::Table)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Classes {
    fn schema_name() -> Cow<'static, str> {
        "Classes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let class = generator.subschema_for::<PortClass>();
        json_schema!({ "anyOf": [{ "enum": Self::NAMES }, { "type": "array", "items": class, "maxItems": 4 }] })
    }
}
