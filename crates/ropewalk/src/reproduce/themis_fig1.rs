//! Themis (APNET'25), Fig. 1: random packet spraying on commodity RNICs, on a fabric that loses nothing.
//!
//! The paper's three numbers: 16 % of the packets are retransmissions that nobody needed, NICs send at 86 % of
//! line rate in the mean, and goodput is 71-72 % of what an ideal transport (no needless retransmission, no
//! needless rate cut) has on the same sprayed fabric.

use super::{Case, Experiment, Results, Row};
use crate::execute::Run;
use crate::stats::share;
use crate::tables;
use engine::outcome::{Track, TrackOf};

/// The experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "themis-fig1",
    source: "Themis (APNET'25), Fig. 1",
    about: "two rings of four NICs under random packet spraying: needless retransmissions, sending rate, goodput",
    cases,
    rows,
    more,
};

/// What the paper shows.
const SPRAYED: &str = "rps";
/// The same with a transport that takes any order.
const IDEAL: &str = "rps, ideal transport";
/// Beside it; the paper's figure has none of these.
const BESIDE: [&str; 3] = ["themis", "ar", "ecmp"];

fn cases(quick: bool) -> Vec<Case> {
    let case = |label: &str, set: String| {
        let case = Case::new(label, "themis-fig1", &[]).and(set).and("series.flows=8").and("series.links=0");
        if quick { case.and("workload.rings.bytes=10MB") } else { case }
    };
    let mut cases = vec![case(SPRAYED, "scheme.rps={}".into()), case(IDEAL, "nic.transport.ideal={}".into())];
    cases.extend(BESIDE.map(|scheme| case(scheme, format!("scheme.{scheme}={{}}"))));
    cases
}

fn spurious(run: &Run) -> f64 {
    100.0 * share(run.summary.packets.spurious, run.summary.packets.sent)
}

fn rows(results: &Results, quick: bool) -> Vec<Row> {
    let bytes = if quick { "10 MB in place of 100 MB" } else { "" };
    let goodput = |label| results.get(label)?.summary.goodput_gbps.mean;
    let against = |label| Some(100.0 * goodput(label)? / goodput(IDEAL)?);
    let rate = |label| Some(100.0 * results.get(label)?.summary.sending_rate_fraction.mean?);
    let wasted = |label| results.get(label).map(spurious);
    let mut rows = vec![
        Row::beside(16.0, SPRAYED, "spurious retransmissions", "% of sent", wasted(SPRAYED), bytes),
        Row::beside(86.0, SPRAYED, "mean sending rate", "% of line", rate(SPRAYED), bytes),
        Row::beside(71.5, SPRAYED, "goodput against ideal", "%", against(SPRAYED), "the paper: 71-72 %"),
    ];
    for label in BESIDE {
        let (waste, whole) = match label {
            "themis" => ("expected: about 0", "expected: near 100"),
            "ar" => ("expected: fewer than rps", "expected: between rps and themis"),
            _ => ("expected: 0, flows keep their order", "expected: low where flows share an uplink"),
        };
        rows.push(Row::ours(label, "spurious retransmissions", "% of sent", wasted(label), waste));
        rows.push(Row::ours(label, "mean sending rate", "% of line", rate(label), ""));
        rows.push(Row::ours(label, "goodput against ideal", "%", against(label), whole));
    }
    rows
}

/// Share of retransmissions and sending rate over time, under random spraying.
fn more(results: &Results) -> String {
    let Some(run) = results.get(SPRAYED) else { return String::new() };
    let series = &run.outcome.series;
    let qps: Vec<&Track> = series.tracks.iter().filter(|t| matches!(t.of, TrackOf::Qp(_))).collect();
    let bins = qps.iter().map(|t| t.bytes.len()).max().unwrap_or(0);
    let line = run.checked.plan.fabric.links()[0].rate;
    // Ten lines, more or less.
    let step = bins.div_ceil(10).max(1);
    let header = ["time ms", "retransmissions % of sent", "sending rate % of line"].map(str::to_owned);
    let mut rows = tables::table(&header, 0);
    for first in (0..bins).step_by(step) {
        let sum = |column: fn(&Track) -> &Vec<u64>| -> u64 {
            qps.iter().map(|t| column(t).iter().skip(first).take(step).sum::<u64>()).sum()
        };
        let (bytes, packets, again) = (sum(|t| &t.bytes), sum(|t| &t.packets), sum(|t| &t.retransmitted));
        let span = model::Time(series.width.ps() * step.min(bins - first) as u64);
        let room = line.bytes_in(span).get() * qps.len() as u64;
        rows.add_row([
            format!("{:.2}", model::Time(series.width.ps() * first as u64).as_us() / 1000.0),
            format!("{:.1}", 100.0 * share(again, packets)),
            format!("{:.1}", 100.0 * share(bytes, room)),
        ]);
    }
    format!("Over time, {SPRAYED} (each line from that time on, mean over {} flows):\n{rows}\n", qps.len())
}
