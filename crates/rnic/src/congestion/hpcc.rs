//! HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019): switches write the load of their links on
//! every data packet ([`model::telemetry`]), the ACK returns it, and the sender sets its window by the busiest link.
//!
//! Algorithm 1 of the paper, with its names. The sender keeps the last two records of every link. Between them, the bytes
//! sent relative to the rate B, plus the smaller of the two queues relative to B T, give the link's utilisation. The highest
//! utilisation of all links enters the average U with the weight tau / T, where tau is the time between the records. If U
//! is at least eta, or after maxStage additive steps, the window becomes Wc / (U / eta) + W_AI, else Wc + W_AI. Every ACK
//! computes this from the same reference window Wc. Once per round trip Wc becomes the window: on the ACK of a packet that
//! was sent after the last such update. So the sender reacts to each ACK, but not twice to the same queue.
//!
//! Window and rate are one: R = W / T, and a flow starts at line rate with a window of line rate times T. The state is the
//! rate, as in the public simulator.
//!
//! * A record of other links than the last one starts the comparison afresh and changes nothing (section 4.1). So packets
//!   of one queue pair must stay on one path for a while; under per-packet spraying HPCC seldom sees congestion or its end.
//! * HPCC ignores marks, CNPs and NACKs, so `nic.cnp` is "none" unless set. The effect of a timeout is that of
//!   `nic.on-timeout`; `as-cnp` has no effect. With `cnp-cut` CNPs count: a switch near the sender (long-haul) may report
//!   congestion on a path whose telemetry arrives too late.
//! * A window counts payload and is rounded up to whole packets: a packet may start while less than the window is
//!   outstanding.
//! * The bytes that a switch reports as sent exclude preamble and gap, like the counters of real switches. So a link that is
//!   always busy has a utilisation of 98.7 % with frames of 1500 B.

use crate::facts::{Control, ControlFacts, Golden};
use crate::limits::{int_hops, min_rate};
use crate::path::Path;
use crate::window::whole_packets;
use finding::{Finding, code};
use model::telemetry::{Record, Trail};
use model::{Allowance, Bytes, Congestion, Feedback, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.congestion.hpcc]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionHpcc")]
pub struct Config {
    /// Share eta of a link's rate at which all its flows together aim, above 0 and at most 1. Default 0.95 (HPCC paper,
    /// section 5.1).
    pub target_utilization: f64,
    /// Additive steps below that share until a multiplicative one, maxStage; with 0 every step is multiplicative. Default
    /// 5 (HPCC paper, section 5.1), or 0 with `compat` (the settings of its simulator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_stage: Option<u32>,
    /// Rate that every update adds, W_AI / T, per 100 Gb/s of line rate. Default "50Mbps" (HPCC simulator, its sample
    /// configuration; equal to the paper's 80 B at its 13 us).
    pub additive_increase: Rate,
    /// Whether `additive-increase` grows with line rate; with false it is absolute. Default true (our choice, as for
    /// `dcqcn`).
    pub scale_increase: bool,
    /// Lower bound of the rate. Default "100Mbps" (HPCC simulator, its sample configuration).
    pub min_rate: Rate,
    /// Round trip T on an idle fabric: "pair" for that of the queue pair's hosts (a full packet and its ACK), "longest" for
    /// the longest of any two hosts, or `{ fixed = "13us" }`. Default "pair" (our choice: each flow's own round trip; the
    /// paper has one constant for a fabric whose pairs are alike), or "longest" with `compat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_rtt: Option<BaseRtt>,
    /// Window at line rate. Default: line rate times `base-rtt` (HPCC paper, section 3.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// Hops for which the telemetry area of data, ACKs and NACKs has room; the area takes 8 bytes per hop, plus 2. Default 5
    /// (HPCC paper, section 4.1: 42 bytes), or 10 with `compat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub int_hops: Option<u8>,
    /// Rate that the sender assumes for a link whose rate has no code in the HPCC simulator, which has codes for 25, 50,
    /// 100, 200 and 400 Gb/s. Default: every rate is known (our choice), or "25Gbps" with `compat`, where an unknown rate
    /// keeps code 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_rate: Option<Rate>,
    /// Share by which a CNP, or a mark on an ACK, lowers a flow's rate, above 0 and below 1, at most once per
    /// `cnp-interval`; telemetry continues from the lower rate. Default: CNPs are ignored (HPCC paper).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp_cut: Option<f64>,
    /// Shortest time between two cuts by `cnp-cut`. Default 4 us (our choice: that of `dcqcn`).
    pub cnp_interval: Time,
    /// Other implementation whose defaults apply. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
}

