//! Quantities as text: one grammar for [`Time`], [`Rate`], [`MessageRate`] and [`Bytes`], exact in both directions.
//!
//! A quantity is a decimal number and a unit, with or without a space between them: `1us`, `0.4 Tbps`,
//! `2.5e3kB`. It becomes an integer without passing through a float, so `30.4ns` is 30,400 ps and `0.5ps` is an
//! error. A number without a unit is an error, since tools disagree about its unit. [`FromStr`] reads every text that
//! [`std::fmt::Display`] writes.

use crate::{Bytes, MessageRate, Rate, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// A number without a unit.
    #[error("expected a {kind} with a unit such as \"{example}\", found the bare number {found}")]
    Bare {
        /// `time`, `rate` or `size`.
        kind: &'static str,
        /// A correct quantity.
        example: &'static str,
        /// The text.
        found: String,
    },
    /// A text that does not begin with a number.
    #[error("expected a {kind} with a unit such as \"{example}\", found {found:?}")]
    NoNumber {
        /// `time`, `rate` or `size`.
        kind: &'static str,
        /// A correct quantity.
        example: &'static str,
        /// The text.
        found: String,
    },
    /// A unit that does not exist.
    #[error("unknown {kind} unit {unit:?}; {hint}")]
    UnknownUnit {
        /// `time`, `rate` or `size`.
        kind: &'static str,
        /// The unit in the text.
        unit: String,
        /// The nearest unit, or all units.
        hint: String,
    },
    /// A negative number.
    #[error("a {kind} cannot be negative, found {found:?}")]
    Negative {
        /// `time`, `rate` or `size`.
        kind: &'static str,
        /// The text.
        found: String,
    },
    /// A fraction of the base unit.
    #[error("{found:?} is not a whole number of {base}")]
    NotWhole {
        /// The base unit in words.
        base: &'static str,
        /// The text.
        found: String,
    },
    /// More than 2^64 - 1 base units.
    #[error("{found:?} is too large: at most {most} are possible", most = Most(base))]
    TooLarge {
        /// The base unit in words.
        base: &'static str,
        /// The text.
        found: String,
    },
}

struct Most<'a>(&'a str);

impl fmt::Display for Most<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", u64::MAX, self.0)
    }
}

/// Units and texts of one kind of quantity.
struct Grammar {
    kind: &'static str,
    example: &'static str,
    /// The base unit in words.
    base: &'static str,
    /// Units and their factors, common units first: suggestions prefer units at the front.
    units: &'static [(&'static str, u64)],
    /// Converts a unit to the spelling in `units` (case, synonyms).
    canonical: fn(&str) -> String,
    pattern: &'static str,
    description: &'static str,
}

const TIME: Grammar = Grammar {
    kind: "time",
    example: "1us",
    base: "picoseconds",
    units: &[("us", 1_000_000), ("ns", 1_000), ("ms", 1_000_000_000), ("ps", 1), ("s", 1_000_000_000_000)],
    // U+00B5 micro sign and U+03BC Greek mu look alike.
    canonical: |unit| unit.replace(['\u{b5}', '\u{3bc}'], "u"),
    pattern: r"^\d+(\.\d*)?([eE][+-]?\d+)? *(ps|ns|us|µs|μs|ms|s)$",
    description: "A time with its unit: ps, ns, us (or µs), ms or s, such as \"1us\". A whole number of \
                  picoseconds; a bare number is refused.",
};

const RATE: Grammar = Grammar {
    kind: "rate",
    example: "400Gbps",
    base: "bits per second",
    units: &[
        ("Gbps", 1_000_000_000),
        ("Mbps", 1_000_000),
        ("Tbps", 1_000_000_000_000),
        ("kbps", 1_000),
        ("bps", 1),
    ],
    canonical: |unit| {
        // Either case of the prefix is accepted, since millibits do not exist. A capital B would mean bytes and stays.
        let unit = unit.replace("b/s", "bps").replace("bit/s", "bps");
        let mut chars = unit.chars();
        match chars.next() {
            Some(c) if unit.len() > 3 => {
                let c = if c.eq_ignore_ascii_case(&'k') { 'k' } else { c.to_ascii_uppercase() };
                format!("{c}{}", chars.as_str())
            }
            _ => unit,
        }
    },
    pattern: r"^\d+(\.\d*)?([eE][+-]?\d+)? *[kKmMgGtT]?(bps|b/s|bit/s)$",
    description: "A rate in bits per second with its unit: bps, kbps, Mbps, Gbps or Tbps (also Gb/s, Gbit/s), \
                  such as \"400Gbps\"; 1 Gbps = 10^9 bits per second. A bare number is refused.",
};

