//! TIMELY (Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015) for RoCE as in the HPCC
//! simulator (its CC_MODE 7): a rate that follows the slope of round-trip times.
//!
//! Algorithm 1 of the paper, once per *round*: a round ends when an ACK covers a packet that was sent after the round
//! began. Its round trip enters the average difference: diff = (1 - alpha) diff + alpha (rtt - last rtt). The gradient is
//! diff over `min-rtt`.
//!
//! | round trip | rate |
//! |---|---|
//! | below `t-low` | rises |
//! | above `t-high` | falls by the factor 1 - beta (1 - t-high / rtt) |
//! | between them, gradient at most 0 | rises |
//! | between them, gradient above 0 | falls by the factor 1 - beta gradient, at least 0 |
//!
//! A rise adds `additive-increase`. After `hyper-after` rises in a row it adds `hyper-increase`. The paper adds the former
//! five times then; we follow the simulator. The first round only notes its round trip.
//!
//! A flow starts at line rate, without a slow start, and every packet is paced. `nic.window` may also limit the outstanding
//! packets, as HAS_WIN does in the simulator. Packets and replies carry a time stamp of 8 bytes. The round trip includes
//! the time that an ACK waits, as in the simulator; the paper gives ACKs a priority of their own.
//!
//! Our choices, where the simulator is silent: CNPs and marks have no effect, so `nic.cnp` is "none". A NACK or a timeout
//! lowers the rate only by a reaction such as `{ to = 0.5 }`; `as-cnp` has no effect.

use crate::facts::{Control, ControlFacts, Evidence, Golden};
use crate::limits::min_rate;
use crate::paced::Paced;
use crate::path::Path;
use finding::{Finding, code};
use model::{Allowance, Congestion, Feedback, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.timely]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionTimely")]
pub struct Config {
    /// Weight alpha of the newest difference of round trips in their average, above 0 and at most 1. Default 0.875 (HPCC
    /// simulator; the paper, section 4.3, has an EWMA and leaves its weight open).
    pub alpha: f64,
    /// Depth beta of a decrease, above 0 and at most 1. Default 0.8 (the paper, section 5; HPCC simulator).
    pub beta: f64,
    /// Round trip below which the rate rises whatever the gradient. Default "50us" (the paper, section 5; HPCC simulator).
    pub t_low: Time,
    /// Round trip above which the rate falls whatever the gradient. Default "500us" (the paper, section 5; HPCC simulator).
    pub t_high: Time,
    /// Round trip by which the gradient is normalised, minRTT, the same for all flows. Default "20us" (HPCC simulator).
    pub min_rtt: Time,
    /// Rate added by a rise, at any line rate. Default "50Mbps" (HPCC simulator, RATE_AI of its sample configuration).
    pub additive_increase: Rate,
    /// Rate added by a rise after `hyper-after` rises in a row, at any line rate. Default "100Mbps" (HPCC simulator, RATE_HAI
    /// of its sample configuration).
    pub hyper_increase: Rate,
    /// Number of rises in a row after which `hyper-increase` applies. Default 5 (the paper, section 4.3; HPCC simulator).
    pub hyper_after: u32,
    /// Lower bound of the rate. Default "100Mbps" (HPCC simulator, its sample configuration).
    pub min_rate: Rate,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            alpha: 0.875,
            beta: 0.8,
            t_low: Time::from_us(50),
            t_high: Time::from_us(500),
            min_rtt: Time::from_us(20),
            additive_increase: Rate(50_000_000),
            hyper_increase: Rate(100_000_000),
            hyper_after: 5,
            min_rate: Rate(100_000_000),
        }
    }
}

/// Bytes of the time stamp on packets and replies: 64 bits (HPCC simulator).
const STAMP: u8 = 8;

