//! How it is with much in the database: finished revisions, and revisions that wait.

use std::{sync::Arc, time::Duration};

use occ_core::{
    driver::EffectError,
    id::{AgentId, RevisionId},
    reason::Pending as Reason,
};
use occ_test_support::drivers::NullCompute;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, postgres::PgConnectOptions};
use tokio::time::Instant;

use crate::{
    Error, History, Pending, Sizes,
    ground::Ground,
    measure::{admit, claim_latency, deployments, each, idle, latency},
    scene::Scene,
    usage,
};

/// For one claim.
const PATIENCE: Duration = Duration::from_mins(1);

/// What is measured beside an ordinary database, on `PostgreSQL`.
#[derive(Debug, Clone, Default)]
pub struct Load {
    /// So many finished revisions, one size after the other.
    pub history: Vec<usize>,
    /// So many revisions that wait.
    pub pending: Option<usize>,
    /// Whether those are of a Compute that does not hear of changes by itself.
    pub unwatched: bool,
    /// How long they have waited when they are looked at.
    pub settle: Duration,
}

impl Load {
    pub(crate) async fn histories(&self, ground: &Ground, sizes: &Sizes) -> Result<Vec<History>, Error> {
        let mut measured = Vec::with_capacity(self.history.len());
        for revisions in &self.history {
            measured.push(history(ground, sizes, *revisions).await?);
        }
        Ok(measured)
    }

    pub(crate) async fn pending(&self, ground: &Ground, sizes: &Sizes) -> Result<Option<Pending>, Error> {
        let Some(revisions) = self.pending else { return Ok(None) };
        Box::pin(pending(ground, sizes, revisions, self)).await.map(Some)
    }
}

async fn history(ground: &Ground, sizes: &Sizes, revisions: usize) -> Result<History, Error> {
    let scene = Arc::new(Scene::new(ground, sizes.agents.min(sizes.deployments)).await?);
    // One version of each Agent for real, of which the earlier ones are copies.
    let worker = scene.work();
    for agent in &scene.agents {
        scene.admit(*agent).await?;
    }
    scene.until_succeeded(scene.agents.len() as u64).await?;
    worker.shutdown().await;
    let versions = revisions / scene.agents.len();
    let url = scene.url.as_deref().ok_or(Error::NoServer)?;
    write(url, versions).await.map_err(|_| Error::History)?;
    usage::peak_memory()?;
    let deployed = deployments(&scene, sizes.deployments, sizes.callers).await?;
    let claim_latency = claim_latency(&scene, sizes.latencies).await?;
    let idle = idle(&scene, sizes.idle).await?;
    Ok(History {
        revisions: versions * scene.agents.len(),
        deployments_per_second: deployed.per_second,
        claim_latency,
        idle_queries_per_second: idle.queries_per_second,
        peak_memory: usage::peak_memory()?,
    })
}

/// So many earlier versions of every Agent, with the work that drove them. Rules that look at each row are off meanwhile.
async fn write(url: &str, versions: usize) -> Result<(), sqlx::Error> {
    let statements = format!(
        "SET search_path = occ;
        SET session_replication_role = replica;
        UPDATE revisions SET number = number + {versions};
        CREATE TEMP TABLE earlier AS
            SELECT 'rev_' || gen_random_uuid() AS id, r.id AS real, g AS number
            FROM revisions r, generate_series(1, {versions}) g;
        INSERT INTO revisions (id, namespace_id, agent_id, number, snapshot, digest, live, created_at)
            SELECT e.id, r.namespace_id, r.agent_id, e.number, r.snapshot, r.digest, FALSE, r.created_at
            FROM earlier e JOIN revisions r ON r.id = e.real;
        INSERT INTO revision_secrets SELECT e.id, s.secret_id FROM earlier e JOIN revision_secrets s ON s.revision_id = e.real;
        INSERT INTO work (key, kind, namespace_id, agent_id, revision_id, lane, actor, state, available_at, attempts, code, result,
                completed_at, created_at)
            SELECT 'agent_revision:' || e.id || ':reconcile', w.kind, w.namespace_id, w.agent_id, e.id, w.lane, w.actor, w.state,
                w.available_at, w.attempts, w.code, w.result, w.completed_at, w.created_at
            FROM earlier e JOIN work w ON w.revision_id = e.real AND w.kind = 'revision';
        VACUUM (ANALYZE) revisions;
        VACUUM (ANALYZE) work;
        CHECKPOINT;"
    );
    let options: PgConnectOptions = url.parse()?;
    let mut connection: PgConnection = options.disable_statement_logging().connect().await?;
    // One by one: a vacuum is not part of a transaction.
    for statement in statements.split_inclusive(';') {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
            .execute(&mut connection)
            .await?;
    }
    Ok(())
}

async fn pending(ground: &Ground, sizes: &Sizes, revisions: usize, load: &Load) -> Result<Pending, Error> {
    let mut compute = NullCompute::default();
    if !load.unwatched {
        compute = compute.hearing();
    }
    compute.prepare.always(EffectError::Pending(Reason::RevisionIncomplete));
    let samples = sizes.latencies;
    let scene = Arc::new(Scene::on(ground, revisions + samples, compute).await?);
    let worker = scene.work();
    admit(&scene, revisions, sizes.callers).await?;
    tokio::time::sleep(load.settle).await;

    let server = ground.server().ok_or(Error::NoServer)?;
    let used = || Ok::<_, Error>((usage::processor(std::process::id())?, usage::processor(server)?));
    scene.world.compute.take_calls();
    let (begun, before) = (Instant::now(), used()?);
    tokio::time::sleep(sizes.idle).await;
    let (took, after) = (begun.elapsed().as_secs_f64(), used()?);
    let passes = scene.world.compute.take_calls().len();

    let mut taken = Vec::with_capacity(samples);
    for agent in &scene.agents[revisions..] {
        taken.push(claimed(&scene, *agent).await?);
    }
    worker.shutdown().await;
    let share = |before: Duration, after: Duration| after.saturating_sub(before).as_secs_f64() / took;
    Ok(Pending {
        revisions,
        watched: !load.unwatched,
        passes_per_second: each(passes as u64, 1) / took,
        processor: share(before.0, after.0),
        server_processor: share(before.1, after.1),
        claim_latency: latency(taken),
    })
}

/// From the caller's answer to the claim of one more deployment.
async fn claimed(scene: &Scene, agent: AgentId) -> Result<Duration, Error> {
    let revision = scene.admit(agent).await?;
    let answered = Instant::now();
    let claimed = tokio::time::timeout(PATIENCE, first_claim(scene, revision)).await;
    let claimed = claimed.map_err(|_| Error::Stuck)??;
    // The worker may have the claim before the caller has its answer.
    Ok(claimed.saturating_duration_since(answered))
}

async fn first_claim(scene: &Scene, revision: RevisionId) -> Result<Instant, Error> {
    let mut queries = scene.observer.queries();
    loop {
        if let Some(claimed) = scene.observer.claimed_at(revision) {
            return Ok(claimed);
        }
        queries.changed().await.map_err(|_| Error::Stuck)?;
    }
}
