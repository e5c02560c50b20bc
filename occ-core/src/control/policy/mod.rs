//! A Namespace's own policy: Roles, access bindings, and the service principals that they can name (spec/engine 11).
//!
//! Every operation needs `administer` of the Installation and `read` of the Namespace. Roles and bindings never change.

mod bindings;
mod roles;
mod target;

use super::{
    Answer, Caller, ControlPlane, ServicePrincipalView,
    operation::{Operation, Scope},
};
use crate::{
    admission::Refusal,
    audit::Authorization,
    driver::{Action, Identity, ResourceRef},
    id::NamespaceId,
    resource::NamespaceStatus,
};

/// Whether a database can hold such an id. Those of Roles and bindings are any text.
fn storable(id: &str) -> bool {
    !id.contains('\0')
}

impl ControlPlane {
    /// The service principals that a Namespace's policy can name; its Agents' are among them.
    pub async fn service_principals(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
    ) -> Answer<Vec<ServicePrincipalView>> {
        let op = self.operation(
            caller,
            "openclaw.iam.service_principals.list",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            self.administers(&op, namespace).await?;
            let found = self.store.service_principals(namespace).await?.into_iter();
            let view = |identity: Identity| ServicePrincipalView {
                id: identity.id,
                namespace_id: namespace,
                agent_id: identity.agent_id,
            };
            Ok(found.map(view).collect())
        })
        .await
    }

    /// The two grants that every operation here needs, then the Namespace itself.
    async fn administers(&self, op: &Operation<'_>, namespace: NamespaceId) -> Answer<Authorization> {
        let installation = ResourceRef::installation(self.known_installation().await?.id);
        let questions = vec![
            op.ask(Action::Administer, installation),
            op.ask(Action::Read, ResourceRef::namespace(namespace)),
        ];
        let allowed = op.require_all(questions).await?.swap_remove(0);
        self.live_namespace(namespace).await?;
        Ok(allowed)
    }

    /// A Namespace that is being deleted takes no change of its policy.
    async fn keeps_policy(&self, namespace: NamespaceId) -> Answer<()> {
        match self.live_namespace(namespace).await?.namespace.status {
            NamespaceStatus::Deleting => Err(Refusal::conflict("The Namespace is being deleted.")),
            _ => Ok(()),
        }
    }
}
