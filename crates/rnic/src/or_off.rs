//! Settings that a user can switch off where a model of a NIC would set them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A table of settings; or `"off"` or `false`, which keeps a model from setting them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrOff<T>(pub Option<T>);

impl<T: Copy> OrOff<T> {
    /// The settings of a key that may be left out, if they are not switched off.
    pub fn get(key: Option<Self>) -> Option<T> {
        key.and_then(|settings| settings.0)
    }
}

impl<T: Serialize> Serialize for OrOff<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(settings) => settings.serialize(serializer),
            None => serializer.serialize_str("off"),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrOff<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ValueVisitor<T> {
            type Value = OrOff<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"off\" or a table of settings")
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<OrOff<T>, E> {
                match on {
                    false => Ok(OrOff(None)),
                    true => Err(E::invalid_value(de::Unexpected::Bool(true), &self)),
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OrOff<T>, E> {
                match text {
                    "off" | "none" => Ok(OrOff(None)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OrOff<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|settings| OrOff(Some(settings)))
            }
        }

        deserializer.deserialize_any(ValueVisitor(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for OrOff<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrOff", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let settings = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [settings, { "enum": ["off", false] }] })
    }
}
