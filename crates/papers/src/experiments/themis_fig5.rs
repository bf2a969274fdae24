//! Themis (APNET'25), Fig. 5: collectives on 256 NICs over the timers of DCQCN.
//!
//! The paper gives the time by which Themis shortens the slowest group compared with adaptive routing: 15.6-75.3 %
//! (all-reduce) and 11.5-40.7 % (all-to-all). The paper's text names only one of its pairs (T_I, T_D): (900 us, 4 us).
//! Ours are this pair, the defaults of the HPCC family of simulators, and pairs between them.

use crate::experiment::{Case, Experiment, Runs};
use crate::picture::{Figure, PaperValue, Picture, Shape, Values};
use crate::row::Row;
use results::stats::extremes;
use results::text;

/// Both collectives.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "themis-fig5",
    source: "Themis (APNET'25), Fig. 5",
    about: "all-reduce and all-to-all of 300 MB in 16 groups of 16 NICs: time of the slowest group over the timers of DCQCN",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture,
};

/// A line of the figure: a collective, and whether its queue pairs and their rates persist across messages.
struct Curve {
    scenario: &'static str,
    job: &'static str,
    qp: &'static str,
    name: &'static str,
    /// Range by which Themis is shorter than adaptive routing in the paper, in percent.
    paper: (f64, f64),
}

/// In an all-to-all, a queue pair carries one message, so persistence makes no difference.
const CURVES: [Curve; 3] = [
    Curve {
        scenario: "themis-fig5-allreduce",
        job: "all-reduce",
        qp: "persistent",
        name: "all-reduce, persistent QPs",
        paper: (15.6, 75.3),
    },
    Curve {
        scenario: "themis-fig5-allreduce",
        job: "all-reduce",
        qp: "per-message",
        name: "all-reduce, QP per message",
        paper: (15.6, 75.3),
    },
    Curve {
        scenario: "themis-fig5-alltoall",
        job: "all-to-all",
        qp: "persistent",
        name: "all-to-all",
        paper: (11.5, 40.7),
    },
];
const SCHEMES: [&str; 3] = ["ecmp", "ar", "themis"];
/// Pairs (T_I, T_D), us.
const TIMERS: [(u32, u32); 7] = [(900, 4), (300, 4), (100, 4), (10, 4), (55, 50), (10, 50), (10, 200)];

fn label(curve: &Curve, (increase, decrease): (u32, u32), scheme: &str) -> String {
    format!("{} ({increase}, {decrease}) {scheme}", curve.name)
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for curve in &CURVES {
        let job = curve.job;
        for timers @ (increase, decrease) in TIMERS {
            for scheme in SCHEMES {
                let mut case = Case::new(label(curve, timers, scheme), curve.scenario, &[])
                    .and(format!("scheme.{scheme}={{}}"))
                    .and(format!("nic.congestion.dcqcn.rate-increase-timer={increase}us"))
                    .and(format!("nic.congestion.dcqcn.rate-decrease-interval={decrease}us"))
                    .and(format!("workload.{job}.qp={}", curve.qp));
                if quick {
                    for small in ["leaves=4", "spines=4", "hosts-per-leaf=4"] {
                        case = case.and(format!("topology.leaf-spine.{small}"));
                    }
                    case = case.and(format!("workload.{job}.bytes=12MB"));
                }
                cases.push(case);
            }
        }
    }
    cases
}

/// Completion time of the slowest group under each scheme, and the percentage by which Themis is shorter than adaptive
/// routing.
fn measured(runs: &Runs, curve: &Curve, timers: (u32, u32)) -> ([Option<f64>; 3], Option<f64>) {
    let slowest = SCHEMES.map(|scheme| runs.get(&label(curve, timers, scheme))?.slowest_group_ms());
    let saved = slowest[1].zip(slowest[2]).map(|(ar, themis)| 100.0 * (1.0 - themis / ar));
    (slowest, saved)
}

