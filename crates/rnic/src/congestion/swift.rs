//! Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020):
//! a window that grows while round trips are shorter than a target, and shrinks with their excess.
//!
//! Algorithm 1 of the paper, with its names. Below the target an ACK opens the window by ai / cwnd for each packet that it
//! acknowledges, or by ai if the window is below one packet. At or above the target, at most once per round trip, the
//! window is multiplied by 1 - beta (delay - target) / delay, and by no less than 1 - max_mdf. A NACK that causes a
//! retransmission takes max_mdf, also at most once per round trip. So does a timeout, until a number of consecutive
//! timeouts resets the window to its minimum. Below a window of one packet, packets are rtt / cwnd apart.
//!
//! The target (the paper's topology and flow scaling) has three parts: a base, a span for every switch, and an extra for
//! small windows: alpha / sqrt(cwnd) + beta, between 0 and its range.
//!
//! * The delay is the whole round trip by the sender's clock, including the ACK's path. NICs here take no time of their own,
//!   so there is no delay of the end host. The paper's second window for that delay is not modelled.
//! * Our choice: the base is the round trip of the queue pair's hosts on an idle fabric, so that far and near hosts can
//!   share a run. The paper has one base for a fabric, and there the span per switch also covers propagation.
//! * Where the paper is silent: a queue pair starts with the bandwidth-delay product of its path, and its window is at most
//!   four times that. A decrease counts as one only if it makes the window smaller.
//! * Within the window packets start at line rate. Windows are whole packets, rounded down.
//! * The target needs square roots, which IEEE 754 rounds in the same way on every machine.

use crate::facts::{Control, ControlFacts, Evidence, Golden};
use crate::limits::outstanding;
use crate::path::Path;
use finding::{Finding, code};
use model::{Allowance, Congestion, Feedback, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.swift]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionSwift")]
pub struct Config {
    /// Target delay before the parts for switches and small windows are added. Default: the round trip of a full packet and
    /// its ACK between the queue pair's hosts on an idle fabric (our choice; the paper has one constant for a fabric).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_target: Option<Time>,
    /// Time that every switch on the path adds to the target. Default "1us" (our choice: eight full packets at 100 Gb/s may
    /// wait at each; the paper gives no number).
    pub hop_scale: Time,
    /// Longest time that a small window adds to the target, fs_range. Default: five times the base target (our choice, a
    /// guess that csg-htsim also makes; the paper gives no number).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_scale_range: Option<Time>,
    /// Window, in packets, at and below which the target has the full `flow-scale-range`, fs_min_cwnd. Default 0.1 (our
    /// choice, a guess that csg-htsim also makes; the paper gives no number).
    pub flow_scale_min_window: f64,
    /// Window, in packets, from which on the target has no extra for small windows, fs_max_cwnd. Default 100 (our choice, a
    /// guess that csg-htsim also makes).
    pub flow_scale_max_window: f64,
    /// Packets by which a round trip of ACKs below the target opens the window, ai. Default 1 (our choice, a guess that
    /// csg-htsim also makes).
    pub additive_increase: f64,
    /// Weight beta of the excess over the target in a decrease, above 0 and at most 1. Default 0.8 (our choice, a guess that
    /// csg-htsim also makes).
    pub beta: f64,
    /// Largest share of the window that one decrease takes, max_mdf; above 0 and below 1. Default 0.5 (our choice, a guess
    /// that csg-htsim also makes).
    pub max_decrease: f64,
    /// Smallest window, in packets. Default 0.001 (our choice: a packet per thousand round trips).
    pub min_window: f64,
    /// Largest window, in packets. Default: four times the bandwidth-delay product of the path (our choice: it bounds the
    /// growth of the window while a flow has nothing to send).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_window: Option<u32>,
    /// Consecutive timeouts that reset the window to its minimum, RETX_RESET_THRESHOLD. Default 5 (our choice; the paper
    /// gives no number).
    pub timeouts_to_reset: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            base_target: None,
            hop_scale: Time::from_us(1),
            flow_scale_range: None,
            flow_scale_min_window: 0.1,
            flow_scale_max_window: 100.0,
            additive_increase: 1.0,
            beta: 0.8,
            max_decrease: 0.5,
            min_window: 0.001,
            max_window: None,
            timeouts_to_reset: 5,
        }
    }
}

