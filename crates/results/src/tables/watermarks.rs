//! `priority_groups.parquet` and `pools.parquet`: the most room that packets have taken in each switch, if the run records queues.

use crate::data::RunData;
use crate::table::{Column, Table};
use engine::outcome::{PriorityRoom, Room};

type Count = (&'static str, &'static str, fn(&Room) -> u64);

const ROOM: [Count; 2] = [
    (
        "max_shared_bytes",
        "most bytes outside headroom at one time; of a lossless priority, those above its guarantee",
        |room| room.shared,
    ),
    ("max_headroom_bytes", "most bytes of headroom at one time; with credits, of credits in use", |room| {
        room.headroom
    }),
];

/// The table of priority groups: one row per priority of a link that arrives at a switch.
pub fn priority_groups(run: RunData<'_>) -> Option<Table> {
    if !run.plan.record.queues {
        return None;
    }
    let fabric = &run.plan.fabric;
    let rows = || run.outcome.watermarks.iter().flat_map(|switch| &switch.priorities);
    let link = |one: &PriorityRoom| fabric.links()[one.link.index()];
    let mut columns = vec![
        Column::text("node", "switch", rows().map(|one| fabric.name(link(one).to).to_owned())),
        Column::count("port", "-", "port of the switch", rows().map(|one| link(one).peer_port.0.into())),
        Column::text("from", "node that sends", rows().map(|one| fabric.name(link(one).from).to_owned())),
        Column::count(
            "priority",
            "-",
            "priority that pauses by itself, numbered as in `pauses_p0` of links.parquet",
            rows().map(|one| one.priority.into()),
        ),
    ];
    let room =
        |(key, about, count): &Count| Column::count(key, "B", about, rows().map(|one| count(&one.most)));
    columns.extend(ROOM.iter().map(room));
    Some(Table::new(columns, 1))
}

/// The table of pools: one row per switch.
pub fn pools(run: RunData<'_>) -> Option<Table> {
    if !run.plan.record.queues {
        return None;
    }
    let rows = || run.outcome.watermarks.iter();
    let names = rows().map(|one| run.plan.fabric.name(one.switch).to_owned());
    let mut columns = vec![Column::text("node", "switch", names)];
    let room =
        |(key, about, count): &Count| Column::count(key, "B", about, rows().map(|one| count(&one.all)));
    columns.extend(ROOM.iter().map(room));
    Some(Table::new(columns, 1))
}
