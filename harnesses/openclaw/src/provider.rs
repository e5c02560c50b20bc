//! Model providers: their rows in the document, and which credential reaches them how.

use occ_core::{driver::DocumentProblem, resource::Document, resource::EnvName};
use serde_json::Value;
use url::Url;

use crate::{
    credential::{is_credential_header, reference},
    document::Place,
    message,
    model::Written,
};

/// The model APIs that OpenClaw 2026.9.6 knows.
const APIS: [&str; 11] = [
    "openai-completions",
    "openai-responses",
    "openai-chatgpt-responses",
    "anthropic-messages",
    "google-generative-ai",
    "google-vertex",
    "github-copilot",
    "bedrock-converse-stream",
    "ollama",
    "pi-messages",
    "azure-openai-responses",
];

const OPENAI_VARIABLE: &str = "OPENAI_API_KEY";
const ANTHROPIC_VARIABLE: &str = "ANTHROPIC_API_KEY";

/// How the model credential reaches the primary model's provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credential<'a> {
    /// The environment variable that receives it.
    pub variable: &'a str,
    /// Where `openclaw models status` says that it found it.
    pub source: &'static str,
    /// An address that answers 401 exactly when the provider itself rejects the credential.
    pub preflight: Option<&'static str>,
}

/// Checks every provider row as far as that can be said of a saved document (spec/engine 1.5).
pub fn check_rows(document: &Document) -> Result<(), DocumentProblem> {
    for (_, row) in Place::root(document).path(&["models", "providers"])?.members()? {
        check_endpoint(&row)?;
        check_no_credential(&row)?;
        for model in row.get("models")?.items()? {
            check_endpoint(&model)?;
            check_headers(&model.get("headers")?)?;
        }
    }
    Ok(())
}

fn check_endpoint(place: &Place<'_>) -> Result<(), DocumentProblem> {
    let base_url = place.get("baseUrl")?;
    if base_url.text()?.is_some_and(|text| !is_address(text)) {
        return Err(base_url.problem(message::BASE_URL));
    }
    let api = place.get("api")?;
    match api.text()? {
        Some(known) if !APIS.contains(&known) => Err(api.problem(message::API_UNKNOWN)),
        _ => Ok(()),
    }
}

fn is_address(text: &str) -> bool {
    // Filled from the environment, by OpenClaw.
    if text.contains("${") {
        return text.starts_with("${") || text.starts_with("http://") || text.starts_with("https://");
    }
    Url::parse(text).is_ok_and(|url| {
        let web = matches!(url.scheme(), "http" | "https") && url.has_host();
        web && url.username().is_empty() && url.password().is_none()
    })
}

fn check_no_credential(row: &Place<'_>) -> Result<(), DocumentProblem> {
    let key = row.get("apiKey")?;
    if key.exists() && variable(&key)?.is_none() {
        return Err(key.problem(message::API_KEY));
    }
    check_headers(&row.get("headers")?)?;
    let request = row.get("request")?;
    check_headers(&request.get("headers")?)?;
    let auth = request.get("auth")?;
    if auth.exists() && auth.get("mode")?.text()? != Some("provider-default") {
        return Err(auth.problem(message::REQUEST_AUTH));
    }
    Ok(())
}

fn check_headers(headers: &Place<'_>) -> Result<(), DocumentProblem> {
    let mut members = headers.members()?.into_iter();
    match members.find(|(name, _)| is_credential_header(name)) {
        Some((_, header)) => Err(header.problem(message::CREDENTIAL_HEADER)),
        None => Ok(()),
    }
}

/// The environment variable that an `apiKey` refers to; `None` when it is no such reference.
fn variable<'a>(key: &Place<'a>) -> Result<Option<&'a str>, DocumentProblem> {
    if let Some(text) = key.as_text() {
        return Ok(reference(text));
    }
    if key.object().is_err() || key.get("source")?.text()? != Some("env") {
        return Ok(None);
    }
    let id = key.get("id")?.text()?;
    let fits = |id: &&str| {
        let mut bytes = id.bytes();
        let rest = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        id.len() <= 128 && bytes.next().is_some_and(|b| b.is_ascii_uppercase()) && bytes.all(rest)
    };
    Ok(id.filter(fits))
}

