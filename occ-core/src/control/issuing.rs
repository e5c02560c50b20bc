//! Tokens of service accounts: a provider issues them through the selected driver (spec/engine 1.7, spec/contracts 12.3).
//!
//! A token is asked for under an id that is recorded before the provider is asked. Whatever cuts an attempt off, the next one finds
//! the id, ends what may have been issued under it, and asks under another. So an account never keeps two tokens, and two attempts
//! at once never share one.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    AccountView, Answer, Caller, ControlPlane,
    commit::{Tries, Uncommitted},
    namespaces::ACCEPTING,
    operation::{Operation, Scope, effect},
    secrets::identity_of,
};
use crate::{
    admission::{Refusal, draft, source},
    audit::Authorization,
    driver::{
        AccountIdentity, Action, DriverKind, EffectError, EffectResult, ResourceRef, SecretIdentity,
        ServiceAccountDriver, StateWrite,
    },
    id::{NamespaceId, SecretId, ServiceAccountId},
    reason::ApiCode,
    resource::{
        AccountBinding, AccountCredential, AccountCredentialKind, BackendRef, Name, ProviderAccount, Secret,
        ServiceAccount, TokenRequest,
    },
    secret_value::SecretValue,
    store::{Change, Expect, Write},
};

/// What a driver of another selection made is never touched through the selected one.
const OF_OTHER_DRIVER: &str = "The service account's token is another Service Account Driver's than the selected one. Select that driver to change or delete the account.";

/// For so long an attempt asks for something new (see [`ServiceAccount::LATE`]).
const PATIENCE: Duration = Duration::from_secs(30);

/// One attempt at a token: what it asked for, and how far it came.
struct Attempt<'a> {
    plane: &'a ControlPlane,
    driver: &'a dyn ServiceAccountDriver,
    op: &'a Operation<'a>,
    allowed: &'a Authorization,
    /// The account as this attempt recorded it.
    account: ServiceAccount,
    token: TokenRequest,
    begun: Instant,
    /// Whether something that was cut off may still come.
    uncertain: bool,
    at: Option<ProviderAccount>,
    stored: Option<BackendRef>,
}

impl ControlPlane {
    /// Has the provider issue a token for a service account that has no credential. Its value goes to the selected Secret Driver.
    pub async fn issue_account_credential(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: ServiceAccountId,
    ) -> Answer<AccountView> {
        let op = self.operation(
            caller,
            "openclaw.service_accounts.credentials.create",
            Scope::Namespace(namespace),
        );
        op.answer(async {
            let resource = ResourceRef::service_account(namespace, id);
            let allowed = op.require(Action::Update, resource.clone()).await?;
            let mut tries = Tries::new(&*self.store);
            loop {
                if let Some(first) = op.first_answer().await? {
                    return Ok(first);
                }
                let account = self.account(namespace, id).await?;
                let (driver, binding) = self.issuer(&account)?;
                draft::accepts(&self.live_namespace(namespace).await?)?;
                let token = TokenRequest {
                    id: crate::randomness::uuid(),
                    secret_id: SecretId::random(),
                    since: self.store.now().await?,
                };
                let asked = Instant::now();
                let begun = begun(&account, binding, token);
                let change = Change::new()
                    .expect(Expect::NamespaceStatus(namespace, ACCEPTING))
                    .expect(Expect::Owned(id.to_string(), account.version))
                    .write(Write::UpdateOwned((&begun).into()))
                    .audit(op.event(resource.clone(), &allowed).with("phase", "begun"));
                if !tries.commit(change).await? {
                    continue;
                }
                let mut attempt = Attempt {
                    plane: self,
                    driver,
                    op: &op,
                    allowed: &allowed,
                    account: begun,
                    token,
                    begun: asked,
                    uncertain: false,
                    at: None,
                    stored: None,
                };
                match attempt.issue(&mut tries).await {
                    Ok(Some(view)) => return Ok(view),
                    // Another request is at it, too. The same one may have been done meanwhile.
                    Ok(None) => attempt.take_back().await,
                    Err(Uncommitted::Certain(refusal)) => {
                        attempt.take_back().await;
                        return Err(refusal);
                    }
                    Err(unknown) => return Err(unknown.into()),
                }
            }
        })
        .await
    }

    /// The selected driver, and what it has of an account that can be issued a token.
    fn issuer(&self, account: &ServiceAccount) -> Answer<(&dyn ServiceAccountDriver, AccountBinding)> {
        if account.deleting {
            return Err(Refusal::conflict(source::ACCOUNT_BEING_DELETED));
        }
        if account.credential.is_some() {
            return Err(Refusal::conflict("The service account has a credential already."));
        }
        let driver = self.drivers.service_account.as_deref();
        let backend = driver.and_then(|driver| self.drivers.backend_of(driver));
        let (Some(driver), Some(backend)) = (driver, backend) else {
            return Err(Refusal::new(ApiCode::ServiceAccountDriverNotConfigured));
        };
        match &account.binding {
            Some(binding) if !self.drivers.issues(binding) => Err(Refusal::unavailable(OF_OTHER_DRIVER)),
            Some(binding) => Ok((driver, binding.clone())),
            None => Ok((
                driver,
                AccountBinding {
                    backend_id: backend.id.clone(),
                    driver_id: driver.identity().id.clone(),
                    account: None,
                    tokens: Vec::new(),
                },
            )),
        }
    }

