//! The page that shows the OpenAPI document to people: one static text, without scripts and without anything from elsewhere.

mod schema;

use std::{fmt::Write as _, sync::LazyLock};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use occ_core::digest;
use serde_json::{Map, Value};

const STYLE: &str = include_str!("style.css");

/// What a browser is allowed to do with the page: show it, with this very style.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(digest::bytes(STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

static PAGE: LazyLock<String> = LazyLock::new(|| page(&crate::openapi()));

/// The page of this program's document.
pub(crate) fn html() -> &'static str {
    &PAGE
}

/// Its content security policy.
pub(crate) fn policy() -> &'static str {
    &POLICY
}

/// A text as HTML shows it.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => safe.push(other),
        }
    }
    safe
}

/// A description, in which `code` is set as code.
fn prose(text: &str) -> String {
    let mut parts = text.split('`');
    let mut safe = escaped(parts.next().unwrap_or_default());
    let mut code = true;
    for part in parts {
        let (open, close) = if code { ("<code>", "</code>") } else { ("", "") };
        let _ = write!(safe, "{open}{}{close}", escaped(part));
        code = !code;
    }
    safe
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// What an operation is about: the first part of its path below a Namespace, or of all.
fn group(path: &str) -> &str {
    let mut parts = path
        .split('/')
        .filter(|part| !part.is_empty() && !part.starts_with('{'));
    match parts.next() {
        Some("namespaces") => parts.next().unwrap_or("namespaces"),
        Some(first) => first,
        None => "",
    }
}

/// An operation and where it is.
struct Operation<'d> {
    path: &'d str,
    method: &'d str,
    described: &'d Value,
}

fn page(document: &Value) -> String {
    let mut groups: Vec<(&str, Vec<Operation<'_>>)> = Vec::new();
    for (path, methods) in fields(&document["paths"]) {
        for (method, described) in fields(methods) {
            let own = Operation {
                path,
                method,
                described,
            };
            match groups.iter_mut().find(|(name, _)| *name == group(path)) {
                Some((_, operations)) => operations.push(own),
                None => groups.push((group(path), vec![own])),
            }
        }
    }
    let title = escaped(text(&document["info"], "title"));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title} HTTP API</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title} HTTP API <small>{}</small></h1>\n<p>{}</p>\n<p>A service key goes into the <code>x-api-key</code> \
         header. The same as data: <a href=\"openapi.json\">openapi.json</a>.</p>\n</header>\n<nav>\n",
        escaped(text(&document["info"], "version")),
        prose(text(&document["info"], "description")),
    );
    for (name, operations) in &groups {
        let _ = writeln!(html, "<h2>{}</h2>\n<ul>", escaped(name));
        for operation in operations {
            let id = escaped(text(operation.described, "operationId"));
            let _ = writeln!(html, "<li><a href=\"#{id}\">{id}</a></li>");
        }
        html.push_str("</ul>\n");
    }
    html.push_str("</nav>\n<main>\n");
    for operation in groups.iter().flat_map(|(_, operations)| operations) {
        describe(&mut html, document, operation);
    }
    html.push_str("<h2>Schemas</h2>\n");
    for (name, schema) in fields(&document["components"]["schemas"]) {
        schema::section(&mut html, name, schema);
    }
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

fn describe(html: &mut String, document: &Value, operation: &Operation<'_>) {
    let Operation {
        path,
        method,
        described: operation,
    } = *operation;
    let open = items(&operation["security"]).is_empty() && operation["security"].is_array();
    let _ = writeln!(
        html,
        "<section id=\"{}\">\n<h3>{} <code>{}</code></h3>\n<p>{}{}</p>",
        escaped(text(operation, "operationId")),
        method.to_ascii_uppercase(),
        escaped(path),
        prose(text(operation, "summary")),
        if open { " Needs no key." } else { "" },
    );
    let parameters = items(&operation["parameters"]);
    if !parameters.is_empty() {
        html.push_str("<table>\n<tr><th>Parameter</th><th>In</th><th>Value</th><th></th></tr>\n");
        for parameter in parameters {
            let _ = writeln!(
                html,
                "<tr><td><code>{}</code>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(text(parameter, "name")),
                if parameter["required"] == true { " *" } else { "" },
                escaped(text(parameter, "in")),
                schema::kind(&parameter["schema"]),
                prose(text(parameter, "description")),
            );
        }
        html.push_str("</table>\n");
    }
    if let Some(body) = operation.get("requestBody") {
        let schema = &body["content"]["application/json"]["schema"];
        let about = prose(text(body, "description"));
        let _ = writeln!(html, "<p>Body: {}. {about}</p>", schema::kind(schema));
    }
    html.push_str("<table>\n<tr><th>Status</th><th>Answer</th></tr>\n");
    for (status, response) in fields(&operation["responses"]) {
        let response = text(response, "$ref")
            .strip_prefix('#')
            .and_then(|pointer| document.pointer(pointer))
            .unwrap_or(response);
        let answer = match status.as_str() {
            "204" => "Nothing.".to_owned(),
            done if done.starts_with('2') => answer(response),
            _ => prose(text(response, "description")),
        };
        let _ = writeln!(html, "<tr><td>{}</td><td>{answer}</td></tr>", escaped(status));
    }
    html.push_str("</table>\n</section>\n");
}

/// What a success gives: the data inside the envelope, or a text of another kind.
fn answer(response: &Value) -> String {
    let Some((kind, content)) = fields(&response["content"]).next() else {
        return "Nothing.".to_owned();
    };
    let schema = &content["schema"];
    match schema.pointer("/properties/data").or_else(|| schema.get("x-data")) {
        Some(data) => format!("{} <small>{}</small>", schema::kind(data), escaped(kind)),
        None => format!("<small>{}</small>", escaped(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_document_says_is_shown_and_never_run() {
        let hostile = "<script>alert(1)</script>\"'&";
        let document = serde_json::json!({
            "info": { "title": "OCC", "version": hostile, "description": hostile },
            "paths": { "/a/{b}": { "get": {
                "operationId": "readA", "summary": "Reads `a<b`.", "security": [],
                "parameters": [{ "name": hostile, "in": "query", "schema": { "pattern": hostile }, "description": hostile }],
                "responses": { "200": { "content": { "application/json": { "schema":
                    { "properties": { "data": { "$ref": "#/components/schemas/A" } } } } } } },
            } } },
            "components": { "schemas": { "A": {
                "description": hostile, "properties": { "x": { "type": "string", "const": hostile } },
            } } },
        });
        let html = page(&document);
        assert!(!html.contains("<script"), "{html}");
        assert!(html.contains("&lt;script&gt;") && html.contains("<code>a&lt;b</code>"));
        assert!(html.contains("<a href=\"#schema-A\">A</a>") && html.contains("id=\"schema-A\""));
    }
}
