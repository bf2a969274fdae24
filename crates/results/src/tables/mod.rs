//! The tables of a run, one file per table, and the [names of events](event_names).

pub mod counters;
pub mod critical;
pub mod event_names;
pub mod events;
pub mod flows;
pub mod links;
pub mod nics;
pub mod operations;
pub mod paths;
pub mod queues;
pub mod requests;
pub mod series;
pub mod shares;
pub mod steps;
pub mod subflows;
pub mod tasks;
pub mod transfers;

use crate::data::RunData;
use crate::table::Table;

/// Makes a table of a run; `None` if the run did not record it.
type Make = fn(RunData<'_>) -> Option<Table>;

/// The tables of a run: the name of each file, and the function that makes the table.
pub const TABLES: [(&str, Make); 17] = [
    ("flows", |run| Some(flows::table(run))),
    ("subflows", subflows::table),
    ("links", |run| Some(links::table(run))),
    ("nics", |run| Some(nics::table(run))),
    ("queues", queues::table),
    ("series", |run| Some(series::table(run))),
    ("counters", counters::table),
    ("events", events::table),
    ("paths", paths::table),
    ("requests", requests::table),
    ("transfers", transfers::table),
    ("shares", shares::table),
    ("operations", operations::table),
    ("tasks", tasks::table),
    ("critical", critical::table),
    ("steps", steps::table),
    ("timeline", steps::timeline),
];
