//! A deployment that is admitted, and everything that can be wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use occ_core::{
    admission::{
        Grants, Refusal,
        deploy::{self, Admitted, CHECKS, DeployInputs, Gathered},
    },
    audit::Authorization,
    driver::{AccessRequest, Action, Decision, Evidence, Rejection, ResourceKind, SettingRejection, Terminal},
    id::{AgentId, ConfigurationId, NamespaceId, SecretId},
    installation::Drivers,
    resource::{
        Agent, AgentStatus, BackendRef, ConfigurationKind, DesiredRuntimeState, ExecutionMode, HarnessAuth, Namespace,
        NamespaceStatus, Plugins, PrincipalId, Secret, SecretBinding, SecretDelivery, SecretSource, SecretSourceKind,
    },
    store::{AgentRow, ConfigurationRow, DeployRead, NamespaceRow, SavedField},
    time::Timestamp,
};
use occ_test_support::drivers::{NullCompute, PlainHarness, PlainSandbox, document, drivers};
use serde_json::json;

/// What fails; each by the name of the check that refuses it, or a second way by a name of its own.
pub type Faults<'a> = BTreeSet<&'a str>;

/// A deployment in which these things fail and nothing else does.
pub struct Scene {
    pub caller: PrincipalId,
    pub read: DeployRead,
    pub grants: Grants,
    pub document: Gathered<Option<(u64, occ_core::resource::Document)>>,
    pub secrets: BTreeMap<SecretId, Gathered<BackendRef>>,
    pub credentials: Option<Gathered<bool>>,
    pub drivers: Drivers,
    namespace: NamespaceId,
    agent: AgentId,
}

pub fn principal(text: &str) -> PrincipalId {
    text.parse().expect("a principal's id")
}

/// A selection of one plugin.
pub fn calendar() -> Plugins {
    serde_json::from_value(json!({ "calendar@curated": { "enabled": true } })).expect("a selection")
}

pub fn source(namespace_id: NamespaceId, id: SecretId) -> SecretSource {
    SecretSource {
        kind: SecretSourceKind::Secret,
        namespace_id,
        id,
    }
}

pub fn secret(namespace_id: NamespaceId, id: SecretId, driver_id: &str) -> Secret {
    let backend_ref = BackendRef {
        namespace_name: "vault".to_owned(),
        name: id.to_string(),
        key: "value".to_owned(),
        uid: "1".to_owned(),
    };
    let name = "key".parse().expect("a name");
    let created_at = Timestamp::from_millis(0);
    Secret {
        id,
        namespace_id,
        name,
        driver_id: driver_id.to_owned(),
        backend_ref,
        version: 1,
        deleting: false,
        created_at,
    }
}

pub fn answer(request: AccessRequest, allowed: bool) -> Authorization {
    let decision = Decision {
        allowed,
        driver_id: "iam-native".to_owned(),
        evidence: Evidence::default(),
    };
    Authorization { request, decision }
}

