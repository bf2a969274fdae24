//! The answer: is the bus bandwidth what it should be, and if not, why?

use crate::case::{Case, JUDGED, LARGE, measured};
use crate::cluster::Cluster;
use crate::expect::{CALL, Model, Range};
use crate::log::{Curve, Facts, Input, Log, Perftest, Point, Test, Unread};
use crate::pairs::{self, Ran, Together};
use crate::read::read;
use crate::simulate::{Simulated, simulate};
use crate::suspects::{Accused, accuse, bytes};
use collective::Kind;
use finding::{Finding, code, suggestion};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A question.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Logs with measurements.
    pub logs: Vec<Input>,
    /// Inputs that tell about the cluster alone: NCCL's log, a topology.
    pub more: Vec<Input>,
    /// A description of the cluster.
    pub cluster: Option<String>,
    /// A cluster that a scenario describes.
    pub scenario: Option<Cluster>,
    /// Name of the test, if the log does not tell it.
    pub collective: Option<String>,
    /// Time that the program adds to a call, us: least and most.
    pub call: Option<(f64, f64)>,
    /// Hosts below each ToR: `a b / c d`.
    pub racks: Option<String>,
    /// Whether suspects are simulated.
    pub simulate: bool,
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// In the expected range.
    AsExpected,
    /// In the range of a protocol that NCCL's model rejects narrowly.
    ExpectedForThisProtocol,
    /// Below.
    Below,
    /// More than the described cluster can do.
    Above,
    /// A small size: latency, which is not judged.
    Latency,
    /// Not known.
    CannotTell,
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::AsExpected => "as expected",
            Verdict::ExpectedForThisProtocol => "expected for this protocol",
            Verdict::Below => "below",
            Verdict::Above => "above what this cluster can do",
            Verdict::Latency => "latency",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

/// A size.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Line of the log.
    pub line: usize,
    /// Size.
    pub bytes: u64,
    /// Time, us.
    pub us: f64,
    /// Bus bandwidth, GB/s.
    pub measured: f64,
    /// The expected range, GB/s.
    pub expected: Option<Range>,
    /// Algorithm and protocol: NCCL's choice and near-ties.
    pub how: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The log.
    pub log: String,
    /// The test.
    pub test: Option<Test>,
    /// The cluster.
    pub cluster: String,
    /// Where its figures come from.
    pub sources: Vec<String>,
    /// What is assumed.
    pub assumed: Vec<String>,
    /// The verdict on sizes from 64 MiB on.
    pub verdict: Verdict,
    /// One sentence.
    pub headline: String,
    /// What is missing for a verdict.
    pub missing: Vec<String>,
    /// More sentences.
    pub notes: Vec<String>,
    /// Sizes.
    pub rows: Vec<Row>,
    /// Other tests of the logs, with their sizes.
    pub others: Vec<(Test, Vec<Row>)>,
    /// Suspects, likeliest first.
    pub suspects: Vec<Accused>,
    /// Probability of a cause that is not among them.
    pub unknown_cause: f64,
    /// What several logs say together.
    pub together: Option<Together>,
    /// Measurements of perftest.
    pub perftest: Vec<Perftest>,
    /// Simulated curves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simulated: Vec<Simulated>,
    /// Lines that could not be read.
    pub unread: Vec<Unread>,
    /// Exit code of the command: 1 if any size from 64 MiB on is below.
    pub exit_code: u8,
}

/// A curve with its log.
struct Of<'l> {
    log: &'l Log,
    curve: &'l Curve,
    test: Option<Test>,
}

