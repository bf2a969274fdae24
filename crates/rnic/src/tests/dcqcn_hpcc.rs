//! DCQCN of the HPCC family against hand-computed rates, and its independence of the number of calls.

use crate::Control as _;
use crate::congestion::dcqcn::Dcqcn;
use crate::congestion::dcqcn_hpcc::Config;
use model::{Congestion as _, Pace, Rate, Time};
use proptest::prelude::*;

const LINE: f64 = 100e9;

fn at_100g(config: Config) -> Dcqcn {
    config.control(Rate::from_gbps(100), None)
}

fn rate_at(control: &mut Dcqcn, us: u64) -> f64 {
    let pace = control.allowance(Time::from_us(us)).pace;
    assert_eq!(pace, Pace::from_bps(control.rate()));
    control.rate()
}

/// 0.99609375 to the n-th power, multiplied out as the timer does.
fn decay(n: u32) -> f64 {
    (0..n).fold(1.0, |alpha, _| alpha * (255.0 / 256.0))
}

#[test]
fn without_a_cnp_the_rate_is_line_rate() {
    let mut control = at_100g(Config::default());
    assert_eq!(control.allowance(Time::ZERO).pace.gap(1520), Time(121_600));
    assert_eq!(rate_at(&mut control, 1_000_000), LINE);
}

#[test]
fn a_rate_that_is_low_enough_is_not_lowered() {
    let mut control = at_100g(Config::default());
    control.lower_to(Time::ZERO, 1.0);
    assert_eq!((control.rate(), control.steady_until()), (LINE, Time::NEVER), "nothing to recover from");
    control.lower_to(Time::ZERO, 0.5);
    control.lower_to(Time::ZERO, 0.6);
    assert_eq!(control.rate(), LINE / 2.0);
    control.lower_to(Time::ZERO, 0.0);
    assert_eq!(control.rate(), 100e6, "the minimum");
}

#[test]
fn back_at_line_rate_the_timers_rest() {
    let mut control = at_100g(Config::default());
    control.on_cnp(Time::from_us(10));
    assert!(rate_at(&mut control, 14) < LINE && control.steady_until() < Time::NEVER);
    assert_eq!((rate_at(&mut control, 1_000_000), control.steady_until()), (LINE, Time::NEVER));
}

#[test]
fn the_first_cnp_cuts_after_an_interval_and_one_increase_halves_the_loss() {
    let mut control = at_100g(Config::default());
    control.on_cnp(Time::from_us(10));
    assert_eq!(rate_at(&mut control, 13), LINE);
    // At 14 us alpha has ticked four times: at 11, 12 and 13 us, and at 14 us before the cut.
    let cut = LINE * (1.0 - decay(4) / 2.0);
    assert_eq!(rate_at(&mut control, 14), cut);
    assert!((cut - 50.776e9).abs() < 1e6, "{cut}");
    // Fast recovery: half-way to the target, which the first cut left at line rate.
    assert_eq!(rate_at(&mut control, 913), cut);
    let up = (cut + LINE) / 2.0;
    assert_eq!(rate_at(&mut control, 914), up);
    assert!((up - 75.388e9).abs() < 1e6, "{up}");
}

#[test]
fn a_second_cut_without_an_increase_keeps_the_target() {
    for (clamp_target_rate, target) in [(false, LINE), (true, LINE * (1.0 - decay(4) / 2.0))] {
        let mut control = at_100g(Config { clamp_target_rate, ..Config::default() });
        control.on_cnp(Time::from_us(10));
        control.on_cnp(Time::from_us(15));
        // The CNP at 15 us comes after that instant's tick, so it counts at 16 us: ticks 5 to 8, one of them with a CNP.
        let alpha = ((decay(5) * (255.0 / 256.0) + 1.0 / 256.0) * (255.0 / 256.0)) * (255.0 / 256.0);
        let cut = LINE * (1.0 - decay(4) / 2.0) * (1.0 - alpha / 2.0);
        assert_eq!(rate_at(&mut control, 18), cut);
        assert_eq!(rate_at(&mut control, 917), cut);
        assert_eq!(rate_at(&mut control, 918), (cut + target) / 2.0);
    }
}

