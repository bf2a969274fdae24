//! Long-haul THEMIS: its two tables, the effect of each of its parts, and two small scenarios.

pub(crate) mod ablation;
pub(crate) mod full;
pub(crate) mod micro;
pub(crate) mod tables_1_2;

use crate::experiment::{Case, Runs};
use lab::Run;
use model::{Fabric, HostId, Plan, Time};
use results::stats::margin;

/// The paper's fabric and traffic.
const SCENARIO: &str = "long-haul";

/// The edge with both mechanisms of the paper's prototype, notification and reaction.
const PROTOTYPE: &str = "switch-role.external.feedback.long-haul={interval=\"10us\",notification=\"prototype\",reaction=\"prototype\"}";
const PROTOTYPE_NOTIFICATION: &str =
    "switch-role.external.feedback.long-haul={interval=\"10us\",notification=\"prototype\",reaction=\"off\"}";
const PROTOTYPE_REACTION: &str =
    "switch-role.external.feedback.long-haul={interval=\"10us\",notification=\"off\",reaction=\"prototype\"}";
/// The complete design. Receivers report every mark in this scenario, and senders cut their rate at most every 4 us.
/// The edge uses the same interval.
const COMPLETE: &str = "switch-role.external.feedback.long-haul={interval=\"4us\"}";

/// Sizes and slowdowns of the flows that stay in their datacentre, or of those that leave it.
#[derive(Clone, Debug, PartialEq)]
struct Side {
    slowdowns: Vec<(u64, f64)>,
}

/// Upper ends and names of the size buckets, bytes.
const BUCKETS: [(u64, &str); 5] = [
    (10_000, "up to 10 kB"),
    (100_000, "to 100 kB"),
    (1_000_000, "to 1 MB"),
    (10_000_000, "to 10 MB"),
    (u64::MAX, "beyond"),
];

impl Side {
    fn mean(&self) -> Option<f64> {
        mean(self.slowdowns.iter().map(|s| s.1))
    }

    /// Mean slowdown of the flows of a bucket.
    fn bucket(&self, which: usize) -> Option<f64> {
        let least = which.checked_sub(1).map_or(0, |below| BUCKETS[below].0);
        let of = |(bytes, _): &&(u64, f64)| *bytes > least && *bytes <= BUCKETS[which].0;
        mean(self.slowdowns.iter().filter(of).map(|s| s.1))
    }

    fn percentile(&self, share: f64) -> Option<f64> {
        let mut all: Vec<f64> = self.slowdowns.iter().map(|s| s.1).collect();
        all.sort_by(f64::total_cmp);
        let rank = ((all.len() as f64 * share).ceil() as usize).clamp(1, all.len().max(1));
        all.get(rank - 1).copied()
    }
}

/// The mean; `None` if there are no values.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0u32), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

/// The flows of a run that stay in their datacentre, and those that leave it.
fn sides(run: &Run) -> [Side; 2] {
    let (plan, outcome) = (&run.checked.plan, &run.outcome);
    let half = plan.fabric.hosts() / 2;
    let mut sides = [Side { slowdowns: Vec::new() }, Side { slowdowns: Vec::new() }];
    for (message, record) in plan.messages.iter().zip(&outcome.messages) {
        if record.acked == Time::NEVER {
            continue;
        }
        let qp = &plan.qps[message.qp.index()];
        let leaves = (qp.from.index() < half) != (qp.to.index() < half);
        let fct = record.acked.ps() - record.start.ps();
        let slowdown = fct as f64 / ideal(plan, qp.from, qp.to, message.bytes).ps() as f64;
        sides[usize::from(leaves)].slowdowns.push((message.bytes, slowdown));
    }
    sides
}

