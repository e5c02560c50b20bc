//! The order of admission's checks: of two conditions that fail, the earlier one refuses.
#![cfg(feature = "engine")]

mod deploy;
mod draft;
mod scene;
