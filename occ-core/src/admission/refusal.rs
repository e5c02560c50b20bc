//! A refusal: what a caller is told, in fixed words.

use std::{borrow::Cow, fmt, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Record, phrase::Phrase};
use crate::{
    driver::{DriverKind, EffectError, Fault, FaultKind},
    reason::ApiCode,
    store::StoreError,
};

/// Longest message, in code points (spec/engine 2).
pub const MESSAGE_MAX_CHARS: usize = 256;
/// Most details that one refusal carries.
pub const DETAILS_MAX: usize = 32;
const PATH_MAX_CHARS: usize = 512;

/// What is wrong with one part of a request (spec/engine 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DetailCode {
    /// It is missing.
    Required,
    /// It is not part of the request's form.
    UnknownField,
    /// It is of another type.
    InvalidType,
    /// It is of another form.
    InvalidFormat,
    /// It is of the right form, and not accepted.
    InvalidValue,
    /// It is too long.
    TooLong,
    /// It is nested too deeply.
    TooDeep,
}

/// One part of a request that is at fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Detail {
    /// A JSON pointer into the request's body.
    pub path: String,
    /// What is wrong there.
    pub code: DetailCode,
}

/// Why a request was not done.
///
/// Its message is a fixed text, or composed of ids, setting names and fixed texts: no constructor takes a driver's or a
/// provider's words. Which HTTP status it has is the API's business.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    code: ApiCode,
    message: Cow<'static, str>,
    details: Vec<Detail>,
    record: Option<Box<Record>>,
    retry_after: Option<Duration>,
}

impl Refusal {
    /// With the code's own message.
    pub const fn new(code: ApiCode) -> Self {
        Self::fixed(code, code.message())
    }

    /// With a more exact fixed message.
    pub const fn fixed(code: ApiCode, message: &'static str) -> Self {
        Self {
            code,
            message: Cow::Borrowed(message),
            details: Vec::new(),
            record: None,
            retry_after: None,
        }
    }

    /// 400 with a fixed message.
    pub const fn invalid(message: &'static str) -> Self {
        Self::fixed(ApiCode::InvalidRequest, message)
    }

    /// 404.
    pub const fn not_found() -> Self {
        Self::new(ApiCode::NotFound)
    }

    /// 409 with a fixed message.
    pub const fn conflict(message: &'static str) -> Self {
        Self::fixed(ApiCode::ResourceConflict, message)
    }

    /// 503 with a fixed message.
    pub const fn unavailable(message: &'static str) -> Self {
        Self::fixed(ApiCode::DependencyUnavailable, message)
    }

    /// With a message composed of ids and fixed texts.
    pub(crate) fn saying(code: ApiCode, phrase: Phrase) -> Self {
        Self {
            message: Cow::Owned(phrase.into_text()),
            ..Self::new(code)
        }
    }

    /// The same, pointing at a part of the request; a path beyond 512 characters is cut.
    #[must_use]
    pub fn at(mut self, path: &str, code: DetailCode) -> Self {
        if self.details.len() < DETAILS_MAX {
            self.details.push(Detail {
                path: path.chars().take(PATH_MAX_CHARS).collect(),
                code,
            });
        }
        self
    }

    /// The same, to be recorded before it is answered.
    #[must_use]
    pub(crate) fn recorded(mut self, record: Record) -> Self {
        self.record = Some(Box::new(record));
        self
    }

    /// What must be recorded before the refusal is answered.
    pub(crate) fn take_record(&mut self) -> Option<Record> {
        self.record.take().map(|record| *record)
    }

    /// The same, with how long to wait before trying again.
    #[must_use]
    pub const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// How long to wait before trying again, when that is what it is about.
    pub const fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Its code.
    pub const fn code(&self) -> ApiCode {
        self.code
    }

    /// Its message, at most 256 code points.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The parts of the request that are at fault.
    pub fn details(&self) -> &[Detail] {
        &self.details
    }

    /// What a failed driver call is answered with: 503 naming the kind of driver. The evidence goes to the log, in static words.
    pub(crate) fn driver(kind: DriverKind, error: &EffectError) -> Self {
        tracing::warn!(driver = kind.as_str(), %error, "a driver call failed during a request");
        match error {
            EffectError::Ownership => {
                Self::unavailable("A driver's object belongs to somebody else; nothing was changed.")
            }
            EffectError::UnknownOutcome => Self::unknown_outcome(),
            _ => Self::driver_away(kind),
        }
    }

    /// 503: the driver of this kind did not answer, or not as it must.
    pub(crate) const fn driver_away(kind: DriverKind) -> Self {
        Self::unavailable(match kind {
            DriverKind::Configuration => "The Configuration Driver is unavailable.",
            DriverKind::Iam => "The IAM Driver is unavailable.",
            DriverKind::Compute => "The Compute Driver is unavailable.",
            DriverKind::Secret => "The Secret Driver is unavailable.",
            DriverKind::Sandbox => "The Sandbox Driver is unavailable.",
            DriverKind::Harness => "The Harness is unavailable.",
            DriverKind::ServiceAccount => "The Service Account Driver is unavailable.",
            DriverKind::Plugin => "The Plugin Driver is unavailable.",
            DriverKind::CredentialGateway => "The Credential Gateway is unavailable.",
        })
    }

    /// 503: nobody knows whether it happened (spec/engine 7, unknown COMMIT).
    pub(crate) const fn unknown_outcome() -> Self {
        Self::unavailable(
            "The outcome is not known: it may have been done. Read the current state; do not retry automatically.",
        )
    }
}

/// Whether the object changed between two reads, so that the request should look again.
pub(crate) fn is_conflict(error: &EffectError) -> bool {
    matches!(
        error,
        EffectError::Fault(Fault {
            kind: FaultKind::Conflict,
            ..
        })
    )
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable | StoreError::NotAllowed => Self::unavailable("The database is unavailable."),
            StoreError::NoSpace => Self::unavailable("The database has no space left."),
            StoreError::Corrupt(what) => {
                tracing::error!(what, "a stored row does not decode");
                Self::new(ApiCode::InternalError)
            }
        }
    }
}

impl fmt::Display for DetailCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
