//! What the Harness refuses before a version exists.

mod rig;

use occ_core::{
    driver::DocumentProblem,
    resource::{ExecutionMode, HarnessAuthMethod},
};
use occ_harness_openclaw::message;
use proptest::prelude::*;
use rig::{build, document, harness, usual, with};
use serde_json::{Value, json};

fn validated(value: Value) -> Result<(), DocumentProblem> {
    harness().validate(&document(value), ExecutionMode::Embedded, HarnessAuthMethod::ApiKey)
}

fn saved(value: Value) -> Result<(), DocumentProblem> {
    harness().check_saved(&document(value))
}

#[track_caller]
fn refused(result: Result<(), DocumentProblem>, pointer: &str, message: &str) {
    let problem = result.expect_err(pointer);
    assert_eq!((problem.pointer.as_str(), problem.message), (pointer, message));
    assert_eq!(problem.to_string(), message);
}

#[test]
fn it_is_linked_with_closed_settings_and_one_id() {
    let harness = harness();
    assert_eq!(harness.identity().implementation, "occ/openclaw");
    assert_eq!(
        (harness.version(), harness.modes()),
        ("1.0.0", &[ExecutionMode::Embedded][..])
    );
    assert!(build("other", json!({})).is_err());
    assert!(build("openclaw", json!({ "logLevel": "warn" })).is_ok());
    for (settings, path) in [
        (json!({ "logLevel": "hunter2" }), "/logLevel"),
        (json!({ "probeTimeoutSeconds": 4711 }), "/probeTimeoutSeconds"),
        (json!({ "apiKey": "hunter2" }), "apiKey"),
    ] {
        let message = build("openclaw", settings).err().expect("refused").to_string();
        assert!(
            message.contains(path) && !message.contains("hunter2") && !message.contains("4711"),
            "{message}"
        );
    }
}

#[test]
fn the_usual_documents_are_accepted() {
    validated(usual()).expect("OpenAI");
    let anthropic = json!({ "agents": { "defaults": { "model": "anthropic/claude-opus-5" } } });
    validated(anthropic).expect("Anthropic without a row");
    validated(corp()).expect("an OpenAI-compatible provider");
    harness()
        .validate(&document(usual()), ExecutionMode::Embedded, HarnessAuthMethod::Runtime)
        .expect("credentials of the host");
}

/// A provider of the operator's own.
fn corp() -> Value {
    json!({
        "agents": {
            "defaults": {
                "model": "corp/large",
                "models": { "corp/large": { "agentRuntime": { "id": "openclaw" } } },
            },
        },
        "models": {
            "providers": {
                "corp": {
                    "baseUrl": "http://models.corp.example:8000/v1",
                    "api": "openai-completions",
                    "apiKey": "${CORP_MODEL_KEY}",
                    "models": [{ "id": "large", "name": "Large" }],
                },
            },
        },
    })
}

#[test]
fn topology_and_authentication_must_fit() {
    let refuse = |mode, auth| harness().validate(&document(usual()), mode, auth);
    refused(
        refuse(ExecutionMode::Dedicated, HarnessAuthMethod::ApiKey),
        "",
        message::EMBEDDED,
    );
    refused(
        refuse(ExecutionMode::Embedded, HarnessAuthMethod::CodexPat),
        "",
        message::AUTH,
    );
    refused(
        refuse(ExecutionMode::Embedded, HarnessAuthMethod::CredentialSource),
        "",
        message::AUTH,
    );
    let codex = json!({
        "agents": {
            "defaults": {
                "model": "codex/gpt-5",
                "models": { "codex/gpt-5": { "agentRuntime": { "id": "codex" } } },
            },
        },
    });
    refused(validated(codex), "", message::OTHER_HARNESS);
}

#[test]
fn an_explicit_model_of_a_supported_provider_is_required() {
    refused(validated(json!({})), "/agents/defaults/model", message::MODEL_REQUIRED);
    let google = json!({ "agents": { "defaults": { "model": "google/gemini-3" } } });
    refused(validated(google), "/agents/defaults/model", message::PROVIDER);
}

#[test]
fn what_selects_no_harness_is_not_valid_either() {
    let value = with(usual(), "/agents/defaults/models", Value::Null);
    refused(validated(value), "/agents/defaults/model", message::RUNTIME_REQUIRED);
}

#[test]
fn provider_addresses_are_absolute_and_carry_no_credential() {
    let at = "/models/providers/openai/baseUrl";
    for good in [
        "http://127.0.0.1:8080/v1",
        "https://api.openai.com/v1/",
        "https://[::1]/v1",
        "${MODEL_URL}",
        "https://${MODEL_HOST}/v1",
    ] {
        saved(with(usual(), at, json!(good))).expect(good);
    }
    for bad in [
        "",
        "/v1",
        "api.openai.com/v1",
        "ftp://models.example/v1",
        "file:///etc/passwd",
        "http://",
        "https://user:hunter2@models.example/v1",
        "https://user@models.example/v1",
        "javascript:${X}",
    ] {
        refused(saved(with(usual(), at, json!(bad))), at, message::BASE_URL);
    }
    refused(saved(with(usual(), at, json!(5))), at, message::TEXT);
    let of_model = json!([{ "id": "gpt-5", "baseUrl": "relative" }]);
    let value = with(usual(), "/models/providers/openai/models", of_model);
    refused(
        saved(value),
        "/models/providers/openai/models/0/baseUrl",
        message::BASE_URL,
    );
}