impl Control for Config {
    type State = Timely;
    const TRIALS: &'static [&'static str] = &[
        "t-low = \"10us\"\nmin-rtt = \"5us\"",
        "t-low = \"5us\"\nmin-rtt = \"2us\"\nhyper-increase = \"3Gbps\"",
        "t-high = \"60us\"\n[nic]\ntimeout = { fixed = \"70us\" }\non-nack = { to = 0.5 }\nwindow = { bytes = \"9kB\" }\nwindow-scales-with-rate = true\n[nic.transport.go-back-n]",
    ];
    const GOLDEN: Option<Golden> = Some(("TIMELY", &["nic.congestion.timely={}"]));

    fn facts(&self) -> ControlFacts {
        let evidence = Evidence::RoundTrips { stamp: STAMP };
        ControlFacts { has_rate: true, needs_path: false, ..ControlFacts::of(evidence) }
    }

    fn longest_gap(&self, bytes: u64, _: Time) -> Time {
        self.min_rate.time_for(bytes)
    }

    fn validate(&self) -> Result<(), Finding> {
        for (field, share) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(share > 0.0 && share <= 1.0) {
                return Err(code::RANGE.at(field, "must be above 0 and at most 1"));
            }
        }
        if self.min_rtt == Time::ZERO {
            return Err(code::RANGE.at("min-rtt", "must be longer than 0, since it is a divisor"));
        }
        if self.t_high < self.t_low {
            return Err(code::FIT.at("t-high", "must be at least `t-low`"));
        }
        min_rate(self.min_rate)?;
        Ok(())
    }

    /// A new queue pair starts at `line_rate`.
    fn control(&self, line_rate: Rate, _path: Option<&Path>) -> Timely {
        let ps = |time: Time| time.ps() as f64;
        Timely {
            paced: Paced::at_line_rate(line_rate, self.min_rate),
            round: None,
            last: 0.0,
            difference: 0.0,
            rises: 0,
            alpha: self.alpha,
            beta: self.beta,
            low: ps(self.t_low),
            high: ps(self.t_high),
            min_rtt: ps(self.min_rtt).max(1.0),
            steps: [self.additive_increase, self.hyper_increase].map(|rate| rate.bps() as f64),
            hyper_after: self.hyper_after,
        }
    }
}

/// State of one queue pair. Times are in ps, rates in bits per second.
#[derive(Clone, Debug)]
pub struct Timely {
    paced: Paced,
    /// The round ends with the first reply that acknowledges this packet; `None` before the first ACK.
    round: Option<u64>,
    /// Round trip of the last round.
    last: f64,
    /// Average difference between the round trips of two rounds.
    difference: f64,
    /// Rises in a row.
    rises: u32,
    alpha: f64,
    beta: f64,
    low: f64,
    high: f64,
    min_rtt: f64,
    /// Additive and hyper increase.
    steps: [f64; 2],
    hyper_after: u32,
}

impl Timely {
    /// Rate, bits per second.
    pub const fn rate(&self) -> f64 {
        self.paced.rate()
    }

    /// Zero, since every reply may change the rate.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::ZERO
    }

    /// Lowers the rate to `share` of line rate if it is higher.
    pub(crate) fn lower_to(&mut self, _now: Time, share: f64) {
        self.paced.lower_to(share);
    }

    /// Changes the rate by the round trip of a round.
    fn update(&mut self, rtt: f64) {
        self.difference = (1.0 - self.alpha) * self.difference + self.alpha * (rtt - self.last);
        let gradient = self.difference / self.min_rtt;
        let share = if rtt < self.low || rtt <= self.high && gradient <= 0.0 {
            None
        } else if rtt > self.high {
            Some(1.0 - self.beta * (1.0 - self.high / rtt))
        } else {
            Some((1.0 - self.beta * gradient).max(0.0))
        };
        match share {
            None => {
                self.paced.increase(self.steps[usize::from(self.rises >= self.hyper_after)]);
                self.rises = self.rises.saturating_add(1);
            }
            Some(share) => {
                self.paced.scale(share);
                self.rises = 0;
            }
        }
    }
}

impl Congestion for Timely {
    fn allowance(&mut self, _now: Time) -> Allowance {
        self.paced.allowance()
    }

