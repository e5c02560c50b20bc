//! What must hold when a change commits.

use sqlx::SqliteConnection;

use super::{
    column::{number, word},
    fault::Fault,
    owned,
    read::{self, agents_of_secret},
    version,
};
use crate::{
    store::{Expect, row::Columns},
    time::Timestamp,
};

async fn versioned(db: &mut SqliteConnection, query: &'static str, id: String, value: i64) -> Result<bool, Fault> {
    Ok(sqlx::query_scalar(query).bind(id).bind(value).fetch_one(db).await?)
}

async fn judged(db: &mut SqliteConnection, query: &'static str, id: &str) -> Result<bool, Fault> {
    Ok(sqlx::query_scalar(query).bind(id).fetch_one(db).await?)
}

/// Whether no draft names this small resource.
const UNREFERENCED: &str = "SELECT NOT EXISTS (
    SELECT 1 FROM agents WHERE namespace_id = (SELECT namespace_id FROM owned WHERE id = ?1)
        AND (json_extract(harness_auth, '$.source.id') = ?1
            OR json_extract(harness_auth, '$.sourceId') = ?1
            OR EXISTS (SELECT 1 FROM json_each(credential_sources) WHERE json_extract(value, '$.sourceId') = ?1)))";

/// Whether it holds now, in the transaction that would commit the change.
pub(super) async fn holds(db: &mut SqliteConnection, now: Timestamp, expect: &Expect) -> Result<bool, Fault> {
    match expect {
        Expect::ClaimHeld(token) => {
            let query = "SELECT EXISTS (
                SELECT 1 FROM work WHERE claim_token = ? AND state = 'claimed' AND lease_expires_at > ?)";
            versioned(db, query, token.0.to_string(), now.as_millis()).await
        }
        Expect::Namespace(id, version) => {
            let query = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE id = ? AND version = ? AND status <> 'deleted')";
            versioned(db, query, id.to_string(), number(*version)?).await
        }
        Expect::NamespaceStatus(id, statuses) => {
            let namespace = read::namespace(db, *id).await?;
            Ok(namespace.is_some_and(|row| statuses.contains(&row.namespace.status)))
        }
        Expect::Agent(id, version) => {
            let query = "SELECT EXISTS (SELECT 1 FROM agents WHERE id = ? AND version = ?)";
            versioned(db, query, id.to_string(), number(*version)?).await
        }
        Expect::AgentRuntime { agent, active, desired } => {
            let query = "SELECT EXISTS (SELECT 1 FROM agents WHERE id = ? AND active_revision_id IS ? AND desired = ?)";
            let query = sqlx::query_scalar(query)
                .bind(agent.to_string())
                .bind(active.map(|id| id.to_string()));
            Ok(query.bind(word(desired)?).fetch_one(db).await?)
        }
        Expect::Configuration(id, generation) => {
            let query = "SELECT EXISTS (SELECT 1 FROM configurations WHERE id = ? AND generation = ? AND deleting = 0)";
            versioned(db, query, id.to_string(), number(*generation)?).await
        }
        Expect::Secret(id, version) => {
            let query = "SELECT EXISTS (SELECT 1 FROM secrets WHERE id = ? AND version = ?)";
            versioned(db, query, id.to_string(), number(*version)?).await
        }
        Expect::RevisionCount(agent, count) => Ok(version::count(db, *agent).await? == *count),
        Expect::ConfigurationDeleting(id) => {
            let query = "SELECT EXISTS (SELECT 1 FROM configurations WHERE id = ? AND deleting = 1)";
            judged(db, query, &id.to_string()).await
        }
        Expect::Owned(id, version) => {
            let query = "SELECT EXISTS (SELECT 1 FROM owned WHERE id = ? AND version = ?)";
            versioned(db, query, id.clone(), number(*version)?).await
        }
        Expect::OwnedUnreferenced(id) => judged(db, UNREFERENCED, id).await,
        Expect::NoAnswer(principal, key) => Ok(owned::answer(db, principal, key).await?.is_none()),
        Expect::SecretUnreferenced(id) => {
            let query = concat!(
                "SELECT NOT EXISTS (",
                agents_of_secret!(),
                ")
                AND NOT EXISTS (SELECT 1 FROM configuration_secrets WHERE secret_id = ?1)
                AND NOT EXISTS (SELECT 1 FROM owned_secrets WHERE secret_id = ?1)"
            );
            judged(db, query, &id.to_string()).await
        }
        Expect::ConfigurationUnreferenced(id) => {
            let query = "SELECT NOT EXISTS (SELECT 1 FROM agents WHERE configuration_id = ?)";
            judged(db, query, &id.to_string()).await
        }
        Expect::NamespaceEmpty(id) => Ok(read::namespace_contents(db, *id, 1).await?.is_empty()),
        Expect::NoInstallation => Ok(read::installation(db).await?.is_none()),
        Expect::AccessBinding(id) => judged(db, "SELECT EXISTS (SELECT 1 FROM access_bindings WHERE id = ?)", id).await,
        Expect::Role(id) => judged(db, "SELECT EXISTS (SELECT 1 FROM roles WHERE id = ?)", id).await,
        Expect::RoleUnreferenced(id) => {
            judged(
                db,
                "SELECT NOT EXISTS (SELECT 1 FROM access_bindings WHERE role_id = ?)",
                id,
            )
            .await
        }
        Expect::Account(id, version) => {
            let query = "SELECT EXISTS (SELECT 1 FROM accounts WHERE principal_id = ? AND version = ?)";
            versioned(db, query, id.to_string(), number(*version)?).await
        }
        Expect::WorkFailed(key) => {
            judged(
                db,
                "SELECT EXISTS (SELECT 1 FROM work WHERE key = ? AND state = 'failed')",
                key,
            )
            .await
        }
        Expect::WorkActor(key, actor) => {
            let row = sqlx::query("SELECT actor FROM work WHERE key = ?")
                .bind(key)
                .fetch_optional(db)
                .await?;
            row.map_or(Ok(true), |row| {
                Ok(Columns { row: &row, of: "work" }.text("actor")? == actor.as_str())
            })
        }
    }
}
