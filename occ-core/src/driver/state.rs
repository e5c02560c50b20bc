//! Records that a driver keeps in the Installation's own store.
//!
//! A driver that needs durable records and has no backend of its own (`secret-local`, `configuration-local`) writes them through
//! the operation's context. The writes are staged and commit in the same transaction as the resource that they belong to, so
//! a crash leaves both or neither.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{EffectResult, Fault, FaultKind};

/// One stored record. `Debug` shows no bytes: they may be sealed secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct StateEntry {
    /// The bytes, in a form that the driver versions itself.
    pub value: Vec<u8>,
    /// Grows with each write of this key.
    pub version: u64,
}

impl fmt::Debug for StateEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateEntry")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// A committed record and where it is kept. `Debug` shows no bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// The driver, as for [`StateReader::read`].
    pub driver: String,
    /// The key.
    pub key: String,
    /// The record.
    pub entry: StateEntry,
}

/// Reads committed records.
#[async_trait]
pub trait StateReader: Send + Sync {
    /// The record under `key` of the driver `driver` (kind and instance id, `secret/secret-local`).
    async fn read(&self, driver: &str, key: &str) -> EffectResult<Option<StateEntry>>;
}

/// A reader for drivers and tests that keep nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyState;

#[async_trait]
impl StateReader for EmptyState {
    async fn read(&self, _: &str, _: &str) -> EffectResult<Option<StateEntry>> {
        Ok(None)
    }
}

/// Records in memory, for tests of a driver without a store: read through [`DriverState`], committed as a store commits them.
#[derive(Clone, Default)]
pub struct MemoryState(Arc<Mutex<BTreeMap<(String, String), StateEntry>>>);

impl fmt::Debug for MemoryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryState").finish_non_exhaustive()
    }
}

impl MemoryState {
    fn records(&self) -> MutexGuard<'_, BTreeMap<(String, String), StateEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits staged writes, all or none: a version that changed meanwhile is a [`FaultKind::Conflict`].
    pub fn commit(&self, writes: Vec<StateWrite>) -> EffectResult<()> {
        let mut records = self.records();
        let fresh = |w: &StateWrite| {
            let stored = records.get(&(w.driver.clone(), w.key.clone()));
            stored.map(|entry| entry.version) == w.expected
        };
        if !writes.iter().all(fresh) {
            return Err(Fault::new("commit records", FaultKind::Conflict).into());
        }
        for StateWrite {
            driver,
            key,
            expected,
            value,
        } in writes
        {
            match value {
                Some(value) => {
                    let version = expected.map_or(1, |version| version + 1);
                    records.insert((driver, key), StateEntry { value, version })
                }
                None => records.remove(&(driver, key)),
            };
        }
        Ok(())
    }

    /// Every record's driver, key and bytes: what a test scans for what must not be there.
    pub fn dump(&self) -> Vec<(String, String, Vec<u8>)> {
        self.records()
            .iter()
            .map(|((driver, key), entry)| (driver.clone(), key.clone(), entry.value.clone()))
            .collect()
    }
}

#[async_trait]
impl StateReader for MemoryState {
    async fn read(&self, driver: &str, key: &str) -> EffectResult<Option<StateEntry>> {
        Ok(self.records().get(&(driver.to_owned(), key.to_owned())).cloned())
    }
}

/// One staged write, fenced by the version that was read.
#[derive(Clone, PartialEq, Eq)]
pub struct StateWrite {
    /// The driver, as for [`StateReader::read`].
    pub driver: String,
    /// The key.
    pub key: String,
    /// The version that must be stored for the write to happen; `None`: no record may exist.
    pub expected: Option<u64>,
    /// The new bytes; `None` deletes.
    pub value: Option<Vec<u8>>,
}

impl fmt::Debug for StateWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateWrite")
            .field("driver", &self.driver)
            .field("key", &self.key)
            .field("expected", &self.expected)
            .field("deletes", &self.value.is_none())
            .finish()
    }
}

type Staged = BTreeMap<(String, String), StateWrite>;
type Known = BTreeMap<(String, String), StateEntry>;

/// A driver's view of its records during one operation: reads see the operation's own staged writes.
#[derive(Clone)]
pub struct DriverState {
    reader: Arc<dyn StateReader>,
    staged: Arc<Mutex<Staged>>,
    known: Arc<Known>,
}

impl fmt::Debug for DriverState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverState").finish_non_exhaustive()
    }
}

impl DriverState {
    /// A view over committed records with nothing staged.
    pub fn new(reader: Arc<dyn StateReader>) -> Self {
        Self {
            reader,
            staged: Arc::default(),
            known: Arc::default(),
        }
    }

    /// The same with records that were read already: they are not read again.
    #[must_use]
    pub fn knowing(mut self, records: impl IntoIterator<Item = StoredRecord>) -> Self {
        let known = records.into_iter();
        self.known = Arc::new(
            known
                .map(|record| ((record.driver, record.key), record.entry))
                .collect(),
        );
        self
    }

    fn staged(&self) -> MutexGuard<'_, Staged> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record under `key`, staged or committed.
    pub async fn get(&self, driver: &str, key: &str) -> EffectResult<Option<StateEntry>> {
        let slot = (driver.to_owned(), key.to_owned());
        if let Some(write) = self.staged().get(&slot) {
            let version = write.expected.map_or(1, |v| v + 1);
            return Ok(write.value.clone().map(|value| StateEntry { value, version }));
        }
        if let Some(entry) = self.known.get(&slot) {
            return Ok(Some(entry.clone()));
        }
        self.reader.read(driver, key).await
    }

    /// Stages a write. `expected` is the version that [`DriverState::get`] gave, `None` for a new record.
    pub fn put(&self, driver: &str, key: &str, expected: Option<u64>, value: Vec<u8>) -> EffectResult<()> {
        self.stage(driver, key, expected, Some(value))
    }

    /// Stages a deletion of the version that [`DriverState::get`] gave.
    pub fn delete(&self, driver: &str, key: &str, expected: u64) -> EffectResult<()> {
        self.stage(driver, key, Some(expected), None)
    }

    fn stage(&self, driver: &str, key: &str, expected: Option<u64>, value: Option<Vec<u8>>) -> EffectResult<()> {
        let mut staged = self.staged();
        let slot = (driver.to_owned(), key.to_owned());
        // A second write of one key in one operation would need the version that the first has not got yet.
        if staged.contains_key(&slot) {
            return Err(Fault::new("stage a second write of one record", FaultKind::Conflict).into());
        }
        let write = StateWrite {
            driver: slot.0.clone(),
            key: slot.1.clone(),
            expected,
            value,
        };
        staged.insert(slot, write);
        Ok(())
    }

    /// Takes what was staged, for the committing transaction.
    pub fn take_staged(&self) -> Vec<StateWrite> {
        std::mem::take(&mut *self.staged()).into_values().collect()
    }
}
