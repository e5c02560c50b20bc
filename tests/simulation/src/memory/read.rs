//! Reads: each is a plain look at the tables.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use occ_core::{
    audit::chain::{self, AuditRecord, Seal},
    driver::StoredRecord,
    iam::{Grants, Subject},
    id::{AgentId, NamespaceId, RevisionId, SecretId},
    resource::{Agent, AgentRevision, DesiredRuntimeState, HarnessAuth, PrincipalId, Secret},
    store::{
        Consumers, DeployQuery, DeployRead, DeploymentRow, FirstAnswer, LeftOver, NamespaceRow, PassRead, RevisionRow,
        WorkState,
    },
    time::Timestamp,
    work::{ClaimToken, Lane, NewWork, Target},
};

use super::data::{Data, State, Work};

/// The Secrets that a version froze.
fn frozen(revision: &AgentRevision) -> impl Iterator<Item = SecretId> {
    let snapshot = &revision.snapshot;
    let bound = snapshot.secret_bindings.values();
    snapshot.harness_auth.secret.iter().chain(bound).map(|secret| secret.id)
}

/// The Secret that an Agent's draft names.
pub(super) fn drafted(auth: Option<&HarnessAuth>) -> Option<SecretId> {
    auth.and_then(HarnessAuth::secret).map(|(_, id)| id)
}

/// Whether the Agent's draft names this service account or credential source.
pub(super) fn names_owned(agent: &Agent, id: &str) -> bool {
    let auth = agent.harness_auth.as_ref();
    let account = auth.and_then(HarnessAuth::account).map(|id| id.to_string());
    let source = auth.and_then(HarnessAuth::credential_source).map(|id| id.to_string());
    let listed = agent
        .credential_sources
        .iter()
        .any(|source| source.source_id.to_string() == id);
    listed || [account, source].iter().flatten().any(|named| named == id)
}

/// How long a first answer is kept, in milliseconds.
const DAY: i64 = 86_400_000;

impl Data {
    pub(super) fn first_answer(&self, now: Timestamp, principal: &PrincipalId, key: &str) -> Option<&FirstAnswer> {
        let kept = self.answers.get(&(principal.clone(), key.to_owned()));
        kept.filter(|(_, at)| at.as_millis() > now.as_millis() - DAY)
            .map(|(answer, _)| answer)
    }

    /// How many events were pruned: the sequence and the position of the last of them.
    pub(super) fn pruned(&self) -> u64 {
        self.anchor.as_ref().map_or(0, |seal| seal.position)
    }

    /// An event that is left, with its seal.
    pub(super) fn audit_record(&self, index: usize) -> Option<AuditRecord> {
        let event = (**self.audit.get(index)?).clone();
        Some(AuditRecord {
            sequence: self.pruned() + index as u64 + 1,
            occurred_at: *self.audited_at.get(index)?,
            event,
            seal: self.seals.get(index).cloned(),
        })
    }

    pub(super) fn seal(&mut self, limit: usize) -> usize {
        let Some(installation) = &self.installation else {
            return 0;
        };
        let first = self.seals.len();
        let last = self.audit.len().min(first + limit);
        let before = self.seals.last().or(self.anchor.as_ref());
        let mut hash = before.map_or_else(|| chain::root(installation.id), |seal| seal.hash.clone());
        for index in first..last {
            let position = self.pruned() + index as u64 + 1;
            hash = chain::link(&hash, position, self.audited_at[index], &self.audit[index]);
            Arc::make_mut(&mut self.seals).push(Seal {
                position,
                hash: hash.clone(),
            });
        }
        last - first
    }

    /// How many sealed events from the oldest on are older than this, without the head of the chain.
    pub(super) fn prunable_audit(&self, now: Timestamp, older_than: Duration) -> usize {
        let old = |at: &&Timestamp| at.plus(older_than) <= now;
        let old = self.audited_at.iter().take_while(old).count();
        old.min(self.seals.len().saturating_sub(1))
    }

    pub(super) fn prune_audit(&mut self, now: Timestamp, older_than: Duration, limit: usize) -> usize {
        let count = self.prunable_audit(now, older_than).min(limit);
        if count > 0 {
            self.anchor = self.seals.get(count - 1).cloned();
            Arc::make_mut(&mut self.seals).drain(..count);
            Arc::make_mut(&mut self.audit).drain(..count);
            Arc::make_mut(&mut self.audited_at).drain(..count);
        }
        count
    }

