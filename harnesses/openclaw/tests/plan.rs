//! The plan of a version: whole, deterministic, and without a secret or a path of any host.

mod rig;

use std::collections::BTreeMap;

use occ_core::{
    driver::{ComputeProfile, Listen, PlanInput},
    id::{AgentId, NamespaceId, RevisionId},
    plan::{Component, EnvValue, SecretSlot, WorkloadPlan},
    resource::{ExecutionMode, HarnessAuth},
};
use occ_harness_openclaw::message;
use occ_runtime::spec::{Files, LaunchSpec, Limits, LogPolicy, Placement};
use rig::{build, layout, plan, plan_of, probed, rendered, snapshot, usual, with};
use serde_json::{Value, json};

fn component(plan: &WorkloadPlan) -> &Component {
    let [component] = plan.components.as_slice() else {
        panic!("one component")
    };
    component
}

fn secrets(environment: &BTreeMap<String, EnvValue>) -> Vec<(&str, &SecretSlot)> {
    environment
        .iter()
        .filter_map(|(name, value)| match value {
            EnvValue::Secret(slot) => Some((name.as_str(), slot)),
            EnvValue::Text(_) => None,
        })
        .collect()
}

#[test]
fn the_whole_plan_of_the_usual_document() {
    insta::assert_json_snapshot!(plan_of(usual()));
}

#[test]
fn the_documents_of_the_usual_plan() {
    let plan = plan_of(usual());
    insta::assert_json_snapshot!("gateway_document", rendered(&plan));
    insta::assert_json_snapshot!("probe_document", probed(&plan));
}

#[test]
fn the_same_input_gives_the_same_plan() {
    let snapshot = snapshot(usual(), &["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"]);
    assert_eq!(plan(&snapshot, Listen::Loopback), plan(&snapshot, Listen::Loopback));
}

#[test]
fn a_plan_holds_no_locator_and_no_path_of_a_host() {
    let snapshot = snapshot(usual(), &["SLACK_BOT_TOKEN"]);
    let text = serde_json::to_string(&plan(&snapshot, Listen::Loopback).expect("a plan")).expect("JSON");
    let system_path = ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let rest = text.replace(system_path, "");
    for found in [
        "canary",
        "sec_",
        "/usr",
        "/root",
        "/home/",
        "/tmp",
        "/var",
        "/opt",
        "127.0.0.1",
    ] {
        assert!(!rest.contains(found), "{found} in {text}");
    }
}

#[test]
fn every_secret_is_a_reference_and_reaches_only_who_needs_it() {
    let plan = plan(&snapshot(usual(), &["SLACK_BOT_TOKEN"]), Listen::Loopback).expect("a plan");
    let component = component(&plan);
    let binding = SecretSlot::Binding("SLACK_BOT_TOKEN".to_owned().try_into().expect("a name"));
    assert_eq!(
        secrets(&component.environment),
        [
            ("OPENAI_API_KEY", &SecretSlot::HarnessCredential),
            ("OPENCLAW_GATEWAY_PASSWORD", &SecretSlot::GatewayPassword),
            ("SLACK_BOT_TOKEN", &binding),
        ]
    );
    let probe = component.probe.as_ref().expect("a probe");
    assert_eq!(
        secrets(&probe.environment),
        [("OPENAI_API_KEY", &SecretSlot::HarnessCredential)]
    );
    let workspace = component.workspace.as_ref().expect("an initialization");
    assert_eq!(secrets(&workspace.environment), []);
}

#[test]
fn the_gateway_listens_where_the_compute_says() {
    for (listen, bind) in [(Listen::Loopback, "loopback"), (Listen::AllAddresses, "lan")] {
        let value = with(
            with(usual(), "/gateway/bind", json!("auto")),
            "/gateway/port",
            json!(18789),
        );
        let value = with(value, "/gateway/customBindHost", json!("0.0.0.0"));
        let gateway = rendered(&plan(&snapshot(value, &[]), listen).expect("a plan"))["gateway"].clone();
        assert_eq!((&gateway["mode"], &gateway["bind"]), (&json!("local"), &json!(bind)));
        assert_eq!((gateway.get("port"), gateway.get("customBindHost")), (None, None));
    }
}

