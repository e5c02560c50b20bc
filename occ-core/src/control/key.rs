//! Service keys: what the `x-api-key` header carries (spec/engine 2.1, 2.3).
//!
//! A key is `occ_<uuid>_<64 hexadecimal digits>`. The first part names it; of the second, 256 random bits, only the SHA-256 is kept.

use std::time::Duration;

use super::{
    Answer, Caller, Conditions, ControlPlane, CreateServiceKey, Credential, IssuedKey,
    commit::Tries,
    operation::{Scope, look},
    token,
};
use crate::{
    admission::{DetailCode, Refusal},
    driver::{Action, DriverKind, ResourceRef},
    id::{NamespaceId, RequestId, ServiceKeyId},
    reason::ApiCode,
    resource::PrincipalId,
    secret_value::SecretValue,
    store::{Change, NewServiceKey, Write},
    time::Timestamp,
    trace,
};

const EXPIRES_IN: std::ops::RangeInclusive<u64> = 86_400..=31_536_000;
const EXPIRES_IN_DEFAULT: u64 = 2_592_000;
const PREFIX: &str = "occ_";

pub(super) fn days(days: u64) -> Duration {
    Duration::from_secs(days * 86_400)
}

/// A key to be made.
pub(super) struct NewKey {
    pub(super) principal: PrincipalId,
    pub(super) name: String,
    pub(super) namespace: Option<NamespaceId>,
}

impl NewKey {
    /// What is stored, and what is shown once.
    pub(super) fn issue(self, expires_at: Timestamp) -> (NewServiceKey, SecretValue) {
        let id = ServiceKeyId::random();
        let (value, secret_hash) = token::issue(PREFIX, id.uuid());
        let Self {
            principal,
            name,
            namespace,
        } = self;
        let expires_at = Some(expires_at);
        (
            NewServiceKey {
                id,
                principal,
                name,
                secret_hash,
                namespace_id: namespace,
                expires_at,
            },
            value,
        )
    }
}

/// The id and the secret half of a well-formed key.
fn parse(presented: &str) -> Option<(ServiceKeyId, &str)> {
    let (uuid, secret) = token::parts(PREFIX, presented)?;
    let id = format!("{}{uuid}", ServiceKeyId::PREFIX).parse().ok()?;
    Some((id, secret))
}

impl ControlPlane {
    /// Who presents this key (`x-api-key`). A key that is malformed, unknown, wrong, revoked or expired reads the same: 401.
    pub async fn authenticate(&self, presented: &str, request: RequestId) -> Answer<Caller> {
        let refused = || Refusal::new(ApiCode::Unauthenticated);
        let (id, secret) = parse(presented).ok_or_else(refused)?;
        let row = self.store.service_key(id).await?;
        // An unknown key is compared too, so that its answer takes as long.
        let same = token::proves(secret, row.as_ref().map(|row| row.key.secret_hash.as_str()));
        match row {
            Some(row) if same && !row.expired => {
                if row.disabled {
                    return Err(Refusal::fixed(ApiCode::Forbidden, "The account is disabled."));
                }
                let NewServiceKey {
                    id,
                    principal,
                    namespace_id,
                    ..
                } = row.key;
                Ok(Caller {
                    principal,
                    credential: Credential::Key(id),
                    namespace: namespace_id,
                    request,
                    conditions: Conditions::default(),
                    trace: trace::current(),
                })
            }
            _ => Err(refused()),
        }
    }

    /// Makes a service key for a person or a service principal; never for an Agent's. Needs `installation:administer`.
    pub async fn create_service_key(&self, caller: &Caller, input: CreateServiceKey) -> Answer<IssuedKey> {
        let op = self.operation(caller, "openclaw.service_keys.create", Scope::Installation);
        op.answer(async {
            let expires_in = input.expires_in.unwrap_or(EXPIRES_IN_DEFAULT);
            if !EXPIRES_IN.contains(&expires_in) {
                let refusal = Refusal::invalid("expiresIn must be 86400 to 31536000 seconds.");
                return Err(refusal.at("/expiresIn", DetailCode::InvalidValue));
            }
            let resource = ResourceRef::installation(self.known_installation().await?.id);
            let allowed = op.require(Action::Administer, resource.clone()).await?;
            let cx = self.context();
            let found = look(self.drivers.iam.lookup(&cx, &input.principal_id)).await;
            let identity = found
                .map_err(|e| Refusal::driver(DriverKind::Iam, &e))?
                .ok_or_else(Refusal::not_found)?;
            if identity.agent_id.is_some() {
                let refusal = Refusal::invalid("An Agent's service principal cannot have a service key.");
                return Err(refusal.at("/principalId", DetailCode::InvalidValue));
            }
            if identity.namespace_id.is_some() && identity.namespace_id != input.namespace_id {
                let refusal = Refusal::invalid("The principal is confined to a Namespace, and the key must be too.");
                return Err(refusal.at("/namespaceId", DetailCode::InvalidValue));
            }
            if let Some(namespace) = input.namespace_id {
                self.store.namespace(namespace).await?.ok_or_else(Refusal::not_found)?;
            }
            let now = self.store.now().await?;
            let new = NewKey {
                principal: input.principal_id,
                name: input.name.to_string(),
                namespace: input.namespace_id,
            };
            let (key, value) = new.issue(now.plus(Duration::from_secs(expires_in)));
            let view = (&key).into();
            let event = op
                .event(resource, &allowed)
                .with("createdServiceKeyId", key.id.to_string())
                .with("principalId", key.principal.as_str());
            let change = Change::new().write(Write::ServiceKey(key)).audit(event);
            Tries::new(&*self.store).commit_alone(change).await?;
            Ok(IssuedKey { key: view, value })
        })
        .await
    }

    /// Ends a service key. Needs `installation:administer`.
    pub async fn revoke_service_key(&self, caller: &Caller, id: ServiceKeyId) -> Answer<()> {
        let op = self.operation(caller, "openclaw.service_keys.revoke", Scope::Installation);
        op.answer(async {
            let resource = ResourceRef::installation(self.known_installation().await?.id);
            let allowed = op.require(Action::Administer, resource.clone()).await?;
            self.store.service_key(id).await?.ok_or_else(Refusal::not_found)?;
            let event = op.event(resource, &allowed).with("revokedServiceKeyId", id.to_string());
            let change = Change::new().write(Write::RevokeServiceKey(id)).audit(event);
            Tries::new(&*self.store).commit_alone(change).await?;
            Ok(())
        })
        .await
    }
}
