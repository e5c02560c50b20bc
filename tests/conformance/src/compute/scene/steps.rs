//! What the engine asks, and how it goes on after the answer.

use std::{
    fmt::Debug,
    sync::{Arc, PoisonError},
};

use occ_core::driver::{
    AgentRef, EffectError, EffectResult, OperationContext, Readiness, RevisionContext, RevisionObservation,
    RevisionRef, Stop,
};

use super::Scene;
use crate::{
    canary::{spotless, spotless_error},
    patience::{bounded, until},
};

impl Scene {
    pub(in crate::compute) async fn prepare(&self, version: &RevisionContext) -> EffectResult<Readiness> {
        self.prepare_under(&Self::cx(), version).await
    }

    pub(in crate::compute) async fn prepare_under(
        &self,
        cx: &OperationContext,
        version: &RevisionContext,
    ) -> EffectResult<Readiness> {
        let seen = bounded("prepare_revision", self.driver.prepare_revision(cx, version)).await;
        observed("prepare_revision", version, seen)
    }

    pub(in crate::compute) async fn activate(&self, version: &RevisionContext) -> EffectResult<Readiness> {
        let seen = bounded("activate_revision", self.driver.activate_revision(&Self::cx(), version)).await;
        observed("activate_revision", version, seen)
    }

    pub(in crate::compute) async fn deactivate(&self, version: &RevisionContext) -> EffectResult<()> {
        let cx = Self::cx();
        watched(
            "deactivate_revision",
            bounded(
                "deactivate_revision",
                self.driver.deactivate_revision(&cx, &version.target),
            )
            .await,
        )
    }

    pub(in crate::compute) async fn stop(&self, version: &RevisionRef) -> EffectResult<Stop> {
        let cx = Self::cx();
        watched(
            "stop_revision",
            bounded("stop_revision", self.driver.stop_revision(&cx, version)).await,
        )
    }

    pub(in crate::compute) async fn retire(&self, version: &RevisionRef) -> EffectResult<Stop> {
        let cx = Self::cx();
        watched(
            "retire_revision",
            bounded("retire_revision", self.driver.retire_revision(&cx, version)).await,
        )
    }

    pub(in crate::compute) async fn delete_agent(&self, agent: &AgentRef) -> EffectResult<Stop> {
        let cx = Self::cx();
        watched(
            "delete_agent",
            bounded("delete_agent", self.driver.delete_agent(&cx, agent)).await,
        )
    }

    /// Prepares until the version can take over, or until it cannot.
    pub(in crate::compute) async fn converged(&self, version: &RevisionContext) -> EffectResult<()> {
        if self.driver.requires_stopped_predecessors(&version.target) {
            for earlier in self.earlier(&version.target) {
                self.drained(async || self.stop(&earlier).await).await;
            }
        }
        until("the version is prepared", async || settled(self.prepare(version).await)).await
    }

    pub(in crate::compute) async fn prepared(&self, version: &RevisionContext) {
        self.converged(version).await.expect("the version can take over");
    }

    /// Prepares and activates, as the engine does on each pass, until the version serves.
    pub(in crate::compute) async fn deployed(&self, version: &RevisionContext) {
        self.prepared(version).await;
        let served = until("the version serves", async || {
            match settled(self.prepare(version).await) {
                Some(Ok(())) => settled(self.activate(version).await),
                other => other,
            }
        });
        served.await.expect("the version serves");
    }

    pub(in crate::compute) async fn stopped(&self, version: &RevisionContext) {
        self.drained(async || self.stop(&version.target).await).await;
    }

    pub(in crate::compute) async fn retired(&self, version: &RevisionContext) {
        self.drained(async || self.retire(&version.target).await).await;
    }

    async fn drained(&self, step: impl AsyncFn() -> EffectResult<Stop>) {
        until("nothing of it runs any more", async || match step().await {
            Ok(Stop::Stopped) => Some(()),
            Ok(Stop::Draining) => None,
            Err(error) if waits(&error) => None,
            Err(error) => panic!("a stop: {error}"),
        })
        .await;
    }

    /// Removes the Agent as the engine does: every version retired, its credentials deleted, then the rest.
    pub(in crate::compute) async fn deleted(&self) {
        for version in self.versions_of(&self.agent) {
            self.drained(async || self.retire(&version).await).await;
        }
        if let Some(credentials) = self.driver.runtime_credentials() {
            let gone = credentials.delete(&Self::cx(), &self.agent).await;
            watched("delete the credentials", gone).expect("the credentials are deleted");
        }
        self.drained(async || self.delete_agent(&self.agent).await).await;
    }

    /// Removes everything, so that the subject leaves nothing running.
    pub(in crate::compute) async fn cleared(&self) {
        let agents = std::mem::take(&mut *self.agents.lock().unwrap_or_else(PoisonError::into_inner));
        for agent in agents {
            let of = Self {
                subject: Arc::clone(&self.subject),
                driver: Arc::clone(&self.driver),
                namespace: self.namespace.clone(),
                agent,
                versions: Arc::clone(&self.versions),
                agents: Arc::default(),
            };
            of.deleted().await;
        }
    }

    /// Leaves this place as it is: something in it is not ours to remove.
    pub(in crate::compute) fn abandon(&self) {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Whether the engine only waits and asks again, without spending an attempt.
pub(super) fn waits(error: &EffectError) -> bool {
    matches!(
        error,
        EffectError::Pending(_) | EffectError::Transient(_) | EffectError::UnknownOutcome
    )
}

/// What an answer settles: `None` when the engine asks again.
pub(in crate::compute) fn settled(answer: EffectResult<Readiness>) -> Option<EffectResult<()>> {
    match answer {
        Ok(Readiness::Ready { .. }) => Some(Ok(())),
        Ok(Readiness::Pending { .. }) => None,
        Err(error) if waits(&error) => None,
        Err(error) => Some(Err(error)),
    }
}

fn observed(what: &str, version: &RevisionContext, seen: EffectResult<RevisionObservation>) -> EffectResult<Readiness> {
    let observation = watched(what, seen)?;
    assert!(
        observation.is_of(&version.target),
        "{what} saw another version than it was asked about"
    );
    Ok(observation.readiness)
}

/// The answer, in which no secret may be, however it is printed.
#[track_caller]
pub(in crate::compute) fn watched<T: Debug>(what: &str, answer: EffectResult<T>) -> EffectResult<T> {
    match &answer {
        Ok(value) => spotless(what, &format!("{value:?}")),
        Err(error) => spotless_error(what, error),
    }
    answer
}
