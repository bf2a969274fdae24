//! Themis's compensation rule: as printed, and our sound rule.
//!
//! As printed, a ToR that has blocked NACK(e) sends it itself as soon as a later packet of e's path passes, unless e
//! has passed since. The rule ignores that e may have passed just before the NACK, and may still be on the last hop;
//! in that case the NACK is false. The sound rule searches the rest of its ring first. The difference depends on how
//! soon a packet of the same path follows (the number of spines N), and on how far packets overtake one another
//! (jitter).
//!
//! Our choices: four leaves with N hosts each and N spines, at 100 Gb/s, NICs that take a NACK for a CNP, no marks, and a
//! ring all-reduce of every group of one host per leaf. Jitter comes from the flows alone, or also from a background permutation: one endless flow per host
//! over the same sprayed links, which takes about half of every link.

use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use lab::Run;
use results::stats::share;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "themis-modes",
    source: "Themis (APNET'25), section 3, and our sound rule",
    about: "the literal and the sound compensation rule: false NACKs and completion times over spines and jitter",
    cases,
    rows,
    curves: |_| Vec::new(),
    more: |_| String::new(),
    picture: |_| crate::picture::Picture::default(),
};

const MODES: [&str; 2] = ["literal", "sound"];
/// In place of the settings of the scenario.
const NICS: [&str; 3] = ["nic.on-nack=as-cnp", "nic.congestion.dcqcn-hpcc={}", "switch.ecn=off"];
const JITTER: [&str; 2] = ["alone", "with background"];

fn label(spines: u32, jitter: &str, mode: &str) -> String {
    format!("N = {spines}, {jitter}, {mode}")
}

fn spines(quick: bool) -> &'static [u32] {
    if quick { &[2, 4] } else { &[2, 4, 8, 16] }
}

fn cases(quick: bool) -> Vec<Case> {
    let bytes = if quick { "6MB" } else { "60MB" };
    let job = format!(
        "{{ name = \"job\", all-reduce = {{ bytes = \"{bytes}\", groups = \"one-host-per-leaf\" }} }}"
    );
    let background = "{ name = \"bg\", background = true, permutation = { bytes = \"10GB\" } }";
    let mut cases = Vec::new();
    for &n in spines(quick) {
        for jitter in JITTER {
            let workload = if jitter == JITTER[0] { job.clone() } else { format!("{job}, {background}") };
            for mode in MODES {
                cases.push(
                    Case::new(label(n, jitter, mode), "themis-fig1", &NICS)
                        .and(format!("topology.leaf-spine.spines={n}"))
                        .and(format!("topology.leaf-spine.hosts-per-leaf={n}"))
                        .and(format!("workload=[{workload}]"))
                        .and("scheme.themis={}")
                        .and(format!("scheme.themis.mode={mode}")),
                );
            }
        }
    }
    cases
}

fn counter(run: &Run, name: &str) -> u64 {
    run.summary.counters.get(name).copied().unwrap_or(0)
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for label in runs.labels() {
        let run = runs.get(label);
        let sound = label.ends_with(MODES[1]);
        let note = if sound { "expected: 0" } else { "expected: above 0 for small N" };
        let spurious = run.map(|r| counter(r, "compensations_spurious"));
        rows.push(Row::ours(label, "false compensations", "NACKs", spurious.map(|n| n as f64), note));
        let part =
            run.map(|r| 100.0 * share(counter(r, "compensations_spurious"), counter(r, "nacks_blocked")));
        rows.push(Row::ours(label, "of blocked NACKs", "%", part, note));
        let note = if sound {
            "expected: no longer than literal"
        } else {
            "expected: longer, because of its false NACKs"
        };
        rows.push(Row::ours(label, "slowest group", "ms", run.and_then(Run::slowest_group_ms), note));
    }
    rows
}
