//! Themis (APNET'25), Fig. 1: random packet spraying on commodity RNICs, on a fabric that loses nothing.
//!
//! The paper's three numbers: 16 % of the packets are retransmissions that nobody needed, NICs send at 86 % of
//! line rate in the mean, and goodput is 71-72 % of the ideal: a transport that takes packets in any order and
//! never cuts its rate for it.
//!
//! The paper does not say how its NIC reacts to a NACK, nor this figure's timers. The three numbers hang on that
//! more than on anything else (docs/themis-fig1.md), so the experiment shows them over both, each beside an
//! ideal with the same settings.

use crate::experiment::{Case, Experiment, Runs};
use crate::picture::{Figure, Mark, Picture, Shape, Values};
use crate::row::Row;
use engine::outcome::{QpBin, Recording};
use model::Time;
use results::stats::{extremes, share};
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "themis-fig1",
    source: "Themis (APNET'25), Fig. 1",
    about: "two rings of four NICs under random packet spraying: needless retransmissions, sending rate, goodput",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture,
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
        let run = case(line.label, line);
        let recorded = SHOWN.contains(&line.label);
        cases.push(if recorded { RECORDED.iter().fold(run, |run, set| run.and(*set)) } else { run });
        if line.scheme == "rps" {
            let reaction = "nic.on-nack=none"; // it hears no NACK; a cap of a rate it has not got is refused
            cases.push(case(&ideal(line), line).and("nic.transport.ideal={}").and(reaction));
        }
    }
    cases
}

fn rows(results: &Runs, _quick: bool) -> Vec<Row> {
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

struct Measure<'a>(&'a Runs);

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
fn more(results: &Runs) -> String {
    format!("{}\n{}What moves the numbers: docs/themis-fig1.md\n", beside(results), over_time(results))
}

