//! Annulus (Saeed et al., "Annulus: A Dual Congestion Control Loop for Datacenter and WAN Traffic Aggregates", SIGCOMM'20)
//! with DCQCN as its far loop: two rates per queue pair, of which the smaller counts.
//!
//! * The *far* loop is DCQCN. It receives the CNPs of receivers.
//! * The *near* loop is the reaction point of QCN (IEEE 802.1Qau). It receives the feedback of switches near the source
//!   (`feedback.annulus`), a number Fb from 1 to 63.
//!
//! On feedback the near rate becomes the target, and the rate falls by the share `depth` Fb. From then on a byte counter and a
//! timer count cycles. The end of a cycle of either moves the rate half-way to the target. After five cycles of a counter, its
//! cycles become half as long, and each first raises the target by `additive-increase`; once both have had five cycles, by
//! `hyper-increase` times the smaller number of cycles beyond five. Without feedback for `forget`, the near loop is off.
//!
//! Constants are the defaults of 802.1Qau, which are for 10 Gb/s; with `scale`, bytes and increases grow with line rate. The
//! control does not see packets, so its byte counter counts the bytes that its rate allows (our choice): a queue pair that has
//! nothing to send counts them, too.

use super::dcqcn::Dcqcn;
use super::dcqcn_hpcc;
use crate::facts::{Advised, Control, ControlFacts};
use crate::notification::CnpScope;
use crate::path::Path;
use finding::{Finding, code};
use model::{Advice, Allowance, Bytes, Congestion, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.annulus]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "AnnulusControl")]
pub struct Config {
    /// The far loop: the settings of `[nic.congestion.dcqcn-hpcc]`, with its defaults.
    pub dcqcn: dcqcn_hpcc::Config,
    /// The near loop. Its defaults are those of 802.1Qau.
    pub near: Near,
}

/// Reaction point of QCN.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Near {
    /// Share of its rate that a queue pair loses per unit of feedback. Default 0.0078125 = 1/128 (802.1Qau, Gd).
    pub depth: f64,
    /// Bytes of a cycle of the byte counter at 10 Gb/s. Default 150 kB (802.1Qau).
    pub bytes: Bytes,
    /// Length of a cycle of the timer. Default 15 ms (802.1Qau).
    pub timer: Time,
    /// Cycles of a counter until its cycles become short. Default 5 (802.1Qau).
    pub cycles: u32,
    /// Rate that a later cycle adds to the target at 10 Gb/s. Default 5 Mb/s (802.1Qau).
    pub additive_increase: Rate,
    /// Rate that a cycle adds to the target at 10 Gb/s once both counters are past their first cycles, per cycle. Default
    /// 50 Mb/s (802.1Qau).
    pub hyper_increase: Rate,
    /// Whether bytes and increases grow with line rate. Default true (our choice: cycles then last as long at any speed).
    pub scale: bool,
    /// Lower bound of the rate. Default 100 Mb/s (our choice: DCQCN's).
    pub min_rate: Rate,
    /// Time without feedback after which the near loop is off. Default 30 ms (our choice: two cycles of the timer).
    pub forget: Time,
}

impl Default for Near {
    fn default() -> Self {
        Near {
            depth: 1.0 / 128.0,
            bytes: Bytes(150_000),
            timer: Time::from_ms(15),
            cycles: 5,
            additive_increase: Rate(5_000_000),
            hyper_increase: Rate(50_000_000),
            scale: true,
            min_rate: Rate(100_000_000),
            forget: Time::from_ms(30),
        }
    }
}

/// Rate for which the constants of 802.1Qau are, bit/s.
const NOMINAL: f64 = 10e9;
/// Shortest timer. Our choice: far below any NIC's, and catching up stays cheap.
const LEAST_TIMER: Time = Time::from_ns(100);
/// Fewest bytes of a cycle. Our choice, for the same reason.
const LEAST_BYTES: Bytes = Bytes(1000);

