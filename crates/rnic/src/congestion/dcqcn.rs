//! DCQCN, the rate control of RoCEv2 NICs (Zhu et al., SIGCOMM 2015), in the variant that the HPCC family of
//! simulators models on Mellanox NICs: timers only, no byte counter.
//!
//! * The first CNP starts the alpha timer and the decrease timer; alpha starts at 1.
//! * Every `alpha-timer`: alpha = (1 - g) alpha, plus g if a CNP came since the last tick.
//! * Every `rate-decrease-interval`, if a CNP came since the last check: the rate is cut by the share alpha / 2, and the
//!   increase timer restarts. The rate before the cut becomes the target. Exception: unless `clamp-target-rate` is set, the
//!   target stays if the rate has not increased since the previous cut.
//! * Every `rate-increase-timer` the target may rise, and the rate moves half-way to the target. The first
//!   `fast-recovery` ticks leave the target alone, the next one adds `additive-increase`, and all others add
//!   `hyper-increase`. Nothing raises the rate before the first cut.
//!
//! Events of the same instant happen in this order: alpha tick, decrease check, increase tick, and then the CNP, NACK or
//! packet of that instant. So a cut precedes an increase and, by restarting its timer, cancels it. The order matters where
//! `rate-decrease-interval` is a multiple of `rate-increase-timer`. (The simulators of that family delay the first check by
//! 1 ns to have it after the alpha tick.)
//!
//! The timers run lazily: each call first does what was due, in order of time. The number of calls has no influence on the
//! result.

use crate::facts::{Advised, Control, ControlFacts, Evidence, Unit};
use crate::limits::Invalid;
use crate::path::Path;
use model::{Advice, Allowance, Congestion, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.dcqcn]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Time between rate increases, T_I. Default "900us" (Themis paper, evaluation: its recommended pair).
    pub rate_increase_timer: Time,
    /// Shortest time between rate cuts, T_D. Default "4us" (Themis paper, evaluation: its recommended pair).
    pub rate_decrease_interval: Time,
    /// Time between updates of alpha. Default "1us" (HPCC simulator, its DCQCN settings).
    pub alpha_timer: Time,
    /// Gain g of alpha's average, above 0 and at most 1. Default 0.00390625 = 1/256 (DCQCN paper, and HPCC
    /// simulator).
    pub gain: f64,
    /// Number of increases that only return towards the rate before the cut. Default 1 (HPCC simulator).
    pub fast_recovery: u32,
    /// Rate that the first increase after fast recovery adds to the target, per 100 Gb/s of line rate. Default "50Mbps"
    /// (HPCC simulator, its sample configuration for 100 Gb/s).
    pub additive_increase: Rate,
    /// Rate that each later increase adds to the target, per 100 Gb/s of line rate. Default "100Mbps" (HPCC simulator, its
    /// sample configuration for 100 Gb/s).
    pub hyper_increase: Rate,
    /// Whether the two increases grow with line rate; with false they are absolute. Default true (our choice: hosts of
    /// different speeds then need equally long to recover).
    pub scale_increases: bool,
    /// Lower bound of the rate. Default "100Mbps" (HPCC simulator, its sample configuration).
    pub min_rate: Rate,
    /// Whether every cut lowers the target to the rate before it. Default false (HPCC simulator).
    pub clamp_target_rate: bool,
    /// Share of its rate that a flow keeps on its first CNP, above 0 and at most 1. Default 1.0: the first CNP alone
    /// lowers nothing (HPCC simulator).
    pub rate_on_first_cnp: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            rate_increase_timer: Time::from_us(900),
            rate_decrease_interval: Time::from_us(4),
            alpha_timer: Time::from_us(1),
            gain: 1.0 / 256.0,
            fast_recovery: 1,
            additive_increase: Rate(50_000_000),
            hyper_increase: Rate(100_000_000),
            scale_increases: true,
            min_rate: Rate(100_000_000),
            clamp_target_rate: false,
            rate_on_first_cnp: 1.0,
        }
    }
}

/// Shortest timer that [`Config::validate`] accepts. Our choice: far below any NIC's, and catching up stays cheap.
const LEAST_TIMER: Time = Time::from_ns(10);

impl Control for Config {
    type State = Dcqcn;

