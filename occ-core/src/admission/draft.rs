//! Admission of an Agent's draft: its creation and its changes (seed: Agents; spec/engine 3.1).

use super::{
    DetailCode, Grants, Phrase, Refusal, plugins,
    source::{self, Sources},
};
use crate::{
    driver::{AccessRequest, Action, PluginDriver, ResourceKind, ResourceRef},
    id::{AgentId, ConfigurationId, CredentialSourceId, NamespaceId},
    reason::ApiCode,
    resource::{
        Agent, AgentStatus, Approver, Backend, BackendId, HarnessAuth, NamespaceStatus, Plugins, PrincipalId, Secret,
        ServiceAccount,
    },
    store::{AgentRow, ConfigurationRow, NamespaceRow, SavedField},
};

/// All that a draft is decided on.
#[derive(Clone)]
pub struct DraftInputs<'a> {
    /// Who asks.
    pub caller: &'a PrincipalId,
    /// The Namespace of the request.
    pub namespace: NamespaceId,
    /// The Agent that is changed; none at creation.
    pub agent: Option<AgentId>,
    /// The Configuration that the request names.
    pub configuration_id: ConfigurationId,
    /// The authentication that the request names; what is kept or cleared is not named.
    pub harness_auth: Option<HarnessAuth>,
    /// The Backend that the request names.
    pub backend_id: Option<&'a BackendId>,
    /// The configured Backends.
    pub backends: &'a [Backend],
    /// The credential sources that the request names.
    pub credential_sources: &'a [CredentialSourceId],
    /// The records of the credential sources that the request names.
    pub sources: Sources<'a>,
    /// The plugins that the request selects; what is kept or cleared is not named.
    pub plugins: &'a Plugins,
    /// Who approves, if the request says so.
    pub plugin_approvers: Option<&'a [Approver]>,
    /// The selected Plugin Driver; only its pure methods are called.
    pub plugin_driver: Option<&'a dyn PluginDriver>,
    /// The answers to [`permission`] and [`required`].
    pub grants: &'a Grants,
    /// The Namespace's row.
    pub namespace_row: Option<&'a NamespaceRow>,
    /// The Agent's row.
    pub agent_row: Option<&'a AgentRow>,
    /// The saved settings that the request replaces or clears.
    pub replaced: &'a [SavedField],
    /// The named Configuration's row.
    pub configuration: Option<&'a ConfigurationRow>,
    /// The Secrets that the request and the named Configuration refer to, as far as they exist.
    pub secrets: &'a [Secret],
    /// The service account that the request names, if it exists.
    pub account: Option<&'a ServiceAccount>,
    /// The selected Secret Driver.
    pub secret_driver: &'a str,
    /// Whether the stock workspace files that the request names are those of the runtime that will apply them.
    pub defaults_known: bool,
}

/// A check and its name; the name is for tests and for people, not for callers.
pub type Check = (&'static str, fn(&DraftInputs<'_>) -> Result<(), Refusal>);

/// The order at creation.
pub const CREATE: &[Check] = &[
    ("create_permission", draft_permission),
    ("namespace_exists", namespace_exists),
    ("namespace_accepts", namespace_accepts),
    ("backend_configured", backend_configured),
    ("configuration_permission", configuration_permission),
    ("configuration_exists", configuration_exists),
    ("harness_auth_namespace", harness_auth_namespace),
    ("harness_auth_permission", harness_auth_permission),
    ("harness_auth_source", harness_auth_source),
    ("credential_sources_permission", credential_sources_permission),
    ("credential_sources_gateway", credential_sources_gateway),
    ("plugins_supported", plugins_supported),
    ("secret_bindings_permission", secret_bindings_permission),
    ("secret_bindings_secrets", secret_bindings_secrets),
    ("workspace_defaults", workspace_defaults),
];