#[test]
fn after_fast_recovery_the_target_rises_by_50_and_then_by_100_mbps() {
    let config = Config { rate_increase_timer: Time::from_us(100), ..Config::default() };
    let mut control = at_100g(config);
    control.on_cnp(Time::ZERO); // cut at 4 us
    let low = rate_at(&mut control, 4);
    let recovered = (low + LINE) / 2.0;
    assert_eq!(rate_at(&mut control, 104), recovered);
    control.on_cnp(Time::from_us(104)); // cut at 108 us; the target is now the rate before
    let cut = rate_at(&mut control, 108);
    assert!(cut < recovered);
    let fast = (cut + recovered) / 2.0;
    assert_eq!(rate_at(&mut control, 208), fast);
    let additive = (fast + (recovered + 50e6)) / 2.0;
    assert_eq!(rate_at(&mut control, 308), additive);
    let hyper = (additive + (recovered + 50e6 + 100e6)) / 2.0;
    assert_eq!(rate_at(&mut control, 408), hyper);
    assert_eq!(rate_at(&mut control, 508), (hyper + (recovered + 50e6 + 200e6)) / 2.0);
    assert_eq!(rate_at(&mut control, 10_000_000), LINE);
}

#[test]
fn the_increases_grow_with_line_rate_unless_set_otherwise() {
    for (scale_increases, step) in [(true, 200e6), (false, 50e6)] {
        let config = Config { scale_increases, fast_recovery: 0, ..Config::default() };
        let mut control = config.control(Rate::from_gbps(400), None);
        control.lower_to(Time::ZERO, 0.5);
        control.lower_to(Time::from_us(900), 0.25); // the increase at 900 us comes first; the target is the rate
        let target = (200e9 + 400e9) / 2.0;
        assert_eq!(rate_at(&mut control, 1800), (100e9 + target + step) / 2.0);
    }
}

#[test]
fn the_rate_never_falls_below_its_minimum() {
    let mut control = at_100g(Config::default());
    for us in 0..400 {
        control.on_cnp(Time::from_us(us));
    }
    assert_eq!(rate_at(&mut control, 400), 100e6);
}

#[test]
fn many_cnps_cut_once_per_decrease_interval() {
    let mut control = at_100g(Config::default());
    for ns in 0..8_000 {
        control.on_cnp(Time::from_ns(ns));
    }
    // With a CNP in every tick alpha stays at 1.
    assert_eq!(rate_at(&mut control, 7), LINE / 2.0);
    assert_eq!(rate_at(&mut control, 8), LINE / 4.0);
}

#[test]
fn a_cut_precedes_a_simultaneous_increase_and_restarts_its_timer() {
    let config = Config {
        rate_increase_timer: Time::from_us(10),
        rate_decrease_interval: Time::from_us(10),
        ..Config::default()
    };
    let mut control = at_100g(config);
    control.on_cnp(Time::ZERO); // cut at 10 us
    let first = rate_at(&mut control, 10);
    control.on_cnp(Time::from_us(12)); // a cut and an increase are both due at 20 us
    let second = rate_at(&mut control, 20);
    assert!(second < first);
    assert_eq!(rate_at(&mut control, 29), second);
    assert_eq!(rate_at(&mut control, 30), (second + LINE) / 2.0);
}

#[test]
fn the_first_cnp_may_set_the_rate_at_once() {
    let mut control = at_100g(Config { rate_on_first_cnp: 0.5, ..Config::default() });
    control.on_cnp(Time::from_us(1));
    assert_eq!(rate_at(&mut control, 1), 50e9);
}

#[test]
fn an_echo_on_an_ack_is_a_cnp() {
    let (mut a, mut b) = (at_100g(Config::default()), at_100g(Config::default()));
    a.on_cnp(Time::from_us(3));
    b.on_ack(Time::from_us(2), 1, false);
    b.on_ack(Time::from_us(3), 1, true);
    assert_eq!(a, b);
}

#[test]
fn alpha_decays_to_zero_after_a_long_rest() {
    let mut control = at_100g(Config::default());
    control.on_cnp(Time::ZERO);
    control.on_cnp(Time::from_ms(1000 * 3600)); // after an hour
    // The hour is a multiple of all three timers, so the check comes 4 us later, and one of the four ticks counts the CNP.
    let mut alpha = 1.0 / 256.0;
    for _ in 0..3 {
        alpha *= 255.0 / 256.0;
    }
    assert_eq!(rate_at(&mut control, 3_600_000_000 + 500), LINE * (1.0 - alpha / 2.0));
}

