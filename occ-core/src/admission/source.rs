//! The checks of a referenced Secret that drafts, Configurations and deployments share.

use super::{Grants, Refusal};
use crate::{
    driver::{AccessRequest, Action, ResourceRef},
    id::{CredentialSourceId, NamespaceId, SecretId, ServiceAccountId},
    reason::ApiCode,
    resource::{
        CredentialSource, HarnessAuth, PrincipalId, Secret, SecretBindings, ServiceAccount, SourceState, TokenSource,
    },
};

/// A Secret of another Secret Driver, named as the model credential.
pub(crate) const AUTH_OF_OTHER_DRIVER: &str = "The harnessAuth Secret is stored through another Secret Driver. Bind a Secret that is stored through the selected one.";
/// A Secret of another Secret Driver, bound by the Configuration.
pub(crate) const BINDING_OF_OTHER_DRIVER: &str = "The Configuration's secretBindings name a Secret stored through another Secret \
     Driver. Bind Secrets stored through the selected one, or name another Configuration.";

/// A Secret of another Secret Driver, named as a service account's credential.
pub(crate) const ACCOUNT_OF_OTHER_DRIVER: &str =
    "The Secret is stored through another Secret Driver. Name one that is stored through the selected one.";
/// An issued token of another Secret Driver.
pub(crate) const TOKEN_OF_OTHER_DRIVER: &str = "The service account's access token is stored through another Secret Driver. Select that one, or bind another account.";
/// A service account whose deletion was begun.
pub(crate) const ACCOUNT_BEING_DELETED: &str = "The service account is being deleted.";
/// A credential source of another Credential Gateway.
pub(crate) const SOURCE_OF_OTHER_GATEWAY: &str =
    "The credential source is another Credential Gateway's than the selected one. Name a source of the selected one.";
/// A Secret whose deletion was begun.
pub(crate) const BEING_DELETED: &str = "The Secret is being deleted.";

/// The grant that using the binding needs of a caller (spec/engine 1.10); `runtime` needs none.
pub(crate) fn auth_request(caller: &PrincipalId, namespace: NamespaceId, auth: &HarnessAuth) -> Option<AccessRequest> {
    let (action, resource) = match auth {
        HarnessAuth::ApiKey { source } => (Action::Operate, ResourceRef::secret(namespace, source.id)),
        HarnessAuth::CodexPat {
            source: TokenSource::Secret { id, .. },
        } => (Action::Operate, ResourceRef::secret(namespace, *id)),
        HarnessAuth::CodexPat {
            source: TokenSource::ServiceAccount { id, .. },
        } => (Action::Read, ResourceRef::service_account(namespace, *id)),
        HarnessAuth::CredentialSource { source_id } => {
            (Action::Operate, ResourceRef::credential_source(namespace, *source_id))
        }
        HarnessAuth::Runtime {} => return None,
    };
    Some(AccessRequest {
        principal: caller.clone(),
        action,
        resource,
    })
}

/// The Namespace that a binding names, if it names one.
pub(crate) fn auth_namespace(auth: &HarnessAuth) -> Option<NamespaceId> {
    match auth {
        HarnessAuth::ApiKey { source } => Some(source.namespace_id),
        HarnessAuth::CodexPat { source } => Some(match source {
            TokenSource::Secret { namespace_id, .. } | TokenSource::ServiceAccount { namespace_id, .. } => {
                *namespace_id
            }
        }),
        HarnessAuth::CredentialSource { .. } | HarnessAuth::Runtime {} => None,
    }
}

/// The service account that the binding names, if it names one.
pub(crate) const fn account_of(auth: Option<&HarnessAuth>) -> Option<ServiceAccountId> {
    match auth {
        Some(auth) => auth.account(),
        None => None,
    }
}

/// One question for each Secret that is bound.
pub(crate) fn binding_requests(
    principal: &PrincipalId,
    namespace: NamespaceId,
    bindings: &SecretBindings,
) -> Vec<AccessRequest> {
    let mut requests = Vec::new();
    for binding in bindings.values() {
        let request = operate(principal, namespace, binding.source.id);
        if !requests.contains(&request) {
            requests.push(request);
        }
    }
    requests
}

