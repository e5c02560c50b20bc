//! The implementation against a model: the rules of spec/engine 11 written as one sentence over all combinations, slowly.

use std::collections::{BTreeMap, BTreeSet};

use occ_core::{
    driver::{AccessRequest, Action, Evidence, Identity, IdentityKind, ResourceKind, ResourceRef},
    iam::{AccessBinding, ExactResource, Grants, Permission, Restriction, Role, Subject},
    id::{AgentId, InstallationId, NamespaceId, SecretId},
    resource::PrincipalId,
};
use occ_iam_native::evaluate;
use proptest::prelude::*;

const NAMESPACES: [&str; 2] = [
    "ns_00000000-0000-4000-8000-000000000001",
    "ns_00000000-0000-4000-8000-000000000002",
];
const AGENTS: [&str; 2] = [
    "agt_00000000-0000-4000-8000-000000000001",
    "agt_00000000-0000-4000-8000-000000000002",
];
const SECRETS: [&str; 2] = [
    "sec_00000000-0000-4000-8000-000000000001",
    "sec_00000000-0000-4000-8000-000000000002",
];
const INSTALLATION: &str = "ins_00000000-0000-4000-8000-000000000001";

fn namespace() -> impl Strategy<Value = NamespaceId> {
    prop::sample::select(&NAMESPACES[..]).prop_map(|id| id.parse().expect("an id"))
}

/// Mostly unscoped, so that grants happen.
fn scope() -> impl Strategy<Value = Option<NamespaceId>> {
    prop_oneof![4 => Just(None), 1 => namespace().prop_map(Some)]
}

fn principal() -> impl Strategy<Value = PrincipalId> {
    prop_oneof![4 => Just("ada"), 1 => Just("eve")].prop_map(|id| id.parse().expect("an id"))
}

fn group() -> impl Strategy<Value = String> {
    prop::sample::select(&["operators", "admins"][..]).prop_map(str::to_owned)
}

fn action() -> impl Strategy<Value = Action> {
    prop::sample::select(&[Action::Read, Action::Operate, Action::Create][..])
}

fn kind() -> impl Strategy<Value = ResourceKind> {
    prop::sample::select(
        &[
            ResourceKind::Agent,
            ResourceKind::Secret,
            ResourceKind::Namespace,
            ResourceKind::Installation,
        ][..],
    )
}

fn any_id() -> impl Strategy<Value = String> {
    let ids = NAMESPACES
        .into_iter()
        .chain(AGENTS)
        .chain(SECRETS)
        .chain([INSTALLATION]);
    prop::sample::select(ids.collect::<Vec<_>>()).prop_map(str::to_owned)
}

