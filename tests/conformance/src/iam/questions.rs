//! Policies and questions, at random: mostly such that something is granted.

use occ_core::{
    driver::{AccessRequest, Action, Identity, IdentityKind, ResourceKind, ResourceRef},
    iam::{AccessBinding, ExactResource, Grants, Permission, Restriction, Role, Subject},
    id::{AgentId, InstallationId, NamespaceId, SecretId},
    resource::PrincipalId,
};
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

pub(super) fn grants() -> impl Strategy<Value = Grants> {
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

/// A question that these policies may answer.
pub(super) fn request() -> impl Strategy<Value = AccessRequest> {
    (principal(), action(), resource()).prop_map(|(principal, action, resource)| AccessRequest {
        principal,
        action,
        resource,
    })
}

/// A policy that grants a human everything, everywhere.
pub(super) fn everything_for(principal: &str) -> Grants {
    let principal: PrincipalId = principal.parse().expect("a principal");
    let actions = [
        Action::Create,
        Action::Read,
        Action::Update,
        Action::Delete,
        Action::Deploy,
        Action::Operate,
        Action::Administer,
        Action::ReadLogs,
        Action::Use,
    ];
    let kinds = [
        ResourceKind::Installation,
        ResourceKind::Namespace,
        ResourceKind::Configuration,
        ResourceKind::Preset,
        ResourceKind::Agent,
        ResourceKind::AgentRevision,
        ResourceKind::Secret,
        ResourceKind::CredentialSource,
        ResourceKind::ServiceAccount,
    ];
    let permissions = actions
        .into_iter()
        .flat_map(|action| kinds.map(|kind| Permission { action, kind }));
    Grants {
        identity: Some(Identity {
            id: principal.clone(),
            kind: IdentityKind::Human,
            namespace_id: None,
            agent_id: None,
        }),
        groups: Vec::new(),
        bindings: vec![AccessBinding {
            id: "binding".to_owned(),
            namespace_id: None,
            subject: Subject::Identity(principal),
            role_id: "role".to_owned(),
            resource: None,
        }],
        roles: vec![Role {
            id: "role".to_owned(),
            namespace_id: None,
            permissions: permissions.collect(),
        }],
        restrictions: Vec::new(),
    }
}
