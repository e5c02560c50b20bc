//! What would be a host: it outlives the drivers over it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

use occ_core::{
    id::{AgentId, NamespaceId, RevisionId},
    resource::WorkspaceFileName,
};
use uuid::Uuid;

/// A version's component that runs.
pub struct Gateway {
    pub revision: RevisionId,
    pub version: String,
    pub environment: BTreeMap<String, String>,
    pub found: BTreeMap<String, String>,
    /// The driver instance that started it.
    pub starter: u64,
    pub lines: Vec<String>,
}

/// What is kept of an Agent.
#[derive(Default)]
pub struct Home {
    pub namespace: Option<NamespaceId>,
    pub password: Option<String>,
    pub starts: Vec<String>,
    pub files: BTreeMap<&'static str, String>,
    pub setup: Option<Uuid>,
    pub revisions: BTreeMap<RevisionId, u64>,
    pub starting: Option<RevisionId>,
    pub gateway: Option<Gateway>,
    pub route: Option<RevisionId>,
    pub busy: bool,
    pub scrap: Vec<String>,
}

impl Home {
    /// What the native initialization does, and the initial files over it.
    pub fn initialize(&mut self) {
        for name in WorkspaceFileName::ALL {
            self.files
                .entry(name.as_str())
                .or_insert_with(|| format!("stock {}\n", name.as_str()));
        }
    }
}

#[derive(Default)]
pub struct State {
    pub namespaces: BTreeSet<NamespaceId>,
    pub homes: BTreeMap<AgentId, Home>,
    pub foreign: BTreeSet<AgentId>,
    pub instances: u64,
    /// Whatever else a flaw leaves behind.
    pub scrap: Vec<String>,
    /// What happened before, for flaws of a second call.
    pub seen: BTreeSet<&'static str>,
}

#[derive(Default)]
pub struct Place(Mutex<State>);

impl Place {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything as an inventory names it.
    pub fn items(&self) -> Vec<(String, Vec<u8>)> {
        let state = self.state();
        let mut items: Vec<(String, Vec<u8>)> =
            state.namespaces.iter().map(|id| (id.to_string(), Vec::new())).collect();
        items.extend(state.foreign.iter().map(|id| (format!("foreign {id}"), Vec::new())));
        items.extend(
            state
                .scrap
                .iter()
                .map(|text| ("scrap".to_owned(), text.clone().into_bytes())),
        );
        for (id, home) in &state.homes {
            let mut content = format!(
                "{:?} {:?} {:?} {:?}",
                home.namespace, home.starts, home.files, home.setup
            );
            let _ = write!(content, "{:?} {:?} {:?}", home.revisions, home.route, home.scrap);
            items.push((id.to_string(), content.into_bytes()));
            if home.password.is_some() {
                items.push((format!("{id}/password"), Vec::new()));
            }
        }
        items
    }
}