impl Scene {
    #[allow(clippy::too_many_lines)] // One line a fault.
    pub fn with(faults: &Faults<'_>) -> Self {
        let fails = |name: &str| faults.contains(name);
        let (caller, agent_principal) = (principal("prn_ada"), principal("spn_agent"));
        let (namespace, agent) = (NamespaceId::random(), AgentId::random());
        let (key, bound) = (SecretId::random(), SecretId::random());
        let now = Timestamp::from_millis(1_000);

        let sandbox = match (
            fails("sandbox_topology"),
            fails("sandbox_document"),
            fails("sandbox_refuses"),
        ) {
            (_, true, _) => Some(PlainSandbox::with(|mut document| {
                document.insert("harness".to_owned(), json!("other"));
                Ok(document)
            })),
            (_, _, true) => Some(PlainSandbox::with(|_| Err(Terminal::SandboxHarnessUnsupported))),
            (true, ..) => Some(PlainSandbox::with(Ok)),
            _ => None,
        };
        let mode = if sandbox.is_some() && !fails("sandbox_topology") {
            ExecutionMode::Dedicated
        } else {
            ExecutionMode::Embedded
        };
        let modes = match (fails("harness_available"), mode) {
            (false, _) => vec![ExecutionMode::Embedded, ExecutionMode::Dedicated],
            (true, ExecutionMode::Embedded) => vec![ExecutionMode::Dedicated],
            (true, ExecutionMode::Dedicated) => vec![ExecutionMode::Embedded],
        };
        let compute = NullCompute::default();
        if fails("compute_topology") {
            compute.reject_auth(Some(Rejection::Unsupported("This Compute delivers no credential.")));
        }
        if fails("gateway_settings") {
            let rejection = SettingRejection {
                setting: "gateway.tls.enabled",
                accepted: "must be omitted or false",
            };
            compute.reject_settings(Some(rejection));
        }
        let drivers = drivers(compute, PlainHarness::named("plain", &modes), sandbox);
        let own = drivers.secret.identity().id.clone();

        let auth = if fails("harness_auth_supported") {
            HarnessAuth::CredentialSource {
                source_id: occ_core::id::CredentialSourceId::random(),
            }
        } else {
            HarnessAuth::ApiKey {
                source: source(namespace, key),
            }
        };
        let agent_row = Agent {
            id: agent,
            namespace_id: namespace,
            name: "triage".parse().expect("a name"),
            service_principal_id: agent_principal.clone(),
            configuration_id: ConfigurationId::random(),
            backend_id: fails("backend_configured").then(|| "chatgpt".parse().expect("a Backend's id")),
            harness_auth: (!fails("harness_auth_present")).then_some(auth),
            execution_mode: mode,
            credential_sources: Vec::new(),
            plugins: if fails("plugins_supported") {
                calendar()
            } else {
                Plugins::new()
            },
            plugin_approvers: None,
            desired_runtime_state: DesiredRuntimeState::Stopped,
            active_revision_id: None,
            status: if fails("agent_active") {
                AgentStatus::Deleting
            } else {
                AgentStatus::Active
            },
            created_at: now,
        };
        let name = occ_core::resource::EnvName::try_from("SLACK_BOT_TOKEN".to_owned()).expect("a variable's name");
        let binding = SecretBinding {
            source: source(namespace, bound),
            delivery: SecretDelivery::Env,
        };
        let configuration = ConfigurationRow {
            id: agent_row.configuration_id,
            namespace_id: namespace,
            kind: ConfigurationKind::Agent,
            generation: 3,
            secret_bindings: [(name, binding)].into(),
            deleting: false,
            created_at: now,
        };
        let of = |fault| {
            if fails(fault) {
                "secret-of-yesterday"
            } else {
                own.as_str()
            }
        };
        let mut secrets = vec![
            secret(namespace, key, of("harness_auth_secret")),
            secret(namespace, bound, of("secret_bindings_secrets")),
        ];
        secrets.retain(|s| !(fails("harness_auth_secret_exists") && s.id == key));
        let namespace_row = Namespace {
            id: namespace,
            name: "default".parse().expect("a name"),
            existing_namespace: None,
            status: if fails("namespace_ready") {
                NamespaceStatus::Provisioning
            } else {
                NamespaceStatus::Ready
            },
            created_at: now,
        };
        let namespace_row = NamespaceRow {
            namespace: namespace_row,
            version: 1,
            deletion_actor: None,
        };
        let read = DeployRead {
            now,
            namespace: (!fails("namespace_exists")).then_some(namespace_row),
            agent: (!fails("agent_exists")).then_some(AgentRow {
                agent: agent_row,
                version: 4,
                unreadable: fails("settings_readable")
                    .then_some(SavedField::Plugins)
                    .into_iter()
                    .collect(),
            }),
            configuration: (!fails("configuration_exists")).then_some(configuration),
            secrets,
            revisions: if fails("transport_credentials_kept") { 2 } else { 0 },
            policy: Vec::new(),
            records: Vec::new(),
        };

        let denied = |request: &AccessRequest| {
            let of_caller = request.principal == caller;
            match (request.action, request.resource.kind) {
                (Action::Deploy, _) => fails("deploy_permission"),
                (Action::Read, ResourceKind::Configuration) => fails("configuration_permission"),
                (_, ResourceKind::Agent) => fails("transport_credentials_permission"),
                (_, ResourceKind::CredentialSource) => fails("harness_auth_permission"),
                (_, ResourceKind::Secret) if of_caller && request.resource.id == key.to_string() => {
                    fails("harness_auth_permission")
                }
                (_, ResourceKind::Secret) if of_caller => fails("secret_bindings_permission"),
                _ => fails("agent_principal"),
            }
        };
        let mut questions = vec![deploy::permission(&caller, namespace, agent)];
        questions.extend(deploy::required(&caller, &read));
        let grants = Grants::new(
            questions
                .into_iter()
                .map(|q| {
                    let allowed = !denied(&q);
                    answer(q, allowed)
                })
                .collect(),
        );

        let mut values = json!({});
        if fails("harness_selected") {
            values["harness"] = json!("");
        }
        if fails("document_valid") {
            values["broken"] = json!(true);
        }
        let document = if fails("configuration_document") {
            Gathered::Failed(Refusal::unavailable("The Configuration Driver is unavailable."))
        } else {
            Gathered::Known(Some((3, document(values))))
        };
        let secrets = read.secrets.iter().map(|s| {
            let mut now = s.backend_ref.clone();
            if fails("secrets_resolved") {
                "2".clone_into(&mut now.uid);
            }
            (s.id, Gathered::Known(now))
        });
        let secrets = secrets.collect();
        let missing = fails("transport_credentials_kept") || fails("transport_credentials_permission");
        let credentials = Some(Gathered::Known(!missing));
        Self {
            caller,
            read,
            grants,
            document,
            secrets,
            credentials,
            drivers,
            namespace,
            agent,
        }
    }

    fn inputs(&self) -> DeployInputs<'_> {
        DeployInputs {
            caller: &self.caller,
            namespace: self.namespace,
            agent: self.agent,
            read: &self.read,
            grants: self.grants.clone(),
            document: self.document.clone(),
            secrets: self.secrets.clone(),
            credentials: self.credentials.clone(),
            account: None,
            sources: Vec::new(),
            repeated: None,
            drivers: &self.drivers,
        }
    }

    pub fn admit(&self) -> Result<Admitted, Refusal> {
        deploy::admit(&self.inputs())
    }

    /// The name of the first check that refuses.
    pub fn refused_by(&self) -> Option<&'static str> {
        let inputs = self.inputs();
        CHECKS
            .iter()
            .find(|(_, check)| check(&inputs).is_err())
            .map(|(name, _)| *name)
    }
}
