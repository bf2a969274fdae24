//! JSON Schemas of the files that users write.

use crate::config::Scenario;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;
use std::sync::OnceLock;

/// The JSON Schema (draft 7, which TOML editors understand) of a scenario.
pub fn schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(schema_of::<Scenario>)
}

/// The JSON Schema (draft 7) of a type.
pub fn schema_of<T: JsonSchema>() -> Json {
    let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<T>();
    serde_json::to_value(schema).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_draft_7_and_knows_every_table() {
        let schema = schema();
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
        for key in ["topology", "switch-role", "nic", "scheme", "workload", "record"] {
            assert!(schema["properties"].get(key).is_some(), "{key}");
        }
    }
}
