//! The checks of a deployment, in the order in which they refuse.

use super::{DeployInputs, document_problem, inputs::select, permission};
use crate::{
    admission::{Phrase, Record, Refusal, draft, plugins, source},
    driver::{Action, DriverKind, HarnessAuthRequest, Rejection, ResourceRef},
    reason::ApiCode,
    resource::{AgentStatus, ExecutionMode, HarnessAuth, NamespaceStatus, TokenSource},
};

/// A check and its name; the name is for tests and for people, not for callers.
pub type Check = (&'static str, fn(&DeployInputs<'_>) -> Result<(), Refusal>);

/// The order (seed: Agents and "Deployment admission"; spec/engine 3, spec/contracts 5.12).
///
/// A caller's own grant comes before anything that it guards is revealed; what the Installation supports comes before what the
/// Agent's principal may do; what a driver says of values comes last.
pub const CHECKS: &[Check] = &[
    ("deploy_permission", deploy_permission),
    ("namespace_exists", |i| i.namespace_row().map(|_| ())),
    ("agent_exists", |i| i.agent_row().map(|_| ())),
    ("namespace_ready", namespace_ready),
    ("agent_active", agent_active),
    ("settings_readable", settings_readable),
    ("backend_configured", backend_configured),
    ("sandbox_topology", sandbox_topology),
    ("configuration_permission", configuration_permission),
    ("configuration_exists", |i| i.configuration_row().map(|_| ())),
    ("configuration_document", |i| i.document().map(|_| ())),
    ("harness_selected", |i| i.selection().map(|_| ())),
    ("harness_available", harness_available),
    ("harness_auth_present", |i| harness_auth(i).map(|_| ())),
    ("harness_auth_permission", harness_auth_permission),
    ("secret_bindings_permission", secret_bindings_permission),
    ("harness_auth_supported", harness_auth_supported),
    ("compute_topology", compute_topology),
    ("sandbox_document", sandbox_document),
    ("plugins_supported", plugins_supported),
    ("agent_principal", agent_principal),
    ("harness_auth_secret", harness_auth_secret),
    ("secret_bindings_secrets", secret_bindings_secrets),
    ("secrets_resolved", secrets_resolved),
    ("document_valid", document_valid),
    ("gateway_settings", gateway_settings),
    ("transport_credentials_kept", transport_credentials_kept),
    ("transport_credentials_permission", transport_credentials_permission),
];

fn deploy_permission(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    i.grants
        .require(&permission(i.caller, i.namespace, i.agent))
        .map(|_| ())
}

fn namespace_ready(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    if i.namespace_row()?.status == NamespaceStatus::Ready {
        return Ok(());
    }
    let refusal = Refusal::new(ApiCode::NamespaceNotReady);
    let caller = i.grants.require(&permission(i.caller, i.namespace, i.agent))?.clone();
    Err(refusal.recorded(Record::Failed {
        caller,
        reason: ApiCode::NamespaceNotReady.code(),
    }))
}

fn agent_active(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    match i.agent_row()?.status {
        AgentStatus::Active => Ok(()),
        AgentStatus::Deleting => Err(Refusal::new(ApiCode::AgentDeleting)),
    }
}

/// Nothing is deployed of a draft that is not read whole, and no earlier version in its place: both write the row.
fn settings_readable(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let row = i.read.agent.as_ref().ok_or_else(Refusal::not_found)?;
    draft::readable(&row.unreadable)
}

/// A Backend that the Installation configures no more is as unknown as one that it never did.
fn backend_configured(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    match &i.agent_row()?.backend_id {
        Some(id) if i.drivers.backends().iter().all(|backend| backend.id != *id) => Err(Refusal::not_found()),
        _ => Ok(()),
    }
}

fn sandbox_topology(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    if i.drivers.sandbox.is_some() && i.agent_row()?.execution_mode != ExecutionMode::Dedicated {
        return Err(Refusal::conflict(
            "The selected Sandbox Driver runs dedicated Harnesses only.",
        ));
    }
    mediated_only(i)
}

/// With a gateway no model credential is delivered past it (spec/engine 3, step 10).
fn mediated_only(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    match &i.agent_row()?.harness_auth {
        None | Some(HarnessAuth::CredentialSource { .. } | HarnessAuth::Runtime {}) => Ok(()),
        Some(_) if i.drivers.credential_gateway.is_none() => Ok(()),
        Some(_) => Err(Refusal::conflict(
            "The selected Credential Gateway mediates model credentials: bind a credential source.",
        )),
    }
}

fn configuration_permission(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let resource = ResourceRef::configuration(i.namespace, i.agent_row()?.configuration_id);
    i.grants.require(&i.ask(Action::Read, resource)).map(|_| ())
}

