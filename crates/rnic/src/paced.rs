//! A rate between two bounds, for controls that pace packets.

use model::{Allowance, Pace, Rate, Time};

/// The rate of a queue pair, in bits per second like its bounds, and the pace that it gives.
#[derive(Clone, Debug)]
pub(crate) struct Paced {
    rate: f64,
    pace: Pace,
    line: f64,
    least: f64,
}

impl Paced {
    /// Line rate, which is the upper bound. A `least` above it counts as line rate.
    pub(crate) fn at_line_rate(line_rate: Rate, least: Rate) -> Self {
        let line = (line_rate.bps() as f64).max(1.0);
        Paced { rate: line, pace: Pace::from_bps(line), line, least: (least.bps() as f64).min(line) }
    }

    pub(crate) const fn rate(&self) -> f64 {
        self.rate
    }

    /// What the control allows: the pace alone limits the packets.
    pub(crate) const fn allowance(&self) -> Allowance {
        Allowance { window: u64::MAX, pace: self.pace, not_before: Time::ZERO }
    }

    /// Sets the rate to the nearest one within the bounds.
    pub(crate) fn set(&mut self, rate: f64) {
        self.rate = rate.clamp(self.least, self.line);
        self.pace = Pace::from_bps(self.rate);
    }

    pub(crate) fn increase(&mut self, step: f64) {
        self.set(self.rate + step);
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.set(self.rate * factor);
    }

    /// Lowers the rate to `share` of line rate if it is higher.
    pub(crate) fn lower_to(&mut self, share: f64) {
        self.set(self.rate.min(share * self.line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_and_its_pace_stay_within_the_bounds() {
        let mut paced = Paced::at_line_rate(Rate::from_gbps(100), Rate::from_gbps(1));
        let mut after = |change: fn(&mut Paced)| {
            change(&mut paced);
            assert_eq!(paced.allowance().pace, Pace::from_bps(paced.rate()));
            paced.rate() / 1e9
        };
        assert_eq!(after(|paced| paced.increase(5e9)), 100.0);
        assert_eq!(after(|paced| paced.scale(0.4)), 40.0);
        assert_eq!(after(|paced| paced.lower_to(0.5)), 40.0, "it is lower already");
        assert_eq!(after(|paced| paced.lower_to(0.25)), 25.0);
        assert_eq!(after(|paced| paced.set(0.0)), 1.0);
        assert_eq!(Paced::at_line_rate(Rate::from_gbps(1), Rate::from_gbps(9)).least, 1e9);
    }
}