#[test]
fn the_gateway_has_the_generated_password_unless_the_document_says_otherwise() {
    let generated = json!({ "source": "env", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD" });
    let auth = |auth: Value| rendered(&plan_of(with(usual(), "/gateway/auth", auth)))["gateway"]["auth"].clone();
    let whole = json!({ "mode": "password", "password": generated });
    assert_eq!(auth(Value::Null), whole);
    assert_eq!(auth(json!({})), whole);
    assert_eq!(auth(json!({ "mode": "password" })), whole);
    assert_eq!(auth(json!({ "password": generated })), whole);
    let proxy = json!({ "mode": "trusted-proxy", "trustedProxy": { "userHeader": "x-occ-identity" } });
    assert_eq!(auth(proxy.clone()), proxy);
}

#[test]
fn the_platform_sets_workspace_logging_and_runtime() {
    let value = with(usual(), "/agents/defaults/workspace", json!("~/elsewhere"));
    let value = with(
        value,
        "/agents/defaults/models",
        json!({ "openai/gpt-5": { "alias": "five" } }),
    );
    let value = with(
        value,
        "/models/providers/openai/agentRuntime",
        json!({ "id": "openclaw" }),
    );
    let value = with(value, "/agents/list", json!([]));
    let logging =
        json!({ "level": "trace", "consoleStyle": "pretty", "redactSensitive": "off", "redactPatterns": ["x"] });
    let value = with(value, "/logging", logging);
    let value = with(value, "/diagnostics/otel", json!({ "enabled": true, "logs": true }));
    let rendered = rendered(&plan_of(value));
    let agents = &rendered["agents"];
    assert_eq!(agents["defaults"]["workspace"], "${OPENCLAW_WORKSPACE_DIR}");
    assert_eq!(
        agents["defaults"]["models"],
        json!({ "openai/gpt-5": { "alias": "five", "agentRuntime": { "id": "openclaw" } } })
    );
    assert_eq!(agents.get("list"), None);
    assert_eq!(
        rendered["logging"],
        json!({
            "level": "info",
            "consoleLevel": "info",
            "consoleStyle": "json",
            "file": "${OCC_OPENCLAW_LOG_FILE}",
            "maxFileBytes": 5_242_880,
            "redactPatterns": ["x"],
        })
    );
    assert_eq!(
        rendered["diagnostics"]["otel"],
        json!({ "enabled": true, "logs": false })
    );
}

#[test]
fn of_several_agents_main_has_the_workspace() {
    let entry = |workspace: &str| json!({ "model": "openai/gpt-5", "workspace": workspace, "agentRuntime": { "id": "openclaw" } });
    let entries = json!({ "main": entry("~/a"), "helper": entry("~/b") });
    let rendered_entries = rendered(&plan_of(with(usual(), "/agents/entries", entries)))["agents"]["entries"].clone();
    let expected = json!({
        "main": { "model": "openai/gpt-5", "workspace": "${OPENCLAW_WORKSPACE_DIR}" },
        "helper": { "model": "openai/gpt-5" },
    });
    assert_eq!(rendered_entries, expected);
    let sole = json!({ "helper": entry("~/b") });
    let rendered_entries = rendered(&plan_of(with(usual(), "/agents/entries", sole)))["agents"]["entries"].clone();
    assert_eq!(rendered_entries, json!({ "helper": { "model": "openai/gpt-5" } }));
}

#[test]
fn the_installation_chooses_log_level_and_patience() {
    let harness = build("openclaw", json!({ "logLevel": "warn", "probeTimeoutSeconds": 120 })).expect("it builds");
    let snapshot = snapshot(usual(), &[]);
    let compute = ComputeProfile {
        listen: Listen::Loopback,
    };
    let plan = harness
        .plan(PlanInput {
            snapshot: &snapshot,
            compute,
        })
        .expect("a plan");
    let logging = &rendered(&plan)["logging"];
    assert_eq!(
        (&logging["level"], &logging["consoleLevel"]),
        (&json!("warn"), &json!("warn"))
    );
    assert_eq!(
        component(&plan).probe.as_ref().map(|probe| probe.base_timeout_ms),
        Some(120_000)
    );
}

#[test]
fn each_provider_has_its_credential_s_variable() {
    let model = |provider: &str, row: Value| {
        let text = format!("{provider}/large");
        let runtime = json!({ "agentRuntime": { "id": "openclaw" } });
        let defaults = json!({ "model": text, "models": { text.as_str(): runtime } });
        let value = json!({ "agents": { "defaults": defaults } });
        if row.is_null() {
            value
        } else {
            with(value, &format!("/models/providers/{provider}"), row)
        }
    };
    let key = json!({ "source": "env", "provider": "default", "id": "CORP_KEY" });
    let corp = json!({
        "baseUrl": "http://models.example/v1", "api": "openai-responses", "apiKey": key, "models": [{ "id": "large" }],
    });
    for (value, provider, variable, source, preflight) in [
        (
            model("openai", Value::Null),
            "openai",
            "OPENAI_API_KEY",
            "env",
            Some("https://api.openai.com/v1/responses"),
        ),
        (
            model("anthropic", Value::Null),
            "anthropic",
            "ANTHROPIC_API_KEY",
            "env",
            None,
        ),
        (
            model("openai", json!({ "apiKey": "${OPENAI_API_KEY}" })),
            "openai",
            "OPENAI_API_KEY",
            "env",
            None,
        ),
        (
            model("openai", json!({ "apiKey": "${OTHER_KEY}" })),
            "openai",
            "OTHER_KEY",
            "models.json",
            None,
        ),
        (model("corp", corp), "corp", "CORP_KEY", "models.json", None),
    ] {
        let plan = plan_of(value);
        let probe = component(&plan).probe.as_ref().expect("a probe");
        assert_eq!(probe.reader, "openclaw-models-status/1");
        let mut expected = vec![
            ("provider", provider.to_owned()),
            ("model", format!("{provider}/large")),
            ("source", source.to_owned()),
            ("credentialEnv", variable.to_owned()),
        ];
        expected.extend(preflight.map(|address| ("preflight", address.to_owned())));
        let expected = expected
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        assert_eq!(probe.expect, expected);
        assert_eq!(
            secrets(&probe.environment),
            [(variable, &SecretSlot::HarnessCredential)]
        );
        let provider_argument = probe
            .command
            .iter()
            .skip_while(|text| **text != "--probe-provider".into())
            .nth(1);
        assert_eq!(provider_argument, Some(&provider.into()));
        assert!(secrets(&component(&plan).environment).contains(&(variable, &SecretSlot::HarnessCredential)));
    }
}

#[test]
fn a_request_that_the_row_changes_is_not_tried_beforehand() {
    let at = |key: &str| format!("/models/providers/openai/{key}");
    let preflight = |value: Value| {
        component(&plan_of(value))
            .probe
            .as_ref()
            .and_then(|p| p.expect.get("preflight").cloned())
    };
    let completions = with(usual(), &at("api"), json!("openai-completions"));
    assert_eq!(
        preflight(completions).as_deref(),
        Some("https://api.openai.com/v1/chat/completions")
    );
    let private = with(usual(), &at("request"), json!({ "allowPrivateNetwork": true }));
    assert!(preflight(private).is_some());
    for (key, value) in [
        ("baseUrl", json!("http://127.0.0.1:8080/v1")),
        ("timeoutSeconds", json!(5)),
        ("headers", json!({ "x-team": "a" })),
        ("request", json!({ "tls": {} })),
        (
            "models",
            json!([{ "id": "gpt-5", "baseUrl": "https://other.example/v1" }]),
        ),
        ("models", json!([{ "id": "gpt-5", "headers": {} }])),
    ] {
        assert_eq!(preflight(with(usual(), &at(key), value)), None, "{key}");
    }
}

#[test]
fn a_check_gets_the_bound_secrets_that_its_provider_s_row_names() {
    let value = with(
        usual(),
        "/models/providers/openai/headers/x-team",
        json!("${TEAM_TOKEN}"),
    );
    let plan = plan(&snapshot(value, &["TEAM_TOKEN", "SLACK_BOT_TOKEN"]), Listen::Loopback).expect("a plan");
    let probe = component(&plan).probe.as_ref().expect("a probe");
    let names: Vec<_> = secrets(&probe.environment).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["OPENAI_API_KEY", "TEAM_TOKEN"]);
}

#[test]
fn a_check_s_document_has_the_primary_model_and_its_provider_alone() {
    let value = with(
        usual(),
        "/agents/entries/main/model",
        json!({ "primary": "openai/gpt-5", "fallbacks": ["openai/gpt-4"] }),
    );
    let value = with(
        value,
        "/agents/defaults/models/openai~1gpt-4",
        json!({ "agentRuntime": { "id": "openclaw" } }),
    );
    let value = with(
        value,
        "/models/providers/other",
        json!({ "baseUrl": "http://other.example" }),
    );
    let value = with(value, "/models/mode", json!("merge"));
    let value = with(value, "/channels/slack/botToken", json!("${SLACK_BOT_TOKEN}"));
    assert_eq!(
        probed(&plan_of(value)),
        json!({
            "agents": {
                "defaults": {
                    "model": "openai/gpt-5",
                    "models": { "openai/gpt-5": { "agentRuntime": { "id": "openclaw" } } },
                },
            },
            "models": {
                "mode": "merge",
                "providers": {
                    "openai": {
                        "baseUrl": "https://api.openai.com/v1",
                        "api": "openai-responses",
                        "models": [{ "id": "gpt-5", "name": "gpt-5" }],
                    },
                },
            },
        })
    );
}

#[test]
fn a_variable_cannot_receive_two_secrets() {
    let value = with(usual(), "/models/providers/openai/apiKey", json!("${TEAM_KEY}"));
    let problem = plan(&snapshot(value, &["TEAM_KEY"]), Listen::Loopback).expect_err("two secrets");
    assert_eq!(
        (problem.pointer.as_str(), problem.message),
        ("/models/providers/openai/apiKey", message::API_KEY_BOUND)
    );
}

#[test]
fn credentials_of_the_host_are_neither_delivered_nor_checked() {
    let mut snapshot = snapshot(usual(), &[]);
    snapshot.harness_auth.binding = HarnessAuth::Runtime {};
    snapshot.harness_auth.secret = None;
    let plan = plan(&snapshot, Listen::Loopback).expect("a plan");
    assert_eq!(component(&plan).probe, None);
    let names: Vec<_> = secrets(&component(&plan).environment)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["OPENCLAW_GATEWAY_PASSWORD"]);
}

