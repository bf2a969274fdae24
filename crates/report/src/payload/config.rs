//! The configuration with the meaning of each key, and the differences between runs.

use super::{Group, text};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Most keys in the table of differences. Our choice.
const DIFFERENCES: usize = 100;

/// Sections of keys that come first in the table of differences, because they matter most.
const FIRST: [&str; 6] = ["topology", "workload", "failure", "scheme", "feedback", "nic"];

/// The configuration of the first run, and the differences of the others.
#[derive(Debug, Default, Serialize)]
pub(super) struct Config {
    /// Configuration of the first run, with every key explained.
    annotated: String,
    /// Keys with different values, and their value in each group (null if a group does not have the key).
    differences: Vec<(String, Vec<Option<String>>)>,
    /// Number of differing keys that are not shown.
    more: usize,
}

/// The configuration of these groups.
pub(super) fn of(groups: &[Group<'_>]) -> Config {
    let configs: Vec<&str> =
        groups.iter().filter_map(|g| Some(text(&g.runs.first()?.manifest, "/config"))).collect();
    let Some(first) = configs.first() else { return Config::default() };
    let flat: Vec<BTreeMap<String, String>> = configs.iter().map(|config| flat(config)).collect();
    let values = |key: &String| flat.iter().map(|config| config.get(key).cloned()).collect();
    let mut differences: Vec<(String, Vec<Option<String>>)> =
        differing(&flat).into_iter().map(|key| (key.clone(), values(key))).collect();
    let place = |key: &str| {
        FIRST.iter().position(|first| key.split('.').next() == Some(*first)).unwrap_or(FIRST.len())
    };
    differences.sort_by_key(|(key, _)| place(key));
    let more = differences.len().saturating_sub(DIFFERENCES);
    differences.truncate(DIFFERENCES);
    // A configuration of another version, which this one cannot explain, is shown without explanations.
    let annotated = scenario::explained(first).unwrap_or_else(|| (*first).to_owned());
    Config { annotated, differences, more }
}

/// Keys whose values are not the same in all configurations.
pub(super) fn differing(all: &[BTreeMap<String, String>]) -> Vec<&String> {
    let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let first = |key: &String| all.first().and_then(|config| config.get(key));
    keys.into_iter().filter(|key| all.iter().any(|config| config.get(*key) != first(key))).collect()
}

/// Dotted keys and their values.
pub(super) fn flat(config: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    if let Ok(table) = config.parse::<Table>() {
        spread(String::new(), &Value::Table(table), &mut all);
    }
    all
}

fn spread(path: String, value: &Value, all: &mut BTreeMap<String, String>) {
    let under = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Table(table) if table.is_empty() => drop(all.insert(path, "{}".into())),
        Value::Table(table) => table.iter().for_each(|(key, value)| spread(under(key), value, all)),
        Value::Array(array) if array.iter().all(Value::is_table) && !array.is_empty() => {
            let name = |i: usize, v: &Value| {
                v.get("name").and_then(Value::as_str).map_or_else(|| i.to_string(), str::to_owned)
            };
            array.iter().enumerate().for_each(|(i, v)| spread(under(&name(i, v)), v, all));
        }
        Value::String(text) => drop(all.insert(path, text.clone())),
        value => drop(all.insert(path, value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_dotted_and_list_entries_go_by_name() {
        let all = flat("seed = 1\n[scheme.ecmp]\n[[workload]]\nname = \"a\"\nbytes = \"1MB\"\n");
        let of = |key: &str| all.get(key).map(String::as_str);
        assert_eq!(of("seed"), Some("1"));
        assert_eq!(of("scheme.ecmp"), Some("{}"));
        assert_eq!(of("workload.a.bytes"), Some("1MB"));
    }
}
