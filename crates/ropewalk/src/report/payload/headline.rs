//! What was asked, the answer in a sentence, and one table.

use super::super::frame::{Frame, short};
use super::{Group, complete, config, real, text};
use crate::results::Results;
use crate::stats::{extremes, mean, share};
use crate::tables::{count, number, percent};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value as Toml};

/// A line of the question.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Asked {
    pub(super) label: &'static str,
    pub(super) text: String,
}

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
    runs: usize,
    /// Means over seeds.
    cells: Vec<Option<f64>>,
    /// Least and most over seeds, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ranges: Vec<Option<(f64, f64)>>,
}

type Measure = fn(&Results) -> Option<f64>;

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

fn of(run: &Results, path: &str) -> Option<f64> {
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
    Some(kinds.iter().filter_map(|kind| packets(run, kind)).sum::<u64>() as f64)
}

/// End of the slowest group over all foreground jobs that have groups by design (collectives do), us; none if there are none,
/// or one did not finish. Elsewhere a group is all of a job, and its end says no more than the FCT.
fn slowest_group(run: &Results) -> Option<f64> {
    let grouped = |entry: &Table| entry.values().any(|kind| kind.get("groups").is_some());
    let background = |entry: &Table| entry.get("background").and_then(Toml::as_bool).unwrap_or(false);
    let jobs = workloads(run).filter(|entry| grouped(entry) && !background(entry));
    let end = |entry: Table| {
        let job = run.summary.get("jobs")?.get(entry.get("name")?.as_str()?)?;
        real(job, "/groups/completion_us/slowest")
    };
    jobs.map(end).collect::<Option<Vec<f64>>>()?.into_iter().max_by(f64::total_cmp)
}

fn settings(run: &Results) -> Table {
    text(&run.manifest, "/config").parse().unwrap_or_default()
}

fn workloads(run: &Results) -> impl Iterator<Item = Table> {
    let list = settings(run).remove("workload").and_then(|w| match w {
        Toml::Array(list) => Some(list),
        _ => None,
    });
    list.into_iter().flatten().filter_map(|w| match w {
        Toml::Table(table) => Some(table),
        _ => None,
    })
}

/// The table: a row for each group; columns that are empty or 0 everywhere are left out, but for those of disorder.
pub(super) fn table(groups: &[Group<'_>]) -> Numbers {
    let values = |measure: Measure, group: &Group<'_>| -> Option<Vec<f64>> {
        group.runs.iter().map(|run| measure(run)).collect()
    };
    let says = |column: &(&str, &str, &str, i8, Measure)| {
        let all: Vec<f64> = groups.iter().filter_map(|g| values(column.4, g)).flatten().collect();
        !all.is_empty()
            && (matches!(column.0, "out of order" | "sent again" | "spurious")
                || all.iter().any(|x| *x > 0.0))
    };
    let columns: Vec<_> = COLUMNS.iter().filter(|column| says(column)).collect();
    let row = |group: &Group<'_>| {
        let all: Vec<Option<Vec<f64>>> = columns.iter().map(|column| values(column.4, group)).collect();
        let several = group.runs.len() > 1;
        let range = |v: &Option<Vec<f64>>| {
            extremes(v.as_ref()?).map(|(a, b)| (short(a).unwrap_or(a), short(b).unwrap_or(b)))
        };
        Row {
            name: group.name.clone(),
            scheme: group.scheme().to_owned(),
            complete: group.runs.iter().all(|run| complete(run)),
            runs: group.runs.len(),
            cells: all.iter().map(|v| v.as_ref().and_then(|v| mean(v)).and_then(short)).collect(),
            ranges: if several { all.iter().map(range).collect() } else { Vec::new() },
        }
    };
    Numbers {
        rows: groups.iter().map(row).collect(),
        columns: columns
            .iter()
            .map(|&&(name, unit, about, better, _)| Column { name, unit, about, better })
            .collect(),
    }
}

