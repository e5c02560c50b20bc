//! Every code that the API can answer with is produced here, with the status that its page in `docs/reasons/` names.

use std::{fs, path::PathBuf, time::Duration};

use occ_core::{
    driver::{Action, Fault, FaultKind, ResourceKind},
    id::RevisionId,
    reason::{ApiCode, Failure, Pending, Success},
    resource::NamespaceStatus,
    store::{Change, CommitError, Store as _, Write},
    work::{FailureData, Lease, Transition},
};
use occ_test_support::drivers::{NullCompute, World};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    served::{Seen, Served, store},
    sources::{Used, used},
};

/// What produces a code.
enum Produced {
    /// This answer.
    Http(Seen),
    /// No request: what raises it is tested where it lives.
    Elsewhere(&'static str),
}

async fn post(served: &Served, path: &str) -> Produced {
    Produced::Http(served.send(Method::POST, path).await)
}

async fn get(served: &Served, path: &str) -> Produced {
    Produced::Http(served.send(Method::GET, path).await)
}

/// A served world with a deployed Agent: the path of the Agent, and that of its deployment.
async fn deployed(world: World) -> (Served, String, String) {
    let agent = world.deployable("a").await;
    let served = Served::over(world).await;
    let agent = served.path(&format!("/agents/{}", agent.id));
    let seen = served.send(Method::POST, &format!("{agent}/deploy")).await;
    let id = seen.data()["id"].as_str().expect("a version").to_owned();
    let deployment = format!("{agent}/deployments/{id}");
    (served, agent, deployment)
}

/// Selects the deployed version, as the worker does.
async fn select(served: &Served, deployment: &str) {
    let id: RevisionId = deployment.rsplit('/').next().expect("an id").parse().expect("an id");
    let (store, namespace) = (&served.world.store, served.world.namespace);
    let agent = store
        .revision_owner(namespace, id)
        .await
        .expect("a read")
        .expect("an Agent");
    let change = Change::new().write(Write::ActiveRevision(agent, Some(id)));
    store.commit(change).await.expect("it is selected");
}

async fn world() -> World {
    World::builder().store(store().await).build().await
}

#[allow(clippy::too_many_lines)] // One arm a code.
async fn produce(code: ApiCode) -> Produced {
    match code {
        ApiCode::InvalidRequest => get(&Served::new().await, "/namespaces/nonsense").await,
        ApiCode::Unauthenticated => {
            let served = Served::new().await;
            let url = format!("http://{}/namespaces", served.address);
            Produced::Http(Seen::of(served.http.get(url).send().await.expect("an answer")).await)
        }
        ApiCode::Forbidden => {
            let served = Served::new().await;
            let world = &served.world;
            world
                .iam
                .deny(&world.admin.principal, Action::Create, ResourceKind::Namespace);
            let body = json!({ "name": "another" });
            Produced::Http(served.json(Method::POST, "/namespaces", &body).await)
        }
        ApiCode::NotFound => get(&Served::new().await, "/nothing").await,
        ApiCode::MethodNotAllowed => post(&Served::new().await, "/installation").await,
        ApiCode::ResourceConflict => {
            let served = Served::new().await;
            let body = json!({ "name": "default" });
            Produced::Http(served.json(Method::POST, "/namespaces", &body).await)
        }
        ApiCode::AgentDeleting => {
            let (served, agent, _) = deployed(world().await).await;
            served.send(Method::DELETE, &agent).await;
            post(&served, &format!("{agent}/deploy")).await
        }
        ApiCode::NamespaceNotReady => {
            let (served, agent, _) = deployed(world().await).await;
            let world = &served.world;
            world.set_namespace(world.namespace, NamespaceStatus::Failed).await;
            post(&served, &format!("{agent}/deploy")).await
        }
        ApiCode::NamespaceNotEmpty => {
            let served = Served::new().await;
            served.world.configuration(json!({})).await;
            Produced::Http(served.send(Method::DELETE, &served.path("")).await)
        }
        ApiCode::InstallationExists => Produced::Elsewhere("a second bootstrap of one database, which no request does"),
        ApiCode::ServiceAccountDriverNotConfigured => {
            let served = Served::new().await;
            let accounts = served.path("/service-accounts");
            let made = served.json(Method::POST, &accounts, &json!({ "name": "a" })).await;
            let id = made.data()["id"].as_str().expect("an id");
            let path = format!("{accounts}/{id}/credentials");
            Produced::Http(served.json(Method::POST, &path, &json!({})).await)
        }
        ApiCode::CredentialGatewayNotConfigured => {
            let served = Served::new().await;
            let configuration = served.world.configuration(json!({})).await;
            let body = json!({
                "name": "a",
                "configurationId": configuration,
                "harnessAuth": {
                    "method": "credential_source",
                    "sourceId": "cs_123e4567-e89b-42d3-a456-426614174000",
                },
            });
            Produced::Http(served.json(Method::POST, &served.agents(), &body).await)
        }
        ApiCode::CredentialWithdrawalInProgress => {
            let Used { served, source, usage } = used().await;
            served.send(Method::POST, &format!("{usage}/withdraw")).await;
            Produced::Http(served.send(Method::DELETE, &source).await)
        }
        ApiCode::PreconditionFailed => {
            let served = Served::new().await;
            let id = served.world.configuration(json!({})).await;
            let request = served
                .request(Method::PATCH, &served.path(&format!("/configurations/{id}")))
                .header("if-match", "\"7\"")
                .json(&json!({ "values": {} }));
            Produced::Http(Seen::of(request.send().await.expect("an answer")).await)
        }
        ApiCode::PayloadTooLarge => {
            let served = Served::new().await;
            let body = json!({ "name": "x".repeat(70_000) });
            Produced::Http(served.json(Method::POST, "/namespaces", &body).await)
        }
        ApiCode::UnsupportedMediaType => {
            let served = Served::new().await;
            let request = served.request(Method::POST, "/namespaces").body("{}");
            Produced::Http(Seen::of(request.send().await.expect("an answer")).await)
        }
        ApiCode::SignInRateLimited => {
            let served = Served::new().await;
            let body = json!({ "email": "nobody@example.com", "password": "wrong" });
            let tries = (0..16).map(|_| served.json(Method::POST, "/api/auth/sign-in/email", &body));
            let answers = futures_util::future::join_all(tries).await;
            let limited = answers.into_iter().find(|seen| seen.status.as_u16() == 429);
            Produced::Http(limited.expect("a limit"))
        }
        ApiCode::InternalError => {
            let served = Served::new().await;
            served.world.store.fail(CommitError::Refused);
            let body = json!({ "name": "another" });
            Produced::Http(served.json(Method::POST, "/namespaces", &body).await)
        }
        ApiCode::NotImplemented => {
            let compute = NullCompute::default().without_logs();
            let world = World::builder().store(store().await).compute(compute).build().await;
            let (served, _, deployment) = deployed(world).await;
            get(&served, &format!("{deployment}/runtime/logs")).await
        }
        ApiCode::DependencyUnavailable => {
            let served = Served::new().await;
            served.world.iam.set_away(true);
            get(&served, "/namespaces").await
        }
        ApiCode::UnknownOutcome => {
            let (served, agent, deployment) = deployed(world().await).await;
            select(&served, &deployment).await;
            served
                .world
                .compute
                .write_file
                .next(Err(occ_core::driver::EffectError::UnknownOutcome));
            let path = format!("{agent}/workspace/files/AGENTS.md");
            Produced::Http(served.json(Method::PUT, &path, &json!({ "content": "x" })).await)
        }
        ApiCode::RuntimeCredentialsClusterRbac => {
            let world = world().await;
            let agent = world.deployable("a").await;
            let fault = Fault::new("read the runtime credentials", FaultKind::Denied);
            world.compute.credentials_exist.next(Err(fault.into()));
            let served = Served::over(world).await;
            post(&served, &served.path(&format!("/agents/{}/deploy", agent.id))).await
        }
        ApiCode::RuntimeLogsUnavailable | ApiCode::RuntimeLogsTimeout => {
            let (served, _, deployment) = deployed(world().await).await;
            let kind = if code == ApiCode::RuntimeLogsTimeout {
                FaultKind::Timeout
            } else {
                FaultKind::Unavailable
            };
            let fault = Fault::new("read the logs", kind);
            served.world.compute.read_logs.next(Err(fault.into()));
            get(&served, &format!("{deployment}/runtime/logs")).await
        }
    }
}

#[tokio::test]
async fn every_code_is_answered_with_the_status_that_its_page_names() {
    for code in ApiCode::ALL {
        let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/reasons/{}.md", code.code()));
        let page = fs::read_to_string(page).expect("a page for the code");
        let seen = match Box::pin(produce(*code)).await {
            Produced::Http(seen) => seen,
            Produced::Elsewhere(why) => {
                assert!(!why.is_empty());
                continue;
            }
        };
        assert_eq!(seen.code(), code.code(), "{}", seen.body);
        assert!((1..=256).contains(&seen.message().chars().count()), "{}", seen.body);
        let status = format!("API error, HTTP {}", seen.status.as_u16());
        assert!(page.contains(&status), "the page of {code} does not say: {status}");
    }
}

#[tokio::test]
async fn an_unknown_outcome_is_said_and_nothing_is_replayed() {
    let served = Served::new().await;
    served.world.store.lose_answer();
    let seen = served
        .json(Method::POST, "/namespaces", &json!({ "name": "another" }))
        .await;
    assert_eq!((seen.status.as_u16(), seen.code()), (503, "DEPENDENCY_UNAVAILABLE"));
    assert!(seen.message().contains("do not retry automatically"), "{}", seen.body);
    let listed = served.send(Method::GET, "/namespaces").await;
    let names: Vec<_> = listed
        .data()
        .as_array()
        .expect("a list")
        .iter()
        .map(|n| &n["name"])
        .collect();
    assert_eq!(names, ["default", "another"], "it was done, once");
}

const LEASE: Lease = Lease {
    duration: Duration::from_hours(1),
    max_attempts: 5,
};

/// What a worker records of the only work that there is.
async fn record(served: &Served, transition: Transition) {
    let store = &served.world.store;
    let [claim] = &store.claim(1, LEASE).await.expect("a claim")[..] else {
        panic!("one piece of work is due");
    };
    let change = Change::new().write(Write::Settle(claim.token, transition));
    store.commit(change).await.expect("it is settled");
}

/// Who raises which is told by the tests of the engine (`occ-simulation::codes`); here is how each is answered.
#[tokio::test]
async fn every_code_of_a_deployment_is_answered_with_its_message() {
    let served = Served::new().await;
    // The Namespace's.
    let code = Success::NamespaceReconciled;
    let warnings = Vec::new();
    record(&served, Transition::Complete { code, warnings }).await;
    let agent = served.world.deployable("a").await;
    let agent = served.path(&format!("/agents/{}", agent.id));
    let deploy = async || {
        let seen = served.send(Method::POST, &format!("{agent}/deploy")).await;
        assert_eq!(seen.status.as_u16(), 202, "{}", seen.body);
        let id = seen.data()["id"].as_str().expect("a version").to_owned();
        format!("{agent}/deployments/{id}")
    };
    for failure in Failure::ALL.iter().copied() {
        let deployment = deploy().await;
        let data = FailureData::default();
        record(&served, Transition::Fail { failure, data }).await;
        let seen = served.send(Method::GET, &deployment).await;
        let error = json!({ "code": failure.code(), "message": failure.message() });
        let data = seen.data();
        assert_eq!(
            (&data["status"], &data["error"]),
            (&json!("failed"), &error),
            "{failure}"
        );
        assert_eq!(data["progress"], Value::Null, "{failure}");
    }
    let generic = [
        Pending::RevisionFinalizationIncomplete,
        Pending::ComputeBindingIncomplete,
        Pending::ProvisioningEffectPending,
        Pending::NamespaceIncomplete,
        Pending::ControllerShutdown,
    ];
    let deployment = deploy().await;
    for reason in Pending::ALL.iter().copied() {
        let defer = Transition::Defer {
            reason,
            delay: Duration::ZERO,
            refusal: None,
            failed_stops: 0,
            repeat_evidence: true,
        };
        record(&served, defer).await;
        let seen = served.send(Method::GET, &deployment).await;
        let shown = if generic.contains(&reason) {
            Pending::ReconciliationPending
        } else {
            reason
        };
        let (data, attempt) = (seen.data(), &seen.data()["progress"]["lastAttempt"]);
        assert_eq!(
            (&data["status"], &data["error"]),
            (&json!("queued"), &Value::Null),
            "{reason}"
        );
        assert_eq!(
            (&attempt["code"], &attempt["message"]),
            (&json!(shown.code()), &json!(shown.message())),
            "{reason}"
        );
    }
}
