//! JSON Schemas of the files that users write.

use crate::config::Scenario;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;
use std::sync::{Mutex, PoisonError};

/// The JSON Schema (draft 7, which TOML editors understand) of a scenario, with the parts that the program has added.
pub fn schema() -> &'static Json {
    static SCHEMA: Mutex<Option<(u64, &'static Json)>> = Mutex::new(None);
    let mut known = SCHEMA.lock().unwrap_or_else(PoisonError::into_inner);
    let changes = rnic::own::changes();
    match *known {
        Some((then, schema)) if then == changes => schema,
        // An older one stays: names of it may be in use. A program adds few parts.
        _ => known.insert((changes, Box::leak(Box::new(schema_of::<Scenario>())))).1,
    }
}

/// The JSON Schema (draft 7) of a type.
pub fn schema_of<T: JsonSchema>() -> Json {
    let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<T>();
    serde_json::to_value(schema).unwrap_or_default()
}

/// The names that the key at `path` of a scenario may have, each with the first sentence of its description.
pub fn choices(path: &[&str]) -> Vec<(&'static str, String)> {
    let root = schema();
    let at = path.iter().try_fold(root, |at, key| inside(root, at, key));
    let Some(at) = at.map(|at| resolved(root, at)) else { return Vec::new() };
    let named = |variant: &'static Json| {
        let keys = variant["properties"].as_object().and_then(|keys| keys.keys().next().map(String::as_str));
        let name = keys.or(variant["const"].as_str())?;
        Some((name, sentence(&variant["description"])))
    };
    at["oneOf"].as_array().into_iter().flatten().filter_map(named).collect()
}

/// The keys of the table at `path` of a scenario, each with the first sentence of its description.
pub fn keys(path: &[&str]) -> Vec<(&'static str, String)> {
    let root = schema();
    let at = path.iter().try_fold(root, |at, key| inside(root, at, key));
    let table = at.and_then(|at| resolved(root, at)["properties"].as_object());
    let described = |(key, of): (&'static String, &'static Json)| {
        let own = &of["description"];
        let text = if own.is_string() { own } else { &resolved(root, of)["description"] };
        (key.as_str(), sentence(text))
    };
    table.into_iter().flatten().map(described).collect()
}

/// The schema of `key` inside a table's schema: a field, or the settings of a variant.
fn inside(root: &'static Json, schema: &'static Json, key: &str) -> Option<&'static Json> {
    let schema = resolved(root, schema);
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    schema["properties"].get(key).or_else(|| variants.into_iter().find_map(|v| v["properties"].get(key)))
}

/// Follows references, the items of arrays, and the alternative to null.
fn resolved(root: &'static Json, schema: &'static Json) -> &'static Json {
    let mut schema = schema;
    // The deepest chain in the schema of a scenario is shorter.
    for _ in 0..8 {
        let options = schema["anyOf"].as_array().into_iter().flatten();
        let next = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        schema = match next.and_then(|name| root.pointer(name.trim_start_matches('#'))) {
            Some(target) => target,
            None if schema["items"].is_object() => &schema["items"],
            None => match options.into_iter().find(|option| option["type"] != "null") {
                Some(option) => option,
                None => return schema,
            },
        };
    }
    schema
}

/// The first sentence of a description, on one line.
fn sentence(description: &Json) -> String {
    let text = description.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_from_the_lists_of_parts_with_a_sentence_each() {
        let names = |path: &[&str]| choices(path).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&["scheme"]), schemes::SchemeConfig::names());
        assert_eq!(names(&["feedback"]), schemes::FeedbackConfig::NAMES);
        assert!(names(&["nic", "transport"]).contains(&"nic-sr"));
        assert_eq!(names(&["topology", "rails", "preset"]).len(), 5);
        assert!(names(&["workload", "collective", "kind"]).contains(&"all-gather"));
        assert!(keys(&["workload"]).iter().any(|(key, _)| *key == "incast"));
        for path in [&["scheme"][..], &["nic", "congestion"], &["topology"], &["server", "preset"]] {
            for (name, about) in choices(path) {
                assert!(about.ends_with('.') && !about.contains(". "), "{name}: {about}");
            }
        }
        assert!(choices(&["nowhere"]).is_empty() && choices(&["seed"]).is_empty());
    }

    #[test]
    fn the_schema_is_draft_7_and_knows_every_table() {
        let schema = schema();
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
        for key in ["topology", "switch-role", "nic", "scheme", "feedback", "workload", "record"] {
            assert!(schema["properties"].get(key).is_some(), "{key}");
        }
    }
}
