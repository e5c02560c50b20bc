//! Rows that are not what was written, as only damage or another version of the program leaves them.

use occ_core::{
    id::{AgentId, NamespaceId, RevisionId},
    store::{RevisionHead, RevisionRow, SavedField, StoreError, StoreResult},
};

use super::{Data, MemoryStore};

impl MemoryStore {
    /// From now on this field of the version's settings does not decode; with [`SavedField::Configuration`] nothing of them does.
    pub fn spoil(&self, revision: RevisionId, field: SavedField) {
        self.alter(|data, _| data.spoilt.write().insert(revision, field));
    }

    /// Takes the row of a version away, and nothing that names it.
    pub fn lose(&self, revision: RevisionId) {
        self.alter(|data, _| data.revisions.write().remove(&revision));
    }
}

impl Data {
    /// The version, unless its settings were spoilt.
    pub(super) fn whole(&self, row: &RevisionRow) -> StoreResult<RevisionRow> {
        if self.spoilt.contains_key(&row.revision.id) {
            return Err(StoreError::Corrupt("AgentRevision"));
        }
        Ok(row.clone())
    }

    pub(super) fn whole_version(
        &self,
        namespace: NamespaceId,
        agent: AgentId,
        id: RevisionId,
    ) -> StoreResult<Option<RevisionRow>> {
        let row = self.version(namespace, agent, id);
        row.map(|row| self.whole(row)).transpose()
    }

    pub(super) fn whole_versions(&self, namespace: NamespaceId, agent: AgentId) -> StoreResult<Vec<RevisionRow>> {
        let rows = self.versions(agent);
        let own = rows.iter().filter(|row| row.revision.namespace_id == namespace);
        own.map(|row| self.whole(row)).collect()
    }

    /// What is known of a version, whatever became of its settings.
    pub(super) fn head(&self, row: &RevisionRow) -> RevisionHead {
        let head = RevisionHead::from(row);
        if self.spoilt.get(&head.id) != Some(&SavedField::Configuration) {
            return head;
        }
        RevisionHead {
            mode: None,
            compute: None,
            ..head
        }
    }
}
