//! What IAM reads, drivers' records, service keys.

use async_trait::async_trait;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{SqliteStore, column::Columns, fault::Fault, now};
use crate::{
    driver::{self, EffectResult, FaultKind, Identity, IdentityKind, StateEntry, StateReader},
    iam::{AccessBinding, ExactResource, Grants, PolicyReader, Restriction, Role, Subject},
    id::{NamespaceId, ServiceKeyId},
    resource::PrincipalId,
    store::{NewServiceKey, ServiceKeyRow},
};

pub(super) async fn service_key(db: &mut SqliteConnection, id: ServiceKeyId) -> Result<Option<ServiceKeyRow>, Fault> {
    let query = concat!(
        "SELECT *, revoked_at IS NOT NULL OR coalesce(expires_at <= ",
        now!(),
        ", 0) AS expired
        FROM service_keys WHERE id = ?"
    );
    let Some(row) = sqlx::query(query).bind(id.to_string()).fetch_optional(db).await? else {
        return Ok(None);
    };
    let row = Columns {
        row: &row,
        of: "service key",
    };
    let expires_at: Option<i64> = row.optional_number("expires_at")?;
    let key = NewServiceKey {
        id: row.parsed("id")?,
        principal: row.parsed("principal_id")?,
        name: row.text("name")?,
        secret_hash: row.text("secret_hash")?,
        namespace_id: row.optional_parsed("namespace_id")?,
        expires_at: expires_at.map(crate::time::Timestamp::from_millis),
    };
    Ok(Some(ServiceKeyRow {
        key,
        expired: row.flag("expired")?,
    }))
}

fn identity(row: &SqliteRow) -> Result<Identity, Fault> {
    let row = Columns { row, of: "principal" };
    let kind: IdentityKind = row.word("kind")?;
    let id = row.parsed("id")?;
    Ok(Identity {
        id,
        kind,
        namespace_id: row.optional_parsed("namespace_id")?,
        agent_id: row.optional_parsed("agent_id")?,
    })
}

fn binding(row: &SqliteRow) -> Result<AccessBinding, Fault> {
    let row = Columns {
        row,
        of: "access binding",
    };
    let subject = match row.text("subject_kind")?.as_str() {
        "identity" => Subject::Identity(row.parsed("subject_id")?),
        "group" => Subject::Group(row.text("subject_id")?),
        _ => return Err(row.corrupt()),
    };
    let resource = match row.optional_text("resource_id")? {
        Some(id) => Some(ExactResource {
            kind: row.word("resource_kind")?,
            id,
        }),
        None => None,
    };
    Ok(AccessBinding {
        id: row.text("id")?,
        namespace_id: row.optional_parsed("namespace_id")?,
        subject,
        role_id: row.text("role_id")?,
        resource,
    })
}

fn role(row: &SqliteRow) -> Result<Role, Fault> {
    let row = Columns { row, of: "Role" };
    Ok(Role {
        id: row.text("id")?,
        namespace_id: row.optional_parsed("namespace_id")?,
        permissions: row.json("permissions")?,
    })
}

fn restriction(row: &SqliteRow) -> Result<Restriction, Fault> {
    let row = Columns { row, of: "restriction" };
    Ok(Restriction {
        id: row.text("id")?,
        namespace_id: row.optional_parsed("namespace_id")?,
        action: row.word("action")?,
        kind: row.word("kind")?,
        resource_id: row.optional_text("resource_id")?,
    })
}

pub(super) async fn roles(db: &mut SqliteConnection, namespace: NamespaceId) -> Result<Vec<Role>, Fault> {
    let query = "SELECT * FROM roles WHERE namespace_id = ? ORDER BY id";
    sqlx::query(query)
        .bind(namespace.to_string())
        .fetch_all(db)
        .await?
        .iter()
        .map(role)
        .collect()
}

pub(super) async fn access_bindings(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
) -> Result<Vec<AccessBinding>, Fault> {
    let query = "SELECT * FROM access_bindings WHERE namespace_id = ? ORDER BY id";
    sqlx::query(query)
        .bind(namespace.to_string())
        .fetch_all(db)
        .await?
        .iter()
        .map(binding)
        .collect()
}

