//! What must hold when a change commits.

use occ_core::{store::Expect, time::Timestamp};

use super::{
    data::{Data, State},
    read,
};

impl Data {
    pub(super) fn holds(&self, now: Timestamp, expect: &Expect) -> bool {
        match expect {
            Expect::ClaimHeld(token) => self.held(*token, now).is_some(),
            Expect::Namespace(id, version) => self.namespace(*id).is_some_and(|row| row.version == *version),
            Expect::NamespaceStatus(id, statuses) => self
                .namespace(*id)
                .is_some_and(|row| statuses.contains(&row.namespace.status)),
            Expect::Agent(id, version) => self.agents.get(id).is_some_and(|row| row.version == *version),
            Expect::AgentRuntime { agent, active, desired } => self.agents.get(agent).is_some_and(|row| {
                (row.agent.active_revision_id, row.agent.desired_runtime_state) == (*active, *desired)
            }),
            Expect::Configuration(id, generation) => self
                .configurations
                .get(id)
                .is_some_and(|row| row.generation == *generation && !row.deleting),
            Expect::ConfigurationDeleting(id) => self.configurations.get(id).is_some_and(|row| row.deleting),
            Expect::Owned(id, version) => self.owned.get(id).is_some_and(|row| row.version == *version),
            Expect::OwnedUnreferenced(id) => self.agents.values().all(|row| !read::names_owned(&row.agent, id)),
            Expect::NoAnswer(principal, key) => self.first_answer(now, principal, key).is_none(),
            Expect::Secret(id, version) => self.secrets.get(id).is_some_and(|row| row.version == *version),
            Expect::RevisionCount(agent, count) => self.revision_count(*agent) == *count,
            Expect::SecretUnreferenced(id) => self.consumers(*id).is_empty(),
            Expect::ConfigurationUnreferenced(id) => self.agents.values().all(|row| row.agent.configuration_id != *id),
            Expect::NamespaceEmpty(id) => self.contents(*id).next().is_none(),
            Expect::NoInstallation => self.installation.is_none(),
            Expect::AccessBinding(id) => self.bindings.contains_key(id),
            Expect::Role(id) => self.roles.contains_key(id),
            Expect::RoleUnreferenced(id) => self.bindings.values().all(|binding| binding.role_id != *id),
            Expect::Account(id, version) => self.accounts.get(id).is_some_and(|row| row.version == *version),
            Expect::WorkFailed(key) => self
                .work
                .get(key)
                .is_some_and(|work| matches!(work.state, State::Failed(..))),
            Expect::WorkActor(key, actor) => self.work.get(key).is_none_or(|work| work.actor == *actor),
        }
    }
}
