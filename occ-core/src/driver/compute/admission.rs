//! What admission asks a Compute before a version exists: pure, and unable to repeat a value.

use crate::resource::{ExecutionMode, HarnessAuthMethod, HarnessIdentity, SourceType};

/// Where a gateway may listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Listen {
    /// On loopback only: the Compute and its users share the host.
    Loopback,
    /// On all addresses of an isolated network namespace: traffic arrives through a route.
    AllAddresses,
}

/// What every workload finds on a Compute. A Harness plans against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComputeProfile {
    /// Where the gateway listens.
    pub listen: Listen,
}

/// How a gateway authenticates its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GatewayAuthMode {
    /// A password.
    Password,
    /// A proxy in front tells who the caller is.
    TrustedProxy,
    /// A bearer token.
    Token,
    /// Not at all.
    None,
    /// Something that the Harness does not know.
    Unrecognized,
}

/// The gateway settings of a native document in neutral words; the Harness extracts them, so that no Compute reads native documents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
// Each flag mirrors one setting of the native document; there is no state machine behind them.
#[allow(clippy::struct_excessive_bools)]
pub struct GatewaySettings {
    /// `gateway.tls.enabled` is true.
    pub tls_enabled: bool,
    /// `gateway.tailscale.mode` is something else than off.
    pub tailscale_enabled: bool,
    /// `gateway.bind`, when the document sets it.
    pub bind: Option<String>,
    /// `gateway.customBindHost`, when the document sets it.
    pub custom_bind_host: Option<String>,
    /// `gateway.auth.mode`, when the document sets it.
    pub auth_mode: Option<GatewayAuthMode>,
    /// `gateway.auth.password` is the environment reference to the generated password.
    pub password_is_generated: bool,
    /// `gateway.auth.password` is set to anything.
    pub password_set: bool,
    /// `gateway.port`, when the document sets it.
    pub port: Option<u64>,
}

/// A gateway setting that the Compute refuses: 409, naming the setting and what is accepted (spec/contracts 18.1).
///
/// Both are static texts: the type cannot hold the document's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {accepted}")]
pub struct SettingRejection {
    /// The setting's path, such as `gateway.tls.enabled`.
    pub setting: &'static str,
    /// What is accepted, such as `must be omitted or false`.
    pub accepted: &'static str,
}

/// What a Harness authentication is judged by.
#[derive(Debug, Clone, Copy)]
pub struct HarnessAuthRequest<'a> {
    /// The approved Harness and how it runs.
    pub harness: &'a HarnessIdentity,
    /// The method.
    pub method: HarnessAuthMethod,
    /// What the credential source is, when the method names one that exists.
    pub source_type: Option<&'a SourceType>,
    /// How many Secrets the Configuration binds.
    pub secret_bindings: usize,
}

impl HarnessAuthRequest<'_> {
    /// How the Harness runs.
    pub const fn mode(&self) -> ExecutionMode {
        self.harness.mode
    }
}

/// Why a Compute cannot carry an authentication or topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The native document is at fault: 400 with this text.
    #[error("{0}")]
    Configuration(&'static str),
    /// The Compute does not support it: 409 with this text.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// Pure checks of a candidate. No I/O, no clock, no randomness.
pub trait ComputeAdmission: Send + Sync {
    /// Whether this Compute can deliver the authentication to the topology.
    fn harness_auth(&self, request: &HarnessAuthRequest<'_>) -> Result<(), Rejection>;

    /// Whether this Compute can serve a gateway with these settings.
    fn gateway_settings(&self, settings: &GatewaySettings) -> Result<(), SettingRejection>;
}
