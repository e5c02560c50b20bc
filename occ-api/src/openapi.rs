//! The OpenAPI 3.1 document, made of the operations and of the types' own schemas (docs/adr/0010).

use std::collections::BTreeMap;

use occ_core::{admission::Detail, reason::ApiCode};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    catalogue::OPERATIONS,
    operation::{Callers, Gives, Operation},
    reject::status,
};

const REQUEST_ID: &str = "^req_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$";

/// The document.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_ascii_lowercase()] = described(operation, &mut generator);
    }
    let detail = generator.subschema_for::<Detail>();
    let code = generator.subschema_for::<ApiCode>();
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Meta".to_owned(), meta());
    schemas.insert(
        "Error".to_owned(),
        json!({
            "type": "object",
            "properties": {
                "error": {
                    "type": "object",
                    "properties": {
                        "code": code,
                        "message": { "type": "string", "minLength": 1, "maxLength": 256 },
                        "details": { "type": "array", "items": detail, "minItems": 1, "maxItems": 32 },
                    },
                    "required": ["code", "message"],
                    "additionalProperties": false,
                },
                "meta": { "$ref": "#/components/schemas/Meta" },
            },
            "required": ["error", "meta"],
            "additionalProperties": false,
        }),
    );
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "OCC",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The control plane for AI agents. Every response has the same envelope; codes are explained in docs/reasons.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": refused(),
            "securitySchemes": {
                "key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "session": { "type": "apiKey", "in": "cookie", "name": "occ_session" },
                "agent": { "type": "http", "scheme": "bearer", "bearerFormat": "occ_agent" },
                "csrf": { "type": "apiKey", "in": "header", "name": "x-csrf-token" },
            },
        },
        "security": [{ "key": [] }, { "session": [] }, { "agent": [] }],
    });
    // The same text, also where some crate of the program lets `serde_json` keep the order of insertion.
    document.sort_all_objects();
    document
}

fn meta() -> Value {
    json!({
        "type": "object",
        "properties": {
            "requestId": { "type": "string", "pattern": REQUEST_ID },
            "nextCursor": { "type": "string" },
        },
        "required": ["requestId"],
        "additionalProperties": false,
    })
}

fn described(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.about,
        "parameters": parameters(operation),
        "responses": responses(operation, generator),
    });
    if let Some(body) = &operation.body {
        described["requestBody"] = json!({
            "required": true,
            "description": format!("At most {} KiB.", body.limit / 1024),
            "content": { "application/json": { "schema": (body.schema)(generator) } },
        });
    }
    let session = match operation.method {
        "GET" => json!({ "session": [] }),
        // Whoever writes shows that it is the page's own doing.
        _ => json!({ "session": [], "csrf": [] }),
    };
    match operation.callers {
        Callers::Anyone => described["security"] = json!([]),
        Callers::Session => described["security"] = json!([session]),
        // As the document says for all.
        Callers::Recognised if operation.method == "GET" => {}
        Callers::Recognised => described["security"] = json!([{ "key": [] }, session, { "agent": [] }]),
    }
    described
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let named = operation
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<_> = named
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": path_schema(name) }))
        .collect();
    for parameter in operation.query {
        let schema = match parameter.pattern {
            Some(pattern) => json!({ "type": "string", "pattern": pattern }),
            None => json!({ "type": "integer", "minimum": 1, "maximum": 1000 }),
        };
        parameters.push(json!({
            "name": parameter.name, "in": "query", "required": false, "description": parameter.about, "schema": schema,
        }));
    }
    if operation.once {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "Names the request: repeated with the same key within a day, it is done once and its first result is given.",
            "schema": { "type": "string", "pattern": "^[A-Za-z0-9._~:@/+=-]{1,255}$" },
        }));
    }
    if operation.tagged && operation.method != "GET" {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "required": false,
            "description": "Do it only on the state with this `ETag`.",
            "schema": { "type": "string", "pattern": "^(\\*|\"[A-Za-z0-9]{1,64}\")$" },
        }));
    }
    parameters
}

fn path_schema(name: &str) -> Value {
    let prefix = match name {
        "namespace" => "ns_",
        "configuration" => "cfg_",
        "secret" => "sec_",
        "account" => "sa_",
        "source" => "cs_",
        "preset" => "pre_",
        "agent" => "agt_",
        "revision" => "rev_",
        "key" => "key_",
        "operation" => "",
        "name" => return json!({ "type": "string", "enum": ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md"] }),
        _ => return json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,200}$" }),
    };
    let uuid = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
    json!({ "type": "string", "pattern": format!("^{prefix}{uuid}$") })
}

fn envelope(data: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "data": data, "meta": { "$ref": "#/components/schemas/Meta" } },
        "required": ["data", "meta"],
        "additionalProperties": false,
    })
}

fn responses(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let json = |schema: Value| json!({ "application/json": { "schema": schema } });
    let content = match &operation.gives {
        Gives::One(schema) => Some(json(envelope(&json!(schema(generator))))),
        Gives::List(schema) | Gives::Page(schema) => {
            let items = json!({ "type": "array", "items": schema(generator) });
            Some(json(envelope(&items)))
        }
        Gives::Events(schema) => {
            // Registers what the events carry.
            let data = json!(schema(generator));
            Some(json!({ "text/event-stream": {
                "schema": { "type": "string", "description": "Each event's data is a deployment.", "x-data": data },
            } }))
        }
        Gives::Document => Some(json(json!({ "type": "object" }))),
        Gives::Html => Some(json!({ "text/html": { "schema": { "type": "string" } } })),
        Gives::Nothing | Gives::Redirect => None,
    };
    let mut done = json!({ "description": "Done." });
    if let Some(content) = content {
        done["content"] = content;
    }
    if operation.tagged {
        done["headers"] = json!({ "ETag": { "schema": { "type": "string" } } });
    }
    if matches!(operation.gives, Gives::Redirect) {
        done["description"] = json!("Go there.");
        done["headers"] = json!({ "Location": { "schema": { "type": "string" } } });
    }
    let mut all = Map::new();
    all.insert(operation.status.to_string(), done);
    for status in operation.refusals() {
        let refusal = json!({ "$ref": format!("#/components/responses/Refused{status}") });
        all.insert(status.to_string(), refusal);
    }
    Value::Object(all)
}

/// The refusals of each status, with the codes that have it.
fn refused() -> Map<String, Value> {
    let mut codes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in ApiCode::ALL {
        codes.entry(status(*code).as_u16()).or_default().push(code.code());
    }
    let response = |(status, codes): (u16, Vec<&str>)| {
        let narrowed = json!({ "properties": { "error": { "properties": { "code": { "enum": codes } } } } });
        let schema = json!({ "allOf": [{ "$ref": "#/components/schemas/Error" }, narrowed] });
        let mut refusal = json!({
            "description": format!("Refused: {}.", codes.join(", ")),
            "content": { "application/json": { "schema": schema } },
        });
        if status == 429 {
            let seconds = json!({ "type": "integer", "minimum": 1 });
            refusal["headers"] = json!({ "Retry-After": { "description": "Seconds to wait.", "schema": seconds } });
        }
        (format!("Refused{status}"), refusal)
    };
    codes.into_iter().map(response).collect()
}
