//! What admission of a deployment reads: one statement, so one round trip and one moment.

use super::{
    PostgresStore, arguments,
    fault::Fault,
    policy::{bindings, policies, policy_of},
    record::{Record, each, facts, records},
};
use crate::{
    driver::{StateEntry, StoredRecord},
    resource::PrincipalId,
    store::{
        DeployQuery, DeployRead,
        row::{Columns, Corrupt, resource},
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
            UNION SELECT service_principal_id FROM a WHERE $3 IS NOT NULL), ",
    bindings!("ARRAY(SELECT id FROM p)"),
    "SELECT 'facts' AS kind, json_build_object(
        'now', occ.present(),
        'namespace', (SELECT row_to_json(n) FROM namespaces n WHERE id = $1 AND status <> 'deleted'),
        'agent', (SELECT row_to_json(a) FROM a),
        'configuration', (SELECT row_to_json(c) FROM c),
        'number', (SELECT max(number) FROM revisions WHERE agent_id = $2),
        'principals', ARRAY(SELECT id FROM p)
    ) AS columns, NULL::bytea AS bytes UNION ALL ",
    records!("secret", "SELECT * FROM s"),
    " UNION ALL ",
    policy_of!(
        "ARRAY(SELECT id FROM p)",
        "SELECT * FROM restrictions WHERE $3 IS NOT NULL"
    ),
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
        let facts = facts(&records)?;
        let columns = Columns {
            row: facts,
            of: "AgentRevision",
        };
        let principals: Vec<PrincipalId> = columns.json("principals")?;
        let mut secrets = each(&records, "secret", resource::secret)?;
        secrets.sort_unstable_by_key(|secret| secret.id);
        Ok(DeployRead {
            now: columns.moment("now")?,
            namespace: facts.part("namespace", resource::namespace)?,
            agent: facts.part("agent", resource::agent)?,
            configuration: facts.part("configuration", resource::configuration)?,
            secrets,
            revisions: columns.optional_number("number")?.unwrap_or(0),
            policy: policies(&principals, &records)?,
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
