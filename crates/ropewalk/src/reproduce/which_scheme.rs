//! Every scheme on every case: one table that says which to pick.
//!
//! No paper has it: each compares its own system with a few others on its own fabric. Here all stand on one fabric,
//! with one kind of commodity NIC. Schemes that need a NIC of their own get it, and say so.

use super::{Case, Experiment, Results, Row};
use crate::execute::Run;
use crate::tables;

/// The experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "which-scheme",
    source: "ours: the five systems and their rivals on one fabric",
    about: "every scheme on collectives, incast, web search traffic, slow and dead links, with commodity NICs",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
};

/// What it is called, its setting, and the NIC that it needs if a commodity one does not do.
const SCHEMES: [(&str, &str, &str); 14] = [
    ("ecmp", "scheme.ecmp={}", ""),
    ("rps", "scheme.rps={}", ""),
    ("ar", "scheme.ar={}", ""),
    ("drill", "scheme.drill={}", ""),
    ("flowlet", "scheme.flowlet={}", ""),
    ("flowcell", "scheme.flowcell={}", ""),
    ("conga", "scheme.conga={}", ""),
    ("conweave", "scheme.conweave={}", ""),
    ("themis", "scheme.themis={}", ""),
    ("flowcut, nic", "scheme.flowcut={}", ""),
    ("flowcut, full", "scheme.flowcut={deployment=\"full\"}", ""),
    ("reps", "scheme.reps={}", ""),
    ("dlbf", "scheme.dlbf={}", "nic.transport.sr-sack={}"),
    ("mp-rdma", "scheme.mp-rdma={}", ""),
];

/// A case: what it is called, and what it changes; `quick` has less of it.
struct Setting {
    name: &'static str,
    full: &'static [&'static str],
    quick: &'static [&'static str],
}

const SETTINGS: [Setting; 7] = [
    Setting { name: "permutation", full: &[], quick: &["workload.0.permutation.bytes=\"1MiB\""] },
    Setting {
        name: "all-to-all",
        full: &["workload=[{all-to-all={bytes=\"4MiB\",groups=\"all\",window=16}}]"],
        quick: &["workload=[{all-to-all={bytes=\"512KiB\",groups=\"all\",window=16}}]"],
    },
    Setting {
        name: "ring all-reduce",
        full: &["workload=[{all-reduce={bytes=\"16MiB\",groups=\"drawn\",group-size=32}}]"],
        quick: &["workload=[{all-reduce={bytes=\"2MiB\",groups=\"drawn\",group-size=32}}]"],
    },
    Setting {
        name: "incast, 64 to 1",
        full: &["workload=[{incast={senders=64,bytes=\"1MiB\"}}]"],
        quick: &["workload=[{incast={senders=64,bytes=\"128KiB\"}}]"],
    },
    Setting {
        name: "web search, load 0.6",
        full: &["workload=[{poisson={sizes=\"web-search\",load=0.6,duration=\"4ms\"}}]"],
        quick: &["workload=[{poisson={sizes=\"web-search\",load=0.6,duration=\"300us\"}}]"],
    },
    Setting {
        name: "permutation, slow links",
        full: &["failure=[{random=0.02,rate=0.1}]"],
        quick: &["failure=[{random=0.02,rate=0.1}]", "workload.0.permutation.bytes=\"1MiB\""],
    },
    Setting {
        name: "permutation, links die",
        full: &["failure=[{random=4,at=\"100us\"}]", "routing.detection=\"100us\""],
        quick: &[
            "failure=[{random=4,at=\"10us\"}]",
            "routing.detection=\"100us\"",
            "workload.0.permutation.bytes=\"1MiB\"",
        ],
    },
];

fn label(scheme: &str, setting: &str) -> String {
    format!("{setting}: {scheme}")
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for setting in &SETTINGS {
        for (scheme, set, nic) in SCHEMES {
            let mut case = Case::new(label(scheme, setting.name), "which-scheme", &[set]);
            if !nic.is_empty() {
                case = case.and(nic);
            }
            let sets = if quick { setting.quick } else { setting.full };
            cases.push(sets.iter().fold(case, |case, set| case.and(*set)));
        }
    }
    cases
}

fn mean(run: &Run) -> Option<f64> {
    Some(run.summary.flows.slowdown?.mean)
}

fn tail(run: &Run) -> Option<f64> {
    Some(run.summary.flows.slowdown?.p99)
}

/// When the last flow was done, microseconds.
fn done(run: &Run) -> Option<f64> {
    run.summary.complete.then_some(run.summary.sim_time_us)
}

fn disorder(run: &Run) -> Option<f64> {
    let p = &run.summary.packets;
    Some(100.0 * p.out_of_order as f64 / p.accepted.max(1) as f64)
}

fn rows(results: &Results, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for setting in &SETTINGS {
        for (scheme, _, _) in SCHEMES {
            let label = label(scheme, setting.name);
            let of = |what: fn(&Run) -> Option<f64>| results.get(&label).and_then(what);
            let note = "no paper has it";
            for (metric, unit, value) in [
                ("mean FCT slowdown", "x", of(mean)),
                ("P99 FCT slowdown", "x", of(tail)),
                ("last flow done", "us", of(done)),
                ("out of order", "%", of(disorder)),
            ] {
                rows.push(Row::ours(&label, metric, unit, value, note).tabled());
            }
        }
    }
    rows
}

/// Schemes by cases: the P99 slowdown, and which is best.
fn more(results: &Results) -> String {
    let mut text = String::new();
    for (title, what) in [
        (
            "P99 FCT slowdown (1 is a flow alone on an idle fabric; * the best, and those within 5 % of it):",
            tail as fn(&Run) -> Option<f64>,
        ),
        ("mean FCT slowdown:", mean),
        ("packets that came out of order, %:", disorder),
    ] {
        let header: Vec<String> = std::iter::once(String::new())
            .chain(SETTINGS.iter().map(|s| s.name.replacen(", ", "\n", 1)))
            .collect();
        let mut table = tables::table(&header, 1);
        let value =
            |scheme: &str, setting: &Setting| results.get(&label(scheme, setting.name)).and_then(what);
        let best: Vec<f64> = SETTINGS
            .iter()
            .map(|s| SCHEMES.iter().filter_map(|(name, _, _)| value(name, s)).fold(f64::INFINITY, f64::min))
            .collect();
        let ranks = !std::ptr::fn_addr_eq(what, disorder as fn(&Run) -> Option<f64>);
        for (scheme, _, _) in SCHEMES {
            let cell = |(setting, best): (&Setting, &f64)| match value(scheme, setting) {
                Some(x) if ranks && x <= best * 1.05 => format!("*{}", tables::number(x)),
                x => tables::maybe(x),
            };
            table.add_row(std::iter::once(scheme.to_owned()).chain(SETTINGS.iter().zip(&best).map(cell)));
        }
        text.push_str(&format!("{title}\n{table}\n\n"));
    }
    text.push_str("dlbf has NICs that name what is missing (sr-sack), mp-rdma its own; all others commodity NICs (nic-sr).\n");
    text
}
