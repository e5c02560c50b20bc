//! The real `OpenClaw` under the supervisor, against a loopback model server (spec/drivers 7.1, 8.3).
//!
//! Needs `OCC_NODE` and `OCC_OPENCLAW` (`scripts/runtime.sh` provides both); without them each test says that it was skipped.

#[path = "supervisor/workload.rs"]
#[allow(dead_code, reason = "the other test crate uses the rest")]
mod workload;

use std::{collections::BTreeMap, fs};

use occ_core::{
    reason::{Cause, ProbeStatus, RuntimeCode},
    resource::{WorkspaceFileName, WorkspaceFiles, WorkspaceSetup},
};
use occ_runtime::{
    identity::Signal,
    spec::{EnvSource, Environment, Probe},
    status::State,
};
use occ_test_support::model_server::{Behaviour, ModelServer};
use serde_json::{Value, json};
use workload::{Workload, eventually};

const KEY: &str = "sk-canary-openclaw-41c7";

fn programs() -> Option<[String; 2]> {
    let programs = [std::env::var("OCC_NODE"), std::env::var("OCC_OPENCLAW")].map(Result::ok);
    let [Some(node), Some(openclaw)] = programs else {
        eprintln!("skipped: OCC_NODE and OCC_OPENCLAW name no runtime");
        return None;
    };
    Some([node, openclaw])
}

fn document(server: &ModelServer) -> Value {
    json!({
        "gateway": {
            "mode": "local", "bind": "loopback",
            "auth": {
                "mode": "password",
                "password": { "source": "env", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD" },
            },
        },
        "agents": { "defaults": {
            "model": "openai/gpt-5",
            "skipBootstrap": true,
            "models": { "openai/gpt-5": { "agentRuntime": { "id": "openclaw" } } },
        } },
        "models": { "providers": { "openai": {
            "baseUrl": server.base_url(), "api": "openai-responses", "models": [{ "id": "gpt-5", "name": "gpt-5" }],
        } } },
    })
}

fn environment(root: &str, config: &str) -> Environment {
    [
        ("PATH", "/usr/bin:/bin".to_owned()),
        ("HOME", format!("{root}/home")),
        ("TMPDIR", format!("{root}/tmp")),
        ("OPENCLAW_STATE_DIR", format!("{root}/state")),
        ("OPENCLAW_CONFIG_PATH", config.to_owned()),
        ("OPENCLAW_NO_RESPAWN", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), EnvSource::Text(value)))
    .into()
}

/// A workload with the real check, and a fixture in the place of the gateway.
fn checked(programs: &[String; 2], server: &ModelServer) -> Workload {
    let mut workload = Workload::gateway(&[]);
    workload.secrets.insert("harnessCredential".into(), KEY.into());
    let root = format!("{}.probe", workload.spec.files.lock);
    let mut environment = environment(&root, &format!("{root}/state/openclaw.json"));
    environment.insert("OPENAI_API_KEY".into(), EnvSource::Secret("harnessCredential".into()));
    let arguments = [
        "models",
        "status",
        "--json",
        "--probe",
        "--probe-provider",
        "openai",
        "--probe-concurrency",
        "1",
        "--probe-timeout",
        "15000",
        "--probe-max-tokens",
        "256",
    ];
    workload.spec.probe = Some(Probe {
        reader: "openclaw-models-status/1".into(),
        expect: [("provider", "openai"), ("model", "openai/gpt-5")]
            .map(|(k, v)| (k.into(), v.into()))
            .into(),
        command: programs.iter().cloned().chain(arguments.map(str::to_owned)).collect(),
        environment,
        directory: root,
        files: BTreeMap::from([
            ("openclaw.json".to_owned(), document(server).to_string()),
            (
                "agents/main/agent/settings.json".to_owned(),
                r#"{"retry":{"provider":{"maxRetries":0}}}"#.to_owned(),
            ),
        ]),
        base_timeout_ms: 60_000,
        cpu_budget_ms: 45_000,
    });
    workload
}

async fn server(behaviour: Behaviour) -> ModelServer {
    let server = ModelServer::start(behaviour).await.unwrap();
    server.expect_key(Some(KEY));
    server
}

/// The model server needs a runtime of its own beside the blocking test.
fn with_server(behaviour: Behaviour, test: impl FnOnce(&ModelServer)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(server(behaviour));
    test(&server);
    runtime.block_on(server.shutdown());
}

fn outcome(workload: &Workload) -> (RuntimeCode, Option<Cause>) {
    workload.launch();
    let State::Held { failure, .. } = workload.until_held().state else {
        unreachable!()
    };
    assert!(!workload.text("log").contains("canary"));
    assert!(!workload.path("lock.probe").exists());
    (failure.code, failure.cause)
}

