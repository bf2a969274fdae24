//! The question, in words.

use super::super::frame::Frame;
use super::{Group, text};
use results::Results;
use results::text::{count, number};
use scenario::failure::Failure;
use scenario::server::ServerConfig;
use serde::Serialize;
use std::collections::BTreeSet;
use toml::{Table, Value as Toml};

/// Most seeds in the list. Our choice: these fill a line of the page.
const SEEDS: usize = 24;
/// Most lines with one label, and most failures in a line. Our choice.
const MOST_LINES: usize = 4;

/// A line of the question.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Asked {
    pub(super) label: &'static str,
    pub(super) text: String,
}
/// The title: the scenario, or the scenarios.
pub(super) fn title(groups: &[Group<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for run in groups.iter().flat_map(|group| &group.runs) {
        let name = run.summary.scenario.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// The question, in lines with labels.
pub(super) fn asked(groups: &[Group<'_>]) -> Vec<Asked> {
    let Some(run) = groups.first().and_then(|group| group.runs.first()) else { return Vec::new() };
    let mut lines = Vec::new();
    ask(&mut lines, groups, "Fabric", fabric);
    let label = if workloads(run).count() > 1 { "Workloads" } else { "Workload" };
    ask(&mut lines, groups, label, |run| workloads(run).map(|w| workload(&w)).collect::<Vec<_>>().join("; "));
    ask(&mut lines, groups, "Failures", failures);
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let scheme = if names.len() > 1 { "Compared" } else { "Scheme" };
    lines.push(Asked { label: scheme, text: names.join(", ") });
    let seeds: Vec<BTreeSet<u64>> = groups.iter().map(seeds).collect();
    let all: BTreeSet<u64> = seeds.iter().flatten().copied().collect();
    let means = if groups.iter().any(|group| group.runs.len() > 1) { "; numbers are means" } else { "" };
    let some = if seeds.iter().all(|own| *own == all) { "" } else { "; some runs lack some of them" };
    let text = format!("{}{some}{means}", list(&all));
    lines.push(Asked { label: if all.len() > 1 { "Seeds" } else { "Seed" }, text });
    ask(&mut lines, groups, "NICs", nics);
    lines.retain(|line| !line.text.is_empty());
    lines
}

/// Adds a line if `say` gives the same text for all groups; else one line for each text, with the names of its groups.
fn ask(lines: &mut Vec<Asked>, groups: &[Group<'_>], label: &'static str, say: fn(&Results) -> String) {
    let mut texts: Vec<(String, Vec<&str>)> = Vec::new();
    for group in groups {
        let text = group.runs.first().map_or_else(String::new, |run| say(run));
        match texts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(&group.name),
            None => texts.push((text, vec![&group.name])),
        }
    }
    let several = texts.len() > 1;
    let more = texts.len().saturating_sub(MOST_LINES);
    for (text, names) in texts.into_iter().take(MOST_LINES).filter(|(text, _)| !text.is_empty()) {
        let text = if several { format!("{}: {text}", names.join(" and ")) } else { text };
        lines.push(Asked { label, text });
    }
    if more > 0 {
        lines.push(Asked { label, text: format!("and {more} more, see the configuration") });
    }
}

/// True if all runs have the same workload, so that their times can be compared. Queue pairs and classes of the
/// messages may differ.
pub(super) fn same_work(groups: &[Group<'_>]) -> bool {
    let work = |group: &Group<'_>| -> Vec<String> {
        let plain = |mut entry: Table| {
            entry.retain(|key, _| !["qp", "class"].contains(&key));
            entry.to_string()
        };
        group.runs.first().map(|run| workloads(run).map(plain).collect()).unwrap_or_default()
    };
    groups.windows(2).all(|pair| work(&pair[0]) == work(&pair[1]))
}

/// Transport and congestion control.
fn nics(run: &Results) -> String {
    let nic = settings(run).remove("nic");
    let chosen = |key: &str| Some(nic.as_ref()?.get(key)?.as_table()?.keys().next()?.clone());
    ["transport", "congestion"].into_iter().filter_map(chosen).collect::<Vec<_>>().join(", ")
}

/// A failure on the axes of time.
#[derive(Debug, Serialize)]
pub(super) struct Fault {
    at_us: f64,
    /// Its end; null for never.
    until_us: Option<f64>,
    what: String,
}

/// Failures in the order of the configuration, as many as the question names.
pub(super) fn faults(run: &Results) -> Vec<Fault> {
    let all = settings(run).remove("failure").and_then(|all| all.try_into::<Vec<Failure>>().ok());
    let fault = |entry: Failure| Fault {
        at_us: entry.at.as_us(),
        until_us: entry.until.map(|until| until.as_us()),
        what: entry.to_string().replace(" us", " µs"),
    };
    all.unwrap_or_default().into_iter().take(MOST_LINES).map(fault).collect()
}

/// Failures, such as `spine3 down from 3030 µs until 11 ms`; empty if nothing fails.
fn failures(run: &Results) -> String {
    let Some(all) = settings(run).remove("failure") else { return String::new() };
    // Another version may have written the configuration.
    let Ok(all) = all.try_into::<Vec<Failure>>() else { return "see the configuration".to_owned() };
    let mut said: Vec<String> =
        all.iter().take(MOST_LINES).map(|entry| entry.to_string().replace(" us", " µs")).collect();
    let more = all.len().saturating_sub(MOST_LINES);
    if more > 0 {
        said.push(format!("and {more} more"));
    }
    said.join("; ")
}

/// Seeds of the runs of a group.
fn seeds(group: &Group<'_>) -> BTreeSet<u64> {
    group.runs.iter().map(|run| run.summary.seed).collect()
}

/// A list such as `1, 2, 3, 7`; for many seeds, their number and range.
fn list(seeds: &BTreeSet<u64>) -> String {
    match (seeds.first(), seeds.last()) {
        (Some(first), Some(last)) if seeds.len() > SEEDS => {
            format!("{} between {first} and {last}", seeds.len())
        }
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// `16 hosts at 100 Gb/s, 4 leaf and 4 spine switches (leaf-spine)`.
fn fabric(run: &Results) -> String {
    let Some(table) = run.table("links").map(Frame::new) else { return String::new() };
    let (from, role, rate) = (table.texts("from"), table.texts("role"), table.nominal_rates());
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
    let server = settings(run).remove("server").and_then(|server| server.try_into::<ServerConfig>().ok());
    let gpus = server.and_then(|server| server.server().ok()).map_or(1, |server| server.gpus as u64);
    let hosts = match gpus {
        0 | 1 => format!("{} hosts", count(hosts as u64)),
        gpus => format!("{} GPUs in {} servers", count(gpus * hosts as u64), count(hosts as u64)),
    };
    let topology =
        settings(run).get("topology").and_then(Toml::as_table).and_then(|t| t.keys().next().cloned());
    let topology = topology.map_or_else(String::new, |name| format!(" ({name})"));
    format!("{hosts} at {} Gb/s, {} switches{topology}", rates.join(" and "), switches.join(" and "))
}

/// `all-reduce: algorithm ring, bytes 4MB, groups one-host-per-leaf`.
fn workload(entry: &Table) -> String {
    let name = entry.get("name").and_then(Toml::as_str).unwrap_or_default();
    // Some tables are settings of jobs of any kind.
    let of_any = |key: &str| ["slow", "split", "qp"].contains(&key);
    let tables = entry.iter().filter(|(key, _)| !of_any(key));
    let kind = tables.filter_map(|(key, value)| value.as_table().map(|table| (key, table))).next();
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
/// The configuration of a run.
pub(super) fn settings(run: &Results) -> Table {
    text(&run.manifest, "/config").parse().unwrap_or_default()
}

/// The workloads of a run.
pub(super) fn workloads(run: &Results) -> impl Iterator<Item = Table> {
    let list = settings(run).remove("workload").and_then(|w| match w {
        Toml::Array(list) => Some(list),
        _ => None,
    });
    list.into_iter().flatten().filter_map(|w| match w {
        Toml::Table(table) => Some(table),
        _ => None,
    })
}