/// The order at a change. Of the current binding only the caller's grant is checked and no record is read, so that after a
/// driver switch it can still be cleared or replaced; what the request names is checked whole (seed).
pub const UPDATE: &[Check] = &[
    ("update_permission", draft_permission),
    ("namespace_exists", namespace_exists),
    ("agent_exists", |i| current(i).map(|_| ())),
    ("agent_active", agent_active),
    ("settings_readable", settings_readable),
    ("backend_configured", backend_configured),
    ("configuration_permission", configuration_permission),
    ("configuration_exists", configuration_exists),
    ("current_auth_permission", current_auth_permission),
    ("harness_auth_namespace", harness_auth_namespace),
    ("harness_auth_permission", harness_auth_permission),
    ("harness_auth_source", harness_auth_source),
    ("credential_sources_permission", credential_sources_permission),
    ("credential_sources_gateway", credential_sources_gateway),
    ("plugins_supported", plugins_supported),
    ("secret_bindings_permission", secret_bindings_permission),
    ("secret_bindings_secrets", secret_bindings_secrets),
];

/// The first question, asked before anything is looked up.
pub fn permission(caller: &PrincipalId, namespace: NamespaceId, agent: Option<AgentId>) -> AccessRequest {
    let (action, resource) = match agent {
        None => (Action::Create, ResourceRef::collection(ResourceKind::Agent, namespace)),
        Some(agent) => (Action::Update, ResourceRef::agent(namespace, agent)),
    };
    AccessRequest {
        principal: caller.clone(),
        action,
        resource,
    }
}

/// The other questions, once the rows are known; all are the caller's.
pub fn required(
    caller: &PrincipalId,
    namespace: NamespaceId,
    configuration_id: ConfigurationId,
    auths: &[Option<HarnessAuth>],
    credential_sources: &[CredentialSourceId],
    configuration: Option<&ConfigurationRow>,
) -> Vec<AccessRequest> {
    let mut requests = vec![AccessRequest {
        principal: caller.clone(),
        action: Action::Read,
        resource: ResourceRef::configuration(namespace, configuration_id),
    }];
    requests.extend(
        auths
            .iter()
            .flatten()
            .filter_map(|auth| source::auth_request(caller, namespace, auth)),
    );
    requests.extend(
        credential_sources
            .iter()
            .map(|id| source::operate_source(caller, namespace, *id)),
    );
    if let Some(row) = configuration {
        requests.extend(source::binding_requests(caller, namespace, &row.secret_bindings));
    }
    requests
}

/// Decides: [`CREATE`] without an Agent, [`UPDATE`] with one.
pub fn admit(inputs: &DraftInputs<'_>) -> Result<(), Refusal> {
    let order = if inputs.agent.is_none() { CREATE } else { UPDATE };
    order.iter().try_for_each(|(_, check)| check(inputs))
}

fn draft_permission(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    i.grants
        .require(&permission(i.caller, i.namespace, i.agent))
        .map(|_| ())
}

fn namespace_exists(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    i.namespace_row.map(|_| ()).ok_or_else(Refusal::not_found)
}

fn namespace_accepts(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    accepts(i.namespace_row.ok_or_else(Refusal::not_found)?)
}

/// A Namespace that is failed or being deleted takes nothing new (seed: Namespace ownership).
pub(crate) fn accepts(row: &NamespaceRow) -> Result<(), Refusal> {
    match row.namespace.status {
        NamespaceStatus::Provisioning | NamespaceStatus::Ready => Ok(()),
        NamespaceStatus::Failed => Err(Refusal::conflict("The Namespace failed and accepts nothing new.")),
        NamespaceStatus::Deleting => Err(Refusal::conflict(
            "The Namespace is being deleted and accepts nothing new.",
        )),
    }
}

fn current<'a>(i: &DraftInputs<'a>) -> Result<&'a Agent, Refusal> {
    i.agent_row.map(|row| &row.agent).ok_or_else(Refusal::not_found)
}

fn agent_active(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    match current(i)?.status {
        AgentStatus::Active => Ok(()),
        AgentStatus::Deleting => Err(Refusal::new(ApiCode::AgentDeleting)),
    }
}

/// What cannot be read is replaced, and never written back as if it had been empty.
fn settings_readable(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    let row = i.agent_row.ok_or_else(Refusal::not_found)?;
    let kept = row.unreadable.iter().filter(|field| !i.replaced.contains(field));
    readable(&kept.copied().collect::<Vec<_>>())
}

