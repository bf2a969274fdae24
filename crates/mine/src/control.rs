//! The congestion control: a window that opens by a packet per round trip, and that a mark halves.
//!
//! This is the window of TCP (Jacobson, "Congestion avoidance and control", SIGCOMM'88), where a mark stands for a loss (RFC 3168, section
//! 6.1.2). Replace this file by your own idea; docs/own-scheme.md of ropewalk explains each part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strand::{Allowance, Congestion, Control, ControlFacts, Evidence, Finding, Pace, Path, Rate, Time, code};

/// Settings: a field for each key of the control's table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Share of the window that a mark leaves, above 0 and below 1. Default 0.5 (RFC 3168).
    pub leaves: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config { leaves: 0.5 }
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct State {
    /// Packets.
    window: f64,
    leaves: f64,
    line_rate: Pace,
    round_trip: Time,
    /// Marks before this time tell of the congestion that the last cut has answered.
    deaf_until: Time,
}

impl Control for Config {
    type State = State;
    /// The tests run each of these settings.
    const TRIALS: &'static [&'static str] = &["", "leaves = 0.05"];

    /// What it needs: a mark on each reply, and the round trip of its path.
    fn facts(&self) -> ControlFacts {
        ControlFacts { needs_feedback: false, ..ControlFacts::of(Evidence::Marks) }
    }

    fn validate(&self) -> Result<(), Finding> {
        match self.leaves > 0.0 && self.leaves < 1.0 {
            true => Ok(()),
            false => Err(code::RANGE.at("leaves", "must be above 0 and below 1")),
        }
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> State {
        let path = Path::or_guess(path, line_rate);
        State {
            window: path.bdp.into(),
            leaves: self.leaves,
            line_rate: Pace::from_bps(line_rate.bps() as f64),
            round_trip: path.base_rtt,
            deaf_until: Time::ZERO,
        }
    }
}

impl State {
    fn cut(&mut self, now: Time) {
        if now >= self.deaf_until {
            self.window = (self.window * self.leaves).max(1.0);
            self.deaf_until = now + self.round_trip;
        }
    }
}

impl Congestion for State {
    fn allowance(&mut self, _: Time) -> Allowance {
        Allowance { window: self.window as u64, pace: self.line_rate, not_before: Time::ZERO }
    }

    fn on_ack(&mut self, now: Time, packets: u64, echo: bool) {
        match echo {
            true => self.cut(now),
            false => self.window += packets as f64 / self.window,
        }
    }

    /// A NACK or a timeout, as `nic.on-nack` and `nic.on-timeout` say.
    fn on_cnp(&mut self, now: Time) {
        self.cut(now);
    }

    /// Time alone changes nothing, so the NIC need not ask before each packet.
    fn is_still(&self) -> bool {
        true
    }
}
