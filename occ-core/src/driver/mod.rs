//! The driver contracts: one file a kind. Small enough to read in one sitting (spec/contracts).
//!
//! Required methods are few. Each optional ability is an accessor that returns `Option<&dyn Ability>`; the capability table is
//! derived from the accessors, so a driver cannot declare what it does not have.
//!
//! Rules for every driver:
//! - Every effect is repeatable: the engine repeats it after a lost lease, a restart or a retry.
//! - It names its objects from ids and touches only objects that carry its own ownership labels.
//! - It stops causing effects when its [`OperationContext`] is cancelled, and spawns nothing that outlives the call unsupervised.
//! - It reports evidence; missing evidence is never success. No secret, provider text or native output is in an error.

mod capability;
mod compute;
mod configuration;
mod context;
mod credential_gateway;
mod error;
mod harness;
mod iam;
mod identity;
mod plugin;
mod sandbox;
mod secret;
mod service_account;
mod state;

pub use capability::{Capabilities, Capability, capabilities};
pub use compute::*;
pub use configuration::ConfigurationDriver;
pub use context::OperationContext;
pub use credential_gateway::*;
pub use error::{EffectError, EffectResult, Fault, FaultKind, Terminal};
pub use harness::*;
pub use iam::*;
pub use identity::{CONTRACT_VERSION, ContractVersion, DriverIdentity, DriverKind};
pub use plugin::*;
pub use sandbox::*;
pub use secret::{CompareAndSwap, SecretDriver, SecretIdentity};
pub use service_account::{AccountIdentity, ServiceAccountDriver};
pub use state::{DriverState, EmptyState, MemoryState, StateEntry, StateReader, StateWrite, StoredRecord};
