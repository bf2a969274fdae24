//! STrack's window (Le et al., "STrack: A Reliable Multipath Transport for AI/ML Clusters", arXiv 2407.15266): bytes in flight, moved
//! by the average queueing delay.
//!
//! Marks move paths only: the steering passes a marked entropy over. The window follows the average queueing delay d of all
//! paths, where t is the target:
//!
//! | average delay | effect |
//! |---|---|
//! | below t | the window grows by `gain` packets per window and microsecond below the target |
//! | from t to 2 t | the window shrinks to the share 1 - `beta` (d - t) / d, at least to 1 - `max-decrease` |
//! | above 2 t | the window drops to the bytes that have arrived in the last round trip |
//!
//! A window shrinks at most once per round trip. We have read a summary of the paper and the simulator csg-htsim (`strack.cpp`),
//! whose authors call their constants guesses.
//!
//! * The queueing delay of a reply is its round trip less the shortest one so far. csg-htsim compares whole round trips with
//!   20 us and a part per hop.
//! * The bytes of a round trip count only if replies have come in throughout: after a silence, the window shrinks by the
//!   second row (csg-htsim).
//! * Our choice: a lost or a cut packet, and a timeout, shrink the window by `max-decrease`, once per round trip. The paper's
//!   switches do not cut.

use crate::facts::{Control, ControlFacts, Evidence, Unit};
use crate::path::Path;
use finding::{Finding, code};
use model::{Allowance, Congestion, Feedback, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.strack]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionStrack")]
pub struct Config {
    /// Target of the average queueing delay. Default: 0.75 of the round trip of the longest path (our choice, as for `nscc`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Time>,
    /// First and largest window, in bandwidth-delay products of the longest path. Default 1.5 (our choice, as for `nscc`).
    pub window: f64,
    /// Growth per window, in packets for each microsecond below the target. Default 0.25 (csg-htsim; the unit is our
    /// reading).
    pub gain: f64,
    /// Share of the excess over the target in a decrease. Default 0.8 (csg-htsim).
    pub beta: f64,
    /// Largest share of the window that one decrease takes. Default 0.5 (csg-htsim).
    pub max_decrease: f64,
    /// Weight of a new sample in the average delay. Default 0.125 (csg-htsim; TCP's smoothed round trip, RFC 6298).
    pub average_weight: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config { target: None, window: 1.5, gain: 0.25, beta: 0.8, max_decrease: 0.5, average_weight: 0.125 }
    }
}

/// Share of the longest round trip that is the default target.
const TARGET: f64 = 0.75;
/// Picoseconds in a microsecond.
const US: f64 = 1e6;

impl Control for Config {
    type State = Strack;
    const TRIALS: &'static [&'static str] = &[
        "target = \"2us\"\n[nic]\ntimeout = { fixed = \"60us\" }\n[nic.transport.uec]\ninfer-loss = true",
        "gain = 2.0\n[nic]\ntimeout = { fixed = \"60us\" }\n[nic.transport.uec]\ninfer-loss = true",
        "target = \"3us\"\n[nic]\ntimeout = { fixed = \"60us\" }",
    ];

    fn facts(&self) -> ControlFacts {
        ControlFacts { window: Unit::Bytes, ..ControlFacts::of(Evidence::RoundTrips { stamp: 0 }) }
    }

    fn validate(&self) -> Result<(), Finding> {
        if self.target == Some(Time::ZERO) {
            return Err(code::RANGE.at("target", "must be longer than 0"));
        }
        for (key, value, most) in [
            ("window", self.window, 1e6),
            ("gain", self.gain, 1e6),
            ("beta", self.beta, 1.0),
            ("max-decrease", self.max_decrease, 1.0),
            ("average-weight", self.average_weight, 1.0),
        ] {
            if !(value > 0.0 && value <= most) {
                return Err(code::RANGE.at(key, format!("must be above 0 and at most {most}")));
            }
        }
        Ok(())
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Strack {
        let path = Path::or_guess(path, line_rate);
        let rtt = path.longest_rtt.ps() as f64;
        let window = self.window * line_rate.bps() as f64 / 8e12 * rtt;
        let frame = f64::from(path.mtu);
        Strack {
            config: self.clone(),
            frame,
            pace: Pace::from_bps(line_rate.bps() as f64),
            target: self.target.map_or(TARGET * rtt, |target| target.ps() as f64),
            most: window.max(frame),
            window: window.max(frame),
            base: rtt,
            average: 0.0,
            decreased: 0,
            counted: 0.0,
            achieved: 0.0,
            counted_from: 0,
            last_reply: 0,
        }
    }
}