    fn on_feedback(&mut self, _now: Time, feedback: &Feedback) {
        if feedback.una <= self.round.unwrap_or(0) {
            return;
        }
        let rtt = feedback.round_trip.ps() as f64;
        if self.round.is_some() {
            self.update(rtt);
        }
        self.round = Some(feedback.high);
        self.last = rtt;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pace;

    const LINE: f64 = 100e9;
    /// Packets in flight.
    const WINDOW: u64 = 100;

    /// A control whose rounds have given round trips.
    struct Rounds {
        control: Timely,
        una: u64,
    }

    impl Rounds {
        fn new(config: &Config) -> Self {
            Rounds { control: config.control(Rate::from_gbps(100), None), una: 0 }
        }

        /// A reply to the next packet.
        fn reply(&mut self, us: f64) {
            self.una += 1;
            let round_trip = Time((us * 1e6) as u64);
            let feedback = Feedback {
                acked: 1,
                una: self.una,
                high: self.una + WINDOW,
                round_trip,
                ..Feedback::default()
            };
            self.control.on_feedback(Time::ZERO, &feedback);
        }

        /// A round that ends with this round trip; its other replies have others.
        fn round(&mut self, us: f64) -> f64 {
            (0..WINDOW).for_each(|_| self.reply(777.0));
            self.reply(us);
            self.control.rate()
        }
    }

    /// A control at `share` of line rate whose first round took `us`.
    fn after(us: f64, share: f64) -> Rounds {
        let mut rounds = Rounds::new(&Config::default());
        rounds.reply(us);
        rounds.control.lower_to(Time::ZERO, share);
        rounds
    }

    fn near(got: f64, wanted: f64) {
        assert!((got / wanted - 1.0).abs() < 1e-9, "{got} is not {wanted}");
    }

    #[test]
    fn short_round_trips_leave_a_flow_at_line_rate() {
        let mut rounds = Rounds::new(&Config::default());
        let first = rounds.control.allowance(Time::ZERO);
        assert_eq!((first.window, first.pace), (u64::MAX, Pace::from_bps(LINE)));
        rounds.reply(8.0);
        for us in [9.0, 49.9, 10.0, 40.0] {
            rounds.round(us);
        }
        assert_eq!(rounds.control.allowance(Time::ZERO), first);
    }

    #[test]
    fn below_t_low_the_rate_rises_by_the_additive_then_by_the_hyper_increase() {
        let mut rounds = after(20.0, 0.5);
        // Round trips grow, which has no effect below t-low.
        for (round, rise) in [50e6, 100e6, 150e6, 200e6, 250e6, 350e6, 450e6].into_iter().enumerate() {
            near(rounds.round(20.0 + round as f64), 50e9 + rise);
        }
        let mut top = after(20.0, 0.9999);
        (0..9).for_each(|_| _ = top.round(20.0));
        assert_eq!(top.control.rate(), LINE, "the rate never exceeds line rate");
    }

    #[test]
    fn above_t_high_the_rate_falls_with_the_excess_even_if_round_trips_shrink() {
        let mut rounds = after(2_000.0, 0.5);
        near(rounds.round(1_000.0), 50e9 * (1.0 - 0.8 * 0.5));
        near(rounds.round(625.0), 50e9 * 0.6 * (1.0 - 0.8 * (1.0 - 500.0 / 625.0)));
    }

    #[test]
    fn between_the_bounds_the_gradient_decides() {
        let mut rounds = after(100.0, 0.5);
        // diff = 0.875 x 4 us, over 20 us.
        let mut rate = 50e9 * (1.0 - 0.8 * 0.875 * 4.0 / 20.0);
        near(rounds.round(104.0), rate);
        // diff = 0.125 x 3.5 - 0.875 x 8 us is negative.
        rate += 50e6;
        near(rounds.round(96.0), rate);
        // A decrease ends the row of rises.
        rounds.round(130.0);
        assert_eq!(rounds.control.rises, 0);
    }

    #[test]
    fn a_steep_rise_of_round_trips_lowers_the_rate_to_its_minimum() {
        let mut rounds = after(100.0, 1.0);
        near(rounds.round(140.0), 100e6);
        near(rounds.round(140.0), 100e6);
    }

    #[test]
    fn a_round_counts_its_last_reply_only() {
        let mut rounds = after(100.0, 0.5);
        (0..WINDOW).for_each(|_| rounds.reply(9_000.0));
        near(rounds.control.rate(), 50e9);
        rounds.reply(100.0);
        near(rounds.control.rate(), 50e9 + 50e6);
    }

    #[test]
    fn impossible_settings_are_refused() {
        for (config, field) in [
            (Config { alpha: f64::NAN, ..Config::default() }, "alpha"),
            (Config { beta: 1.1, ..Config::default() }, "beta"),
            (Config { min_rtt: Time::ZERO, ..Config::default() }, "min-rtt"),
            (Config { t_high: Time::from_us(49), ..Config::default() }, "t-high"),
            (Config { min_rate: Rate(0), ..Config::default() }, "min-rate"),
        ] {
            assert_eq!(config.validate().unwrap_err().path(), field);
        }
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{RATE, SHARE, check};
        let table = "congestion.timely";
        check(table, "alpha", SHARE.0, SHARE.1);
        check(table, "beta", SHARE.0, SHARE.1);
        check(table, "min-rtt", &["\"1ps\""], &["\"0us\""]);
        check(table, "t-high", &["\"50us\""], &["\"49us\""]);
        check(table, "min-rate", RATE.0, RATE.1);
    }
}