/// Whether this principal may operate this Secret.
pub(crate) fn operate(principal: &PrincipalId, namespace: NamespaceId, id: SecretId) -> AccessRequest {
    let resource = ResourceRef::secret(namespace, id);
    AccessRequest {
        principal: principal.clone(),
        action: Action::Operate,
        resource,
    }
}

/// Whether this principal may operate this credential source.
pub(crate) fn operate_source(principal: &PrincipalId, namespace: NamespaceId, id: CredentialSourceId) -> AccessRequest {
    AccessRequest {
        principal: principal.clone(),
        action: Action::Operate,
        resource: ResourceRef::credential_source(namespace, id),
    }
}

/// The caller's grants on every bound Secret.
pub(crate) fn bindings_granted(
    grants: &Grants,
    caller: &PrincipalId,
    namespace: NamespaceId,
    bindings: &SecretBindings,
) -> Result<(), Refusal> {
    binding_requests(caller, namespace, bindings)
        .iter()
        .try_for_each(|request| grants.require(request).map(|_| ()))
}

/// The record of a Secret: 404 when there is none.
pub(crate) fn find(secrets: &[Secret], id: SecretId) -> Result<&Secret, Refusal> {
    secrets
        .iter()
        .find(|secret| secret.id == id)
        .ok_or_else(Refusal::not_found)
}

/// The record of a Secret of the selected driver: 404 when there is none, 503 with `other` when another driver stored it.
pub(crate) fn owned<'a>(
    secrets: &'a [Secret],
    id: SecretId,
    driver: &str,
    other: &'static str,
) -> Result<&'a Secret, Refusal> {
    let secret = find(secrets, id)?;
    if secret.deleting {
        Err(Refusal::conflict(BEING_DELETED))
    } else if secret.driver_id == driver {
        Ok(secret)
    } else {
        Err(Refusal::unavailable(other))
    }
}

/// Every bound Secret exists and is the selected driver's.
pub(crate) fn bindings_owned(secrets: &[Secret], bindings: &SecretBindings, driver: &str) -> Result<(), Refusal> {
    bindings
        .values()
        .try_for_each(|binding| owned(secrets, binding.source.id, driver, BINDING_OF_OTHER_DRIVER).map(|_| ()))
}

/// The selected Credential Gateway, and the records of credential sources that a request is about.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sources<'a> {
    /// The gateway's id; none when none is selected.
    pub gateway: Option<&'a str>,
    /// Those that exist.
    pub rows: &'a [CredentialSource],
}

impl<'a> Sources<'a> {
    /// A source that can be used: 409 without a gateway, 404 without a record, 503 when another gateway has it.
    pub(crate) fn usable(&self, id: CredentialSourceId) -> Result<&'a CredentialSource, Refusal> {
        let not_configured = Refusal::new(ApiCode::CredentialGatewayNotConfigured);
        let gateway = self.gateway.ok_or(not_configured)?;
        let row = self.rows.iter().find(|row| row.id == id);
        let row = row.ok_or_else(Refusal::not_found)?;
        if row.gateway_id != gateway {
            Err(Refusal::unavailable(SOURCE_OF_OTHER_GATEWAY))
        } else if row.state == SourceState::Ready {
            Ok(row)
        } else {
            Err(Refusal::conflict("The credential source is not ready."))
        }
    }
}

/// The binding's record: a Secret of the selected driver, a service account, or a credential source of the selected gateway.
pub(crate) fn auth_source(
    secrets: &[Secret],
    account: Option<&ServiceAccount>,
    sources: Sources<'_>,
    auth: &HarnessAuth,
    driver: &str,
) -> Result<(), Refusal> {
    match auth {
        HarnessAuth::ApiKey { .. }
        | HarnessAuth::CodexPat {
            source: TokenSource::Secret { .. },
        } => match auth.secret() {
            Some((_, id)) => owned(secrets, id, driver, AUTH_OF_OTHER_DRIVER).map(|_| ()),
            None => Ok(()),
        },
        HarnessAuth::CodexPat {
            source: TokenSource::ServiceAccount { .. },
        } => match account {
            None => Err(Refusal::not_found()),
            Some(account) if account.deleting => Err(Refusal::conflict(ACCOUNT_BEING_DELETED)),
            Some(_) => Ok(()),
        },
        HarnessAuth::CredentialSource { source_id } => sources.usable(*source_id).map(|_| ()),
        HarnessAuth::Runtime {} => Ok(()),
    }
}
