//! Themis (APNET'25), Fig. 1: random packet spraying on commodity RNICs, on a fabric that loses nothing.
//!
//! The paper's three numbers: 16 % of the packets are retransmissions that nobody needed, NICs send at 86 % of
//! line rate in the mean, and goodput is 71-72 % of the ideal. What the ideal is it does not say; since 86 % of
//! line rate less 16 % of it is 72 %, line rate fits. We print both that and an ideal transport (which takes
//! packets in any order and never cuts its rate for it) on the same sprayed fabric.
//!
//! The paper does not say either how its NIC reacts to a NACK. The three numbers hang on that and on the timers
//! and steps of DCQCN more than on anything else, so the experiment shows them over both.

use super::{Case, Experiment, Results, Row};
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

/// What the paper leaves open, with random spraying: label and changes.
const OPEN: [(&str, &[&str]); 10] = [
    ("NACK: no reaction", &["nic.on-nack=none"]),
    ("NACK: to 0.86 of the rate", &["nic.on-nack={to=0.86}"]),
    ("NACK: to half the rate", &["nic.on-nack={to=0.5}"]),
    ("NACK: stall 17 us", &["nic.on-nack={stall=\"17us\"}"]),
    ("(300, 4)", &[TI300, TD4]),
    ("(10, 4)", &[TI10, TD4]),
    ("(55, 50)", &[TI55, TD50]),
    ("(10, 50)", &[TI10, TD50]),
    ("(10, 200)", &[TI10, "nic.congestion.dcqcn.rate-decrease-interval=200us"]),
    (
        "(10, 50), steps x 10",
        &[
            TI10,
            TD50,
            "nic.congestion.dcqcn.additive-increase=500Mbps",
            "nic.congestion.dcqcn.hyper-increase=1Gbps",
        ],
    ),
];
const TI300: &str = "nic.congestion.dcqcn.rate-increase-timer=300us";
const TI55: &str = "nic.congestion.dcqcn.rate-increase-timer=55us";
const TI10: &str = "nic.congestion.dcqcn.rate-increase-timer=10us";
const TD4: &str = "nic.congestion.dcqcn.rate-decrease-interval=4us";
const TD50: &str = "nic.congestion.dcqcn.rate-decrease-interval=50us";

fn cases(quick: bool) -> Vec<Case> {
    let case = |label: &str, set: &[&str]| {
        let case = Case::new(label, "themis-fig1", set);
        if quick { case.and("workload.rings.bytes=10MB") } else { case }
    };
    let recorded = ["series.flows=8", "series.links=0"];
    let mut cases = vec![case(SPRAYED, &recorded), case(IDEAL, &["nic.transport.ideal={}"])];
    cases.extend(BESIDE.map(|scheme| case(scheme, &[]).and(format!("scheme.{scheme}={{}}"))));
    cases.extend(OPEN.map(|(label, set)| case(&format!("{SPRAYED}, {label}"), set)));
    cases
}

fn rows(results: &Results, quick: bool) -> Vec<Row> {
    let size = if quick { "10 MB in place of 100 MB" } else { "" };
    let mut rows = the_three(results, SPRAYED, size);
    let measure = Measure(results);
    rows.push(Row::beside(
        71.5,
        SPRAYED,
        "goodput / ideal transport",
        "%",
        measure.against_ideal(SPRAYED),
        "the paper's ideal may be this one",
    ));
    for label in BESIDE {
        let (waste, whole) = match label {
            "themis" => ("expected: about 0", "expected: near 100"),
            "ar" => ("expected: fewer than rps", "expected: between rps and themis"),
            _ => ("expected: 0, flows keep their order", "expected: low where flows share an uplink"),
        };
        rows.push(Row::ours(label, "spurious resends / sent", "%", measure.spurious(label), waste));
        rows.push(Row::ours(
            label,
            "sending rate / line rate",
            "%",
            measure.rate(label),
            "expected: near its goodput",
        ));
        rows.push(Row::ours(label, "goodput / line rate", "%", measure.against_line(label), whole));
        let against = measure.against_ideal(label);
        rows.push(Row::ours(label, "goodput / ideal transport", "%", against, whole));
    }
    for (label, _) in OPEN {
        rows.extend(the_three(results, &format!("{SPRAYED}, {label}"), "the paper does not say"));
    }
    rows
}

/// The three numbers that the paper gives.
fn the_three(results: &Results, label: &str, note: &str) -> Vec<Row> {
    let m = Measure(results);
    let goodput = "the paper: 71-72 %";
    vec![
        Row::beside(16.0, label, "spurious resends / sent", "%", m.spurious(label), note),
        Row::beside(86.0, label, "sending rate / line rate", "%", m.rate(label), note),
        Row::beside(71.5, label, "goodput / line rate", "%", m.against_line(label), goodput),
    ]
}

struct Measure<'a>(&'a Results);

impl Measure<'_> {
    fn spurious(&self, label: &str) -> Option<f64> {
        self.0.get(label).map(|run| 100.0 * share(run.summary.packets.spurious, run.summary.packets.sent))
    }

    fn rate(&self, label: &str) -> Option<f64> {
        Some(100.0 * self.0.get(label)?.summary.sending_rate_fraction.mean?)
    }

    fn goodput(&self, label: &str) -> Option<f64> {
        self.0.get(label)?.summary.goodput_gbps.mean
    }

    fn against_ideal(&self, label: &str) -> Option<f64> {
        Some(100.0 * self.goodput(label)? / self.goodput(IDEAL)?)
    }

    /// Against a NIC that sends payload at line rate, headers and gaps taken off.
    fn against_line(&self, label: &str) -> Option<f64> {
        let plan = &self.0.get(label)?.checked.plan;
        let (line, wire) = (plan.fabric.links()[0].rate, plan.wire);
        let payload = f64::from(wire.payload) / f64::from(wire.max_frame() + wire.gap);
        Some(100.0 * self.goodput(label)? / (line.as_gbps() * payload))
    }
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
