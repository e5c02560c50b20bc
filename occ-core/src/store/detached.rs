//! Writes that go on when their caller goes away.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;
use tracing::Instrument as _;

/// Runs a write to its end although its caller may be gone: cut off, it would cost the connection, and what was committed just before would
/// wake nobody. It runs where its caller does, so that nobody has to be woken for it, and moves out only when it is dropped.
pub(super) fn detached<T: Send + 'static>(
    write: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = T> + Send {
    Detached(Some(Box::pin(write.in_current_span())))
}

struct Detached<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Future for Detached<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(write) = &mut self.0 else {
            return Poll::Pending;
        };
        let polled = write.as_mut().poll(cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Detached<T> {
    fn drop(&mut self) {
        if let (Some(write), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(write);
        }
    }
}
