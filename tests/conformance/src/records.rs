//! Operations of drivers that keep their records in the Installation's store, committed as a store commits them.

use std::{fmt::Debug, sync::Arc};

use occ_core::{
    driver::{DriverState, EffectResult, MemoryState, OperationContext},
    time::SystemClock,
};

use crate::canary::{spotless, spotless_error};

/// A context over these records.
pub(crate) fn context(records: &MemoryState) -> OperationContext {
    OperationContext::new(Arc::new(SystemClock), DriverState::new(Arc::new(records.clone())))
}

/// The operation's result, once what it staged is committed. What failed stages nothing.
pub(crate) fn commit<T>(records: &MemoryState, cx: &OperationContext, result: EffectResult<T>) -> EffectResult<T> {
    let value = result?;
    records.commit(cx.state().take_staged())?;
    Ok(value)
}

/// The answer, in which no secret may be, however it is printed.
#[track_caller]
pub(crate) fn watched<T: Debug>(what: &str, answer: EffectResult<T>) -> EffectResult<T> {
    match &answer {
        Ok(value) => spotless(what, &format!("{value:?}")),
        Err(error) => spotless_error(what, error),
    }
    answer
}
