//! Drafts: creation and change (seed: Agents; spec/engine 3.1).

use std::collections::BTreeSet;

use occ_core::{
    admission::{
        Grants, Refusal,
        draft::{self, CREATE, DraftInputs, UPDATE},
        source::Sources,
    },
    driver::{Action, ResourceKind},
    id::{AgentId, ConfigurationId, NamespaceId, SecretId},
    reason::ApiCode,
    resource::{
        Agent, AgentStatus, BackendId, ConfigurationKind, DesiredRuntimeState, EnvName, ExecutionMode, HarnessAuth,
        Namespace, NamespaceStatus, Plugins, SecretBinding, SecretDelivery,
    },
    store::{AgentRow, ConfigurationRow, NamespaceRow, SavedField},
    time::Timestamp,
};

use crate::scene::{Faults, answer, calendar, principal, secret, source};

const CREATE_ORDER: &[(&str, ApiCode)] = &[
    ("create_permission", ApiCode::Forbidden),
    ("namespace_exists", ApiCode::NotFound),
    ("namespace_accepts", ApiCode::ResourceConflict),
    ("backend_configured", ApiCode::NotFound),
    ("configuration_permission", ApiCode::Forbidden),
    ("configuration_exists", ApiCode::NotFound),
    ("harness_auth_namespace", ApiCode::InvalidRequest),
    ("harness_auth_permission", ApiCode::Forbidden),
    ("harness_auth_source", ApiCode::DependencyUnavailable),
    ("credential_sources_permission", ApiCode::Forbidden),
    ("credential_sources_gateway", ApiCode::CredentialGatewayNotConfigured),
    ("plugins_supported", ApiCode::NotImplemented),
    ("secret_bindings_permission", ApiCode::Forbidden),
    ("secret_bindings_secrets", ApiCode::DependencyUnavailable),
    ("workspace_defaults", ApiCode::ResourceConflict),
];

const UPDATE_ORDER: &[(&str, ApiCode)] = &[
    ("update_permission", ApiCode::Forbidden),
    ("namespace_exists", ApiCode::NotFound),
    ("agent_exists", ApiCode::NotFound),
    ("agent_active", ApiCode::AgentDeleting),
    ("settings_readable", ApiCode::ResourceConflict),
    ("backend_configured", ApiCode::NotFound),
    ("configuration_permission", ApiCode::Forbidden),
    ("configuration_exists", ApiCode::NotFound),
    ("current_auth_permission", ApiCode::Forbidden),
    ("harness_auth_namespace", ApiCode::InvalidRequest),
    ("harness_auth_permission", ApiCode::Forbidden),
    ("harness_auth_source", ApiCode::DependencyUnavailable),
    ("credential_sources_permission", ApiCode::Forbidden),
    ("credential_sources_gateway", ApiCode::CredentialGatewayNotConfigured),
    ("plugins_supported", ApiCode::NotImplemented),
    ("secret_bindings_permission", ApiCode::Forbidden),
    ("secret_bindings_secrets", ApiCode::DependencyUnavailable),
];

/// Whether an Agent exists already, and whether the request names its authentication.
#[derive(Clone, Copy, PartialEq)]
enum Request {
    Create,
    Update,
    UpdateThatKeeps,
}

