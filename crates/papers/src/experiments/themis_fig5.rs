//! Themis (APNET'25), Fig. 5: collectives on 256 NICs against the timers of DCQCN.
//!
//! The paper prints how much Themis shortens the slowest group against adaptive routing: 15.6-75.3 %
//! (all-reduce) and 11.5-40.7 % (all-to-all). Of the pairs (T_I, T_D) on its axis only (900 us, 4 us) is in its
//! text; ours are those and the ones that the HPCC family of simulators ships, with more between.

use crate::experiment::{Case, Experiment, Runs};
use crate::picture::{Figure, Mark, Picture, Shape, Values};
use crate::row::Row;
use results::stats::extremes;
use results::text;

/// Both collectives.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "themis-fig5",
    source: "Themis (APNET'25), Fig. 5",
    about: "16 groups of 16 NICs reduce, and exchange, 300 MB: the slowest group, over the timers of DCQCN",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture,
};

/// A line of the figure: a collective, and whether its rates live on across its messages.
struct Curve {
    scenario: &'static str,
    job: &'static str,
    qp: &'static str,
    name: &'static str,
    /// Least and most that Themis saves against adaptive routing, in per cent.
    paper: (f64, f64),
}

/// In an all-to-all a queue pair carries one message anyway.
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
/// (T_I, T_D) in us.
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

/// Completion of the slowest group under each scheme, and what Themis saves against adaptive routing.
fn measured(results: &Runs, curve: &Curve, timers: (u32, u32)) -> ([Option<f64>; 3], Option<f64>) {
    let slowest = SCHEMES.map(|scheme| results.get(&label(curve, timers, scheme))?.slowest_group_ms());
    let saved = slowest[1].zip(slowest[2]).map(|(ar, themis)| 100.0 * (1.0 - themis / ar));
    (slowest, saved)
}

fn rows(results: &Runs, quick: bool) -> Vec<Row> {
    let note = if quick {
        "4 x 4 x 4, 12 MB in place of 16 x 16 x 16, 300 MB; expected: themis shortest"
    } else {
        "expected: themis shortest"
    };
    let mut rows = Vec::new();
    for curve in &CURVES {
        let mut all = Vec::new();
        for timers in TIMERS {
            let (slowest, saved) = measured(results, curve, timers);
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
            "least over our timers",
        ));
        rows.push(Row::beside(
            high,
            name,
            "themis / ar: shorter by at most",
            "%",
            most,
            "most over our timers",
        ));
    }
    rows
}

/// The figure as a table.
fn more(results: &Runs) -> String {
    let header =
        ["slowest group, ms", "T_I us", "T_D us", "ecmp", "ar", "themis", "themis / ar"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for curve in &CURVES {
        for (i, timers) in TIMERS.into_iter().enumerate() {
            let (slowest, saved) = measured(results, curve, timers);
            let name = if i == 0 { curve.name } else { "" };
            let ms = slowest.map(|ms| ms.map_or_else(|| "-".into(), |ms| format!("{ms:.2}")));
            let saved = saved.map_or_else(|| "-".into(), |s| format!("{:+.1} %", -s));
            let [ecmp, ar, themis] = ms;
            table.add_row([name.into(), timers.0.to_string(), timers.1.to_string(), ecmp, ar, themis, saved]);
        }
    }
    format!("{table}\n")
}

/// A panel for each collective, and what Themis saves in all of them.
fn picture(results: &Runs) -> Picture {
    let timers: Vec<String> =
        TIMERS.iter().map(|(increase, decrease)| format!("{increase}, {decrease}")).collect();
    let mut figures = Vec::new();
    let mut saved_all: Vec<Values> = Vec::new();
    let (mut sentences, mut detailed) = (Vec::new(), Vec::new());
    for (curve, hue) in CURVES.iter().zip(["ar", "rps", "themis"]) {
        let of_timers: Vec<_> = TIMERS.iter().map(|timers| measured(results, curve, *timers)).collect();
        let scheme = |i: usize| Values {
            name: SCHEMES[i].into(),
            scheme: SCHEMES[i].into(),
            x: timers.clone(),
            y: of_timers.iter().map(|(slowest, _)| slowest[i]).collect(),
        };
        figures.push(Figure {
            title: curve.name.into(),
            caption:
                "Time until the slowest of the groups is done, over the timers of DCQCN; less is better."
                    .into(),
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
    let range =
        |name: &str, (low, high): (f64, f64)| Mark { name: name.into(), x: None, y: low, to: Some(high) };
    figures.push(Figure {
        title: "What Themis saves against adaptive routing".into(),
        caption: "By how much the slowest group is done earlier; more is better. The bands are the ranges that the paper prints \
                  over its own timers, most of which it does not say."
            .into(),
        shape: Shape::Lines,
        x: "T_I, T_D, us",
        y: "shorter by, per cent",
        series: saved_all,
        paper: vec![
            range("the paper, all-reduce", CURVES[0].paper),
            range("the paper, all-to-all", CURVES[2].paper),
        ],
    });
    let answer = match sentences.is_empty() {
        true => String::new(),
        false => format!("Against adaptive routing Themis is done earlier: {}.", sentences.join(", ")),
    };
    Picture { answer, figures, detailed }
}
