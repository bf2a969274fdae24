//! Themis (APNET'25), Fig. 1: random packet spraying on commodity RNICs, on a fabric without loss.
//!
//! The paper's three numbers: 16 % of the packets are spurious retransmissions, NICs send at 86 % of line rate on
//! average, and goodput is 71-72 % of the ideal. The ideal is a transport that accepts packets in any order and never
//! cuts its rate for it.
//!
//! The paper gives neither its NIC's reaction to a NACK nor the timers of this figure. The three numbers depend on
//! these two more than on anything else (docs/themis-fig1.md). So the experiment varies both, each time beside an
//! ideal with the same settings.

use crate::experiment::{Case, Experiment, Runs};
use crate::picture::{Figure, PaperValue, Picture, Shape, Values};
use crate::row::Row;
use engine::outcome::{QpBin, Recording};
use model::Time;
use results::stats::{extremes, share};
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "themis-fig1",
    source: "Themis (APNET'25), Fig. 1",
    about: "two rings of four NICs under random packet spraying: spurious retransmissions, sending rate, goodput",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture,
};

/// The case of the paper, with our defaults.
const SPRAYED: &str = "rps";

/// A case, and the settings that its ideal shares with it.
struct Setup {
    label: &'static str,
    set: &'static [&'static str],
    scheme: &'static str,
    note: &'static str,
}

const TI10: &str = "nic.congestion.dcqcn.rate-increase-timer=10us";
const SLOW_CUTS: &str = "nic.congestion.dcqcn.rate-decrease-interval=50us";
const SLOWER_CUTS: &str = "nic.congestion.dcqcn.rate-decrease-interval=200us";

