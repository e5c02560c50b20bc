//! Accounts of people and their sessions, and what verifies tokens of Agents, as they are stored. Secrets are here as hashes alone.

use std::{fmt, time::Duration};

use crate::{
    id::{AgentTokenKeyId, SessionId},
    resource::{Email, PrincipalId},
    time::Timestamp,
};

/// What an account is looked up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountName<'a> {
    /// What its person signs in with.
    Email(&'a Email),
    /// Whose it is.
    Principal(&'a PrincipalId),
    /// Who an identity provider says that its person is.
    Federated {
        /// The provider, exactly as it names itself.
        issuer: &'a str,
        /// The person, exactly as the provider names them.
        subject: &'a str,
    },
}

/// The hash of a password, as a PHC string. It can be guessed against, so nothing prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// A hash that was made, or stored.
    pub const fn new(phc: String) -> Self {
        Self(phc)
    }

    /// The PHC string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

/// A one-time code that is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCode {
    /// SHA-256 of the code, in hexadecimal; it has 256 random bits, so no slow hash is needed.
    pub hash: String,
    /// For how long from its commit.
    pub lifetime: Duration,
}

/// An account that is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAccount {
    /// Whose it is: a person who exists.
    pub principal: PrincipalId,
    /// What the person signs in with; unique.
    pub email: Email,
    /// The hash of the first password.
    pub password_hash: Option<PasswordHash>,
    /// The first one-time code.
    pub code: Option<NewCode>,
}

/// A stored one-time code, judged by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeRow {
    /// SHA-256 of the code, in hexadecimal.
    pub hash: String,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Whether it has ended.
    pub expired: bool,
}

/// A stored account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRow {
    /// Whose it is.
    pub principal: PrincipalId,
    /// What the person is called.
    pub name: String,
    /// What the person signs in with.
    pub email: Email,
    /// The hash of the password; none until there is a password.
    pub password_hash: Option<PasswordHash>,
    /// The one-time code.
    pub code: Option<CodeRow>,
    /// Whether it may not be used.
    pub disabled: bool,
    /// Counts the changes of its row.
    pub version: u64,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A session that is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its public half.
    pub id: SessionId,
    /// Whose it is; the principal has an account.
    pub principal: PrincipalId,
    /// SHA-256 of its secret half, in hexadecimal.
    pub token_hash: String,
    /// It ends so long after its commit.
    pub lifetime: Duration,
    /// It ends once it was not used for so long.
    pub idle: Duration,
}

/// A stored session, judged by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its public half.
    pub id: SessionId,
    /// Whose it is.
    pub principal: PrincipalId,
    /// SHA-256 of its secret half, in hexadecimal.
    pub token_hash: String,
    /// When it ends at the latest.
    pub expires_at: Timestamp,
    /// Whether it has ended, by its age or because it was not used.
    pub expired: bool,
    /// For how long it has not been used, as far as was recorded.
    pub unused_for: Duration,
}

/// What verifies tokens of Agents, to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAgentTokenKey {
    /// Its id, which tokens name.
    pub id: AgentTokenKeyId,
    /// An Ed25519 public key.
    pub public_key: [u8; 32],
    /// It verifies for so long after its commit.
    pub lifetime: Duration,
}

/// What verifies tokens of Agents, judged by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTokenKeyRow {
    /// Its id.
    pub id: AgentTokenKeyId,
    /// An Ed25519 public key.
    pub public_key: [u8; 32],
    /// When it ends.
    pub expires_at: Timestamp,
    /// Whether it has ended.
    pub expired: bool,
    /// The present, by which this was judged.
    pub now: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Change, Write};

    #[test]
    fn nothing_prints_the_hash_of_a_password() {
        let principal: PrincipalId = "prn_ada".parse().unwrap();
        let hash = PasswordHash::new("$argon2id$canary".to_owned());
        let new = NewAccount {
            principal: principal.clone(),
            email: "ada@example.com".parse().unwrap(),
            password_hash: Some(hash.clone()),
            code: None,
        };
        let change = Change::new()
            .write(Write::Account(new))
            .write(Write::AccountPassword(principal, hash));
        let printed = format!("{change:?}");
        assert!(printed.contains("prn_ada") && !printed.contains("canary"), "{printed}");
    }
}