/// Answers a question.
///
/// # Errors
/// A description or a name that means nothing, or no measurement at all.
pub fn answer(request: &Request) -> Result<Answer, Finding> {
    let named = request.collective.as_deref().map(test_named).transpose()?;
    let described = request.cluster.as_deref().map(Cluster::described).transpose()?;
    let logs: Vec<Log> = request.logs.iter().map(read).collect();
    let more: Vec<Log> = request.more.iter().map(read).collect();
    let curves: Vec<Of<'_>> = logs
        .iter()
        .flat_map(|log| {
            log.curves.iter().map(move |curve| Of {
                log,
                curve,
                test: named.or(curve.test).or_else(|| guessed(curve)),
            })
        })
        .collect();
    let Some(first) = primary(&curves) else {
        return Err(nothing(request, &logs));
    };
    let test = first.test;
    let of_test: Vec<&Of<'_>> = curves.iter().filter(|of| of.test == test).collect();
    let racks = racks(request.racks.as_deref());
    let several: BTreeSet<&str> = of_test.iter().map(|of| of.log.name.as_str()).collect();
    let together = (several.len() > 1 || of_test.len() > 1).then(|| together(&of_test, &racks));
    // Of several sets of nodes, the slowest is judged; of one, the median of its runs.
    let slowest = slowest(&of_test, first);
    let judged: Vec<&Curve> =
        of_test.iter().filter(|of| same_hosts(of.log, slowest.log)).map(|of| of.curve).collect();
    let points = median(&judged);
    let mut facts = slowest.log.facts.clone();
    for log in more.iter().chain(logs.iter().filter(|log| log.curves.is_empty())) {
        facts.add(&log.facts);
    }
    let perftest: Vec<Perftest> =
        logs.iter().chain(&more).flat_map(|log| log.perftest.iter().cloned()).collect();
    let mut cluster = described.or_else(|| request.scenario.clone()).unwrap_or_default();
    cluster.complete(&facts, Some(first.curve), test);
    let call = request.call.unwrap_or(CALL);
    let model = Model::new(&cluster, &facts, test, call);
    let (model, mut missing) = match model {
        Ok(model) => (Some(model), Vec::new()),
        Err(missing) => (None, missing),
    };
    let rows: Vec<Row> = points.iter().map(|point| row(point, model.as_ref())).collect();
    let mut others = Vec::new();
    let mut sendrecv = None;
    let tests: BTreeSet<Test> =
        curves.iter().filter_map(|of| of.test).filter(|of| Some(*of) != test).collect();
    for other in tests {
        let of_other: Vec<&Curve> =
            curves.iter().filter(|of| of.test == Some(other)).map(|of| of.curve).collect();
        let model = Model::new(&cluster, &facts, Some(other), call).ok();
        let rows: Vec<Row> = median(&of_other).iter().map(|point| row(point, model.as_ref())).collect();
        if other == Test::SendRecv {
            sendrecv = rows.iter().rev().find(|row| row.bytes >= JUDGED).map(|row| row.measured);
        }
        others.push((other, rows));
    }
    let mut case = Case::new(model, (&cluster, &facts, &perftest), test, &points);
    case.sendrecv = sendrecv
        .or_else(|| (test == Some(Test::SendRecv)).then(|| case.plateau().map(|(_, busbw)| busbw)).flatten());
    case.spread = together.as_ref().and_then(|together| together.spread);
    let below = rows.iter().any(|row| row.verdict == Verdict::Below && row.bytes >= LARGE);
    let low = rows.iter().any(|row| matches!(row.verdict, Verdict::Below | Verdict::ExpectedForThisProtocol));
    let large = rows.iter().any(|row| row.bytes >= LARGE);
    let verdict = overall(&rows, case.model.is_some());
    let doubtful = matches!(verdict, Verdict::ExpectedForThisProtocol | Verdict::CannotTell);
    let accused = below || (low && doubtful) || case.model.is_none();
    let (suspects, unknown) = if accused { accuse(&case) } else { (Vec::new(), 0.0) };
    if !large && case.model.is_some() {
        let most = rows.iter().map(|row| row.bytes).max().unwrap_or(0);
        missing.push(format!(
            "sizes from 64 MiB on: the largest is {}; run with -b 64M -e 8G -f 2",
            bytes(most)
        ));
    }
    let notes = notes(&case, verdict, &suspects, unknown);
    let simulated = match &case.model {
        Some(model) if request.simulate => simulate(model, &case.points, &suspects),
        _ => Vec::new(),
    };
    let unread = logs.iter().chain(&more).flat_map(|log| log.unread.iter().cloned()).collect();
    Ok(Answer {
        log: slowest.log.name.clone(),
        test,
        cluster: cluster.words(),
        sources: cluster.sources.clone(),
        assumed: cluster.assumed.clone(),
        verdict,
        headline: headline(&case, verdict, &rows, &suspects, unknown),
        missing,
        notes,
        rows,
        others,
        suspects,
        unknown_cause: unknown,
        together,
        perftest: perftest.clone(),
        simulated,
        unread,
        exit_code: u8::from(below),
    })
}

