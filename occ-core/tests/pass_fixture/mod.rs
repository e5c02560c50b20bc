//! Scenes for passes: an Agent with one or two versions, and an interpreter that answers steps from a script.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::time::Duration;

use occ_core::{
    driver::{
        ActivationOrder, AttachmentCondition, EffectError, EffectResult, NamespaceState, RevisionObservation,
        RevisionRef, Stop,
    },
    id::{AgentId, ConfigurationId, CredentialSourceId, NamespaceId, RevisionId, SecretId},
    reason::{RuntimeCode, RuntimeFailure, Success, Token},
    resource::{
        Agent, AgentRevision, AgentStatus, BackendRef, ComputeIdentity, ConfigurationKind, CredentialSource,
        DesiredRuntimeState, ExecutionMode, HarnessAuth, HarnessAuthSnapshot, HarnessIdentity, Namespace,
        NamespaceStatus, Secret, SecretSnapshot, SecretSource, SecretSourceKind, Snapshot, SourceState, Withdrawal,
        WithdrawalState, WorkspaceFiles, WorkspaceSetup,
    },
    store::{AgentRow, NamespaceRow, PassRead, RevisionHead, RevisionRow, Write},
    time::Timestamp,
    work::{Claim, ClaimToken, LastAttempt, Policy, Target, Transition},
    worker::{Authority, ComputeFacts, Event, Outcome, Pass, Progress, Step, StopRecord, settle},
};
use uuid::Uuid;

/// What a pass finds.
#[derive(Clone)]
// Independent facts that a test turns one by one.
#[allow(clippy::struct_excessive_bools)]
pub struct Scene {
    pub read: PassRead,
    pub target: Target,
    pub attempt: u32,
    pub last_attempt: Option<LastAttempt>,
    pub order: ActivationOrder,
    pub exclusive: bool,
    pub workspace_setup: bool,
    pub binds: bool,
    pub harness_approved: bool,
    pub backend_configured: bool,
    pub account_issuer: bool,
    pub credential_gateway: Option<String>,
    pub intact: bool,
    pub compute_id: String,
    pub maintenance: Option<Duration>,
    /// For how long the work has been asked for.
    pub age: Duration,
    late: bool,
}

pub type Observe = Box<dyn Fn(&RevisionRef) -> EffectResult<RevisionObservation>>;

/// What the drivers and the store answer.
pub struct Answers {
    pub authority: EffectResult<Authority>,
    pub bound: EffectResult<()>,
    pub namespace: EffectResult<()>,
    pub stop: EffectResult<Stop>,
    pub retired: EffectResult<Stop>,
    pub deactivated: EffectResult<()>,
    pub pointer: EffectResult<bool>,
    /// The pointer moves, and the answer says nothing of it.
    pub answer_lost: bool,
    /// Something else moves the pointer before it is read again.
    pub overtaken: bool,
    /// At which reread, counted from 1, the Agent turns out to be stopped.
    pub stop_at_reread: Option<usize>,
    pub prepared: Observe,
    pub activated: Observe,
    pub withdrawn: EffectResult<AttachmentCondition>,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            authority: Ok(Authority::Granted),
            bound: Ok(()),
            namespace: Ok(()),
            stop: Ok(Stop::Stopped),
            retired: Ok(Stop::Stopped),
            deactivated: Ok(()),
            pointer: Ok(true),
            answer_lost: false,
            overtaken: false,
            stop_at_reread: None,
            prepared: Box::new(|target| Ok(RevisionObservation::ready(target))),
            activated: Box::new(|target| Ok(RevisionObservation::ready(target))),
            withdrawn: Ok(AttachmentCondition::Revoked),
        }
    }
}

impl Answers {
    pub fn prepared(mut self, with: impl Fn(&RevisionRef) -> EffectResult<RevisionObservation> + 'static) -> Self {
        self.prepared = Box::new(with);
        self
    }

    pub fn activated(mut self, with: impl Fn(&RevisionRef) -> EffectResult<RevisionObservation> + 'static) -> Self {
        self.activated = Box::new(with);
        self
    }
}

/// How a pass went.
pub struct Run {
    pub steps: Vec<String>,
    pub outcome: Outcome,
    pub pass: Pass,
}

impl Run {
    pub fn transition(&self) -> Transition {
        settle(&self.outcome, &self.pass, &Policy::default(), 0.5)
    }

