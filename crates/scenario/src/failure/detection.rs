//! `routing.detection`: when switches learn of failures.

use finding::suggestion;
use model::Time;
use model::failure::Clocks;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// When switches learn of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Never: routes are frozen.
    Never,
    /// All at once, this time after a link has failed or come back.
    AllAtOnce(Time),
    /// Each by itself.
    BySwitch(BySwitch),
}

/// Clocks of a switch that learns of failures by itself. A switch that sees its own port change acts after `local`. Others
/// act after `local`, `per-hop` for each switch on the way of the news, and a time of their own for their tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BySwitch {
    /// Time from a change of a switch's own port until it acts, or the name of a clock: `"carrier"` (1 ms, our choice), `"bfd-bgp"`
    /// (900 ms: 300 ms x 3), `"bfd"` (3 s: 1 s x 3; both SONiC `doc/bfd`), `"lacp"` (3 s: 1 s x 3), `"lacp-slow"` (90 s: 30 s x 3;
    /// IEEE 802.1AX), `"bgp-chassis"` (7 s), `"bgp-internal"` (10 s) or `"bgp"` (180 s, hold times of SONiC's `docker-fpm-frr`).
    /// Default 1 ms (our choice: a debounce of the carrier. No vendor's figure is public).
    #[serde(default = "carrier")]
    #[schemars(with = "LocalText")]
    pub local: Local,
    /// Time for each switch that passes the news on. Default 1 ms (our choice: a daemon handles a message. No figure is
    /// public).
    #[serde(default = "per_hop")]
    pub per_hop: Time,
    /// Longest time that a switch takes to install routes; each change of each switch draws its own, uniform from 0. Default
    /// 10 ms (our choice: with BGP PIC it does not grow with the number of prefixes, but no vendor's figure is public).
    #[serde(default = "install")]
    pub install: Time,
}

fn carrier() -> Local {
    Local(CARRIER)
}

const fn per_hop() -> Time {
    Time::from_ms(1)
}

const fn install() -> Time {
    Time::from_ms(10)
}

impl BySwitch {
    /// These clocks for the engine.
    pub(super) fn clocks(self) -> Clocks {
        Clocks { local: self.local.0, per_hop: self.per_hop, install: self.install }
    }
}

/// A time, or the name of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local(pub Time);

const CARRIER: Time = Time::from_ms(1);

/// Clocks by which a switch notices that its own port is dead; the sources stand at [`BySwitch::local`].
const CLOCKS: [(&str, Time); 8] = [
    ("carrier", CARRIER),
    ("bfd-bgp", Time::from_ms(900)),
    ("bfd", Time::from_ms(3_000)),
    ("lacp", Time::from_ms(3_000)),
    ("lacp-slow", Time::from_ms(90_000)),
    ("bgp-chassis", Time::from_ms(7_000)),
    ("bgp-internal", Time::from_ms(10_000)),
    ("bgp", Time::from_ms(180_000)),
];

fn clock(name: &str) -> Option<Time> {
    CLOCKS.iter().find(|clock| clock.0 == name).map(|clock| clock.1)
}

/// The word for frozen routes.
const NEVER: &str = "never";
/// The word for the default.
const ALL_AT_ONCE: &str = "all-at-once";
/// Default of the time after which all switches change at once; [`super::RoutingConfig`] has its source.
pub(super) const USUAL: Time = Time::from_ms(1);

/// The text of a time, or of a word.
fn of_text<T, E: de::Error>(
    text: &str,
    named: Option<T>,
    time: impl Fn(Time) -> T,
    words: &[&str],
) -> Result<T, E> {
    if let Some(named) = named {
        return Ok(named);
    }
    text.parse().map(time).map_err(|error| match text.starts_with(|c: char| c.is_ascii_digit()) {
        true => E::custom(error),
        false => E::custom(format!(
            "expected a time such as \"1ms\" or a name, found {text:?}; {}",
            suggestion(text, words)
        )),
    })
}

impl<'de> Deserialize<'de> for Local {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl Visitor<'_> for ValueVisitor {
            type Value = Local;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"1ms\", or the name of a clock such as \"bfd\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Local, E> {
                of_text(text, clock(text).map(Local), Local, &CLOCKS.map(|clock| clock.0))
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl Serialize for Local {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

/// The schema of [`Local`].
struct LocalText;

impl JsonSchema for LocalText {
    fn schema_name() -> Cow<'static, str> {
        "Local".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Time>();
        json_schema!({ "anyOf": [time, { "enum": CLOCKS.map(|clock| clock.0) }] })
    }
}

impl Serialize for Detection {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Detection::Never => to.serialize_str(NEVER),
            Detection::AllAtOnce(time) => time.serialize(to),
            Detection::BySwitch(clocks) => clocks.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Detection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Detection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"1ms\", \"all-at-once\", \"never\", the name of a clock such as \"bfd\", or a table")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Detection, E> {
                let by_switch = |local| {
                    let local = Local(local);
                    Detection::BySwitch(BySwitch { local, per_hop: per_hop(), install: install() })
                };
                let named = match text {
                    NEVER => Some(Detection::Never),
                    ALL_AT_ONCE => Some(Detection::AllAtOnce(USUAL)),
                    _ => clock(text).map(by_switch),
                };
                let words: Vec<&str> =
                    [NEVER, ALL_AT_ONCE].into_iter().chain(CLOCKS.map(|clock| clock.0)).collect();
                of_text(text, named, Detection::AllAtOnce, &words)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Detection, A::Error> {
                BySwitch::deserialize(MapAccessDeserializer::new(map)).map(Detection::BySwitch)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Detection {
    fn schema_name() -> Cow<'static, str> {
        "Detection".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Time>();
        let clocks = generator.subschema_for::<BySwitch>();
        let words: Vec<&str> = [NEVER, ALL_AT_ONCE].into_iter().chain(CLOCKS.map(|clock| clock.0)).collect();
        json_schema!({ "anyOf": [time, { "enum": words }, clocks] })
    }
}
