//! Long-haul THEMIS: the effect of each part and of its constants, rival designs, and finite buffers.

use super::{
    COMPLETE, PROTOTYPE, PROTOTYPE_NOTIFICATION, PROTOTYPE_REACTION, counter, inter, intra, pauses, seeded,
    shown, unfairness,
};
use crate::experiment::{Case, Experiment, Runs};
use crate::row::Row;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "long-haul-ablation",
    source: "THEMIS for long-haul RDMA (Liu et al.); the paper has no ablation",
    about: "two datacentres, web search: each part of the edge alone, its interval, Annulus, a naive design, buffers",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

macro_rules! edge {
    ($settings:literal) => {
        concat!("switch-role.external.feedback.long-haul={", $settings, "}")
    };
}

const FRAMES: [&str; 3] = [
    "nic.cnp=\"frame\"",
    "nic.cnp-interval=\"50us\"",
    "nic.congestion.dcqcn-hpcc={rate-decrease-interval=\"50us\"}",
];
/// Headroom for one millisecond of the long link and for the other ports, and 32 MiB of shared buffer.
const FINITE: &str = "switch-role.external.buffer=\"250MB\"";
/// One ACK per message. The largest flow has 30 MB, so with this window no sender waits for an ACK inside a flow.
const PER_OPERATION: [&str; 3] =
    ["nic.ack-per-message=true", "nic.window={bytes=\"40MB\"}", "nic.window-scales-with-rate=false"];

const MODES: [(&str, &[&str]); 24] = [
    ("dcqcn", &[]),
    ("complete", &[COMPLETE]),
    ("notification alone", &[edge!("interval=\"4us\",reaction=\"off\"")]),
    ("reaction alone", &[edge!("interval=\"4us\",notification=\"off\"")]),
    ("complete, no gate", &[edge!("interval=\"4us\",gate=false")]),
    ("interval 0", &[edge!("interval=\"0us\"")]),
    ("interval 10 us", &[edge!("interval=\"10us\"")]),
    ("interval 50 us", &[edge!("interval=\"50us\"")]),
    ("delay alone, by resubmission", &[edge!("interval=\"4us\",reaction=\"delay\"")]),
    ("virtual rate alone", &[edge!("interval=\"4us\",first-delay=\"0us\"")]),
    (
        "virtual rate as slow as the sender's",
        &[edge!("interval=\"4us\",rate={rate-increase-timer=\"900us\",fast-recovery=1}")],
    ),
    ("prototype", &[PROTOTYPE]),
    ("prototype, notification alone", &[PROTOTYPE_NOTIFICATION]),
    ("prototype, reaction alone", &[PROTOTYPE_REACTION]),
    ("annulus", &["switch-role.tor.feedback.direct-cnp={interval=\"4us\",beyond=\"100us\",from-hosts=true}"]),
    ("naive: every switch, every packet", &["feedback.direct-cnp={interval=\"0us\"}"]),
    ("CNP frames every 50 us: dcqcn", &FRAMES),
    ("CNP frames every 50 us: notification", &[FRAMES[0], FRAMES[1], FRAMES[2], edge!("reaction=\"off\"")]),
    ("CNP frames every 50 us: complete", &[FRAMES[0], FRAMES[1], FRAMES[2], edge!("")]),
    (
        "an ACK per message, CNP frames: dcqcn",
        &[FRAMES[0], PER_OPERATION[0], PER_OPERATION[1], PER_OPERATION[2]],
    ),
    (
        "an ACK per message, CNP frames: complete",
        &[FRAMES[0], PER_OPERATION[0], PER_OPERATION[1], PER_OPERATION[2], COMPLETE],
    ),
    ("finite buffer at the edge: dcqcn", &[FINITE]),
    ("finite buffer at the edge: complete", &[FINITE, COMPLETE]),
    ("finite buffer, stash of 20 MB", &[FINITE, edge!("interval=\"4us\",stash=\"20MB\"")]),
];

fn cases(quick: bool) -> Vec<Case> {
    let all = MODES.iter().flat_map(|(label, sets)| seeded(label, sets, if quick { 1 } else { 3 }));
    match quick {
        true => all.map(|case| case.and("workload.0.poisson.duration=2500us")).collect(),
        false => all.collect(),
    }
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (label, _) in MODES {
        let measures: [(&str, super::Of); 4] = [
            ("mean slowdown, intra", intra),
            ("mean slowdown, inter", inter),
            ("intra / inter", unfairness),
            ("PFC frames", pauses),
        ];
        for (metric, of) in measures {
            let ours = runs.estimate(label, of).map(|e| e.mean);
            rows.push(Row::ours(label, metric, "", ours, "no number in the paper").tabled());
        }
    }
    rows
}

fn more(runs: &Runs) -> String {
    let header =
        ["", "intra", "inter", "intra / inter", "PFC", "CNPs made", "gated", "stash peak"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for (label, _) in MODES {
        let of = |name: &str| {
            let values: Vec<f64> = runs.every(label).map(|run| counter(run, name)).collect();
            super::mean(values.into_iter()).unwrap_or_default()
        };
        table.add_row([
            label.to_owned(),
            shown(runs.estimate(label, intra)),
            shown(runs.estimate(label, inter)),
            shown(runs.estimate(label, unfairness)),
            text::maybe(runs.estimate(label, pauses).map(|e| e.mean)),
            text::count(of("cnps_made") as u64),
            text::count(of("cnps_gated") as u64),
            text::bytes(of("stash_peak") as u64),
        ]);
    }
    format!(
        "Mean slowdown (with the 95 % interval of the mean over seeds), and counts per run:\n{table}\n\n\
         Conclusions: docs/long-haul.md\n"
    )
}
