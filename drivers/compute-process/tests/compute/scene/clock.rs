//! The machine's clock, which a test can put forward.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use occ_core::time::{self, SystemClock, Timestamp};

#[derive(Debug, Default)]
pub struct Clock {
    ahead_ms: AtomicU64,
}

impl Clock {
    /// Lets time pass without waiting for it.
    pub fn advance(&self, time: Duration) {
        self.ahead_ms
            .fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl time::Clock for Clock {
    fn now(&self) -> Timestamp {
        SystemClock
            .now()
            .plus(Duration::from_millis(self.ahead_ms.load(Ordering::SeqCst)))
    }
}
