//! News of deployments, for readers that wait.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::ControlPlane;
use crate::store::Store;

/// A reader looks no more often, however much moves.
const AT_MOST_EVERY: Duration = Duration::from_millis(250);
/// A reader looks again after so long although nothing was heard: while the store hears what every process does, and otherwise.
const AT_LEAST_EVERY: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(2));

/// What a reader waits with between two looks at a deployment.
pub struct News {
    store: Arc<dyn Store>,
    moved: watch::Receiver<()>,
    looked: Instant,
}

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("News").finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// News from now on: make them before the first look.
    pub fn news(&self) -> News {
        News {
            store: Arc::clone(&self.store),
            moved: self.store.movements(),
            looked: Instant::now(),
        }
    }
}

impl News {
    /// Resolves when some deployment may have moved since the last time.
    pub async fn wait(&mut self) {
        let (hearing, deaf) = AT_LEAST_EVERY;
        let quiet = if self.store.hears() { hearing } else { deaf };
        tokio::select! {
            Ok(()) = self.moved.changed() => {}
            () = sleep_until(self.looked + quiet) => {}
        }
        sleep_until(self.looked + AT_MOST_EVERY).await;
        // What moved until now is seen by the look that follows.
        self.moved.mark_unchanged();
        self.looked = Instant::now();
    }
}