/// Choice of the round trip T.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BaseRtt {
    /// Round trip of the queue pair's two hosts.
    Pair,
    /// Longest round trip of any two hosts.
    Longest,
    /// Fixed time.
    Fixed(Time),
}

/// Other implementation whose defaults apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "CompatHpcc")]
pub enum Compat {
    /// The public prototype of the long-haul system Themis, which is based on the HPCC simulator: one T for all pairs, no
    /// code for rates above 400 Gb/s, room for ten hops, no additive steps.
    LongHaulPrototype,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            target_utilization: 0.95,
            max_stage: None,
            additive_increase: Rate(50_000_000),
            scale_increase: true,
            min_rate: Rate(100_000_000),
            base_rtt: None,
            window: None,
            int_hops: None,
            unknown_rate: None,
            cnp_cut: None,
            cnp_interval: Time::from_us(4),
            compat: None,
        }
    }
}

/// Rates with a code in the layout of the HPCC simulator.
const CODED: [Rate; 5] = [
    Rate::from_gbps(25),
    Rate::from_gbps(50),
    Rate::from_gbps(100),
    Rate::from_gbps(200),
    Rate::from_gbps(400),
];

impl Config {
    /// The settings with every value filled in that `compat` or a default decides.
    fn resolved(&self) -> Self {
        let other = self.compat.is_some();
        Config {
            max_stage: Some(self.max_stage.unwrap_or(if other { 0 } else { 5 })),
            base_rtt: Some(self.base_rtt.unwrap_or(if other { BaseRtt::Longest } else { BaseRtt::Pair })),
            int_hops: Some(self.int_hops()),
            unknown_rate: self.unknown_rate.or(other.then_some(CODED[0])),
            ..self.clone()
        }
    }

    /// Hops for which the telemetry area has room.
    fn int_hops(&self) -> u8 {
        self.int_hops.unwrap_or(if self.compat.is_some() { 10 } else { 5 })
    }

    /// Rate that the sender assumes for a link of rate `rate`.
    fn takes_for(&self, rate: Rate) -> Rate {
        match self.resolved().unknown_rate {
            Some(other) if !CODED.contains(&rate) => other,
            _ => rate,
        }
    }
}

