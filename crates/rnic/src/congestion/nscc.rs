//! NSCC, the network-signalled congestion control of Ultra Ethernet (Ultra Ethernet Specification 1.0.3, section 3.6.13): a
//! window of bytes in flight, which marks and queueing delay move.
//!
//! The queueing delay of a reply is its round trip less the shortest round trip so far. Four cases follow:
//!
//! | mark | delay | effect |
//! |---|---|---|
//! | no | below the target | the window grows with the distance to the target; fast, once a window of replies had no delay |
//! | no | at or above it | the window grows by a fair share: five packets per window |
//! | yes | below it | none: the steering moves packets to other paths |
//! | yes | at or above it | the window shrinks with the average delay, at most once per base round trip |
//!
//! Quick adapt ends an overload within a round trip: after losses, the window drops to the bytes that have arrived in the
//! last one. All growth is scaled by the bandwidth-delay product and the target, so one set of constants fits all networks.
//!
//! * The base round trip, the target and the first window start from the longest path of the fabric, as configured NICs do.
//! * A receiver's penalty (`rcv_cwnd_pend`) shrinks the window by its share of the arrived bytes; the flag that ends it brings the
//!   window back. Receivers ask for penalties as the transport's `penalties` say, as none here is short of resources.
//! * `like-htsim` has the places in which the consortium's simulator (uet-htsim, uec.cpp) differs.

use super::smartt;
use crate::facts::{Control, ControlFacts, Evidence, Unit};
use crate::path::Path;
use finding::{Finding, code};
use model::{Allowance, Congestion, Delivery, Feedback, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.congestion.nscc]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionNscc")]
pub struct Config {
    /// Target of the queueing delay. Default: 0.75 of the round trip of the longest path, for switches that trim packets
    /// (uet-htsim, which takes the whole round trip where switches drop them).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Time>,
    /// First and largest window, in bandwidth-delay products. Default 1.5 (uet-htsim).
    pub window: f64,
    /// Share of the excess over the target in a decrease, gamma. Default 0.8 (uet-htsim).
    pub gamma: f64,
    /// Largest share of the window that one decrease takes, max_md_jump. Default 0.5 (uet-htsim).
    pub max_decrease: f64,
    /// Quick adapt acts if fewer bytes have arrived in a round trip than the largest window divided by 2 to this power,
    /// qa_gate. Default 3 (uet-htsim).
    pub quick_adapt_gate: u8,
    /// Delay from which on quick adapt acts without a loss, in targets. Default 4 (uet-htsim).
    pub quick_adapt_delay: f64,
    /// Weight of a new sample in the average delay. Default 0.0125 (uet-htsim).
    pub average_weight: f64,
    /// Whether NACKs of trimmed packets lower the base round trip. Their frames are short on a part of the path. Default true
    /// (uet-htsim).
    pub base_from_nacks: bool,
    /// Whether to differ from the specification where uet-htsim does: the payload instead of the frame in the scale of
    /// growth; the average instead of nothing where a reply has no round trip; 1 us of delay instead of none for fast
    /// growth; no effect of losses that the sender infers; and the average as the delay of an answer to another probe than
    /// the latest. Default false (our choice: the specification).
    pub like_htsim: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            target: None,
            window: 1.5,
            gamma: 0.8,
            max_decrease: 0.5,
            quick_adapt_gate: 3,
            quick_adapt_delay: 4.0,
            average_weight: 0.0125,
            base_from_nacks: true,
            like_htsim: false,
        }
    }
}

/// Share of the longest round trip that is the default target.
const TARGET: f64 = 0.75;
/// Network to which all growth is scaled: its bandwidth-delay product, bytes, and its target, ps (the specification's
/// reference network).
const REFERENCE: (f64, f64) = (150_000.0, 12e6);
/// Delay below which a sample counts as none under `like-htsim`, ps.
const HARDLY: f64 = 1e6;

