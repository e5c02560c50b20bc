//! What must hold before a rule is looked at.

use std::{collections::BTreeSet, str::FromStr};

use occ_core::{
    driver::{AccessRequest, Action, IdentityKind, ResourceKind, ResourceRef},
    iam::{AccessBinding, Grants},
    id::{
        AgentId, ConfigurationId, CredentialSourceId, InstallationId, NamespaceId, RevisionId, SecretId,
        ServiceAccountId,
    },
    resource::PrincipalId,
};

use crate::{InvalidPolicy, InvalidRequest};

/// Whether the policy that was read for `principal` holds together.
pub fn check_policy(principal: &PrincipalId, grants: &Grants) -> Result<(), InvalidPolicy> {
    if let Some(identity) = &grants.identity {
        if identity.id != *principal {
            return Err(InvalidPolicy::OtherIdentity);
        }
        let scoped = identity.namespace_id.is_some();
        let agent = identity.agent_id.is_some();
        let possible = match identity.kind {
            IdentityKind::Human => !scoped && !agent,
            IdentityKind::Service => scoped || !agent,
        };
        if !possible {
            return Err(InvalidPolicy::IdentityScope);
        }
    }
    let unambiguous = unique(grants.roles.iter().map(|role| &role.id))
        && unique(grants.bindings.iter().map(|binding| &binding.id))
        && unique(grants.restrictions.iter().map(|restriction| &restriction.id));
    if !unambiguous {
        return Err(InvalidPolicy::AmbiguousId);
    }
    let known = |binding: &AccessBinding| grants.roles.iter().any(|role| role.id == binding.role_id);
    if grants.bindings.iter().all(known) {
        Ok(())
    } else {
        Err(InvalidPolicy::MissingRole)
    }
}

fn unique<'a>(ids: impl Iterator<Item = &'a String>) -> bool {
    let mut seen = BTreeSet::new();
    ids.into_iter().all(|id| seen.insert(id))
}

/// Whether the request names a resource that could exist. `create` names the parent: the Installation for a Namespace, the
/// Namespace for everything else.
pub fn check_request(request: &AccessRequest) -> Result<(), InvalidRequest> {
    let ResourceRef { kind, id, namespace_id } = &request.resource;
    let create = request.action == Action::Create;
    match kind {
        ResourceKind::Installation => {
            is::<InstallationId>(id)?;
            if namespace_id.is_none() {
                Ok(())
            } else {
                Err(InvalidRequest::Namespace)
            }
        }
        ResourceKind::Namespace if create => {
            is::<InstallationId>(id)?;
            if namespace_id.is_none() {
                Ok(())
            } else {
                Err(InvalidRequest::Namespace)
            }
        }
        ResourceKind::Namespace => {
            let own: NamespaceId = id.parse().map_err(|_| InvalidRequest::Id)?;
            if *namespace_id == Some(own) {
                Ok(())
            } else {
                Err(InvalidRequest::Namespace)
            }
        }
        _ => {
            let owner = namespace_id.ok_or(InvalidRequest::Namespace)?;
            match kind {
                _ if create => {
                    if *id == owner.to_string() {
                        Ok(())
                    } else {
                        Err(InvalidRequest::Id)
                    }
                }
                ResourceKind::Configuration => is::<ConfigurationId>(id),
                ResourceKind::Agent => is::<AgentId>(id),
                ResourceKind::AgentRevision => is::<RevisionId>(id),
                ResourceKind::Secret => is::<SecretId>(id),
                ResourceKind::CredentialSource => is::<CredentialSourceId>(id),
                ResourceKind::ServiceAccount => is::<ServiceAccountId>(id),
                // A Preset's id is opaque here.
                _ if id.is_empty() => Err(InvalidRequest::Id),
                _ => Ok(()),
            }
        }
    }
}

fn is<T: FromStr>(id: &str) -> Result<(), InvalidRequest> {
    id.parse::<T>().map(drop).map_err(|_| InvalidRequest::Id)
}