/// 409 that names the saved settings of an Agent that cannot be read.
pub(crate) fn readable(unreadable: &[SavedField]) -> Result<(), Refusal> {
    if unreadable.is_empty() {
        return Ok(());
    }
    let phrase = Phrase::new("Saved settings of the Agent cannot be read: ")
        .list(unreadable)
        .text(". Replace them in an update of the Agent.");
    Err(Refusal::saying(ApiCode::ResourceConflict, phrase))
}

/// Seed: a nonempty id that names no configured Backend is not found.
fn backend_configured(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    match i.backend_id {
        Some(id) if i.backends.iter().all(|backend| backend.id != *id) => Err(Refusal::not_found()),
        _ => Ok(()),
    }
}

fn configuration_permission(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    let resource = ResourceRef::configuration(i.namespace, i.configuration_id);
    let request = AccessRequest {
        principal: i.caller.clone(),
        action: Action::Read,
        resource,
    };
    i.grants.require(&request).map(|_| ())
}

fn configuration_exists(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    if i.configuration.ok_or_else(Refusal::not_found)?.deleting {
        return Err(Refusal::conflict("The Configuration is being deleted."));
    }
    Ok(())
}

fn granted(i: &DraftInputs<'_>, auth: Option<&HarnessAuth>) -> Result<(), Refusal> {
    match auth.and_then(|auth| source::auth_request(i.caller, i.namespace, auth)) {
        Some(request) => i.grants.require(&request).map(|_| ()),
        None => Ok(()),
    }
}

fn current_auth_permission(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    let agent = current(i)?;
    granted(i, agent.harness_auth.as_ref())?;
    agent.credential_sources.iter().try_for_each(|source| {
        let request = source::operate_source(i.caller, i.namespace, source.source_id);
        i.grants.require(&request).map(|_| ())
    })
}

/// A Secret of another Namespace is a malformed request; an account that is not in the Agent's Namespace is not found (seed:
/// Failure semantics).
fn harness_auth_namespace(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    match i.harness_auth.as_ref().and_then(source::auth_namespace) {
        Some(namespace) if namespace != i.namespace && source::account_of(i.harness_auth.as_ref()).is_some() => {
            Err(Refusal::not_found())
        }
        Some(namespace) if namespace != i.namespace => Err(Refusal::invalid(
            "The harnessAuth source must belong to the Agent's Namespace.",
        )
        .at("/harnessAuth/source/namespaceId", DetailCode::InvalidValue)),
        _ => Ok(()),
    }
}

fn harness_auth_permission(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    granted(i, i.harness_auth.as_ref())
}

fn harness_auth_source(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    i.harness_auth.as_ref().map_or(Ok(()), |auth| {
        source::auth_source(i.secrets, i.account, i.sources, auth, i.secret_driver)
    })
}

fn credential_sources_permission(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    i.credential_sources.iter().try_for_each(|id| {
        let request = source::operate_source(i.caller, i.namespace, *id);
        i.grants.require(&request).map(|_| ())
    })
}

fn credential_sources_gateway(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    let mut named = i.credential_sources.iter();
    named.try_for_each(|id| i.sources.usable(*id).map(|_| ()))
}

fn plugins_supported(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    plugins::supported(i.plugin_driver, i.plugins, i.plugin_approvers)
}

fn secret_bindings_permission(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    let row = i.configuration.ok_or_else(Refusal::not_found)?;
    source::bindings_granted(i.grants, i.caller, i.namespace, &row.secret_bindings)
}

fn secret_bindings_secrets(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    let row = i.configuration.ok_or_else(Refusal::not_found)?;
    source::bindings_owned(i.secrets, &row.secret_bindings, i.secret_driver)
}

fn workspace_defaults(i: &DraftInputs<'_>) -> Result<(), Refusal> {
    if i.defaults_known {
        return Ok(());
    }
    Err(Refusal::conflict(
        "The workspaceDefaultsId is not the one of the current stock files.",
    ))
}
