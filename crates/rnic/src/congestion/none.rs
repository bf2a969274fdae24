//! No congestion control: line rate, no window, no reaction to any signal.

use crate::facts::{Control, ControlFacts, Evidence, Golden};
use crate::path::Path;
use finding::Finding;
use model::{Allowance, Congestion, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.none]`: nothing to set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {}

impl Control for Config {
    type State = Unlimited;
    const GOLDEN: Option<Golden> = Some(("no congestion control", &["nic.congestion.none={}"]));

    fn facts(&self) -> ControlFacts {
        ControlFacts { needs_feedback: false, needs_path: false, ..ControlFacts::of(Evidence::None) }
    }

    fn validate(&self) -> Result<(), Finding> {
        Ok(())
    }

    fn control(&self, line_rate: Rate, _path: Option<&Path>) -> Unlimited {
        Unlimited { pace: Pace::from_bps(line_rate.bps() as f64) }
    }
}

/// Line rate at all times.
#[derive(Clone, Debug)]
pub struct Unlimited {
    pace: Pace,
}

impl Unlimited {
    /// No effect: it has no rate to lower.
    pub(crate) fn lower_to(&mut self, _now: Time, _share: f64) {}

    /// Never, since the allowance is constant.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::NEVER
    }
}

impl Congestion for Unlimited {
    #[inline]
    fn allowance(&mut self, _now: Time) -> Allowance {
        Allowance { window: u64::MAX, pace: self.pace, not_before: Time::ZERO }
    }

    fn is_at_rest(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_signal_lowers_the_rate() {
        let mut control = Config {}.control(Rate::from_gbps(400), None);
        let before = control.allowance(Time::ZERO);
        control.on_cnp(Time::from_us(1));
        control.on_nack(Time::from_us(1));
        control.on_timeout(Time::from_us(1));
        assert_eq!(control.allowance(Time::from_us(2)), before);
        assert_eq!(before.pace.gap(1520), Time(30_400));
    }
}
