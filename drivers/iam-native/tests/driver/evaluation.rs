//! The rules one by one: which policy allows what.

use occ_core::{
    driver::{Action, Evidence, IdentityKind, OperationContext, ResourceKind, ResourceRef},
    iam::{ExactResource, Grants, Restriction, Subject},
    id::{AgentId, ConfigurationId, InstallationId, NamespaceId, RevisionId, SecretId},
};

use crate::rig::{Rig, binding, permission, principal, restriction, role};

#[tokio::test]
async fn a_binding_in_person_grants_exactly_its_permission() {
    let rig = Rig::new();
    let decision = rig.read_agent().await;
    assert!(decision.allowed);
    let evidence = Evidence {
        identity_id: Some("ada".to_owned()),
        binding_ids: vec!["b-person".to_owned()],
        role_ids: vec!["reader".to_owned()],
        ..Evidence::default()
    };
    assert_eq!(decision.evidence, evidence);
    for action in [
        Action::Update,
        Action::Delete,
        Action::Deploy,
        Action::Operate,
        Action::Administer,
        Action::Use,
    ] {
        let decision = rig.ask(action, ResourceRef::agent(rig.namespace, rig.agent)).await;
        assert!(!decision.allowed, "{action:?}");
        assert_eq!(
            decision.evidence,
            Evidence {
                identity_id: Some("ada".to_owned()),
                ..Evidence::default()
            }
        );
    }
    let revision = ResourceRef::agent_revision(rig.namespace, RevisionId::random());
    assert!(!rig.ask(Action::Read, revision).await.allowed);
}

#[tokio::test]
async fn nobody_is_allowed_nothing() {
    let rig = Rig::new();
    rig.change(|grants| grants.identity = None);
    let decision = rig.read_agent().await;
    assert!(!decision.allowed);
    assert_eq!(decision.evidence, Evidence::default());
    let cx = OperationContext::default();
    assert_eq!(rig.driver.lookup(&cx, &principal("ada")).await, Ok(None));
}

#[tokio::test]
async fn a_group_grants_to_its_human_members_only() {
    let rig = Rig::new();
    rig.change(|g| g.bindings = vec![binding("b-group", Subject::Group("operators".to_owned()), "reader")]);
    let decision = rig.read_agent().await;
    assert!(decision.allowed);
    assert_eq!(decision.evidence.group_ids, ["operators"]);

    rig.change(|grants| grants.groups = vec!["others".to_owned()]);
    assert!(!rig.allowed().await);

    rig.change(|grants| grants.groups = vec!["operators".to_owned()]);
    rig.service(None, None);
    assert!(!rig.allowed().await, "an Installation's service principal");
    rig.service(Some(rig.namespace), Some(rig.agent));
    assert!(!rig.allowed().await, "an Agent's service principal");
}

#[tokio::test]
async fn a_binding_of_somebody_else_grants_nothing() {
    let rig = Rig::new();
    rig.change(|grants| grants.bindings[0].subject = Subject::Identity(principal("eve")));
    assert!(!rig.allowed().await);
}

#[tokio::test]
async fn a_confined_principal_acts_in_its_own_namespace_alone() {
    let rig = Rig::new();
    let installation = InstallationId::random();
    rig.change(|grants| {
        grants.roles[0].permissions.extend([
            permission(Action::Read, ResourceKind::Installation),
            permission(Action::Create, ResourceKind::Namespace),
            permission(Action::Create, ResourceKind::Agent),
            permission(Action::Read, ResourceKind::Namespace),
        ]);
    });
    rig.service(Some(rig.namespace), Some(rig.agent));
    assert!(rig.allowed().await);
    assert!(
        rig.ask(Action::Read, ResourceRef::namespace(rig.namespace))
            .await
            .allowed
    );
    assert!(
        rig.ask(
            Action::Create,
            ResourceRef::collection(ResourceKind::Agent, rig.namespace)
        )
        .await
        .allowed
    );
    let elsewhere = NamespaceId::random();
    for (action, resource) in [
        (Action::Read, ResourceRef::agent(elsewhere, rig.agent)),
        (Action::Read, ResourceRef::namespace(elsewhere)),
        (Action::Create, ResourceRef::collection(ResourceKind::Agent, elsewhere)),
        (Action::Create, ResourceRef::namespaces(installation)),
        (Action::Read, ResourceRef::installation(installation)),
    ] {
        assert!(!rig.ask(action, resource.clone()).await.allowed, "{resource}");
    }
    rig.service(None, None);
    assert!(
        rig.ask(Action::Create, ResourceRef::namespaces(installation))
            .await
            .allowed
    );
}

