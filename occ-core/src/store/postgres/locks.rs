//! What a change must have to itself while it is judged and written.
//!
//! A change is decided on what was read; between its check and its commit nobody else may change that. Every change names what it
//! rests on (shared) and what it changes (alone), and all take these locks in one order: Namespace, then Agent, then the rest.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    id::NamespaceId,
    store::{Change, Expect, Write},
};

/// Names of locks, and whether each is held alone. The names sort in the lock order.
#[derive(Debug, Default)]
pub(super) struct Locks(BTreeMap<String, bool>);

impl Locks {
    pub(super) fn of(change: &Change) -> Self {
        let mut locks = Self::default();
        change.expect.iter().for_each(|expect| locks.expected(expect));
        change.writes.iter().for_each(|write| locks.written(write));
        locks
    }

    fn add(&mut self, order: u8, name: impl std::fmt::Display, alone: bool) {
        *self.0.entry(format!("{order} {name}")).or_default() |= alone;
    }

    /// A Namespace that is changed.
    pub(super) fn namespace(&mut self, id: NamespaceId) {
        self.add(1, id, true);
    }

    /// Both.
    pub(super) fn join(&mut self, other: Self) {
        for (name, alone) in other.0 {
            *self.0.entry(name).or_default() |= alone;
        }
    }

    /// In their order.
    pub(super) fn into_iter(self) -> impl Iterator<Item = (String, bool)> {
        self.0.into_iter()
    }

    pub(super) fn json(&self) -> Value {
        self.0.iter().map(|(name, alone)| json!([name, alone])).collect()
    }

    fn expected(&mut self, expect: &Expect) {
        match expect {
            Expect::NoInstallation => self.add(0, "installation", true),
            Expect::Namespace(id, _) | Expect::NamespaceStatus(id, _) => self.add(1, id, false),
            Expect::NamespaceEmpty(id) => self.add(1, id, true),
            Expect::Agent(id, _) | Expect::AgentRuntime { agent: id, .. } | Expect::RevisionCount(id, _) => {
                self.add(2, id, false);
            }
            Expect::Configuration(id, _) | Expect::ConfigurationDeleting(id) => self.add(3, id, false),
            Expect::Owned(id, _) => self.add(6, id, false),
            Expect::OwnedUnreferenced(id) => self.add(6, id, true),
            Expect::NoAnswer(principal, key) => self.add(7, format_args!("{principal} {key}"), true),
            Expect::ConfigurationUnreferenced(id) => self.add(3, id, true),
            Expect::Secret(id, _) => self.add(4, id, false),
            Expect::SecretUnreferenced(id) => self.add(4, id, true),
            Expect::Role(id) => self.add(5, id, false),
            Expect::AccessBinding(id) => self.add(9, id, false),
            Expect::RoleUnreferenced(id) => self.add(5, id, true),
            Expect::Account(id, _) => self.add(8, id, false),
            // Their rows are locked.
            Expect::ClaimHeld(_) | Expect::WorkFailed(_) | Expect::WorkActor(..) => {}
        }
    }

    fn written(&mut self, write: &Write) {
        match write {
            Write::Installation(_) => self.add(0, "installation", true),
            Write::Namespace(row) => self.add(1, row.id, true),
            Write::NamespaceStatus { id, .. } | Write::NamespaceTombstone(id) => self.add(1, id, true),
            Write::Configuration(row) => self.add(1, row.namespace_id, false),
            Write::UpdateConfiguration(row) => self.add(3, row.id, true),
            Write::DeleteConfiguration(id) => self.add(3, id, true),
            Write::Secret(row) => self.add(1, row.namespace_id, false),
            Write::UpdateSecret(row) => self.add(4, row.id, true),
            Write::DeleteSecret(id) => self.add(4, id, true),
            Write::Owned(row) => {
                self.add(1, row.namespace_id, false);
                row.secrets.iter().for_each(|id| self.add(4, id, false));
            }
            Write::UpdateOwned(row) => {
                row.secrets.iter().for_each(|id| self.add(4, id, false));
                self.add(6, &row.id, true);
            }
            Write::DeleteOwned(_, id) => self.add(6, id, true),
            Write::Answer(first) => self.add(7, format_args!("{} {}", first.principal, first.key), true),
            Write::Agent(agent, _) => {
                self.add(1, agent.namespace_id, false);
                self.add(2, agent.id, true);
                self.add(3, agent.configuration_id, false);
            }
            Write::UpdateAgent(agent) => {
                self.add(2, agent.id, true);
                self.add(3, agent.configuration_id, false);
            }
            Write::DropWorkspaceSetup(id)
            | Write::CompleteWorkspaceSetup(id)
            | Write::ActiveRevision(id, _)
            | Write::AgentState { id, .. }
            | Write::RemoveAgent(id) => self.add(2, id, true),
            Write::Revision { revision, .. } => self.add(2, revision.agent_id, true),
            Write::AccessBinding(binding) => self.add(5, &binding.role_id, false),
            Write::DeleteRole(id) => self.add(5, id, true),
            Write::DeleteAccessBinding(id) => self.add(9, id, true),
            Write::Account(new) => self.add(8, &new.principal, true),
            Write::AccountCode(id, _)
            | Write::AccountPassword(id, _)
            | Write::AccountDisabled(id, _)
            | Write::UnlinkIdentities(id) => {
                self.add(8, id, true);
            }
            Write::Session(new) => self.add(8, &new.principal, false),
            Write::FederatedIdentity { principal, .. } => self.add(8, principal, false),
            // Rows that nothing else rests on, or that the statement itself locks.
            Write::Principal(..)
            | Write::Role(_)
            | Write::ServiceKey(_)
            | Write::RevokeServiceKey(_)
            | Write::TouchSession(_)
            | Write::EndSession(_)
            | Write::EndSessions(_)
            | Write::AgentTokenKey(_)
            | Write::RevisionRetired(_)
            | Write::Enqueue(_)
            | Write::EnqueueLater(..)
            | Write::Requeue(_)
            | Write::Settle(..) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{id::AgentId, resource::NamespaceStatus};

    #[test]
    fn a_change_locks_in_one_order_whatever_its_own() {
        let (namespace, mut agents) = (NamespaceId::random(), [AgentId::random(), AgentId::random()]);
        agents.sort_unstable();
        let mut change = Change::new();
        change.expect = agents.iter().map(|agent| Expect::RevisionCount(*agent, 0)).collect();
        change
            .expect
            .push(Expect::NamespaceStatus(namespace, &[NamespaceStatus::Ready]));
        change.writes = vec![Write::RemoveAgent(agents[1]), Write::RemoveAgent(agents[0])];
        let order = json!([
            [format!("1 {namespace}"), false],
            [format!("2 {}", agents[0]), true],
            [format!("2 {}", agents[1]), true],
        ]);
        assert_eq!(Locks::of(&change).json(), order);
        change.expect.reverse();
        change.writes.reverse();
        assert_eq!(Locks::of(&change).json(), order);
    }
}