impl Control for Config {
    type State = Swift;
    const DECISIVE: &'static [&'static str] = &["beta", "max-decrease", "min-window", "additive-increase"];
    const TRIALS: &'static [&'static str] =
        &["hop-scale = \"100ns\"", "hop-scale = \"50ns\"\nflow-scale-range = \"1us\""];
    const GOLDEN: Option<Golden> = Some(("Swift", &["nic.congestion.swift={}"]));

    fn facts(&self) -> ControlFacts {
        ControlFacts::of(Evidence::RoundTrips { stamp: 0 })
    }

    fn longest_gap(&self, _: u64, rtt: Time) -> Time {
        // `as` saturates at the largest time.
        Time((rtt.ps() as f64 / self.min_window.min(1.0)) as u64)
    }

    fn validate(&self) -> Result<(), Finding> {
        if self.base_target == Some(Time::ZERO) {
            return Err(code::RANGE.at("base-target", "must be longer than 0"));
        }
        for (field, value) in [
            ("flow-scale-min-window", self.flow_scale_min_window),
            ("additive-increase", self.additive_increase),
            ("min-window", self.min_window),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(code::RANGE.at(field, "must be above 0"));
            }
        }
        if !(self.flow_scale_max_window > self.flow_scale_min_window
            && self.flow_scale_max_window.is_finite())
        {
            return Err(code::FIT.at("flow-scale-max-window", "must be above `flow-scale-min-window`"));
        }
        if !(self.beta > 0.0 && self.beta <= 1.0) {
            return Err(code::RANGE.at("beta", "must be above 0 and at most 1"));
        }
        if !(self.max_decrease > 0.0 && self.max_decrease < 1.0) {
            return Err(code::RANGE.at("max-decrease", "must be above 0 and below 1"));
        }
        if self.min_window > 1.0 {
            return Err(code::RANGE.at("min-window", "must be at most 1"));
        }
        self.max_window.map_or(Ok(()), |most| outstanding("max-window", most))
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Swift {
        let path = &Path::or_guess(path, line_rate);
        let base = self.base_target.unwrap_or(path.base_rtt).ps() as f64;
        let range = self.flow_scale_range.map_or(5.0 * base, |range| range.ps() as f64);
        let (low, high) = (self.flow_scale_min_window.sqrt(), self.flow_scale_max_window.sqrt());
        let slope = range / (1.0 / low - 1.0 / high);
        let most = self.max_window.map_or(4.0 * f64::from(path.bdp), f64::from).max(1.0);
        let mut control = Swift {
            window: f64::from(path.bdp).min(most),
            line: Pace::from_bps(line_rate.bps() as f64),
            pace: Pace::UNPACED,
            rtt: path.base_rtt.ps() as f64,
            decreased: None,
            timeouts: 0,
            target: base + f64::from(path.hops) * self.hop_scale.ps() as f64,
            slope,
            offset: slope / high,
            range,
            step: self.additive_increase,
            beta: self.beta,
            least_factor: 1.0 - self.max_decrease,
            least: self.min_window.min(most),
            most,
            reset: self.timeouts_to_reset,
            frame_bits: f64::from(path.frame) * 8.0,
        };
        control.set(control.window);
        control
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Swift {
    /// Window, packets.
    window: f64,
    line: Pace,
    /// Pace of the window: line rate, or less below one packet.
    pace: Pace,
    /// Newest round trip, ps.
    rtt: f64,
    /// Time of the last decrease.
    decreased: Option<Time>,
    /// Timeouts since the last ACK.
    timeouts: u32,
    /// Target of a large window, ps.
    target: f64,
    /// Terms of the extra for small windows: alpha, and -beta, of the paper's flow scaling.
    slope: f64,
    offset: f64,
    range: f64,
    step: f64,
    beta: f64,
    /// Smallest factor of a decrease: 1 - max_mdf.
    least_factor: f64,
    least: f64,
    most: f64,
    reset: u32,
    /// Bits of a full frame on the wire.
    frame_bits: f64,
}

impl Swift {
    /// Window, packets; below 1 it is the share of a packet per round trip.
    pub const fn window(&self) -> f64 {
        self.window
    }

    /// Current target delay.
    pub fn target(&self) -> Time {
        Time(self.target_ps() as u64)
    }

    fn target_ps(&self) -> f64 {
        let more = self.slope / self.window.sqrt() - self.offset;
        self.target + more.min(self.range).max(0.0)
    }

    /// Zero, since every ACK changes the window.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::ZERO
    }

    /// No effect: Swift has no rate to lower.
    pub(crate) fn lower_to(&mut self, _now: Time, _share: f64) {}

    fn set(&mut self, window: f64) {
        self.window = window.max(self.least).min(self.most);
        self.pace = match self.window < 1.0 {
            // One full frame per rtt / cwnd.
            true => Pace::from_bps(self.frame_bits * self.window * 1e12 / self.rtt.max(1.0)),
            false => self.line,
        };
    }

    /// Multiplies the window by `factor`, unless it was decreased within the last round trip.
    fn decrease(&mut self, now: Time, factor: f64) {
        let since = self.decreased.map(|at| now.ps().saturating_sub(at.ps()) as f64);
        if since.is_none_or(|since| since >= self.rtt) {
            let before = self.window;
            self.set(before * factor);
            if self.window < before {
                self.decreased = Some(now);
            }
        }
    }
}

