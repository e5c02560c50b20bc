//! The optional abilities of the model.

use std::time::Duration;

use async_trait::async_trait;
use occ_core::{
    driver::{
        AgentBinding, AgentRef, Check, CheckStatus, Diagnostics, EffectResult, GatewayAccess, GatewayEndpoint,
        LogQuery, Maintenance, OperationContext, RevisionRef, RuntimeCredentials, RuntimeImage, RuntimeImages,
        RuntimeLogs, WorkspaceSetupSupport,
    },
    reason::Token,
    secret_value::SecretValue,
};
use uuid::Uuid;

use super::{
    Flaw,
    driver::{ModelCompute, fault},
};

#[async_trait]
impl RuntimeCredentials for ModelCompute {
    async fn exist(&self, _: &OperationContext, agent: &AgentRef) -> EffectResult<bool> {
        let mut state = self.place.state();
        if self.is(Flaw::CredentialsAppear) {
            Self::home(&mut state, agent).password = Some("appeared".to_owned());
        }
        let home = state.homes.get(&agent.id);
        Ok(home.is_some_and(|home| home.password.is_some()))
    }

    async fn provision(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()> {
        self.enter(cx, agent)?;
        let mut state = self.place.state();
        let home = Self::home(&mut state, agent);
        if home.password.is_none() || self.is(Flaw::ProvisionOverwrites) {
            home.password = Some(match self.flaw {
                Flaw::OnePasswordForAll => "the same".to_owned(),
                _ => Uuid::new_v4().to_string(),
            });
        }
        Ok(())
    }

    async fn delete(&self, cx: &OperationContext, agent: &AgentRef) -> EffectResult<()> {
        self.enter(cx, agent)?;
        if let Some(home) = self.place.state().homes.get_mut(&agent.id)
            && !self.is(Flaw::CredentialsSurvive)
        {
            home.password = None;
        }
        Ok(())
    }
}

#[async_trait]
impl GatewayAccess for ModelCompute {
    async fn endpoint(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Option<GatewayEndpoint>> {
        self.enter(cx, &revision.agent)?;
        if self.is(Flaw::LookingWrites) {
            self.place.state().scrap.push("looked".to_owned());
        }
        let on_route = self.on_route(&revision.agent) == Some(revision.id) || self.is(Flaw::RouteByGuess);
        Ok(on_route.then(|| GatewayEndpoint {
            url: format!("model://{}", revision.agent.id),
            password_file: None,
        }))
    }

    async fn password(&self, _: &OperationContext, agent: &AgentRef) -> EffectResult<Option<SecretValue>> {
        let state = self.place.state();
        let password = state.homes.get(&agent.id).and_then(|home| home.password.clone());
        Ok(password.map(SecretValue::from))
    }
}

#[async_trait]
impl WorkspaceSetupSupport for ModelCompute {
    async fn discard(&self, _: &OperationContext, agent: &AgentRef, setup: Uuid) -> EffectResult<()> {
        let state = self.place.state();
        let known = state.homes.get(&agent.id).is_some_and(|home| home.setup == Some(setup));
        if !known && self.is(Flaw::DiscardOfNothingFails) {
            return Err(fault("discard nothing"));
        }
        Ok(())
    }
}

#[async_trait]
impl Diagnostics for ModelCompute {
    async fn diagnose(&self, cx: &OperationContext, revision: &RevisionRef) -> EffectResult<Vec<Check>> {
        let state = self.place.state();
        let gateway = state
            .homes
            .get(&revision.agent.id)
            .and_then(|home| home.gateway.as_ref());
        let runs = gateway.is_some_and(|gateway| gateway.revision == revision.id);
        let check = Check {
            component: Token::known("gateway"),
            check: Token::known("process"),
            status: if runs || self.is(Flaw::SuccessWithoutEvidence) {
                CheckStatus::Succeeded
            } else {
                CheckStatus::Unknown
            },
            code: None,
            checked_at: cx.now(),
        };
        let count = if self.is(Flaw::TooManyChecks) { 33 } else { 1 };
        Ok(vec![check; count])
    }
}

#[async_trait]
impl RuntimeLogs for ModelCompute {
    async fn read(&self, _: &OperationContext, revision: &RevisionRef, query: &LogQuery) -> EffectResult<Vec<String>> {
        let state = self.place.state();
        let gateway = state
            .homes
            .get(&revision.agent.id)
            .and_then(|home| home.gateway.as_ref());
        let lines = gateway.map(|gateway| gateway.lines.clone()).unwrap_or_default();
        let skipped = match self.flaw {
            Flaw::FirstLines => 0,
            _ => lines.len().saturating_sub(query.lines.into()),
        };
        Ok(lines.into_iter().skip(skipped).collect())
    }
}

#[async_trait]
impl RuntimeImages for ModelCompute {
    async fn images(&self, _: &OperationContext, _: &RevisionRef) -> EffectResult<Vec<RuntimeImage>> {
        let component = if self.is(Flaw::UnplannedImage) {
            "sidecar"
        } else {
            "gateway"
        };
        Ok(vec![RuntimeImage {
            component: component.to_owned(),
            image: "model:1".to_owned(),
            image_id: None,
        }])
    }
}

#[async_trait]
impl AgentBinding for ModelCompute {
    async fn bind(&self, _: &OperationContext, _: &AgentRef) -> EffectResult<()> {
        self.twice(Flaw::SecondBindingFails, "bind")
    }
}

impl Maintenance for ModelCompute {
    fn interval(&self) -> Duration {
        if self.is(Flaw::NoInterval) {
            Duration::ZERO
        } else {
            Duration::from_secs(30)
        }
    }
}
