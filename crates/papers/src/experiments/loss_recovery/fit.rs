//! The slides' nine numbers as four: a completion time without loss, and one cost per loss for each mode.
//!
//! At a loss rate p, a flow of n packets loses as many packets as the binomial distribution gives. If every loss costs the
//! same time, the P99 of the completion time is T0 + cost x (P99 of the loss count). The fit finds the T0 and the three
//! costs whose worst relative deviation from the nine numbers is least. The number of packets needs the MTU, which the
//! slides do not state.

/// MTUs in bytes for which the experiment shows a fit.
pub(super) const MTUS: [u32; 3] = [1024, 2048, 4096];

/// The four numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fit {
    /// Completion time without loss, ms.
    pub(super) t0: f64,
    /// Least and highest cost per loss in us that keep the worst deviation, by mode.
    pub(super) costs: Vec<(f64, f64)>,
    /// Worst relative deviation from the nine numbers.
    pub(super) worst: f64,
}

/// P99 of the number of packets that a flow loses, by nearest rank. Losses are independent.
pub(super) fn losses_at_p99(packets: u32, probability: f64) -> u32 {
    let odds = probability / (1.0 - probability);
    let mut term = (1.0 - probability).powi(packets as i32);
    let (mut lost, mut sum) = (0, term);
    while sum < 0.99 && lost < packets {
        term *= odds * f64::from(packets - lost) / f64::from(lost + 1);
        lost += 1;
        sum += term;
    }
    lost
}

/// Values of T0 for which some costs keep every deviation at or below `worst`. `p99` holds ms by mode and loss rate.
fn feasible<const N: usize>(p99: &[[f64; N]], losses: [u32; N], worst: f64) -> Option<(f64, f64)> {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for of_mode in p99 {
        // The least cost that one number asks for must not exceed the highest cost that another number allows.
        for (least, n) in of_mode.iter().map(|p| (1.0 - worst) * p).zip(losses) {
            for (most, m) in of_mode.iter().map(|p| (1.0 + worst) * p).zip(losses) {
                let (n, m) = (f64::from(n), f64::from(m));
                let bound = (n * most - m * least) / (n - m);
                if n > m {
                    high = high.min(bound);
                } else if n < m {
                    low = low.max(bound);
                }
            }
        }
    }
    (low <= high).then_some((low, high))
}

/// The fit with the least worst deviation. `p99` holds ms by mode and loss rate, `losses` the P99 of the loss count.
pub(super) fn minimax<const N: usize>(p99: &[[f64; N]], losses: [u32; N]) -> Fit {
    let (mut below, mut worst) = (0.0, 1.0);
    // Sixty halvings end at the precision of the numbers.
    for _ in 0..60 {
        let middle = 0.5 * (below + worst);
        match feasible(p99, losses, middle) {
            Some(_) => worst = middle,
            None => below = middle,
        }
    }
    let (low, high) = feasible(p99, losses, worst).unwrap_or_default();
    let t0 = 0.5 * (low + high);
    let costs = p99.iter().map(|of_mode| {
        let cost = |factor: f64| {
            of_mode.iter().zip(losses).map(move |(p, n)| 1000.0 * (factor * p - t0) / f64::from(n.max(1)))
        };
        let least = cost(1.0 - worst).fold(f64::NEG_INFINITY, f64::max);
        let most = cost(1.0 + worst).fold(f64::INFINITY, f64::min);
        (least, most)
    });
    Fit { t0, costs: costs.collect(), worst }
}

#[cfg(test)]
mod tests {
    use super::super::MODES;
    use super::*;

    /// Packets of a flow of 32 MiB.
    fn packets(mtu: u32) -> u32 {
        (32 << 20) / mtu
    }

    fn counts(mtu: u32) -> [u32; 3] {
        [0.0002, 0.0005, 0.001].map(|p| losses_at_p99(packets(mtu), p))
    }

    fn of_slides(mtu: u32) -> Fit {
        minimax(&MODES.map(|mode| mode.paper), counts(mtu))
    }

    #[test]
    fn the_p99_of_the_loss_count_is_that_of_the_binomial_distribution() {
        assert_eq!(counts(1024), [13, 26, 47]);
        assert_eq!(counts(2048), [8, 16, 26]);
        assert_eq!(counts(4096), [5, 9, 16]);
        assert_eq!(losses_at_p99(8192, 0.0), 0);
    }

    #[test]
    fn exact_data_are_fitted_exactly() {
        let p99 = [[5.1, 5.2, 5.4], [5.05, 5.1, 5.2]];
        let fit = minimax(&p99, [10, 20, 40]);
        assert!((fit.t0 - 5.0).abs() < 1e-6 && fit.worst < 1e-9, "{fit:?}");
        assert!((fit.costs[0].0 - 10.0).abs() < 1e-5 && (fit.costs[1].1 - 5.0).abs() < 1e-5, "{fit:?}");
    }

    #[test]
    fn four_numbers_describe_the_nine_within_3_percent_at_any_mtu() {
        let worst = MTUS.map(|mtu| (of_slides(mtu).worst * 1000.0).round());
        assert_eq!(worst, [24.0, 26.0, 28.0], "worst deviation, tenths of a percent");
    }

    #[test]
    fn the_mtu_moves_the_cost_of_a_loss_in_adaptive_routing_mode_threefold() {
        let cost = |mtu| of_slides(mtu).costs[2];
        let (small, large) = (cost(1024), cost(4096));
        assert!((small.0 - 71.0).abs() < 0.5 && (small.1 - 71.0).abs() < 0.5, "{small:?}");
        assert!((large.0 / small.0 - 3.05).abs() < 0.05, "{large:?} against {small:?}");
    }

    #[test]
    fn no_grid_point_has_a_smaller_worst_deviation() {
        let slides = MODES.map(|mode| mode.paper);
        let losses = counts(1024);
        let best = of_slides(1024).worst;
        let off = |t0: f64, cost: f64, of_mode: &[f64; 3]| {
            let off = of_mode.iter().zip(losses).map(|(p, n)| ((t0 + f64::from(n) * cost) / p - 1.0).abs());
            off.fold(0.0, f64::max)
        };
        for t0 in (400..520).map(|t0| f64::from(t0) / 100.0) {
            let least_of = |of_mode: &[f64; 3]| {
                let costs = (0..1500).map(|cost| f64::from(cost) / 1e4);
                costs.map(|cost| off(t0, cost, of_mode)).fold(f64::INFINITY, f64::min)
            };
            let worst = slides.iter().map(least_of).fold(0.0, f64::max);
            assert!(worst >= best - 1e-9, "{worst} at T0 = {t0} ms, where the fit has {best}");
        }
    }
}