impl Congestion for Swift {
    fn allowance(&mut self, _now: Time) -> Allowance {
        Allowance { window: (self.window as u64).max(1), pace: self.pace, not_before: Time::ZERO }
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        self.timeouts = 0;
        let delay = feedback.round_trip.ps() as f64;
        self.rtt = delay.max(1.0);
        let target = self.target_ps();
        if delay < target {
            let share = if self.window >= 1.0 { self.window } else { 1.0 };
            self.set(self.window + self.step * feedback.acked as f64 / share);
        } else {
            let factor = (1.0 - self.beta * (delay - target) / delay).max(self.least_factor);
            self.decrease(now, factor);
        }
    }

    /// Fast recovery.
    fn on_nack(&mut self, now: Time) {
        self.timeouts = 0;
        self.decrease(now, self.least_factor);
    }

    fn on_timeout(&mut self, now: Time) {
        self.timeouts = self.timeouts.saturating_add(1);
        if self.timeouts >= self.reset {
            self.set(self.least);
            self.decreased = Some(now);
        } else {
            self.decrease(now, self.least_factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Time = Time::from_us(10);

    /// A control whose path holds 80 packets: 100 Gb/s, 10 us, 1563 B each on the wire.
    fn control(config: &Config) -> Swift {
        let path = Path { base_rtt: RTT, bdp: 80, hops: 3, frame: 1563, ..Path::unknown(Rate(0)) };
        config.control(Rate::from_gbps(100), Some(&path))
    }

    fn ack(control: &mut Swift, now: Time, round_trip: Time) {
        control.on_feedback(now, &Feedback { acked: 1, round_trip, ..Feedback::default() });
    }

    #[test]
    fn the_target_counts_switches_and_small_windows() {
        let mut control = control(&Config::default());
        // 10 us and 3 x 1 us. Alpha is 50 us / (1 / sqrt(0.1) - 1 / sqrt(100)), and a window of 100 packets has no extra.
        control.set(100.0);
        assert_eq!(control.target(), Time::from_us(13));
        control.set(400.0);
        assert_eq!(control.target(), Time::from_us(13));
        control.set(0.1);
        assert!(control.target().ps().abs_diff(Time::from_us(63).ps()) <= 1, "{}", control.target());
        control.set(0.01);
        assert_eq!(control.target(), Time::from_us(63));
        control.set(4.0);
        let alpha = 50.0 / (1.0 / 0.1f64.sqrt() - 0.1);
        let wanted = 13.0 + alpha / 2.0 - alpha / 10.0;
        assert!((control.target().as_us() / wanted - 1.0).abs() < 1e-6, "{}", control.target());
    }

    #[test]
    fn a_window_of_acks_below_the_target_opens_it_by_one_packet() {
        let mut control = control(&Config::default());
        assert_eq!(control.allowance(Time::ZERO).window, 80);
        (0..81).for_each(|_| ack(&mut control, Time::ZERO, RTT));
        assert_eq!(control.allowance(Time::ZERO).window, 81);
        (0..999_999).for_each(|_| ack(&mut control, Time::ZERO, RTT));
        assert_eq!(control.window(), 320.0, "four times the bandwidth-delay product");
    }

    #[test]
    fn above_the_target_the_window_shrinks_once_per_round_trip() {
        let mut control = control(&Config::default());
        control.set(100.0);
        let late = Time::from_us(26); // twice the target
        ack(&mut control, Time::from_us(100), late);
        assert!((control.window() - 60.0).abs() < 1e-9, "a cut of 0.8 x half: {}", control.window());
        ack(&mut control, Time::from_us(125), late);
        assert!((control.window() - 60.0).abs() < 1e-9);
        ack(&mut control, Time::from_us(126), Time::from_ms(1));
        assert!((control.window() - 60.0).abs() < 1e-9, "the last round trip was a millisecond");
        ack(&mut control, Time::from_us(1100), Time::from_ms(1));
        assert!((control.window() - 30.0).abs() < 1e-9, "one decrease takes at most half");
    }

    #[test]
    fn a_window_below_one_packet_paces() {
        let mut control = control(&Config::default());
        ack(&mut control, Time::from_us(100), Time::from_us(20));
        control.set(0.25);
        let allowance = control.allowance(Time::ZERO);
        assert_eq!(allowance.window, 1);
        let gap = allowance.pace.gap(1563);
        assert!(gap.ps().abs_diff(Time::from_us(80).ps()) < 100, "four round trips: {gap}");
        ack(&mut control, Time::from_us(200), RTT);
        assert_eq!(control.window(), 1.25, "the window grows by whole packets");
    }

    #[test]
    fn a_nack_halves_the_window_and_consecutive_timeouts_reset_it() {
        let mut control = control(&Config { timeouts_to_reset: 3, ..Config::default() });
        control.on_nack(Time::from_us(100));
        control.on_nack(Time::from_us(105));
        assert_eq!(control.window(), 40.0);
        control.on_timeout(Time::from_us(1000));
        control.on_timeout(Time::from_us(2000));
        assert_eq!(control.window(), 10.0);
        control.on_timeout(Time::from_us(3000));
        assert_eq!(control.window(), 0.001);
        assert_eq!(control.allowance(Time::from_us(3000)), control.allowance(Time::from_ms(9)));
    }

    #[test]
    fn a_single_flow_settles_at_the_target_delay() {
        // The flow has a link of 100 Gb/s to itself: packets beyond the bandwidth-delay product wait.
        let mut control = control(&Config::default());
        let packet = 1563.0 * 8.0 / 100e9;
        let mut now = 0.0;
        for _ in 0..100_000 {
            let delay = (control.window() * packet).max(10e-6);
            now += packet;
            ack(&mut control, Time((now * 1e12) as u64), Time((delay * 1e12) as u64));
        }
        let (held, fits) = (control.window() * packet * 1e6, control.target().as_us());
        assert!((held / fits - 1.0).abs() < 0.05, "a delay of {held} us against a target of {fits} us");
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{ABOVE_0, SHARE, check};
        let table = "congestion.swift";
        check(table, "base-target", &["\"1ps\""], &["\"0us\""]);
        check(table, "flow-scale-min-window", &["1e-9", "99.9"], &["0.0", "inf", "nan"]);
        check(table, "flow-scale-max-window", &["0.11", "1e9"], &["0.1", "0.0", "inf", "nan"]);
        check(table, "additive-increase", ABOVE_0.0, ABOVE_0.1);
        check(table, "beta", SHARE.0, SHARE.1);
        check(table, "max-decrease", &["1e-9", "0.999999"], &["0.0", "1.0", "nan"]);
        check(table, "min-window", &["1e-9", "1.0"], &["0.0", "1.000001", "nan"]);
        check(table, "max-window", &["1", "8388607"], &["0", "8388608"]);
    }

    #[test]
    fn the_smallest_window_bounds_the_time_between_packets() {
        let config = Config { min_window: 0.01, ..Config::default() };
        assert_eq!(config.longest_gap(1500, RTT), Time::from_ms(1), "a packet per hundred round trips");
    }
}
