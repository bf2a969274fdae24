//! A sweep: its points by axes, and the axis with the largest effect.

use super::headline::{Column, OverSeeds, tells};
use super::question::Asked;
use arrow_array::Array;
use lab::shell::line;
use results::metrics::Shown;
use results::stats::{extremes, mean};
use results::table::Table;
use results::text::{count, number};
use results::{METRICS, Metric};
use serde::Serialize;
use serde_json::Value;

/// Lead below which two times are a tie, as in comparisons.
const TIE: f64 = 1.02;
/// Most points that tie with the best and are named. Our choice.
const MOST_TIED: usize = 3;

/// Most points on the page. Our choice: they take about half a megabyte.
const MOST_POINTS: usize = 2_000;
/// Smallest factor between the values of an axis that the answer mentions. Our choice.
const MATTERS: f64 = 1.01;

/// One or more keys that change together.
#[derive(Debug, Serialize)]
struct Axis {
    /// Last parts of the keys, or whole keys where the last parts are ambiguous.
    name: String,
    /// Keys.
    keys: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Point {
    /// Values of the keys of each axis.
    values: Vec<Vec<String>>,
    scheme: String,
    complete: bool,
    /// Numbers by metric.
    #[serde(flatten)]
    over: OverSeeds,
}

/// A sweep.
#[derive(Debug, Serialize)]
pub(super) struct Sweep {
    axes: Vec<Axis>,
    metrics: Vec<Column>,
    /// Index of the metric that the answer uses.
    chosen: usize,
    points: Vec<Point>,
    /// Number of points that are not shown.
    left_out: usize,
    digest: String,
    version: String,
    /// The command that repeats the sweep.
    command: String,
    /// Content of the sweep's file.
    text: String,
}

/// Value of a key in a row as text, whatever its type.
fn said(points: &Table, key: &str, row: usize) -> String {
    let column = format!("axis.{key}");
    let text = points.texts(&column).map(|cells| cells.value(row).to_owned());
    let flag = || points.flags(&column).map(|cells| cells.value(row).to_string());
    // `{:?}` writes very small numbers in scientific notation.
    let real = |x: f64| format!("{x:?}").trim_end_matches(".0").to_owned();
    text.or_else(flag).or_else(|| cells(points, &column)(row).map(real)).unwrap_or_default()
}

/// A number of a row of `points.parquet`.
type Read<'t> = Box<dyn Fn(usize) -> Option<f64> + 't>;

impl Sweep {
    /// The sweep of `sweep.json` and `points.parquet`.
    pub(super) fn of(manifest: &Value, points: &Table) -> Self {
        let text = |key: &str| manifest[key].as_str().unwrap_or_default().to_owned();
        let axes = axes(manifest, points);
        let mut metrics = Vec::new();
        let mut reads: Vec<Read<'_>> = Vec::new();
        let mut chosen = None;
        for (metric, read) in candidates(points) {
            if tells(&metric, (0..points.rows()).filter_map(&read)) {
                // The answer uses the first of the most important metrics.
                if metric.shown == Shown::Sweep {
                    chosen = chosen.or(Some(metrics.len()));
                }
                metrics.push(Column::of(&metric, 1));
                reads.push(read);
            }
        }
        let seeds = manifest["seeds"].as_array().map_or(1, Vec::len).max(1);
        let all = points.rows().div_ceil(seeds);
        let point = |number: usize| {
            let rows = number * seeds..points.rows().min((number + 1) * seeds);
            let texts =
                |column: &str| points.texts(column).map_or("", |cells| cells.value(rows.start)).to_owned();
            let cells: Vec<Option<Vec<f64>>> =
                reads.iter().map(|read| rows.clone().map(read).collect()).collect();
            Point {
                values: axes
                    .iter()
                    .map(|axis| axis.keys.iter().map(|key| said(points, key, rows.start)).collect())
                    .collect(),
                scheme: texts("scheme"),
                complete: points.flags("complete").is_some_and(|f| rows.clone().all(|row| f.value(row))),
                over: OverSeeds::of(rows.len(), &cells),
            }
        };
        let shown: Vec<Point> = (0..all.min(MOST_POINTS)).map(point).collect();
        Sweep {
            axes,
            metrics,
            chosen: chosen.unwrap_or(0),
            left_out: all - shown.len(),
            points: shown,
            digest: text("digest"),
            version: text("ropewalk"),
            command: command(manifest),
            text: manifest["files"]["sweep"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Schemes of the points.
    pub(super) fn schemes(&self) -> impl Iterator<Item = &str> {
        self.points.iter().map(|point| point.scheme.as_str())
    }

    /// The question.
    pub(super) fn asked(&self, manifest: &Value) -> Vec<Asked> {
        let mut lines =
            vec![Asked { label: "Scenario", text: manifest["scenario"].as_str().unwrap_or_default().into() }];
        for (i, axis) in self.axes.iter().enumerate() {
            let mut values: Vec<String> = Vec::new();
            for point in &self.points {
                let value = point.values[i].join(" / ");
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            lines.push(Asked { label: "Axis", text: format!("{}: {}", axis.name, values.join(", ")) });
        }
        let rows = (self.points.len() + self.left_out) as u64;
        let text = match self.seeds() {
            1 => count(rows),
            seeds => {
                let points = count(rows * seeds as u64);
                format!(
                    "{points}: {} choices, each with {seeds} seeds; numbers are means over seeds",
                    count(rows)
                )
            }
        };
        lines.push(Asked { label: "Points", text });
        lines
    }

    /// Number of seeds of each choice of values.
    fn seeds(&self) -> usize {
        self.points.first().map_or(1, |point| point.over.runs)
    }

    /// Name of a row: a point, or a choice of values with several seeds.
    fn row(&self) -> &'static str {
        if self.seeds() > 1 { "choice" } else { "point" }
    }

    /// The best point, the worst point, and the axis with the largest effect.
    pub(super) fn answer(&self) -> Vec<String> {
        let (mut text, row) = (Vec::new(), self.row());
        let Some(metric) = self.metrics.get(self.chosen) else { return text };
        let value = |point: &Point| point.over.cells[self.chosen].filter(|_| point.complete);
        let mut whole: Vec<(&Point, f64)> =
            self.points.iter().filter_map(|point| Some((point, value(point)?))).collect();
        whole.sort_by(|a, b| a.1.total_cmp(&b.1));
        if let (Some((_, least)), Some((_, most))) = (whole.first(), whole.last()) {
            let says = |x: f64| format!("{} {}", number(x), metric.unit);
            let name = lower(&metric.name);
            let all = |x: f64| {
                self.label(&whole.iter().filter(|(_, y)| *y == x).map(|(p, _)| *p).collect::<Vec<_>>())
            };
            text.push(if whole.len() == 1 {
                format!("The {row} has {name} of {}.", says(*least))
            } else if least == most {
                format!("All {} {row}s have {name} of {}.", count(whole.len() as u64), says(*least))
            } else {
                format!(
                    "Of {} {row}s the best is {}, with {name} of {}; the worst is {}, with {}, {} times as much.",
                    count(whole.len() as u64),
                    all(*least),
                    says(*least),
                    all(*most),
                    says(*most),
                    number(most / least.max(1e-9))
                )
            });
            // A tie is a tie.
            let near: Vec<&Point> =
                whole.iter().filter(|(_, x)| x > least && *x <= least * TIE).map(|(p, _)| *p).collect();
            let named: Vec<String> = near.iter().take(MOST_TIED).map(|point| self.label(&[*point])).collect();
            match near.len() {
                0 => {}
                1 => text.push(format!("Within 2 % of the best is {}.", named[0])),
                n if n <= MOST_TIED => text.push(format!("Within 2 % of the best are {}.", named.join("; "))),
                n => text.push(format!("{} other {row}s are within 2 % of the best.", count(n as u64))),
            }
        }
        if self.axes.len() > 1
            && let Some((axis, factor)) = self.most_telling(&whole)
            && factor >= MATTERS
        {
            let name = &self.axes[axis].name;
            text.push(format!(
                "{name} has the largest effect: between its best and its worst value, the mean over the other axes differs \
                 by a factor of {}.",
                number(factor)
            ));
        }
        let broken = self.points.iter().filter(|point| !point.complete).count();
        if broken > 0 {
            let are = if broken == 1 {
                format!("1 {row} is")
            } else {
                format!("{} {row}s are", count(broken as u64))
            };
            text.push(format!("{are} NOT complete and left out."));
        }
        text
    }

    /// The values that these points have in common; axes in which they differ are left out.
    fn label(&self, points: &[&Point]) -> String {
        let Some(first) = points.first() else { return String::new() };
        let common = |axis: &usize| points.iter().all(|point| point.values[*axis] == first.values[*axis]);
        let of = |axis: usize| format!("{} {}", self.axes[axis].name, first.values[axis].join(" / "));
        let parts: Vec<String> = (0..self.axes.len()).filter(common).map(of).collect();
        match (parts.is_empty(), points.len()) {
            (false, _) => parts.join(", "),
            (true, 1) => "the only one".to_owned(),
            (true, n) => format!("{n} of them"),
        }
    }

    /// The axis along which the means over the other axes differ most, and the factor.
    fn most_telling(&self, points: &[(&Point, f64)]) -> Option<(usize, f64)> {
        let factor = |axis: usize| {
            let mut by_value: Vec<(&Vec<String>, Vec<f64>)> = Vec::new();
            for (point, x) in points {
                let value = &point.values[axis];
                match by_value.iter_mut().find(|(known, _)| *known == value) {
                    Some((_, all)) => all.push(*x),
                    None => by_value.push((value, vec![*x])),
                }
            }
            let means: Vec<f64> = by_value.iter().filter_map(|(_, all)| mean(all)).collect();
            let (least, most) = extremes(&means)?;
            Some((axis, most / least.max(1e-9)))
        };
        (0..self.axes.len()).filter_map(factor).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// A metric such as `FCT, P99` as part of a sentence: `a P99 FCT`.
fn lower(name: &str) -> String {
    match name.split_once(", ") {
        Some((what, which)) => format!("a {which} {what}"),
        None => format!("a {name}"),
    }
}

/// The command that repeats the sweep, if its file is in the current directory.
fn command(manifest: &Value) -> String {
    let mut words = vec!["ropewalk".to_owned(), "sweep".into()];
    words.push(format!("{}.toml", manifest["sweep"].as_str().unwrap_or("sweep")));
    for set in manifest["set"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        words.extend(["--set".into(), set.to_owned()]);
    }
    line(words)
}

/// The axes, in the sweep's order.
fn axes(manifest: &Value, points: &Table) -> Vec<Axis> {
    let list: Vec<Vec<String>> = manifest["axes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|axis| {
            // JSON objects have no order, so take the order of the table's columns.
            let mut keys: Vec<String> =
                axis.as_object().into_iter().flat_map(|axis| axis.keys().cloned()).collect();
            keys.sort_by_key(|key| points.schema().index_of(&format!("axis.{key}")).unwrap_or(usize::MAX));
            keys
        })
        .collect();
    let last = |key: &str| match key {
        "schemes" => "scheme".to_owned(),
        key => key.rsplit('.').next().unwrap_or(key).to_owned(),
    };
    let all: Vec<String> = list.iter().flatten().map(|key| last(key)).collect();
    let name = |key: &String| match all.iter().filter(|other| **other == last(key)).count() {
        1 => last(key),
        _ => key.clone(),
    };
    list.into_iter()
        .map(|keys| Axis { name: keys.iter().map(name).collect::<Vec<_>>().join(" / "), keys })
        .collect()
}

/// All metrics that the table may have, each with its numbers by row.
fn candidates(points: &Table) -> Vec<(Metric, Read<'_>)> {
    let schema = points.schema();
    let names = || schema.fields().iter().map(|field| field.name());
    let mut found: Vec<(Metric, Read<'_>)> = Vec::new();
    // The slowest group is shown for a single job only, because a mean over jobs has no meaning.
    let slowest = Metric::slowest_group();
    if let [job] = names().filter_map(|name| slowest.named_by(name)).collect::<Vec<_>>().as_slice() {
        found.push((job.clone(), cells(points, &job.key)));
    }
    for metric in Metric::shown_in(Shown::Page) {
        let read = |row: usize| metric.in_table(|key| cells(points, key)(row));
        found.push((metric.clone(), Box::new(read)));
    }
    let counters = METRICS.iter().filter(|metric| metric.shown == Shown::Page && metric.key.contains('*'));
    for counter in counters.flat_map(|metric| names().filter_map(|name| metric.named_by(name))) {
        let read = cells(points, &counter.key);
        found.push((counter, read));
    }
    found
}

/// The numbers of a column, whatever their type; `None` in all rows if there is no such column.
fn cells<'t>(points: &'t Table, column: &str) -> Read<'t> {
    let (counts, reals) = (points.counts(column), points.reals(column));
    Box::new(move |row| {
        let count = counts.filter(|cells| cells.is_valid(row)).map(|cells| cells.value(row) as f64);
        count.or_else(|| reals.filter(|cells| cells.is_valid(row)).map(|cells| cells.value(row)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::table::Column;
    use serde_json::json;

    fn points() -> Table {
        let text = |cells: [&str; 8]| cells.map(str::to_owned).into_iter();
        let real = |cells: [f64; 8]| cells.into_iter().map(Some);
        Table::new(
            vec![
                Column::text(
                    "axis.scheme",
                    "",
                    text(["ecmp", "ecmp", "ecmp", "ecmp", "ar", "ar", "ar", "ar"]),
                ),
                Column::text("axis.a.b", "", text(["1", "1", "2", "2", "1", "1", "2", "2"])),
                Column::text("axis.a.c", "", text(["x", "x", "y", "y", "x", "x", "y", "y"])),
                Column::text("scheme", "", text(["ecmp", "ecmp", "ecmp", "ecmp", "ar", "ar", "ar", "ar"])),
                Column::flag("complete", "", [true, true, true, true, true, true, true, false].into_iter()),
                Column::real(
                    "flows.fct_us.p99",
                    "us",
                    "late",
                    real([3.0, 5.0, 4.0, 4.0, 1.0, 3.0, 2.0, 2.0]),
                ),
                Column::count("packets.sent", "packets", "", [200; 8].into_iter()),
                Column::count("packets.spurious", "packets", "", [1; 8].into_iter()),
            ],
            1,
        )
    }

    fn manifest() -> Value {
        json!({
            "ropewalk": "0", "sweep": "s", "scenario": "q", "seeds": [1, 2], "digest": "d",
            "axes": [{ "scheme": ["ecmp", "ar"] }, { "a.b": ["1", "2"], "a.c": ["x", "y"] }],
        })
    }

    #[test]
    fn points_are_means_over_seeds_and_the_answer_names_best_and_worst() {
        let sweep = Sweep::of(&manifest(), &points());
        assert_eq!(sweep.points.len(), 4);
        assert_eq!(sweep.metrics[0].name, "FCT, P99");
        assert_eq!(sweep.points[0].over.cells[0], Some(4.0));
        assert_eq!(sweep.points[0].over.ranges[0], Some((3.0, 5.0)));
        let spurious = sweep.metrics.iter().position(|m| m.name == "spurious").unwrap();
        assert_eq!(sweep.points[0].over.cells[spurious], Some(0.5));
        assert!(!sweep.metrics.iter().any(|m| m.name == "pauses"), "no such column");
        let answer = sweep.answer();
        // The last point is not complete at one of its seeds.
        assert_eq!(
            answer[0],
            "Of 3 choices the best is scheme ar, b / c 1 / x, with a P99 FCT of 2.00 µs; the worst is scheme ecmp, with 4.00 µs, \
             2.00 times as much.",
            "both points of ecmp take 4 us, so its timers do not matter"
        );
        assert!(answer[1].starts_with("scheme has the largest effect: "), "{answer:?}");
        assert!(answer[2].starts_with("1 choice is NOT complete"), "{answer:?}");
    }

    #[test]
    fn axes_are_asked_with_their_values() {
        let asked = Sweep::of(&manifest(), &points()).asked(&manifest());
        let texts: Vec<&str> = asked.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "q",
                "scheme: ecmp, ar",
                "b / c: 1 / x, 2 / y",
                "8: 4 choices, each with 2 seeds; numbers are means over seeds"
            ]
        );
    }
}
