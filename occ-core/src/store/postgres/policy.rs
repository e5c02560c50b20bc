//! What IAM reads, drivers' records, service keys.

use async_trait::async_trait;
use sqlx::Row as _;

use super::{
    PostgresStore, arguments,
    fault::Fault,
    record::{Record, collected, each, first, one, records},
};
use crate::{
    driver::{self, EffectResult, FaultKind, Identity, StateEntry, StateReader},
    iam::{AccessBinding, Grants, PolicyReader, Role},
    id::{NamespaceId, ServiceKeyId},
    resource::PrincipalId,
    store::{
        ServiceKeyRow,
        row::{Columns, policy},
    },
};

const SERVICE_KEY: &str = records!(
    "key",
    "SELECT *, revoked_at IS NOT NULL OR coalesce(expires_at <= occ.present(), FALSE) AS expired,
        EXISTS (SELECT 1 FROM accounts a WHERE a.principal_id = k.principal_id AND a.disabled) AS disabled
    FROM service_keys k WHERE id = $1"
);

/// Bindings of principal `$1`, and of the groups that it is a member of.
macro_rules! bindings {
    ($select:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM access_bindings WHERE (subject_kind = 'identity' AND subject_id = $1)
                OR (subject_kind = 'group'
                    AND subject_id = ANY (ARRAY(SELECT group_id FROM memberships WHERE principal_id = $1)))"
        )
    };
}

/// All that bears on principal `$1`.
const GRANTS: &str = concat!(
    records!(
        "identity",
        "SELECT id, kind, namespace_id, agent_id FROM principals WHERE id = $1"
    ),
    " UNION ALL ",
    records!(
        "group",
        "SELECT group_id FROM memberships WHERE principal_id = $1 ORDER BY group_id"
    ),
    " UNION ALL ",
    records!("binding", bindings!("*"), " ORDER BY id"),
    " UNION ALL ",
    records!(
        "role",
        "SELECT * FROM roles WHERE id = ANY (ARRAY(",
        bindings!("role_id"),
        ")) ORDER BY id"
    ),
    " UNION ALL ",
    records!("restriction", "SELECT * FROM restrictions ORDER BY id")
);

impl PostgresStore {
    pub(super) async fn read_service_key(&self, id: ServiceKeyId) -> Result<Option<ServiceKeyRow>, Fault> {
        let rows = self.connections.again(SERVICE_KEY, arguments![id.to_string()]).await?;
        first(&rows, policy::service_key)
    }

    pub(super) async fn read_roles(&self, namespace: NamespaceId) -> Result<Vec<Role>, Fault> {
        let query = records!("role", "SELECT * FROM roles WHERE namespace_id = $1 ORDER BY id");
        let rows = self.connections.again(query, arguments![namespace.to_string()]).await?;
        collected(&rows, policy::role)
    }

    pub(super) async fn read_access_bindings(&self, namespace: NamespaceId) -> Result<Vec<AccessBinding>, Fault> {
        let query = records!(
            "binding",
            "SELECT * FROM access_bindings WHERE namespace_id = $1 ORDER BY id"
        );
        let rows = self.connections.again(query, arguments![namespace.to_string()]).await?;
        collected(&rows, policy::binding)
    }

    pub(super) async fn read_service_principals(&self, namespace: NamespaceId) -> Result<Vec<Identity>, Fault> {
        let query = records!(
            "identity",
            "SELECT id, kind, namespace_id, agent_id FROM principals WHERE namespace_id = $1 ORDER BY id"
        );
        let rows = self.connections.again(query, arguments![namespace.to_string()]).await?;
        collected(&rows, policy::identity)
    }

    async fn read_grants(&self, principal: &PrincipalId) -> Result<Grants, Fault> {
        let arguments = arguments![principal.as_str().to_owned()];
        let records = Record::all(&self.connections.again(GRANTS, arguments).await?)?;
        let of = "membership";
        Ok(Grants {
            identity: one(&records, "identity", policy::identity)?,
            groups: each(&records, "group", |row| Columns { row, of }.text("group_id"))?,
            bindings: each(&records, "binding", policy::binding)?,
            roles: each(&records, "role", policy::role)?,
            restrictions: each(&records, "restriction", policy::restriction)?,
        })
    }

    async fn read_state(&self, driver: &str, key: &str) -> Result<Option<StateEntry>, Fault> {
        let query = "SELECT value, version FROM driver_state WHERE driver = $1 AND key = $2";
        let rows = self
            .connections
            .again(query, arguments![driver.to_owned(), key.to_owned()])
            .await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let version: i64 = row.try_get("version")?;
        Ok(Some(StateEntry {
            value: row.try_get("value")?,
            version: version.try_into().map_err(|_| Fault::Corrupt("driver record"))?,
        }))
    }
}

fn effect(operation: &'static str) -> impl Fn(Fault) -> driver::EffectError {
    move |fault| {
        let kind = match fault {
            Fault::Corrupt(_) => FaultKind::Corrupt,
            _ => FaultKind::Unavailable,
        };
        driver::Fault::new(operation, kind).into()
    }
}

#[async_trait]
impl PolicyReader for PostgresStore {
    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants> {
        self.read_grants(principal).await.map_err(effect("read the policy"))
    }
}

#[async_trait]
impl StateReader for PostgresStore {
    async fn read(&self, driver: &str, key: &str) -> EffectResult<Option<StateEntry>> {
        self.read_state(driver, key)
            .await
            .map_err(effect("read a driver's record"))
    }
}
