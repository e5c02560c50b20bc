//! What the suite's versions run.
//!
//! The component serves its gateway's port and answers `GET` with JSON:
//!
//! | path | answer |
//! |---|---|
//! | `/readyz` | anything, once it serves |
//! | `/version` | `{"version": …}`: the wish's |
//! | `/starts` | `{"starts": […]}`: the versions that were ever started in this workspace, in order |
//! | `/digest/NAME` | `{"sha256": …}` of its environment variable `NAME`; 404 when it has none |
//! | `/found/NAME` | `{"content": …}`: what the workspace's file `NAME` held when this version was started; 404 for no file |
//!
//! It receives the model credential as `CREDENTIAL` and the Secret that the Configuration binds as `BOUND`. Each version appends a
//! line to the four workspace files when it starts, as an Agent edits them.

use std::collections::BTreeMap;

use occ_core::{
    driver::Listen,
    plan::{
        Component, Directory, EnvValue, PlannedFile, Probe, Readiness, Role, SecretSlot, StopPolicy, Text,
        WorkloadPlan, WorkspaceInit,
    },
    reason::Token,
    resource::EnvName,
};

use super::Wish;

/// The tool that [`python_server`] needs: Python 3.
pub const PYTHON: &str = "python3";
/// The environment variable that the Configuration of the suite's versions binds a Secret to.
pub const BOUND: &str = "BOUND";

const PORT: &str = "gateway";
const PROGRAM: &str = "component.py";
/// Generous: the machine may be busy, and nothing waits for it to pass.
const TIMEOUT_MS: u64 = 120_000;
const GRACE_MS: u64 = 20_000;

/// A small HTTP server in Python 3 on loopback. The Compute must know the tool [`PYTHON`].
pub fn python_server(wish: &Wish) -> WorkloadPlan {
    python_server_on(wish, Listen::Loopback)
}

/// The same, which listens where this Compute's gateways do.
pub fn python_server_on(wish: &Wish, listen: Listen) -> WorkloadPlan {
    let component = Component {
        name: Token::known("gateway"),
        role: Role::Combined,
        command: python(["gateway".into(), Text::port(PORT)]),
        environment: environment(wish, listen),
        files: vec![PlannedFile {
            name: PROGRAM.to_owned(),
            content: include_str!("component.py").into(),
        }],
        ports: vec![PORT.to_owned()],
        mounts: vec![
            Directory::Files,
            Directory::State,
            Directory::Workspace,
            Directory::Home,
            Directory::Temporary,
        ],
        working_directory: Directory::Workspace,
        readiness: Readiness {
            port: PORT.to_owned(),
            path: "/readyz".to_owned(),
            start_timeout_ms: TIMEOUT_MS,
        },
        probe: Some(probe(wish)),
        workspace: wish.workspace.then(|| setup(wish)),
        stop: StopPolicy { grace_ms: GRACE_MS },
    };
    WorkloadPlan {
        components: vec![component],
    }
}

fn python<const N: usize>(arguments: [Text; N]) -> Vec<Text> {
    [Text::tool(PYTHON), Text::path(Directory::Files, PROGRAM)]
        .into_iter()
        .chain(arguments)
        .collect()
}

type Environment = BTreeMap<String, EnvValue>;

fn variables<const N: usize>(variables: [(&str, EnvValue); N]) -> Environment {
    variables.map(|(name, value)| (name.to_owned(), value)).into()
}

fn environment(wish: &Wish, listen: Listen) -> Environment {
    let address = match listen {
        Listen::Loopback => "127.0.0.1",
        Listen::AllAddresses => "0.0.0.0",
    };
    let bound = EnvName::try_from(BOUND.to_owned()).expect("a name that is not reserved");
    let mut environment = variables([
        ("VERSION", EnvValue::Text(wish.version.as_str().into())),
        ("LISTEN", EnvValue::Text(address.into())),
        ("HOME", EnvValue::Text(Text::directory(Directory::Home))),
        ("CREDENTIAL", EnvValue::Secret(SecretSlot::HarnessCredential)),
        (BOUND, EnvValue::Secret(SecretSlot::Binding(bound))),
    ]);
    if wish.password {
        environment.insert("PASSWORD".to_owned(), EnvValue::Secret(SecretSlot::GatewayPassword));
    }
    environment
}

fn probe(wish: &Wish) -> Probe {
    let refused = if wish.refused { "yes" } else { "no" };
    Probe {
        reader: "report/1".to_owned(),
        expect: BTreeMap::new(),
        command: python(["check".into()]),
        environment: variables([
            ("VERSION", EnvValue::Text(wish.version.as_str().into())),
            ("REFUSED", EnvValue::Text(refused.into())),
            ("CREDENTIAL", EnvValue::Secret(SecretSlot::HarnessCredential)),
        ]),
        files: Vec::new(),
        base_timeout_ms: TIMEOUT_MS,
        cpu_budget_ms: TIMEOUT_MS,
    }
}

fn setup(wish: &Wish) -> WorkspaceInit {
    WorkspaceInit {
        command: python(["setup".into()]),
        environment: variables([("VERSION", EnvValue::Text(wish.version.as_str().into()))]),
        timeout_ms: TIMEOUT_MS,
        // The setup writes stock files of its own, so there are no templates that they could equal.
        templates: Text::path(Directory::Files, "templates"),
    }
}
