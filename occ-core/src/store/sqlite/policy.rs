//! What IAM reads, drivers' records, service keys.

use async_trait::async_trait;
use sqlx::{Row as _, SqliteConnection};

use super::{SqliteStore, fault::Fault, now, read::collected};
use crate::{
    driver::{self, EffectResult, FaultKind, Identity, StateEntry, StateReader},
    iam::{AccessBinding, Grants, PolicyReader, Role},
    id::{NamespaceId, ServiceKeyId},
    resource::PrincipalId,
    store::{
        BindingsOf, ServiceKeyRow,
        row::{Columns, policy},
    },
};

pub(super) async fn service_key(db: &mut SqliteConnection, id: ServiceKeyId) -> Result<Option<ServiceKeyRow>, Fault> {
    let query = concat!(
        "SELECT *, revoked_at IS NOT NULL OR coalesce(expires_at <= ",
        now!(),
        ", 0) AS expired,
            EXISTS (SELECT 1 FROM accounts a WHERE a.principal_id = k.principal_id AND a.disabled = 1) AS disabled
        FROM service_keys k WHERE id = ?"
    );
    let row = sqlx::query(query).bind(id.to_string()).fetch_optional(db).await?;
    Ok(row.as_ref().map(policy::service_key).transpose()?)
}

pub(super) async fn roles(db: &mut SqliteConnection, scope: Option<NamespaceId>) -> Result<Vec<Role>, Fault> {
    let query = "SELECT * FROM roles WHERE namespace_id IS ? ORDER BY id";
    let scope = scope.map(|namespace| namespace.to_string());
    let rows = sqlx::query(query).bind(scope).fetch_all(db).await?;
    collected(&rows, policy::role)
}

pub(super) async fn role(
    db: &mut SqliteConnection,
    scope: Option<NamespaceId>,
    id: &str,
) -> Result<Option<Role>, Fault> {
    let scope = scope.map(|namespace| namespace.to_string());
    let query = sqlx::query("SELECT * FROM roles WHERE namespace_id IS ? AND id = ?").bind(scope);
    let row = query.bind(id).fetch_optional(db).await?;
    Ok(row.as_ref().map(policy::role).transpose()?)
}

macro_rules! bindings_of {
    ($condition:literal) => {
        sqlx::query(concat!(
            "SELECT * FROM access_bindings WHERE namespace_id IS ?1 ",
            $condition,
            " ORDER BY id"
        ))
    };
}

pub(super) async fn access_bindings(
    db: &mut SqliteConnection,
    scope: Option<NamespaceId>,
    of: BindingsOf<'_>,
) -> Result<Vec<AccessBinding>, Fault> {
    let namespace = scope.map(|namespace| namespace.to_string());
    let query = match of {
        BindingsOf::Namespace => bindings_of!("").bind(namespace),
        BindingsOf::Id(id) => bindings_of!("AND id = ?2").bind(namespace).bind(id),
        BindingsOf::Role(role) => bindings_of!("AND role_id = ?2 OR ?1 IS NULL AND role_id = ?2")
            .bind(namespace)
            .bind(role),
        BindingsOf::Principal(principal) => bindings_of!("AND subject_kind = 'identity' AND subject_id = ?2")
            .bind(namespace)
            .bind(principal.as_str()),
        BindingsOf::Resource(resource) => bindings_of!("AND resource_id = ?2 AND resource_kind = ?3")
            .bind(namespace)
            .bind(&resource.id)
            .bind(resource.kind.as_str()),
    };
    collected(&query.fetch_all(db).await?, policy::binding)
}

pub(super) async fn service_principals(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
) -> Result<Vec<Identity>, Fault> {
    let query = "SELECT id, kind, namespace_id, agent_id FROM principals WHERE namespace_id = ? ORDER BY id";
    let rows = sqlx::query(query).bind(namespace.to_string()).fetch_all(db).await?;
    collected(&rows, policy::identity)
}

pub(super) async fn grants(db: &mut SqliteConnection, principal: &PrincipalId) -> Result<Grants, Fault> {
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
    let bindings = collected(&rows, policy::binding)?;
    let query = "SELECT * FROM roles WHERE id IN (
            SELECT role_id FROM access_bindings WHERE (subject_kind = 'identity' AND subject_id = ?1)
            OR (subject_kind = 'group' AND subject_id IN (SELECT group_id FROM memberships WHERE principal_id = ?1))
        ) ORDER BY id";
    let roles = sqlx::query(query).bind(id).fetch_all(&mut *db).await?;
    let restrictions = sqlx::query("SELECT * FROM restrictions ORDER BY id")
        .fetch_all(&mut *db)
        .await?;
    Ok(Grants {
        identity: found.as_ref().map(policy::identity).transpose()?,
        groups,
        bindings,
        roles: collected(&roles, policy::role)?,
        restrictions: collected(&restrictions, policy::restriction)?,
    })
}

pub(super) async fn entry(db: &mut SqliteConnection, driver: &str, key: &str) -> Result<Option<StateEntry>, Fault> {
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
        let all = self.grants_of(std::slice::from_ref(principal)).await?;
        Ok(all.into_iter().next().map(|(_, grants)| grants).unwrap_or_default())
    }

    async fn grants_of(&self, principals: &[PrincipalId]) -> EffectResult<Vec<(PrincipalId, Grants)>> {
        let failed = effect("read the policy");
        let mut snapshot = self.connections.snapshot().await.map_err(&failed)?;
        let mut all = Vec::with_capacity(principals.len());
        for principal in principals {
            let grants = grants(&mut snapshot, principal).await.map_err(&failed)?;
            all.push((principal.clone(), grants));
        }
        snapshot.end().await.map_err(&failed)?;
        Ok(all)
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
