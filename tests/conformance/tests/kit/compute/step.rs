//! What happens to versions.

use std::{collections::BTreeMap, fmt::Write as _};

use occ_core::{
    driver::{
        AgentRef, EffectError, EffectResult, OperationContext, RevisionContext, RevisionObservation, RevisionRef, Stop,
    },
    id::RevisionId,
    plan::{Component, EnvValue, SecretSlot, Segment},
    reason::{Pending, RuntimeCode, RuntimeFailure, Token},
    time::Timestamp,
};

use super::{
    Flaw,
    driver::{ModelCompute, fault},
    place::{Gateway, Home},
};

fn held(code: RuntimeCode) -> EffectError {
    let failure = RuntimeFailure {
        component: Token::known("gateway"),
        check: Token::known("startup"),
        checked_at: Timestamp::from_millis(0),
        code,
        cause: None,
    };
    EffectError::Held(Box::new(failure), None)
}

impl ModelCompute {
    pub fn ready(&self, target: &RevisionRef) -> RevisionObservation {
        let mut seen = RevisionObservation::ready(target);
        if self.is(Flaw::OtherVersionSeen) {
            seen.revision_id = RevisionId::random();
        }
        seen
    }

    async fn environment(
        &self,
        context: &RevisionContext,
        component: &Component,
    ) -> EffectResult<BTreeMap<String, String>> {
        let mut environment = BTreeMap::new();
        for (name, value) in &component.environment {
            let text = match value {
                EnvValue::Text(text) => match text.0.first() {
                    Some(Segment::Literal(text)) => text.clone(),
                    _ => String::new(),
                },
                EnvValue::Secret(SecretSlot::GatewayPassword) => {
                    let state = self.place.state();
                    let home = state.homes.get(&context.target.agent.id);
                    home.and_then(|home| home.password.clone())
                        .ok_or_else(|| fault("look for the password"))?
                }
                EnvValue::Secret(SecretSlot::Binding(_)) if self.is(Flaw::ForgetsBoundSecret) => continue,
                EnvValue::Secret(slot) => {
                    let value = context.secrets.value(slot).await?;
                    let value = value.expose_str().unwrap_or_default().to_owned();
                    if self.is(Flaw::KeepsSecret) {
                        self.place.state().scrap.push(value.clone());
                    }
                    value
                }
            };
            environment.insert(name.clone(), text);
        }
        if !self.is(Flaw::ForgetsHooks) {
            for hook in self.hooks() {
                environment.extend(
                    hook.before_workload_start(&OperationContext::default(), &context.target)
                        .await?,
                );
            }
        }
        Ok(environment)
    }

