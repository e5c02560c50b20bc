//! The heartbeat of a claim: effects run only while the lease is known to hold.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    store::Store,
    work::{ClaimToken, Lease},
};

/// Renews a claim every third of its lease, and cancels the pass when the lease may have lapsed.
///
/// The local deadline counts from when the last confirmed renewal was *sent*, so it never lies after the database's own.
pub(super) struct Heartbeat {
    task: JoinHandle<()>,
    /// Fires when no effect may be caused and nothing may be published any more.
    pub lapsed: CancellationToken,
    confirmed: watch::Receiver<Instant>,
    duration: Duration,
}

impl Heartbeat {
    /// Starts at a claim that was made when `claimed` was sent. `shutdown` cancels it as well.
    pub(super) fn start(
        store: Arc<dyn Store>,
        token: ClaimToken,
        lease: Lease,
        claimed: Instant,
        shutdown: &CancellationToken,
    ) -> Self {
        let lapsed = shutdown.child_token();
        let cancel = lapsed.clone();
        let (renewed, confirmed) = watch::channel(claimed);
        let duration = lease.duration;
        let task = tokio::spawn(async move {
            let mut confirmed = claimed;
            let third = lease.duration / 3;
            loop {
                let next = (confirmed + third).max(Instant::now() + MIN_PAUSE);
                if cancel
                    .run_until_cancelled(tokio::time::sleep_until(next))
                    .await
                    .is_none()
                {
                    return;
                }
                let sent = Instant::now();
                let deadline = confirmed + lease.duration;
                match tokio::time::timeout_at(deadline, store.renew(token, lease)).await {
                    Ok(Ok(true)) => {
                        confirmed = sent;
                        renewed.send_replace(sent);
                    }
                    // The store may come back before the lease ends; a claim that is gone does not.
                    Ok(Err(_)) if Instant::now() < deadline => {}
                    Ok(_) | Err(_) => {
                        cancel.cancel();
                        return;
                    }
                }
            }
        });
        Self {
            task,
            lapsed,
            confirmed,
            duration,
        }
    }

    /// Whether the lease can still be held, also by a pass that was told to end.
    pub(super) fn renewed(&self) -> bool {
        Instant::now() < *self.confirmed.borrow() + self.duration
    }

    /// Whether an effect may begin now. A process that was suspended finds out here, before its timers do.
    pub(super) fn holds(&self) -> bool {
        !self.lapsed.is_cancelled() && self.renewed()
    }
}

/// Keeps a failing store from being asked without pause.
const MIN_PAUSE: Duration = Duration::from_millis(20);

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}
