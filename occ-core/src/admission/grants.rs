//! The IAM Driver's answers, as the checks see them.

use super::{Record, Refusal};
use crate::{
    audit::Authorization,
    driver::{AccessRequest, DriverKind},
    reason::ApiCode,
};

/// What the IAM Driver answered to the questions of one admission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    answers: Vec<Authorization>,
}

impl Grants {
    /// These answers. A question that is not among them counts as unanswered, and nothing unanswered is granted.
    pub fn new(answers: Vec<Authorization>) -> Self {
        Self { answers }
    }

    /// The same and these.
    #[must_use]
    pub fn and(mut self, answers: impl IntoIterator<Item = Authorization>) -> Self {
        self.answers.extend(answers);
        self
    }

    /// Whether this is granted.
    pub fn allows(&self, request: &AccessRequest) -> bool {
        self.find(request).is_some_and(|answer| answer.decision.allowed)
    }

    /// The answer to this question.
    pub(crate) fn find(&self, request: &AccessRequest) -> Option<&Authorization> {
        self.answers.iter().find(|answer| answer.request == *request)
    }

    /// The caller's grant: 503 when unanswered, 403 in generic words when denied.
    pub(crate) fn require(&self, request: &AccessRequest) -> Result<&Authorization, Refusal> {
        let answer = self
            .find(request)
            .ok_or_else(|| Refusal::driver_away(DriverKind::Iam))?;
        if answer.decision.allowed {
            Ok(answer)
        } else {
            Err(denied(answer.clone()))
        }
    }
}

/// 403 in words that are the same whether or not the object exists; recorded.
pub(crate) fn denied(answer: Authorization) -> Refusal {
    Refusal::new(ApiCode::Forbidden).recorded(Record::Denied(answer))
}
