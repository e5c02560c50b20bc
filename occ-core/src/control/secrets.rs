//! Secrets: references here, bytes with the Secret Driver (spec/engine 1.6, spec/contracts 9).

use super::{
    Answer, Caller, ConsumersView, ControlPlane, Page, PageQuery, SecretView,
    commit::Uncommitted,
    configurations::refuse_referenced,
    namespaces::ACCEPTING,
    operation::{Operation, Scope, effect},
    page::Cursor,
};
use crate::{
    admission::{Refusal, draft, is_conflict, source},
    audit::Authorization,
    driver::{Action, DriverKind, ResourceKind, ResourceRef, SecretIdentity},
    iam::ExactResource,
    id::{NamespaceId, SecretId},
    resource::{BackendRef, Name, OwnedKind, Secret, ServiceAccount},
    secret_value::SecretValue,
    store::{Change, Consumers, Expect, Slice, Write},
};

/// How many consumers of each kind are shown.
const CONSUMERS_MAX: usize = 100;
/// A Secret that another driver stored is never touched through the selected one.
const OF_OTHER_DRIVER: &str = "The Secret is stored through another Secret Driver than the selected one. Select that driver to change or delete it.";

impl ControlPlane {
    /// Creates a Secret. [`SecretValue::from_caller`] has checked the value.
    pub async fn create_secret(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        name: Name,
        value: SecretValue,
    ) -> Answer<SecretView> {
        let op = self.operation(caller, "openclaw.secrets.create", Scope::Namespace(namespace));
        op.answer(async {
            let allowed = op
                .require(Action::Create, ResourceRef::collection(ResourceKind::Secret, namespace))
                .await?;
            if let Some(first) = op.first_answer().await? {
                return Ok(first);
            }
            let identity = SecretIdentity {
                id: SecretId::random(),
                namespace_id: namespace,
                name,
            };
            let mut stored = None;
            match self.store_secret(&op, allowed, &identity, &value, &mut stored).await {
                Ok(secret) => Ok((&secret).into()),
                Err(Uncommitted::Certain(refusal)) => {
                    if let Some(at) = stored {
                        self.forget_value(&identity, &at).await;
                    }
                    // The same request may have been done meanwhile.
                    op.first_answer().await?.ok_or(refusal)
                }
                Err(unknown) => Err(unknown.into()),
            }
        })
        .await
    }

    /// `stored` says where the driver keeps the value, once it does.
    async fn store_secret(
        &self,
        op: &Operation<'_>,
        mut allowed: Authorization,
        identity: &SecretIdentity,
        value: &SecretValue,
        stored: &mut Option<BackendRef>,
    ) -> Result<Secret, Uncommitted> {
        let namespace = identity.namespace_id;
        let mut tries = op.tries();
        loop {
            draft::accepts(&self.live_namespace(namespace).await?)?;
            let created_at = self.store.now().await?;
            let cx = self.context();
            let backend_ref = effect(self.drivers.secret.create(&cx, identity, value))
                .await
                .map_err(|e| Refusal::driver(DriverKind::Secret, &e))?;
            *stored = Some(backend_ref.clone());
            allowed = op.still(allowed).await?;
            let secret = Secret {
                id: identity.id,
                namespace_id: namespace,
                name: identity.name.clone(),
                driver_id: self.drivers.secret.identity().id.clone(),
                backend_ref,
                version: 1,
                deleting: false,
                created_at,
            };
            let change = Change::new()
                .expect(Expect::NamespaceStatus(namespace, ACCEPTING))
                .write(Write::Secret(secret.clone()))
                .state(cx.state().take_staged())
                .audit(op.event(ResourceRef::secret(namespace, secret.id), &allowed));
            let change = op.answering(change, &SecretView::from(&secret))?;
            if tries.commit(change).await? {
                return Ok(secret);
            }
            allowed = op.require(Action::Create, allowed.request.resource).await?;
        }
    }