#[test]
fn model_apis_are_known_and_fit_the_provider() {
    let at = "/models/providers/openai/api";
    refused(
        saved(with(usual(), at, json!("openai-response"))),
        at,
        message::API_UNKNOWN,
    );
    saved(with(usual(), at, json!("anthropic-messages"))).expect("a known API may be saved");
    refused(
        validated(with(usual(), at, json!("anthropic-messages"))),
        at,
        message::API_PROVIDER,
    );
    validated(with(usual(), at, json!("openai-completions"))).expect("OpenAI's other API");
    for (value, at) in [
        (
            with(corp(), "/models/providers/corp/api", json!("ollama")),
            "/models/providers/corp/api",
        ),
        (
            with(corp(), "/models/providers/corp/api", Value::Null),
            "/models/providers/corp/api",
        ),
    ] {
        refused(validated(value), at, message::API_PROVIDER);
    }
}

#[test]
fn a_provider_of_one_s_own_names_its_address_and_its_credential_s_variable() {
    let at = |key: &str| format!("/models/providers/corp/{key}");
    let without = |key: &str| with(corp(), &at(key), Value::Null);
    refused(
        validated(without("baseUrl")),
        &at("baseUrl"),
        message::BASE_URL_REQUIRED,
    );
    refused(validated(without("apiKey")), &at("apiKey"), message::API_KEY_REQUIRED);
    for owned in [
        "${PATH}",
        "${OPENCLAW_GATEWAY_PASSWORD}",
        "${NODE_OPTIONS}",
        "${LD_PRELOAD}",
    ] {
        refused(
            validated(with(corp(), &at("apiKey"), json!(owned))),
            &at("apiKey"),
            message::API_KEY_NAME,
        );
    }
    let reference = json!({ "source": "env", "provider": "default", "id": "CORP_MODEL_KEY" });
    validated(with(corp(), &at("apiKey"), reference)).expect("a reference");
    validated(with(corp(), &at("auth"), json!("api-key"))).expect("the API key");
    refused(
        validated(with(corp(), &at("auth"), json!("oauth"))),
        &at("auth"),
        message::PROVIDER_AUTH,
    );
}

#[test]
fn an_api_key_is_a_reference_to_the_environment() {
    let at = "/models/providers/openai/apiKey";
    for good in [
        json!("${OPENAI_API_KEY}"),
        json!({ "source": "env", "provider": "default", "id": "OPENAI_API_KEY" }),
        json!({ "source": "env", "id": "OPENAI_API_KEY" }),
    ] {
        validated(with(usual(), at, good)).expect("a reference");
    }
    for bad in [
        json!("sk-hunter2"),
        json!(""),
        json!("$OPENAI_API_KEY"),
        json!("${openai}"),
        json!("prefix-${OPENAI_API_KEY}"),
        json!("$${OPENAI_API_KEY}"),
        json!({ "source": "exec", "provider": "default", "id": "x" }),
        json!({ "source": "file", "provider": "default", "id": "/key" }),
        json!({ "source": "env", "provider": "default" }),
        json!({ "source": "env", "provider": "default", "id": "lower" }),
        json!(["sk-hunter2"]),
        json!(5),
    ] {
        refused(saved(with(usual(), at, bad)), at, message::API_KEY);
    }
}

#[test]
fn model_credentials_have_no_place_in_the_document() {
    let row = "/models/providers/openai";
    for (at, value, message) in [
        ("/auth/order", json!({ "openai": ["a"] }), message::AUTH_SECTION),
        ("/env/OPENAI_API_KEY", json!("hunter2"), message::MODEL_ENVIRONMENT),
        (
            "/env/vars/OPENAI_BASE_URL",
            json!("http://x"),
            message::MODEL_ENVIRONMENT,
        ),
        ("/env/vars/ANTHROPIC_API_KEY", json!("${X}"), message::MODEL_ENVIRONMENT),
        (
            "/env/vars/CODEX_ACCESS_TOKEN",
            json!("hunter2"),
            message::MODEL_ENVIRONMENT,
        ),
        (
            &format!("{row}/headers/Authorization"),
            json!("Bearer ${X}"),
            message::CREDENTIAL_HEADER,
        ),
        (
            &format!("{row}/headers/api-key"),
            json!("hunter2"),
            message::CREDENTIAL_HEADER,
        ),
        (
            &format!("{row}/request/headers/X-API-Key"),
            json!("hunter2"),
            message::CREDENTIAL_HEADER,
        ),
        (
            &format!("{row}/request/auth"),
            json!({ "mode": "header" }),
            message::REQUEST_AUTH,
        ),
    ] {
        let problem = saved(with(usual(), at, value)).expect_err(at);
        assert_eq!(problem.message, message, "{at}");
        assert!(at.starts_with(&problem.pointer), "{at} {}", problem.pointer);
    }
    saved(with(usual(), "/auth", json!({}))).expect("an empty section says nothing");
    saved(with(usual(), &format!("{row}/headers/X-Team"), json!("platform"))).expect("another header");
    let default = json!({ "mode": "provider-default" });
    saved(with(usual(), &format!("{row}/request/auth"), default)).expect("no credential");
}

