//! The Harness against the suite of its contract.

mod rig;

use std::{process::ExitCode, sync::Arc};

use occ_conformance::harness::{LITERAL, Sample, Subject, suite};
use occ_core::{
    driver::Harness,
    resource::{Document, EnvName, HarnessAuth},
};
use rig::{document, harness, usual, with};
use serde_json::{Value, json};

struct OpenClaw;

fn sample(value: Value) -> Sample {
    Sample::embedded(document(value))
}

fn bound(names: &[&str]) -> Vec<EnvName> {
    let name = |name: &&str| EnvName::try_from((*name).to_owned()).expect("not reserved");
    names.iter().map(name).collect()
}

impl Subject for OpenClaw {
    fn harness(&self) -> Arc<dyn Harness> {
        harness()
    }

    fn accepted(&self) -> Vec<Sample> {
        let anthropic = json!({ "agents": { "defaults": { "model": "anthropic/claude-opus-5" } } });
        let own = json!({
            "agents": { "defaults": {
                "model": "corp/large",
                "models": { "corp/large": { "agentRuntime": { "id": "openclaw" } } },
                "skipBootstrap": true,
            } },
            "models": { "providers": { "corp": {
                "baseUrl": "http://models.corp.example:8000/v1",
                "api": "openai-completions",
                "apiKey": "${CORP_MODEL_KEY}",
                "headers": { "X-Team": "${TEAM}" },
                "models": [{ "id": "large", "name": "Large" }],
            } } },
        });
        let mut ordinary = sample(usual());
        ordinary.bindings = bound(&["SLACK_APP_TOKEN", "SLACK_BOT_TOKEN"]);
        let mut hosts_own = sample(usual());
        hosts_own.auth = HarnessAuth::Runtime {};
        let mut own = sample(own);
        own.bindings = bound(&["TEAM"]);
        vec![ordinary, hosts_own, sample(anthropic), own]
    }

    fn refused(&self) -> Vec<(&'static str, Sample)> {
        let codex = json!({ "agents": { "defaults": {
            "model": "codex/gpt-5",
            "models": { "codex/gpt-5": { "agentRuntime": { "id": "codex" } } },
        } } });
        let mut token = sample(usual());
        token.auth = HarnessAuth::CredentialSource {
            source_id: "cs_123e4567-e89b-42d3-a456-426614174000".parse().expect("an id"),
        };
        vec![
            ("no model", sample(json!({}))),
            (
                "a provider without a runtime",
                sample(with(usual(), "/agents/defaults/models", Value::Null)),
            ),
            ("another Harness", sample(codex)),
            (
                "a gateway elsewhere",
                sample(with(usual(), "/gateway/mode", json!("remote"))),
            ),
            (
                "a file of the host",
                sample(with(usual(), "/$include", json!("/etc/openclaw.json"))),
            ),
            ("a mediated credential", token),
        ]
    }

    fn literal_credentials(&self) -> Vec<(&'static str, Document)> {
        let places = [
            ("the provider's key", "/models/providers/openai/apiKey"),
            ("the gateway's password", "/gateway/auth/password"),
            ("the gateway's token", "/gateway/auth/token"),
            ("the model's key in the environment", "/env/OPENAI_API_KEY"),
            ("a header", "/models/providers/openai/headers/Authorization"),
            ("a channel's token", "/channels/slack/botToken"),
        ];
        let literal = |at| document(with(usual(), at, json!(LITERAL)));
        places.map(|(place, at)| (place, literal(at))).into()
    }

    fn tools(&self) -> Vec<&'static str> {
        vec!["node", "openclaw"]
    }
}

fn main() -> ExitCode {
    occ_conformance::run(suite(|| OpenClaw))
}
