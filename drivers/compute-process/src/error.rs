//! What can go wrong with files and processes, and its way to evidence.

use std::io;

use occ_core::{
    driver::{EffectError, Fault, FaultKind, Terminal},
    reason::{Preparation, PreparationReason, PreparationStage, RuntimeCode, RuntimeFailure, Token},
    time::Timestamp,
};

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why a step was not done. Holds static words and sorts of failure only, so it can be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The operating system refused a file operation.
    #[error("{operation}: {kind}")]
    Storage {
        operation: &'static str,
        kind: io::ErrorKind,
    },
    /// An object of this name carries other marks, or none.
    #[error("an object of this name belongs to somebody else")]
    Foreign,
    /// The version cannot be laid out, started or served by this instance.
    #[error("{stage}: {reason}")]
    Refused {
        stage: PreparationStage,
        reason: PreparationReason,
    },
    /// The version can never run on this Compute.
    #[error("{0}")]
    Terminal(Terminal),
    /// The operation was cancelled before it did anything more.
    #[error("cancelled")]
    Cancelled,
    /// Anything that is no refusal by itself.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Error {
    pub(crate) fn storage(operation: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Storage {
            operation,
            kind: error.kind(),
        }
    }

    pub(crate) const fn refused(stage: PreparationStage, reason: PreparationReason) -> Self {
        Self::Refused { stage, reason }
    }

    /// The evidence when it kept a version from being prepared: what an operator can mend is held, with its reason.
    pub(crate) fn while_preparing(self, component: &Token, at: Timestamp) -> EffectError {
        use io::ErrorKind as Kind;
        let (stage, reason) = match self {
            Self::Refused { stage, reason } => (stage, reason),
            Self::Storage {
                kind: Kind::StorageFull | Kind::QuotaExceeded,
                ..
            } => (PreparationStage::Layout, PreparationReason::StorageFull),
            Self::Storage {
                kind: Kind::PermissionDenied | Kind::ReadOnlyFilesystem,
                ..
            } => (PreparationStage::Layout, PreparationReason::StorageDenied),
            other => return other.into(),
        };
        let failure = RuntimeFailure {
            component: component.clone(),
            check: Token::known("startup"),
            checked_at: at,
            code: RuntimeCode::Unavailable,
            cause: None,
        };
        let preparation = Preparation {
            stage,
            reason,
            component: Some(component.clone()),
            exit_status: None,
            signal: None,
            at,
        };
        EffectError::Held(Box::new(failure), Some(Box::new(preparation)))
    }
}

impl From<Error> for EffectError {
    fn from(error: Error) -> Self {
        match error {
            Error::Storage { operation, kind } => Fault::new(operation, FaultKind::Io(kind)).into(),
            Error::Foreign => Self::Ownership,
            Error::Refused { .. } => Fault::new("prepare the version", FaultKind::Unavailable).into(),
            Error::Terminal(terminal) => Self::Terminal(terminal),
            Error::Cancelled => Self::UnknownOutcome,
            Error::Fault(fault) => fault.into(),
        }
    }
}
