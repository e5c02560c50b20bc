//! Agents with versions that wait, on `PostgreSQL`.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
    sync::Arc,
};

use occ_core::{
    control::{CreateAccessBinding, CreateAgent},
    driver::{Action, ResourceKind},
    iam::ExactResource,
    id::{AgentId, RevisionId},
    resource::{ExecutionMode, WorkspaceFiles},
    status::DeploymentStatus,
    store::postgres::{PostgresSettings, PostgresStore},
};
use occ_test_support::{
    drivers::{NullCompute, World},
    postgres::Database,
};
use sqlx::{Connection as _, PgConnection, Row as _};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::process::{Process, until};

/// How many are made at once.
const AT_ONCE: usize = 8;

pub struct Scene {
    pub world: Arc<World>,
    pub database: Place,
    files: TempDir,
}

/// Where the database is. Dropped, it is removed if it is on the server of the run.
pub struct Place {
    url: String,
    _shared: Option<Database>,
}

impl Place {
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// A connection that bypasses the store.
    pub async fn raw(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the server answers")
    }
}

impl From<Database> for Place {
    fn from(database: Database) -> Self {
        Self {
            url: database.url(),
            _shared: Some(database),
        }
    }
}

/// A migrated one on a server of the test's own.
impl From<String> for Place {
    fn from(url: String) -> Self {
        Self { url, _shared: None }
    }
}

/// A version of an Agent.
#[derive(Debug, Clone, Copy)]
pub struct Deployed {
    pub agent: AgentId,
    pub revision: RevisionId,
}

/// The row of a deployment's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkRow {
    pub state: String,
    pub attempts: i32,
    pub token: Option<String>,
    pub claimed_at: Option<i64>,
    pub lease_expires_at: Option<i64>,
}

impl Scene {
    /// Over a database of the server of the run.
    pub async fn new() -> Self {
        let database = Database::fresh().await;
        let settings = database.settings();
        Self::over(database, &settings).await
    }

    /// Over this database, which the control plane reaches so.
    pub async fn over(database: impl Into<Place>, settings: &PostgresSettings) -> Self {
        let store = PostgresStore::open(settings).await.expect("the store opens");
        let world = World::builder().compute(NullCompute::default()).store(Arc::new(store));
        Self {
            world: Arc::new(world.build().await),
            database: database.into(),
            files: tempfile::tempdir().expect("a directory"),
        }
    }

    pub fn url(&self) -> String {
        self.database.url()
    }

    /// Where a worker's drivers keep their files.
    pub fn files(&self) -> &Path {
        self.files.path()
    }

    /// So many Agents, each with a version that waits.
    pub async fn deployed(&self, count: usize) -> Vec<Deployed> {
        let world = &self.world;
        let configuration = world.configuration(serde_json::json!({})).await;
        let secret = world.secret(&format!("key-of-{count}"), "sk-test-0123456789").await;
        let role = world.role(&[(Action::Operate, ResourceKind::Secret)]).await;
        let mut making = JoinSet::new();
        for part in 0..AT_ONCE {
            let (world, role) = (Arc::clone(world), role.id.clone());
            making.spawn(async move {
                let mut made = Vec::new();
                for number in (part..count).step_by(AT_ONCE) {
                    let input = CreateAgent {
                        name: format!("agent-{count}-{number}").parse().expect("a name"),
                        configuration_id: configuration,
                        execution_mode: ExecutionMode::Embedded,
                        backend_id: None,
                        harness_auth: Some(world.api_key(secret)),
                        credential_sources: Vec::new(),
                        plugins: BTreeMap::default(),
                        plugin_approvers: None,
                        initial_workspace_files: WorkspaceFiles::default(),
                        workspace_defaults_id: None,
                    };
                    let agent = world.plane.create_agent(&world.admin, world.namespace, input).await;
                    let agent = agent.expect("a new Agent");
                    let grant = CreateAccessBinding {
                        principal_id: agent.service_principal_id.clone(),
                        role_id: role.clone(),
                        resource: Some(ExactResource {
                            kind: ResourceKind::Secret,
                            id: secret.to_string(),
                        }),
                    };
                    let bound = world
                        .plane
                        .create_access_binding(&world.admin, world.namespace, grant)
                        .await;
                    bound.expect("a new access binding");
                    let agent = agent.id;
                    let revision = deploy(&world, agent).await;
                    made.push(Deployed { agent, revision });
                }
                made
            });
        }
        making.join_all().await.into_iter().flatten().collect()
    }

    /// The rows of all deployments' work.
    pub async fn rows(&self) -> Vec<WorkRow> {
        let query = "SELECT state, attempts, claim_token::text, claimed_at, lease_expires_at FROM occ.work
            WHERE kind = 'revision' ORDER BY key";
        let rows = sqlx::query(query).fetch_all(&mut self.database.raw().await).await;
        let row = |row: &sqlx::postgres::PgRow| WorkRow {
            state: row.get("state"),
            attempts: row.get("attempts"),
            token: row.get("claim_token"),
            claimed_at: row.get("claimed_at"),
            lease_expires_at: row.get("lease_expires_at"),
        };
        rows.expect("the rows").iter().map(row).collect()
    }

    /// Waits until every one of these is the version that serves.
    pub async fn all_active(&self, deployed: &[Deployed]) {
        let world = &self.world;
        for Deployed { agent, revision } in deployed {
            until("every deployment", async || {
                let read = world
                    .plane
                    .deployment(&world.admin, world.namespace, *agent, *revision)
                    .await;
                let status = read.expect("a status").status;
                assert_ne!(status, DeploymentStatus::Failed);
                (status == DeploymentStatus::Succeeded).then_some(())
            })
            .await;
            let read = world.plane.agent(&world.admin, world.namespace, *agent).await;
            assert_eq!(read.expect("the Agent").active_revision_id, Some(*revision));
        }
    }
}

/// Admits the next version of an Agent.
pub async fn deploy(world: &World, agent: AgentId) -> RevisionId {
    let admitted = world.plane.deploy_agent(&world.admin, world.namespace, agent).await;
    admitted.expect("a deployable Agent").id
}

/// Waits until this worker has begun with every one of these.
pub async fn all_prepared(worker: &Process, deployed: &[Deployed]) {
    until("the preparations", async || {
        let prepared: HashSet<_> = worker.said("prepare").into_iter().collect();
        let begun = |one: &Deployed| prepared.contains(&one.revision.to_string());
        deployed.iter().all(begun).then_some(())
    })
    .await;
}

/// Each of these was activated once. Others may be among it: a worker that starts looks after what is selected.
pub fn assert_once(deployed: &[Deployed], activated: &[String]) {
    let mut times = BTreeMap::<&str, usize>::new();
    for revision in activated {
        *times.entry(revision).or_default() += 1;
    }
    for one in deployed {
        let revision = one.revision.to_string();
        assert_eq!(times.get(revision.as_str()), Some(&1), "{revision}");
    }
}
