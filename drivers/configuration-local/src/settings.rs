//! The driver's settings: there is nothing to choose.

use schemars::JsonSchema;
use serde::Deserialize;

/// Settings of [`ConfigurationLocal`](crate::ConfigurationLocal): an empty object. Where documents lie is the store's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {}