/// State of one queue pair. Times are in ps, amounts in bytes.
#[derive(Clone, Debug)]
pub struct Strack {
    config: Config,
    frame: f64,
    pace: Pace,
    target: f64,
    most: f64,
    window: f64,
    /// Shortest round trip so far; at first that of the longest path.
    base: f64,
    /// Average queueing delay.
    average: f64,
    /// Time of the last decrease.
    decreased: u64,
    /// Bytes that have arrived since `counted_from`.
    counted: f64,
    /// Bytes that arrived in the round trip before; 0 if replies did not come in throughout.
    achieved: f64,
    counted_from: u64,
    last_reply: u64,
}

impl Strack {
    /// No effect: it has no rate to lower.
    pub(crate) fn lower_to(&mut self, _now: Time, _share: f64) {}

    /// Zero: every reply may change the window.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::ZERO
    }

    fn clamp(&mut self) {
        self.window = self.window.clamp(self.frame, self.most);
    }

    /// Counts the bytes of a reply towards those of its round trip.
    fn count(&mut self, now: u64, bytes: f64) {
        self.counted += bytes;
        let base = self.base as u64;
        if now > self.counted_from + base {
            let silent = now > self.last_reply + base;
            (self.achieved, self.counted) = if silent { (0.0, bytes) } else { (self.counted, 0.0) };
            self.counted_from = now;
        }
        self.last_reply = now;
    }

    /// True once per round trip.
    fn may_decrease(&mut self, now: u64) -> bool {
        let may = self.decreased == 0 || now >= self.decreased + self.base as u64;
        if may {
            self.decreased = now;
        }
        may
    }

    /// Bytes have arrived.
    fn on_arrived(&mut self, now: u64, bytes: f64, round_trip: f64) {
        self.base = self.base.min(round_trip);
        self.average += self.config.average_weight * (round_trip - self.base - self.average);
        self.count(now, bytes);
        if self.average < self.target {
            let packets = self.config.gain * (self.target - self.average) / US;
            self.window += packets * self.frame * bytes / self.window;
        } else if self.may_decrease(now) {
            if self.average > 2.0 * self.target && self.achieved > 0.0 {
                self.window = self.window.min(self.achieved);
            } else {
                let excess = (self.average - self.target) / self.average;
                self.window *= (1.0 - self.config.beta * excess).max(1.0 - self.config.max_decrease);
            }
        }
        self.clamp();
    }

    fn on_loss(&mut self, now: u64) {
        if self.may_decrease(now) {
            self.window *= 1.0 - self.config.max_decrease;
            self.clamp();
        }
    }
}

impl Congestion for Strack {
    fn allowance(&mut self, _now: Time) -> Allowance {
        Allowance { window: self.window as u64, pace: self.pace, not_before: Time::ZERO }
    }

    fn is_still(&self) -> bool {
        true
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        let delivery = feedback.delivery;
        if delivery.lost > 0 || delivery.cut > 0 {
            self.on_loss(now.ps());
        }
        // A sender that counts packets, as those of RoCE NICs do, reports no bytes.
        let bytes = if delivery == Default::default() {
            feedback.acked as f64 * self.frame
        } else {
            delivery.arrived as f64
        };
        // The headers of a cut packet are faster than the packet.
        if bytes > 0.0 && delivery.cut == 0 {
            self.on_arrived(now.ps(), bytes, feedback.round_trip.ps() as f64);
        }
    }

