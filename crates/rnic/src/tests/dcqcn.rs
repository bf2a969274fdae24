//! DCQCN of NVIDIA's NICs: the stages of timer and byte counter in closed form, and an oracle that ticks through every event.

use crate::Control as _;
use crate::congestion::dcqcn::{Config, Dcqcn};
use model::{Bytes, Congestion as _, Rate, Time};
use proptest::prelude::*;

const LINE: f64 = 100e9;
/// NVIDIA's byte counter.
const RESET: u64 = 32_767;

fn at_100g(config: Config) -> Dcqcn {
    config.control(Rate::from_gbps(100), None)
}

fn rate_at(control: &mut Dcqcn, us: u64) -> f64 {
    control.allowance(Time::from_us(us));
    control.rate()
}

/// A control at 50 Gb/s with a target of 50.0005 Gb/s, 308 us after the start: the timer fired between two cuts.
fn at_half(config: Config) -> Dcqcn {
    let mut control = at_100g(config);
    control.lower_to(Time::ZERO, 0.0);
    assert_eq!(rate_at(&mut control, 300), 50.0005e9, "fast recovery: half-way to line rate");
    control.lower_to(Time::from_us(308), 0.5);
    control
}

/// The distance to the target after `n` events that each raise the target by `step` and halve the distance.
fn distance(start: f64, step: f64, n: i32) -> f64 {
    let halves = 0.5f64.powi(n);
    start * halves + step * (1.0 - halves)
}

fn close(rate: f64, expected: f64) {
    assert!((rate / expected - 1.0).abs() < 1e-12, "{rate} for {expected}");
}

#[test]
fn the_byte_counter_makes_an_event_of_every_32767_bytes() {
    for frame in [64u64, 1_518, 4_158, 100_000] {
        let mut control = at_100g(Config::default());
        control.lower_to(Time::ZERO, 0.5);
        let packets = 20 * RESET / frame + 1;
        for n in 1..=packets {
            let before = control.rate();
            let changed = control.on_sent(Time::from_us(1), frame);
            assert_eq!(changed, n * frame / RESET > (n - 1) * frame / RESET, "packet {n} of {frame} B");
            assert_eq!(changed, control.rate() > before);
        }
        // The target is line rate, so that every event halves the distance to it.
        close(control.rate(), LINE - distance(LINE / 2.0, 0.0, (packets * frame / RESET) as i32));
    }
}

#[test]
fn one_counter_past_fast_recovery_adds_5_mbps_and_both_add_50() {
    let mut control = at_half(Config::default());
    let target = control.rate_and_target().1;
    let mut distance_now = target - control.rate();
    let now = Time::from_us(310);
    let event = |control: &mut Dcqcn| assert!(control.on_sent(now, RESET));
    event(&mut control); // bytes 1, timer 0: fast recovery
    distance_now /= 2.0;
    close(control.rate(), target - distance_now);
    for _ in 0..4 {
        event(&mut control); // bytes 2 to 5, timer 0
    }
    distance_now = distance(distance_now, 5e6, 4);
    close(control.rate(), target + 4.0 * 5e6 - distance_now);
    let one = rate_at(&mut control, 608); // bytes 5, timer 1: still additive
    distance_now = distance(distance_now, 5e6, 1);
    close(one, target + 5.0 * 5e6 - distance_now);
    let two = rate_at(&mut control, 908); // bytes 5, timer 2: hyper increase
    distance_now = distance(distance_now, 50e6, 1);
    close(two, target + 25e6 + 50e6 - distance_now);
    assert!(control.on_sent(Time::from_us(909), 3 * RESET));
    distance_now = distance(distance_now, 50e6, 3);
    close(control.rate(), target + 25e6 + 4.0 * 50e6 - distance_now);
}

#[test]
fn without_a_byte_counter_a_rate_rises_by_one_additive_increase_per_timer() {
    // A ConnectX-5 as measured: 0.1 Gb/s per ms, and 447 ms from 50 to 95 Gb/s.
    let config = Config { byte_reset: Bytes(0), additive_increase: Rate(30_000_000), ..Config::default() };
    let mut control = at_half(config);
    let start = 308;
    let at = |control: &mut Dcqcn, ms: u64| rate_at(control, start + 1000 * ms);
    let (early, late) = (at(&mut control, 100), at(&mut control, 200));
    let slope = (late - early) / 100.0;
    assert!((slope / 0.1e9 - 1.0).abs() < 0.01, "{slope} b/s per ms");
    let recovered = (200..1000).find(|ms| at(&mut control, *ms) >= 95e9).unwrap();
    assert!((recovered as f64 / 447.0 - 1.0).abs() < 0.05, "{recovered} ms");
    assert_eq!((at(&mut control, 10_000), control.steady_until()), (LINE, Time::NEVER));
}

