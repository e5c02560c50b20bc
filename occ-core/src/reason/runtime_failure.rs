//! What a runtime reported about itself: a closed vocabulary (seed: table of `RUNTIME_MODEL_PROBE_FAILED`; spec/engine 8.3).

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{Failure, vocabulary};
use crate::time::Timestamp;

/// A short identifier in runtime evidence: `^[A-Za-z0-9._~:@-]{1,64}$`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct Token(Cow<'static, str>);

impl Token {
    /// A token that is known when the program is written.
    ///
    /// # Panics
    /// When the text has not a token's form.
    pub const fn known(text: &'static str) -> Self {
        assert!(Self::valid(text), "not a token");
        Self(Cow::Borrowed(text))
    }

    /// The text as a token, if it has the form.
    pub fn parse(text: &str) -> Option<Self> {
        Self::valid(text).then(|| Self(Cow::Owned(text.to_owned())))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    const fn valid(text: &str) -> bool {
        let bytes = text.as_bytes();
        let mut i = 0;
        while i < bytes.len() {
            let b = bytes[i];
            if !(b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'~' | b':' | b'@' | b'-')) {
                return false;
            }
            i += 1;
        }
        !bytes.is_empty() && bytes.len() <= 64
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("expected a short identifier"))
    }
}

vocabulary! {
    /// What a runtime says is wrong with it. The held ones end a deployment early; the rest only colour the deadline's error.
    RuntimeCode else Unrecognized {
        AuthenticationFailed = "AUTHENTICATION_FAILED", "The model provider rejected the credential.";
        LoginFailed = "LOGIN_FAILED", "The Harness could not log in.";
        ModelProbeFailed = "MODEL_PROBE_FAILED", "The check of the model failed.";
        ModelProbeTimeout = "MODEL_PROBE_TIMEOUT", "The check of the model timed out.";
        ModelProbeCpuStarved = "MODEL_PROBE_CPU_STARVED", "The check of the model did not get enough CPU time.";
        Unavailable = "UNAVAILABLE", "The component could not start, or it ended.";
        IncompatibleResponse = "INCOMPATIBLE_RESPONSE", "What answered is not the component that was expected.";
        WorkspaceSetupRefused = "WORKSPACE_SETUP_REFUSED", "The initial workspace files conflict with other content.";
        NotConfigured = "NOT_CONFIGURED", "The component is not configured.";
        Disconnected = "DISCONNECTED", "The component lost its connection.";
        ProbeFailed = "PROBE_FAILED", "A check of the component could not be made.";
        NotReady = "NOT_READY", "The component is not ready yet.";
        Unrecognized = "UNRECOGNIZED", "The component reported something that is not in this vocabulary.";
    }
}

impl RuntimeCode {
    /// The failure that ends the deployment early, for the held codes (spec/drivers 0.2).
    pub const fn held(self) -> Option<Failure> {
        match self {
            Self::AuthenticationFailed => Some(Failure::RuntimeAuthenticationFailed),
            Self::LoginFailed => Some(Failure::RuntimeLoginFailed),
            Self::ModelProbeFailed => Some(Failure::RuntimeModelProbeFailed),
            Self::ModelProbeTimeout => Some(Failure::RuntimeModelProbeTimeout),
            Self::ModelProbeCpuStarved => Some(Failure::RuntimeCpuStarved),
            Self::Unavailable | Self::IncompatibleResponse => Some(Failure::RuntimeStartupFailed),
            Self::WorkspaceSetupRefused => Some(Failure::WorkspaceSetupRefused),
            Self::NotConfigured | Self::Disconnected | Self::ProbeFailed | Self::NotReady | Self::Unrecognized => None,
        }
    }
}

/// One piece of runtime evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuntimeFailure {
    /// The component, such as `gateway`.
    pub component: Token,
    /// The check, such as `model-probe`, `startup`, `workspace-setup`.
    pub check: Token,
    /// When it was checked.
    pub checked_at: Timestamp,
    /// What was found.
    pub code: RuntimeCode,
    /// Why, for a failed model check only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

