//! Grades of ports: two averages of samples, and a band from each.

use super::profile::Settings;
use model::Rate;

/// The best band; the worst is 0.
pub(super) const BEST: u8 = 7;
/// Fraction bits of averages, so that small values decay, too.
const FRACTION: u32 = 8;

/// Rules that all ports of a switch share.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    exponent: u8,
    current: bool,
    past_weight: u32,
    future_weight: u32,
    /// Limits of waiting bytes, with fraction bits.
    future: [i64; 2],
    /// Sums of the bands' widths, from the best band on.
    bands: Box<[u64]>,
}

/// Averages and band of one port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Average of the bytes sent between two samples, with fraction bits.
    past: i64,
    /// Average of the bytes that wait, with fraction bits.
    future: i64,
    /// Bytes that have joined the port since the last sample, and bytes that waited then.
    joined: u64,
    queued: u32,
    band: u8,
    /// Limits of the bytes sent, and the average above which the port counts as congested.
    limits: [i64; 2],
    congested: i64,
    /// Most bytes that the link starts between two samples.
    most: u64,
}

fn fixed(bytes: u64) -> i64 {
    i64::try_from(bytes).map_or(i64::MAX >> 1, |bytes| bytes.min(1 << 53) << FRACTION)
}

impl Rules {
    /// The rules; `share` replaces the limits of waiting bytes where the settings have none.
    pub(super) fn new(settings: &Settings, share: u64) -> Self {
        let future = settings.future_limits.map_or([0, share], |limits| limits.map(|bytes| bytes.get()));
        let sums = settings.bands.iter().scan(0, |sum, width| {
            *sum += u64::from(*width);
            Some(*sum)
        });
        Rules {
            exponent: settings.exponent.min(15),
            current: settings.current,
            past_weight: settings.past_weight.into(),
            future_weight: settings.future_weight.into(),
            future: future.map(fixed),
            bands: sums.take(8).collect(),
        }
    }

    /// Band of an average between two limits: linear, in the widths of the bands.
    fn band(&self, average: i64, [low, high]: [i64; 2]) -> u8 {
        let total = self.bands.last().copied().unwrap_or(1);
        let worse = if average < low {
            0
        } else if average >= high {
            self.bands.len().saturating_sub(1)
        } else {
            let place = ((average - low) as u128 * u128::from(total) / (high - low).max(1) as u128) as u64;
            self.bands.partition_point(|sum| *sum <= place)
        };
        BEST - worse.min(BEST.into()) as u8
    }

    fn worst(&self) -> u8 {
        (BEST + 1).saturating_sub(self.bands.len() as u8)
    }

    fn step(&self, average: i64, sample: i64) -> i64 {
        match self.current && sample < average {
            true => sample,
            false => average + ((sample - average) >> self.exponent),
        }
    }
}

impl Load {
    /// An idle port of this rate.
    pub(super) fn new(settings: &Settings, rate: Rate, frame: u32) -> Self {
        let bytes = |rate: Rate| rate.bytes_in(settings.interval).get();
        let scaled = |limit: Rate| {
            let grown =
                u128::from(bytes(limit)) * u128::from(rate.bps()) / u128::from(settings.scale.bps().max(1));
            fixed(grown.try_into().unwrap_or(u64::MAX))
        };
        let congested =
            settings.congested_above.map_or(i64::MAX, |share| (fixed(bytes(rate)) as f64 * share) as i64);
        Load {
            past: 0,
            future: 0,
            joined: 0,
            queued: 0,
            band: BEST,
            limits: settings.past_limits.map(scaled),
            congested,
            most: bytes(rate).saturating_add(frame.into()),
        }
    }

    /// Band at the last sample.
    #[inline]
    pub(super) fn band(&self) -> u8 {
        self.band
    }

    /// A frame of `bytes` joins the port.
    #[inline]
    pub(super) fn join(&mut self, bytes: u32) {
        self.joined += u64::from(bytes);
    }

    /// Forgets replies that passed while the clock rested.
    pub(super) fn rest(&mut self) {
        (self.joined, self.queued) = (0, 0);
    }

    /// Takes a sample with `queued` bytes waiting; true if the averages are 0.
    pub(super) fn sample(&mut self, rules: &Rules, queued: u32) -> bool {
        let sent = (self.joined + u64::from(self.queued)).saturating_sub(queued.into()).min(self.most);
        (self.joined, self.queued) = (0, queued);
        self.past = rules.step(self.past, fixed(sent));
        self.future = rules.step(self.future, fixed(queued.into()));
        let grade = |average, limits, weight: u32| u32::from(rules.band(average, limits)) * weight;
        let weights = rules.past_weight + rules.future_weight;
        let sum = grade(self.past, self.limits, rules.past_weight)
            + grade(self.future, rules.future, rules.future_weight);
        let band = sum.checked_div(weights).unwrap_or(BEST.into()) as u8;
        self.band = if self.past > self.congested { rules.worst() } else { band };
        self.past == 0 && self.future == 0 && queued == 0
    }
}
