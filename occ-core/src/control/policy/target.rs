//! The exact resource that a grant is confined to.

use crate::{
    admission::{DetailCode, Refusal},
    control::{Answer, ControlPlane},
    driver::{ResourceKind, ResourceRef},
    iam::ExactResource,
    id::{AgentId, ConfigurationId, CredentialSourceId, NamespaceId, PresetId, RevisionId, SecretId, ServiceAccountId},
    resource::OwnedKind,
    store::Expect,
};

/// The exact resource of a grant.
pub(super) enum Target {
    Namespace,
    Configuration(ConfigurationId),
    Secret(SecretId),
    Agent(AgentId),
    Revision(RevisionId),
    Account(ServiceAccountId),
    Preset(PresetId),
    Source(CredentialSourceId),
}

impl Target {
    pub(super) fn parse(namespace: NamespaceId, exact: &ExactResource) -> Answer<Self> {
        let malformed = || {
            let refusal = Refusal::invalid("The resource's id is not of its kind's form.");
            refusal.at("/resource/id", DetailCode::InvalidFormat)
        };
        let id = exact.id.as_str();
        Ok(match exact.kind {
            ResourceKind::Namespace => {
                let id: NamespaceId = id.parse().map_err(|_| malformed())?;
                // Another Namespace is not even asked about.
                if id != namespace {
                    return Err(Refusal::not_found());
                }
                Self::Namespace
            }
            ResourceKind::Configuration => Self::Configuration(id.parse().map_err(|_| malformed())?),
            ResourceKind::Secret => Self::Secret(id.parse().map_err(|_| malformed())?),
            ResourceKind::Agent => Self::Agent(id.parse().map_err(|_| malformed())?),
            ResourceKind::AgentRevision => Self::Revision(id.parse().map_err(|_| malformed())?),
            ResourceKind::ServiceAccount => Self::Account(id.parse().map_err(|_| malformed())?),
            ResourceKind::Preset => Self::Preset(id.parse().map_err(|_| malformed())?),
            ResourceKind::CredentialSource => Self::Source(id.parse().map_err(|_| malformed())?),
            ResourceKind::Installation => {
                let refusal = Refusal::invalid("A grant cannot be confined to a resource of this kind.");
                return Err(refusal.at("/resource/kind", DetailCode::InvalidValue));
            }
        })
    }

    pub(super) const fn kind(&self) -> ResourceKind {
        match self {
            Self::Namespace => ResourceKind::Namespace,
            Self::Configuration(_) => ResourceKind::Configuration,
            Self::Secret(_) => ResourceKind::Secret,
            Self::Agent(_) => ResourceKind::Agent,
            Self::Revision(_) => ResourceKind::AgentRevision,
            Self::Account(_) => ResourceKind::ServiceAccount,
            Self::Source(_) => ResourceKind::CredentialSource,
            Self::Preset(_) => ResourceKind::Preset,
        }
    }

    pub(super) fn resource(&self, namespace: NamespaceId) -> ResourceRef {
        match self {
            Self::Namespace => ResourceRef::namespace(namespace),
            Self::Configuration(id) => ResourceRef::configuration(namespace, *id),
            Self::Secret(id) => ResourceRef::secret(namespace, *id),
            Self::Agent(id) => ResourceRef::agent(namespace, *id),
            Self::Revision(id) => ResourceRef::agent_revision(namespace, *id),
            Self::Account(id) => ResourceRef::service_account(namespace, *id),
            Self::Source(id) => ResourceRef::credential_source(namespace, *id),
            Self::Preset(id) => ResourceRef::preset(namespace, *id),
        }
    }
}

impl ControlPlane {
    /// What must hold for the target to exist still; 404 when it does not now.
    pub(super) async fn target_exists(&self, namespace: NamespaceId, target: &Target) -> Answer<Option<Expect>> {
        let missing = Refusal::not_found;
        Ok(match target {
            Target::Namespace => None,
            Target::Configuration(id) => {
                let row = self.configuration_row(namespace, *id).await?;
                Some(Expect::Configuration(*id, row.generation))
            }
            Target::Secret(id) => {
                let secret = self.store.secret(namespace, *id).await?.ok_or_else(missing)?;
                Some(Expect::Secret(*id, secret.version))
            }
            Target::Agent(id) => Some(Expect::Agent(*id, self.agent_row(namespace, *id).await?.version)),
            Target::Account(id) => Some(
                self.owned_exists(namespace, OwnedKind::ServiceAccount, id.to_string())
                    .await?,
            ),
            Target::Source(id) => Some(
                self.owned_exists(namespace, OwnedKind::CredentialSource, id.to_string())
                    .await?,
            ),
            Target::Preset(id) => Some(self.owned_exists(namespace, OwnedKind::Preset, id.to_string()).await?),
            Target::Revision(id) => {
                let owner = self.store.revision_owner(namespace, *id).await?.ok_or_else(missing)?;
                Some(Expect::Agent(owner, self.agent_row(namespace, owner).await?.version))
            }
        })
    }

    async fn owned_exists(&self, namespace: NamespaceId, kind: OwnedKind, id: String) -> Answer<Expect> {
        let row = self.store.owned(namespace, kind, &id).await?;
        let version = row.ok_or_else(Refusal::not_found)?.version;
        Ok(Expect::Owned(id, version))
    }
}
