//! What passes read: one statement, so one moment. Those that begin at once share it.

use super::{
    PostgresStore, arguments,
    fault::Fault,
    read::judged,
    record::{Record, each, facts, records},
};
use crate::{
    id::{AgentId, NamespaceId, RevisionId},
    resource::OwnedKind,
    store::{
        PassRead, StoreError,
        row::{Columns, Row as _, resource, work},
    },
    work::Target,
};

/// What a pass asks about.
#[derive(Clone)]
pub(super) struct PassQuery {
    namespace: NamespaceId,
    agent: Option<AgentId>,
    revision: Option<RevisionId>,
}

/// All that each pass reads of its Namespace `$1`, of its Agent `$2` and about its version `$3`, whose deployment is work `$4`. Each version
/// comes once: that one, the selected one, and those that Compute may hold something of.
const PASS: &str = concat!(
    "WITH f AS (
        SELECT q.*, a.active_revision_id, row_to_json(o) AS namespace, row_to_json(a) AS agent
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
            q(namespace_id, agent_id, revision_id, deployment, n)
        LEFT JOIN namespaces o ON o.id = q.namespace_id AND o.status <> 'deleted'
        LEFT JOIN agents a ON a.id = q.agent_id AND a.namespace_id = q.namespace_id
    )
    SELECT 'facts' AS kind, json_build_object('n', n, 'now', occ.present(), 'namespace', namespace, 'agent', agent,
        'setup', (SELECT row_to_json(s) FROM (
            SELECT id, defaults_id, files FROM workspace_setups WHERE agent_id = f.agent_id) s),
        'deployment', (SELECT row_to_json(d) FROM (SELECT ",
    judged!(),
    " FROM work w WHERE w.key = f.deployment) d)
    ) AS columns, NULL::bytea AS bytes FROM f
    UNION ALL
    SELECT 'version', json_build_object('n', f.n, 'id', r.id, 'namespace_id', r.namespace_id, 'agent_id', r.agent_id,
        'number', r.number, 'digest', r.digest, 'live', r.live, 'created_at', r.created_at), r.snapshot
    FROM f CROSS JOIN LATERAL (
        SELECT id FROM revisions WHERE agent_id = f.agent_id AND live
        UNION SELECT f.revision_id UNION SELECT f.active_revision_id
    ) v CROSS JOIN LATERAL (
        -- OFFSET 0 keeps it a look at one version: as a join it would read all of the Agent's.
        SELECT * FROM revisions WHERE id = v.id OFFSET 0
    ) r WHERE r.agent_id = f.agent_id AND r.namespace_id = f.namespace_id
    UNION ALL ",
    records!(
        "secret",
        "SELECT f.n, s.* FROM f JOIN revision_secrets r ON r.revision_id = f.revision_id
        JOIN secrets s ON s.id = r.secret_id AND s.namespace_id = f.namespace_id"
    )
);

impl PassQuery {
    fn of(target: &Target) -> Self {
        Self {
            namespace: target.namespace(),
            agent: target.agent(),
            revision: target.revision(),
        }
    }

    /// The key of the work that is its version's deployment.
    fn deployment(&self) -> Option<String> {
        let deployment = Target::Revision {
            namespace: self.namespace,
            agent: self.agent?,
            revision: self.revision?,
        };
        Some(deployment.key())
    }

    fn answer(&self, records: &[Record]) -> Result<PassRead, Fault> {
        let facts = facts(records)?;
        let agent = facts.part("agent", resource::agent)?;
        let mut versions = each(records, "version", resource::head)?;
        versions.sort_unstable_by_key(|head| head.revision);
        let version = |id| versions.iter().find(|head| Some(head.id) == id).cloned();
        let target = self.revision.map(|id| id.to_string());
        let of_target = |record: &&Record| {
            record.kind == "version" && target.is_some() && record.text("id").ok().flatten() == target
        };
        let own = records.iter().find(of_target).map(resource::target).transpose()?;
        let (revision, unreadable) = match own {
            Some(Ok(row)) => (Some(row), None),
            Some(Err(field)) => (None, Some(field)),
            None => (None, None),
        };
        let mut secrets = each(records, "secret", resource::secret)?;
        secrets.sort_unstable_by_key(|secret| secret.id);
        Ok(PassRead {
            now: Columns {
                row: facts,
                of: "clock",
            }
            .moment("now")?,
            namespace: facts.part("namespace", resource::namespace)?,
            head: version(self.revision),
            revision,
            unreadable,
            active: version(agent.as_ref().and_then(|row| row.agent.active_revision_id)),
            agent,
            setup: match facts.part("setup", resource::setup) {
                // Nothing of it is applied, so that it keeps nothing from being stopped or deleted.
                Err(Fault::Corrupt(_)) if self.revision.is_none() => None,
                read => read?,
            },
            secrets,
            sources: Vec::new(),
            account: None,
            deployment: facts.part("deployment", work::state)?.filter(work::over),
            live: versions.into_iter().filter(|head| head.live).collect(),
        })
    }
}

impl PostgresStore {
    pub(super) async fn read_pass(&self, target: &Target) -> Result<PassRead, Fault> {
        let query = PassQuery::of(target);
        let mut pass = self
            .asked
            .passes
            .read(&query, |queries| self.read_passes(queries))
            .await?;
        if let Some(account) = pass.account_id() {
            let row = self
                .read_owned(query.namespace, OwnedKind::ServiceAccount, &account.to_string())
                .await?;
            pass.account = row
                .map(TryInto::try_into)
                .transpose()
                .map_err(|_: StoreError| Fault::Corrupt("ServiceAccount"))?;
        }
        for source in pass.source_ids() {
            let row = self
                .read_owned(query.namespace, OwnedKind::CredentialSource, &source.to_string())
                .await?;
            let source = row.map(TryInto::try_into).transpose();
            pass.sources
                .extend(source.map_err(|_: StoreError| Fault::Corrupt("CredentialSource"))?);
        }
        Ok(pass)
    }

    async fn read_passes(&self, queries: Vec<PassQuery>) -> Result<Vec<PassRead>, Fault> {
        let (mut namespaces, mut agents, mut revisions, mut deployments) = (vec![], vec![], vec![], vec![]);
        for query in &queries {
            namespaces.push(query.namespace.to_string());
            agents.push(query.agent.map(|id| id.to_string()));
            revisions.push(query.revision.map(|id| id.to_string()));
            deployments.push(query.deployment());
        }
        let arguments = arguments![namespaces, agents, revisions, deployments];
        let (own, _) = Record::by_question(&self.connections.again(PASS, arguments).await?, queries.len())?;
        queries.iter().zip(own).map(|(query, own)| query.answer(&own)).collect()
    }
}
