//! Every code that a deployment can show, produced through deploy and status: with a Compute that answers from scripts, on the model
//! of the store, in virtual time.

#[path = "codes/changed.rs"]
mod changed;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use occ_core::{
    control::CreateServiceAccount,
    driver::{
        Action, AttachmentCondition, EffectError, EffectResult, Fault, FaultKind, ResourceKind, RevisionObservation,
        Stop, Terminal,
    },
    id::{AgentId, RevisionId},
    reason::{Dependency, Failure, Pending, RuntimeCode, RuntimeFailure, Token},
    resource::{Backend, ExecutionMode, NamespaceStatus},
    status::Deployment,
    store::{CommitError, Expect, Store},
    time::Timestamp,
    work::Policy,
    worker::{Worker, WorkerHandle},
};
use occ_simulation::memory::MemoryStore;
use occ_test_support::drivers::{
    IssuingAccounts, MediatingGateway, NullCompute, Optional, OutsideSecrets, PlainHarness, World, chatgpt,
};
use serde_json::json;

/// Codes that no request can produce here, and where they are produced instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("INVALID_TARGET", "never raised: docs/reasons"),
    (
        "INVALID_AGENT_OWNER",
        "of stops and deletions, which have no deployment; worker_decide",
    ),
    (
        "INVALID_AGENT_STATE",
        "of deletions, which have no deployment; worker_decide",
    ),
    (
        "INVALID_REVISION_OWNER",
        "a version goes with its Agent and its work; worker_decide",
    ),
    ("HARNESS_AUTH_REQUIRED", "never raised: docs/reasons"),
    ("CREDENTIAL_DELETION_UNSUPPORTED", "never raised: docs/reasons"),
    (
        "RECONCILIATION_FAILED",
        "of rows that another version wrote, and the model holds none; conformance, guards of both databases",
    ),
    (
        "PROVISIONING_EFFECT_PENDING",
        "of deletions, which have no deployment; control_plane credentials",
    ),
    (
        "NAMESPACE_INCOMPLETE",
        "of Namespaces, which have no deployment; worker_decide",
    ),
    ("COMPUTE_BINDING_INCOMPLETE", "shown as RECONCILIATION_PENDING"),
    ("REVISION_FINALIZATION_INCOMPLETE", "shown as RECONCILIATION_PENDING"),
    ("CONTROLLER_SHUTDOWN", "shown as RECONCILIATION_PENDING"),
];

struct Scene {
    world: World,
    memory: MemoryStore,
    agent: AgentId,
}

fn fault() -> EffectError {
    Fault::new("do something", FaultKind::Unavailable).into()
}

fn held(code: RuntimeCode) -> EffectError {
    let failure = RuntimeFailure {
        component: Token::known("gateway"),
        check: Token::known("model-probe"),
        checked_at: Timestamp::from_millis(0),
        code,
        cause: None,
    };
    EffectError::Held(Box::new(failure), None)
}

impl Scene {
    async fn new(compute: NullCompute) -> Self {
        let memory = MemoryStore::default();
        let store = Arc::new(memory.clone());
        let world = World::builder().compute(compute).store(store).build().await;
        let agent = world.deployable("a").await.id;
        Self { world, memory, agent }
    }

    fn work(&self, max_attempts: u32) -> WorkerHandle {
        let policy = Policy {
            max_attempts,
            ..Policy::default()
        };
        let store = Arc::clone(&self.world.store) as Arc<dyn Store>;
        Worker::new(store, Arc::clone(&self.world.drivers), policy).start()
    }

    async fn deploy(&self) -> RevisionId {
        let world = &self.world;
        let admitted = world
            .plane
            .deploy_agent(&world.admin, world.namespace, self.agent)
            .await;
        admitted.expect("a deployable Agent").id
    }

