//! DCTCP for RoCE as in the HPCC simulator (its CC_MODE 8): a rate that falls with the share of marked packets.
//!
//! Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, controls a window; the simulator controls a rate, and so does
//! this file. A *round* ends when an ACK covers a packet that was sent after the round began, about one round trip later.
//!
//! * Every round: alpha = (1 - g) alpha + g F, where F is the share of marked replies among the packets that were in flight
//!   when the round began, at most 1. The first round leaves alpha at 1, since no replies have been counted yet.
//! * A reply with a mark multiplies the rate by 1 - alpha / 2. No other cut follows until a packet that was sent after the
//!   cut is acknowledged.
//! * A round that begins with no such cut pending adds `additive-increase` to the rate, up to line rate.
//!
//! A flow starts at line rate, without a slow start. Every packet is paced. `nic.window` may also limit the outstanding
//! packets, as HAS_WIN does in the simulator. Every reply must carry the mark of its packet, so DCTCP needs
//! `nic.cnp = "flag"`.
//!
//! Our choices, where the simulator is silent: a CNP frame, which only a switch sends here, cuts the rate like a mark. So
//! does a NACK or a timeout whose reaction is `as-cnp`. A mark on a NACK counts like a mark on an ACK.

use crate::facts::{Control, ControlFacts, Evidence, Golden};
use crate::limits::min_rate;
use crate::paced::Paced;
use crate::path::Path;
use finding::{Finding, code};
use model::{Allowance, Congestion, Feedback, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.dctcp]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionDctcp")]
pub struct Config {
    /// Gain g of alpha's average, above 0 and at most 1. Default 0.0625 = 1/16 (DCTCP paper, section 3.4; the HPCC
    /// simulator's value if EWMA_GAIN is not set).
    pub gain: f64,
    /// Rate added by every round without a cut, at any line rate. Default "1Gbps" (HPCC simulator, DCTCP_RATE_AI).
    pub additive_increase: Rate,
    /// Lower bound of the rate. Default "100Mbps" (HPCC simulator, its sample configuration).
    pub min_rate: Rate,
}

impl Default for Config {
    fn default() -> Self {
        Config { gain: 1.0 / 16.0, additive_increase: Rate::from_gbps(1), min_rate: Rate(100_000_000) }
    }
}

impl Control for Config {
    type State = Dctcp;
    const GOLDEN: Option<Golden> = Some(("DCTCP", &["nic.congestion.dctcp={}"]));

    fn facts(&self) -> ControlFacts {
        ControlFacts { has_rate: true, needs_path: false, ..ControlFacts::of(Evidence::Marks) }
    }

    fn longest_gap(&self, bytes: u64, _: Time) -> Time {
        self.min_rate.time_for(bytes)
    }

    fn validate(&self) -> Result<(), Finding> {
        if !(self.gain > 0.0 && self.gain <= 1.0) {
            return Err(code::RANGE.at("gain", "must be above 0 and at most 1"));
        }
        min_rate(self.min_rate)?;
        Ok(())
    }

    /// A new queue pair starts at `line_rate`.
    fn control(&self, line_rate: Rate, _path: Option<&Path>) -> Dctcp {
        Dctcp {
            paced: Paced::at_line_rate(line_rate, self.min_rate),
            alpha: 1.0,
            marked: 0,
            round: None,
            cut_until: None,
            high: 0,
            step: self.additive_increase.bps() as f64,
            gain: self.gain,
        }
    }
}

/// A round: the packet that ends it, and counts of its packets.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The round ends with the first reply that acknowledges this packet.
    end: u64,
    /// Packets in flight when the round began, plus one.
    packets: u64,
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Dctcp {
    paced: Paced,
    alpha: f64,
    /// Replies with a mark in this round.
    marked: u64,
    /// Current round; `None` before the first ACK.
    round: Option<Round>,
    /// No further cut before a reply acknowledges this packet.
    cut_until: Option<u64>,
    /// First packet that was never sent, as of the last reply.
    high: u64,
    step: f64,
    gain: f64,
}

impl Dctcp {
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

    /// Begins a round if this reply ends the last one.
    fn begins_round(&mut self, feedback: &Feedback) -> bool {
        let Feedback { una, high, .. } = *feedback;
        let under_way = match self.round {
            None if una > 0 => high, // the simulator also counts the packets that the reply acknowledges
            Some(round) if una > round.end => {
                let share = (self.marked as f64 / round.packets as f64).min(1.0);
                self.alpha = (1.0 - self.gain) * self.alpha + self.gain * share;
                self.marked = 0;
                high - una
            }
            _ => return false,
        };
        self.round = Some(Round { end: high, packets: under_way + 1 });
        true
    }

    fn cut(&mut self) {
        if self.cut_until.is_none() {
            self.paced.scale(1.0 - self.alpha / 2.0);
            self.cut_until = Some(self.high);
        }
    }
}

impl Congestion for Dctcp {
    fn allowance(&mut self, _now: Time) -> Allowance {
        self.paced.allowance()
    }

    fn on_feedback(&mut self, _now: Time, feedback: &Feedback) {
        self.high = feedback.high;
        self.marked += u64::from(feedback.echo);
        let round = self.begins_round(feedback);
        self.cut_until = self.cut_until.filter(|&end| feedback.una <= end);
        if feedback.echo {
            self.cut();
        }
        if round && self.cut_until.is_none() {
            self.paced.increase(self.step);
        }
    }