/// The test that `--collective` names.
fn test_named(name: &str) -> Result<Test, Finding> {
    Test::named(name).filter(|test| *test != Test::Other).ok_or_else(|| {
        let text = format!("unknown collective `{name}`; {}", suggestion(name, &Test::names()));
        code::OPTION.inside("--collective", name, 0..name.len(), text)
    })
}

/// The error about logs without a measurement.
fn nothing(request: &Request, logs: &[Log]) -> Finding {
    let names: Vec<&str> = request.logs.iter().map(|log| log.name.as_str()).collect();
    let unread = logs.iter().find_map(|log| log.unread.first());
    let mut text = format!(
        "{}: expected a row of nccl-tests, such as `1048576 262144 float sum -1 120.0 8.74 15.29 0`",
        names.join(", ")
    );
    if let Some(unread) = unread {
        text += &format!("; line {} could not be read: {} (`{}`)", unread.line, unread.why, unread.text);
    }
    code::CONTENT
        .plain(text)
        .with_help("nccl-tests print these rows on standard output; `-J FILE` writes them as JSON")
}

/// The test of rows without a name.
fn guessed(curve: &Curve) -> Option<Test> {
    let last = curve.points.iter().rev().find(|point| point.busbw > 1.0 && point.algbw > 1.0)?;
    let ratio = last.busbw / last.algbw;
    match curve.reduces {
        Some(true) if ratio > 1.03 => Some(Test::Of(Kind::AllReduce)),
        Some(true) if ratio < 0.97 => Some(Test::Of(Kind::ReduceScatter)),
        Some(false) if ratio < 0.97 && curve.unchecked_in_place => Some(Test::Of(Kind::AllToAll)),
        // Only all-reduces have more on the bus than bytes.
        None if ratio > 1.03 => Some(Test::Of(Kind::AllReduce)),
        _ => None,
    }
}

/// The curve that is judged first: of a collective before sendrecv, in the order of the logs.
fn primary<'a, 'l>(curves: &'a [Of<'l>]) -> Option<&'a Of<'l>> {
    let collective = curves.iter().find(|of| matches!(of.test, Some(Test::Of(_))));
    collective.or_else(|| curves.iter().find(|of| of.test.is_some())).or_else(|| curves.first())
}

fn same_hosts(a: &Log, b: &Log) -> bool {
    a.name == b.name || hosts(a) == hosts(b)
}

/// The hosts of a log; else words of its name that look like hosts.
fn hosts(log: &Log) -> BTreeSet<String> {
    if !log.facts.hosts.is_empty() {
        return log.facts.hosts.keys().cloned().collect();
    }
    let name = log.name.rsplit('/').next().unwrap_or(&log.name);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let words: Vec<&str> = stem.split(['-', '_', '+', ',']).filter(|word| !word.is_empty()).collect();
    // A name such as `644-284.log`: every word ends with a digit.
    let is_host = |word: &&str| word.ends_with(|c: char| c.is_ascii_digit());
    if words.len() > 1 && words.iter().all(is_host) {
        return words.into_iter().map(str::to_owned).collect();
    }
    BTreeSet::new()
}

fn slowest<'a, 'l>(of_test: &[&'a Of<'l>], first: &'a Of<'l>) -> &'a Of<'l> {
    let plateau = |of: &&&Of<'_>| of.curve.points.last().map_or(f64::MAX, |point| point.busbw);
    of_test.iter().min_by(|a, b| plateau(a).total_cmp(&plateau(b))).copied().unwrap_or(first)
}

fn racks(text: Option<&str>) -> Vec<Vec<String>> {
    let racks = text.unwrap_or_default().split(['/', ';', '|']);
    racks
        .map(|rack| rack.split([' ', ',']).filter(|host| !host.is_empty()).map(str::to_owned).collect())
        .collect()
}