#[allow(clippy::too_many_lines)] // One line a fault.
fn admit(request: Request, faults: &Faults<'_>) -> (Result<(), Refusal>, Option<&'static str>) {
    let fails = |name: &str| faults.contains(name);
    let caller = principal("prn_ada");
    let namespace = NamespaceId::random();
    let agent = (request != Request::Create).then(AgentId::random);
    let configuration_id = ConfigurationId::random();
    let [old, new, bound] = [SecretId::random(), SecretId::random(), SecretId::random()];
    let now = Timestamp::from_millis(0);
    let backend: BackendId = "chatgpt".parse().expect("a Backend's id");
    let status = if fails("namespace_accepts") {
        NamespaceStatus::Failed
    } else {
        NamespaceStatus::Ready
    };
    let namespace_row = NamespaceRow {
        namespace: Namespace {
            id: namespace,
            name: "default".parse().expect("a name"),
            existing_namespace: None,
            status,
            created_at: now,
        },
        version: 1,
        deletion_actor: None,
    };
    let agent_row = agent.map(|id| AgentRow {
        agent: Agent {
            id,
            namespace_id: namespace,
            name: "triage".parse().expect("a name"),
            service_principal_id: principal("spn_agent"),
            configuration_id,
            backend_id: None,
            harness_auth: Some(HarnessAuth::ApiKey {
                source: source(namespace, old),
            }),
            execution_mode: ExecutionMode::Embedded,
            credential_sources: Vec::new(),
            plugins: Plugins::new(),
            plugin_approvers: None,
            desired_runtime_state: DesiredRuntimeState::Stopped,
            active_revision_id: None,
            status: if fails("agent_active") {
                AgentStatus::Deleting
            } else {
                AgentStatus::Active
            },
            created_at: now,
        },
        version: 1,
        unreadable: fails("settings_readable")
            .then_some(SavedField::Plugins)
            .into_iter()
            .collect(),
    });
    let name = EnvName::try_from("SLACK_BOT_TOKEN".to_owned()).expect("a variable's name");
    let binding = SecretBinding {
        source: source(namespace, bound),
        delivery: SecretDelivery::Env,
    };
    let configuration = ConfigurationRow {
        id: configuration_id,
        namespace_id: namespace,
        kind: ConfigurationKind::Agent,
        generation: 1,
        secret_bindings: [(name, binding)].into(),
        deleting: false,
        created_at: now,
    };
    let home = if fails("harness_auth_namespace") {
        NamespaceId::random()
    } else {
        namespace
    };
    let harness_auth = (request != Request::UpdateThatKeeps).then_some(HarnessAuth::ApiKey {
        source: source(home, new),
    });
    let of = |fault| {
        if fails(fault) {
            "secret-of-yesterday"
        } else {
            "secret-now"
        }
    };
    // The current binding's Secret is another driver's always, and its record is not even among what is read.
    let secrets = [
        secret(namespace, new, of("harness_auth_source")),
        secret(namespace, bound, of("secret_bindings_secrets")),
    ];

    let named = fails("credential_sources_permission") || fails("credential_sources_gateway");
    let sources: Vec<_> = named
        .then(occ_core::id::CredentialSourceId::random)
        .into_iter()
        .collect();
    let mut questions = vec![draft::permission(&caller, namespace, agent)];
    let current = agent_row.as_ref().and_then(|row| row.agent.harness_auth);
    let auths = [current, harness_auth];
    questions.extend(draft::required(
        &caller,
        namespace,
        configuration_id,
        &auths,
        &sources,
        Some(&configuration),
    ));
    let grants = questions.into_iter().map(|question| {
        let id = question.resource.id.as_str();
        let denied = match (question.action, question.resource.kind) {
            (Action::Create | Action::Update, ResourceKind::Agent) => {
                fails("create_permission") || fails("update_permission")
            }
            (_, ResourceKind::Configuration) => fails("configuration_permission"),
            (_, ResourceKind::CredentialSource) => fails("credential_sources_permission"),
            _ if id == old.to_string() => fails("current_auth_permission"),
            _ if id == new.to_string() => fails("harness_auth_permission"),
            _ => fails("secret_bindings_permission"),
        };
        answer(question, !denied)
    });
    let grants = Grants::new(grants.collect());
    let plugins = if fails("plugins_supported") {
        calendar()
    } else {
        Plugins::new()
    };
    let inputs = DraftInputs {
        caller: &caller,
        namespace,
        agent,
        configuration_id,
        harness_auth,
        backend_id: fails("backend_configured").then_some(&backend),
        backends: &[],
        credential_sources: &sources,
        sources: Sources::default(),
        plugins: &plugins,
        plugin_approvers: None,
        plugin_driver: None,
        account: None,
        grants: &grants,
        namespace_row: (!fails("namespace_exists")).then_some(&namespace_row),
        replaced: &[SavedField::HarnessAuth],
        agent_row: agent_row.as_ref().filter(|_| !fails("agent_exists")),
        configuration: (!fails("configuration_exists")).then_some(&configuration),
        secrets: &secrets,
        secret_driver: "secret-now",
        defaults_known: !fails("workspace_defaults"),
    };
    let order = if agent.is_none() { CREATE } else { UPDATE };
    let refusing = order
        .iter()
        .find(|(_, check)| check(&inputs).is_err())
        .map(|(name, _)| *name);
    (draft::admit(&inputs), refusing)
}

fn check_order(request: Request, order: &[(&str, ApiCode)]) {
    for (index, (earlier, code)) in order.iter().enumerate() {
        for (later, _) in &order[index..] {
            let (answer, refusing) = admit(request, &BTreeSet::from([*earlier, *later]));
            assert_eq!(refusing, Some(*earlier), "{earlier} and {later}");
            assert_eq!(answer.unwrap_err().code(), *code, "{earlier} and {later}");
        }
    }
}

#[test]
fn at_creation_the_earlier_condition_refuses() {
    let names: Vec<_> = CREATE.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, CREATE_ORDER.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    check_order(Request::Create, CREATE_ORDER);
    assert!(admit(Request::Create, &BTreeSet::new()).0.is_ok());
}

#[test]
fn at_a_change_the_earlier_condition_refuses() {
    let names: Vec<_> = UPDATE.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, UPDATE_ORDER.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    check_order(Request::Update, UPDATE_ORDER);
    assert!(admit(Request::Update, &BTreeSet::new()).0.is_ok());
}

#[test]
fn a_kept_binding_needs_the_callers_grant_and_no_record() {
    assert!(admit(Request::UpdateThatKeeps, &BTreeSet::new()).0.is_ok());
    let (answer, refusing) = admit(Request::UpdateThatKeeps, &BTreeSet::from(["current_auth_permission"]));
    assert_eq!(
        (answer.unwrap_err().code(), refusing),
        (ApiCode::Forbidden, Some("current_auth_permission"))
    );
}
