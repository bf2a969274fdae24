//! Themis (APNET'25), Fig. 1: random packet spraying on commodity RNICs, on a fabric that loses nothing.
//!
//! The paper's three numbers: 16 % of the packets are retransmissions that nobody needed, NICs send at 86 % of
//! line rate in the mean, and goodput is 71-72 % of the ideal: a transport that takes packets in any order and
//! never cuts its rate for it.
//!
//! The paper does not say how its NIC reacts to a NACK, nor this figure's timers. The three numbers hang on that
//! more than on anything else (docs/themis-fig1.md), so the experiment shows them over both, each beside an
//! ideal with the same settings.

use super::{Case, Experiment, Results, Row};
use crate::stats::share;
use crate::tables;
use engine::outcome::QpBin;

/// The experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "themis-fig1",
    source: "Themis (APNET'25), Fig. 1",
    about: "two rings of four NICs under random packet spraying: needless retransmissions, sending rate, goodput",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
};

/// What the paper shows, under our defaults.
const SPRAYED: &str = "rps";

/// A run, and the settings that its ideal shares with it.
struct Line {
    label: &'static str,
    set: &'static [&'static str],
    scheme: &'static str,
    note: &'static str,
}

const TI10: &str = "nic.congestion.dcqcn.rate-increase-timer=10us";
const SLOW_CUTS: &str = "nic.congestion.dcqcn.rate-decrease-interval=50us";
const SLOWER_CUTS: &str = "nic.congestion.dcqcn.rate-decrease-interval=200us";

/// Random spraying, over what the paper leaves open.
const SPRAYINGS: [Line; 6] = [
    Line { label: SPRAYED, set: &[], scheme: "rps", note: "NACK = CNP, timers (900, 4) us" },
    Line { label: "rps, (10, 50)", set: &[TI10, SLOW_CUTS], scheme: "rps", note: "other timers, us" },
    Line { label: "rps, (10, 200)", set: &[TI10, SLOWER_CUTS], scheme: "rps", note: "other timers, us" },
    Line {
        label: "rps, NACK leaves the rate",
        set: &["nic.on-nack=none"],
        scheme: "rps",
        note: "as in the HPCC simulator",
    },
    Line {
        label: "rps, HPCC family's settings",
        set: &[
            "nic.on-nack=none",
            "switch.ecn={kmin=\"400kB\",kmax=\"1600kB\"}",
            "nic.congestion.dcqcn.rate-increase-timer=300us",
            "nic.congestion.dcqcn.additive-increase=20Mbps",
            "nic.congestion.dcqcn.hyper-increase=200Mbps",
            "nic.congestion.dcqcn.min-rate=1Gbps",
        ],
        scheme: "rps",
        note: "closest published settings",
    },
    Line {
        label: "rps, fitted",
        set: &["nic.on-nack={to=0.86}", "nic.ack-every=16", "wire.frame=1062B"],
        scheme: "rps",
        note: "NACK to 0.86: proves little",
    },
];

/// The same flows otherwise; the paper's figure has none of these.
const BESIDE: [Line; 4] = [
    Line { label: "themis", set: &[], scheme: "themis", note: "blocked NACKs unload links" },
    Line {
        label: "themis, on-block = ack",
        set: &["scheme.themis.on-block=ack"],
        scheme: "themis",
        note: "as many replies as ideal",
    },
    Line { label: "ar", set: &[], scheme: "ar", note: "fewer reordered" },
    Line { label: "ecmp", set: &[], scheme: "ecmp", note: "in order; shared uplinks" },
];

/// The ideal that a line is held against: random spraying, the transport `ideal`, settings alike.
fn ideal(line: &Line) -> String {
    let of = if line.scheme == "rps" { line.label } else { SPRAYED };
    format!("{of}, ideal transport")
}

fn cases(quick: bool) -> Vec<Case> {
    let case = |label: &str, line: &Line| {
        let case = Case::new(label, "themis-fig1", &[]).and(format!("scheme.{}={{}}", line.scheme));
        let case = line.set.iter().fold(case, |case, set| case.and(*set));
        if quick { case.and("workload.rings.bytes=10MB") } else { case }
    };
    let mut cases = Vec::new();
    for line in SPRAYINGS.iter().chain(&BESIDE) {
        let recorded = line.label == SPRAYED;
        let run = case(line.label, line);
        cases.push(if recorded { run.and("record.flows=8").and("record.links=0") } else { run });
        if line.scheme == "rps" {
            let reaction = "nic.on-nack=none"; // it hears no NACK; a cap of a rate it has not got is refused
            cases.push(case(&ideal(line), line).and("nic.transport.ideal={}").and(reaction));
        }
    }
    cases
}