/// How the credential of `harnessAuth` reaches the provider of `model`.
///
/// For `openai` and `anthropic` without an `apiKey` it is the variable that OpenClaw itself looks for. Other providers must be
/// described in `models.providers`, with a `baseUrl`, an API that takes a key, and an `apiKey` that names the variable.
pub fn credential<'a>(document: &'a Document, model: &Written<'a>) -> Result<Credential<'a>, DocumentProblem> {
    let (model, written) = model;
    let row = Place::root(document).path(&["models", "providers", model.provider])?;
    let default = match model.provider {
        "openai" => Some(OPENAI_VARIABLE),
        "anthropic" => Some(ANTHROPIC_VARIABLE),
        _ if row.exists() => None,
        _ => return Err(written.problem(message::PROVIDER)),
    };
    if default.is_none() && row.get("baseUrl")?.text()?.is_none() {
        return Err(row.get("baseUrl")?.problem(message::BASE_URL_REQUIRED));
    }
    check_api(model.provider, &row, default.is_none())?;
    let auth = row.get("auth")?;
    if !matches!(auth.text()?, None | Some("api-key")) {
        return Err(auth.problem(message::PROVIDER_AUTH));
    }
    let key = row.get("apiKey")?;
    let named = if key.exists() { variable(&key)? } else { None };
    let variable = match (named, default) {
        (Some(named), _) if is_free(named) => named,
        (Some(_), _) => return Err(key.problem(message::API_KEY_NAME)),
        (None, Some(default)) if !key.exists() => default,
        (None, Some(_)) => return Err(key.problem(message::API_KEY)),
        (None, None) => return Err(key.problem(message::API_KEY_REQUIRED)),
    };
    let source = if default == Some(variable) {
        "env"
    } else {
        "models.json"
    };
    Ok(Credential {
        variable,
        source,
        preflight: preflight(model.provider, &row)?,
    })
}

fn check_api(provider: &str, row: &Place<'_>, required: bool) -> Result<(), DocumentProblem> {
    let accepts = |api: &str| match provider {
        "openai" => matches!(api, "openai-responses" | "openai-completions"),
        "anthropic" => api == "anthropic-messages",
        _ => matches!(api, "openai-responses" | "openai-completions" | "anthropic-messages"),
    };
    let models = row.get("models")?.items()?;
    for place in models.iter().chain([row]) {
        let api = place.get("api")?;
        if api.text()?.is_some_and(|api| !accepts(api)) {
            return Err(api.problem(message::API_PROVIDER));
        }
    }
    let api = row.get("api")?;
    if required && !api.exists() {
        Err(api.problem(message::API_PROVIDER))
    } else {
        Ok(())
    }
}

/// Whether the variable may carry a credential: one of the two known ones, or one that a Configuration could bind.
fn is_free(variable: &str) -> bool {
    matches!(variable, OPENAI_VARIABLE | ANTHROPIC_VARIABLE) || EnvName::try_from(variable.to_owned()).is_ok()
}

/// Where an empty request shows a rejected credential at once (spec/drivers 7.1.1). Only for `openai`'s own address, and only when
/// the row changes nothing about the request. Not for Anthropic, whose setup tokens look rejected there although they are not.
fn preflight(provider: &str, row: &Place<'_>) -> Result<Option<&'static str>, DocumentProblem> {
    const RESPONSES: &str = "https://api.openai.com/v1/responses";
    const COMPLETIONS: &str = "https://api.openai.com/v1/chat/completions";
    if provider != "openai" {
        return Ok(None);
    }
    let plain = |(key, place): &(&str, Place<'_>)| match *key {
        "baseUrl" | "api" | "models" => true,
        "request" => place
            .object()
            .is_ok_and(|object| object.is_some_and(|request| request.keys().all(|key| key == "allowPrivateNetwork"))),
        _ => false,
    };
    let own = |model: &Place<'_>| {
        model.object().is_ok_and(|object| {
            object.is_none_or(|model| ["api", "baseUrl", "headers"].iter().any(|key| model.contains_key(*key)))
        })
    };
    let address = row
        .get("baseUrl")?
        .text()?
        .is_none_or(|text| text.trim_end_matches('/') == "https://api.openai.com/v1");
    if !address || !row.members()?.iter().all(plain) || row.get("models")?.items()?.iter().any(own) {
        return Ok(None);
    }
    Ok(Some(if row.get("api")?.text()? == Some("openai-completions") {
        COMPLETIONS
    } else {
        RESPONSES
    }))
}

/// The names of every `${NAME}` and environment reference in a value.
pub fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => {
            let parts = text.split("${").skip(1);
            parts
                .filter_map(|part| part.split_once('}').map(|(name, _)| name))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Object(object) => {
            let id = object.get("id").and_then(Value::as_str);
            let own = id.filter(|_| object.get("source").and_then(Value::as_str) == Some("env"));
            own.into_iter().chain(object.values().flat_map(references)).collect()
        }
        _ => Vec::new(),
    }
}
