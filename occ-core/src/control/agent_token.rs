//! Tokens by which an Agent's service principal is recognised (docs/adr/0015).
//!
//! A token is `occ_agent_<key's uuid>.<claims>.<signature>`, the last two in base64url. It is signed with Ed25519 by a key that never leaves
//! the memory of the process that made it; what verifies it is in the database. No part of a token says how it is verified.

use std::{
    fmt,
    ops::RangeInclusive,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Caller, Conditions, ControlPlane, Credential, commit::Tries, operation::Scope};
use crate::{
    admission::{DetailCode, Refusal},
    driver::{Action, ResourceRef},
    id::{AgentId, AgentTokenId, AgentTokenKeyId, InstallationId, NamespaceId, RequestId},
    reason::ApiCode,
    resource::{Agent, AgentStatus, PrincipalId},
    secret_value::SecretValue,
    store::{Change, NewAgentTokenKey, Write},
    time::Timestamp,
    trace,
};

const PREFIX: &str = "occ_agent_";
/// How long a token lasts, in seconds.
const EXPIRES_IN: RangeInclusive<u64> = 60..=3600;
const EXPIRES_IN_DEFAULT: u64 = 900;
/// A key signs for so long; it verifies as much longer as its last token lasts.
const KEY_SIGNS_FOR: Duration = Duration::from_hours(24);
const LIFETIME_MAX: Duration = Duration::from_hours(1);
/// Longer texts are no tokens, and are not looked at.
const LENGTH_MAX: usize = 2048;

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateAgentToken {
    /// How long it lasts, in seconds: 60 to 3,600; 900 when not said.
    #[serde(default)]
    pub expires_in: Option<u64>,
}

/// A token that was just made.
#[derive(Debug, Clone)]
pub struct AgentToken {
    /// Its id, which the audit names.
    pub id: AgentTokenId,
    /// The whole token, for the `authorization` header. It is kept nowhere.
    pub value: SecretValue,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// What a token says. Instants are of the database's clock, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    jti: AgentTokenId,
    aud: InstallationId,
    sub: PrincipalId,
    namespace: NamespaceId,
    agent: AgentId,
    iat: i64,
    exp: i64,
}

/// A key that signs.
struct Signer {
    id: AgentTokenKeyId,
    key: SigningKey,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Signer {
    fn new() -> Self {
        Self {
            id: AgentTokenKeyId::random(),
            key: SigningKey::from_bytes(&crate::randomness::secret_bytes()),
        }
    }

    fn public(&self) -> NewAgentTokenKey {
        NewAgentTokenKey {
            id: self.id,
            public_key: self.key.verifying_key().to_bytes(),
            lifetime: KEY_SIGNS_FOR + LIFETIME_MAX,
        }
    }

    fn sign(&self, claims: &Claims) -> Answer<SecretValue> {
        let claims = serde_json::to_vec(claims).map_err(|_| Refusal::new(ApiCode::InternalError))?;
        let mut text = String::with_capacity(LENGTH_MAX);
        text.push_str(PREFIX);
        text.push_str(&self.id.uuid().hyphenated().to_string());
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut text);
        let signature = self.key.sign(text.as_bytes());
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(signature.to_bytes(), &mut text);
        Ok(text.into())
    }
}

/// A text with the form of a token. Nothing of it is believed yet.
struct Presented<'a> {
    key: AgentTokenKeyId,
    signed: &'a str,
    claims: &'a str,
    signature: Signature,
}

impl<'a> Presented<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let body = text.strip_prefix(PREFIX).filter(|_| text.len() <= LENGTH_MAX)?;
        let (uuid, rest) = body.split_once('.')?;
        let (claims, signature) = rest.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(Self {
            key: format!("{}{uuid}", AgentTokenKeyId::PREFIX).parse().ok()?,
            signed: text.rsplit_once('.')?.0,
            claims,
            signature: Signature::from_slice(&signature).ok()?,
        })
    }

    /// What it says, when this key signed it.
    fn verified(&self, public_key: &[u8; 32]) -> Option<Claims> {
        let key = VerifyingKey::from_bytes(public_key).ok()?;
        key.verify_strict(self.signed.as_bytes(), &self.signature).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(self.claims).ok()?).ok()
    }
}

/// The key with which this process signs, once it has one.
#[derive(Debug, Default)]
pub(super) struct AgentTokens(Mutex<Option<Arc<Signer>>>);

impl AgentTokens {
    fn current(&self) -> Option<Arc<Signer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, signer: Arc<Signer>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(signer);
    }
}

