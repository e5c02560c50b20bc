//! The plan: one gateway with its built-in Harness.

use std::collections::BTreeMap;

use occ_core::{
    driver::{DocumentProblem, PlanInput},
    plan::{
        Component, Directory, EnvValue, PlannedFile, Probe, Readiness, Role, SecretSlot, Segment, StopPolicy, Text,
        WorkloadPlan, WorkspaceInit,
    },
    reason::Token,
    resource::{Document, ExecutionMode, HarnessAuthMethod},
};
use serde_json::Value;

use crate::{
    Settings,
    document::Place,
    gateway::PASSWORD_VARIABLE,
    message,
    model::Written,
    provider::{Credential, credential, references},
    render::{LOG_FILE_VARIABLE, WORKSPACE_VARIABLE, gateway_document, probe_document, provider_row},
    resolve::{OPENCLAW, resolve},
};

/// The name of the gateway's port.
const PORT: &str = "gateway";
/// The tools that a Compute must know: the Node program, and `openclaw.mjs` inside its package.
const NODE: &str = "node";
const DOCUMENT: &str = "openclaw.json";

/// A gateway is ready after 10 to 40 s, and later where several start at once.
const START_TIMEOUT_MS: u64 = 240_000;
/// CPU time that a check may need (spec/drivers 7.1).
const PROBE_CPU_MS: u64 = 45_000;
const SETUP_TIMEOUT_MS: u64 = 120_000;
const STOP_GRACE_MS: u64 = 30_000;

type Environment = BTreeMap<String, EnvValue>;

/// Plans a version.
pub fn plan(input: PlanInput<'_>, settings: Settings) -> Result<WorkloadPlan, DocumentProblem> {
    let document = &input.snapshot.configuration;
    let root = Place::root(document);
    if input.snapshot.harness.mode != ExecutionMode::Embedded {
        return Err(root.problem(message::EMBEDDED));
    }
    let resolution = resolve(document)?;
    let model = resolution.model.ok_or_else(|| root.problem(message::MODEL_REQUIRED))?;
    if resolution.harness != OPENCLAW {
        return Err(root.problem(message::OTHER_HARNESS));
    }
    let credential = match input.snapshot.harness_auth.binding.method() {
        HarnessAuthMethod::ApiKey => Some(credential(document, &model)?),
        // The operator's own, on the host: neither delivered nor checked (seed: harnessAuth `runtime`).
        HarnessAuthMethod::Runtime => None,
        HarnessAuthMethod::CodexPat | HarnessAuthMethod::CredentialSource => {
            return Err(root.problem(message::AUTH));
        }
    };
    let bindings: Environment = input
        .snapshot
        .secret_bindings
        .keys()
        .map(|name| (name.to_string(), EnvValue::Secret(SecretSlot::Binding(name.clone()))))
        .collect();
    if let Some(Credential { variable, .. }) = credential
        && bindings.contains_key(variable)
    {
        let key = root.path(&["models", "providers", model.0.provider, "apiKey"])?;
        return Err(key.problem(message::API_KEY_BOUND));
    }
    let probe = match &credential {
        Some(credential) => Some(probe(document, &model, credential, &bindings, settings)?),
        None => None,
    };
    let component = Component {
        name: Token::known("gateway"),
        role: Role::Combined,
        command: openclaw([literal("gateway"), literal("run"), literal("--port"), Text::port(PORT)]),
        environment: environment(credential.as_ref(), bindings),
        files: vec![PlannedFile {
            name: DOCUMENT.to_owned(),
            content: Text::literal(gateway_document(
                document,
                model.0,
                input.compute.listen,
                settings.log_level,
            )),
        }],
        ports: vec![PORT.to_owned()],
        mounts: vec![
            Directory::Files,
            Directory::State,
            Directory::Workspace,
            Directory::Home,
            Directory::Temporary,
        ],
        // OpenClaw reads a `.env` file where it starts; in the workspace that would be the agent's own.
        working_directory: Directory::State,
        readiness: Readiness {
            port: PORT.to_owned(),
            path: "/readyz".to_owned(),
            start_timeout_ms: START_TIMEOUT_MS,
        },
        probe,
        workspace: Some(workspace(&root)?),
        stop: StopPolicy {
            grace_ms: STOP_GRACE_MS,
        },
    };
    Ok(WorkloadPlan {
        components: vec![component],
    })
}

fn literal(text: &str) -> Text {
    Text::literal(text)
}

fn openclaw<const N: usize>(arguments: [Text; N]) -> Vec<Text> {
    [Text::tool(NODE), Text::tool(OPENCLAW)]
        .into_iter()
        .chain(arguments)
        .collect()
}

fn text(value: Text) -> EnvValue {
    EnvValue::Text(value)
}

