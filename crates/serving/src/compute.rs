//! Times of computations: by formulas of operations and bytes, or by measured tables.

use crate::models::Model;
use model::Time;
use std::collections::BTreeMap;

/// A line through measured points: linear between them, and beyond them as between the nearest two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve(Vec<(u64, Time)>);

impl Curve {
    /// The line through these points, of which those at one place count once: the last.
    pub fn new(points: impl IntoIterator<Item = (u64, Time)>) -> Self {
        Curve(points.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect())
    }

    /// Its value at a place; a single point is the same everywhere, and no value is below 0.
    fn at(&self, place: u64) -> Time {
        let after =
            self.0.partition_point(|point| point.0 < place).clamp(1, self.0.len().saturating_sub(1).max(1));
        match (self.0.get(after - 1), self.0.get(after)) {
            (Some(&from), Some(&to)) => between((from.0, from.1), (to.0, to.1), place),
            (Some(only), None) => only.1,
            _ => Time::ZERO,
        }
    }
}

/// The value at a place of the line through two points.
fn between(from: (u64, Time), to: (u64, Time), place: u64) -> Time {
    let (x, y) = (
        |a: u64, b: u64| i128::from(a) - i128::from(b),
        |a: Time, b: Time| i128::from(a.ps()) - i128::from(b.ps()),
    );
    let ps = i128::from(from.1.ps()) + y(to.1, from.1) * x(place, from.0) / x(to.0, from.0).max(1);
    Time(u64::try_from(ps.max(0)).unwrap_or(u64::MAX))
}

/// The compute model of a prefill instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prefill {
    /// Operations of the model over the operations per second of all ranks.
    Formula(Model, u128),
    /// Measured times by the tokens of a prompt.
    Table(Curve),
}

impl Prefill {
    /// Time of a prompt of `tokens` tokens, of which `cached` at its start are known. By the formula it has `2 P (n - p) + 2 L d (n^2 -
    /// p^2)` operations for P active parameters, L layers and width d. By a table it takes the time of the whole prompt less that of its
    /// known start.
    pub fn time(&self, tokens: u64, cached: u64) -> Time {
        match self {
            Prefill::Formula(model, flops) => {
                let square = |n: u64| u128::from(n) * u128::from(n);
                let new = u128::from(tokens.saturating_sub(cached));
                let attention = 2 * u128::from(model.layers) * u128::from(model.hidden);
                let operations = (2 * u128::from(model.active) * new)
                    .saturating_add(attention.saturating_mul(square(tokens).saturating_sub(square(cached))));
                over(operations, *flops)
            }
            Prefill::Table(curve) if cached == 0 => curve.at(tokens),
            Prefill::Table(curve) => Time(curve.at(tokens).ps().saturating_sub(curve.at(cached).ps())),
        }
    }
}

/// The compute model of a decode instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decode {
    /// What a step costs.
    pub step: Step,
    /// Least time of a step.
    pub floor: Time,
}

/// What a step of decoding costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Bytes over the bandwidth of memory.
    Formula {
        /// Bytes of the weights that a token uses.
        weights: u64,
        /// Bytes of KV per token of context, of all ranks.
        token: u64,
        /// Bytes per second that all ranks together read.
        bandwidth: u128,
    },
    /// Measured times: for numbers of requests, by their mean tokens of context.
    Table(BTreeMap<u64, Curve>),
}

impl Decode {
    /// Time of a step of so many requests that have so many tokens of context together.
    pub fn time(&self, requests: u64, context: u64) -> Time {
        let time = match &self.step {
            Step::Formula { weights, token, bandwidth } => {
                let bytes = u128::from(*weights) + u128::from(context) * u128::from(*token);
                over(bytes, *bandwidth)
            }
            Step::Table(curves) => {
                let mean = context / requests.max(1);
                Curve::new(curves.iter().map(|(requests, curve)| (*requests, curve.at(mean)))).at(requests)
            }
        };
        time.max(self.floor)
    }
}

/// The time of `work` at a rate per second, rounded up to a picosecond.
fn over(work: u128, rate: u128) -> Time {
    let ps = work.saturating_mul(1_000_000_000_000).div_ceil(rate.max(1));
    Time(u64::try_from(ps).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models;

    /// 32,768 tokens of Llama-3-70B on 8 GPUs of 400 TFLOPS: 2 x 70.55e9 x 32,768 operations of matrices, and 2 x 80 x 8192 x 32,768^2 of
    /// attention.
    #[test]
    fn a_long_prompt_computes_for_seconds_and_a_known_start_saves_its_share() {
        let prefill = Prefill::Formula(models::named("llama-3-70b").unwrap(), 8 * 400_000_000_000_000);
        let operations: u128 = 2 * 70_550_000_000 * 32_768 + 2 * 80 * 8192 * 32_768 * 32_768;
        let whole = prefill.time(32_768, 0);
        assert_eq!(u128::from(whole.ps()), operations.div_ceil(3200));
        assert_eq!(prefill.time(32_768, 16_384), Time(whole.ps() - prefill.time(16_384, 0).ps()));
        assert_eq!(prefill.time(100, 100), Time::ZERO);
    }

    #[test]
    fn a_step_of_decoding_reads_weights_once_and_the_context_of_every_request() {
        let of = |weights, floor| {
            let step = Step::Formula { weights, token: 1000, bandwidth: 1_000_000_000 };
            Decode { step, floor: Time::from_us(floor) }
        };
        assert_eq!(of(2_000_000, 500).time(1, 0), Time::from_us(2000));
        assert_eq!(of(2_000_000, 500).time(2, 3000), Time::from_us(5000));
        assert_eq!(of(1, 500).time(1, 0), Time::from_us(500), "launching kernels takes time");
    }

    #[test]
    fn measured_prefills_are_met_and_continued_beyond_the_last_row() {
        let points = [(512, 22), (2048, 61), (8192, 240)].map(|(tokens, ms)| (tokens, Time::from_ms(ms)));
        let prefill = Prefill::Table(Curve::new(points));
        for (tokens, time) in points {
            assert_eq!(prefill.time(tokens, 0), time);
        }
        assert_eq!(prefill.time(1280, 0), Time::from_us(41_500), "half way");
        assert_eq!(prefill.time(14_336, 0), Time::from_ms(240 + 179));
        assert_eq!(prefill.time(8192, 2048), Time::from_ms(240 - 61));
        assert_eq!(Prefill::Table(Curve::new([(100, Time::from_ms(5))])).time(7, 0), Time::from_ms(5));
    }

    #[test]
    fn measured_steps_are_met_and_lie_between_the_curves_of_their_neighbours() {
        let curve =
            |points: &[(u64, u64)]| Curve::new(points.iter().map(|&(at, ms)| (at, Time::from_ms(ms))));
        let step = Step::Table(BTreeMap::from([
            (1, curve(&[(1024, 11)])),
            (33, curve(&[(1024, 15), (8192, 19)])),
            (129, curve(&[(8192, 34)])),
        ]));
        let decode = Decode { step, floor: Time::ZERO };
        assert_eq!(decode.time(33, 33 * 8192), Time::from_ms(19));
        assert_eq!(decode.time(17, 17 * 1024), Time::from_ms(13));
        assert_eq!(decode.time(33, 33 * 4608), Time::from_ms(17));
        assert_eq!(decode.time(225, 225 * 8192), Time::from_ms(34 + 15));
    }
}
