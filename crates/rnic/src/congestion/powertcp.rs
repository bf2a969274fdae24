//! PowerTCP (Addanki, Michel and Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI'22): switches
//! write the load of their links on every data packet ([`model::telemetry`]), and the window follows the power of the busiest
//! link.
//!
//! Algorithm 1 of the paper, with its names. The power of a link is its current times its voltage. The current is the rate at
//! which bytes arrive: those that the link has sent, and those by which its queue has grown. The voltage is the queue plus b T,
//! where b is the rate of the link. Divided by b^2 T, it is 1 for a full link without a queue. The largest power of all links
//! enters an average with the weight dt / T, where dt is the time between two records. Every ACK sets the window to
//! gamma (w / power + beta) + (1 - gamma) W, where W is the window, and w the one at the time at which the packet was sent. So the
//! window shrinks as soon as more bytes arrive than a link sends, and grows again while a queue still drains. Windows settle
//! where the queue of a link is the sum of its flows' beta.
//!
//! Window and rate are one: a packet leaves at W / T, and a flow starts at line rate. As in the authors' kernel module, w is noted
//! once per round trip.
//!
//! * As with [`hpcc`](super::hpcc), records of other links than the last ones start the comparison afresh, so packets of one
//!   queue pair must stay on one path for a while. Marks, CNPs and NACKs have no effect; timeouts have that of `nic.on-timeout`.
//! * Our choices: the average starts at 1, the power of a full link; the window never exceeds line rate times T, since packets
//!   leave at line rate at most; it counts payload, and is rounded up to whole packets.

