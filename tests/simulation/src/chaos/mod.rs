//! Whole control planes under chaos, as a function of a seed.
//!
//! The worker and the control plane are the real ones, any number of each, over the [model of the store](crate::memory) behind a bad
//! connection and a Compute that does everything a real one can do wrong. Time is virtual. The rules are looked at in every step, and
//! once everything has come to rest.

mod compute;
mod dice;
mod rest;
mod rules;
pub(crate) mod scene;
mod store;

use std::{sync::Arc, time::Duration};

pub use compute::{ChaosCompute, Manner};
pub use dice::Dice;
use dice::{remember_panics, take_panics};
use occ_core::{
    driver::{Action, ActivationOrder, ResourceKind},
    randomness,
    work::Policy,
    worker::Worker,
};
pub use rules::{InFlight, Rules, Runtime};
pub use store::FaultyStore;
use tokio_util::sync::CancellationToken;

use self::scene::Scene;
use crate::memory::MemoryStore;

/// Longer than nearly every effect that ends.
const EFFECT_TIMEOUT: Duration = Duration::from_mins(1);

/// What became of a seed.
#[derive(Debug)]
pub struct Report {
    /// The rules that were broken, in the order in which that was seen.
    pub broken: Vec<String>,
    /// What tells this run from another.
    pub hash: u64,
    /// Every step, when that was asked for.
    pub trace: Vec<String>,
}

/// Everything that a seed decides before it begins.
#[derive(Debug)]
struct Profile {
    manner: Manner,
    store_rate: u64,
    workers: u64,
    callers: u64,
    agents: u64,
    acts: u64,
    jumps: bool,
    denials: bool,
    concurrency: usize,
    max_attempts: u32,
}

impl Profile {
    fn of(dice: &Dice) -> Self {
        let order = *dice.pick(&[
            ActivationOrder::AfterCommit,
            ActivationOrder::AfterCommit,
            ActivationOrder::BeforeCommit,
        ]);
        Self {
            manner: Manner {
                order,
                exclusive: dice.chance(400),
                maintenance: dice.chance(400).then(|| Duration::from_mins(1)),
                rate: *dice.pick(&[0, 40, 150, 300]),
            },
            store_rate: *dice.pick(&[0, 5, 30, 80]),
            workers: 1 + dice.below(3),
            callers: 1 + dice.below(2),
            agents: 1 + u64::from(dice.chance(400)),
            acts: 2 + dice.below(4),
            jumps: dice.chance(120),
            denials: dice.chance(400),
            concurrency: *dice.pick(&[1, 2, 16]),
            // With few of them, much ends in its last one.
            max_attempts: *dice.pick(&[1, 2, 5, 5]),
        }
    }

    const fn policy(&self) -> Policy {
        Policy {
            lease: Duration::from_secs(5),
            max_attempts: self.max_attempts,
            convergence_timeout: Duration::from_mins(15),
            concurrency: self.concurrency,
            poll_interval: Duration::from_secs(30),
            effect_timeout: EFFECT_TIMEOUT,
        }
    }
}

/// Runs one seed to its end.
///
/// # Panics
/// When the operating system gives no runtime.
pub fn run(seed: u64, traced: bool) -> Report {
    let dice = Dice::new(seed);
    let source = dice.fork();
    let _owned = randomness::own(move || source.next());
    remember_panics();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let rules = runtime.block_on(whole(dice, traced));
    drop(runtime);
    let mut broken = rules.take_broken();
    broken.extend(take_panics());
    Report {
        broken,
        hash: rules.hash(),
        trace: rules.take_trace(),
    }
}

async fn whole(dice: Dice, traced: bool) -> Rules {
    let profile = Profile::of(&dice);
    let memory = MemoryStore::default();
    let manner = profile.manner;
    let rules = Rules::new(memory.clone(), manner.order, manner.exclusive, profile.jumps, traced);
    rules.step(|| format!("{profile:?}"));
    let store = FaultyStore::around(memory.clone(), dice.fork(), rules.clone(), profile.store_rate);
    let compute = ChaosCompute::new(manner, dice.fork(), rules.clone());
    let scene = Scene::set_up(dice.fork(), rules.clone(), memory, store, compute, profile.agents).await;
    let scene = Arc::new(scene);
    let end = CancellationToken::new();
    let workers: Vec<_> = (0..profile.workers)
        .map(|_| tokio::spawn(lives(Arc::clone(&scene), profile.policy(), dice.fork(), end.clone())))
        .collect();
    let callers: Vec<_> = (0..profile.callers)
        .map(|_| tokio::spawn(calls(Arc::clone(&scene), dice.fork(), profile.acts)))
        .collect();
    let weather = tokio::spawn(weather(Arc::clone(&scene), dice.fork(), profile.jumps, profile.denials));
    for caller in callers {
        let _ = caller.await;
    }
    dice.calm_down();
    let _ = weather.await;
    scene.iam.relent();
    scene.iam.set_away(false);
    rest::comes(&scene).await;
    rest::serves(&scene).await;
    rest::settles(&scene, &dice).await;
    end.cancel();
    for worker in workers {
        let _ = worker.await;
    }
    rules
}

/// A worker that is killed, or told to end, and started again, until it is calm.
async fn lives(scene: Arc<Scene>, policy: Policy, dice: Dice, end: CancellationToken) {
    loop {
        let worker = Worker::new(Arc::clone(&scene.store) as _, Arc::clone(&scene.drivers), policy)
            .with_clock(Arc::new(scene.memory.clone()));
        let shutdown = end.child_token();
        let mut running = tokio::spawn(worker.run(shutdown.clone()));
        let life = dice.up_to(Duration::from_mins(1));
        let over = if dice.is_calm() {
            let _ = (&mut running).await;
            true
        } else {
            tokio::time::timeout(life, &mut running).await.is_ok()
        };
        if over || end.is_cancelled() {
            return;
        }
        if dice.is_calm() {
            let _ = running.await;
            return;
        }
        if dice.chance(500) {
            scene.rules.step(|| "a worker is killed".to_owned());
            running.abort();
        } else {
            scene.rules.step(|| "a worker is told to end".to_owned());
            shutdown.cancel();
        }
        let _ = running.await;
        tokio::time::sleep(dice.up_to(Duration::from_secs(10))).await;
    }
}

async fn calls(scene: Arc<Scene>, dice: Dice, acts: u64) {
    for _ in 0..acts {
        tokio::time::sleep(dice.up_to(Duration::from_secs(12))).await;
        scene.act(&dice).await;
    }
}

/// What changes around the control plane: its policy, and the clock of its database.
async fn weather(scene: Arc<Scene>, dice: Dice, jumps: bool, denials: bool) {
    while !dice.is_calm() {
        tokio::time::sleep(dice.up_to(Duration::from_secs(30))).await;
        if jumps && dice.strikes(300) {
            let hour = 3_600_000;
            let by = i64::try_from(dice.below(2 * hour)).unwrap_or(0) - i64::try_from(hour).unwrap_or(0);
            scene.rules.step(|| format!("the database's clock jumps by {by} ms"));
            scene.memory.skip(by);
        }
        if !denials {
            continue;
        }
        match dice.below(6) {
            0 => scene
                .iam
                .deny(&scene.admin.principal, Action::Deploy, ResourceKind::Agent),
            1 => {
                let principal = &dice.pick(&scene.agents).service_principal_id;
                scene.iam.deny(principal, Action::Operate, ResourceKind::Secret);
            }
            2 => scene.iam.set_away(true),
            _ => {
                scene.iam.relent();
                scene.iam.set_away(false);
            }
        }
    }
}
