//! Waiting for what happens by itself: a condition, and a bound that only a fault reaches.

use std::{
    thread,
    time::{Duration, Instant},
};

/// For what takes a moment on a quiet machine.
pub const BOUND: Duration = Duration::from_mins(1);

/// What `look` found, once it found something.
///
/// # Panics
/// When that takes longer than [`BOUND`].
pub fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(BOUND, what, look)
}

/// The same with another bound.
///
/// # Panics
/// When it is reached.
pub fn within<T>(bound: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + bound;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {bound:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}
