//! Logarithms and exponentials by operations that all machines round alike, so that results are the same everywhere.

/// An exponentially distributed number with mean 1, from a uniform 64-bit `draw`.
pub fn exponential(draw: u64) -> f64 {
    // The draw selects one of 2^52 equal parts of the range from 0 to 1; its middle is exact in a float and never 0 or 1.
    -ln(((draw >> 12) as f64 + 0.5) / (1u64 << 52) as f64)
}

/// The natural logarithm of a normal number above 0, computed with + - * / only. The standard library's logarithm may
/// differ in the last bit between machines, and results would differ with it.
pub(crate) fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    // x = m 2^e, with m first in 1/2 to 1, then in 1/sqrt(2) to sqrt(2).
    let (mut m, mut e) =
        (f64::from_bits((x.to_bits() & MANTISSA) | (1022 << 52)), (x.to_bits() >> 52) as f64 - 1022.0);
    if m < std::f64::consts::FRAC_1_SQRT_2 {
        (m, e) = (2.0 * m, e - 1.0);
    }
    // ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...). As |s| <= 0.172, twelve terms reach the last bit.
    let s = (m - 1.0) / (m + 1.0);
    let series = (0..12).rev().fold(0.0, |sum, k| sum * s * s + 1.0 / f64::from(2 * k + 1));
    2.0 * s * series + e * std::f64::consts::LN_2
}

/// The exponential function for x from -745 to 709, within a few units in the last place.
pub(crate) fn exp(x: f64) -> f64 {
    if x > 0.0 {
        return 1.0 / exp(-x);
    }
    let halves = (x / std::f64::consts::LN_2).round();
    let rest = x - halves * std::f64::consts::LN_2;
    let mut term = 1.0;
    let mut sum = 1.0;
    for i in 1..20 {
        term *= rest / f64::from(i);
        sum += term;
    }
    (0..-(halves as i64)).fold(sum, |sum, _| sum / 2.0)
}

/// A log-normally distributed number with median 1, from a uniform 64-bit `draw` for every ordinal. `sigma` is the standard deviation of
/// its logarithm.
pub fn log_normal(sigma: f64, draw: impl Fn(u64) -> u64) -> f64 {
    exp(sigma * normal(draw))
}

/// A standard normal number (Marsaglia's polar method).
fn normal(draw: impl Fn(u64) -> u64) -> f64 {
    let uniform = |ordinal| (draw(ordinal) >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    // A point lies outside the circle with a chance of 0.21, so 64 tries suffice.
    let points = (0..64).map(|i| (uniform(2 * i), uniform(2 * i + 1)));
    let mut inside = points.map(|(x, y)| (x, x * x + y * y)).filter(|&(_, s)| s > 0.0 && s < 1.0);
    inside.next().map_or(0.0, |(x, s)| x * (-2.0 * ln(s) / s).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_logarithm_agrees_with_the_standard_librarys() {
        for i in 1..100_000u32 {
            for x in [f64::from(i) / 100_000.0, f64::from(i) * 1e-15, 1.0 - f64::from(i) * 1e-12] {
                let (ours, theirs) = (ln(x), x.ln());
                assert!((ours - theirs).abs() <= 4e-16 * theirs.abs().max(0.5), "ln {x}: {ours}, {theirs}");
            }
        }
    }

    #[test]
    fn gaps_are_exponential_with_mean_1() {
        let n = 1u64 << 16;
        let gaps: Vec<f64> = (0..n).map(|i| exponential((i << 48) | (1 << 47))).collect();
        let mean = gaps.iter().sum::<f64>() / n as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / n as f64;
        assert!((mean - 1.0).abs() < 1e-4 && (square - 2.0).abs() < 2e-3, "{mean}, {square}");
        assert!(exponential(0) > 36.0 && exponential(u64::MAX) > 0.0);
    }

    #[test]
    fn our_exponential_is_that_of_the_machine() {
        for i in -2000..2000 {
            let x = f64::from(i) / 37.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-13, "{x}");
        }
    }
}
