//! Collectives between two nodes of eight GPUs, with the limits of AMD's cluster validation suite.

use crate::acceptance::case::{Case, Part, Traffic, each, more};
use crate::seen::{Values, counts, only};
use crate::site::Site;
use crate::traffic::{Flow, job, jobs};
use files::file::{self, Reading};
use finding::{Finding, code, suggestion};
use lab::Run;
use model::HostId;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// NICs of a node, each with a GPU.
const NICS: usize = 8;
/// Bytes that each NIC sends to the other node. Our choice in place of the suite's gigabytes: 0.3 ms at 400 Gb/s, after which the rate of a
/// long message no longer changes.
const BYTES: u64 = 16_000_000;
/// Share of a value that passes. Vendor: ROCm/cvs, docs/reference/configuration-files/network/rccl.rst.
const PASSES: f64 = 0.95;

/// What of RCCL's bus bandwidth the network between two nodes allows.
pub(crate) const A16: Case = Case {
    id: "a16",
    plan: "RCCL on two nodes (ROCm/cvs, rccl_perf)",
    about: "eight hosts of each of two leaves stand for the NICs of two nodes; NVLink or xGMI and the GPUs cost nothing, so that a value \
            is what the network allows; rings and chains enter and leave a node by each NIC in turn, 16 MB by each",
    metrics: &[
        more("ring-busbw", "GB/s"),
        more("chain-busbw", "GB/s"),
        more("all-to-all-busbw", "GB/s"),
        more("sendrecv-busbw", "GB/s"),
    ],
    parts,
    rows: each,
};

/// Collectives by the name of their test, and the metric that shows them. All that a ring carries has the same bus bandwidth.
const COLLECTIVES: [(&str, &str); 8] = [
    ("all_reduce_perf", "ring-busbw"),
    ("all_gather_perf", "ring-busbw"),
    ("reduce_scatter_perf", "ring-busbw"),
    ("broadcast_perf", "chain-busbw"),
    ("reduce_perf", "chain-busbw"),
    ("alltoall_perf", "all-to-all-busbw"),
    ("alltoallv_perf", "all-to-all-busbw"),
    ("sendrecv_perf", "sendrecv-busbw"),
];
/// Tests whose root alone is busy: the network between nodes carries half of its bytes, and the rest is inside the node.
const LEFT_OUT: [&str; 2] = ["gather_perf", "scatter_perf"];

fn parts(site: &Site) -> Result<Vec<Part>, String> {
    let (a, b) = site.two_leaves()?;
    if a.len() < NICS {
        return Err(format!("two leaves have {} hosts each, and a node has {NICS} NICs", a.len()));
    }
    let pairs = |both: bool| -> Vec<Flow> {
        let there = a.iter().zip(b).map(|(a, b)| Flow::new(*a, *b, BYTES));
        let back = a.iter().zip(b).filter(|_| both).map(|(a, b)| Flow::new(*b, *a, BYTES));
        there.chain(back).collect()
    };
    let exchange = |from: &[HostId], to: &[HostId]| -> Vec<Flow> {
        let of = |from: HostId| to.iter().map(move |to| Flow::new(from, *to, BYTES / NICS as u64));
        from.iter().flat_map(|from| of(*from)).collect()
    };
    let all = [exchange(a, b), exchange(b, a)].concat();
    let last = NICS - 1;
    let ends = vec![Flow::new(a[last], b[0], BYTES), Flow::new(b[last], a[0], BYTES)];
    let ranks = 2.0 * NICS as f64;
    // Bus bandwidth over the rate of a NIC, see nccl-tests, doc/PERFORMANCE.md. In an all-to-all, half of a GPU's bytes leave the node.
    let rings = [
        ("rings", "ring-busbw", pairs(true), NICS as f64),
        ("chains", "chain-busbw", pairs(false), NICS as f64),
    ];
    let others = [
        ("all-to-all", "all-to-all-busbw", all, 2.0 * (ranks - 1.0) / ranks),
        ("send and receive", "sendrecv-busbw", ends, 1.0),
    ];
    let part = |(label, metric, flows, factor): (&str, &'static str, Vec<Flow>, f64)| {
        let see = move |run: &Run| bandwidth(run, metric, factor);
        let sets = vec![jobs(&[job(site, label, "", &flows)])];
        Part::Run(Traffic { label: label.to_owned(), sets, see: Box::new(see) })
    };
    Ok(rings.into_iter().chain(others).map(part).collect())
}

/// The bus bandwidth of a run in which each NIC moves [`BYTES`], GB/s.
fn bandwidth(run: &Run, metric: &'static str, factor: f64) -> Result<Values, String> {
    let counted = counts(run);
    if counted.get("unfinished").is_some_and(|left| *left > 0.0) {
        return Err("a flow has not finished".to_owned());
    }
    let end = run.outcome.messages.iter().map(|record| record.received).max().unwrap_or_default();
    let mut values = only(counted, &[]);
    values.insert(metric, factor * BYTES as f64 / 1e9 / end.as_secs().max(1e-12));
    Ok(values)
}

#[derive(Deserialize)]
struct Suite {
    rccl: Config,
}

/// The parts of the file that say what is expected. Counts of nodes stand at the top in older files.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    results: BTreeMap<String, Expected>,
    #[serde(default, flatten)]
    size: Size,
    #[serde(default)]
    mpi_params: Size,
}

#[derive(Default, Deserialize)]
struct Size {
    no_of_nodes: Option<Count>,
    no_of_local_ranks: Option<Count>,
}

#[derive(Deserialize)]
struct Expected {
    #[serde(default)]
    bus_bw: BTreeMap<String, Count>,
}

