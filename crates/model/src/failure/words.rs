//! Failures in words: one vocabulary for all pages, lines and tables. A link is *down*, *slowed to* a rate, or *gray*, and for how
//! long.

use super::{Effect, Failures};
use crate::{Fabric, LinkId, Rate, Time};
use std::fmt;

/// Most spans of one failure that are named one by one. Our choice: two flaps are named, and more are counted.
const NAMED: usize = 3;

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Down => f.write_str("down"),
            Effect::Slow(rate) => write!(f, "slowed to {}", rate_in_words(*rate)),
            Effect::Gray(chance) => write!(f, "gray (loses {} of packets)", percent(chance.share())),
            Effect::Storm => f.write_str("in a storm of pauses"),
        }
    }
}

impl Failures {
    /// What failures do to one direction of a link up to `end`, in words; empty if nothing happens to it.
    pub fn words_of(&self, fabric: &Fabric, link: LinkId, end: Time) -> String {
        let mut known: Vec<(Effect, Vec<(Time, Time)>)> = Vec::new();
        for fault in self.faults_of(fabric, link).into_iter().filter(|fault| fault.at <= end) {
            match known.iter_mut().find(|(effect, _)| *effect == fault.effect) {
                Some((_, spans)) => spans.push((fault.at, fault.until)),
                None => known.push((fault.effect, vec![(fault.at, fault.until)])),
            }
        }
        let said = known.iter().map(|(effect, spans)| format!("{effect}{}", when(spans)));
        said.collect::<Vec<_>>().join("; ")
    }
}

/// When a failure lasts, to follow its effect: ` from 10 us until 20 us and from 30 us on`. A failure of the whole run has no such
/// words.
pub fn when(spans: &[(Time, Time)]) -> String {
    let one = |&(at, until): &(Time, Time)| match (at, until) {
        (Time::ZERO, Time::NEVER) => String::new(),
        (Time::ZERO, until) => format!(" until {}", time_in_words(until)),
        (at, Time::NEVER) => format!(" from {} on", time_in_words(at)),
        (at, until) => format!(" from {} until {}", time_in_words(at), time_in_words(until)),
    };
    match spans {
        [] => String::new(),
        [first, .., last] if spans.len() > NAMED => {
            format!(" {} times, first{}, last{}", spans.len(), one(first), one(last))
        }
        [all @ .., last] if !all.is_empty() => {
            let all: Vec<String> = all.iter().map(one).collect();
            format!("{} and{}", all.join(","), one(last))
        }
        [one_span, ..] => one(one_span),
    }
}

/// A share as per cent, as exactly as it was set: `0.1 %`.
pub fn percent(share: f64) -> String {
    // Five digits are more than anyone sets, and fewer than the rounding of a probability to binary digits shows.
    let percent: f64 = format!("{:.4e}", share * 100.0).parse().unwrap_or(share * 100.0);
    format!("{percent} %")
}

/// A rate with a space before its unit: `100 Gb/s`.
pub fn rate_in_words(rate: Rate) -> String {
    apart(&rate.to_string()).replace("bps", "b/s")
}

/// A time with a space before its unit: `10 us`.
pub fn time_in_words(time: Time) -> String {
    apart(&time.to_string())
}

/// A number and its unit with a space between them.
fn apart(quantity: &str) -> String {
    let unit = quantity.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(unit);
    format!("{number} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Probability;

    #[test]
    fn an_effect_has_one_word() {
        let said = [
            Effect::Down,
            Effect::Slow(Rate::from_gbps(100)),
            Effect::Slow(Rate(2_500_000_000)),
            Effect::Gray(Probability::new(0.001)),
            Effect::Gray(Probability::new(1e-6)),
            Effect::Gray(Probability::new(1.0)),
            Effect::Storm,
        ];
        assert_eq!(
            said.map(|effect| effect.to_string()),
            [
                "down",
                "slowed to 100 Gb/s",
                "slowed to 2500 Mb/s",
                "gray (loses 0.1 % of packets)",
                "gray (loses 0.0001 % of packets)",
                "gray (loses 100 % of packets)",
                "in a storm of pauses",
            ]
        );
    }

    #[test]
    fn spans_are_named_and_many_are_counted() {
        let us = Time::from_us;
        assert_eq!(when(&[(Time::ZERO, Time::NEVER)]), "");
        assert_eq!(when(&[(Time::ZERO, us(5))]), " until 5 us");
        assert_eq!(when(&[(us(5), Time::NEVER)]), " from 5 us on");
        let flaps: Vec<_> = (0..5).map(|i| (us(10 * i + 10), us(10 * i + 12))).collect();
        assert_eq!(when(&flaps[..2]), " from 10 us until 12 us and from 20 us until 22 us");
        assert_eq!(
            when(&flaps[..3]),
            " from 10 us until 12 us, from 20 us until 22 us and from 30 us until 32 us"
        );
        assert_eq!(when(&flaps), " 5 times, first from 10 us until 12 us, last from 50 us until 52 us");
    }
}
