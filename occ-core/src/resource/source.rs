//! Credential sources: credentials that a Credential Gateway keeps and mediates, so that no workload holds them (spec/engine 1.8).

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use uuid::Uuid;

use super::{Name, PrincipalId};
use crate::{
    id::{AgentId, CredentialSourceId, NamespaceId, RevisionId, SecretId},
    time::Timestamp,
};

/// A text is not a word of a gateway's catalogue. Never holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 64 lower-case letters, digits and separators, beginning with a letter")]
pub struct InvalidWord;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident = $separator:literal, $pattern:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[schemars(transparent)]
        pub struct $name(#[schemars(regex(pattern = $pattern))] String);

        impl $name {
            /// The word.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidWord;
            fn from_str(text: &str) -> Result<Self, InvalidWord> {
                let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == $separator;
                let first = text.starts_with(|c: char| c.is_ascii_lowercase());
                if first && text.len() <= 64 && text.bytes().all(allowed) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidWord)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )*};
}
words! {
    /// A type of source in a gateway's catalogue.
    SourceType = b'-', r"^[a-z][a-z0-9-]{0,63}$";
    /// A field of a source.
    SourceField = b'_', r"^[a-z][a-z0-9_]{0,63}$";
}

/// How far a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// Recorded, and the gateway is being told.
    Registering,
    /// The gateway has it.
    Ready,
    /// It is being removed; nothing new may refer to it, and its deletion may be repeated.
    Deleting,
}

/// How far a withdrawal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WithdrawalState {
    /// The gateway has not shown yet that the version can use it no more.
    Pending,
    /// It has.
    Revoked,
}

/// The withdrawal of a source from one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Withdrawal {
    /// The version.
    pub revision_id: RevisionId,
    /// Its Agent.
    pub agent_id: AgentId,
    /// How far it is.
    pub state: WithdrawalState,
    /// Who asked for it last.
    pub requested_by: PrincipalId,
    /// When.
    pub requested_at: Timestamp,
    /// The request, which has work of its own.
    pub operation: Uuid,
    /// When it was shown to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

impl Withdrawal {
    /// Whether it is still to be done by the work of this request.
    pub fn is_by(&self, operation: Uuid) -> bool {
        self.state == WithdrawalState::Pending && self.operation == operation
    }
}

/// A registration or a refresh that began to tell the gateway, and is not known to have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Telling {
    /// The request.
    pub operation: Uuid,
    /// When it was recorded, before the gateway was told.
    pub since: Timestamp,
}

/// A credential source. Its credentials are the gateway's; here are references and settings only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialSource {
    /// Its id.
    pub id: CredentialSourceId,
    /// The Namespace that owns it.
    pub namespace_id: NamespaceId,
    /// Its name, unique among the Namespace's sources.
    pub name: Name,
    /// The Credential Gateway (instance id) that has it. Another one never touches it.
    pub gateway_id: String,
    /// What it is, in the gateway's catalogue.
    pub kind: SourceType,
    /// Its settings.
    pub config: BTreeMap<SourceField, String>,
    /// The Secrets that its credentials were read from.
    pub secrets: BTreeMap<SourceField, SecretId>,
    /// How far it is.
    pub state: SourceState,
    /// Whether the gateway ever answered that it has it.
    pub registered: bool,
    /// Registrations and refreshes that may still reach the gateway.
    pub tellings: Vec<Telling>,
    /// Versions from which it was withdrawn.
    pub withdrawals: Vec<Withdrawal>,
    /// Grows with each change.
    pub version: u64,
    /// When it was created.
    pub created_at: Timestamp,
}

impl CredentialSource {
    /// Most settings of one source.
    pub const MAX_CONFIG: usize = 32;
    /// Longest setting, in characters.
    pub const MAX_SETTING: usize = 2048;
    /// Most Secrets of one source.
    pub const MAX_SECRETS: usize = 16;

    /// For how long what was begun and is not known to have ended may still reach the gateway (spec/engine 1.8): 30 seconds of the call, 30
    /// that a gateway has to end what was cut off, and the time between the record and the call.
    pub const LATE: Duration = Duration::from_secs(70);
    /// Most registrations and refreshes at once.
    pub const MAX_TELLINGS: usize = 16;

    /// Whether something that was begun may still reach the gateway, after which what was removed there would be there again.
    pub fn unsettled(&self, now: Timestamp) -> bool {
        let registration = !self.registered && now.since(self.created_at) < Self::LATE;
        registration || self.is_being_told(now)
    }

    /// Whether what the record knows to have been told may still reach the gateway.
    pub fn is_being_told(&self, now: Timestamp) -> bool {
        self.tellings.iter().any(|one| now.since(one.since) < Self::LATE)
    }

    /// Whether all that happened between this state and that one is that others began to tell the gateway, and none of them has ended.
    pub fn others_only_began(&self, then: &Self) -> bool {
        // Each change is counted by the version, and what ended is among the tellings no more.
        let begun = then.tellings.iter().filter(|one| !self.tellings.contains(one));
        u64::try_from(begun.count()).is_ok_and(|begun| then.version == self.version + begun)
    }

    /// The source when this request is about to tell the gateway. What lies too far back is forgotten.
    #[must_use]
    pub fn telling(&self, operation: Uuid, now: Timestamp) -> Self {
        let mut changed = self.told(operation);
        changed.tellings.retain(|one| now.since(one.since) < Self::LATE);
        changed.tellings.push(Telling { operation, since: now });
        changed
    }

    /// The source once it is known that this request tells the gateway no more.
    #[must_use]
    pub fn told(&self, operation: Uuid) -> Self {
        let mut changed = self.clone();
        changed.version += 1;
        changed.tellings.retain(|one| one.operation != operation);
        changed
    }

    /// Its withdrawal from this version, if it was asked for.
    pub fn withdrawal(&self, revision: RevisionId) -> Option<&Withdrawal> {
        self.withdrawals.iter().find(|one| one.revision_id == revision)
    }

    /// The source with this withdrawal, in the place of an earlier one from the same version.
    #[must_use]
    pub fn withdrawn(&self, withdrawal: Withdrawal) -> Self {
        let mut changed = self.clone();
        changed.version += 1;
        changed
            .withdrawals
            .retain(|one| one.revision_id != withdrawal.revision_id);
        changed.withdrawals.push(withdrawal);
        changed
    }

    /// The source once the withdrawal of this request is shown to be done.
    #[must_use]
    pub fn revoked(&self, operation: Uuid, now: Timestamp) -> Self {
        let mut changed = self.clone();
        changed.version += 1;
        for withdrawal in changed.withdrawals.iter_mut().filter(|one| one.operation == operation) {
            withdrawal.state = WithdrawalState::Revoked;
            withdrawal.completed_at = Some(now);
        }
        changed
    }
}

/// How a Harness logs in with a mediated credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoginMode {
    /// As with a provider's API key.
    ApiKey,
    /// As with a `ChatGPT` account's tokens.
    #[serde(rename = "chatgpt_auth_tokens")]
    ChatgptAuthTokens,
}

/// A source as a revision froze it (spec/engine 1.11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SourceSnapshot {
    /// The source.
    pub source_id: CredentialSourceId,
    /// The Credential Gateway that had it at admission.
    pub credential_gateway_id: String,
    /// What it was.
    pub source_type: SourceType,
    /// How the Harness logs in with it, when it is the model credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_mode: Option<LoginMode>,
}
