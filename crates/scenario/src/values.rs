//! Types of single values: switched features, shares, probabilities.

use model::{Rate, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// Latest simulated time that a scenario may name: a tenth of what 64 bits of picoseconds hold.
pub(crate) const LATEST: Time = Time::from_ms(1_000_000_000);

/// A feature that can be switched off: `"off"` or `false`; `"on"` or `true`, with default settings; or a table of its
/// settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switched<T>(pub Option<T>);

impl<T> Switched<T> {
    /// Switched off.
    pub const OFF: Self = Switched(None);

    /// The settings, if the feature is on.
    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T: Default> Default for Switched<T> {
    fn default() -> Self {
        Switched(Some(T::default()))
    }
}

impl<T: Serialize> Serialize for Switched<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(settings) => settings.serialize(serializer),
            None => serializer.serialize_str("off"),
        }
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Switched<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for ValueVisitor<T> {
            type Value = Switched<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"on\", \"off\" or a table of settings")
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Switched<T>, E> {
                Ok(Switched(on.then(T::default)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Switched<T>, E> {
                match text {
                    "on" => self.visit_bool(true),
                    "off" | "none" => self.visit_bool(false),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Switched<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|settings| Switched(Some(settings)))
            }
        }

        deserializer.deserialize_any(ValueVisitor(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Switched<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Switched{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let settings = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [settings, { "enum": ["on", "off", true, false] }] })
    }
}

/// A positive share such as `1/8`, as a fraction of two whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Numerator.
    pub part: u32,
    /// Denominator.
    pub whole: u32,
}

impl Share {
    /// `part / whole`.
    pub const fn new(part: u32, whole: u32) -> Self {
        Share { part, whole }
    }

    /// Numerator and denominator.
    pub const fn pair(self) -> (u32, u32) {
        (self.part, self.whole)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole {
            1 => write!(f, "{}", self.part),
            _ => write!(f, "{}/{}", self.part, self.whole),
        }
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a share such as \"1/8\", found {text:?}");
        let whole = |t: &str| t.trim().parse::<u32>().map_err(|_| wrong());
        let share = match (text.split_once('/'), text.split_once('.')) {
            (Some((part, of)), _) => Share::new(whole(part)?, whole(of)?),
            (None, Some((int, fraction))) if (1..=6).contains(&fraction.len()) => {
                let of = 10u32.pow(fraction.len() as u32);
                let part = whole(int)?.checked_mul(of).and_then(|v| v.checked_add(whole(fraction).ok()?));
                Share::new(part.ok_or_else(wrong)?, of)
            }
            _ => Share::new(whole(text)?, 1),
        };
        if share.part == 0 || share.whole == 0 {
            return Err(format!("expected a share above 0 such as \"1/8\", found {text:?}"));
        }
        let gcd = gcd(share.part, share.whole);
        Ok(Share::new(share.part / gcd, share.whole / gcd))
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl Visitor<'_> for ValueVisitor {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share such as \"1/8\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Share, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Share, E> {
                self.visit_str(&n.to_string())
            }

            fn visit_f64<E: de::Error>(self, n: f64) -> Result<Share, E> {
                self.visit_str(&n.to_string())
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number"], "description": "A share above 0, such as \"1/8\"." })
    }
}

/// A number of items, or all items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// At most this many.
    Some(usize),
    /// All items.
    All,
}

impl Amount {
    /// The number of items to take from `all` items.
    pub fn of(self, all: usize) -> usize {
        match self {
            Amount::Some(n) => n.min(all),
            Amount::All => all,
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Amount::Some(n) => n.serialize(serializer),
            Amount::All => serializer.serialize_str("all"),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl Visitor<'_> for ValueVisitor {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, or \"all\"")
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Amount, E> {
                let number = usize::try_from(n);
                number.map(Amount::Some).map_err(|_| E::invalid_value(de::Unexpected::Signed(n), &self))
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Amount, E> {
                let number = usize::try_from(n);
                number.map(Amount::Some).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(n), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                match text {
                    "all" => Ok(Amount::All),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "const": "all" }] })
    }
}

