//! `--set KEY=VALUE`: dotted keys; arrays by index or by the `name` of their entries.

use crate::toml_text::inline;
use crate::workload::Workload;
use finding::{Finding, Place, code, suggestion};
use std::ops::Range;
use std::sync::Arc;
use toml::{Table, Value};

/// Keys whose table has exactly one entry: the name of a variant with its settings.
const VARIANTS: &[&[&str]] = &[
    &["topology"],
    &["scheme"],
    &["feedback"],
    &["nic", "transport"],
    &["nic", "congestion"],
    &["switch-role", "*", "scheme"],
    &["switch-role", "*", "feedback"],
    &["class", "*", "scheme"],
];

/// Position at which a user wrote a key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Name of the file, or `--set`.
    pub(crate) file: Arc<str>,
    /// Content of the file.
    pub(crate) text: Arc<str>,
    /// Byte range of the key.
    pub(crate) key: Range<usize>,
    /// Byte range of the value.
    pub(crate) value: Range<usize>,
    /// Start of messages about the value; for an axis of a sweep it names the axis and the value.
    pub(crate) label: String,
}

impl Origin {
    /// Puts a finding at the key or at the value.
    pub(crate) fn place(&self, at_key: bool, finding: Finding) -> Finding {
        let span = if at_key { &self.key } else { &self.value };
        let text = format!("{}{}", self.label, finding.text);
        Finding { text, ..finding }.placed(Place::new(&self.file, &self.text, span.clone()))
    }

    /// An error at the key or at the value.
    pub(crate) fn error(&self, at_key: bool, message: &str) -> Finding {
        self.place(at_key, code::OPTION.plain(message))
    }
}

/// A value to set in a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// Dotted key; entries of arrays by number or name.
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

impl Change {
    /// Reads the `KEY=VALUE` of a `--set`.
    pub(crate) fn parse(text: &str) -> Result<Change, Finding> {
        let Some((key, value)) = text.split_once('=') else {
            let message = "expected KEY=VALUE, such as seed=7";
            return Err(code::OPTION.inside("--set", text, 0..text.len(), message));
        };
        let origin = Origin {
            file: "--set".into(),
            text: text.into(),
            key: 0..key.len(),
            value: key.len() + 1..text.len(),
            label: String::new(),
        };
        Ok(Change { key: key.trim().to_owned(), value: parse(value.trim()), origin })
    }
}

/// The `KEY=VALUE` of a `--set` that sets `key` to `value`. A string stands without quotes, unless TOML would read it as
/// another kind of value.
pub fn setting(key: &str, value: &Value) -> String {
    let value = match value {
        Value::String(text) if parse(text.trim()).as_str() == Some(text) => text.clone(),
        Value::Table(table) if table.is_empty() => "{}".to_owned(),
        other => inline(other),
    };
    format!("{key}={value}")
}

/// A [`Change`] that a table contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppliedChange {
    pub(crate) origin: Origin,
    /// Parts of the key; names of entries are resolved to numbers.
    path: Vec<String>,
}

impl AppliedChange {
    /// A change at `path` that was made without [`AppliedChange::apply`].
    pub(crate) fn at(path: &[&str], origin: Origin) -> AppliedChange {
        AppliedChange { origin, path: path.iter().map(|&part| part.to_owned()).collect() }
    }

    /// Parts of the key.
    pub(crate) fn path(&self) -> &[String] {
        &self.path
    }

    /// Whether `later` replaces what this change sets: the same value, a table around it, or another variant in its place.
    pub(crate) fn is_replaced_by(&self, later: &AppliedChange) -> bool {
        let (own, later) = (&self.path, &later.path);
        let other_variant = |n: usize| is_variant(&own[..n]) && own[..n] == later[..n] && own[n] != later[n];
        own.starts_with(later) || (1..own.len().min(later.len())).any(other_variant)
    }

    /// The name of the variant that this change chooses or configures in the table at `path`; `None` if it concerns another part
    /// of the scenario.
    pub(crate) fn variant(&self, path: &[String]) -> Option<&str> {
        match self.path.strip_prefix(path)? {
            [name, ..] => Some(name),
            // The value is a name, as in `scheme=ecmp`, or a table that begins with one.
            [] => {
                let value = self.origin.text.get(self.origin.value.clone())?;
                let value = value.trim_start_matches(['{', '"', '\'', ' ']);
                value.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next()
            }
        }
    }

    /// The name of the feedback that this change chooses or configures, in all switches or in those of a role.
    pub(crate) fn feedback(&self) -> Option<&str> {
        let at = self.path.iter().position(|part| part == "feedback")?;
        let (path, _) = self.path.split_at(at + 1);
        if is_variant(path) { self.variant(path) } else { None }
    }

    /// Whether the value at `path` comes from this change.
    pub(crate) fn concerns(&self, path: &[String]) -> bool {
        path.starts_with(&self.path)
    }

