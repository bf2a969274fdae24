//! Means and percentiles.

use serde::Serialize;

/// Mean, two percentiles and the maximum of a set of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median, nearest rank.
    pub p50: f64,
    /// 99th percentile, nearest rank.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// Of these numbers; `None` if there are none.
    pub fn of(mut numbers: Vec<f64>) -> Option<Self> {
        let mean = mean(&numbers)?;
        numbers.sort_unstable_by(f64::total_cmp);
        let max = *numbers.last()?;
        Some(Spread { mean, p50: nearest_rank(&numbers, 50), p99: nearest_rank(&numbers, 99), max })
    }
}

/// The arithmetic mean; `None` of nothing.
pub fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// The smallest and the largest; `None` of nothing.
pub fn extremes(numbers: &[f64]) -> Option<(f64, f64)> {
    let least = numbers.iter().copied().min_by(f64::total_cmp)?;
    let most = numbers.iter().copied().max_by(f64::total_cmp)?;
    Some((least, most))
}

/// The percentile by nearest rank: the smallest number that at least `percent` % of them do not exceed.
///
/// # Panics
/// If `sorted` is empty.
pub fn nearest_rank(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

/// `part / whole`, 0 if there is no whole.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let five = [15.0, 20.0, 35.0, 40.0, 50.0];
        for (percent, expected) in [(0, 15.0), (5, 15.0), (30, 20.0), (40, 20.0), (50, 35.0), (100, 50.0)] {
            assert_eq!(nearest_rank(&five, percent), expected, "{percent}");
        }
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(nearest_rank(&hundred, 99), 99.0);
        assert_eq!(nearest_rank(&hundred[..99], 99), 99.0);
        assert_eq!(nearest_rank(&[7.0], 99), 7.0);
    }

    #[test]
    fn a_spread_sorts_for_itself() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!(spread, Spread { mean: 4.0, p50: 2.0, p99: 10.0, max: 10.0 });
        assert_eq!(Spread::of(vec![]), None);
        assert_eq!(extremes(&[2.0, -1.0]), Some((-1.0, 2.0)));
        assert_eq!(share(1, 0), 0.0);
    }
}