/// Resources that exist and, more rarely, ones that cannot.
fn resource() -> impl Strategy<Value = ResourceRef> {
    let id = |text: &str| text.to_owned();
    let at = |list: [&'static str; 2]| prop::sample::select(list.to_vec());
    prop_oneof![
        4 => (namespace(), at(AGENTS)).prop_map(|(n, a)| ResourceRef::agent(n, a.parse::<AgentId>().expect("an id"))),
        2 => (namespace(), at(SECRETS)).prop_map(|(n, s)| ResourceRef::secret(n, s.parse::<SecretId>().expect("an id"))),
        2 => (kind(), namespace()).prop_map(|(kind, n)| ResourceRef::collection(kind, n)),
        1 => namespace().prop_map(ResourceRef::namespace),
        1 => Just(ResourceRef::namespaces(INSTALLATION.parse::<InstallationId>().expect("an id"))),
        1 => Just(ResourceRef::installation(INSTALLATION.parse::<InstallationId>().expect("an id"))),
        1 => (kind(), any_id(), scope()).prop_map(move |(kind, text, namespace_id)| {
            ResourceRef { kind, id: id(&text), namespace_id }
        }),
    ]
}

fn identity() -> impl Strategy<Value = Identity> {
    let kind = prop::sample::select(&[IdentityKind::Human, IdentityKind::Service][..]);
    let agent = prop_oneof![4 => Just(None), 1 => Just(Some(AGENTS[0].parse::<AgentId>().expect("an id")))];
    (principal(), kind, scope(), agent).prop_map(|(id, kind, namespace_id, agent_id)| Identity {
        id,
        kind,
        namespace_id,
        agent_id,
    })
}

fn permissions() -> impl Strategy<Value = Vec<Permission>> {
    prop::collection::vec(
        (action(), kind()).prop_map(|(action, kind)| Permission { action, kind }),
        0..8,
    )
}

fn id(prefix: &'static str) -> impl Strategy<Value = String> {
    (0..4_u8).prop_map(move |n| format!("{prefix}{n}"))
}

fn roles() -> impl Strategy<Value = Vec<Role>> {
    let role = (scope(), permissions());
    // Every Role that a binding can name exists, except now and then.
    (prop::collection::vec(role, 4), 0..24_usize).prop_map(|(roles, missing)| {
        let named = roles.into_iter().enumerate();
        let mut roles: Vec<Role> = named
            .map(|(n, (namespace_id, permissions))| Role {
                id: format!("role{n}"),
                namespace_id,
                permissions,
            })
            .collect();
        if missing < roles.len() {
            roles.remove(missing);
        }
        roles
    })
}

fn bindings() -> impl Strategy<Value = Vec<AccessBinding>> {
    let subject = prop_oneof![
        principal().prop_map(Subject::Identity),
        group().prop_map(Subject::Group)
    ];
    let exact = prop_oneof![
        5 => Just(None),
        1 => (kind(), any_id()).prop_map(|(kind, id)| Some(ExactResource { kind, id })),
    ];
    let binding = (scope(), subject, id("role"), exact);
    prop::collection::vec(binding, 0..6).prop_map(|bindings| {
        let named = bindings.into_iter().enumerate();
        let built = named.map(|(n, (namespace_id, subject, role_id, resource))| AccessBinding {
            id: format!("binding{}", 9 - n),
            namespace_id,
            subject,
            role_id,
            resource,
        });
        built.collect()
    })
}

fn restrictions() -> impl Strategy<Value = Vec<Restriction>> {
    let restriction = (
        (0..20_u8).prop_map(|n| format!("restriction{n}")),
        scope(),
        action(),
        kind(),
        prop::option::weighted(0.2, any_id()),
    );
    prop::collection::vec(restriction, 0..3).prop_map(|restrictions| {
        let built = restrictions
            .into_iter()
            .map(|(id, namespace_id, action, kind, resource_id)| Restriction {
                id,
                namespace_id,
                action,
                kind,
                resource_id,
            });
        built.collect()
    })
}

fn grants() -> impl Strategy<Value = Grants> {
    let identity = prop_oneof![9 => identity().prop_map(Some), 1 => Just(None)];
    (
        identity,
        prop::collection::vec(group(), 0..3),
        bindings(),
        roles(),
        restrictions(),
    )
        .prop_map(|(identity, groups, bindings, roles, restrictions)| Grants {
            identity,
            groups,
            bindings,
            roles,
            restrictions,
        })
}

/// Whether the resource could exist: by the spelling of its id alone.
fn possible(action: Action, resource: &ResourceRef) -> bool {
    let prefix = resource.id.split('_').next().unwrap_or_default();
    let inside = resource.namespace_id.map(|namespace| namespace.to_string());
    match (resource.kind, action) {
        (ResourceKind::Installation, _) | (ResourceKind::Namespace, Action::Create) => {
            prefix == "ins" && inside.is_none()
        }
        (ResourceKind::Namespace, _) | (_, Action::Create) => inside.as_ref() == Some(&resource.id),
        (ResourceKind::Agent, _) => prefix == "agt" && inside.is_some(),
        (ResourceKind::Secret, _) => prefix == "sec" && inside.is_some(),
        _ => unreachable!("not generated"),
    }
}

fn model(grants: &Grants, request: &AccessRequest) -> (bool, Evidence) {
    let nothing = (false, Evidence::default());
    let Some(identity) = &grants.identity else {
        return nothing;
    };
    let roles: BTreeMap<&str, &Role> = grants.roles.iter().map(|role| (role.id.as_str(), role)).collect();
    let restriction_ids: BTreeSet<&str> = grants.restrictions.iter().map(|r| r.id.as_str()).collect();
    let whole = restriction_ids.len() == grants.restrictions.len()
        && grants
            .bindings
            .iter()
            .all(|binding| roles.contains_key(binding.role_id.as_str()))
        && identity.id == request.principal
        && !(identity.kind == IdentityKind::Human && (identity.namespace_id.is_some() || identity.agent_id.is_some()))
        && !(identity.agent_id.is_some() && identity.namespace_id.is_none());
    if !whole || !possible(request.action, &request.resource) {
        return nothing;
    }
    let mut evidence = Evidence {
        identity_id: Some(identity.id.to_string()),
        ..Evidence::default()
    };
    let here = request.resource.namespace_id;
    let within = |scope: Option<NamespaceId>| scope.is_none() || scope == here;
    let (mut by_binding, mut by_role, mut by_group) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for binding in &grants.bindings {
        let role = roles[binding.role_id.as_str()];
        let group = match &binding.subject {
            Subject::Group(group) => Some(group.clone()),
            Subject::Identity(_) => None,
        };
        let is_subject = match &binding.subject {
            Subject::Identity(id) => *id == request.principal,
            Subject::Group(id) => identity.kind == IdentityKind::Human && grants.groups.contains(id),
        };
        let is_exact = match &binding.resource {
            None => true,
            Some(exact) => (exact.kind, &exact.id) == (request.resource.kind, &request.resource.id),
        };
        let has_permission = role
            .permissions
            .iter()
            .any(|p| (p.action, p.kind) == (request.action, request.resource.kind));
        let at_home = identity.namespace_id.is_none_or(|home| here == Some(home));
        if at_home
            && is_subject
            && is_exact
            && has_permission
            && within(binding.namespace_id)
            && within(role.namespace_id)
        {
            by_binding.insert(binding.id.clone());
            by_role.insert(role.id.clone());
            by_group.extend(group);
        }
    }
    let granted = !by_binding.is_empty();
    let forbidding: BTreeSet<String> = grants
        .restrictions
        .iter()
        .filter(|r| granted && within(r.namespace_id))
        .filter(|r| (r.action, r.kind) == (request.action, request.resource.kind))
        .filter(|r| r.resource_id.as_ref().is_none_or(|id| *id == request.resource.id))
        .map(|r| r.id.clone())
        .collect();
    let allowed = granted && forbidding.is_empty();
    evidence.binding_ids = by_binding.into_iter().collect();
    evidence.role_ids = by_role.into_iter().collect();
    evidence.group_ids = by_group.into_iter().collect();
    evidence.restriction_ids = forbidding.into_iter().collect();
    (allowed, evidence)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn the_implementation_agrees_with_the_model(
        grants in grants(), principal in principal(), action in action(), resource in resource()
    ) {
        let request = AccessRequest { principal, action, resource };
        let decision = evaluate("iam", &grants, &request);
        prop_assert_eq!((decision.allowed, decision.evidence), model(&grants, &request));
    }

    #[test]
    fn a_restriction_more_never_allows_more_and_a_binding_less_never_allows_more(
        grants in grants(), principal in principal(), action in action(), resource in resource()
    ) {
        let request = AccessRequest { principal, action, resource };
        let before = evaluate("iam", &grants, &request).allowed;
        let mut restricted = grants.clone();
        restricted.restrictions.push(Restriction {
            id: "new".to_owned(),
            namespace_id: None,
            action,
            kind: request.resource.kind,
            resource_id: None,
        });
        prop_assert!(!evaluate("iam", &restricted, &request).allowed);
        let mut poorer = grants;
        if poorer.bindings.pop().is_some_and(|gone| poorer.roles.iter().any(|role| role.id == gone.role_id)) {
            prop_assert!(before || !evaluate("iam", &poorer, &request).allowed);
        }
    }
}

#[test]
fn the_generated_cases_are_worth_something() {
    use proptest::{strategy::ValueTree as _, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let strategy = (grants(), principal(), action(), resource());
    let (mut allowed, mut forbidden, mut by_group) = (0, 0, 0);
    for _ in 0..5_000 {
        let (grants, principal, action, resource) = strategy.new_tree(&mut runner).expect("a case").current();
        let decision = evaluate(
            "iam",
            &grants,
            &AccessRequest {
                principal,
                action,
                resource,
            },
        );
        allowed += usize::from(decision.allowed);
        forbidden += usize::from(!decision.evidence.restriction_ids.is_empty());
        by_group += usize::from(!decision.evidence.group_ids.is_empty());
    }
    assert!(
        allowed > 100 && forbidden > 5 && by_group > 20,
        "{allowed} {forbidden} {by_group}"
    );
}
