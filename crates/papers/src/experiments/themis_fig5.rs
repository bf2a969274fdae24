//! Themis (APNET'25), Fig. 5: collectives on 256 NICs over the timers of DCQCN, and over their size.
//!
//! The paper gives the time by which Themis shortens the slowest group compared with adaptive routing: 15.6-75.3 %
//! (all-reduce) and 11.5-40.7 % (all-to-all). The paper's text names only one of its pairs (T_I, T_D): (900 us, 4 us).
//! Ours are this pair, the defaults of the HPCC family of simulators, and pairs between them. Nor does the text say
//! whether its 300 MB are those of a rank or of a group of 16, how an all-to-all orders its peers, and whether a CNP is a
//! frame. So the experiment shows both readings of the size, other sizes, and variations of the rest.

use crate::experiment::{Case, Experiment, Runs};
use crate::picture::{Figure, PaperValue, Picture, Shape, Values};
use crate::row::Row;
use lab::Run;
use results::stats::{extremes, mean};
use results::text;

/// Both collectives.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "themis-fig5",
    source: "Themis (APNET'25), Fig. 5",
    about: "all-reduce and all-to-all in 16 groups of 16 NICs: time of the slowest group over the timers of DCQCN and the size",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture,
};

/// A collective of the figure.
struct Collective {
    scenario: &'static str,
    job: &'static str,
    /// Range by which Themis is shorter than adaptive routing in the paper, in percent.
    paper: (f64, f64),
}

const ALL_REDUCE: Collective =
    Collective { scenario: "themis-fig5-allreduce", job: "all-reduce", paper: (15.6, 75.3) };
const ALL_TO_ALL: Collective =
    Collective { scenario: "themis-fig5-alltoall", job: "all-to-all", paper: (11.5, 40.7) };

/// A reading of the paper's 300 MB: the buffer of a rank in full size and scaled down.
struct Reading {
    name: &'static str,
    full: &'static str,
    quick: &'static str,
}

const PER_RANK: Reading = Reading { name: "300 MB per rank", full: "300MB", quick: "12MB" };
/// A sixteenth for each rank.
const PER_GROUP: Reading = Reading { name: "300 MB per group", full: "18750kB", quick: "3MB" };

/// A line of the figure: a collective, a reading of its size, and a variation.
struct Line {
    collective: &'static Collective,
    reading: &'static Reading,
    /// Name of the variation; empty for none.
    variation: &'static str,
    set: &'static [&'static str],
}

const LINES: [Line; 7] = [
    Line { collective: &ALL_REDUCE, reading: &PER_RANK, variation: "", set: &[] },
    Line { collective: &ALL_REDUCE, reading: &PER_GROUP, variation: "", set: &[] },
    Line {
        collective: &ALL_REDUCE,
        reading: &PER_GROUP,
        variation: "QP per message",
        set: &["workload.0.qp=per-message"],
    },
    Line { collective: &ALL_TO_ALL, reading: &PER_RANK, variation: "", set: &[] },
    Line { collective: &ALL_TO_ALL, reading: &PER_GROUP, variation: "", set: &[] },
    Line {
        collective: &ALL_TO_ALL,
        reading: &PER_GROUP,
        variation: "peers staggered",
        set: &["workload.all-to-all.schedule=staggered"],
    },
    Line { collective: &ALL_TO_ALL, reading: &PER_GROUP, variation: "CNPs as flags", set: &["nic.cnp=flag"] },
];

impl Line {
    fn name(&self) -> String {
        let (job, reading) = (self.collective.job, self.reading.name);
        match self.variation {
            "" => format!("{job}, {reading}"),
            variation => format!("{job}, {reading}, {variation}"),
        }
    }

    fn label(&self, timers: Timers, scheme: &str) -> String {
        label(&self.name(), timers, scheme)
    }
}

/// A pair (T_I, T_D), us.
type Timers = (u32, u32);