/// The evidence has a cause that its code cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("only MODEL_PROBE_FAILED has a cause")]
pub struct InvalidRuntimeFailure;

impl RuntimeFailure {
    /// Checks what the types alone do not say.
    pub fn validate(&self) -> Result<(), InvalidRuntimeFailure> {
        match &self.cause {
            Some(_) if self.code != RuntimeCode::ModelProbeFailed => Err(InvalidRuntimeFailure),
            _ => Ok(()),
        }
    }

    /// The same evidence without its cause, as the convergence deadline's error shows it.
    #[must_use]
    pub fn without_cause(mut self) -> Self {
        self.cause = None;
        self
    }
}

/// Why a model check failed. The wire form is `{kind, detail?}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The check process exited nonzero, was killed, or never ran.
    ProcessExit(Option<ProcessExit>),
    /// The check ran and reported the model unusable.
    ProbeStatus(ProbeStatus),
    /// The check's output was not JSON.
    InvalidJson,
    /// The check's output was JSON of another shape, such as another provider's.
    InvalidShape,
    /// The wrapper could not prepare or read the check.
    WrapperError,
}

/// How a check process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessExit {
    /// `exit-<status>`, 1 to 999.
    Status(u16),
    /// `signal-SIG...`.
    Signal(Token),
    /// `error-E...`: it could not be started, or its output overflowed (`ENOBUFS`).
    Errno(Token),
}

vocabulary! {
    /// What a check said of the model. The codes are the `detail` tokens of the seed's table.
    ProbeStatus {
        Format = "format", "The provider rejected the request as malformed, or the model is unknown.";
        RateLimit = "rate_limit", "The provider limits the rate or the usage.";
        Billing = "billing", "The provider's account cannot be billed.";
        Unknown = "unknown", "The check could not say why.";
        NoModel = "no_model", "No model is configured for the provider.";
        Other = "other", "The check reported a status of its own.";
        TurnFailed = "turn-failed", "The Harness's turn failed.";
        ErrorEvent = "error-event", "The Harness reported an error.";
        ToolEvent = "tool-event", "The Harness used a tool.";
        UnexpectedEvent = "unexpected-event", "The Harness did something unexpected.";
        NoReply = "no-reply", "The Harness gave no reply.";
        RateLimitRetried = "rate_limit-attempt2", "The provider limits the rate, also on the second try.";
        TurnFailedRetried = "turn-failed-attempt2", "The Harness's turn failed, also on the second try.";
        ErrorEventRetried = "error-event-attempt2", "The Harness reported an error on the second try.";
        ToolEventRetried = "tool-event-attempt2", "The Harness used a tool on the second try.";
        UnexpectedEventRetried = "unexpected-event-attempt2", "The Harness did something unexpected on the second try.";
        NoReplyRetried = "no-reply-attempt2", "The Harness gave no reply on the second try.";
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireCause<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    detail: Option<Cow<'a, str>>,
}

impl ProcessExit {
    fn detail(&self) -> String {
        match self {
            Self::Status(status) => format!("exit-{status}"),
            Self::Signal(name) => format!("signal-{name}"),
            Self::Errno(name) => format!("error-{name}"),
        }
    }

    fn parse(detail: &str) -> Option<Self> {
        let name = |text: &str, prefix: &str| {
            let rest = text.strip_prefix(prefix)?;
            let form = rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
            (form && !rest.is_empty()).then(|| Token::parse(text)).flatten()
        };
        if let Some(status) = detail.strip_prefix("exit-") {
            let number: u16 = status.parse().ok()?;
            return (number.to_string() == status && (1..=999).contains(&number)).then_some(Self::Status(number));
        }
        if let Some(signal) = detail.strip_prefix("signal-") {
            return name(signal, "SIG").filter(|t| t.as_str().len() <= 13).map(Self::Signal);
        }
        let errno = detail.strip_prefix("error-")?;
        name(errno, "E").filter(|t| t.as_str().len() <= 16).map(Self::Errno)
    }
}

impl Cause {
    /// The wire form's `kind` and `detail`.
    pub fn parts(&self) -> (&'static str, Option<String>) {
        match self {
            Self::ProcessExit(exit) => ("PROCESS_EXIT", exit.as_ref().map(ProcessExit::detail)),
            Self::ProbeStatus(status) => ("PROBE_STATUS", Some(status.code().to_owned())),
            Self::InvalidJson => ("INVALID_OUTPUT", Some("json".to_owned())),
            Self::InvalidShape => ("INVALID_OUTPUT", Some("shape".to_owned())),
            Self::WrapperError => ("WRAPPER_ERROR", None),
        }
    }

    /// Reads a wire form; `None` when it is outside the vocabulary. A Compute then keeps the code and drops the cause (seed).
    pub fn from_parts(kind: &str, detail: Option<&str>) -> Option<Self> {
        match (kind, detail) {
            ("PROCESS_EXIT", None) => Some(Self::ProcessExit(None)),
            // The seed drops an exit detail of another form and keeps the kind.
            ("PROCESS_EXIT", Some(detail)) => Some(Self::ProcessExit(ProcessExit::parse(detail))),
            ("PROBE_STATUS", Some(detail)) => ProbeStatus::from_code(detail).map(Self::ProbeStatus),
            ("INVALID_OUTPUT", Some("json")) => Some(Self::InvalidJson),
            ("INVALID_OUTPUT", Some("shape")) => Some(Self::InvalidShape),
            ("WRAPPER_ERROR", None) => Some(Self::WrapperError),
            _ => None,
        }
    }
}

impl JsonSchema for Cause {
    fn schema_name() -> Cow<'static, str> {
        "Cause".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "kind": { "type": "string", "enum": ["PROCESS_EXIT", "PROBE_STATUS", "INVALID_OUTPUT", "WRAPPER_ERROR"] },
                "detail": { "type": "string", "maxLength": 64 },
            },
            "required": ["kind"],
        })
    }
}