/// What every OpenClaw process gets: where it is, and that it neither starts itself anew nor replaces its own package.
fn base(home: Text, state: Text, config: Text) -> Environment {
    let path = Text(vec![
        Segment::ToolDirectory(NODE.to_owned()),
        Segment::Literal(":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
    ]);
    [
        ("PATH", path),
        ("HOME", home),
        ("TMPDIR", Text::directory(Directory::Temporary)),
        ("OPENCLAW_STATE_DIR", state),
        ("OPENCLAW_CONFIG_PATH", config),
        // Without it the command line tool starts a second process in a session of its own, which a supervisor would lose.
        ("OPENCLAW_NO_RESPAWN", literal("1")),
        ("OPENCLAW_NO_AUTO_UPDATE", literal("1")),
        ("NODE_USE_SYSTEM_CA", literal("1")),
    ]
    .map(|(name, value)| (name.to_owned(), text(value)))
    .into()
}

fn environment(credential: Option<&Credential<'_>>, bindings: Environment) -> Environment {
    let mut environment = base(
        Text::directory(Directory::Home),
        Text::directory(Directory::State),
        Text::path(Directory::Files, DOCUMENT),
    );
    let own = [
        ("OPENCLAW_GATEWAY_PORT", text(Text::port(PORT))),
        (PASSWORD_VARIABLE, EnvValue::Secret(SecretSlot::GatewayPassword)),
        // The document is the version's: it is changed by deploying another one.
        ("OPENCLAW_CONFIG_READONLY", text(literal("1"))),
        // Without it a start that failed hands the machine to an agent with model calls, which is told to repair it.
        ("OPENCLAW_SUPERVISOR_MODE", text(literal("external"))),
        (WORKSPACE_VARIABLE, text(Text::directory(Directory::Workspace))),
        (
            LOG_FILE_VARIABLE,
            text(Text::path(Directory::State, "logs/openclaw.jsonl")),
        ),
    ];
    environment.extend(own.map(|(name, value)| (name.to_owned(), value)));
    environment.extend(bindings);
    if let Some(credential) = credential {
        let secret = EnvValue::Secret(SecretSlot::HarnessCredential);
        environment.insert(credential.variable.to_owned(), secret);
    }
    environment
}

/// The check of the model (spec/drivers 7.1, step 2): one provider, one row, in directories of its own.
fn probe(
    document: &Document,
    model: &Written<'_>,
    credential: &Credential<'_>,
    bindings: &Environment,
    settings: Settings,
) -> Result<Probe, DocumentProblem> {
    let (model, _) = model;
    let mut environment = base(
        Text::directory(Directory::Home),
        Text::directory(Directory::State),
        Text::path(Directory::State, DOCUMENT),
    );
    if let Some(row) = provider_row(document, model.provider)? {
        let row = Value::Object(row.clone());
        let named = references(&row)
            .into_iter()
            .filter_map(|name| bindings.get_key_value(name));
        environment.extend(named.map(|(name, value)| (name.clone(), value.clone())));
    }
    let secret = EnvValue::Secret(SecretSlot::HarnessCredential);
    environment.insert(credential.variable.to_owned(), secret);
    let mut expect: BTreeMap<String, String> = [
        ("provider", model.provider),
        ("model", model.text),
        ("source", credential.source),
        ("credentialEnv", credential.variable),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    if let Some(address) = credential.preflight {
        expect.insert("preflight".to_owned(), address.to_owned());
    }
    let file = |name: &str, content: String| PlannedFile {
        name: name.to_owned(),
        content: Text::literal(content),
    };
    Ok(Probe {
        reader: "openclaw-models-status/1".to_owned(),
        expect,
        command: openclaw([
            literal("models"),
            literal("status"),
            literal("--json"),
            literal("--probe"),
            literal("--probe-provider"),
            literal(model.provider),
            literal("--probe-concurrency"),
            literal("1"),
            literal("--probe-timeout"),
            literal("15000"),
            literal("--probe-max-tokens"),
            literal("256"),
        ]),
        environment,
        files: vec![
            file(DOCUMENT, probe_document(document, *model)?),
            // Its own repetitions of a failed request outlast the check, and hide a 429 behind a timeout.
            file(
                "agents/main/agent/settings.json",
                r#"{"retry":{"provider":{"maxRetries":0}}}"#.to_owned(),
            ),
        ],
        base_timeout_ms: u64::from(settings.probe_timeout_seconds) * 1000,
        cpu_budget_ms: PROBE_CPU_MS,
    })
}

/// The native initialization. It rewrites its configuration file, so that it gets a place to throw away.
fn workspace(root: &Place<'_>) -> Result<WorkspaceInit, DocumentProblem> {
    let defaults = root.path(&["agents", "defaults"])?;
    let wanted = defaults.get("skipBootstrap")?.boolean()? != Some(true)
        && defaults.get("skipOptionalBootstrapFiles")?.items()?.is_empty();
    let scratch = |below: &str| Text::path(Directory::Temporary, &format!("setup/{below}"));
    let command = if wanted {
        let workspace = Text::directory(Directory::Workspace);
        openclaw([
            literal("setup"),
            literal("--baseline"),
            literal("--workspace"),
            workspace,
        ])
    } else {
        // The document leaves stock files out. What it still wants, the gateway makes when it starts.
        vec![Text::tool(NODE), literal("--version")]
    };
    Ok(WorkspaceInit {
        command,
        environment: base(scratch("home"), scratch("state"), scratch(DOCUMENT)),
        timeout_ms: SETUP_TIMEOUT_MS,
        templates: Text(vec![
            Segment::ToolDirectory(OPENCLAW.to_owned()),
            Segment::Literal("/docs/reference/templates".to_owned()),
        ]),
    })
}