    /// A Secret and who refers to it; never its value.
    pub async fn secret(&self, caller: &Caller, namespace: NamespaceId, id: SecretId) -> Answer<SecretView> {
        let op = self.operation(caller, "openclaw.secrets.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::secret(namespace, id)).await?;
            let secret = self.secret_record(namespace, id).await?;
            let Consumers {
                agents,
                configurations,
                owned,
            } = self.store.secret_consumers(namespace, id).await?;
            let all = agents.len() + configurations.len() + owned.len();
            let agents = op.readable(agents, |id| ResourceRef::agent(namespace, *id)).await?;
            let configurations = op
                .readable(configurations, |id| ResourceRef::configuration(namespace, *id))
                .await?;
            let of = |wanted| owned.iter().filter(move |(kind, _)| *kind == wanted);
            let accounts = of(OwnedKind::ServiceAccount).filter_map(|(_, id)| id.parse().ok());
            let sources = of(OwnedKind::CredentialSource).filter_map(|(_, id)| id.parse().ok());
            let (accounts, sources) = (accounts.collect(), sources.collect());
            let mut credential_sources = op
                .readable(sources, |id| ResourceRef::credential_source(namespace, *id))
                .await?;
            let mut service_accounts = op
                .readable(accounts, |id| ResourceRef::service_account(namespace, *id))
                .await?;
            let readable = agents.len() + configurations.len() + service_accounts.len() + credential_sources.len();
            let unreadable = all - readable;
            let (mut agents, mut configurations) = (agents, configurations);
            let shown = [
                agents.len(),
                configurations.len(),
                service_accounts.len(),
                credential_sources.len(),
            ];
            let truncated = shown.into_iter().any(|shown| shown > CONSUMERS_MAX);
            agents.truncate(CONSUMERS_MAX);
            configurations.truncate(CONSUMERS_MAX);
            service_accounts.truncate(CONSUMERS_MAX);
            credential_sources.truncate(CONSUMERS_MAX);
            let consumers = Some(ConsumersView {
                agents,
                configurations,
                service_accounts,
                credential_sources,
                unreadable,
                truncated,
            });
            Ok(SecretView {
                consumers,
                ..SecretView::from(&secret)
            })
        })
        .await
    }

    /// The Secrets that the caller may read, all of them. Needs `namespace:read`.
    pub async fn secrets(&self, caller: &Caller, namespace: NamespaceId) -> Answer<Vec<SecretView>> {
        Ok(self.secrets_page(caller, namespace, &PageQuery::ALL).await?.items)
    }

    /// The same, in pages, by creation.
    pub async fn secrets_page(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        query: &PageQuery,
    ) -> Answer<Page<SecretView>> {
        let op = self.operation(caller, "openclaw.secrets.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::namespace(namespace)).await?;
            self.live_namespace(namespace).await?;
            let read = async |slice: Slice| self.store.secrets(namespace, &slice).await;
            let place = |secret: &Secret| Cursor {
                order: secret.created_at.as_millis(),
                id: secret.id.to_string(),
            };
            let page = op
                .page(query, read, place, |secret| ResourceRef::secret(namespace, secret.id))
                .await?;
            Ok(page.map(|secret| (&secret).into()))
        })
        .await
    }

    /// Replaces a Secret's value. Restarts nothing: a redeployment delivers it.
    pub async fn update_secret(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: SecretId,
        value: SecretValue,
    ) -> Answer<SecretView> {
        let op = self.operation(caller, "openclaw.secrets.update", Scope::Namespace(namespace));
        op.answer(async {
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Update, ResourceRef::secret(namespace, id)).await?;
                let mut secret = self.own_secret(namespace, id).await?;
                if secret.deleting {
                    return Err(Refusal::conflict(source::BEING_DELETED));
                }
                self.refuse_issued(namespace, id).await?;
                let before = secret.version;
                secret.version += 1;
                let cx = self.context();
                match effect(
                    self.drivers
                        .secret
                        .update(&cx, &identity_of(&secret), &secret.backend_ref, &value),
                )
                .await
                {
                    Ok(()) => {}
                    Err(error) if is_conflict(&error) => {
                        tries.again().await?;
                        continue;
                    }
                    Err(error) => return Err(Refusal::driver(DriverKind::Secret, &error)),
                }
                let allowed = op.still(allowed).await?;
                // After the driver, so that no version that was given the earlier value seems to be newer.
                let replaced = self.remember_replaced(id).await?;
                let change = Change::new()
                    .expect(Expect::Secret(id, before))
                    .write(Write::UpdateSecret(secret.clone()))
                    .state(cx.state().take_staged())
                    .state(vec![replaced])
                    .audit(op.event(ResourceRef::secret(namespace, id), &allowed));
                if tries.commit(change).await? {
                    return Ok((&secret).into());
                }
            }
        })
        .await
    }

    /// Deletes a Secret that nobody refers to, its value, and the access bindings on it.
    pub async fn delete_secret(&self, caller: &Caller, namespace: NamespaceId, id: SecretId) -> Answer<()> {
        let op = self.operation(caller, "openclaw.secrets.delete", Scope::Namespace(namespace));
        op.answer(async {
            let resource = ResourceRef::secret(namespace, id);
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Delete, resource.clone()).await?;
                let secret = self.own_secret(namespace, id).await?;
                let Consumers {
                    agents,
                    configurations,
                    owned,
                } = self.store.secret_consumers(namespace, id).await?;
                let agents = agents.into_iter().map(|id| ResourceRef::agent(namespace, id));
                let configurations = configurations
                    .into_iter()
                    .map(|id| ResourceRef::configuration(namespace, id));
                let owned = owned.into_iter().map(|(kind, id)| ResourceRef {
                    kind: kind.resource_kind(),
                    id,
                    namespace_id: Some(namespace),
                });
                let consumers = agents.chain(configurations).chain(owned).collect();
                refuse_referenced(&op, "The Secret is still referenced by ", consumers).await?;
                if !secret.deleting && !self.drivers.secret.keeps_in_store() {
                    // Remembered before the value goes, so that a crash between the two is finished by a repetition.
                    let begun = Secret {
                        deleting: true,
                        version: secret.version + 1,
                        ..secret.clone()
                    };
                    let change = Change::new()
                        .expect(Expect::Secret(id, secret.version))
                        .expect(Expect::SecretUnreferenced(id))
                        .write(Write::UpdateSecret(begun))
                        .audit(op.event(resource.clone(), &allowed).with("phase", "begun"));
                    tries.commit(change).await?;
                    continue;
                }
                let cx = self.context();
                effect(
                    self.drivers
                        .secret
                        .delete(&cx, &identity_of(&secret), &secret.backend_ref),
                )
                .await
                .map_err(|e| Refusal::driver(DriverKind::Secret, &e))?;
                let allowed = op.still(allowed).await?;
                let change = Change::new()
                    .expect(Expect::Secret(id, secret.version))
                    .expect(Expect::SecretUnreferenced(id))
                    .write(Write::DeleteSecret(id))
                    .state(cx.state().take_staged())
                    .state(self.forget_replaced(id).await?);
                let exact = ExactResource {
                    kind: ResourceKind::Secret,
                    id: id.to_string(),
                };
                let event = op.event(resource.clone(), &allowed);
                let change = self
                    .with_exact_bindings_removed(change, namespace, &exact, event)
                    .await?;
                if tries.commit(change).await? {
                    return Ok(());
                }
            }
        })
        .await
    }

    /// A token that a driver issued is what its provider says, and no value that a caller knows replaces it.
    async fn refuse_issued(&self, namespace: NamespaceId, id: SecretId) -> Answer<()> {
        for (_, account) in self.store.secret_consumers(namespace, id).await?.owned {
            let row = self.store.owned(namespace, OwnedKind::ServiceAccount, &account).await?;
            let account: Option<ServiceAccount> = row.map(TryInto::try_into).transpose()?;
            if account.as_ref().and_then(ServiceAccount::issued).is_some() {
                return Err(Refusal::conflict(
                    "The Secret holds an access token that a Service Account Driver issued, which is not replaced.",
                ));
            }
        }
        Ok(())
    }

    /// The records of these Secrets, as far as they exist, each once.
    pub(super) async fn named_secrets(&self, namespace: NamespaceId, mut ids: Vec<SecretId>) -> Answer<Vec<Secret>> {
        ids.sort_unstable();
        ids.dedup();
        let mut secrets = Vec::with_capacity(ids.len());
        for id in ids {
            secrets.extend(self.store.secret(namespace, id).await?);
        }
        Ok(secrets)
    }

    async fn secret_record(&self, namespace: NamespaceId, id: SecretId) -> Answer<Secret> {
        self.store.secret(namespace, id).await?.ok_or_else(Refusal::not_found)
    }

    /// The record of a Secret that the selected driver stored; 503 when another one did.
    async fn own_secret(&self, namespace: NamespaceId, id: SecretId) -> Answer<Secret> {
        let secret = self.secret_record(namespace, id).await?;
        if secret.driver_id == self.drivers.secret.identity().id {
            Ok(secret)
        } else {
            Err(Refusal::unavailable(OF_OTHER_DRIVER))
        }
    }

    /// Takes back what a driver with a place of its own stored for a Secret that does not exist.
    pub(super) async fn forget_value(&self, identity: &SecretIdentity, at: &BackendRef) {
        if let Err(error) = effect(self.drivers.secret.delete(&self.context(), identity, at)).await {
            tracing::warn!(id = %identity.id, %error, "a value without a Secret could not be taken back");
        }
    }
}

/// The Secret as its driver knows it.
pub(super) fn identity_of(secret: &Secret) -> SecretIdentity {
    SecretIdentity {
        id: secret.id,
        namespace_id: secret.namespace_id,
        name: secret.name.clone(),
    }
}
