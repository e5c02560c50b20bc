//! Drivers for tests of the engine: scripted ones that run nothing, and the embedded ones composed over an in-memory database.

mod furnished;
mod iam;
mod issuing_accounts;
mod mediating_gateway;
mod null_compute;
mod outside_secrets;
mod plain_harness;
mod plain_sandbox;
mod plugin_catalog;
mod recording_store;
mod script;
mod world;

pub use furnished::{Furnished, Ids, Selection};
pub use iam::ScriptedIam;
pub use issuing_accounts::IssuingAccounts;
pub use mediating_gateway::MediatingGateway;
pub use null_compute::{Call, NullCompute};
pub use outside_secrets::OutsideSecrets;
pub use plain_harness::PlainHarness;
pub use plain_sandbox::PlainSandbox;
pub use plugin_catalog::PluginCatalog;
pub use recording_store::{RecordingStore, Watch};
pub use script::Script;
pub use world::{Optional, World, WorldBuilder, chatgpt, document, drivers, drivers_over};

use occ_core::driver::{CONTRACT_VERSION, DriverIdentity, DriverKind};

fn identity(kind: DriverKind, id: &str, implementation: &str) -> DriverIdentity {
    DriverIdentity {
        kind,
        id: id.to_owned(),
        implementation: implementation.to_owned(),
        contract: CONTRACT_VERSION,
    }
}
