//! Placement: which instance takes a request.

use crate::spec::Place;
use model::Time;
use std::collections::BTreeMap;

/// What placement knows of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Candidate {
    /// Tokens that it has to compute, or that its requests hold.
    pub(crate) load: u64,
    /// Tokens of the prompt that are in its cache.
    pub(crate) hit: u64,
    /// Expected time until the request can start, its transfer included.
    pub(crate) delay: Time,
    /// Switches between it and the prompt's KV.
    pub(crate) switches: u32,
}

/// The instance that takes the next request, by number; the first of equal ones.
pub(crate) fn choose(place: Place, candidates: &[Candidate], turn: &mut usize) -> usize {
    let least = |key: &dyn Fn(&Candidate) -> f64| {
        let all = candidates.iter().enumerate();
        all.min_by(|a, b| key(a.1).total_cmp(&key(b.1))).map_or(0, |(i, _)| i)
    };
    match place {
        Place::RoundRobin => {
            *turn += 1;
            (*turn - 1) % candidates.len().max(1)
        }
        Place::LeastLoaded => least(&|one| one.load as f64),
        Place::CacheAware(weight) => least(&|one| weight * one.load as f64 - one.hit as f64),
        Place::NetworkAware(_) | Place::Oracle => least(&|one| one.delay.ps() as f64),
        Place::SameTier => {
            let nearest = candidates.iter().map(|one| one.switches).min();
            least(&|one| if Some(one.switches) == nearest { one.load as f64 } else { f64::INFINITY })
        }
    }
}

/// How much longer transfers take than their NICs alone would, by the number of switches that they cross, as measured up to the last multiple
/// of a period.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates {
    period: u64,
    epoch: u64,
    /// Time by their NICs, and time that they took, of transfers that ended in this period, and in the last one with any.
    now: BTreeMap<u32, (u64, u64)>,
    known: BTreeMap<u32, (u64, u64)>,
}

impl Rates {
    pub(crate) fn new(period: Time) -> Self {
        Rates { period: period.ps().max(1), ..Rates::default() }
    }

    fn turn(&mut self, now: Time) {
        let epoch = now.ps() / self.period;
        if epoch > self.epoch {
            self.epoch = epoch;
            self.known.append(&mut self.now);
        }
    }

    /// Notes a transfer that has ended: the time that its NICs would have taken, and the time that it took.
    pub(crate) fn note(&mut self, now: Time, switches: u32, by_nics: Time, took: Time) {
        self.turn(now);
        let sum = self.now.entry(switches).or_default();
        *sum = (sum.0.saturating_add(by_nics.ps()), sum.1.saturating_add(took.ps()));
    }

    /// The time that a transfer is expected to take, by that of its NICs; the latter if no transfer has crossed so many switches.
    pub(crate) fn time(&mut self, now: Time, switches: u32, by_nics: Time) -> Time {
        self.turn(now);
        let Some((nics, took)) = self.known.get(&switches).copied().filter(|sum| sum.0 > 0) else {
            return by_nics;
        };
        let ps = u128::from(by_nics.ps()) * u128::from(took) / u128::from(nics);
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_takes_its_own_best_instance_and_the_first_of_equals() {
        let one = |load, hit, us, switches| Candidate { load, hit, delay: Time::from_us(us), switches };
        let all = [one(900, 512, 30, 1), one(100, 0, 40, 3), one(300, 0, 10, 1), one(100, 0, 10, 3)];
        let of = |place| choose(place, &all, &mut 0);
        assert_eq!(of(Place::LeastLoaded), 1);
        assert_eq!((of(Place::CacheAware(0.1)), of(Place::CacheAware(1.0))), (0, 1));
        assert_eq!(of(Place::NetworkAware(Time::from_us(1))), 2);
        assert_eq!(
            (of(Place::Oracle), of(Place::SameTier)),
            (2, 2),
            "near, and less loaded than the other near one"
        );
        let mut turn = 0;
        let round: Vec<usize> = (0..5).map(|_| choose(Place::RoundRobin, &all, &mut turn)).collect();
        assert_eq!(round, [0, 1, 2, 3, 0]);
    }

    #[test]
    fn rates_are_those_of_the_last_period_with_transfers() {
        let ms = Time::from_ms;
        let mut rates = Rates::new(ms(10));
        rates.note(ms(1), 3, ms(10), ms(20));
        assert_eq!(rates.time(ms(9), 3, ms(5)), ms(5), "the period has not ended");
        assert_eq!(rates.time(ms(10), 3, ms(5)), ms(10));
        rates.note(ms(11), 3, ms(10), ms(40));
        assert_eq!(rates.time(ms(19), 3, ms(5)), ms(10), "stale on purpose");
        assert_eq!(rates.time(ms(45), 3, ms(5)), ms(20));
        assert_eq!(rates.time(ms(45), 1, ms(5)), ms(5), "no transfer has crossed one switch");
    }
}
