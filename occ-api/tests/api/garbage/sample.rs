//! A body that says everything a schema lets one say, about what is there.

use occ_test_support::drivers::Ids;
use serde_json::{Map, Value};

/// Schemas, and what is there.
pub struct Sampler<'a> {
    pub document: &'a Value,
    pub named: &'a Ids,
}

impl Sampler<'_> {
    pub fn body(&self, schema: &Value) -> Value {
        self.value("", schema)
    }

    fn value(&self, name: &str, schema: &Value) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            let pointer = reference.strip_prefix('#').expect("of this document");
            return self.value(name, self.document.pointer(pointer).expect("a schema"));
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        let choices = ["oneOf", "anyOf", "enum"]
            .iter()
            .find_map(|word| schema[word].as_array());
        if let Some(choices) = choices {
            let says = |choice: &&Value| choice["type"] != "null";
            let first = choices.iter().find(says).expect("something to say");
            return if schema.get("enum").is_some() {
                first.clone()
            } else {
                self.value(name, first)
            };
        }
        let kinds = &schema["type"];
        let kind = kinds.as_str().or_else(|| kinds[0].as_str());
        match kind.unwrap_or_else(|| panic!("a schema without a type: {schema}")) {
            "object" => self.object(schema),
            "array" => Value::Array(vec![self.value(name, &schema["items"])]),
            "boolean" => true.into(),
            "integer" | "number" => 86_400.into(),
            "string" => self.text(name, schema).into(),
            other => panic!("a type without a sample: {other}"),
        }
    }

    fn object(&self, schema: &Value) -> Value {
        let fields = schema["properties"].as_object().into_iter().flatten();
        let mut object: Map<_, _> = fields
            .map(|(name, schema)| (name.clone(), self.value(name, schema)))
            .collect();
        let patterns = schema["patternProperties"].as_object().into_iter().flatten();
        let open = patterns
            .map(|(_, schema)| schema)
            .chain(schema.get("additionalProperties"));
        for schema in open.filter(|schema| schema.is_object()) {
            object.insert("api_key".to_owned(), self.value("", schema));
        }
        if schema["additionalProperties"] == true {
            object.insert("free".to_owned(), "words".into());
        }
        Value::Object(object)
    }

    fn text(&self, name: &str, schema: &Value) -> String {
        let pattern = schema["pattern"].as_str().unwrap_or_default();
        let prefix = pattern.strip_prefix('^').and_then(|rest| rest.split_once('_'));
        let id = prefix.and_then(|(prefix, _)| {
            let prefix = format!("{prefix}_");
            self.named.values().find(|id| id.starts_with(&prefix))
        });
        match (id, name) {
            (Some(id), _) => id.clone(),
            (None, "email") => "somebody@example.com".to_owned(),
            (None, "principalId") => self.named["person"].clone(),
            (None, "roleId") => self.named["role"].clone(),
            (None, _) if !pattern.is_empty() => "openai".to_owned(),
            // Long enough for a password, and plain enough for a name anywhere.
            (None, _) => "words-that-say-nothing".to_owned(),
        }
    }
}

/// Where the values of a body are that hold no others.
pub fn leaves(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    find(body, String::new(), &mut found);
    found
}

fn find(value: &Value, place: String, found: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                find(value, format!("{place}/{}", escaped(key)), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, value) in items.iter().enumerate() {
                find(value, format!("{place}/{index}"), found);
            }
        }
        // A body that is nothing but a value has no place within.
        _ if place.is_empty() => {}
        _ => found.push(place),
    }
}

/// The body's text, with these bytes in the place of a value.
pub fn with(body: &Value, place: &str, bytes: &[u8]) -> Vec<u8> {
    const MARK: &str = "here and nowhere else";
    let mut body = body.clone();
    *body.pointer_mut(place).expect("a place in it") = MARK.into();
    let text = body.to_string();
    let mark = format!("\"{MARK}\"");
    let (before, after) = text.split_once(&mark).expect("its mark");
    [before.as_bytes(), bytes, after.as_bytes()].concat()
}
