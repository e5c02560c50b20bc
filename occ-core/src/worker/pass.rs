//! The vocabulary of a pass: what it knows, what it can do next, what it learnt, how it ends.

use std::{collections::BTreeMap, time::Duration};

use uuid::Uuid;

use super::{Authority, agent, namespace, revision, withdrawal};
use crate::{
    audit::AuditEvent,
    driver::{
        AccessRequest, ActivationOrder, AgentRef, AttachmentCondition, EffectError, EffectResult, NamespaceState,
        RevisionObservation, RevisionRef, SourceIdentity, Stop,
    },
    id::{AgentId, InstallationId, RevisionId},
    reason::{Dependency, Failure, Pending, Preparation, RuntimeFailure, Success},
    resource::{Agent, ComputeIdentity},
    store::{Expect, PassRead, RevisionHead, Write},
    work::{Claim, Target, Warning},
};

/// What a pass must know of the selected Compute and of the approved Harnesses.
#[derive(Debug, Clone, PartialEq, Eq)]
// Independent facts that were looked up once; no combination of them is impossible.
#[allow(clippy::struct_excessive_bools)]
pub struct ComputeFacts {
    /// The selected Compute.
    pub identity: ComputeIdentity,
    /// When it switches the route.
    pub order: ActivationOrder,
    /// Whether it wants every predecessor of the target's version stopped first.
    pub exclusive: bool,
    /// Whether it can apply initial workspace files.
    pub workspace_setup: bool,
    /// Whether it binds Agents.
    pub binds: bool,
    /// Whether the target's Harness is still an approved one.
    pub harness_approved: bool,
    /// Whether the target's Backend, when it has one, is still configured.
    pub backend_configured: bool,
    /// Whether the driver and the Backend of the target's service account, when it has one, are still selected and configured.
    pub account_issuer: bool,
    /// Whether the target's stored bytes still have their digest.
    pub intact: bool,
    /// The selected Credential Gateway's id.
    pub credential_gateway: Option<String>,
    /// The selected Secret Driver's id.
    pub secret_driver: String,
    /// How often the selected version of an Agent is looked after.
    pub maintenance: Option<Duration>,
    /// The Installation, for work that was authorized on it.
    pub installation: Option<InstallationId>,
}

/// One attempt at a piece of work.
#[derive(Debug, Clone)]
pub struct Pass {
    /// The claim.
    pub claim: Claim,
    /// What was read last.
    pub read: PassRead,
    /// What the drivers are like.
    pub compute: ComputeFacts,
    /// Whether the work's convergence deadline had passed when it was claimed; of an outcome, when the pass ended.
    pub late: bool,
    /// What the steps so far brought.
    pub progress: Progress,
}

/// A stop that was tried, and how long it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopRecord {
    /// What Compute answered.
    pub result: EffectResult<Stop>,
    /// How long it took.
    pub took: Duration,
}

/// What the steps so far brought. Empty at the start of every pass: a pass relies on nothing that an earlier one did.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// The original actor's and the Agent's authority, under the policy of now.
    pub authority: Option<EffectResult<Authority>>,
    /// The driver binding.
    pub bound: Option<EffectResult<()>>,
    /// The Namespace effect.
    pub namespace: Option<EffectResult<NamespaceState>>,
    /// The preparation.
    pub prepared: Option<EffectResult<RevisionObservation>>,
    /// Whether desired state was read again after the preparation.
    pub reread_prepared: bool,
    /// The deactivation of an unpublished first candidate.
    pub deactivated: Option<EffectResult<()>>,
    /// The activation.
    pub activated: Option<EffectResult<RevisionObservation>>,
    /// The pointer's move: `false` when something else moved it.
    pub pointer: Option<EffectResult<bool>>,
    /// Whether desired state was read again after the pointer moved.
    pub reread_published: bool,
    /// Whether staged workspace contents were forgotten by Compute.
    pub discarded: Option<EffectResult<()>>,
    /// Stops that were tried.
    pub stops: BTreeMap<RevisionId, StopRecord>,
    /// Retirements that were tried.
    pub retired: BTreeMap<RevisionId, EffectResult<Stop>>,
    /// The removal of runtime credentials.
    pub credentials_deleted: Option<EffectResult<bool>>,
    /// The removal of what Compute held of the Agent.
    pub agent_deleted: Option<EffectResult<Stop>>,
    /// How the use of a credential source is, after the gateway was asked to end it.
    pub withdrawn: Option<EffectResult<AttachmentCondition>>,
}