fn beside(results: &Runs) -> String {
    let header = ["%", "spurious", "rate", "goodput / ideal", "Gb/s", ""].map(str::to_owned);
    let mut table = text::table(&header, 1);
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
fn over_time(results: &Runs) -> String {
    let Some(run) = results.get(SPRAYED) else { return String::new() };
    let header = ["time ms", "retransmissions % of sent", "sending rate % of line"].map(str::to_owned);
    let mut rows = text::table(&header, 0);
    let (flows, stretches) = stretches(&run.outcome.recording, run.checked.plan.fabric.links()[0].rate, 10);
    for Stretch { start, again, rate, .. } in stretches {
        rows.add_row([format!("{:.2}", start.as_us() / 1000.0), format!("{again:.1}"), format!("{rate:.1}")]);
    }
    format!("Over time, {SPRAYED} (each line from that time on, mean over {flows} flows):\n{rows}\n")
}

/// Some bins of all queue pairs together.
struct Stretch {
    start: Time,
    end: Time,
    /// Retransmissions, per cent of what was sent.
    again: f64,
    /// Bytes sent, per cent of what the links of hosts could carry.
    rate: f64,
}

/// The recording cut into about `most` stretches, and how many queue pairs are in it.
fn stretches(recording: &Recording, line: model::Rate, most: usize) -> (usize, Vec<Stretch>) {
    let (qps, bins) = (&recording.qps, recording.bins);
    let step = bins.div_ceil(most).max(1);
    let stretch = |first: usize| {
        let sum = |column: fn(&QpBin) -> u64| -> u64 {
            qps.iter().flat_map(|(_, bins)| bins.iter().skip(first).take(step).map(column)).sum()
        };
        let (bytes, packets, again) = (sum(|b| b.bytes), sum(|b| b.packets), sum(|b| b.retransmitted));
        let span = Time(recording.width.ps() * step.min(bins - first) as u64);
        let room = line.bytes_in(span).get() * qps.len() as u64;
        let start = Time(recording.width.ps() * first as u64);
        Stretch {
            start,
            end: Time(start.ps() + span.ps()),
            again: 100.0 * share(again, packets),
            rate: 100.0 * share(bytes, room),
        }
    };
    (qps.len(), (0..bins).step_by(step).map(stretch).collect())
}

/// What is recorded of them: all flows and links over time, and how the packets of one flow arrive.
const RECORDED: [&str; 3] = ["record.flows=8", "record.links=all", "record.events=1"];

/// Lines of the first figure: what the paper shows, and what a page says beside it.
const SHOWN: [&str; 4] = [SPRAYED, "ar", "ecmp", "themis"];
const METRICS: [&str; 3] = ["sent again needlessly", "sending rate", "goodput"];

/// The three numbers as bars with the paper's in them, and the sprayed run over time.
fn picture(results: &Runs) -> Picture {
    let m = Measure(results);
    let line = |label: &str| SPRAYINGS.iter().chain(&BESIDE).find(|line| line.label == label);
    let numbers =
        |label: &str| [m.spurious(label), m.rate(label), line(label).and_then(|line| m.against_ideal(line))];
    let values = |label: &str| Values {
        name: if label == SPRAYED { "rps (random spraying)".into() } else { label.into() },
        scheme: label.into(),
        x: METRICS.map(str::to_owned).into(),
        y: numbers(label).into(),
    };
    let mark = |metric: usize, y: f64, to: Option<f64>| Mark {
        name: "the paper, random spraying".into(),
        x: Some(METRICS[metric].into()),
        y,
        to,
    };
    let three = Figure {
        title: "Random spraying on commodity RNICs, and what remedies it".into(),
        caption: "Per cent. Needless retransmissions: of the packets sent, less is better. Sending rate: of line rate, more is \
                  better. Goodput: of a transport that takes packets in any order. Dotted: what the paper measured \
                  under random spraying."
            .into(),
        shape: Shape::Bars,
        x: "",
        y: "per cent",
        series: SHOWN.iter().map(|label| values(label)).collect(),
        paper: vec![mark(0, 16.0, None), mark(1, 86.0, None), mark(2, 71.0, Some(72.0))],
    };
    let mut figures = vec![three];
    if let Some(run) = results.get(SPRAYED) {
        let (flows, stretches) =
            stretches(&run.outcome.recording, run.checked.plan.fabric.links()[0].rate, 100);
        let middle = |s: &Stretch| format!("{:.4}", (s.start.as_us() + s.end.as_us()) / 2000.0);
        let x: Vec<String> = stretches.iter().map(middle).collect();
        let line = |name: &str, scheme: &str, of: fn(&Stretch) -> f64| Values {
            name: name.into(),
            scheme: scheme.into(),
            x: x.clone(),
            y: stretches.iter().map(|s| Some(of(s))).collect(),
        };
        let paper = |name: &str, y| Mark { name: name.into(), x: None, y, to: None };
        figures.push(Figure {
            title: "Over time, under random spraying".into(),
            caption: format!(
                "All {flows} flows together. The paper's figure shows retransmissions around 16 % and rates around 86 % all \
                 the time; the dotted lines mark them."
            ),
            shape: Shape::Lines,
            x: "time, ms",
            y: "per cent",
            series: vec![
                line("sending rate, of line rate", "ar", |s| s.rate),
                line("retransmissions, of packets sent", "rps", |s| s.again),
            ],
            paper: vec![paper("the paper: 86 %", 86.0), paper("the paper: 16 %", 16.0)],
        });
    }
    let percent = |x: Option<f64>| x.map_or_else(|| "?".into(), |x| format!("{x:.1} %"));
    let open: Vec<f64> = SPRAYINGS.iter().filter_map(|line| m.spurious(line.label)).collect();
    let open = extremes(&open).map_or_else(String::new, |(least, most)| {
        format!(
            " The first number hangs on what the paper leaves open, timers and what a NACK does to the rate: over our settings of \
             these it is {least:.1} to {most:.1} %."
        )
    });
    let ([again, rate, goodput], [t_again, t_rate, t_goodput]) = (numbers(SPRAYED), numbers("themis"));
    Picture {
        answer: format!(
            "Under random spraying, {} of what NICs send are retransmissions that nobody needed (the paper: 16 %), they send at {} \
             of line rate (86 %), and goodput is {} of the ideal (71–72 %). With themis: {}, {} and {}.{open}",
            percent(again),
            percent(rate),
            percent(goodput),
            percent(t_again),
            percent(t_rate),
            percent(t_goodput)
        ),
        figures,
        detailed: SHOWN
            .iter()
            .map(|label| (*label).to_owned())
            .chain([format!("{SPRAYED}, ideal transport")])
            .collect(),
    }
}