    /// What a driver made of an account, and the Secret of its token, are the selected drivers'; 503 when they are not.
    pub(super) fn refuse_foreign(&self, account: &ServiceAccount, token: Option<&Secret>) -> Answer<()> {
        if let Some(binding) = &account.binding {
            self.driver_of(binding)?;
        }
        let own = |secret: &Secret| secret.driver_id == self.drivers.secret.identity().id;
        if token.is_some_and(|secret| !own(secret)) {
            return Err(Refusal::unavailable(source::TOKEN_OF_OTHER_DRIVER));
        }
        Ok(())
    }

    fn driver_of(&self, binding: &AccountBinding) -> Answer<&dyn ServiceAccountDriver> {
        let driver = self.drivers.service_account.as_deref();
        let driver = driver.filter(|driver| driver.identity().id == binding.driver_id);
        driver.ok_or(Refusal::unavailable(OF_OTHER_DRIVER))
    }

    /// Deletes at the provider what the selected driver made of an account, and with it every value that was stored. The staged part
    /// of it belongs to the change.
    pub(super) async fn delete_issued(&self, account: &ServiceAccount, token: Option<&Secret>) -> Answer<Change> {
        let Some(binding) = &account.binding else {
            return Ok(Change::new());
        };
        let driver = self.driver_of(binding)?;
        let cx = self.context();
        let identity = account_identity(account);
        effect(driver.delete(&cx, &identity, binding.account.as_ref()))
            .await
            .map_err(|error| told(&error))?;
        for left in &binding.tokens {
            if token.is_none_or(|secret| secret.id != left.secret_id) {
                self.forget_unrecorded(account, *left)
                    .await
                    .map_err(|error| secret_away(&error))?;
            }
        }
        let Some(secret) = token else {
            return Ok(Change::new().state(cx.state().take_staged()));
        };
        effect(
            self.drivers
                .secret
                .delete(&cx, &identity_of(secret), &secret.backend_ref),
        )
        .await
        .map_err(|error| secret_away(&error))?;
        Ok(Change::new().state(cx.state().take_staged()))
    }

    /// Removes what an attempt that was cut off may have stored: a repeated creation finds it, or makes what is then removed.
    async fn forget_unrecorded(&self, account: &ServiceAccount, token: TokenRequest) -> EffectResult<()> {
        if self.drivers.secret.keeps_in_store() {
            return Ok(());
        }
        let (cx, identity) = (self.context(), token_identity(account, token));
        let nothing = SecretValue::from("ended".to_owned());
        let at = effect(self.drivers.secret.create(&cx, &identity, &nothing)).await?;
        effect(self.drivers.secret.delete(&cx, &identity, &at)).await
    }
}

