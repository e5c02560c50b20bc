//! What a change writes, and the rules of the stored data that no write may break.

use std::{sync::Arc, time::Duration};

use occ_core::{
    audit::AuditEvent,
    driver::{Identity, IdentityKind, ResourceKind, StateEntry, StateWrite},
    iam::Subject,
    id::{AgentId, ConfigurationId, NamespaceId, RevisionId, SecretId},
    resource::{
        Agent, AgentRevision, AgentStatus, DesiredRuntimeState, Namespace, NamespaceStatus, Secret, WorkspaceSetup,
    },
    store::{AgentRow, Change, CommitError, ConfigurationRow, NamespaceRow, OwnedRow, RevisionRow, Taken, Write},
    time::Timestamp,
    work::Target,
};

use super::{
    data::{Data, Key, Named},
    read::drafted,
};

type Done = Result<(), CommitError>;

fn hold(rule: bool) -> Done {
    if rule { Ok(()) } else { Err(CommitError::Refused) }
}

impl Data {
    pub(super) fn apply(&mut self, now: Timestamp, change: &Change) -> Done {
        for expect in &change.expect {
            if !self.holds(now, expect) {
                return Err(CommitError::Conflict(expect.clone()));
            }
        }
        for write in &change.writes {
            self.written(now, write)?;
        }
        for record in &change.state {
            self.stage(record)?;
        }
        change
            .audit
            .iter()
            .try_for_each(|event| self.record(now, event.clone()))
    }

    pub(super) fn record(&mut self, now: Timestamp, event: AuditEvent) -> Done {
        hold(self.audit.iter().all(|recorded| recorded.id != event.id))?;
        Arc::make_mut(&mut self.audit).push(Arc::new(event));
        Arc::make_mut(&mut self.audited_at).push(now);
        Ok(())
    }

    fn stage(&mut self, write: &StateWrite) -> Done {
        let key = (write.driver.clone(), write.key.clone());
        if self.records.get(&key).map(|entry| entry.version) != write.expected {
            return Err(CommitError::StateConflict);
        }
        match &write.value {
            Some(value) => {
                let version = write.expected.unwrap_or(0) + 1;
                let value = value.clone();
                self.records.write().insert(key, StateEntry { value, version });
            }
            None => {
                self.records.write().remove(&key);
            }
        }
        Ok(())
    }