    fn facts(&self) -> ControlFacts {
        ControlFacts {
            evidence: Evidence::Cnps,
            needs_feedback: false,
            has_rate: true,
            needs_path: false,
            window: Unit::Packets,
            grants: None,
        }
    }

    fn advised(&self) -> Advised {
        Advised { rate: true, ..Advised::default() }
    }

    fn longest_gap(&self, bytes: u64, _: Time) -> Time {
        self.min_rate.time_for(bytes)
    }

    fn validate(&self) -> Result<(), Invalid> {
        for (field, span) in [
            ("rate-increase-timer", self.rate_increase_timer),
            ("rate-decrease-interval", self.rate_decrease_interval),
            ("alpha-timer", self.alpha_timer),
        ] {
            if span < LEAST_TIMER {
                return Err(Invalid::new(field, "must be at least 10ns"));
            }
        }
        for (field, share) in [("gain", self.gain), ("rate-on-first-cnp", self.rate_on_first_cnp)] {
            if !(share > 0.0 && share <= 1.0) {
                return Err(Invalid::new(field, "must be above 0 and at most 1"));
            }
        }
        if self.min_rate == Rate(0) {
            return Err(Invalid::new(
                "min-rate",
                "must be above 0: a queue pair at rate 0 never sends again",
            ));
        }
        Ok(())
    }

    /// A new queue pair starts at `line_rate`.
    fn control(&self, line_rate: Rate, _path: Option<&Path>) -> Dcqcn {
        let line = (line_rate.bps() as f64).max(1.0);
        // The increases are given per 100 Gb/s.
        let scale = if self.scale_increases { line / 100e9 } else { 1.0 };
        Dcqcn {
            due: Time::NEVER,
            pace: Pace::from_bps(line),
            rate: line,
            target: line,
            alpha: 1.0,
            next_alpha: Time::NEVER,
            next_check: Time::NEVER,
            next_increase: Time::NEVER,
            stage: 0,
            started: false,
            alpha_heard: false,
            check_heard: false,
            clamp: self.clamp_target_rate,
            fast_recovery: self.fast_recovery,
            line,
            min: (self.min_rate.bps() as f64).min(line),
            additive: self.additive_increase.bps() as f64 * scale,
            hyper: self.hyper_increase.bps() as f64 * scale,
            gain: self.gain,
            on_first_cnp: self.rate_on_first_cnp,
            alpha_timer: self.alpha_timer.max(Time(1)),
            decrease: self.rate_decrease_interval.max(Time(1)),
            increase: self.rate_increase_timer.max(Time(1)),
        }
    }
}

/// State of one queue pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Dcqcn {
    /// Next time at which the rate may change by itself.
    due: Time,
    /// Pace of `rate`. At line rate, too: it is rounded down, so that the port alone sets the speed then.
    pace: Pace,
    rate: f64,
    target: f64,
    alpha: f64,
    next_alpha: Time,
    next_check: Time,
    next_increase: Time,
    /// Increases since the last cut, up to `fast_recovery + 1`.
    stage: u32,
    /// True after the first CNP.
    started: bool,
    /// True if a CNP has come since the last alpha tick.
    alpha_heard: bool,
    /// True if a CNP has come since the last decrease check.
    check_heard: bool,
    clamp: bool,
    fast_recovery: u32,
    line: f64,
    min: f64,
    additive: f64,
    hyper: f64,
    gain: f64,
    on_first_cnp: f64,
    alpha_timer: Time,
    decrease: Time,
    increase: Time,
}

impl Dcqcn {
    /// Rate, bits per second, as of the last call.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Next time at which the rate may change if no CNP comes.
    pub(crate) const fn steady_until(&self) -> Time {
        self.due
    }

    /// Cuts the rate to `share` of line rate if it is higher.
    pub(crate) fn lower_to(&mut self, now: Time, share: f64) {
        self.catch_up(now);
        let rate = (share * self.line).max(self.min);
        if rate < self.rate {
            self.cut(now, rate);
            self.settle();
        }
    }

