//! The counts of a run under the names that operators see, and a dump of counters beside them.
//!
//! `names.tsv` has a row per counter: view, scope, name, the count of ropewalk, the counter whose share it is, unit, meaning, and the
//! source of the name or the reason why ropewalk has no such count. A `#` in a name stands for the number of a priority. The count is a
//! column of `nics.parquet` (`nics.cnps_sent`), or of `links.parquet` for the link that leaves a port (`out.pauses`) or arrives there
//! (`in.pauses`). In runs that record queues it may be one of `queues.parquet`, `priority_groups.parquet` (`groups.`) or `pools.parquet`.
//! `run.` stands for the counters of schemes in `summary.json`. The scope says what has the counter: a `nic`, a `port`, a `switch`, a
//! `queue` or priority `group` of a port, or the whole `run`. No code knows a vendor.
//!
//! | file | content |
//! |---|---|
//! | `ports` | counts by port, from the tables of a run |
//! | `details` | counts by queue and by priority group |
//! | `dump`, `lines` | what tools print |
//! | [`mod@compare`] | a dump beside a run |
//! | `text` | both as text |

#![forbid(unsafe_code)]

pub mod compare;
mod details;
mod dump;
mod lines;
mod ports;
mod text;

pub use compare::{Beside, Comparison, compare};
pub use details::{Count, Details, Part};

use finding::{Finding, code, suggestion};
use ports::Port;
use results::Results;
use serde::Serialize;
use std::collections::BTreeSet;

const NAMES: &str = include_str!("names.tsv");

/// A row of the table of names.
#[derive(Clone, Copy, Debug)]
struct Name {
    view: &'static str,
    scope: &'static str,
    counter: &'static str,
    /// The count of ropewalk; `None` if it has none.
    of: Option<&'static str>,
    /// The counter whose share this one is.
    per: Option<&'static str>,
    unit: &'static str,
    about: &'static str,
    /// Source of the name, or why ropewalk has no such count.
    source: &'static str,
}

impl Name {
    /// The row in a run with credits, if `credits` says why such a run lacks counts of pauses, and in one that has not recorded queues.
    fn beside(self, credits: Option<&'static str>, has_queues: bool) -> Self {
        let (table, column) = self.of.and_then(|of| of.split_once('.')).unwrap_or_default();
        let lacks = |why| Name { of: None, per: None, source: why, ..self };
        match credits {
            _ if RECORDED.contains(&table) && !has_queues => lacks("`record.queues = true` counts it"),
            Some(why) if PAUSES.contains(&column) => lacks(why),
            Some(_) if column == HEADROOM => lacks("credits in place of headroom"),
            _ => self,
        }
    }
}

/// The part of a path that stands for the counters of schemes.
const OF_RUN: &str = "run.";

impl Name {
    /// The row beside the counters of the run's scheme, which are those of all switches together.
    fn beside_scheme(self, results: &Results, at: Option<&str>) -> Self {
        let Some(counter) = self.of.and_then(|of| of.strip_prefix(OF_RUN)) else { return self };
        let why = match results.summary.counters.contains_key(counter) {
            true if at.is_none() => return self,
            true => "counted for all switches together",
            false => "the run's scheme does not count it",
        };
        Name { of: None, per: None, source: why, ..self }
    }
}

/// Tables of runs that record queues, as `names.tsv` calls them.
const RECORDED: [&str; 3] = ["queues", "groups", "pools"];

/// The column that counts credits in place of headroom, if there are credits.
const HEADROOM: &str = "max_headroom_bytes";

/// Columns of `links.parquet` that count times without credits as if they were pauses.
const PAUSES: [&str; 3] = ["pauses", "paused_us", "resumes"];

/// Why a run with credits lacks counts of pauses; `None` for a run without credits.
fn credits(results: &Results) -> Option<&'static str> {
    // The configuration has this table only if credits are on.
    let config = results.manifest["config"].as_str().unwrap_or_default();
    let on = config.lines().any(|line| line == "[switch.cbfc]");
    let why = match results.summary.control.pause {
        0 => "credits, no pause frames",
        _ => "credits: times without them are not told apart from pauses",
    };
    on.then_some(why)
}

fn names() -> impl Iterator<Item = Name> {
    NAMES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut fields = line.split('\t');
        let mut next = || fields.next();
        let (view, scope, counter) = (next()?, next()?, next()?);
        let mut some = || next().map(|field| Some(field).filter(|field| *field != "-"));
        let (of, per) = (some()?, some()?);
        Some(Name { view, scope, counter, of, per, unit: next()?, about: next()?, source: next()? })
    })
}

/// The views: whose names there are.
pub fn views() -> Vec<&'static str> {
    let mut all: Vec<&str> = names().map(|name| name.view).collect();
    all.dedup();
    all
}

