//! The measurements, each over a scene.

use std::{sync::Arc, time::Duration};

use occ_core::work::Policy;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    Admissions, Deployments, Error, Growth, Idle, Latency, Sizes, Transactions, by_hand,
    observer::{Calls, writes_and_reads},
    scene::Scene,
};

/// Buckets that growth is looked for in.
const BUCKETS: usize = 10;
/// A worker that has not written for so long has nothing to do.
const QUIET: Duration = Duration::from_secs(1);
/// How long a worker may take to get there.
const PATIENCE: Duration = Duration::from_mins(2);

#[allow(clippy::cast_precision_loss, reason = "a run counts far below 2^52")]
pub(crate) fn each(total: u64, count: usize) -> f64 {
    total as f64 / count.max(1) as f64
}

pub(crate) fn per_second(count: usize, took: Duration) -> f64 {
    each(count as u64, 1) / took.as_secs_f64().max(f64::EPSILON)
}

fn ms_each(took: Duration, count: usize) -> f64 {
    took.as_secs_f64() * 1000.0 / each(count as u64, 1)
}

fn transactions(calls: Calls, count: usize) -> Transactions {
    let (writes, reads) = writes_and_reads(&calls);
    Transactions {
        writes_each: each(writes, count),
        reads_each: each(reads, count),
        calls,
    }
}

/// Admissions that nobody drives, by so many callers at once.
pub(crate) async fn admissions(scene: &Arc<Scene>, count: usize, callers: usize) -> Result<Admissions, Error> {
    // The first deployment of an Agent makes its credentials as well.
    for agent in &scene.agents {
        scene.admit(*agent).await?;
    }
    scene.observer.take_calls();
    let begun = Instant::now();
    admit(scene, count, callers).await?;
    let took = begun.elapsed();
    let calls = scene.observer.take_calls();
    scene.forget();
    let per_second = per_second(count, took);
    let by_hand_per_second = match &scene.url {
        Some(url) => Some(by_hand::per_second(url, &scene.agents, count, callers).await?),
        None => None,
    };
    Ok(Admissions {
        callers,
        count,
        per_second,
        transactions: transactions(calls, count),
        by_hand_per_second,
        of_by_hand: by_hand_per_second.map(|by_hand| per_second / by_hand),
    })
}

