//! What every rival does (see `measure.mjs`): chains of durable steps at full speed, then single jobs that meet an idle worker,
//! then nothing.
//!
//! The plan comes as JSON in the first argument, DATABASE_URL from the environment; one JSON object is printed.

use std::{
    env,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use awa::{Client, InsertOpts, JobArgs, JobResult, QueueConfig, insert_with, migrations};
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
    time::sleep,
};

const QUEUE: &str = "steps";

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Plan {
    chains: usize,
    steps: usize,
    callers: usize,
    concurrency: u32,
    samples: usize,
    idle_seconds: u64,
}

#[derive(Serialize, Deserialize, JobArgs)]
struct Step {
    /// The step of its chain; 0 for a job that only says when it arrived.
    step: usize,
}

async fn add(pool: &PgPool, step: usize) -> Result<(), awa::AwaError> {
    let options = InsertOpts {
        queue: QUEUE.to_owned(),
        ..InsertOpts::default()
    };
    insert_with(pool, &Step { step }, options).await.map(drop)
}

async fn committed(pool: &PgPool) -> Result<f64, sqlx::Error> {
    sqlx::query("SELECT pg_stat_clear_snapshot()").execute(pool).await?;
    sqlx::query_scalar("SELECT xact_commit::float8 FROM pg_stat_database WHERE datname = current_database()")
        .fetch_one(pool)
        .await
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let plan: Plan = serde_json::from_str(&env::args().nth(1).ok_or("no plan")?)?;
    let url = env::var("DATABASE_URL")?;
    let connections = plan.concurrency + u32::try_from(plan.callers)? + 8;
    let pool = PgPoolOptions::new().max_connections(connections).connect(&url).await?;
    migrations::run(&pool).await?;

    let left = Arc::new(AtomicUsize::new(plan.chains));
    let all = Arc::new(Notify::new());
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let worker = {
        let (pool, left, all, steps) = (pool.clone(), Arc::clone(&left), Arc::clone(&all), plan.steps);
        move |args: Step, _: &awa::JobContext| {
            let (pool, left, all, arrived) = (pool.clone(), Arc::clone(&left), Arc::clone(&all), arrived.clone());
            async move {
                match args.step {
                    0 => {
                        let _ = arrived.send(Instant::now());
                    }
                    step if step < steps => add(&pool, step + 1).await.map_err(awa::JobError::retryable)?,
                    _ => {
                        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                            all.notify_one();
                        }
                    }
                }
                Ok(JobResult::Completed)
            }
        }
    };
    let client = Client::builder(pool.clone())
        .queue(
            QUEUE,
            QueueConfig {
                max_workers: plan.concurrency,
                ..QueueConfig::default()
            },
        )
        .register::<Step, _, _>(worker)
        .build()?;
    client.start().await?;

    let begun = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..plan.callers {
        let (pool, next, chains) = (pool.clone(), Arc::clone(&next), plan.chains);
        callers.spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < chains {
                add(&pool, 1).await?;
            }
            Ok::<_, awa::AwaError>(())
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    all.notified().await;
    let seconds = begun.elapsed().as_secs_f64();

    let mut taken = Vec::with_capacity(plan.samples);
    for _ in 0..plan.samples {
        add(&pool, 0).await?;
        let answered = Instant::now();
        let claimed = arrivals.recv().await.ok_or("the worker ended")?;
        taken.push(claimed.saturating_duration_since(answered).as_secs_f64() * 1000.0);
    }
    taken.sort_by(f64::total_cmp);

    sleep(Duration::from_secs(2)).await;
    let before = committed(&pool).await?;
    sleep(Duration::from_secs(plan.idle_seconds)).await;
    let idle = (committed(&pool).await? - before - 1.0) / plan.idle_seconds as f64;
    client.shutdown(Duration::from_secs(5)).await;

    println!(
        "{}",
        serde_json::json!({
            "name": "awa",
            "chainsPerSecond": plan.chains as f64 / seconds,
            "p50Ms": percentile(&taken, 50),
            "p99Ms": percentile(&taken, 99),
            "idleTransactionsPerSecond": idle.max(0.0),
        })
    );
    Ok(())
}
