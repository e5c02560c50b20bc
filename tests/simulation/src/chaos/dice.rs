//! Everything that is decided by chance, decided by the seed.

use std::{
    cell::RefCell,
    sync::{
        Arc, Mutex, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// A stream of numbers that a seed decides. Clones share it.
#[derive(Debug, Clone)]
pub struct Dice {
    state: Arc<Mutex<u64>>,
    calm: Arc<AtomicBool>,
    /// Whether a pause takes any time.
    instant: bool,
}

impl Dice {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(seed)),
            calm: Arc::default(),
            instant: false,
        }
    }

    /// Dice of a world without faults and without pauses.
    pub fn instant() -> Self {
        let dice = Self {
            instant: true,
            ..Self::new(0)
        };
        dice.calm_down();
        dice
    }

    /// A stream of its own, which the same calm ends.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            state: Arc::new(Mutex::new(self.next())),
            calm: Arc::clone(&self.calm),
            instant: self.instant,
        }
    }

    /// The next number: splitmix64.
    pub fn next(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..count`.
    pub fn below(&self, count: u64) -> u64 {
        self.next() % count.max(1)
    }

    /// One of these.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        &from[at]
    }

    /// True in so many of a thousand cases.
    pub fn chance(&self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// True in so many of a thousand cases, and never once it is calm.
    pub fn strikes(&self, per_mille: u64) -> bool {
        !self.is_calm() && self.chance(per_mille)
    }

    /// At most so long, to the millisecond.
    pub fn up_to(&self, most: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(most.as_millis()).unwrap_or(u64::MAX)))
    }

    /// No more faults, here and in every fork.
    pub fn calm_down(&self) {
        self.hold_still(true);
    }

    /// No faults for a while, or again.
    pub fn hold_still(&self, still: bool) {
        self.calm.store(still, Ordering::Relaxed);
    }

    /// Whether faults have ended.
    pub fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// Lets others run: mostly not at all, else for some milliseconds, now and then for long.
    pub async fn pause(&self) {
        if self.instant {
            return;
        }
        match self.below(16) {
            0..=7 => {}
            8..=11 => tokio::task::yield_now().await,
            12..=14 => tokio::time::sleep(self.up_to(Duration::from_millis(8))).await,
            _ if self.strikes(100) => tokio::time::sleep(self.up_to(Duration::from_secs(8))).await,
            _ => tokio::time::sleep(self.up_to(Duration::from_millis(400))).await,
        }
    }
}

thread_local! {
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// From now on a panic in any task of this thread is remembered instead of printed: a worker survives those of its passes.
pub(super) fn remember_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let ordinary = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let remembered =
                PANICS.with_borrow_mut(|panics| panics.as_mut().map(|panics| panics.push(info.to_string())));
            if remembered.is_none() {
                ordinary(info);
            }
        }));
    });
    PANICS.set(Some(Vec::new()));
}

/// The panics since then, which are printed again from now on.
pub(super) fn take_panics() -> Vec<String> {
    PANICS.take().unwrap_or_default()
}
