//! Arguments from Python: a scenario or a sweep, by name or as a dict, and settings.

use crate::errors;
use lab::fast::Leave;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use scenario::sweep::Sweep;
use scenario::{Resolved, Source};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use toml::{Table, Value};

/// Name of a scenario that came as a dict, for messages.
const DICT: &str = "<dict>";
/// Name of a sweep that came as a dict, for messages.
const SWEEP: &str = "<sweep>";

/// A scenario: a path or a name, or a dict as JSON.
pub(crate) enum Asked {
    Named(String),
    Dict(Source),
}

/// Converts a dict to TOML.
fn written(file: &str, kind: &str, table: &Table) -> PyResult<Source> {
    let text = toml::to_string(table)
        .map_err(|e| PyValueError::new_err(format!("the {kind} cannot be written as TOML: {e}")))?;
    Ok(Source { name: kind.to_owned(), ..Source::new(file, text) })
}

fn table(json: &str, kind: &str) -> PyResult<Table> {
    serde_json::from_str(json)
        .map_err(|e| PyValueError::new_err(format!("the {kind} has a value that TOML cannot express: {e}")))
}

/// Reads a sweep: a path, a name, or a dict. The scenario of a dict may also be a dict.
pub(crate) fn sweep(text: &str, is_dict: bool, sets: &[String]) -> PyResult<Sweep> {
    if !is_dict {
        return scenario::sweep::load(text, sets).map_err(errors::scenario);
    }
    let mut table = table(text, "sweep")?;
    let given = match table.get("scenario") {
        Some(Value::Table(scenario)) => Some(written(DICT, "scenario", scenario)?),
        _ => None,
    };
    if given.is_some() {
        table.insert("scenario".into(), DICT.into());
    }
    Sweep::of(&written(SWEEP, "sweep", &table)?, given, sets).map_err(errors::scenario)
}

impl Asked {
    /// Reads the argument.
    pub(crate) fn new(text: String, is_dict: bool) -> PyResult<Self> {
        match is_dict {
            false => Ok(Asked::Named(text)),
            true => written(DICT, "scenario", &table(&text, "scenario")?).map(Asked::Dict),
        }
    }

    /// The source of the scenario.
    pub(crate) fn scenario(&self) -> PyResult<Source> {
        match self {
            Asked::Named(name) => scenario::find(name).map_err(errors::scenario),
            Asked::Dict(source) => Ok(source.clone()),
        }
    }

    /// The words of the equivalent command; empty for a dict, which a command cannot name.
    pub(crate) fn command(&self, command: &str, sets: &[String]) -> Vec<String> {
        let Asked::Named(name) = self else { return Vec::new() };
        let mut words = vec!["ropewalk".to_owned(), command.to_owned(), name.clone()];
        words.extend(sets.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
        words
    }
}

/// True if classes of Python may take part in a run of this scenario.
pub(crate) fn has_classes(source: &Source, sets: &[String]) -> bool {
    Resolved::of(source, sets).map_or(true, |resolved| resolved.may_change())
}

/// The `KEY=VALUE` texts of settings that came as a JSON object.
pub(crate) fn sets(json: &str) -> PyResult<Vec<String>> {
    let all: serde_json::Map<String, Json> =
        serde_json::from_str(json).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let set = |(name, value): (String, Json)| {
        let value: Value = serde_json::from_value(value)
            .map_err(|e| PyValueError::new_err(format!("{name}: TOML cannot express this value: {e}")))?;
        Ok(scenario::setting(&key(&name), &value))
    };
    all.into_iter().map(set).collect()
}

/// The key of a setting. A dotted key stays as it is. In a Python name, `__` stands for a dot, and `_` for a hyphen
/// where the schema has one.
fn key(name: &str) -> String {
    if name.contains('.') {
        return name.to_owned();
    }
    let known = hyphenated();
    let part = |part: &str| {
        let hyphened = part.replace('_', "-");
        if known.contains(&hyphened) { hyphened } else { part.to_owned() }
    };
    name.split("__").map(part).collect::<Vec<_>>().join(".")
}

/// All keys with a hyphen that a scenario can have.
fn hyphenated() -> Arc<BTreeSet<String>> {
    static KEYS: Mutex<Option<(u64, Arc<BTreeSet<String>>)>> = Mutex::new(None);
    let mut known = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    let changes = rnic::own::changes();
    if let Some((then, keys)) = &*known
        && *then == changes
    {
        return keys.clone();
    }
    let keys = Arc::new({
        let mut keys = BTreeSet::new();
        let mut left = vec![scenario::schema()];
        while let Some(json) = left.pop() {
            match json {
                Json::Object(object) => {
                    if let Some(Json::Object(properties)) = object.get("properties") {
                        keys.extend(properties.keys().filter(|key| key.contains('-')).cloned());
                    }
                    left.extend(object.values());
                }
                Json::Array(array) => left.extend(array),
                _ => {}
            }
        }
        keys
    });
    *known = Some((changes, keys.clone()));
    keys
}

/// How much a fast run may leave out: the tolerance and the memo.
pub(crate) fn leave(fast: Option<(f64, Option<PathBuf>)>) -> Option<Leave> {
    fast.and_then(|(tolerance, memo)| Leave::asked(Some(tolerance), memo.as_deref()))
}