#[test]
fn a_dedicated_version_has_no_plan() {
    let mut snapshot = snapshot(usual(), &[]);
    snapshot.harness.mode = ExecutionMode::Dedicated;
    assert_eq!(
        plan(&snapshot, Listen::Loopback).expect_err("dedicated").message,
        message::EMBEDDED
    );
}

#[test]
fn stock_workspace_files_are_made_unless_the_document_leaves_them_out() {
    let command = |value: Value| {
        let plan = plan_of(value);
        let layout = layout("/agent", "/tools/node", "/tools/openclaw/openclaw.mjs");
        let workspace = component(&plan).workspace.clone().expect("an initialization");
        assert_eq!(
            workspace.templates.resolve(&layout).as_deref(),
            Ok("/tools/openclaw/docs/reference/templates")
        );
        workspace
            .command
            .iter()
            .map(|text| text.resolve(&layout).expect("resolved"))
            .collect::<Vec<_>>()
    };
    let setup = [
        "/tools/node",
        "/tools/openclaw/openclaw.mjs",
        "setup",
        "--baseline",
        "--workspace",
        "/agent/workspace",
    ];
    assert_eq!(command(usual()), setup);
    assert_eq!(
        command(with(usual(), "/agents/defaults/skipBootstrap", json!(false))),
        setup
    );
    for (at, value) in [
        ("/agents/defaults/skipBootstrap", json!(true)),
        ("/agents/defaults/skipOptionalBootstrapFiles", json!(["SOUL.md"])),
    ] {
        assert_eq!(command(with(usual(), at, value)), ["/tools/node", "--version"]);
    }
}

#[test]
fn the_supervisor_accepts_the_plan() {
    let plan = plan(&snapshot(usual(), &["SLACK_BOT_TOKEN"]), Listen::Loopback).expect("a plan");
    let layout = layout("/agent", "/tools/node", "/tools/openclaw/openclaw.mjs");
    let file = |name: &str| format!("/agent/run/{name}");
    let placement = Placement {
        namespace_id: NamespaceId::random(),
        agent_id: AgentId::random(),
        revision_id: RevisionId::random(),
        layout: &layout,
        files: Files {
            status: file("status"),
            lock: file("lock"),
            log: file("log"),
        },
        log: LogPolicy::default(),
        limits: Limits::default(),
        setup: None,
        status_listen: None,
    };
    let spec = LaunchSpec::from_component(component(&plan), placement).expect("every place can be filled");
    spec.validate().expect("a valid spec");
    assert_eq!(spec.command[2..], ["gateway", "run", "--port", "40123"]);
    assert_eq!(spec.readiness.url, "http://127.0.0.1:40123/readyz");
    let keys: Vec<_> = spec.secret_keys().into_iter().collect();
    assert_eq!(
        keys,
        ["binding:SLACK_BOT_TOKEN", "gatewayPassword", "harnessCredential"]
    );
}
