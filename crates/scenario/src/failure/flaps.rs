//! `flaps` of a `[[failure]]`: links that fail and come back again and again.

use crate::rounded::{exponential, log_normal};
use finding::{Finding, code};
use model::Time;
use model::draw::{Key, below};
use model::failure::{percent, time_in_words};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// How often each link flaps, and for how long. Times are drawn by the seed, for each link by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Flaps {
    /// Mean time from a link's recovery, or from `at`, until its next failure; the times are exponential. Set either `up` or
    /// `per-link-day`. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<Time>,
    /// Flaps of each link per day that it is up. More than 10 million links of an operator had 1.8e-4 (arXiv 2603.03736,
    /// extrapolated there). No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_link_day: Option<f64>,
    /// How long a link is down: the mean of exponential times, a list of times of equal chance such as `["100ms", "2s"]`, or a
    /// table of a log-normal distribution, `{ median = "1s", sigma = 1.5 }`. No default: no operator has published times.
    pub down: Down,
}

/// How long a flap lasts.
#[derive(Clone, Debug, PartialEq)]
pub enum Down {
    /// Exponential times with this mean.
    Mean(Time),
    /// Times of equal chance.
    List(Vec<Time>),
    /// Log-normal times.
    LogNormal(LogNormal),
}

/// A log-normal distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogNormal {
    /// Half of all flaps are shorter. No default.
    pub median: Time,
    /// Standard deviation of the natural logarithm, at most 10. No default.
    pub sigma: f64,
}

/// A day, ps.
const DAY: f64 = 86_400e12;
/// Largest `sigma` (our choice: one flap in six is longer than 22,000 medians).
const WIDEST: f64 = 10.0;

impl Flaps {
    /// Mean time up, ps.
    fn mean_up(&self) -> Result<f64, Finding> {
        match (self.up, self.per_link_day) {
            (Some(up), None) if up > Time::ZERO => Ok(up.ps() as f64),
            (Some(_), None) => Err(code::RANGE.at("up", "expected a time above 0")),
            (None, Some(rate)) if rate > 0.0 && rate.is_finite() => Ok(DAY / rate),
            (None, Some(rate)) => {
                Err(code::RANGE.at("per-link-day", format!("expected a number above 0, found {rate}")))
            }
            (Some(_), Some(_)) => Err(code::CONFLICT.at("per-link-day", "set either `up` or `per-link-day`")),
            (None, None) => {
                let mut error = code::NEEDS.at("", "no link flaps; set `up` or `per-link-day`");
                error.at_key = true;
                Err(error)
            }
        }
    }

    /// Whether the times can be drawn.
    pub(super) fn check(&self) -> Result<(), Finding> {
        self.mean_up()?;
        match &self.down {
            Down::Mean(Time::ZERO) => Err(code::RANGE.at("down", "expected a time above 0")),
            Down::List(times) if times.is_empty() => {
                Err(code::RANGE.at("down", "expected at least one time, found none"))
            }
            Down::List(times) => match times.iter().position(|time| *time == Time::ZERO) {
                Some(i) => Err(code::RANGE.at(&format!("down.{i}"), "expected a time above 0")),
                None => Ok(()),
            },
            Down::LogNormal(LogNormal { median: Time::ZERO, .. }) => {
                Err(code::RANGE.at("down.median", "expected a time above 0"))
            }
            Down::LogNormal(LogNormal { sigma, .. }) if !(0.0..=WIDEST).contains(sigma) => {
                let text = format!("expected a number from 0 to {WIDEST}, found {sigma}");
                Err(code::RANGE.at("down.sigma", text))
            }
            _ => Ok(()),
        }
    }

    /// The flaps of a link that begin from `at` to `until`, at most `most` and one more.
    pub(super) fn of_link(&self, key: Key, (at, until): (Time, Time), most: usize) -> Vec<(Time, Time)> {
        let mean_up = self.mean_up().unwrap_or(f64::INFINITY);
        let mut spans = Vec::new();
        let mut now = at.ps();
        for flap in 0..=most as u64 {
            // A float above the largest number becomes the largest one.
            let up = (mean_up * exponential(key.draw2(flap, 0))) as u64;
            let from = now.saturating_add(up);
            if from >= until.ps() {
                break;
            }
            let down = self.down.draw(|what| key.draw2(flap, 1 + what));
            now = from.saturating_add(down.max(1));
            spans.push((Time(from), Time(now)));
        }
        spans
    }
}

impl Down {
    /// A time, ps; `draw` gives a uniform number for every ordinal.
    fn draw(&self, draw: impl Fn(u64) -> u64) -> u64 {
        match self {
            Down::Mean(mean) => (mean.ps() as f64 * exponential(draw(0))) as u64,
            Down::List(times) => times[below(draw(0), times.len())].ps(),
            Down::LogNormal(LogNormal { median, sigma }) => {
                (median.ps() as f64 * log_normal(*sigma, draw)) as u64
            }
        }
    }
}

/// Such as `up for 10 ms on average, down for 1 ms on average`.
impl fmt::Display for Flaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let often = match (self.up, self.per_link_day) {
            (Some(up), _) => format!("up for {} on average", time_in_words(up)),
            (None, rate) => format!("{} times a day on average", rate.unwrap_or(0.0)),
        };
        let long = match &self.down {
            Down::Mean(mean) => format!("down for {} on average", time_in_words(*mean)),
            Down::List(times) => {
                let times: Vec<String> = times.iter().map(|time| time_in_words(*time)).collect();
                format!("down for {}", times.join(" or "))
            }
            Down::LogNormal(LogNormal { median, sigma }) => {
                format!("half of the times down for less than {}, sigma {sigma}", time_in_words(*median))
            }
        };
        write!(f, "{often}, {long}")
    }
}

