//! Values of TOML as types. An error knows the path of its value.
//!
//! This deserializer asks a type for just what the value is. `toml`'s own offers every kind of value to every type, and so
//! reads an array as a table whose keys it goes through by position.

use serde::de::value::{StrDeserializer, StringDeserializer};
use serde::de::{self, Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use std::fmt::{self, Display};
use toml::Value;

/// A value that is no `T`, in the words of serde.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) message: String,
    /// Path of the value, the innermost part first.
    path: Vec<String>,
}

impl Misfit {
    /// The path of the value.
    pub(crate) fn path(&self) -> Vec<String> {
        self.path.iter().rev().cloned().collect()
    }

    fn under(mut self, part: impl Display) -> Self {
        self.path.push(part.to_string());
        self
    }
}

impl Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: Display>(message: T) -> Self {
        Misfit { message: message.to_string(), path: Vec::new() }
    }
}

/// A value to read.
pub(crate) struct Reader(pub(crate) Value);

impl Reader {
    /// The error that the value is of another kind than expected.
    fn misfit(&self, expected: &dyn de::Expected) -> Misfit {
        let found = match &self.0 {
            Value::String(text) => Unexpected::Str(text),
            Value::Integer(number) => Unexpected::Signed(*number),
            Value::Float(number) => Unexpected::Float(*number),
            Value::Boolean(on) => Unexpected::Bool(*on),
            Value::Datetime(_) => Unexpected::Other("a date"),
            Value::Array(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
        };
        Misfit::invalid_type(found, expected)
    }
}

/// Methods for types that are made of one kind of value.
macro_rules! one_kind {
    ($($method:ident => $($kind:ident as $visit:ident),+;)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            match self.0 {
                $(Value::$kind(value) => visitor.$visit(value),)+
                other => Err(Reader(other).misfit(&visitor)),
            }
        })+
    };
}

impl<'de> Deserializer<'de> for Reader {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Boolean(on) => visitor.visit_bool(on),
            Value::Datetime(_) => Err(self.misfit(&visitor)),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Table(_) => self.deserialize_map(visitor),
        }
    }

    one_kind! {
        deserialize_bool => Boolean as visit_bool;
        deserialize_i64 => Integer as visit_i64;
        deserialize_u8 => Integer as visit_i64;
        deserialize_u16 => Integer as visit_i64;
        deserialize_u32 => Integer as visit_i64;
        deserialize_u64 => Integer as visit_i64;
        deserialize_f64 => Float as visit_f64, Integer as visit_i64;
        deserialize_str => String as visit_string;
        deserialize_string => String as visit_string;
        deserialize_identifier => String as visit_string;
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Value::Array(values) = self.0 else { return Err(self.misfit(&visitor)) };
        let length = values.len();
        let mut items = Items { values: values.into_iter(), at: 0 };
        let whole = visitor.visit_seq(&mut items)?;
        match items.values.len() {
            0 => Ok(whole),
            _ => Err(Misfit::invalid_length(length, &"fewer elements in array")),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Table(table) => visitor.visit_map(Entries { table: table.into_iter(), next: None }),
            other => Err(Reader(other).misfit(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_map(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(Choice { name, value: None }),
            Value::Table(table) if table.len() > 1 => {
                Err(Misfit::custom("wanted exactly 1 element, more than 1 element"))
            }
            Value::Table(table) => match table.into_iter().next() {
                Some((name, value)) => visitor.visit_enum(Choice { name, value: Some(value) }),
                None => Err(Misfit::custom("wanted exactly 1 element, found 0 elements")),
            },
            _ => Err(Misfit::invalid_type(Unexpected::UnitVariant, &"string only")),
        }
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 f32 char unit bytes byte_buf unit_struct tuple_struct ignored_any
    }
}

/// The items of an array.
struct Items {
    values: std::vec::IntoIter<Value>,
    at: usize,
}

impl<'de> de::SeqAccess<'de> for Items {
    type Error = Misfit;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Misfit> {
        let Some(value) = self.values.next() else { return Ok(None) };
        self.at += 1;
        seed.deserialize(Reader(value)).map(Some).map_err(|misfit| misfit.under(self.at - 1))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len())
    }
}

/// The entries of a table.
struct Entries {
    table: <toml::Table as IntoIterator>::IntoIter,
    next: Option<(String, Value)>,
}

impl<'de> de::MapAccess<'de> for Entries {
    type Error = Misfit;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        self.next = self.table.next();
        let Some((key, _)) = &self.next else { return Ok(None) };
        let key: StringDeserializer<Misfit> = key.clone().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: de::DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Misfit> {
        let (key, value) = self.next.take().ok_or_else(|| Misfit::custom("a value without a key"))?;
        seed.deserialize(Reader(value)).map_err(|misfit| misfit.under(key))
    }
}

/// A choice: a name alone, or the only key of a table and its value.
struct Choice {
    name: String,
    value: Option<Value>,
}

impl<'de> de::EnumAccess<'de> for Choice {
    type Error = Misfit;
    type Variant = Self;

    fn variant_seed<V: de::DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Misfit> {
        let name: StrDeserializer<'_, Misfit> = self.name.as_str().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl Choice {
    /// Reads the value of the choice; `found` is what a name alone is.
    fn with<T>(self, expected: &str, read: impl FnOnce(Reader) -> Result<T, Misfit>) -> Result<T, Misfit> {
        match self.value {
            Some(value) => read(Reader(value)).map_err(|misfit| misfit.under(self.name)),
            None => Err(Misfit::invalid_type(Unexpected::UnitVariant, &expected)),
        }
    }
}

impl<'de> de::VariantAccess<'de> for Choice {
    type Error = Misfit;

    fn unit_variant(self) -> Result<(), Misfit> {
        let empty = |value: &Value| match value {
            Value::Table(table) => table.is_empty(),
            Value::Array(values) => values.is_empty(),
            _ => false,
        };
        match &self.value {
            Some(value) if !empty(value) => Err(Misfit::custom("expected an empty table").under(self.name)),
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: de::DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Misfit> {
        self.with("newtype variant", |value| seed.deserialize(value))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.with("tuple variant", |value| value.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.with("struct variant", |value| value.deserialize_map(visitor))
    }
}