fn rows(runs: &Runs, quick: bool) -> Vec<Row> {
    let note = if quick {
        "4 x 4 x 4 and 12 MB instead of 16 x 16 x 16 and 300 MB; expected: themis shortest"
    } else {
        "expected: themis shortest"
    };
    let mut rows = Vec::new();
    for curve in &CURVES {
        let mut all = Vec::new();
        for timers in TIMERS {
            let (slowest, saved) = measured(runs, curve, timers);
            for (scheme, ms) in SCHEMES.iter().zip(slowest) {
                let case = label(curve, timers, scheme);
                rows.push(Row::ours(&case, "slowest group", "ms", ms, note).tabled());
            }
            let case = label(curve, timers, "themis / ar");
            rows.push(
                Row::ours(&case, "shorter by", "%", saved, "expected: within the paper's range").tabled(),
            );
            all.extend(saved);
        }
        let (least, most) = extremes(&all).unzip();
        let (name, (low, high)) = (curve.name, curve.paper);
        rows.push(Row::beside(
            low,
            name,
            "themis / ar: shorter by at least",
            "%",
            least,
            "lowest value over our timers",
        ));
        rows.push(Row::beside(
            high,
            name,
            "themis / ar: shorter by at most",
            "%",
            most,
            "highest value over our timers",
        ));
    }
    rows
}

/// The figure as a table.
fn more(runs: &Runs) -> String {
    let header =
        ["slowest group, ms", "T_I us", "T_D us", "ecmp", "ar", "themis", "themis / ar"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for curve in &CURVES {
        for (i, timers) in TIMERS.into_iter().enumerate() {
            let (slowest, saved) = measured(runs, curve, timers);
            let name = if i == 0 { curve.name } else { "" };
            let ms = slowest.map(|ms| ms.map_or_else(|| "-".into(), |ms| format!("{ms:.2}")));
            let saved = saved.map_or_else(|| "-".into(), |s| format!("{:+.1} %", -s));
            let [ecmp, ar, themis] = ms;
            table.add_row([name.into(), timers.0.to_string(), timers.1.to_string(), ecmp, ar, themis, saved]);
        }
    }
    format!("{table}\n")
}

/// A panel for each collective, and one for the time that Themis saves.
fn picture(runs: &Runs) -> Picture {
    let timers: Vec<String> =
        TIMERS.iter().map(|(increase, decrease)| format!("{increase}, {decrease}")).collect();
    let mut figures = Vec::new();
    let mut saved_all: Vec<Values> = Vec::new();
    let (mut sentences, mut detailed) = (Vec::new(), Vec::new());
    for (curve, hue) in CURVES.iter().zip(["ar", "rps", "themis"]) {
        let of_timers: Vec<_> = TIMERS.iter().map(|timers| measured(runs, curve, *timers)).collect();
        let scheme = |i: usize| Values {
            name: SCHEMES[i].into(),
            scheme: SCHEMES[i].into(),
            x: timers.clone(),
            y: of_timers.iter().map(|(slowest, _)| slowest[i]).collect(),
        };
        figures.push(Figure {
            title: curve.name.into(),
            caption: "Completion time of the slowest group over the timers of DCQCN; less is better.".into(),
            shape: Shape::Bars,
            x: "T_I, T_D, us",
            y: "slowest group, ms",
            series: (0..SCHEMES.len()).map(scheme).collect(),
            paper: Vec::new(),
        });
        let saved: Vec<Option<f64>> = of_timers.iter().map(|(_, saved)| *saved).collect();
        let known: Vec<f64> = saved.iter().flatten().copied().collect();
        if let Some((least, most)) = extremes(&known) {
            let (low, high) = curve.paper;
            let by = match (least < 0.0, most < 0.0) {
                (false, _) => format!("by {least:.0} to {most:.0} %"),
                (true, false) => format!("from {:.0} % later to {most:.0} % earlier", -least),
                (true, true) => format!("{:.0} to {:.0} % later", -most, -least),
            };
            sentences.push(format!("{by} in {} (the paper: {low} to {high} %)", curve.name));
        }
        saved_all.push(Values { name: curve.name.into(), scheme: hue.into(), x: timers.clone(), y: saved });
        detailed.extend(SCHEMES.map(|scheme| label(curve, TIMERS[0], scheme)));
    }
    let range = |name: &str, (low, high): (f64, f64)| PaperValue {
        name: name.into(),
        x: None,
        y: low,
        to: Some(high),
    };
    figures.push(Figure {
        title: "Time saved by Themis compared with adaptive routing".into(),
        caption: "Share of time by which the slowest group finishes earlier; more is better. The bands are the paper's ranges \
                  over its own timers, most of which it does not name."
            .into(),
        shape: Shape::Lines,
        x: "T_I, T_D, us",
        y: "shorter by, percent",
        series: saved_all,
        paper: vec![
            range("the paper, all-reduce", CURVES[0].paper),
            range("the paper, all-to-all", CURVES[2].paper),
        ],
    });
    let answer = match sentences.is_empty() {
        true => String::new(),
        false => format!("Themis finishes earlier than adaptive routing: {}.", sentences.join(", ")),
    };
    Picture { answer, figures, detailed }
}
