//! What Python asks for: a scenario or a sweep by name or as a dict, and settings.

use crate::errors;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use scenario::Source;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use toml::{Table, Value};

/// What messages call the text of a scenario that came as a dict.
const DICT: &str = "<dict>";

/// A scenario or a sweep: a path or a name, or a dict as JSON.
pub(crate) enum Asked {
    Named(String),
    Dict(Source),
}

impl Asked {
    /// Reads it; `kind` names a dict that has no name.
    pub(crate) fn new(text: String, is_dict: bool, kind: &str) -> PyResult<Self> {
        if !is_dict {
            return Ok(Asked::Named(text));
        }
        let table: Table = serde_json::from_str(&text)
            .map_err(|e| PyValueError::new_err(format!("the {kind} has a value that TOML has no word for: {e}")))?;
        let text = toml::to_string(&table)
            .map_err(|e| PyValueError::new_err(format!("the {kind} cannot be written as TOML: {e}")))?;
        Ok(Asked::Dict(Source { name: kind.to_owned(), ..Source::new(DICT, text) }))
    }

    /// The scenario's text.
    pub(crate) fn scenario(&self) -> PyResult<Source> {
        match self {
            Asked::Named(name) => scenario::find(name).map_err(errors::scenario),
            Asked::Dict(source) => Ok(source.clone()),
        }
    }

    /// The words of the command that asks the same; none for a dict, which no command can name.
    pub(crate) fn command(&self, command: &str, sets: &[String]) -> Vec<String> {
        let Asked::Named(name) = self else { return Vec::new() };
        let mut words = vec!["ropewalk".to_owned(), command.to_owned(), name.clone()];
        words.extend(sets.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
        words
    }
}

/// The `KEY=VALUE` texts of settings that came as a JSON object.
pub(crate) fn sets(json: &str) -> PyResult<Vec<String>> {
    let all: serde_json::Map<String, Json> = serde_json::from_str(json).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let set = |(name, value): (String, Json)| {
        let value: Value = serde_json::from_value(value)
            .map_err(|e| PyValueError::new_err(format!("{name}: TOML has no word for this value: {e}")))?;
        Ok(scenario::setting(&key(&name), &value))
    };
    all.into_iter().map(set).collect()
}

/// A dotted key as it is; of a Python name, `__` stands for a dot and `_` for a hyphen where the schema has one.
fn key(name: &str) -> String {
    if name.contains('.') {
        return name.to_owned();
    }
    let part = |part: &str| {
        let hyphened = part.replace('_', "-");
        if hyphenated().contains(&hyphened) { hyphened } else { part.to_owned() }
    };
    name.split("__").map(part).collect::<Vec<_>>().join(".")
}

/// All keys with a hyphen that a scenario can have.
fn hyphenated() -> &'static BTreeSet<String> {
    static KEYS: OnceLock<BTreeSet<String>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let mut keys = BTreeSet::new();
        let mut left = vec![scenario::schema()];
        while let Some(json) = left.pop() {
            match json {
                Json::Object(object) => {
                    if let Some(Json::Object(properties)) = object.get("properties") {
                        keys.extend(properties.keys().filter(|key| key.contains('-')).cloned());
                    }
                    left.extend(object.into_iter().map(|(_, value)| value));
                }
                Json::Array(array) => left.extend(array),
                _ => {}
            }
        }
        keys
    })
}
