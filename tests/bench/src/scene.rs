//! A control plane with Agents that can be deployed, over the store that is measured.

use std::{sync::Arc, time::Duration};

use occ_core::{
    id::{AgentId, RevisionId},
    work::Policy,
    worker::{Worker, WorkerHandle},
};
use occ_test_support::drivers::{NullCompute, World};
use tokio::sync::watch;

use crate::{Error, Observer, ground::Ground, observer::Ended};

/// For all the work of one measurement.
const PATIENCE: Duration = Duration::from_mins(10);

pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) observer: Arc<Observer>,
    pub(crate) agents: Vec<AgentId>,
    /// Of the database, where it is a server's.
    pub(crate) url: Option<String>,
    ended: watch::Receiver<Ended>,
}

impl Scene {
    /// With so many Agents, none of them deployed.
    pub(crate) async fn new(ground: &Ground, agents: usize) -> Result<Self, Error> {
        Self::on(ground, agents, NullCompute::default()).await
    }

    /// The same on this Compute.
    pub(crate) async fn on(ground: &Ground, agents: usize, compute: NullCompute) -> Result<Self, Error> {
        let (store, url) = ground.store().await?;
        let world = World::builder().compute(compute).store(store).build().await;
        let observer = Arc::new(Observer::default());
        world.store.watch(Arc::clone(&observer) as _);
        let mut ids = Vec::with_capacity(agents);
        for number in 0..agents {
            ids.push(world.deployable(&format!("agent-{number}")).await.id);
        }
        Ok(Self {
            ended: observer.ended(),
            world,
            observer,
            agents: ids,
            url,
        })
    }

    /// The Agent of this number; they come round again.
    pub(crate) fn agent(&self, number: usize) -> AgentId {
        self.agents[number % self.agents.len()]
    }

    /// Admits a deployment.
    pub(crate) async fn admit(&self, agent: AgentId) -> Result<RevisionId, Error> {
        let World {
            plane,
            admin,
            namespace,
            ..
        } = &self.world;
        Ok(Box::pin(plane.deploy_agent(admin, *namespace, agent)).await?.id)
    }

    /// A worker as it is by default.
    pub(crate) fn work(&self) -> WorkerHandle {
        let store = Arc::clone(&self.world.store) as _;
        Worker::new(store, Arc::clone(&self.world.drivers), Policy::default()).start()
    }

    /// How many deployments have succeeded until now.
    pub(crate) fn succeeded(&self) -> u64 {
        self.ended.borrow().succeeded
    }

    /// Waits until so many deployments have succeeded in all.
    pub(crate) async fn until_succeeded(&self, count: u64) -> Result<(), Error> {
        let mut ended = self.ended.clone();
        let enough = ended.wait_for(|ended| ended.succeeded >= count || ended.failed > 0);
        let seen = tokio::time::timeout(PATIENCE, enough).await.map_err(|_| Error::Stuck)?;
        match seen.as_deref() {
            Ok(Ended { failed: 0, .. }) => Ok(()),
            Ok(Ended { failed, .. }) => Err(Error::Failed { failed: *failed }),
            Err(_) => Err(Error::Stuck),
        }
    }

    /// Forgets what the recording drivers of the tests keep of every call.
    pub(crate) fn forget(&self) {
        self.observer.forget();
        self.world.store.take_audit();
        self.world.store.take_work();
        self.world.compute.take_calls();
        self.world.iam.take_asked();
    }
}
