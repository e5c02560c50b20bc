//! Who asks.

use super::Conditions;
use crate::{
    id::{AgentTokenId, NamespaceId, RequestId, ServiceKeyId, SessionId},
    resource::PrincipalId,
    trace::{self, TraceContext},
};

/// What a caller was recognised by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// The embedder's own means, or this host.
    Embedder,
    /// A service key.
    Key(ServiceKeyId),
    /// A person's session.
    Session(SessionId),
    /// An Agent's token.
    AgentToken(AgentTokenId),
}

/// The principal that an operation is done for, and the request that it came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who it is; what it may do is the IAM Driver's to say, for each operation.
    pub principal: PrincipalId,
    /// What it was recognised by; recorded with everything that it does.
    pub credential: Credential,
    /// The only Namespace that its credential opens; every one when none is named.
    pub namespace: Option<NamespaceId>,
    /// The request; recorded with everything that it causes.
    pub request: RequestId,
    /// What the request asks for beside its body.
    pub conditions: Conditions,
    /// Where the request is in its trace; kept with the work that it causes.
    pub trace: Option<TraceContext>,
}

impl Caller {
    /// A principal that an embedder has authenticated by means of its own. Its request is where the current span is in its trace.
    pub fn new(principal: PrincipalId) -> Self {
        Self {
            principal,
            credential: Credential::Embedder,
            namespace: None,
            request: RequestId::random(),
            conditions: Conditions::default(),
            trace: trace::current(),
        }
    }

    /// The same, in this request.
    #[must_use]
    pub fn in_request(mut self, request: RequestId) -> Self {
        self.request = request;
        self
    }
}
