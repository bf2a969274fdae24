//! The seed and the times of a run lie within what a run can compute and write down.

use super::case::Case;
use crate::values::LATEST;
use finding::{Finding, code};
use model::Time;

/// Largest difference of two clocks. A packet carries its one-way delay, measured by two clocks, in 48 bits of picoseconds
/// (140 s in each direction).
const MOST_SPREAD: Time = Time::from_ms(60_000);

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let (seed, stop, spread) = (case.scenario.seed, &case.scenario.stop, case.scenario.nic.clock_spread);
    // TOML cannot write a larger number, and the results of a run must contain its seed.
    let seed = (seed > i64::MAX as u64)
        .then(|| code::RANGE.at("seed", format!("expected a seed of at most {}, found {seed}", i64::MAX)));
    let times = [("stop.no-progress", stop.no_progress), ("stop.after", stop.after)];
    let times = times.into_iter().filter_map(|(key, time)| {
        let time = time.filter(|time| *time == Time::ZERO || *time > LATEST)?;
        Some(code::RANGE.at(key, format!("expected a time above 0 and at most {LATEST}, found {time}")))
    });
    let spread = (spread > MOST_SPREAD).then(|| {
        code::RANGE.at("nic.clock-spread", format!("expected at most {MOST_SPREAD}, found {spread}"))
    });
    seed.into_iter().chain(times).chain(spread).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn times_that_no_run_can_have_are_refused() {
        let times = "expected a time above 0 and at most 1000000s";
        assert_eq!(told_of("[stop]\nafter = \"0s\""), format!("s.toml:6:9: {times}, found 0s"));
        assert_eq!(told_of("[stop]\nno-progress = \"0s\""), format!("s.toml:6:15: {times}, found 0s"));
        assert_eq!(told_of("[nic]\nclock-spread = \"61s\""), "s.toml:6:16: expected at most 60s, found 61s");
        assert_eq!(told_of("[nic]\nclock-spread = \"60s\"\n[stop]\nafter = \"1s\""), "");
    }

    #[test]
    fn a_seed_that_results_could_not_contain_is_refused() {
        let checked = crate::load("themis-fig1", &[]).unwrap();
        let error = checked.with_seed(1 << 63).unwrap_err().to_string();
        assert_eq!(error, "expected a seed of at most 9223372036854775807, found 9223372036854775808");
    }
}
