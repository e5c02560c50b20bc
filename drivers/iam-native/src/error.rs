//! What denies before any rule is looked at.

/// A policy that does not hold together. It grants nothing at all: to guess what it means could grant too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPolicy {
    /// The identity that was read is another principal's.
    #[error("the identity is another principal's")]
    OtherIdentity,
    /// A human is of the whole Installation; an Agent's principal is confined to the Agent's Namespace.
    #[error("the identity has a scope that its sort cannot have")]
    IdentityScope,
    /// A binding names a Role that does not exist.
    #[error("a binding names a missing Role")]
    MissingRole,
    /// Two Roles, two bindings or two Restrictions have one id.
    #[error("one id names two records")]
    AmbiguousId,
}