#[derive(Clone, Debug)]
enum Step {
    Cnp,
    Ask,
    Lower(f64),
}

fn configs() -> impl Strategy<Value = Config> {
    let timer = || prop_oneof![Just(4u64), Just(10), Just(50), 1..200u64].prop_map(Time::from_us);
    let gain = prop_oneof![Just(1.0 / 256.0), Just(1.0), Just(0.5), 0.001..1.0f64];
    (timer(), timer(), timer(), gain, 0..6u32, any::<bool>()).prop_map(
        |(t_i, t_d, t_alpha, gain, f, clamp)| Config {
            rate_increase_timer: t_i,
            rate_decrease_interval: t_d,
            alpha_timer: t_alpha,
            gain,
            fast_recovery: f,
            clamp_target_rate: clamp,
            ..Config::default()
        },
    )
}

proptest! {
    #[test]
    fn the_number_of_calls_changes_no_bit(
        config in configs(),
        steps in prop::collection::vec(
            (
                prop_oneof![0..20_000u64, 0..3_000_000u64, Just(1_000u64), Just(10_000u64), Just(50_000_000u64)],
                prop_oneof![
                    4 => Just(Step::Cnp),
                    8 => Just(Step::Ask),
                    1 => (0.01..1.0f64).prop_map(Step::Lower),
                ],
            ),
            1..200,
        ),
    ) {
        prop_assert_eq!(config.validate(), Ok(()));
        let (mut asked, mut left) = (at_100g(config.clone()), at_100g(config));
        let mut now = Time::ZERO;
        for (ns, step) in steps {
            now += Time::from_ns(ns);
            match step {
                Step::Ask => {
                    let pace = asked.allowance(now).pace;
                    prop_assert_eq!(pace, Pace::from_bps(asked.rate()));
                    prop_assert!(asked.rate() >= 100e6 && asked.rate() <= LINE);
                }
                Step::Cnp => {
                    asked.on_cnp(now);
                    left.on_cnp(now);
                }
                Step::Lower(share) => {
                    asked.lower_to(now, share);
                    left.lower_to(now, share);
                }
            }
        }
        now += Time::from_us(1);
        prop_assert_eq!(asked.allowance(now), left.allowance(now));
        prop_assert_eq!(asked.rate().to_bits(), left.rate().to_bits());
        prop_assert_eq!(asked, left);
    }

    /// A plain loop over every tick of every timer gives the same rate.
    #[test]
    fn catching_up_equals_ticking(
        config in configs(),
        cnps in prop::collection::vec(0..1500u64, 1..40),
    ) {
        let mut cnps = cnps;
        cnps.sort_unstable();
        let mut control = at_100g(config.clone());
        let (mut rate, mut target, mut alpha, mut stage) = (LINE, LINE, 1.0f64, 0u32);
        let (mut alpha_cnp, mut check_cnp) = (false, false);
        let us = |span: Time| span.ps() / 1_000_000;
        let first = cnps[0];
        let mut step_up = u64::MAX;
        for now in first..4000 {
            let age = now - first;
            if age > 0 && age % us(config.alpha_timer) == 0 {
                alpha = alpha * (1.0 - config.gain) + if alpha_cnp { config.gain } else { 0.0 };
                alpha_cnp = false;
            }
            if age > 0 && age % us(config.rate_decrease_interval) == 0 && check_cnp {
                if config.clamp_target_rate || stage != 0 {
                    target = rate;
                }
                rate = (rate * (1.0 - alpha / 2.0)).max(100e6);
                (stage, check_cnp) = (0, false);
                step_up = now + us(config.rate_increase_timer);
            }
            if step_up == now {
                if stage >= config.fast_recovery {
                    target += if stage == config.fast_recovery { 50e6 } else { 100e6 };
                    target = target.min(LINE);
                }
                rate = (rate + target) / 2.0;
                stage += 1;
                step_up = now + us(config.rate_increase_timer);
            }
            for _ in cnps.iter().filter(|&&at| at == now) {
                control.on_cnp(Time::from_us(now));
                // The very first CNP starts the timers, and alpha does not count it.
                (alpha_cnp, check_cnp) = (check_cnp || age > 0, true);
            }
            if now % 97 == 0 || now == 3999 {
                control.allowance(Time::from_us(now));
                prop_assert_eq!(control.rate().to_bits(), rate.to_bits(), "at {} us", now);
            }
        }
    }
}