impl Attempt<'_> {
    /// Nothing when another attempt took over.
    async fn issue(&mut self, tries: &mut Tries<'_>) -> Result<Option<AccountView>, Uncommitted> {
        let plane = self.plane;
        let cx = plane.context();
        let identity = account_identity(&self.account);
        self.in_time()?;
        let at = effect(self.driver.create(&cx, &identity)).await;
        let at = self.known(at).map_err(|error| told(&error))?;
        self.at = Some(at.clone());
        for left in self.left() {
            let ended = effect(self.driver.delete_credential(&cx, &identity, &at, left.id)).await;
            ended.map_err(|error| told(&error))?;
            plane
                .forget_unrecorded(&self.account, left)
                .await
                .map_err(|error| secret_away(&error))?;
        }
        self.in_time()?;
        let value = effect(self.driver.create_credential(&cx, &identity, &at, self.token.id)).await;
        let value = self.known(value).map_err(|error| told(&error))?;
        let named = token_identity(&self.account, self.token);
        self.in_time()?;
        let stored = effect(plane.drivers.secret.create(&cx, &named, &value)).await;
        let backend_ref = self.known(stored).map_err(|error| secret_away(&error))?;
        self.stored = Some(backend_ref.clone());
        let secret = Secret {
            id: named.id,
            namespace_id: named.namespace_id,
            name: named.name,
            driver_id: plane.drivers.secret.identity().id.clone(),
            backend_ref,
            version: 1,
            deleting: false,
            created_at: plane.store.now().await?,
        };
        let mut issued = self.account.clone();
        issued.version += 1;
        issued.credential = Some(AccountCredential {
            kind: AccountCredentialKind::AccessToken,
            secret_id: secret.id,
        });
        if let Some(binding) = &mut issued.binding {
            binding.account = Some(at);
            binding.tokens = vec![self.token];
        }
        let (namespace, id) = (issued.namespace_id, issued.id);
        let event = self
            .op
            .event(ResourceRef::service_account(namespace, id), self.allowed)
            .with("secretId", secret.id.to_string());
        let change = Change::new()
            .expect(Expect::NamespaceStatus(namespace, ACCEPTING))
            .expect(Expect::Owned(id.to_string(), self.account.version))
            .write(Write::Secret(secret))
            .write(Write::UpdateOwned((&issued).into()))
            .state(cx.state().take_staged())
            .audit(event);
        let view = AccountView::from(&issued);
        let committed = tries.commit(self.op.answering(change, &view)?).await?;
        Ok(committed.then_some(view))
    }

    fn known<T>(&mut self, result: EffectResult<T>) -> EffectResult<T> {
        self.uncertain |= matches!(result, Err(EffectError::UnknownOutcome));
        result
    }

    /// A deletion does not wait for longer than it takes what was begun by now to end.
    fn in_time(&self) -> Answer<()> {
        if self.begun.elapsed() < PATIENCE {
            Ok(())
        } else {
            Err(Refusal::driver_away(DriverKind::ServiceAccount))
        }
    }

    /// What earlier attempts asked for.
    fn left(&self) -> Vec<TokenRequest> {
        let binding = self.account.binding.as_ref();
        let tokens = binding.map_or(&[][..], |binding| &binding.tokens);
        tokens.iter().copied().filter(|token| *token != self.token).collect()
    }

    /// Ends what this attempt made. What cannot be ended now stays recorded, and the next attempt ends it.
    async fn take_back(&self) {
        let identity = account_identity(&self.account);
        let cx = self.plane.context();
        if let Some(at) = &self.at
            && let Err(error) = effect(self.driver.delete_credential(&cx, &identity, at, self.token.id)).await
        {
            tracing::warn!(id = %identity.id, %error, "a token that nobody uses could not be ended yet");
            return;
        }
        if let Some(at) = &self.stored {
            let named = token_identity(&self.account, self.token);
            self.plane.forget_value(&named, at).await;
        }
        if self.uncertain {
            return;
        }
        let staged = cx.state().take_staged();
        if let Err(refusal) = self.ended(staged).await {
            tracing::warn!(id = %identity.id, code = refusal.code().code(), "that a token has ended could not be recorded");
        }
    }

    /// Records that the token is not there any more, also in an account whose deletion began meanwhile, which waits for it.
    async fn ended(&self, staged: Vec<StateWrite>) -> Answer<()> {
        let (namespace, id) = (self.account.namespace_id, self.account.id);
        let mut tries = Tries::new(&*self.plane.store);
        loop {
            let mut ended = self.plane.account(namespace, id).await?;
            let before = ended.version;
            let Some(binding) = ended.binding.as_mut().filter(|one| one.tokens.contains(&self.token)) else {
                return Ok(());
            };
            binding.account = self.at.clone().or(binding.account.take());
            binding.tokens.retain(|token| *token != self.token);
            ended.version += 1;
            let resource = ResourceRef::service_account(namespace, id);
            let change = Change::new()
                .expect(Expect::Owned(id.to_string(), before))
                .write(Write::UpdateOwned((&ended).into()))
                .state(staged.clone())
                .audit(self.op.event(resource, self.allowed).with("phase", "ended"));
            if tries.commit(change).await? {
                return Ok(());
            }
        }
    }
}

/// The account with the token that is about to be asked for.
fn begun(account: &ServiceAccount, mut binding: AccountBinding, token: TokenRequest) -> ServiceAccount {
    binding.tokens.push(token);
    ServiceAccount {
        binding: Some(binding),
        version: account.version + 1,
        ..account.clone()
    }
}

fn account_identity(account: &ServiceAccount) -> AccountIdentity {
    AccountIdentity {
        id: account.id,
        namespace_id: account.namespace_id,
        name: account.name.clone(),
    }
}

/// The Secret that a token becomes; named after the account, which has one at most.
fn token_identity(account: &ServiceAccount, token: TokenRequest) -> SecretIdentity {
    SecretIdentity {
        id: token.secret_id,
        namespace_id: account.namespace_id,
        name: Name::access_token_of(account.id),
    }
}

/// A call that was cut off changed nothing that counts: its token's id is recorded, and a repetition ends it.
fn told(error: &EffectError) -> Refusal {
    if *error == EffectError::UnknownOutcome {
        tracing::warn!("the Service Account Driver did not answer in time");
        return Refusal::driver_away(DriverKind::ServiceAccount);
    }
    Refusal::driver(DriverKind::ServiceAccount, error)
}

fn secret_away(error: &EffectError) -> Refusal {
    Refusal::driver(DriverKind::Secret, error)
}
