//! HPCC-PINT (Ben Basat et al., "PINT: Probabilistic In-band Network Telemetry", SIGCOMM 2020, section 4.3) as in the HPCC
//! simulator (its CC_MODE 10): HPCC whose packets carry the load of the busiest link alone, in one byte.
//!
//! Every switch averages the load U of its links and writes a logarithmic code of it ([`model::digest`]); a packet keeps the
//! largest. The sender decodes U and changes its rate as HPCC does, without an average of its own: if U is at least
//! `target-utilization`, or after `max-stage` additive steps, the rate becomes Rc / (U / target) + W_AI / T, else Rc + W_AI / T.
//! Every ACK with a code computes this from the same reference rate Rc. Once per round trip, on the ACK of a packet that was
//! sent after the last such update, Rc becomes the rate. The first ACK only begins a round.
//!
//! The control sets a rate, and every packet is paced. HPCC's window is `nic.window` with `nic.window-scales-with-rate` here,
//! as HAS_WIN and VAR_WIN are in the simulator. A flow starts at line rate.
//!
//! Unlike the records of HPCC, a code needs no earlier one to compare with, so the packets of a flow may take several paths.
//! Our choices, where the simulator is silent: CNPs and marks have no effect, so `nic.cnp` is "none". A NACK or a timeout
//! lowers the rate only by a reaction such as `{ to = 0.5 }`; `as-cnp` has no effect.

use crate::facts::{Control, ControlFacts, Digested, Evidence, Golden};
use crate::limits::min_rate;
use crate::paced::Paced;
use crate::path::Path;
use finding::{Finding, code};
use model::digest::Code;
use model::{Allowance, Congestion, Feedback, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.pint]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionPint")]
pub struct Config {
    /// Share of a link's rate at which all its flows together aim, above 0 and at most 1. Default 0.95 (HPCC paper, section
    /// 5.1; HPCC simulator, U_TARGET).
    pub target_utilization: f64,
    /// Additive steps below that share until a multiplicative one; with 0 every step is multiplicative. Default 5 (HPCC
    /// paper, section 5.1; HPCC simulator, MI_THRESH).
    pub max_stage: u32,
    /// Rate that every update adds, per 100 Gb/s of line rate. Default "50Mbps" (HPCC simulator, RATE_AI of its sample
    /// configuration).
    pub additive_increase: Rate,
    /// Whether `additive-increase` grows with line rate; with false it is absolute. Default true (our choice, as for `hpcc`).
    pub scale_increase: bool,
    /// Lower bound of the rate. Default "100Mbps" (HPCC simulator, its sample configuration).
    pub min_rate: Rate,
    /// Base of the code, above 1: neighbouring codes differ by this factor. Default 1.05 (HPCC simulator, PINT_LOG_BASE). A code
    /// takes one byte with bases from 1.05 on, and two with smaller ones.
    pub log_base: f64,
    /// Precision of the code: a load below 1 / `resolution` of a link counts as this much, and one above `resolution` as
    /// `resolution`. From 2 to 4096. Default 512 (HPCC simulator, its largest number of flows at a link).
    pub resolution: u32,
    /// Probability with which a packet carries a code, above 0 and at most 1. Default 1.0 (HPCC simulator, PINT_PROB).
    pub probability: f64,
    /// Time T over which switches average the load of a link, the same for all. Default: the longest round trip of any two
    /// hosts on an idle fabric (HPCC simulator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_rtt: Option<Time>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            target_utilization: 0.95,
            max_stage: 5,
            additive_increase: Rate(50_000_000),
            scale_increase: true,
            min_rate: Rate(100_000_000),
            log_base: 1.05,
            resolution: 512,
            probability: 1.0,
            base_rtt: None,
        }
    }
}