    fn on_nack(&mut self, now: Time) {
        self.on_loss(now.ps());
    }

    fn on_timeout(&mut self, now: Time) {
        self.on_loss(now.ps());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Delivery;

    /// A queue pair at 100 Gb/s with a path of 10 us, frames of 1500 B and a target of 8 us, whose window is 60,000 B.
    fn control() -> Strack {
        let config = Config { target: Some(Time::from_us(8)), average_weight: 1.0, ..Config::default() };
        let mut control = config.control(Rate::from_gbps(100), None);
        assert_eq!((control.most, control.base), (187_500.0, 1e7));
        control.window = 60_000.0;
        control
    }

    /// The window after a reply at `at` us that reports so many bytes after so many us of queueing delay.
    fn reply(control: &mut Strack, at: u64, arrived: u64, delay: u64) -> u64 {
        let delivery = Delivery { arrived, flight: 60_000, ..Delivery::default() };
        let feedback = Feedback { round_trip: Time::from_us(10 + delay), delivery, ..Feedback::default() };
        control.on_feedback(Time::from_us(at), &feedback);
        control.window.round() as u64
    }

    #[test]
    fn below_the_target_a_window_of_replies_adds_a_quarter_of_a_packet_per_microsecond() {
        // 8 us below the target: two packets. 2 us below it: half a packet.
        assert_eq!(reply(&mut control(), 100, 60_000, 0), 63_000);
        assert_eq!(reply(&mut control(), 100, 60_000, 6), 60_750);
        assert_eq!(reply(&mut control(), 100, 30_000, 6), 60_375, "half a window adds half of it");
    }

    #[test]
    fn above_the_target_the_window_shrinks_with_the_excess_once_per_round_trip() {
        let mut once = control();
        // 10 us are 2 us too many: 0.8 times a fifth.
        assert_eq!(reply(&mut once, 100, 1_500, 10), 50_400);
        assert_eq!(reply(&mut once, 105, 1_500, 10), 50_400);
        assert_eq!(reply(&mut once, 110, 1_500, 10), 42_336);
    }

    #[test]
    fn far_above_the_target_the_window_drops_to_what_has_arrived_in_a_round_trip() {
        let mut busy = control();
        for at in [100, 104, 108, 112] {
            reply(&mut busy, at, 1_500, 0);
        }
        // The replies from 100 to 112 us count.
        assert_eq!(reply(&mut busy, 113, 1_500, 20), 6_000);
        // After a silence the count means nothing: the largest decrease applies.
        assert_eq!(reply(&mut control(), 100, 1_500, 40), 30_000);
    }

    #[test]
    fn lost_packets_halve_the_window_once_per_round_trip() {
        let mut lossy = control();
        let lost = Feedback {
            round_trip: Time::from_us(10),
            delivery: Delivery { lost: 1_500, ..Delivery::default() },
            ..Feedback::default()
        };
        (100..110).for_each(|at| lossy.on_feedback(Time::from_us(at), &lost));
        assert_eq!(lossy.allowance(Time::from_us(110)).window, 30_000);
        lossy.on_timeout(Time::from_us(110));
        assert_eq!(lossy.allowance(Time::from_us(110)).window, 15_000);
    }

    #[test]
    fn marks_leave_the_window_alone() {
        let mut marked = control();
        let delivery = Delivery { arrived: 60_000, ..Delivery::default() };
        let feedback =
            Feedback { echo: true, round_trip: Time::from_us(10), delivery, ..Feedback::default() };
        marked.on_feedback(Time::from_us(100), &feedback);
        assert_eq!(marked.allowance(Time::from_us(100)).window, 63_000);
    }
}
