//! `series.parquet`: chosen queue pairs and links over time, one row per bin.

use super::Run;
use super::table::{Column, Table};
use crate::summary::gbps;
use engine::outcome::{Track, TrackOf};
use model::Time;

/// The table of series.
pub fn table(run: Run<'_>) -> Table {
    let (plan, series) = (run.plan, &run.outcome.series);
    let rows = || series.tracks.iter().flat_map(|t| (0..t.bytes.len()).map(move |bin| (t, bin)));
    let kind = |(t, _): (&Track, usize)| match t.of {
        TrackOf::Qp(_) => "qp".to_owned(),
        TrackOf::Link(_) => "link".to_owned(),
    };
    let id = |(t, _): (&Track, usize)| match t.of {
        TrackOf::Qp(qp) => qp.0.into(),
        TrackOf::Link(link) => link.0.into(),
    };
    let ends = |t: &Track| match t.of {
        TrackOf::Qp(qp) => {
            let qp = &plan.qps[qp.index()];
            (qp.from.node(), qp.to.node())
        }
        TrackOf::Link(link) => {
            let link = &plan.fabric.links()[link.index()];
            (link.from, link.to)
        }
    };
    let name = |node| plan.fabric.name(node).to_owned();
    let start = |(_, bin): (&Track, usize)| Some(Time(series.width.ps() * bin as u64).as_us());
    let rate = |(t, bin): (&Track, usize)| (series.width.ps() > 0).then(|| gbps(t.bytes[bin], series.width));
    let cell = |column: &[u64], bin: usize| column.get(bin).copied().unwrap_or(0);
    let columns = vec![
        Column::text("kind", "qp or link", rows().map(kind)),
        Column::count("id", "-", "number of the queue pair or link", rows().map(id)),
        Column::text("from", "sending host or node", rows().map(|(t, _)| name(ends(t).0))),
        Column::text("to", "receiving host or node", rows().map(|(t, _)| name(ends(t).1))),
        Column::real("start_us", "us", "start of the bin", rows().map(start)),
        Column::real("width_us", "us", "width of the bin", rows().map(|_| Some(series.width.as_us()))),
        Column::count(
            "bytes",
            "B",
            "put on the wire, preambles and gaps included",
            rows().map(|(t, bin)| t.bytes[bin]),
        ),
        Column::real("rate_gbps", "Gb/s", "bytes over the width of the bin", rows().map(rate)),
        Column::count("packets", "packets", "put on the wire", rows().map(|(t, bin)| cell(&t.packets, bin))),
        Column::count(
            "retransmitted",
            "packets",
            "of these sent again (queue pairs)",
            rows().map(|(t, bin)| cell(&t.retransmitted, bin)),
        ),
        Column::count(
            "out_of_order",
            "packets",
            "arrived with a PSN above ePSN (queue pairs)",
            rows().map(|(t, bin)| cell(&t.out_of_order, bin)),
        ),
        Column::count(
            "max_queue_bytes",
            "B",
            "longest queue (links)",
            rows().map(|(t, bin)| cell(&t.max_queue, bin)),
        ),
    ];
    Table::new(columns, 1)
}