    /// Whether this change made the table in which the value at `path` is a default, or a table inside it.
    pub(crate) fn is_inside(&self, path: &[String]) -> bool {
        let table = if path.len() > 1 { &path[..path.len() - 1] } else { path };
        !path.is_empty() && self.path.starts_with(table)
    }

    /// Puts a finding about the value at this path, or about its key.
    pub(crate) fn place(&self, finding: Finding) -> Finding {
        self.origin.place(finding.at_key && finding.key.len() <= self.path.len(), finding)
    }

    /// Makes a change in `table`.
    pub(crate) fn apply(change: &Change, table: &mut Table) -> Result<AppliedChange, Finding> {
        let wrong = |message: String| change.origin.error(true, &message);
        let parts = parts(&change.key).map_err(wrong)?;
        let value = change.value.clone();
        let mut path: Vec<String> = Vec::new();
        let mut at = Slot::Table(table);
        for (i, part) in parts.iter().enumerate() {
            let here = std::mem::replace(&mut at, Slot::Done);
            let child = match here {
                Slot::Table(table) => {
                    let Some(table) = settings(&mut path, part, table) else { break };
                    forget_other_variants(&path, part, table);
                    path.push(part.clone());
                    table.entry(part.clone()).or_insert_with(|| Value::Table(Table::new()))
                }
                Slot::Array(array) => {
                    let index = index(part, array).map_err(wrong)?;
                    path.push(index.to_string());
                    &mut array[index]
                }
                Slot::Done => break,
            };
            if i + 1 == parts.len() {
                *child = value;
                break;
            }
            at = match child {
                Value::Table(table) => Slot::Table(table),
                Value::Array(array) => Slot::Array(array),
                other => {
                    // A table replaces a plain value: `--set switch.pfc.alpha=1/4` over `pfc = "off"`.
                    *other = Value::Table(Table::new());
                    match other {
                        Value::Table(table) => Slot::Table(table),
                        _ => Slot::Done,
                    }
                }
            };
        }
        Ok(AppliedChange { origin: change.origin.clone(), path })
    }
}

enum Slot<'a> {
    Table(&'a mut Table),
    Array(&'a mut Vec<Value>),
    Done,
}

/// The table to which `part` belongs: in `workload.0.bytes`, the settings of the only kind that the workload has.
fn settings<'a>(path: &mut Vec<String>, part: &str, table: &'a mut Table) -> Option<&'a mut Table> {
    let entry = path.len() == 2 && path[0] == "workload";
    if !entry || Workload::has_key(part) {
        return Some(table);
    }
    let mut kinds = table.keys().filter(|key| Workload::KINDS.contains(&key.as_str()));
    let (Some(kind), None) = (kinds.next().cloned(), kinds.next()) else { return Some(table) };
    if !table[&kind].is_table() {
        return Some(table);
    }
    path.push(kind.clone());
    table.get_mut(&kind).and_then(Value::as_table_mut)
}

/// The parts of a dotted key; a part may be quoted as in TOML.
fn parts(key: &str) -> Result<Vec<String>, String> {
    let mut parts = Vec::new();
    let mut rest = key;
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("the key has no closing quote")?,
            None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
        };
        if part.is_empty() {
            return Err(format!("the key {key:?} has an empty part; expected KEY=VALUE, such as seed=7"));
        }
        parts.push(part.trim().to_owned());
        match after.strip_prefix('.') {
            Some(after) => rest = after,
            None if after.is_empty() => return Ok(parts),
            None => return Err("expected a dot after a quoted part of the key".into()),
        }
    }
}

/// The value as TOML, or as a string if it is not TOML.
fn parse(value: &str) -> Value {
    let line = format!("v = {value}");
    match toml::from_str::<Table>(&line)
        .ok()
        .and_then(|mut t| if t.len() == 1 { t.remove("v") } else { None })
    {
        Some(value) => value,
        None => Value::String(value.to_owned()),
    }
}

/// Number of the entry that `part` names, by its number or its `name`. The number after the last adds an entry.
fn index(part: &str, array: &mut Vec<Value>) -> Result<usize, String> {
    if let Ok(index) = part.parse::<usize>() {
        if index == array.len() {
            array.push(Value::Table(Table::new()));
        }
        return if index < array.len() {
            Ok(index)
        } else {
            Err(format!("expected an entry between 0 and {}, found {index}", array.len()))
        };
    }
    let names = |array: &[Value]| -> Vec<String> {
        let name =
            |v: &Value| v.as_table().and_then(|t| t.get("name")).and_then(Value::as_str).map(str::to_owned);
        array.iter().filter_map(name).collect()
    };
    let position =
        array.iter().position(|v| v.as_table().and_then(|t| t.get("name")?.as_str()) == Some(part));
    position.ok_or_else(|| {
        let names = names(array);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match names.is_empty() {
            true => format!("no entry is named `{part}`; use its number, from 0"),
            false => format!("no entry is named `{part}`; {}", suggestion(part, &names)),
        }
    })
}

