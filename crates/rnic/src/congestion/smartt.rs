//! SMaRTT (Bonato et al., arXiv 2404.01630, version 2; FASTFLOW in version 3): the ancestor of [`super::nscc`]. It has the same four
//! cases, fast growth and quick adapt, but every reply moves the window at once, and a mark below the target shrinks it.
//!
//! With n bytes reported, a window of w bytes, the largest window W, frames of F bytes, a round trip r and a target R, base
//! round trip included:
//!
//! | mark | round trip | change of the window |
//! |---|---|---|
//! | no | below R | + `increase` F (R - r) / r n / w, at most n, and the fair increase |
//! | no | at or above it | + `fair-increase` F n / w, the fair increase |
//! | yes | below R | - `fair-decrease` w n / W, the fair decrease |
//! | yes | at or above it | - `decrease` (r - R) / r n, at most n, and the fair decrease |
//!
//! The state and quick adapt are those of [`super::nscc`]. Constants are those of the authors' simulator (uet-htsim, `eqds.cpp`). It
//! also scales the bytes of a late check of quick adapt to one round trip, which is left out here.

use super::nscc::{self, Nscc};
use crate::facts::{Control, ControlFacts};
use crate::path::Path;
use finding::{Finding, code};
use model::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.smartt]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionSmartt")]
pub struct Config {
    /// Target of the queueing delay. Default: half of the round trip of the longest path (our choice; uet-htsim has 7 us for
    /// all fabrics).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Time>,
    /// First and largest window, in bandwidth-delay products. Default 1.5 (our choice, as for `nscc`).
    pub window: f64,
    /// Growth below the target, in packets per window and relative distance. Default 2 (uet-htsim).
    pub increase: f64,
    /// Growth without a mark, in packets per window. Default 0.25 (uet-htsim).
    pub fair_increase: f64,
    /// Decrease above the target, as a share of the relative excess. Default 1 (uet-htsim).
    pub decrease: f64,
    /// Decrease by marks, as a share of the window per largest window of bytes. Default 0.8 (uet-htsim).
    pub fair_decrease: f64,
    /// Growth in packets for each packet that is reported, once a window of replies had less than 1 us of delay. Default 4
    /// (uet-htsim).
    pub fast_increase: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            target: None,
            window: 1.5,
            increase: 2.0,
            fair_increase: 0.25,
            decrease: 1.0,
            fair_decrease: 0.8,
            fast_increase: 4.0,
        }
    }
}

/// State of one queue pair.
pub type Smartt = Nscc;

/// A reply as the law sees it: amounts in bytes, times in ps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) bytes: f64,
    pub(super) marked: bool,
    pub(super) round_trip: f64,
    /// Target of the round trip.
    pub(super) target: f64,
}

impl Config {
    /// Change of a window by a reply.
    pub(super) fn change(&self, window: f64, most: f64, frame: f64, reply: Reply) -> f64 {
        let Reply { bytes, marked, round_trip, target } = reply;
        let distance = (target - round_trip) / round_trip;
        if marked {
            let excess = (-self.decrease * distance * bytes).clamp(0.0, bytes);
            return -excess - self.fair_decrease * window * bytes / most;
        }
        let growth = (self.increase * frame * distance * bytes / window).clamp(0.0, bytes);
        growth + self.fair_increase * frame * bytes / window
    }

    /// The settings of the shared state: quick adapt acts after cut and lost packets, however much has arrived.
    fn shared(&self) -> nscc::Config {
        nscc::Config {
            target: self.target,
            window: self.window,
            quick_adapt_gate: 0,
            quick_adapt_delay: 1e6,
            like_htsim: true,
            ..nscc::Config::default()
        }
    }
}

/// Share of the longest round trip that is the default target.
const TARGET: f64 = 0.5;

impl Control for Config {
    type State = Smartt;
    const TRIALS: &'static [&'static str] = &[
        "[nic]\ntimeout = { fixed = \"90us\" }\n[nic.transport.uec]",
        "target = \"2us\"\n[nic]\ntimeout = { fixed = \"70us\" }\n[nic.transport.uec]",
    ];

    fn facts(&self) -> ControlFacts {
        self.shared().facts()
    }

    /// It shares the state of NSCC, and so its penalties.
    fn heeds_penalties(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), Finding> {
        for (key, value) in [
            ("increase", self.increase),
            ("fair-increase", self.fair_increase),
            ("decrease", self.decrease),
            ("fair-decrease", self.fair_decrease),
            ("fast-increase", self.fast_increase),
        ] {
            if !(0.0..=1e3).contains(&value) {
                return Err(code::RANGE.at(key, "must be at least 0 and at most 1000"));
            }
        }
        self.shared().validate()
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Smartt {
        let rtt = Path::or_guess(path, line_rate).longest_rtt;
        let target = self.target.unwrap_or(Time((TARGET * rtt.ps() as f64) as u64));
        let shared = nscc::Config { target: Some(target), ..self.shared() };
        shared.control(line_rate, path).moved_by(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Delivery;
    use model::{Congestion as _, Feedback};

    /// The window of 100,000 B after a reply that reports 20,000 B. The path has 10 us at 400 Gb/s and frames of 1500 B: the largest
    /// window is 750,000 B, and the target of the round trip 15 us.
    fn after(marked: bool, delay: u64) -> u64 {
        let config = Config::default();
        let (window, most, frame) = (100_000.0, 750_000.0, 1_500.0);
        let round_trip = (10 + delay) as f64;
        let reply = Reply { bytes: 20_000.0, marked, round_trip, target: 15.0 };
        (window + config.change(window, most, frame, reply)).round() as u64
    }

    #[test]
    fn the_four_cases_by_hand() {
        // A fifth of the window is reported: 0.25 packets are 75 B, and 2 packets half the round trip below the target 300 B.
        assert_eq!(after(false, 0), 100_000 + 300 + 75);
        assert_eq!(after(false, 5), 100_000 + 75);
        assert_eq!(after(false, 9), 100_000 + 75);
        // 0.8 of the window for each largest window: 2,133 B. A round trip of 20 us is a quarter too long: 5,000 B.
        assert_eq!(after(true, 4), 100_000 - 2_133);
        assert_eq!(after(true, 10), 100_000 - 2_133 - 5_000);
    }

    #[test]
    fn every_reply_moves_the_window_and_a_cut_packet_its_length() {
        let mut control = Config::default().control(Rate::from_gbps(400), None);
        let window = |control: &mut Smartt| control.allowance(Time::ZERO).window;
        let first = window(&mut control);
        assert_eq!(first, 750_000);
        let delivery = Delivery { arrived: 1_500, flight: 60_000, ..Delivery::default() };
        let marked = Feedback { echo: true, round_trip: Time::from_us(20), delivery, ..Feedback::default() };
        for times in 1..4 {
            control.on_feedback(Time::from_us(1), &marked);
            let lost = first - window(&mut control);
            // 375 B by the excess, and 1,200 B of a full window by the mark.
            assert!((1_560 * times..=1_575 * times + 1).contains(&lost), "{lost}");
        }
        let before = window(&mut control);
        let delivery = Delivery { cut: 1_500, flight: 60_000, ..Delivery::default() };
        let round_trip = Time::from_us(10);
        let cut = Feedback { nack: true, round_trip, delivery, ..Feedback::default() };
        control.on_feedback(Time::from_us(2), &cut);
        assert_eq!(window(&mut control), before - 1_500);
    }
}
