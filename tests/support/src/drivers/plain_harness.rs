//! A Harness whose native document is a handful of switches.

use std::collections::BTreeMap;

use occ_core::{
    driver::{DocumentProblem, DriverIdentity, DriverKind, GatewaySettings, Harness, HarnessSelection, PlanInput},
    plan::{Component, Directory, EnvValue, Readiness, Role, SecretSlot, StopPolicy, Text, WorkloadPlan},
    reason::Token,
    resource::{Document, ExecutionMode, HarnessAuthMethod},
};
use serde_json::Value;

/// Reads these keys of a document, all optional:
/// - `harness`: the id that it selects; `plain` without it; `""` is a document that selects none;
/// - `broken`: true makes it invalid at deployment;
/// - `apiKey`: a literal credential, refused when the document is saved and at deployment;
/// - `tls`: becomes the neutral gateway setting.
#[derive(Debug)]
pub struct PlainHarness {
    identity: DriverIdentity,
    version: &'static str,
    modes: Vec<ExecutionMode>,
    defaults: Option<String>,
}

impl Default for PlainHarness {
    fn default() -> Self {
        Self::named("plain", &[ExecutionMode::Embedded])
    }
}

impl PlainHarness {
    /// With this id, for these modes.
    pub fn named(id: &str, modes: &[ExecutionMode]) -> Self {
        Self {
            identity: super::identity(DriverKind::Harness, id, "occ/plain"),
            version: "1.0.0",
            modes: modes.to_vec(),
            defaults: None,
        }
    }

    /// The same in another version.
    #[must_use]
    pub fn versioned(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// The same, which knows its stock workspace files.
    #[must_use]
    pub fn with_defaults(mut self, id: &str) -> Self {
        self.defaults = Some(id.to_owned());
        self
    }
}

fn problem(pointer: &str, message: &'static str) -> DocumentProblem {
    DocumentProblem {
        pointer: pointer.to_owned(),
        message,
    }
}

fn flag(document: &Document, key: &str) -> bool {
    document.get(key).and_then(Value::as_bool).unwrap_or(false)
}

impl Harness for PlainHarness {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn version(&self) -> &'static str {
        self.version
    }

    fn modes(&self) -> &[ExecutionMode] {
        &self.modes
    }

    fn select(&self, document: &Document) -> Result<HarnessSelection, DocumentProblem> {
        match document.get("harness") {
            None => Ok(HarnessSelection {
                harness: "plain".to_owned(),
            }),
            Some(Value::String(id)) if !id.is_empty() => Ok(HarnessSelection { harness: id.clone() }),
            Some(_) => Err(problem("/harness", "The document selects no Harness.")),
        }
    }

    fn validate(&self, document: &Document, _: ExecutionMode, _: HarnessAuthMethod) -> Result<(), DocumentProblem> {
        self.check_saved(document)?;
        if flag(document, "broken") {
            return Err(problem("/broken", "The document is broken."));
        }
        Ok(())
    }

    fn check_saved(&self, document: &Document) -> Result<(), DocumentProblem> {
        if document.contains_key("apiKey") {
            return Err(problem("/apiKey", "A credential must be a reference."));
        }
        Ok(())
    }

    fn workspace_defaults(&self) -> Option<&str> {
        self.defaults.as_deref()
    }

    fn gateway_settings(&self, document: &Document) -> Result<GatewaySettings, DocumentProblem> {
        Ok(GatewaySettings {
            tls_enabled: flag(document, "tls"),
            ..GatewaySettings::default()
        })
    }

    fn plan(&self, input: PlanInput<'_>) -> Result<WorkloadPlan, DocumentProblem> {
        let bindings = input.snapshot.secret_bindings.keys();
        let mut environment: BTreeMap<_, _> = bindings
            .map(|name| (name.to_string(), EnvValue::Secret(SecretSlot::Binding(name.clone()))))
            .collect();
        environment.insert("MODEL_KEY".to_owned(), EnvValue::Secret(SecretSlot::HarnessCredential));
        let component = Component {
            name: Token::known("gateway"),
            role: Role::Combined,
            command: vec![Text::tool("plain")],
            environment,
            files: Vec::new(),
            ports: vec!["gateway".to_owned()],
            mounts: vec![Directory::Workspace],
            working_directory: Directory::Workspace,
            readiness: Readiness {
                port: "gateway".to_owned(),
                path: "/readyz".to_owned(),
                start_timeout_ms: 1000,
            },
            probe: None,
            workspace: None,
            stop: StopPolicy { grace_ms: 1000 },
        };
        Ok(WorkloadPlan {
            components: vec![component],
        })
    }
}
