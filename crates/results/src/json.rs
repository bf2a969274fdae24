//! JSON files of results.

use crate::error::ResultsError;
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

/// Reads a JSON file of results.
///
/// # Errors
/// If the file cannot be read, or is no complete JSON.
pub(crate) fn read_value(path: &Path) -> Result<Value, ResultsError> {
    let unreadable = |e: std::io::Error| ResultsError::Unreadable(path.to_owned(), e.to_string());
    let text = fs::read(path).map_err(unreadable)?;
    serde_json::from_slice(&text).map_err(|e| {
        let why = if e.is_eof() { "is cut short" } else { "was edited or damaged" };
        ResultsError::unfit(path, format!("{why}: expected JSON, found: {e}"))
    })
}