#[tokio::test]
async fn an_administrator_of_a_namespace_has_nothing_outside_it() {
    let rig = Rig::new();
    let installation = InstallationId::random();
    rig.change(|grants| {
        grants.bindings[0].namespace_id = Some(rig.namespace);
        grants.roles[0]
            .permissions
            .push(permission(Action::Read, ResourceKind::Installation));
    });
    assert!(rig.allowed().await);
    assert!(
        !rig.ask(Action::Read, ResourceRef::agent(NamespaceId::random(), rig.agent))
            .await
            .allowed
    );
    assert!(
        !rig.ask(Action::Read, ResourceRef::installation(installation))
            .await
            .allowed
    );
}

#[tokio::test]
async fn a_role_grants_within_its_own_scope_alone() {
    let rig = Rig::new();
    rig.change(|grants| grants.roles[0].namespace_id = Some(rig.namespace));
    assert!(rig.allowed().await);
    rig.change(|grants| grants.roles[0].namespace_id = Some(NamespaceId::random()));
    assert!(!rig.allowed().await);
}

#[tokio::test]
async fn an_exact_binding_grants_its_resource_alone() {
    let rig = Rig::new();
    let exact = |kind, id: String| Some(ExactResource { kind, id });
    rig.change(|grants| grants.bindings[0].resource = exact(ResourceKind::Agent, rig.agent.to_string()));
    assert!(rig.allowed().await);
    assert!(
        !rig.ask(Action::Read, ResourceRef::agent(rig.namespace, AgentId::random()))
            .await
            .allowed
    );
    rig.change(|grants| grants.bindings[0].resource = exact(ResourceKind::Secret, rig.agent.to_string()));
    assert!(!rig.allowed().await, "the same id of another kind");
}

#[tokio::test]
async fn create_is_granted_on_the_parent() {
    let rig = Rig::new();
    rig.change(|grants| {
        grants.roles[0].permissions = vec![permission(Action::Create, ResourceKind::Agent)];
        let id = rig.namespace.to_string();
        grants.bindings[0].resource = Some(ExactResource {
            kind: ResourceKind::Agent,
            id,
        });
    });
    let create = |namespace| ResourceRef::collection(ResourceKind::Agent, namespace);
    assert!(rig.ask(Action::Create, create(rig.namespace)).await.allowed);
    assert!(!rig.ask(Action::Create, create(NamespaceId::random())).await.allowed);
}

#[tokio::test]
async fn a_restriction_wins_over_every_grant() {
    let rig = Rig::new();
    let read = |id| restriction(id, Action::Read, ResourceKind::Agent);
    let narrow = |scope, id: Option<String>| Restriction {
        namespace_id: scope,
        resource_id: id,
        ..read("r")
    };
    let this = rig.agent.to_string();
    for (forbids, restriction) in [
        (true, narrow(None, None)),
        (true, narrow(Some(rig.namespace), None)),
        (true, narrow(None, Some(this.clone()))),
        (true, narrow(Some(rig.namespace), Some(this.clone()))),
        (false, narrow(Some(NamespaceId::random()), None)),
        (false, narrow(None, Some(AgentId::random().to_string()))),
        (false, narrow(Some(NamespaceId::random()), Some(this))),
        (
            false,
            Restriction {
                action: Action::Update,
                ..read("r")
            },
        ),
        (
            false,
            Restriction {
                kind: ResourceKind::Secret,
                ..read("r")
            },
        ),
    ] {
        rig.change(|grants| grants.restrictions = vec![restriction.clone()]);
        let decision = rig.read_agent().await;
        assert_eq!(decision.allowed, !forbids, "{restriction:?}");
        assert_eq!(decision.evidence.binding_ids, ["b-person"]);
        let named: &[&str] = if forbids { &["r"] } else { &[] };
        assert_eq!(decision.evidence.restriction_ids, named);
    }
}

#[tokio::test]
async fn evidence_is_sorted_and_without_repetition() {
    let rig = Rig::new();
    rig.change(|grants| {
        let group = || Subject::Group("operators".to_owned());
        grants.groups = vec!["operators".to_owned(), "operators".to_owned(), "admins".to_owned()];
        grants
            .roles
            .insert(0, role("z-role", &[permission(Action::Read, ResourceKind::Agent)]));
        grants.bindings = vec![
            binding("z", group(), "z-role"),
            binding("a", Subject::Identity(principal("ada")), "reader"),
            binding("m", group(), "reader"),
            binding("k", Subject::Group("admins".to_owned()), "reader"),
        ];
        grants.restrictions = ["y", "x"]
            .map(|id| restriction(id, Action::Read, ResourceKind::Agent))
            .to_vec();
    });
    let Evidence {
        group_ids,
        binding_ids,
        role_ids,
        restriction_ids,
        ..
    } = rig.read_agent().await.evidence;
    assert_eq!(group_ids, ["admins", "operators"]);
    assert_eq!(binding_ids, ["a", "k", "m", "z"]);
    assert_eq!(role_ids, ["reader", "z-role"]);
    assert_eq!(restriction_ids, ["x", "y"]);
}

