//! A Service Account Driver over a provider in memory. It stands for a vendor's API of accounts and tokens, which cannot run in a test.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use async_trait::async_trait;
use occ_core::{
    driver::{
        AccountIdentity, DriverIdentity, DriverKind, EffectResult, Fault, FaultKind, OperationContext,
        ServiceAccountDriver,
    },
    id::ServiceAccountId,
    resource::ProviderAccount,
    secret_value::SecretValue,
};
use uuid::Uuid;

use super::script::{Script, lock};

/// Makes accounts and issues tokens as the contract says: repeatable, and named from ids. Each token is `canary-token-` and a number.
pub struct IssuingAccounts {
    identity: DriverIdentity,
    state: Mutex<State>,
    /// What making an account answers before it happens; ordinarily nothing.
    pub create: Script<ServiceAccountId, ()>,
    /// What issuing a token answers before it happens; ordinarily nothing.
    pub issue: Script<Uuid, ()>,
    /// What issuing a token answers after it happened; ordinarily nothing.
    pub issued: Script<Uuid, ()>,
    /// What ending a token answers before it happens; ordinarily nothing.
    pub end: Script<Uuid, ()>,
    /// What deleting an account answers before it happens; ordinarily nothing.
    pub delete: Script<ServiceAccountId, ()>,
}

#[derive(Default)]
struct State {
    accounts: BTreeMap<ServiceAccountId, BTreeMap<Uuid, String>>,
    ever: BTreeSet<Uuid>,
}

impl IssuingAccounts {
    /// With this id.
    pub fn named(id: &str) -> Self {
        Self {
            identity: super::identity(DriverKind::ServiceAccount, id, "occ/issuing"),
            state: Mutex::default(),
            create: Script::default(),
            issue: Script::default(),
            issued: Script::default(),
            end: Script::default(),
            delete: Script::default(),
        }
    }

    /// The tokens that the provider accepts for this account; nothing when it has no such account.
    pub fn tokens(&self, account: ServiceAccountId) -> Option<Vec<String>> {
        let state = lock(&self.state);
        Some(state.accounts.get(&account)?.values().cloned().collect())
    }

    /// How many tokens were ever issued.
    pub fn ever(&self) -> usize {
        lock(&self.state).ever.len()
    }
}

fn name_of(account: &AccountIdentity) -> ProviderAccount {
    ProviderAccount {
        workspace_id: "workspace".to_owned(),
        account_id: format!("provider-{}", account.id),
    }
}

/// The provider's account, if it is the one that was made.
fn found<'a>(
    state: &'a mut State,
    account: &AccountIdentity,
    at: &ProviderAccount,
) -> EffectResult<&'a mut BTreeMap<Uuid, String>> {
    let tokens = state.accounts.get_mut(&account.id).filter(|_| *at == name_of(account));
    tokens.ok_or(Fault::new("find the account", FaultKind::Missing).into())
}

#[async_trait]
impl ServiceAccountDriver for IssuingAccounts {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    async fn create(&self, cx: &OperationContext, account: &AccountIdentity) -> EffectResult<ProviderAccount> {
        self.create.play(cx, account.id, ()).await?;
        lock(&self.state).accounts.entry(account.id).or_default();
        Ok(name_of(account))
    }

    async fn create_credential(
        &self,
        cx: &OperationContext,
        account: &AccountIdentity,
        at: &ProviderAccount,
        token: Uuid,
    ) -> EffectResult<SecretValue> {
        self.issue.play(cx, token, ()).await?;
        let value = {
            let mut state = lock(&self.state);
            let number = state.ever.len() + 1;
            let value = format!("canary-token-{number}");
            found(&mut state, account, at)?.insert(token, value.clone());
            state.ever.insert(token);
            value
        };
        self.issued.play(cx, token, ()).await?;
        Ok(value.into())
    }

    async fn delete_credential(
        &self,
        cx: &OperationContext,
        account: &AccountIdentity,
        at: &ProviderAccount,
        token: Uuid,
    ) -> EffectResult<()> {
        self.end.play(cx, token, ()).await?;
        found(&mut lock(&self.state), account, at)?.remove(&token);
        Ok(())
    }

    async fn delete(
        &self,
        cx: &OperationContext,
        account: &AccountIdentity,
        _: Option<&ProviderAccount>,
    ) -> EffectResult<()> {
        self.delete.play(cx, account.id, ()).await?;
        lock(&self.state).accounts.remove(&account.id);
        Ok(())
    }
}
