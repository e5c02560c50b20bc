//! What admission of a deployment reads: one statement, so one round trip and one moment. Admissions that come at once share it.

use std::collections::BTreeSet;

use super::{
    PostgresStore, arguments,
    fault::Fault,
    policy::{Policy, bindings, policy_of},
    record::{Record, each, facts, records},
};
use crate::{
    driver::{StateEntry, StoredRecord},
    resource::PrincipalId,
    store::{
        ConfigurationRow, DeployQuery, DeployRead,
        row::{Columns, Corrupt, resource},
    },
};

/// For each question: rows about its Agent `$2` in its Namespace `$1`. For all: the policy of their callers `$3` and of the principals of
/// their Agents, unless that caller is null; records of the drivers `$4`.
const DEPLOY: &str = concat!(
    "WITH f AS (
            SELECT q.n, q.namespace_id, q.caller, a.service_principal_id, a.secret_id, c.id AS configuration_id,
                row_to_json(o) AS namespace, row_to_json(a) AS agent, row_to_json(c) AS configuration,
                (SELECT max(number) FROM revisions WHERE agent_id = q.agent_id) AS number
            FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY q(namespace_id, agent_id, caller, n)
            LEFT JOIN namespaces o ON o.id = q.namespace_id AND o.status <> 'deleted'
            LEFT JOIN agents a ON a.id = q.agent_id AND a.namespace_id = q.namespace_id
            LEFT JOIN configurations c ON c.id = a.configuration_id AND c.namespace_id = a.namespace_id
        ),
        named AS (
            SELECT n, namespace_id, secret_id AS id FROM f
            UNION SELECT f.n, f.namespace_id, o.secret_id
            FROM f JOIN configuration_secrets o ON o.configuration_id = f.configuration_id
        ),
        p AS (SELECT caller AS id FROM f WHERE caller IS NOT NULL
            UNION SELECT service_principal_id FROM f WHERE caller IS NOT NULL), ",
    bindings!("ARRAY(SELECT id FROM p)"),
    "SELECT 'facts' AS kind, json_build_object(
        'n', n, 'now', occ.present(), 'namespace', namespace, 'agent', agent, 'configuration', configuration,
        'number', number, 'principal', service_principal_id
    ) AS columns, NULL::bytea AS bytes FROM f UNION ALL ",
    records!(
        "secret",
        "SELECT named.n, s.* FROM named JOIN secrets s ON s.id = named.id AND s.namespace_id = named.namespace_id"
    ),
    " UNION ALL ",
    policy_of!(
        "ARRAY(SELECT id FROM p)",
        "SELECT * FROM restrictions WHERE EXISTS (SELECT FROM p)"
    ),
    " UNION ALL
    SELECT 'record', json_build_object('driver', driver, 'key', key, 'version', version), value FROM driver_state
    WHERE driver = ANY ($4) AND key = ANY (ARRAY(SELECT configuration_id FROM f UNION SELECT id FROM named))"
);

impl PostgresStore {
    pub(super) async fn read_deploy(&self, query: &DeployQuery) -> Result<DeployRead, Fault> {
        self.asked
            .deploys
            .read(query, |queries| self.read_deploys(queries))
            .await
    }

    async fn read_deploys(&self, queries: Vec<DeployQuery>) -> Result<Vec<DeployRead>, Fault> {
        let all = |of: fn(&DeployQuery) -> String| queries.iter().map(of).collect::<Vec<_>>();
        let callers: Vec<_> = queries
            .iter()
            .map(|query| query.policy_of.as_ref().map(|principal| principal.as_str().to_owned()))
            .collect();
        let drivers: BTreeSet<_> = queries
            .iter()
            .flat_map(|query| query.records_of.iter().cloned())
            .collect();
        let arguments = arguments![
            all(|query| query.namespace.to_string()),
            all(|query| query.agent.to_string()),
            callers,
            drivers.into_iter().collect::<Vec<_>>(),
        ];
        let rows = self.connections.again(DEPLOY, arguments).await?;
        let (own, shared) = Record::by_question(&rows, queries.len())?;
        let shared = Shared {
            policy: Policy::of(&shared)?,
            records: each(&shared, "record", record)?,
        };
        queries
            .iter()
            .zip(own)
            .map(|(query, own)| shared.deploy(query, &own))
            .collect()
    }
}

/// What was read for all questions.
struct Shared {
    policy: Policy,
    records: Vec<StoredRecord>,
}

impl Shared {
    fn deploy(&self, query: &DeployQuery, own: &[Record]) -> Result<DeployRead, Fault> {
        let facts = facts(own)?;
        let columns = Columns {
            row: facts,
            of: "AgentRevision",
        };
        let configuration = facts.part("configuration", resource::configuration)?;
        let mut secrets = each(own, "secret", resource::secret)?;
        secrets.sort_unstable_by_key(|secret| secret.id);
        let keys: BTreeSet<_> = secrets
            .iter()
            .map(|secret| secret.id.to_string())
            .chain(configuration.iter().map(|row: &ConfigurationRow| row.id.to_string()))
            .collect();
        let wanted = |record: &&StoredRecord| query.records_of.contains(&record.driver) && keys.contains(&record.key);
        let principals: BTreeSet<PrincipalId> = match &query.policy_of {
            Some(caller) => {
                let own: Option<PrincipalId> = columns.optional_json("principal")?;
                std::iter::once(caller.clone()).chain(own).collect()
            }
            None => BTreeSet::new(),
        };
        Ok(DeployRead {
            now: columns.moment("now")?,
            namespace: facts.part("namespace", resource::namespace)?,
            agent: facts.part("agent", resource::agent)?,
            configuration,
            secrets,
            revisions: columns.optional_number("number")?.unwrap_or(0),
            policy: self.policy.of_each(&principals),
            records: self.records.iter().filter(wanted).cloned().collect(),
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
