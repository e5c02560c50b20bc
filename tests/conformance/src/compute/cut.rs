//! Calls that do not get to their end.

use std::{future::poll_fn, pin::pin, task::Poll};

use tokio_util::sync::CancellationToken;

/// Lets the call be polled so often, then drops it, as the engine does when the lease lapses. `true` when it came to its end.
pub(super) async fn dropped_after<F: Future>(polls: usize, call: F) -> bool {
    let mut call = pin!(call);
    let mut polled = 0;
    poll_fn(|cx| {
        if call.as_mut().poll(cx).is_ready() {
            return Poll::Ready(true);
        }
        polled += 1;
        if polled >= polls {
            Poll::Ready(false)
        } else {
            Poll::Pending
        }
    })
    .await
}

/// Cancels the call after it was polled so often, and waits for its end. `true` when it was over before.
pub(super) async fn cancelled_after<F: Future>(polls: usize, token: &CancellationToken, call: F) -> bool {
    let mut call = pin!(call);
    let mut polled = 0;
    poll_fn(|cx| {
        if call.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        polled += 1;
        if polled == polls {
            token.cancel();
            // A call that looks at its cancellation sees it now; one that does not goes on.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
    !token.is_cancelled()
}
