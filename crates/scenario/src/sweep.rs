//! Sweeps: one scenario at many points, described by a file.
//!
//! ```toml
//! scenario = "quickstart"                 # a file beside this one, or a built-in scenario
//! seeds = "1..5"                          # both ends included, or a list; default: the scenario's seed
//! [set]                                   # holds at every point
//! "workload.0.bytes" = "1MB"
//! [[axis]]                                # axes are crossed; the last one varies fastest, seeds faster still
//! schemes = ["ecmp", "ar", "themis"]      # each keeps its settings, as in `ropewalk compare`
//! [[axis]]                                # the keys of one axis change together
//! "nic.congestion.dcqcn.rate-increase-timer" = ["55us", "300us", "900us"]
//! "nic.congestion.dcqcn.rate-decrease-interval" = ["50us", "4us", "4us"]
//! ```
//!
//! Keys are those of `--set`, with or without quotes. A point is the scenario with the values of `[set]`, one value of
//! each axis in order, its scheme and its seed. An impossible value is an error at its position in the sweep's file.

mod seeds;
mod text;

use crate::builtin;
use crate::check::{Resolved, refuse_unused};
use crate::document::Document;
use crate::find::find;
use crate::overlay::{Change, Origin};
use crate::schema::{schema as scenario_schema, schema_of};
use crate::source::{self, Source};
use crate::toml_text::inline;
use finding::{Finding, Place, nearest};
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

/// Most points of a sweep (our choice). At a second each they take a day on one core; a typing error such as
/// `seeds = "1..50000000"` is refused before it fills the memory.
pub const MOST_POINTS: usize = 100_000;

/// The key of an axis that chooses schemes.
const SCHEMES: &str = "schemes";

/// The keys of a sweep.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SweepConfig {
    /// Name of the sweep; results go to `results/NAME`. Default: the name of the file without its extension.
    #[serde(default)]
    pub name: Option<String>,
    /// Scenario: a path relative to the sweep's file, or the name of a built-in scenario. No default.
    pub scenario: String,
    /// Traffic class whose scheme the axis `schemes` replaces. Default `foreground`, or all classes if none has a scheme
    /// of its own (as in `ropewalk compare`).
    #[serde(default)]
    pub class: Option<String>,
    /// Seeds of every point: `"1..5"` with both ends included, a list such as `[1, 2, 7]`, or one seed. Default: the
    /// scenario's seed.
    #[serde(default)]
    pub seeds: Option<Seeds>,
    /// Whether to keep a table of the flows of every point, `flows/POINT.parquet`. Default false (our choice: these
    /// tables are much larger than all other results).
    #[serde(default)]
    pub flows: bool,
    /// Values for every point: dotted keys as in `--set`. Default: none.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: toml::Table,
    /// Axes; all combinations of their values are run. An axis has one or more dotted keys as in `--set`, each with a
    /// list of values; lists of one axis have the same length and change together. The key `schemes` lists schemes.
    /// Default: none.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    pub axis: Vec<toml::Table>,
}

/// The JSON Schema (draft 7, which TOML editors understand) of a sweep.
pub fn schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(schema_of::<SweepConfig>)
}

/// A sweep read from a file. Its points are computed one by one, so that a sweep of many points needs little memory.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Name of the sweep.
    pub name: String,
    /// The file or built-in sweep.
    pub file: Source,
    /// The scenario.
    pub scenario: Source,
    /// Traffic class whose scheme the axis `schemes` replaces.
    pub class: Option<String>,
    /// Seeds; `None` for the scenario's seed.
    pub seeds: Option<Vec<u64>>,
    /// Whether tables of flows are kept.
    pub flows: bool,
    /// `KEY=VALUE` changes from outside the file.
    pub set: Vec<String>,
    /// Axes; the last one varies fastest.
    pub axes: Vec<Axis>,
    changes: Vec<Change>,
}

/// An axis of a sweep: keys whose values change together.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Keys of the axis; all have the same number of values.
    pub keys: Vec<AxisKey>,
}

impl Axis {
    /// The number of values of each key.
    pub fn len(&self) -> usize {
        self.keys.first().map_or(0, |key| key.values.len())
    }

