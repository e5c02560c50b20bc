//! The policy of the Installation and of its Namespaces: Roles, access bindings, and the service principals that they can name
//! (spec/engine 11).
//!
//! Every operation needs `administer` of the Installation, and of a Namespace's policy its `read` as well. Roles and bindings never
//! change. A policy that the store does not keep is not changed here: its driver would not read it.

mod bindings;
mod roles;
mod target;

use super::{
    Answer, Caller, ControlPlane, ServicePrincipalView,
    namespaces::LIVE,
    operation::{Operation, Scope},
};
use crate::{
    admission::Refusal,
    audit::Authorization,
    driver::{Action, Identity, ResourceRef},
    id::NamespaceId,
    resource::NamespaceStatus,
    store::{Change, Expect},
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
            self.administers(&op, Some(namespace)).await?;
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

    /// An operation on the policy of a Namespace, or of the Installation.
    fn of_policy<'a>(&'a self, caller: &'a Caller, name: &'static str, scope: Option<NamespaceId>) -> Operation<'a> {
        self.operation(caller, name, scope.map_or(Scope::Installation, Scope::Namespace))
    }

    /// The grants that every operation here needs, then the Namespace itself.
    async fn administers(&self, op: &Operation<'_>, scope: Option<NamespaceId>) -> Answer<Authorization> {
        let installation = ResourceRef::installation(self.known_installation().await?.id);
        let mut questions = vec![op.ask(Action::Administer, installation)];
        questions.extend(scope.map(|namespace| op.ask(Action::Read, ResourceRef::namespace(namespace))));
        let allowed = op.require_all(questions).await?.swap_remove(0);
        if let Some(namespace) = scope {
            self.live_namespace(namespace).await?;
        }
        Ok(allowed)
    }

    /// The same, for Roles and access bindings.
    async fn administers_policy(&self, op: &Operation<'_>, scope: Option<NamespaceId>) -> Answer<Authorization> {
        let allowed = self.administers(op, scope).await?;
        if self.drivers.iam.decides_by_stored_policy() {
            Ok(allowed)
        } else {
            Err(Refusal::unavailable(
                "The selected IAM Driver keeps its policy itself: no Role and no access binding of OCC counts there.",
            ))
        }
    }

    /// A change of the policy. A Namespace that is being deleted takes none.
    async fn policy_change(&self, scope: Option<NamespaceId>) -> Answer<Change> {
        let Some(namespace) = scope else {
            return Ok(Change::new());
        };
        match self.live_namespace(namespace).await?.namespace.status {
            NamespaceStatus::Deleting => Err(Refusal::conflict("The Namespace is being deleted.")),
            _ => Ok(Change::new().expect(Expect::NamespaceStatus(namespace, LIVE))),
        }
    }

    /// Whose policy it is, for the record.
    async fn policy_of(&self, scope: Option<NamespaceId>) -> Answer<ResourceRef> {
        Ok(match scope {
            Some(namespace) => ResourceRef::namespace(namespace),
            None => ResourceRef::installation(self.known_installation().await?.id),
        })
    }
}