/// The title: the scenario, or the scenarios.
pub(super) fn title(groups: &[Group<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for run in groups.iter().flat_map(|group| &group.runs) {
        let name = text(&run.summary, "/scenario");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// What was asked, in words; of the first run, as the others differ in what the page says further down.
pub(super) fn asked(groups: &[Group<'_>]) -> Vec<Asked> {
    let Some(run) = groups.first().and_then(|group| group.runs.first()) else { return Vec::new() };
    let mut lines = vec![Asked { label: "Fabric", text: fabric(run) }];
    let jobs: Vec<String> = workloads(run).map(|w| workload(&w)).collect();
    lines.push(Asked { label: if jobs.len() > 1 { "Workloads" } else { "Workload" }, text: jobs.join("; ") });
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let scheme = if names.len() > 1 { "Compared" } else { "Scheme" };
    lines.push(Asked { label: scheme, text: names.join(", ") });
    let seeds = groups.iter().map(|group| group.runs.len()).max().unwrap_or(1);
    let seed = run.summary.pointer("/seed").and_then(Value::as_u64).unwrap_or(0);
    let text = if seeds > 1 {
        format!("{seeds} seeds, from {seed} on; numbers are means")
    } else {
        seed.to_string()
    };
    lines.push(Asked { label: if seeds > 1 { "Seeds" } else { "Seed" }, text });
    let nic = settings(run).remove("nic");
    let chosen = |key: &str| Some(nic.as_ref()?.get(key)?.as_table()?.keys().next()?.clone());
    let nics: Vec<String> = ["transport", "congestion"].into_iter().filter_map(chosen).collect();
    lines.push(Asked { label: "NICs", text: nics.join(", ") });
    lines.retain(|line| !line.text.is_empty());
    lines
}

/// `16 hosts at 100 Gb/s, 4 leaf and 4 spine switches (leaf-spine)`.
fn fabric(run: &Results) -> String {
    let Some(table) = run.table("links").map(Frame::new) else { return String::new() };
    let (from, role, rate) = (table.texts("from"), table.texts("role"), table.reals("rate_gbps"));
    let mut kinds: Vec<(&str, BTreeSet<&str>)> = Vec::new();
    let mut rates: Vec<f64> = Vec::new();
    for row in 0..table.rows() {
        match kinds.iter_mut().find(|(kind, _)| *kind == role[row]) {
            Some((_, names)) => drop(names.insert(from[row])),
            None => kinds.push((role[row], [from[row]].into())),
        }
        if role[row] == "host" && !rates.contains(&rate[row]) {
            rates.push(rate[row]);
        }
    }
    let of = |wanted: bool| kinds.iter().filter(move |(kind, _)| (*kind == "host") == wanted);
    let hosts: usize = of(true).map(|(_, names)| names.len()).sum();
    let switches: Vec<String> =
        of(false).map(|(kind, names)| format!("{} {kind}", count(names.len() as u64))).collect();
    let rates: Vec<String> = rates.into_iter().map(number).collect();
    let topology =
        settings(run).get("topology").and_then(Toml::as_table).and_then(|t| t.keys().next().cloned());
    let topology = topology.map_or_else(String::new, |name| format!(" ({name})"));
    format!(
        "{} hosts at {} Gb/s, {} switches{topology}",
        count(hosts as u64),
        rates.join(" and "),
        switches.join(" and ")
    )
}

/// `all-reduce: algorithm ring, bytes 4MB, groups one-host-per-leaf`.
fn workload(entry: &Table) -> String {
    let name = entry.get("name").and_then(Toml::as_str).unwrap_or_default();
    let kind = entry.iter().find_map(|(key, value)| value.as_table().map(|table| (key, table)));
    let Some((kind, settings)) = kind else { return name.to_owned() };
    let plain = |value: &Toml| match value {
        Toml::String(text) => Some(text.clone()),
        Toml::Integer(_) | Toml::Float(_) => Some(value.to_string()),
        _ => None,
    };
    let settings: Vec<String> =
        settings.iter().filter_map(|(key, value)| Some(format!("{key} {}", plain(value)?))).collect();
    let title = if name == kind { name.to_owned() } else { format!("{name} ({kind})") };
    let background = entry.get("background").and_then(Toml::as_bool).unwrap_or(false);
    format!("{title}: {}{}", settings.join(", "), if background { ", in the background" } else { "" })
}

/// The answer: the first sentence answers the question, the others say what lies behind.
pub(super) fn answer(groups: &[Group<'_>]) -> Vec<String> {
    match groups {
        [] => Vec::new(),
        [group] => one(group),
        several => compared(several),
    }
}

/// What held `group` up, or did not.
fn one(group: &Group<'_>) -> Vec<String> {
    let Some(run) = group.runs.first() else { return Vec::new() };
    let n = |path: &str| run.summary.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let (all, done) = (n("/flows/count"), n("/flows/finished"));
    let time = of(run, "/sim_time_us").map_or_else(String::new, number);
    let flows = match (done == all, complete(run)) {
        (true, true) if all == 1 => "The flow finished".to_owned(),
        (true, true) => format!("All {} flows finished", count(all)),
        (false, true) => {
            format!("{} of {} flows finished; those that did not do not count", count(done), count(all))
        }
        _ => format!(
            "The run is NOT complete: after {time} µs, {} of {} flows had finished",
            count(done),
            count(all)
        ),
    };
    let slow = match (of(run, "/flows/slowdown/max"), of(run, "/flows/slowdown/p50")) {
        (Some(most), _) if all == 1 => format!("; it took {} times its ideal", number(most)),
        (Some(most), Some(middle)) => {
            format!("; the slowest took {} times its ideal, the median {}", number(most), number(middle))
        }
        _ => String::new(),
    };
    let mut text = vec![format!("{flows}{slow}.")];
    if let Some(us) = slowest_group(run) {
        text.push(format!("The slowest group was done after {} µs.", number(us)));
    }
    text.push(disorder(run));
    text
}

/// Reordering and what came of it, in a sentence.
fn disorder(run: &Results) -> String {
    let n = |path: &str| run.summary.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let sent = n("/packets/sent");
    let (late, again, spurious) =
        (n("/packets/out_of_order"), n("/packets/retransmitted"), n("/packets/spurious"));
    let (nacks, blocked) = (n("/control/nack"), n("/control/blocked"));
    let order = if late == 0 {
        "Every packet arrived in order".to_owned()
    } else {
        format!("{} of the packets arrived out of order", percent(share(late, sent)))
    };
    let heard = match (nacks, blocked) {
        (0, _) => String::new(),
        (_, 0) => format!("; receivers sent {} NACKs", count(nacks)),
        (_, b) if b == nacks => {
            format!("; receivers sent {} NACKs, all of which switches blocked", count(nacks))
        }
        (_, b) => format!("; receivers sent {} NACKs, of which switches blocked {}", count(nacks), count(b)),
    };
    let resent = match (again, spurious) {
        (0, _) => "; nothing was sent again".to_owned(),
        (_, 0) => {
            format!("; {} of the packets were sent again, all for a reason", percent(share(again, sent)))
        }
        (a, s) if a == s => format!(
            "; {} of the packets were sent again, none of which had been lost",
            percent(share(again, sent))
        ),
        (a, s) => format!(
            "; {} of the packets were sent again, {} of these needlessly",
            percent(share(again, sent)),
            percent(share(s, a))
        ),
    };
    format!("{order}{heard}{resent}.")
}

/// Who is first, by how much, and what it does with NACKs and retransmissions.
fn compared(groups: &[Group<'_>]) -> Vec<String> {
    let measures: [(&str, Measure, fn(f64) -> String); 2] = [
        ("slowest group", slowest_group, |us| format!("{} µs", number(us))),
        ("P99 of the FCT", |r| of(r, "/flows/fct_us/p99"), |us| format!("{} µs", number(us))),
    ];
    let value = |group: &Group<'_>, measure: Measure| {
        let all = group.runs.iter().map(|run| complete(run).then(|| measure(run)).flatten());
        all.collect::<Option<Vec<f64>>>().and_then(|v| mean(&v))
    };
    let failed: Vec<&str> =
        groups.iter().filter(|g| !g.runs.iter().all(|r| complete(r))).map(|g| g.name.as_str()).collect();
    let mut text = Vec::new();
    for (what, measure, shown) in measures {
        let mut order: Vec<(&Group<'_>, f64)> =
            groups.iter().filter_map(|group| Some((group, value(group, measure)?))).collect();
        if order.len() + failed.len() < groups.len() || order.len() < 2 {
            continue;
        }
        order.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (Some(&(first, best)), Some(&(last, worst))) = (order.first(), order.last()) else { continue };
        if worst <= best * 1.02 {
            text.push(format!("All are alike: {what} between {} and {}.", shown(best), shown(worst)));
        } else {
            let times = worst / best;
            let earlier = if times < 1.995 {
                format!("{} % earlier than", number(100.0 * (1.0 - best / worst)))
            } else {
                format!("{} times as fast as", number(times))
            };
            text.push(format!(
                "{} is first: {earlier} {} ({what} {} against {}).",
                first.name,
                last.name,
                shown(best),
                shown(worst)
            ));
            if order.len() > 2 {
                let (next, value) = order[1];
                let by = match value / best {
                    times if times < 1.0005 => "the same".to_owned(),
                    times if times < 1.995 => format!("{} % more", number(100.0 * (times - 1.0))),
                    times => format!("{} times as long", number(times)),
                };
                text.push(format!("Next is {} with {} ({by}).", next.name, shown(value)));
            }
        }
        text.extend(first.runs.first().map(|run| format!("Under {}: {}", first.name, lower(&disorder(run)))));
        break;
    }
    if !failed.is_empty() {
        text.push(format!("NOT complete: {}.", failed.join(", ")));
    }
    text
}

/// A sentence after a colon.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().collect::<String>() + chars.as_str())
}

/// Groups of runs by scheme, and by scenario where there are several; runs of a group differ by their seed at most.
pub(in crate::report) fn grouped(runs: &[Results]) -> Vec<Group<'_>> {
    let scenarios: BTreeSet<&str> = runs.iter().map(|r| text(&r.summary, "/scenario")).collect();
    let unseeded = |run: &Results| {
        let mut settings = settings(run);
        settings.remove("seed");
        settings.to_string()
    };
    let mut groups: Vec<(String, Group<'_>)> = Vec::new();
    for run in runs {
        let scheme = text(&run.summary, "/scheme");
        let name = match scenarios.len() {
            0 | 1 => scheme.to_owned(),
            _ => format!("{}: {scheme}", text(&run.summary, "/scenario")),
        };
        let key = unseeded(run);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.runs.push(run),
            None => groups.push((key, Group { name, runs: vec![run] })),
        }
    }
    let mut groups: Vec<Group<'_>> = groups.into_iter().map(|(_, group)| group).collect();
    let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    for name in names.iter().collect::<BTreeSet<_>>() {
        let alike: Vec<usize> = (0..names.len()).filter(|&i| names[i] == *name).collect();
        if alike.len() > 1 {
            let suffixes = told_apart(&alike.iter().map(|&i| &groups[i]).collect::<Vec<_>>());
            alike.iter().zip(suffixes).for_each(|(&i, suffix)| groups[i].name.push_str(&suffix));
        }
    }
    groups
}

/// Most keys in a name. Our choice: more make no name.
const KEYS: usize = 2;

/// What tells runs of one scheme apart: the settings in which they differ, where these are few, else a number.
fn told_apart(groups: &[&Group<'_>]) -> Vec<String> {
    let flat = |group: &&Group<'_>| {
        config::flat(group.runs.first().map_or("", |run| text(&run.manifest, "/config")))
    };
    let flat: Vec<_> = groups.iter().map(flat).collect();
    let keys: Vec<&String> = config::differing(&flat).into_iter().filter(|key| *key != "seed").collect();
    if !(1..=KEYS).contains(&keys.len()) {
        return (1..=groups.len()).map(|n| format!(" ({n})")).collect();
    }
    let setting = |of: &BTreeMap<String, String>, key: &String| {
        let short = key.rsplit('.').next().unwrap_or(key);
        format!(", {short} {}", of.get(key).map_or("-", String::as_str))
    };
    flat.iter().map(|of| keys.iter().map(|key| setting(of, key)).collect()).collect()
}
