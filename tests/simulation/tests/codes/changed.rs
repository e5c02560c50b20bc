//! Codes of what changed below a version after it was admitted: identities, rows, and what the Compute can do.

use std::{collections::BTreeSet, sync::Arc};

use occ_core::{
    driver::{Action, ResourceKind},
    id::{RevisionId, SecretId},
    reason::Failure,
    resource::{Agent, HarnessAuth},
    store::{Change, SavedField, Store, Write},
    work::Policy,
    worker::Worker,
};
use occ_test_support::drivers::NullCompute;
use serde_json::json;

use super::Scene;

pub async fn all(seen: &mut BTreeSet<&'static str>) {
    Box::pin(changed_below_a_version(seen)).await;
    lost_selection(seen).await;
    Box::pin(bindings_and_files(seen)).await;
}

/// Of identities that are gone, and of rows that are not what was admitted any more: spoilt, lost, or moved below the version.
async fn changed_below_a_version(seen: &mut BTreeSet<&'static str>) {
    type Changes = fn(&Scene, RevisionId, &Agent) -> Vec<Write>;
    let cases: [(Failure, Changes); 7] = [
        (Failure::ActorRevoked, |scene, _, _| {
            scene.world.iam.forget(&scene.world.admin.principal);
            Vec::new()
        }),
        (Failure::InvalidAgentPrincipal, |scene, _, agent| {
            scene.world.iam.forget(&agent.service_principal_id);
            Vec::new()
        }),
        (Failure::InvalidAdmittedRevision, |scene, revision, _| {
            scene.memory.spoil(revision, SavedField::Configuration);
            Vec::new()
        }),
        (Failure::InvalidHarnessAuth, |scene, revision, _| {
            scene.memory.spoil(revision, SavedField::HarnessAuth);
            Vec::new()
        }),
        (Failure::InvalidSecretBindings, |scene, revision, _| {
            scene.memory.spoil(revision, SavedField::SecretBindings);
            Vec::new()
        }),
        (Failure::HarnessAuthSourceChanged, |scene, _, agent| {
            let mut secret = scene.memory.data().secrets[&secret_of(agent)].clone();
            "elsewhere".clone_into(&mut secret.backend_ref.name);
            vec![Write::UpdateSecret(secret)]
        }),
        (Failure::HarnessAuthSourceUnavailable, |_, _, agent| {
            let draft = Agent {
                harness_auth: None,
                ..agent.clone()
            };
            vec![Write::UpdateAgent(draft), Write::DeleteSecret(secret_of(agent))]
        }),
    ];
    for (code, changes) in cases {
        let scene = Scene::new(NullCompute::default()).await;
        let agent = scene.memory.data().agents[&scene.agent].agent.clone();
        // Of the whole Namespace: what is bound to a Secret exactly goes with it.
        let world = &scene.world;
        let role = world.role(&[(Action::Operate, ResourceKind::Secret)]).await;
        let input = json!({ "principalId": agent.service_principal_id, "roleId": role.id });
        let input = serde_json::from_value(input).expect("a binding's form");
        let bound = world
            .plane
            .create_access_binding(&world.admin, world.namespace, input)
            .await;
        bound.expect("an access binding");
        let revision = scene.deploy().await;
        let agent = scene.memory.data().agents[&scene.agent].agent.clone();
        let change = Change {
            writes: changes(&scene, revision, &agent),
            ..Change::new()
        };
        scene.memory.change(&change).expect("the rows change");
        let worker = scene.work(5);
        assert_eq!(scene.failure(revision).await, Some(code));
        seen.insert(code.code());
        worker.shutdown().await;
    }
}

/// The Secret that an Agent's draft authenticates with.
fn secret_of(agent: &Agent) -> SecretId {
    let auth = agent.harness_auth.as_ref().and_then(HarnessAuth::secret);
    auth.expect("a Secret").1
}

/// The row of the selected version is gone.
async fn lost_selection(seen: &mut BTreeSet<&'static str>) {
    let scene = Scene::new(NullCompute::default()).await;
    let worker = scene.work(5);
    let first = scene.deploy().await;
    assert_eq!(scene.failure(first).await, None);
    worker.shutdown().await;
    let second = scene.deploy().await;
    scene.memory.lose(first);
    let worker = scene.work(5);
    assert_eq!(scene.failure(second).await, Some(Failure::InvalidActiveRevision));
    worker.shutdown().await;
    seen.insert(Failure::InvalidActiveRevision.code());
}

/// Of an Agent with more than the usual one has: a bound Secret, and files for its workspace.
async fn bindings_and_files(seen: &mut BTreeSet<&'static str>) {
    let scene = Scene::new(NullCompute::default()).await;
    let (world, namespace) = (&scene.world, scene.world.namespace);
    let (key, bound) = (
        world.secret("key", "sk-test-0123456789").await,
        world.secret("bound", "x").await,
    );
    let source = json!({ "kind": "secret", "namespaceId": namespace, "id": bound });
    let input = json!({ "kind": "agent", "values": {}, "secretBindings": { "TOKEN": { "source": source } } });
    let input = serde_json::from_value(input).expect("a Configuration's form");
    let configuration = world.plane.create_configuration(&world.admin, namespace, input).await;
    let configuration = configuration.expect("a Configuration").id;
    let source = json!({ "kind": "secret", "namespaceId": namespace, "id": key });
    let input = json!({
        "name": "more",
        "configurationId": configuration,
        "executionMode": "embedded",
        "harnessAuth": { "method": "api_key", "source": source },
        "initialWorkspaceFiles": { "AGENTS.md": "Answer.\n" },
    });
    let input = serde_json::from_value(input).expect("an Agent's form");
    let agent = world.plane.create_agent(&world.admin, namespace, input).await;
    let agent = agent.expect("an Agent");
    for secret in [key, bound] {
        world.let_operate(&agent.service_principal_id, secret).await;
    }
    let Scene { world, memory, .. } = scene;
    let agent = agent.id;
    let scene = Scene { world, memory, agent };

    let without = scene.world.with(None, NullCompute::default().without_workspace_setup());
    let revision = scene.deploy().await;
    let store = Arc::clone(&scene.world.store) as Arc<dyn Store>;
    let worker = Worker::new(store, Arc::clone(without.drivers()), Policy::default()).start();
    assert_eq!(scene.failure(revision).await, Some(Failure::WorkspaceSetupUnsupported));
    worker.shutdown().await;
    seen.insert(Failure::WorkspaceSetupUnsupported.code());

    let revision = scene.deploy().await;
    let mut secret = scene.memory.data().secrets[&bound].clone();
    "elsewhere".clone_into(&mut secret.backend_ref.name);
    let change = Change::new().write(Write::UpdateSecret(secret));
    scene.memory.change(&change).expect("the row changes");
    let worker = scene.work(5);
    assert_eq!(scene.failure(revision).await, Some(Failure::SecretBindingUnavailable));
    worker.shutdown().await;
    seen.insert(Failure::SecretBindingUnavailable.code());
}
