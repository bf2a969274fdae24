//! DCQCN, the rate control of RoCEv2 NICs (Zhu et al., SIGCOMM 2015), with the settings and the defaults of NVIDIA's NICs.
//! [`super::dcqcn_hpcc`] is the variant of the HPCC family of simulators.
//!
//! * The first CNP starts the alpha timer and the decrease timer.
//! * Every `alpha-timer`: alpha = (1 - g) alpha, plus g if a CNP came since the last tick.
//! * Every `rate-decrease-interval`, if a CNP came since the last check: the rate is cut by the share `cut-per-alpha` alpha, but
//!   not below the share `cut-floor` of itself. The increase timer and the byte counter restart. The rate before the cut
//!   becomes the target if the increase timer has fired since the previous cut (`clamp-target-rate-after-time-increase`);
//!   otherwise the target stays, unless `clamp-target-rate` is set.
//! * The increase timer fires every `rate-increase-timer`, the byte counter after every `byte-reset` bytes that the queue pair
//!   has sent. Both count their stages. An event of either first moves the target and then the rate half-way to the target:
//!   while neither stage exceeds `fast-recovery` the target stays, once both exceed it the target rises by `hyper-increase`, in
//!   between by `additive-increase`. Nothing raises the rate before the first cut.
//!
//! Events of the same instant happen in this order: alpha tick, decrease check, increase tick, and then the CNP, NACK or
//! packet of that instant. So a cut precedes an increase and, by restarting its timer, cancels it. The order matters where
//! `rate-decrease-interval` is a multiple of `rate-increase-timer`.
//!
//! The timers run lazily: each call first does what was due, in order of time. The number of calls has no influence on the
//! result.

