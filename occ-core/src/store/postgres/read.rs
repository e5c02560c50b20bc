//! Reads of resources, versions and deployments: one statement each, so each of one moment.

use sqlx::Row as _;

use super::{
    PostgresStore, arguments,
    fault::Fault,
    record::{Record, collected, each, first, records, versions},
};
use crate::{
    id::{AgentId, ConfigurationId, NamespaceId, RevisionId, SecretId},
    resource::{Installation, Secret},
    store::{
        AgentRow, ConfigurationRow, Consumers, DeploymentRow, NamespaceRow, RevisionRow, Slice, WorkState,
        row::{Columns, Corrupt, resource, work},
    },
    time::Timestamp,
    work::{NewWork, Target},
};

/// Columns of a piece of work `w`, judged by the database's clock.
macro_rules! judged {
    () => {
        "w.key, w.state, w.available_at, w.attempts, w.last_attempt, w.code, w.result, w.completed_at, w.actor,
            coalesce(w.lease_expires_at > occ.present(), FALSE) AS held"
    };
}

pub(super) use judged;

const NAMESPACE: &str = records!(
    "namespace",
    "SELECT * FROM namespaces WHERE id = $1 AND status <> 'deleted'"
);
const NAMESPACES: &str = records!(
    "namespace",
    "SELECT * FROM namespaces WHERE status <> 'deleted' AND (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3"
);
const CONTENTS: &str = records!(
    "content",
    "(SELECT 'agent' AS kind, id FROM agents WHERE namespace_id = $1 LIMIT $2)
    UNION ALL (SELECT 'configuration', id FROM configurations WHERE namespace_id = $1 LIMIT $2)
    UNION ALL (SELECT 'secret', id FROM secrets WHERE namespace_id = $1 LIMIT $2)
    UNION ALL (SELECT kind, id FROM owned WHERE namespace_id = $1 LIMIT $2)
    LIMIT $2"
);
const CONFIGURATION: &str = records!(
    "configuration",
    "SELECT * FROM configurations WHERE id = $1 AND namespace_id = $2"
);
const CONFIGURATIONS: &str = records!(
    "configuration",
    "SELECT * FROM configurations WHERE namespace_id = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
);
const SECRET: &str = records!("secret", "SELECT * FROM secrets WHERE id = $1 AND namespace_id = $2");
const SECRETS: &str = records!(
    "secret",
    "SELECT * FROM secrets WHERE namespace_id = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4"
);
const SECRET_CONSUMERS: &str = concat!(
    records!(
        "agent",
        "SELECT agent_id AS id FROM agents_of_secret($1) WHERE namespace_id = $2"
    ),
    " UNION ALL ",
    records!(
        "configuration",
        "SELECT c.id FROM configuration_secrets s JOIN configurations c ON c.id = s.configuration_id
        WHERE s.secret_id = $1 AND c.namespace_id = $2"
    ),
    " UNION ALL ",
    records!(
        "owned",
        "SELECT o.kind, o.id FROM owned_secrets s JOIN owned o ON o.id = s.owned_id
        WHERE s.secret_id = $1 AND o.namespace_id = $2"
    )
);
const CONFIGURATION_CONSUMERS: &str = records!(
    "agent",
    "SELECT id FROM agents WHERE configuration_id = $1 AND namespace_id = $2 ORDER BY created_at, id"
);
const AGENT: &str = records!("agent", "SELECT * FROM agents WHERE id = $1 AND namespace_id = $2");
const AGENTS: &str = records!(
    "agent",
    "SELECT * FROM agents WHERE namespace_id = $1 ORDER BY created_at, id"
);
const REVISION: &str = versions!("revision", "id = $1 AND agent_id = $2 AND namespace_id = $3");
const REVISIONS: &str = versions!("revision", "agent_id = $1 AND namespace_id = $2 ORDER BY number");
const DEPLOYMENT: &str = records!(
    "deployment",
    "SELECT ",
    judged!(),
    ", r.live, a.active_revision_id IS NOT DISTINCT FROM r.id AS active,
        -- Queued work that cleans up what is left of it; a claim that lapsed counts as queued.
        (SELECT min(c.available_at) FROM (
            SELECT q.kind, q.revision_id, q.available_at FROM work q WHERE q.lane = r.agent_id AND q.state = 'queued'
            UNION ALL
            SELECT q.kind, q.revision_id, q.available_at FROM work q
            WHERE q.lane = r.agent_id AND q.state = 'claimed' AND q.lease_expires_at <= occ.present()
        ) c LEFT JOIN revisions n ON n.id = c.revision_id
        WHERE c.kind IN ('agent_stopped', 'agent_deleted') OR (c.kind <> 'credentials_withdrawn' AND n.number > r.number)) AS cleanup_at
    FROM revisions r
    JOIN agents a ON a.id = r.agent_id
    -- Work of another owner is no evidence of this deployment.
    LEFT JOIN work w ON w.key = $4
        AND w.namespace_id = r.namespace_id AND w.agent_id = r.agent_id AND w.revision_id = r.id
    WHERE r.id = $3 AND r.agent_id = $2 AND r.namespace_id = $1"
);
const WORK_STATE: &str = records!("work", "SELECT ", judged!(), " FROM work w WHERE w.key = $1");
const SELECTED: &str = records!(
    "selected",
    "SELECT a.namespace_id, a.id, a.active_revision_id, w.actor, occ.present() AS present
    FROM agents a JOIN work w ON w.key = 'agent_revision:' || a.active_revision_id || ':reconcile'
    WHERE a.active_revision_id IS NOT NULL AND a.desired = 'running' ORDER BY a.created_at, a.id"
);

