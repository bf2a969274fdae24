//! Chosen queue pairs, links and switches over time.

use super::super::frame::{Frame, short};
use super::flows;
use results::Results;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Most queue pairs in the menu. Our choice.
const QUEUE_PAIRS: usize = 24;
/// Most links, and most switches, in the menu. Our choice.
const OTHERS: usize = 12;
/// Fewest bins of a line. Our choice.
const FEWEST_BINS: usize = 12;

/// How several bins are merged into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merge {
    Sum,
    Most,
    Mean,
    Last,
}

/// Columns of `series.parquet` that are shown, and how their bins are merged.
const COLUMNS: [(&str, Merge); 13] = [
    ("rate_gbps", Merge::Mean),
    ("packets", Merge::Sum),
    ("retransmitted", Merge::Sum),
    ("out_of_order", Merge::Sum),
    ("nacks", Merge::Sum),
    ("cnps", Merge::Sum),
    ("epsn", Merge::Last),
    ("out_of_order_depth", Merge::Most),
    ("max_queue_bytes", Merge::Most),
    ("max_buffer_bytes", Merge::Most),
    ("pauses", Merge::Sum),
    ("lost", Merge::Sum),
    ("timeouts", Merge::Sum),
];

/// Tracks over time, all with the same bins.
#[derive(Debug, Serialize)]
pub(crate) struct Series {
    /// Width of a bin, us; bin `i` begins at `i * width_us`.
    pub(crate) width_us: f64,
    /// Number of bins.
    bins: usize,
    /// Number of recorded bins in one of these bins.
    merged: usize,
    /// Number of recorded tracks by kind.
    recorded: BTreeMap<String, usize>,
    pub(crate) tracks: Vec<Track>,
}

/// A queue pair, link or switch.
#[derive(Debug, Serialize)]
pub(crate) struct Track {
    /// `qp`, `link` or `switch`; `qps` is the mean over all recorded queue pairs.
    pub(crate) kind: String,
    pub(crate) id: u64,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Columns with numbers above 0.
    pub(crate) columns: BTreeMap<&'static str, Vec<Option<f64>>>,
}

/// Rows of one track, which are consecutive.
pub(super) struct Rows {
    pub(super) kind: String,
    pub(super) id: u64,
    pub(super) rows: std::ops::Range<usize>,
}

/// The tracks of a table, in its order.
pub(super) fn tracks(table: Frame<'_>) -> Vec<Rows> {
    let (kinds, ids) = (table.texts("kind"), table.counts("id"));
    let mut all: Vec<Rows> = Vec::new();
    for row in 0..table.rows() {
        match all.last_mut() {
            Some(last) if last.kind == kinds[row] && last.id == ids[row] => last.rows.end = row + 1,
            _ => all.push(Rows { kind: kinds[row].to_owned(), id: ids[row], rows: row..row + 1 }),
        }
    }
    all
}

