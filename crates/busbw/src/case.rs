//! What suspects look at: the measured curve beside the expectation, and all facts.

use crate::cluster::{Cluster, Link};
use crate::expect::{Model, Range};
use crate::log::{Facts, Perftest, Point, Test, Told};

/// Sizes from which bandwidth, not latency, is judged, and from which a low one counts.
pub(crate) const JUDGED: u64 = 1 << 20;
/// Sizes that decide the exit code.
pub(crate) const LARGE: u64 = 64 << 20;

/// A curve with all that is known about it.
pub(crate) struct Case<'c> {
    /// The expectation; `None` if something is missing.
    pub(crate) model: Option<Model<'c>>,
    /// The expectation with the NICs that are certainly in use.
    pub(crate) base: Option<Model<'c>>,
    pub(crate) cluster: &'c Cluster,
    pub(crate) facts: &'c Facts,
    pub(crate) perftest: &'c [Perftest],
    pub(crate) test: Option<Test>,
    /// Judged sizes with their bus bandwidth, GB/s.
    pub(crate) points: Vec<(u64, f64)>,
    /// Expected range of each of them.
    pub(crate) expected: Vec<Range>,
    /// NICs that are certainly in use, if they are fewer than a node has, and how that is known.
    pub(crate) in_use: Option<(u32, String)>,
    /// Bus bandwidth of sendrecv, if it was measured as well, GB/s.
    pub(crate) sendrecv: Option<f64>,
    /// Largest over least bandwidth of repeated runs.
    pub(crate) spread: Option<f64>,
}

impl<'c> Case<'c> {
    /// Puts a case together.
    pub(crate) fn new(
        model: Option<Model<'c>>,
        (cluster, facts, perftest): (&'c Cluster, &'c Facts, &'c [Perftest]),
        test: Option<Test>,
        points: &[Point],
    ) -> Self {
        let points: Vec<(u64, f64)> = points
            .iter()
            .filter(|point| point.bytes >= JUDGED)
            .map(|point| (point.bytes, measured(point, model.as_ref())))
            .filter(|(_, busbw)| *busbw > 0.0)
            .collect();
        let expected = match &model {
            Some(model) => points.iter().map(|(bytes, _)| model.expected(*bytes).range).collect(),
            None => Vec::new(),
        };
        let in_use = in_use(cluster, facts);
        let base =
            model.as_ref().map(|model| model.with(in_use.as_ref().map_or(model.nics, |(nics, _)| *nics)));
        Case {
            model,
            base,
            cluster,
            facts,
            perftest,
            test,
            points,
            expected,
            in_use,
            sendrecv: None,
            spread: None,
        }
    }

    /// The largest size and its bandwidth.
    pub(crate) fn plateau(&self) -> Option<(u64, f64)> {
        self.points.last().copied()
    }

    /// True if several nodes take part.
    pub(crate) fn networked(&self) -> bool {
        self.cluster.nodes.is_none_or(|nodes| nodes > 1)
    }

    pub(crate) fn roce(&self) -> Option<bool> {
        self.cluster.link.map(|link| link == Link::Roce)
    }

    /// True or false if the nodes certainly hang on several ToRs, or on one.
    pub(crate) fn several_tors(&self) -> Option<bool> {
        let nodes = self.cluster.nodes?;
        match (self.cluster.racks, self.cluster.per_tor) {
            (Some(racks), _) => Some(racks > 1),
            (None, Some(per)) => Some(nodes > per),
            (None, None) => None,
        }
    }

    /// Ranges if the NICs in use carry this share of their rate.
    pub(crate) fn share(&self, least: f64, most: f64) -> Vec<Range> {
        let Some(base) = &self.base else { return Vec::new() };
        self.limit(least * base.network(), most * base.network())
    }

    /// Ranges if the NICs of a node carry so many GB/s together.
    pub(crate) fn limit(&self, least: f64, most: f64) -> Vec<Range> {
        let Some(base) = &self.base else { return Vec::new() };
        self.points.iter().map(|(bytes, _)| base.limited(*bytes, (least, most))).collect()
    }

    /// Ranges if bandwidth is this share of what is expected.
    pub(crate) fn of_expected(&self, least: f64, most: f64) -> Vec<Range> {
        self.expected
            .iter()
            .map(|range| Range { least: least * range.least, most: most * range.most })
            .collect()
    }

    /// The largest jump of the time when the size doubles, with the larger size: time over time.
    pub(crate) fn jump(&self) -> Option<(u64, f64)> {
        let jump = |pair: &[(u64, f64)]| {
            let ((small, slow), (large, fast)) = (pair[0], pair[1]);
            let sizes = large as f64 / small as f64;
            // Time over time, for twice the size.
            (large, 2.0 * (slow / fast).powf(1.0 / sizes.log2().max(0.5)))
        };
        self.points.windows(2).map(jump).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The place of a fact.
    pub(crate) fn at<T>(told: &Told<T>) -> String {
        format!("({})", told.at)
    }

    /// The fullest perftest: share of a NIC's rate, and the measurement.
    pub(crate) fn perftest_share(&self, gpu_memory: bool) -> Option<(f64, &Perftest)> {
        let gbps = self.cluster.gbps?;
        let of_memory = self.perftest.iter().filter(|test| test.gpu_memory == gpu_memory);
        let best = of_memory.max_by(|a, b| a.gbps.total_cmp(&b.gbps))?;
        Some((best.gbps / gbps, best))
    }
}

/// The bandwidth that a row has on the bus: computed from its time where the ranks are known, because rows are rounded.
pub(crate) fn measured(point: &Point, model: Option<&Model<'_>>) -> f64 {
    match model {
        Some(model) if point.us > 0.0 => model.busbw(point.bytes, point.us),
        _ if point.busbw.is_finite() => point.busbw,
        _ => point.bytes as f64 / point.us.max(1e-3) / 1e3,
    }
}

/// NICs that are certainly in use, if they are fewer than a node has.
fn in_use(cluster: &Cluster, facts: &Facts) -> Option<(u32, String)> {
    let nics = cluster.reachable()?;
    let fewer = |count: u32| (count > 0 && count < nics).then_some(count);
    if let Some(used) = cluster.used.and_then(fewer) {
        return Some((used, format!("{used} of {nics} NICs, as described")));
    }
    if let Some(told) = facts.env.get("NCCL_IB_HCA")
        && let Some(count) = listed(&told.value).and_then(fewer)
    {
        return Some((
            count,
            format!("NCCL_IB_HCA={} names {count} of {nics} NICs ({})", told.value, told.at),
        ));
    }
    let told = facts.devices.as_ref()?;
    // A bond is one device of several ports.
    let count = fewer(told.value.len() as u32)?;
    Some((count, format!("NCCL lists {count} of {nics} NICs ({})", told.at)))
}

/// How many devices a value of `NCCL_IB_HCA` names; `None` if it names a prefix or those to leave out.
pub(crate) fn listed(value: &str) -> Option<u32> {
    if value.starts_with('^') {
        return None;
    }
    let names: Vec<&str> =
        value.trim_start_matches('=').split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    // A name without a number is a prefix of all devices.
    let whole = names.iter().all(|name| {
        name.split(':')
            .next()
            .is_some_and(|name| name.ends_with(|c: char| c.is_ascii_digit()) && name != "mlx5")
    });
    (whole && !names.is_empty()).then_some(names.len() as u32)
}