impl Control for Config {
    type State = Nscc;
    const DECISIVE: &'static [&'static str] = &["window", "gamma", "max-decrease", "quick-adapt-gate"];
    const TRIALS: &'static [&'static str] = &[
        "[nic]\ntimeout = { fixed = \"60us\" }\n[nic.transport.uec]\ninfer-loss = true",
        "like-htsim = true\ntarget = \"2us\"\n[nic]\ntimeout = { fixed = \"80us\" }",
    ];

    fn facts(&self) -> ControlFacts {
        ControlFacts { window: Unit::Bytes, ..ControlFacts::of(Evidence::Marks) }
    }

    fn heeds_penalties(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), Finding> {
        let above_zero = |key: &'static str, value: f64, most: f64| match value > 0.0 && value <= most {
            true => Ok(()),
            false => Err(code::RANGE.at(key, format!("must be above 0 and at most {most}"))),
        };
        if self.target == Some(Time::ZERO) {
            return Err(code::RANGE.at("target", "must be longer than 0"));
        }
        above_zero("window", self.window, 1e6)?;
        above_zero("gamma", self.gamma, 1.0)?;
        above_zero("max-decrease", self.max_decrease, 1.0)?;
        above_zero("average-weight", self.average_weight, 1.0)?;
        above_zero("quick-adapt-delay", self.quick_adapt_delay, 1e6)?;
        match self.quick_adapt_gate {
            0..=30 => Ok(()),
            _ => Err(code::RANGE.at("quick-adapt-gate", "must be at most 30")),
        }
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Nscc {
        let path = Path::or_guess(path, line_rate);
        let rtt = path.longest_rtt.ps() as f64;
        let target = self.target.map_or(TARGET * rtt, |target| target.ps() as f64);
        let per_ps = line_rate.bps() as f64 / 8e12;
        let (a, b) = (per_ps * rtt / REFERENCE.0, target / REFERENCE.1);
        let frame = f64::from(path.mtu);
        let scale = f64::from(if self.like_htsim { path.payload } else { path.mtu });
        let window = self.window * per_ps * rtt;
        let constants = Constants {
            config: self.clone(),
            frame,
            pace: Pace::from_bps(line_rate.bps() as f64),
            rate: per_ps,
            rtt,
            target,
            alpha: 4.0 * a * b * scale / target,
            fair: 5.0 * a * scale,
            eta: 0.15 * a * scale,
            fast_scale: 0.25 * a,
            law: None,
        };
        Nscc {
            constants: Arc::new(constants),
            window: window.max(frame),
            most: window,
            base: rtt,
            average: 0.0,
            earned: 0.0,
            received: 0.0,
            adjusted: 0,
            clear: 0.0,
            fast: false,
            cut: 0,
            achieved: 0.0,
            ignored: 0.0,
            to_ignore: 0.0,
            overloaded: false,
            checked: 0,
            is_cut: false,
            saved: None,
        }
    }
}

/// What no reply changes. Times are in ps, amounts in bytes.
#[derive(Clone, Debug, PartialEq)]
struct Constants {
    config: Config,
    frame: f64,
    pace: Pace,
    /// Line rate, bytes per ps.
    rate: f64,
    /// Round trip of the longest path.
    rtt: f64,
    target: f64,
    alpha: f64,
    fair: f64,
    eta: f64,
    fast_scale: f64,
    /// The law of [`super::smartt`] in place of the four cases.
    law: Option<smartt::Config>,
}

