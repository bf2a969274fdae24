//! Distributions of flow sizes: published ones by name, from a file, or by parameters.

use super::cdf::{self, Cdf, LARGEST_FILE, Point};
use super::draft::some_bytes;
use files::file::{self, Reading};
use finding::{Finding, code, suggestion};
use formats::unread;
use model::Bytes;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::path::Path;

/// Source of a distribution of flow sizes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Sizes {
    /// A built-in distribution, or a file. A name with a dot or a slash is a path relative to the scenario's file. Each
    /// row of the file is `bytes percent`, as in the flow generators of the HPCC family of ns-3 simulators.
    Named(String),
    /// A distribution by its parameters.
    Inline(Distribution),
}

/// A distribution of sizes by its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Distribution {
    /// All flows have this size.
    Fixed(Bytes),
    /// Sizes are spread evenly between two limits.
    Uniform(Range),
    /// Rows of a size and the percentage of flows that are at most that large, such as `[["0B", 0], ["10kB", 100]]`;
    /// linear between rows. The rows of a file are stored here when a scenario is read.
    Points(Vec<Point>),
}

/// A range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Range {
    /// Smallest size. No default.
    pub min: Bytes,
    /// Largest size. No default.
    pub max: Bytes,
}

/// Limits of sizes; sizes outside the limits become the nearest limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Clamp {
    /// Lower limit: smaller flows get this size. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Bytes>,
    /// Upper limit: larger flows get this size. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Bytes>,
}

macro_rules! distributions {
    ($($name:literal),+ $(,)?) => {
        /// Built-in distributions: the name, and the text of a file whose comments name the source.
        pub const PUBLISHED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../cdf/", $name, ".cdf")))),+];
    };
}

distributions! {
    "web-search",
    "web-search-opera",
    "data-mining",
    "data-mining-opera",
    "alibaba-storage",
    "facebook-hadoop",
    "facebook-hadoop-2015",
    "solar",
    "google-rpc",
    "enterprise-tail",
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes::Named("web-search".into())
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Sizes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a distribution such as \"web-search\", a file, or a table such as { fixed = \"1MB\" }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Sizes, E> {
                Ok(Sizes::Named(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sizes, A::Error> {
                Distribution::deserialize(MapAccessDeserializer::new(map)).map(Sizes::Inline)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl Sizes {
    /// Replaces the name of a file by its rows, so that a resolved scenario is complete without the file; `folder` is the
    /// folder of the scenario.
    pub(crate) fn read_file(&mut self, folder: &Path) -> Result<(), Finding> {
        let Sizes::Named(name) = self else { return Ok(()) };
        if !name.contains(['.', '/']) {
            return Ok(());
        }
        let path = folder.join(&*name);
        let shown = path.display().to_string();
        let text = file::read(&path, Reading::up_to(LARGEST_FILE, 16))
            .map_err(|e| code::FILE.at("", format!("the file {}", e.about(&shown))))?;
        let points = cdf::read(&shown, &text);
        let points = points
            .map_err(|e| unread::of(text.as_bytes()).map_or(e, |unread| unread.key_error("", &shown)))?;
        *self = Sizes::Inline(Distribution::Points(points));
        Ok(())
    }

    /// The distribution.
    pub(crate) fn cdf(&self) -> Result<Cdf, Finding> {
        let inside = |wrong: cdf::BadPoint| {
            let path = format!("points.{}.{}", wrong.row, wrong.column);
            code::CONTENT.at(&path, wrong.text)
        };
        match self {
            Sizes::Named(name) => {
                let known = PUBLISHED.iter().find(|(known, _)| known == name);
                let Some((name, text)) = known else {
                    let names: Vec<&str> = PUBLISHED.iter().map(|(name, _)| *name).collect();
                    let text = format!("there is no distribution `{name}`; {}", suggestion(name, &names));
                    return Err(code::UNKNOWN_NAME
                        .at("", text)
                        .with_help("the path of a file must have a dot or a slash"));
                };
                Cdf::new(&cdf::read(name, text)?).map_err(inside)
            }
            Sizes::Inline(Distribution::Fixed(bytes)) => {
                some_bytes(*bytes, "fixed")?;
                Cdf::new(&[(*bytes, 100.0)]).map_err(inside)
            }
            Sizes::Inline(Distribution::Uniform(Range { min, max })) => {
                if min > max {
                    return Err(code::FIT.at("uniform.min", format!("`min` ({min}) is above `max` ({max})")));
                }
                some_bytes(*max, "uniform.max")?;
                Cdf::new(&[(*min, 0.0), (*max, 100.0)]).map_err(inside)
            }
            Sizes::Inline(Distribution::Points(points)) => Cdf::new(points).map_err(inside),
        }
    }
}

impl Clamp {
    /// The distribution within these limits.
    pub(crate) fn of(&self, cdf: &Cdf) -> Result<Cdf, Finding> {
        let (least, most) = (self.min.map_or(0, Bytes::get), self.max.map_or(u64::MAX, Bytes::get));
        if let Some(max) = self.max {
            some_bytes(max, "max")?;
        }
        if let Some(min) = self.min {
            some_bytes(min, "min")?;
            if least > most {
                return Err(code::FIT.at("min", format!("`min` ({min}) is above `max` ({})", Bytes(most))));
            }
        }
        Ok(cdf.clamped(least, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_distributions_have_the_means_of_their_sources() {
        // Means in bytes, by numerical integration of the published tables with other code.
        for (name, mean) in [
            ("web-search", 1_711_250.0),
            ("web-search-opera", 1_490_032.7),
            ("data-mining", 12_658_198.6),
            ("data-mining-opera", 5_036_535.2),
            ("alibaba-storage", 40_869.8),
            ("facebook-hadoop", 120_420.8),
            ("facebook-hadoop-2015", 121_848.9),
            ("solar", 39_423.5),
            ("google-rpc", 2_967.9),
            ("enterprise-tail", 67_679.2),
        ] {
            let cdf = Sizes::Named(name.into()).cdf().unwrap();
            assert!((cdf.mean() - mean).abs() < 0.06, "{name}: {}", cdf.mean());
            // Evenly spread draws have the same mean. They must be many, as the largest flows of `data-mining` are rare.
            let n = 1 << 20;
            let drawn = (0..n).map(|i| cdf.size((i << 44) | (1 << 43)) as f64).sum::<f64>() / n as f64;
            assert!((drawn / mean - 1.0).abs() < 2e-4, "{name}: drawn {drawn}");
        }
        assert_eq!(PUBLISHED.len(), 10);
    }

    #[test]
    fn a_published_distribution_names_its_source() {
        for (name, text) in PUBLISHED {
            assert!(text.starts_with('#') && text.contains("bytes, cumulative percent"), "{name}");
        }
    }
}