impl Progress {
    /// The first step that failed, for the log: drivers' errors hold static words only.
    pub fn cause(&self) -> Option<&EffectError> {
        let stops = self.stops.values().filter_map(|record| record.result.as_ref().err());
        let retired = self.retired.values().filter_map(|result| result.as_ref().err());
        [
            failed_step(self.authority.as_ref()),
            failed_step(self.bound.as_ref()),
            failed_step(self.namespace.as_ref()),
            failed_step(self.prepared.as_ref()),
            failed_step(self.deactivated.as_ref()),
            failed_step(self.activated.as_ref()),
            failed_step(self.pointer.as_ref()),
            failed_step(self.discarded.as_ref()),
            failed_step(self.credentials_deleted.as_ref()),
            failed_step(self.agent_deleted.as_ref()),
            failed_step(self.withdrawn.as_ref()),
        ]
        .into_iter()
        .flatten()
        .chain(stops)
        .chain(retired)
        .next()
    }
}

fn failed_step<T>(result: Option<&EffectResult<T>>) -> Option<&EffectError> {
    result.and_then(|result| result.as_ref().err())
}

/// What a pass does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the IAM Driver again for the original actor and for the Agent's principal.
    Authorize(Vec<AccessRequest>),
    /// Bind the Agent.
    Bind(AgentRef),
    /// Provide the Namespace.
    EnsureNamespace,
    /// Remove the Namespace.
    DeleteNamespace,
    /// Prepare the target's version.
    Prepare,
    /// Activate the target's version.
    Activate,
    /// Take the unpublished first candidate off the route.
    Deactivate(RevisionRef),
    /// Stop a version.
    Stop(RevisionRef),
    /// Retire a version.
    Retire(RevisionRef),
    /// Read the facts again.
    Reread,
    /// Move the Agent's pointer to the target's version, if it still names `from` and the Agent should run.
    MovePointer {
        /// The Agent.
        agent: AgentId,
        /// What the pointer must still name.
        from: Option<RevisionId>,
        /// The target's version.
        to: RevisionId,
    },
    /// Let Compute forget the contents of a completed workspace setup.
    DiscardSetup(AgentRef, Uuid),
    /// Delete the Agent's runtime credentials.
    DeleteCredentials(AgentRef),
    /// Delete what Compute holds of the Agent.
    DeleteAgent(AgentRef),
    /// Ask the Credential Gateway to end the use of a source by a version, and look whether it has.
    Withdraw(RevisionRef, Box<SourceIdentity>),
    /// End the pass.
    Finish(Box<Outcome>),
}

/// What a step brought.
#[derive(Debug, Clone)]
pub enum Event {
    /// Of [`Step::Authorize`].
    Authority(EffectResult<Authority>),
    /// Of [`Step::Bind`].
    Bound(EffectResult<()>),
    /// Of [`Step::EnsureNamespace`] and [`Step::DeleteNamespace`].
    Namespace(EffectResult<NamespaceState>),
    /// Of [`Step::Prepare`].
    Prepared(EffectResult<RevisionObservation>),
    /// Of [`Step::Activate`].
    Activated(EffectResult<RevisionObservation>),
    /// Of [`Step::Deactivate`].
    Deactivated(EffectResult<()>),
    /// Of [`Step::Stop`].
    Stopped(RevisionId, StopRecord),
    /// Of [`Step::Retire`].
    Retired(RevisionId, EffectResult<Stop>),
    /// Of [`Step::Reread`].
    Read(Box<PassRead>),
    /// Of [`Step::MovePointer`].
    PointerMoved(EffectResult<bool>),
    /// Of [`Step::DiscardSetup`].
    Discarded(EffectResult<()>),
    /// Of [`Step::DeleteCredentials`]: whether they are, which they are not as long as some may still be generated.
    CredentialsDeleted(EffectResult<bool>),
    /// Of [`Step::DeleteAgent`].
    AgentDeleted(EffectResult<Stop>),
    /// Of [`Step::Withdraw`].
    Withdrawn(EffectResult<AttachmentCondition>),
}

/// How a pass ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The work is done; the writes are published with its completion.
    Done {
        /// How.
        success: Success,
        /// Plugins that the version runs without.
        warnings: Vec<Warning>,
        /// What else must hold.
        expect: Vec<Expect>,
        /// What else is written.
        writes: Vec<WriteBox>,
        /// What is recorded.
        audit: Vec<AuditEvent>,
    },
    /// Not yet; no attempt is spent, and the convergence deadline applies.
    Pending {
        /// Why.
        reason: Pending,
        /// What the runtime said of itself.
        evidence: Option<RuntimeFailure>,
    },
    /// A dependency is away; no attempt is spent, and at the deadline its own code ends the work.
    Away(Dependency),
    /// A stop or a retirement is draining; no attempt is spent and no deadline applies.
    Draining(Pending),
    /// A candidate is refused and must be stopped, which the next pass does; no attempt is spent and no deadline applies.
    Refused(Failure),
    /// A refused candidate still has to be stopped; no attempt is spent and no deadline applies.
    RefusedStop {
        /// The refusal.
        refusal: Failure,
        /// How many stops failed in a row, this one included.
        failed_stops: u32,
        /// How long this one took.
        took: Duration,
    },
    /// Something went wrong; an attempt is spent.
    Retry {
        /// Why.
        reason: Pending,
        /// How the work ends when the attempts are spent.
        exhausted: Failure,
    },
    /// The runtime failed by itself.
    Held {
        /// What it said.
        failure: RuntimeFailure,
        /// Safe facts.
        preparation: Option<Preparation>,
    },
    /// It is over.
    Failed {
        /// Why.
        failure: Failure,
        /// What is recorded.
        audit: Vec<AuditEvent>,
    },
}

