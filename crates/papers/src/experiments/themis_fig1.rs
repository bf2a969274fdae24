//! Themis (APNET'25), Fig. 1: random packet spraying on commodity RNICs, on a fabric without loss.
//!
//! The paper's three numbers: 16 % of the packets are spurious retransmissions, NICs send at 86 % of line rate on
//! average, and goodput is 71-72 % of the ideal. The ideal is a transport that accepts packets in any order and never
//! cuts its rate for it.
//!
//! The scenario has the settings of the HPCC simulator, from which the paper takes those of DCQCN. The paper gives neither
//! its NIC's reaction to a NACK nor the timers of this figure. The three numbers depend on these two more than on anything
//! else (docs/themis-fig1.md). So the experiment varies both, each time beside an ideal with the same settings.

use crate::experiment::{Case, Experiment, Runs};
use crate::picture::{Figure, PaperValue, Picture, Shape, Values};
use crate::row::Row;
use engine::outcome::{QpBin, Recording};
use lab::Run;
use model::Time;
use results::stats::{extremes, mean, share};
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

/// The case of the paper.
const SPRAYED: &str = "rps";

/// Seeds of the cases that stand beside the paper's numbers. Our choice: the smallest number that shows a range.
const SEEDS: [&str; 3] = ["seed=1", "seed=2", "seed=3"];

/// A case, and the settings that its ideal shares with it.
struct Setup {
    label: &'static str,
    set: &'static [&'static str],
    scheme: &'static str,
    note: &'static str,
}

const CNP: &str = "nic.on-nack=as-cnp";
const DEFAULTS: &str = "nic.congestion.dcqcn-hpcc={}";
const NO_MARKS: &str = "switch.ecn=off";
const TI10: &str = "nic.congestion.dcqcn-hpcc.rate-increase-timer=10us";
const SLOW_CUTS: &str = "nic.congestion.dcqcn-hpcc.rate-decrease-interval=50us";
const SLOWER_CUTS: &str = "nic.congestion.dcqcn-hpcc.rate-decrease-interval=200us";

/// Random spraying with different values of the settings that the paper does not give.
const SPRAYINGS: [Setup; 6] = [
    Setup { label: SPRAYED, set: &[], scheme: "rps", note: "the HPCC simulator's settings" },
    Setup {
        label: "rps, NACK = CNP",
        set: &[CNP, DEFAULTS, NO_MARKS],
        scheme: "rps",
        note: "the paper's other timers, (900, 4) us, no marks",
    },
    Setup {
        label: "rps, NACK = CNP, (10, 50)",
        set: &[CNP, DEFAULTS, NO_MARKS, TI10, SLOW_CUTS],
        scheme: "rps",
        note: "other timers, us",
    },
    Setup {
        label: "rps, NACK = CNP, (10, 200)",
        set: &[CNP, DEFAULTS, NO_MARKS, TI10, SLOWER_CUTS],
        scheme: "rps",
        note: "other timers, us",
    },
    Setup {
        label: "rps, no marks",
        set: &[DEFAULTS, NO_MARKS],
        scheme: "rps",
        note: "a NACK leaves the rate alone",
    },
    Setup {
        label: "rps, fitted",
        set: &["nic.on-nack={to=0.86}", DEFAULTS, NO_MARKS, "nic.ack-every=16", "wire.frame=1062B"],
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

impl Setup {
    /// The seeds of its runs, and of those of its ideal.
    fn seeds(&self) -> &'static [&'static str] {
        if self.label == SPRAYED || self.label == BESIDE[0].label { &SEEDS } else { &SEEDS[..1] }
    }
}

/// Label of the ideal that a case is compared with: random spraying and transport `ideal` with the same settings.
fn ideal(setup: &Setup) -> String {
    let of = if setup.scheme == "rps" { setup.label } else { SPRAYED };
    format!("{of}, ideal transport")
}

fn cases(quick: bool) -> Vec<Case> {
    let case = |label: &str, setup: &Setup, seed: &str| {
        let case = Case::new(label, "themis-fig1", &[seed]).and(format!("scheme.{}={{}}", setup.scheme));
        let case = setup.set.iter().fold(case, |case, set| case.and(*set));
        if quick { case.and("workload.rings.bytes=10MB") } else { case }
    };
    let mut cases = Vec::new();
    for (setup, seed) in
        SPRAYINGS.iter().chain(&BESIDE).flat_map(|setup| setup.seeds().iter().map(move |seed| (setup, *seed)))
    {
        let run = case(setup.label, setup, seed);
        let recorded = SHOWN.contains(&setup.label) && seed == SEEDS[0];
        cases.push(if recorded { RECORDED.iter().fold(run, |run, set| run.and(*set)) } else { run });
        if setup.scheme == "rps" {
            // An ideal receiver sends no NACKs, and a reaction that changes the rate would be an error.
            let reaction = "nic.on-nack=none";
            cases.push(case(&ideal(setup), setup, seed).and("nic.transport.ideal={}").and(reaction));
        }
    }
    cases
}

fn rows(runs: &Runs, _quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let m = Measure(runs);
    for setup in &SPRAYINGS {
        let label = setup.label;
        for (paper, metric, values) in [
            (16.0, "spurious resends / sent", m.spurious(setup)),
            (86.0, "sending rate / line rate", m.rate(setup)),
            (71.5, "goodput / ideal transport (the paper: 71-72 %)", m.against_ideal(setup)),
        ] {
            let note = match extremes(&values) {
                Some((least, most)) if values.len() > 1 => {
                    format!("{}; seeds 1 to {}: {least:.1} to {most:.1}", setup.note, values.len())
                }
                _ => setup.note.to_owned(),
            };
            let row = Row::beside(paper, label, metric, "%", mean(&values), note);
            rows.push(if label == SPRAYED { row } else { row.tabled() });
        }
    }
    for setup in &BESIDE {
        let note = match setup.scheme {
            "themis" => "expected: no spurious retransmission, goodput near 100 % of the ideal",
            "ar" => "expected: between rps and themis",
            _ => "expected: no spurious retransmission, low goodput where flows share an uplink",
        };
        for (metric, values) in [
            ("spurious resends / sent", m.spurious(setup)),
            ("sending rate / line rate", m.rate(setup)),
            ("goodput / ideal transport", m.against_ideal(setup)),
        ] {
            rows.push(Row::ours(setup.label, metric, "%", mean(&values), note).tabled());
        }
    }
    rows
}

/// The numbers of a case, one for each seed.
struct Measure<'a>(&'a Runs);