/// An oversubscription such as `2:1`: bandwidth of the downlinks to bandwidth of the uplinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oversubscription {
    /// Part of the downlinks in the ratio.
    pub down: u32,
    /// Part of the uplinks in the ratio.
    pub up: u32,
}

impl fmt::Display for Oversubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.down, self.up)
    }
}

impl FromStr for Oversubscription {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = |t: &str| t.trim().parse::<u32>().ok().filter(|&n| n > 0);
        let ratio = text.split_once(':').and_then(|(down, up)| Some((part(down)?, part(up)?)));
        let (down, up) =
            ratio.ok_or_else(|| format!("expected an oversubscription such as \"2:1\", found {text:?}"))?;
        Ok(Oversubscription { down, up })
    }
}

impl Serialize for Oversubscription {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Oversubscription {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl Visitor<'_> for ValueVisitor {
            type Value = Oversubscription;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an oversubscription such as \"2:1\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Oversubscription, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Oversubscription {
    fn schema_name() -> Cow<'static, str> {
        "Oversubscription".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^ *[0-9]+ *: *[0-9]+ *$" })
    }
}

/// The rate of a slow link: a rate such as `20Gbps`, or a share of the link's nominal rate, above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReducedRate {
    /// A rate.
    Rate(Rate),
    /// A share of the nominal rate.
    Share(f64),
}

impl ReducedRate {
    /// The rate of a slow link whose nominal rate is `nominal`.
    pub fn of(self, nominal: Rate) -> Rate {
        match self {
            ReducedRate::Rate(rate) => rate,
            ReducedRate::Share(share) => Rate((nominal.bps() as f64 * share).round() as u64),
        }
    }
}

impl Serialize for ReducedRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ReducedRate::Rate(rate) => rate.serialize(serializer),
            ReducedRate::Share(share) => serializer.serialize_f64(*share),
        }
    }
}

impl<'de> Deserialize<'de> for ReducedRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl Visitor<'_> for ValueVisitor {
            type Value = ReducedRate;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate such as \"20Gbps\", or a share above 0 and at most 1 such as 0.1")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ReducedRate, E> {
                Rate::deserialize(de::value::StrDeserializer::new(text)).map(ReducedRate::Rate)
            }

            fn visit_f64<E: de::Error>(self, share: f64) -> Result<ReducedRate, E> {
                match share > 0.0 && share <= 1.0 {
                    true => Ok(ReducedRate::Share(share)),
                    false => Err(E::invalid_value(de::Unexpected::Float(share), &self)),
                }
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<ReducedRate, E> {
                match n {
                    1 => Ok(ReducedRate::Share(1.0)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(n), &self)),
                }
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for ReducedRate {
    fn schema_name() -> Cow<'static, str> {
        "ReducedRate".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rate = generator.subschema_for::<Rate>();
        json_schema!({ "anyOf": [rate, { "type": "number", "exclusiveMinimum": 0, "maximum": 1 }] })
    }
}

/// A probability between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Chance(f64);

impl Chance {
    /// Probability 0.
    pub const ZERO: Chance = Chance(0.0);

    /// `p`, clamped to the range from 0 to 1.
    pub const fn new(p: f64) -> Self {
        Chance(if p > 0.0 { if p < 1.0 { p } else { 1.0 } } else { 0.0 })
    }

    /// The probability as a number.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The threshold with which random draws are compared.
    pub fn probability(self) -> model::Probability {
        model::Probability::new(self.0)
    }
}

