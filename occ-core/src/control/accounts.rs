//! Service accounts: references to a provider's credentials that several Agents share (spec/engine 1.7).

use std::collections::BTreeSet;

use super::{
    AccountView, Answer, Caller, ControlPlane, CreateServiceAccount, Page, PageQuery, SetAccountCredential,
    commit::Tries,
    configurations::{bound, refuse_referenced},
    namespaces::ACCEPTING,
    operation::{Operation, Scope},
    page::Cursor,
};
use crate::{
    admission::{DetailCode, Refusal, draft, source},
    driver::{Action, ResourceKind, ResourceRef},
    iam::ExactResource,
    id::{NamespaceId, ServiceAccountId},
    resource::{AccountCredential, AccountCredentialKind, OwnedKind, Secret, ServiceAccount},
    store::{Change, Expect, OwnedRow, SavedField, Slice, Write},
};

const KIND: OwnedKind = OwnedKind::ServiceAccount;

impl ControlPlane {
    /// Creates a service account, with an imported credential or without one.
    pub async fn create_service_account(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        input: CreateServiceAccount,
    ) -> Answer<AccountView> {
        let op = self.operation(caller, "openclaw.service_accounts.create", Scope::Namespace(namespace));
        op.answer(async {
            let collection = ResourceRef::collection(ResourceKind::ServiceAccount, namespace);
            let id = ServiceAccountId::random();
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Create, collection.clone()).await?;
                if let Some(first) = op.first_answer().await? {
                    return Ok(first);
                }
                draft::accepts(&self.live_namespace(namespace).await?)?;
                let (credential, secrets) = match &input.credential {
                    Some(named) => {
                        let (credential, secret) = self.imported(&op, namespace, named, "/credential").await?;
                        (Some(credential), vec![secret])
                    }
                    None => (None, Vec::new()),
                };
                let account = ServiceAccount {
                    id,
                    namespace_id: namespace,
                    name: input.name.clone(),
                    credential,
                    binding: None,
                    deleting: false,
                    version: 1,
                    created_at: self.store.now().await?,
                };
                let view = AccountView::from(&account);
                let change = bound(Change::new(), &secrets)
                    .expect(Expect::NamespaceStatus(namespace, ACCEPTING))
                    .write(Write::Owned(OwnedRow::from(&account)))
                    .audit(op.event(ResourceRef::service_account(namespace, id), &allowed));
                if tries.commit(op.answering(change, &view)?).await? {
                    return Ok(view);
                }
            }
        })
        .await
    }

    /// A service account, without its Secret.
    pub async fn service_account(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: ServiceAccountId,
    ) -> Answer<AccountView> {
        let op = self.operation(caller, "openclaw.service_accounts.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::service_account(namespace, id))
                .await?;
            Ok((&self.account(namespace, id).await?).into())
        })
        .await
    }

    /// The service accounts that the caller may read, by creation. Needs `namespace:read`.
    pub async fn service_accounts(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        query: &PageQuery,
    ) -> Answer<Page<AccountView>> {
        let op = self.operation(caller, "openclaw.service_accounts.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::namespace(namespace)).await?;
            self.live_namespace(namespace).await?;
            let read = async |slice: Slice| self.store.all_owned(namespace, KIND, &slice).await;
            let page = op.page(query, read, Cursor::of, |row| {
                row.resource(ResourceKind::ServiceAccount)
            });
            let accounts = page.await?.decoded(ServiceAccount::try_from)?;
            Ok(accounts.map(|account| (&account).into()))
        })
        .await
    }

    /// Replaces the imported credential of a service account.
    pub async fn set_account_credential(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: ServiceAccountId,
        input: SetAccountCredential,
    ) -> Answer<AccountView> {
        let op = self.operation(caller, "openclaw.service_accounts.update", Scope::Namespace(namespace));
        op.answer(async {
            let resource = ResourceRef::service_account(namespace, id);
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Update, resource.clone()).await?;
                let mut account = self.account(namespace, id).await?;
                imports(&account)?;
                let (credential, secret) = self.imported(&op, namespace, &input, "").await?;
                let before = account.version;
                account.credential = Some(credential);
                account.version += 1;
                let change = bound(Change::new(), &[secret])
                    .expect(Expect::Owned(id.to_string(), before))
                    .write(Write::UpdateOwned(OwnedRow::from(&account)))
                    .audit(op.event(resource.clone(), &allowed));
                if tries.commit(change).await? {
                    return Ok((&account).into());
                }
            }
        })
        .await
    }

    /// Deletes a service account that no Agent refers to, and what a driver made of it at its provider.
    pub async fn delete_service_account(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: ServiceAccountId,
    ) -> Answer<()> {
        let op = self.operation(caller, "openclaw.service_accounts.delete", Scope::Namespace(namespace));
        op.answer(async {
            let resource = ResourceRef::service_account(namespace, id);
            let allowed = op.require(Action::Delete, resource.clone()).await?;
            let mut tries = Tries::new(&*self.store);
            loop {
                let account = self.account(namespace, id).await?;
                let token = match account.issued() {
                    Some((secret, _)) => self.store.secret(namespace, secret).await?,
                    None => None,
                };
                let consumers = self.account_consumers(namespace, id, token.as_ref()).await?;
                let marked = |deleting| ServiceAccount {
                    deleting,
                    version: account.version + 1,
                    ..account.clone()
                };
                let mark = |deleting: bool, phase: &'static str| {
                    Change::new()
                        .expect(Expect::Owned(id.to_string(), account.version))
                        .write(Write::UpdateOwned((&marked(deleting)).into()))
                        .audit(op.event(resource.clone(), &allowed).with("phase", phase))
                };
                if account.deleting && !consumers.is_empty() {
                    // A deployment came between the look and the mark. Nothing was deleted: that happens under the mark alone.
                    tries.commit(mark(false, "withdrawn")).await?;
                    continue;
                }
                refuse_referenced(&op, "The service account is still referenced by ", consumers).await?;
                self.refuse_foreign(&account, token.as_ref())?;
                let unreferenced = Expect::OwnedUnreferenced(id.to_string());
                if account.binding.is_some() && !account.deleting {
                    // Remembered before the provider is asked, so that a crash between the two is finished by a repetition.
                    tries.commit(mark(true, "begun").expect(unreferenced)).await?;
                    continue;
                }
                if account.unsettled(self.store.now().await?) {
                    return Err(Refusal::unavailable(
                        "A token of the service account may still be being issued. Delete it again in a minute.",
                    ));
                }
                let mut change = self
                    .delete_issued(&account, token.as_ref())
                    .await?
                    .expect(Expect::Owned(id.to_string(), account.version))
                    .expect(unreferenced)
                    .write(Write::DeleteOwned(KIND, id.to_string()));
                if let Some(secret) = &token {
                    let event = op.event(ResourceRef::secret(namespace, secret.id), &allowed);
                    let exact = ExactResource {
                        kind: ResourceKind::Secret,
                        id: secret.id.to_string(),
                    };
                    change = self
                        .with_exact_bindings_removed(change, namespace, &exact, event)
                        .await?
                        .expect(Expect::Secret(secret.id, secret.version))
                        .write(Write::DeleteSecret(secret.id));
                }
                let exact = ExactResource {
                    kind: ResourceKind::ServiceAccount,
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

    /// The Agents whose draft names the account, or whose selected or pending version delivers its issued token.
    async fn account_consumers(
        &self,
        namespace: NamespaceId,
        id: ServiceAccountId,
        token: Option<&Secret>,
    ) -> Answer<Vec<ResourceRef>> {
        let agents = self.store.agents(namespace).await?.into_iter();
        let mut named: BTreeSet<_> = agents
            .filter(|row| {
                // Whoever knows no better counts as one who uses it.
                row.unreadable.contains(&SavedField::HarnessAuth)
                    || source::account_of(row.agent.harness_auth.as_ref()) == Some(id)
            })
            .map(|row| row.agent.id)
            .collect();
        if let Some(secret) = token {
            named.extend(self.store.secret_consumers(namespace, secret.id).await?.agents);
        }
        let named = named.into_iter();
        Ok(named.map(|agent| ResourceRef::agent(namespace, agent)).collect())
    }

    /// A service account; 404 when there is none.
    pub(super) async fn account(&self, namespace: NamespaceId, id: ServiceAccountId) -> Answer<ServiceAccount> {
        let row = self.store.owned(namespace, KIND, &id.to_string()).await?;
        Ok(row.ok_or_else(Refusal::not_found)?.try_into()?)
    }

    /// The credential that a request names: its kind can be imported, and the caller may operate its Secret.
    async fn imported(
        &self,
        op: &Operation<'_>,
        namespace: NamespaceId,
        named: &SetAccountCredential,
        at: &str,
    ) -> Answer<(AccountCredential, Secret)> {
        if named.kind == AccountCredentialKind::AccessToken {
            let refusal = Refusal::invalid("An access token is issued by a driver and cannot be imported.");
            return Err(refusal.at(&format!("{at}/kind"), DetailCode::InvalidValue));
        }
        if named.source.namespace_id != namespace {
            let refusal = Refusal::invalid("The Secret must belong to the service account's Namespace.");
            return Err(refusal.at(&format!("{at}/source/namespaceId"), DetailCode::InvalidValue));
        }
        let id = named.source.id;
        op.require(Action::Operate, ResourceRef::secret(namespace, id)).await?;
        let secrets = self.named_secrets(namespace, vec![id]).await?;
        let driver = &self.drivers.secret.identity().id;
        let secret = source::owned(&secrets, id, driver, source::ACCOUNT_OF_OTHER_DRIVER)?;
        let credential = AccountCredential {
            kind: named.kind,
            secret_id: id,
        };
        Ok((credential, secret.clone()))
    }
}

/// An issued token, or one that may have been issued, is the only credential of its account, and is not replaced (spec/contracts
/// 12.3).
fn imports(account: &ServiceAccount) -> Answer<()> {
    if account.deleting {
        Err(Refusal::conflict(source::ACCOUNT_BEING_DELETED))
    } else if account
        .binding
        .as_ref()
        .is_some_and(|binding| !binding.tokens.is_empty())
    {
        Err(Refusal::conflict(
            "The service account's access token is issued by a driver and cannot be replaced. Create another service account.",
        ))
    } else {
        Ok(())
    }
}
