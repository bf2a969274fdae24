//! The tables of a run, one file each.

pub mod counters;
pub mod events;
pub mod flows;
pub mod links;
pub mod paths;
pub mod series;

use crate::data::RunData;
use crate::table::Table;

/// Makes a table of a run, if it has anything for it.
type Make = fn(RunData<'_>) -> Option<Table>;

/// The tables that a run may have, by name: a file each.
pub const TABLES: [(&str, Make); 6] = [
    ("flows", |run| Some(flows::table(run))),
    ("links", |run| Some(links::table(run))),
    ("series", |run| Some(series::table(run))),
    ("counters", counters::table),
    ("events", events::table),
    ("paths", paths::table),
];
