//! DCQCN as the HPCC family of ns-3 simulators has it: a timer alone raises rates, without a byte counter. The mechanism is that
//! of [`super::dcqcn`]; the settings, their defaults and two rules differ:
//!
//! * The first `fast-recovery` ticks of the increase timer leave the target alone, the next one adds `additive-increase`, and
//!   all others add `hyper-increase`.
//! * Alpha starts at 1, and a cut may take any share of the rate.
//!
//! (The simulators of that family delay the first check by 1 ns to have it after the alpha tick; here the order of events at
//! one instant is fixed.)

pub use super::dcqcn::Dcqcn as DcqcnHpcc;
use super::dcqcn::{Hyper, Settings, checked};
use crate::facts::{Advised, Control, ControlFacts, Variation};
use crate::notification::CnpScope;
use crate::path::Path;
use finding::Finding;
use model::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.dcqcn-hpcc]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionDcqcnHpcc")]
pub struct Config {
    /// Time between rate increases, T_I. Default "900us" (Themis paper, evaluation: its recommended pair).
    pub rate_increase_timer: Time,
    /// Shortest time between rate cuts, T_D. Default "4us" (Themis paper, evaluation: its recommended pair).
    pub rate_decrease_interval: Time,
    /// Time between updates of alpha. Default "1us" (HPCC simulator, its DCQCN settings).
    pub alpha_timer: Time,
    /// Gain g of alpha's average, above 0 and at most 1. Default 0.00390625 = 1/256 (DCQCN paper, and HPCC
    /// simulator).
    pub gain: f64,
    /// Number of increases that only return towards the rate before the cut. Default 1 (HPCC simulator).
    pub fast_recovery: u32,
    /// Rate that the first increase after fast recovery adds to the target, per 100 Gb/s of line rate. Default "50Mbps"
    /// (HPCC simulator, its sample configuration for 100 Gb/s).
    pub additive_increase: Rate,
    /// Rate that each later increase adds to the target, per 100 Gb/s of line rate. Default "100Mbps" (HPCC simulator, its
    /// sample configuration for 100 Gb/s).
    pub hyper_increase: Rate,
    /// Whether the two increases grow with line rate; with false they are absolute. Default true (our choice: hosts of
    /// different speeds then need equally long to recover).
    pub scale_increases: bool,
    /// Lower bound of the rate. Default "100Mbps" (HPCC simulator, its sample configuration).
    pub min_rate: Rate,
    /// Whether every cut lowers the target to the rate before it. Default false (HPCC simulator).
    pub clamp_target_rate: bool,
    /// Share of its rate that a flow keeps on its first CNP, above 0 and at most 1. Default 1.0: the first CNP alone
    /// lowers nothing (HPCC simulator).
    pub rate_on_first_cnp: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            rate_increase_timer: Time::from_us(900),
            rate_decrease_interval: Time::from_us(4),
            alpha_timer: Time::from_us(1),
            gain: 1.0 / 256.0,
            fast_recovery: 1,
            additive_increase: Rate(50_000_000),
            hyper_increase: Rate(100_000_000),
            scale_increases: true,
            min_rate: Rate(100_000_000),
            clamp_target_rate: false,
            rate_on_first_cnp: 1.0,
        }
    }
}

impl Control for Config {
    type State = DcqcnHpcc;
    const DECISIVE: &'static [&'static str] =
        &["rate-increase-timer", "rate-decrease-interval", "min-rate", "additive-increase"];
    /// The pairs of timers are those of the Themis paper, section 5.
    const VARIATIONS: &'static [Variation] = &[
        Variation {
            name: "timers of 10 and 50 us",
            changes: &[("rate-increase-timer", "10us"), ("rate-decrease-interval", "50us")],
        },
        Variation {
            name: "timers of 900 and 4 us",
            changes: &[("rate-increase-timer", "900us"), ("rate-decrease-interval", "4us")],
        },
        Variation { name: "min-rate 1 Gb/s", changes: &[("min-rate", "1Gbps")] },
    ];

    fn facts(&self) -> ControlFacts {
        super::dcqcn::FACTS
    }

    fn advised(&self) -> Advised {
        super::dcqcn::ADVISED
    }

    fn cnp_scope(&self) -> CnpScope {
        CnpScope::QueuePair
    }

    fn longest_gap(&self, bytes: u64, _: Time) -> Time {
        self.min_rate.time_for(bytes)
    }

    fn validate(&self) -> Result<(), Finding> {
        checked(
            &[
                ("rate-increase-timer", self.rate_increase_timer),
                ("rate-decrease-interval", self.rate_decrease_interval),
                ("alpha-timer", self.alpha_timer),
            ],
            &[("gain", self.gain), ("rate-on-first-cnp", self.rate_on_first_cnp)],
            self.min_rate,
        )
    }

    /// A new queue pair starts at `line_rate`.
    fn control(&self, line_rate: Rate, _path: Option<&Path>) -> DcqcnHpcc {
        // The increases are given per 100 Gb/s.
        let scale = if self.scale_increases { (line_rate.bps() as f64).max(1.0) / 100e9 } else { 1.0 };
        DcqcnHpcc::new(
            line_rate,
            Settings {
                hyper: Hyper::AfterTimer,
                clamp: self.clamp_target_rate,
                clamp_after_time: true,
                fast_recovery: self.fast_recovery,
                min: self.min_rate.bps() as f64,
                additive: self.additive_increase.bps() as f64 * scale,
                hyper_increase: self.hyper_increase.bps() as f64 * scale,
                gain: self.gain,
                initial_alpha: 1.0,
                cut_per_alpha: 0.5,
                cut_floor: 0.0,
                on_first_cnp: self.rate_on_first_cnp,
                alpha_timer: self.alpha_timer,
                decrease: self.rate_decrease_interval,
                increase: self.rate_increase_timer,
                byte_reset: 0,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{RATE, SHARE, check};
        let table = "congestion.dcqcn-hpcc";
        for timer in ["rate-increase-timer", "rate-decrease-interval", "alpha-timer"] {
            check(table, timer, &["\"10ns\""], &["\"9999ps\""]);
        }
        check(table, "gain", SHARE.0, SHARE.1);
        check(table, "min-rate", RATE.0, RATE.1);
        check(table, "rate-on-first-cnp", SHARE.0, SHARE.1);
    }
}
