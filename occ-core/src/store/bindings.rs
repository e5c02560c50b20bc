//! Which access bindings are asked for.

use crate::{
    iam::{AccessBinding, ExactResource, Subject},
    resource::PrincipalId,
};

/// Some of the access bindings of a Namespace or of the Installation: what one object is about, and never all of them to find it.
#[derive(Debug, Clone, Copy)]
pub enum BindingsOf<'a> {
    /// All of them; for lists.
    Namespace,
    /// The one of this id.
    Id(&'a str),
    /// Those that grant this Role.
    Role(&'a str),
    /// Those that grant to this principal by itself.
    Principal(&'a PrincipalId),
    /// Those that are confined to this resource.
    Resource(&'a ExactResource),
}

impl BindingsOf<'_> {
    /// Whether a binding is among them.
    pub fn has(&self, binding: &AccessBinding) -> bool {
        match self {
            Self::Namespace => true,
            Self::Id(id) => binding.id == *id,
            Self::Role(role) => binding.role_id == *role,
            Self::Principal(principal) => {
                matches!(&binding.subject, Subject::Identity(subject) if subject == *principal)
            }
            Self::Resource(resource) => binding.resource.as_ref() == Some(*resource),
        }
    }
}