impl Control for Config {
    type State = Hpcc;
    const TRIALS: &'static [&'static str] = &[
        "int-hops = 7",
        "additive-increase = \"1Gbps\"\nint-hops = 7",
        "int-hops = 7\nmax-stage = 0\nunknown-rate = \"25Gbps\"\nbase-rtt = \"longest\"\n[nic]\nack-every = 3\ntimeout = { fixed = \"90us\" }\n[nic.transport.irn]",
    ];
    const GOLDEN: Option<Golden> = Some(("HPCC", &["nic.congestion.hpcc={}"]));

    fn facts(&self) -> ControlFacts {
        ControlFacts::of_telemetry(self.int_hops())
    }

    fn longest_gap(&self, bytes: u64, _: Time) -> Time {
        self.min_rate.time_for(bytes)
    }

    fn validate(&self) -> Result<(), Finding> {
        let eta = self.target_utilization;
        if !(eta > 0.0 && eta <= 1.0) {
            return Err(code::RANGE.at("target-utilization", "must be above 0 and at most 1"));
        }
        min_rate(self.min_rate)?;
        if self.base_rtt == Some(BaseRtt::Fixed(Time::ZERO)) {
            return Err(code::RANGE.at("base-rtt.fixed", "must be longer than 0"));
        }
        if self.window == Some(Bytes(0)) {
            return Err(code::RANGE.at("window", "must be above 0"));
        }
        int_hops(self.int_hops())?;
        if self.cnp_cut.is_some_and(|cut| !(cut > 0.0 && cut < 1.0)) {
            return Err(code::RANGE.at("cnp-cut", "must be above 0 and below 1"));
        }
        if self.unknown_rate == Some(Rate(0)) {
            return Err(code::RANGE.at("unknown-rate", "must be above 0, since it is a divisor"));
        }
        Ok(())
    }

    /// Fills in what `compat` or a default decides.
    fn resolve(&mut self) {
        *self = self.resolved();
    }

    fn warning(&self, rates: &[Rate]) -> Option<Finding> {
        let taken =
            rates.iter().map(|&rate| (rate, self.takes_for(rate))).filter(|(rate, other)| rate != other);
        let unknown: Vec<String> = taken.map(|(rate, other)| format!("{rate}, taken for {other}")).collect();
        let key = if self.unknown_rate.is_some() { "unknown-rate" } else { "compat" };
        let text = format!(
            "telemetry has no code for the rate of some links ({}): their utilisation comes out wrong, as in the HPCC \
             simulator, which sends the code of 25 Gb/s for them and prints an error for every packet; \
             `congestion.hpcc` without `unknown-rate` and `compat` knows every rate",
            unknown.join("; ")
        );
        (!unknown.is_empty()).then(|| code::READ_AS.at(key, text))
    }

    /// A new queue pair starts at `line_rate`.
    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Hpcc {
        let path = Path::or_guess(path, line_rate);
        let line = (line_rate.bps() as f64).max(1.0);
        let rtt = match self.resolved().base_rtt {
            Some(BaseRtt::Longest) => path.longest_rtt,
            Some(BaseRtt::Fixed(rtt)) => rtt,
            Some(BaseRtt::Pair) | None => path.base_rtt,
        };
        // T in picoseconds, and the bytes that line rate sends in T.
        let rtt = (rtt.ps() as f64).max(1.0);
        let window = self.window.map_or(line * rtt / 8e12, |window| window.get() as f64);
        let scale = if self.scale_increase { line / 100e9 } else { 1.0 };
        let mut hpcc = Hpcc {
            rate: line,
            reference: line,
            allowance: Allowance { window: 0, pace: Pace::UNPACED, not_before: Time::ZERO },
            utilization: 1.0,
            stage: 0,
            round: None,
            last: Trail::default(),
            line,
            min: (self.min_rate.bps() as f64).min(line),
            rtt,
            window,
            packet: f64::from(path.payload.max(1)),
            step: self.additive_increase.bps() as f64 * scale,
            target: self.target_utilization,
            max_stage: self.resolved().max_stage.unwrap_or_default(),
            cut: self.cnp_cut,
            cut_interval: self.cnp_interval,
            next_cut: Time::ZERO,
            rates: path.rates.iter().map(|rate| self.takes_for(*rate).bps() as f64).collect(),
        };
        hpcc.set(line);
        hpcc
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Hpcc {
    /// Rate, bits per second, like all rates here.
    rate: f64,
    /// Reference window Wc as a rate.
    reference: f64,
    /// Window and pace at this rate.
    allowance: Allowance,
    /// Average utilisation U.
    utilization: f64,
    /// Additive steps of the reference since the last multiplicative one (incStage).
    stage: u32,
    /// The reference changes when a packet from this one on is acknowledged; `None` before the first records.
    round: Option<u64>,
    /// Newest records.
    last: Trail,
    line: f64,
    min: f64,
    /// Round trip T, ps.
    rtt: f64,
    /// Window at line rate, bytes.
    window: f64,
    /// Payload of a full packet, bytes.
    packet: f64,
    step: f64,
    target: f64,
    max_stage: u32,
    /// Share of the rate that a CNP takes, the shortest time between two cuts, and the earliest next cut.
    cut: Option<f64>,
    cut_interval: Time,
    next_cut: Time,
    /// Assumed rates of the links, by rate number.
    rates: Arc<[f64]>,
}

impl Hpcc {
    /// Rate, bits per second.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Zero, since every ACK changes the rate.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::ZERO
    }

    /// Lowers the rate to `share` of line rate if it is higher.
    pub(crate) fn lower_to(&mut self, _now: Time, share: f64) {
        let rate = (share * self.line).max(self.min);
        self.reference = self.reference.min(rate);
        self.set(self.rate.min(rate));
    }

    fn set(&mut self, rate: f64) {
        self.rate = rate;
        self.allowance.window = whole_packets(self.window * (rate / self.line) / self.packet);
        self.allowance.pace = Pace::from_bps(rate);
    }

    /// Utilisation of a link between two records, and the time between them, ps; `None` if no time has passed.
    fn of_link(&self, now: &Record, before: &Record) -> Option<(f64, f64)> {
        let (time, bytes) = now.since(before);
        let rate = *self.rates.get(now.rate())?;
        if time == Time::ZERO {
            return None;
        }
        let tau = time.ps() as f64;
        let sent = bytes as f64 * 8e12 / tau / rate;
        // The queue relative to B T, where line rate fills the window in T. Most queues are empty.
        let waiting = now.queue().min(before.queue());
        let queue = if waiting == 0 { 0.0 } else { waiting as f64 * (self.line / rate) / self.window };
        Some((sent + queue, tau))
    }

    /// Updates U from new records; false if they carry no news.
    fn measure(&mut self, trail: &Trail) -> bool {
        let links = trail.records().zip(self.last.records());
        let seen = links.filter_map(|(now, before)| self.of_link(&now, &before));
        let busiest = seen.reduce(|most, link| if link.0 > most.0 { link } else { most });
        let Some((utilization, tau)) = busiest else { return false };
        let weight = smaller(tau, self.rtt) / self.rtt;
        self.utilization = self.utilization * (1.0 - weight) + utilization * weight;
        true
    }
}