fn id<T: std::str::FromStr>(of: &'static str) -> impl Fn(&Record) -> Result<T, Corrupt> {
    move |row| Columns { row, of }.parsed("id")
}

impl PostgresStore {
    pub(super) async fn read_now(&self) -> Result<Timestamp, Fault> {
        let rows = self.connections.again("SELECT present()", arguments![]).await?;
        Ok(Timestamp::from_millis(rows[0].try_get(0)?))
    }

    pub(super) async fn read_installation(&self) -> Result<Option<Installation>, Fault> {
        let query = records!("installation", "SELECT * FROM installation");
        first(
            &self.connections.again(query, arguments![]).await?,
            resource::installation,
        )
    }

    pub(super) async fn read_namespace(&self, id: NamespaceId) -> Result<Option<NamespaceRow>, Fault> {
        let rows = self.connections.again(NAMESPACE, arguments![id.to_string()]).await?;
        first(&rows, resource::namespace)
    }

    pub(super) async fn read_namespaces(&self, slice: &Slice) -> Result<Vec<NamespaceRow>, Fault> {
        let (order, id) = slice.place();
        let arguments = arguments![order, id, i64::from(slice.limit)];
        collected(
            &self.connections.again(NAMESPACES, arguments).await?,
            resource::namespace,
        )
    }

    pub(super) async fn read_contents(
        &self,
        id: NamespaceId,
        limit: u32,
    ) -> Result<Vec<(&'static str, String)>, Fault> {
        let arguments = arguments![id.to_string(), i64::from(limit)];
        collected(&self.connections.again(CONTENTS, arguments).await?, resource::content)
    }