/// State of one queue pair. Times are in ps, amounts in bytes.
#[derive(Clone, Debug)]
pub struct Nscc {
    /// One for all queue pairs of a host with the same constants ([`Congestion::share`]).
    constants: Arc<Constants>,
    window: f64,
    most: f64,
    /// Shortest round trip so far.
    base: f64,
    /// Average queueing delay.
    average: f64,
    /// Growth since the last adjustment, times the window.
    earned: f64,
    /// Bytes since the last adjustment.
    received: f64,
    adjusted: u64,
    /// Bytes in a row without delay.
    clear: f64,
    fast: bool,
    /// Time of the last decrease.
    cut: u64,
    /// Bytes that have arrived since the last check of quick adapt.
    achieved: f64,
    /// Bytes reported since quick adapt acted, and those that were in flight then.
    ignored: f64,
    to_ignore: f64,
    /// True after a loss, until quick adapt acts.
    overloaded: bool,
    /// Time of the next check of quick adapt; 0 before the first.
    checked: u64,
    /// True while the reply at hand reports a cut packet.
    is_cut: bool,
    /// The window before penalties, while they apply.
    saved: Option<Box<f64>>,
}

impl Nscc {
    /// This queue pair under the law of [`super::smartt`].
    pub(super) fn moved_by(self, law: smartt::Config) -> Self {
        let constants =
            Constants { fast_scale: law.fast_increase, law: Some(law), ..(*self.constants).clone() };
        Nscc { constants: Arc::new(constants), ..self }
    }

    /// No effect: it has no rate to lower.
    pub(crate) fn lower_to(&mut self, _now: Time, _share: f64) {}