const MESSAGE_RATE: Grammar = Grammar {
    kind: "message rate",
    example: "16.7M/s",
    base: "messages per second",
    units: &[("M/s", 1_000_000), ("k/s", 1_000), ("G/s", 1_000_000_000), ("/s", 1)],
    canonical: |unit| unit.replace('K', "k"),
    pattern: r"^\d+(\.\d*)?([eE][+-]?\d+)? *[kKMG]?/s$",
    description: "A number of messages per second with its unit: /s, k/s, M/s or G/s, such as \"16.7M/s\". A bare \
                  number is refused.",
};

const BYTES: Grammar = Grammar {
    kind: "size",
    example: "64MB",
    base: "bytes",
    units: &[
        ("MB", 1_000_000),
        ("kB", 1_000),
        ("GB", 1_000_000_000),
        ("B", 1),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ],
    canonical: |unit| match unit {
        "KB" => "kB".into(),
        "kiB" => "KiB".into(),
        _ => unit.into(),
    },
    pattern: r"^\d+(\.\d*)?([eE][+-]?\d+)? *([kKMGT]?B|[kKMGT]iB)$",
    description: "A size in bytes with its unit, such as \"64MB\". B, kB (or KB), MB, GB and TB are powers of \
                  1000; KiB, MiB, GiB and TiB are powers of 1024. A bare number is refused.",
};

impl Grammar {
    fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        let found = || text.to_owned();
        let trimmed = text.trim();
        let (number, unit) = split(trimmed);
        let unit = unit.trim_start();
        let Some(number) = number else {
            return Err(match trimmed.strip_prefix('-').map(split) {
                Some((Some(_), _)) => QuantityError::Negative { kind: self.kind, found: found() },
                _ => QuantityError::NoNumber { kind: self.kind, example: self.example, found: found() },
            });
        };
        if unit.is_empty() {
            return Err(QuantityError::Bare {
                kind: self.kind,
                example: self.example,
                found: trimmed.to_owned(),
            });
        }
        let canonical = (self.canonical)(unit);
        let Some(&(_, factor)) = self.units.iter().find(|(name, _)| *name == canonical) else {
            let (kind, unit) = (self.kind, unit.to_owned());
            return Err(QuantityError::UnknownUnit { kind, hint: self.hint(&canonical), unit });
        };
        number.times(factor).map_err(|e| match e {
            Inexact::Fraction => QuantityError::NotWhole { base: self.base, found: found() },
            Inexact::Overflow => QuantityError::TooLarge { base: self.base, found: found() },
        })
    }

    fn hint(&self, unit: &str) -> String {
        let lower = unit.to_lowercase();
        let near = |name: &&str| strsim::levenshtein(&name.to_lowercase(), &lower);
        let names = || self.units.iter().map(|(name, _)| *name);
        match names().min_by_key(near) {
            Some(name) if near(&name) <= unit.len() / 2 && near(&name) <= 2 => {
                format!("did you mean \"{name}\"?")
            }
            _ => format!("expected one of {}", names().collect::<Vec<_>>().join(", ")),
        }
    }

    fn schema(&self) -> Schema {
        json_schema!({ "type": "string", "pattern": self.pattern, "description": self.description })
    }
}

/// `digits * 10^exponent`.
struct Decimal {
    digits: String,
    exponent: i64,
}

enum Inexact {
    Fraction,
    Overflow,
}