fn together(of_test: &[&Of<'_>], racks: &[Vec<String>]) -> Together {
    // The largest size that all have.
    let sizes = |of: &&Of<'_>| of.curve.points.iter().map(|point| point.bytes).collect::<BTreeSet<u64>>();
    let common =
        of_test.iter().map(sizes).reduce(|a, b| a.intersection(&b).copied().collect()).unwrap_or_default();
    let size = common.last().copied();
    let ran = |of: &&Of<'_>| {
        let points = &of.curve.points;
        let point =
            points.iter().rev().find(|point| size.is_none_or(|size| point.bytes == size)).or(points.last());
        Ran {
            name: of.log.name.clone(),
            hosts: hosts(of.log),
            busbw: point.map_or(0.0, |point| measured(point, None)),
            slow: false,
        }
    };
    pairs::compare(size.unwrap_or(0), of_test.iter().map(ran).collect(), racks)
}

/// The median time of each size over runs.
fn median(curves: &[&Curve]) -> Vec<Point> {
    let mut by_size: BTreeMap<u64, Vec<Point>> = BTreeMap::new();
    for point in curves.iter().flat_map(|curve| &curve.points).filter(|point| point.bytes > 0) {
        by_size.entry(point.bytes).or_default().push(*point);
    }
    let middle = |mut points: Vec<Point>| {
        points.sort_by(|a, b| a.us.total_cmp(&b.us));
        points[points.len() / 2]
    };
    by_size.into_values().map(middle).collect()
}

/// Rounding of printed rows, and what decides nothing.
const SLACK: f64 = 0.01;

fn row(point: &Point, model: Option<&Model<'_>>) -> Row {
    let found = measured(point, model);
    let expected = model.map(|model| model.expected(point.bytes));
    let verdict = match &expected {
        None => Verdict::CannotTell,
        Some(_) if point.bytes < JUDGED => Verdict::Latency,
        Some(expected) => {
            let inside =
                |range: Range| (range.least * (1.0 - SLACK)..=range.most * (1.0 + SLACK)).contains(&found);
            if inside(expected.range) {
                Verdict::AsExpected
            } else if inside(expected.other) {
                Verdict::ExpectedForThisProtocol
            } else if found < expected.range.least {
                Verdict::Below
            } else {
                Verdict::Above
            }
        }
    };
    Row {
        line: point.line,
        bytes: point.bytes,
        us: point.us,
        measured: found,
        expected: expected.as_ref().map(|expected| expected.range),
        how: expected.map(|expected| expected.how).unwrap_or_default(),
        verdict,
    }
}

/// The verdict on large sizes, or on the judged ones if there are no large ones.
fn overall(rows: &[Row], known: bool) -> Verdict {
    let large: Vec<&Row> = rows.iter().filter(|row| row.bytes >= LARGE).collect();
    let judged: Vec<&Row> = rows.iter().filter(|row| row.bytes >= JUDGED).collect();
    let (rows, small) = if large.is_empty() { (judged, true) } else { (large, false) };
    let has = |verdict| rows.iter().any(|row| row.verdict == verdict);
    let above = rows.iter().filter(|row| row.verdict == Verdict::Above).count();
    match () {
        () if !known || rows.is_empty() => Verdict::CannotTell,
        () if has(Verdict::Below) => Verdict::Below,
        () if small => Verdict::CannotTell,
        () if 2 * above > rows.len() => Verdict::Above,
        () if has(Verdict::ExpectedForThisProtocol) && !has(Verdict::AsExpected) => {
            Verdict::ExpectedForThisProtocol
        }
        () => Verdict::AsExpected,
    }
}

