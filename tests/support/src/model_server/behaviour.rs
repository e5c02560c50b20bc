//! How the model server answers.

use std::time::Duration;

/// What the server does with a request whose key it accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
    /// Answers with a complete turn.
    Reply(Reply),
    /// Answers like [`Behaviour::Reply`], but waits before each event of the stream.
    Slow {
        /// The text of the turn.
        reply: Reply,
        /// The wait before each event; a turn has about ten.
        pause: Duration,
    },
    /// Answers 400 with the code `model_not_found`.
    ModelNotFound,
    /// Answers 429 with the code `rate_limit_exceeded`.
    RateLimited {
        /// Sent as `Retry-After` in whole seconds; without it a client has to guess.
        retry_after: Option<Duration>,
    },
    /// Answers 500.
    ServerError,
    /// Answers 200 with an event stream whose event is not JSON.
    Garbage,
    /// Answers 200 with HTML, like a captive portal or a wrong base URL.
    WebPage,
    /// Reads the request and never answers, until the server stops listening.
    Hang,
}

impl Behaviour {
    /// Repeats what the user said last.
    pub fn echo() -> Self {
        Self::Reply(Reply::Echo)
    }

    /// Answers each turn with `text`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Reply(Reply::Text(text.into()))
    }
}

/// The text of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// `Model server heard: ` and the last user message of the request.
    Echo,
    /// Always this text.
    Text(String),
}

impl Reply {
    pub(super) fn to_text(&self, heard: &str) -> String {
        match self {
            Self::Echo => format!("Model server heard: {heard}"),
            Self::Text(text) => text.clone(),
        }
    }
}