#[test]
fn literal_credentials_are_refused_wherever_openclaw_has_a_field_for_them() {
    for at in [
        "/gateway/auth/password",
        "/gateway/auth/token",
        "/gateway/remote/token",
        "/channels/slack/botToken",
        "/channels/slack/accounts/team/appToken",
        "/channels/feishu/appSecret",
        "/channels/nostr/privateKey",
        "/tools/web/search/apiKey",
        "/mcp/servers/x/headers/authorization",
        "/env/vars/SLACK_BOT_TOKEN",
        "/env/GITHUB_TOKEN",
        "/mcp/servers/x/env/GITHUB_TOKEN",
    ] {
        refused(saved(with(usual(), at, json!("hunter2"))), at, message::LITERAL);
        saved(with(usual(), at, json!("${FROM_A_BINDING}"))).expect(at);
    }
    let reference = json!({ "source": "env", "provider": "default", "id": "SLACK_BOT_TOKEN" });
    saved(with(usual(), "/channels/slack/botToken", reference)).expect("a reference");
    saved(with(
        usual(),
        "/mcp/servers/x/headers/Authorization",
        json!("Bearer ${TOKEN}"),
    ))
    .expect("a reference");
    saved(with(usual(), "/env/vars/REGION", json!("eu"))).expect("no credential");
    // Lists are looked into.
    let list = json!([{ "token": "hunter2" }]);
    refused(
        saved(with(usual(), "/hooks/mappings", list)),
        "/hooks/mappings/0/token",
        message::LITERAL,
    );
}

#[test]
fn settings_that_cannot_be_honoured_are_refused() {
    for (at, value, message) in [
        ("/gateway/mode", json!("remote"), message::GATEWAY_MODE),
        ("/env/shellEnv/enabled", json!(true), message::SHELL_ENVIRONMENT),
        ("/channels/$include", json!("./channels.json5"), message::INCLUDE),
        ("/agents/entries", json!({ "a": {}, "b": {} }), message::ENTRY_MAIN),
        ("/agents/defaults/skipBootstrap", json!("yes"), message::BOOLEAN),
    ] {
        refused(validated(with(usual(), at, value)), at, message);
    }
    validated(with(usual(), "/gateway/mode", json!("local"))).expect("local");
    validated(with(usual(), "/agents/entries", json!({ "helper": {} }))).expect("a sole agent of any name");
}

#[test]
fn the_stock_workspace_files_are_identified() {
    let harness = harness();
    let defaults = harness.workspace_defaults().expect("they are known");
    assert_eq!(defaults.len(), 64);
    assert!(
        defaults
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    );
}

/// Documents near the ones that mean something: known keys with arbitrary values, all of them canaries.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(
            &[
                "openai/gpt-5",
                "openclaw",
                "codex",
                "env",
                "password",
                "CANARY-1",
                "CANARY/2",
                "${CANARY}"
            ][..]
        )
        .prop_map(Value::from),
    ];
    let keys = &[
        "agents",
        "defaults",
        "entries",
        "main",
        "model",
        "primary",
        "fallbacks",
        "models",
        "providers",
        "openai",
        "openai/gpt-5",
        "agentRuntime",
        "id",
        "baseUrl",
        "api",
        "apiKey",
        "headers",
        "authorization",
        "gateway",
        "auth",
        "mode",
        "password",
        "tls",
        "enabled",
        "bind",
        "port",
        "tailscale",
        "env",
        "vars",
        "logging",
        "list",
        "plugins",
        "source",
        "workspace",
        "request",
        "customBindHost",
        "diagnostics",
        "otel",
        "imageModel",
        "subagents",
    ][..];
    leaf.prop_recursive(6, 64, 5, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => prop::collection::hash_map(prop::sample::select(keys), inner, 0..6)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

fn check_no_canary(problem: &DocumentProblem) -> Result<(), TestCaseError> {
    prop_assert!(!format!("{problem:?} {problem}").contains("CANARY"), "{problem:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_document_makes_it_panic_or_repeat_a_value(parts in prop::collection::vec(any_value(), 4)) {
        let keys = ["agents", "models", "gateway", "env"];
        let value: Value = keys.iter().map(|key| (*key).to_owned()).zip(parts).collect();
        let document = document(value.clone());
        let harness = harness();
        for result in [
            harness.select(&document).map(drop),
            harness.check_saved(&document),
            harness.validate(&document, ExecutionMode::Embedded, HarnessAuthMethod::ApiKey),
            harness.gateway_settings(&document).map(drop),
            rig::plan(&rig::snapshot(value, &[]), occ_core::driver::Listen::Loopback).map(drop),
        ] {
            if let Err(problem) = result {
                check_no_canary(&problem)?;
            }
        }
    }
}