use crate::facts::{Advised, Control, ControlFacts, Evidence, Variation};
use crate::limits;
use crate::path::Path;
use finding::{Finding, code};
use model::{Advice, Allowance, Bytes, Congestion, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic.congestion.dcqcn]`. Sources: "DOCA" is NVIDIA's page of DCQCN parameters (DOCA 3.4, for ConnectX-4 and later), and
/// "mstconfig" the defaults that the firmware tool lists for ConnectX-4 to -7. Every key may be given under NVIDIA's name, too.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Time between rate increases, `rpg_time_reset`. Default "300us" (vendor: mstconfig).
    pub rate_increase_timer: Time,
    /// Bytes that a queue pair sends between rate increases, `rpg_byte_reset`; 0 turns the byte counter off. Default "32767B"
    /// (vendor: mstconfig; no measurement is public, and a ConnectX-5 recovers far more slowly than this counter would let it).
    pub byte_reset: Bytes,
    /// Stages of the timer and of the byte counter that only return towards the rate before the cut, `rpg_threshold`. Default 1
    /// (vendor: mstconfig).
    pub fast_recovery: u32,
    /// Rate that an increase adds to the target when one of the two stages exceeds `fast-recovery`, `rpg_ai_rate`. Default "5Mbps"
    /// (vendor: mstconfig; the same at any line rate).
    pub additive_increase: Rate,
    /// Rate that an increase adds to the target when both stages exceed `fast-recovery`, `rpg_hai_rate`. Default "50Mbps"
    /// (vendor: mstconfig; the same at any line rate).
    pub hyper_increase: Rate,
    /// Lower bound of the rate, `rpg_min_rate`. Default "1Mbps" (vendor: DOCA).
    pub min_rate: Rate,
    /// Upper bound of the rate, `rpg_max_rate`; 0 means line rate. Default "0Gbps" (vendor: mstconfig).
    pub max_rate: Rate,
    /// Shortest time between rate cuts, `rate_reduce_monitor_period`. Default "4us" (vendor: DOCA).
    pub rate_decrease_interval: Time,
    /// Share of the rate that a cut takes at alpha 1, above 0 and at most 1, by `rpg_gd`. Default 0.5 (vendor: DOCA, `rpg_gd` 11).
    pub cut_per_alpha: f64,
    /// Share of the rate that every cut leaves at least, `rpg_min_dec_fac`. Default 0.5 (vendor: DOCA, 50 %).
    pub cut_floor: f64,
    /// Whether every cut lowers the target to the rate before it, `clamp_tgt_rate`. Default false (vendor: mstconfig).
    pub clamp_target_rate: bool,
    /// Whether a cut lowers the target to the rate before it if the timer has raised the rate since the last cut,
    /// `clamp_tgt_rate_after_time_inc`. Default true (vendor: mstconfig).
    pub clamp_target_rate_after_time_increase: bool,
    /// Time between updates of alpha, `dce_tcp_rtt`. Default "1us" (vendor: DOCA).
    pub alpha_timer: Time,
    /// Gain g of alpha's average, above 0 and at most 1, by `dce_tcp_g`. Default 0.0048828125 = 5/1024 (vendor: DOCA, `dce_tcp_g`
    /// 1019 of 1024).
    pub gain: f64,
    /// Alpha at the first CNP, above 0 and at most 1, `initial_alpha_value`. Default 0.9990234375 = 1023/1024 (vendor: DOCA).
    pub initial_alpha: f64,
    /// Rate of a queue pair from its first CNP on, `rate_to_set_on_first_cnp`; 0 leaves the rate as it is. Default "0Gbps" (vendor:
    /// DOCA).
    pub rate_on_first_cnp: Rate,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            rate_increase_timer: Time::from_us(300),
            byte_reset: Bytes(32_767),
            fast_recovery: 1,
            additive_increase: Rate(5_000_000),
            hyper_increase: Rate(50_000_000),
            min_rate: Rate(1_000_000),
            max_rate: Rate(0),
            rate_decrease_interval: Time::from_us(4),
            cut_per_alpha: 0.5,
            cut_floor: 0.5,
            clamp_target_rate: false,
            clamp_target_rate_after_time_increase: true,
            alpha_timer: Time::from_us(1),
            gain: 5.0 / 1024.0,
            initial_alpha: 1023.0 / 1024.0,
            rate_on_first_cnp: Rate(0),
        }
    }
}

/// Shortest timer that [`checked`] accepts. Our choice: far below any NIC's, and catching up stays cheap.
const LEAST_TIMER: Time = Time::from_ns(10);

/// Most timers that one gap between two packets looks ahead; beyond, the rate counts as constant. Our choice: NVIDIA's timer of
/// 300 us fires 110 times while a packet of 4 KiB leaves at 1 Mb/s.
const MOST_TICKS: u32 = 128;

/// Facts of both variants.
pub(super) const FACTS: ControlFacts = ControlFacts {
    needs_feedback: false,
    has_rate: true,
    needs_path: false,
    ..ControlFacts::of(Evidence::Cnps)
};

/// Content of CNPs that both variants heed.
pub(super) const ADVISED: Advised = Advised { feedback: false, rate: true };

/// Checks values that both variants have: timers, shares above 0, and the lower bound of the rate.
pub(super) fn checked(
    timers: &[(&str, Time)],
    shares: &[(&str, f64)],
    min_rate: Rate,
) -> Result<(), Finding> {
    if let Some((field, _)) = timers.iter().find(|(_, span)| *span < LEAST_TIMER) {
        return Err(code::RANGE.at(field, "must be at least 10ns"));
    }
    if let Some((field, _)) = shares.iter().find(|(_, share)| !(*share > 0.0 && *share <= 1.0)) {
        return Err(code::RANGE.at(field, "must be above 0 and at most 1"));
    }
    limits::min_rate(min_rate)
}

impl Control for Config {
    type State = Dcqcn;
    const DECISIVE: &'static [&'static str] =
        &["min-rate", "rate-increase-timer", "byte-reset", "rate-decrease-interval", "additive-increase"];
    /// The pairs of timers are those of the Themis paper, section 5; its simulator has a floor of 100 Mb/s and no byte counter.
    const VARIATIONS: &'static [Variation] = &[
        Variation { name: "min-rate 1 Gb/s", changes: &[("min-rate", "1Gbps")] },
        Variation {
            name: "timers of 10 and 50 us",
            changes: &[("rate-increase-timer", "10us"), ("rate-decrease-interval", "50us")],
        },
        Variation {
            name: "timers of 900 and 4 us",
            changes: &[("rate-increase-timer", "900us"), ("rate-decrease-interval", "4us")],
        },
        Variation { name: "no byte counter", changes: &[("byte-reset", "0B")] },
    ];
    const TRIALS: &'static [&'static str] =
        &["rate-increase-timer = \"20us\"\n[nic]\non-nack = { to = 0.5 }"];

    fn facts(&self) -> ControlFacts {
        FACTS
    }

    fn advised(&self) -> Advised {
        ADVISED
    }

    fn longest_gap(&self, bytes: u64, _: Time) -> Time {
        self.min_rate.time_for(bytes)
    }

    fn validate(&self) -> Result<(), Finding> {
        if !(0.0..=1.0).contains(&self.cut_floor) {
            return Err(code::RANGE.at("cut-floor", "must be from 0 to 1"));
        }
        checked(
            &[
                ("rate-increase-timer", self.rate_increase_timer),
                ("rate-decrease-interval", self.rate_decrease_interval),
                ("alpha-timer", self.alpha_timer),
            ],
            &[
                ("gain", self.gain),
                ("initial-alpha", self.initial_alpha),
                ("cut-per-alpha", self.cut_per_alpha),
            ],
            self.min_rate,
        )
    }

    /// A new queue pair starts at `line_rate`, or at `max-rate` if that is lower.
    fn control(&self, line_rate: Rate, _path: Option<&Path>) -> Dcqcn {
        let line_rate = if self.max_rate == Rate(0) { line_rate } else { line_rate.min(self.max_rate) };
        let first = self.rate_on_first_cnp;
        Dcqcn::new(
            line_rate,
            Settings {
                hyper: Hyper::AfterBoth,
                clamp: self.clamp_target_rate,
                clamp_after_time: self.clamp_target_rate_after_time_increase,
                fast_recovery: self.fast_recovery,
                min: self.min_rate.bps() as f64,
                additive: self.additive_increase.bps() as f64,
                hyper_increase: self.hyper_increase.bps() as f64,
                gain: self.gain,
                initial_alpha: self.initial_alpha,
                cut_per_alpha: self.cut_per_alpha,
                cut_floor: self.cut_floor,
                on_first_cnp: match first {
                    Rate(0) => 1.0,
                    _ => (first.bps() as f64 / line_rate.bps() as f64).min(1.0),
                },
                alpha_timer: self.alpha_timer,
                decrease: self.rate_decrease_interval,
                increase: self.rate_increase_timer,
                byte_reset: self.byte_reset.get(),
            },
        )
    }
}

/// When an increase adds `hyper-increase` to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hyper {
    /// Once timer and byte counter are past fast recovery.
    AfterBoth,
    /// From the second tick of the timer after fast recovery on.
    AfterTimer,
}

/// Rules of one queue pair; rates in bits per second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) hyper: Hyper,
    pub(super) clamp: bool,
    pub(super) clamp_after_time: bool,
    pub(super) fast_recovery: u32,
    pub(super) min: f64,
    pub(super) additive: f64,
    pub(super) hyper_increase: f64,
    pub(super) gain: f64,
    pub(super) initial_alpha: f64,
    pub(super) cut_per_alpha: f64,
    pub(super) cut_floor: f64,
    /// Share of its rate that the first CNP leaves a queue pair.
    pub(super) on_first_cnp: f64,
    pub(super) alpha_timer: Time,
    pub(super) decrease: Time,
    pub(super) increase: Time,
    /// Bytes between events of the byte counter; 0 for none.
    pub(super) byte_reset: u64,
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
    line: f64,
    next_alpha: Time,
    next_check: Time,
    next_increase: Time,
    /// Bytes until the next event of the byte counter; `u64::MAX` while it rests.
    bytes_left: u64,
    /// Events of the timer since the last cut.
    time_stage: u32,
    /// Events of the byte counter since the last cut.
    byte_stage: u32,
    /// True after the first CNP.
    started: bool,
    /// True if a CNP has come since the last alpha tick.
    alpha_heard: bool,
    /// True if a CNP has come since the last decrease check.
    check_heard: bool,
    set: Settings,
}

impl Dcqcn {
    pub(super) fn new(line_rate: Rate, mut set: Settings) -> Self {
        let line = (line_rate.bps() as f64).max(1.0);
        set.min = set.min.min(line);
        for timer in [&mut set.alpha_timer, &mut set.decrease, &mut set.increase] {
            *timer = (*timer).max(Time(1));
        }
        Dcqcn {
            due: Time::NEVER,
            pace: Pace::from_bps(line),
            rate: line,
            target: line,
            alpha: set.initial_alpha,
            line,
            next_alpha: Time::NEVER,
            next_check: Time::NEVER,
            next_increase: Time::NEVER,
            bytes_left: u64::MAX,
            time_stage: 0,
            byte_stage: 0,
            started: false,
            alpha_heard: false,
            check_heard: false,
            set,
        }
    }

    /// Rate, bits per second, as of the last call.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Rate and target, bits per second, as of the last call.
    #[cfg(test)]
    pub(crate) const fn rate_and_target(&self) -> (f64, f64) {
        (self.rate, self.target)
    }

    /// Next time at which the rate may change if no CNP comes and nothing is sent.
    pub(crate) const fn steady_until(&self) -> Time {
        self.due
    }

    /// Cuts the rate to `share` of line rate if it is higher.
    pub(crate) fn lower_to(&mut self, now: Time, share: f64) {
        self.catch_up(now);
        let rate = (share * self.line).max(self.set.min);
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
                self.next_check = after(at, self.set.decrease);
                self.age_alpha(at);
                let kept = (1.0 - self.alpha * self.set.cut_per_alpha).max(self.set.cut_floor);
                self.cut(at, (self.rate * kept).max(self.set.min));
            } else {
                self.time_stage = self.time_stage.saturating_add(1);
                self.next_increase = after(at, self.set.increase);
                self.step_up();
            }
            self.schedule();
            if at == Time::NEVER {
                break;
            }
        }
        self.settle();
    }

    fn cut(&mut self, now: Time, rate: f64) {
        if self.set.clamp || self.set.clamp_after_time && self.time_stage != 0 {
            self.target = self.rate;
        }
        self.rate = rate;
        self.time_stage = 0;
        self.byte_stage = 0;
        self.next_increase = after(now, self.set.increase);
        self.bytes_left = if self.set.byte_reset == 0 { u64::MAX } else { self.set.byte_reset };
    }

    /// Raises the rate after an event of the timer or of the byte counter. Both rest once no event can change anything; the next
    /// cut restarts them.
    fn step_up(&mut self) {
        let before = (self.rate, self.target);
        let (time, bytes) = (self.time_stage, self.byte_stage);
        let (least, most) = match self.set.hyper {
            Hyper::AfterBoth => (time.min(bytes), time.max(bytes)),
            Hyper::AfterTimer => (time - 1, time),
        };
        let fast = self.set.fast_recovery;
        if most > fast {
            let step = if least > fast { self.set.hyper_increase } else { self.set.additive };
            self.target = (self.target + step).min(self.line);
        }
        self.rate = (self.rate + self.target) / 2.0;
        let level = self.rate == self.target;
        let last =
            least > fast || level && (self.target == self.line || most > fast && self.set.byte_reset == 0);
        if last && (self.rate, self.target) == before {
            self.next_increase = Time::NEVER;
            self.bytes_left = u64::MAX;
        }
    }

    /// Time in which the rate from `now` on is worth `bytes`, while timers change it. A packet that was sent at a low rate does not
    /// hold back the next one when the rate has risen (our choice: a rate limiter whose credit grows with the rate of the time).
    fn time_for(&self, now: Time, bytes: u64) -> Time {
        let mut ahead = self.clone();
        ahead.catch_up(now);
        let (mut at, mut bits) = (now, bytes as f64 * 8.0);
        for _ in 0..MOST_TICKS {
            let span = ahead.due.since(at).ps() as f64;
            let allowed = ahead.rate * span / 1e12;
            if allowed >= bits {
                break;
            }
            bits -= allowed;
            at = ahead.due;
            ahead.run_timers(at);
        }
        Time(at.since(now).ps().saturating_add((bits * 1e12 / ahead.rate) as u64))
    }

    /// Counts bytes that the queue pair has sent; returns whether the rate may have changed.
    pub(crate) fn count(&mut self, now: Time, mut bytes: u64) -> bool {
        self.catch_up(now);
        if bytes < self.bytes_left {
            self.bytes_left -= if self.bytes_left == u64::MAX { 0 } else { bytes };
            return false;
        }
        while bytes >= self.bytes_left {
            bytes -= self.bytes_left;
            self.bytes_left = self.set.byte_reset;
            self.byte_stage = self.byte_stage.saturating_add(1);
            self.step_up();
        }
        self.bytes_left -= if self.bytes_left == u64::MAX { 0 } else { bytes };
        self.settle();
        true
    }

    /// Applies alpha's ticks up to and including `until`.
    fn age_alpha(&mut self, until: Time) {
        while self.next_alpha <= until && self.next_alpha != Time::NEVER {
            self.alpha *= 1.0 - self.set.gain;
            if self.alpha_heard {
                self.alpha += self.set.gain;
                self.alpha_heard = false;
            } else if self.alpha < self.set.gain * 1e-20 {
                // Alpha is negligible: added to g, or half of it to 1, it leaves g and 1 unchanged in 53 bits.
                self.alpha = 0.0;
                self.next_alpha = first_after(until, self.next_alpha, self.set.alpha_timer);
                return;
            }
            self.next_alpha = after(self.next_alpha, self.set.alpha_timer);
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

    /// Until the first CNP. From then on alpha ages.
    fn is_at_rest(&self) -> bool {
        self.due == Time::NEVER && self.bytes_left == u64::MAX && !self.started
    }

    /// Back at line rate, both counters rest until the next cut, which begins them anew. Alpha ages by the clock alone.
    fn forgets_sending(&self, now: Time) -> bool {
        let mut then = self.clone();
        then.catch_up(now);
        then.due == Time::NEVER
            && then.bytes_left == u64::MAX
            && then.rate == then.line
            && then.target == then.line
    }

    fn gap_ahead(&self, now: Time, bytes: u64) -> Option<Time> {
        (self.set.hyper == Hyper::AfterBoth).then(|| self.time_for(now, bytes))
    }

    fn bytes_left(&self) -> u64 {
        self.bytes_left
    }

    fn on_sent(&mut self, now: Time, bytes: u64) -> bool {
        self.count(now, bytes)
    }

    fn on_cnp(&mut self, now: Time) {
        self.catch_up(now);
        if self.started {
            self.age_alpha(now);
            self.alpha_heard = true;
            self.next_check = first_after(now, self.next_check, self.set.decrease);
        } else {
            self.started = true;
            self.next_alpha = after(now, self.set.alpha_timer);
            self.next_check = after(now, self.set.decrease);
            self.rate = (self.rate * self.set.on_first_cnp).max(self.set.min);
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

#[cfg(test)]
mod tests {
    #[test]
    fn settings_have_their_bounds() {
        use crate::tests::bounds::{RATE, SHARE, check};
        let table = "congestion.dcqcn";
        for timer in ["rate-increase-timer", "rate-decrease-interval", "alpha-timer"] {
            check(table, timer, &["\"10ns\""], &["\"9999ps\""]);
        }
        check(table, "gain", SHARE.0, SHARE.1);
        check(table, "min-rate", RATE.0, RATE.1);
        check(table, "initial-alpha", SHARE.0, SHARE.1);
        check(table, "cut-per-alpha", SHARE.0, SHARE.1);
        check(table, "cut-floor", &["0.0", "1.0"], &["-0.1", "1.000001", "nan"]);
    }
}
