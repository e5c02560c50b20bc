//! What admission of a deployment reads: one statement, so one round trip and one moment.

use super::{
    PostgresStore, arguments,
    fault::Fault,
    read::now_of,
    record::{Record, each, one, records},
};
use crate::{
    driver::{StateEntry, StoredRecord},
    iam::{AccessBinding, Grants, Subject},
    resource::PrincipalId,
    store::{
        DeployQuery, DeployRead,
        row::{Columns, Corrupt, policy, resource},
    },
};

/// Rows about Agent `$2` in Namespace `$1`; the policy of `$3` and of the Agent's principal, unless `$3` is null; records of the
/// drivers `$4`.
const DEPLOY: &str = concat!(
    "WITH a AS (SELECT * FROM agents WHERE id = $2 AND namespace_id = $1),
        c AS (SELECT * FROM configurations WHERE id = (SELECT configuration_id FROM a) AND namespace_id = $1),
        s AS (SELECT * FROM secrets WHERE namespace_id = $1 AND id = ANY (ARRAY(SELECT secret_id FROM a
            UNION SELECT secret_id FROM configuration_secrets WHERE configuration_id = (SELECT id FROM c)))),
        p AS (SELECT $3::text AS id WHERE $3 IS NOT NULL
            UNION SELECT service_principal_id FROM a WHERE $3 IS NOT NULL),
        g AS (SELECT principal_id, group_id FROM memberships WHERE principal_id = ANY (ARRAY(SELECT id FROM p))),
        b AS (SELECT * FROM access_bindings
            WHERE (subject_kind = 'identity' AND subject_id = ANY (ARRAY(SELECT id FROM p)))
                OR (subject_kind = 'group' AND subject_id = ANY (ARRAY(SELECT group_id FROM g)))) ",
    records!("now", "SELECT occ.present() AS now"),
    " UNION ALL ",
    records!(
        "namespace",
        "SELECT * FROM namespaces WHERE id = $1 AND status <> 'deleted'"
    ),
    " UNION ALL ",
    records!("agent", "SELECT * FROM a"),
    " UNION ALL ",
    records!("configuration", "SELECT * FROM c"),
    " UNION ALL ",
    records!("secret", "SELECT * FROM s"),
    " UNION ALL ",
    records!(
        "count",
        "SELECT coalesce(max(number), 0) AS number FROM revisions WHERE agent_id = $2"
    ),
    " UNION ALL ",
    records!("principal", "SELECT id FROM p"),
    " UNION ALL ",
    records!(
        "identity",
        "SELECT id, kind, namespace_id, agent_id FROM principals WHERE id = ANY (ARRAY(SELECT id FROM p))"
    ),
    " UNION ALL ",
    records!("group", "SELECT * FROM g"),
    " UNION ALL ",
    records!("binding", "SELECT * FROM b"),
    " UNION ALL ",
    records!(
        "role",
        "SELECT * FROM roles WHERE id = ANY (ARRAY(SELECT role_id FROM b))"
    ),
    " UNION ALL ",
    records!("restriction", "SELECT * FROM restrictions WHERE $3 IS NOT NULL"),
    " UNION ALL
    SELECT 'record', json_build_object('driver', driver, 'key', key, 'version', version), value FROM driver_state
    WHERE driver = ANY ($4) AND key = ANY (ARRAY(SELECT id FROM c UNION ALL SELECT id FROM s))"
);

impl PostgresStore {
    pub(super) async fn read_deploy(&self, query: &DeployQuery) -> Result<DeployRead, Fault> {
        let arguments = arguments![
            query.namespace.to_string(),
            query.agent.to_string(),
            query.policy_of.as_ref().map(|principal| principal.as_str().to_owned()),
            query.records_of.clone(),
        ];
        let rows = self.connections.again(DEPLOY, arguments).await?;
        let records = Record::all(&rows)?;
        let of = "AgentRevision";
        let mut secrets = each(&records, "secret", resource::secret)?;
        secrets.sort_unstable_by_key(|secret| secret.id);
        Ok(DeployRead {
            now: now_of(&records)?,
            namespace: one(&records, "namespace", resource::namespace)?,
            agent: one(&records, "agent", resource::agent)?,
            configuration: one(&records, "configuration", resource::configuration)?,
            secrets,
            revisions: one(&records, "count", |row| Columns { row, of }.number("number"))?.unwrap_or(0),
            policy: policies(&records)?,
            records: each(&records, "record", record)?,
        })
    }
}

fn record(row: &Record) -> Result<StoredRecord, Corrupt> {
    let of = "driver record";
    let columns = Columns { row, of };
    Ok(StoredRecord {
        driver: columns.text("driver")?,
        key: columns.text("key")?,
        entry: StateEntry {
            value: columns.bytes("value")?,
            version: columns.number("version")?,
        },
    })
}

/// What bears on each principal, from what bears on any of them.
fn policies(records: &[Record]) -> Result<Vec<(PrincipalId, Grants)>, Fault> {
    let principals: Vec<PrincipalId> = each(records, "principal", |row| {
        let of = "principal";
        Columns { row, of }.parsed("id")
    })?;
    let identities = each(records, "identity", policy::identity)?;
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
    let of = |principal: PrincipalId| {
        let own = memberships.iter().filter(|(member, _)| member == principal.as_str());
        let mut groups: Vec<_> = own.map(|(_, group)| group.clone()).collect();
        groups.sort_unstable();
        let applies = |binding: &&AccessBinding| match &binding.subject {
            Subject::Identity(subject) => *subject == principal,
            Subject::Group(group) => groups.contains(group),
        };
        let bindings: Vec<_> = bindings.iter().filter(applies).cloned().collect();
        let roles = roles
            .iter()
            .filter(|role| bindings.iter().any(|b| b.role_id == role.id));
        let grants = Grants {
            identity: identities.iter().find(|identity| identity.id == principal).cloned(),
            roles: roles.cloned().collect(),
            groups,
            bindings,
            restrictions: restrictions.clone(),
        };
        (principal, grants)
    };
    Ok(principals.into_iter().map(of).collect())
}