impl Measure<'_> {
    fn of(&self, label: &str, what: fn(&Run) -> Option<f64>) -> Vec<f64> {
        self.0.all(label).into_iter().filter_map(|run| run.and_then(what)).collect()
    }

    fn spurious(&self, setup: &Setup) -> Vec<f64> {
        self.of(setup.label, |run| {
            Some(100.0 * share(run.summary.packets.spurious, run.summary.packets.sent))
        })
    }

    fn rate(&self, setup: &Setup) -> Vec<f64> {
        self.of(setup.label, |run| Some(100.0 * run.summary.sending_rate_fraction.mean?))
    }

    fn goodput(&self, label: &str) -> Vec<f64> {
        self.of(label, |run| run.summary.goodput_gbps.mean)
    }

    fn against_ideal(&self, setup: &Setup) -> Vec<f64> {
        let ours = self.goodput(setup.label);
        let percent = |(ours, ideal): (&f64, f64)| 100.0 * ours / ideal;
        ours.iter().zip(self.goodput(&ideal(setup))).map(percent).collect()
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
        let percent = |values: Vec<f64>| mean(&values).map_or_else(|| "-".into(), |x| format!("{x:.1}"));
        table.add_row([
            setup.label.to_owned(),
            percent(m.spurious(setup)),
            percent(m.rate(setup)),
            percent(m.against_ideal(setup)),
            percent(m.goodput(setup.label)),
            setup.note.to_owned(),
        ]);
    }
    let several = SPRAYINGS.iter().chain(&BESIDE).filter(|setup| setup.seeds().len() > 1);
    let several: Vec<&str> = several.map(|setup| setup.label).collect();
    format!(
        "{table}\nMeans over {} seeds for {}; other cases have one seed.\n",
        SEEDS.len(),
        several.join(" and ")
    )
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
    let numbers = |label: &str| match setup(label) {
        Some(setup) => [m.spurious(setup), m.rate(setup), m.against_ideal(setup)].map(|values| mean(&values)),
        None => [None; 3],
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
    let open: Vec<f64> = SPRAYINGS.iter().filter_map(|setup| mean(&m.spurious(setup))).collect();
    let open = extremes(&open).map_or_else(String::new, |(least, most)| {
        format!(
            " The first number depends on the timers and on the reaction to a NACK, which the paper does not give: over our settings \
             it is {least:.1} to {most:.1} %."
        )
    });
    let ([again, rate, goodput], [t_again, t_rate, t_goodput]) = (numbers(SPRAYED), numbers("themis"));
    Picture {
        answer: format!(
            "Under random spraying with the HPCC simulator's settings, {} of the packets are spurious retransmissions (the paper: 16 \
             %), NICs send at {} of line rate (86 %), and goodput is {} of the ideal (71–72 %). Under themis: {}, {} and {}.{open}",
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
