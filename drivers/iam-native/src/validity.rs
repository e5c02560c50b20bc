//! What must hold before a rule is looked at.

use std::collections::BTreeSet;

use occ_core::{
    driver::IdentityKind,
    iam::{AccessBinding, Grants},
    resource::PrincipalId,
};

use crate::InvalidPolicy;

/// Whether the policy that was read for `principal` holds together.
pub fn check_policy(principal: &PrincipalId, grants: &Grants) -> Result<(), InvalidPolicy> {
    if let Some(identity) = &grants.identity {
        if identity.id != *principal {
            return Err(InvalidPolicy::OtherIdentity);
        }
        let scoped = identity.namespace_id.is_some();
        let agent = identity.agent_id.is_some();
        let possible = match identity.kind {
            IdentityKind::Human => !scoped && !agent,
            IdentityKind::Service => scoped || !agent,
        };
        if !possible {
            return Err(InvalidPolicy::IdentityScope);
        }
    }
    let unambiguous = unique(grants.roles.iter().map(|role| &role.id))
        && unique(grants.bindings.iter().map(|binding| &binding.id))
        && unique(grants.restrictions.iter().map(|restriction| &restriction.id));
    if !unambiguous {
        return Err(InvalidPolicy::AmbiguousId);
    }
    let known = |binding: &AccessBinding| grants.roles.iter().any(|role| role.id == binding.role_id);
    if grants.bindings.iter().all(known) {
        Ok(())
    } else {
        Err(InvalidPolicy::MissingRole)
    }
}

fn unique<'a>(ids: impl Iterator<Item = &'a String>) -> bool {
    let mut seen = BTreeSet::new();
    ids.into_iter().all(|id| seen.insert(id))
}
