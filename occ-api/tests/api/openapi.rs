//! The OpenAPI document is that of the code, and names exactly the routes that there are.

use std::{fs, path::PathBuf};

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::served::{Seen, Served};

fn checked_in() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json")
}

#[test]
fn the_checked_in_document_is_the_codes() {
    let text = format!("{:#}\n", occ_api::openapi());
    if std::env::var_os("OCC_BLESS").is_some() {
        fs::write(checked_in(), &text).expect("it is written");
    }
    let saved = fs::read_to_string(checked_in()).unwrap_or_default();
    assert!(
        saved == text,
        "docs/openapi.json is not current: OCC_BLESS=1 cargo test -p occ-api --test api writes it"
    );
}

/// Every `$ref` of the document.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_has_a_name_of_its_own() {
    let document = occ_api::openapi();
    let mut names = Vec::new();
    for methods in document["paths"].as_object().expect("paths").values() {
        for operation in methods.as_object().expect("methods").values() {
            names.push(operation["operationId"].as_str().expect("a name").to_owned());
        }
    }
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("of this document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

/// A path with ids in the place of its parameters.
fn filled(path: &str) -> String {
    let uuid = "123e4567-e89b-42d3-a456-426614174000";
    [
        ("{namespace}", "ns_"),
        ("{configuration}", "cfg_"),
        ("{secret}", "sec_"),
        ("{account}", "sa_"),
        ("{source}", "cs_"),
        ("{preset}", "pre_"),
        ("{agent}", "agt_"),
        ("{revision}", "rev_"),
        ("{key}", "key_"),
        ("{role}", "role_"),
        ("{binding}", "binding_"),
    ]
    .iter()
    .fold(path.replace("{name}", "AGENTS.md"), |path, (name, prefix)| {
        path.replace(name, &format!("{prefix}{uuid}"))
    })
}

#[tokio::test]
async fn the_document_names_the_routes_that_there_are() {
    let served = Served::new().await;
    let document = occ_api::openapi();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for method in ["get", "post", "put", "patch", "delete"] {
            let url = format!("http://{}{}", served.address, filled(path));
            let verb: Method = method.to_uppercase().parse().expect("a method");
            let request = served
                .http
                .request(verb, url)
                .header("content-type", "application/json");
            let documented = methods.get(method);
            let body = documented.is_some_and(|operation| operation.get("requestBody").is_some());
            let response = request
                .body(if body { "{}" } else { "" })
                .send()
                .await
                .expect("an answer");
            let open = documented.is_some_and(|operation| operation["security"] == serde_json::json!([]));
            let expected = match documented {
                None => StatusCode::METHOD_NOT_ALLOWED,
                Some(_) if open && body => StatusCode::BAD_REQUEST,
                // No identity provider is configured.
                Some(_) if path.contains("/oidc/") => StatusCode::NOT_IMPLEMENTED,
                Some(_) if open => StatusCode::OK,
                Some(_) => StatusCode::UNAUTHORIZED,
            };
            assert_eq!(response.status(), expected, "{method} {path}");
        }
    }
    let fetched = served.http.get(format!("http://{}/openapi.json", served.address));
    let fetched: Value = fetched.send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(fetched, document);
    let unknown = served.http.get(format!("http://{}/agents", served.address));
    assert_eq!(
        Seen::of(unknown.send().await.expect("an answer")).await.code(),
        "NOT_FOUND"
    );
}

#[tokio::test]
async fn the_page_shows_every_operation_and_schema_and_loads_and_runs_nothing() {
    let served = Served::new().await;
    let page = served
        .http
        .get(format!("http://{}/docs", served.address))
        .send()
        .await
        .expect("an answer");
    assert_eq!(page.status(), StatusCode::OK);
    let header = |name: &str| page.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert_eq!(header("x-content-type-options"), "nosniff");
    let policy = header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(
        !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    let html = page.text().await.expect("text");

    let document = occ_api::openapi();
    let mut anchors = Vec::new();
    for methods in document["paths"].as_object().expect("paths").values() {
        for operation in methods.as_object().expect("methods").values() {
            anchors.push(operation["operationId"].as_str().expect("a name").to_owned());
        }
    }
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    anchors.extend(schemas.keys().map(|name| format!("schema-{name}")));
    for anchor in &anchors {
        assert_eq!(html.matches(&format!("id=\"{anchor}\"")).count(), 1, "{anchor}");
    }
    for link in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let known = link == "openapi.json" || link.strip_prefix('#').is_some_and(|to| anchors.iter().any(|a| a == to));
        assert!(known, "{link} leads elsewhere");
    }
    for active in [
        "<script",
        "src=",
        "url(",
        "@import",
        "style=\"",
        "http-equiv",
        "javascript:",
    ] {
        assert!(!html.contains(active), "{active}");
    }
}