fn headline(case: &Case<'_>, verdict: Verdict, rows: &[Row], suspects: &[Accused], unknown: f64) -> String {
    let last = rows.iter().rev().find(|row| row.bytes >= JUDGED);
    let at = last.map_or(String::new(), |row| format!("{:.1} GB/s at {}", row.measured, bytes(row.bytes)));
    let first = suspects.first().filter(|first| first.probability >= unknown);
    let suspect = first.map_or(String::new(), |first| format!(" Suspect 1: {}.", first.title));
    match verdict {
        Verdict::AsExpected | Verdict::ExpectedForThisProtocol => {
            let why = each(case).map_or(String::new(), |words| format!(": {words}"));
            format!("{at}: {}{why}.", verdict.words())
        }
        Verdict::Below => {
            let worst = rows.iter().rev().find(|row| row.verdict == Verdict::Below);
            let told = worst.and_then(|row| {
                let range = row.expected?;
                let percent = 100.0 * (1.0 - row.measured / range.least);
                let (least, most, size) = (range.least, range.most, bytes(row.bytes));
                Some(format!("{:.1} GB/s at {size}: below, {percent:.0} % under the least of the expected {least:.0} to {most:.0}.", row.measured))
            });
            format!("{}{suspect}", told.unwrap_or_default())
        }
        Verdict::Above => {
            format!("{at}: above what this cluster can do; the description or the algorithm is another one.")
        }
        Verdict::Latency | Verdict::CannotTell => {
            format!("Cannot tell whether {at} is what it should be.{suspect}")
        }
    }
}

/// What a healthy bandwidth is made of.
fn each(case: &Case<'_>) -> Option<String> {
    let (model, (_, busbw)) = (case.model.as_ref()?, case.plateau()?);
    if model.nodes < 2
        || !matches!(
            model.test,
            Test::Of(
                Kind::AllReduce | Kind::AllGather | Kind::ReduceScatter | Kind::Broadcast | Kind::Reduce
            )
        )
    {
        return None;
    }
    let nics = f64::from(model.nics);
    Some(format!("{busbw:.1} = {} x {:.1} GB/s per NIC", model.nics, busbw / nics))
}

fn notes(case: &Case<'_>, verdict: Verdict, suspects: &[Accused], unknown: f64) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(model) = &case.model else {
        if let (Some((_, busbw)), true) = (case.plateau(), case.networked()) {
            notes.push(format!(
                "{busbw:.1} GB/s would be {:.1} NICs of 200 Gb/s, or {:.1} of 400 Gb/s.",
                busbw / 24.0,
                busbw / 48.0
            ));
        }
        return notes;
    };
    let (most, how) = model.ceiling();
    if model.nodes > 1 {
        notes.push(format!("Expected at most {most:.0} GB/s = {how}."));
    }
    let Some((size, busbw)) = case.points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return notes;
    };
    let all_reduce = model.test == Test::Of(Kind::AllReduce);
    if all_reduce && model.nodes == 2 && busbw > most * 1.01 {
        let measured = format!("{busbw:.0} GB/s at {} is above the NICs' {most:.0}", bytes(size));
        notes.push(format!(
            "Two nodes: {measured}, which no ring can do. A tree or NVLSTree is at work; rerun with NCCL_ALGO=Ring to measure the NICs."
        ));
    } else if all_reduce && model.nodes > 1 && !matches!(verdict, Verdict::Below | Verdict::CannotTell) {
        notes.extend(beyond_a_ring(case, model));
    }
    if verdict == Verdict::Below && !suspects.is_empty() && suspects[0].probability < unknown {
        notes.push(
            "No suspect explains the curve well: the cause may be one that ropewalk does not know."
                .to_owned(),
        );
    }
    notes
}

/// A sentence about a bandwidth that a ring's steps exclude.
fn beyond_a_ring(case: &Case<'_>, model: &Model<'_>) -> Option<String> {
    let beyond = |(size, busbw): &(u64, f64)| {
        let us = model.ring_us(*size)?;
        let ring = model.busbw(*size, us);
        (*busbw > 1.5 * ring && *size >= LARGE).then_some((*size, *busbw, us, ring))
    };
    let (size, busbw, us, ring) = case.points.iter().rev().find_map(beyond)?;
    let steps = model.ring_steps();
    let steps = results::text::count(steps as u64);
    Some(format!(
        "{busbw:.0} GB/s at {}: a ring cannot do this. Its {steps} steps take {:.0} ms, which is {ring:.0} GB/s. A tree, NVLSTree or SHARP is at work.",
        bytes(size),
        us / 1e3
    ))
}

/// Facts of a log, for tests.
#[doc(hidden)]
pub fn facts(input: &Input) -> Facts {
    read(input).facts
}