    // One short arm a write.
    #[allow(clippy::too_many_lines)]
    fn written(&mut self, now: Timestamp, write: &Write) -> Done {
        match write {
            Write::Installation(installation) => {
                hold(self.installation.is_none())?;
                self.installation = Some(installation.clone());
                Ok(())
            }
            Write::Principal(id, name) => {
                self.names.write().insert(id.clone(), name.clone());
                self.principal(Identity {
                    id: id.clone(),
                    kind: IdentityKind::Human,
                    namespace_id: None,
                    agent_id: None,
                })
            }
            Write::Account(_)
            | Write::AccountCode(..)
            | Write::AccountPassword(..)
            | Write::AccountDisabled(..)
            | Write::Session(_)
            | Write::TouchSession(_)
            | Write::EndSession(_)
            | Write::EndSessions(_)
            | Write::FederatedIdentity { .. }
            | Write::UnlinkIdentities(_)
            | Write::AgentTokenKey(_) => self.of_account(now, write),
            Write::Role(role) => {
                hold(!self.roles.contains_key(&role.id))?;
                self.roles.write().insert(role.id.clone(), role.clone());
                Ok(())
            }
            Write::AccessBinding(binding) => {
                hold(!self.bindings.contains_key(&binding.id) && self.roles.contains_key(&binding.role_id))?;
                self.bindings.write().insert(binding.id.clone(), binding.clone());
                Ok(())
            }
            Write::DeleteRole(id) => {
                hold(self.bindings.values().all(|binding| binding.role_id != *id))?;
                hold(self.roles.write().remove(id).is_some())
            }
            Write::DeleteAccessBinding(id) => {
                self.bindings.write().remove(id);
                Ok(())
            }
            Write::ServiceKey(key) => {
                hold(self.principals.contains_key(&key.principal) && !self.keys.contains_key(&key.id))?;
                let revoked = false;
                let key = key.clone();
                self.keys.write().insert(key.id, Key { key, revoked });
                Ok(())
            }
            Write::RevokeServiceKey(id) => match self.keys.write().get_mut(id) {
                Some(key) => {
                    key.revoked = true;
                    Ok(())
                }
                None => Err(CommitError::Refused),
            },
            Write::Namespace(namespace) => self.new_namespace(namespace),
            Write::NamespaceStatus {
                id,
                status,
                deletion_actor,
            } => {
                let row = self.live_namespace(*id)?;
                row.version += 1;
                row.namespace.status = *status;
                row.deletion_actor = match status {
                    NamespaceStatus::Deleting => deletion_actor.clone().or(row.deletion_actor.take()),
                    _ => None,
                };
                Ok(())
            }
            Write::NamespaceTombstone(id) => self.tombstone(*id),
            Write::Configuration(row) => {
                hold(self.namespaces.contains_key(&row.namespace_id) && !self.configurations.contains_key(&row.id))?;
                self.bind(row)
            }
            Write::UpdateConfiguration(row) => {
                let stored = self.configurations.get(&row.id);
                hold(stored.is_some_and(|stored| stored.namespace_id == row.namespace_id))?;
                self.bind(row)
            }
            Write::DeleteConfiguration(id) => self.delete_configuration(*id),
            Write::Secret(secret) => {
                hold(self.namespaces.contains_key(&secret.namespace_id) && !self.secrets.contains_key(&secret.id))?;
                self.put_secret(secret)
            }
            Write::UpdateSecret(secret) => {
                let stored = self.secrets.get(&secret.id);
                hold(stored.is_some_and(|stored| stored.namespace_id == secret.namespace_id))?;
                self.put_secret(secret)
            }
            Write::DeleteSecret(id) => self.delete_secret(*id),
            Write::Owned(row) => {
                hold(!self.owned.contains_key(&row.id))?;
                self.put_owned(row)
            }
            Write::UpdateOwned(row) => {
                let stored = self.owned.get(&row.id);
                hold(stored.is_some_and(|stored| stored.kind == row.kind && stored.namespace_id == row.namespace_id))?;
                self.put_owned(row)
            }
            Write::DeleteOwned(kind, id) => {
                self.forget_policy(kind.resource_kind(), id);
                hold(self.owned.write().remove(id).is_some())
            }
            Write::Answer(first) => {
                let key = (first.principal.clone(), first.key.clone());
                hold(self.first_answer(now, &key.0, &key.1).is_none())?;
                self.answers.write().insert(key, (first.clone(), now));
                Ok(())
            }
            Write::Agent(agent, setup) => self.new_agent(agent, setup.as_ref()),
            Write::UpdateAgent(agent) => self.update_agent(agent),
            Write::AgentState { id, desired, status } => self.agent_state(*id, *desired, *status),
            Write::DropWorkspaceSetup(id) => {
                self.setups.keep(|agent, setup| agent != id || setup.completed());
                Ok(())
            }
            Write::CompleteWorkspaceSetup(id) => {
                if let Some(setup) = self.setups.write().get_mut(id) {
                    setup.files = None;
                }
                Ok(())
            }
            Write::Revision { revision, .. } => self.new_revision(revision),
            Write::ActiveRevision(agent, revision) => self.select(*agent, *revision),
            Write::RevisionRetired(id) => match self.revisions.write().get_mut(id) {
                Some(row) => {
                    Arc::make_mut(row).live = false;
                    Ok(())
                }
                None => Err(CommitError::Refused),
            },
            Write::RemoveAgent(id) => self.remove_agent(*id),
            Write::Enqueue(work) => self.enqueue(now, Duration::ZERO, work),
            Write::EnqueueLater(work, delay) => self.enqueue(now, *delay, work),
            Write::Requeue(work) => self.requeue(now, work),
            Write::Settle(token, transition) => {
                let events = self.settle(now, *token, transition)?;
                events.into_iter().try_for_each(|event| self.record(now, event))
            }
        }
    }

    fn principal(&mut self, identity: Identity) -> Done {
        hold(!self.principals.contains_key(&identity.id))?;
        self.principals.write().insert(identity.id.clone(), identity);
        Ok(())
    }

    fn live_namespace(&mut self, id: NamespaceId) -> Result<&mut NamespaceRow, CommitError> {
        match self.namespaces.write().get_mut(&id) {
            Some(named) if !named.tombstone => Ok(&mut named.row),
            _ => Err(CommitError::Refused),
        }
    }

    fn new_namespace(&mut self, namespace: &Namespace) -> Done {
        // One that is born deleting would have no one to answer for it.
        hold(namespace.status != NamespaceStatus::Deleting && !self.namespaces.contains_key(&namespace.id))?;
        let taken = self.namespaces.values().map(|named| &named.row.namespace).any(|other| {
            other.name == namespace.name
                || (other.existing_namespace.is_some() && other.existing_namespace == namespace.existing_namespace)
        });
        if taken {
            return Err(CommitError::NameTaken(Taken::Namespace));
        }
        let row = NamespaceRow {
            namespace: namespace.clone(),
            version: 1,
            deletion_actor: None,
        };
        let tombstone = false;
        self.namespaces.write().insert(namespace.id, Named { row, tombstone });
        Ok(())
    }

