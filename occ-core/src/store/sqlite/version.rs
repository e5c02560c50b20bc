//! Reads of versions, and the two reads that admission and a pass make of one moment.

use sqlx::{SqliteConnection, sqlite::SqliteRow};

use super::{fault::Fault, owned, policy, read, status};
use crate::{
    driver::StoredRecord,
    id::{AgentId, NamespaceId, RevisionId},
    resource::{HarnessAuth, OwnedKind, Secret, WorkspaceSetup},
    store::{
        AgentRow, ConfigurationRow, DeployQuery, DeployRead, PassRead, RevisionHead, RevisionRow, SavedRevision, Slice,
        StoreError,
        row::{Columns, resource, work},
    },
    work::Target,
};

async fn row(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    agent: AgentId,
    id: RevisionId,
) -> Result<Option<SqliteRow>, Fault> {
    let query = "SELECT * FROM revisions WHERE id = ? AND agent_id = ? AND namespace_id = ?";
    let query = sqlx::query(query)
        .bind(id.to_string())
        .bind(agent.to_string())
        .bind(namespace.to_string());
    Ok(query.fetch_optional(db).await?)
}

pub(super) async fn revision(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    agent: AgentId,
    id: RevisionId,
) -> Result<Option<RevisionRow>, Fault> {
    let row = row(db, namespace, agent, id).await?;
    Ok(row.as_ref().map(resource::revision).transpose()?)
}

async fn head(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    agent: AgentId,
    id: RevisionId,
) -> Result<Option<RevisionHead>, Fault> {
    let row = row(db, namespace, agent, id).await?;
    Ok(row.as_ref().map(resource::head).transpose()?)
}

pub(super) async fn owner(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    id: RevisionId,
) -> Result<Option<AgentId>, Fault> {
    let query = "SELECT agent_id FROM revisions WHERE id = ? AND namespace_id = ?";
    let row = sqlx::query(query)
        .bind(id.to_string())
        .bind(namespace.to_string())
        .fetch_optional(db)
        .await?;
    let owner = row.map(|row| {
        let of = "AgentRevision";
        Columns { row: &row, of }.parsed("agent_id")
    });
    Ok(owner.transpose()?)
}

pub(super) async fn revisions(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    agent: AgentId,
) -> Result<Vec<RevisionRow>, Fault> {
    let query = "SELECT * FROM revisions WHERE agent_id = ? AND namespace_id = ? ORDER BY number";
    let query = sqlx::query(query).bind(agent.to_string()).bind(namespace.to_string());
    read::collected(&query.fetch_all(db).await?, resource::revision)
}

/// Versions that Compute may still hold something of.
pub(super) const LIVE: &str = "SELECT * FROM revisions WHERE agent_id = ? AND live = 1 ORDER BY number";
pub(super) const COUNT: &str = "SELECT coalesce(max(number), 0) AS number FROM revisions WHERE agent_id = ?";

/// Reads only the index of live versions, whatever the history.
async fn live(db: &mut SqliteConnection, agent: AgentId) -> Result<Vec<RevisionHead>, Fault> {
    let rows = sqlx::query(LIVE).bind(agent.to_string()).fetch_all(db).await?;
    read::collected(&rows, resource::head)
}

/// How many versions an Agent has: they are numbered without gaps, so the newest number says it at once.
pub(super) async fn count(db: &mut SqliteConnection, agent: AgentId) -> Result<u64, Fault> {
    let row = sqlx::query(COUNT).bind(agent.to_string()).fetch_one(db).await?;
    let of = "AgentRevision";
    Ok(Columns { row: &row, of }.number("number")?)
}

pub(super) async fn deploy_read(db: &mut SqliteConnection, query: &DeployQuery) -> Result<DeployRead, Fault> {
    let (namespace, agent) = (query.namespace, query.agent);
    let now = read::now(db).await?;
    let namespace_row = read::namespace(db, namespace).await?;
    let agent_row = read::agent(db, namespace, agent).await?;
    let configuration = match &agent_row {
        Some(row) => read::configuration(db, namespace, row.agent.configuration_id).await?,
        None => None,
    };
    let secrets = secrets_of_draft(db, namespace, agent_row.as_ref(), configuration.as_ref()).await?;
    let revisions = count(db, agent).await?;
    let mut policy = Vec::new();
    if let Some(caller) = &query.policy_of {
        let own = agent_row.as_ref().map(|row| &row.agent.service_principal_id);
        for principal in [caller].into_iter().chain(own.filter(|own| *own != caller)) {
            policy.push((principal.clone(), policy::grants(db, principal).await?));
        }
    }
    let named = configuration.iter().map(|row| row.id.to_string());
    let named: Vec<_> = named
        .chain(secrets.iter().map(|secret| secret.id.to_string()))
        .collect();
    let mut records = Vec::new();
    for driver in &query.records_of {
        for key in &named {
            let entry = policy::entry(db, driver, key).await?;
            records.extend(entry.map(|entry| StoredRecord {
                driver: driver.clone(),
                key: key.clone(),
                entry,
            }));
        }
    }
    Ok(DeployRead {
        now,
        namespace: namespace_row,
        agent: agent_row,
        configuration,
        secrets,
        revisions,
        policy,
        records,
    })
}

