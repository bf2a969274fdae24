//! Arrays where only a table can be: serde would read them as the table's values by their position.

use crate::error::Fault;
use serde_json::Value as Json;
use toml::{Table, Value};

/// The first array that stands where `schema` knows tables and no arrays.
pub(crate) fn array_for_table(schema: &Json, value: &Value) -> Option<Fault> {
    Shape { root: schema, path: Vec::new() }.look(&[schema], value)
}

/// Whether there is an array to look at, beside the list of workloads that every scenario has. (The schema takes longer to
/// make than all else does for a small scenario: only who needs it makes it.)
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

struct Shape<'a> {
    root: &'a Json,
    path: Vec<String>,
}

impl<'a> Shape<'a> {
    /// `schemas` are all that may hold for `value`.
    fn look(&mut self, schemas: &[&'a Json], value: &Value) -> Option<Fault> {
        let mut kinds = Vec::new();
        schemas.iter().for_each(|schema| self.kinds(schema, &mut kinds));
        match value {
            Value::Array(items) => {
                // Where a text or a number would do as well, a reader of its own says all that it takes.
                let says = |kind: &&Json| ["type", "enum", "const"].iter().any(|key| kind.get(key).is_some());
                let said: Vec<&Json> =
                    kinds.iter().copied().filter(says).filter(|kind| !is(kind, "null")).collect();
                if !said.is_empty() && said.iter().all(|kind| is(kind, "object")) {
                    return Some(self.fault(&said));
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

    fn step(&mut self, part: &str, schemas: &[&'a Json], value: &Value) -> Option<Fault> {
        self.path.push(part.to_owned());
        let fault = self.look(schemas, value);
        self.path.pop();
        fault
    }

    /// What `schema` comes to: references followed, and all that it is one of or made of.
    fn kinds(&self, schema: &'a Json, kinds: &mut Vec<&'a Json>) {
        let target = schema["$ref"].as_str().and_then(|to| self.root.pointer(to.trim_start_matches('#')));
        if let Some(target) = target {
            self.kinds(target, kinds);
        }
        let parts = ["anyOf", "oneOf", "allOf"].iter().filter_map(|all| schema[*all].as_array());
        parts.flatten().for_each(|part| self.kinds(part, kinds));
        kinds.push(schema);
    }

    fn fault(&self, tables: &[&Json]) -> Fault {
        let needed = match tables {
            [one] => one["required"].as_array(),
            _ => None,
        };
        let needed = needed.into_iter().flatten().filter_map(Json::as_str);
        let needed: Vec<String> = needed.map(|key| format!("`{key}`")).collect();
        let with = if needed.is_empty() { String::new() } else { format!(" with {}", needed.join(", ")) };
        let mut fault = Fault::new("", format!("expected a table{with}, found an array"));
        fault.path.clone_from(&self.path);
        fault
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

/// The schema of what a table has under `key`.
fn property<'a>(schema: &'a Json, key: &str) -> Option<&'a Json> {
    let other = || Some(&schema["additionalProperties"]).filter(|other| other.is_object());
    schema["properties"].get(key).or_else(other)
}