impl Control for Config {
    type State = Pint;
    const TRIALS: &'static [&'static str] = &[
        "probability = 0.5\n[nic]\nwindow = \"bdp\"\nwindow-scales-with-rate = true",
        "log-base = 1.01\nprobability = 0.2\nbase-rtt = \"3us\"",
    ];
    const GOLDEN: Option<Golden> = Some(("HPCC-PINT", &["nic.congestion.pint={}"]));

    fn facts(&self) -> ControlFacts {
        let evidence = Evidence::Digest(Digested {
            base: self.log_base,
            resolution: self.resolution,
            share: self.probability,
            period: self.base_rtt,
        });
        ControlFacts { has_rate: true, needs_path: false, ..ControlFacts::of(evidence) }
    }

    fn longest_gap(&self, bytes: u64, _: Time) -> Time {
        self.min_rate.time_for(bytes)
    }

    fn validate(&self) -> Result<(), Finding> {
        for (field, share) in
            [("target-utilization", self.target_utilization), ("probability", self.probability)]
        {
            if !(share > 0.0 && share <= 1.0) {
                return Err(code::RANGE.at(field, "must be above 0 and at most 1"));
            }
        }
        min_rate(self.min_rate)?;
        if !(2..=MOST_RESOLUTION).contains(&self.resolution) {
            return Err(code::RANGE.at("resolution", "must be between 2 and 4096"));
        }
        if Code::new(self.log_base, self.resolution).is_none() {
            return Err(code::RANGE.at(
                "log-base",
                "must be above 1, by so much that codes up to `resolution` fit into 16 bits: 1.0002 is enough for 512",
            ));
        }
        if self.base_rtt == Some(Time::ZERO) {
            return Err(code::RANGE.at("base-rtt", "must be longer than 0, since it is a divisor"));
        }
        Ok(())
    }

    /// A new queue pair starts at `line_rate`.
    fn control(&self, line_rate: Rate, _path: Option<&Path>) -> Pint {
        let paced = Paced::at_line_rate(line_rate, self.min_rate);
        let scale = if self.scale_increase { paced.rate() / 100e9 } else { 1.0 };
        Pint {
            reference: paced.rate(),
            paced,
            stage: 0,
            round: None,
            target: self.target_utilization,
            max_stage: self.max_stage,
            step: self.additive_increase.bps() as f64 * scale,
            base: self.log_base,
            resolution: self.resolution,
        }
    }
}

/// Largest resolution: utilisations and powers of the base fit into 64 bits.
const MOST_RESOLUTION: u32 = 4096;

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Pint {
    paced: Paced,
    /// Reference rate Rc, bits per second.
    reference: f64,
    /// Additive steps of the reference since the last multiplicative one (incStage).
    stage: u32,
    /// The reference changes when a packet from this one on is acknowledged; `None` before the first code.
    round: Option<u64>,
    target: f64,
    max_stage: u32,
    step: f64,
    base: f64,
    resolution: u32,
}

impl Pint {
    /// Rate, bits per second.
    pub const fn rate(&self) -> f64 {
        self.paced.rate()
    }

    /// Zero, since every ACK may change the rate.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::ZERO
    }

    /// Lowers the rate to `share` of line rate if it is higher.
    pub(crate) fn lower_to(&mut self, _now: Time, share: f64) {
        self.paced.lower_to(share);
        self.reference = self.reference.min(self.paced.rate());
    }
}

impl Congestion for Pint {
    fn allowance(&mut self, _now: Time) -> Allowance {
        self.paced.allowance()
    }

