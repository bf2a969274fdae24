//! Keys and values as TOML on one line.

use toml::Value;

/// A key, in quotes where TOML needs them.
pub(crate) fn key(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if bare { key.to_owned() } else { Value::String(key.to_owned()).to_string() }
}

/// A value on one line; tables stand in braces.
pub(crate) fn inline(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let entries = table.iter().map(|(k, v)| format!("{} = {}", key(k), inline(v)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