    fn tombstone(&mut self, id: NamespaceId) -> Done {
        hold(self.contents(id).next().is_none())?;
        let row = self.live_namespace(id)?;
        hold(row.namespace.status == NamespaceStatus::Deleting)?;
        row.version += 1;
        row.namespace.existing_namespace = None;
        row.deletion_actor = None;
        if let Some(named) = self.namespaces.write().get_mut(&id) {
            named.tombstone = true;
        }
        self.forget_policy(ResourceKind::Namespace, &id.to_string());
        let principals = self.principals.clone();
        let of_namespace = |subject: &Subject| match subject {
            Subject::Identity(principal) => principals
                .get(principal)
                .is_some_and(|identity| identity.namespace_id == Some(id)),
            Subject::Group(_) => false,
        };
        self.bindings
            .keep(|_, binding| binding.namespace_id != Some(id) && !of_namespace(&binding.subject));
        self.roles.keep(|_, role| role.namespace_id != Some(id));
        self.keys.keep(|_, key| key.key.namespace_id != Some(id));
        self.principals.keep(|_, identity| identity.namespace_id != Some(id));
        let kept = Target::NamespaceDeleted { namespace: id };
        self.work
            .keep(|_, work| work.target.namespace() != id || work.target == kept);
        Ok(())
    }

    /// Removes the access bindings of exactly this resource.
    fn forget_policy(&mut self, kind: ResourceKind, id: &str) {
        self.bindings.keep(|_, binding| {
            let exact = binding.resource.as_ref();
            exact.is_none_or(|resource| resource.kind != kind || resource.id != id)
        });
    }

    fn bind(&mut self, row: &ConfigurationRow) -> Done {
        let mut bound = row.secret_bindings.values().map(|binding| binding.source.id);
        hold(bound.all(|id| self.secrets.contains_key(&id)))?;
        self.configurations.write().insert(row.id, row.clone());
        Ok(())
    }

    fn delete_configuration(&mut self, id: ConfigurationId) -> Done {
        hold(self.agents.values().all(|row| row.agent.configuration_id != id))?;
        self.forget_policy(ResourceKind::Configuration, &id.to_string());
        hold(self.configurations.write().remove(&id).is_some())
    }

    fn put_secret(&mut self, secret: &Secret) -> Done {
        let taken = self.secrets.values().any(|other| {
            other.id != secret.id && other.namespace_id == secret.namespace_id && other.name == secret.name
        });
        if taken {
            return Err(CommitError::NameTaken(Taken::Secret));
        }
        self.secrets.write().insert(secret.id, secret.clone());
        Ok(())
    }

    fn put_owned(&mut self, row: &OwnedRow) -> Done {
        hold(self.namespaces.contains_key(&row.namespace_id))?;
        hold(row.secrets.iter().all(|id| self.secrets.contains_key(id)))?;
        let taken = self.owned.values().any(|other| {
            other.id != row.id
                && (other.namespace_id, other.kind) == (row.namespace_id, row.kind)
                && other.name == row.name
        });
        if taken {
            return Err(CommitError::NameTaken(Taken::Owned));
        }
        self.owned.write().insert(row.id.clone(), row.clone());
        Ok(())
    }

    fn delete_secret(&mut self, id: SecretId) -> Done {
        let drafts = self.agents.values().map(|row| drafted(row.agent.harness_auth.as_ref()));
        let bound = self
            .configurations
            .values()
            .flat_map(|row| row.secret_bindings.values());
        hold(self.owned.values().all(|row| !row.secrets.contains(&id)))?;
        hold(!drafts.flatten().any(|named| named == id) && !bound.map(|b| b.source.id).any(|named| named == id))?;
        self.forget_policy(ResourceKind::Secret, &id.to_string());
        hold(self.secrets.write().remove(&id).is_some())
    }

    /// What holds of every Agent's row.
    fn agent_rules(&self, agent: &Agent) -> Done {
        let secret = drafted(agent.harness_auth.as_ref());
        hold(
            self.configurations.contains_key(&agent.configuration_id)
                && secret.is_none_or(|id| self.secrets.contains_key(&id))
                && (agent.status == AgentStatus::Active || agent.desired_runtime_state == DesiredRuntimeState::Stopped),
        )?;
        let taken =
            self.agents.values().map(|row| &row.agent).any(|other| {
                other.id != agent.id && other.namespace_id == agent.namespace_id && other.name == agent.name
            });
        if taken {
            return Err(CommitError::NameTaken(Taken::Agent));
        }
        Ok(())
    }

