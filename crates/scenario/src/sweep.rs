//! A sweep: one scenario at many points, as a file says it.
//!
//! ```toml
//! scenario = "quickstart"                 # a file beside this one, or a built-in scenario
//! seeds = "1..5"                          # both ends; or a list; left out: the scenario's seed
//! [set]                                   # at every point
//! "workload.0.bytes" = "1MB"
//! [[axis]]                                # axes are crossed; the last one turns fastest, seeds faster still
//! schemes = ["ecmp", "ar", "themis"]      # each keeps its settings, as in `ropewalk compare`
//! [[axis]]                                # keys in one axis go side by side
//! "nic.congestion.dcqcn.rate-increase-timer" = ["55us", "300us", "900us"]
//! "nic.congestion.dcqcn.rate-decrease-interval" = ["50us", "4us", "4us"]
//! ```
//!
//! Keys are those of `--set`, in quotes or bare. A point is the scenario with [set], one value of each axis in their
//! order, its scheme and its seed; what cannot be is an error at the value's place in the sweep's file.

mod seeds;
mod text;

use crate::builtin;
use crate::check::Resolved;
use crate::document::Document;
use crate::error::{Error, Location, nearest};
use crate::overlay::{Change, Origin};
use crate::schema::{schema as scenario_schema, schema_of};
use crate::source::{self, Source};
use crate::toml_text::inline;
use schemars::JsonSchema;
use seeds::Seeds;
pub use seeds::seeds;
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use text::{Assignment, SweepText};
use toml::Value;

/// Most points of a sweep. Our choice: at a second each that is a day on one core, and a typing error like
/// `seeds = "1..50000000"` is told before it fills the memory.
pub const MOST_POINTS: usize = 100_000;

/// The key of an axis that chooses schemes.
const SCHEMES: &str = "schemes";

/// The keys of a sweep.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SweepConfig {
    /// What it is called; results go to `results/NAME`. Default: the name of its file, without the ending.
    #[serde(default)]
    pub name: Option<String>,
    /// The scenario: a path from where the sweep's file stands, or the name of a built-in one.
    pub scenario: String,
    /// Traffic class whose scheme the axis `schemes` swaps. Default `foreground`, or all if none has a scheme of its
    /// own (as for `ropewalk compare`).
    #[serde(default)]
    pub class: Option<String>,
    /// Seeds of every point: `"1..5"` with both ends, a list such as `[1, 2, 7]`, or one. Default: the scenario's.
    #[serde(default)]
    pub seeds: Option<Seeds>,
    /// Keep a table of every point's flows, `flows/POINT.parquet`. Default false (they are much larger than all else).
    #[serde(default)]
    pub flows: bool,
    /// Values for every point: dotted keys as for `--set`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: toml::Table,
    /// Axes; all of their combinations are run. An axis has one key, or several of the same length that go side by
    /// side: dotted keys as for `--set`, each with a list of values; or `schemes`, a list of schemes.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    pub axis: Vec<toml::Table>,
}

/// The JSON Schema (draft 7, which TOML editors understand) of a sweep.
pub fn schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(schema_of::<SweepConfig>)
}

/// A sweep that was read. Its points are worked out one by one: a sweep of many takes no more room than its file.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Its name.
    pub name: String,
    /// The file, or the built-in sweep, that it came from.
    pub file: Source,
    /// The scenario.
    pub scenario: Source,
    /// Traffic class whose scheme is swapped.
    pub class: Option<String>,
    /// Seeds; `None`: the scenario's.
    pub seeds: Option<Vec<u64>>,
    /// Flows are kept.
    pub flows: bool,
    /// `KEY=VALUE` changes that do not come from the file.
    pub set: Vec<String>,
    /// Axes; the last one turns fastest.
    pub axes: Vec<Axis>,
    changes: Vec<Change>,
}

/// An axis of a sweep: keys that go side by side.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its keys; all have as many values.
    pub keys: Vec<AxisKey>,
}

impl Axis {
    /// The number of its values.
    pub fn len(&self) -> usize {
        self.keys.first().map_or(0, |key| key.values.len())
    }

    /// Never true for an axis of a [`Sweep`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A key of an axis and its values.
#[derive(Clone, Debug)]
pub struct AxisKey {
    /// A dotted key as for `--set`, or `schemes`.
    pub name: String,
    values: Vec<Change>,
}

impl AxisKey {
    /// The values as text: TOML, but for strings, which are plain.
    pub fn values(&self) -> impl Iterator<Item = String> {
        self.values.iter().map(|change| plainly(&change.value))
    }
}

fn plainly(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => inline(other),
    }
}

/// The sweeps that come with ropewalk.
pub const BUILTIN: &[builtin::Builtin] =
    &[builtin::Builtin { name: "themis-timers", text: include_str!("../../../sweeps/themis-timers.toml") }];

/// Finds a sweep, a path to a TOML file or the name of a built-in one, and reads it. `set` are `KEY=VALUE` changes to
/// every point, after those of the file and before its axes.
///
/// # Errors
/// What is wrong first. Points are not looked at: that is [`Sweep::point`].
pub fn load(sweep: &str, set: &[String]) -> Result<Sweep, Error> {
    Sweep::parse(&source::find_among(sweep, BUILTIN, "sweep")?, set)
}

