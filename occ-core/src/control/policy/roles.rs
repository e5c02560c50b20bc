//! Roles of a Namespace.

use super::storable;
use crate::{
    admission::{DetailCode, Refusal},
    control::{Answer, Caller, ControlPlane, CreateRole, commit::Tries, namespaces::LIVE, operation::Scope},
    driver::{Action, ResourceKind, ResourceRef},
    iam::{Permission, Role},
    id::NamespaceId,
    store::{BindingsOf, Change, Expect, Write},
};

/// Most permissions of one Role.
const PERMISSIONS_MAX: usize = 64;

/// Whether a Namespace's Role may permit this: nothing of the Installation, and nothing that is checked against a parent.
fn supported(permission: Permission) -> bool {
    use Action::{Administer, Delete, Deploy, Operate, Read, ReadLogs, Update};
    let actions: &[Action] = match permission.kind {
        ResourceKind::Installation => &[],
        ResourceKind::Namespace | ResourceKind::AgentRevision => &[Read],
        ResourceKind::Configuration | ResourceKind::Preset | ResourceKind::ServiceAccount => &[Read, Update, Delete],
        ResourceKind::Secret | ResourceKind::CredentialSource => &[Read, Update, Delete, Operate],
        ResourceKind::Agent => &[Read, Update, Delete, Deploy, Operate, Administer, ReadLogs],
    };
    actions.contains(&permission.action)
}

impl ControlPlane {
    /// Creates a Role of a Namespace.
    pub async fn create_role(&self, caller: &Caller, namespace: NamespaceId, input: CreateRole) -> Answer<Role> {
        let op = self.operation(caller, "openclaw.iam.roles.create", Scope::Namespace(namespace));
        op.answer(async {
            check_permissions(&input.permissions)?;
            let allowed = self.administers(&op, namespace).await?;
            let role = Role {
                id: format!("role_{}", crate::randomness::uuid()),
                namespace_id: Some(namespace),
                permissions: input.permissions,
            };
            let event = op
                .event(ResourceRef::namespace(namespace), &allowed)
                .with("roleId", role.id.as_str());
            let change = Change::new()
                .expect(Expect::NamespaceStatus(namespace, LIVE))
                .write(Write::Role(role.clone()))
                .audit(event);
            let mut tries = Tries::new(&*self.store);
            loop {
                self.keeps_policy(namespace).await?;
                if tries.commit(change.clone()).await? {
                    return Ok(role);
                }
            }
        })
        .await
    }

    /// A Role of a Namespace.
    pub async fn role(&self, caller: &Caller, namespace: NamespaceId, id: &str) -> Answer<Role> {
        let op = self.operation(caller, "openclaw.iam.roles.read", Scope::Namespace(namespace));
        op.answer(async {
            self.administers(&op, namespace).await?;
            self.own_role(namespace, id).await
        })
        .await
    }

    /// The Roles of a Namespace.
    pub async fn roles(&self, caller: &Caller, namespace: NamespaceId) -> Answer<Vec<Role>> {
        let op = self.operation(caller, "openclaw.iam.roles.list", Scope::Namespace(namespace));
        op.answer(async {
            self.administers(&op, namespace).await?;
            Ok(self.store.roles(namespace).await?)
        })
        .await
    }

    /// Deletes a Role that no access binding names.
    pub async fn delete_role(&self, caller: &Caller, namespace: NamespaceId, id: &str) -> Answer<()> {
        let op = self.operation(caller, "openclaw.iam.roles.delete", Scope::Namespace(namespace));
        op.answer(async {
            let allowed = self.administers(&op, namespace).await?;
            let mut tries = Tries::new(&*self.store);
            loop {
                self.keeps_policy(namespace).await?;
                let role = self.own_role(namespace, id).await?;
                let granting = BindingsOf::Role(&role.id);
                if !self.store.access_bindings(namespace, granting).await?.is_empty() {
                    return Err(Refusal::conflict("The Role is still granted by an access binding."));
                }
                let event = op
                    .event(ResourceRef::namespace(namespace), &allowed)
                    .with("roleId", role.id.as_str());
                let change = Change::new()
                    .expect(Expect::NamespaceStatus(namespace, LIVE))
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

    /// A Role of the Namespace; 404 when there is none.
    pub(super) async fn own_role(&self, namespace: NamespaceId, id: &str) -> Answer<Role> {
        if !storable(id) {
            return Err(Refusal::not_found());
        }
        let found = self.store.role(namespace, id).await?;
        found.ok_or_else(Refusal::not_found)
    }
}

fn check_permissions(permissions: &[Permission]) -> Answer<()> {
    if permissions.is_empty() || permissions.len() > PERMISSIONS_MAX {
        let refusal = Refusal::invalid("A Role permits 1 to 64 actions.");
        return Err(refusal.at("/permissions", DetailCode::InvalidValue));
    }
    for (index, permission) in permissions.iter().enumerate() {
        let message = if !supported(*permission) {
            "A Namespace's Role cannot permit this action on this kind."
        } else if permissions[..index].contains(permission) {
            "A Role permits each action once."
        } else {
            continue;
        };
        return Err(Refusal::invalid(message).at(&format!("/permissions/{index}"), DetailCode::InvalidValue));
    }
    Ok(())
}
