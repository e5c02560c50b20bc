//! A Credential Gateway in memory. It stands for a vendor's broker, which cannot run in a test.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use async_trait::async_trait;
use occ_core::{
    driver::{
        Attachment, AttachmentCondition, CredentialGateway, DriverIdentity, DriverKind, EffectResult, OperationContext,
        RevisionRef, SourceCondition, SourceContent, SourceIdentity, SourceRejection, SourceTypeInfo,
    },
    id::{CredentialSourceId, RevisionId},
    resource::{LoginMode, SourceField, SourceType},
};

use super::script::{Script, lock};

/// Knows `openai` (a model credential: `api_key`) and `bearer-token` (`token`, with a setting `host`). The placeholder of the first is in
/// `MEDIATED_KEY`, that of the second in the variable that its `host` names.
pub struct MediatingGateway {
    identity: DriverIdentity,
    types: Vec<SourceTypeInfo>,
    state: Mutex<State>,
    /// What a registration answers before it happens; ordinarily ready.
    pub register: Script<CredentialSourceId, SourceCondition>,
    /// What a removal answers before it happens; ordinarily nothing.
    pub remove: Script<CredentialSourceId, ()>,
    /// How an attachment is; ordinarily ready, or revoked once it was withdrawn.
    pub attachment: Script<CredentialSourceId, AttachmentCondition>,
}

#[derive(Default)]
struct State {
    kept: BTreeMap<CredentialSourceId, BTreeMap<SourceField, Vec<u8>>>,
    hosts: BTreeMap<CredentialSourceId, String>,
    withdrawn: BTreeSet<(RevisionId, CredentialSourceId)>,
}

fn word<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    text.parse().expect("a word of a catalogue")
}

impl MediatingGateway {
    /// With this id.
    pub fn named(id: &str) -> Self {
        let kind = |kind, config: &[&str], secret, login_mode| SourceTypeInfo {
            kind: word::<SourceType>(kind),
            config: config.iter().map(|field| word(field)).collect(),
            secrets: vec![word(secret)],
            login_mode,
        };
        Self {
            identity: super::identity(DriverKind::CredentialGateway, id, "occ/mediating"),
            types: vec![
                kind("openai", &[], "api_key", Some(LoginMode::ApiKey)),
                kind("bearer-token", &["host"], "token", None),
            ],
            state: Mutex::default(),
            register: Script::default(),
            remove: Script::default(),
            attachment: Script::default(),
        }
    }

    /// Of how many sources it keeps something.
    pub fn sources(&self) -> usize {
        lock(&self.state).kept.len()
    }

    /// What it keeps of a source: its credentials, as text.
    pub fn kept(&self, source: CredentialSourceId) -> Option<Vec<String>> {
        let state = lock(&self.state);
        let values = state.kept.get(&source)?.values();
        Some(
            values
                .map(|value| String::from_utf8_lossy(value).into_owned())
                .collect(),
        )
    }
}

#[async_trait]
impl CredentialGateway for MediatingGateway {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn source_types(&self) -> &[SourceTypeInfo] {
        &self.types
    }

    fn validate(&self, _: &SourceType, config: &BTreeMap<SourceField, String>) -> Result<(), SourceRejection> {
        match config.iter().find(|(_, value)| value.contains(' ')) {
            Some((field, _)) => Err(SourceRejection {
                field: field.clone(),
                accepted: "The host is a name without white space.",
            }),
            None => Ok(()),
        }
    }

    async fn register(
        &self,
        cx: &OperationContext,
        source: &SourceIdentity,
        content: SourceContent<'_>,
    ) -> EffectResult<SourceCondition> {
        let answer = self.register.play(cx, source.id, SourceCondition::Ready).await?;
        let mut state = lock(&self.state);
        let secrets = content.secrets.iter();
        let secrets = secrets.map(|(field, value)| (field.clone(), value.expose().to_vec()));
        state.kept.insert(source.id, secrets.collect());
        if let Some(host) = content.config.values().next() {
            state.hosts.insert(source.id, host.clone());
        }
        Ok(answer)
    }

    async fn condition(&self, _: &OperationContext, source: &SourceIdentity) -> EffectResult<SourceCondition> {
        let kept = lock(&self.state).kept.contains_key(&source.id);
        Ok(if kept {
            SourceCondition::Ready
        } else {
            SourceCondition::Absent
        })
    }

    async fn remove(&self, cx: &OperationContext, source: &SourceIdentity) -> EffectResult<()> {
        self.remove.play(cx, source.id, ()).await?;
        lock(&self.state).kept.remove(&source.id);
        Ok(())
    }

    async fn attach(
        &self,
        _: &OperationContext,
        _: &RevisionRef,
        sources: &[SourceIdentity],
    ) -> EffectResult<Vec<Attachment>> {
        let state = lock(&self.state);
        let variable = |source: &SourceIdentity| match state.hosts.get(&source.id) {
            Some(host) => host.clone(),
            None => "MEDIATED_KEY".to_owned(),
        };
        let attached = sources.iter().map(|source| {
            let name = variable(source).try_into().expect("a variable's name");
            Attachment {
                source: source.id,
                placeholders: [(name, format!("placeholder-{}", source.id))].into(),
            }
        });
        Ok(attached.collect())
    }

    async fn attachment(
        &self,
        cx: &OperationContext,
        revision: &RevisionRef,
        source: &SourceIdentity,
    ) -> EffectResult<AttachmentCondition> {
        let withdrawn = lock(&self.state).withdrawn.contains(&(revision.id, source.id));
        let ordinary = if withdrawn {
            AttachmentCondition::Revoked
        } else {
            AttachmentCondition::Ready
        };
        self.attachment.play(cx, source.id, ordinary).await
    }

    async fn withdraw(
        &self,
        _: &OperationContext,
        revision: &RevisionRef,
        source: &SourceIdentity,
    ) -> EffectResult<()> {
        lock(&self.state).withdrawn.insert((revision.id, source.id));
        Ok(())
    }
}
