//! Distributions of completion times and slowdown, and the slowest flows.

use super::super::frame::{Frame, short};
use super::headline::Column;
use results::metrics::{Shown, Unit};
use results::{Metric, Results};
use serde::Serialize;
use std::collections::BTreeMap;

/// Rows in the table of the slowest flows. Our choice: these fit on a printed page.
const SLOWEST: usize = 20;

/// A distribution.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Curve {
    /// Column of `flows.parquet`.
    pub(super) metric: &'static str,
    /// Number of finished flows of all seeds.
    flows: usize,
    /// Number of flows that did not finish.
    unfinished: usize,
    /// Values in ascending order.
    values: Vec<Option<f64>>,
    /// Share of the finished flows that do not exceed each value.
    shares: Vec<Option<f64>>,
}

/// A part of the flows: the kind of division, the name of the part, and its numbers by column.
type Part = (&'static str, String, Vec<Option<f64>>);

/// The metrics in a table of parts: numbers of flows, and completion times.
fn metrics() -> impl Iterator<Item = (&'static Metric, &'static str)> {
    let own = |metric: &'static Metric| Some((metric, metric.key.strip_prefix("flows.")?));
    let shown = |(metric, _): &(&Metric, _)| metric.shown >= Shown::Page || metric.unit == Unit::Flows;
    Metric::listed().filter_map(own).filter(shown)
}

/// The columns of a table of parts.
pub(super) fn columns() -> Vec<Column> {
    metrics().map(|(metric, _)| Column::of(metric, 1)).collect()
}

/// Flows by size, by class if there are several classes, and by distance if some paths are much longer than others.
pub(super) fn parts(run: &Results) -> Vec<Part> {
    let summary = &run.summary;
    let numbers: BTreeMap<String, Option<f64>> =
        summary.numbers().into_iter().map(|(metric, value)| (metric.key, value.as_f64())).collect();
    let part = |kind, name: &str, key: &str| {
        let cell = |below| numbers.get(&format!("{key}.{below}")).copied().flatten();
        (kind, name.to_owned(), metrics().map(|(_, below)| cell(below)).collect())
    };
    let sizes = summary.flows.by_size.iter().map(|bucket| bucket.up_to_bytes.to_string());
    let sizes = sizes.map(|end| part("size", &end, &format!("flows.by_size.up_to_{end}")));
    let classes = Some(&summary.classes).filter(|classes| classes.len() > 1).into_iter().flatten();
    let classes = classes.map(|(name, _)| part("class", name, &format!("classes.{name}")));
    let distances = summary.flows.by_distance.as_ref().map(|_| ["near", "far"]).into_iter().flatten();
    let distances = distances.map(|name| part("distance", name, &format!("flows.by_distance.{name}")));
    sizes.chain(classes).chain(distances).collect()
}

/// The slowest flows.
#[derive(Debug, Serialize)]
pub(super) struct Slowest {
    rows: Vec<Slow>,
    /// Number of all flows.
    of: usize,
}

#[derive(Debug, Serialize)]
struct Slow {
    flow: u64,
    qp: u64,
    from: String,
    to: String,
    job: String,
    bytes: u64,
    start_us: Option<f64>,
    fct_us: Option<f64>,
    slowdown: Option<f64>,
    retransmitted: u64,
}

/// The distributions of all these runs' flows together, of at most `points` each.
pub(super) fn curves(runs: &[&Results], points: usize) -> Vec<Curve> {
    let of = |metric| {
        let tables = runs.iter().filter_map(|run| run.table("flows"));
        let all: Vec<f64> = tables.flat_map(|table| Frame::new(table).reals(metric)).collect();
        // Without finished flows there is no distribution.
        all.iter().any(|x| x.is_finite()).then(|| curve(metric, all, points))
    };
    ["fct_us", "slowdown"].into_iter().filter_map(of).collect()
}

/// A distribution of `all`, in which NaN is a flow that did not finish.
fn curve(metric: &'static str, all: Vec<f64>, points: usize) -> Curve {
    let flows = all.len();
    let mut values: Vec<f64> = all.into_iter().filter(|x| x.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let mut shown: Vec<(f64, f64)> = Vec::new();
    for rank in ranks(n, points) {
        let (value, share) = (values[rank], (rank + 1) as f64 / n as f64);
        match shown.last_mut() {
            Some(last) if last.0.total_cmp(&value).is_eq() => last.1 = share,
            _ => shown.push((value, share)),
        }
    }
    Curve {
        metric,
        flows: n,
        unfinished: flows - n,
        values: shown.iter().map(|(value, _)| short(*value)).collect(),
        shares: shown.iter().map(|(_, share)| short(*share)).collect(),
    }
}

/// At most `most` of the ranks `0..n`. A fifth of them is in the last hundredth, where tails differ.
fn ranks(n: usize, most: usize) -> Vec<usize> {
    if n <= most {
        return (0..n).collect();
    }
    let (body, tail) = (most * 4 / 5, most / 5);
    let mut ranks: Vec<usize> = (0..body).map(|i| i * n / body).collect();
    ranks.extend((1..=tail).map(|i| n - 1 - (tail - i) * (n / 100) / tail));
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// The flows with the largest slowdowns, after those that did not finish.
pub(super) fn slowest(run: &Results) -> Option<Slowest> {
    let table = Frame::new(run.table("flows")?);
    let slowdown = table.reals("slowdown");
    let mut order: Vec<usize> = (0..table.rows()).collect();
    let key = |&i: &usize| if slowdown[i].is_nan() { f64::INFINITY } else { slowdown[i] };
    // The sort is stable: among equals the flow with the lower number comes first.
    order.sort_by(|a, b| key(b).total_cmp(&key(a)));
    let (flow, qp, bytes) = (table.counts("flow"), table.counts("qp"), table.counts("bytes"));
    let (from, to, job) = (table.texts("from"), table.texts("to"), table.texts("job"));
    let (start, fct, again) = (table.reals("start_us"), table.reals("fct_us"), table.counts("retransmitted"));
    let row = |&i: &usize| Slow {
        flow: flow[i],
        qp: qp[i],
        from: from[i].to_owned(),
        to: to[i].to_owned(),
        job: job[i].to_owned(),
        bytes: bytes[i],
        start_us: short(start[i]),
        fct_us: short(fct[i]),
        slowdown: short(slowdown[i]),
        retransmitted: again[i],
    };
    Some(Slowest { rows: order.iter().take(SLOWEST).map(row).collect(), of: table.rows() })
}

/// Queue pairs by the slowdown of their slowest flow, the slowest first.
pub(super) fn slow_queue_pairs(run: &Results) -> Vec<u64> {
    let Some(table) = run.table("flows").map(Frame::new) else { return Vec::new() };
    let mut all: Vec<(u64, f64)> = table.counts("qp").into_iter().zip(table.reals("slowdown")).collect();
    // A flow that did not finish counts as the slowest.
    all.iter_mut().filter(|(_, s)| s.is_nan()).for_each(|(_, s)| *s = f64::INFINITY);
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut seen = std::collections::BTreeSet::new();
    all.into_iter().map(|(qp, _)| qp).filter(|qp| seen.insert(*qp)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_few_flows_are_shown_and_equal_ones_share_a_step() {
        let curve = curve("fct_us", vec![30.0, 10.0, f64::NAN, 10.0, 20.0], 100);
        assert_eq!(curve.values, [Some(10.0), Some(20.0), Some(30.0)]);
        assert_eq!(curve.shares, [Some(0.5), Some(0.75), Some(1.0)]);
        assert_eq!((curve.flows, curve.unfinished), (4, 1));
    }

    #[test]
    fn a_thousand_points_keep_the_tail_of_a_hundred_thousand_flows() {
        let n = 100_000;
        let curve = curve("slowdown", (0..n).map(|i| f64::from(n - i)).collect(), 1_000);
        assert!(curve.values.len() <= 1_000 && curve.values.len() > 900, "{}", curve.values.len());
        assert_eq!(curve.values.last(), Some(&Some(f64::from(n))));
        assert_eq!(curve.shares.last(), Some(&Some(1.0)));
        let tail = curve.shares.iter().flatten().filter(|share| **share > 0.99).count();
        assert!(tail > 150, "{tail} points above P99");
        for (value, share) in curve.values.iter().zip(&curve.shares) {
            let (value, share) = (value.unwrap(), share.unwrap());
            assert!(
                (value / f64::from(n) - share).abs() < 1e-5,
                "the point ({value}, {share}) is on the line"
            );
        }
    }
}
