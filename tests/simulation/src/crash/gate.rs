//! Where a worker can die: before and after everything that it asks of its store and of its drivers.

use std::{
    future::Future,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

type Deed = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct Inner {
    passed: u64,
    dies_at: Option<u64>,
    deed: Option<(u64, Deed)>,
}

/// Counts the points that a worker passes; at one of them it dies, at one of them something happens beside it.
#[derive(Default)]
pub struct Gate {
    inner: Mutex<Inner>,
    died: CancellationToken,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Gate {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker dies at the `point`-th point, counted from 1.
    pub fn dies_at(&self, point: u64) {
        self.inner().dies_at = Some(point);
    }

    /// This happens, to its end, at the `point`-th point.
    pub fn meanwhile(&self, point: u64, deed: impl Future<Output = ()> + Send + 'static) {
        self.inner().deed = Some((point, Box::pin(deed)));
    }

    /// Counts from here; nothing that was counted so far counts.
    pub fn begin(&self) {
        self.inner().passed = 0;
    }

    /// How many points were passed.
    pub fn passed(&self) -> u64 {
        self.inner().passed
    }

    /// Fires when the worker is to die.
    pub fn died(&self) -> &CancellationToken {
        &self.died
    }

    /// A point. Does not return to a worker that dies here.
    pub async fn point(&self) {
        let (deed, dies) = {
            let mut inner = self.inner();
            inner.passed += 1;
            let here = inner.passed;
            let deed = inner.deed.take_if(|(at, _)| *at == here).map(|(_, deed)| deed);
            (deed, inner.dies_at == Some(here))
        };
        if let Some(deed) = deed {
            deed.await;
        }
        if dies {
            self.died.cancel();
            std::future::pending::<()>().await;
        }
    }
}
