//! Accounts of people and their sessions, and what verifies tokens of Agents.

use std::time::Duration;

use sqlx::SqliteConnection;

use super::{
    fault::{Fault, Refused},
    now,
    read::collected,
};
use crate::{
    id::{AgentTokenKeyId, SessionId},
    resource::PrincipalId,
    store::{
        AccountName, AccountRow, AgentTokenKeyRow, NewAccount, NewAgentTokenKey, NewCode, NewSession, PasswordHash,
        SessionRow, Slice, row::account,
    },
    time::Timestamp,
};

macro_rules! accounts {
    ($rest:literal) => {
        concat!(
            "SELECT a.*, p.name, coalesce(a.code_expires_at <= ",
            now!(),
            ", 0) AS code_expired FROM accounts a JOIN principals p ON p.id = a.principal_id ",
            $rest
        )
    };
}

pub(super) async fn one(db: &mut SqliteConnection, name: AccountName<'_>) -> Result<Option<AccountRow>, Fault> {
    let query = match name {
        AccountName::Email(email) => sqlx::query(accounts!("WHERE a.email = ?")).bind(email.as_str()),
        AccountName::Principal(id) => sqlx::query(accounts!("WHERE a.principal_id = ?")).bind(id.as_str()),
        AccountName::Federated { issuer, subject } => {
            let query = accounts!(
                "WHERE a.principal_id = (SELECT principal_id FROM federated_identities WHERE issuer = ? AND subject = ?)"
            );
            sqlx::query(query).bind(issuer).bind(subject)
        }
    };
    let row = query.fetch_optional(db).await?;
    Ok(row.as_ref().map(account::account).transpose()?)
}

pub(super) async fn all(db: &mut SqliteConnection, slice: &Slice) -> Result<Vec<AccountRow>, Fault> {
    let (order, id) = slice.place();
    let query =
        accounts!("WHERE (a.created_at, a.principal_id) > (?, ?) ORDER BY a.created_at, a.principal_id LIMIT ?");
    let query = sqlx::query(query).bind(order).bind(id).bind(i64::from(slice.limit));
    collected(&query.fetch_all(db).await?, account::account)
}

