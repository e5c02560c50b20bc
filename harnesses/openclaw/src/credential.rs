//! Literal credentials: the document is saved with every version and returned through the API, so that none may be in it.

use occ_core::{driver::DocumentProblem, resource::Document};

use crate::{document::Place, message};

/// Names of OpenClaw settings that hold a credential, in lower case.
const CREDENTIAL_KEYS: [&str; 31] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apipassword",
    "apptoken",
    "apppassword",
    "appsecret",
    "authtag",
    "authtoken",
    "bearertoken",
    "botsecret",
    "bottoken",
    "clientsecret",
    "encryptkey",
    "passphrase",
    "password",
    "privatekey",
    "pushtoken",
    "refreshtoken",
    "secret",
    "secretaccesskey",
    "secretkey",
    "serviceaccount",
    "signingsecret",
    "token",
    "usertoken",
    "verificationtoken",
    "webhooksecret",
    "webhooktoken",
    "x-api-key",
    "api-key",
];

/// Headers that hold a credential, in lower case.
const CREDENTIAL_HEADERS: [&str; 5] = ["authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"];

/// Ends of environment variables' names that hold a credential.
const CREDENTIAL_VARIABLES: [&str; 7] = [
    "_KEY",
    "_TOKEN",
    "_SECRET",
    "_PASSWORD",
    "_PASSPHRASE",
    "_CREDENTIALS",
    "_PAT",
];

/// Beginnings of environment variables' names that model credentials have.
const MODEL_VARIABLES: [&str; 3] = ["OPENAI_", "ANTHROPIC_", "CODEX_"];

/// Whether a header holds a credential.
pub fn is_credential_header(name: &str) -> bool {
    CREDENTIAL_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The name in `${NAME}`, when the text is that and nothing else.
pub fn reference(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let first = name.bytes().next()?;
    let rest = name
        .bytes()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    (rest && !first.is_ascii_digit()).then_some(name)
}

/// Refuses literal credentials in the fields that are known to hold one (spec/engine 1.5, spec/drivers 1.12).
pub fn check(document: &Document) -> Result<(), DocumentProblem> {
    let root = Place::root(document);
    let auth = root.get("auth")?;
    if !auth.members()?.is_empty() {
        return Err(auth.problem(message::AUTH_SECTION));
    }
    check_environment(&root.get("env")?)?;
    scan(&root)
}

fn check_environment(environment: &Place<'_>) -> Result<(), DocumentProblem> {
    for (name, variable) in environment
        .members()?
        .into_iter()
        .chain(environment.get("vars")?.members()?)
    {
        if MODEL_VARIABLES
            .iter()
            .any(|known| name.to_ascii_uppercase().starts_with(known))
        {
            return Err(variable.problem(message::MODEL_ENVIRONMENT));
        }
    }
    check_variables(&environment.get("vars")?)
}

fn check_variables(environment: &Place<'_>) -> Result<(), DocumentProblem> {
    for (name, variable) in environment.children() {
        let name = name.map(str::to_ascii_uppercase).unwrap_or_default();
        if CREDENTIAL_VARIABLES.iter().any(|end| name.ends_with(end)) && is_literal(&variable) {
            return Err(variable.problem(message::LITERAL));
        }
    }
    Ok(())
}

fn scan(place: &Place<'_>) -> Result<(), DocumentProblem> {
    for (key, child) in place.children() {
        let lower = key.map(str::to_ascii_lowercase).unwrap_or_default();
        if CREDENTIAL_KEYS.contains(&lower.as_str()) && is_literal(&child) {
            return Err(child.problem(message::LITERAL));
        }
        if lower == "env" {
            check_variables(&child)?;
        }
        if lower == "headers" || lower == "httpheaders" {
            for (name, header) in child.children() {
                // `Bearer ${NAME}` is a reference too.
                let literal = header
                    .as_text()
                    .is_some_and(|text| !text.is_empty() && !text.contains("${"));
                if literal && name.is_some_and(is_credential_header) {
                    return Err(header.problem(message::LITERAL));
                }
            }
        }
        scan(&child)?;
    }
    Ok(())
}

fn is_literal(place: &Place<'_>) -> bool {
    place
        .as_text()
        .is_some_and(|text| !text.is_empty() && reference(text).is_none())
}
