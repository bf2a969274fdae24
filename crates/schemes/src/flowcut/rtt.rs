//! Test for a slow path: the moving average of normalised round-trip times, and their slope.

/// Thresholds and weights of the test for a slow path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) alpha: f64,
    pub(super) ratio: f64,
    pub(super) gradient: f64,
    pub(super) gradient_weight: f64,
}

/// Measurements of one flow's path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PathDelay {
    average: f64,
    last: f64,
    slope: f64,
}

impl Default for PathDelay {
    /// An idle path (the artefact begins with the base round-trip time).
    fn default() -> Self {
        PathDelay { average: 1.0, last: 1.0, slope: 0.0 }
    }
}

impl PathDelay {
    /// Measurements of the next path if the moving average is kept. The slope is that of one path, so it starts again.
    pub(super) fn carried_over(self) -> Self {
        PathDelay { average: self.average, ..PathDelay::default() }
    }

    /// Adds a round-trip time `rtt`; `least` is the least one over as many hops. Both are without serialisation and in the
    /// same unit. True if the path is slow.
    pub(super) fn sample(&mut self, rules: &Rules, rtt: u64, least: u64) -> bool {
        let normal = rtt as f64 / least.max(1) as f64;
        self.average = rules.alpha * normal + (1.0 - rules.alpha) * self.average;
        let step = normal - self.last;
        self.slope = rules.gradient_weight * step + (1.0 - rules.gradient_weight) * self.slope;
        self.last = normal;
        self.average > rules.ratio || self.slope > rules.gradient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { alpha: 0.5, ratio: 3.0, gradient: f64::INFINITY, gradient_weight: 0.5 };

    #[test]
    fn one_late_packet_drains_nothing_and_several_do() {
        let mut delay = PathDelay::default();
        assert!(!delay.sample(&RULES, 40, 10), "(4 + 1) / 2 = 2.5");
        assert!(delay.sample(&RULES, 40, 10), "(4 + 2.5) / 2 = 3.25");
        assert!(!delay.sample(&RULES, 10, 10), "(1 + 3.25) / 2 = 2.125");
    }

    #[test]
    fn at_ratio_one_any_sample_above_the_least_drains() {
        let rules = Rules { ratio: 1.0, ..RULES };
        let mut delay = PathDelay::default();
        assert!(!delay.sample(&rules, 10, 10), "the average equals the ratio");
        assert!(delay.sample(&rules, 11, 10));
    }

    #[test]
    fn a_steep_rise_drains_before_the_average_does() {
        let rules = Rules { ratio: 100.0, gradient: 2.0, ..RULES };
        let mut delay = PathDelay::default();
        assert!(!delay.sample(&rules, 40, 10), "a step of 3 weighs 1.5");
        assert!(delay.sample(&rules, 80, 10), "a step of 4 and 1.5 weigh 2.75");
        assert!(!delay.sample(&rules, 80, 10), "no step: 1.375");
    }
}
