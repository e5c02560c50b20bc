//! Accounts of people and their sessions, and what verifies tokens of Agents.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    PostgresStore, arguments,
    fault::Fault,
    record::{collected, first, records},
};
use crate::{
    id::{AgentTokenKeyId, SessionId},
    store::{AccountName, AccountRow, AgentTokenKeyRow, NewCode, PasswordHash, SessionRow, Slice, Write, row::account},
};

macro_rules! accounts {
    ($rest:literal) => {
        records!(
            "account",
            "SELECT a.*, p.name, coalesce(a.code_expires_at <= occ.present(), FALSE) AS code_expired
            FROM accounts a JOIN principals p ON p.id = a.principal_id ",
            $rest
        )
    };
}

const SESSION: &str = records!(
    "session",
    "SELECT s.*, greatest(moment - used_at, 0) AS unused_for, expires_at <= moment OR used_at + idle <= moment AS expired
    FROM sessions s, occ.present() AS moment WHERE id = $1"
);

const TOKEN_KEY: &str = records!(
    "key",
    "SELECT k.*, moment, expires_at <= moment AS expired FROM agent_token_keys k, occ.present() AS moment WHERE id = $1"
);

impl PostgresStore {
    pub(super) async fn read_account(&self, name: AccountName<'_>) -> Result<Option<AccountRow>, Fault> {
        let (query, arguments) = match name {
            AccountName::Email(email) => (accounts!("WHERE a.email = $1"), arguments![email.as_str().to_owned()]),
            AccountName::Principal(id) => (
                accounts!("WHERE a.principal_id = $1"),
                arguments![id.as_str().to_owned()],
            ),
            AccountName::Federated { issuer, subject } => {
                let query = accounts!(
                    "WHERE a.principal_id = (SELECT principal_id FROM federated_identities WHERE issuer = $1 AND subject = $2)"
                );
                (query, arguments![issuer.to_owned(), subject.to_owned()])
            }
        };
        let rows = self.connections.again(query, arguments).await?;
        first(&rows, account::account)
    }

    pub(super) async fn read_accounts(&self, slice: &Slice) -> Result<Vec<AccountRow>, Fault> {
        let (order, id) = slice.place();
        let query =
            accounts!("WHERE (a.created_at, a.principal_id) > ($1, $2) ORDER BY a.created_at, a.principal_id LIMIT $3");
        let arguments = arguments![order, id, i64::from(slice.limit)];
        collected(&self.connections.again(query, arguments).await?, account::account)
    }

    pub(super) async fn read_session(&self, id: SessionId) -> Result<Option<SessionRow>, Fault> {
        let rows = self.connections.again(SESSION, arguments![id.to_string()]).await?;
        first(&rows, account::session)
    }

    pub(super) async fn read_token_key(&self, id: AgentTokenKeyId) -> Result<Option<AgentTokenKeyRow>, Fault> {
        let rows = self.connections.again(TOKEN_KEY, arguments![id.to_string()]).await?;
        first(&rows, account::agent_token_key)
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// What the function `write` takes; nothing for a write of another sort.
pub(super) fn write(write: &Write) -> Option<Value> {
    let lifetime = |code: &NewCode| millis(code.lifetime);
    Some(match write {
        Write::Account(new) => json!({
            "op": "account", "account": new.principal, "email": new.email, "password_hash": new.password_hash.as_ref().map(PasswordHash::as_str),
            "code_hash": new.code.as_ref().map(|code| &code.hash), "lifetime": new.code.as_ref().map(lifetime),
        }),
        Write::AccountCode(id, code) => {
            json!({ "op": "code", "account": id, "code_hash": code.hash, "lifetime": lifetime(code) })
        }
        Write::AccountPassword(id, hash) => json!({ "op": "password", "account": id, "password_hash": hash.as_str() }),
        Write::AccountDisabled(id, disabled) => json!({ "op": "disabled", "account": id, "disabled": disabled }),
        Write::Session(new) => json!({
            "op": "session", "account": new.principal, "id": new.id, "token_hash": new.token_hash,
            "lifetime": millis(new.lifetime), "idle": millis(new.idle),
        }),
        Write::TouchSession(id) => json!({ "op": "touch", "account": null, "id": id }),
        Write::EndSession(id) => json!({ "op": "end", "account": null, "id": id }),
        Write::EndSessions(id) => json!({ "op": "end_all", "account": id }),
        Write::FederatedIdentity {
            issuer,
            subject,
            principal,
        } => json!({ "op": "federated_identity", "issuer": issuer, "subject": subject, "principal": principal }),
        Write::UnlinkIdentities(id) => json!({ "op": "unlink", "principal": id }),
        Write::AgentTokenKey(new) => json!({
            "op": "agent_token_key", "id": new.id, "public_key": account::digits(&new.public_key),
            "lifetime": millis(new.lifetime),
        }),
        _ => return None,
    })
}