    /// The component of the plan, when it can run at all and its model is usable.
    fn checked<'a>(&self, context: &'a RevisionContext) -> EffectResult<&'a Component> {
        let Some(component) = context.plan.components.first() else {
            return Err(fault("look for a component"));
        };
        let program = component.command.first().and_then(|program| program.0.first());
        if program != Some(&Segment::Tool("python3".to_owned())) && !self.is(Flaw::BelievesMissingProgram) {
            return Err(held(RuntimeCode::Unavailable));
        }
        let refused = component.probe.iter().any(|probe| {
            let refused = probe.environment.get("REFUSED");
            refused == Some(&EnvValue::Text("yes".into()))
        });
        if refused && !self.is(Flaw::BelievesRefusedCredential) {
            if self.is(Flaw::RefusalStopsPredecessor) {
                Self::home(&mut self.place.state(), &context.target.agent).gateway = None;
            }
            return Err(held(RuntimeCode::AuthenticationFailed));
        }
        Ok(component)
    }

    /// Starts the version's component where nothing of the Agent runs.
    fn start(&self, context: &RevisionContext, environment: BTreeMap<String, String>) {
        let target = &context.target;
        let mut state = self.place.state();
        let home = Self::home(&mut state, &target.agent);
        let late = self.is(Flaw::FilesAfterStart);
        let found = |home: &Home| {
            home.files
                .iter()
                .map(|(name, text)| ((*name).to_owned(), text.clone()))
                .collect()
        };
        let mut seen = found(home);
        if context
            .plan
            .components
            .iter()
            .any(|component| component.workspace.is_some())
        {
            home.initialize();
        }
        if let Some(setup) = &context.workspace_setup {
            let again = home.setup != Some(setup.id) || self.is(Flaw::ReplaysFiles);
            for (name, text) in setup.files.iter().flat_map(|files| &files.0).filter(|_| again) {
                home.files.insert(name.as_str(), text.clone());
            }
            home.setup = Some(setup.id);
        }
        if !late {
            seen = found(home);
        }
        let version = environment.get("VERSION").cloned().unwrap_or_default();
        home.starts.push(version.clone());
        for text in home.files.values_mut() {
            let _ = writeln!(text, "edited by {version}");
        }
        home.starting = None;
        home.gateway = Some(Gateway {
            revision: target.id,
            lines: vec![format!("version {version}")],
            version,
            environment,
            found: seen,
            starter: self.instance,
        });
    }

    /// One step towards a version that can take over, or serves.
    pub async fn step(
        &self,
        cx: &OperationContext,
        context: &RevisionContext,
        activating: bool,
    ) -> EffectResult<RevisionObservation> {
        let target = &context.target;
        self.enter(cx, &target.agent)?;
        self.begin(&target.agent)?;
        tokio::task::yield_now().await;
        self.enter(cx, &target.agent)?;
        let component = self.checked(context).inspect_err(|_| self.end(&target.agent))?;
        let pending = RevisionObservation::pending(target, Pending::RevisionIncomplete);
        let position = {
            let mut state = self.place.state();
            let home = Self::home(&mut state, &target.agent);
            home.revisions.insert(target.id, target.number);
            if self.is(Flaw::RouteAtPrepare) {
                home.route = Some(target.id);
            }
            let mine = home
                .gateway
                .as_ref()
                .map(|gateway| (gateway.revision == target.id, gateway.starter));
            match mine {
                Some((true, starter)) if self.is(Flaw::ForgetsWhatItStarted) && starter != self.instance => None,
                Some((true, _)) => Some(true),
                Some((false, _)) if activating || self.is(Flaw::PrepareStopsPredecessor) => {
                    home.gateway = None;
                    None
                }
                Some((false, _)) => Some(false),
                None => None,
            }
        };
        let seen = match position {
            Some(true) => {
                if self.is(Flaw::StartsEachTime) {
                    self.start(context, self.environment(context, component).await?);
                }
                self.ready(target)
            }
            // The predecessor serves; the candidate was checked.
            Some(false) => self.ready(target),
            None => {
                let started = Self::home(&mut self.place.state(), &target.agent).starting == Some(target.id);
                if started || self.is(Flaw::ForgetsWhatItStarted) {
                    let environment = self.environment(context, component).await;
                    let environment = environment.inspect_err(|_| self.end(&target.agent))?;
                    self.start(context, environment);
                } else {
                    Self::home(&mut self.place.state(), &target.agent).starting = Some(target.id);
                }
                pending
            }
        };
        self.end(&target.agent);
        Ok(seen)
    }

    fn begin(&self, agent: &AgentRef) -> EffectResult<()> {
        if !self.is(Flaw::HalfDone) {
            return Ok(());
        }
        let mut state = self.place.state();
        let home = Self::home(&mut state, agent);
        if std::mem::replace(&mut home.busy, true) {
            return Err(fault("begin what was not ended"));
        }
        Ok(())
    }

    fn end(&self, agent: &AgentRef) {
        if self.is(Flaw::HalfDone) {
            Self::home(&mut self.place.state(), agent).busy = false;
        }
    }

    pub async fn halt(&self, cx: &OperationContext, target: &RevisionRef) -> EffectResult<Stop> {
        self.enter(cx, &target.agent)?;
        if !self.is(Flaw::ForgetsHooks) {
            for hook in self.hooks() {
                hook.before_workload_stop(cx, &target.agent).await?;
            }
        }
        let mut state = self.place.state();
        if self.is(Flaw::StopStopsSiblings) {
            state.homes.values_mut().for_each(|home| home.gateway = None);
        }
        let Some(home) = state.homes.get_mut(&target.agent.id) else {
            return Ok(Stop::Stopped);
        };
        if home.route == Some(target.id) && !self.is(Flaw::StopKeepsRoute) {
            home.route = None;
        }
        let starting = home.starting.take_if(|starting| *starting == target.id).is_some();
        if starting && self.is(Flaw::StopOfStartFails) {
            return Err(fault("stop what only starts"));
        }
        match &home.gateway {
            Some(gateway) if gateway.revision == target.id => {
                if self.is(Flaw::StopsItsOwnOnly) && gateway.starter != self.instance {
                    return Ok(Stop::Stopped);
                }
                home.gateway = None;
                Ok(Stop::Draining)
            }
            _ => {
                if self.is(Flaw::StopRemovesWorkspace) {
                    home.starts.clear();
                }
                if self.is(Flaw::StopRemovesCredentials) {
                    home.password = None;
                }
                Ok(Stop::Stopped)
            }
        }
    }
}