impl Control for Config {
    type State = Annulus;

    fn facts(&self) -> ControlFacts {
        self.dcqcn.facts()
    }

    fn advised(&self) -> Advised {
        Advised { feedback: true, ..self.dcqcn.advised() }
    }

    fn cnp_scope(&self) -> CnpScope {
        CnpScope::QueuePair
    }

    fn longest_gap(&self, bytes: u64, rtt: Time) -> Time {
        self.near.min_rate.time_for(bytes).max(self.dcqcn.longest_gap(bytes, rtt))
    }

    fn validate(&self) -> Result<(), Finding> {
        self.dcqcn.validate().map_err(|invalid| invalid.within("dcqcn"))?;
        let near = &self.near;
        if !(near.depth > 0.0 && near.depth <= 1.0 / 64.0) {
            return Err(
                code::RANGE.at("near.depth", "must be above 0 and at most 1/64: feedback goes up to 63")
            );
        }
        if near.bytes < LEAST_BYTES {
            return Err(code::RANGE.at("near.bytes", "must be at least 1000B"));
        }
        for (field, span) in [("near.timer", near.timer), ("near.forget", near.forget)] {
            if span < LEAST_TIMER {
                return Err(code::RANGE.at(field, "must be at least 100ns"));
            }
        }
        if near.min_rate == Rate(0) {
            let text = "must be above 0: a queue pair at rate 0 never sends again";
            return Err(code::RANGE.at("near.min-rate", text));
        }
        Ok(())
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Annulus {
        let line = (line_rate.bps() as f64).max(1.0);
        let near = &self.near;
        let scale = if near.scale { line / NOMINAL } else { 1.0 };
        Annulus {
            far: self.dcqcn.control(line_rate, path),
            near: None,
            settings: Box::new(Settings {
                line,
                min: (near.min_rate.bps() as f64).min(line),
                depth: near.depth,
                bits: (near.bytes.get() as f64 * 8.0 * scale).max(1.0),
                timer: near.timer.max(Time(2)),
                cycles: near.cycles,
                additive: near.additive_increase.bps() as f64 * scale,
                hyper: near.hyper_increase.bps() as f64 * scale,
                forget: near.forget.max(Time(1)),
            }),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Settings {
    line: f64,
    min: f64,
    depth: f64,
    /// Bits of a cycle.
    bits: f64,
    timer: Time,
    cycles: u32,
    additive: f64,
    hyper: f64,
    forget: Time,
}

/// State of one queue pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Annulus {
    far: Dcqcn,
    /// The near loop; `None` while it is off.
    near: Option<Box<Loop>>,
    settings: Box<Settings>,
}

/// The near loop of a queue pair.
#[derive(Clone, Debug, PartialEq)]
struct Loop {
    rate: f64,
    target: f64,
    pace: Pace,
    /// Smaller rate of the two loops, by which the byte counter runs.
    used: f64,
    /// Completed cycles, and the end of the present one.
    byte_cycles: u32,
    bytes_at: Time,
    timer_cycles: u32,
    timer_at: Time,
    /// Time at which the loop is off.
    off_at: Time,
}

impl Loop {
    fn next(&self) -> Time {
        self.bytes_at.min(self.timer_at).min(self.off_at)
    }

    /// Sets the speed of the byte counter.
    fn run_at(&mut self, now: Time, used: f64) {
        if used != self.used {
            let left = self.bytes_at.ps().saturating_sub(now.ps()) as f64 * self.used;
            self.bytes_at = after(now, left / used);
            self.used = used;
        }
    }

    /// Ends a cycle of either counter.
    fn end_cycle(&mut self, settings: &Settings) {
        let (bytes, timer) = (self.byte_cycles, self.timer_cycles);
        let first = settings.cycles;
        if bytes > first && timer > first {
            self.target += settings.hyper * f64::from(bytes.min(timer) - first);
        } else if bytes > first || timer > first {
            self.target += settings.additive;
        }
        self.target = self.target.min(settings.line);
        self.rate = (self.rate + self.target) / 2.0;
        self.pace = Pace::from_bps(self.rate);
    }
}

/// `ps` picoseconds after a time, at least one.
fn after(at: Time, ps: f64) -> Time {
    Time(at.ps().saturating_add((ps as u64).max(1)))
}

impl Settings {
    /// Length of a cycle of a counter whose first cycles have this length.
    fn cycle(&self, whole: f64, done: u32) -> f64 {
        if done >= self.cycles { whole / 2.0 } else { whole }
    }
}

impl Annulus {
    /// Runs everything that is due up to `now`.
    fn catch_up(&mut self, now: Time) {
        while let Some(near) = &mut self.near {
            let at = near.next().min(self.far.steady_until());
            if at > now {
                break;
            }
            self.far.allowance(at);
            if near.off_at <= at {
                self.near = None;
                break;
            }
            if near.timer_at <= at {
                near.timer_cycles += 1;
                let whole = self.settings.timer.ps() as f64;
                near.timer_at = after(at, self.settings.cycle(whole, near.timer_cycles));
                near.end_cycle(&self.settings);
            }
            if near.bytes_at <= at {
                near.byte_cycles += 1;
                let bits = self.settings.cycle(self.settings.bits, near.byte_cycles);
                near.bytes_at = after(at, bits * 1e12 / near.used);
                near.end_cycle(&self.settings);
            }
            near.run_at(at, near.rate.min(self.far.rate()));
        }
        self.far.allowance(now);
    }

    /// Adapts the byte counter to a new rate of the far loop.
    fn adapt(&mut self, now: Time) {
        if let Some(near) = &mut self.near {
            near.run_at(now, near.rate.min(self.far.rate()));
        }
    }

    fn on_near(&mut self, now: Time, feedback: u8) {
        self.catch_up(now);
        let settings = &self.settings;
        let before = self.near.as_ref().map_or(settings.line, |near| near.rate).min(self.far.rate());
        let share = (1.0 - settings.depth * f64::from(feedback)).max(0.5);
        let rate = (before * share).max(settings.min);
        let used = rate.min(self.far.rate());
        self.near = Some(Box::new(Loop {
            rate,
            target: before,
            pace: Pace::from_bps(rate),
            used,
            byte_cycles: 0,
            bytes_at: after(now, settings.bits * 1e12 / used),
            timer_cycles: 0,
            timer_at: Time(now.ps().saturating_add(settings.timer.ps())),
            off_at: Time(now.ps().saturating_add(settings.forget.ps())),
        }));
    }

    pub(crate) fn steady_until(&self) -> Time {
        let near = self.near.as_ref().map_or(Time::NEVER, |near| near.next());
        self.far.steady_until().min(near)
    }

    /// Cuts the far loop's rate to `share` of line rate if it is higher.
    pub(crate) fn lower_to(&mut self, now: Time, share: f64) {
        self.catch_up(now);
        self.far.lower_to(now, share);
        self.adapt(now);
    }
}

impl Congestion for Annulus {
    fn allowance(&mut self, now: Time) -> Allowance {
        self.catch_up(now);
        let mut allowance = self.far.allowance(now);
        if let Some(near) = &self.near
            && near.rate < self.far.rate()
        {
            allowance.pace = near.pace;
        }
        allowance
    }

    fn on_ack(&mut self, now: Time, packets: u64, echo: bool) {
        if echo {
            self.catch_up(now);
            self.far.on_ack(now, packets, echo);
            self.adapt(now);
        }
    }

    fn on_cnp(&mut self, now: Time) {
        self.catch_up(now);
        self.far.on_cnp(now);
        self.adapt(now);
    }

    fn on_advice(&mut self, now: Time, advice: Advice) {
        match advice {
            Advice::Feedback(feedback) => self.on_near(now, feedback),
            Advice::Rate(_) => {
                self.catch_up(now);
                self.far.on_advice(now, advice);
                self.adapt(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(near: Near) -> Annulus {
        Config { near, ..Config::default() }.control(Rate::from_gbps(10), None)
    }

    fn gbps(control: &mut Annulus, now: Time) -> f64 {
        (control.allowance(now).pace.bps() / 1e7).round() / 100.0
    }

    #[test]
    fn feedback_cuts_the_near_rate_in_proportion_and_bytes_bring_it_back() {
        let mut control = control(Near::default());
        assert_eq!(gbps(&mut control, Time::ZERO), 10.0);
        control.on_advice(Time::ZERO, Advice::Feedback(32));
        assert_eq!(gbps(&mut control, Time::ZERO), 7.5);
        // 150 kB at 7.5 Gb/s take 160 us; then the rate is half-way back.
        assert_eq!(gbps(&mut control, Time::from_us(159)), 7.5);
        assert_eq!(gbps(&mut control, Time::from_us(161)), 8.75);
        // Five cycles of fast recovery take less than 160 us each.
        assert!(gbps(&mut control, Time::from_us(700)) > 9.9);
        control.on_advice(Time::from_us(700), Advice::Feedback(63));
        assert!(gbps(&mut control, Time::from_us(700)) > 4.9, "at most about one half");
    }

    #[test]
    fn the_smaller_of_the_two_rates_counts() {
        let mut control = control(Near::default());
        // Two CNPs: after 4 us the far loop cuts by alpha / 2. Alpha has aged for three ticks without a CNP: 0.988.
        control.on_cnp(Time::from_us(1));
        control.on_cnp(Time::from_us(2));
        assert_eq!(gbps(&mut control, Time::from_us(6)), 5.06);
        control.on_advice(Time::from_us(7), Advice::Feedback(16));
        assert_eq!(gbps(&mut control, Time::from_us(7)), 4.43, "the near loop starts from the rate in use");
        // At 4.4 Gb/s, five cycles take less than 1.4 ms and end at 5.04 Gb/s; then the near target rises by 5 Mb/s per
        // cycle. The far loop has risen to 7.5 Gb/s after 0.9 ms, so the near loop decides.
        let later = gbps(&mut control, Time::from_us(1_600));
        assert!((4.9..5.1).contains(&later), "{later}");
    }

    #[test]
    fn without_feedback_the_near_loop_is_off() {
        let near = Near { timer: Time::from_ms(1), bytes: Bytes(100_000_000), ..Near::default() };
        let mut control = control(Near { forget: Time::from_ms(3), ..near });
        control.on_advice(Time::ZERO, Advice::Feedback(63));
        assert!(gbps(&mut control, Time::from_us(999)) < 5.1);
        assert!(gbps(&mut control, Time::from_us(1_001)) > 7.0, "the timer has a cycle of 1 ms");
        assert!(gbps(&mut control, Time::from_us(2_999)) < 10.0);
        assert_eq!(gbps(&mut control, Time::from_ms(3)), 10.0);
        assert_eq!(control.steady_until(), Time::NEVER);
    }

    #[test]
    fn both_counters_past_their_first_cycles_raise_the_target_fast() {
        let near = Near { timer: Time::from_us(150), min_rate: Rate(1_000_000), ..Near::default() };
        let mut control = control(near);
        control.far.lower_to(Time::ZERO, 0.1); // 1 Gb/s
        control.on_advice(Time::ZERO, Advice::Feedback(63));
        let (before, after) =
            (gbps(&mut control, Time::from_us(700)), control.near.as_ref().map(|near| near.target));
        assert!(before <= 1.0 && after == Some(1e9));
        // 75 kB at 1 Gb/s take 600 us, half a timer cycle 75 us.
        gbps(&mut control, Time::from_ms(12));
        let target = control.near.as_ref().unwrap().target;
        assert!(target > 3e9, "{target}");
    }
}