    /// Zero: every reply may change the window.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::ZERO
    }

    fn clamp(&mut self) {
        self.window = self.window.clamp(self.constants.frame, self.most.max(self.constants.frame));
    }

    /// Notes a round trip that may be the shortest.
    fn shorten(&mut self, rtt: f64) {
        if rtt < self.base {
            self.base = rtt;
            self.most = self.constants.config.window * self.constants.rate * rtt;
        }
    }

    fn average(&mut self, delay: f64) {
        self.average += self.constants.config.average_weight * (delay - self.average);
    }

    /// Once per round trip: sets the window to what has arrived if the network is overloaded. True if the caller should
    /// leave the window alone.
    fn quick_adapt(&mut self, now: u64, loss: bool, marked: bool, delay: f64, flight: f64) -> bool {
        let mut hit = self.ignored < self.to_ignore && marked;
        if !hit && now >= self.checked {
            let slow = delay > self.constants.config.quick_adapt_delay * self.constants.target;
            let few = self.most / f64::from(1_u32 << self.constants.config.quick_adapt_gate);
            if self.checked > 0 && (self.overloaded || loss || slow) && self.achieved < few {
                self.window = self.achieved.max(self.constants.frame);
                (self.to_ignore, self.ignored, self.overloaded) = (flight, 0.0, false);
                hit = true;
            }
            self.achieved = 0.0;
            self.checked = now + (self.base + self.constants.target) as u64;
        }
        if hit {
            (self.earned, self.received) = (0.0, 0.0);
        }
        hit
    }

    /// Applies a receiver's penalty, or ends it: the largest window that this reply may leave, if there is a penalty.
    ///
    /// The window is first cut to the bytes that are still in flight, as the specification has it. So the sender waits, and any
    /// penalty that lasts for a round trip leaves one packet.
    #[inline]
    fn penalise(&mut self, bytes: f64, delivery: &Delivery) -> Option<f64> {
        if delivery.penalty == 0 {
            if delivery.restore {
                self.window = self.saved.take().map_or(self.window, |saved| *saved);
            }
            return None;
        }
        self.saved.get_or_insert_with(|| Box::new(self.window));
        self.window = self.window.min(delivery.flight as f64) - f64::from(delivery.penalty) * bytes / 128.0;
        self.clamp();
        Some(self.window)
    }

    /// Bytes have arrived, and the reply has a mark or not.
    fn on_arrived(&mut self, now: u64, bytes: f64, flight: f64, feedback: &Feedback) {
        self.ignored += bytes;
        self.received += bytes;
        self.achieved += bytes;
        self.shorten(feedback.round_trip.ps() as f64);
        let most = self.penalise(bytes, &feedback.delivery);
        self.adapt(now, bytes, flight, feedback);
        // A penalty lets the window shrink, but not grow.
        if let Some(most) = most {
            self.window = self.window.min(most);
            self.earned = 0.0;
        }
        self.clamp();
    }

    /// Moves the window by the delay and the mark of a reply.
    fn adapt(&mut self, now: u64, bytes: f64, flight: f64, feedback: &Feedback) {
        let rtt = feedback.round_trip.ps() as f64;
        let (marked, delay) = (feedback.echo, rtt - self.base);
        // A delay without a mark is not that of a queue which marks.
        self.average(if !marked && delay > self.constants.target { self.base / 4.0 } else { delay });
        if self.quick_adapt(now, false, marked, delay, flight) {
            return;
        }
        if let Some(law) = &self.constants.law {
            let reply =
                smartt::Reply { bytes, marked, round_trip: rtt, target: self.base + self.constants.target };
            let change = law.change(self.window, self.most, self.constants.frame, reply);
            self.window += if self.grows_fast(bytes, marked, delay) { 0.0 } else { change };
            return;
        }
        match (marked, delay >= self.constants.target) {
            (false, true) => self.earned += self.constants.fair * bytes,
            (false, false) => self.grow(bytes, delay),
            (true, true) => self.shrink(now),
            (true, false) => {}
        }
        let late = now >= self.adjusted + self.constants.rtt as u64;
        if late || self.received > 8.0 * self.constants.frame {
            self.window += self.earned / self.window + if late { self.constants.eta } else { 0.0 };
            self.adjusted = if late { now } else { self.adjusted };
            (self.earned, self.received) = (0.0, 0.0);
        }
    }

    /// Grows the window fast if a window of replies had no delay; true if it does.
    fn grows_fast(&mut self, bytes: f64, marked: bool, delay: f64) -> bool {
        if !marked && delay <= if self.constants.config.like_htsim { HARDLY } else { 0.0 } {
            self.clear += bytes;
            if self.fast || self.clear > self.window {
                self.window += self.constants.fast_scale * bytes;
                self.fast = true;
            }
        } else {
            (self.clear, self.fast) = (0.0, false);
        }
        self.fast
    }

    fn grow(&mut self, bytes: f64, delay: f64) {
        if !self.grows_fast(bytes, false, delay) {
            self.earned += self.constants.alpha * bytes * (self.constants.target - delay);
        }
    }

    fn shrink(&mut self, now: u64) {
        (self.fast, self.clear) = (false, 0.0);
        if self.average > self.constants.target && now > self.cut + self.base as u64 {
            let excess = (self.average - self.constants.target) / self.average;
            self.window *=
                (1.0 - self.constants.config.gamma * excess).max(1.0 - self.constants.config.max_decrease);
            self.cut = now;
        }
    }

    /// A switch has cut a packet.
    fn on_cut(&mut self, now: u64, feedback: &Feedback) {
        let bytes = feedback.delivery.cut as f64;
        self.is_cut = true;
        self.ignored += bytes;
        if self.constants.config.base_from_nacks {
            self.shorten(feedback.round_trip.ps() as f64);
        }
        self.average(self.constants.rtt);
        self.overloaded = true;
        if !self.quick_adapt(now, true, true, 0.0, feedback.delivery.flight as f64) {
            self.window -= bytes;
        }
        self.clamp();
    }
}

impl Congestion for Nscc {
    #[inline]
    fn fetch(&self) {
        std::hint::black_box((self.window, self.average, self.checked, self.is_cut));
    }

    fn share(&mut self, other: &Self) {
        if self.constants == other.constants {
            self.constants = other.constants.clone();
        }
    }

    fn allowance(&mut self, _now: Time) -> Allowance {
        Allowance { window: self.window as u64, pace: self.constants.pace, not_before: Time::ZERO }
    }