/// Ideal FCT as in the HPCC simulators, in whole nanoseconds: the round trip of the path, one full payload on each of
/// its links, and the flow's frames at the rate of the slowest link.
fn ideal(plan: &Plan, from: HostId, to: HostId, bytes: u64) -> Time {
    let (fabric, wire): (&Fabric, _) = (&plan.fabric, &plan.wire);
    let (mut link, mut trip, mut slowest) = (fabric.uplink(from), 0u64, u64::MAX);
    for _ in 0..fabric.nodes() {
        let payload = u128::from(wire.payload) * 8_000_000_000_000 / u128::from(link.rate.bps());
        trip += 2 * link.delay.ps() + payload as u64;
        slowest = slowest.min(link.rate.bps());
        let Some(port) = fabric.route(link.to, to).first().filter(|_| !fabric.is_host(link.to)) else {
            break;
        };
        link = &fabric.ports(link.to)[usize::from(port.0)];
    }
    let frames = u128::from(bytes) + u128::from(wire.packets(bytes)) * u128::from(wire.header);
    let sent = frames * 8_000_000_000_000 / u128::from(slowest);
    Time::from_ns(trip / 1000 + sent as u64 / 1000)
}

/// Mean of a number over several seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    mean: f64,
    /// Half width of the 95 % confidence interval of the mean; 0 for a single seed.
    half: f64,
}

impl Estimate {
    fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values.iter().copied())?;
        let half = margin(values).unwrap_or(0.0);
        Some(Estimate { mean, half })
    }
}

/// A metric of a run.
type Of = fn(&Run) -> Option<f64>;

fn intra(run: &Run) -> Option<f64> {
    sides(run)[0].mean()
}

fn inter(run: &Run) -> Option<f64> {
    sides(run)[1].mean()
}

fn unfairness(run: &Run) -> Option<f64> {
    Some(intra(run)? / inter(run)?)
}

fn pauses(run: &Run) -> Option<f64> {
    Some((run.summary.control.pause + run.summary.control.resume) as f64)
}

fn unfinished(run: &Run) -> f64 {
    let flows = &run.summary.flows;
    flows.count.saturating_sub(flows.finished) as f64
}

fn counter(run: &Run, name: &str) -> f64 {
    run.summary.counters.get(name).copied().unwrap_or_default() as f64
}

impl Runs {
    /// Estimate of a metric over the seeds of a label; `None` if one of the runs is not complete.
    fn estimate(&self, label: &str, what: Of) -> Option<Estimate> {
        let values: Option<Vec<f64>> = self.all(label).into_iter().map(|run| what(run?)).collect();
        Estimate::of(&values?)
    }
}

/// A case for each seed.
fn seeded(label: &str, sets: &[&str], seeds: u32) -> Vec<Case> {
    (1..=seeds).map(|seed| Case::new(label, SCENARIO, sets).and(format!("seed={seed}"))).collect()
}

/// Mean and interval as text.
fn shown(estimate: Option<Estimate>) -> String {
    match estimate {
        Some(Estimate { mean, half: 0.0 }) => results::text::number(mean),
        Some(Estimate { mean, half }) => {
            format!("{} ± {}", results::text::number(mean), results::text::number(half))
        }
        None => "not complete".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ideal_times_equal_the_prototypes() {
        let plan = scenario::load(SCENARIO, &[]).unwrap().plan;
        let of = |to: u32, bytes: u64| ideal(&plan, HostId(0), HostId(to), bytes).ps() / 1000;
        // Round trips of 4160, 8320 and 1012365 ns, and 1048 B at 100 Gb/s.
        assert_eq!([of(1, 1000), of(4, 1000), of(16, 1000)], [4160 + 83, 8320 + 83, 1_012_365 + 83]);
        assert_eq!(of(4, 10_500), 8320 + (10_500 + 11 * 48) * 8 / 100);
    }

    #[test]
    fn the_interval_uses_students_t() {
        let Estimate { mean, half } = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((mean, (half - 4.303 / 3f64.sqrt()).abs() < 1e-3) == (2.0, true), "{half}");
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { mean: 7.0, half: 0.0 }));
        assert_eq!(Estimate::of(&[]), None);
    }
}
