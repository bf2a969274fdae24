//! The results of a run: what was counted, as a summary, as tables, and as a directory on disk.
//!
//! | file | what it holds |
//! |---|---|
//! | [`metrics`] | the table of metrics: each number of a run, its meaning and how it is read |
//! | [`summary`] | the summary of a run: the JSON contract |
//! | [`flows`] | completion times and slowdown of flows, by size and by distance |
//! | [`digest`] | one number for everything that a run did |
//! | [`stats`] | means and percentiles |
//! | [`tables`] | the tables of a run, one file each |
//! | [`table`] | columns with a meaning and a unit, as Parquet or CSV |
//! | [`json`] | JSON files |
//! | [`manifest`] | the configuration of a run, and what is needed to run it again |
//! | [`directory`] | the place of results on disk, replaced as a whole or not at all |
//! | [`checksum`] | sizes and checksums of files |
//! | [`stored`] | results on disk: the one place where they are opened, and each file compared with its checksum |
//! | [`comparison`] | the directory of a comparison, and metrics over seeds |
//! | [`kind`] | the kinds of directories, and the files by which they are known |
//! | [`data`] | the raw material of summary and tables |
//! | [`mod@results`] | the results of a run, fresh from the engine or read from disk |
//! | [`faults`] | why a simulation failed, in words |
//! | [`stall`] | why a run stopped moving, in words |
//! | [`memory`] | which packets and records took the memory of a run, in words |
//! | [`text`] | numbers and tables as people read them |
//! | [`testing`] | a plan and an outcome made by hand, for tests of this and other crates |
//!
//! A result directory holds:
//!
//! | file | content |
//! |---|---|
//! | `summary.json` | the [`Summary`] |
//! | `manifest.json` | the [manifest] |
//! | `flows.parquet` | one row per flow, see [`tables::flows`] |
//! | `subflows.parquet` | one row per subflow of the flows that were split, see [`tables::subflows`] |
//! | `links.parquet` | one row per direction of a link, see [`tables::links`] |
//! | `nics.parquet` | one row per port of a NIC, see [`tables::nics`] |
//! | `queues.parquet` | one row per queue of a port of a switch, see [`tables::queues`] |
//! | `series.parquet` | queue pairs, links and switches over time, see [`tables::series`] |
//! | `counters.parquet` | the scheme's counters over time, see [`tables::counters`] |
//! | `events.parquet` | single events of recorded queue pairs, see [`tables::events`] |
//! | `paths.parquet` | the links that recorded queue pairs took, and the queues there, see [`tables::paths`] |
//! | `requests.parquet` | one row per request of inference serving, see [`tables::requests`] |
//! | `transfers.parquet` | one row per transfer of KV, see [`tables::transfers`] |
//! | `shares.parquet` | whose bytes the links of NICs carried, see [`tables::shares`] |
//! | `operations.parquet` | one row per collective, transfer or computation, see [`tables::operations`] |
//! | `tasks.parquet` | what every GPU did and when, see [`tables::tasks`] |
//! | `critical.parquet` | the critical path of every step, see [`tables::critical`] |
//! | `steps.parquet`, `timeline.parquet` | how every GPU spent each step, and each part of the time, see [`tables::steps`] |
//! | `capture-NAME.pcapng` | the frames that passed a link, see the crate `capture` |
//!
//! `subflows` is written only if flows are split. The tables from `counters` to `paths` and the captures are written only if `[record]` asks for them, and the five tables from `operations` on
//! only if the workload has GPUs that compute or collectives. For the same scenario and seed every byte is the same, except
//! `timing` in `summary.json`.

pub mod caution;
pub mod checksum;
pub mod comparison;
mod critical;
pub mod data;
pub mod digest;
pub mod directory;
mod ended_by;
pub mod error;
mod failovers;
pub mod faults;
pub mod flows;
pub mod json;
pub mod kind;
pub mod manifest;
pub mod memory;
mod operations;
mod outages;
#[macro_use]
pub mod metrics;
pub mod patterns;
pub mod results;
pub mod stall;
pub mod stats;
pub mod stored;
pub mod summary;
pub mod table;
pub mod tables;
pub mod testing;
pub mod text;
pub mod whole;

pub use data::RunData;
pub use error::ResultsError;
pub use metrics::{METRICS, Metric};
pub use results::Results;
pub use summary::Summary;
