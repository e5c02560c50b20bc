//! What a request's headers ask for: to be done once, and only on a known state.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

use super::{Answer, operation::Operation};
use crate::{
    admission::Refusal,
    digest,
    reason::ApiCode,
    resource::Agent,
    store::{Change, Expect, FirstAnswer, Write},
};

/// What a request asks for beside its body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// `Idempotency-Key`.
    pub once: Option<Once>,
    /// `If-Match`.
    pub if_match: Option<IfMatch>,
}

/// The request is done once, however often it arrives within a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    /// What the caller calls the request.
    pub key: String,
    /// SHA-256 of the request, in hexadecimal: another request may not use the key.
    pub fingerprint: String,
}

/// The states on which the request is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Any.
    Any,
    /// Those with one of these tags.
    Tags(Vec<Tag>),
}

/// The tag of a state, with its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(pub String);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Tag {
    /// That of a Configuration's generation.
    pub fn of_generation(generation: u64) -> Self {
        Self(format!("\"{generation}\""))
    }

    /// That of an Agent's draft. What the Agent is going through does not change it.
    ///
    /// # Panics
    /// Never: ids and a binding are always JSON. One tag for all drafts would let updates overwrite each other.
    pub fn of_draft(agent: &Agent) -> Self {
        let draft = (
            agent.id,
            agent.configuration_id,
            &agent.backend_id,
            agent.harness_auth,
            agent.execution_mode,
            &agent.credential_sources,
            &agent.plugins,
            &agent.plugin_approvers,
        );
        let hash = digest::hex(&serde_json::to_vec(&draft).expect("ids and a binding are always JSON"));
        Self(format!("\"{}\"", &hash[..32]))
    }
}

impl Operation<'_> {
    /// 412 unless the state with this tag is one on which the request is to be done.
    pub(super) fn on_state(&self, tag: &Tag) -> Answer<()> {
        match &self.conditions().if_match {
            None | Some(IfMatch::Any) => Ok(()),
            Some(IfMatch::Tags(tags)) if tags.contains(tag) => Ok(()),
            Some(IfMatch::Tags(_)) => Err(Refusal::new(ApiCode::PreconditionFailed)),
        }
    }

    /// The first result of this request, when it was done already. Asked once the caller's permission is known.
    pub(super) async fn first_answer<T: DeserializeOwned>(&self) -> Answer<Option<T>> {
        let Some(once) = &self.conditions().once else {
            return Ok(None);
        };
        let Some(first) = self.store().first_answer(self.principal(), &once.key).await? else {
            return Ok(None);
        };
        if first.fingerprint != once.fingerprint {
            return Err(Refusal::conflict(
                "The Idempotency-Key was used for another request. Use a new one.",
            ));
        }
        let answer = serde_json::from_value(first.answer).map_err(|_| Refusal::new(ApiCode::InternalError))?;
        Ok(Some(answer))
    }

    /// What a repetition of this request makes out of nothing as well: the same, when the request names itself.
    pub(super) fn request_uuid(&self) -> uuid::Uuid {
        let Some(once) = &self.conditions().once else {
            return crate::randomness::uuid();
        };
        let named = serde_json::json!([self.principal(), once.key, once.fingerprint]).to_string();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest::bytes(named.as_bytes())[..16]);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// The change, which keeps this as the request's first result.
    pub(super) fn answering(&self, change: Change, answer: &impl Serialize) -> Answer<Change> {
        let Some(once) = &self.conditions().once else {
            return Ok(change);
        };
        let answer = serde_json::to_value(answer).map_err(|_| Refusal::new(ApiCode::InternalError))?;
        let (principal, key) = (self.principal().clone(), once.key.clone());
        Ok(change
            .expect(Expect::NoAnswer(principal.clone(), key.clone()))
            .write(Write::Answer(FirstAnswer {
                principal,
                key,
                fingerprint: once.fingerprint.clone(),
                answer,
            })))
    }
}
