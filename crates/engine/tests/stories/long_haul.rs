//! Claim: at the edge of a datacentre, a switch that answers for the far end spares local flows what remote ones do too late.
//!
//! Two small scenarios that come with ropewalk: congestion near the source of two flows that go 100 km, and near their
//! destination. Times and thresholds are those of 100 Gb/s, 1 us per link and 500 us between the datacentres.

use crate::lab::{honest, run_plan};
use engine::outcome::{Ending, Outcome};
use model::{Bytes, Plan, Time};
use scenario::{Checked, load};

const EDGE: &str = "switch-role.external.scheme.long-haul";

fn laid(name: &str, sets: &[&str]) -> Checked {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    load(name, &sets).unwrap_or_else(|e| panic!("{e}"))
}

fn run(name: &str, sets: &[&str]) -> (Checked, Outcome) {
    let checked = laid(name, sets);
    let outcome = run_plan(&checked.plan, &checked.parts);
    (checked, outcome)
}

/// Mean FCT of a job's flows, us.
fn mean_fct(plan: &Plan, run: &Outcome, job: &str) -> f64 {
    let mine = |m: &usize| plan.jobs[usize::from(plan.messages[*m].job)].name == job;
    let fct: Vec<f64> = (0..plan.messages.len())
        .filter(mine)
        .map(|m| (run.messages[m].acked.ps() - run.messages[m].start.ps()) as f64 / 1e6)
        .collect();
    fct.iter().sum::<f64>() / fct.len() as f64
}

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(n, _)| *n == name).map_or(0, |c| c.1)
}

/// Bytes on the wire that the remote flows have sent.
fn sent(plan: &Plan, run: &Outcome) -> u64 {
    let remote =
        (0..plan.messages.len()).filter(|&m| plan.jobs[usize::from(plan.messages[m].job)].name == "remote");
    remote.map(|m| run.messages[m].wire_bytes).sum()
}

/// Highest queue of a port, bytes.
fn queue(plan: &Plan, run: &Outcome, from: &str, to: &str) -> u64 {
    let node = |name: &str| plan.fabric.find(name).unwrap();
    let (from, to) = (node(from), node(to));
    let link = plan.fabric.links().iter().position(|l| l.from == from && l.to == to).unwrap();
    run.links[link].max_queue.get()
}