/// The series of a run, of at most about `cells` numbers.
pub(crate) fn of(run: &Results, cells: usize) -> Option<Series> {
    let table = Frame::new(run.table("series")?);
    let all = tracks(table);
    let length = all.iter().map(|t| t.rows.len()).max()?;
    let width = table.reals("width_us").first().copied().filter(|w| *w > 0.0)?;
    let mut recorded = BTreeMap::new();
    for track in &all {
        *recorded.entry(track.kind.clone()).or_insert(0) += 1;
    }
    let columns: Vec<(&'static str, Merge, Vec<f64>)> = COLUMNS
        .iter()
        .filter(|(name, _)| table.has(name))
        .map(|&(name, merge)| (name, merge, table.reals(name)))
        .filter(|(_, _, values)| values.iter().any(|x| *x > 0.0))
        .collect();
    let chosen = chosen(run, &all, &columns);
    // About half of the columns apply to a track.
    let each = (chosen.len() + 1) * columns.len().div_ceil(2).max(1);
    let most = (cells / each).max(FEWEST_BINS);
    let merged = length.div_ceil(most).max(1);
    let bins = length.div_ceil(merged);
    let (from, to) = (table.texts("from"), table.texts("to"));
    let track = |rows: &Rows| Track {
        kind: rows.kind.clone(),
        id: rows.id,
        from: from[rows.rows.start].to_owned(),
        to: to[rows.rows.start].to_owned(),
        columns: columns
            .iter()
            .map(|(name, merge, values)| (*name, fold(&values[rows.rows.clone()], merged, *merge)))
            .filter(|(_, values)| values.iter().any(|x| *x > 0.0))
            .map(|(name, values)| (name, values.into_iter().map(short).collect()))
            .collect(),
    };
    let mut tracks = Vec::new();
    let qps: Vec<&Rows> = all.iter().filter(|t| t.kind == "qp").collect();
    if !qps.is_empty() {
        tracks.push(mean(&qps, &columns, merged, bins));
    }
    tracks.extend(chosen.into_iter().map(track));
    Some(Series { width_us: width * merged as f64, bins, merged, recorded, tracks })
}

/// The queue pairs with the slowest flows; the links that lost most, then those with the longest queues; the switches with the fullest
/// buffers.
fn chosen<'a>(run: &Results, all: &'a [Rows], columns: &[(&str, Merge, Vec<f64>)]) -> Vec<&'a Rows> {
    let slow = flows::slow_queue_pairs(run);
    let place: BTreeMap<u64, usize> = slow.into_iter().enumerate().map(|(i, qp)| (qp, i)).collect();
    let peak = |track: &Rows| {
        let of = |wanted: &[&str]| {
            let values = columns.iter().filter(|(name, _, _)| wanted.contains(name));
            values.flat_map(|(_, _, v)| &v[track.rows.clone()]).copied().fold(0.0, f64::max)
        };
        [of(&["lost"]), of(&["max_queue_bytes", "max_buffer_bytes"]), of(&["rate_gbps", "pauses"])]
    };
    let mut chosen = Vec::new();
    for (kind, most) in [("qp", QUEUE_PAIRS), ("link", OTHERS), ("switch", OTHERS)] {
        let mut of_kind: Vec<&Rows> = all.iter().filter(|t| t.kind == kind).collect();
        match kind {
            "qp" => of_kind.sort_by_key(|t| place.get(&t.id).copied().unwrap_or(usize::MAX)),
            _ => of_kind.sort_by(|a, b| {
                let each = peak(b).into_iter().zip(peak(a)).map(|(b, a)| b.total_cmp(&a));
                each.fold(Ordering::Equal, Ordering::then)
            }),
        }
        chosen.extend(of_kind.into_iter().take(most));
    }
    chosen
}

/// The mean over queue pairs, which can be compared with a single one.
fn mean(qps: &[&Rows], columns: &[(&'static str, Merge, Vec<f64>)], merged: usize, bins: usize) -> Track {
    let mut of = BTreeMap::new();
    for (name, merge, values) in columns.iter().filter(|(name, _, _)| *name != "epsn") {
        let mut sums = vec![0.0; bins];
        for track in qps {
            for (sum, x) in sums.iter_mut().zip(fold(&values[track.rows.clone()], merged, *merge)) {
                *sum += x;
            }
        }
        if sums.iter().any(|x| *x > 0.0) {
            of.insert(*name, sums.into_iter().map(|x| short(x / qps.len() as f64)).collect());
        }
    }
    let (from, to) = (String::new(), String::new());
    Track { kind: "qps".into(), id: qps.len() as u64, from, to, columns: of }
}

/// Merges every `merged` bins into one.
fn fold(values: &[f64], merged: usize, merge: Merge) -> Vec<f64> {
    let one = |bins: &[f64]| {
        let mut known = bins.iter().copied().filter(|x| x.is_finite());
        match merge {
            Merge::Sum => known.sum(),
            Merge::Most => known.fold(0.0, f64::max),
            Merge::Mean => known.sum::<f64>() / bins.len() as f64,
            Merge::Last => known.next_back().unwrap_or(0.0),
        }
    };
    values.chunks(merged.max(1)).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_bins_keep_sums_peaks_and_means() {
        let bins = [1.0, 3.0, 5.0, f64::NAN, 4.0];
        assert_eq!(fold(&bins, 2, Merge::Sum), [4.0, 5.0, 4.0]);
        assert_eq!(fold(&bins, 2, Merge::Most), [3.0, 5.0, 4.0]);
        assert_eq!(fold(&bins, 2, Merge::Mean), [2.0, 2.5, 4.0]);
        assert_eq!(fold(&bins, 2, Merge::Last), [3.0, 5.0, 4.0]);
    }
}