/// Flaps of a failure that are longer than a time: their share in words, and the number of all.
pub(crate) fn longer(flaps: &[(Time, Time)], than: Time) -> Option<String> {
    let long = flaps.iter().filter(|(at, until)| until.since(*at) > than).count();
    let share = percent(long as f64 / flaps.len().max(1) as f64);
    (long > 0).then(|| format!("{long} of {} flaps ({share})", flaps.len()))
}

impl Serialize for Down {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Down::Mean(mean) => mean.serialize(to),
            Down::List(times) => times.serialize(to),
            Down::LogNormal(times) => times.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Down {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Down;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"1ms\", a list of times, or a table with median and sigma")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Down, E> {
                text.parse().map(Down::Mean).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Down, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Down::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Down, A::Error> {
                LogNormal::deserialize(MapAccessDeserializer::new(map)).map(Down::LogNormal)
            }
        }

        deserializer.deserialize_any(ValueVisitor)
    }
}

impl JsonSchema for Down {
    fn schema_name() -> Cow<'static, str> {
        "Down".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Time>();
        let list = generator.subschema_for::<Vec<Time>>();
        let log_normal = generator.subschema_for::<LogNormal>();
        json_schema!({ "anyOf": [time, list, log_normal] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::draw::Purpose;

    fn flaps(text: &str) -> Flaps {
        toml::from_str(text).unwrap()
    }

    /// The lengths of the times up and down of one link over many seconds, ms.
    fn lengths(text: &str) -> (Vec<f64>, Vec<f64>) {
        let flaps = flaps(text);
        let spans = flaps.of_link(Key::new(7, Purpose::Flap, 0), (Time::ZERO, Time::NEVER), 40_000);
        let ms = |from: Time, until: Time| until.since(from).ps() as f64 / 1e9;
        let up = spans.windows(2).map(|pair| ms(pair[0].1, pair[1].0)).collect();
        (up, spans.iter().map(|(from, until)| ms(*from, *until)).collect())
    }

    fn mean(all: &[f64]) -> f64 {
        all.iter().sum::<f64>() / all.len() as f64
    }

    fn share(all: &[f64], above: f64) -> f64 {
        all.iter().filter(|one| **one > above).count() as f64 / all.len() as f64
    }

    #[test]
    fn times_up_and_down_have_their_means_and_distributions() {
        let (up, down) = lengths("up = \"10ms\"\ndown = \"1ms\"");
        assert!((mean(&up) / 10.0 - 1.0).abs() < 0.02, "{}", mean(&up));
        assert!((mean(&down) - 1.0).abs() < 0.02, "{}", mean(&down));
        // An exponential time is longer than twice its mean with a chance of exp(-2).
        assert!((share(&down, 2.0) - 0.1353).abs() < 0.01 && (share(&up, 20.0) - 0.1353).abs() < 0.01);
        let (_, listed) = lengths("up = \"10ms\"\ndown = [\"1ms\", \"5ms\"]");
        assert!(
            listed.iter().all(|one| [1.0, 5.0].contains(one)) && (share(&listed, 2.0) - 0.5).abs() < 0.01
        );
        let (_, wide) = lengths("up = \"10ms\"\ndown = { median = \"2ms\", sigma = 1.5 }");
        assert!((share(&wide, 2.0) - 0.5).abs() < 0.01, "the median");
        // One standard deviation above it: exp(1.5) medians.
        assert!((share(&wide, 2.0 * 1.5f64.exp()) - 0.1587).abs() < 0.01);
    }

    #[test]
    fn a_rate_per_day_is_a_mean_time_up() {
        let (up, _) = lengths("per-link-day = 8.64e6\ndown = \"1ms\"");
        assert!((mean(&up) / 10.0 - 1.0).abs() < 0.02, "{}", mean(&up));
        // As rare as in the field, hardly any link flaps in a second.
        let rare = flaps("per-link-day = 1.8e-4\ndown = \"2s\"");
        let second = (Time::ZERO, Time::from_ms(1000));
        let flapping =
            (0..10_000).filter(|link| !rare.of_link(Key::new(7, Purpose::Flap, *link), second, 9).is_empty());
        assert_eq!(flapping.count(), 0);
    }

    #[test]
    fn impossible_times_are_refused() {
        for (text, told) in [
            ("down = \"1ms\"", "set `up` or `per-link-day`"),
            ("up = \"1ms\"\nper-link-day = 2\ndown = \"1ms\"", "set either"),
            ("up = \"0ms\"\ndown = \"1ms\"", "above 0"),
            ("per-link-day = -2\ndown = \"1ms\"", "above 0"),
            ("up = \"1ms\"\ndown = []", "at least one"),
            ("up = \"1ms\"\ndown = [\"1ms\", \"0us\"]", "above 0"),
            ("up = \"1ms\"\ndown = { median = \"1ms\", sigma = 11 }", "from 0 to 10"),
        ] {
            let error = flaps(text).check().unwrap_err();
            assert!(error.text.contains(told), "{text}: {}", error.text);
        }
        let error = toml::from_str::<Flaps>("up = \"1ms\"\ndown = 3").unwrap_err().to_string();
        assert!(error.contains("a list of times, or a table"), "{error}");
    }

    #[test]
    fn the_share_of_long_flaps_is_told() {
        let flaps = [(0, 1), (5, 9), (10, 20), (30, 31)].map(|(a, b)| (Time::from_ms(a), Time::from_ms(b)));
        assert_eq!(longer(&flaps, Time::from_ms(4)).unwrap(), "1 of 4 flaps (25 %)");
        assert_eq!(longer(&flaps, Time::from_ms(10)), None);
    }
}
