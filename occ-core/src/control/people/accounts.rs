//! Accounts, as administrators keep them. All of it needs `installation:administer`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::password;
use crate::{
    admission::{DetailCode, Refusal},
    audit::Authorization,
    control::{
        Answer, Caller, ControlPlane, Cursor, Page, PageQuery,
        commit::Tries,
        installation::opaque,
        operation::{Operation, Scope, look},
        token,
    },
    driver::{Action, DriverKind, IdentityKind, ResourceRef},
    resource::{Email, Name, PrincipalId},
    secret_value::SecretValue,
    store::{AccountName, AccountRow, Change, NewAccount, NewCode, Slice, Write},
    time::Timestamp,
};

/// How long a one-time code may be used.
const CODE_LIFETIME: Duration = Duration::from_hours(72);
const CODE_PREFIX: &str = "occ_code_";

/// A new account.
#[derive(Debug, Clone)]
pub struct CreateAccount {
    /// What the person signs in with.
    pub email: Email,
    /// What the person is called.
    pub name: Name,
    /// The person who exists already, such as the first administrator; a new one when none is named.
    pub principal_id: Option<PrincipalId>,
    /// The first password; without one a one-time code is made.
    pub password: Option<SecretValue>,
}

/// An account, as administrators see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonView {
    /// Whose it is: what policies name.
    pub principal_id: PrincipalId,
    /// What the person signs in with.
    pub email: Email,
    /// What the person is called.
    pub name: String,
    /// Whether it has a password.
    pub has_password: bool,
    /// When its one-time code ends, if it has one that has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_expires_at: Option<Timestamp>,
    /// Whether it may not be used.
    pub disabled: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A one-time code that was just made.
#[derive(Debug, Clone)]
pub struct AccountCode {
    /// The code. Shown this once: only its hash is kept.
    pub value: SecretValue,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// An account that was just made.
#[derive(Debug, Clone)]
pub struct CreatedAccount {
    /// The account.
    pub account: PersonView,
    /// Its one-time code, when no password was given.
    pub code: Option<AccountCode>,
}

impl From<AccountRow> for PersonView {
    fn from(row: AccountRow) -> Self {
        Self {
            principal_id: row.principal,
            email: row.email,
            name: row.name,
            has_password: row.password_hash.is_some(),
            code_expires_at: row.code.filter(|code| !code.expired).map(|code| code.expires_at),
            disabled: row.disabled,
            created_at: row.created_at,
        }
    }
}

fn new_code() -> (NewCode, SecretValue) {
    let (value, hash) = token::issue_unnamed(CODE_PREFIX);
    let new = NewCode {
        hash,
        lifetime: CODE_LIFETIME,
    };
    (new, value)
}

impl ControlPlane {
    /// Makes an account for a new person, or for one who exists and has none. Nothing is granted to a new one.
    pub async fn create_account(&self, caller: &Caller, input: CreateAccount) -> Answer<CreatedAccount> {
        let op = self.operation(caller, "openclaw.accounts.create", Scope::Installation);
        op.answer(async {
            let (resource, allowed) = self.keeps_accounts(&op).await?;
            if let Some(password) = &input.password {
                password::check_new(password, "/password")?;
            }
            if let Some(principal) = &input.principal_id {
                self.is_person(principal).await?;
            }
            let password_hash = match input.password {
                Some(password) => Some(self.people.passwords.hash(password).await?),
                None => None,
            };
            let (new_code, value) = match password_hash {
                Some(_) => (None, None),
                None => Some(new_code()).unzip(),
            };
            let mut change = Change::new();
            let principal = if let Some(principal) = input.principal_id {
                principal
            } else {
                let principal = opaque("prn_");
                change = change.write(Write::Principal(principal.clone(), input.name.to_string()));
                principal
            };
            let event = op.event(resource, &allowed).with("accountId", principal.as_str());
            let change = change
                .write(Write::Account(NewAccount {
                    principal: principal.clone(),
                    email: input.email,
                    password_hash,
                    code: new_code,
                }))
                .audit(event);
            Tries::new(&*self.store).commit_alone(change).await?;
            let account: PersonView = self.account_of(&principal).await?.into();
            let code = value.zip(account.code_expires_at);
            let code = code.map(|(value, expires_at)| AccountCode { value, expires_at });
            Ok(CreatedAccount { account, code })
        })
        .await
    }

