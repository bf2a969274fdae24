//! Penalties: a receiver that is short of resources makes its senders shrink their windows.

use finding::{Finding, code};
use model::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time in which receivers ask for a penalty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Penalty {
    /// Share of the arrived bytes that the window loses, in 1/128, from 1 to 127. Default 127 (the largest; our
    /// choice).
    #[serde(default = "largest")]
    #[schemars(range(min = 1, max = 127))]
    pub share: u8,
    /// Start, by the time of the run. Default 0 (our choice).
    #[serde(default)]
    pub at: Time,
    /// End: from then on, senders take the window back that they had before. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// The largest penalty: an ACK has seven bits for it.
const fn largest() -> u8 {
    127
}

/// Checks a list of penalties.
pub(crate) fn validate(penalties: &[Penalty]) -> Result<(), Finding> {
    for (i, Penalty { share, at, until }) in penalties.iter().enumerate() {
        if !(1..=127).contains(share) {
            let text = format!("must be from 1 to 127, found {share}");
            return Err(code::RANGE.at(&format!("penalties.{i}.share"), text));
        }
        if let Some(until) = until.filter(|until| until <= at) {
            let text = format!("must be after `at`, {at}; found {until}");
            return Err(code::FIT.at(&format!("penalties.{i}.until"), text));
        }
    }
    Ok(())
}

/// The penalty of a reply that leaves at `now`, and whether it ends an earlier one. The largest of several counts.
pub(crate) fn at(penalties: &[Penalty], now: Time) -> (u8, bool) {
    let applies = |penalty: &&Penalty| penalty.at <= now && penalty.until.is_none_or(|until| now < until);
    let share = penalties.iter().filter(applies).map(|penalty| penalty.share).max().unwrap_or(0);
    (share, share == 0 && penalties.iter().any(|penalty| penalty.until.is_some_and(|until| until <= now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_penalty_counts_until_it_ends() {
        let us = Time::from_us;
        let penalties = [
            Penalty { share: 5, at: us(10), until: Some(us(40)) },
            Penalty { share: 127, at: us(20), until: Some(us(30)) },
        ];
        let found = [9, 10, 20, 30, 40].map(|now| at(&penalties, us(now)));
        assert_eq!(found, [(0, false), (5, false), (127, false), (5, false), (0, true)]);
        assert_eq!(validate(&penalties), Ok(()));
        assert!(validate(&[Penalty { share: 128, ..penalties[0] }]).is_err());
        assert!(validate(&[Penalty { until: Some(us(10)), ..penalties[0] }]).is_err());
    }
}