/// Admits so many deployments, by so many callers at once.
pub(crate) async fn admit(scene: &Arc<Scene>, count: usize, callers: usize) -> Result<(), Error> {
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let scene = Arc::clone(scene);
        tasks.spawn(async move {
            // Callers do not meet at one Agent, as users do not.
            for number in (caller..count).step_by(callers) {
                scene.admit(scene.agent(number)).await?;
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|_| Error::Stuck)??;
    }
    Ok(())
}

/// Deployments that are admitted all at once, while the worker drives them.
pub(crate) async fn deployments(scene: &Arc<Scene>, count: usize, callers: usize) -> Result<Deployments, Error> {
    let worker = scene.work();
    // Every Agent has run once before, so that each deployment replaces another.
    for agent in &scene.agents {
        scene.admit(*agent).await?;
    }
    scene.until_succeeded(scene.agents.len() as u64).await?;
    let before = scene.succeeded();
    scene.observer.take_calls();
    let begun = Instant::now();
    admit(scene, count, callers).await?;
    scene.until_succeeded(before + count as u64).await?;
    let took = begun.elapsed();
    let calls = scene.observer.take_calls();
    worker.shutdown().await;
    scene.forget();
    Ok(Deployments {
        lanes: Policy::default().concurrency,
        count,
        per_second: per_second(count, took),
        transactions: transactions(calls, count),
    })
}

/// Deployments that meet an idle worker.
pub(crate) async fn claim_latency(scene: &Scene, samples: usize) -> Result<Latency, Error> {
    let worker = scene.work();
    until_idle(scene).await?;
    let mut taken = Vec::with_capacity(samples);
    for number in 0..samples {
        let before = scene.succeeded();
        let revision = scene.admit(scene.agent(number)).await?;
        let answered = Instant::now();
        scene.until_succeeded(before + 1).await?;
        let claimed = scene.observer.claimed_at(revision).ok_or(Error::Stuck)?;
        // The worker may have the claim before the caller has its answer.
        taken.push(claimed.saturating_duration_since(answered));
    }
    worker.shutdown().await;
    scene.forget();
    Ok(latency(taken))
}

/// What these samples say.
pub(crate) fn latency(mut taken: Vec<Duration>) -> Latency {
    taken.sort_unstable();
    let samples = taken.len();
    let ms = |at: usize| taken.get(at).map_or(0.0, |taken| taken.as_secs_f64() * 1000.0);
    Latency {
        samples,
        p50_ms: ms(rank(samples, 50)),
        p99_ms: ms(rank(samples, 99)),
        max_ms: ms(samples.saturating_sub(1)),
    }
}

/// Where the percentile lies among so many sorted samples (nearest rank).
fn rank(samples: usize, percentile: usize) -> usize {
    (samples * percentile).div_ceil(100).saturating_sub(1)
}

/// A worker that has nothing to do.
pub(crate) async fn idle(scene: &Scene, watched: Duration) -> Result<Idle, Error> {
    let worker = scene.work();
    until_idle(scene).await?;
    let begun = Instant::now();
    tokio::time::sleep(watched).await;
    let calls = scene.observer.take_calls();
    let seconds = begun.elapsed().as_secs_f64();
    worker.shutdown().await;
    let queries = calls.values().sum();
    Ok(Idle {
        seconds,
        queries,
        queries_per_second: each(queries, 1) / seconds,
        calls,
    })
}

/// A worker that starts looks after every selected version once. Waits until it has not written for a while.
async fn until_idle(scene: &Scene) -> Result<(), Error> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        scene.observer.take_calls();
        tokio::time::sleep(QUIET).await;
        let (writes, _) = writes_and_reads(&scene.observer.take_calls());
        if writes == 0 {
            return Ok(());
        }
    }
    Err(Error::Stuck)
}

/// Every Agent deployed so often, one deployment after the other.
pub(crate) async fn growth(scene: &Scene, sizes: &Sizes) -> Result<Growth, Error> {
    let worker = scene.work();
    let bucket = (scene.agents.len() * sizes.rounds).div_ceil(BUCKETS);
    let mut growth = Growth {
        agents: scene.agents.len(),
        bucket,
        ms_each: Vec::with_capacity(BUCKETS),
        writes_each: Vec::with_capacity(BUCKETS),
        reads_each: Vec::with_capacity(BUCKETS),
    };
    for number in 0..BUCKETS {
        scene.observer.take_calls();
        let begun = Instant::now();
        for deployment in number * bucket..(number + 1) * bucket {
            let before = scene.succeeded();
            scene.admit(scene.agent(deployment)).await?;
            scene.until_succeeded(before + 1).await?;
        }
        growth.ms_each.push(ms_each(begun.elapsed(), bucket));
        let (writes, reads) = writes_and_reads(&scene.observer.take_calls());
        growth.writes_each.push(each(writes, bucket));
        growth.reads_each.push(each(reads, bucket));
        scene.forget();
    }
    worker.shutdown().await;
    Ok(growth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_samples() {
        assert_eq!((rank(1, 50), rank(1, 99)), (0, 0));
        assert_eq!((rank(100, 50), rank(100, 99)), (49, 98));
        assert_eq!((rank(20, 50), rank(20, 99)), (9, 19));
        assert_eq!(rank(0, 50), 0);
    }

    #[test]
    fn rates_of_nothing_are_numbers() {
        assert!(per_second(1, Duration::ZERO).is_finite());
        assert!(ms_each(Duration::ZERO, 1).is_finite());
        assert!((each(3, 2) - 1.5).abs() < f64::EPSILON);
    }
}
