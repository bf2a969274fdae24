//! The data of the page: one JSON object, made from result tables.
//!
//! | file | section of the page |
//! |---|---|
//! | [`group`], [`grouping`] | groups of runs that share a row |
//! | [`question`], [`answer`], [`headline`] | the question, the answer, the table |
//! | [`steps`] | what GPUs did over time |
//! | [`flows`] | completion times and slowdown |
//! | [`series`] | chosen queue pairs, links and switches over time |
//! | [`arrivals`] | packets of chosen queue pairs by time and PSN |
//! | [`fabric`], [`matrix`] | nodes, links and their load, of fabrics that are drawn and of larger ones |
//! | [`counters`] | the scheme's counters |
//! | [`config`] | the configuration, and the differences between runs |
//! | [`looks`] | colours, dashes and markers of schemes |
//! | [`again`] | the commands that repeat the runs |
//! | [`experiment`] | a paper's numbers beside ours |
//! | [`sweep`] | the points of a sweep |
//!
//! [`Room`] bounds every part, whatever the size of the runs. The page names the parts that it leaves out.

pub(super) mod again;
pub(super) mod answer;
pub(super) mod arrivals;
pub(super) mod config;
pub(super) mod counters;
pub(super) mod experiment;
pub(super) mod fabric;
pub(super) mod flows;
pub(super) mod group;
pub(super) mod grouping;
pub(super) mod headline;
pub(super) mod looks;
pub(super) mod matrix;
pub(super) mod question;
mod room;
pub(crate) mod series;
pub(super) mod steps;
pub(super) mod sweep;

pub(super) use group::Group;
use group::text;
use headline::Numbers;
use question::Asked;
use results::Metric;
use results::metrics::Shown;
use results::table::Table;
use room::{DETAILED, Room};
use serde::Serialize;

/// The data of a group of runs. Time, fabric and configuration are those of its first run.
#[derive(Debug, Serialize)]
struct Part {
    name: String,
    scheme: String,
    seeds: Vec<u64>,
    digests: Vec<String>,
    complete: bool,
    version: String,
    config_hash: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<question::Fault>,
    curves: Vec<flows::Curve>,
    /// Flows by size, class and distance: the kind of division, the name of the part, and its numbers by column.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<(&'static str, String, Vec<Option<f64>>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slowest: Option<flows::Slowest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<steps::Steps>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<series::Series>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrivals: Option<arrivals::Arrivals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fabric: Option<fabric::Loads>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matrix: Option<matrix::Loads>,
    counters: counters::Counters,
}

/// Shapes of the fabrics.
#[derive(Debug, Default, Serialize)]
struct Shapes {
    drawn: Vec<fabric::Shape>,
    matrices: Vec<matrix::Shape>,
}

/// The whole page.
#[derive(Debug, Serialize)]
pub(super) struct Payload {
    /// Version that made the page.
    ropewalk: &'static str,
    /// `run`, `compare`, `reproduce` or `sweep`.
    kind: &'static str,
    title: String,
    asked: Vec<Asked>,
    answer: Vec<String>,
    /// What decides a comparison, or the rankings of a sweep or an experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    decides: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<Numbers>,
    experiments: Vec<experiment::Experiment>,
    parts: Vec<Part>,
    /// Columns of the tables of parts of the flows.
    flow_columns: Vec<headline::Column>,
    /// Terms of the tables with their meanings.
    terms: Vec<(&'static str, &'static str)>,
    /// Names, each with its commands, one per line.
    again: Vec<(String, String)>,
    /// Number of runs that are not in detail.
    left_out: usize,
    shapes: Shapes,
    looks: looks::Looks,
    config: config::Config,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<sweep::Sweep>,
}