const TIMERS: [Timers; 7] = [(900, 4), (300, 4), (100, 4), (10, 4), (55, 50), (10, 50), (10, 200)];
/// The pair that the paper's text names.
const NAMED: Timers = TIMERS[0];
const SCHEMES: [&str; 2] = ["ar", "themis"];
/// Sizes of a rank's buffer. Our choice: from a few frames for each peer to the paper's 300 MB.
const SIZES: [&str; 5] = ["3MB", "10MB", "30MB", "100MB", "300MB"];
/// Our choice: the smallest number that shows a range.
const SEEDS: [&str; 3] = ["seed=1", "seed=2", "seed=3"];

/// Label of the runs of a line, or of a size, which differ in their seeds.
fn label(name: &str, (increase, decrease): Timers, scheme: &str) -> String {
    format!("{name} ({increase}, {decrease}) {scheme}")
}

fn sized(collective: &Collective, size: &str) -> String {
    format!("{}, {size} per rank", collective.job)
}

fn timers(quick: bool) -> Vec<Timers> {
    if quick { vec![NAMED, (10, 4), (10, 50)] } else { TIMERS.into() }
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: &str, collective: &Collective, timers: Timers, bytes: &str, set: &[&str]| {
        for scheme in SCHEMES {
            for seed in if quick { &SEEDS[..1] } else { &SEEDS } {
                let mut case = Case::new(label(name, timers, scheme), collective.scenario, set)
                    .and(format!("scheme.{scheme}={{}}"))
                    .and(format!("nic.congestion.dcqcn-hpcc.rate-increase-timer={}us", timers.0))
                    .and(format!("nic.congestion.dcqcn-hpcc.rate-decrease-interval={}us", timers.1))
                    .and(format!("workload.{}.bytes={bytes}", collective.job))
                    .and(*seed);
                if quick {
                    for small in ["leaves=4", "spines=4", "hosts-per-leaf=4"] {
                        case = case.and(format!("topology.leaf-spine.{small}"));
                    }
                }
                cases.push(case);
            }
        }
    };
    for line in &LINES {
        let bytes = if quick { line.reading.quick } else { line.reading.full };
        for timers in timers(quick) {
            add(&line.name(), line.collective, timers, bytes, line.set);
        }
    }
    for collective in [&ALL_REDUCE, &ALL_TO_ALL] {
        // The last size is the first line.
        for size in &SIZES[..if quick { 2 } else { SIZES.len() - 1 }] {
            add(&sized(collective, size), collective, NAMED, size, &[]);
        }
    }
    cases
}

/// Mean, least and greatest of a number over the seeds.
#[derive(Clone, Copy)]
struct Range {
    mean: f64,
    least: f64,
    most: f64,
}

impl Range {
    fn of(values: &[f64]) -> Option<Range> {
        let (least, most) = extremes(values)?;
        Some(Range { mean: mean(values)?, least, most })
    }
}

/// Completion time of the slowest group under each scheme, ms, and the percentage by which Themis is shorter than adaptive
/// routing.
struct Measured {
    slowest: [Option<Range>; 2],
    saved: Option<Range>,
}

fn measured(runs: &Runs, name: &str, timers: Timers) -> Measured {
    let values = SCHEMES.map(|scheme| {
        let all = runs.all(&label(name, timers, scheme));
        all.into_iter().filter_map(|run| run.and_then(Run::slowest_group_ms)).collect::<Vec<f64>>()
    });
    let [ar, themis] = &values;
    let saved: Vec<f64> = ar.iter().zip(themis).map(|(ar, themis)| 100.0 * (1.0 - themis / ar)).collect();
    Measured { slowest: values.each_ref().map(|values| Range::of(values)), saved: Range::of(&saved) }
}

/// The measurements of a line, by timers.
fn over_timers<'r>(runs: &'r Runs, line: &'r Line) -> impl Iterator<Item = (Timers, Measured)> + 'r {
    let name = line.name();
    let known = move |timers: &Timers| !runs.all(&line.label(*timers, SCHEMES[0])).is_empty();
    TIMERS.into_iter().filter(known).map(move |timers| (timers, measured(runs, &name, timers)))
}

