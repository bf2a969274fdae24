//! Round trips without queues.

use model::Time;

/// What a sender knows of the round trip of its path.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(super) struct Trips {
    /// Least time from a transmission to the news of its arrival; [`Time::NEVER`] before the first one, unless the path is known.
    least: Time,
    /// The longest trip of an idle fabric; 0 if the path is unknown, or not needed.
    longest: Time,
}

impl Trips {
    pub(super) const fn new() -> Self {
        Trips { least: Time::NEVER, longest: Time::ZERO }
    }

    /// Notes the longest trip of an idle fabric: the start of the base round trip, which samples of full queues may exceed.
    pub(super) fn expect(&mut self, longest: Time) {
        (self.longest, self.least) = (longest, longest);
    }

    /// Notes the time from a transmission to the news of its arrival.
    #[inline]
    pub(super) fn sample(&mut self, trip: Time) {
        self.least = self.least.min(trip);
    }

    /// The longest trip of an idle fabric; 0 if the path is unknown, or not needed.
    #[cfg(test)]
    pub(super) fn longest(&self) -> Time {
        self.longest
    }

    /// Least round trip; [`Time::NEVER`] before the first sample, unless the path is known.
    #[inline]
    pub(super) fn least(&self) -> Time {
        self.least
    }

    /// So many least round trips; [`Time::NEVER`] before the first sample.
    pub(super) fn times(&self, count: u64) -> Time {
        Time(self.least.ps().saturating_mul(count))
    }

    /// Time within which the answer to a probe must come that starts a recovery: the base round trip and the target of the
    /// queueing delay, which is the longest round trip where switches drop (uet-htsim). A sender that has nothing more to send
    /// for the first time probes after the same time.
    pub(super) fn prompt(&self) -> Time {
        Time(self.least.ps().saturating_add(self.longest.max(self.least).ps()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    #[test]
    fn an_answer_is_prompt_within_the_least_and_the_longest_trip() {
        let mut trips = Trips::new();
        assert_eq!((trips.least(), trips.times(3), trips.prompt()), (Time::NEVER, Time::NEVER, Time::NEVER));
        trips.sample(US(3));
        trips.sample(US(5));
        assert_eq!((trips.least(), trips.times(3), trips.prompt()), (US(3), US(9), US(6)));
        trips.expect(US(4));
        trips.sample(US(2));
        assert_eq!((trips.least(), trips.prompt()), (US(2), US(6)));
    }
}