fn harness_available(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let harness = i.harness()?;
    let mode = i.agent_row()?.execution_mode;
    let other = match harness.modes() {
        modes if modes.contains(&mode) => return Ok(()),
        [other, ..] => *other,
        [] => return Err(Refusal::driver_away(DriverKind::Harness)),
    };
    let phrase = Phrase::new("The Harness that the Configuration selects runs ")
        .id(&other)
        .text(", and the Agent's execution mode is ")
        .id(&mode)
        .text(".");
    Err(Refusal::saying(ApiCode::InvalidRequest, phrase))
}

fn harness_auth<'a>(i: &DeployInputs<'a>) -> Result<&'a HarnessAuth, Refusal> {
    let missing = || Refusal::conflict("The Agent has no harnessAuth. Bind one and deploy again.");
    i.agent_row()?.harness_auth.as_ref().ok_or_else(missing)
}

fn harness_auth_permission(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    if let Some(request) = source::auth_request(i.caller, i.namespace, harness_auth(i)?) {
        i.grants.require(&request)?;
    }
    super::source_ids(i.agent_row()?).into_iter().try_for_each(|id| {
        let request = source::operate_source(i.caller, i.namespace, id);
        i.grants.require(&request).map(|_| ())
    })
}

fn secret_bindings_permission(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    source::bindings_granted(
        &i.grants,
        i.caller,
        i.namespace,
        &i.configuration_row()?.secret_bindings,
    )
}

/// Sources of kinds that no driver of this Installation provides. A service account can be used only with a token that a driver
/// issued, and with the Backend that issued it (seed: Failure semantics).
fn harness_auth_supported(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    if !super::source_ids(i.agent_row()?).is_empty() {
        gateway_selected(i)?;
    }
    match harness_auth(i)? {
        HarnessAuth::CredentialSource { source_id } => {
            let listed = i.agent_row()?.credential_sources.iter();
            if listed.map(|source| source.source_id).any(|id| id == *source_id) {
                Ok(())
            } else {
                Err(Refusal::invalid(
                    "The credential source of harnessAuth must also be listed in credentialSources.",
                ))
            }
        }
        HarnessAuth::CodexPat {
            source: TokenSource::ServiceAccount { .. },
        } => account_usable(i),
        HarnessAuth::ApiKey { .. } | HarnessAuth::CodexPat { .. } | HarnessAuth::Runtime {} => Ok(()),
    }
}

/// A gateway never is without a Sandbox: an Installation of that composition does not start (spec/engine 3, steps 15 and 16).
fn gateway_selected(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    if i.drivers.credential_gateway.is_none() {
        return Err(Refusal::new(ApiCode::CredentialGatewayNotConfigured));
    }
    Ok(())
}

fn account_usable(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let account = i.account.as_ref().ok_or_else(Refusal::not_found)?;
    if account.deleting {
        return Err(Refusal::conflict(source::ACCOUNT_BEING_DELETED));
    }
    let Some((_, binding)) = account.issued() else {
        return Err(if i.drivers.backends().is_empty() {
            Refusal::new(ApiCode::ServiceAccountDriverNotConfigured)
        } else {
            Refusal::conflict("The selected account has no issued access token.")
        });
    };
    if i.agent_row()?.backend_id.as_ref() != Some(&binding.backend_id) {
        return Err(Refusal::conflict(
            "The service account belongs to another Backend than the Agent's. Name the account's Backend on the Agent.",
        ));
    }
    if !i.drivers.issues(binding) {
        return Err(Refusal::conflict(
            "The service account's access token was issued by another Service Account Driver than the selected one.",
        ));
    }
    Ok(())
}

fn compute_topology(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let (harness, auth) = (i.harness_identity()?, harness_auth(i)?);
    let source = i.sources.iter().find(|row| auth.credential_source() == Some(row.id));
    let request = HarnessAuthRequest {
        harness: &harness,
        method: auth.method(),
        source_type: source.map(|row| &row.kind),
        secret_bindings: i.configuration_row()?.secret_bindings.len(),
    };
    i.drivers
        .compute
        .admission()
        .harness_auth(&request)
        .map_err(|rejection| match rejection {
            Rejection::Configuration(message) => Refusal::invalid(message),
            Rejection::Unsupported(message) => Refusal::conflict(message),
        })
}

fn agent_principal(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let agent = i.agent_row()?;
    let principal = &agent.service_principal_id;
    let secrets = super::secret_ids(i.read).into_iter();
    let secrets = secrets.map(|id| source::operate(principal, i.namespace, id));
    let sources = super::source_ids(agent).into_iter();
    let sources = sources.map(|id| source::operate_source(principal, i.namespace, id));
    for request in secrets.chain(sources) {
        let answer = i.grants.find(&request).ok_or(Refusal::driver_away(DriverKind::Iam))?;
        if !answer.decision.allowed {
            let phrase = Phrase::new("The Agent service principal ")
                .id(principal)
                .text(" is not authorized to ")
                .id(&request.action)
                .text(" ")
                .id(&request.resource)
                .text(".");
            let caller = i.grants.require(&permission(i.caller, i.namespace, i.agent))?.clone();
            let record = Record::AgentPrincipal {
                caller,
                denied: Box::new(answer.clone()),
            };
            return Err(Refusal::saying(ApiCode::Forbidden, phrase).recorded(record));
        }
    }
    Ok(())
}

