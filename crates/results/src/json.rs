//! JSON files of results.

use crate::error::ResultsError;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Text of a JSON file, indented, with a line break at the end.
pub fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// A serialisable value as JSON.
pub fn value(of: &impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

/// Reads a JSON file.
///
/// # Errors
/// [`ResultsError::Unreadable`] if it cannot be read, is no JSON, or holds other values than `T`.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    let text =
        fs::read_to_string(path).map_err(|e| ResultsError::Unreadable(path.to_owned(), e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| ResultsError::Unreadable(path.to_owned(), e.to_string()))
}