impl ControlPlane {
    /// Makes a token by which this Agent's service principal is recognised. Needs `agent:administer`: whoever has the token may do
    /// what the Agent may.
    pub async fn create_agent_token(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        agent: AgentId,
        input: CreateAgentToken,
    ) -> Answer<AgentToken> {
        let op = self.operation(caller, "openclaw.agents.tokens.create", Scope::Namespace(namespace));
        op.answer(async {
            let resource = ResourceRef::agent(namespace, agent);
            let allowed = op.require(Action::Administer, resource.clone()).await?;
            // A token that leaked would otherwise live for as long as it makes the next one in time.
            if matches!(caller.credential, Credential::AgentToken(_)) {
                return Err(Refusal::fixed(
                    ApiCode::Forbidden,
                    "An Agent's token makes no other token.",
                ));
            }
            let expires_in = input.expires_in.unwrap_or(EXPIRES_IN_DEFAULT);
            if !EXPIRES_IN.contains(&expires_in) {
                let refusal = Refusal::invalid("expiresIn must be 60 to 3600 seconds.");
                return Err(refusal.at("/expiresIn", DetailCode::InvalidValue));
            }
            let found = self.store.agent(namespace, agent).await?;
            let agent = found.ok_or_else(Refusal::not_found)?.agent;
            if agent.status != AgentStatus::Active {
                return Err(Refusal::new(ApiCode::AgentDeleting));
            }
            let (token, change) = self.token_of(&agent, Duration::from_secs(expires_in)).await?;
            let event = op
                .event(resource, &allowed)
                .with("agentTokenId", token.id.to_string())
                .with("servicePrincipalId", agent.service_principal_id.as_str())
                .with("expiresAt", token.expires_at.to_string());
            Tries::new(&*self.store).commit_alone(change.audit(event)).await?;
            Ok(token)
        })
        .await
    }

    /// A token of this Agent, which is good once the change is committed. Whoever starts a workload commits it with its own records.
    async fn token_of(&self, agent: &Agent, lifetime: Duration) -> Answer<(AgentToken, Change)> {
        let installation = self.known_installation().await?;
        let now = self.store.now().await?;
        let mut change = Change::new();
        let mut signer = None;
        if let Some(current) = self.agent_tokens.current() {
            // It may have grown old, and a database that was restored does not know it.
            let known = self.store.agent_token_key(current.id).await?;
            signer = known
                .filter(|key| key.expires_at >= now.plus(LIFETIME_MAX))
                .map(|_| current);
        }
        let signer = signer.unwrap_or_else(|| {
            let fresh = Arc::new(Signer::new());
            change = std::mem::take(&mut change).write(Write::AgentTokenKey(fresh.public()));
            self.agent_tokens.keep(Arc::clone(&fresh));
            fresh
        });
        let expires_at = now.plus(lifetime);
        let claims = Claims {
            jti: AgentTokenId::random(),
            aud: installation.id,
            sub: agent.service_principal_id.clone(),
            namespace: agent.namespace_id,
            agent: agent.id,
            iat: now.as_millis(),
            exp: expires_at.as_millis(),
        };
        let token = AgentToken {
            id: claims.jti,
            value: signer.sign(&claims)?,
            expires_at,
        };
        Ok((token, change))
    }

    /// Which Agent presents this token. One that is malformed, forged, expired, of another Installation, or of an Agent that is deleted
    /// or has another principal reads the same: 401.
    pub async fn authenticate_agent(&self, presented: &str, request: RequestId) -> Answer<Caller> {
        let refused = || Refusal::new(ApiCode::Unauthenticated);
        let presented = Presented::parse(presented).ok_or_else(refused)?;
        let key = self.store.agent_token_key(presented.key).await?;
        let key = key.filter(|key| !key.expired).ok_or_else(refused)?;
        let claims = presented.verified(&key.public_key).ok_or_else(refused)?;
        let lifetime = Timestamp::from_millis(claims.exp).since(Timestamp::from_millis(claims.iat));
        let lasts = claims.exp > key.now.as_millis() && lifetime <= LIFETIME_MAX;
        if !lasts || claims.aud != self.known_installation().await?.id {
            return Err(refused());
        }
        let agent = self.store.agent(claims.namespace, claims.agent).await?;
        let same = |agent: &Agent| agent.status == AgentStatus::Active && agent.service_principal_id == claims.sub;
        let agent = agent.map(|row| row.agent).filter(same).ok_or_else(refused)?;
        Ok(Caller {
            principal: agent.service_principal_id,
            credential: Credential::AgentToken(claims.jti),
            namespace: None,
            request,
            conditions: Conditions::default(),
            trace: trace::current(),
        })
    }
}
