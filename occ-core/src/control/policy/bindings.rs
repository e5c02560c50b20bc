//! Access bindings of a Namespace.

use super::{storable, target::Target};
use crate::{
    admission::{DetailCode, Refusal},
    control::{
        Answer, Caller, ControlPlane, CreateAccessBinding,
        commit::Tries,
        namespaces::LIVE,
        operation::{Scope, look},
    },
    driver::{Action, DriverKind, IdentityKind, ResourceRef},
    iam::{AccessBinding, Subject},
    id::{AgentId, NamespaceId},
    store::{BindingsOf, Change, Expect, Write},
};

impl ControlPlane {
    /// Grants a Role of a Namespace to a person or to a service principal of the Namespace. The caller must be able to read the
    /// exact resource that the grant is confined to.
    pub async fn create_access_binding(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        input: CreateAccessBinding,
    ) -> Answer<AccessBinding> {
        let op = self.operation(
            caller,
            "openclaw.iam.access_bindings.create",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            let allowed = self.administers(&op, namespace).await?;
            let target = input
                .resource
                .as_ref()
                .map(|exact| Target::parse(namespace, exact))
                .transpose()?;
            if let Some(target) = &target {
                op.require(Action::Read, target.resource(namespace)).await?;
            }
            let binding = AccessBinding {
                id: format!("binding_{}", crate::randomness::uuid()),
                namespace_id: Some(namespace),
                subject: Subject::Identity(input.principal_id.clone()),
                role_id: input.role_id.clone(),
                resource: input.resource.clone(),
            };
            let mut tries = Tries::new(&*self.store);
            loop {
                self.keeps_policy(namespace).await?;
                let role = self.own_role(namespace, &input.role_id).await?;
                let mut change = Change::new()
                    .expect(Expect::NamespaceStatus(namespace, LIVE))
                    .expect(Expect::Role(role.id.clone()));
                if let Some(owner) = self.subject(namespace, &input).await? {
                    change = change.expect(Expect::Agent(owner, self.agent_row(namespace, owner).await?.version));
                }
                if let Some(target) = &target {
                    if !role
                        .permissions
                        .iter()
                        .any(|permission| permission.kind == target.kind())
                    {
                        let refusal = Refusal::invalid("The Role permits nothing of the resource's kind.");
                        return Err(refusal.at("/roleId", DetailCode::InvalidValue));
                    }
                    change.expect.extend(self.target_exists(namespace, target).await?);
                }
                let event = op
                    .event(ResourceRef::namespace(namespace), &allowed)
                    .with("accessBindingId", binding.id.as_str())
                    .with("roleId", role.id.as_str())
                    .with("principalId", input.principal_id.as_str());
                if tries
                    .commit(change.write(Write::AccessBinding(binding.clone())).audit(event))
                    .await?
                {
                    return Ok(binding);
                }
            }
        })
        .await
    }

    /// An access binding of a Namespace.
    pub async fn access_binding(&self, caller: &Caller, namespace: NamespaceId, id: &str) -> Answer<AccessBinding> {
        let op = self.operation(caller, "openclaw.iam.access_bindings.read", Scope::Namespace(namespace));
        op.answer(async {
            self.administers(&op, namespace).await?;
            self.own_binding(namespace, id).await
        })
        .await
    }

    /// The access bindings of a Namespace.
    pub async fn access_bindings(&self, caller: &Caller, namespace: NamespaceId) -> Answer<Vec<AccessBinding>> {
        let op = self.operation(caller, "openclaw.iam.access_bindings.list", Scope::Namespace(namespace));
        op.answer(async {
            self.administers(&op, namespace).await?;
            Ok(self.store.access_bindings(namespace, BindingsOf::Namespace).await?)
        })
        .await
    }

    /// Deletes an access binding.
    pub async fn delete_access_binding(&self, caller: &Caller, namespace: NamespaceId, id: &str) -> Answer<()> {
        let op = self.operation(
            caller,
            "openclaw.iam.access_bindings.delete",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            let allowed = self.administers(&op, namespace).await?;
            let mut tries = Tries::new(&*self.store);
            loop {
                self.keeps_policy(namespace).await?;
                let binding = self.own_binding(namespace, id).await?;
                let event = op
                    .event(ResourceRef::namespace(namespace), &allowed)
                    .with("accessBindingId", binding.id.as_str())
                    .with("roleId", binding.role_id.as_str());
                let change = Change::new()
                    .expect(Expect::NamespaceStatus(namespace, LIVE))
                    .write(Write::DeleteAccessBinding(binding.id))
                    .audit(event);
                if tries.commit(change).await? {
                    return Ok(());
                }
            }
        })
        .await
    }

    async fn own_binding(&self, namespace: NamespaceId, id: &str) -> Answer<AccessBinding> {
        if !storable(id) {
            return Err(Refusal::not_found());
        }
        let found = self.store.access_bindings(namespace, BindingsOf::Id(id)).await?;
        found.into_iter().next().ok_or_else(Refusal::not_found)
    }

    /// A person, or a service principal of this Namespace; the Agent that owns it, when one does.
    async fn subject(&self, namespace: NamespaceId, input: &CreateAccessBinding) -> Answer<Option<AgentId>> {
        let cx = self.context();
        let found = look(self.drivers.iam.lookup(&cx, &input.principal_id)).await;
        let identity = found.map_err(|e| Refusal::driver(DriverKind::Iam, &e))?;
        match identity {
            Some(identity) if identity.kind == IdentityKind::Human => Ok(None),
            Some(identity) if identity.namespace_id == Some(namespace) => Ok(identity.agent_id),
            _ => {
                let text = "The principal must be a person or a service principal of the Namespace.";
                Err(Refusal::invalid(text).at("/principalId", DetailCode::InvalidValue))
            }
        }
    }
}