pub(super) async fn service_principals(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
) -> Result<Vec<Identity>, Fault> {
    let query = "SELECT id, kind, namespace_id, agent_id FROM principals WHERE namespace_id = ? ORDER BY id";
    sqlx::query(query)
        .bind(namespace.to_string())
        .fetch_all(db)
        .await?
        .iter()
        .map(identity)
        .collect()
}

async fn grants(db: &mut SqliteConnection, principal: &PrincipalId) -> Result<Grants, Fault> {
    let id = principal.as_str();
    let query = "SELECT id, kind, namespace_id, agent_id FROM principals WHERE id = ?";
    let found = sqlx::query(query).bind(id).fetch_optional(&mut *db).await?;
    let query = "SELECT group_id FROM memberships WHERE principal_id = ? ORDER BY group_id";
    let groups: Vec<String> = sqlx::query_scalar(query).bind(id).fetch_all(&mut *db).await?;
    // One statement a question: the whole of it is of one snapshot.
    let query = "SELECT * FROM access_bindings WHERE (subject_kind = 'identity' AND subject_id = ?1)
        OR (subject_kind = 'group' AND subject_id IN (SELECT group_id FROM memberships WHERE principal_id = ?1))
        ORDER BY id";
    let rows = sqlx::query(query).bind(id).fetch_all(&mut *db).await?;
    let bindings: Vec<_> = rows.iter().map(binding).collect::<Result<_, _>>()?;
    let query = "SELECT * FROM roles WHERE id IN (
            SELECT role_id FROM access_bindings WHERE (subject_kind = 'identity' AND subject_id = ?1)
            OR (subject_kind = 'group' AND subject_id IN (SELECT group_id FROM memberships WHERE principal_id = ?1))
        ) ORDER BY id";
    let roles = sqlx::query(query).bind(id).fetch_all(&mut *db).await?;
    let restrictions = sqlx::query("SELECT * FROM restrictions ORDER BY id")
        .fetch_all(&mut *db)
        .await?;
    Ok(Grants {
        identity: found.as_ref().map(identity).transpose()?,
        groups,
        bindings,
        roles: roles.iter().map(role).collect::<Result<_, _>>()?,
        restrictions: restrictions.iter().map(restriction).collect::<Result<_, _>>()?,
    })
}

async fn entry(db: &mut SqliteConnection, driver: &str, key: &str) -> Result<Option<StateEntry>, Fault> {
    let query = "SELECT value, version FROM driver_state WHERE driver = ? AND key = ?";
    let Some(row) = sqlx::query(query).bind(driver).bind(key).fetch_optional(db).await? else {
        return Ok(None);
    };
    let version = Columns {
        row: &row,
        of: "driver record",
    }
    .number("version")?;
    Ok(Some(StateEntry {
        value: row.try_get("value")?,
        version,
    }))
}

fn effect(operation: &'static str) -> impl Fn(Fault) -> driver::EffectError {
    move |fault| {
        let kind = match fault {
            Fault::Corrupt(_) => FaultKind::Corrupt,
            Fault::Database(_) | Fault::Closed => FaultKind::Unavailable,
        };
        driver::Fault::new(operation, kind).into()
    }
}

#[async_trait]
impl PolicyReader for SqliteStore {
    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants> {
        let failed = effect("read the policy");
        let mut snapshot = self.connections.snapshot().await.map_err(&failed)?;
        let grants = grants(&mut snapshot, principal).await.map_err(&failed)?;
        snapshot.end().await.map_err(&failed)?;
        Ok(grants)
    }
}

#[async_trait]
impl StateReader for SqliteStore {
    async fn read(&self, driver: &str, key: &str) -> EffectResult<Option<StateEntry>> {
        let failed = effect("read a driver's record");
        let mut reader = self.connections.read().await.map_err(&failed)?;
        entry(&mut reader, driver, key).await.map_err(&failed)
    }
}
