//! Who may do what, said once more and in the fewest words (spec/engine 11): exact, nothing implied, isolated by scope.

use occ_core::driver::{Action, ResourceKind};

/// What a Namespace holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Agent,
    Configuration,
    Secret,
    Account,
    Preset,
    Source,
    Revision,
}

pub const KINDS: [Kind; 7] = [
    Kind::Agent,
    Kind::Configuration,
    Kind::Secret,
    Kind::Account,
    Kind::Preset,
    Kind::Source,
    Kind::Revision,
];

impl Kind {
    pub const fn resource(self) -> ResourceKind {
        match self {
            Self::Agent => ResourceKind::Agent,
            Self::Configuration => ResourceKind::Configuration,
            Self::Secret => ResourceKind::Secret,
            Self::Account => ResourceKind::ServiceAccount,
            Self::Preset => ResourceKind::Preset,
            Self::Source => ResourceKind::CredentialSource,
            Self::Revision => ResourceKind::AgentRevision,
        }
    }

    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Agent => "agt_",
            Self::Configuration => "cfg_",
            Self::Secret => "sec_",
            Self::Account => "sa_",
            Self::Preset => "pre_",
            Self::Source => "cs_",
            Self::Revision => "rev_",
        }
    }
}

/// A binding with a Role of its own.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The Namespace, by its number; every one when none is named.
    pub scope: Option<usize>,
    /// Only the resource of this kind that the Namespace has.
    pub exact: Option<Kind>,
    pub permissions: Vec<(Action, ResourceKind)>,
}

/// Everything that a grant may permit.
pub fn permissions() -> Vec<(Action, ResourceKind)> {
    use Action::{Administer, Create, Delete, Deploy, Operate, Read, ReadLogs, Update};
    let mut all = vec![
        (Read, ResourceKind::Namespace),
        (Deploy, ResourceKind::Agent),
        (Operate, ResourceKind::Agent),
        (Administer, ResourceKind::Agent),
        (ReadLogs, ResourceKind::Agent),
        (Operate, ResourceKind::Secret),
        (Operate, ResourceKind::CredentialSource),
    ];
    for kind in KINDS {
        for action in [Create, Read, Update, Delete] {
            all.push((action, kind.resource()));
        }
    }
    all
}

/// One question.
pub struct Question<'a> {
    pub action: Action,
    pub kind: ResourceKind,
    /// The thing's id, or for a creation its Namespace's.
    pub id: &'a str,
    /// The Namespace's number; none for one that does not exist.
    pub namespace: Option<usize>,
}

/// Whether a caller with these grants, and a key that opens this Namespace alone, may.
pub fn allows(
    grants: &[Grant],
    opens: Option<usize>,
    asked: &Question<'_>,
    exact: impl Fn(usize, Kind) -> String,
) -> bool {
    let opened = opens.is_none() || asked.namespace == opens;
    opened
        && grants.iter().any(|grant| {
            let here = grant.scope.is_none() || grant.scope == asked.namespace;
            let permitted = grant.permissions.contains(&(asked.action, asked.kind));
            let this = match (grant.exact, grant.scope) {
                (Some(kind), Some(scope)) => kind.resource() == asked.kind && exact(scope, kind) == asked.id,
                _ => true,
            };
            here && permitted && this
        })
}