    /// The accounts in pages, by creation.
    pub async fn accounts_of_people(&self, caller: &Caller, query: &PageQuery) -> Answer<Page<PersonView>> {
        let op = self.operation(caller, "openclaw.accounts.read", Scope::Installation);
        op.answer(async {
            self.keeps_accounts(&op).await?;
            let read = async |slice: Slice| self.store.accounts(&slice).await;
            let place = |row: &AccountRow| Cursor {
                order: row.created_at.as_millis(),
                id: row.principal.to_string(),
            };
            Ok(Page::of_all(query, read, place).await?.map(PersonView::from))
        })
        .await
    }

    /// Makes a one-time code for an account, in the place of an earlier one. The password stays until the code is used.
    pub async fn create_account_code(&self, caller: &Caller, principal: &PrincipalId) -> Answer<AccountCode> {
        let op = self.operation(caller, "openclaw.accounts.code.create", Scope::Installation);
        op.answer(async {
            let (resource, allowed) = self.keeps_accounts(&op).await?;
            self.account_of(principal).await?;
            let (new, value) = new_code();
            let event = op.event(resource, &allowed).with("accountId", principal.as_str());
            let change = Change::new()
                .write(Write::AccountCode(principal.clone(), new))
                .audit(event);
            Tries::new(&*self.store).commit_alone(change).await?;
            // When it ends is the database's to say. Another one may have taken its place already.
            let code = self.account_of(principal).await?.code;
            let expires_at = code.map(|code| code.expires_at).ok_or_else(Refusal::not_found)?;
            Ok(AccountCode { value, expires_at })
        })
        .await
    }

    /// Says whether an account may be used. When it may not, its sessions end and its person's service keys are refused.
    pub async fn set_account_disabled(
        &self,
        caller: &Caller,
        principal: &PrincipalId,
        disabled: bool,
    ) -> Answer<PersonView> {
        let op = self.operation(caller, "openclaw.accounts.update", Scope::Installation);
        op.answer(async {
            let (resource, allowed) = self.keeps_accounts(&op).await?;
            self.account_of(principal).await?;
            if disabled && *principal == caller.principal {
                return Err(Refusal::conflict(
                    "Nobody disables the own account: somebody else has to.",
                ));
            }
            let event = op
                .event(resource, &allowed)
                .with("accountId", principal.as_str())
                .with("disabled", disabled);
            let change = Change::new()
                .write(Write::AccountDisabled(principal.clone(), disabled))
                .audit(event);
            Tries::new(&*self.store).commit_alone(change).await?;
            Ok(self.account_of(principal).await?.into())
        })
        .await
    }

    /// Ends every session of an account.
    pub async fn end_sessions(&self, caller: &Caller, principal: &PrincipalId) -> Answer<()> {
        let op = self.operation(caller, "openclaw.accounts.sessions.delete", Scope::Installation);
        op.answer(async {
            let (resource, allowed) = self.keeps_accounts(&op).await?;
            self.account_of(principal).await?;
            let event = op.event(resource, &allowed).with("accountId", principal.as_str());
            let change = Change::new().write(Write::EndSessions(principal.clone())).audit(event);
            Tries::new(&*self.store).commit_alone(change).await?;
            Ok(())
        })
        .await
    }

    pub(super) async fn keeps_accounts(&self, op: &Operation<'_>) -> Answer<(ResourceRef, Authorization)> {
        let resource = ResourceRef::installation(self.known_installation().await?.id);
        let allowed = op.require(Action::Administer, resource.clone()).await?;
        Ok((resource, allowed))
    }

    pub(super) async fn account_of(&self, principal: &PrincipalId) -> Answer<AccountRow> {
        let account = self.store.account(AccountName::Principal(principal)).await?;
        account.ok_or_else(Refusal::not_found)
    }

    /// 404 for nobody, 400 for a service principal.
    async fn is_person(&self, principal: &PrincipalId) -> Answer<()> {
        let cx = self.context();
        let found = look(self.drivers.iam.lookup(&cx, principal)).await;
        let identity = found
            .map_err(|e| Refusal::driver(DriverKind::Iam, &e))?
            .ok_or_else(Refusal::not_found)?;
        if identity.kind == IdentityKind::Human {
            return Ok(());
        }
        let refusal = Refusal::invalid("Only a person can have an account.");
        Err(refusal.at("/principalId", DetailCode::InvalidValue))
    }
}