impl Serialize for Chance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Chance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl Visitor<'_> for ValueVisitor {
            type Value = Chance;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability between 0 and 1")
            }

            fn visit_f64<E: de::Error>(self, p: f64) -> Result<Chance, E> {
                if (0.0..=1.0).contains(&p) {
                    Ok(Chance(p))
                } else {
                    Err(E::custom(format!("expected a probability between 0 and 1, found {p}")))
                }
            }

            fn visit_i64<E: de::Error>(self, p: i64) -> Result<Chance, E> {
                self.visit_f64(p as f64)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Chance {
    fn schema_name() -> Cow<'static, str> {
        "Chance".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_and_reduced() {
        for (text, want) in
            [("1/8", (1, 8)), ("2/16", (1, 8)), ("0.0625", (1, 16)), ("1", (1, 1)), ("1.5", (3, 2))]
        {
            assert_eq!(text.parse::<Share>().map(Share::pair), Ok(want), "{text}");
        }
        for text in ["0", "1/0", "x", "", "-1", "1/8/2", "99999999999", "4294967295.5"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        assert_eq!(Share::new(1, 8).to_string(), "1/8");
    }

    #[test]
    fn bandwidths_of_memory_are_read_and_written_alike() {
        for (text, want, shown) in [
            ("3.35TB/s", 3_350_000_000_000, "3350GB/s"),
            ("8 TB/s", 8_000_000_000_000, "8TB/s"),
            ("0.5MB/s", 500_000, "0.500000MB/s"),
        ] {
            let rate: ByteRate = text.parse().unwrap();
            assert_eq!((rate.0, rate.to_string().as_str()), (want, shown));
            assert_eq!(rate.to_string().parse(), Ok(rate));
        }
        let wrong = "3.35Tbps".parse::<ByteRate>().unwrap_err();
        assert_eq!(wrong, "expected bytes per second like \"3.35TB/s\", found \"3.35Tbps\"");
    }
}

/// Floating-point operations per second, such as `"400TFLOPS"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flops(pub u128);

/// Units of operations per second.
const FLOPS: [(&str, u128); 4] = [
    ("PFLOPS", 1_000_000_000_000_000),
    ("TFLOPS", 1_000_000_000_000),
    ("GFLOPS", 1_000_000_000),
    ("MFLOPS", 1_000_000),
];

impl Flops {
    /// Time of so many operations, rounded up to a picosecond.
    pub fn time(self, operations: u128) -> Time {
        let ps = operations.saturating_mul(1_000_000_000_000).div_ceil(self.0.max(1));
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

/// A decimal number with one of these units, in units of 1.
fn with_unit(text: &str, units: &[(&str, u128)]) -> Option<u128> {
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim(), *factor)))?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || part.len() > 6 || !digits(whole) || !digits(part) {
        return None;
    }
    let scaled: u128 = format!("{whole}{part}").parse().ok()?;
    Some(scaled * factor / 10u128.pow(part.len() as u32)).filter(|value| *value > 0)
}

impl FromStr for Flops {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected operations per second like \"400TFLOPS\", found \"{text}\"");
        with_unit(text, &FLOPS).map(Flops).ok_or_else(wrong)
    }
}

impl fmt::Display for Flops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) =
            FLOPS.into_iter().find(|(_, factor)| self.0.is_multiple_of(*factor)).unwrap_or(("FLOPS", 1));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

impl Serialize for Flops {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Flops {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Flops {
    fn schema_name() -> Cow<'static, str> {
        "Flops".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{1,9}(\\.[0-9]{1,6})? *[MGTP]FLOPS$", "examples": ["400TFLOPS"] })
    }
}

/// Bytes per second, such as `"3.35TB/s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteRate(pub u128);

/// Units of bytes per second.
const BYTE_RATES: [(&str, u128); 3] =
    [("TB/s", 1_000_000_000_000), ("GB/s", 1_000_000_000), ("MB/s", 1_000_000)];

impl FromStr for ByteRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected bytes per second like \"3.35TB/s\", found \"{text}\"");
        with_unit(text, &BYTE_RATES).map(ByteRate).ok_or_else(wrong)
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, factor): &(&str, u128)| self.0.is_multiple_of(*factor);
        match BYTE_RATES.into_iter().find(fits) {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            // Six digits behind the point of MB/s are whole bytes.
            None => write!(f, "{}.{:06}MB/s", self.0 / 1_000_000, self.0 % 1_000_000),
        }
    }
}

impl Serialize for ByteRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for ByteRate {
    fn schema_name() -> Cow<'static, str> {
        "ByteRate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{1,9}(\\.[0-9]{1,6})? *[MGT]B/s$", "examples": ["3.35TB/s"] })
    }
}