    fn is_still(&self) -> bool {
        true
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        if feedback.delivery.lost > 0 && !self.constants.config.like_htsim {
            self.ignored += feedback.delivery.lost as f64;
            self.window -= feedback.delivery.lost as f64;
            self.clamp();
        }
        if feedback.delivery.cut > 0 {
            self.on_cut(now.ps(), feedback);
        } else if feedback.delivery.arrived > 0 {
            let Delivery { arrived, flight, .. } = feedback.delivery;
            self.on_arrived(now.ps(), arrived as f64, flight as f64, feedback);
        } else if feedback.acked > 0 {
            // The sender counts packets, as those of RoCE NICs do.
            let (arrived, flight) = (feedback.acked as f64, (feedback.high - feedback.una) as f64);
            self.on_arrived(
                now.ps(),
                arrived * self.constants.frame,
                flight * self.constants.frame,
                feedback,
            );
        }
    }

    /// uet-htsim knows the time of the latest probe only, and has the average for answers to others.
    fn assumed_delay(&self) -> Option<Time> {
        self.constants.config.like_htsim.then_some(Time(self.average as u64))
    }

    /// A NACK is a loss, unless it reports a cut packet, which has had its effect.
    fn on_nack(&mut self, now: Time) {
        if !std::mem::take(&mut self.is_cut) {
            self.on_timeout(now);
        }
    }

    fn on_timeout(&mut self, _now: Time) {
        self.ignored += self.constants.frame;
        self.window -= self.constants.frame;
        self.clamp();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;

    /// A path of four links of 400 Gb/s and 500 ns, with frames of 4150 B and ACKs of 64 B.
    fn path() -> Path {
        let rtt = Time(4_337_120);
        Path {
            base_rtt: rtt,
            longest_rtt: rtt,
            oversubscription: 1.0,
            bdp: 53,
            hops: 3,
            payload: 4086,
            mtu: 4150,
            frame: 4150,
            rates: Arc::from([Rate::from_gbps(400)]),
        }
    }

    fn control() -> Nscc {
        let config = Config { like_htsim: true, ..Config::default() };
        config.control(Rate::from_gbps(400), Some(&path()))
    }

    fn reply(arrived: u64, marked: bool, delay: u64) -> Feedback {
        let delivery = Delivery { arrived, flight: 60_000, ..Delivery::default() };
        Feedback { echo: marked, round_trip: Time(4_337_120 + delay), delivery, ..Feedback::default() }
    }

    /// The window after replies at 100 us, from 100,000 B on, without the growth of a whole round trip.
    fn after(prepare: impl Fn(&mut Nscc), replies: &[Feedback]) -> f64 {
        let mut control = control();
        (control.window, control.adjusted, control.checked) = (100_000.0, 100 * US, 200 * US);
        prepare(&mut control);
        replies.iter().for_each(|reply| control.on_feedback(Time(100 * US), reply));
        control.window
    }

    #[test]
    fn the_first_window_has_room_for_a_packet_at_least() {
        let config = Config { window: 0.015, ..Config::default() };
        let mut control = config.control(Rate::from_gbps(400), Some(&path()));
        assert_eq!(control.allowance(Time::ZERO).window, 4150);
    }

    #[test]
    fn the_constants_of_a_400g_leaf_spine() {
        let control = control();
        let constants = &control.constants;
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-4, "{found}");
        close(constants.target, 3_252_840.0);
        close(control.window, 325_284.0);
        close(constants.alpha, 1.96905e-3);
        close(constants.fair, 29_535.8);
        close(constants.eta, 886.074);
        close(constants.fast_scale, 0.361427);
    }

    #[test]
    fn the_average_delay_stands_for_that_of_an_old_probe_in_htsim_alone() {
        let mut htsim = control();
        htsim.average = 2.5e6;
        assert_eq!(htsim.assumed_delay(), Some(Time(2_500_000)));
        let ours = Config::default().control(Rate::from_gbps(400), Some(&path()));
        assert_eq!(ours.assumed_delay(), None);
    }