use crate::facts::{Control, ControlFacts, Golden};
use crate::limits::{int_hops, min_rate};
use crate::path::Path;
use crate::window::whole_packets;
use finding::{Finding, code};
use model::telemetry::{Record, Trail};
use model::{Allowance, Congestion, Feedback, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[nic.congestion.powertcp]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionPowertcp")]
pub struct Config {
    /// Weight gamma of the newest window, above 0 and at most 1. Default 0.9 (PowerTCP paper, and the authors' kernel module).
    pub gamma: f64,
    /// Flows that are expected to share a NIC, N: beta, the additive part of a window, is line rate times `base-rtt` divided by
    /// N. Default 10 (the authors' kernel module, `expected_flows`).
    pub flows: u32,
    /// Round trip T on an idle fabric. Default: that of the queue pair's hosts, for a full packet and its ACK (our choice, as
    /// for `hpcc`; the paper has one constant for a fabric).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_rtt: Option<Time>,
    /// Lower bound of the rate. Default "100Mbps" (our choice, as for `hpcc`).
    pub min_rate: Rate,
    /// Hops for which data packets have room, 1 to 15. Default 5 (our choice, as for `hpcc`).
    pub int_hops: u8,
}

impl Default for Config {
    fn default() -> Self {
        Config { gamma: 0.9, flows: 10, base_rtt: None, min_rate: Rate(100_000_000), int_hops: 5 }
    }
}

impl Control for Config {
    type State = PowerTcp;
    const TRIALS: &'static [&'static str] = &["int-hops = 7"];
    const GOLDEN: Option<Golden> = Some(("PowerTCP", &["nic.congestion.powertcp={}"]));

    fn facts(&self) -> ControlFacts {
        ControlFacts::of_telemetry(self.int_hops)
    }

    fn longest_gap(&self, bytes: u64, _: Time) -> Time {
        self.min_rate.time_for(bytes)
    }

    fn validate(&self) -> Result<(), Finding> {
        if !(self.gamma > 0.0 && self.gamma <= 1.0) {
            return Err(code::RANGE.at("gamma", "must be above 0 and at most 1"));
        }
        if self.flows == 0 {
            return Err(code::RANGE.at("flows", "must be at least 1"));
        }
        if self.base_rtt == Some(Time::ZERO) {
            return Err(code::RANGE.at("base-rtt", "must be longer than 0"));
        }
        min_rate(self.min_rate)?;
        int_hops(self.int_hops)?;
        Ok(())
    }

    /// A new queue pair starts at `line_rate`.
    fn control(&self, line_rate: Rate, path: Option<&Path>) -> PowerTcp {
        let path = Path::or_guess(path, line_rate);
        let line = (line_rate.bps() as f64).max(1.0);
        let rtt = (self.base_rtt.unwrap_or(path.base_rtt).ps() as f64).max(1.0);
        let most = line * rtt / 8e12;
        let mut control = PowerTcp {
            window: most,
            old: most,
            noted: most,
            power: 1.0,
            round: None,
            last: Trail::default(),
            allowance: Allowance { window: 0, pace: Pace::UNPACED, not_before: Time::ZERO },
            gamma: self.gamma,
            beta: most / f64::from(self.flows.max(1)),
            least: most * (self.min_rate.bps() as f64 / line).min(1.0),
            most,
            rtt,
            line,
            packet: f64::from(path.payload.max(1)),
            rates: path.rates.iter().map(|rate| (rate.bps() as f64).max(1.0)).collect(),
        };
        control.set(most);
        control
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct PowerTcp {
    /// Window, bytes, like all windows here.
    window: f64,
    /// Window when the packets that are being acknowledged were sent.
    old: f64,
    /// Window at the start of this round trip: the `old` of the next one.
    noted: f64,
    /// Average of the normalised power.
    power: f64,
    /// A round trip ends when a packet from this one on is acknowledged; `None` before the first records.
    round: Option<u64>,
    /// Newest records.
    last: Trail,
    /// Window in packets, and pace.
    allowance: Allowance,
    gamma: f64,
    beta: f64,
    least: f64,
    most: f64,
    /// Round trip T, ps.
    rtt: f64,
    /// Line rate, bits per second.
    line: f64,
    /// Payload of a full packet, bytes.
    packet: f64,
    /// Rates of the links, by rate number.
    rates: Arc<[f64]>,
}

impl PowerTcp {
    /// Window, bytes.
    pub const fn window(&self) -> f64 {
        self.window
    }

    /// Zero, since every ACK changes the window.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::ZERO
    }

    /// Lowers the rate to `share` of line rate if it is higher.
    pub(crate) fn lower_to(&mut self, _now: Time, share: f64) {
        let window = (share * self.most).max(self.least);
        self.old = self.old.min(window);
        self.noted = self.noted.min(window);
        self.set(self.window.min(window));
    }

    fn set(&mut self, window: f64) {
        debug_assert!(window >= self.least && window <= self.most, "{window}");
        self.window = window;
        self.allowance.window = whole_packets(window / self.packet);
        self.allowance.pace = Pace::from_bps(self.line * (window / self.most));
    }

    /// Normalised power of a link between two records, and the time between them, ps; `None` if no time has passed.
    fn of_link(&self, now: &Record, before: &Record) -> Option<(f64, f64)> {
        let (time, sent) = now.since(before);
        let rate = *self.rates.get(now.rate())?;
        if time == Time::ZERO {
            return None;
        }
        let dt = time.ps() as f64;
        let current = (sent as f64 + now.queue() as f64 - before.queue() as f64) * 8e12 / dt;
        let voltage = 1.0 + now.queue() as f64 * 8e12 / (rate * self.rtt);
        // Records are rounded down, so a queue may seem to have lost more than the link has sent.
        Some(((current / rate * voltage).max(0.0), dt))
    }

    /// Updates the average from new records; false if they carry no news.
    fn measure(&mut self, trail: &Trail) -> bool {
        let links = trail.records().zip(self.last.records());
        let seen = links.filter_map(|(now, before)| self.of_link(&now, &before));
        let Some((power, dt)) = seen.reduce(|most, link| if link.0 > most.0 { link } else { most }) else {
            return false;
        };
        let weight = dt.min(self.rtt) / self.rtt;
        self.power = self.power * (1.0 - weight) + power * weight;
        true
    }
}

impl Congestion for PowerTcp {
    fn allowance(&mut self, _now: Time) -> Allowance {
        self.allowance
    }

    fn on_feedback(&mut self, _now: Time, feedback: &Feedback) {
        let trail = &feedback.trail;
        if trail.hops() == 0 {
            return;
        }
        let Some(round) = self.round.filter(|_| trail.same_path(&self.last)) else {
            self.last = *trail;
            self.round.get_or_insert(feedback.high);
            return;
        };
        if feedback.una > round {
            self.old = self.noted;
        }
        if self.measure(trail) {
            // Without any arrival the power is 0, and the quotient infinite.
            let window = self.gamma * (self.old / self.power + self.beta) + (1.0 - self.gamma) * self.window;
            self.set(window.clamp(self.least, self.most));
        }
        if feedback.una > round {
            self.noted = self.window;
            self.round = Some(feedback.high);
        }
        self.last = *trail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::bounds::{RATE, SHARE, check};

    const LINE: f64 = 100e9;
    /// Round trip of 10 us, ps, and the bytes that it holds at line rate.
    const RTT: f64 = 10e6;
    const FULL: f64 = 125_000.0;

    fn control(config: &Config) -> PowerTcp {
        let rates = [100, 400].map(Rate::from_gbps).into_iter().collect();
        let path = Path { base_rtt: Time(RTT as u64), rates, ..Path::unknown(Rate::from_gbps(100)) };
        config.control(Rate::from_gbps(100), Some(&path))
    }

    fn near(got: f64, wanted: f64, tolerance: f64) {
        assert!((got / wanted - 1.0).abs() < tolerance, "{got} is not near {wanted}");
    }

    /// Window after a record of one link per round trip: bytes that it sent in this time, and its queue at the end.
    fn after(gamma: f64, rounds: &[(u64, u64)]) -> f64 {
        let mut control = control(&Config { gamma, ..Config::default() });
        control.lower_to(Time::ZERO, 0.5);
        let (mut bytes, mut packet) = (0, 0);
        for (us, (sent, queue)) in (0..).step_by(10).zip([(0, rounds[0].1)].iter().chain(&rounds[1..])) {
            bytes += sent;
            packet += 1;
            let mut trail = Trail::default();
            trail.push(0, Record::new(0, Time::from_us(us), bytes, *queue), 5);
            let feedback =
                Feedback { acked: 1, una: packet, high: packet + 10, trail, ..Feedback::default() };
            control.on_feedback(Time::from_us(us), &feedback);
        }
        control.window()
    }

    /// The window that follows half of [`FULL`] at this power, for gamma = 1 and N = 10.
    fn at(power: f64) -> f64 {
        (0.5 * FULL / power + 0.1 * FULL).min(FULL)
    }

    #[test]
    fn a_full_link_without_a_queue_has_the_power_1() {
        near(after(1.0, &[(0, 0), (125_000, 0)]), at(1.0), 1e-3);
        near(after(1.0, &[(0, 0), (62_500, 0)]), at(0.5), 1e-3);
        // The old window keeps its part.
        near(after(0.9, &[(0, 0), (125_000, 0)]), 0.9 * at(1.0) + 0.1 * 0.5 * FULL, 1e-3);
    }

    #[test]
    fn growing_and_draining_queues_of_one_length_differ() {
        let queue = 62_400; // half of b T, in units of the layout
        let voltage = 1.0 + queue as f64 / FULL;
        near(after(1.0, &[(0, queue), (125_000, queue)]), at(voltage), 1e-3);
        near(after(1.0, &[(0, 0), (125_000, queue)]), at((1.0 + queue as f64 / FULL) * voltage), 1e-3);
        near(
            after(1.0, &[(0, 2 * queue), (125_000, queue)]),
            at((1.0 - queue as f64 / FULL) * voltage),
            2e-3,
        );
    }

    #[test]
    fn the_link_of_the_largest_power_decides() {
        let mut control = control(&Config { gamma: 1.0, ..Config::default() });
        control.lower_to(Time::ZERO, 0.5);
        // In T the links can send 125 kB and 500 kB; in the time they send 75 kB and 450 kB.
        for (us, sent) in [(0, [0, 0]), (10, [75_000, 450_000])] {
            let mut trail = Trail::default();
            for (number, bytes) in (0..).zip(sent) {
                trail.push(u32::from(number), Record::new(number, Time::from_us(us), bytes, 0), 5);
            }
            control
                .on_feedback(Time::ZERO, &Feedback { una: us, high: us + 1, trail, ..Feedback::default() });
        }
        near(control.window(), at(0.9), 2e-3);
    }

    /// Two flows on a link of 100 Gb/s: their windows, and the mean queue, after many round trips.
    fn shared(config: &Config, first_share: f64) -> ([f64; 2], f64) {
        let mut flows = [control(config), control(config)];
        flows[0].lower_to(Time::ZERO, first_share);
        // Step of 100 ns, and the acknowledgements of a hundred steps in flight.
        let (step, rounds) = (100_000.0, 100_000_u64);
        let (mut sent, mut queue, mut mean) = (0.0, 0.0, 0.0);
        for i in 0..rounds {
            let trip = RTT + queue * 8e12 / LINE;
            let arrived: f64 = flows.iter().map(|flow| flow.window() / trip * step).sum();
            let served = (arrived + queue).min(LINE * step / 8e12);
            (queue, sent) = (queue + arrived - served, sent + served);
            mean += if i >= rounds / 2 { queue / (rounds / 2) as f64 } else { 0.0 };
            let now = Time((i + 1) * step as u64);
            let mut trail = Trail::default();
            trail.push(0, Record::new(0, now, sent as u64, queue as u64), 5);
            let feedback = Feedback { acked: 1, una: i, high: i + 100, trail, ..Feedback::default() };
            flows.iter_mut().for_each(|flow| flow.on_feedback(now, &feedback));
        }
        (flows.map(|flow| flow.window()), mean)
    }

    #[test]
    fn the_queue_settles_at_the_sum_of_the_flows_beta_and_windows_are_equal() {
        // Theorem 1 of the paper, and its property of fairness.
        let ([one, other], queue) = shared(&Config::default(), 0.1);
        near(queue, 2.0 * 0.1 * FULL, 0.05);
        near(one, other, 0.05);
        near(one + other, FULL + queue, 0.05);
        let (_, shorter) = shared(&Config { flows: 40, ..Config::default() }, 1.0);
        near(shorter, 2.0 * FULL / 40.0, 0.2);
    }

    #[test]
    fn a_lowered_rate_never_rises_and_stays_above_the_minimum() {
        let mut control = control(&Config::default());
        let mut lowered = |share| {
            control.lower_to(Time::ZERO, share);
            control.window() / FULL
        };
        near(lowered(0.5), 0.5, 1e-9);
        near(lowered(0.9), 0.5, 1e-9);
        near(lowered(0.0), 0.001, 1e-9);
    }

    #[test]
    fn settings_have_their_bounds() {
        let table = "congestion.powertcp";
        check(table, "gamma", SHARE.0, SHARE.1);
        check(table, "flows", &["1", "4294967295"], &["0"]);
        check(table, "base-rtt", &["\"1ps\""], &["\"0us\""]);
        check(table, "min-rate", RATE.0, RATE.1);
        check(table, "int-hops", &["1", "15"], &["0", "16"]);
    }
}
