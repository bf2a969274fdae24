//! The table of the page: what each run comes to.

use super::super::frame::short;
use super::question::{same_work, workloads};
use super::{Group, complete, real};
use results::Results;
use results::stats::{extremes, mean, share};
use serde::Serialize;
use toml::{Table, Value as Toml};

/// A table of numbers.
#[derive(Debug, Serialize)]
pub(super) struct Numbers {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Column {
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    /// 1 where more is better, -1 where less is, 0 where neither.
    better: i8,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    scheme: String,
    complete: bool,
    #[serde(flatten)]
    over: OverSeeds,
}

/// The numbers of runs that differ in their seed only.
#[derive(Debug, Serialize)]
pub(super) struct OverSeeds {
    pub(super) runs: usize,
    /// Means, by column.
    pub(super) cells: Vec<Option<f64>>,
    /// Least and most, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ranges: Vec<Option<(f64, f64)>>,
}

impl OverSeeds {
    /// Of so many runs, from their numbers by column; one that is missing at one seed has no mean.
    pub(super) fn of(runs: usize, columns: &[Option<Vec<f64>>]) -> Self {
        let range = |v: &Option<Vec<f64>>| {
            extremes(v.as_ref()?).map(|(a, b)| (short(a).unwrap_or(a), short(b).unwrap_or(b)))
        };
        OverSeeds {
            runs,
            cells: columns.iter().map(|v| v.as_ref().and_then(|v| mean(v)).and_then(short)).collect(),
            ranges: if runs > 1 { columns.iter().map(range).collect() } else { Vec::new() },
        }
    }
}

/// Whether a column says anything: it is not 0 everywhere. That there is no disorder says something.
pub(super) fn tells(name: &str, mut all: impl Iterator<Item = f64>) -> bool {
    matches!(name, "out of order" | "sent again" | "spurious") || all.any(|x| x > 0.0)
}

pub(super) type Measure = fn(&Results) -> Option<f64>;

/// Columns: name, unit, meaning, which way is better, and where it comes from.
const COLUMNS: [(&str, &str, &str, i8, Measure); 13] = [
    (
        "slowest group",
        "µs",
        "from the job's start until the last rank of its slowest group has all its data",
        -1,
        slowest_group,
    ),
    (
        "FCT, median",
        "µs",
        "flow completion time: from a flow's start to the ACK of its last byte",
        -1,
        |r| of(r, "/flows/fct_us/p50"),
    ),
    ("FCT, P99", "µs", "99 of 100 flows take no longer", -1, |r| of(r, "/flows/fct_us/p99")),
    ("slowdown, mean", "x", "FCT / FCT of the flow alone on the fabric", -1, |r| {
        of(r, "/flows/slowdown/mean")
    }),
    ("slowdown, P99", "x", "99 of 100 flows are slowed down no more", -1, |r| of(r, "/flows/slowdown/p99")),
    ("goodput, mean", "Gb/s", "payload bits / FCT, mean over flows", 1, |r| of(r, "/goodput_gbps/mean")),
    ("out of order", "%", "packets that arrived with a PSN above the expected one / packets sent", -1, |r| {
        part(r, "out_of_order")
    }),
    ("sent again", "%", "retransmissions / packets sent", -1, |r| part(r, "retransmitted")),
    (
        "spurious",
        "%",
        "retransmissions that nobody needed (the packet had not been lost) / packets sent",
        -1,
        |r| part(r, "spurious"),
    ),
    (
        "dropped",
        "packets",
        "data packets dropped for lack of buffer, lost on links or dropped by the scheme",
        -1,
        dropped,
    ),
    ("NACKs", "", "NACKs that receivers sent", 0, |r| of(r, "/control/nack")),
    ("CNPs", "", "congestion notifications that receivers or switches sent", 0, |r| of(r, "/control/cnp")),
    ("pauses", "", "PFC pause frames", -1, |r| of(r, "/control/pause")),
];

/// A number of the summary.
pub(super) fn of(run: &Results, path: &str) -> Option<f64> {
    real(&run.summary, path)
}

fn packets(run: &Results, what: &str) -> Option<u64> {
    run.summary.pointer(&format!("/packets/{what}"))?.as_u64()
}

/// Packets of a kind, in per cent of all that were sent.
fn part(run: &Results, what: &str) -> Option<f64> {
    Some(100.0 * share(packets(run, what)?, packets(run, "sent")?))
}

fn dropped(run: &Results) -> Option<f64> {
    let kinds = ["dropped_buffer", "dropped_link", "dropped_scheme"];
    Some(kinds.iter().filter_map(|kind| packets(run, kind)).map(|n| n as f64).sum())
}

/// End of the slowest group over all foreground jobs that have groups by design (collectives do), us; none if there are none,
/// or one did not finish. Elsewhere a group is all of a job, and its end says no more than the FCT.
pub(super) fn slowest_group(run: &Results) -> Option<f64> {
    let grouped = |entry: &Table| entry.values().any(|kind| kind.get("groups").is_some());
    let background = |entry: &Table| entry.get("background").and_then(Toml::as_bool).unwrap_or(false);
    let jobs = workloads(run).filter(|entry| grouped(entry) && !background(entry));
    let end = |entry: Table| {
        let job = run.summary.get("jobs")?.get(entry.get("name")?.as_str()?)?;
        real(job, "/groups/completion_us/slowest")
    };
    jobs.map(end).collect::<Option<Vec<f64>>>()?.into_iter().max_by(f64::total_cmp)
}
/// The table: a row for each group; columns that are empty or 0 everywhere are left out, but for those of disorder.
pub(super) fn table(groups: &[Group<'_>]) -> Numbers {
    let values = |measure: Measure, group: &Group<'_>| -> Option<Vec<f64>> {
        group.runs.iter().map(|run| measure(run)).collect()
    };
    let says = |column: &(&str, &str, &str, i8, Measure)| {
        let all: Vec<f64> = groups.iter().filter_map(|g| values(column.4, g)).flatten().collect();
        !all.is_empty() && tells(column.0, all.into_iter())
    };
    let columns: Vec<_> = COLUMNS.iter().filter(|column| says(column)).collect();
    let row = |group: &Group<'_>| {
        let all: Vec<Option<Vec<f64>>> = columns.iter().map(|column| values(column.4, group)).collect();
        Row {
            name: group.name.clone(),
            scheme: group.scheme().to_owned(),
            complete: group.runs.iter().all(|run| complete(run)),
            over: OverSeeds::of(group.runs.len(), &all),
        }
    };
    // Of what had different work to do none is best.
    let marked = i8::from(same_work(groups));
    let column = |&&(name, unit, about, better, _): &&(_, _, _, i8, _)| Column {
        name,
        unit,
        about,
        better: better * marked,
    };
    Numbers { rows: groups.iter().map(row).collect(), columns: columns.iter().map(column).collect() }
}
