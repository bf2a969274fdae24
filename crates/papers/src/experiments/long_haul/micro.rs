//! Long-haul THEMIS, two small scenarios: two flows of 50 MB over 100 km meet congestion near their source or near their
//! destination. Beside them run twenty local flows of 100 kB and twenty of 1 MB.
//!
//! The paper does not have these scenarios; the numbers beside ours are the results of its prototype in them.

use super::{COMPLETE, PROTOTYPE, PROTOTYPE_NOTIFICATION, counter, ideal, mean, pauses, unfinished};
use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use lab::Run;
use model::Time;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "long-haul-micro",
    source: "THEMIS for long-haul RDMA (Liu et al.), its prototype",
    about: "two datacentres: congestion near the source or the destination of two remote flows, beside forty local ones",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

const HPCC: &str = "nic.congestion.hpcc={compat=\"long-haul-prototype\"}";
const OWN_T: &str = "nic.congestion.hpcc={compat=\"long-haul-prototype\",base-rtt=\"pair\"}";
const CLEAN: &str = "nic.congestion.hpcc={int-hops=10,max-stage=0}";
const SCENARIOS: [(&str, &str); 2] =
    [("near the source", "long-haul-near-source"), ("near the destination", "long-haul-near-destination")];

/// The prototype's mean slowdowns of flows of 100 kB, of 1 MB, and of remote flows; `None` if a flow never finishes.
type Theirs = Option<[f64; 3]>;

/// Name, settings, and the prototype's numbers near the source and near the destination.
#[expect(clippy::approx_constant, reason = "3.14 is the result of the prototype")]
const MODES: [(&str, &[&str], [Theirs; 2]); 11] = [
    ("dcqcn", &[], [Some([12.29, 4.73, 3.5]), Some([28.1, 7.10, 3.03])]),
    ("prototype, both", &[PROTOTYPE], [Some([1.47, 5.84, 3.14]), None]),
    (
        "prototype, notification",
        &[PROTOTYPE_NOTIFICATION],
        [Some([1.47, 5.84, 3.14]), Some([28.1, 7.10, 3.03])],
    ),
    (
        "notification, 4 us",
        &["switch-role.external.feedback.long-haul={interval=\"4us\",reaction=\"off\"}"],
        [Some([1.57, 6.8, 3.0]), None],
    ),
    (
        "notification, 10 us",
        &["switch-role.external.feedback.long-haul={interval=\"10us\",reaction=\"off\"}"],
        [Some([2.11, 8.2, 2.9]), None],
    ),
    (
        "notification, 50 us",
        &["switch-role.external.feedback.long-haul={interval=\"50us\",reaction=\"off\"}"],
        [Some([25.2, 8.6, 2.3]), None],
    ),
    ("complete", &[COMPLETE], [None, None]),
    (
        "complete, delay by resubmission",
        &["switch-role.external.feedback.long-haul={interval=\"4us\",reaction=\"delay\"}"],
        [None, None],
    ),
    ("hpcc, as the prototype has it", &[HPCC], [Some([11.7, 3.2, 6.6]), Some([30.4, 7.9, 6.5])]),
    ("hpcc, the prototype's with T of each pair", &[OWN_T], [Some([5.8, 7.6, 6.6]), Some([17.6, 15.7, 6.5])]),
    ("hpcc, T of each pair and true rates", &[CLEAN], [None, None]),
];

const JOBS: [(&str, &str); 3] =
    [("local-100kB", "intra, 100 kB"), ("local-1MB", "intra, 1 MB"), ("remote", "inter, 50 MB")];

fn label(scenario: &str, mode: &str) -> String {
    format!("{scenario}: {mode}")
}

fn cases(_: bool) -> Vec<Case> {
    let of = |(place, scenario): (&str, &'static str)| {
        MODES.map(|(mode, sets, _)| Case::new(label(place, mode), scenario, sets))
    };
    SCENARIOS.into_iter().flat_map(of).collect()
}

/// Mean slowdown of the finished flows of a job.
fn slowdown(run: &Run, job: &str) -> Option<f64> {
    let plan = &run.checked.plan;
    let of_job = |m: &usize| plan.jobs[usize::from(plan.messages[*m].job)].name == job;
    let slowdowns = (0..plan.messages.len()).filter(of_job).filter_map(|m| {
        let (record, qp) = (&run.outcome.messages[m], &plan.qps[plan.messages[m].qp.index()]);
        let fct = (record.acked != Time::NEVER).then(|| record.acked.ps() - record.start.ps())?;
        Some(fct as f64 / ideal(plan, qp.from, qp.to, plan.messages[m].bytes).ps() as f64)
    });
    mean(slowdowns)
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (place, (where_, _)) in SCENARIOS.into_iter().enumerate() {
        for (mode, _, theirs) in MODES {
            let label = label(where_, mode);
            for (i, (job, metric)) in JOBS.into_iter().enumerate() {
                let ours = runs.get(&label).and_then(|run| slowdown(run, job));
                rows.push(match theirs[place] {
                    Some(theirs) => Row::beside(
                        theirs[i],
                        &label,
                        metric,
                        "",
                        ours,
                        "a run of the prototype, not a number of the paper",
                    ),
                    None => Row::ours(
                        &label,
                        metric,
                        "",
                        ours,
                        "the prototype has no such run, or one of its flows never ends",
                    ),
                });
            }
        }
    }
    rows
}

fn more(runs: &Runs) -> String {
    let header =
        ["", "PFC", "out of order", "CNPs made", "holds", "stash peak", "unfinished"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for (place, _) in SCENARIOS {
        for (mode, ..) in MODES {
            let label = label(place, mode);
            let of = |what: &dyn Fn(&Run) -> f64| {
                let values: Vec<f64> = runs.every(&label).map(what).collect();
                super::mean(values.into_iter()).unwrap_or_default()
            };
            table.add_row([
                label.clone(),
                text::count(of(&|run| pauses(run).unwrap_or_default()) as u64),
                text::count(of(&|run| run.summary.packets.out_of_order as f64) as u64),
                text::count(of(&|run| counter(run, "cnps_made")) as u64),
                text::count(of(&|run| counter(run, "holds")) as u64),
                text::bytes(of(&|run| counter(run, "stash_peak")) as u64),
                text::count(of(&unfinished) as u64),
            ]);
        }
    }
    format!("{table}\n")
}
