//! What IAM reads, drivers' records, service keys.

use std::collections::BTreeSet;

use async_trait::async_trait;
use sqlx::Row as _;

use super::{
    PostgresStore, arguments,
    fault::Fault,
    record::{Record, collected, each, first, records},
};
use crate::{
    driver::{self, EffectResult, FaultKind, Identity, StateEntry, StateReader},
    iam::{AccessBinding, Grants, PolicyReader, Restriction, Role, Subject},
    id::{NamespaceId, ServiceKeyId},
    resource::PrincipalId,
    store::{
        BindingsOf, ServiceKeyRow,
        row::{Columns, policy},
    },
};

const SERVICE_KEY: &str = records!(
    "key",
    "SELECT *, revoked_at IS NOT NULL OR coalesce(expires_at <= occ.present(), FALSE) AS expired,
        EXISTS (SELECT 1 FROM accounts a WHERE a.principal_id = k.principal_id AND a.disabled) AS disabled
    FROM service_keys k WHERE id = $1"
);

/// Common table expression `b`: bindings of the principals `$ids`, and of the groups that they are members of. Each subject is looked
/// up by itself: for a set of them the planner of a new database goes through all of their kind.
macro_rules! bindings {
    ($ids:literal) => {
        concat!(
            "b AS (
                SELECT own.* FROM unnest(",
            $ids,
            ") s(id) CROSS JOIN LATERAL
                    (SELECT * FROM access_bindings WHERE subject_kind = 'identity' AND subject_id = s.id OFFSET 0) own
                UNION ALL SELECT own.* FROM (SELECT DISTINCT group_id FROM memberships WHERE principal_id = ANY (",
            $ids,
            ")) s(id) CROSS JOIN LATERAL
                    (SELECT * FROM access_bindings WHERE subject_kind = 'group' AND subject_id = s.id OFFSET 0) own)"
        )
    };
}
pub(super) use bindings;

/// All that bears on the principals `$ids`, over [`bindings`]; the Restrictions are those that `$restrictions` selects.
macro_rules! policy_of {
    ($ids:literal, $restrictions:literal) => {
        concat!(
            records!(
                "identity",
                "SELECT id, kind, namespace_id, agent_id FROM principals WHERE id = ANY (",
                $ids,
                ")"
            ),
            " UNION ALL ",
            records!(
                "group",
                "SELECT principal_id, group_id FROM memberships WHERE principal_id = ANY (",
                $ids,
                ")"
            ),
            " UNION ALL ",
            records!("binding", "SELECT * FROM b"),
            " UNION ALL ",
            records!(
                "role",
                "SELECT * FROM roles WHERE id = ANY (ARRAY(SELECT role_id FROM b))"
            ),
            " UNION ALL ",
            records!("restriction", $restrictions)
        )
    };
}
pub(super) use policy_of;

macro_rules! bindings_of {
    ($condition:literal) => {
        records!(
            "binding",
            "SELECT * FROM access_bindings WHERE ",
            $condition,
            " ORDER BY id"
        )
    };
}

const GRANTS: &str = concat!("WITH ", bindings!("$1"), policy_of!("$1", "SELECT * FROM restrictions"));

/// All that bears on any of some principals.
pub(super) struct Policy {
    identities: Vec<Identity>,
    memberships: Vec<(String, String)>,
    bindings: Vec<AccessBinding>,
    roles: Vec<Role>,
    restrictions: Vec<Restriction>,
}

impl Policy {
    pub(super) fn of(records: &[Record]) -> Result<Self, Fault> {
        let memberships = each(records, "group", |row| {
            let row = Columns { row, of: "membership" };
            Ok((row.text("principal_id")?, row.text("group_id")?))
        })?;
        let mut bindings = each(records, "binding", policy::binding)?;
        bindings.sort_unstable_by(|left, right| left.id.cmp(&right.id));
        let mut roles = each(records, "role", policy::role)?;
        roles.sort_unstable_by(|left, right| left.id.cmp(&right.id));
        let mut restrictions = each(records, "restriction", policy::restriction)?;
        restrictions.sort_unstable_by(|left, right| left.id.cmp(&right.id));
        Ok(Self {
            identities: each(records, "identity", policy::identity)?,
            memberships,
            bindings,
            roles,
            restrictions,
        })
    }

    /// What bears on each of these.
    pub(super) fn of_each<'p>(
        &self,
        principals: impl IntoIterator<Item = &'p PrincipalId>,
    ) -> Vec<(PrincipalId, Grants)> {
        principals
            .into_iter()
            .map(|principal| (principal.clone(), self.grants(principal)))
            .collect()
    }

    fn grants(&self, principal: &PrincipalId) -> Grants {
        let own = self
            .memberships
            .iter()
            .filter(|(member, _)| member == principal.as_str());
        let mut groups: Vec<_> = own.map(|(_, group)| group.clone()).collect();
        groups.sort_unstable();
        let applies = |binding: &&AccessBinding| match &binding.subject {
            Subject::Identity(subject) => subject == principal,
            Subject::Group(group) => groups.contains(group),
        };
        let bindings: Vec<_> = self.bindings.iter().filter(applies).cloned().collect();
        let held = |role: &&Role| bindings.iter().any(|binding| binding.role_id == role.id);
        Grants {
            identity: self
                .identities
                .iter()
                .find(|identity| identity.id == *principal)
                .cloned(),
            roles: self.roles.iter().filter(held).cloned().collect(),
            groups,
            bindings,
            restrictions: self.restrictions.clone(),
        }
    }
}

impl PostgresStore {
    pub(super) async fn read_service_key(&self, id: ServiceKeyId) -> Result<Option<ServiceKeyRow>, Fault> {
        let rows = self.connections.again(SERVICE_KEY, arguments![id.to_string()]).await?;
        first(&rows, policy::service_key)
    }

    pub(super) async fn read_roles(&self, scope: Option<NamespaceId>) -> Result<Vec<Role>, Fault> {
        let query = records!(
            "role",
            "SELECT * FROM roles WHERE namespace_id IS NOT DISTINCT FROM $1 ORDER BY id"
        );
        let scope = scope.map(|namespace| namespace.to_string());
        let rows = self.connections.again(query, arguments![scope]).await?;
        collected(&rows, policy::role)
    }

    pub(super) async fn read_role(&self, scope: Option<NamespaceId>, id: &str) -> Result<Option<Role>, Fault> {
        let query = records!(
            "role",
            "SELECT * FROM roles WHERE namespace_id IS NOT DISTINCT FROM $1 AND id = $2"
        );
        let arguments = arguments![scope.map(|namespace| namespace.to_string()), id.to_owned()];
        first(&self.connections.again(query, arguments).await?, policy::role)
    }

    pub(super) async fn read_access_bindings(
        &self,
        scope: Option<NamespaceId>,
        of: BindingsOf<'_>,
    ) -> Result<Vec<AccessBinding>, Fault> {
        let scope = scope.map(|namespace| namespace.to_string());
        let (query, arguments) = match of {
            BindingsOf::Namespace => (bindings_of!("namespace_id IS NOT DISTINCT FROM $1"), arguments![scope]),
            BindingsOf::Id(id) => (
                bindings_of!("namespace_id IS NOT DISTINCT FROM $1 AND id = $2"),
                arguments![scope, id.to_owned()],
            ),
            BindingsOf::Role(role) => (
                bindings_of!("role_id = $2 AND ($1::text IS NULL OR namespace_id = $1)"),
                arguments![scope, role.to_owned()],
            ),
            BindingsOf::Principal(principal) => (
                bindings_of!("namespace_id IS NOT DISTINCT FROM $1 AND subject_kind = 'identity' AND subject_id = $2"),
                arguments![scope, principal.as_str().to_owned()],
            ),
            BindingsOf::Resource(resource) => (
                bindings_of!("namespace_id IS NOT DISTINCT FROM $1 AND resource_id = $2 AND resource_kind = $3"),
                arguments![scope, resource.id.clone(), resource.kind.as_str().to_owned()],
            ),
        };
        collected(&self.connections.again(query, arguments).await?, policy::binding)
    }

    pub(super) async fn read_service_principals(&self, namespace: NamespaceId) -> Result<Vec<Identity>, Fault> {
        let query = records!(
            "identity",
            "SELECT id, kind, namespace_id, agent_id FROM principals WHERE namespace_id = $1 ORDER BY id"
        );
        let rows = self.connections.again(query, arguments![namespace.to_string()]).await?;
        collected(&rows, policy::identity)
    }

    async fn read_grants(&self, principals: &[PrincipalId]) -> Result<Vec<(PrincipalId, Grants)>, Fault> {
        self.asked
            .grants
            .read(&principals.to_vec(), |all| self.read_all_grants(all))
            .await
    }

    async fn read_all_grants(&self, all: Vec<Vec<PrincipalId>>) -> Result<Vec<Vec<(PrincipalId, Grants)>>, Fault> {
        let ids: BTreeSet<_> = all.iter().flatten().map(|id| id.as_str().to_owned()).collect();
        let arguments = arguments![ids.into_iter().collect::<Vec<_>>()];
        let records = Record::all(&self.connections.again(GRANTS, arguments).await?)?;
        let policy = Policy::of(&records)?;
        Ok(all.iter().map(|principals| policy.of_each(principals)).collect())
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
        let all = self.grants_of(std::slice::from_ref(principal)).await?;
        Ok(all.into_iter().next().map(|(_, grants)| grants).unwrap_or_default())
    }

    async fn grants_of(&self, principals: &[PrincipalId]) -> EffectResult<Vec<(PrincipalId, Grants)>> {
        self.read_grants(principals).await.map_err(effect("read the policy"))
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
