//! Noise on links: `links.codeword-loss` and `links.gilbert`; `links.llr`, which repairs it.

use crate::failure::FailurePlanner;
use crate::values::Chance;
use finding::{Finding, code, suggestion};
use model::noise::Gilbert;
use model::{LinkId, Noise};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Chance that a pair of codewords is lost, or the rate of bit errors from which it follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CodewordLoss {
    /// The chance.
    Chance(Chance),
    /// The rate of bit errors before FEC.
    Ber(f64),
}

/// Symbols of a codeword, those that RS(544,514) repairs, and the bits of each (IEEE 802.3, clause 91).
const SYMBOLS: u32 = 544;
const REPAIRED: u32 = 15;
const BITS: u32 = 10;

/// The chance that a codeword has more than 15 wrong symbols. Bit errors are independent (our choice: PAM4 makes
/// some errors in pairs, which precoding spreads). All machines round these operations alike.
fn codeword(ber: f64) -> f64 {
    let (mut wrong, mut right) = (0.0, 1.0);
    for _ in 0..BITS {
        wrong += ber * right;
        right *= 1.0 - ber;
    }
    // With half of all symbols wrong, the chance differs from 1 by less than a float can show.
    if wrong >= 0.5 {
        return 1.0;
    }
    let mut term = (0..SYMBOLS).fold(1.0, |product, _| product * right);
    let mut sum = 0.0;
    for k in 0..SYMBOLS {
        term *= f64::from(SYMBOLS - k) / f64::from(k + 1) * (wrong / right);
        // `term` is now that of `k + 1` wrong symbols.
        sum += if k >= REPAIRED { term } else { 0.0 };
    }
    f64::min(sum, 1.0)
}

impl CodewordLoss {
    /// The chance that at least one of the two codewords of a pair is lost.
    pub fn chance(self) -> Chance {
        match self {
            CodewordLoss::Chance(chance) => chance,
            CodewordLoss::Ber(ber) => {
                let one = codeword(ber);
                Chance::new(one * (2.0 - one))
            }
        }
    }
}

/// Link-level retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LlrConfig {
    /// Most times in a row that a link sends a lost frame again; then the frame is lost. Default 2 (facebook/fboss, LlrConfig; SAI has
    /// 1).
    pub replays: u8,
}

impl Default for LlrConfig {
    fn default() -> Self {
        LlrConfig { replays: 2 }
    }
}

/// Key of a rate of bit errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct OfBits {
    /// Rate of bit errors before FEC. No default.
    ber: Chance,
}

impl Serialize for CodewordLoss {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match *self {
            CodewordLoss::Chance(chance) => chance.serialize(to),
            CodewordLoss::Ber(ber) => OfBits { ber: Chance::new(ber) }.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for CodewordLoss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = CodewordLoss;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability between 0 and 1, or { ber = 1e-4 }")
            }

            fn visit_f64<E: de::Error>(self, p: f64) -> Result<CodewordLoss, E> {
                Chance::deserialize(de::value::F64Deserializer::new(p)).map(CodewordLoss::Chance)
            }

            fn visit_i64<E: de::Error>(self, p: i64) -> Result<CodewordLoss, E> {
                self.visit_f64(p as f64)
            }

            fn visit_u64<E: de::Error>(self, p: u64) -> Result<CodewordLoss, E> {
                self.visit_f64(p as f64)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CodewordLoss, A::Error> {
                let of_bits = OfBits::deserialize(MapAccessDeserializer::new(map))?;
                Ok(CodewordLoss::Ber(of_bits.ber.get()))
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for CodewordLoss {
    fn schema_name() -> Cow<'static, str> {
        "CodewordLoss".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let chance = generator.subschema_for::<Chance>();
        let of_bits = generator.subschema_for::<OfBits>();
        json_schema!({ "anyOf": [chance, of_bits] })
    }
}

/// A link that is good or bad (Gilbert and Elliott) and may change before each frame. A link begins in the state that it has in the
/// long run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GilbertConfig {
    /// Chance that a good link turns bad before a frame. No default.
    pub good_to_bad: Chance,
    /// Chance that a bad link turns good before a frame: it stays bad for 1 / `bad-to-good` frames on average. No default.
    pub bad_to_good: Chance,
    /// Chance that a bad link loses a frame. No default.
    pub loss_in_bad: Chance,
}

impl GilbertConfig {
    const fn new(good_to_bad: f64, bad_to_good: f64, loss_in_bad: f64) -> Self {
        GilbertConfig {
            good_to_bad: Chance::new(good_to_bad),
            bad_to_good: Chance::new(bad_to_good),
            loss_in_bad: Chance::new(loss_in_bad),
        }
    }

