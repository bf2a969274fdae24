//! Values with the place that says them.

use serde::Serialize;
use std::fmt;
use std::rc::Rc;

/// A place in a file of the site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Name of the file.
    #[serde(serialize_with = "text")]
    pub file: Rc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Path in the file, such as `BUFFER_POOL|ingress_lossless_pool|size`; empty in files of lines.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}

fn text<S: serde::Serializer>(file: &Rc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(file)
}

impl Place {
    /// The line `line` of a file.
    pub(crate) fn line(file: &Rc<str>, line: usize) -> Self {
        Place { file: Rc::clone(file), line, path: String::new() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, " {}", self.path) }
    }
}

/// A value that a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said<T> {
    pub(crate) value: T,
    pub(crate) at: Place,
}

impl<T> Said<T> {
    /// The value changed, at the same place; `None` if it has no such form.
    pub(crate) fn read<U>(&self, change: impl FnOnce(&T) -> Option<U>) -> Option<Said<U>> {
        Some(Said { value: change(&self.value)?, at: self.at.clone() })
    }
}

/// Bits per second of a speed in Mb/s, as SONiC has it.
pub(crate) fn mbps(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok()?.checked_mul(1_000_000).filter(|bps| RATES.contains(bps))
}

/// Rates that links can have, bits per second.
const RATES: std::ops::RangeInclusive<u64> = 100_000_000..=100_000_000_000_000;

/// Metres of a length such as `40m`.
pub(crate) fn metres(text: &str) -> Option<u64> {
    text.trim().strip_suffix('m')?.parse().ok().filter(|metres| *metres <= 2_000_000)
}

/// Bits per second of a rate such as `400G`, `100Gbps`, `25g` or `4xNDR`; lanes of InfiniBand by the rate of their data.
pub(crate) fn rate(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some((lanes, lane)) = text.split_once('x')
        && let Ok(lanes) = lanes.parse::<u64>()
    {
        // Rates of a lane in Gb/s: InfiniBand Architecture, volume 2; names as in ibnetdiscover.
        let each = match lane.trim().trim_end_matches('+') {
            "SDR" => 2_500,
            "DDR" => 5_000,
            "QDR" => 10_000,
            "FDR10" => 10_000,
            "FDR" => 14_000,
            "EDR" => 25_000,
            "HDR" => 50_000,
            "NDR" => 100_000,
            "XDR" => 200_000,
            _ => return None,
        };
        return lanes.checked_mul(each * 1_000_000).filter(|bps| RATES.contains(bps));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = text[end..].trim().to_ascii_lowercase();
    let factor = match unit.trim_end_matches("bps").trim_end_matches("b/s").trim_end_matches("bit/s").trim() {
        "t" => 1e12,
        "g" | "gbase" | "gb" => 1e9,
        "m" => 1e6,
        "k" => 1e3,
        "" if number >= 1e8 => 1.0,
        // A bare number of Mb/s, as SONiC and spreadsheets have it.
        "" => 1e6,
        _ => return None,
    };
    let bits = number * factor;
    (bits.is_finite() && (1e8..=1e14).contains(&bits)).then_some(bits as u64)
}

/// A rate in ropewalk's words.
pub(crate) fn rate_text(bps: u64) -> String {
    match bps {
        _ if bps.is_multiple_of(1_000_000_000) => format!("{}Gbps", bps / 1_000_000_000),
        _ if bps.is_multiple_of(1_000_000) => format!("{}Mbps", bps / 1_000_000),
        _ => format!("{bps}bps"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_many_spellings() {
        for (text, gbps) in [
            ("400G", 400),
            ("100Gbps", 100),
            ("25 Gb/s", 25),
            ("4xNDR", 400),
            ("100000", 100),
            ("1.6T", 1600),
        ] {
            assert_eq!(rate(text), Some(gbps * 1_000_000_000), "{text}");
        }
        for text in ["", "fast", "x", "0xNDR", "4xABC", "1e99", "-5G", "10M"] {
            assert_eq!(rate(text), None, "{text}");
        }
        assert_eq!((metres("40m"), metres("40"), mbps("400000")), (Some(40), None, Some(400_000_000_000)));
        assert_eq!(rate_text(2_500_000_000), "2500Mbps");
    }
}
