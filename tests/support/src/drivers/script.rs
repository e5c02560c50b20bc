//! What a test makes a driver answer.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use occ_core::driver::{EffectError, EffectResult, OperationContext};

type Future<T> = Pin<Box<dyn std::future::Future<Output = EffectResult<T>> + Send>>;
type Answer<A, T> = Box<dyn FnOnce(A) -> Future<T> + Send>;
type Every<A, T> = Arc<dyn Fn(A) -> Future<T> + Send + Sync>;

/// Answers that wait for their calls, first in first out. Without one, the call gets the ordinary answer.
pub struct Script<A, T> {
    next: Mutex<VecDeque<Answer<A, T>>>,
    every: Mutex<Option<Every<A, T>>>,
    otherwise: Mutex<Option<EffectError>>,
    remaining: Mutex<Option<Duration>>,
}

impl<A, T> Default for Script<A, T> {
    fn default() -> Self {
        Self {
            next: Mutex::default(),
            every: Mutex::default(),
            otherwise: Mutex::default(),
            remaining: Mutex::default(),
        }
    }
}

impl<A, T: Send + 'static> Script<A, T> {
    /// The next call is answered so.
    pub fn next(&self, answer: EffectResult<T>) {
        self.with(move |_| answer);
    }

    /// The next `times` calls are answered so.
    pub fn times(&self, times: usize, answer: &EffectResult<T>)
    where
        T: Clone,
    {
        (0..times).for_each(|_| self.next(answer.clone()));
    }

    /// The next call is answered from its argument.
    pub fn with(&self, answer: impl FnOnce(A) -> EffectResult<T> + Send + 'static) {
        self.during(|argument| {
            let answer = answer(argument);
            async move { answer }
        });
    }

    /// The next call takes as long as this future. It is dropped when the operation is cancelled.
    pub fn during<F>(&self, answer: impl FnOnce(A) -> F + Send + 'static)
    where
        F: std::future::Future<Output = EffectResult<T>> + Send + 'static,
    {
        lock(&self.next).push_back(Box::new(move |argument| Box::pin(answer(argument))));
    }

    /// From now on every call that no other answer waits for takes as long as this future. It is dropped when the operation is
    /// cancelled.
    pub fn every<F>(&self, answer: impl Fn(A) -> F + Send + Sync + 'static)
    where
        F: std::future::Future<Output = EffectResult<T>> + Send + 'static,
    {
        *lock(&self.every) = Some(Arc::new(move |argument| Box::pin(answer(argument))));
    }

    /// How many answers still wait for their call.
    pub fn waiting(&self) -> usize {
        lock(&self.next).len()
    }

    /// From now on this is the ordinary answer.
    pub fn always(&self, error: EffectError) {
        *lock(&self.otherwise) = Some(error);
    }

    /// How much time the latest call was told that it has.
    pub fn remaining(&self) -> Option<Duration> {
        *lock(&self.remaining)
    }

    pub(super) async fn play(&self, cx: &OperationContext, argument: A, ordinary: T) -> EffectResult<T> {
        *lock(&self.remaining) = cx.remaining();
        let (next, every) = (lock(&self.next).pop_front(), lock(&self.every).clone());
        match (next, every) {
            (Some(answer), _) => cx.run(answer(argument)).await,
            (None, Some(answer)) => cx.run(answer(argument)).await,
            (None, None) => lock(&self.otherwise).clone().map_or(Ok(ordinary), Err),
        }
    }
}

/// The value, also after a test panicked while it held it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