impl Sweep {
    /// Reads a sweep from a text.
    ///
    /// # Errors
    /// What is wrong with it or with the scenario's name.
    pub fn parse(file: &Source, set: &[String]) -> Result<Sweep, Error> {
        Self::of(file, None, set)
    }

    /// The same; a scenario that is `given` is taken in place of the one that the text names.
    ///
    /// # Errors
    /// See [`Sweep::parse`].
    pub fn of(file: &Source, given: Option<Source>, set: &[String]) -> Result<Sweep, Error> {
        let config: SweepConfig = Document::new(file, &[])?.read(schema)?;
        let text = SweepText::new(file);
        let name = config.name.unwrap_or_else(|| file.name.clone());
        if name.is_empty()
            || name.starts_with('.')
            || name.contains(['/', '\\'])
            || name.contains(char::is_control)
        {
            let message =
                format!("`{name}` is not a name for a sweep: its results go to a folder of that name");
            return Err(text.error(&["name"], message));
        }
        let scenario = match given {
            Some(scenario) => scenario,
            None => scenario(file, &config.scenario).map_err(|e| relocated(e, &text, &["scenario"]))?,
        };
        let mut changes = Vec::new();
        for entry in text.entries(&["set"]) {
            changes.push(Change {
                key: entry.key,
                value: entry.value,
                origin: text.origin(entry.at, entry.value_at),
            });
        }
        for set in set {
            changes.push(Change::parse(set)?);
        }
        let seeded = changes.iter().find(|change| change.key == "seed");
        if let Some(change) = seeded.filter(|_| config.seeds.is_some()) {
            return Err(change
                .origin
                .error(true, "`seeds` says which seeds are run: a `seed` beside it has no meaning"));
        }
        let mut axes: Vec<Axis> = Vec::new();
        for number in 0..config.axis.len() {
            let axis = axis(&text, number, &axes)?;
            axes.push(axis);
        }
        let sweep = Sweep {
            name,
            file: file.clone(),
            scenario,
            class: config.class,
            seeds: config.seeds.map(|seeds| seeds.0),
            flows: config.flows,
            set: set.to_vec(),
            axes,
            changes,
        };
        sweep.count().map_err(|message| text.error(&["axis"], message))?;
        Ok(sweep)
    }

    /// The number of points, or why there are too many.
    fn count(&self) -> Result<usize, String> {
        let seeds = self.seeds.as_ref().map_or(1, Vec::len);
        let count = self.axes.iter().try_fold(seeds, |n, axis| n.checked_mul(axis.len()));
        count.filter(|&n| n <= MOST_POINTS).ok_or_else(|| {
            let mut factors: Vec<String> = self.axes.iter().map(|axis| axis.len().to_string()).collect();
            factors.push(format!("{seeds} seeds"));
            format!("a sweep has at most {MOST_POINTS} points; this one has {}", factors.join(" x "))
        })
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.count().unwrap_or(0)
    }

    /// Never true: without axes and seeds there is one point.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys of all axes, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().flat_map(|axis| &axis.keys).map(|key| key.name.as_str())
    }

    /// What stands on the axes at a point, in the order of [`Sweep::keys`].
    pub fn values(&self, point: usize) -> Vec<String> {
        self.picked(point).map(|(_, change)| plainly(&change.value)).collect()
    }

    /// The same as the sweep's file has them.
    pub fn plain_values(&self, point: usize) -> impl Iterator<Item = &Value> {
        self.picked(point).map(|(_, change)| &change.value)
    }

    /// The seed of a point, if the sweep says so.
    pub fn seed(&self, point: usize) -> Option<u64> {
        let seeds = self.seeds.as_ref()?;
        seeds.get(point % seeds.len().max(1)).copied()
    }

    /// The changes that the axes make at a point.
    fn picked(&self, point: usize) -> impl Iterator<Item = (&AxisKey, &Change)> {
        let mut rest = point / self.seeds.as_ref().map_or(1, Vec::len).max(1);
        let mut indices = vec![0; self.axes.len()];
        for (index, axis) in indices.iter_mut().zip(&self.axes).rev() {
            *index = rest % axis.len().max(1);
            rest /= axis.len().max(1);
        }
        let keys =
            self.axes.iter().zip(indices).flat_map(|(axis, i)| axis.keys.iter().map(move |key| (key, i)));
        keys.filter_map(|(key, i)| Some((key, key.values.get(i)?)))
    }

    /// A point for people: `KEY = VALUE, ..., seed 3`.
    pub fn label(&self, point: usize) -> String {
        let mut parts: Vec<String> = self
            .picked(point)
            .map(|(key, change)| format!("{} = {}", key.name, plainly(&change.value)))
            .collect();
        parts.extend(self.seed(point).map(|seed| format!("seed {seed}")));
        parts.join(", ")
    }

    /// The scenario at a point; [`Resolved::lay`] checks the rest of it.
    ///
    /// # Errors
    /// What is wrong first, at its place in the sweep's file where it has one; [`Sweep::blame`] says more of it.
    pub fn point(&self, point: usize) -> Result<Resolved, Error> {
        let mut changes = self.changes.clone();
        changes.extend(
            self.picked(point).filter(|(key, _)| key.name != SCHEMES).map(|(_, change)| change.clone()),
        );
        let mut resolved = Resolved::new(&self.scenario, &changes)?;
        for (_, change) in self.picked(point).filter(|(key, _)| key.name == SCHEMES) {
            resolved.swap(self.class.as_deref(), &plainly(&change.value), &change.origin)?;
        }
        if let Some(seed) = self.seed(point) {
            resolved.scenario.seed = seed;
        }
        Ok(resolved)
    }

    /// An error of a point; where its place is not in the sweep's file, its message says which point it was.
    #[must_use]
    pub fn blame(&self, point: usize, error: Error) -> Error {
        let in_sweep =
            |place: &Location| place.file == self.file.file && self.file.file != self.scenario.file;
        match (error.location().is_some_and(in_sweep), self.label(point)) {
            (false, label) if !label.is_empty() => error.with_more(&format!(" (at point {point}: {label})")),
            _ => error,
        }
    }
}

