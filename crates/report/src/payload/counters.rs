//! Counters of the scheme and of the NICs, at the end and over time.

use super::super::frame::{Frame, short};
use results::Results;
use serde::Serialize;

/// Most points of a counter over time. Our choice, by the width of a chart.
const POINTS: usize = 200;

/// Counters.
#[derive(Debug, Default, Serialize)]
pub(super) struct Counters {
    /// Name and count of each counter of the scheme.
    scheme: Vec<(String, u64)>,
    /// Name and count of control packets.
    control: Vec<(String, u64)>,
    /// Counters over time; empty if they were not recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    over_time: Vec<Track>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Track {
    name: String,
    at_us: Vec<Option<f64>>,
    values: Vec<Option<f64>>,
}

/// The counters of a run.
pub(super) fn of(run: &Results) -> Counters {
    let numbers = run.summary.numbers();
    let counts = |section: &str| {
        let below = numbers.iter().filter_map(|(metric, n)| Some((metric.key.strip_prefix(section)?, n)));
        below.filter_map(|(name, n)| Some((name.to_owned(), n.as_u64()?))).collect()
    };
    let over_time = run.table("counters").map(Frame::new).map_or_else(Vec::new, tracks);
    Counters { scheme: counts("counters."), control: counts("control."), over_time }
}

fn tracks(table: Frame<'_>) -> Vec<Track> {
    let (names, start, width) = (table.texts("counter"), table.reals("start_us"), table.reals("width_us"));
    let values = table.reals("total");
    let mut order: Vec<&str> = Vec::new();
    for name in &names {
        if !order.contains(name) {
            order.push(name);
        }
    }
    let track = |name: &&str| {
        let rows: Vec<usize> = (0..names.len()).filter(|&i| names[i] == *name).collect();
        // Counters are cumulative, so leaving out points does not change the others. The last point is always kept.
        let every = rows.len().div_ceil(POINTS).max(1);
        let kept: Vec<usize> = rows.iter().rev().step_by(every).rev().copied().collect();
        Track {
            name: (*name).to_owned(),
            at_us: kept.iter().map(|&i| short(start[i] + width[i])).collect(),
            values: kept.iter().map(|&i| short(values[i])).collect(),
        }
    };
    order.iter().map(track).collect()
}