type Ruin = fn(&mut Grants);

#[tokio::test]
async fn a_policy_that_does_not_hold_together_grants_nothing() {
    let ruin: [(&str, Ruin); 8] = [
        ("a missing Role", |g| {
            g.bindings
                .push(binding("b2", Subject::Identity(principal("ada")), "gone"));
        }),
        ("a missing Role of a binding that does not apply", |g| {
            g.bindings
                .push(binding("b2", Subject::Group("none".to_owned()), "gone"));
        }),
        ("two Roles of one id", |g| g.roles.push(role("reader", &[]))),
        ("two bindings of one id", |g| {
            g.bindings
                .push(binding("b-person", Subject::Identity(principal("eve")), "reader"));
        }),
        ("two Restrictions of one id", |g| {
            g.restrictions = vec![restriction("r", Action::Use, ResourceKind::Preset); 2];
        }),
        ("another principal's identity", |g| {
            g.identity.as_mut().expect("one").id = principal("eve");
        }),
        ("a confined human", |g| {
            g.identity.as_mut().expect("one").namespace_id = Some(NamespaceId::random());
        }),
        ("an Agent's principal without a Namespace", |g| {
            let identity = g.identity.as_mut().expect("one");
            (identity.kind, identity.agent_id) = (IdentityKind::Service, Some(AgentId::random()));
        }),
    ];
    for (what, ruin) in ruin {
        let rig = Rig::new();
        assert!(rig.allowed().await);
        rig.change(ruin);
        assert!(!rig.allowed().await, "{what}");
    }
}

#[tokio::test]
async fn a_request_that_names_no_possible_resource_is_denied() {
    use ResourceKind as Kind;
    let rig = Rig::new();
    let (ns, other) = (rig.namespace, NamespaceId::random());
    let every_kind = [
        Kind::Installation,
        Kind::Namespace,
        Kind::Configuration,
        Kind::Preset,
        Kind::Agent,
        Kind::AgentRevision,
        Kind::Secret,
        Kind::CredentialSource,
        Kind::ServiceAccount,
    ];
    rig.change(|grants| {
        let both = |kind| [permission(Action::Read, kind), permission(Action::Create, kind)];
        grants.roles[0].permissions = every_kind.into_iter().flat_map(both).collect();
    });
    let installation = InstallationId::random();
    let read = |kind, id: String, namespace_id| (Action::Read, ResourceRef { kind, id, namespace_id });
    let create = |kind, id: String, namespace_id| (Action::Create, ResourceRef { kind, id, namespace_id });
    for (action, resource) in [
        read(Kind::Installation, installation.to_string(), Some(ns)),
        read(Kind::Installation, ns.to_string(), None),
        read(Kind::Namespace, ns.to_string(), None),
        read(Kind::Namespace, ns.to_string(), Some(other)),
        read(Kind::Namespace, installation.to_string(), None),
        create(Kind::Namespace, installation.to_string(), Some(ns)),
        create(Kind::Namespace, ns.to_string(), Some(ns)),
        read(Kind::Agent, rig.agent.to_string(), None),
        read(Kind::Agent, SecretId::random().to_string(), Some(ns)),
        read(Kind::Agent, ns.to_string(), Some(ns)),
        read(Kind::Agent, "*".to_owned(), Some(ns)),
        read(Kind::Secret, rig.agent.to_string(), Some(ns)),
        read(Kind::Preset, String::new(), Some(ns)),
        create(Kind::Agent, rig.agent.to_string(), Some(ns)),
        create(Kind::Agent, other.to_string(), Some(ns)),
        create(Kind::Agent, installation.to_string(), None),
    ] {
        assert!(
            !rig.ask(action, resource.clone()).await.allowed,
            "{action:?} {resource:?}"
        );
    }
    for (action, resource) in [
        (Action::Read, ResourceRef::installation(installation)),
        (Action::Create, ResourceRef::namespaces(installation)),
        (Action::Read, ResourceRef::namespace(ns)),
        (Action::Create, ResourceRef::collection(Kind::Secret, ns)),
        (Action::Read, ResourceRef::configuration(ns, ConfigurationId::random())),
        (Action::Read, ResourceRef::secret(ns, SecretId::random())),
        read(Kind::Preset, "pre_default".to_owned(), Some(ns)),
    ] {
        assert!(
            rig.ask(action, resource.clone()).await.allowed,
            "{action:?} {resource:?}"
        );
    }
}
