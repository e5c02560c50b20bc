//! Places for callers that wait: each costs a read now and then, so there are only so many.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places, shared by every handler.
#[derive(Debug, Clone)]
pub(crate) struct Listeners(Arc<Semaphore>);

/// A place; free again when it is dropped.
pub(crate) type Place = OwnedSemaphorePermit;

impl Listeners {
    /// So many.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// A place, if one is free now.
    pub(crate) fn place(&self) -> Option<Place> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }
}