    pub fn success(&self) -> Option<Success> {
        match &self.outcome {
            Outcome::Done { success, .. } => Some(*success),
            _ => None,
        }
    }

    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        match &self.outcome {
            Outcome::Done { writes, .. } => writes.as_slice(),
            _ => &[],
        }
        .iter()
        .map(|write| &write.0)
    }

    pub fn audits(&self) -> Vec<String> {
        match &self.outcome {
            Outcome::Done { audit, .. } | Outcome::Failed { audit, .. } => audit
                .iter()
                .map(|event| format!("{} {}", event.action, event.reason_code.as_deref().unwrap_or("-")))
                .collect(),
            _ => Vec::new(),
        }
    }
}

pub fn failure(code: RuntimeCode) -> RuntimeFailure {
    RuntimeFailure {
        component: Token::known("gateway"),
        check: Token::known("startup"),
        checked_at: Timestamp::from_millis(0),
        code,
        cause: None,
    }
}

const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

fn compute() -> ComputeIdentity {
    ComputeIdentity {
        id: "compute".to_owned(),
        implementation: "test/compute".to_owned(),
    }
}

fn secret(namespace: NamespaceId) -> Secret {
    Secret {
        id: SecretId::random(),
        namespace_id: namespace,
        name: "key".parse().expect("a name"),
        driver_id: "secrets".to_owned(),
        backend_ref: BackendRef {
            namespace_name: "n".to_owned(),
            name: "o".to_owned(),
            key: "value".to_owned(),
            uid: "u".to_owned(),
        },
        version: 1,
        deleting: false,
        created_at: NOW,
    }
}

fn revision(agent: &Agent, secret: &Secret, number: u64) -> RevisionRow {
    let source = SecretSource {
        kind: SecretSourceKind::Secret,
        namespace_id: agent.namespace_id,
        id: secret.id,
    };
    let frozen = SecretSnapshot {
        id: secret.id,
        secret_driver_id: secret.driver_id.clone(),
        backend_ref: secret.backend_ref.clone(),
    };
    RevisionRow {
        revision: AgentRevision {
            id: RevisionId::random(),
            namespace_id: agent.namespace_id,
            agent_id: agent.id,
            revision: number,
            snapshot: Snapshot {
                backend_id: None,
                configuration_id: agent.configuration_id,
                configuration_kind: ConfigurationKind::Agent,
                configuration_generation: 1,
                configuration: serde_json::Map::new(),
                harness: HarnessIdentity {
                    id: "openclaw".to_owned(),
                    version: "1.0.0".to_owned(),
                    mode: ExecutionMode::Embedded,
                },
                compute: compute(),
                sandbox_driver_id: None,
                credential_sources: Vec::new(),
                plugins: None,
                plugin_approvers: None,
                harness_auth: HarnessAuthSnapshot {
                    binding: HarnessAuth::ApiKey { source },
                    secret: Some(frozen),
                    account: None,
                    source: None,
                },
                secret_bindings: std::collections::BTreeMap::new(),
                service_principal_id: agent.service_principal_id.clone(),
            },
            digest: String::new(),
            created_at: NOW,
        },
        live: true,
    }
}

impl Scene {
    /// An Agent whose first version is being deployed.
    pub fn first() -> Self {
        Self::with_versions(1)
    }

    /// An Agent whose version 1 is active and whose version 2 is being deployed.
    pub fn replacement() -> Self {
        let mut scene = Self::with_versions(2);
        let first = scene.read.live[0].clone();
        scene.agent().active_revision_id = Some(first.id);
        scene.read.active = Some(first);
        scene
    }

    fn with_versions(count: u64) -> Self {
        let namespace = Namespace {
            id: NamespaceId::random(),
            name: "default".parse().expect("a name"),
            existing_namespace: None,
            status: NamespaceStatus::Ready,
            created_at: NOW,
        };
        let agent = Agent {
            id: AgentId::random(),
            namespace_id: namespace.id,
            name: "agent".parse().expect("a name"),
            service_principal_id: "spn_1".parse().expect("a principal"),
            configuration_id: ConfigurationId::random(),
            backend_id: None,
            harness_auth: None,
            execution_mode: ExecutionMode::Embedded,
            credential_sources: Vec::new(),
            plugins: std::collections::BTreeMap::default(),
            plugin_approvers: None,
            desired_runtime_state: DesiredRuntimeState::Running,
            active_revision_id: None,
            status: AgentStatus::Active,
            created_at: NOW,
        };
        let secret = secret(namespace.id);
        let versions: Vec<_> = (1..=count).map(|number| revision(&agent, &secret, number)).collect();
        let target = versions.last().cloned();
        let target_id = target.as_ref().map_or_else(RevisionId::random, |row| row.revision.id);
        Self {
            target: Target::Revision {
                namespace: namespace.id,
                agent: agent.id,
                revision: target_id,
            },
            read: PassRead {
                now: NOW,
                namespace: Some(NamespaceRow {
                    namespace,
                    version: 1,
                    deletion_actor: None,
                }),
                agent: Some(AgentRow {
                    agent,
                    version: 1,
                    unreadable: Vec::new(),
                }),
                head: target.as_ref().map(RevisionHead::from),
                revision: target,
                unreadable: None,
                active: None,
                live: versions.iter().map(RevisionHead::from).collect(),
                setup: None,
                secrets: vec![secret],
                sources: Vec::new(),
                account: None,
                deployment: None,
            },
            attempt: 1,
            last_attempt: None,
            order: ActivationOrder::AfterCommit,
            exclusive: false,
            workspace_setup: true,
            binds: false,
            harness_approved: true,
            backend_configured: true,
            account_issuer: true,
            credential_gateway: Some("gateway".to_owned()),
            intact: true,
            compute_id: compute().id,
            maintenance: None,
            age: Duration::ZERO,
            late: false,
        }
    }