    /// Runs all timers that were due up to `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        if now >= self.due {
            self.run_timers(now);
        }
    }

    #[cold]
    fn run_timers(&mut self, now: Time) {
        while self.due <= now {
            let at = self.due;
            if self.check_heard && self.next_check == at {
                self.check_heard = false;
                self.next_check = after(at, self.decrease);
                self.age_alpha(at);
                self.cut(at, (self.rate * (1.0 - self.alpha / 2.0)).max(self.min));
            } else {
                self.step_up(at);
            }
            self.schedule();
            if at == Time::NEVER {
                break;
            }
        }
        self.settle();
    }

    fn cut(&mut self, now: Time, rate: f64) {
        if self.clamp || self.stage != 0 {
            self.target = self.rate;
        }
        self.rate = rate;
        self.stage = 0;
        self.next_increase = after(now, self.increase);
    }

    fn step_up(&mut self, at: Time) {
        let before = (self.rate, self.target);
        if self.stage >= self.fast_recovery {
            let step = if self.stage == self.fast_recovery { self.additive } else { self.hyper };
            self.target = (self.target + step).min(self.line);
        }
        self.rate = (self.rate + self.target) / 2.0;
        // If a hyper increase changes nothing, no later one will; the next cut restarts the timer.
        let done = self.stage > self.fast_recovery && (self.rate, self.target) == before;
        self.next_increase = if done { Time::NEVER } else { after(at, self.increase) };
        self.stage = self.stage.saturating_add(1).min(self.fast_recovery.saturating_add(1));
    }

    /// Applies alpha's ticks up to and including `until`.
    fn age_alpha(&mut self, until: Time) {
        while self.next_alpha <= until && self.next_alpha != Time::NEVER {
            self.alpha *= 1.0 - self.gain;
            if self.alpha_heard {
                self.alpha += self.gain;
                self.alpha_heard = false;
            } else if self.alpha < self.gain * 1e-20 {
                // Alpha is negligible: added to g, or half of it to 1, it leaves g and 1 unchanged in 53 bits.
                self.alpha = 0.0;
                self.next_alpha = first_after(until, self.next_alpha, self.alpha_timer);
                return;
            }
            self.next_alpha = after(self.next_alpha, self.alpha_timer);
        }
    }

    fn schedule(&mut self) {
        let check = if self.check_heard { self.next_check } else { Time::NEVER };
        self.due = check.min(self.next_increase);
    }

    /// Updates `due` and `pace` after a change of rate.
    fn settle(&mut self) {
        self.schedule();
        self.pace = Pace::from_bps(self.rate);
    }
}

#[inline]
const fn after(at: Time, span: Time) -> Time {
    Time(at.ps().saturating_add(span.ps()))
}

/// First of `next`, `next + span`, `next + 2 span` ... that is later than `now`.
const fn first_after(now: Time, next: Time, span: Time) -> Time {
    if next.ps() > now.ps() {
        return next;
    }
    let periods = (now.ps() - next.ps()) / span.ps() + 1;
    Time(next.ps().saturating_add(periods.saturating_mul(span.ps())))
}

impl Congestion for Dcqcn {
    #[inline]
    fn allowance(&mut self, now: Time) -> Allowance {
        self.catch_up(now);
        Allowance { window: u64::MAX, pace: self.pace, not_before: Time::ZERO }
    }

    #[inline]
    fn on_ack(&mut self, now: Time, _packets: u64, echo: bool) {
        if echo {
            self.on_cnp(now);
        }
    }

    fn on_cnp(&mut self, now: Time) {
        self.catch_up(now);
        if self.started {
            self.age_alpha(now);
            self.alpha_heard = true;
            self.next_check = first_after(now, self.next_check, self.decrease);
        } else {
            self.started = true;
            self.next_alpha = after(now, self.alpha_timer);
            self.next_check = after(now, self.decrease);
            self.rate = (self.rate * self.on_first_cnp).max(self.min);
            self.target = self.rate;
            self.pace = Pace::from_bps(self.rate);
        }
        self.check_heard = true;
        self.schedule();
    }

    /// A rate from a switch bounds the rate at once, like a cut: the increase timer restarts, and the rate recovers from there.
    fn on_advice(&mut self, now: Time, advice: Advice) {
        match advice {
            Advice::Rate(rate) => self.lower_to(now, rate.bps() as f64 / self.line),
            Advice::Feedback(_) => self.on_cnp(now),
        }
    }
}
