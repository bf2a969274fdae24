//! `switch.classes`: the priority classes of every port, by name or as a table.

use crate::error::KeyError;
use model::packet::Kinds;
use model::plan::{Class, Service};
use model::{Bytes, Kind, Wire};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde::{Deserialize as DeriveDeserialize, Serialize as DeriveSerialize};
use std::borrow::Cow;
use std::fmt;

/// Priority classes of a port: a name, or an array of one to four classes.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, DeriveSerialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PortClass {
    /// Kinds of packets in the class: `"data"`, `"ack"`, `"nack"`, `"cnp"`, `"signal"` (between the switches of a scheme),
    /// `"trimmed"` (data that a switch has cut), `"control"` (from end to end). Kinds that no class lists wait with data.
    pub kinds: Vec<PacketKind>,
    /// Weight of the class. The classes with a weight share the time that the classes without a weight leave, in proportion
    /// to their weights, by deficit round robin in bytes. Default: none, and the class leaves before all classes below it
    /// and before all classes with a weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Longest queue of the class at one port of a switch. Default: no limit but that of the buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Bytes>,
    /// Whether the class is charged to the buffer and paused. Default true for the class of data, else false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged: Option<bool>,
    /// Whether data of the class is marked when its queue is long. Default true for the class of data, else false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<bool>,
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
        }
    }
}

/// Largest weight of a class. With it, a turn brings 64 kB.
const MOST_WEIGHT: u32 = 1000;

impl Classes {
    const NAMES: [&str; 3] = ["strict", "one", "cnp-first"];

    /// The classes of a plan.
    pub(crate) fn plan(&self, wire: &Wire) -> Result<model::plan::Classes, KeyError> {
        match self {
            Classes::Strict => Ok(model::plan::Classes::STRICT),
            Classes::One => Ok(model::plan::Classes::ONE),
            Classes::CnpFirst => Ok(model::plan::Classes::CNP_FIRST),
            Classes::Table(table) => planned(table, wire),
        }
    }
}

fn planned(table: &[PortClass], wire: &Wire) -> Result<model::plan::Classes, KeyError> {
    let most = model::plan::Classes::MOST;
    if table.len() > most {
        return Err(KeyError::new(
            "switch.classes",
            format!("expected at most {most} classes, found {}", table.len()),
        ));
    }
    let mut listed = Kinds::of(&[]);
    for (i, class) in table.iter().enumerate() {
        let wrong = |key: &str, text: String| Err(KeyError::new(&format!("switch.classes.{i}.{key}"), text));
        for (k, kind) in class.kinds.iter().map(|kind| Kind::from(*kind)).enumerate() {
            if listed.has(kind) {
                return wrong(&format!("kinds.{k}"), "a class has this kind already".to_owned());
            }
            listed = listed.and(Kinds::of(&[kind]));
        }
        if class.weight.is_some_and(|weight| !(1..=MOST_WEIGHT).contains(&weight)) {
            return wrong("weight", format!("expected a weight from 1 to {MOST_WEIGHT}"));
        }
        let data = class.kinds.contains(&PacketKind::Data);
        if let Some(cap) = class.cap.filter(|cap| data && cap.get() < u64::from(wire.max_frame())) {
            return wrong("cap", format!("a cap of {cap} cannot hold one frame of {} B", wire.max_frame()));
        }
    }
    if !listed.has(Kind::Data) {
        return Err(KeyError::new("switch.classes", "no class has the kind \"data\""));
    }
    let classes = table.iter().map(|class| {
        let mut kinds =
            class.kinds.iter().fold(Kinds::of(&[]), |all, kind| all.and(Kinds::of(&[(*kind).into()])));
        let data = kinds.has(Kind::Data);
        if data {
            kinds = kinds.and(listed.others());
        }
        Class {
            kinds,
            service: class.weight.map_or(Service::Strict, Service::Weighted),
            cap: class.cap,
            charged: class.charged.unwrap_or(data),
            marked: class.marked.unwrap_or(data),
        }
    });
    Ok(model::plan::Classes::new(&classes.collect::<Vec<_>>()))
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
