//! What a source is made of: its settings, and its credentials as they are read from Secrets.

use std::collections::BTreeMap;

use super::source_identity;
use crate::{
    admission::{DetailCode, Refusal, source},
    control::{
        Answer, ControlPlane, RegisterCredentialSource,
        operation::{Operation, effect, look},
        secrets::identity_of,
    },
    driver::{Action, CredentialGateway, DriverKind, EffectError, ResourceRef, SourceCondition, SourceContent},
    id::{NamespaceId, SecretId},
    resource::{CredentialSource, Secret, SecretSource, SourceField},
    secret_value::SecretValue,
};

/// The credentials of a source: the Secrets that they are read from, and their values.
pub(super) struct Credentials {
    pub(super) secrets: Vec<Secret>,
    values: BTreeMap<SourceField, SecretValue>,
}

impl ControlPlane {
    /// The caller's grants on the Secrets, then their values: each exists and is the selected driver's.
    pub(super) async fn credentials(
        &self,
        op: &Operation<'_>,
        namespace: NamespaceId,
        named: &BTreeMap<SourceField, SecretSource>,
    ) -> Answer<Credentials> {
        if let Some((field, _)) = named.iter().find(|(_, from)| from.namespace_id != namespace) {
            let refusal = Refusal::invalid("The Secret must belong to the credential source's Namespace.");
            return Err(refusal.at(&format!("/secrets/{field}/namespaceId"), DetailCode::InvalidValue));
        }
        let ids: Vec<SecretId> = named.values().map(|from| from.id).collect();
        let asked = ids
            .iter()
            .map(|id| op.ask(Action::Operate, ResourceRef::secret(namespace, *id)));
        op.require_all(asked.collect()).await?;
        let secrets = self.named_secrets(namespace, ids).await?;
        let driver = &self.drivers.secret;
        let mut values = BTreeMap::new();
        for (field, from) in named {
            let other = source::ACCOUNT_OF_OTHER_DRIVER;
            let secret = source::owned(&secrets, from.id, &driver.identity().id, other)?;
            let value = look(driver.value(&self.context(), &identity_of(secret), &secret.backend_ref))
                .await
                .map_err(|error| Refusal::driver(DriverKind::Secret, &error))?;
            values.insert(field.clone(), value);
        }
        Ok(Credentials { secrets, values })
    }

    /// Tells the gateway what a source is.
    pub(super) async fn told(
        &self,
        source: &CredentialSource,
        credentials: &Credentials,
    ) -> Result<SourceCondition, EffectError> {
        let Some(gateway) = &self.drivers.credential_gateway else {
            return Ok(SourceCondition::Absent);
        };
        let content = SourceContent {
            config: &source.config,
            secrets: &credentials.values,
        };
        effect(gateway.register(&self.context(), &source_identity(source), content)).await
    }
}

/// The settings are exactly those of the type, and the gateway accepts them.
pub(super) fn check_content(gateway: &dyn CredentialGateway, input: &RegisterCredentialSource) -> Answer<()> {
    let info = gateway.source_types().iter().find(|info| info.kind == input.kind);
    let unknown =
        || Refusal::invalid("The Credential Gateway knows no such type.").at("/type", DetailCode::InvalidValue);
    let info = info.ok_or_else(unknown)?;
    exact("/config", &info.config, &input.config.keys())?;
    exact("/secrets", &info.secrets, &input.secrets.keys())?;
    for (field, value) in &input.config {
        let at = format!("/config/{field}");
        let length = value.chars().count();
        if length == 0 || length > CredentialSource::MAX_SETTING {
            let refusal = Refusal::invalid("A setting of a credential source has 1 to 2048 characters.");
            return Err(refusal.at(&at, DetailCode::TooLong));
        }
    }
    gateway.validate(&input.kind, &input.config).map_err(|rejection| {
        let at = format!("/config/{}", rejection.field);
        Refusal::invalid(rejection.accepted).at(&at, DetailCode::InvalidValue)
    })
}

/// These fields, each, and no other.
pub(super) fn exact<'a>(
    at: &str,
    wanted: &[SourceField],
    given: &(impl Iterator<Item = &'a SourceField> + Clone),
) -> Answer<()> {
    const MESSAGE: &str = "A credential source has exactly the fields of its type.";
    if let Some(field) = given.clone().find(|field| !wanted.contains(field)) {
        return Err(Refusal::invalid(MESSAGE).at(&format!("{at}/{field}"), DetailCode::UnknownField));
    }
    match wanted.iter().find(|field| !given.clone().any(|one| one == *field)) {
        Some(field) => Err(Refusal::invalid(MESSAGE).at(&format!("{at}/{field}"), DetailCode::Required)),
        None => Ok(()),
    }
}