    fn on_cnp(&mut self, _now: Time) {
        self.cut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pace;

    const LINE: f64 = 100e9;
    /// Packets in flight in a round.
    const WINDOW: u64 = 100;

    /// A control and a pipe with a hundred packets in flight at all times.
    struct Pipe {
        control: Dctcp,
        una: u64,
    }

    impl Pipe {
        fn new() -> Self {
            Pipe { control: Config::default().control(Rate::from_gbps(100), None), una: 0 }
        }

        /// The reply to the next packet.
        fn reply(&mut self, echo: bool) {
            self.una += 1;
            let feedback =
                Feedback { acked: 1, echo, una: self.una, high: self.una + WINDOW, ..Feedback::default() };
            self.control.on_feedback(Time::ZERO, &feedback);
        }

        /// Runs some rounds and marks the first packets of each. A round has one packet more than are in flight, since
        /// it ends with an ACK beyond them.
        fn rounds(&mut self, rounds: u64, marked: u64) {
            for _ in 0..rounds {
                (0..=WINDOW).for_each(|i| self.reply(i < marked));
            }
        }
    }

    fn near(got: f64, wanted: f64) {
        assert!((got / wanted - 1.0).abs() < 1e-9, "{got} is not {wanted}");
    }

    #[test]
    fn without_marks_the_rate_is_line_rate() {
        let mut pipe = Pipe::new();
        let first = pipe.control.allowance(Time::ZERO);
        assert_eq!((first.window, first.pace), (u64::MAX, Pace::from_bps(LINE)));
        pipe.rounds(50, 0);
        assert_eq!(pipe.control.allowance(Time::from_ms(1)), first);
    }

    #[test]
    fn the_first_round_begins_with_the_first_acknowledged_packet() {
        let mut control = Pipe::new().control;
        let reply = |una| Feedback { una, high: una + 9, ..Feedback::default() };
        control.on_feedback(Time::ZERO, &reply(0));
        assert!(control.round.is_none());
        control.on_feedback(Time::ZERO, &reply(1));
        assert!(control.round.is_some());
    }

    #[test]
    fn only_the_first_mark_of_a_round_halves_the_rate() {
        let mut pipe = Pipe::new();
        pipe.rounds(1, WINDOW + 1);
        near(pipe.control.rate(), LINE / 2.0);
        // This reply acknowledges a packet that was sent after the cut. All packets were marked, so alpha is still 1.
        pipe.reply(true);
        near(pipe.control.rate(), LINE / 4.0);
    }

    #[test]
    fn alpha_decays_by_one_minus_g_in_every_round_without_a_mark() {
        let mut pipe = Pipe::new();
        pipe.reply(false); // begins the first round
        for k in 1..=40 {
            pipe.rounds(1, 0);
            near(pipe.control.alpha, (15.0f64 / 16.0).powi(k));
        }
    }

    #[test]
    fn a_cut_is_half_the_share_of_marked_packets() {
        for marked in [10, 25, 101] {
            let mut pipe = Pipe::new();
            pipe.reply(false);
            // After many rounds with the same share of marks, alpha equals that share.
            pipe.rounds(400, marked);
            let share = marked as f64 / (WINDOW + 1) as f64;
            near(pipe.control.alpha, share);
            // Raise the rate again, and observe a single cut.
            pipe.control.paced.set(LINE);
            pipe.control.cut_until = None;
            pipe.control.cut();
            near(pipe.control.rate(), LINE * (1.0 - share / 2.0));
        }
    }

    #[test]
    fn every_round_without_a_cut_adds_one_gigabit() {
        let mut pipe = Pipe::new();
        pipe.reply(false);
        pipe.control.lower_to(Time::ZERO, 0.2);
        for round in 1..=30 {
            pipe.rounds(1, 0);
            near(pipe.control.rate(), 20e9 + f64::from(round) * 1e9);
        }
        pipe.rounds(60, 0);
        assert_eq!(pipe.control.rate(), LINE, "the rate never exceeds line rate");
    }

    #[test]
    fn marks_in_every_round_cut_once_per_round_down_to_the_minimum() {
        let mut pipe = Pipe::new();
        pipe.rounds(200, WINDOW + 1);
        assert_eq!(pipe.control.rate(), 100e6);
        pipe.control.on_cnp(Time::ZERO);
        assert_eq!(pipe.control.rate(), 100e6);
    }

    #[test]
    fn a_cnp_counts_as_a_mark_once_per_round_trip() {
        let mut pipe = Pipe::new();
        pipe.reply(false);
        (0..3).for_each(|_| pipe.control.on_cnp(Time::ZERO));
        near(pipe.control.rate(), LINE / 2.0);
        (0..WINDOW).for_each(|_| pipe.reply(false));
        pipe.control.on_cnp(Time::ZERO);
        near(pipe.control.rate(), LINE / 2.0);
        pipe.reply(false);
        pipe.control.on_cnp(Time::ZERO);
        assert!(pipe.control.rate() < 0.3 * LINE, "{}", pipe.control.rate());
    }

    #[test]
    fn impossible_settings_are_refused() {
        for (config, field) in [
            (Config { gain: 0.0, ..Config::default() }, "gain"),
            (Config { gain: f64::NAN, ..Config::default() }, "gain"),
            (Config { min_rate: Rate(0), ..Config::default() }, "min-rate"),
        ] {
            assert_eq!(config.validate().unwrap_err().path(), field);
        }
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{RATE, SHARE, check};
        let table = "congestion.dctcp";
        check(table, "gain", SHARE.0, SHARE.1);
        check(table, "min-rate", RATE.0, RATE.1);
    }
}
