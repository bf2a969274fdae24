//! Piecewise linear distributions of flow sizes.
//!
//! A row `bytes percent` gives the percentage of flows that are at most that large; between two rows the percentage grows
//! linearly. If the first row is above 0 %, that percentage of flows has exactly its size. Two rows of the same size are a
//! step: flows of exactly that size. This is the format of the flow generators of the HPCC family of ns-3 simulators.

use finding::{Finding, code};
use model::Bytes;
use std::ops::Range;

/// A row: a size, and the percentage of flows that are at most that large.
pub type Point = (Bytes, f64);

/// Largest flow, bytes (our choice), as in [`super::draft::some_bytes`].
const LARGEST: u64 = 1 << 50;
/// Largest file, bytes (our choice). The longest published table that we know has 461 rows, 7 kB.
pub(crate) const LARGEST_FILE: u64 = 16 << 20;

/// A checked distribution of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Cdf {
    /// Rows (bytes, percent). Neither number ever decreases; the last row has 100 %.
    points: Vec<(f64, f64)>,
}

/// A row that makes a list of points no distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadPoint {
    /// Index of the row.
    pub(crate) row: usize,
    /// 0 if its size is wrong, 1 if its percentage is wrong.
    pub(crate) column: usize,
    /// Finding message.
    pub(crate) text: String,
}

impl Cdf {
    /// Checks rows and makes a distribution of them.
    pub(crate) fn new(points: &[Point]) -> Result<Self, BadPoint> {
        let wrong = |row, column, text: String| Err(BadPoint { row, column, text });
        let mut before = (Bytes(0), 0.0);
        for (row, &(bytes, percent)) in points.iter().enumerate() {
            if bytes.get() > LARGEST {
                return wrong(row, 0, format!("expected at most 1 PiB, found {bytes}"));
            }
            if bytes < before.0 {
                return wrong(row, 0, format!("sizes must not decrease; found {bytes} after {}", before.0));
            }
            if !(0.0..=100.0).contains(&percent) {
                return wrong(row, 1, format!("expected a percentage between 0 and 100, found {percent}"));
            }
            if percent < before.1 {
                return wrong(
                    row,
                    1,
                    format!("percentages must not decrease; found {percent} % after {} %", before.1),
                );
            }
            before = (bytes, percent);
        }
        let last = points.len().saturating_sub(1);
        if points.is_empty() {
            return wrong(0, 0, "expected rows of bytes and percent, up to 100 %; found none".into());
        }
        if before.1 != 100.0 {
            let hint = if before.1 == 1.0 { "; write percentages, not fractions" } else { "" };
            return wrong(last, 1, format!("expected 100 % in the last row, found {} %{hint}", before.1));
        }
        if before.0.get() == 0 {
            return wrong(last, 0, "expected a size above 0, found only flows of 0 bytes".into());
        }
        Ok(Cdf { points: points.iter().map(|(bytes, percent)| (bytes.get() as f64, *percent)).collect() })
    }

    /// The distribution with sizes limited to the range from `least` to `most`.
    pub(crate) fn clamped(&self, least: u64, most: u64) -> Self {
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(self.points.len() + 2);
        for (i, &(bytes, percent)) in self.points.iter().enumerate() {
            if let Some((from, share)) = i.checked_sub(1).map(|before| self.points[before]) {
                // A limit between two rows gets a row of its own, so that the sizes beyond it can become the limit.
                for limit in [least as f64, most as f64] {
                    if from < limit && limit < bytes {
                        points.push((limit, share + (percent - share) * ((limit - from) / (bytes - from))));
                    }
                }
            }
            points.push((bytes, percent));
        }
        for (bytes, _) in &mut points {
            *bytes = bytes.max(least as f64).min(most as f64);
        }
        Cdf { points }
    }

    /// Mean size, bytes.
    pub fn mean(&self) -> f64 {
        let first = self.points.first().map_or(0.0, |(bytes, percent)| bytes * percent);
        let stretch = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) * (pair[0].0 + pair[1].0) / 2.0;
        (first + self.points.windows(2).map(stretch).sum::<f64>()) / 100.0
    }

    /// The size that a uniform 64-bit `draw` selects, rounded to bytes and at least 1.
    pub(crate) fn size(&self, draw: u64) -> u64 {
        // A float holds 53 bits of the draw. The result is below 100, so that the last row is never passed.
        let percent = 100.0 * ((draw >> 11) as f64 / (1u64 << 53) as f64);
        let after = self.points.partition_point(|(_, share)| *share <= percent);
        let bytes = match (after.checked_sub(1).and_then(|i| self.points.get(i)), self.points.get(after)) {
            (Some((from, share)), Some((to, end))) => {
                from + (to - from) * ((percent - share) / (end - share))
            }
            (None, Some((bytes, _))) | (Some((bytes, _)), None) => *bytes,
            (None, None) => 1.0,
        };
        ((bytes + 0.5) as u64).max(1)
    }
}

