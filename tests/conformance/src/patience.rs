//! Waiting for a condition.

use std::time::{Duration, Instant};

/// How long something may take that happens at all: a bound for a busy machine, not an expectation.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);
const PAUSE: Duration = Duration::from_millis(30);

/// Asks until there is an answer.
pub(crate) async fn until<T>(what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// The call's answer. A call must end, whatever became of what it is about.
pub(crate) async fn bounded<T>(what: &str, call: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(PATIENCE, call).await;
    answer.unwrap_or_else(|_| panic!("{what}: no answer within {PATIENCE:?}"))
}
