//! How the collectives of each kind of parallelism are done.

use crate::workload::collective::{NicChoice, Tuning};
use collective::Algorithm;
use finding::suggestion;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Collectives by kind of parallelism: the name of an algorithm for each, such as `{ tp = "nvls", "*" = "nccl" }`, or a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Dimensions {
    /// Tensor parallelism. Default: `"nvls"` inside a server with NVLink, else `"ring"`.
    pub tp: Dimension,
    /// Context parallelism, whose keys and values go around as an all-gather. Default `"ring"` (our choice).
    pub cp: Dimension,
    /// Data parallelism. Default `"ring"` (our choice).
    pub dp: Dimension,
    /// Expert parallelism. Default `"direct"` (our choice).
    pub ep: Dimension,
    /// All kinds for which nothing is set. Default: the default of each kind.
    #[serde(rename = "*", skip_serializing_if = "Option::is_none")]
    pub others: Option<Dimension>,
}

impl Dimensions {
    /// The settings that count for a kind, and the key under which they stand.
    pub(super) fn of<'d>(&'d self, name: &'static str, own: &'d Dimension) -> (&'static str, &'d Dimension) {
        match &self.others {
            Some(others) if *own == Dimension::default() => ("*", others),
            _ => (name, own),
        }
    }
}

/// How the collectives of one kind of parallelism are done.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Dimension {
    /// Algorithm; `None` for the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Channels, messages, NICs and ports.
    pub tuning: Tuning,
}

/// How collectives are done: the name of an algorithm, `"pxn"` for the usual algorithm with `tuning.nic = "pxn"`, or a table.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made of it")]
#[expect(clippy::large_enum_variant, reason = "the schema is made of it")]
enum Written {
    Table(Settings),
    Name(Algorithm),
    Pxn(Pxn),
}

/// Algorithm and tuning of collectives.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Settings {
    /// Algorithm.
    algorithm: Option<Algorithm>,
    /// Channels, messages, NICs and ports.
    tuning: Tuning,
}

/// The word `"pxn"`.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[expect(dead_code, reason = "the schema is made of it")]
enum Pxn {
    /// The usual algorithm, with `tuning.nic = "pxn"`.
    Pxn,
}

const PXN: &str = "pxn";