async fn secrets_of_draft(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    agent: Option<&AgentRow>,
    configuration: Option<&ConfigurationRow>,
) -> Result<Vec<Secret>, Fault> {
    let harness = agent
        .and_then(|row| row.agent.harness_auth.as_ref())
        .and_then(HarnessAuth::secret);
    let bound = configuration
        .iter()
        .flat_map(|row| row.secret_bindings.values())
        .map(|binding| binding.source.id);
    let mut ids: Vec<_> = harness.into_iter().map(|(_, id)| id).chain(bound).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut secrets = Vec::with_capacity(ids.len());
    for id in ids {
        secrets.extend(read::secret(db, namespace, id).await?);
    }
    Ok(secrets)
}

pub(super) async fn pass_read(db: &mut SqliteConnection, target: &Target) -> Result<PassRead, Fault> {
    let namespace_id = target.namespace();
    let mut pass = PassRead {
        now: read::now(db).await?,
        namespace: read::namespace(db, namespace_id).await?,
        agent: None,
        head: None,
        revision: None,
        unreadable: None,
        active: None,
        live: Vec::new(),
        setup: None,
        secrets: Vec::new(),
        sources: Vec::new(),
        account: None,
        deployment: None,
    };
    let Some(agent) = target.agent() else { return Ok(pass) };
    pass.agent = read::agent(db, namespace_id, agent).await?;
    if let Some(active) = pass.agent.as_ref().and_then(|row| row.agent.active_revision_id) {
        pass.active = head(db, namespace_id, agent, active).await?;
    }
    pass.live = live(db, agent).await?;
    pass.setup = match setup(db, agent).await {
        // Nothing of it is applied, so that it keeps nothing from being stopped or deleted.
        Err(Fault::Corrupt(_)) if target.revision().is_none() => None,
        read => read?,
    };
    if let Some(id) = target.revision() {
        if let Some(row) = row(db, namespace_id, agent, id).await? {
            pass.head = Some(resource::head(&row)?);
            match resource::target(&row)? {
                Ok(row) => pass.revision = Some(row),
                Err(field) => pass.unreadable = Some(field),
            }
        }
        let query = "SELECT s.* FROM revision_secrets r JOIN secrets s ON s.id = r.secret_id
            WHERE r.revision_id = ? AND s.namespace_id = ? ORDER BY s.id";
        let query = sqlx::query(query).bind(id.to_string()).bind(namespace_id.to_string());
        pass.secrets = read::collected(&query.fetch_all(&mut *db).await?, resource::secret)?;
        if let Some(account) = pass.account_id() {
            let row = owned::one(db, namespace_id, OwnedKind::ServiceAccount, &account.to_string()).await?;
            pass.account = row
                .map(TryInto::try_into)
                .transpose()
                .map_err(|_: StoreError| Fault::Corrupt("ServiceAccount"))?;
        }
        for source in pass.source_ids() {
            let row = owned::one(db, namespace_id, OwnedKind::CredentialSource, &source.to_string()).await?;
            let source = row.map(TryInto::try_into).transpose();
            pass.sources
                .extend(source.map_err(|_: StoreError| Fault::Corrupt("CredentialSource"))?);
        }
        let deployment = Target::Revision {
            namespace: namespace_id,
            agent,
            revision: id,
        };
        let state = status::work_state(db, &deployment.key()).await?;
        pass.deployment = state.filter(work::over);
    }
    Ok(pass)
}

async fn setup(db: &mut SqliteConnection, agent: AgentId) -> Result<Option<WorkspaceSetup>, Fault> {
    let query = "SELECT id, defaults_id, files FROM workspace_setups WHERE agent_id = ?";
    let row = sqlx::query(query).bind(agent.to_string()).fetch_optional(db).await?;
    Ok(row.as_ref().map(resource::setup).transpose()?)
}

/// A version as far as it can be read.
pub(super) async fn saved(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    agent: AgentId,
    id: RevisionId,
) -> Result<Option<SavedRevision>, Fault> {
    let row = row(db, namespace, agent, id).await?;
    Ok(row.as_ref().map(resource::saved_revision).transpose()?)
}

/// The versions of an Agent as far as they can be read.
pub(super) async fn all_saved(
    db: &mut SqliteConnection,
    namespace: NamespaceId,
    agent: AgentId,
    slice: &Slice,
) -> Result<Vec<SavedRevision>, Fault> {
    let query =
        "SELECT * FROM revisions WHERE agent_id = ? AND namespace_id = ? AND number > ? ORDER BY number LIMIT ?";
    let query = sqlx::query(query)
        .bind(agent.to_string())
        .bind(namespace.to_string())
        .bind(slice.place().0)
        .bind(i64::from(slice.limit));
    read::collected(&query.fetch_all(db).await?, resource::saved_revision)
}
