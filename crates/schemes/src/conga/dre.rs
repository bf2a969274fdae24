//! Discounting rate estimator (CONGA, section 3.2).

use model::failure::LinkChange;
use model::{Rate, Time};

/// Fraction bits of a register, so that small values decay, too.
const FRACTION: u32 = 8;
/// Cap of a register: times a 16-bit factor it stays within 64 bits. 2^38 bytes are 5 s at 400 Gb/s.
const MOST: u64 = 1 << (38 + FRACTION);
/// Bits of the factor by which a register decays.
const FACTOR: u32 = 16;

/// Parameters that all estimators of a switch share.
#[derive(Clone, Copy, Debug)]
pub(super) struct DreRules {
    period: u64,
    /// Share that remains after a decay, in units of 2^-16.
    keep: u64,
    /// Time constant in which an idle link forgets: `period / alpha`.
    constant: Time,
    bits: u8,
}

/// Register of one link.
#[derive(Clone, Debug)]
pub(super) struct Dre {
    register: u64,
    /// Number of the period of the last decay, and the end of that period, ps.
    decayed: u64,
    next: u64,
    /// Value at line rate, with the time from which it holds: a switch knows the rate of its links.
    full: Vec<(Time, u64)>,
}

impl DreRules {
    pub(super) fn new(period: Time, alpha: f64, bits: u8) -> Self {
        let alpha = if alpha > 0.0 { alpha.clamp(0.01, 1.0) } else { 1.0 };
        DreRules {
            period: period.ps().max(1),
            keep: ((1.0 - alpha) * f64::from(1u32 << FACTOR)) as u64,
            constant: Time((period.ps() as f64 / alpha) as u64),
            bits: bits.clamp(1, super::tables::MOST_BITS),
        }
    }

    /// An estimator for an idle link of this rate, with the changes that failures make to the rate.
    pub(super) fn estimator(&self, rate: Rate, changes: &[LinkChange]) -> Dre {
        let full = |rate: Rate| {
            let bytes = rate.bytes_in(self.constant).get().min(MOST >> FRACTION);
            (bytes << FRACTION).max(1)
        };
        let later = changes.iter().filter_map(|change| change.rate.map(|rate| (change.at, full(rate))));
        let full = std::iter::once((Time::ZERO, full(rate))).chain(later).collect();
        Dre { register: 0, decayed: 0, next: self.period, full }
    }

    #[inline]
    fn decay(&self, dre: &mut Dre, now: Time) {
        if now.ps() >= dre.next {
            self.decay_some(dre, now);
        }
    }

    #[cold]
    fn decay_some(&self, dre: &mut Dre, now: Time) {
        let period = now.ps() / self.period;
        while dre.decayed < period && dre.register > 0 {
            dre.register = (dre.register * self.keep) >> FACTOR;
            dre.decayed += 1;
        }
        dre.decayed = period;
        dre.next = (period + 1).saturating_mul(self.period);
    }

    /// Adds a frame of `bytes`.
    #[inline]
    pub(super) fn count(&self, dre: &mut Dre, now: Time, bytes: u32) {
        self.decay(dre, now);
        dre.register = (dre.register + (u64::from(bytes) << FRACTION)).min(MOST);
    }

    /// Congestion of the link, 0 to 2^bits - 1: its share of line rate in steps of 2^-bits.
    #[inline]
    pub(super) fn level(&self, dre: &mut Dre, now: Time) -> u8 {
        self.decay(dre, now);
        let top = (1 << self.bits) - 1;
        let full = dre.full.iter().rev().find(|(from, _)| *from <= now).map_or(1, |(_, full)| *full);
        ((dre.register << self.bits) / full).min(top) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::LinkId;

    /// A link of 100 Gb/s that carries `percent` of that in frames of 1250 bytes, for 5 ms.
    fn loaded(rules: &DreRules, percent: u64) -> (Dre, Time) {
        let mut dre = rules.estimator(Rate::from_gbps(100), &[]);
        let mut now = Time::ZERO;
        // A frame takes 100 ns at line rate.
        while now < Time::from_ms(5) {
            rules.count(&mut dre, now, 1250);
            now += Time(100_000 * 100 / percent);
        }
        (dre, now)
    }

    #[test]
    fn the_level_of_a_link_is_proportional_to_its_load() {
        let rules = DreRules::new(Time::from_us(50), 0.2, 3);
        for (percent, levels) in [(100, 6..=7), (50, 3..=4), (25, 1..=2), (5, 0..=0)] {
            let (mut dre, now) = loaded(&rules, percent);
            let level = rules.level(&mut dre, now);
            assert!(levels.contains(&level), "{percent} %: {level}");
        }
        let fine = DreRules::new(Time::from_us(50), 0.2, 6);
        let (mut dre, now) = loaded(&fine, 50);
        assert!((25..=33).contains(&fine.level(&mut dre, now)));
    }

    #[test]
    fn an_idle_register_decays_by_alpha_per_period_however_often_it_is_read() {
        let rules = DreRules::new(Time::from_us(50), 0.2, 6);
        let (busy, now) = loaded(&rules, 100);
        let (mut often, mut once) = (busy.clone(), busy.clone());
        for us in 1..=100 {
            rules.level(&mut often, now + Time::from_us(us));
        }
        rules.level(&mut once, now + Time::from_us(100));
        assert_eq!(often.register, once.register);
        let left = once.register as f64 / busy.register as f64;
        // Two or three decays, since a switch decays all registers at multiples of the period.
        assert!((0.50..0.65).contains(&left), "{left}");
        assert_eq!(rules.level(&mut once, Time::from_ms(20)), 0);
    }

    #[test]
    fn a_slowed_link_is_full_at_a_lower_rate() {
        let rules = DreRules::new(Time::from_us(50), 0.2, 3);
        let slow = |at, gbps| LinkChange { link: LinkId(0), at, rate: Some(Rate::from_gbps(gbps)) };
        let dead = LinkChange { link: LinkId(0), at: Time::from_ms(8), rate: None };
        let changes = [slow(Time::from_ms(2), 10), slow(Time::from_ms(6), 100), dead];
        let mut dre = rules.estimator(Rate::from_gbps(100), &changes);
        let mut level = |at: u64| {
            // 9.6 Gb/s for the millisecond before.
            for i in 0..1000 {
                rules.count(&mut dre, Time::from_us(1000 * (at - 1) + i), 1200);
            }
            rules.level(&mut dre, Time::from_ms(at))
        };
        assert_eq!([1, 4, 7, 9].map(&mut level), [0, 6, 0, 0]);
    }

    #[test]
    fn refused_settings_still_make_an_estimator() {
        for (alpha, bits) in [(f64::NAN, 0), (0.0, 9), (7.0, 1), (1e-9, 6)] {
            let rules = DreRules::new(Time::ZERO, alpha, bits);
            let mut dre = rules.estimator(Rate(0), &[]);
            rules.count(&mut dre, Time::from_ms(1), u32::MAX);
            assert!(rules.level(&mut dre, Time::from_ms(1)) < 64);
        }
    }
}
