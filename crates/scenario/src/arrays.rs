//! Refuses arrays in place of tables. serde would read them as the values of the table, by position.

use crate::error::KeyError;
use serde_json::Value as Json;
use toml::{Table, Value};

/// The first array where `schema` allows tables and no arrays.
pub(crate) fn array_for_table(schema: &Json, value: &Value) -> Option<KeyError> {
    Search { root: schema, path: Vec::new() }.look(&[schema], value)
}

/// Whether a table has an array besides the list of workloads, which every scenario has. The search needs the schema, and
/// making the schema takes longer than all other steps for a small scenario.
pub(crate) fn has_arrays(table: &Table) -> bool {
    fn any(value: &Value) -> bool {
        match value {
            Value::Array(_) => true,
            Value::Table(table) => table.values().any(any),
            _ => false,
        }
    }
    table.iter().any(|(key, value)| match value {
        Value::Array(items) if key == "workload" => items.iter().any(any),
        value => any(value),
    })
}

struct Search<'a> {
    root: &'a Json,
    path: Vec<String>,
}

impl<'a> Search<'a> {
    /// Searches `value`; `schemas` has every schema that `value` may have.
    fn look(&mut self, schemas: &[&'a Json], value: &Value) -> Option<KeyError> {
        let mut kinds = Vec::new();
        schemas.iter().for_each(|schema| self.kinds(schema, &mut kinds));
        match value {
            Value::Array(items) => {
                // If a string or a number is allowed, too, the type has a visitor whose own message lists all forms.
                let typed =
                    |kind: &&Json| ["type", "enum", "const"].iter().any(|key| kind.get(key).is_some());
                let types: Vec<&Json> =
                    kinds.iter().copied().filter(typed).filter(|kind| !is(kind, "null")).collect();
                if !types.is_empty() && types.iter().all(|kind| is(kind, "object")) {
                    return Some(self.error(&types));
                }
                let at = |i: usize| kinds.iter().filter_map(move |kind| item(kind, i)).collect::<Vec<_>>();
                items.iter().enumerate().find_map(|(i, item)| self.step(&i.to_string(), &at(i), item))
            }
            Value::Table(table) => table.iter().find_map(|(key, inner)| {
                let at: Vec<&Json> = kinds.iter().filter_map(|kind| property(kind, key)).collect();
                self.step(key, &at, inner)
            }),
            _ => None,
        }
    }

    fn step(&mut self, part: &str, schemas: &[&'a Json], value: &Value) -> Option<KeyError> {
        self.path.push(part.to_owned());
        let error = self.look(schemas, value);
        self.path.pop();
        error
    }

    /// Adds `schema` and the schemas that it refers to, combines or chooses from.
    fn kinds(&self, schema: &'a Json, kinds: &mut Vec<&'a Json>) {
        let target = schema["$ref"].as_str().and_then(|to| self.root.pointer(to.trim_start_matches('#')));
        if let Some(target) = target {
            self.kinds(target, kinds);
        }
        let parts = ["anyOf", "oneOf", "allOf"].iter().filter_map(|all| schema[*all].as_array());
        parts.flatten().for_each(|part| self.kinds(part, kinds));
        kinds.push(schema);
    }

    fn error(&self, tables: &[&Json]) -> KeyError {
        let needed = match tables {
            [one] => one["required"].as_array(),
            _ => None,
        };
        let needed = needed.into_iter().flatten().filter_map(Json::as_str);
        let needed: Vec<String> = needed.map(|key| format!("`{key}`")).collect();
        let with = if needed.is_empty() { String::new() } else { format!(" with {}", needed.join(", ")) };
        let mut error = KeyError::new("", format!("expected a table{with}, found an array"));
        error.path.clone_from(&self.path);
        error
    }
}

fn is(schema: &Json, kind: &str) -> bool {
    match &schema["type"] {
        Json::Array(kinds) => kinds.iter().any(|one| one == kind),
        one => one == kind,
    }
}

/// The schema of an array's item.
fn item(schema: &Json, index: usize) -> Option<&Json> {
    match &schema["items"] {
        Json::Array(items) => items.get(index),
        items => Some(items).filter(|items| items.is_object()),
    }
}

/// The schema of the value of `key` in a table.
fn property<'a>(schema: &'a Json, key: &str) -> Option<&'a Json> {
    let other = || Some(&schema["additionalProperties"]).filter(|other| other.is_object());
    schema["properties"].get(key).or_else(other)
}
