//! Lists of seeds: a range, several numbers, or one number.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Most seeds (our choice: means over more seeds change little).
const MOST_SEEDS: u64 = 10_000;

/// A list of at least one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

/// Reads a list of seeds (`1,2,7`) or a range that includes both ends (`1..5`).
///
/// # Errors
/// If `text` is neither, or a seed is repeated.
pub fn seeds(text: &str) -> Result<Vec<u64>, String> {
    let number = |s: &str| {
        s.trim().parse::<u64>().map_err(|_| format!("expected a seed (a whole number), found `{s}`"))
    };
    if let Some((first, last)) = text.split_once("..") {
        let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
        if first > last {
            return Err(format!("the range {text} is empty"));
        }
        if last - first >= MOST_SEEDS {
            return Err(format!(
                "expected at most {MOST_SEEDS} seeds, found {}",
                (last - first).saturating_add(1)
            ));
        }
        return Ok((first..=last).collect());
    }
    distinct(text.split(',').map(number).collect::<Result<_, _>>()?)
}

/// Refuses repeated seeds: a seed that counts twice would make every mean look more certain than it is.
fn distinct(seeds: Vec<u64>) -> Result<Vec<u64>, String> {
    let mut seen = BTreeSet::new();
    match seeds.iter().find(|seed| !seen.insert(**seed)) {
        Some(seed) => Err(format!("seed {seed} is repeated; the same seed gives the same result")),
        None => Ok(seeds),
    }
}

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Seeds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seeds such as \"1..5\" or [1, 2, 7]")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Seeds, E> {
                let seeds = seeds(text).map_err(E::custom)?;
                seeds.into_iter().map(checked).collect::<Result<_, _>>().map(Seeds)
            }

            fn visit_i64<E: de::Error>(self, seed: i64) -> Result<Seeds, E> {
                match u64::try_from(seed) {
                    Ok(seed) => self.visit_u64(seed),
                    Err(_) => Err(E::invalid_value(de::Unexpected::Signed(seed), &self)),
                }
            }

            fn visit_u64<E: de::Error>(self, seed: u64) -> Result<Seeds, E> {
                Ok(Seeds(vec![checked(seed)?]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Seeds, A::Error> {
                let mut seeds = Vec::new();
                while let Some(seed) = items.next_element::<u64>()? {
                    seeds.push(checked(seed)?);
                }
                if seeds.is_empty() {
                    return Err(de::Error::custom("expected at least 1 seed, found none"));
                }
                distinct(seeds).map(Seeds).map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

/// Refuses seeds above 2^63 - 1, which TOML cannot write.
fn checked<E: de::Error>(seed: u64) -> Result<u64, E> {
    match i64::try_from(seed) {
        Ok(_) => Ok(seed),
        Err(_) => Err(E::custom(format!("a seed is at most {}, found {seed}", i64::MAX))),
    }
}

impl JsonSchema for Seeds {
    fn schema_name() -> Cow<'static, str> {
        "Seeds".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let seed = json_schema!({ "type": "integer", "minimum": 0 });
        json_schema!({ "anyOf": [
            { "type": "string", "pattern": "^\\s*[0-9]+\\s*(\\.\\.=?\\s*[0-9]+|(,\\s*[0-9]+\\s*)*)\\s*$" },
            { "type": "array", "items": seed, "minItems": 1 },
            seed,
        ] })
    }
}