#[test]
fn only_an_increase_of_the_timer_lowers_the_target_of_the_next_cut() {
    let after_bytes = |config: Config| {
        let mut control = at_100g(config);
        control.lower_to(Time::ZERO, 0.5);
        control.on_sent(Time::from_us(1), RESET); // 75 Gb/s
        control.lower_to(Time::from_us(2), 0.25);
        control.rate_and_target().1
    };
    assert_eq!(after_bytes(Config::default()), LINE, "the byte counter alone leaves the target");
    assert_eq!(after_bytes(Config { clamp_target_rate: true, ..Config::default() }), 75e9);
    let after_time = |config: Config| {
        let mut control = at_100g(config);
        control.lower_to(Time::ZERO, 0.5);
        rate_at(&mut control, 300); // 75 Gb/s
        control.lower_to(Time::from_us(301), 0.25);
        control.rate_and_target().1
    };
    assert_eq!(after_time(Config::default()), 75e9);
    let never = Config { clamp_target_rate_after_time_increase: false, ..Config::default() };
    assert_eq!(after_time(never), LINE);
}

#[test]
fn a_cut_takes_alphas_share_and_never_more_than_its_floor_allows() {
    let first_cut = |config: Config| {
        let mut control = at_100g(config);
        control.on_cnp(Time::ZERO);
        rate_at(&mut control, 4)
    };
    let alpha = 1023.0 / 1024.0 * (1019.0f64 / 1024.0).powi(4);
    close(first_cut(Config::default()), LINE * (1.0 - alpha / 2.0));
    let whole = Config { cut_per_alpha: 1.0, ..Config::default() };
    assert_eq!(first_cut(whole.clone()), LINE / 2.0, "rpg_min_dec_fac");
    close(first_cut(Config { cut_floor: 0.0, ..whole }), LINE * (1.0 - alpha));
    assert_eq!(first_cut(Config { cut_floor: 1.0, ..Config::default() }), LINE);
}

#[test]
fn the_rate_stays_between_its_bounds() {
    let mut control = at_100g(Config { max_rate: Rate::from_gbps(40), ..Config::default() });
    assert_eq!(control.rate(), 40e9);
    for us in 0..400 {
        control.on_cnp(Time::from_us(us));
    }
    assert_eq!(rate_at(&mut control, 400), 1e6);
    let first = Config { rate_on_first_cnp: Rate::from_gbps(10), ..Config::default() };
    let mut control = at_100g(first);
    control.on_cnp(Time::from_us(1));
    assert_eq!(control.rate(), 10e9);
}

#[test]
fn a_packet_at_the_least_rate_waits_for_the_rate_of_the_time() {
    let mut control = at_100g(Config::default());
    control.lower_to(Time::ZERO, 0.0);
    // At 1 Mb/s a packet of 1500 B would take 12 ms. After 300 us the rate is half of line rate, and 37.5 B have been allowed.
    let rest = (1500.0 - 37.5) * 8.0 / 50.0005e9;
    let gap = control.gap_ahead(Time::ZERO, 1500).unwrap();
    assert!((gap.ps() as f64 - (300e-6 + rest) * 1e12).abs() < 2.0, "{gap}");
    let steady = control.gap_ahead(Time::from_us(290), 1).unwrap();
    assert_eq!(steady, Time::from_us(8), "before the timer, 1 Mb/s");
}

#[derive(Clone, Debug)]
enum Step {
    Cnp,
    Ask,
    Send(u64),
}

fn configs() -> impl Strategy<Value = Config> {
    let timer = || prop_oneof![Just(4u64), Just(10), Just(50), 1..200u64].prop_map(Time::from_us);
    let rules =
        (0..4u32, any::<bool>(), any::<bool>(), prop_oneof![Just(0u64), Just(RESET), 1_000..200_000u64]);
    let shares = (prop_oneof![Just(1.0), Just(0.5), 0.001..1.0f64], 0.1..=1.0f64, 0.0..=1.0f64);
    (timer(), timer(), timer(), rules, shares).prop_map(
        |(t_i, t_d, t_alpha, (f, clamp, time, reset), shares)| {
            let (gain, cut_per_alpha, cut_floor) = shares;
            Config {
                rate_increase_timer: t_i,
                rate_decrease_interval: t_d,
                alpha_timer: t_alpha,
                fast_recovery: f,
                clamp_target_rate: clamp,
                clamp_target_rate_after_time_increase: time,
                byte_reset: Bytes(reset),
                gain,
                cut_per_alpha,
                cut_floor,
                ..Config::default()
            }
        },
    )
}