/// Reads a file of rows `bytes percent`. `#` starts a comment; a byte order mark at the start is skipped. Messages call
/// the file `name`.
pub(crate) fn read(name: &str, text: &str) -> Result<Vec<Point>, Finding> {
    let wrong = |place: Range<usize>, what: String| Err(code::CONTENT.inside(name, text, place, what));
    let mut points = Vec::new();
    let mut places = Vec::new();
    let rows = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut start = text.len() - rows.len();
    for line in rows.split('\n') {
        match words(start, line.split('#').next().unwrap_or_default())[..] {
            [] => {}
            [(bytes, from), (percent, to)] => {
                let place = [from..from + bytes.len(), to..to + percent.len()];
                let [first, second] = place.clone();
                let Some(size) = whole(bytes) else {
                    return wrong(first, format!("expected a whole number of bytes, found `{bytes}`"));
                };
                let Some(share) = percent.parse::<f64>().ok().filter(|share| share.is_finite()) else {
                    return wrong(second, format!("expected a percentage, found `{percent}`"));
                };
                points.push((Bytes(size), share));
                places.push(place);
            }
            [(word, from)] => {
                let what = format!("expected two numbers, bytes and percent; found `{word}` only");
                return wrong(from..from + word.len(), what);
            }
            [(_, from), .., (word, to)] => {
                let what = "expected two numbers, bytes and percent; found more".to_owned();
                return wrong(from..to + word.len(), what);
            }
        }
        start += line.len() + 1;
    }
    match Cdf::new(&points) {
        Ok(_) => Ok(points),
        Err(BadPoint { row, column, text }) => {
            let place = places.get(row).map_or(0..0, |place| place[column].clone());
            wrong(place, text)
        }
    }
}

/// The words of a line that starts at byte `start` of the file, each with its own byte position.
fn words(start: usize, line: &str) -> Vec<(&str, usize)> {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(from) = rest.find(|c: char| !c.is_whitespace()) {
        rest = &rest[from..];
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        words.push((&rest[..length], start + line.len() - rest.len()));
        rest = &rest[length..];
    }
    words
}

