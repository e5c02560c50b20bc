//! Settings must be closed: a misspelt setting is an error, never a default (spec/contracts 2.6).

use schemars::Schema;
use serde_json::{Map, Value};

/// Keywords whose values are schemas by name.
const NAMED: &[&str] = &[
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];
/// Keywords whose values are lists of schemas.
const LISTED: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords that say what a value is; a schema without any of them accepts everything.
const TELLING: &[&str] = &["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"];

/// Where the first open object of a settings schema is, as a JSON pointer into the schema.
///
/// An object is closed when it refuses what it does not name. A map, whose names its user chooses, is accepted when it says
/// what its values are.
pub(super) fn open_object(schema: &Schema) -> Option<String> {
    match schema.as_object() {
        Some(root) if names_object(root) || root.contains_key("oneOf") || root.contains_key("$ref") => {
            open_in(root, "")
        }
        _ => Some(String::new()),
    }
}

fn open_at(schema: &Value, at: &str) -> Option<String> {
    match schema {
        Value::Bool(false) => None,
        Value::Object(schema) if TELLING.iter().any(|keyword| schema.contains_key(*keyword)) => open_in(schema, at),
        _ => Some(at.to_owned()),
    }
}

fn open_in(schema: &Map<String, Value>, at: &str) -> Option<String> {
    if names_object(schema) && !is_closed(schema) {
        return Some(at.to_owned());
    }
    let below = |keyword: &str, name: &str, schema| open_at(schema, &format!("{at}/{keyword}/{}", escaped(name)));
    for keyword in NAMED {
        let Some(Value::Object(schemas)) = schema.get(*keyword) else {
            continue;
        };
        if let Some(open) = schemas.iter().find_map(|(name, schema)| below(keyword, name, schema)) {
            return Some(open);
        }
    }
    for keyword in LISTED {
        let Some(Value::Array(schemas)) = schema.get(*keyword) else {
            continue;
        };
        if let Some(open) = schemas
            .iter()
            .enumerate()
            .find_map(|(i, schema)| below(keyword, &i.to_string(), schema))
        {
            return Some(open);
        }
    }
    ["items", "additionalProperties"].into_iter().find_map(|keyword| {
        let schema = schema.get(keyword)?;
        open_at(schema, &format!("{at}/{keyword}"))
    })
}

fn names_object(schema: &Map<String, Value>) -> bool {
    let is_object = match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => false,
    };
    is_object || schema.contains_key("properties")
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    let refuses = |keyword| schema.get(keyword) == Some(&Value::Bool(false));
    let is_map =
        !schema.contains_key("properties") && matches!(schema.get("additionalProperties"), Some(Value::Object(_)));
    refuses("additionalProperties") || refuses("unevaluatedProperties") || is_map
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schemars::{JsonSchema, schema_for};
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Closed {
        name: String,
        port: Option<u16>,
        limits: Option<Limits>,
        labels: BTreeMap<String, String>,
        pools: Vec<Limits>,
        place: Place,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Limits {
        memory: u64,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "mode", rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    enum Place {
        InCluster,
        Kubeconfig { path: String },
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Outer {
        inner: Vec<Open>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Open {
        name: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Anything {
        extra: Value,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct AnythingMapped {
        extra: BTreeMap<String, Value>,
    }

    #[test]
    fn nested_structs_maps_lists_and_tagged_enums_can_be_closed() {
        assert_eq!(
            open_object(&schema_for!(Closed)),
            None,
            "{}",
            schema_for!(Closed).to_value()
        );
        assert_eq!(open_object(&schema_for!(Place)), None);
    }

    #[test]
    fn an_open_object_is_found_wherever_it_is() {
        assert_eq!(open_object(&schema_for!(Open)).as_deref(), Some(""));
        assert_eq!(open_object(&schema_for!(Outer)).as_deref(), Some("/$defs/Open"));
    }

    #[test]
    fn a_setting_that_accepts_anything_is_open() {
        assert_eq!(
            open_object(&schema_for!(Anything)).as_deref(),
            Some("/properties/extra")
        );
        assert_eq!(
            open_object(&schema_for!(AnythingMapped)).as_deref(),
            Some("/properties/extra")
        );
    }

    #[test]
    fn settings_that_are_no_object_are_refused() {
        assert_eq!(open_object(&schema_for!(String)).as_deref(), Some(""));
        assert_eq!(open_object(&schema_for!(Value)).as_deref(), Some(""));
    }
}
