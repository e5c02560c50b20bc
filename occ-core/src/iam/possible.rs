//! Questions that name something that could exist.

use std::str::FromStr;

use crate::{
    driver::{AccessRequest, Action, ResourceKind, ResourceRef},
    id::{
        AgentId, ConfigurationId, CredentialSourceId, InstallationId, NamespaceId, RevisionId, SecretId,
        ServiceAccountId,
    },
};

/// A question that names no resource that could exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// The id is not one of the kind, or for `create` not the parent's.
    #[error("the id is not one of this kind")]
    Id,
    /// The Installation is in no Namespace, a Namespace is in itself, everything else is in one.
    #[error("the resource cannot be in this Namespace")]
    Namespace,
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