/// The rules once more, by the microsecond: every tick of every timer, in order.
struct Oracle {
    config: Config,
    rate: f64,
    target: f64,
    alpha: f64,
    stages: [u32; 2],
    bytes: Option<u64>,
    first: Option<u64>,
    heard: [bool; 2],
    next: Option<u64>,
}

impl Oracle {
    fn tick(&mut self, now: u64) {
        let us = |span: Time| span.ps() / 1_000_000;
        let Some(age) = self.first.map(|first| now - first).filter(|age| *age > 0) else { return };
        let c = self.config.clone();
        if age % us(c.alpha_timer) == 0 {
            self.alpha = self.alpha * (1.0 - c.gain) + if self.heard[0] { c.gain } else { 0.0 };
            self.heard[0] = false;
        }
        if age % us(c.rate_decrease_interval) == 0 && self.heard[1] {
            self.heard[1] = false;
            if c.clamp_target_rate || c.clamp_target_rate_after_time_increase && self.stages[0] > 0 {
                self.target = self.rate;
            }
            let kept = (1.0 - self.alpha * c.cut_per_alpha).max(c.cut_floor);
            self.rate = (self.rate * kept).max(1e6);
            self.stages = [0, 0];
            self.bytes = Some(0);
            self.next = Some(now + us(c.rate_increase_timer));
        }
        if self.next == Some(now) {
            self.next = Some(now + us(c.rate_increase_timer));
            self.stages[0] += 1;
            self.raise();
        }
    }

    fn raise(&mut self) {
        let past = self.stages.iter().filter(|stage| **stage > self.config.fast_recovery).count();
        self.target = (self.target + [0.0, 5e6, 50e6][past]).min(LINE);
        self.rate = (self.rate + self.target) / 2.0;
    }

    fn send(&mut self, bytes: u64) {
        let reset = self.config.byte_reset.get();
        let Some(sum) = self.bytes.filter(|_| reset > 0) else { return };
        for _ in 0..(sum + bytes) / reset {
            self.stages[1] += 1;
            self.raise();
        }
        self.bytes = Some((sum + bytes) % reset);
    }

    fn cnp(&mut self, now: u64) {
        // The very first CNP starts the timers, and alpha does not count it.
        self.heard[0] |= self.first.is_some();
        self.first.get_or_insert(now);
        self.heard[1] = true;
    }
}

proptest! {
    /// The control equals the oracle, whoever asks it and however often.
    #[test]
    fn catching_up_equals_ticking(
        config in configs(),
        steps in prop::collection::vec(
            (
                prop_oneof![0..20u64, 0..300u64, Just(4u64), Just(300u64)],
                prop_oneof![
                    4 => Just(Step::Cnp),
                    3 => Just(Step::Ask),
                    6 => prop_oneof![64..5_000u64, 1..300_000u64].prop_map(Step::Send),
                ],
            ),
            1..100,
        ),
    ) {
        prop_assert_eq!(config.validate(), Ok(()));
        let (mut asked, mut left) = (at_100g(config.clone()), at_100g(config.clone()));
        let mut oracle = Oracle {
            alpha: config.initial_alpha,
            config,
            rate: LINE,
            target: LINE,
            stages: [0, 0],
            bytes: None,
            first: None,
            heard: [false; 2],
            next: None,
        };
        let mut now = 0;
        for (us, step) in steps {
            for us in now + 1..=now + us {
                oracle.tick(us);
            }
            now += us;
            let at = Time::from_us(now);
            match step {
                Step::Cnp => {
                    oracle.cnp(now);
                    asked.on_cnp(at);
                    left.on_cnp(at);
                }
                Step::Send(bytes) => {
                    oracle.send(bytes);
                    asked.allowance(at);
                    asked.on_sent(at, bytes);
                    left.on_sent(at, bytes);
                }
                Step::Ask => {
                    asked.allowance(at);
                    prop_assert_eq!(asked.rate().to_bits(), oracle.rate.to_bits(), "at {} us", now);
                }
            }
        }
        let end = Time::from_us(now);
        prop_assert_eq!(asked.allowance(end), left.allowance(end));
        prop_assert_eq!(&asked, &left);
        prop_assert_eq!(asked.rate().to_bits(), oracle.rate.to_bits());
    }
}