impl Payload {
    /// The payload of one group of runs, or of several to compare with the group named `baseline`.
    pub(super) fn of_runs(groups: &[Group<'_>], baseline: &str) -> Self {
        let mut page = Self::details(groups);
        page.kind = if groups.len() > 1 { "compare" } else { "run" };
        page.title = question::title(groups);
        page.asked = question::asked(groups);
        page.answer = answer::answer(groups, baseline);
        page.table = Some(headline::table(groups));
        page
    }

    /// Adds what decides the comparison.
    pub(super) fn decided_by(&mut self, decides: Option<&serde_json::Value>) {
        self.decides = decides.filter(|decides| !decides.is_null()).cloned();
    }

    /// The payload of experiments and of the runs that are shown in detail.
    pub(super) fn of_experiments(experiments: Vec<experiment::Experiment>, groups: &[Group<'_>]) -> Self {
        let mut page = Self::details(groups);
        page.title = experiments.iter().map(|e| e.name.as_str()).collect::<Vec<_>>().join(", ");
        page.asked = experiment::asked(&experiments);
        let named = |e: &experiment::Experiment| match experiments.len() {
            0 | 1 => e.answer(),
            _ => vec![format!("{}: {}", e.name, e.answer().join(" "))],
        };
        page.answer = experiments.iter().flat_map(named).collect();
        let decides = experiments.iter().flat_map(|e| e.decides.clone()).collect();
        page.decided_by(Some(&decides));
        page.experiments = experiments;
        page
    }

    /// The payload of a finished sweep, from `sweep.json` and `points.parquet`.
    pub(super) fn of_sweep(manifest: &serde_json::Value, points: &Table) -> Self {
        let sweep = sweep::Sweep::of(manifest, points);
        let mut page = Self::details(&[]);
        page.kind = "sweep";
        page.title = text(manifest, "/sweep").to_owned();
        page.asked = sweep.asked(manifest);
        page.answer = sweep.answer();
        page.sweep = Some(sweep);
        page.decided_by(Some(&manifest["decides"]));
        page
    }

    fn details(groups: &[Group<'_>]) -> Self {
        let shown = groups.len().min(DETAILED);
        let room = Room::shared_by(shown, groups.len());
        let mut shapes = Shapes::default();
        let part = |(i, group): (usize, &Group<'_>)| part(group, room, i < DETAILED, &mut shapes);
        let parts = groups.iter().enumerate().filter_map(part).collect();
        Payload {
            ropewalk: env!("CARGO_PKG_VERSION"),
            kind: "reproduce",
            title: String::new(),
            asked: Vec::new(),
            answer: Vec::new(),
            decides: None,
            table: None,
            experiments: Vec::new(),
            parts,
            flow_columns: flows::columns(),
            terms: terms(),
            again: again::of(groups),
            left_out: groups.len() - shown,
            shapes,
            looks: looks::Looks::default(),
            config: config::of(groups),
            sweep: None,
        }
    }

    /// JSON that may stand in a `<script>`.
    pub(super) fn json(mut self) -> String {
        let of_parts = self.parts.iter().map(|part| part.scheme.as_str());
        let of_papers = self.experiments.iter().flat_map(experiment::Experiment::schemes);
        let of_points = self.sweep.iter().flat_map(sweep::Sweep::schemes);
        self.looks = looks::Looks::of(of_parts.chain(of_papers).chain(of_points));
        // In JSON, `<` occurs only inside strings, where it may be escaped.
        serde_json::to_string(&self).unwrap_or_default().replace('<', "\\u003c")
    }
}

/// The quantities that tables show, with their meanings.
fn terms() -> Vec<(&'static str, &'static str)> {
    let shown = std::iter::once(Metric::slowest_group()).chain(Metric::shown_in(Shown::Page));
    let mut terms: Vec<_> = shown.map(Metric::term).collect();
    terms.dedup_by_key(|(label, _)| *label);
    terms
}

fn part(group: &Group<'_>, room: Room, detailed: bool, shapes: &mut Shapes) -> Option<Part> {
    let first = *group.runs.first()?;
    let large = fabric::is_large(first);
    Some(Part {
        name: group.name.clone(),
        scheme: group.scheme().to_owned(),
        seeds: group.runs.iter().map(|run| run.summary.seed).collect(),
        digests: group.runs.iter().map(|run| run.summary.digest.clone()).collect(),
        complete: group.complete(),
        version: text(&first.manifest, "/ropewalk").to_owned(),
        config_hash: text(&first.manifest, "/config_hash").to_owned(),
        faults: question::faults(first),
        curves: flows::curves(&group.runs, room.points),
        kinds: flows::parts(first),
        slowest: detailed.then(|| flows::slowest(first)).flatten(),
        steps: detailed.then(|| steps::of(first, room.cells)).flatten(),
        series: detailed.then(|| series::of(first, room.cells)).flatten(),
        arrivals: detailed.then(|| arrivals::of(first, room.events)).flatten(),
        fabric: (detailed && !large).then(|| fabric::of(first, room, &mut shapes.drawn)).flatten(),
        matrix: (detailed && large).then(|| matrix::of(first, room, &mut shapes.matrices)).flatten(),
        counters: counters::of(first),
    })
}
