//! The rules of spec/engine 11, written as one sentence over all combinations, slowly.

use std::collections::{BTreeMap, BTreeSet};

use occ_core::{
    driver::{AccessRequest, Action, Evidence, IdentityKind, ResourceKind, ResourceRef},
    iam::{Grants, Role, Subject},
    id::NamespaceId,
};

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

/// Whether the request is allowed, and what that rests on.
pub(super) fn decide(grants: &Grants, request: &AccessRequest) -> (bool, Evidence) {
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

#[cfg(test)]
mod tests {
    use proptest::{
        strategy::{Strategy as _, ValueTree as _},
        test_runner::TestRunner,
    };

    use super::*;
    use crate::iam::questions::{grants, request};

    #[test]
    fn the_generated_cases_are_worth_something() {
        let mut runner = TestRunner::deterministic();
        let strategy = (grants(), request());
        let (mut allowed, mut forbidden, mut by_group) = (0, 0, 0);
        for _ in 0..5_000 {
            let (grants, request) = strategy.new_tree(&mut runner).expect("a case").current();
            let (allows, evidence) = decide(&grants, &request);
            allowed += usize::from(allows);
            forbidden += usize::from(!evidence.restriction_ids.is_empty());
            by_group += usize::from(!evidence.group_ids.is_empty());
        }
        assert!(
            allowed > 100 && forbidden > 5 && by_group > 20,
            "{allowed} {forbidden} {by_group}"
        );
    }
}
