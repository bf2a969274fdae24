//! `counters.parquet`: the scheme's counters over time, one row per counter and bin.

use crate::data::RunData;
use crate::table::{Column, Table};
use model::Time;

/// The table of counters, if they were recorded and there are any.
pub fn table(run: RunData<'_>) -> Option<Table> {
    let recording = &run.outcome.recording;
    let counters = &recording.counters;
    if counters.is_empty() {
        return None;
    }
    let rows = || counters.iter().flat_map(|(name, bins)| (0..bins.len()).map(move |bin| (*name, bins, bin)));
    let columns = vec![
        Column::text(
            "counter",
            "name of the counter, as under `counters` in summary.json",
            rows().map(|(name, ..)| name.to_owned()),
        ),
        Column::real(
            "start_us",
            "us",
            "start of the bin",
            rows().map(|(_, _, bin)| Some(Time(recording.width.ps() * bin as u64).as_us())),
        ),
        Column::real("width_us", "us", "width of the bin", rows().map(|_| Some(recording.width.as_us()))),
        Column::count(
            "total",
            "-",
            "count from the start of the run to the end of the bin",
            rows().map(|(_, bins, bin)| bins[bin]),
        ),
        Column::count(
            "count",
            "-",
            "count in the bin",
            rows().map(|(_, bins, bin)| {
                bins[bin].saturating_sub(bin.checked_sub(1).map_or(0, |before| bins[before]))
            }),
        ),
    ];
    Some(Table::new(columns, 1))
}