    #[test]
    fn the_window_grows_with_the_distance_to_the_target_and_by_a_fair_share_above_it() {
        let grown = after(|_| {}, &[reply(49_800, false, 0)]);
        assert!((grown - 103_190.0).abs() < 1.0, "{grown}");
        let grown = after(|_| {}, &[reply(49_800, false, 3_300_000)]);
        assert!((grown - 114_709.0).abs() < 1.0, "{grown}");
    }

    #[test]
    fn a_marked_delay_shrinks_the_window_once_per_round_trip() {
        let marked = reply(4150, true, 4 * US);
        let slow = |control: &mut Nscc| {
            control.average = 6.5e6;
            Arc::make_mut(&mut control.constants).config.average_weight = 1e-9;
        };
        let once = after(slow, &[marked]);
        assert!((once / 100_000.0 - 0.6004).abs() < 1e-3, "{once}");
        assert_eq!(after(slow, &[marked, marked]), once);
        assert_eq!(
            after(slow, &[reply(4150, true, 2 * US)]),
            100_000.0,
            "below the target the steering acts"
        );
    }

    #[test]
    fn after_a_cut_quick_adapt_takes_what_has_arrived_if_that_is_little() {
        let cut = Feedback {
            nack: true,
            round_trip: Time(4_337_120),
            delivery: Delivery { cut: 4150, flight: 60_000, ..Delivery::default() },
            ..Feedback::default()
        };
        let achieved =
            |bytes: f64| move |control: &mut Nscc| (control.achieved, control.checked) = (bytes, 99 * US);
        assert_eq!(after(achieved(30_000.0), &[cut]), 30_000.0);
        // More than an eighth of the largest window has arrived: the cut packet alone counts.
        assert_eq!(after(achieved(50_000.0), &[cut]), 95_850.0);
    }

    #[test]
    fn a_penalty_shrinks_the_window_by_its_share_of_the_arrived_bytes_until_it_is_over() {
        let asks = |penalty: u8, restore: bool| {
            let reply = reply(12_800, false, 0);
            let delivery = Delivery { penalty, restore, ..reply.delivery };
            Feedback { delivery, ..reply }
        };
        // 60,000 bytes are in flight after each reply.
        assert_eq!(after(|_| {}, &[asks(64, false)]), 60_000.0 - 6_400.0);
        assert_eq!(after(|_| {}, &[asks(127, false); 9]), 4150.0, "one packet is left");
        let back = after(|_| {}, &[asks(64, false), asks(64, false), asks(0, true)]);
        assert!((100_000.0..102_000.0).contains(&back), "the window is back, and grows again: {back}");
        let cut = after(|_| {}, &[asks(64, false), asks(0, false)]);
        assert!((53_600.0..60_000.0).contains(&cut), "without the flag the window goes on from there: {cut}");
    }

    #[test]
    fn marks_and_delay_shrink_a_window_under_a_penalty_further() {
        let long = |control: &mut Nscc| (control.average, control.cut) = (8e6, 0);
        let mut late = reply(4150, true, 4 * US);
        late.delivery.flight = 100_000;
        let free = after(long, &[late]);
        late.delivery.penalty = 1;
        let penalised = after(long, &[late]);
        assert!(penalised < free && penalised > free - 100.0, "{penalised} {free}");
    }

    #[test]
    fn marks_of_packets_sent_before_quick_adapt_are_ignored() {
        let acted = |control: &mut Nscc| {
            (control.to_ignore, control.average) = (60_000.0, 9e6);
            Arc::make_mut(&mut control.constants).config.average_weight = 1e-9;
        };
        let marked = reply(30_000, true, 4 * US);
        assert_eq!(after(acted, &[marked]), 100_000.0);
        assert!(after(acted, &[marked, marked]) < 100_000.0, "60,000 B were reported since");
    }
}
