//! `paths.parquet`: the links of switches that the data of followed queue pairs took, and the queues there.

use crate::data::RunData;
use crate::table::{Column, Table};
use engine::outcome::Hop;
use model::Time;

/// The table of paths, if any queue pair was followed.
pub fn table(run: RunData<'_>) -> Option<Table> {
    let (plan, hops) = (run.plan, &run.outcome.notes.hops);
    if plan.record.follow.is_empty() {
        return None;
    }
    let link = |hop: &Hop| &plan.fabric.links()[hop.link.index()];
    let name = |node| plan.fabric.name(node).to_owned();
    let columns = vec![
        Column::count("qp", "-", "queue pair", hops.iter().map(|h| h.qp.0.into())),
        Column::count(
            "link",
            "-",
            "number of the link: its row in links.parquet",
            hops.iter().map(|h| h.link.0.into()),
        ),
        Column::text("from", "switch that sends", hops.iter().map(|h| name(link(h).from))),
        Column::count("port", "-", "port of the switch", hops.iter().map(|h| link(h).port.0.into())),
        Column::text("to", "node that receives", hops.iter().map(|h| name(link(h).to))),
        Column::real(
            "rate_gbps",
            "Gb/s",
            "rate of the link; the mean over the run if a failure slows it",
            hops.iter().map(|h| {
                let rate = plan.failures.mean_rate(&plan.fabric, h.link, Time::ZERO, run.outcome.end);
                Some(rate / 1e9)
            }),
        ),
        Column::count(
            "packets",
            "packets",
            "data packets of the queue pair that took this link",
            hops.iter().map(|h| h.packets),
        ),
        Column::real(
            "mean_queue_bytes",
            "B",
            "data that waited at the port when a packet came, mean",
            hops.iter().map(|h| Some(h.queue as f64 / h.packets.max(1) as f64)),
        ),
        Column::count(
            "max_queue_bytes",
            "B",
            "most data that waited there when a packet came",
            hops.iter().map(|h| h.most),
        ),
    ];
    Some(Table::new(columns, 1))
}
