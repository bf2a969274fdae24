//! Packet-hops per CPU second on named workloads: `make bench`.
//!
//! A hop is one packet crossing one link; ACKs count. CPU time is that of the thread in the run loop; reading
//! the scenario, setting up and writing results are not in it. Each workload runs three times, the median
//! counts. Nothing is asserted: the machine and its other users decide.

#![expect(clippy::print_stdout, reason = "a table is what it is for")]

use comfy_table::{CellAlignment, Table};

/// 16 leaves x 16 spines x 16 hosts, 400 Gb/s, 1 us: the papers' fabric. The full model: DCQCN, ECN, a shared
/// buffer with PFC armed, ACK per packet.
const FABRIC: &str = r#"
[topology.leaf-spine]
leaves = 16
spines = 16
hosts-per-leaf = 16
rate = "400Gbps"
delay = "1us"
[series]
flows = 0
links = 0
"#;

/// Name, what it is, and what it adds to the fabric.
const WORKLOADS: &[(&str, &str, &str)] = &[
    (
        "permutation",
        "every host to the next rack, Themis; CNP, ACK and data in classes of their own, ECN at dequeue",
        r#"
        [scheme.themis]
        [[workload]]
        permutation = { bytes = "20MB", kind = "shift", shift = 16 }
        "#,
    ),
    (
        "permutation-random",
        "the same to a random host of another rack",
        r#"
        [scheme.themis]
        [[workload]]
        permutation = { bytes = "20MB", kind = "cross-rack" }
        "#,
    ),
    (
        "permutation-one-class",
        "the random one in one class with ECN at enqueue",
        r#"
        [switch]
        classes = "one"
        ecn = { mark = "enqueue" }
        [scheme.themis]
        [[workload]]
        permutation = { bytes = "20MB", kind = "cross-rack" }
        "#,
    ),
    (
        "permutation-ecmp",
        "the random one under ECMP: collisions, marks, uneven load",
        r#"
        [scheme.ecmp]
        [[workload]]
        permutation = { bytes = "20MB", kind = "cross-rack" }
        "#,
    ),
    (
        "all-to-all",
        "every host to every other, 255 QPs per host",
        r#"
        [scheme.themis]
        [[workload]]
        all-to-all = { per-pair = "100kB", groups = "contiguous", group-size = 256 }
        "#,
    ),
    (
        "incast",
        "255 senders of 1 MB, one receiver, pauses and marks",
        r#"
        [switch]
        buffer = "16MB"
        [scheme.ecmp]
        [[workload]]
        incast = { bytes = "1MB", receiver = "host0", senders = 255 }
        "#,
    ),
    (
        "themis-fig5",
        "ring all-reduce of 40 MB in 16 groups, Themis",
        r#"
        [scheme.themis]
        [[workload]]
        all-reduce = { bytes = "40MB", groups = "one-host-per-leaf" }
        "#,
    ),
];

const RUNS: usize = 3;

fn main() {
    let only = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let mut table = Table::new();
    table.load_style(comfy_table::TableStyle::new());
    table.set_header(["workload", "M hops", "CPU s", "M hops / CPU s", "set-up s", "peak MB", "what it is"]);
    let mut rows = Vec::new();
    for (name, what, workload) in WORKLOADS {
        if only.as_ref().is_some_and(|o| o != name) {
            continue;
        }
        let text = format!("{FABRIC}{workload}");
        let mut runs: Vec<_> = (0..RUNS)
            .map(|_| {
                let source = scenario::Source::new(*name, text.clone());
                let checked = ropewalk::Prepared::by(|| scenario::check(&source, &[]));
                let run = ropewalk::run(checked.unwrap_or_else(|e| panic!("{e:?}")));
                (run.summary.timing.cpu_s, run)
            })
            .collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (cpu, run) = &runs[RUNS / 2];
        let hops = (run.outcome.data_hops + run.outcome.control_hops) as f64;
        let timing = &run.summary.timing;
        table.add_row([
            (*name).to_owned(),
            format!("{:.1}", hops / 1e6),
            format!("{cpu:.2}"),
            format!("{:.1}", hops / cpu / 1e6),
            format!("{:.3}", timing.setup_s),
            format!("{:.0}", timing.peak_rss_mb),
            (*what).to_owned(),
        ]);
        rows.push(serde_json::json!({
            "workload": name, "hops": hops, "cpu_s": cpu, "hops_per_cpu_s": hops / cpu,
            "setup_s": timing.setup_s, "peak_rss_mb": timing.peak_rss_mb, "complete": run.summary.complete,
        }));
    }
    for column in 1..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("{table}");
    println!("{}", serde_json::json!({ "bench": rows }));
}