    fn agent(&mut self) -> &mut Agent {
        &mut self.read.agent.as_mut().expect("the scene has an Agent").agent
    }

    pub fn desired(&mut self, state: DesiredRuntimeState) {
        self.agent().desired_runtime_state = state;
    }

    pub fn namespace_status(&mut self, status: NamespaceStatus) {
        self.read
            .namespace
            .as_mut()
            .expect("the scene has a Namespace")
            .namespace
            .status = status;
    }

    pub fn pointer_names_target(&mut self) {
        let target = self.read.head.clone().expect("the scene has a version");
        self.agent().active_revision_id = Some(target.id);
        self.read.active = Some(target);
    }

    pub fn nothing_is_active(&mut self) {
        self.agent().active_revision_id = None;
        self.read.active = None;
    }

    /// The pass is over version 1 while version 2 is active.
    pub fn target_is_the_older(&mut self) {
        let older = self.read.live[0].clone();
        let newer = self.read.live[1].clone();
        self.agent().active_revision_id = Some(newer.id);
        self.read.active = Some(newer);
        let row = self.read.revision.as_mut().expect("the scene has a version");
        (row.revision.id, row.revision.revision) = (older.id, older.revision);
        self.read.head = Some(older);
    }

    pub fn stage_files(&mut self) {
        self.read.setup = Some(WorkspaceSetup {
            id: Uuid::new_v4(),
            defaults_id: None,
            files: Some(WorkspaceFiles::default()),
        });
    }

    pub fn late(&self) -> Self {
        Self {
            late: true,
            ..self.clone()
        }
    }

    /// The pass is the Agent's stop.
    pub fn stopping(mut self) -> Self {
        self.desired(DesiredRuntimeState::Stopped);
        let (namespace, agent) = (self.target.namespace(), self.agent().id);
        self.target = Target::AgentStopped {
            namespace,
            agent,
            operation: Uuid::new_v4(),
        };
        self
    }

    /// The pass is the Agent's deletion.
    pub fn deleting(mut self) -> Self {
        self.desired(DesiredRuntimeState::Stopped);
        self.agent().status = AgentStatus::Deleting;
        let (namespace, agent) = (self.target.namespace(), self.agent().id);
        self.target = Target::AgentDeleted { namespace, agent };
        self
    }

    /// The pass is the withdrawal of a credential source from the target's version.
    pub fn withdrawing(mut self) -> Self {
        let target = self.target_ref();
        let operation = Uuid::new_v4();
        self.read.sources.push(CredentialSource {
            id: CredentialSourceId::random(),
            namespace_id: target.agent.namespace_id,
            name: "source".parse().expect("a name"),
            gateway_id: "gateway".to_owned(),
            kind: "openai".parse().expect("a type"),
            config: std::collections::BTreeMap::new(),
            secrets: std::collections::BTreeMap::new(),
            state: SourceState::Ready,
            registered: true,
            tellings: Vec::new(),
            withdrawals: vec![Withdrawal {
                revision_id: target.id,
                agent_id: target.agent.id,
                state: WithdrawalState::Pending,
                requested_by: "prn_1".parse().expect("a principal"),
                requested_at: NOW,
                operation,
                completed_at: None,
            }],
            version: 1,
            created_at: NOW,
        });
        self.target = Target::CredentialsWithdrawn {
            namespace: target.agent.namespace_id,
            agent: target.agent.id,
            revision: target.id,
            operation,
        };
        self
    }

    /// The pass is the Namespace's provision.
    pub fn provisioning(mut self) -> Self {
        self.namespace_status(NamespaceStatus::Provisioning);
        self.target = Target::NamespaceReady {
            namespace: self.target.namespace(),
        };
        self
    }

