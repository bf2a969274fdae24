//! Means and percentiles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statistics of a set of numbers: mean, two percentiles, the maximum and the mean of the tail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median, nearest rank.
    pub p50: f64,
    /// 99th percentile, nearest rank.
    pub p99: f64,
    /// Largest.
    pub max: f64,
    /// Mean of the numbers above the 99th percentile by rank. Some papers plot this mean as their P99 (the Flowcut artefact
    /// among them). Null if there are fewer than 100 numbers, as no number then ranks above the percentile.
    pub tail_mean: Option<f64>,
}

/// A statistic: its key, its name for people, its meaning, and its number in a spread.
type Statistic = (&'static str, &'static str, &'static str, fn(&Spread) -> Option<f64>);

impl Spread {
    /// The statistics of a spread.
    pub(crate) const STATISTICS: [Statistic; 5] = [
        ("mean", "mean", "mean", |spread| Some(spread.mean)),
        ("p50", "median", "median, nearest rank", |spread| Some(spread.p50)),
        ("p99", "P99", "99th percentile, nearest rank", |spread| Some(spread.p99)),
        ("max", "max", "largest", |spread| Some(spread.max)),
        ("tail_mean", "tail mean", "mean of all above the 99th percentile", |spread| spread.tail_mean),
    ];

    /// Spread of these numbers; `None` if there are none.
    pub fn of(mut numbers: Vec<f64>) -> Option<Self> {
        let mean = mean(&numbers)?;
        let (middle, high) = (rank(numbers.len(), 50) - 1, rank(numbers.len(), 99) - 1);
        // Only the tail is sorted, because its sum goes by order.
        let (below, p99, tail) = numbers.select_nth_unstable_by(high, f64::total_cmp);
        tail.sort_unstable_by(f64::total_cmp);
        let p50 = if middle < high { *below.select_nth_unstable_by(middle, f64::total_cmp).1 } else { *p99 };
        Some(Spread {
            mean,
            p50,
            p99: *p99,
            max: tail.last().copied().unwrap_or(*p99),
            tail_mean: self::mean(tail),
        })
    }
}

/// The arithmetic mean; `None` if there are no numbers.
pub fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// Half of the 95 % confidence interval of a mean: Student's t times the standard error. `None` for fewer than two numbers.
pub fn margin(numbers: &[f64]) -> Option<f64> {
    let freedom = numbers.len().checked_sub(1).filter(|&n| n > 0)?;
    let mean = mean(numbers)?;
    let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    Some(student(freedom) * (squares / freedom as f64 / numbers.len() as f64).sqrt())
}

/// Quantile of Student's t at 97.5 %, for one or more degrees of freedom.
fn student(freedom: usize) -> f64 {
    /// The first nine quantiles (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
    const T: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    /// Quantile of the normal distribution, and the coefficients that follow from it in the expansion for large degrees of
    /// freedom (Abramowitz and Stegun, 26.7.5). With three of them the error is below 0.001 from ten degrees on.
    const NORMAL: f64 = 1.959_964;
    const COEFFICIENTS: [f64; 3] = [2.372_27, 2.822_50, 2.555_85];
    match T.get(freedom - 1) {
        Some(&t) => t,
        None => {
            let mut power = 1.0;
            COEFFICIENTS.iter().fold(NORMAL, |sum, coefficient| {
                power *= freedom as f64;
                sum + coefficient / power
            })
        }
    }
}

/// The smallest and the largest number; `None` if there are none.
pub fn extremes(numbers: &[f64]) -> Option<(f64, f64)> {
    let least = numbers.iter().copied().min_by(f64::total_cmp)?;
    let most = numbers.iter().copied().max_by(f64::total_cmp)?;
    Some((least, most))
}

/// The percentile by nearest rank: the smallest number that at least `percent` % of the numbers do not exceed.
///
/// # Panics
/// If `sorted` is empty.
pub fn nearest_rank(sorted: &[f64], percent: usize) -> f64 {
    sorted[rank(sorted.len(), percent) - 1]
}

/// The rank of a percentile among `n` numbers, from 1.
fn rank(n: usize, percent: usize) -> usize {
    (n * percent).div_ceil(100).max(1)
}

/// `part / whole`; 0 if the whole is 0.
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
    fn an_interval_is_that_of_student() {
        // Mean 3, standard deviation 1.5811, five values: 2.776 * 1.5811 / sqrt(5).
        assert!((margin(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap() - 1.963).abs() < 1e-3);
        assert_eq!((margin(&[]), margin(&[1.0]), margin(&[2.0, 2.0])), (None, None, Some(0.0)));
        // Quantiles from the table of the NIST/SEMATECH e-Handbook, 1.3.6.7.2.
        for (freedom, t) in [(1, 12.706), (9, 2.262), (10, 2.228), (12, 2.179), (30, 2.042), (100, 1.984)] {
            assert!((student(freedom) - t).abs() < 1e-3, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn a_spread_takes_unsorted_numbers() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!(spread, Spread { mean: 4.0, p50: 2.0, p99: 10.0, max: 10.0, tail_mean: None });
        assert_eq!(Spread::of(vec![]), None);
        // Of 1 to 300 the 99th percentile is 297; three rank above it.
        let spread = Spread::of((1..=300).rev().map(f64::from).collect()).unwrap();
        assert_eq!((spread.p99, spread.tail_mean), (297.0, Some(299.0)));
        for n in 1..=205 {
            let numbers: Vec<f64> = (0..n).map(|i| f64::from(i * 7919 % 211)).collect();
            let mut sorted = numbers.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let spread = Spread::of(numbers).unwrap();
            let ranked = (nearest_rank(&sorted, 50), nearest_rank(&sorted, 99), sorted[sorted.len() - 1]);
            assert_eq!((spread.p50, spread.p99, spread.max), ranked, "{n}");
        }
        assert_eq!(Spread::of(vec![5.0; 99]).unwrap().tail_mean, None);
        assert_eq!(extremes(&[2.0, -1.0]), Some((-1.0, 2.0)));
        assert_eq!(share(1, 0), 0.0);
    }
}