pub(super) async fn session(db: &mut SqliteConnection, id: SessionId) -> Result<Option<SessionRow>, Fault> {
    let query = concat!(
        "SELECT s.*, max(moment - used_at, 0) AS unused_for, expires_at <= moment OR used_at + idle <= moment AS expired
        FROM sessions s, (SELECT ",
        now!(),
        " AS moment) WHERE id = ?"
    );
    let row = sqlx::query(query).bind(id.to_string()).fetch_optional(db).await?;
    Ok(row.as_ref().map(account::session).transpose()?)
}

pub(super) async fn link(
    db: &mut SqliteConnection,
    now: Timestamp,
    issuer: &str,
    subject: &str,
    principal: &PrincipalId,
) -> Result<(), Refused> {
    let query = "INSERT INTO federated_identities (issuer, subject, principal_id, created_at) VALUES (?, ?, ?, ?)";
    let query = sqlx::query(query).bind(issuer).bind(subject);
    query.bind(principal.as_str()).bind(now.as_millis()).execute(db).await?;
    Ok(())
}

pub(super) async fn unlink(db: &mut SqliteConnection, principal: &PrincipalId) -> Result<(), Refused> {
    // A sign-in that is under way has seen the version before.
    let query = "UPDATE accounts SET version = version + 1 WHERE principal_id = ?";
    let query = sqlx::query(query).bind(principal.as_str());
    found(query.execute(&mut *db).await?.rows_affected())?;
    let query = sqlx::query("DELETE FROM federated_identities WHERE principal_id = ?").bind(principal.as_str());
    query.execute(&mut *db).await?;
    end_all(db, principal).await
}

pub(super) async fn token_key(
    db: &mut SqliteConnection,
    id: AgentTokenKeyId,
) -> Result<Option<AgentTokenKeyRow>, Fault> {
    let query = concat!(
        "SELECT k.*, moment, expires_at <= moment AS expired FROM agent_token_keys k, (SELECT ",
        now!(),
        " AS moment) WHERE id = ?"
    );
    let row = sqlx::query(query).bind(id.to_string()).fetch_optional(db).await?;
    Ok(row.as_ref().map(account::agent_token_key).transpose()?)
}

pub(super) async fn keep_token_key(
    db: &mut SqliteConnection,
    now: Timestamp,
    new: &NewAgentTokenKey,
) -> Result<(), Refused> {
    let query = "DELETE FROM agent_token_keys WHERE expires_at <= ?";
    sqlx::query(query).bind(now.as_millis()).execute(&mut *db).await?;
    let query = "INSERT INTO agent_token_keys (id, public_key, expires_at, created_at) VALUES (?, ?, ?, ?)";
    sqlx::query(query)
        .bind(new.id.to_string())
        .bind(account::digits(&new.public_key))
        .bind(now.plus(new.lifetime).as_millis())
        .bind(now.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(super) async fn insert(db: &mut SqliteConnection, now: Timestamp, new: &NewAccount) -> Result<(), Refused> {
    let query = "INSERT INTO accounts (principal_id, email, password_hash, code_hash, code_expires_at, created_at)
        VALUES (?, ?, ?, ?, ?, ?)";
    sqlx::query(query)
        .bind(new.principal.as_str())
        .bind(new.email.as_str())
        .bind(new.password_hash.as_ref().map(PasswordHash::as_str))
        .bind(new.code.as_ref().map(|code| &code.hash))
        .bind(new.code.as_ref().map(|code| now.plus(code.lifetime).as_millis()))
        .bind(now.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

pub(super) async fn code(
    db: &mut SqliteConnection,
    now: Timestamp,
    principal: &PrincipalId,
    code: &NewCode,
) -> Result<(), Refused> {
    let query = "UPDATE accounts SET code_hash = ?, code_expires_at = ?, version = version + 1 WHERE principal_id = ?";
    let query = sqlx::query(query)
        .bind(&code.hash)
        .bind(now.plus(code.lifetime).as_millis())
        .bind(principal.as_str());
    found(query.execute(db).await?.rows_affected())
}

pub(super) async fn password(
    db: &mut SqliteConnection,
    principal: &PrincipalId,
    hash: &PasswordHash,
) -> Result<(), Refused> {
    let query = "UPDATE accounts SET password_hash = ?, code_hash = NULL, code_expires_at = NULL, version = version + 1
        WHERE principal_id = ?";
    let query = sqlx::query(query).bind(hash.as_str()).bind(principal.as_str());
    found(query.execute(&mut *db).await?.rows_affected())?;
    end_all(db, principal).await
}

pub(super) async fn disabled(
    db: &mut SqliteConnection,
    principal: &PrincipalId,
    disabled: bool,
) -> Result<(), Refused> {
    let query = "UPDATE accounts SET disabled = ?, version = version + 1 WHERE principal_id = ?";
    let query = sqlx::query(query).bind(disabled).bind(principal.as_str());
    found(query.execute(&mut *db).await?.rows_affected())?;
    if disabled { end_all(db, principal).await } else { Ok(()) }
}

pub(super) async fn begin(db: &mut SqliteConnection, now: Timestamp, new: &NewSession) -> Result<(), Refused> {
    let query = "DELETE FROM sessions WHERE expires_at <= ?1 OR used_at + idle <= ?1";
    sqlx::query(query).bind(now.as_millis()).execute(&mut *db).await?;
    let query = "INSERT INTO sessions (id, principal_id, token_hash, expires_at, idle, used_at, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)";
    sqlx::query(query)
        .bind(new.id.to_string())
        .bind(new.principal.as_str())
        .bind(&new.token_hash)
        .bind(now.plus(new.lifetime).as_millis())
        .bind(millis(new.idle))
        .bind(now.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

pub(super) async fn touch(db: &mut SqliteConnection, now: Timestamp, id: SessionId) -> Result<(), Refused> {
    // One that is over stays over.
    let query = "UPDATE sessions SET used_at = ?1 WHERE id = ?2 AND expires_at > ?1 AND used_at + idle > ?1";
    let query = sqlx::query(query).bind(now.as_millis()).bind(id.to_string());
    query.execute(db).await?;
    Ok(())
}

pub(super) async fn end(db: &mut SqliteConnection, id: SessionId) -> Result<(), Refused> {
    let query = sqlx::query("DELETE FROM sessions WHERE id = ?").bind(id.to_string());
    query.execute(db).await?;
    Ok(())
}

pub(super) async fn end_all(db: &mut SqliteConnection, principal: &PrincipalId) -> Result<(), Refused> {
    let query = sqlx::query("DELETE FROM sessions WHERE principal_id = ?").bind(principal.as_str());
    query.execute(db).await?;
    Ok(())
}

fn found(rows: u64) -> Result<(), Refused> {
    if rows == 0 {
        Err(Refused::missing("account"))
    } else {
        Ok(())
    }
}
