//! Access bindings of a Namespace, and of the Installation.

use super::{storable, target::Target};
use crate::{
    admission::{DetailCode, Refusal},
    control::{
        Answer, Caller, ControlPlane, CreateAccessBinding,
        operation::{Operation, look},
    },
    driver::{Action, DriverKind, IdentityKind},
    iam::{AccessBinding, Subject},
    id::{AgentId, NamespaceId},
    store::{BindingsOf, Change, Expect, Write},
};

impl ControlPlane {
    /// Grants a Role: in a Namespace, to a person or to one of its service principals, what a Role of it or of the Installation permits
    /// there; in the Installation, to a person, what one of its Roles permits everywhere. The caller must be able to read the exact
    /// resource that the grant is confined to.
    pub async fn create_access_binding(
        &self,
        caller: &Caller,
        scope: impl Into<Option<NamespaceId>>,
        input: CreateAccessBinding,
    ) -> Answer<AccessBinding> {
        let scope = scope.into();
        let op = self.of_policy(caller, "openclaw.iam.access_bindings.create", scope);
        op.answer(async {
            let binding = AccessBinding {
                id: format!("binding_{}", crate::randomness::uuid()),
                namespace_id: scope,
                subject: Subject::Identity(input.principal_id.clone()),
                role_id: input.role_id.clone(),
                resource: input.resource.clone(),
            };
            let mut tries = op.tries();
            loop {
                let allowed = self.administers_policy(&op, scope).await?;
                let change = self.policy_change(scope).await?;
                let change = self.grantable(&op, change, scope, &input).await?;
                let event = op
                    .event(self.policy_of(scope).await?, &allowed)
                    .with("accessBindingId", binding.id.as_str())
                    .with("roleId", binding.role_id.as_str())
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

    /// An access binding.
    pub async fn access_binding(
        &self,
        caller: &Caller,
        scope: impl Into<Option<NamespaceId>>,
        id: &str,
    ) -> Answer<AccessBinding> {
        let scope = scope.into();
        let op = self.of_policy(caller, "openclaw.iam.access_bindings.read", scope);
        op.answer(async {
            self.administers_policy(&op, scope).await?;
            self.own_binding(scope, id).await
        })
        .await
    }

    /// The access bindings of a Namespace, or of the Installation.
    pub async fn access_bindings(
        &self,
        caller: &Caller,
        scope: impl Into<Option<NamespaceId>>,
    ) -> Answer<Vec<AccessBinding>> {
        let scope = scope.into();
        let op = self.of_policy(caller, "openclaw.iam.access_bindings.list", scope);
        op.answer(async {
            self.administers_policy(&op, scope).await?;
            Ok(self.store.access_bindings(scope, BindingsOf::Namespace).await?)
        })
        .await
    }

    /// Deletes an access binding. Whoever administers the Installation by nothing else keeps it: somebody always does.
    pub async fn delete_access_binding(
        &self,
        caller: &Caller,
        scope: impl Into<Option<NamespaceId>>,
        id: &str,
    ) -> Answer<()> {
        let scope = scope.into();
        let op = self.of_policy(caller, "openclaw.iam.access_bindings.delete", scope);
        op.answer(async {
            let mut tries = op.tries();
            loop {
                let allowed = self.administers_policy(&op, scope).await?;
                let change = self.policy_change(scope).await?;
                let binding = self.own_binding(scope, id).await?;
                if allowed.decision.evidence.binding_ids == [binding.id.as_str()] {
                    return Err(Refusal::conflict(
                        "You administer the Installation by this access binding alone. Somebody else who administers it may delete it.",
                    ));
                }
                let event = op
                    .event(self.policy_of(scope).await?, &allowed)
                    .with("accessBindingId", binding.id.as_str())
                    .with("roleId", binding.role_id.as_str());
                if tries
                    .commit(change.write(Write::DeleteAccessBinding(binding.id)).audit(event))
                    .await?
                {
                    return Ok(());
                }
            }
        })
        .await
    }

    /// The change, as long as the subject, the Role and the target exist.
    async fn grantable(
        &self,
        op: &Operation<'_>,
        mut change: Change,
        scope: Option<NamespaceId>,
        input: &CreateAccessBinding,
    ) -> Answer<Change> {
        let target = target_of(scope, input)?;
        if let Some((namespace, target)) = &target {
            op.require(Action::Read, target.resource(*namespace)).await?;
        }
        let role = match self.found_role(scope, &input.role_id).await? {
            // What a Role of the Installation permits may be granted for one Namespace.
            None if scope.is_some() => self.found_role(None, &input.role_id).await?,
            found => found,
        };
        let role = role.ok_or_else(Refusal::not_found)?;
        change = change.expect(Expect::Role(role.id.clone()));
        if let Some((namespace, owner)) = self.subject(scope, input).await? {
            change = change.expect(Expect::Agent(owner, self.agent_row(namespace, owner).await?.version));
        }
        if let Some((namespace, target)) = &target {
            let of_kind = || role.permissions.iter().filter(|one| one.kind == target.kind());
            // `create` is asked of the parent: confined to one thing it would permit nothing.
            if of_kind().next().is_none() || of_kind().any(|one| one.action == Action::Create) {
                let refusal = Refusal::invalid("The Role permits nothing of the resource's kind, or its creation.");
                return Err(refusal.at("/roleId", DetailCode::InvalidValue));
            }
            change.expect.extend(self.target_exists(*namespace, target).await?);
        }
        Ok(change)
    }

    async fn own_binding(&self, scope: Option<NamespaceId>, id: &str) -> Answer<AccessBinding> {
        if !storable(id) {
            return Err(Refusal::not_found());
        }
        let found = self.store.access_bindings(scope, BindingsOf::Id(id)).await?;
        found.into_iter().next().ok_or_else(Refusal::not_found)
    }

    /// A person, or a service principal of this very scope; the Agent that owns it, when one does.
    async fn subject(
        &self,
        scope: Option<NamespaceId>,
        input: &CreateAccessBinding,
    ) -> Answer<Option<(NamespaceId, AgentId)>> {
        let cx = self.context();
        let found = look(self.drivers.iam.lookup(&cx, &input.principal_id)).await;
        let identity = found.map_err(|e| Refusal::driver(DriverKind::Iam, &e))?;
        match identity {
            Some(identity) if identity.kind == IdentityKind::Human => Ok(None),
            Some(identity) if identity.namespace_id == scope => Ok(scope.zip(identity.agent_id)),
            _ => {
                let text = "The principal must be a person, or a service principal of what the grant is for.";
                Err(Refusal::invalid(text).at("/principalId", DetailCode::InvalidValue))
            }
        }
    }
}

/// The exact resource that a grant is to be confined to. What is in a Namespace is confined in its own policy.
fn target_of(scope: Option<NamespaceId>, input: &CreateAccessBinding) -> Answer<Option<(NamespaceId, Target)>> {
    match (&input.resource, scope) {
        (None, _) => Ok(None),
        (Some(exact), Some(namespace)) => Ok(Some((namespace, Target::parse(namespace, exact)?))),
        (Some(_), None) => {
            let refusal = Refusal::invalid("A grant of the Installation is not confined to one resource.");
            Err(refusal.at("/resource", DetailCode::InvalidValue))
        }
    }
}