    /// Keys of work that nothing reads any more and that was over so long ago, the oldest first.
    pub(super) fn prunable_work(&self, now: Timestamp, older_than: Duration) -> Vec<String> {
        let mut old: Vec<_> = self
            .work
            .iter()
            .filter_map(|(key, work)| {
                let (at, done) = match work.state {
                    State::Succeeded(_, _, at) => (at, true),
                    State::Failed(_, _, at) => (at, false),
                    State::Queued | State::Claimed { .. } => return None,
                };
                let unread = match work.target {
                    Target::Maintenance { .. } | Target::AgentStopped { .. } | Target::CredentialsWithdrawn { .. } => {
                        true
                    }
                    Target::AgentDeleted { .. } | Target::NamespaceDeleted { .. } => done,
                    Target::Revision { .. } | Target::NamespaceReady { .. } => false,
                };
                (unread && at.plus(older_than) <= now).then(|| (at, key.clone()))
            })
            .collect();
        old.sort_unstable();
        old.into_iter().map(|(_, key)| key).collect()
    }

    pub(super) fn namespace(&self, id: NamespaceId) -> Option<&NamespaceRow> {
        self.namespaces
            .get(&id)
            .filter(|named| !named.tombstone)
            .map(|named| &named.row)
    }

    pub(super) fn contents(&self, id: NamespaceId) -> impl Iterator<Item = (&'static str, String)> {
        let agents = self.agents.values().filter(move |row| row.agent.namespace_id == id);
        let configurations = self.configurations.values().filter(move |row| row.namespace_id == id);
        let secrets = self.secrets.values().filter(move |row| row.namespace_id == id);
        let owned = self.owned.values().filter(move |row| row.namespace_id == id);
        agents
            .map(|row| ("agent", row.agent.id.to_string()))
            .chain(configurations.map(|row| ("configuration", row.id.to_string())))
            .chain(secrets.map(|row| ("secret", row.id.to_string())))
            .chain(owned.map(|row| (row.kind.as_str(), row.id.clone())))
    }

    pub(super) fn held(&self, token: ClaimToken, now: Timestamp) -> Option<&Work> {
        self.work
            .values()
            .find(|work| matches!(work.state, State::Claimed { token: held, until } if held == token && until > now))
    }

    pub(super) fn busy(&self) -> BTreeSet<Lane> {
        self.work
            .values()
            .filter(|work| work.is_claimed())
            .map(|work| work.target.lane())
            .collect()
    }

    /// An Agent's versions, the oldest first.
    pub(super) fn versions(&self, agent: AgentId) -> Vec<RevisionRow> {
        let mut rows: Vec<_> = self
            .revisions
            .values()
            .filter(|row| row.revision.agent_id == agent)
            .map(|row| (**row).clone())
            .collect();
        rows.sort_unstable_by_key(|row| row.revision.revision);
        rows
    }

    pub(super) fn revision_count(&self, agent: AgentId) -> u64 {
        let numbers = self.revisions.values().filter(|row| row.revision.agent_id == agent);
        numbers.map(|row| row.revision.revision).max().unwrap_or(0)
    }

    pub(super) fn version(&self, namespace: NamespaceId, agent: AgentId, id: RevisionId) -> Option<&RevisionRow> {
        self.revisions
            .get(&id)
            .map(|row| &**row)
            .filter(|row| row.revision.agent_id == agent && row.revision.namespace_id == namespace)
    }

    pub(super) fn consumers(&self, id: SecretId) -> Consumers {
        let Some(secret) = self.secrets.get(&id) else {
            return Consumers::default();
        };
        let freezes = |revision: Option<RevisionId>| {
            revision
                .and_then(|revision| self.revisions.get(&revision))
                .is_some_and(|row| frozen(&row.revision).any(|frozen| frozen == id))
        };
        let agents = self.agents.values().map(|row| &row.agent).filter(|agent| {
            agent.namespace_id == secret.namespace_id
                && (drafted(agent.harness_auth.as_ref()) == Some(id)
                    || freezes(agent.active_revision_id)
                    || self.work.values().any(|work| {
                        !work.is_over()
                            && work.target.lane() == Lane::Agent(agent.id)
                            && freezes(work.target.revision())
                    }))
        });
        let binds = |row: &&occ_core::store::ConfigurationRow| {
            row.secret_bindings.values().any(|binding| binding.source.id == id)
        };
        Consumers {
            agents: agents.map(|agent| agent.id).collect(),
            configurations: self.configurations.values().filter(binds).map(|row| row.id).collect(),
            owned: self
                .owned
                .values()
                .filter(|row| row.secrets.contains(&id))
                .map(|row| (row.kind, row.id.clone()))
                .collect(),
        }
    }