    fn new_agent(&mut self, agent: &Agent, setup: Option<&WorkspaceSetup>) -> Done {
        hold(
            self.namespaces.contains_key(&agent.namespace_id)
                && !self.agents.contains_key(&agent.id)
                && agent.active_revision_id.is_none(),
        )?;
        self.principal(Identity {
            id: agent.service_principal_id.clone(),
            kind: IdentityKind::Service,
            namespace_id: Some(agent.namespace_id),
            agent_id: Some(agent.id),
        })?;
        self.agent_rules(agent)?;
        let row = AgentRow {
            agent: agent.clone(),
            version: 1,
            unreadable: Vec::new(),
        };
        self.agents.write().insert(agent.id, row);
        if let Some(setup) = setup {
            self.setups.write().insert(agent.id, setup.clone());
        }
        Ok(())
    }

    fn update_agent(&mut self, agent: &Agent) -> Done {
        let stored = self.agents.get(&agent.id).cloned();
        let stored = stored.filter(|row| row.agent.namespace_id == agent.namespace_id);
        let stored = stored.ok_or(CommitError::Refused)?;
        self.agent_rules(agent)?;
        let row = AgentRow {
            agent: Agent {
                service_principal_id: stored.agent.service_principal_id,
                active_revision_id: stored.agent.active_revision_id,
                created_at: stored.agent.created_at,
                ..agent.clone()
            },
            version: stored.version + 1,
            unreadable: Vec::new(),
        };
        self.agents.write().insert(agent.id, row);
        Ok(())
    }

    fn agent_state(&mut self, id: AgentId, desired: DesiredRuntimeState, status: AgentStatus) -> Done {
        let stored = self.agents.get(&id).cloned().ok_or(CommitError::Refused)?;
        self.update_agent(&Agent {
            desired_runtime_state: desired,
            status,
            ..stored.agent
        })
    }

    fn new_revision(&mut self, revision: &AgentRevision) -> Done {
        hold(
            self.agents.contains_key(&revision.agent_id)
                && !self.revisions.contains_key(&revision.id)
                && self.revision_count(revision.agent_id) + 1 == revision.revision,
        )?;
        let row = RevisionRow {
            revision: revision.clone(),
            live: true,
        };
        self.revisions.write().insert(revision.id, Arc::new(row));
        Ok(())
    }

    fn select(&mut self, agent: AgentId, revision: Option<RevisionId>) -> Done {
        let own = |id| {
            self.revisions
                .get(&id)
                .is_some_and(|row| row.revision.agent_id == agent)
        };
        hold(revision.is_none_or(own))?;
        match self.agents.write().get_mut(&agent) {
            Some(row) => {
                row.version += 1;
                row.agent.active_revision_id = revision;
                Ok(())
            }
            None => Err(CommitError::Refused),
        }
    }

    fn remove_agent(&mut self, id: AgentId) -> Done {
        let agent = self.agents.get(&id).map(|row| row.agent.clone());
        let agent = agent.ok_or(CommitError::Refused)?;
        hold(agent.status == AgentStatus::Deleting)?;
        self.forget_policy(ResourceKind::Agent, &id.to_string());
        let versions: Vec<_> = self
            .revisions
            .values()
            .filter(|row| row.revision.agent_id == id)
            .map(|row| row.revision.id)
            .collect();
        for version in versions {
            self.forget_policy(ResourceKind::AgentRevision, &version.to_string());
            self.revisions.write().remove(&version);
        }
        let kept = Target::AgentDeleted {
            namespace: agent.namespace_id,
            agent: id,
        };
        self.work
            .keep(|_, work| work.target.agent() != Some(id) || work.target == kept);
        self.setups.write().remove(&id);
        self.agents.write().remove(&id);
        let principal = agent.service_principal_id;
        let subject = Subject::Identity(principal.clone());
        self.bindings.keep(|_, binding| binding.subject != subject);
        self.keys.keep(|_, key| key.key.principal != principal);
        self.principals.write().remove(&principal);
        Ok(())
    }

    /// Rules over several rows, which hold of everything that is ever stored. For the model's own sake: it is asserted.
    pub(super) fn assert_rules(&self) {
        let claimed: Vec<_> = self.work.values().filter(|work| work.is_claimed()).collect();
        assert_eq!(claimed.len(), self.busy().len(), "one lane has two claims: {claimed:?}");
        for work in self.work.values() {
            assert!(work.extra_attempts <= 1, "{work:?}");
        }
    }
}