    /// Never true for an axis of a [`Sweep`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A key of an axis with its values.
#[derive(Clone, Debug)]
pub struct AxisKey {
    /// A dotted key as for `--set`, or `schemes`.
    pub name: String,
    values: Vec<Change>,
}

impl AxisKey {
    /// The values as TOML; strings stand without quotes.
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

/// Built-in sweeps.
pub const BUILTIN: &[builtin::Builtin] =
    &[builtin::Builtin { name: "themis-timers", text: include_str!("../../../sweeps/themis-timers.toml") }];

/// Reads a sweep from a TOML file or, by its name, a built-in one. `set` has `KEY=VALUE` changes to every point, which
/// come after those of the file and before its axes.
///
/// # Errors
/// The first mistake in the file. [`Sweep::point`] finds mistakes in single points.
pub fn load(sweep: &str, set: &[String]) -> Result<Sweep, Finding> {
    Sweep::parse(&source::find_among(sweep, BUILTIN, "sweep")?, set)
}

impl Sweep {
    /// Reads a sweep from a text.
    ///
    /// # Errors
    /// The first mistake in the text, or an unknown scenario.
    pub fn parse(file: &Source, set: &[String]) -> Result<Sweep, Finding> {
        Self::of(file, None, set)
    }

    /// Reads a sweep from a text; `given` replaces the scenario that the text names.
    ///
    /// # Errors
    /// The same errors as those of [`Sweep::parse`].
    pub fn of(file: &Source, given: Option<Source>, set: &[String]) -> Result<Sweep, Finding> {
        let config: SweepConfig = Document::new(file, &[])?.read()?;
        let text = SweepText::new(file);
        let name = config.name.unwrap_or_else(|| file.name.clone());
        if name.is_empty()
            || name.starts_with('.')
            || name.contains(['/', '\\'])
            || name.contains(char::is_control)
        {
            let message = format!(
                "`{name}` cannot be the name of a sweep, because its results go to a folder of that name"
            );
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
            return Err(change.origin.error(true, "set either `seeds` or `seed`, not both"));
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
        sweep.refuse_unused()?;
        Ok(sweep)
    }

    /// Refuses a change to all points that an axis replaces at every point.
    fn refuse_unused(&self) -> Result<(), Finding> {
        let all: Vec<Change> = self.changes.iter().cloned().chain(self.axis_changes(0)).collect();
        // Other mistakes have their own errors when the points are made.
        let Ok(document) = Document::new(&self.scenario, &all) else { return Ok(()) };
        let (changes, axes) = document.changes().split_at(self.changes.len());
        let keys = self.keys().filter(|key| *key != SCHEMES);
        for (key, axis) in keys.zip(axes) {
            if let Some(change) = changes.iter().find(|change| change.is_replaced_by(axis)) {
                let text = format!("the axis `{key}` sets this at every point: no run would use this value");
                return Err(change.origin.error(true, &text));
            }
        }
        let of_axis = |key: &AxisKey| key.values.iter().map(|change| plainly(&change.value)).collect();
        let schemes = self.axes.iter().flat_map(|axis| &axis.keys).find(|key| key.name == SCHEMES);
        let schemes: Vec<String> = schemes.map_or_else(Vec::new, of_axis);
        if let Some(first) = schemes.first()
            && changes
                .iter()
                .any(|change| ["scheme", "class", "feedback", "switch-role"].contains(&&*change.path()[0]))
            && let Ok(resolved) = Resolved::new(&self.scenario, &self.changes)
            && let Ok(path) = resolved.scheme_path(self.class.as_deref(), first)
        {
            let names: Vec<&str> = schemes.iter().map(String::as_str).collect();
            refuse_unused(changes, &path, &names, SCHEMES)?;
        }
        Ok(())
    }

    /// The changes of axes at a point, without the scheme.
    fn axis_changes(&self, point: usize) -> impl Iterator<Item = Change> {
        self.picked(point).filter(|(key, _)| key.name != SCHEMES).map(|(_, change)| change.clone())
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

    /// The values of a point, in the order of [`Sweep::keys`]; strings stand without quotes.
    pub fn values(&self, point: usize) -> Vec<String> {
        self.picked(point).map(|(_, change)| plainly(&change.value)).collect()
    }

    /// The values of a point as the sweep's file has them, in the order of [`Sweep::keys`].
    pub fn plain_values(&self, point: usize) -> impl Iterator<Item = &Value> {
        self.picked(point).map(|(_, change)| &change.value)
    }

    /// The seed of a point, if the sweep has seeds.
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

    /// Description of a point for reports: `KEY = VALUE, ..., seed 3`.
    pub fn label(&self, point: usize) -> String {
        let mut parts: Vec<String> = self
            .picked(point)
            .map(|(key, change)| format!("{} = {}", key.name, plainly(&change.value)))
            .collect();
        parts.extend(self.seed(point).map(|seed| format!("seed {seed}")));
        parts.join(", ")
    }

    /// The scenario at a point, before [`Resolved::lay`] makes and checks its plan.
    ///
    /// # Errors
    /// The first mistake, at its position in the sweep's file if it has one; [`Sweep::blame`] adds the point otherwise.
    pub fn point(&self, point: usize) -> Result<Resolved, Finding> {
        let mut changes = self.changes.clone();
        changes.extend(self.axis_changes(point));
        let mut resolved = Resolved::new(&self.scenario, &changes)?;
        for (_, change) in self.picked(point).filter(|(key, _)| key.name == SCHEMES) {
            resolved.swap(self.class.as_deref(), &plainly(&change.value), &change.origin)?;
        }
        if let Some(seed) = self.seed(point) {
            resolved.scenario.seed = seed;
        }
        Ok(resolved)
    }

    /// Adds the description of a point to its error, unless the error has a position in the sweep's file.
    #[must_use]
    pub fn blame(&self, point: usize, error: Finding) -> Finding {
        let in_sweep = |place: &Place| place.file == self.file.file && self.file.file != self.scenario.file;
        match (error.place.as_deref().is_some_and(in_sweep), self.label(point)) {
            (false, label) if !label.is_empty() => {
                Finding { text: format!("{} (at point {point}: {label})", error.text), ..error }
            }
            _ => error,
        }
    }
}

/// Finds the scenario of a sweep: beside its file, or a built-in one.
fn scenario(file: &Source, name: &str) -> Result<Source, Finding> {
    let beside = file.folder().join(name);
    match beside.to_str() {
        Some(path) if beside.is_file() || Path::new(name).is_absolute() => find(path),
        _ => find(name),
    }
}

/// Gives an error without a position the position of a value in the sweep's file.
fn relocated(error: Finding, text: &SweepText, path: &[&str]) -> Finding {
    if error.place.is_some() {
        return error;
    }
    Finding { help: error.help, ..text.error(path, error.text) }
}

/// Reads an axis; `before` has the axes above it.
fn axis(text: &SweepText, number: usize, before: &[Axis]) -> Result<Axis, Finding> {
    let path = ["axis", &number.to_string()];
    let mut keys: Vec<AxisKey> = Vec::new();
    for entry in text.entries(&path) {
        let at = entry.at.clone();
        let key = key(text, entry)?;
        let earlier = before.iter().flat_map(|axis| &axis.keys).chain(&keys).find(|k| k.name == key.name);
        let wrong = |message: String| text.at(at.clone(), message);
        if earlier.is_some() {
            return Err(wrong(format!("an axis above has the key `{}`, too", key.name)));
        }
        if let Some(first) = keys.first().filter(|first| first.values.len() != key.values.len()) {
            return Err(wrong(format!(
                "the keys of one axis need the same number of values; `{}` has {}, `{}` has {}",
                first.name,
                first.values.len(),
                key.name,
                key.values.len()
            ))
            .with_help("to combine all values, give each key an [[axis]] of its own"));
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
fn key(text: &SweepText, entry: Assignment) -> Result<AxisKey, Finding> {
    let Assignment { key: name, at, value, value_at, items } = entry;
    let Value::Array(values) = value else {
        let error = text.at(value_at, format!("the axis `{name}` needs a list of values"));
        return Err(error
            .with_help(format!("such as {name} = [{}]; a single value belongs in [set]", inline(&value))));
    };
    if values.is_empty() {
        return Err(text.at(value_at, format!("the axis `{name}` needs at least one value")));
    }
    if name == "seed" {
        let error = text.at(at, "`seed` cannot be an axis; every point runs with all seeds");
        return Err(error.with_help("write `seeds = \"1..5\"` or `seeds = [1, 2, 7]` at the top of the file"));
    }
    // `schems` is nearer to the key `scheme` of a scenario than to `schemes`, but an axis needs `schemes`.
    let own = name == SCHEMES || keys().any(|key| key == name);
    if !own && nearest(&name, [SCHEMES].into_iter().chain(keys())) == Some(SCHEMES) {
        return Err(text.at(at, format!("unknown key `{name}`; did you mean `{SCHEMES}`?")));
    }
    let mut changes = Vec::new();
    for (value, item) in values.into_iter().zip(items) {
        if name == SCHEMES && !value.is_str() {
            return Err(text.at(item, "expected the name of a scheme, such as \"themis\""));
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

/// The top-level keys of a scenario.
fn keys() -> impl Iterator<Item = &'static str> {
    scenario_schema()["properties"].as_object().into_iter().flat_map(|keys| keys.keys().map(String::as_str))
}

#[cfg(test)]
mod tests;