/// Finds the scenario of a sweep: beside its file, or a built-in one.
fn scenario(file: &Source, name: &str) -> Result<Source, Error> {
    let beside = file.folder().join(name);
    match beside.to_str() {
        Some(path) if beside.is_file() || Path::new(name).is_absolute() => source::find(path),
        _ => source::find(name),
    }
}

/// An error that has no place gets one.
fn relocated(error: Error, text: &SweepText, path: &[&str]) -> Error {
    if error.location().is_some() {
        return error;
    }
    let new = text.error(path, error.message());
    match error.help() {
        Some(help) => new.with_help(help),
        None => new,
    }
}

/// Reads an axis; `before` are those above it.
fn axis(text: &SweepText, number: usize, before: &[Axis]) -> Result<Axis, Error> {
    let path = ["axis", &number.to_string()];
    let mut keys: Vec<AxisKey> = Vec::new();
    for entry in text.entries(&path) {
        let at = entry.at.clone();
        let key = key(text, entry)?;
        let earlier = before.iter().flat_map(|axis| &axis.keys).chain(&keys).find(|k| k.name == key.name);
        let wrong = |message: String| text.at(at.clone(), message);
        if earlier.is_some() {
            return Err(wrong(format!("`{}` is on an axis already", key.name)));
        }
        if let Some(first) = keys.first().filter(|first| first.values.len() != key.values.len()) {
            return Err(wrong(format!(
                "keys of one axis go side by side: `{}` has {} values, `{}` has {}",
                first.name,
                first.values.len(),
                key.name,
                key.values.len()
            ))
            .with_help("give each the same number of values, or an [[axis]] of its own to cross them"));
        }
        keys.push(key);
    }
    if keys.is_empty() {
        let error = text.error(&path, "an axis needs a key with a list of values");
        return Err(error.with_help("such as \"switch.buffer\" = [\"16MB\", \"64MB\"]"));
    }
    Ok(Axis { keys })
}

/// Reads a key of an axis.
fn key(text: &SweepText, entry: Assignment) -> Result<AxisKey, Error> {
    let Assignment { key: name, at, value, value_at, items } = entry;
    let Value::Array(values) = value else {
        let error = text.at(value_at, format!("the axis `{name}` needs a list of values"));
        return Err(error.with_help(format!(
            "such as {name} = [{}]; one value for all points goes to [set]",
            inline(&value)
        )));
    };
    if values.is_empty() {
        return Err(text.at(value_at, format!("the axis `{name}` has no value")));
    }
    if name == "seed" {
        let error = text.at(at, "seeds are not an axis, they turn at every point");
        return Err(error.with_help("write `seeds = \"1..5\"` or `seeds = [1, 2, 7]` at the top of the file"));
    }
    // Where a scheme is chosen point by point a scenario's own `scheme` is not what was meant.
    let own = name == SCHEMES || keys().any(|key| key == name);
    if !own && nearest(&name, [SCHEMES].into_iter().chain(keys())) == Some(SCHEMES) {
        return Err(text.at(at, format!("unknown key `{name}`; did you mean `{SCHEMES}`?")));
    }
    let mut changes = Vec::new();
    for (value, item) in values.into_iter().zip(items) {
        if name == SCHEMES && !value.is_str() {
            return Err(text.at(item, "`schemes` are names, such as \"themis\""));
        }
        let label = match name.as_str() {
            SCHEMES => String::new(),
            _ => format!("axis `{name}`, value {}: ", inline(&value)),
        };
        let origin = Origin { label, ..text.origin(at.clone(), item) };
        changes.push(Change { key: name.clone(), value, origin });
    }
    Ok(AxisKey { name, values: changes })
}

/// The keys at the top of a scenario.
fn keys() -> impl Iterator<Item = &'static str> {
    scenario_schema()["properties"].as_object().into_iter().flat_map(|keys| keys.keys().map(String::as_str))
}

#[cfg(test)]
mod tests;
