//! Retention: what is over and old is removed by policy (docs/adr/0011). Dry run first: [`Retention::due`], then
//! [`Retention::apply`].
//!
//! On `PostgreSQL` the store must be opened as the owner of the schema; the application's role may remove nothing.

use std::time::Duration;

use serde::Serialize;

use crate::{
    audit::AuditEvent,
    driver::ResourceRef,
    resource::PrincipalId,
    store::{Change, CommitError, Store, StoreError, StoreResult},
};

/// How many rows one transaction removes, and how long the next one waits for those who were kept waiting.
const BATCH: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// How long what is over is kept. What is not named is kept for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Finished work that nothing reads any more: maintenance, stops, and removals that were done.
    pub work: Option<Duration>,
    /// Sealed records of the audit.
    pub audit: Option<Duration>,
}

/// What is due to be removed, or was; `None` for what is kept for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Pruned {
    /// Pieces of work.
    pub work: Option<u64>,
    /// Records of the audit.
    pub audit: Option<u64>,
}

/// Why nothing more was removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PruneError {
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It could not be recorded, so that it was not begun.
    #[error("the pruning could not be recorded: {0}")]
    Unrecorded(#[from] CommitError),
}

impl Retention {
    /// What would go. Changes nothing.
    pub async fn due(&self, store: &dyn Store) -> StoreResult<Pruned> {
        let mut due = Pruned::default();
        if let Some(age) = self.work {
            due.work = Some(store.prunable_work(age).await?);
        }
        if let Some(age) = self.audit {
            due.audit = Some(store.prunable_audit(age).await?);
        }
        Ok(due)
    }

    /// Removes it, in short transactions: workers and the API go on beside it. Each sort is recorded in the audit before it goes.
    pub async fn apply(&self, store: &dyn Store, actor: &PrincipalId) -> Result<Pruned, PruneError> {
        let due = self.due(store).await?;
        let mut done = Pruned::default();
        if let (Some(age), Some(count)) = (self.work, due.work) {
            if count > 0 {
                record(store, actor, "openclaw.work.prune", age, count).await?;
            }
            let mut removed = 0;
            loop {
                let batch = store.prune_work(age, BATCH).await?;
                removed += batch;
                if batch < u64::from(BATCH) {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
            done.work = Some(removed);
        }
        if let (Some(age), Some(count)) = (self.audit, due.audit) {
            if count > 0 {
                record(store, actor, "openclaw.audit.prune", age, count).await?;
            }
            let mut removed = 0;
            loop {
                let batch = store.prune_audit(age, BATCH).await?;
                removed += batch;
                if batch < u64::from(BATCH) {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
            done.audit = Some(removed);
        }
        Ok(done)
    }
}

async fn record(
    store: &dyn Store,
    actor: &PrincipalId,
    action: &str,
    age: Duration,
    count: u64,
) -> Result<(), PruneError> {
    let Some(installation) = store.installation().await? else {
        return Ok(());
    };
    let event = AuditEvent::mutation(actor.clone(), action, ResourceRef::installation(installation.id))
        .with("olderThanSeconds", age.as_secs())
        .with("dueCount", count);
    Ok(store.commit(Change::new().audit(event)).await?)
}