/// Random spraying with different values of the settings that the paper does not give.
const SPRAYINGS: [Setup; 6] = [
    Setup { label: SPRAYED, set: &[], scheme: "rps", note: "NACK = CNP, timers (900, 4) us" },
    Setup { label: "rps, (10, 50)", set: &[TI10, SLOW_CUTS], scheme: "rps", note: "other timers, us" },
    Setup { label: "rps, (10, 200)", set: &[TI10, SLOWER_CUTS], scheme: "rps", note: "other timers, us" },
    Setup {
        label: "rps, NACK leaves the rate",
        set: &["nic.on-nack=none"],
        scheme: "rps",
        note: "as in the HPCC simulator",
    },
    Setup {
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
    Setup {
        label: "rps, fitted",
        set: &["nic.on-nack={to=0.86}", "nic.ack-every=16", "wire.frame=1062B"],
        scheme: "rps",
        note: "a NACK cuts to 0.86: fitted, so no evidence",
    },
];

/// The same flows under other schemes, which the paper's figure does not show.
const BESIDE: [Setup; 4] = [
    Setup { label: "themis", set: &[], scheme: "themis", note: "blocked NACKs take no bandwidth" },
    Setup {
        label: "themis, on-block = ack",
        set: &["scheme.themis.on-block=ack"],
        scheme: "themis",
        note: "as many replies as ideal",
    },
    Setup { label: "ar", set: &[], scheme: "ar", note: "fewer packets reordered" },
    Setup { label: "ecmp", set: &[], scheme: "ecmp", note: "in order; flows share uplinks" },
];

/// Label of the ideal that a case is compared with: random spraying and transport `ideal` with the same settings.
fn ideal(setup: &Setup) -> String {
    let of = if setup.scheme == "rps" { setup.label } else { SPRAYED };
    format!("{of}, ideal transport")
}

fn cases(quick: bool) -> Vec<Case> {
    let case = |label: &str, setup: &Setup| {
        let case = Case::new(label, "themis-fig1", &[]).and(format!("scheme.{}={{}}", setup.scheme));
        let case = setup.set.iter().fold(case, |case, set| case.and(*set));
        if quick { case.and("workload.rings.bytes=10MB") } else { case }
    };
    let mut cases = Vec::new();
    for setup in SPRAYINGS.iter().chain(&BESIDE) {
        let run = case(setup.label, setup);
        let recorded = SHOWN.contains(&setup.label);
        cases.push(if recorded { RECORDED.iter().fold(run, |run, set| run.and(*set)) } else { run });
        if setup.scheme == "rps" {
            // An ideal receiver sends no NACKs, and a reaction that changes the rate would be an error.
            let reaction = "nic.on-nack=none";
            cases.push(case(&ideal(setup), setup).and("nic.transport.ideal={}").and(reaction));
        }
    }
    cases
}

fn rows(runs: &Runs, _quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let m = Measure(runs);
    for setup in &SPRAYINGS {
        let (label, note) = (setup.label, setup.note);
        let goodput = m.against_ideal(setup);
        for row in [
            Row::beside(16.0, label, "spurious resends / sent", "%", m.spurious(label), note),
            Row::beside(86.0, label, "sending rate / line rate", "%", m.rate(label), note),
            Row::beside(71.5, label, "goodput / ideal transport", "%", goodput, "the paper: 71-72 %"),
        ] {
            rows.push(if label == SPRAYED { row } else { row.tabled() });
        }
    }
    for setup in &BESIDE {
        let label = setup.label;
        let note = match setup.scheme {
            "themis" => "expected: no spurious retransmission, goodput near 100 % of the ideal",
            "ar" => "expected: between rps and themis",
            _ => "expected: no spurious retransmission, low goodput where flows share an uplink",
        };
        rows.push(Row::ours(label, "spurious resends / sent", "%", m.spurious(label), note).tabled());
        rows.push(Row::ours(label, "sending rate / line rate", "%", m.rate(label), note).tabled());
        rows.push(Row::ours(label, "goodput / ideal transport", "%", m.against_ideal(setup), note).tabled());
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

    fn against_ideal(&self, setup: &Setup) -> Option<f64> {
        Some(100.0 * self.goodput(setup.label)? / self.goodput(&ideal(setup))?)
    }
}

/// The three numbers of every case, and the paper's case over time.
fn more(runs: &Runs) -> String {
    format!("{}\n{}What moves the numbers: docs/themis-fig1.md\n", beside(runs), over_time(runs))
}

fn beside(runs: &Runs) -> String {
    let header = ["%", "spurious", "rate", "goodput / ideal", "Gb/s", ""].map(str::to_owned);
    let mut table = text::table(&header, 1);
    if let Some(note) = table.column_mut(5) {
        note.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    table.add_row(["the paper", "16", "86", "71-72", "", ""]);
    let m = Measure(runs);
    for setup in SPRAYINGS.iter().chain(&BESIDE) {
        let percent = |x: Option<f64>| x.map_or_else(|| "-".into(), |x| format!("{x:.1}"));
        table.add_row([
            setup.label.to_owned(),
            percent(m.spurious(setup.label)),
            percent(m.rate(setup.label)),
            percent(m.against_ideal(setup)),
            percent(m.goodput(setup.label)),
            setup.note.to_owned(),
        ]);
    }
    format!("{table}\n")
}

/// Share of retransmissions and sending rate over time, under random spraying.
fn over_time(runs: &Runs) -> String {
    let Some(run) = runs.get(SPRAYED) else { return String::new() };
    let header = ["time ms", "retransmissions % of sent", "sending rate % of line"].map(str::to_owned);
    let mut rows = text::table(&header, 0);
    let (flows, stretches) = stretches(&run.outcome.recording, run.checked.plan.fabric.links()[0].rate, 10);
    for Stretch { start, again, rate, .. } in stretches {
        rows.add_row([format!("{:.2}", start.as_us() / 1000.0), format!("{again:.1}"), format!("{rate:.1}")]);
    }
    format!(
        "Over time, {SPRAYED} (each line shows the interval that begins at its time; mean over {flows} flows):\n{rows}\n"
    )
}

/// Several bins of all queue pairs together.
struct Stretch {
    start: Time,
    end: Time,
    /// Retransmissions, in percent of the packets sent.
    again: f64,
    /// Bytes sent, in percent of the capacity of the hosts' links.
    rate: f64,
}

/// The number of recorded queue pairs, and the recording divided into at most `most` stretches.
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

/// Recording of the shown cases: all flows and links over time, and the events of one flow.
const RECORDED: [&str; 3] = ["record.flows=8", "record.links=all", "record.events=1"];

/// Cases of the first figure: the paper's case, and other schemes beside it.
const SHOWN: [&str; 4] = [SPRAYED, "ar", "ecmp", "themis"];
const METRICS: [&str; 3] = ["spurious retransmissions", "sending rate", "goodput"];

/// The three numbers as bars with the paper's values, and the paper's case over time.
fn picture(runs: &Runs) -> Picture {
    let m = Measure(runs);
    let setup = |label: &str| SPRAYINGS.iter().chain(&BESIDE).find(|setup| setup.label == label);
    let numbers = |label: &str| {
        [m.spurious(label), m.rate(label), setup(label).and_then(|setup| m.against_ideal(setup))]
    };
    let values = |label: &str| Values {
        name: if label == SPRAYED { "rps (random spraying)".into() } else { label.into() },
        scheme: label.into(),
        x: METRICS.map(str::to_owned).into(),
        y: numbers(label).into(),
    };
    let mark = |metric: usize, y: f64, to: Option<f64>| PaperValue {
        name: "the paper, random spraying".into(),
        x: Some(METRICS[metric].into()),
        y,
        to,
    };
    let three = Figure {
        title: "Random spraying on commodity RNICs, and remedies".into(),
        caption: "Spurious retransmissions in percent of the packets sent (less is better), sending rate in percent of line rate \
                  (more is better), and goodput in percent of a transport that accepts packets in any order. Dotted lines: the \
                  paper's measurements under random spraying."
            .into(),
        shape: Shape::Bars,
        x: "",
        y: "percent",
        series: SHOWN.iter().map(|label| values(label)).collect(),
        paper: vec![mark(0, 16.0, None), mark(1, 86.0, None), mark(2, 71.0, Some(72.0))],
    };
    let mut figures = vec![three];
    if let Some(run) = runs.get(SPRAYED) {
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
        let paper = |name: &str, y| PaperValue { name: name.into(), x: None, y, to: None };
        figures.push(Figure {
            title: "Over time, under random spraying".into(),
            caption: format!(
                "All {flows} flows together. In the paper's figure, retransmissions stay near 16 % and rates near 86 %; the \
                 dotted lines mark these values."
            ),
            shape: Shape::Lines,
            x: "time, ms",
            y: "percent",
            series: vec![
                line("sending rate, of line rate", "ar", |s| s.rate),
                line("retransmissions, of packets sent", "rps", |s| s.again),
            ],
            paper: vec![paper("the paper: 86 %", 86.0), paper("the paper: 16 %", 16.0)],
        });
    }
    let percent = |x: Option<f64>| x.map_or_else(|| "?".into(), |x| format!("{x:.1} %"));
    let open: Vec<f64> = SPRAYINGS.iter().filter_map(|setup| m.spurious(setup.label)).collect();
    let open = extremes(&open).map_or_else(String::new, |(least, most)| {
        format!(
            " The first number depends on the timers and on the reaction to a NACK, which the paper does not give: over our settings \
             it is {least:.1} to {most:.1} %."
        )
    });
    let ([again, rate, goodput], [t_again, t_rate, t_goodput]) = (numbers(SPRAYED), numbers("themis"));
    Picture {
        answer: format!(
            "Under random spraying, {} of the packets are spurious retransmissions (the paper: 16 %), NICs send at {} of line \
             rate (86 %), and goodput is {} of the ideal (71–72 %). Under themis: {}, {} and {}.{open}",
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
