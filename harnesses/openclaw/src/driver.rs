//! The contract.

use occ_core::{
    driver::{DocumentProblem, DriverIdentity, GatewaySettings, Harness, HarnessSelection, PlanInput},
    plan::WorkloadPlan,
    registry::{BuildError, DriverFactory, HostServices},
    resource::{Document, ExecutionMode, HarnessAuthMethod},
};

use crate::{
    Settings, credential,
    document::Place,
    gateway, message, plan, provider,
    resolve::{OPENCLAW, resolve},
};

/// OpenClaw, embedded: one gateway process with its built-in Harness.
#[derive(Debug, Clone)]
pub struct OpenClaw {
    identity: DriverIdentity,
    settings: Settings,
}

impl DriverFactory for OpenClaw {
    const DRIVER: &'static str = "openclaw";
    const IMPLEMENTATION: &'static str = "occ/openclaw";
    type Settings = Settings;

    fn build(identity: DriverIdentity, settings: Settings, _: &HostServices) -> Result<Self, BuildError> {
        // Documents select a Harness by this name, and revisions pin it.
        if identity.id == OPENCLAW {
            Ok(Self {
                identity,
                settings: settings.check()?,
            })
        } else {
            Err(BuildError::Unavailable(
                "the id of the openclaw Harness must be openclaw".to_owned(),
            ))
        }
    }
}

impl Harness for OpenClaw {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn modes(&self) -> &[ExecutionMode] {
        &[ExecutionMode::Embedded]
    }

    fn select(&self, document: &Document) -> Result<HarnessSelection, DocumentProblem> {
        resolve(document).map(|resolution| HarnessSelection {
            harness: resolution.harness.to_owned(),
        })
    }

    fn validate(
        &self,
        document: &Document,
        mode: ExecutionMode,
        auth: HarnessAuthMethod,
    ) -> Result<(), DocumentProblem> {
        let root = Place::root(document);
        if mode != ExecutionMode::Embedded {
            return Err(root.problem(message::EMBEDDED));
        }
        if !matches!(auth, HarnessAuthMethod::ApiKey | HarnessAuthMethod::Runtime) {
            return Err(root.problem(message::AUTH));
        }
        self.check_saved(document)?;
        refuse_includes(&root)?;
        let resolution = resolve(document)?;
        if resolution.harness != OPENCLAW {
            return Err(root.problem(message::OTHER_HARNESS));
        }
        let Some(model) = resolution.model else {
            return Err(root
                .path(&["agents", "defaults", "model"])?
                .problem(message::MODEL_REQUIRED));
        };
        if auth == HarnessAuthMethod::ApiKey {
            provider::credential(document, &model)?;
        }
        check_agents(&root)?;
        let mode = root.path(&["gateway", "mode"])?;
        if !matches!(mode.text()?, None | Some("local")) {
            return Err(mode.problem(message::GATEWAY_MODE));
        }
        let shell = root.path(&["env", "shellEnv", "enabled"])?;
        if shell.boolean()? == Some(true) {
            Err(shell.problem(message::SHELL_ENVIRONMENT))
        } else {
            Ok(())
        }
    }

    fn check_saved(&self, document: &Document) -> Result<(), DocumentProblem> {
        provider::check_rows(document)?;
        credential::check(document)
    }

    fn workspace_defaults(&self) -> Option<&str> {
        Some(WORKSPACE_DEFAULTS)
    }

    fn gateway_settings(&self, document: &Document) -> Result<GatewaySettings, DocumentProblem> {
        gateway::settings(document)
    }

    fn plan(&self, input: PlanInput<'_>) -> Result<WorkloadPlan, DocumentProblem> {
        plan::plan(input, self.settings)
    }
}

/// SHA-256 of the stock workspace files of OpenClaw 2026.9.6: of the JSON list of `[name, text]`.
const WORKSPACE_DEFAULTS: &str = "c017a28c6f49a9f34629782addcf4d4fe704ee7cb8e068efc6447016ebe22699";

fn check_agents(root: &Place<'_>) -> Result<(), DocumentProblem> {
    let entries = root.path(&["agents", "entries"])?;
    let members = entries.members()?;
    if members.len() > 1 && !members.iter().any(|(id, _)| *id == "main") {
        return Err(entries.problem(message::ENTRY_MAIN));
    }
    let defaults = root.path(&["agents", "defaults"])?;
    defaults.get("skipBootstrap")?.boolean()?;
    defaults.get("skipOptionalBootstrapFiles")?.items().map(drop)
}

fn refuse_includes(place: &Place<'_>) -> Result<(), DocumentProblem> {
    for (key, child) in place.children() {
        if key == Some("$include") {
            return Err(child.problem(message::INCLUDE));
        }
        refuse_includes(&child)?;
    }
    Ok(())
}