fn rows(results: &Results, _quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let m = Measure(results);
    for line in &SPRAYINGS {
        let (label, note) = (line.label, line.note);
        let goodput = m.against_ideal(line);
        for row in [
            Row::beside(16.0, label, "spurious resends / sent", "%", m.spurious(label), note),
            Row::beside(86.0, label, "sending rate / line rate", "%", m.rate(label), note),
            Row::beside(71.5, label, "goodput / ideal transport", "%", goodput, "the paper: 71-72 %"),
        ] {
            rows.push(if label == SPRAYED { row } else { row.tabled() });
        }
    }
    for line in &BESIDE {
        let label = line.label;
        let note = match line.scheme {
            "themis" => "expected: nothing spurious, goodput near 100 % of the ideal",
            "ar" => "expected: between rps and themis",
            _ => "expected: nothing spurious, low goodput where flows share an uplink",
        };
        rows.push(Row::ours(label, "spurious resends / sent", "%", m.spurious(label), note).tabled());
        rows.push(Row::ours(label, "sending rate / line rate", "%", m.rate(label), note).tabled());
        rows.push(Row::ours(label, "goodput / ideal transport", "%", m.against_ideal(line), note).tabled());
    }
    rows
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

    fn against_ideal(&self, line: &Line) -> Option<f64> {
        Some(100.0 * self.goodput(line.label)? / self.goodput(&ideal(line))?)
    }
}

/// The three numbers of every case, and the sprayed run over time.
fn more(results: &Results) -> String {
    format!("{}\n{}What moves the numbers: docs/themis-fig1.md\n", beside(results), over_time(results))
}

fn beside(results: &Results) -> String {
    let header = ["%", "spurious", "rate", "goodput / ideal", "Gb/s", ""].map(str::to_owned);
    let mut table = tables::table(&header, 1);
    if let Some(note) = table.column_mut(5) {
        note.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    table.add_row(["the paper", "16", "86", "71-72", "", ""]);
    let m = Measure(results);
    for line in SPRAYINGS.iter().chain(&BESIDE) {
        let percent = |x: Option<f64>| x.map_or_else(|| "-".into(), |x| format!("{x:.1}"));
        table.add_row([
            line.label.to_owned(),
            percent(m.spurious(line.label)),
            percent(m.rate(line.label)),
            percent(m.against_ideal(line)),
            percent(m.goodput(line.label)),
            line.note.to_owned(),
        ]);
    }
    format!("{table}\n")
}

/// Share of retransmissions and sending rate over time, under random spraying.
fn over_time(results: &Results) -> String {
    let Some(run) = results.get(SPRAYED) else { return String::new() };
    let recording = &run.outcome.recording;
    let (qps, bins) = (&recording.qps, recording.bins);
    let line = run.checked.plan.fabric.links()[0].rate;
    // Ten lines, more or less.
    let step = bins.div_ceil(10).max(1);
    let header = ["time ms", "retransmissions % of sent", "sending rate % of line"].map(str::to_owned);
    let mut rows = tables::table(&header, 0);
    for first in (0..bins).step_by(step) {
        let sum = |column: fn(&QpBin) -> u64| -> u64 {
            qps.iter().flat_map(|(_, bins)| bins.iter().skip(first).take(step).map(column)).sum()
        };
        let (bytes, packets, again) = (sum(|b| b.bytes), sum(|b| b.packets), sum(|b| b.retransmitted));
        let span = model::Time(recording.width.ps() * step.min(bins - first) as u64);
        let room = line.bytes_in(span).get() * qps.len() as u64;
        rows.add_row([
            format!("{:.2}", model::Time(recording.width.ps() * first as u64).as_us() / 1000.0),
            format!("{:.1}", 100.0 * share(again, packets)),
            format!("{:.1}", 100.0 * share(bytes, room)),
        ]);
    }
    format!("Over time, {SPRAYED} (each line from that time on, mean over {} flows):\n{rows}\n", qps.len())
}