impl JsonSchema for Dimension {
    fn schema_name() -> Cow<'static, str> {
        "Dimension".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Written::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for Dimension {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = Dimension;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an algorithm, such as \"ring\", or a table of settings")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Dimension, E> {
                if name == PXN {
                    let tuning = Tuning { nic: Some(NicChoice::Pxn), ..Tuning::default() };
                    return Ok(Dimension { algorithm: None, tuning });
                }
                let algorithm = Algorithm::deserialize(StrDeserializer::<de::value::Error>::new(name));
                algorithm
                    .map(|algorithm| Dimension { algorithm: Some(algorithm), ..Dimension::default() })
                    .map_err(|_| {
                        let names: Vec<&str> =
                            Algorithm::ALL.iter().map(|algorithm| algorithm.name()).chain([PXN]).collect();
                        E::custom(format!("unknown name `{name}`; {}", suggestion(name, &names)))
                    })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Dimension, A::Error> {
                let Settings { algorithm, tuning } = Settings::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Dimension { algorithm, tuning })
            }
        }

        deserializer.deserialize_any(Forms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> Result<Dimensions, toml::de::Error> {
        toml::from_str(toml)
    }

    #[test]
    fn a_name_stands_for_a_table_with_an_algorithm() {
        let short = read("tp = \"nvls\"\ndp = \"ring\"\nep = \"pxn\"\n\"*\" = \"nccl\"\n").unwrap();
        let long = "tp.algorithm = \"nvls\"\ndp.algorithm = \"ring\"\nep.tuning.nic = \"pxn\"\n\"*\".algorithm = \"nccl\"\n";
        assert_eq!(short, read(long).unwrap());
        for algorithm in Algorithm::ALL {
            let tp = read(&format!("tp = \"{}\"", algorithm.name())).unwrap().tp;
            assert_eq!(tp.algorithm, Some(*algorithm));
        }
        // The resolved scenario has tables, which are read back as the same.
        assert_eq!(read(&toml::to_string(&short).unwrap()).unwrap(), short);
    }

    #[test]
    fn a_star_stands_for_all_kinds_of_which_nothing_is_set() {
        let dimensions = read("dp.tuning.channels = 4\n\"*\" = \"nccl\"\n").unwrap();
        let of = |name, own| dimensions.of(name, own);
        assert_eq!(of("tp", &dimensions.tp), ("*", dimensions.others.as_ref().unwrap()));
        assert_eq!(of("dp", &dimensions.dp), ("dp", &dimensions.dp));
        let without = read("dp = \"tree\"\n").unwrap();
        assert_eq!(without.of("tp", &without.tp), ("tp", &Dimension::default()));
    }

    /// A step on two servers of four GPUs with these collectives.
    fn checked(collectives: &str) -> Result<crate::Checked, String> {
        let text = format!(
            "[server]\ngpus = 4\n[topology.rails]\nservers = 2\nspines = 2\n[[workload]]\n[workload.training]\n\
             model = {{ hidden = 512, layers = 2, heads = 8, ffn = 2048, gated = true, vocab = 1000, \
             moe = {{ experts = 8, top-k = 2 }} }}\nparallel = {{ tp = 2, ep = 2 }}\n\
             batch = {{ global = 4, sequence = 64 }}\ncompute = {{ flops = \"400TFLOPS\" }}\nrouting = {{ skew = 0.5 }}\n\
             collectives = {collectives}\n"
        );
        crate::check(&crate::Source::new("s.toml", text), &[]).map_err(|e| e.located())
    }

    #[test]
    fn both_forms_lay_the_same_step() {
        let long = "{ tp = { algorithm = \"ring\" }, dp = { algorithm = \"direct\" }, ep = { tuning = { window = 1 } } }";
        let long = checked(long).unwrap();
        let short =
            checked("{ tp = \"ring\", ep = { tuning = { window = 1 } }, \"*\" = \"direct\" }").unwrap();
        assert!((&short.plan.messages, &short.plan.tasks) == (&long.plan.messages, &long.plan.tasks));
        let usual = checked("{}").unwrap();
        assert_ne!(short.plan.messages.len(), usual.plan.messages.len());
        // What a run records reads back as the same scenario.
        let again = crate::check(&crate::Source::new("again.toml", short.to_toml()), &[]).unwrap();
        assert_eq!(again.scenario, short.scenario);
    }

    #[test]
    fn mistakes_have_a_position() {
        for (collectives, message) in [
            ("{ tp = \"rin\" }", "s.toml:13:22: unknown name `rin`; did you mean `ring`?"),
            ("{ tp = 3 }", "s.toml:13:22: expected the name of an algorithm, such as \"ring\", or a table"),
            ("{ tp = [\"ring\"] }", "s.toml:13:22: expected the name of an algorithm"),
            (
                "{ tp = { algoritm = \"ring\" } }",
                "s.toml:13:24: unknown key `algoritm`; did you mean `algorithm`?",
            ),
            ("{ tp = { algorithm = \"rin\" } }", "s.toml:13:36: unknown name `rin`; did you mean `ring`?"),
            ("{ pp = \"ring\" }", "s.toml:13:17: unknown key `pp`"),
            ("{ \"*\" = { tuning = { channels = 0 } } }", "s.toml:13:47: expected 1 to 64 channels, found 0"),
            ("{ \"*\" = \"pat\" }", "s.toml:13:23: `pat` needs groups with one rank per server"),
        ] {
            let error = checked(collectives).map(|_| ()).unwrap_err();
            assert!(error.starts_with(message), "{collectives}: {error}");
        }
    }
}
