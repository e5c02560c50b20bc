//! How an effect fails: evidence only. The engine alone maps it to work transitions and codes (spec/contracts 4.7).

use crate::reason::{Dependency, Failure, Pending, Preparation, RuntimeFailure};

/// The result of an effect.
pub type EffectResult<T> = Result<T, EffectError>;

/// Why an effect did not happen, or is not known to have happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EffectError {
    /// It is still converging. Repeated on the readiness cadence; spends no attempt.
    #[error("pending: {0}")]
    Pending(Pending),
    /// Something that it depends on is away. Pending with the dependency's code; spends no attempt.
    #[error("a dependency is unavailable: {0:?}")]
    Transient(Dependency),
    /// The runtime failed by itself and is kept for its logs. Ends the deployment at once when the code is a held one.
    #[error("the runtime failed: {}", .0.code)]
    Held(Box<RuntimeFailure>, Option<Box<Preparation>>),
    /// It can never succeed for this version.
    #[error("terminal: {0}")]
    Terminal(Terminal),
    /// An object of the wanted name carries other ownership labels. Nothing was changed.
    #[error("an object of this name belongs to somebody else")]
    Ownership,
    /// The call was cut off; whether it took effect is not known. It is repeated: effects are repeatable.
    #[error("the outcome is not known")]
    UnknownOutcome,
    /// Anything else. Spends an attempt.
    #[error("{0}")]
    Fault(#[from] Fault),
}

/// Reasons that a driver itself may end a version with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Terminal {
    /// The dedicated gateway refuses its own command line as unauthorized.
    #[error("AGENT_GATEWAY_UNAUTHORIZED")]
    GatewayUnauthorized,
    /// The Sandbox does not support the Harness.
    #[error("SANDBOX_HARNESS_UNSUPPORTED")]
    SandboxHarnessUnsupported,
    /// The Sandbox does not support Secrets in the environment.
    #[error("SANDBOX_SECRET_ENVIRONMENT_UNSUPPORTED")]
    SandboxSecretEnvironmentUnsupported,
    /// Two credential sources use one environment variable.
    #[error("CREDENTIAL_SOURCE_ENVIRONMENT_CONFLICT")]
    CredentialSourceEnvironmentConflict,
    /// A credential source cannot be used by this version.
    #[error("CREDENTIAL_SOURCE_UNAVAILABLE")]
    CredentialSourceUnavailable,
    /// A credential source was withdrawn from this version.
    #[error("CREDENTIAL_WITHDRAWN")]
    CredentialWithdrawn,
    /// The Compute's settings or limits cannot carry this version.
    #[error("COMPUTE_CONFIGURATION_INVALID")]
    ConfigurationInvalid,
}

impl Terminal {
    /// The failure that callers see.
    pub const fn failure(self) -> Failure {
        match self {
            Self::GatewayUnauthorized => Failure::AgentGatewayUnauthorized,
            Self::SandboxHarnessUnsupported => Failure::SandboxHarnessUnsupported,
            Self::SandboxSecretEnvironmentUnsupported => Failure::SandboxSecretEnvironmentUnsupported,
            Self::CredentialSourceEnvironmentConflict => Failure::CredentialSourceEnvironmentConflict,
            Self::CredentialSourceUnavailable => Failure::CredentialSourceUnavailable,
            Self::CredentialWithdrawn => Failure::CredentialWithdrawn,
            Self::ConfigurationInvalid => Failure::ComputeConfigurationInvalid,
        }
    }
}

/// An unclassified fault: where, and of which sort. Static words only, so that it can be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {kind}")]
pub struct Fault {
    /// The step that failed, in the driver's own words, written when the driver was: `"read the agent marker"`.
    pub operation: &'static str,
    /// What sort of fault it was.
    pub kind: FaultKind,
}

/// The sort of a [`Fault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FaultKind {
    /// The operating system refused, with the sort of refusal.
    #[error("{0}")]
    Io(std::io::ErrorKind),
    /// No answer in time.
    #[error("no answer in time")]
    Timeout,
    /// The other side answered something unusable.
    #[error("the answer is unusable")]
    Protocol,
    /// The stored form could not be read.
    #[error("the stored form is damaged")]
    Corrupt,
    /// The object changed meanwhile.
    #[error("it changed meanwhile")]
    Conflict,
    /// The object does not exist.
    #[error("it does not exist")]
    Missing,
    /// The other side refused.
    #[error("it was refused")]
    Denied,
    /// The service is away.
    #[error("the service is away")]
    Unavailable,
}

impl Fault {
    /// A fault of an operating-system call.
    pub fn io(operation: &'static str, error: &std::io::Error) -> Self {
        Self {
            operation,
            kind: FaultKind::Io(error.kind()),
        }
    }

    /// A fault of another sort.
    pub const fn new(operation: &'static str, kind: FaultKind) -> Self {
        Self { operation, kind }
    }
}