impl Decimal {
    fn times(&self, factor: u64) -> Result<u64, Inexact> {
        let digits = self.digits.trim_start_matches('0');
        if digits.is_empty() {
            return Ok(0);
        }
        let kept = digits.trim_end_matches('0');
        let exponent = self.exponent.saturating_add((digits.len() - kept.len()) as i64);
        // A result below 2^64 without a fraction has fewer significant digits.
        if kept.len() > 32 {
            return Err(if exponent < 0 { Inexact::Fraction } else { Inexact::Overflow });
        }
        let mantissa: u128 = kept.parse().map_err(|_| Inexact::Overflow)?;
        // Cancel powers of ten first, so that no intermediate value overflows.
        let (mut value, mut factor, mut exponent) = (mantissa, factor as u128, exponent);
        while exponent < 0 {
            if factor.is_multiple_of(10) {
                factor /= 10;
            } else if factor.is_multiple_of(5) && value.is_multiple_of(2) {
                (factor, value) = (factor / 5, value / 2);
            } else if factor.is_multiple_of(2) && value.is_multiple_of(5) {
                (factor, value) = (factor / 2, value / 5);
            } else if value.is_multiple_of(10) {
                value /= 10;
            } else {
                return Err(Inexact::Fraction);
            }
            exponent += 1;
        }
        if exponent > 40 {
            return Err(Inexact::Overflow);
        }
        let power = 10u128.checked_pow(exponent as u32).ok_or(Inexact::Overflow)?;
        let whole = value.checked_mul(factor).and_then(|v| v.checked_mul(power)).ok_or(Inexact::Overflow)?;
        u64::try_from(whole).map_err(|_| Inexact::Overflow)
    }
}

/// Splits a text such as `12.5e3 us` into its number and the rest.
fn split(text: &str) -> (Option<Decimal>, &str) {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    if whole == 0 {
        return (None, text);
    }
    let mut all = text[..whole].to_owned();
    let mut rest = &text[whole..];
    let mut exponent = 0i64;
    if let Some(after) = rest.strip_prefix('.') {
        let fraction = digits(after);
        all.push_str(&after[..fraction]);
        exponent = -(fraction as i64);
        rest = &after[fraction..];
    }
    if let Some(after) = rest.strip_prefix(['e', 'E']) {
        let unsigned = after.strip_prefix(['+', '-']).unwrap_or(after);
        let len = digits(unsigned);
        if len > 0 {
            let signed = &after[..after.len() - unsigned.len() + len];
            let shift =
                signed.parse::<i32>().unwrap_or(if signed.starts_with('-') { i32::MIN } else { i32::MAX });
            exponent += i64::from(shift);
            rest = &unsigned[len..];
        }
    }
    (Some(Decimal { digits: all, exponent }), rest)
}

macro_rules! quantity {
    ($name:ident, $grammar:ident) => {
        impl FromStr for $name {
            type Err = QuantityError;

            fn from_str(text: &str) -> Result<Self, QuantityError> {
                $grammar.parse(text).map($name)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "a {} with a unit such as \"{}\"", $grammar.kind, $grammar.example)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }

                    fn visit_i64<E: de::Error>(self, found: i64) -> Result<$name, E> {
                        Err(bare(&$grammar, &found))
                    }

                    fn visit_u64<E: de::Error>(self, found: u64) -> Result<$name, E> {
                        Err(bare(&$grammar, &found))
                    }

                    fn visit_f64<E: de::Error>(self, found: f64) -> Result<$name, E> {
                        Err(bare(&$grammar, &found))
                    }
                }

                deserializer.deserialize_any(Text)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $grammar.schema()
            }
        }
    };
}

fn bare<E: de::Error>(grammar: &Grammar, found: &dyn fmt::Display) -> E {
    let found = found.to_string();
    E::custom(QuantityError::Bare { kind: grammar.kind, example: grammar.example, found })
}

