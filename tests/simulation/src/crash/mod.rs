//! Crash points: whole lives of an Agent or a Namespace, in which the worker dies at each point once, and another one finishes.
//!
//! A point is before and after every transaction and every effect: between two of them a worker has nothing that anybody else could
//! have seen.

mod gate;
mod gated;
mod life;

use std::{sync::Arc, time::Duration};

pub use gate::Gate;
pub use life::{LIVES, Life};
use occ_core::{
    control::{Caller, ControlPlane},
    driver::{Action, ResourceKind},
    id::{AgentId, NamespaceId, RevisionId},
    installation::Drivers,
    store::Store,
    work::Policy,
    worker::Worker,
};
use occ_test_support::drivers::ScriptedIam;

use self::gated::{GatedCompute, GatedStore};
use crate::{
    chaos::{ChaosCompute, Dice, FaultyStore, Manner, Rules, scene},
    memory::MemoryStore,
};

/// Which store a life is led on.
#[derive(Debug, Clone)]
pub enum Ground {
    /// The model, in virtual time, with every rule looked at in every step.
    Memory,
    /// A real one.
    Real(Arc<dyn StoreDebug>),
}

/// A store that can be shown.
pub trait StoreDebug: Store + std::fmt::Debug {}
impl<S: Store + std::fmt::Debug> StoreDebug for S {}

/// Where a life is cut.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cut {
    /// The worker dies here.
    pub death: Option<u64>,
    /// The Agent is stopped here, beside the worker.
    pub stop: Option<u64>,
}

/// A control plane on which a life is led.
pub(crate) struct Stage {
    pub plane: ControlPlane,
    pub admin: Caller,
    pub namespace: NamespaceId,
    pub agent: AgentId,
    pub iam: Arc<ScriptedIam>,
    pub rules: Rules,
    pub gate: Arc<Gate>,
    store: Arc<dyn Store>,
    drivers: Arc<Drivers>,
    policy: Policy,
}

/// Leads a life, with this cut. Returns how many points there were, and what was broken.
pub async fn lead(life: &Life, ground: Ground, cut: Cut) -> (u64, Vec<String>) {
    let gate = Arc::new(Gate::default());
    let dice = Dice::instant();
    let memory = MemoryStore::default();
    let Manner { order, exclusive, .. } = life.manner;
    // The rules look into the model; over a real store only the end is looked at.
    let blind = matches!(ground, Ground::Real(_));
    let rules = Rules::new(memory.clone(), order, exclusive, blind, false);
    let (inner, lease): (Arc<dyn Store>, _) = match ground {
        Ground::Memory => (
            FaultyStore::around(memory, dice.clone(), rules.clone(), 0),
            Duration::from_secs(5),
        ),
        Ground::Real(store) => (store as _, Duration::from_secs(1)),
    };
    let compute = Arc::new(ChaosCompute::new(life.manner, dice, rules.clone()));
    let free = scene::compose(Arc::clone(&inner), Arc::clone(&compute) as _);
    let plane = ControlPlane::new(Arc::clone(&inner), Arc::clone(&free.0));
    let store: Arc<dyn Store> = Arc::new(GatedStore {
        inner: Arc::clone(&inner),
        gate: Arc::clone(&gate),
    });
    let gated = Arc::new(GatedCompute {
        inner: compute,
        gate: Arc::clone(&gate),
    });
    // The worker asks its own drivers, through the gate; the callers ask theirs.
    let (drivers, iam) = scene::compose(Arc::clone(&store), gated);
    let (admin, namespace, agent) = scene::furnish(&plane).await;
    let stage = Stage {
        plane,
        admin,
        namespace,
        agent,
        iam,
        rules,
        gate,
        store,
        drivers,
        policy: Policy {
            lease,
            max_attempts: 30,
            poll_interval: Duration::from_millis(200),
            ..Policy::default()
        },
    };
    Box::pin(stage.rests_before(life, cut)).await;
    let points = stage.gate.passed();
    (points, stage.rules.take_broken())
}

impl Stage {
    async fn rests_before(&self, life: &Life, cut: Cut) {
        let mut worker = self.worker();
        self.rests().await;
        life.prepare(self).await;
        self.gate.begin();
        if let Some(point) = cut.death {
            self.gate.dies_at(point);
        }
        if let Some(point) = cut.stop {
            let (plane, admin, namespace, agent) = (self.plane.clone(), self.admin.clone(), self.namespace, self.agent);
            self.gate.meanwhile(point, async move {
                // It may be deleted already.
                let _ = plane.stop_agent(&admin, namespace, agent).await;
            });
        }
        let led = life.lead(self);
        tokio::pin!(led);
        tokio::select! {
            biased;
            () = self.gate.died().cancelled() => {
                worker.abort();
                let _ = (&mut worker).await;
                worker = self.worker();
                led.await;
            }
            () = &mut led => {}
        }
        self.rests().await;
        life.holds(self, cut).await;
        worker.abort();
        let _ = worker.await;
    }

    fn worker(&self) -> tokio::task::JoinHandle<()> {
        let worker = Worker::new(Arc::clone(&self.store), Arc::clone(&self.drivers), self.policy);
        tokio::spawn(worker.run(tokio_util::sync::CancellationToken::new()))
    }

    /// Waits until there is nothing to do any more.
    pub async fn rests(&self) {
        let rest = async {
            while self.store.next_due().await != Ok(None) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(Duration::from_mins(10), rest).await.is_err() {
            self.rules.broken("a lane never drains");
        }
    }

    pub async fn deploy(&self) -> RevisionId {
        let revision = self.plane.deploy_agent(&self.admin, self.namespace, self.agent).await;
        revision.expect("a deployable Agent").id
    }

    /// Withdraws the right to deploy, or grants it again.
    pub fn deny(&self) {
        self.iam
            .deny(&self.admin.principal, Action::Deploy, ResourceKind::Agent);
    }
}
