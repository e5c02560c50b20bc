//! The driver's settings: there is nothing to choose.

use schemars::JsonSchema;
use serde::Deserialize;

/// Settings of [`NativeIam`](crate::NativeIam): an empty object. The policy is in the Installation's store and changes without a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {}
