//! What holds of a driver that decides by the Installation's own policy.

use std::{fmt::Debug, sync::Arc, thread};

use occ_core::{
    driver::{AccessRequest, Action, Decision, EffectError, IamDriver, OperationContext, ResourceRef},
    iam::{Grants, Restriction},
    id::{AgentId, NamespaceId},
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseResult, TestRunner},
};

use super::{
    Subject, model,
    policy::Policy,
    questions::{everything_for, grants, request},
};

const CASES: u32 = 3_000;

/// Runs a property on a thread of its own: the runner is not asynchronous, and the driver is.
fn holds<S>(strategy: S, property: impl Fn(S::Value) -> TestCaseResult + Sync)
where
    S: Strategy + Send,
    S::Value: Debug,
{
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let property = &property;
    let run = move || {
        let outcome = TestRunner::new(config).run(&strategy, property);
        outcome.map_err(|failure| failure.to_string())
    };
    let outcome = thread::scope(|scope| scope.spawn(run).join());
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => panic!("{failure}"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The driver's answer under this policy.
fn ask(subject: &dyn Subject, grants: &Grants, request: &AccessRequest) -> Decision {
    let driver = subject.driver(Arc::new(Policy::of(grants.clone())));
    block_on(async {
        driver
            .authorize(&OperationContext::default(), request)
            .await
            .expect("an answer")
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

pub(super) async fn every_decision_is_the_models(subject: &dyn Subject) {
    holds((grants(), request()), |(grants, request)| {
        let decision = ask(subject, &grants, &request);
        prop_assert_eq!((decision.allowed, decision.evidence), model::decide(&grants, &request));
        Ok(())
    });
}

pub(super) async fn more_restrictions_or_fewer_bindings_never_allow_more(subject: &dyn Subject) {
    holds((grants(), request()), |(grants, request)| {
        let before = ask(subject, &grants, &request).allowed;
        let mut restricted = grants.clone();
        restricted.restrictions.push(Restriction {
            id: "new".to_owned(),
            namespace_id: None,
            action: request.action,
            kind: request.resource.kind,
            resource_id: None,
        });
        prop_assert!(!ask(subject, &restricted, &request).allowed);
        let mut poorer = grants;
        // Without its only binding of a missing Role, a policy may become a whole one.
        let gone = poorer.bindings.pop();
        if gone.is_some_and(|gone| poorer.roles.iter().any(|role| role.id == gone.role_id)) {
            prop_assert!(before || !ask(subject, &poorer, &request).allowed);
        }
        Ok(())
    });
}

fn read_agents() -> Vec<AccessRequest> {
    let ask = |_| AccessRequest {
        principal: "ada".parse().expect("a principal"),
        action: Action::Read,
        resource: ResourceRef::agent(NamespaceId::random(), AgentId::random()),
    };
    (0..4).map(ask).collect()
}

fn driver(subject: &dyn Subject, policy: &Arc<Policy>) -> Arc<dyn IamDriver> {
    subject.driver(Arc::clone(policy) as _)
}

pub(super) async fn several_questions_rest_on_one_state_of_the_policy(subject: &dyn Subject) {
    let everything = everything_for("ada");
    let mut nothing = everything.clone();
    nothing.bindings.clear();
    let policy = Arc::new(Policy::alternating(vec![everything, nothing]));
    let driver = driver(subject, &policy);
    for _ in 0..4 {
        let decisions = driver.authorize_all(&OperationContext::default(), &read_agents()).await;
        let allowed: Vec<bool> = decisions.expect("answers").iter().map(|one| one.allowed).collect();
        assert!(
            allowed.iter().all(|one| *one == allowed[0]),
            "the policy changed between two answers: {allowed:?}"
        );
    }
}

pub(super) async fn a_change_of_policy_counts_at_once(subject: &dyn Subject) {
    let policy = Arc::new(Policy::of(everything_for("ada")));
    let driver = driver(subject, &policy);
    let cx = OperationContext::default();
    let question = read_agents().remove(0);
    for _ in 0..2 {
        policy.set(Some(everything_for("ada")));
        assert!(driver.authorize(&cx, &question).await.expect("an answer").allowed);
        let mut nothing = everything_for("ada");
        nothing.bindings.clear();
        policy.set(Some(nothing));
        assert!(!driver.authorize(&cx, &question).await.expect("an answer").allowed);
    }
}

pub(super) async fn a_policy_that_cannot_be_read_is_an_error_and_not_an_answer(subject: &dyn Subject) {
    let policy = Arc::new(Policy::of(everything_for("ada")));
    let driver = driver(subject, &policy);
    let cx = OperationContext::default();
    let questions = read_agents();
    assert!(driver.authorize(&cx, &questions[0]).await.expect("an answer").allowed);
    policy.set(None);
    let failed = |result: Result<(), EffectError>| assert!(result.is_err(), "an error is never an answer");
    failed(driver.authorize(&cx, &questions[0]).await.map(drop));
    failed(driver.authorize_all(&cx, &questions).await.map(drop));
    failed(driver.lookup(&cx, &questions[0].principal).await.map(drop));
    policy.set(Some(everything_for("ada")));
    assert!(driver.authorize(&cx, &questions[0]).await.expect("an answer").allowed);
}

pub(super) async fn a_lookup_gives_the_identity_and_never_another(subject: &dyn Subject) {
    let everything = everything_for("ada");
    let ada = everything.identity.clone().expect("an identity");
    let policy = Arc::new(Policy::of(everything));
    let driver = driver(subject, &policy);
    let cx = OperationContext::default();
    assert_eq!(driver.lookup(&cx, &ada.id).await, Ok(Some(ada)));
    let eve = "eve".parse().expect("a principal");
    assert_eq!(driver.lookup(&cx, &eve).await, Ok(None), "another principal's identity");
}