    pub fn pass(&self) -> Pass {
        Pass {
            claim: Claim {
                token: ClaimToken(Uuid::new_v4()),
                target: self.target,
                actor: "prn_1".parse().expect("a principal"),
                attempt: self.attempt,
                created_at: NOW,
                claimed_at: NOW.plus(self.age),
                last_attempt: self.last_attempt,
                trace: None,
            },
            read: self.read.clone(),
            compute: ComputeFacts {
                identity: ComputeIdentity {
                    id: self.compute_id.clone(),
                    ..compute()
                },
                order: self.order,
                exclusive: self.exclusive,
                workspace_setup: self.workspace_setup,
                binds: self.binds,
                harness_approved: self.harness_approved,
                backend_configured: self.backend_configured,
                account_issuer: self.account_issuer,
                intact: self.intact,
                credential_gateway: self.credential_gateway.clone(),
                secret_driver: "secrets".to_owned(),
                maintenance: self.maintenance,
                installation: None,
            },
            late: self.late,
            progress: Progress::default(),
        }
    }

    /// Runs the pass to its end.
    pub fn run(&self, answers: &Answers) -> Run {
        let mut pass = self.pass();
        let mut steps = Vec::new();
        let mut rereads = 0;
        // What the store holds; the pass sees it when it reads.
        let mut world = pass.read.clone();
        loop {
            assert!(steps.len() < 50, "the pass does not end: {steps:?}");
            let step = pass.decide();
            steps.push(Self::name(&step));
            let event = match step {
                Step::Finish(outcome) => {
                    return Run {
                        steps,
                        outcome: *outcome,
                        pass,
                    };
                }
                Step::Authorize(_) => Event::Authority(answers.authority.clone()),
                Step::Bind(_) => Event::Bound(answers.bound.clone()),
                Step::EnsureNamespace | Step::DeleteNamespace => {
                    Event::Namespace(answers.namespace.clone().map(|()| NamespaceState {
                        namespace_id: self.target.namespace(),
                        done: true,
                    }))
                }
                Step::Prepare => Event::Prepared((answers.prepared)(&self.target_ref())),
                Step::Activate => Event::Activated((answers.activated)(&self.target_ref())),
                Step::Deactivate(_) => Event::Deactivated(answers.deactivated.clone()),
                Step::Stop(target) => {
                    let record = StopRecord {
                        result: answers.stop.clone(),
                        took: Duration::ZERO,
                    };
                    Event::Stopped(target.id, record)
                }
                Step::Retire(target) => Event::Retired(target.id, answers.retired.clone()),
                Step::Reread => {
                    rereads += 1;
                    if answers.stop_at_reread == Some(rereads) {
                        let agent = world.agent.as_mut().expect("the scene has an Agent");
                        agent.agent.desired_runtime_state = DesiredRuntimeState::Stopped;
                    }
                    Event::Read(Box::new(world.clone()))
                }
                Step::MovePointer { to, .. } => {
                    if answers.answer_lost || (answers.pointer == Ok(true) && !answers.overtaken) {
                        let agent = world.agent.as_mut().expect("the scene has an Agent");
                        agent.agent.active_revision_id = Some(to);
                        world.active = world.head.clone();
                    }
                    Event::PointerMoved(if answers.answer_lost {
                        Err(EffectError::UnknownOutcome)
                    } else {
                        answers.pointer.clone()
                    })
                }
                Step::DiscardSetup(..) => Event::Discarded(Ok(())),
                Step::DeleteCredentials(_) => Event::CredentialsDeleted(Ok(true)),
                Step::DeleteAgent(_) => Event::AgentDeleted(Ok(Stop::Stopped)),
                Step::Withdraw(..) => Event::Withdrawn(answers.withdrawn.clone()),
            };
            pass.apply(event);
        }
    }

    fn target_ref(&self) -> RevisionRef {
        let agent = &self.read.agent.as_ref().expect("the scene has an Agent").agent;
        let revision = &self.read.revision.as_ref().expect("the scene has a version").revision;
        RevisionRef {
            agent: occ_core::driver::AgentRef {
                namespace_id: agent.namespace_id,
                id: agent.id,
                name: agent.name.clone(),
                service_principal_id: agent.service_principal_id.clone(),
            },
            id: revision.id,
            number: revision.revision,
            mode: revision.snapshot.harness.mode,
        }
    }

    /// A step's name, with the number of the version that it concerns.
    fn name(step: &Step) -> String {
        let debug = format!("{step:?}");
        let name = debug.split(['(', ' ']).next().unwrap_or_default();
        match step {
            Step::Stop(target) | Step::Retire(target) => format!("{name} {}", target.number),
            _ => name.to_owned(),
        }
    }
}
