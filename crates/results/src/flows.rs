//! Completion times and slowdown of flows, gathered by size and by distance.

use crate::data::{Flow, RunData};
use crate::stats::mean;
use engine::outcome::MessageRecord;
use model::plan::Job;
use model::{HostId, Plan, Time};
use std::collections::BTreeMap;

/// A time that was set.
pub fn set(time: Time) -> Option<Time> {
    (time != Time::NEVER).then_some(time)
}

/// The flow's completion time if it finished.
pub fn fct(record: &MessageRecord) -> Option<Time> {
    set(record.acked).map(|acked| acked.since(record.start))
}

/// Payload bits over `time`, Gb/s.
pub fn gbps(bytes: u64, time: Time) -> f64 {
    bytes as f64 * 8000.0 / time.ps() as f64
}

/// A set of flows.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) count: u64,
    /// Payload.
    pub(crate) bytes: u64,
    /// FCT of flows that finished, us.
    pub(crate) times: Vec<f64>,
    /// Slowdown of flows that finished.
    pub(crate) slowdowns: Vec<f64>,
    /// Flows that finished and that a rate below a hundredth of line rate held for more than half of their time.
    pub(crate) throttled: u64,
}

impl Sample {
    fn add(&mut self, bytes: u64, record: &MessageRecord, ideal: Time) {
        self.count += 1;
        self.bytes += bytes;
        if let Some(fct) = fct(record) {
            self.throttled += u64::from(record.slow > Time(fct.ps() / 2));
            self.times.push(fct.as_us());
            self.slowdowns.push(fct.ps() as f64 / ideal.ps().max(1) as f64);
        }
    }

    pub(crate) fn finished(&self) -> u64 {
        self.times.len() as u64
    }
}

/// A set of flows, as a whole and in parts.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) all: Sample,
    /// By the exponent of the power of ten at which their bucket ends.
    decades: BTreeMap<u32, Sample>,
    near: Sample,
    far: Sample,
}

impl Samples {
    /// Of the flows of the jobs that `pick` takes.
    pub(crate) fn of(run: RunData<'_>, pick: impl Fn(&Job) -> bool) -> Self {
        let mut set = Samples::default();
        let long = long_paths(run.plan);
        for Flow { message, bytes, record, ideal, .. } in run.flows(pick) {
            set.all.add(bytes, &record, ideal);
            set.decades.entry(decade(bytes)).or_default().add(bytes, &record, ideal);
            if let Some(far) = long.get(message.qp.index()) {
                let part = if *far { &mut set.far } else { &mut set.near };
                part.add(bytes, &record, ideal);
            }
        }
        set
    }

    /// Buckets by size, from small to large; none if all flows are in one.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = Bucket<'_>> {
        let several = self.decades.len() > 1;
        self.decades.iter().filter(move |_| several).map(|(&decade, sample)| Bucket {
            over_bytes: if decade == 0 { 0 } else { 10u64.saturating_pow(decade - 1) },
            up_to_bytes: 10u64.saturating_pow(decade),
            sample,
        })
    }

    /// Flows over short and over long paths, if there are both.
    pub(crate) fn distances(&self) -> Option<Distances<'_>> {
        (self.near.count > 0 && self.far.count > 0).then_some(Distances { near: &self.near, far: &self.far })
    }
}

/// Flows of similar size.
#[derive(Debug)]
pub(crate) struct Bucket<'a> {
    pub(crate) over_bytes: u64,
    pub(crate) up_to_bytes: u64,
    pub(crate) sample: &'a Sample,
}

/// Flows over short and over long paths.
#[derive(Debug)]
pub(crate) struct Distances<'a> {
    pub(crate) near: &'a Sample,
    pub(crate) far: &'a Sample,
}

impl Distances<'_> {
    /// Mean slowdown over short paths / that over long paths.
    pub(crate) fn unfairness(&self) -> Option<f64> {
        Some(mean(&self.near.slowdowns)? / mean(&self.far.slowdowns)?)
    }
}

/// By queue pair, whether its path is a long one; empty if none is, or all are alike.
fn long_paths(plan: &Plan) -> Vec<bool> {
    let fabric = &plan.fabric;
    let mut known: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let mut delay = |from: HostId, to: HostId| {
        let ends = (fabric.rack(from), fabric.rack(to));
        *known.entry(ends).or_insert_with(|| {
            let (mut node, mut sum) = (fabric.attachment(from), 0u64);
            // A path visits no node twice.
            for _ in 0..fabric.nodes() {
                let Some(port) = fabric.route(node, to).first() else { break };
                let link = fabric.ports(node)[usize::from(port.0)];
                sum = sum.saturating_add(link.delay.ps());
                if fabric.is_host(link.to) {
                    break;
                }
                node = link.to;
            }
            sum
        })
    };
    let delays: Vec<u64> = plan.qps.iter().map(|qp| delay(qp.from, qp.to)).collect();
    let mut sorted: Vec<u64> = known.into_values().collect();
    sorted.sort_unstable();
    let Some(gap) = sorted.windows(2).find(|pair| pair[1] / 10 > pair[0]) else { return Vec::new() };
    delays.into_iter().map(|delay| delay > gap[0]).collect()
}

/// The least power of ten that is not below `bytes`, as an exponent.
fn decade(bytes: u64) -> u32 {
    bytes.saturating_sub(1).checked_ilog10().map_or(0, |log| log + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_its_decade() {
        let decades = [0, 1, 2, 10, 11, 100, 101, 1_000_000, u64::MAX].map(decade);
        assert_eq!(decades, [0, 0, 1, 1, 2, 2, 3, 6, 20]);
    }
}