    async fn status(&self, revision: RevisionId) -> Deployment {
        let world = &self.world;
        let read = world
            .plane
            .deployment(&world.admin, world.namespace, self.agent, revision)
            .await;
        read.expect("the deployment")
    }

    /// Waits for the end of a deployment; an hour is more than its deadline.
    async fn failure(&self, revision: RevisionId) -> Option<Failure> {
        for _ in 0..3600 {
            let status = self.status(revision).await;
            if status.status.is_terminal() {
                return status.error.map(|error| error.code);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("it never ends: {:?}", self.status(revision).await)
    }

    /// Waits until the deployment waits for this reason.
    async fn waits(&self, revision: RevisionId, code: Pending) {
        for _ in 0..36_000 {
            let progress = self.status(revision).await.progress;
            if progress
                .and_then(|p| p.last_attempt)
                .is_some_and(|last| last.code == code)
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it never waits for {code}: {:?}", self.status(revision).await)
    }
}

/// Deploys with a preparation that always ends so, and reads the failure.
async fn prepared(answer: EffectResult<RevisionObservation>) -> Option<Failure> {
    let scene = Scene::new(NullCompute::default()).await;
    scene.world.compute.prepare.times(1000, &answer);
    let worker = scene.work(5);
    let revision = scene.deploy().await;
    let failure = scene.failure(revision).await;
    worker.shutdown().await;
    failure
}

async fn answers_of_the_compute(seen: &mut BTreeSet<&'static str>) {
    let terminal = |terminal| Err(EffectError::Terminal(terminal));
    let away = |dependency| Err(EffectError::Transient(dependency));
    let cases = [
        (
            Failure::ConvergenceDeadlineExceeded,
            Err(EffectError::Pending(Pending::RevisionIncomplete)),
        ),
        (
            Failure::RuntimeAuthenticationFailed,
            Err(held(RuntimeCode::AuthenticationFailed)),
        ),
        (Failure::RuntimeCpuStarved, Err(held(RuntimeCode::ModelProbeCpuStarved))),
        (
            Failure::RuntimeModelProbeTimeout,
            Err(held(RuntimeCode::ModelProbeTimeout)),
        ),
        (
            Failure::RuntimeModelProbeFailed,
            Err(held(RuntimeCode::ModelProbeFailed)),
        ),
        (Failure::RuntimeLoginFailed, Err(held(RuntimeCode::LoginFailed))),
        (Failure::RuntimeStartupFailed, Err(held(RuntimeCode::Unavailable))),
        (
            Failure::RuntimeStartupFailed,
            Err(held(RuntimeCode::IncompatibleResponse)),
        ),
        (
            Failure::WorkspaceSetupRefused,
            Err(held(RuntimeCode::WorkspaceSetupRefused)),
        ),
        (
            Failure::AgentGatewayUnauthorized,
            terminal(Terminal::GatewayUnauthorized),
        ),
        (
            Failure::SandboxHarnessUnsupported,
            terminal(Terminal::SandboxHarnessUnsupported),
        ),
        (
            Failure::SandboxSecretEnvironmentUnsupported,
            terminal(Terminal::SandboxSecretEnvironmentUnsupported),
        ),
        (
            Failure::CredentialSourceEnvironmentConflict,
            terminal(Terminal::CredentialSourceEnvironmentConflict),
        ),
        (
            Failure::ComputeConfigurationInvalid,
            terminal(Terminal::ConfigurationInvalid),
        ),
        (Failure::OwnershipConflict, Err(EffectError::Ownership)),
        (Failure::AgentGatewayUnavailable, away(Dependency::AgentGateway)),
        (Failure::KubernetesApiUnavailable, away(Dependency::KubernetesApi)),
        (
            Failure::SandboxAdmissionLimitReached,
            away(Dependency::SandboxAdmission),
        ),
        (Failure::SandboxGatewayUnavailable, away(Dependency::SandboxGateway)),
        (Failure::DependencyUnavailable, Err(fault())),
        (Failure::DependencyUnavailable, Err(EffectError::UnknownOutcome)),
    ];
    for (code, answer) in cases {
        assert_eq!(prepared(answer.clone()).await, Some(code), "{answer:?}");
        seen.insert(code.code());
    }
}

async fn reasons_to_wait(seen: &mut BTreeSet<&'static str>) {
    let told = [
        Pending::RevisionIncomplete,
        Pending::RevisionUnschedulable,
        Pending::RevisionImagePullFailed,
        Pending::NamespacePodQuotaExceeded,
        Pending::WorkspaceSetupRetrying,
        Pending::WorkspaceNodePending,
        Pending::WorkspaceNodeBindingPending,
    ];
    let away = [
        Dependency::AgentGateway,
        Dependency::KubernetesApi,
        Dependency::SandboxAdmission,
        Dependency::SandboxGateway,
    ];
    let cases = told
        .map(|reason| (reason, EffectError::Pending(reason)))
        .into_iter()
        .chain(away.map(|dependency| (dependency.pending(), EffectError::Transient(dependency))))
        .chain([(Pending::DependencyUnavailable, fault())]);
    for (code, error) in cases {
        let scene = Scene::new(NullCompute::default()).await;
        scene.world.compute.prepare.next(Err(error));
        scene.world.compute.prepare.during(|_| std::future::pending());
        let worker = scene.work(5);
        let revision = scene.deploy().await;
        scene.waits(revision, code).await;
        worker.shutdown().await;
        seen.insert(code.code());
    }
    // After the pointer moved, what is unfinished is shown as progress.
    let scene = Scene::new(NullCompute::default()).await;
    scene.world.compute.activate.times(10, &Err(fault()));
    let worker = scene.work(5);
    let revision = scene.deploy().await;
    scene.waits(revision, Pending::ReconciliationPending).await;
    worker.shutdown().await;
    seen.insert(Pending::ReconciliationPending.code());
}

async fn stops(seen: &mut BTreeSet<&'static str>) {
    let scene = Scene::new(NullCompute::default()).await;
    scene.world.compute.stop.times(2, &Err(fault()));
    let revision = scene.deploy().await;
    let admin = scene.world.admin.principal.clone();
    scene.world.iam.deny(&admin, Action::Deploy, ResourceKind::Agent);
    let worker = scene.work(5);
    scene.waits(revision, Pending::RefusedCandidateStopPending).await;
    assert_eq!(scene.failure(revision).await, Some(Failure::AuthorizationDenied));
    worker.shutdown().await;
    seen.extend([
        Pending::RefusedCandidateStopPending.code(),
        Failure::AuthorizationDenied.code(),
    ]);

    let scene = Scene::new(NullCompute::default()).await;
    let revision = scene.deploy().await;
    let (world, agent) = (&scene.world, scene.agent);
    world
        .plane
        .stop_agent(&world.admin, world.namespace, agent)
        .await
        .expect("the Agent");
    world.compute.stop.times(1, &Ok(Stop::Draining));
    world.compute.stop.times(1, &Ok(Stop::Draining));
    let worker = scene.work(5);
    scene.waits(revision, Pending::AgentStopYielded).await;
    assert_eq!(scene.failure(revision).await, Some(Failure::RevisionStopped));
    worker.shutdown().await;
    seen.extend([Pending::AgentStopYielded.code(), Failure::RevisionStopped.code()]);

    let scene = Scene::new(NullCompute::default().exclusive()).await;
    let (first, second) = (scene.deploy().await, scene.deploy().await);
    scene.world.compute.stop.times(1, &Ok(Stop::Draining));
    let worker = scene.work(5);
    scene.waits(second, Pending::PredecessorStopYielded).await;
    assert_eq!(scene.failure(first).await, Some(Failure::RevisionSuperseded));
    assert_eq!(scene.failure(second).await, None);
    worker.shutdown().await;
    seen.extend([
        Pending::PredecessorStopYielded.code(),
        Failure::RevisionSuperseded.code(),
    ]);
}

async fn selections(seen: &mut BTreeSet<&'static str>) {
    let other = |mut target: occ_core::driver::RevisionRef| {
        target.id = RevisionId::random();
        Ok(RevisionObservation::ready(&target))
    };
    let scene = Scene::new(NullCompute::default()).await;
    scene.world.compute.prepare.with(other);
    let worker = scene.work(5);
    let revision = scene.deploy().await;
    assert_eq!(scene.failure(revision).await, Some(Failure::InvalidDriverObservation));
    seen.insert(Failure::InvalidDriverObservation.code());
    worker.shutdown().await;

    // After a restart with another selection.
    let outside = || Arc::new(OutsideSecrets::named("secret-other")) as _;
    let speaking = |harness| scene.world.speaking(harness);
    for (plane, code) in [
        (
            speaking(PlainHarness::default().versioned("2.0.0")),
            Failure::HarnessDescriptorMismatch,
        ),
        (
            speaking(PlainHarness::named("plain", &[ExecutionMode::Dedicated])),
            Failure::HarnessDescriptorMismatch,
        ),
        (
            scene.world.with(None, NullCompute::named("compute-other")),
            Failure::ComputeDriverMismatch,
        ),
        (
            scene.world.with(Some(outside()), NullCompute::default()),
            Failure::SecretDriverMismatch,
        ),
    ] {
        let revision = scene.deploy().await;
        let store = Arc::clone(&scene.world.store) as Arc<dyn Store>;
        let worker = Worker::new(store, Arc::clone(plane.drivers()), Policy::default()).start();
        assert_eq!(scene.failure(revision).await, Some(code));
        seen.insert(code.code());
        worker.shutdown().await;
    }

    let revision = scene.deploy().await;
    let namespace = scene.world.namespace;
    scene.world.set_namespace(namespace, NamespaceStatus::Failed).await;
    let worker = scene.work(5);
    assert_eq!(scene.failure(revision).await, Some(Failure::NamespaceNotReady));
    seen.insert(Failure::NamespaceNotReady.code());
    worker.shutdown().await;
}

/// Of an Agent whose token is issued by a service account, for a Backend.
async fn issued_tokens(seen: &mut BTreeSet<&'static str>) {
    let modes = [ExecutionMode::Dedicated];
    let memory = MemoryStore::default();
    let world = World::builder()
        .store(Arc::new(memory.clone()))
        .harness(PlainHarness::named("plain", &modes))
        .service_account(Arc::new(IssuingAccounts::named("accounts")))
        .build()
        .await;
    let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
    let input = CreateServiceAccount {
        name: "shared".parse().expect("a name"),
        credential: None,
    };
    let account = plane.create_service_account(admin, namespace, input).await;
    let account = account.expect("an account").id;
    let issued = plane.issue_account_credential(admin, namespace, account).await;
    issued.expect("a token");
    let source = json!({ "kind": "service_account", "namespaceId": namespace, "id": account });
    let input = json!({
        "name": "a",
        "configurationId": world.configuration(json!({})).await,
        "executionMode": "dedicated",
        "backendId": "chatgpt",
        "harnessAuth": { "method": "codex_pat", "source": source },
    });
    let input = serde_json::from_value(input).expect("an Agent's form");
    let agent = plane.create_agent(admin, namespace, input).await.expect("an Agent").id;
    let scene = Scene { world, memory, agent };
    let selected = |driver, backend| {
        let optional = Optional {
            service_account: Some(Arc::new(IssuingAccounts::named(driver)) as _),
            backends: vec![backend],
            ..Optional::default()
        };
        scene.world.selecting(None, NullCompute::default(), optional)
    };
    let elsewhere = Backend {
        id: "elsewhere".parse().expect("an id"),
        ..chatgpt()
    };
    for (other, code) in [
        (selected("accounts", chatgpt()), None),
        (
            selected("others", chatgpt()),
            Some(Failure::ServiceAccountBackendMismatch),
        ),
        (selected("accounts", elsewhere), Some(Failure::BackendUnavailable)),
    ] {
        let revision = scene.deploy().await;
        let store = Arc::clone(&scene.world.store) as Arc<dyn Store>;
        let worker = Worker::new(store, Arc::clone(other.drivers()), Policy::default()).start();
        assert_eq!(scene.failure(revision).await, code);
        seen.extend(code.map(Failure::code));
        worker.shutdown().await;
    }
}

async fn mediated_credentials(seen: &mut BTreeSet<&'static str>) {
    let gateway = Arc::new(MediatingGateway::named("broker"));
    let memory = MemoryStore::default();
    let world = World::builder()
        .store(Arc::new(memory.clone()))
        .harness(PlainHarness::named("plain", &[ExecutionMode::Dedicated]))
        .credential_gateway(Arc::clone(&gateway) as _)
        .build()
        .await;
    let (plane, admin, namespace) = (&world.plane, &world.admin, world.namespace);
    let secret = world.secret("key", "sk-test-0123456789").await;
    let from = json!({ "kind": "secret", "namespaceId": namespace, "id": secret });
    let input = json!({ "name": "model", "type": "openai", "secrets": { "api_key": from } });
    let input = serde_json::from_value(input).expect("a source's form");
    let source = plane.register_credential_source(admin, namespace, input).await;
    let source = source.expect("a source").id;
    let input = json!({
        "name": "a",
        "configurationId": world.configuration(json!({})).await,
        "executionMode": "dedicated",
        "harnessAuth": { "method": "credential_source", "sourceId": source },
        "credentialSources": [{ "sourceId": source }],
    });
    let input = serde_json::from_value(input).expect("an Agent's form");
    let agent = plane.create_agent(admin, namespace, input).await.expect("an Agent");
    let role = world.role(&[(Action::Operate, ResourceKind::CredentialSource)]).await;
    let input = json!({ "principalId": agent.service_principal_id, "roleId": role.id });
    let input = serde_json::from_value(input).expect("a binding's form");
    let bound = plane.create_access_binding(admin, namespace, input).await;
    bound.expect("an access binding");
    let other = world.selecting(
        None,
        NullCompute::default(),
        Optional {
            credential_gateway: Some(Arc::new(MediatingGateway::named("other"))),
            ..Optional::default()
        },
    );
    let agent = agent.id;
    let scene = Scene { world, memory, agent };
    for (condition, drivers, code) in [
        (
            AttachmentCondition::Failed,
            Arc::clone(&scene.world.drivers),
            Failure::CredentialSourceUnavailable,
        ),
        (
            AttachmentCondition::Revoked,
            Arc::clone(&scene.world.drivers),
            Failure::CredentialWithdrawn,
        ),
        (
            AttachmentCondition::Ready,
            Arc::clone(other.drivers()),
            Failure::CredentialGatewayMismatch,
        ),
    ] {
        gateway.attachment.next(Ok(condition));
        let revision = scene.deploy().await;
        let store = Arc::clone(&scene.world.store) as Arc<dyn Store>;
        let worker = Worker::new(store, drivers, Policy::default()).start();
        assert_eq!(scene.failure(revision).await, Some(code));
        seen.insert(code.code());
        worker.shutdown().await;
    }
}

async fn attempts(seen: &mut BTreeSet<&'static str>) {
    // Somebody else moves the Agent each time.
    let scene = Scene::new(NullCompute::default()).await;
    for _ in 0..5 {
        let (store, agent) = (Arc::clone(&scene.world.store), scene.agent);
        scene.world.compute.prepare.with(move |target| {
            store.fail(CommitError::Conflict(Expect::Agent(agent, 1)));
            Ok(RevisionObservation::ready(&target))
        });
    }
    let worker = scene.work(5);
    let revision = scene.deploy().await;
    scene.waits(revision, Pending::ActiveRevisionChanged).await;
    assert_eq!(scene.failure(revision).await, Some(Failure::ActiveRevisionChanged));
    worker.shutdown().await;
    seen.insert(Failure::ActiveRevisionChanged.code());

    // The limit was lowered between two attempts.
    let scene = Scene::new(NullCompute::default()).await;
    scene.world.compute.prepare.times(2, &Err(fault()));
    scene.world.compute.prepare.during(|_| std::future::pending());
    let worker = scene.work(5);
    let revision = scene.deploy().await;
    while scene.world.compute.prepare.waiting() > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    worker.shutdown().await;
    let worker = scene.work(1);
    assert_eq!(scene.failure(revision).await, Some(Failure::MaxAttemptsExhausted));
    worker.shutdown().await;
    seen.insert(Failure::MaxAttemptsExhausted.code());

    // The worker dies in each attempt, before the pointer moves and after.
    for (published, limit) in [(false, 2), (true, 1)] {
        let scene = Scene::new(NullCompute::default()).await;
        let script = if published {
            &scene.world.compute.activate
        } else {
            &scene.world.compute.prepare
        };
        // More than enough: a worker that starts also looks after a selected version.
        (0..6).for_each(|_| script.during(|_| std::future::pending()));
        let revision = scene.deploy().await;
        let policy = Policy {
            max_attempts: limit,
            ..Policy::default()
        };
        let lease = occ_core::work::Lease {
            duration: policy.lease,
            max_attempts: limit,
        };
        let code = if published {
            Pending::ActiveRevisionRecovery
        } else {
            Pending::LeaseExpired
        };
        while !scene.status(revision).await.status.is_terminal() {
            let left = script.waiting();
            let store = Arc::clone(&scene.world.store) as Arc<dyn Store>;
            let worker = Worker::new(store, Arc::clone(&scene.world.drivers), policy);
            let worker = tokio::spawn(worker.run(tokio_util::sync::CancellationToken::new()));
            while script.waiting() == left {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            worker.abort();
            let _ = worker.await;
            tokio::time::sleep(Duration::from_secs(10)).await;
            scene.world.store.recover(lease).await.expect("a recovery");
            let last = scene
                .status(revision)
                .await
                .progress
                .and_then(|progress| progress.last_attempt);
            if last.is_some_and(|last| last.code == code) {
                seen.insert(code.code());
            }
        }
        assert_eq!(scene.failure(revision).await, Some(Failure::LeaseExpired));
        seen.insert(Failure::LeaseExpired.code());
    }
}

#[tokio::test(start_paused = true)]
async fn every_code_is_reached_through_deploy_and_status_or_says_where() {
    let mut seen = BTreeSet::new();
    Box::pin(answers_of_the_compute(&mut seen)).await;
    reasons_to_wait(&mut seen).await;
    stops(&mut seen).await;
    selections(&mut seen).await;
    issued_tokens(&mut seen).await;
    Box::pin(mediated_credentials(&mut seen)).await;
    Box::pin(changed::all(&mut seen)).await;
    attempts(&mut seen).await;
    let failures = Failure::ALL.iter().map(|code| code.code());
    let every = failures.chain(Pending::ALL.iter().map(|code| code.code()));
    let elsewhere: BTreeSet<_> = ELSEWHERE.iter().map(|(code, _)| *code).collect();
    let missing: BTreeSet<_> = every
        .filter(|code| !seen.contains(code) && !elsewhere.contains(code))
        .collect();
    assert!(missing.is_empty(), "these codes have no case: {missing:?}");
    let twice: Vec<_> = seen.intersection(&elsewhere).collect();
    assert!(
        twice.is_empty(),
        "these have a case, and are said to have none: {twice:?}"
    );
}