fn harness_auth_secret(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let driver = &i.drivers.secret.identity().id;
    if let Some(id) = i.token() {
        source::owned(&i.read.secrets, id, driver, source::TOKEN_OF_OTHER_DRIVER)?;
    }
    let auth = harness_auth(i)?;
    source::auth_source(&i.read.secrets, i.account.as_ref(), i.mediated(), auth, driver)?;
    for id in super::source_ids(i.agent_row()?) {
        let frozen = i.frozen_source(id)?;
        if auth.credential_source() == Some(id) && frozen.login_mode.is_none() {
            return Err(Refusal::conflict(
                "A credential source of this type is no model credential.",
            ));
        }
    }
    Ok(())
}

fn secret_bindings_secrets(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    source::bindings_owned(
        &i.read.secrets,
        &i.configuration_row()?.secret_bindings,
        &i.drivers.secret.identity().id,
    )
}

/// The Secret Driver still keeps each value where the record says (spec/engine 3, step 14).
fn secrets_resolved(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    // What the version delivers: an account's token is guarded by the account, not by a grant on its Secret.
    for id in i.token().into_iter().chain(super::secret_ids(i.read)) {
        let recorded = &source::find(&i.read.secrets, id)?.backend_ref;
        let now = i
            .secrets
            .get(&id)
            .map_or(Err(Refusal::driver_away(DriverKind::Secret)), |g| {
                g.known(DriverKind::Secret)
            })?;
        if now != recorded {
            return Err(Refusal::unavailable(
                "A Secret's value is no longer the one that was stored for it.",
            ));
        }
    }
    Ok(())
}

fn sandbox_document(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let selected = i.drivers.sandbox.as_ref().map(|sandbox| &sandbox.identity().id);
    if let Some(earlier) = &i.repeated
        && earlier.sandbox_driver_id.as_ref() != selected
    {
        return Err(Refusal::conflict(
            "The earlier version was saved for another Sandbox Driver than the selected one, or for none. Deploy the draft.",
        ));
    }
    if i.drivers.sandbox.is_none() {
        return Ok(());
    }
    if select(i.drivers, i.effective()?.as_ref())? == i.selection()? {
        Ok(())
    } else {
        Err(Refusal::conflict(
            "The selected Sandbox Driver changes which Harness the Configuration selects.",
        ))
    }
}

fn document_valid(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let (mode, method) = (i.agent_row()?.execution_mode, harness_auth(i)?.method());
    i.harness()?
        .validate(i.effective()?.as_ref(), mode, method)
        .map_err(|problem| document_problem(&problem))
}

/// 409 naming the setting and what is accepted; the type cannot hold the document's value (seed).
fn gateway_settings(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let settings = i
        .harness()?
        .gateway_settings(i.effective()?.as_ref())
        .map_err(|problem| document_problem(&problem))?;
    i.drivers
        .compute
        .admission()
        .gateway_settings(&settings)
        .map_err(|rejection| {
            let phrase = Phrase::new(rejection.setting)
                .text(" ")
                .text(rejection.accepted)
                .text(".");
            Refusal::saying(ApiCode::ResourceConflict, phrase)
        })
}

/// The policies that were saved must be ones that the driver of now can carry out.
fn plugins_supported(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    let agent = i.agent_row()?;
    plugins::supported(
        i.drivers.plugin.as_deref(),
        &agent.plugins,
        agent.plugin_approvers.as_deref(),
    )
}

/// Whether the Agent's transport credentials must be made.
pub(super) fn lacks_credentials(i: &DeployInputs<'_>) -> Result<bool, Refusal> {
    match &i.credentials {
        None => Ok(false),
        Some(gathered) => gathered.known(DriverKind::Compute).map(|exist| !exist),
    }
}

fn transport_credentials_kept(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    if lacks_credentials(i)? && i.read.revisions > 0 {
        return Err(Refusal::conflict(
            "The Agent's transport credentials are missing although it has versions. An operator must restore them.",
        ));
    }
    Ok(())
}

fn transport_credentials_permission(i: &DeployInputs<'_>) -> Result<(), Refusal> {
    if lacks_credentials(i)? {
        for action in [Action::Read, Action::Operate] {
            i.grants
                .require(&i.ask(action, ResourceRef::agent(i.namespace, i.agent)))?;
        }
    }
    Ok(())
}
