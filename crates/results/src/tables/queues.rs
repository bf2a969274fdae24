//! `queues.parquet`: one row per queue of a port of a switch, if the run records them.

use crate::data::RunData;
use crate::table::{Column, Table};
use crate::tables::event_names;
use engine::outcome::QueueRecord;
use model::Kind;

/// Name, unit and meaning of a column, and its count.
type Count = (&'static str, &'static str, &'static str, fn(&QueueRecord) -> u64);

const COUNTS: [Count; 5] = [
    ("frames", "packets", "frames that left", |one| one.counts.frames),
    ("bytes", "B", "their bytes, without preambles and gaps", |one| one.counts.bytes),
    ("drops", "packets", "packets dropped for lack of buffer", |one| one.counts.drops),
    ("marks", "packets", "packets marked", |one| one.counts.marks),
    ("max_queue_bytes", "B", "most bytes that waited, without the frame on the wire", |one| {
        one.counts.longest
    }),
];

/// The table of queues.
pub fn table(run: RunData<'_>) -> Option<Table> {
    if !run.plan.record.queues {
        return None;
    }
    let (fabric, classes) = (&run.plan.fabric, run.plan.classes.all());
    let rows = || run.outcome.queues.iter();
    let link = |one: &QueueRecord| fabric.links()[one.link.index()];
    let kinds = |one: &QueueRecord| {
        let kinds = Kind::ALL.iter().filter(|kind| classes[usize::from(one.class)].kinds.has(**kind));
        kinds.map(|kind| event_names::kind(*kind)).collect::<Vec<_>>().join(" ")
    };
    let mut columns = vec![
        Column::text("from", "switch that sends", rows().map(|one| fabric.name(link(one).from).to_owned())),
        Column::count("port", "-", "port of the switch", rows().map(|one| link(one).port.0.into())),
        Column::text("to", "node that receives", rows().map(|one| fabric.name(link(one).to).to_owned())),
        Column::count(
            "queue",
            "-",
            "number of the queue in the order of `switch.classes` or `switch.dscp-map`, without queues that no packet takes",
            rows().map(|one| one.class.into()),
        ),
        Column::text("kinds", "kinds of its packets", rows().map(kinds)),
    ];
    columns.extend(
        COUNTS.iter().map(|(key, unit, about, count)| Column::count(key, unit, about, rows().map(count))),
    );
    Some(Table::new(columns, 1))
}
