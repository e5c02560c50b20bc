//! The rules, without I/O (spec/engine 11).

use std::collections::BTreeSet;

use occ_core::{
    driver::{AccessRequest, Decision, Evidence, Identity, IdentityKind, ResourceRef},
    iam::{AccessBinding, ExactResource, Grants, Permission, Restriction, Role, Subject, check_request},
    id::NamespaceId,
};

use crate::check_policy;

/// Decides `request` by `grants`, on behalf of the driver instance `driver_id`. Total; whatever is not granted is denied.
///
/// In this order (spec/engine 11):
/// 1. A question that names no possible resource, and a policy that does not hold together, are denied.
/// 2. The identity must exist. One that is confined to a Namespace acts nowhere else.
/// 3. A binding grants when its subject is the principal, or for a human one of its groups; when its own scope and exact
///    resource cover the request; and when its Role's scope covers the request and has exactly this permission.
/// 4. A Restriction that covers the request denies, whatever is granted.
///
/// The evidence names what the decision rests on: the identity as soon as it is found, the bindings that grant and the groups and
/// Roles that they grant by, and the Restrictions that forbid. It is sorted and without repetition.
pub fn evaluate(driver_id: &str, grants: &Grants, request: &AccessRequest) -> Decision {
    let (allowed, evidence) = match decide(grants, request) {
        Some(Found {
            identity,
            bindings,
            roles,
            groups,
            restrictions,
        }) => {
            let allowed = !bindings.is_empty() && restrictions.is_empty();
            let evidence = Evidence {
                identity_id: Some(identity.id.to_string()),
                group_ids: owned(groups),
                binding_ids: owned(bindings),
                role_ids: owned(roles),
                restriction_ids: owned(restrictions),
            };
            (allowed, evidence)
        }
        None => (false, Evidence::default()),
    };
    Decision {
        allowed,
        driver_id: driver_id.to_owned(),
        evidence,
    }
}

struct Found<'a> {
    identity: &'a Identity,
    bindings: BTreeSet<&'a str>,
    roles: BTreeSet<&'a str>,
    groups: BTreeSet<&'a str>,
    restrictions: BTreeSet<&'a str>,
}

/// What bears on the request; `None` when there is nobody who could act.
fn decide<'a>(grants: &'a Grants, request: &AccessRequest) -> Option<Found<'a>> {
    let identity = grants.identity.as_ref()?;
    check_request(request).ok()?;
    check_policy(&request.principal, grants).ok()?;
    let mut found = Found {
        identity,
        bindings: BTreeSet::new(),
        roles: BTreeSet::new(),
        groups: BTreeSet::new(),
        restrictions: BTreeSet::new(),
    };
    let resource = &request.resource;
    if identity.namespace_id.is_some() && identity.namespace_id != resource.namespace_id {
        return Some(found);
    }
    for binding in &grants.bindings {
        let Some(basis) = basis(binding, identity, &grants.groups) else {
            continue;
        };
        let Some(role) = grants.roles.iter().find(|role| role.id == binding.role_id) else {
            continue;
        };
        if binding_covers(binding, resource) && role_permits(role, request) {
            found.bindings.insert(&binding.id);
            found.roles.insert(&role.id);
            if let Basis::Group(group) = basis {
                found.groups.insert(group);
            }
        }
    }
    // What was not granted needs no forbidding; a Restriction is evidence only where it decided.
    if !found.bindings.is_empty() {
        let forbidding = grants.restrictions.iter().filter(|r| restriction_covers(r, request));
        found.restrictions = forbidding.map(|restriction| restriction.id.as_str()).collect();
    }
    Some(found)
}

/// How a binding comes to apply to an identity.
enum Basis<'a> {
    InPerson,
    Group(&'a str),
}

fn basis<'a>(binding: &'a AccessBinding, identity: &Identity, groups: &[String]) -> Option<Basis<'a>> {
    match &binding.subject {
        Subject::Identity(principal) => (*principal == identity.id).then_some(Basis::InPerson),
        // Groups hold humans only. Membership that a service principal somehow has grants it nothing.
        Subject::Group(group) => {
            (identity.kind == IdentityKind::Human && groups.contains(group)).then_some(Basis::Group(group))
        }
    }
}

fn binding_covers(binding: &AccessBinding, resource: &ResourceRef) -> bool {
    let exact = |ExactResource { kind, id }: &ExactResource| *kind == resource.kind && *id == resource.id;
    scope_covers(binding.namespace_id, resource) && binding.resource.as_ref().is_none_or(exact)
}

fn role_permits(role: &Role, request: &AccessRequest) -> bool {
    let wanted = Permission {
        action: request.action,
        kind: request.resource.kind,
    };
    scope_covers(role.namespace_id, &request.resource) && role.permissions.contains(&wanted)
}

fn restriction_covers(restriction: &Restriction, request: &AccessRequest) -> bool {
    scope_covers(restriction.namespace_id, &request.resource)
        && restriction.action == request.action
        && restriction.kind == request.resource.kind
        && restriction
            .resource_id
            .as_ref()
            .is_none_or(|id| *id == request.resource.id)
}

/// No scope covers everything; a Namespace covers what it owns, and never what is the Installation's.
fn scope_covers(scope: Option<NamespaceId>, resource: &ResourceRef) -> bool {
    scope.is_none() || scope == resource.namespace_id
}

fn owned(ids: BTreeSet<&str>) -> Vec<String> {
    ids.into_iter().map(str::to_owned).collect()
}