/// A [`Write`] that can be compared, which a step must be. Writes are compared by their debug form: they hold data only.
#[derive(Debug, Clone)]
pub struct WriteBox(pub Write);

impl PartialEq for WriteBox {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl Pass {
    /// The next step. Pure and total.
    pub fn decide(&self) -> Step {
        match self.claim.target {
            Target::NamespaceReady { .. } | Target::NamespaceDeleted { .. } => namespace::decide(self),
            Target::AgentStopped { .. } => agent::stop(self),
            Target::AgentDeleted { .. } => agent::delete(self),
            Target::Revision { .. } | Target::Maintenance { .. } => revision::decide(self),
            Target::CredentialsWithdrawn { operation, .. } => withdrawal::decide(self, operation),
        }
    }

    /// Records what a step brought.
    pub fn apply(&mut self, event: Event) {
        let progress = &mut self.progress;
        match event {
            Event::Authority(result) => progress.authority = Some(result),
            Event::Bound(result) => progress.bound = Some(result),
            Event::Namespace(result) => progress.namespace = Some(result),
            Event::Prepared(result) => progress.prepared = Some(result),
            Event::Activated(result) => progress.activated = Some(result),
            Event::Deactivated(result) => progress.deactivated = Some(result),
            Event::Stopped(revision, record) => {
                progress.stops.insert(revision, record);
            }
            Event::Retired(revision, result) => {
                progress.retired.insert(revision, result);
            }
            Event::Read(read) => {
                if progress.pointer.is_some() {
                    progress.reread_published = true;
                } else {
                    progress.reread_prepared = true;
                }
                self.read = *read;
            }
            Event::PointerMoved(result) => progress.pointer = Some(result),
            Event::Discarded(result) => progress.discarded = Some(result),
            Event::CredentialsDeleted(result) => progress.credentials_deleted = Some(result),
            Event::AgentDeleted(result) => progress.agent_deleted = Some(result),
            Event::Withdrawn(result) => progress.withdrawn = Some(result),
        }
    }
}

/// The Agent as drivers know it.
pub(super) fn agent_ref(agent: &Agent) -> AgentRef {
    AgentRef {
        namespace_id: agent.namespace_id,
        id: agent.id,
        name: agent.name.clone(),
        service_principal_id: agent.service_principal_id.clone(),
    }
}

/// The version as drivers know it.
pub(super) fn revision_ref(agent: &Agent, revision: &RevisionHead) -> RevisionRef {
    RevisionRef {
        agent: agent_ref(agent),
        id: revision.id,
        number: revision.revision,
        // Of a version that does not say, as the Agent is now: it rarely changes.
        mode: revision.mode.unwrap_or(agent.execution_mode),
    }
}

/// A pass's end.
pub(super) fn finish(outcome: Outcome) -> Step {
    Step::Finish(Box::new(outcome))
}

/// An end of which nothing else is recorded.
pub(super) fn failed(failure: Failure) -> Outcome {
    Outcome::Failed {
        failure,
        audit: Vec::new(),
    }
}

/// A success without further writes.
pub(super) fn done(success: Success) -> Outcome {
    Outcome::Done {
        success,
        warnings: Vec::new(),
        expect: Vec::new(),
        writes: Vec::new(),
        audit: Vec::new(),
    }
}

/// What an effect's failure means before anything was published (spec/contracts 4.7).
pub(super) fn effect_failed(error: &EffectError) -> Outcome {
    match error {
        EffectError::Pending(reason) => Outcome::Pending {
            reason: *reason,
            evidence: None,
        },
        EffectError::Transient(dependency) => Outcome::Away(*dependency),
        EffectError::Held(failure, preparation) => Outcome::Held {
            failure: (**failure).clone(),
            preparation: preparation.as_deref().cloned(),
        },
        EffectError::Terminal(terminal) => failed(terminal.failure()),
        EffectError::Ownership => failed(Failure::OwnershipConflict),
        EffectError::UnknownOutcome | EffectError::Fault(_) => Outcome::Retry {
            reason: Pending::DependencyUnavailable,
            exhausted: Failure::DependencyUnavailable,
        },
    }
}