    pub(super) fn deploy_read(&self, now: Timestamp, query: &DeployQuery) -> DeployRead {
        let (namespace, agent) = (query.namespace, query.agent);
        let row = self
            .agents
            .get(&agent)
            .filter(|row| row.agent.namespace_id == namespace);
        let configuration = row
            .and_then(|row| self.configurations.get(&row.agent.configuration_id))
            .filter(|row| row.namespace_id == namespace);
        let drafted = row.and_then(|row| drafted(row.agent.harness_auth.as_ref()));
        let bound = configuration
            .iter()
            .flat_map(|row| row.secret_bindings.values())
            .map(|binding| binding.source.id);
        let named: BTreeSet<_> = drafted.into_iter().chain(bound).collect();
        let secrets = self.of_namespace(&named, namespace);
        let principals = query.policy_of.iter().flat_map(|caller| {
            let own = row.map(|row| &row.agent.service_principal_id);
            [caller].into_iter().chain(own.filter(move |own| *own != caller))
        });
        let keys = configuration.iter().map(|row| row.id.to_string());
        let keys: Vec<_> = keys.chain(secrets.iter().map(|secret| secret.id.to_string())).collect();
        let slots = query
            .records_of
            .iter()
            .flat_map(|driver| keys.iter().map(|key| (driver.clone(), key.clone())));
        DeployRead {
            now,
            namespace: self.namespace(namespace).cloned(),
            agent: row.cloned(),
            configuration: configuration.cloned(),
            revisions: self.revision_count(agent),
            policy: principals.map(|who| (who.clone(), self.grants(who))).collect(),
            records: slots
                .filter_map(|(driver, key)| {
                    let entry = self.records.get(&(driver.clone(), key.clone())).cloned()?;
                    Some(StoredRecord { driver, key, entry })
                })
                .collect(),
            secrets,
        }
    }

    fn of_namespace(&self, named: &BTreeSet<SecretId>, namespace: NamespaceId) -> Vec<Secret> {
        let found = named.iter().filter_map(|id| self.secrets.get(id));
        found
            .filter(|secret| secret.namespace_id == namespace)
            .cloned()
            .collect()
    }

    pub(super) fn pass_read(&self, now: Timestamp, target: &Target) -> PassRead {
        let namespace = target.namespace();
        let agent = target
            .agent()
            .and_then(|id| self.agents.get(&id))
            .filter(|row| row.agent.namespace_id == namespace);
        let version = |id: Option<RevisionId>| {
            id.zip(target.agent())
                .and_then(|(id, agent)| self.version(namespace, agent, id))
        };
        let own = version(target.revision());
        let revision = own.and_then(|row| self.whole(row).ok());
        let secrets = revision
            .iter()
            .flat_map(|row| frozen(&row.revision))
            .collect::<BTreeSet<_>>();
        let deployment = target.agent().zip(target.revision()).and_then(|(agent, revision)| {
            let target = Target::Revision {
                namespace,
                agent,
                revision,
            };
            self.work.get(&target.key()).filter(|work| work.is_over())
        });
        let live = target.agent().map_or_else(Vec::new, |id| self.versions(id));
        let mut pass = PassRead {
            now,
            namespace: self.namespace(namespace).cloned(),
            agent: agent.cloned(),
            head: own.map(|row| self.head(row)),
            revision,
            unreadable: own.and_then(|row| self.spoilt.get(&row.revision.id).copied()),
            active: version(agent.and_then(|row| row.agent.active_revision_id)).map(|row| self.head(row)),
            live: live.iter().filter(|row| row.live).map(|row| self.head(row)).collect(),
            setup: target.agent().and_then(|id| self.setups.get(&id)).cloned(),
            secrets: self.of_namespace(&secrets, namespace),
            sources: Vec::new(),
            account: None,
            deployment: deployment.map(|work| judged(work, now)),
        };
        let account = pass.account_id().and_then(|id| self.owned.get(&id.to_string()));
        let sources = pass
            .source_ids()
            .into_iter()
            .filter_map(|id| self.owned.get(&id.to_string()));
        pass.sources = sources
            .filter(|row| row.namespace_id == namespace)
            .filter_map(|row| row.clone().try_into().ok())
            .collect();
        pass.account = account
            .filter(|row| row.namespace_id == namespace)
            .and_then(|row| row.clone().try_into().ok());
        pass
    }

