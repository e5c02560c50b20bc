//! The schema that policies and entities are held to: every question that the control plane asks.

use std::{fmt::Write as _, sync::LazyLock};

use cedar_policy::Schema;
use occ_core::driver::{Action, ResourceKind};

pub(crate) const ACTIONS: [Action; 9] = [
    Action::Create,
    Action::Read,
    Action::Update,
    Action::Delete,
    Action::Deploy,
    Action::Operate,
    Action::Administer,
    Action::ReadLogs,
    Action::Use,
];

pub(crate) const KINDS: [ResourceKind; 9] = [
    ResourceKind::Installation,
    ResourceKind::Namespace,
    ResourceKind::Configuration,
    ResourceKind::Preset,
    ResourceKind::Agent,
    ResourceKind::AgentRevision,
    ResourceKind::Secret,
    ResourceKind::CredentialSource,
    ResourceKind::ServiceAccount,
];

/// The type of a kind's entities.
pub(crate) const fn type_of(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Installation => "Installation",
        ResourceKind::Namespace => "Namespace",
        ResourceKind::Configuration => "Configuration",
        ResourceKind::Preset => "Preset",
        ResourceKind::Agent => "Agent",
        ResourceKind::AgentRevision => "AgentRevision",
        ResourceKind::Secret => "Secret",
        ResourceKind::CredentialSource => "CredentialSource",
        ResourceKind::ServiceAccount => "ServiceAccount",
    }
}

/// The type of what the question names: the thing, or for a creation its parent.
pub(crate) const fn target_of(action: Action, kind: ResourceKind) -> &'static str {
    match (action, kind) {
        (Action::Create, ResourceKind::Installation | ResourceKind::Namespace) => "Installation",
        (Action::Create, _) => "Namespace",
        _ => type_of(kind),
    }
}

/// The name of a question's action, such as `agent:deploy`.
pub(crate) fn action_of(action: Action, kind: ResourceKind) -> String {
    format!("{}:{}", kind.as_str(), action.as_str())
}

/// The schema in Cedar's language, for editors and for checks before a file is put in place.
pub fn schema() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(write);
    &TEXT
}

fn write() -> String {
    let mut text = String::from(
        "entity Group in [Group];\n\
         entity Person in [Group];\n\
         entity Service = { \"namespace\"?: String, \"agent\"?: String };\n\
         entity Installation, Namespace;\n\
         entity Configuration, Preset, Agent, AgentRevision, Secret, CredentialSource, ServiceAccount in [Namespace];\n",
    );
    for kind in KINDS {
        for action in ACTIONS {
            let (name, target) = (action_of(action, kind), target_of(action, kind));
            let _ = writeln!(
                text,
                "action \"{name}\" appliesTo {{ principal: [Person, Service], resource: [{target}] }};"
            );
        }
    }
    text
}

/// The same, read.
pub(crate) fn parsed() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> =
        LazyLock::new(|| Schema::from_cedarschema_str(schema()).expect("the schema is our own").0);
    &SCHEMA
}
