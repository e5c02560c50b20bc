//! Who asks.

use super::Conditions;
use crate::{
    id::{NamespaceId, RequestId, ServiceKeyId},
    resource::PrincipalId,
    trace::{self, TraceContext},
};

/// The principal that an operation is done for, and the request that it came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who it is; what it may do is the IAM Driver's to say, for each operation.
    pub principal: PrincipalId,
    /// The service key that it presented.
    pub key: Option<ServiceKeyId>,
    /// The only Namespace that the key opens; every one when none is named.
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
            key: None,
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