/// A counter of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Counter {
    /// The operators' name.
    pub name: &'static str,
    /// The count of ropewalk, as `names.tsv` has it; `None` if it has none.
    pub of: Option<&'static str>,
    /// Sum over the ports; for the longest queue, the longest of all. `None` if ropewalk has no such count.
    pub total: Option<f64>,
    /// Unit of the total.
    pub unit: &'static str,
    /// Sum per second of simulated time and port.
    pub rate: Option<f64>,
    /// Share of the counter `per`.
    pub share: Option<f64>,
    /// The counter of which this one is a share.
    pub per: Option<&'static str>,
    /// The port with the largest count, and that count.
    pub most: Option<(String, f64)>,
    /// Meaning.
    pub about: &'static str,
    /// Source of the name, or why ropewalk has no such count.
    pub source: &'static str,
    /// Counts by port, in the order of `ports`.
    pub by_port: Vec<f64>,
}

/// The counters of a run.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// Whose names they are.
    pub of: String,
    /// Simulated time, s.
    pub seconds: f64,
    /// Names of the ports.
    pub ports: Vec<String>,
    /// The counters.
    pub counters: Vec<Counter>,
    /// Counters by queue and by priority group, if the run recorded queues.
    pub details: Vec<Details>,
}

/// The counters of a run under the names of `of`, at all ports or at those of the node `at`.
///
/// # Errors
/// If there are no such names, no such node, or the run lacks a table.
pub fn view(results: &Results, of: &str, at: Option<&str>) -> Result<View, Finding> {
    if !views().contains(&of) {
        let text = format!("no counters have names of `{of}`; {}", suggestion(of, &views()));
        return Err(code::UNKNOWN_NAME.plain(text));
    }
    let credits = credits(results);
    let has_queues = results.table("queues").is_some();
    let (parts, rows): (Vec<Name>, Vec<Name>) = names()
        .filter(|name| name.view == of)
        .map(|name| name.beside(credits, has_queues).beside_scheme(results, at))
        .partition(|name| ["queue", "group"].contains(&name.scope));
    let at_hosts = rows.iter().any(|name| name.scope == "nic");
    let mut ports = ports::of(results, at_hosts)?;
    if let Some(at) = at {
        let fits = |port: &Port| port.node == at || port.name == at;
        if !ports.iter().any(fits) {
            let what = if at_hosts { "host" } else { "switch" };
            let nodes: BTreeSet<&str> = ports.iter().map(|port| port.node.as_str()).collect();
            let near = suggestion(at, &nodes.into_iter().collect::<Vec<_>>());
            return Err(code::NO_NODE.plain(format!("the run has no {what} `{at}`; {near}")));
        }
        ports.retain(fits);
    }
    let seconds = results.summary.sim_time_us / 1e6;
    let totals: Vec<(&str, Option<f64>)> =
        rows.iter().map(|name| (name.counter, total(name, results, &ports))).collect();
    let find = |counter: &str| totals.iter().find(|(name, _)| *name == counter).and_then(|(_, total)| *total);
    let counters = rows.iter().map(|name| {
        let of_ports = name.of.filter(|of| !of.starts_with(OF_RUN));
        let by_port: Vec<f64> =
            of_ports.map_or(Vec::new(), |of| ports.iter().map(|port| port.count(of)).collect());
        let total = find(name.counter);
        let most = by_port
            .iter()
            .zip(&ports)
            .max_by(|(a, p), (b, q)| a.total_cmp(b).then_with(|| q.name.cmp(&p.name)));
        Counter {
            name: name.counter,
            of: name.of,
            total,
            unit: name.unit,
            rate: total
                .filter(|_| seconds > 0.0 && !is_peak(name))
                .map(|total| total / seconds / ports.len() as f64),
            share: name.per.and_then(find).filter(|base| *base > 0.0).and_then(|base| Some(total? / base)),
            per: name.per,
            most: most.filter(|(count, _)| **count > 0.0).map(|(count, port)| {
                (if name.scope == "switch" { &port.node } else { &port.name }.clone(), *count)
            }),
            about: name.about,
            source: name.source,
            by_port,
        }
    });
    let counters = counters.collect();
    let details = details::of(results, &parts, |name| ports.iter().any(|port| port.name == name));
    Ok(View {
        of: of.to_owned(),
        seconds,
        ports: ports.into_iter().map(|port| port.name).collect(),
        counters,
        details,
    })
}

/// True for a count whose largest value counts, not its sum.
fn is_peak(name: &Name) -> bool {
    name.of.is_some_and(|of| of.contains(".max_"))
}

fn total(name: &Name, results: &Results, ports: &[Port]) -> Option<f64> {
    let of = name.of?;
    if let Some(counter) = of.strip_prefix(OF_RUN) {
        return results.summary.counters.get(counter).map(|count| *count as f64);
    }
    let counts = ports.iter().map(|port| port.count(of));
    Some(if is_peak(name) { counts.fold(0.0, f64::max) } else { counts.sum() })
}