impl Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, detail) = self.parts();
        WireCause {
            kind: kind.into(),
            detail: detail.map(Into::into),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = WireCause::deserialize(deserializer)?;
        Self::from_parts(&wire.kind, wire.detail.as_deref()).ok_or_else(|| de::Error::custom("unknown cause"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_outside_the_vocabulary_do_not_parse() {
        for (kind, detail) in [
            ("PROBE_STATUS", Some("sk-secret")),
            ("PROBE_STATUS", None),
            ("INVALID_OUTPUT", Some("xml")),
            ("WRAPPER_ERROR", Some("x")),
            ("OTHER", None),
        ] {
            assert_eq!(Cause::from_parts(kind, detail), None, "{kind} {detail:?}");
        }
    }

    #[test]
    fn exit_details_of_another_form_are_dropped_and_the_kind_kept() {
        for bad in [
            "exit-0",
            "exit-1000",
            "exit-01",
            "signal-KILL",
            "signal-SIG",
            "error-",
            "error-ETOOLONGNAME12345",
            "free text",
        ] {
            assert_eq!(
                Cause::from_parts("PROCESS_EXIT", Some(bad)),
                Some(Cause::ProcessExit(None)),
                "{bad}"
            );
        }
        for good in ["exit-137", "signal-SIGKILL", "error-ENOBUFS"] {
            let cause = Cause::from_parts("PROCESS_EXIT", Some(good)).unwrap();
            assert_eq!(cause.parts(), ("PROCESS_EXIT", Some(good.to_owned())));
        }
    }

    #[test]
    fn only_a_failed_model_check_has_a_cause() {
        let mut failure = RuntimeFailure {
            component: Token::known("gateway"),
            check: Token::known("model-probe"),
            checked_at: Timestamp::from_millis(0),
            code: RuntimeCode::ModelProbeFailed,
            cause: Some(Cause::InvalidJson),
        };
        assert_eq!(failure.validate(), Ok(()));
        failure.code = RuntimeCode::AuthenticationFailed;
        assert_eq!(failure.validate(), Err(InvalidRuntimeFailure));
    }
}
