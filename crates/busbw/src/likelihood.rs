//! How likely a curve is under a suspect: the density of the measured bandwidths, on a logarithmic scale, in the suspect's range.

use crate::expect::Range;

/// Spread of a measured bandwidth around a range, relative. Our choice: repeated runs of nccl-tests differ by a few per cent.
const SIGMA: f64 = 0.05;

/// Share of rows that fit nothing, such as those with a hiccup. Our choice.
const OUTLIER: f64 = 0.02;

/// Width of what an unknown cause may do: from 1/500 of the expected bandwidth to the whole, as a logarithm.
const ANYTHING: f64 = 6.2;

/// Independent rows that a curve counts for. Our choice: one cause moves all sizes together, so twenty rows are no twenty witnesses.
const ROWS: f64 = 4.0;

/// The logarithm of a curve's likelihood with these ranges. `large` sizes count whole, others a quarter.
pub(crate) fn of(points: &[(u64, f64)], ranges: &[Range], large: u64) -> f64 {
    weighted(points, large, |i, busbw| ranges.get(i).map_or(0.0, |range| density(busbw, *range)))
}

/// The logarithm of a curve's likelihood under an unknown cause.
pub(crate) fn of_anything(points: &[(u64, f64)], large: u64) -> f64 {
    weighted(points, large, |_, _| 1.0 / ANYTHING)
}

fn weighted(points: &[(u64, f64)], large: u64, density: impl Fn(usize, f64) -> f64) -> f64 {
    let weight = |bytes: u64| if bytes >= large { 1.0 } else { 0.25 };
    let total: f64 = points.iter().map(|(bytes, _)| weight(*bytes)).sum();
    let scale = (ROWS / total.max(1e-9)).min(1.0);
    let row = |(i, (bytes, busbw)): (usize, &(u64, f64))| {
        let density = (1.0 - OUTLIER) * density(i, *busbw) + OUTLIER / ANYTHING;
        scale * weight(*bytes) * density.ln()
    };
    points.iter().enumerate().map(row).sum()
}

/// The density of a bandwidth's logarithm: uniform in the range, with Gaussian edges.
fn density(busbw: f64, range: Range) -> f64 {
    let (x, least, most) = (busbw.max(1e-9).ln(), range.least.max(1e-9).ln(), range.most.max(1e-9).ln());
    let width = (most - least).max(0.02);
    let (least, most) = ((least + most - width) / 2.0, (least + most + width) / 2.0);
    (normal((most - x) / SIGMA) - normal((least - x) / SIGMA)) / width
}

/// The normal distribution, within 1e-3 (logistic approximation of Bowling et al. 2009).
fn normal(z: f64) -> f64 {
    1.0 / (1.0 + (-(0.07056 * z.powi(3) + 1.5976 * z)).clamp(-500.0, 500.0).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_range_that_holds_is_likelier_than_a_wide_one_and_both_than_a_miss() {
        let curve = [(1 << 26, 100.0), (1 << 27, 102.0)];
        let of = |least, most| super::of(&curve, &[Range { least, most }; 2], 1 << 26);
        assert!(of(95.0, 105.0) > of(50.0, 200.0));
        assert!(of(50.0, 200.0) > of(150.0, 200.0));
        assert!(of(95.0, 105.0) > of_anything(&curve, 1 << 26));
        assert!(of(150.0, 200.0) < of_anything(&curve, 1 << 26));
    }
}
