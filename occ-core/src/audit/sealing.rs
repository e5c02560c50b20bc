//! Seals the audit in the background, behind the commits.

use std::{sync::Arc, time::Duration};

use crate::store::Store;

/// How many records are sealed at once.
pub(crate) const BATCH: u32 = 500;
/// How often a sealer looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Seals what is recorded, until it is dropped. Several may run over one store: they take turns.
pub async fn keep_sealing(store: Arc<dyn Store>) {
    loop {
        match store.seal_audit(BATCH).await {
            Ok(BATCH) => {}
            Ok(_) => tokio::time::sleep(INTERVAL).await,
            Err(error) => {
                tracing::warn!(%error, "the audit could not be sealed; it is tried again");
                tokio::time::sleep(INTERVAL * 10).await;
            }
        }
    }
}
