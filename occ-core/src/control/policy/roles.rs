//! Roles of a Namespace, and of the Installation.

use super::storable;
use crate::{
    admission::{DetailCode, Refusal},
    control::{Answer, Caller, ControlPlane, CreateRole},
    driver::{Action, ResourceKind},
    iam::{Permission, Role},
    id::NamespaceId,
    store::{BindingsOf, Expect, Write},
};

/// Most permissions of one Role.
const PERMISSIONS_MAX: usize = 64;

/// Whether a Role may permit this. A Namespace's permits nothing of the Installation, and nothing that is checked against a parent;
/// the Installation's permits whatever anybody is asked for.
fn supported(scope: Option<NamespaceId>, permission: Permission) -> bool {
    use Action::{Administer, Create, Delete, Deploy, Operate, Read, ReadLogs, Update};
    let actions: &[Action] = match permission.kind {
        ResourceKind::Namespace | ResourceKind::AgentRevision => &[Read],
        ResourceKind::Configuration | ResourceKind::Preset | ResourceKind::ServiceAccount => &[Read, Update, Delete],
        ResourceKind::Secret | ResourceKind::CredentialSource => &[Read, Update, Delete, Operate],
        ResourceKind::Agent => &[Read, Update, Delete, Deploy, Operate, Administer, ReadLogs],
        ResourceKind::Installation => &[],
    };
    let of_the_installation: &[Action] = match permission.kind {
        ResourceKind::Installation => &[Administer, Read],
        ResourceKind::Namespace => &[Create, Delete],
        ResourceKind::AgentRevision => &[],
        _ => &[Create],
    };
    actions.contains(&permission.action) || (scope.is_none() && of_the_installation.contains(&permission.action))
}

impl ControlPlane {
    /// Creates a Role of a Namespace, or of the Installation.
    pub async fn create_role(
        &self,
        caller: &Caller,
        scope: impl Into<Option<NamespaceId>>,
        input: CreateRole,
    ) -> Answer<Role> {
        let scope = scope.into();
        let op = self.of_policy(caller, "openclaw.iam.roles.create", scope);
        op.answer(async {
            check_permissions(scope, &input.permissions)?;
            let role = Role {
                id: format!("role_{}", crate::randomness::uuid()),
                namespace_id: scope,
                permissions: input.permissions,
            };
            let mut tries = op.tries();
            loop {
                let allowed = self.administers_policy(&op, scope).await?;
                let event = op
                    .event(self.policy_of(scope).await?, &allowed)
                    .with("roleId", role.id.as_str());
                let change = self.policy_change(scope).await?;
                if tries
                    .commit(change.write(Write::Role(role.clone())).audit(event))
                    .await?
                {
                    return Ok(role);
                }
            }
        })
        .await
    }

    /// A Role.
    pub async fn role(&self, caller: &Caller, scope: impl Into<Option<NamespaceId>>, id: &str) -> Answer<Role> {
        let scope = scope.into();
        let op = self.of_policy(caller, "openclaw.iam.roles.read", scope);
        op.answer(async {
            self.administers_policy(&op, scope).await?;
            self.own_role(scope, id).await
        })
        .await
    }

    /// The Roles of a Namespace, or of the Installation.
    pub async fn roles(&self, caller: &Caller, scope: impl Into<Option<NamespaceId>>) -> Answer<Vec<Role>> {
        let scope = scope.into();
        let op = self.of_policy(caller, "openclaw.iam.roles.list", scope);
        op.answer(async {
            self.administers_policy(&op, scope).await?;
            Ok(self.store.roles(scope).await?)
        })
        .await
    }

    /// Deletes a Role that no access binding names.
    pub async fn delete_role(&self, caller: &Caller, scope: impl Into<Option<NamespaceId>>, id: &str) -> Answer<()> {
        let scope = scope.into();
        let op = self.of_policy(caller, "openclaw.iam.roles.delete", scope);
        op.answer(async {
            let mut tries = op.tries();
            loop {
                let allowed = self.administers_policy(&op, scope).await?;
                let change = self.policy_change(scope).await?;
                let role = self.own_role(scope, id).await?;
                let granting = BindingsOf::Role(&role.id);
                if !self.store.access_bindings(scope, granting).await?.is_empty() {
                    return Err(Refusal::conflict("The Role is still granted by an access binding."));
                }
                let event = op
                    .event(self.policy_of(scope).await?, &allowed)
                    .with("roleId", role.id.as_str());
                let change = change
                    .expect(Expect::Role(role.id.clone()))
                    .expect(Expect::RoleUnreferenced(role.id.clone()))
                    .write(Write::DeleteRole(role.id))
                    .audit(event);
                if tries.commit(change).await? {
                    return Ok(());
                }
            }
        })
        .await
    }

    /// A Role of the Namespace, or of the Installation; 404 when there is none.
    pub(super) async fn own_role(&self, scope: Option<NamespaceId>, id: &str) -> Answer<Role> {
        self.found_role(scope, id).await?.ok_or_else(Refusal::not_found)
    }

    pub(super) async fn found_role(&self, scope: Option<NamespaceId>, id: &str) -> Answer<Option<Role>> {
        if !storable(id) {
            return Ok(None);
        }
        Ok(self.store.role(scope, id).await?)
    }
}

fn check_permissions(scope: Option<NamespaceId>, permissions: &[Permission]) -> Answer<()> {
    if permissions.is_empty() || permissions.len() > PERMISSIONS_MAX {
        let refusal = Refusal::invalid("A Role permits 1 to 64 actions.");
        return Err(refusal.at("/permissions", DetailCode::InvalidValue));
    }
    for (index, permission) in permissions.iter().enumerate() {
        let message = if !supported(scope, *permission) {
            "This Role cannot permit this action on this kind."
        } else if permissions[..index].contains(permission) {
            "A Role permits each action once."
        } else {
            continue;
        };
        return Err(Refusal::invalid(message).at(&format!("/permissions/{index}"), DetailCode::InvalidValue));
    }
    Ok(())
}
