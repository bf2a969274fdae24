//! How unevenly experts are chosen.

use crate::rounded::{exp, ln};
use finding::{Finding, code};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How unevenly experts are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Skew {
    /// Exponent z: the j-th most popular expert gets tokens in proportion to (j + 1)^-z.
    Exponent(f64),
    /// The exponent that gives a Gini coefficient.
    Gini(Gini),
}

/// A Gini coefficient of the tokens of experts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Gini {
    /// The coefficient: 0 if all experts get the same, near 1 if one gets all tokens. Real text has 0.105 to above 0.24, and tokens made
    /// up for a benchmark 0.38 (arXiv 2605.20982, measured). No default.
    pub gini: f64,
}

impl Default for Skew {
    fn default() -> Self {
        Skew::Exponent(0.0)
    }
}

/// Largest exponent: the most popular of many experts gets 99.9 % of the tokens. Our choice.
const MOST: f64 = 10.0;

impl Skew {
    /// Whether all experts get the same.
    pub(super) fn is_even(self) -> bool {
        matches!(self, Skew::Exponent(0.0) | Skew::Gini(Gini { gini: 0.0 }))
    }

    /// Checks the skew of so many experts.
    pub(super) fn check(self, experts: u64) -> Result<(), Finding> {
        match self {
            Skew::Exponent(z) if !(0.0..=MOST).contains(&z) => {
                Err(code::RANGE.at("skew", format!("expected 0 to {MOST}, found {z}")))
            }
            Skew::Gini(Gini { gini }) if !(0.0..=gini_of(MOST, experts)).contains(&gini) => {
                let most = gini_of(MOST, experts);
                let text = format!("expected 0 to {most:.3}, the most of {experts} experts, found {gini}");
                Err(code::RANGE.at("skew.gini", text))
            }
            _ => Ok(()),
        }
    }

    /// The exponent for so many experts.
    pub(super) fn exponent(self, experts: u64) -> f64 {
        match self {
            Skew::Exponent(z) => z,
            Skew::Gini(Gini { gini: 0.0 }) => 0.0,
            Skew::Gini(Gini { gini }) => {
                // The coefficient grows with the exponent; 50 halvings leave less than 1e-14.
                let halve = |(low, high): (f64, f64), _| {
                    let middle = (low + high) / 2.0;
                    if gini_of(middle, experts) < gini { (middle, high) } else { (low, middle) }
                };
                (0..50).fold((0.0, MOST), halve).1
            }
        }
    }
}

/// The weight of the expert at a place, from 0.
pub(super) fn weight(z: f64, place: usize) -> f64 {
    exp(-z * ln(place as f64 + 1.0))
}

/// The Gini coefficient of the weights of so many experts.
fn gini_of(z: f64, experts: u64) -> f64 {
    let n = experts as f64;
    let weights = || (0..experts as usize).map(|place| weight(z, place));
    // The weights fall from place to place, so the largest one is the last in ascending order.
    let sum: f64 = (0..).zip(weights()).map(|(place, w)| (n - 1.0 - 2.0 * f64::from(place)) * w).sum();
    if experts == 0 { 0.0 } else { sum / n / weights().sum::<f64>() }
}

/// Tokens that go to each of so many servers at least once, by a sender's tokens to each expert. `order` has the experts in the order
/// in which they take tokens, one after another: all of an expert's tokens differ, and each token gets its number of experts.
pub(super) fn dealt(tokens: u64, row: &[u64], order: &[usize], servers: usize) -> Vec<u64> {
    let each = row.len() / servers.max(1);
    let mut spans: Vec<Vec<(u64, u64)>> = vec![Vec::new(); servers];
    let mut first = 0;
    for &expert in order {
        let Some(of_server) = spans.get_mut(expert / each.max(1)) else { continue };
        let last = first + row[expert].min(tokens);
        of_server.push((first, last.min(tokens)));
        of_server.push((0, last.saturating_sub(tokens)));
        first = if tokens == 0 { 0 } else { last % tokens };
    }
    spans.into_iter().map(covered).collect()
}

/// The number of integers in any of these spans.
fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let add =
        |(all, end): (u64, u64), (from, to): (u64, u64)| (all + to.max(end) - from.max(end), end.max(to));
    spans.into_iter().fold((0, 0), add).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gini_coefficient_gives_the_exponent_that_has_it() {
        for (gini, experts) in [(0.105, 256), (0.24, 256), (0.38, 128), (0.9, 256), (0.0, 8)] {
            let z = Skew::Gini(Gini { gini }).exponent(experts);
            // By the definition: mean difference of all pairs, over twice the mean.
            let weights: Vec<f64> = (0..experts as usize).map(|place| weight(z, place)).collect();
            let pairs: f64 = weights.iter().flat_map(|a| weights.iter().map(move |b| (a - b).abs())).sum();
            let defined = pairs / (2.0 * experts as f64 * weights.iter().sum::<f64>());
            assert!((defined - gini).abs() < 1e-9, "{experts} experts: {defined}, asked {gini}");
        }
    }

    #[test]
    fn coefficients_that_no_exponent_has_are_refused() {
        for gini in [-0.1, 0.8, f64::NAN] {
            let told = Skew::Gini(Gini { gini }).check(4).unwrap_err().to_string();
            assert!(told.contains("expected 0 to 0.74"), "{told}");
        }
        assert!(Skew::Exponent(11.0).check(8).is_err() && Skew::Exponent(1.0).check(8).is_ok());
    }

    #[test]
    fn tokens_are_dealt_to_experts_so_that_each_goes_to_a_server_once() {
        // Four tokens, two experts each, on two servers of two experts. The popular expert has every token, so its server has, too.
        assert_eq!(dealt(4, &[4, 1, 2, 1], &[0, 1, 2, 3], 2), [4, 3]);
        // Both experts of a server take the same two tokens, or different ones.
        assert_eq!(dealt(4, &[2, 2, 4, 0], &[0, 2, 1, 3], 2), [4, 4]);
        assert_eq!(dealt(4, &[2, 2, 4, 0], &[0, 1, 2, 3], 2), [4, 4]);
        assert_eq!(dealt(4, &[2, 2, 2, 2], &[0, 2, 1, 3], 2), [2, 2]);
        assert_eq!(dealt(0, &[0; 4], &[0, 1, 2, 3], 2), [0, 0]);
    }
}
