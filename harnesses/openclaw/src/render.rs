//! The files of a version: the gateway's document with what the platform sets, and the reduced one of the model check.

use occ_core::{
    driver::{DocumentProblem, Listen},
    resource::Document,
};
use serde_json::{Map, Value, json};

use crate::{LogLevel, document::Place, gateway::PASSWORD_VARIABLE, model::ModelRef, resolve::OPENCLAW};

/// Names the workspace; OpenClaw fills `${NAME}` in any text of its document, so that no path is written into a file.
pub const WORKSPACE_VARIABLE: &str = "OPENCLAW_WORKSPACE_DIR";
/// Names OpenClaw's own log file.
pub const LOG_FILE_VARIABLE: &str = "OCC_OPENCLAW_LOG_FILE";

/// Largest log file of OpenClaw itself, in bytes. It keeps five older ones; the platform's log is the component's output.
const LOG_FILE_MAX_BYTES: u64 = 5 * 1024 * 1024;

/// The object under `key`, made when there is none.
fn object<'a>(parent: &'a mut Document, key: &str) -> &'a mut Document {
    let slot = parent.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().expect("made an object just now")
}

fn filled_from(variable: &str) -> Value {
    Value::String(format!("${{{variable}}}"))
}

/// The version's document as the gateway reads it.
pub fn gateway_document(document: &Document, model: ModelRef<'_>, listen: Listen, level: LogLevel) -> String {
    let mut document = document.clone();
    set_gateway(object(&mut document, "gateway"), listen);
    set_agents(object(&mut document, "agents"), model);
    set_logging(&mut document, level);
    render(document)
}

fn set_gateway(gateway: &mut Document, listen: Listen) {
    gateway.insert("mode".to_owned(), json!("local"));
    let bind = match listen {
        Listen::Loopback => "loopback",
        Listen::AllAddresses => "lan",
    };
    gateway.insert("bind".to_owned(), json!(bind));
    gateway.remove("customBindHost");
    // The Compute chooses the port; it is on the command line.
    gateway.remove("port");
    let auth = object(gateway, "auth");
    if !auth.contains_key("mode") {
        auth.insert("mode".to_owned(), json!("password"));
    }
    if auth.get("mode") == Some(&json!("password")) && !auth.contains_key("password") {
        let generated = json!({ "source": "env", "provider": "default", "id": PASSWORD_VARIABLE });
        auth.insert("password".to_owned(), generated);
    }
}

fn set_agents(agents: &mut Document, model: ModelRef<'_>) {
    agents.remove("list");
    let defaults = object(agents, "defaults");
    defaults.insert("workspace".to_owned(), filled_from(WORKSPACE_VARIABLE));
    // The runtime where this version of OpenClaw reads it, wherever the document said it.
    defaults.remove("agentRuntime");
    let chosen = object(object(defaults, "models"), model.text);
    chosen.insert("agentRuntime".to_owned(), json!({ "id": OPENCLAW }));
    let Some(Value::Object(entries)) = agents.get_mut("entries") else {
        return;
    };
    let several = entries.len() > 1;
    for (id, entry) in entries {
        let Some(entry) = entry.as_object_mut() else { continue };
        entry.remove("agentRuntime");
        entry.remove("workspace");
        entry.remove("agentDir");
        // Of several agents none would have the shared directory itself.
        if several && id == "main" {
            entry.insert("workspace".to_owned(), filled_from(WORKSPACE_VARIABLE));
        }
    }
}

/// The logging stamp (spec/contracts 5.13): one level, JSON lines on the console, no export.
fn set_logging(document: &mut Document, level: LogLevel) {
    let logging = object(document, "logging");
    logging.remove("redactSensitive");
    logging.insert("level".to_owned(), json!(level.as_str()));
    logging.insert("consoleLevel".to_owned(), json!(level.as_str()));
    logging.insert("consoleStyle".to_owned(), json!("json"));
    logging.insert("file".to_owned(), filled_from(LOG_FILE_VARIABLE));
    logging.insert("maxFileBytes".to_owned(), json!(LOG_FILE_MAX_BYTES));
    if let Some(Value::Object(diagnostics)) = document.get_mut("diagnostics")
        && diagnostics.contains_key("otel")
    {
        object(diagnostics, "otel").insert("logs".to_owned(), json!(false));
    }
}

/// The provider's row, as the document has it.
pub fn provider_row<'a>(document: &'a Document, provider: &str) -> Result<Option<&'a Document>, DocumentProblem> {
    Place::root(document).path(&["models", "providers", provider])?.object()
}

/// What a check of the model needs: the model, and its provider's row.
pub fn probe_document(document: &Document, model: ModelRef<'_>) -> Result<String, DocumentProblem> {
    let mut reduced = Document::new();
    let defaults = object(object(&mut reduced, "agents"), "defaults");
    defaults.insert("model".to_owned(), json!(model.text));
    defaults.insert(
        "models".to_owned(),
        json!({ model.text: { "agentRuntime": { "id": OPENCLAW } } }),
    );
    if let Some(row) = provider_row(document, model.provider)? {
        let models = object(&mut reduced, "models");
        if let Some(mode) = Place::root(document).path(&["models", "mode"])?.text()? {
            models.insert("mode".to_owned(), json!(mode));
        }
        models.insert("providers".to_owned(), json!({ model.provider: row }));
    }
    Ok(render(reduced))
}

fn render(document: Document) -> String {
    let mut document = Value::Object(document);
    // The same bytes, also where some crate of the program lets `serde_json` keep the order of insertion.
    document.sort_all_objects();
    let mut text = serde_json::to_string_pretty(&document).expect("a document has text keys");
    text.push('\n');
    text
}