/// A whole number of bytes. Some tools write it as `1e6` or `4096.0`.
fn whole(word: &str) -> Option<u64> {
    let float =
        || word.parse::<f64>().ok().filter(|x| x.fract() == 0.0 && (0.0..1e18).contains(x)).map(|x| x as u64);
    word.parse().ok().or_else(float)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cdf(points: &[(u64, f64)]) -> Cdf {
        let points: Vec<Point> = points.iter().map(|&(bytes, percent)| (Bytes(bytes), percent)).collect();
        Cdf::new(&points).unwrap()
    }

    /// A draw in the middle of the `i`-th of `n` equal parts of all draws.
    fn middle(i: u64, n: u64) -> u64 {
        ((u128::from(2 * i + 1) << 64) / u128::from(2 * n)) as u64
    }

    #[test]
    fn sizes_lie_on_the_line_between_two_rows() {
        let web = cdf(&[(0, 0.0), (10_000, 15.0), (20_000, 20.0), (20_000, 60.0), (40_000, 100.0)]);
        for (percent, bytes) in [(0, 1), (3, 2_000), (15, 10_000), (16, 12_000), (30, 20_000), (80, 30_000)] {
            let draw = ((u128::from(percent as u64) << 64) / 100) as u64 + (1 << 12);
            assert_eq!(web.size(draw), bytes, "{percent} %");
        }
        assert_eq!(web.size(0), 1, "no flow is empty");
        assert_eq!(web.size(u64::MAX), 40_000);
        // Computed by hand: 15 % of 5 kB, 5 % of 15 kB, 40 % of 20 kB and 40 % of 30 kB.
        assert!((web.mean() - (750.0 + 750.0 + 8_000.0 + 12_000.0)).abs() < 1e-6, "{}", web.mean());
    }

    #[test]
    fn a_first_row_above_0_percent_is_flows_of_that_size() {
        let step = cdf(&[(100, 25.0), (300, 75.0), (300, 100.0)]);
        let sizes: Vec<u64> = (0..8).map(|i| step.size(middle(i, 8))).collect();
        assert_eq!(sizes, [100, 100, 125, 175, 225, 275, 300, 300]);
        assert!((step.mean() - (25.0 + 100.0 + 75.0)).abs() < 1e-9);
        assert_eq!(cdf(&[(7, 100.0)]).size(u64::MAX), 7, "with one row all flows have its size");
    }

    #[test]
    fn a_clamped_distribution_draws_the_clamped_sizes() {
        let all = cdf(&[(0, 0.0), (1_000, 50.0), (9_000, 100.0)]);
        let some = all.clamped(500, 5_000);
        let mut sum = 0;
        for i in 0..10_000 {
            let draw = middle(i, 10_000);
            assert!(some.size(draw).abs_diff(all.size(draw).clamp(500, 5_000)) <= 1);
            sum += some.size(draw);
        }
        assert!((some.mean() - sum as f64 / 10_000.0).abs() < 1.0, "{} {sum}", some.mean());
        assert_eq!(all.clamped(20_000, 30_000).size(1 << 63), 20_000);
    }

    #[test]
    fn numbers_and_line_ends_of_other_tools_are_read() {
        let text = "# sizes\n0 0\r\n1e3\t50\n\n  2000.0 100.00 # all\n";
        assert_eq!(read("f", text).unwrap(), [(Bytes(0), 0.0), (Bytes(1_000), 50.0), (Bytes(2_000), 100.0)]);
    }

    #[test]
    fn a_byte_order_mark_is_not_read_as_a_size() {
        assert_eq!(read("f", "\u{feff}0 0\n9 100\n").unwrap(), [(Bytes(0), 0.0), (Bytes(9), 100.0)]);
        let error = read("f", "\u{feff}zero 0\n9 100\n").unwrap_err();
        assert_eq!(error.located(), "f:1:2: expected a whole number of bytes, found `zero`");
    }

    #[test]
    fn mistakes_in_a_file_have_a_line_and_a_column() {
        let told = |text: &str| match read("my.cdf", text) {
            Ok(points) => format!("accepted: {points:?}"),
            Err(error) if error.place.is_some() => error.located(),
            Err(error) => format!("no position: {}", error.text),
        };
        for (text, want) in [
            ("", "my.cdf:1:1: expected rows of bytes and percent, up to 100 %; found none"),
            ("# nothing\n", "my.cdf:1:1: expected rows of bytes and percent, up to 100 %; found none"),
            ("0 0\n10 98\n", "my.cdf:2:4: expected 100 % in the last row, found 98 %"),
            (
                "0 0\n10 1\n",
                "my.cdf:2:4: expected 100 % in the last row, found 1 %; write percentages, not fractions",
            ),
            ("0 0\n10 50\n5 100\n", "my.cdf:3:1: sizes must not decrease; found 5B after 10B"),
            ("0 0\n10 50\n20 40\n", "my.cdf:3:4: percentages must not decrease; found 40 % after 50 %"),
            ("0 0\n10 101\n", "my.cdf:2:4: expected a percentage between 0 and 100, found 101"),
            ("0 -1\n", "my.cdf:1:3: expected a percentage between 0 and 100, found -1"),
            ("small 0\n", "my.cdf:1:1: expected a whole number of bytes, found `small`"),
            ("-5 0\n", "my.cdf:1:1: expected a whole number of bytes, found `-5`"),
            ("1.5 0\n", "my.cdf:1:1: expected a whole number of bytes, found `1.5`"),
            ("0 0\n  10 all\n", "my.cdf:2:6: expected a percentage, found `all`"),
            ("0 nan\n", "my.cdf:1:3: expected a percentage, found `nan`"),
            ("0 0\n10\n", "my.cdf:2:1: expected two numbers, bytes and percent; found `10` only"),
            ("0 0\n 1 2 3\n", "my.cdf:2:2: expected two numbers, bytes and percent; found more"),
            ("0 0\n0 100\n", "my.cdf:2:1: expected a size above 0, found only flows of 0 bytes"),
            ("0 0\n9e15 100\n", "my.cdf:2:1: expected at most 1 PiB, found 9000000GB"),
        ] {
            assert_eq!(told(text), want);
        }
    }
}
