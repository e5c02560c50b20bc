//! The numbers.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Everything that one run measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Of this form; grows when a reader must change.
    pub version: u32,
    /// Whether it was the quick run, whose numbers mean little.
    pub quick: bool,
    /// Whether the program was built with optimisation.
    pub optimised: bool,
    /// Processors that the run could use.
    pub processors: usize,
    /// One for each store.
    pub stores: Vec<StoreReport>,
    /// Queues of others, where they were asked for.
    pub rivals: Vec<Rival>,
    /// `PostgreSQL` with finished revisions, where that was asked for.
    pub history: Vec<History>,
    /// `PostgreSQL` with revisions that wait, where that was asked for.
    pub pending: Option<Pending>,
}

/// What deployments cost when there is a history of finished ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Finished revisions with their work, spread over the Agents that are measured.
    pub revisions: usize,
    /// Deployments at full speed.
    pub deployments_per_second: f64,
    /// From the caller's 202 to the claim.
    pub claim_latency: Latency,
    /// What an idle worker asks a second.
    pub idle_queries_per_second: f64,
    /// The most memory that this process, with worker and callers, had resident meanwhile; in bytes.
    pub peak_memory: u64,
}

/// What revisions cost that wait for their Compute.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// Whether their Compute hears of changes by itself.
    pub watched: bool,
    /// How many wait, each on a lane of its own.
    pub revisions: usize,
    /// How often one of them was looked at, a second.
    pub passes_per_second: f64,
    /// The processor time of this process, in which the worker is; 1 is one core.
    pub processor: f64,
    /// The same of the database server.
    pub server_processor: f64,
    /// Of a new deployment among them, from the caller's 202 to the claim.
    pub claim_latency: Latency,
}

/// A queue of others on the same server. A chain is as many jobs as a deployment has durable steps, each enqueued by the one before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rival {
    /// Its package.
    pub name: String,
    /// Chains a second, from the first job to the last.
    pub chains_per_second: f64,
    /// From the caller's answer to the start of the job, on an idle worker: half are not slower, in milliseconds.
    pub p50_ms: f64,
    /// Of a hundred, 99 are not slower.
    pub p99_ms: f64,
    /// Transactions a second of a worker without work.
    pub idle_transactions_per_second: f64,
}

/// A store to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// SQLite in a file, with a write-ahead log and `synchronous = FULL`: the embedded default.
    SqliteFile,
    /// SQLite in memory: what is left when no disk is waited for.
    SqliteMemory,
    /// `PostgreSQL` with its defaults, on this machine.
    Postgres,
}

impl StoreKind {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::SqliteFile, Self::SqliteMemory, Self::Postgres];

    /// Its name in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SqliteFile => "SQLite file",
            Self::SqliteMemory => "SQLite memory",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// What was measured on one store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreReport {
    /// Which.
    pub store: StoreKind,
    /// What the disk allows.
    pub floor: Floor,
    /// Admissions by one caller, then by several.
    pub admissions: Vec<Admissions>,
    /// Answers of the HTTP API to one client.
    pub answers: Answers,
    /// Deployments at full speed.
    pub deployments: Deployments,
    /// From the moment at which the caller had its 202 to the moment at which an idle worker had the claim.
    pub claim_latency: Latency,
    /// What an idle worker asks.
    pub idle: Idle,
    /// Time per deployment as deployments add up.
    pub growth: Growth,
}

/// The physical floor: transactions of one inserted row each, in a database of the same kind in the same place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Floor {
    /// Before the rest was measured.
    pub commits_per_second_before: f64,
    /// After the rest was measured: a machine that is busy with something else shows here.
    pub commits_per_second_after: f64,
}

/// Transactions by the method of the store that makes them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transactions {
    /// Write transactions per operation.
    pub writes_each: f64,
    /// Reads per operation.
    pub reads_each: f64,
    /// How often each method was called, in all.
    pub calls: BTreeMap<&'static str, u64>,
}

/// Deployments that were admitted and not yet driven.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Admissions {
    /// Callers at once.
    pub callers: usize,
    /// Admissions in all.
    pub count: usize,
    /// Admissions a second, of all callers together.
    pub per_second: f64,
    /// What each cost.
    pub transactions: Transactions,
    /// The same rows written by one statement each, as often and by as many callers, in the same database: a second. Only where
    /// one statement can.
    pub by_hand_per_second: Option<f64>,
    /// Which part of that rate the admissions reach.
    pub of_by_hand: Option<f64>,
}

/// From the request to the whole answer, over HTTP on the loopback interface.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answers {
    /// Of an Agent that is read.
    pub read: Latency,
    /// Of a deployment that is admitted.
    pub deploy: Latency,
}

/// Milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// How many were taken.
    pub samples: usize,
    /// Half are not slower.
    pub p50_ms: f64,
    /// Of a hundred, 99 are not slower.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

/// Deployments from the first admission to the last success.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployments {
    /// Lanes that the worker drives at once.
    pub lanes: usize,
    /// Deployments in all.
    pub count: usize,
    /// Deployments a second.
    pub per_second: f64,
    /// What each cost, its admission among it.
    pub transactions: Transactions,
}

/// What a worker without work asks its store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Idle {
    /// How long it was watched.
    pub seconds: f64,
    /// What it asked.
    pub queries: u64,
    /// The same a second.
    pub queries_per_second: f64,
    /// By method.
    pub calls: BTreeMap<&'static str, u64>,
}

/// Deployments of many Agents one after the other, in equal buckets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Growth {
    /// Agents.
    pub agents: usize,
    /// Deployments in one bucket.
    pub bucket: usize,
    /// Milliseconds per deployment, bucket by bucket.
    pub ms_each: Vec<f64>,
    /// Write transactions per deployment, bucket by bucket: these do not depend on the machine.
    pub writes_each: Vec<f64>,
    /// Reads per deployment, bucket by bucket.
    pub reads_each: Vec<f64>,
}
