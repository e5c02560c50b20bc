//! Signing in, signing out, and changing one's own password.

use std::time::Duration;

use super::{Origin, SignedIn, password, session, throttle, wrong};
use crate::{
    admission::Refusal,
    audit::{AuditEvent, AuditKind, AuditOutcome},
    control::{Answer, Caller, ControlPlane, commit::Tries, token},
    driver::ResourceRef,
    reason::ApiCode,
    resource::{Email, PrincipalId},
    secret_value::SecretValue,
    store::{AccountName, AccountRow, Change, Expect, PasswordHash, Write},
};

const SIGN_IN: &str = "openclaw.sessions.create";

/// Somebody signs in with a password.
#[derive(Debug, Clone)]
pub struct PasswordAttempt {
    /// Who it is said to be.
    pub email: Email,
    /// What is said to be the password.
    pub password: SecretValue,
}

/// Somebody signs in with a one-time code and sets a password.
#[derive(Debug, Clone)]
pub struct CodeAttempt {
    /// Who it is said to be.
    pub email: Email,
    /// What is said to be the code.
    pub code: SecretValue,
    /// The password from now on.
    pub new_password: SecretValue,
}

/// A person changes the own password.
#[derive(Debug, Clone)]
pub struct PasswordChange {
    /// What is said to be the password now.
    pub current: SecretValue,
    /// The password from now on.
    pub new: SecretValue,
}

/// 429 with how long to wait.
fn limited(wait: Duration) -> Refusal {
    Refusal::new(ApiCode::SignInRateLimited).retry_after(wait)
}

/// Who acts when nobody has been recognised.
fn nobody() -> PrincipalId {
    "anonymous".parse().expect("a word is a valid principal id")
}

impl ControlPlane {
    /// Signs in with a password. Wrong, unknown and without a password read the same and take as long.
    pub async fn sign_in(&self, attempt: PasswordAttempt, from: Origin) -> Answer<SignedIn> {
        let counted = self.counted(Some(&attempt.email), from)?;
        let mut tries = Tries::new(&*self.store);
        loop {
            let account = self.store.account(AccountName::Email(&attempt.email)).await?;
            let stored = account.as_ref().and_then(|account| account.password_hash.clone());
            let right = self.people.passwords.verify(attempt.password.clone(), stored).await?;
            let account = match account {
                Some(account) if right => account,
                account => return Err(self.refused(account.as_ref(), "WRONG_PASSWORD", from, wrong()).await?),
            };
            let change = Change::new().expect(Expect::Account(account.principal.clone(), account.version));
            if let Some(signed_in) = self
                .begin_session(&account, change, "password", from, &mut tries)
                .await?
            {
                self.people.throttle.right(counted);
                return Ok(signed_in);
            }
        }
    }

    /// Signs in with a one-time code, which is used up, and sets the password. Every other session of the account ends.
    pub async fn sign_in_with_code(&self, attempt: CodeAttempt, from: Origin) -> Answer<SignedIn> {
        password::check_new(&attempt.new_password, "/newPassword")?;
        // A code has too many bits to be guessed at: strangers who try cannot keep it from working.
        let counted = self.counted(None, from)?;
        let hash = self.people.passwords.hash(attempt.new_password).await?;
        let mut tries = Tries::new(&*self.store);
        loop {
            let account = self.store.account(AccountName::Email(&attempt.email)).await?;
            let code = account.as_ref().and_then(|account| account.code.clone());
            let presented = attempt.code.expose_str().unwrap_or_default();
            let right = token::proves(presented, code.as_ref().map(|code| code.hash.as_str()));
            let account = match account {
                Some(account) if right && code.is_some_and(|code| !code.expired) => account,
                account => return Err(self.refused(account.as_ref(), "WRONG_CODE", from, wrong()).await?),
            };
            let change = Change::new()
                .expect(Expect::Account(account.principal.clone(), account.version))
                .write(Write::AccountPassword(account.principal.clone(), hash.clone()));
            if let Some(signed_in) = self.begin_session(&account, change, "code", from, &mut tries).await? {
                self.people.throttle.right(counted);
                return Ok(signed_in);
            }
        }
    }