    pub(super) async fn read_configuration(
        &self,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> Result<Option<ConfigurationRow>, Fault> {
        let arguments = arguments![id.to_string(), namespace.to_string()];
        first(
            &self.connections.again(CONFIGURATION, arguments).await?,
            resource::configuration,
        )
    }

    pub(super) async fn read_configurations(
        &self,
        namespace: NamespaceId,
        slice: &Slice,
    ) -> Result<Vec<ConfigurationRow>, Fault> {
        let (order, id) = slice.place();
        let arguments = arguments![namespace.to_string(), order, id, i64::from(slice.limit)];
        collected(
            &self.connections.again(CONFIGURATIONS, arguments).await?,
            resource::configuration,
        )
    }

    pub(super) async fn read_secret(&self, namespace: NamespaceId, id: SecretId) -> Result<Option<Secret>, Fault> {
        let arguments = arguments![id.to_string(), namespace.to_string()];
        first(&self.connections.again(SECRET, arguments).await?, resource::secret)
    }

    pub(super) async fn read_secrets(&self, namespace: NamespaceId, slice: &Slice) -> Result<Vec<Secret>, Fault> {
        let (order, id) = slice.place();
        let arguments = arguments![namespace.to_string(), order, id, i64::from(slice.limit)];
        collected(&self.connections.again(SECRETS, arguments).await?, resource::secret)
    }

    pub(super) async fn read_secret_consumers(&self, namespace: NamespaceId, of: SecretId) -> Result<Consumers, Fault> {
        let arguments = arguments![of.to_string(), namespace.to_string()];
        let records = Record::all(&self.connections.again(SECRET_CONSUMERS, arguments).await?)?;
        let mut consumers = Consumers {
            agents: each(&records, "agent", id("Agent"))?,
            configurations: each(&records, "configuration", id("Configuration"))?,
            owned: each(&records, "owned", |row| {
                let row = Columns { row, of: "resource" };
                Ok((row.word("kind")?, row.text("id")?))
            })?,
        };
        consumers.owned.sort_unstable();
        consumers.agents.sort_unstable();
        consumers.configurations.sort_unstable();
        Ok(consumers)
    }

    pub(super) async fn read_configuration_consumers(
        &self,
        namespace: NamespaceId,
        of: ConfigurationId,
    ) -> Result<Vec<AgentId>, Fault> {
        let arguments = arguments![of.to_string(), namespace.to_string()];
        let rows = self.connections.again(CONFIGURATION_CONSUMERS, arguments).await?;
        collected(&rows, id("Agent"))
    }

    pub(super) async fn read_agent(&self, namespace: NamespaceId, id: AgentId) -> Result<Option<AgentRow>, Fault> {
        let arguments = arguments![id.to_string(), namespace.to_string()];
        first(&self.connections.again(AGENT, arguments).await?, resource::agent)
    }

    pub(super) async fn read_agents(&self, namespace: NamespaceId) -> Result<Vec<AgentRow>, Fault> {
        let rows = self
            .connections
            .again(AGENTS, arguments![namespace.to_string()])
            .await?;
        collected(&rows, resource::agent)
    }

    pub(super) async fn read_revision(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> Result<Option<RevisionRow>, Fault> {
        let arguments = arguments![id.to_string(), agent.to_string(), namespace.to_string()];
        first(&self.connections.again(REVISION, arguments).await?, resource::revision)
    }

    pub(super) async fn read_revisions(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
    ) -> Result<Vec<RevisionRow>, Fault> {
        let arguments = arguments![agent.to_string(), namespace.to_string()];
        collected(&self.connections.again(REVISIONS, arguments).await?, resource::revision)
    }

    pub(super) async fn read_owner(&self, namespace: NamespaceId, id: RevisionId) -> Result<Option<AgentId>, Fault> {
        let query = records!(
            "owner",
            "SELECT agent_id FROM revisions WHERE id = $1 AND namespace_id = $2"
        );
        let rows = self
            .connections
            .again(query, arguments![id.to_string(), namespace.to_string()]);
        let of = "AgentRevision";
        first(&rows.await?, |row| Columns { row, of }.parsed("agent_id"))
    }

    pub(super) async fn read_deployment(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        revision: RevisionId,
    ) -> Result<Option<DeploymentRow>, Fault> {
        let target = Target::Revision {
            namespace,
            agent,
            revision,
        };
        let ids = [namespace.to_string(), agent.to_string(), revision.to_string()];
        let [first_id, second, third] = ids;
        let rows = self
            .connections
            .again(DEPLOYMENT, arguments![first_id, second, third, target.key()]);
        first(&rows.await?, |row| work::deployment(row, namespace, agent, revision))
    }

    pub(super) async fn read_work_state(&self, key: &str) -> Result<Option<WorkState>, Fault> {
        let rows = self.connections.again(WORK_STATE, arguments![key.to_owned()]).await?;
        first(&rows, work::state)
    }

    pub(super) async fn read_selected(&self) -> Result<Vec<NewWork>, Fault> {
        collected(&self.connections.again(SELECTED, arguments![]).await?, work::selected)
    }
}
