//! Metrics over the seeds of a case: means with their ranges.

use crate::experiment::Runs;
use lab::Run;
use results::stats::{extremes, mean};
use results::text;

/// Value of a metric; `None` if the run does not have it.
pub(crate) type Metric = fn(&Run) -> Option<f64>;

/// Values of a metric in the order of the seeds; empty if a run is not complete or lacks the metric.
pub(crate) fn over_seeds(runs: &Runs, label: &str, metric: Metric) -> Vec<f64> {
    let all: Option<Vec<f64>> = runs.all(label).into_iter().map(|run| metric(run?)).collect();
    all.unwrap_or_default()
}

/// A mean with the range of its values.
pub(crate) fn ranged(values: &[f64]) -> String {
    match (mean(values), extremes(values)) {
        (Some(mean), Some((least, most))) if values.len() > 1 => {
            format!("{} ({} to {})", text::number(mean), text::number(least), text::number(most))
        }
        (mean, _) => text::maybe(mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_its_range_unless_it_is_of_one_value() {
        assert_eq!(ranged(&[1.0, 2.0, 6.0]), "3.00 (1.00 to 6.00)");
        assert_eq!(ranged(&[2.0]), "2.00");
        assert_eq!(ranged(&[]), "-");
    }
}