    /// Changes the caller's own password. Every session of the account ends; the one that is given back takes their place.
    pub async fn change_password(&self, caller: &Caller, change: PasswordChange, from: Origin) -> Answer<SignedIn> {
        password::check_new(&change.new, "/newPassword")?;
        let (_, account) = self.own_account(caller).await?;
        // Who has only the session may not guess at the password either.
        let counted = self.counted(Some(&account.email), from)?;
        let mut hash = None;
        let mut tries = Tries::new(&*self.store);
        loop {
            let (session, account) = self.own_account(caller).await?;
            let principal = account.principal.clone();
            let event = self
                .of_people(&principal, "openclaw.accounts.password.update", from)
                .await?
                .with("sessionId", session.to_string());
            let stored = account.password_hash.clone();
            if !self.people.passwords.verify(change.current.clone(), stored).await? {
                let refusal = Refusal::fixed(ApiCode::Forbidden, "The current password is not right.");
                return Err(self.denied(event, "WRONG_PASSWORD", refusal).await?);
            }
            let hash = match &hash {
                Some(hash) => PasswordHash::clone(hash),
                None => hash
                    .insert(self.people.passwords.hash(change.new.clone()).await?)
                    .clone(),
            };
            let changed = Change::new()
                .expect(Expect::Account(principal.clone(), account.version))
                .write(Write::AccountPassword(principal, hash))
                .audit(event);
            if let Some(signed_in) = self
                .begin_session(&account, changed, "password", from, &mut tries)
                .await?
            {
                self.people.throttle.right(counted);
                return Ok(signed_in);
            }
        }
    }

    /// Ends the caller's session. 401 for a caller that has none.
    pub async fn sign_out(&self, caller: &Caller) -> Answer<()> {
        let (id, account) = self.own_account(caller).await?;
        let from = Origin {
            address: None,
            request: caller.request,
        };
        let event = self
            .of_people(&account.principal, "openclaw.sessions.delete", from)
            .await?
            .with("sessionId", id.to_string());
        let change = Change::new().write(Write::EndSession(id)).audit(event);
        Tries::new(&*self.store).commit_alone(change).await?;
        Ok(())
    }

    pub(super) fn counted(&self, account: Option<&Email>, from: Origin) -> Answer<throttle::Attempt> {
        self.people.throttle.pass(account, from.address).map_err(|wait| {
            tracing::warn!(request = %from.request, address = ?from.address, "sign-in.limited");
            limited(wait)
        })
    }

    /// Commits the change with a new session of the account; `None` when the account changed meanwhile.
    pub(super) async fn begin_session(
        &self,
        account: &AccountRow,
        change: Change,
        method: &str,
        from: Origin,
        tries: &mut Tries<'_>,
    ) -> Answer<Option<SignedIn>> {
        if account.disabled {
            let refusal = Refusal::fixed(ApiCode::Forbidden, "The account is disabled.");
            return Err(self.refused(Some(account), "ACCOUNT_DISABLED", from, refusal).await?);
        }
        let (new, token) = session::begin(account);
        let id = new.id;
        let event = self
            .of_people(&account.principal, SIGN_IN, from)
            .await?
            .with("sessionId", new.id.to_string())
            .with("method", method);
        if !tries.commit(change.write(Write::Session(new)).audit(event)).await? {
            return Ok(None);
        }
        // When it ends is the database's to say.
        let row = self.store.session(id).await?;
        let row = row.ok_or_else(|| Refusal::new(ApiCode::Unauthenticated))?;
        Ok(Some(SignedIn {
            session: session::view(id, account, row.expires_at),
            token,
            lifetime: session::LIFETIME,
        }))
    }

    pub(super) async fn of_people(&self, actor: &PrincipalId, action: &str, from: Origin) -> Answer<AuditEvent> {
        let resource = ResourceRef::installation(self.known_installation().await?.id);
        let event = AuditEvent::mutation(actor.clone(), action, resource).of(Some(from.request), None);
        Ok(match from.address {
            Some(address) => event.with("clientAddress", address.to_string()),
            None => event,
        })
    }

    /// Records a refused attempt, and gives the refusal back. What was given as a name is not recorded: it may be a password that
    /// slipped into the wrong field.
    pub(super) async fn refused(
        &self,
        account: Option<&AccountRow>,
        reason: &str,
        from: Origin,
        refusal: Refusal,
    ) -> Answer<Refusal> {
        let event = self.of_people(&nobody(), SIGN_IN, from).await?;
        let event = match account {
            Some(account) => event.with("accountId", account.principal.as_str()),
            None => event,
        };
        self.denied(event, reason, refusal).await
    }

    async fn denied(&self, event: AuditEvent, reason: &str, refusal: Refusal) -> Answer<Refusal> {
        let mut event = event.because(reason);
        (event.kind, event.outcome) = (AuditKind::AuthorizationDenial, AuditOutcome::Denied);
        if self.store.commit(Change::new().audit(event)).await.is_err() {
            return Err(Refusal::unavailable("The audit record could not be written."));
        }
        Ok(refusal)
    }
}