quantity!(Time, TIME);
quantity!(Rate, RATE);
quantity!(Bytes, BYTES);
quantity!(MessageRate, MESSAGE_RATE);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(text: &str) -> Result<u64, String> {
        text.parse::<Time>().map(|t| t.0).map_err(|e| e.to_string())
    }

    fn rate(text: &str) -> Result<u64, String> {
        text.parse::<Rate>().map(|t| t.0).map_err(|e| e.to_string())
    }

    fn bytes(text: &str) -> Result<u64, String> {
        text.parse::<Bytes>().map(|t| t.0).map_err(|e| e.to_string())
    }

    #[test]
    fn message_rates_have_units_and_gaps() {
        for (text, rate, gap) in
            [("3.87M/s", 3_870_000, 258_398), ("16.7 M/s", 16_700_000, 59_880), ("2K/s", 2_000, 500_000_000)]
        {
            let read: MessageRate = text.parse().unwrap();
            assert_eq!((read, read.gap()), (MessageRate(rate), Time(gap)), "{text}");
            assert_eq!(read.to_string().parse(), Ok(read));
        }
        assert!("3870000".parse::<MessageRate>().is_err(), "a bare number");
    }

    #[test]
    fn every_unit_is_exact() {
        for (text, ps) in [
            ("1ps", 1),
            ("30.4ns", 30_400),
            ("1us", 1_000_000),
            ("1 µs", 1_000_000),
            ("0.001ms", 1_000_000),
            ("2s", 2_000_000_000_000),
            ("0.000000000001s", 1),
            ("1.5e-3ms", 1_500_000),
            ("0us", 0),
        ] {
            assert_eq!(time(text), Ok(ps), "{text}");
        }
        for (text, bps) in [
            ("100Gbps", 100_000_000_000),
            ("0.4Tbps", 400_000_000_000),
            ("50Mb/s", 50_000_000),
            ("100gbps", 100_000_000_000),
            ("2.5 Gbit/s", 2_500_000_000),
            ("7kbps", 7_000),
            ("7Kb/s", 7_000),
            ("9bps", 9),
        ] {
            assert_eq!(rate(text), Ok(bps), "{text}");
        }
        for (text, b) in [
            ("64MB", 64_000_000),
            ("100kB", 100_000),
            ("100KB", 100_000),
            ("3KiB", 3_072),
            ("12MiB", 12_582_912),
            ("0.5KiB", 512),
            ("18.75MB", 18_750_000),
            ("1GiB", 1 << 30),
            ("18446744073709551615B", u64::MAX),
        ] {
            assert_eq!(bytes(text), Ok(b), "{text}");
        }
    }

    #[test]
    fn errors_name_the_mistake() {
        for (got, want) in [
            (time("1"), r#"expected a time with a unit such as "1us", found the bare number 1"#),
            (time("fast"), r#"expected a time with a unit such as "1us", found "fast""#),
            (time("-1us"), r#"a time cannot be negative, found "-1us""#),
            (time("0.5ps"), r#""0.5ps" is not a whole number of picoseconds"#),
            (time("1e30s"), r#""1e30s" is too large: at most 18446744073709551615 picoseconds are possible"#),
            (time("1usec"), r#"unknown time unit "usec"; did you mean "us"?"#),
            (rate("100Gbs"), r#"unknown rate unit "Gbs"; did you mean "Gbps"?"#),
            (rate("100GBps"), r#"unknown rate unit "GBps"; did you mean "Gbps"?"#),
            (rate("1us"), r#"unknown rate unit "us"; expected one of Gbps, Mbps, Tbps, kbps, bps"#),
            (bytes("64mb"), r#"unknown size unit "mb"; did you mean "MB"?"#),
            (
                bytes("64 Mbyte"),
                r#"unknown size unit "Mbyte"; expected one of MB, kB, GB, B, TB, KiB, MiB, GiB, TiB"#,
            ),
            (bytes("0.5B"), r#""0.5B" is not a whole number of bytes"#),
            (bytes(""), r#"expected a size with a unit such as "64MB", found """#),
        ] {
            assert_eq!(got, Err(want.to_owned()));
        }
    }

    #[test]
    fn serde_refuses_a_bare_number() {
        let error = |json: &str| serde_json::from_str::<Time>(json).unwrap_err().to_string();
        let text = r#"expected a time with a unit such as "1us", found the bare number 1"#;
        assert!(error("1").starts_with(text), "{}", error("1"));
        assert!(error("true").contains(r#"a time with a unit such as "1us""#), "{}", error("true"));
        assert_eq!(serde_json::to_string(&Rate::from_gbps(400)).unwrap(), "\"400Gbps\"");
    }

    proptest! {
        #[test]
        fn from_str_reads_what_display_writes(n: u64, shift in 0u32..64) {
            let n = n >> shift;
            prop_assert_eq!(Time(n).to_string().parse(), Ok(Time(n)));
            prop_assert_eq!(Rate(n).to_string().parse(), Ok(Rate(n)));
            prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
        }

        #[test]
        fn no_text_panics(text in "\\PC*", number in "[0-9]{0,40}[.]?[0-9]{0,40}(e-?[0-9]{1,20})?[a-zA-Zµ]{0,4}") {
            for t in [&text, &number] {
                let _ = (time(t), rate(t), bytes(t));
            }
        }
    }
}