    fn on_feedback(&mut self, _now: Time, feedback: &Feedback) {
        let Some(code) = feedback.trail.digest() else { return };
        let Some(round) = self.round else {
            self.round = Some(feedback.high);
            return;
        };
        let excess = Code::decode(self.base, self.resolution, code) / self.target;
        let (rate, stage) = super::hpcc::next(self.reference, self.stage, excess, self.max_stage, self.step);
        self.paced.set(rate);
        if feedback.una > round {
            self.reference = self.paced.rate();
            self.stage = stage;
            self.round = Some(feedback.high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::telemetry::Trail;

    const LINE: f64 = 100e9;
    /// Packets in flight.
    const WINDOW: u64 = 100;

    /// A control, and the number of packets that have been acknowledged.
    struct Flow {
        control: Pint,
        una: u64,
    }

    impl Flow {
        /// A flow whose first ACK has come.
        fn new(config: &Config) -> Self {
            let mut flow = Flow { control: config.control(Rate::from_gbps(100), None), una: 0 };
            flow.ack(Some(0));
            assert_eq!(flow.control.rate(), LINE, "the first ACK only begins a round");
            flow
        }

        /// An ACK with this code.
        fn ack(&mut self, code: Option<u16>) -> f64 {
            self.una += 1;
            let mut trail = Trail::default();
            code.into_iter().for_each(|code| trail.fold(code + 1));
            let feedback =
                Feedback { acked: 1, una: self.una, high: self.una + WINDOW, trail, ..Feedback::default() };
            self.control.on_feedback(Time::ZERO, &feedback);
            self.control.rate()
        }

        /// The ACKs of a round trip.
        fn round(&mut self, code: u16) -> f64 {
            (0..=WINDOW).for_each(|_| _ = self.ack(Some(code)));
            self.control.rate()
        }
    }

    fn near(got: f64, wanted: f64) {
        assert!((got / wanted - 1.0).abs() < 1e-9, "{got} is not {wanted}");
    }

    /// The utilisation of a code at base 1.05.
    fn load(code: i32) -> f64 {
        1.05_f64.powi(code) / 512.0
    }

    #[test]
    fn an_overloaded_link_lowers_the_rate_in_proportion_once_per_round_trip() {
        let mut flow = Flow::new(&Config::default());
        // 1.05^142 / 512 is a load of 2.0.
        let once = LINE * 0.95 / load(142) + 50e6;
        (0..WINDOW).for_each(|_| near(flow.ack(Some(142)), once));
        // The next ACK ends the round trip, and those behind it start from the lower rate.
        near(flow.ack(Some(142)), once);
        near(flow.ack(Some(142)), once * 0.95 / load(142) + 50e6);
    }

    #[test]
    fn below_the_target_the_rate_rises_by_steps_and_then_by_the_factor() {
        let mut flow = Flow::new(&Config::default());
        flow.control.lower_to(Time::ZERO, 0.5);
        assert!(load(126) < 0.95 && load(127) > 0.95, "codes around the target");
        for step in 1..=5 {
            near(flow.round(126), 50e9 + f64::from(step) * 50e6);
        }
        near(flow.round(126), 50.25e9 * 0.95 / load(126) + 50e6);
    }

    #[test]
    fn an_ack_without_a_code_changes_nothing() {
        let mut flow = Flow::new(&Config { probability: 0.1, ..Config::default() });
        let rate = flow.ack(Some(140));
        (0..3 * WINDOW).for_each(|_| assert_eq!(flow.ack(None), rate));
        assert!(flow.control.reference == LINE && flow.ack(Some(140)) == rate);
        assert_eq!(flow.control.reference, rate, "the round trip had ended long ago");
    }

    #[test]
    fn the_rate_stays_between_its_bounds_and_a_lowered_one_is_kept() {
        let mut flow = Flow::new(&Config::default());
        near(flow.round(255), LINE * 0.95 / load(255) + 50e6);
        near(flow.round(255), 100e6);
        let mut flow = Flow::new(&Config::default());
        flow.control.lower_to(Time::ZERO, 0.25);
        near(flow.ack(Some(0)), 25e9 + 50e6);
        let mut idle = Flow::new(&Config::default());
        (0..20).for_each(|_| assert_eq!(idle.round(1), LINE));
    }

    #[test]
    fn steps_scale_with_line_rate_unless_they_are_fixed() {
        for (scale_increase, step) in [(true, 200e6), (false, 50e6)] {
            let config = Config { scale_increase, ..Config::default() };
            assert_eq!(config.control(Rate::from_gbps(400), None).step, step);
        }
    }

    #[test]
    fn impossible_settings_are_refused() {
        for (config, field) in [
            (Config { target_utilization: 0.0, ..Config::default() }, "target-utilization"),
            (Config { probability: 1.1, ..Config::default() }, "probability"),
            (Config { log_base: 1.0, ..Config::default() }, "log-base"),
            (Config { log_base: f64::NAN, ..Config::default() }, "log-base"),
            (Config { log_base: 1.0001, ..Config::default() }, "log-base"),
            (Config { resolution: 1, ..Config::default() }, "resolution"),
            (Config { base_rtt: Some(Time::ZERO), ..Config::default() }, "base-rtt"),
            (Config { min_rate: Rate(0), ..Config::default() }, "min-rate"),
        ] {
            assert_eq!(config.validate().unwrap_err().path(), field);
        }
        assert!(Config { log_base: 1.0002, ..Config::default() }.validate().is_ok());
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{RATE, SHARE, check};
        let table = "congestion.pint";
        check(table, "target-utilization", SHARE.0, SHARE.1);
        check(table, "probability", SHARE.0, SHARE.1);
        check(table, "log-base", &["1.0002", "2.0"], &["1.0", "1.0001", "inf", "nan"]);
        check(table, "resolution", &["2", "4096"], &["1", "4097"]);
        check(table, "base-rtt", &["\"1ps\""], &["\"0us\""]);
        check(table, "min-rate", RATE.0, RATE.1);
    }
}