#[test]
fn the_real_gateway_starts_after_its_check_and_stops_without_a_rest() {
    let Some(programs) = programs() else { return };
    with_server(Behaviour::echo(), |server| {
        let mut workload = checked(&programs, server);
        for name in ["own", "own/home", "own/tmp", "own/state"] {
            fs::create_dir(workload.path(name)).unwrap();
        }
        let config = workload.path("own/openclaw.json");
        fs::write(&config, document(server).to_string()).unwrap();
        let mut environment = environment(workload.path("own").to_str().unwrap(), config.to_str().unwrap());
        environment.insert("OPENAI_API_KEY".into(), EnvSource::Secret("harnessCredential".into()));
        environment.insert(
            "OPENCLAW_GATEWAY_PASSWORD".into(),
            EnvSource::Secret("gatewayPassword".into()),
        );
        workload
            .secrets
            .insert("gatewayPassword".into(), "canary-password-41c7".into());
        workload.spec.environment = environment;
        let port = workload.port.to_string();
        let gateway = ["gateway", "run", "--port", &port].map(str::to_owned);
        workload.spec.command = programs.iter().cloned().chain(gateway).collect();
        workload.spec.readiness.start_timeout_ms = 240_000;
        let supervisor = workload.launch();
        workload.until_ready();
        assert!(!server.requests().is_empty());
        let log = workload.text("log");
        assert!(log.contains("\"event\":\"openclaw.model_probe\"") && log.contains("\"code\":\"READY\""));
        assert!(!log.contains("canary"));
        supervisor.signal(Signal::Terminate).unwrap();
        eventually("its end", || (!supervisor.is_alive()).then_some(()));
        assert_eq!(workload.status().unwrap().state, State::Stopped);
        assert!(workload.tree_is_gone());
        assert_eq!(workload.get("/readyz"), None);
    });
}

#[test]
fn a_wrong_key_is_an_authentication_failure() {
    let Some(programs) = programs() else { return };
    with_server(Behaviour::echo(), |server| {
        server.expect_key(Some("another key"));
        assert_eq!(
            outcome(&checked(&programs, server)),
            (RuntimeCode::AuthenticationFailed, None)
        );
    });
}

#[test]
fn a_limited_rate_and_an_unknown_model_have_their_own_causes() {
    let Some(programs) = programs() else { return };
    for (behaviour, status) in [
        (Behaviour::RateLimited { retry_after: None }, ProbeStatus::RateLimit),
        (Behaviour::ModelNotFound, ProbeStatus::Format),
    ] {
        with_server(behaviour, |server| {
            let failed = (RuntimeCode::ModelProbeFailed, Some(Cause::ProbeStatus(status)));
            assert_eq!(outcome(&checked(&programs, server)), failed);
        });
    }
}

#[test]
fn the_real_setup_is_applied_once() {
    let Some(programs) = programs() else { return };
    let mut workload = Workload::gateway(&[]).with_workspace(&[]);
    let scratch = workload.path("scratch").display().to_string();
    for name in ["", "/home", "/tmp", "/state"] {
        fs::create_dir(format!("{scratch}{name}")).unwrap();
    }
    let workspace = workload.spec.workspace.as_mut().unwrap();
    let package = std::path::Path::new(&programs[1]).parent().unwrap();
    workspace.templates = package.join("docs/reference/templates").display().to_string();
    let setup = ["setup", "--baseline", "--workspace", &workspace.directory].map(str::to_owned);
    workspace.command = programs.iter().cloned().chain(setup).collect();
    workspace.environment = environment(&scratch, &format!("{scratch}/openclaw.json"));
    workspace.timeout_ms = 120_000;
    workspace.setup = Some(WorkspaceSetup {
        id: "123e4567-e89b-42d3-a456-426614174000".parse().unwrap(),
        defaults_id: None,
        files: Some(WorkspaceFiles(
            [(WorkspaceFileName::Soul, "my soul\n".to_owned())].into(),
        )),
    });
    // A stock text of an earlier start may be replaced.
    fs::create_dir(&workspace.directory).unwrap();
    let template = fs::read_to_string(package.join("docs/reference/templates/SOUL.md")).unwrap();
    let stock = template.split_once("\n---\n\n").unwrap().1.to_owned();
    fs::write(format!("{}/SOUL.md", workspace.directory), stock).unwrap();
    workload.launch();
    workload.until_ready();
    assert_eq!(workload.text("workspace/SOUL.md"), "my soul\n");
    assert!(workload.text("workspace/AGENTS.md").starts_with("# AGENTS.md"));
    assert!(workload.path("workspace/.oce-workspace-setup.json").exists());
}
