//! Seals the audit in the background, behind the commits.

use std::{sync::Arc, time::Duration};

use crate::store::Store;

/// How many records are sealed at once.
pub(crate) const BATCH: u32 = 500;
/// How soon a sealer looks again after it sealed something.
const BUSY: Duration = Duration::from_secs(1);
/// How long it waits at most while nothing is recorded: an idle control plane asks its database for hardly anything.
const IDLE: Duration = Duration::from_secs(16);

/// Seals what is recorded, until it is dropped. Several may run over one store: they take turns.
pub async fn keep_sealing(store: Arc<dyn Store>) {
    let mut pause = BUSY;
    loop {
        match store.seal_audit(BATCH).await {
            Ok(BATCH) => continue,
            Ok(0) => pause = (pause * 2).min(IDLE),
            Ok(_) => pause = BUSY,
            Err(error) => {
                tracing::warn!(%error, "the audit could not be sealed; it is tried again");
                pause = IDLE;
            }
        }
        tokio::time::sleep(pause).await;
    }
}
