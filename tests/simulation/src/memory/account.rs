//! Accounts of people and their sessions.

use occ_core::{
    driver::IdentityKind,
    id::{AgentTokenKeyId, SessionId},
    resource::PrincipalId,
    store::{
        AccountName, AccountRow, AgentTokenKeyRow, CodeRow, CommitError, NewAccount, NewSession, SessionRow, Taken,
        Write,
    },
    time::Timestamp,
};

use super::data::Data;

/// A stored account: as it was made, and as it was changed since.
#[derive(Debug, Clone)]
pub struct Account {
    /// With its present password and code.
    pub new: NewAccount,
    /// When its code was made.
    pub code_at: Timestamp,
    /// Whether it may not be used.
    pub disabled: bool,
    /// Counts its changes.
    pub version: u64,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A stored session.
#[derive(Debug, Clone)]
pub struct Session {
    /// As it was begun.
    pub new: NewSession,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it was last used.
    pub used_at: Timestamp,
}

impl Session {
    fn is_over(&self, now: Timestamp) -> bool {
        self.created_at.plus(self.new.lifetime) <= now || self.used_at.plus(self.new.idle) <= now
    }
}

impl Data {
    pub(super) fn account(&self, now: Timestamp, name: AccountName<'_>) -> Option<AccountRow> {
        let found = self.accounts.values().find(|account| match name {
            AccountName::Email(email) => account.new.email == *email,
            AccountName::Principal(id) => account.new.principal == *id,
            AccountName::Federated { issuer, subject } => {
                self.federated.get(&(issuer.to_owned(), subject.to_owned())) == Some(&account.new.principal)
            }
        })?;
        let code = found.new.code.as_ref().map(|code| {
            let expires_at = found.code_at.plus(code.lifetime);
            CodeRow {
                hash: code.hash.clone(),
                expires_at,
                expired: expires_at <= now,
            }
        });
        Some(AccountRow {
            principal: found.new.principal.clone(),
            name: self.names.get(&found.new.principal).cloned().unwrap_or_default(),
            email: found.new.email.clone(),
            password_hash: found.new.password_hash.clone(),
            code,
            disabled: found.disabled,
            version: found.version,
            created_at: found.created_at,
        })
    }

    pub(super) fn session(&self, now: Timestamp, id: SessionId) -> Option<SessionRow> {
        let session = self.sessions.get(&id)?;
        Some(SessionRow {
            id,
            principal: session.new.principal.clone(),
            token_hash: session.new.token_hash.clone(),
            expires_at: session.created_at.plus(session.new.lifetime),
            expired: session.is_over(now),
            unused_for: now.since(session.used_at),
        })
    }

    pub(super) fn token_key(&self, now: Timestamp, id: AgentTokenKeyId) -> Option<AgentTokenKeyRow> {
        let (new, created_at) = self.token_keys.get(&id)?;
        let expires_at = created_at.plus(new.lifetime);
        Some(AgentTokenKeyRow {
            id,
            public_key: new.public_key,
            expires_at,
            expired: expires_at <= now,
            now,
        })
    }

    /// Only the writes by which callers are recognised.
    pub(super) fn of_account(&mut self, now: Timestamp, write: &Write) -> Result<(), CommitError> {
        match write {
            Write::Account(new) => return self.new_account(now, new),
            Write::AccountCode(id, code) => self.changed(id, |account| {
                account.new.code = Some(code.clone());
                account.code_at = now;
            })?,
            Write::AccountPassword(id, hash) => {
                self.changed(id, |account| {
                    account.new.password_hash = Some(hash.clone());
                    account.new.code = None;
                })?;
                self.end_sessions(id);
            }
            Write::AccountDisabled(id, disabled) => {
                self.changed(id, |account| account.disabled = *disabled)?;
                if *disabled {
                    self.end_sessions(id);
                }
            }
            Write::Session(new) => {
                let fresh = self.accounts.contains_key(&new.principal) && !self.sessions.contains_key(&new.id);
                if !fresh {
                    return Err(CommitError::Refused);
                }
                self.sessions.keep(|_, session| !session.is_over(now));
                let session = Session {
                    new: new.clone(),
                    created_at: now,
                    used_at: now,
                };
                self.sessions.write().insert(new.id, session);
            }
            Write::TouchSession(id) => {
                if let Some(session) = self
                    .sessions
                    .write()
                    .get_mut(id)
                    .filter(|session| !session.is_over(now))
                {
                    session.used_at = now;
                }
            }
            Write::EndSession(id) => {
                self.sessions.write().remove(id);
            }
            Write::EndSessions(id) => self.end_sessions(id),
            Write::FederatedIdentity {
                issuer,
                subject,
                principal,
            } => {
                let key = (issuer.clone(), subject.clone());
                let mut of_provider = self.federated.iter().filter(|((other, _), _)| other == issuer);
                if self.federated.contains_key(&key) || of_provider.any(|(_, whose)| whose == principal) {
                    return Err(CommitError::NameTaken(Taken::Account));
                }
                if !self.accounts.contains_key(principal) {
                    return Err(CommitError::Refused);
                }
                self.federated.write().insert(key, principal.clone());
            }
            Write::UnlinkIdentities(id) => {
                self.changed(id, |_| ())?;
                self.federated.keep(|_, whose| whose != id);
                self.end_sessions(id);
            }
            Write::AgentTokenKey(new) => {
                self.token_keys
                    .keep(|_, (key, created_at)| created_at.plus(key.lifetime) > now);
                if self.token_keys.write().insert(new.id, (new.clone(), now)).is_some() {
                    return Err(CommitError::Refused);
                }
            }
            _ => return Err(CommitError::Refused),
        }
        Ok(())
    }

    fn new_account(&mut self, now: Timestamp, new: &NewAccount) -> Result<(), CommitError> {
        let person = self.principals.get(&new.principal).map(|identity| identity.kind);
        if person != Some(IdentityKind::Human) {
            return Err(CommitError::Refused);
        }
        let taken = self.accounts.values().any(|account| account.new.email == new.email);
        if taken || self.accounts.contains_key(&new.principal) {
            return Err(CommitError::NameTaken(Taken::Account));
        }
        let account = Account {
            new: new.clone(),
            code_at: now,
            disabled: false,
            version: 1,
            created_at: now,
        };
        self.accounts.write().insert(new.principal.clone(), account);
        Ok(())
    }

    fn changed(&mut self, id: &PrincipalId, change: impl FnOnce(&mut Account)) -> Result<(), CommitError> {
        let account = self.accounts.write().get_mut(id).ok_or(CommitError::Refused)?;
        change(account);
        account.version += 1;
        Ok(())
    }

    fn end_sessions(&mut self, id: &PrincipalId) {
        self.sessions.keep(|_, session| session.new.principal != *id);
    }
}
