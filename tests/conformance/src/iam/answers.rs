//! What holds of every IAM Driver, whatever it decides by.

use std::sync::Arc;

use occ_core::{
    driver::{
        AccessRequest, Action, CONTRACT_VERSION, DriverKind, IamDriver, OperationContext, ResourceKind, ResourceRef,
    },
    iam::NoPolicy,
    id::{AgentId, ConfigurationId, InstallationId, NamespaceId, SecretId},
    resource::PrincipalId,
};

use super::{Subject, policy::Policy};

fn nobody() -> PrincipalId {
    format!("nobody-{}", AgentId::random()).parse().expect("a principal")
}

fn driver(subject: &dyn Subject) -> Arc<dyn IamDriver> {
    subject.driver(Arc::new(NoPolicy))
}

fn questions(principal: &PrincipalId) -> Vec<AccessRequest> {
    let namespace = NamespaceId::random();
    let resources = [
        ResourceRef::installation(InstallationId::random()),
        ResourceRef::namespaces(InstallationId::random()),
        ResourceRef::namespace(namespace),
        ResourceRef::agent(namespace, AgentId::random()),
        ResourceRef::secret(namespace, SecretId::random()),
        ResourceRef::configuration(namespace, ConfigurationId::random()),
        ResourceRef::collection(ResourceKind::Agent, namespace),
    ];
    let actions = [Action::Create, Action::Read, Action::Operate, Action::Administer];
    let ask = |action| {
        let ask = move |resource: &ResourceRef| AccessRequest {
            principal: principal.clone(),
            action,
            resource: resource.clone(),
        };
        resources.iter().map(ask).collect::<Vec<_>>()
    };
    actions.into_iter().flat_map(ask).collect()
}

pub(super) async fn it_says_who_it_is(subject: &dyn Subject) {
    let driver = driver(subject);
    let mine = driver.identity();
    assert_eq!(mine.kind, DriverKind::Iam);
    assert!(!mine.id.is_empty() && !mine.implementation.is_empty());
    assert!(CONTRACT_VERSION.accepts(mine.contract));
    assert_eq!(self::driver(subject).identity(), mine);
}

pub(super) async fn every_decision_is_signed(subject: &dyn Subject) {
    let driver = driver(subject);
    let cx = OperationContext::default();
    for question in questions(&nobody()) {
        let decision = driver.authorize(&cx, &question).await.expect("an answer");
        assert_eq!(
            decision.driver_id,
            driver.identity().id,
            "another driver's decision is never an allow"
        );
    }
}

pub(super) async fn nobody_is_allowed_nothing(subject: &dyn Subject) {
    let driver = driver(subject);
    let cx = OperationContext::default();
    let nobody = nobody();
    assert_eq!(driver.lookup(&cx, &nobody).await, Ok(None));
    for question in questions(&nobody) {
        let decision = driver.authorize(&cx, &question).await.expect("an answer");
        assert!(!decision.allowed, "{question:?}");
    }
}

pub(super) async fn what_cannot_exist_is_denied(subject: &dyn Subject) {
    let namespace = NamespaceId::random();
    let everything = super::questions::everything_for("ada");
    let driver = subject.driver(Arc::new(Policy::of(everything)));
    let resource = |kind, id: String, namespace_id| ResourceRef { kind, id, namespace_id };
    let agent = AgentId::random().to_string();
    for resource in [
        resource(ResourceKind::Agent, agent.clone(), None),
        resource(ResourceKind::Agent, "*".to_owned(), Some(namespace)),
        resource(ResourceKind::Agent, String::new(), Some(namespace)),
        resource(ResourceKind::Agent, SecretId::random().to_string(), Some(namespace)),
        resource(ResourceKind::Secret, agent, Some(namespace)),
        resource(
            ResourceKind::Namespace,
            namespace.to_string(),
            Some(NamespaceId::random()),
        ),
        resource(ResourceKind::Namespace, namespace.to_string(), None),
        resource(ResourceKind::Installation, namespace.to_string(), None),
    ] {
        let request = AccessRequest {
            principal: "ada".parse().expect("a principal"),
            action: Action::Read,
            resource,
        };
        // An error is no allow either.
        let decision = driver.authorize(&OperationContext::default(), &request).await;
        assert!(!decision.is_ok_and(|decision| decision.allowed), "{request:?}");
    }
}

pub(super) async fn several_questions_are_answered_as_each_alone(subject: &dyn Subject) {
    let driver = subject.driver(Arc::new(Policy::of(super::questions::everything_for("ada"))));
    let cx = OperationContext::default();
    let mut questions = questions(&"ada".parse().expect("a principal"));
    questions.extend(self::questions(&nobody()));
    // The same question twice is two answers.
    questions.push(questions[0].clone());
    let together = driver.authorize_all(&cx, &questions).await.expect("answers");
    assert_eq!(together.len(), questions.len());
    for (question, answer) in questions.iter().zip(together) {
        let alone = driver.authorize(&cx, question).await.expect("an answer");
        assert_eq!(answer, alone, "{question:?}");
    }
    let none = driver.authorize_all(&cx, &[]).await.expect("no answers");
    assert!(none.is_empty());
}