/// The measurements of a collective at the named timers, by size of a rank's buffer.
fn over_sizes<'r>(
    runs: &'r Runs,
    collective: &'r Collective,
) -> impl Iterator<Item = (&'static str, Measured)> + 'r {
    SIZES.into_iter().filter_map(move |size| {
        let last = LINES.iter().find(|line| {
            line.collective.job == collective.job && line.reading.full == size && line.variation.is_empty()
        });
        let name = last.map_or_else(|| sized(collective, size), Line::name);
        // Scaled down, the readings have other sizes.
        let bytes = format!("workload.{}.bytes={size}", collective.job);
        let label = label(&name, NAMED, SCHEMES[0]);
        let known = runs.0.iter().any(|(case, _)| case.label == label && case.set.contains(&bytes));
        known.then(|| (size, measured(runs, &name, NAMED)))
    })
}

fn rows(runs: &Runs, quick: bool) -> Vec<Row> {
    let note = if quick {
        "4 x 4 x 4, 12 and 3 MB instead of 300 and 18.75 MB; one seed"
    } else {
        "mean over seeds 1 to 3"
    };
    let mut rows = Vec::new();
    let noted = |range: Option<Range>| match range.filter(|_| !quick) {
        Some(Range { least, most, .. }) => {
            format!("{note}: {} to {}", text::number(least), text::number(most))
        }
        None => note.to_owned(),
    };
    let mut add = |name: &str, timers: Timers, measured: &Measured| {
        for (scheme, slowest) in SCHEMES.iter().zip(measured.slowest) {
            let ms = slowest.map(|range| range.mean);
            let row = Row::ours(&label(name, timers, scheme), "slowest group", "ms", ms, noted(slowest));
            rows.push(row.tabled());
        }
        let saved = measured.saved.map(|range| range.mean);
        let note = noted(measured.saved);
        rows.push(Row::ours(&label(name, timers, "themis / ar"), "shorter by", "%", saved, note).tabled());
    };
    for line in &LINES {
        over_timers(runs, line).for_each(|(timers, measured)| add(&line.name(), timers, &measured));
    }
    for collective in [&ALL_REDUCE, &ALL_TO_ALL] {
        over_sizes(runs, collective)
            .filter(|(size, _)| *size != PER_RANK.full)
            .for_each(|(size, measured)| add(&sized(collective, size), NAMED, &measured));
    }
    for line in &LINES {
        let saved: Vec<f64> =
            over_timers(runs, line).filter_map(|(_, measured)| Some(measured.saved?.mean)).collect();
        let (least, most) = extremes(&saved).unzip();
        let (name, (low, high)) = (line.name(), line.collective.paper);
        let metric = "themis / ar: shorter by at least";
        rows.push(Row::beside(low, &name, metric, "%", least, "lowest value over our timers"));
        let metric = "themis / ar: shorter by at most";
        rows.push(Row::beside(high, &name, metric, "%", most, "highest value over our timers"));
    }
    rows
}

/// The figure as a table, and the sizes as another.
fn more(runs: &Runs) -> String {
    let ms = |range: Option<Range>| range.map_or_else(|| "-".into(), |range| format!("{:.3}", range.mean));
    let saved = |range: Option<Range>| match range {
        Some(Range { mean, least, most }) if least < most => {
            format!("{:+.1} % ({:+.1} to {:+.1})", -mean, -most, -least)
        }
        Some(Range { mean, .. }) => format!("{:+.1} %", -mean),
        None => "-".into(),
    };
    let header = ["slowest group, ms", "T_I us", "T_D us", "ar", "themis", "themis / ar"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    for line in &LINES {
        for (i, (timers, measured)) in over_timers(runs, line).enumerate() {
            let name = if i == 0 { line.name() } else { String::new() };
            let [ar, themis] = measured.slowest.map(ms);
            table.add_row([
                name,
                timers.0.to_string(),
                timers.1.to_string(),
                ar,
                themis,
                saved(measured.saved),
            ]);
        }
    }
    let header = ["slowest group, ms", "buffer of a rank", "ar", "themis", "themis / ar"].map(str::to_owned);
    let mut sizes = text::table(&header, 2);
    for collective in [&ALL_REDUCE, &ALL_TO_ALL] {
        for (i, (size, measured)) in over_sizes(runs, collective).enumerate() {
            let name = if i == 0 { collective.job } else { "" };
            let [ar, themis] = measured.slowest.map(ms);
            sizes.add_row([name.into(), size.into(), ar, themis, saved(measured.saved)]);
        }
    }
    let (increase, decrease) = NAMED;
    format!(
        "Means over seeds, with the range in brackets.\n{table}\n\nOver the size, at T_I = {increase} us and T_D = {decrease} us:\n{sizes}\n"
    )
}

/// The time that Themis saves over the timers, and over the size; the slowest group of each line.
fn picture(runs: &Runs) -> Picture {
    let range = |name: &str, collective: &Collective| {
        let (low, high) = collective.paper;
        PaperValue { name: name.into(), x: None, y: low, to: Some(high) }
    };
    let bands =
        || vec![range("the paper, all-reduce", &ALL_REDUCE), range("the paper, all-to-all", &ALL_TO_ALL)];
    let pair = |(increase, decrease): Timers| format!("{increase}, {decrease}");
    let hues = ["ar", "rps", "drill", "themis", "ecmp", "flowlet", "conweave"];
    let (mut figures, mut sentences, mut detailed) = (Vec::new(), Vec::new(), Vec::new());
    let mut over = Vec::new();
    for (line, hue) in LINES.iter().zip(hues) {
        let (x, all): (Vec<String>, Vec<Measured>) =
            over_timers(runs, line).map(|(timers, measured)| (pair(timers), measured)).unzip();
        let saved: Vec<Option<f64>> = all.iter().map(|measured| Some(measured.saved?.mean)).collect();
        let known: Vec<f64> = saved.iter().flatten().copied().collect();
        if let Some((least, most)) = extremes(&known).filter(|_| line.variation.is_empty()) {
            let (low, high) = line.collective.paper;
            let by = match (least < 0.0, most < 0.0) {
                (false, _) => format!("by {least:.0} to {most:.0} %"),
                (true, false) => format!("from {:.0} % later to {most:.0} % earlier", -least),
                (true, true) => format!("{:.0} to {:.0} % later", -most, -least),
            };
            sentences.push(format!("{by} in {} (the paper: {low} to {high} %)", line.name()));
        }
        over.push(Values { name: line.name(), scheme: hue.into(), x: x.clone(), y: saved });
        let scheme = |i: usize| Values {
            name: SCHEMES[i].into(),
            scheme: SCHEMES[i].into(),
            x: x.clone(),
            y: all.iter().map(|measured| Some(measured.slowest[i]?.mean)).collect(),
        };
        figures.push(Figure {
            title: line.name(),
            caption: "Completion time of the slowest group over the timers of DCQCN; less is better.".into(),
            shape: Shape::Bars,
            x: "T_I, T_D, us",
            y: "slowest group, ms",
            series: (0..SCHEMES.len()).map(scheme).collect(),
            paper: Vec::new(),
        });
        if line.variation.is_empty() {
            detailed.extend(SCHEMES.map(|scheme| line.label(NAMED, scheme)));
        }
    }
    let sizes = [(&ALL_REDUCE, "ar"), (&ALL_TO_ALL, "themis")].map(|(collective, hue)| {
        let (x, y) = over_sizes(runs, collective)
            .map(|(size, measured)| (size.to_owned(), measured.saved.map(|range| range.mean)))
            .unzip();
        Values { name: collective.job.into(), scheme: hue.into(), x, y }
    });
    figures.splice(
        0..0,
        [
            Figure {
                title: "Time saved by Themis compared with adaptive routing".into(),
                caption: "Share of time by which the slowest group finishes earlier; more is better. The bands are the paper's \
                          ranges over its own timers, most of which it does not name."
                    .into(),
                shape: Shape::Lines,
                x: "T_I, T_D, us",
                y: "shorter by, percent",
                series: over,
                paper: bands(),
            },
            Figure {
                title: "Time saved by Themis, over the buffer of a rank".into(),
                caption: format!("T_I = {} us and T_D = {} us, the pair that the paper's text names.", NAMED.0, NAMED.1),
                shape: Shape::Lines,
                x: "buffer of a rank",
                y: "shorter by, percent",
                series: sizes.into(),
                paper: bands(),
            },
        ],
    );
    let answer = match sentences.is_empty() {
        true => String::new(),
        false => format!("Themis finishes earlier than adaptive routing: {}.", sentences.join(", ")),
    };
    Picture { answer, figures, detailed }
}