/// The next rate and the next stage, from the reference rate and its stage. `excess` is the utilisation divided by its target.
pub(super) fn next(reference: f64, stage: u32, excess: f64, max_stage: u32, step: f64) -> (f64, u32) {
    match excess >= 1.0 || stage >= max_stage {
        true => (reference / excess + step, 0),
        false => (reference + step, stage + 1),
    }
}

/// The smaller of two numbers. Unlike [`f64::min`] it need not treat NaN, which takes several instructions.
fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The larger of two numbers.
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

impl Congestion for Hpcc {
    fn allowance(&mut self, _now: Time) -> Allowance {
        self.allowance
    }

    fn is_still(&self) -> bool {
        true
    }

    fn on_cnp(&mut self, now: Time) {
        if let Some(cut) = self.cut
            && now >= self.next_cut
        {
            self.next_cut = Time(now.ps().saturating_add(self.cut_interval.ps()));
            let rate = (self.rate * (1.0 - cut)).max(self.min);
            self.reference = self.reference.min(rate);
            self.set(rate);
        }
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        if feedback.echo {
            self.on_cnp(now);
        }
        let trail = &feedback.trail;
        if trail.hops() == 0 {
            return;
        }
        let Some(round) = self.round.filter(|_| trail.same_path(&self.last)) else {
            self.last = *trail;
            self.round.get_or_insert(feedback.high);
            return;
        };
        if self.measure(trail) {
            let excess = self.utilization / self.target;
            let (rate, stage) = next(self.reference, self.stage, excess, self.max_stage, self.step);
            self.set(smaller(larger(rate, self.min), self.line));
            if feedback.una > round {
                self.reference = self.rate;
                self.stage = stage;
                self.round = Some(feedback.high);
            }
        }
        self.last = *trail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: f64 = 100e9;

    fn path(gbps: &[u64]) -> Path {
        let rates = gbps.iter().map(|rate| Rate::from_gbps(*rate)).collect();
        Path { base_rtt: Time::from_us(10), rates, ..Path::unknown(Rate::from_gbps(100)) }
    }

    fn control(config: &Config) -> Hpcc {
        config.control(Rate::from_gbps(100), Some(&path(&[100])))
    }

    /// A link of 100 Gb/s whose input is the rates of its flows.
    struct Link {
        now: Time,
        sent: f64,
        queue: f64,
        seq: u64,
    }

    impl Link {
        const NEW: Link = Link { now: Time::ZERO, sent: 0.0, queue: 0.0, seq: 0 };

        /// Runs the link for 100 ns at the total rate `rates`; returns the feedback of the next ACK.
        fn after(&mut self, rates: f64, rate_number: u8) -> Feedback {
            self.now = Time(self.now.ps() + 100_000);
            let arrived = rates * 1e-7 / 8.0 + self.queue;
            let served = arrived.min(LINE * 1e-7 / 8.0);
            self.queue = arrived - served;
            self.sent += served;
            self.seq += 1;
            let mut trail = Trail::default();
            trail.push(0, Record::new(rate_number, self.now, self.sent as u64, self.queue as u64), 5);
            // A hundred ACKs are one round trip.
            Feedback { acked: 1, una: self.seq, high: self.seq + 100, trail, ..Feedback::default() }
        }
    }

    fn near(got: f64, wanted: f64, tolerance: f64) {
        assert!((got / wanted - 1.0).abs() < tolerance, "{got} is not near {wanted}");
    }

    #[test]
    fn a_cnp_cuts_the_rate_once_per_interval_if_cnp_cut_is_set() {
        let mut deaf = control(&Config::default());
        deaf.on_cnp(Time::ZERO);
        assert_eq!(deaf.rate(), LINE);
        let mut control = control(&Config { cnp_cut: Some(0.25), ..Config::default() });
        for (us, share) in [(0, 0.75), (3, 0.75), (4, 0.5625), (100, 0.421_875)] {
            // The CNP comes as a flag on an ACK at time 0, and as a frame every time.
            control.on_feedback(Time::from_us(us), &Feedback { echo: us == 0, ..Feedback::default() });
            control.on_cnp(Time::from_us(us));
            near(control.rate(), share * LINE, 1e-9);
        }
        // Telemetry continues from the lower rate.
        let mut link = Link::NEW;
        (0..10_000).for_each(|_| {
            let feedback = link.after(control.rate(), 0);
            control.on_feedback(link.now, &feedback);
        });
        assert!(control.rate() > 0.9 * LINE, "{}", control.rate());
    }

    #[test]
    fn a_single_flow_settles_at_the_target() {
        for max_stage in [0, 5] {
            let mut control = control(&Config { max_stage: Some(max_stage), ..Config::default() });
            let mut link = Link::NEW;
            let mut mean = 0.0;
            for round in 0..20_000 {
                let feedback = link.after(control.rate(), 0);
                control.on_feedback(link.now, &feedback);
                mean += if round < 10_000 { 0.0 } else { control.rate() / 10_000.0 };
            }
            // R = R eta / (R / B) + AI; with stages the rate climbs by one step in each of maxStage + 1 round trips.
            near(mean, 0.95 * LINE, 0.01);
            assert!(link.queue == 0.0);
        }
    }

    #[test]
    fn after_five_additive_steps_a_flow_claims_the_free_bandwidth_at_once() {
        let mut control = control(&Config::default());
        control.lower_to(Time::ZERO, 0.1);
        let mut gbps = Vec::new();
        for round in 0..8_u64 {
            // The link is half idle in every round trip of 10 us.
            let mut trail = Trail::default();
            trail.push(0, Record::new(0, Time::from_us(10 * round), 62_500 * round, 0), 5);
            let feedback = Feedback { una: 2 * round + 1, high: 2 * round + 2, trail, ..Feedback::default() };
            control.on_feedback(Time::from_us(10 * round), &feedback);
            gbps.push(control.rate() / 1e9);
        }
        // Steps of 50 Mb/s up to incStage 5 (maxStage), then one to 95 % of utilisation, then a step again.
        let claimed = 10.25 * 0.95 / 0.5 + 0.05;
        for (got, wanted) in gbps.iter().zip([10.0, 10.05, 10.1, 10.15, 10.2, 10.25, claimed, claimed + 0.05])
        {
            near(*got, wanted, 1e-3);
        }
    }

    #[test]
    fn two_flows_converge_with_an_empty_queue() {
        // A large step, since the step alone equalises rates: with 50 Mb/s that takes thousands of round trips.
        let config = Config { additive_increase: Rate::from_gbps(1), ..Config::default() };
        let (mut one, mut other) = (control(&config), control(&config));
        other.lower_to(Time::ZERO, 0.1);
        let (mut link, mut longest) = (Link::NEW, 0.0f64);
        for round in 0..200_000 {
            let feedback = link.after(one.rate() + other.rate(), 0);
            one.on_feedback(link.now, &feedback);
            other.on_feedback(link.now, &feedback);
            longest = if round < 2_000 { 0.0 } else { longest.max(link.queue) };
        }
        near(one.rate(), other.rate(), 0.05);
        near(one.rate() + other.rate(), 0.95 * LINE, 0.1);
        assert!(longest < 5_000.0, "{longest} B");
    }

    #[test]
    fn the_smaller_queue_counts_relative_to_bandwidth_times_t() {
        let mut control = control(&Config { max_stage: Some(0), ..Config::default() });
        let say = |us: u64, queue| {
            let mut trail = Trail::default();
            let sent = us * 12_500; // the link always sends at 100 Gb/s
            trail.push(0, Record::new(0, Time::from_us(us), sent, queue), 5);
            Feedback { acked: 1, una: us, high: us + 1, trail, ..Feedback::default() }
        };
        control.on_feedback(Time::ZERO, &say(100, 125_000));
        assert_eq!(control.rate(), LINE, "the first records only initialise the counters");
        // T is 10 us and B T is 125 kB; tau equals T, so U is the link's own utilisation: 1 + 62,480 / 125,000.
        control.on_feedback(Time::ZERO, &say(110, 62_480));
        let utilization = 1.0 + 62_480.0 / 125_000.0;
        near(control.rate(), LINE * 0.95 / utilization + 50e6, 1e-3);
    }

    /// Rate in Gb/s of a flow at 50 Gb/s after `us` microseconds in which a link of 100 Gb/s and one of 400 Gb/s sent these
    /// bytes and had these queues.
    fn after_two_links(us: u64, links: [(u64, u64); 2]) -> f64 {
        let config = Config { max_stage: Some(0), ..Config::default() };
        let mut control = config.control(Rate::from_gbps(100), Some(&path(&[100, 400])));
        control.lower_to(Time::ZERO, 0.5);
        let trail = |at: u64, sent: [u64; 2]| {
            let mut trail = Trail::default();
            for (number, (bytes, (_, queue))) in (0..).zip(sent.iter().zip(&links)) {
                let record = Record::new(number, Time::from_us(100 + at), *bytes, *queue);
                trail.push(u32::from(number), record, 5);
            }
            Feedback { acked: 1, una: at, high: at + 1, trail, ..Feedback::default() }
        };
        control.on_feedback(Time::ZERO, &trail(0, [0, 0]));
        control.on_feedback(Time::ZERO, &trail(us, links.map(|(bytes, _)| bytes)));
        control.rate() / 1e9
    }

    #[test]
    fn the_busiest_link_of_the_path_decides() {
        let rate = |utilization: f64| 50.0 * 0.95 / utilization + 0.05;
        // In T = 10 us the links can send 125 kB and 500 kB.
        near(after_two_links(10, [(62_500, 0), (450_000, 0)]), rate(0.9), 2e-3);
        near(after_two_links(10, [(112_500, 0), (250_000, 0)]), rate(0.9), 2e-3);
        // 100 kB wait for 8 us at 100 Gb/s and for 2 us at 400 Gb/s: 0.8 T and 0.2 T.
        near(after_two_links(10, [(62_500, 100_000), (450_000, 0)]), rate(0.5 + 0.8), 2e-3);
        near(after_two_links(10, [(62_500, 0), (450_000, 100_000)]), rate(0.9 + 0.2), 2e-3);
    }

    #[test]
    fn a_measurement_counts_by_its_share_of_a_round_trip() {
        let rate = |utilization: f64| 50.0 * 0.95 / utilization + 0.05;
        // The average begins at 1. In 5 us the links were busy half of the time; so they were in 20 us.
        near(after_two_links(5, [(31_250, 0), (0, 0)]), rate(0.5 * 1.0 + 0.5 * 0.5), 2e-3);
        near(after_two_links(20, [(125_000, 0), (0, 0)]), rate(0.5), 2e-3);
    }

    #[test]
    fn a_lowered_rate_never_rises_and_stays_above_the_minimum() {
        let mut control = control(&Config::default());
        let mut lowered = |share| {
            control.lower_to(Time::ZERO, share);
            (control.rate(), control.reference)
        };
        assert_eq!(lowered(0.5), (50e9, 50e9));
        assert_eq!(lowered(0.9), (50e9, 50e9));
        assert_eq!(lowered(0.0), (100e6, 100e6));
    }

    #[test]
    fn steps_scale_with_line_rate_unless_they_are_fixed() {
        for (scale_increase, step) in [(true, 200e6), (false, 50e6)] {
            let config = Config { scale_increase, ..Config::default() };
            assert_eq!(config.control(Rate::from_gbps(400), Some(&path(&[400]))).step, step);
        }
    }

    #[test]
    fn links_whose_rate_telemetry_cannot_name_are_reported() {
        let rates = [Rate::from_gbps(100), Rate::from_gbps(1600)];
        let compat = Config { compat: Some(Compat::LongHaulPrototype), ..Config::default() };
        assert!(Config::default().warning(&rates).is_none() && compat.warning(&rates[..1]).is_none());
        let warning = compat.warning(&rates).unwrap();
        assert!(warning.text.contains("1600Gbps, taken for 25Gbps"), "{warning}");
    }

    #[test]
    fn compat_decides_only_what_the_user_left_open() {
        let resolved = |mut config: Config| {
            config.resolve();
            (config.max_stage, config.base_rtt, config.int_hops, config.unknown_rate)
        };
        let compat = Some(Compat::LongHaulPrototype);
        let slowest = Some(Rate::from_gbps(25));
        let (pair, longest) = (Some(BaseRtt::Pair), Some(BaseRtt::Longest));
        assert_eq!(resolved(Config::default()), (Some(5), pair, Some(5), None));
        assert_eq!(resolved(Config { compat, ..Config::default() }), (Some(0), longest, Some(10), slowest));
        let (max_stage, unknown_rate) = (Some(3), Some(Rate::from_gbps(40)));
        let own = Config {
            compat,
            max_stage,
            base_rtt: pair,
            int_hops: Some(7),
            unknown_rate,
            ..Config::default()
        };
        assert_eq!(resolved(own), (max_stage, pair, Some(7), unknown_rate));
    }

    #[test]
    fn within_a_round_trip_the_reference_is_constant() {
        let mut control = control(&Config { max_stage: Some(0), ..Config::default() });
        let mut link = Link::NEW;
        for _ in 0..90 {
            let feedback = link.after(2.0 * LINE, 0);
            control.on_feedback(link.now, &feedback);
        }
        let utilization = control.utilization;
        near(control.rate(), LINE * 0.95 / utilization + 50e6, 1e-9);
        assert_eq!(control.reference, LINE);
        for _ in 0..20 {
            let feedback = link.after(2.0 * LINE, 0);
            control.on_feedback(link.now, &feedback);
        }
        assert!(control.reference < 0.7 * LINE);
    }

    #[test]
    fn another_path_restarts_the_comparison() {
        let mut control = control(&Config::default());
        for step in 1..9_u64 {
            let mut trail = Trail::default();
            let record = Record::new(0, Time::from_us(step), step * 99_999_999, 0);
            trail.push((step % 2) as u32, record, 5);
            let feedback = Feedback { una: step, high: step + 1, trail, ..Feedback::default() };
            control.on_feedback(Time::from_us(step), &feedback);
        }
        assert_eq!(control.rate(), LINE);
    }

    #[test]
    fn only_compat_assumes_25g_for_unknown_rates() {
        let compat = Config { compat: Some(Compat::LongHaulPrototype), ..Config::default() };
        let wan = Rate::from_gbps(1600);
        assert_eq!((Config::default().takes_for(wan), compat.takes_for(wan)), (wan, Rate::from_gbps(25)));
        assert_eq!(compat.takes_for(Rate::from_gbps(400)), Rate::from_gbps(400));
        assert_eq!((compat.int_hops(), Config::default().int_hops()), (10, 5));
        // A load of 50 Gb/s on the long link is twice the rate that the sender assumes for it.
        let mut control = compat.control(Rate::from_gbps(100), Some(&path(&[100, 1600])));
        let mut link = Link::NEW;
        for _ in 0..500 {
            let feedback = link.after(50e9, 1);
            control.on_feedback(link.now, &feedback);
        }
        near(control.utilization, 2.0, 0.05);
    }

    #[test]
    fn the_window_follows_the_rate_in_whole_packets() {
        let mut control = control(&Config::default());
        // 125 kB in packets of 1438 B.
        assert_eq!(control.allowance(Time::ZERO).window, 87);
        control.lower_to(Time::ZERO, 0.1);
        assert_eq!(control.allowance(Time::ZERO).window, 9);
        assert_eq!(control.allowance(Time::ZERO).pace, Pace::from_bps(10e9));
        control.lower_to(Time::ZERO, 0.0);
        assert_eq!(control.allowance(Time::ZERO).window, 1);
        assert_eq!(control.rate(), 100e6);
    }

    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{RATE, SHARE, check};
        let table = "congestion.hpcc";
        check(table, "target-utilization", SHARE.0, SHARE.1);
        check(table, "min-rate", RATE.0, RATE.1);
        check(table, "base-rtt", &["{ fixed = \"1ps\" }", "\"pair\""], &["{ fixed = \"0us\" }"]);
        check(table, "window", &["\"1B\""], &["\"0B\""]);
        check(table, "int-hops", &["1", "15"], &["0", "16"]);
        check(table, "cnp-cut", &["1e-9", "0.999999"], &["0.0", "1.0", "nan"]);
        check(table, "unknown-rate", RATE.0, RATE.1);
    }
}