fn is_variant(path: &[String]) -> bool {
    let same = |(pattern, part): (&&str, &String)| *pattern == "*" || *pattern == part;
    VARIANTS.iter().any(|v| v.len() == path.len() && v.iter().zip(path).all(same))
}

/// Removes other variants from a table in which `chosen` is set.
fn forget_other_variants(path: &[String], chosen: &str, table: &mut Table) {
    let workload = path.len() == 2 && path[0] == "workload" && !Workload::COMMON_KEYS.contains(&chosen);
    if workload {
        table.retain(|key, _| key == chosen || Workload::COMMON_KEYS.contains(&key));
    } else if is_variant(path) {
        table.retain(|key, _| key == chosen);
    }
}

/// Writes variants as tables: `scheme = "ecmp"` means `scheme = { ecmp = {} }`.
pub(crate) fn normalise(table: &mut Table) {
    fn walk(table: &mut Table, pattern: &[&str]) {
        let Some((&first, rest)) = pattern.split_first() else { return };
        let keys: Vec<String> =
            if first == "*" { table.keys().cloned().collect() } else { vec![first.to_owned()] };
        for key in keys {
            match table.get_mut(&key) {
                Some(Value::String(name)) if rest.is_empty() => {
                    let variant = Table::from_iter([(std::mem::take(name), Value::Table(Table::new()))]);
                    table.insert(key, Value::Table(variant));
                }
                Some(Value::Table(inner)) => walk(inner, rest),
                _ => {}
            }
        }
    }
    for pattern in VARIANTS {
        walk(table, pattern);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(base: &str, sets: &[&str]) -> Table {
        let mut table: Table = toml::from_str(base).unwrap();
        for s in sets {
            AppliedChange::apply(&Change::parse(s).unwrap(), &mut table).unwrap();
            normalise(&mut table);
        }
        table
    }

    #[test]
    fn values_are_toml_or_plain_strings() {
        let got = set("", &["seed=7", "switch.buffer=64MB", "stop.after=\"1ms\"", "a.b=[1, 2]", "c={x=1}"]);
        let want = "seed=7\nswitch.buffer=\"64MB\"\nstop.after=\"1ms\"\na.b=[1,2]\nc={x=1}";
        assert_eq!(got, toml::from_str::<Table>(want).unwrap());
    }

    #[test]
    fn a_setting_is_read_back_as_the_same_value() {
        let values: Table = toml::from_str(
            "a = \"64MB\"\nb = \"7\"\nc = 7\nd = 0.5\ne = {}\nf = { g = [\"1us\", true] }\nh = \" x\"\ni = \"\"\n\
             j = \"a\\nb = 1\"\nk = \"true\"\nl = \"x=\\\"y\"",
        )
        .unwrap();
        for (key, value) in &values {
            assert_eq!(set("", &[&setting(key, value)])[key], *value, "{}", setting(key, value));
        }
        assert_eq!(setting("switch.buffer", &values["a"]), "switch.buffer=64MB", "as people write it");
    }

    #[test]
    fn entries_of_arrays_have_numbers_and_names() {
        let base = "[[workload]]\nincast={bytes=\"1B\"}\n[[workload]]\nname=\"bg\"\nflows={}";
        let got = set(base, &["workload.0.bytes=2B", "workload.bg.start=1us"]);
        assert_eq!(got["workload"][0]["incast"]["bytes"].as_str(), Some("2B"));
        assert_eq!(got["workload"][1]["start"].as_str(), Some("1us"));
        let mut table: Table = toml::from_str(base).unwrap();
        let error =
            AppliedChange::apply(&Change::parse("workload.bgg.start=1us").unwrap(), &mut table).unwrap_err();
        assert_eq!(error.located(), "--set:1:1: no entry is named `bgg`; did you mean `bg`?");
    }

    #[test]
    fn a_variant_replaces_the_variant_before_it() {
        let base = "[scheme.themis]\nmode=\"sound\"\n[[workload]]\nname=\"x\"\nincast={}";
        for ecmp in ["scheme.ecmp={}", "scheme=ecmp", "scheme={ecmp={}}"] {
            assert_eq!(
                set(base, &[ecmp])["scheme"],
                Value::Table(toml::from_str("ecmp={}").unwrap()),
                "{ecmp}"
            );
        }
        assert_eq!(set(base, &["scheme.themis.watch=true"])["scheme"]["themis"].as_table().unwrap().len(), 2);
        let got = set(base, &["workload.x.flows.list=[]"]);
        assert!(got["workload"][0].get("incast").is_none() && got["workload"][0].get("name").is_some());
    }

    #[test]
    fn keys_without_a_value_or_with_empty_parts_are_refused() {
        for s in ["seed", "=7", "a..b=1", "\"a=1"] {
            let done = Change::parse(s).and_then(|change| AppliedChange::apply(&change, &mut Table::new()));
            assert!(done.is_err(), "{s}");
        }
    }
}