/// A number, which the suite's own files write as a text.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Count {
    Text(String),
    Number(f64),
}

impl Count {
    fn value(&self) -> Option<f64> {
        match self {
            Count::Text(text) => text.trim().parse().ok(),
            Count::Number(number) => Some(*number),
        }
    }
}

/// The limits of `rccl_config.json`, GB/s by metric: of each collective the value of its largest messages, and of those with one metric
/// the strictest.
pub(crate) fn limits(path: &str) -> Result<BTreeMap<String, f64>, Finding> {
    let text = file::read(Path::new(path), Reading::SCENARIO).map_err(|e| code::FILE.plain(e.about(path)))?;
    let wrong = |text: String| {
        let help =
            "expected rccl_config.json of ROCm/cvs, with `rccl.results.COLLECTIVE.bus_bw`, or limits in TOML";
        code::CONTENT.plain(format!("{path}: {text}")).with_help(help)
    };
    let suite: Suite = serde_json::from_str(&text)
        .map_err(|e| code::CONTENT.plain(format!("{path}:{}:{}: {e}", e.line(), e.column())))?;
    let Config { results, size, mpi_params } = suite.rccl;
    for (what, key, found, ours) in [
        ("nodes", "no_of_nodes", [size.no_of_nodes, mpi_params.no_of_nodes], 2.0),
        ("GPUs per node", "no_of_local_ranks", [size.no_of_local_ranks, mpi_params.no_of_local_ranks], 8.0),
    ] {
        if let Some(found) =
            found.into_iter().flatten().find_map(|count| count.value()).filter(|n| *n != ours)
        {
            let text =
                format!("its values are for {found} {what} (`{key}`), and a16 plays 2 nodes of 8 GPUs");
            return Err(wrong(text));
        }
    }
    let mut all: BTreeMap<String, f64> = BTreeMap::new();
    for (test, expected) in &results {
        let Some((_, metric)) = COLLECTIVES.iter().find(|(name, _)| name == test) else {
            if LEFT_OUT.contains(&test.as_str()) {
                continue;
            }
            let known: Vec<&str> = COLLECTIVES.iter().map(|(name, _)| *name).chain(LEFT_OUT).collect();
            return Err(wrong(format!("there is no test `{test}`; {}", suggestion(test, &known))));
        };
        let mut largest: Option<(u64, f64)> = None;
        for (size, value) in &expected.bus_bw {
            let bytes: Result<u64, _> = size.parse();
            let value = value.value().filter(|value| value.is_finite() && *value >= 0.0);
            let (Ok(bytes), Some(value)) = (bytes, value) else {
                let text = format!(
                    "`results.{test}.bus_bw` has `{size}`; expected a size in bytes and GB/s, such as"
                );
                return Err(wrong(format!("{text} \"8589934592\": \"330.00\"")));
            };
            if largest.is_none_or(|(most, _)| bytes > most) {
                largest = Some((bytes, value));
            }
        }
        if let Some((_, value)) = largest {
            let limit = all.entry((*metric).to_owned()).or_default();
            *limit = limit.max(PASSES * value);
        }
    }
    match all.is_empty() {
        true => Err(wrong("it has no values in `rccl.results`".to_owned())),
        false => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::limits;

    fn read(text: &str) -> Result<Vec<(String, f64)>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rccl_config.json");
        std::fs::write(&path, text).unwrap();
        let read = limits(&path.to_string_lossy()).map_err(|error| error.to_string())?;
        Ok(read.into_iter().map(|(metric, limit)| (metric, (limit * 10.0).round() / 10.0)).collect())
    }

    #[test]
    fn the_largest_messages_of_a_suite_are_limits_at_95_percent() {
        let of = |results: &str| {
            read(&format!("{{ \"rccl\": {{ \"no_of_nodes\": \"2\", \"results\": {{ {results} }} }} }}"))
        };
        let ring = "\"all_reduce_perf\": { \"bus_bw\": { \"8589934592\": \"330.00\", \"17179869184\": \"350.00\" } }";
        assert_eq!(of(ring), Ok(vec![("ring-busbw".to_owned(), 332.5)]));
        let stricter = format!(
            "{ring}, \"reduce_scatter_perf\": {{ \"bus_bw\": {{ \"17179869184\": 360 }} }}, \"gather_perf\": {{}}"
        );
        assert_eq!(of(&stricter), Ok(vec![("ring-busbw".to_owned(), 342.0)]));
        let all = "\"alltoall_perf\": { \"bus_bw\": { \"8589934592\": \"45.00\" } }";
        assert_eq!(of(all), Ok(vec![("all-to-all-busbw".to_owned(), 42.8)]));
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_its_place() {
        let told = |text: &str| read(text).unwrap_err();
        assert!(told("{ \"rccl\": ").contains("rccl_config.json:1:10"), "{}", told("{ \"rccl\": "));
        assert!(told("{ \"rccl\": { \"results\": {} } }").contains("no values in `rccl.results`"));
        let near = told("{ \"rccl\": { \"results\": { \"all_reduce\": {} } } }");
        assert!(
            near.contains("no test `all_reduce`; the nearest") && near.contains("`all_reduce_perf`"),
            "{near}"
        );
        let four = told("{ \"rccl\": { \"mpi_params\": { \"no_of_nodes\": \"4\" }, \"results\": {} } }");
        assert!(four.contains("for 4 nodes"), "{four}");
        let unit = told(
            "{ \"rccl\": { \"results\": { \"all_reduce_perf\": { \"bus_bw\": { \"8G\": \"330\" } } } } }",
        );
        assert!(unit.contains("`8G`; expected a size in bytes"), "{unit}");
    }
}
