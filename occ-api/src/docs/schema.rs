//! Schemas, in words.

use std::fmt::Write as _;

use serde_json::Value;

use super::{escaped, fields, items, prose, text};

/// A schema's section: what it is, and its fields.
pub(super) fn section(html: &mut String, name: &str, schema: &Value) {
    let name = escaped(name);
    let about = prose(text(schema, "description"));
    let _ = writeln!(html, "<section id=\"schema-{name}\">\n<h3>{name}</h3>\n<p>{about}</p>");
    let alternatives = ["oneOf", "anyOf"].into_iter().flat_map(|of| items(&schema[of]));
    let mut parts: Vec<&Value> = alternatives.collect();
    if parts.iter().all(|part| part.get("properties").is_none()) {
        if schema.get("properties").is_none() {
            let _ = writeln!(html, "<p>{}</p>", kind(schema));
        }
        parts.clear();
    }
    if schema.get("properties").is_some() {
        properties(html, schema);
    }
    for part in parts {
        let _ = writeln!(html, "<p>Or: {}</p>", prose(text(part, "description")));
        properties(html, part);
    }
    html.push_str("</section>\n");
}

fn properties(html: &mut String, schema: &Value) {
    html.push_str("<table>\n<tr><th>Field</th><th>Value</th><th></th></tr>\n");
    for (name, property) in fields(&schema["properties"]) {
        let required = items(&schema["required"]).iter().any(|required| required == name);
        let _ = writeln!(
            html,
            "<tr><td><code>{}</code>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(name),
            if required { " *" } else { "" },
            kind(property),
            prose(text(property, "description")),
        );
    }
    html.push_str("</table>\n");
}

/// What values it permits, in one line.
pub(super) fn kind(schema: &Value) -> String {
    if let Some(name) = text(schema, "$ref").rsplit_once('/').map(|(_, name)| escaped(name)) {
        return format!("<a href=\"#schema-{name}\">{name}</a>");
    }
    if let Some(only) = schema.get("const") {
        return format!("<code>{}</code>", escaped(&only.to_string()));
    }
    for of in ["oneOf", "anyOf", "allOf"] {
        let parts: Vec<_> = items(&schema[of]).iter().map(kind).collect();
        if !parts.is_empty() {
            return parts.join(if of == "allOf" { " and " } else { " or " });
        }
    }
    let values = items(&schema["enum"]);
    if !values.is_empty() {
        let values: Vec<_> = values
            .iter()
            .map(|value| format!("<code>{}</code>", escaped(&value.to_string())))
            .collect();
        return values.join(" or ");
    }
    let types = match &schema["type"] {
        Value::String(one) => escaped(one),
        Value::Array(several) => {
            let several: Vec<_> = several.iter().filter_map(Value::as_str).map(escaped).collect();
            several.join(" or ")
        }
        _ => "anything".to_owned(),
    };
    let mut words = match schema.get("items") {
        Some(items) => format!("{types} of {}", kind(items)),
        None => types,
    };
    for (field, says) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters, at least"),
        ("maxLength", "characters, at most"),
        ("minItems", "items, at least"),
        ("maxItems", "items, at most"),
    ] {
        if let Some(bound) = schema.get(field).filter(|bound| bound.is_number()) {
            let _ = write!(words, ", {says} {bound}");
        }
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty() {
        let _ = write!(words, ", <code>{}</code>", escaped(pattern));
    }
    words
}