    pub(super) fn deployment(
        &self,
        now: Timestamp,
        namespace: NamespaceId,
        agent: AgentId,
        revision: RevisionId,
    ) -> Option<DeploymentRow> {
        let row = self.version(namespace, agent, revision)?;
        let target = Target::Revision {
            namespace,
            agent,
            revision,
        };
        let work = self.work.get(&target.key()).filter(|work| work.target == target);
        let selected = self.agents.get(&agent)?.agent.active_revision_id == Some(revision);
        Some(DeploymentRow {
            revision,
            agent,
            namespace,
            left_over: (work.is_some_and(Work::is_over) && row.live && !selected).then(|| LeftOver {
                next_attempt_at: self.cleanup_at(now, row),
            }),
            work: work.map(|work| judged(work, now)),
        })
    }

    /// When queued work is due that cleans up what is left of the version; a claim that lapsed counts as queued.
    fn cleanup_at(&self, now: Timestamp, row: &RevisionRow) -> Option<Timestamp> {
        let cleans = |target: &Target| match target {
            Target::AgentStopped { agent, .. } | Target::AgentDeleted { agent, .. } => *agent == row.revision.agent_id,
            Target::Revision { agent, revision, .. } | Target::Maintenance { agent, revision, .. } => {
                let newer = |other: &Arc<RevisionRow>| other.revision.revision > row.revision.revision;
                *agent == row.revision.agent_id && self.revisions.get(revision).is_some_and(newer)
            }
            Target::NamespaceReady { .. } | Target::NamespaceDeleted { .. } | Target::CredentialsWithdrawn { .. } => {
                false
            }
        };
        let waits = |work: &&Work| match work.state {
            State::Queued => true,
            State::Claimed { until, .. } => until <= now,
            _ => false,
        };
        let due = self.work.values().filter(waits).filter(|work| cleans(&work.target));
        due.map(|work| work.available_at).min()
    }

    /// Whether the version should run and is the one that its Agent's pointer names.
    pub(super) fn published(&self, target: &Target) -> bool {
        let agent = target.agent().and_then(|id| self.agents.get(&id));
        agent.is_some_and(|row| {
            row.agent.active_revision_id.is_some()
                && row.agent.active_revision_id == target.revision()
                && row.agent.desired_runtime_state == DesiredRuntimeState::Running
                && self
                    .namespace(row.agent.namespace_id)
                    .is_some_and(|row| row.namespace.status == occ_core::resource::NamespaceStatus::Ready)
        })
    }

    pub(super) fn selected(&self, now: Timestamp) -> Vec<NewWork> {
        let mut agents: Vec<_> = self.agents.values().map(|row| &row.agent).collect();
        agents.sort_by_key(|agent| (agent.created_at, agent.id));
        let wanted = agents
            .into_iter()
            .filter(|agent| agent.desired_runtime_state == DesiredRuntimeState::Running);
        wanted
            .filter_map(|agent| {
                let (namespace, revision) = (agent.namespace_id, agent.active_revision_id?);
                let deployment = Target::Revision {
                    namespace,
                    agent: agent.id,
                    revision,
                };
                let target = Target::Maintenance {
                    namespace,
                    agent: agent.id,
                    revision,
                    bucket: u64::try_from(now.as_millis()).unwrap_or(0),
                };
                let actor = self.work.get(&deployment.key())?.actor.clone();
                Some(NewWork::new(target, actor))
            })
            .collect()
    }

    pub(super) fn grants(&self, principal: &occ_core::resource::PrincipalId) -> Grants {
        let subject = Subject::Identity(principal.clone());
        let bindings: Vec<_> = self
            .bindings
            .values()
            .filter(|binding| binding.subject == subject)
            .cloned()
            .collect();
        let named: BTreeSet<_> = bindings.iter().map(|binding| &binding.role_id).collect();
        let roles = self.roles.values().filter(|role| named.contains(&role.id));
        Grants {
            identity: self.principals.get(principal).cloned(),
            groups: Vec::new(),
            roles: roles.cloned().collect(),
            bindings,
            restrictions: Vec::new(),
        }
    }
}

/// How work stands, as a reader judges it.
pub(super) fn judged(work: &Work, now: Timestamp) -> WorkState {
    let last_attempt = work.last_attempt;
    match &work.state {
        State::Claimed { until, .. } if *until > now => WorkState::Running { last_attempt },
        State::Queued | State::Claimed { .. } => WorkState::Queued {
            available_at: work.available_at,
            last_attempt,
        },
        State::Succeeded(code, warnings, at) => WorkState::Succeeded {
            code: *code,
            warnings: warnings.clone(),
            at: *at,
        },
        State::Failed(failure, data, at) => WorkState::Failed {
            failure: *failure,
            data: data.clone(),
            actor: work.actor.clone(),
            attempts: work.attempts,
            at: *at,
        },
    }
}
