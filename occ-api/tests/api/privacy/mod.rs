//! What callers can find out about what is not theirs, over random grants and random requests: nothing.
//!
//! A seed is a whole world: two Namespaces with the same kinds of resources, callers with grants, requests. `OCC_PRIVACY_SEED` runs
//! one seed, `OCC_PRIVACY_SEEDS` so many of them.

mod calls;
mod model;
mod scene;

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};

use calls::{CALLS, COLLECTIONS, REFERENCES};
use model::{Grant, KINDS, Kind, permissions};
use scene::{CallerPlan, Plan, Scene};

/// Worlds of a run.
const SEEDS: u64 = 32;

fn grant() -> impl Strategy<Value = Grant> {
    let all = permissions();
    let most = all.len();
    let permissions = prop_oneof![
        3 => prop::sample::subsequence(all.clone(), 1..6),
        1 => prop::sample::subsequence(all, most / 2..most),
    ];
    let scope = prop_oneof![1 => Just(None), 4 => (0..2_usize).prop_map(Some)];
    let exact = prop::option::weighted(0.4, prop::sample::select(&KINDS[..]));
    (scope, exact, permissions).prop_map(|(scope, exact, permissions)| Grant {
        // What is exact is confined to its Namespace, as the API confines it.
        exact: exact.filter(|_| scope.is_some()),
        scope,
        permissions,
    })
}

fn caller() -> impl Strategy<Value = CallerPlan> {
    let opens = prop::option::weighted(0.25, 0..2_usize);
    (prop::collection::vec(grant(), 0..4), opens).prop_map(|(grants, opens)| CallerPlan { grants, opens })
}

fn plan() -> impl Strategy<Value = Plan> {
    let step = (
        0..3_usize,
        0..CALLS.len() + COLLECTIONS.len() + REFERENCES.len(),
        0..2_usize,
    );
    (prop::collection::vec(caller(), 3), prop::collection::vec(step, 8..24))
        .prop_map(|(callers, steps)| Plan { callers, steps })
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number in the environment"))
}

fn one(seed: u64) -> Result<(), String> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: 1,
        failure_persistence: None,
        // Each try is a world of its own.
        max_shrink_iters: 64,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let outcome = runner.run(&plan(), |plan| {
        runtime.block_on(async {
            let scene = Scene::of(&plan.callers).await;
            for step in &plan.steps {
                scene.play(*step).await.map_err(TestCaseError::fail)?;
            }
            scene.versions_are_as_they_were().await.map_err(TestCaseError::fail)?;
            Ok(())
        })
    });
    outcome.map_err(|failure| format!("OCC_PRIVACY_SEED={seed} plays it again: {failure}"))
}

/// Of a caller without a permission, the answers are the same whether a thing exists or not: status, headers and body. Of every
/// caller they are the same whether a thing is another Namespace's or nobody's. No answer holds anything of another Namespace,
/// lists hold exactly what the caller may read, and who is refused is whom the policy refuses. Whatever was asked, no version changed.
#[test]
fn nobody_learns_of_what_is_not_theirs() {
    if let Some(seed) = number("OCC_PRIVACY_SEED") {
        return one(seed).unwrap_or_else(|failure| panic!("{failure}"));
    }
    for seed in 0..number("OCC_PRIVACY_SEEDS").unwrap_or(SEEDS) {
        one(seed).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn every_kind_and_every_permission_is_played() {
    for kind in KINDS {
        assert!(CALLS.iter().any(|call| call.kind == kind), "{kind:?}");
    }
    let needed = CALLS.iter().flat_map(|call| call.needs);
    for need in needed {
        assert!(permissions().contains(&(need.action, need.kind.resource())), "{need:?}");
    }
    assert!(KINDS.contains(&Kind::Revision));
}