    fn gilbert(self) -> Gilbert {
        let GilbertConfig { good_to_bad, bad_to_good, loss_in_bad } = self;
        Gilbert {
            good_to_bad: good_to_bad.probability(),
            bad_to_good: bad_to_good.probability(),
            loss_in_bad: loss_in_bad.probability(),
        }
    }
}

/// Named links. Our choice: nobody has published such figures.
const NAMED: [(&str, GilbertConfig); 2] =
    [("light", GilbertConfig::new(1e-6, 0.3, 0.3)), ("dirty", GilbertConfig::new(1e-4, 0.1, 0.5))];

impl<'de> Deserialize<'de> for GilbertConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        struct Keys {
            good_to_bad: Chance,
            bad_to_good: Chance,
            loss_in_bad: Chance,
        }

        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = GilbertConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"light\", \"dirty\", or a table with good-to-bad, bad-to-good and loss-in-bad")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<GilbertConfig, E> {
                let found = NAMED.iter().find(|named| named.0 == text).map(|named| named.1);
                found.ok_or_else(|| {
                    E::custom(format!(
                        "no noise is named `{text}`; {}",
                        suggestion(text, &NAMED.map(|named| named.0))
                    ))
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GilbertConfig, A::Error> {
                let Keys { good_to_bad, bad_to_good, loss_in_bad } =
                    Keys::deserialize(MapAccessDeserializer::new(map))?;
                Ok(GilbertConfig { good_to_bad, bad_to_good, loss_in_bad })
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

/// The schema of [`GilbertConfig`].
pub(crate) struct GilbertText;

impl JsonSchema for GilbertText {
    fn schema_name() -> Cow<'static, str> {
        "GilbertText".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<GilbertConfig>();
        json_schema!({ "anyOf": [table, { "enum": NAMED.map(|named| named.0) }] })
    }
}

/// The noise of a plan.
pub(crate) fn plan(
    links: &crate::config::LinksConfig,
    planner: &FailurePlanner<'_>,
) -> Result<Noise, Finding> {
    let codeword_loss = links.codeword_loss.map_or(Chance::ZERO, CodewordLoss::chance).probability();
    let gilbert = links.gilbert.map(GilbertConfig::gilbert);
    if gilbert.is_some_and(|gilbert| gilbert.bad_to_good.is_zero() && gilbert.good_to_bad.is_zero()) {
        return Err(code::RANGE.at("links.gilbert", "the link never changes its state; set `links.loss`"));
    }
    if !links.noisy.is_empty() && links.codeword_loss.is_none() && gilbert.is_none() {
        let text = "these links have no noise; set `links.codeword-loss` or `links.gilbert`";
        return Err(code::NEEDS.at("links.noisy", text));
    }
    let llr = links.llr.get().map(|llr| llr.replays);
    if codeword_loss.is_zero() && gilbert.is_none() {
        return Ok(Noise { llr, ..Noise::default() });
    }
    let fabric = planner.fabric;
    let mut found: BTreeSet<LinkId> = BTreeSet::new();
    for (i, ends) in links.noisy.iter().enumerate() {
        planner.between(ends, &mut found).map_err(|error| error.within(&format!("links.noisy.{i}")))?;
    }
    let mut noisy: Vec<LinkId> = match links.noisy.is_empty() {
        true => (0..fabric.links().len() as u32).map(LinkId).collect(),
        false => found.iter().flat_map(|&link| [link, fabric.reverse(link)]).collect(),
    };
    noisy.sort();
    noisy.dedup();
    Ok(Noise { codeword_loss, gilbert, links: noisy, llr })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of bit errors and chances, by exact fractions in Python (`fractions`, `math.comb`).
    const EXACT: [(f64, f64); 3] =
        [(1e-4, 1.3598110647644306e-18), (2.4e-4, 8.151573399330457e-13), (1e-3, 1.530258592806046e-4)];

    #[test]
    fn a_codeword_is_lost_if_more_than_fifteen_symbols_are_wrong() {
        assert_eq!(codeword(0.0), 0.0);
        assert_eq!(codeword(1.0), 1.0);
        for (ber, expected) in EXACT {
            let found = codeword(ber);
            assert!((found / expected - 1.0).abs() < 1e-9, "{ber}: {found} {expected}");
        }
        let pair = CodewordLoss::Ber(1e-3).chance().get();
        let one = codeword(1e-3);
        assert!((pair - (2.0 * one - one * one)).abs() < 1e-15);
    }

    #[test]
    fn named_links_stand_for_their_numbers() {
        let of = |text: &str| toml::from_str::<crate::config::LinksConfig>(text).map(|links| links.gilbert);
        let table = of("gilbert = { good-to-bad = 1e-4, bad-to-good = 0.1, loss-in-bad = 0.5 }").unwrap();
        assert_eq!(of("gilbert = \"dirty\"").unwrap(), table);
        let error = of("gilbert = \"dirt\"").unwrap_err().to_string();
        assert!(error.contains("did you mean `dirty`"), "{error}");
    }
}
