//! Lists of seeds: a range, numbers, or one.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Most seeds (our choice: a mean over more says no more).
const MOST_SEEDS: u64 = 10_000;

/// Seeds, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

/// Reads a list (`1,2,7`) or a range with both ends (`1..5`) of seeds.
///
/// # Errors
/// Why it is neither.
pub fn seeds(text: &str) -> Result<Vec<u64>, String> {
    let number =
        |s: &str| s.trim().parse::<u64>().map_err(|_| format!("`{s}` is not a seed (a whole number)"));
    if let Some((first, last)) = text.split_once("..") {
        let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
        if first > last {
            return Err(format!("the range {text} is empty"));
        }
        if last - first >= MOST_SEEDS {
            return Err(format!("at most {MOST_SEEDS} seeds are possible"));
        }
        return Ok((first..=last).collect());
    }
    distinct(text.split(',').map(number).collect::<Result<_, _>>()?)
}

/// A seed that is there twice would count twice in every mean, and make it look surer than it is.
fn distinct(seeds: Vec<u64>) -> Result<Vec<u64>, String> {
    let mut seen = BTreeSet::new();
    match seeds.iter().find(|seed| !seen.insert(**seed)) {
        Some(seed) => Err(format!("seed {seed} is there twice: the same run again says no more")),
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
                    return Err(de::Error::custom("at least one seed is needed"));
                }
                distinct(seeds).map(Seeds).map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

/// TOML could not write down a larger one.
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
