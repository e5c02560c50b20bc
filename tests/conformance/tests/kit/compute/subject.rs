//! The model as the suite meets it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use occ_conformance::compute::{Foreign, Inventory, Subject};
use occ_core::driver::{AgentRef, ComputeDriver, GatewayEndpoint};
use serde_json::json;

use super::{Flaw, driver::ModelCompute, place::Place};

pub struct Model {
    flaw: Flaw,
    exclusive: bool,
    place: Arc<Place>,
}

impl Model {
    pub fn with(flaw: Flaw) -> Self {
        Self {
            flaw,
            exclusive: false,
            place: Arc::default(),
        }
    }

    /// One that wants every predecessor stopped.
    pub fn exclusive() -> Self {
        Self {
            exclusive: true,
            ..Self::with(Flaw::None)
        }
    }
}

#[async_trait]
impl Subject for Model {
    fn driver(&self) -> Arc<dyn ComputeDriver> {
        let instance = {
            let mut state = self.place.state();
            state.instances += 1;
            state.instances
        };
        let driver = ModelCompute::new(self.flaw, Arc::clone(&self.place), instance);
        Arc::new(driver.exclusive(self.exclusive))
    }

    async fn get(&self, endpoint: &GatewayEndpoint, path: &str) -> Option<Vec<u8>> {
        let agent = endpoint.url.strip_prefix("model://")?.parse().ok()?;
        let mut state = self.place.state();
        let home = state.homes.get_mut(&agent)?;
        let starts = home.starts.clone();
        let gateway = home.gateway.as_mut()?;
        gateway.lines.push(format!("request {path}"));
        let (kind, name) = path.trim_start_matches('/').split_once('/').unwrap_or((&path[1..], ""));
        let body = match kind {
            "version" => json!({ "version": gateway.version }),
            "starts" => json!({ "starts": starts }),
            "digest" => json!({ "sha256": occ_core::digest::hex(gateway.environment.get(name)?.as_bytes()) }),
            "found" => json!({ "content": gateway.found.get(name)? }),
            _ => return None,
        };
        serde_json::to_vec(&body).ok()
    }

    fn inventory(&self) -> Option<&dyn Inventory> {
        Some(self)
    }

    fn foreign(&self) -> Option<&dyn Foreign> {
        Some(self)
    }
}

#[async_trait]
impl Inventory for Model {
    async fn items(&self) -> Vec<(String, Vec<u8>)> {
        self.place.items()
    }
}

#[async_trait]
impl Foreign for Model {
    async fn plant(&self, agent: &AgentRef) {
        self.place.state().foreign.insert(agent.id);
    }
}

/// Whether this is the first time.
pub fn first(flag: &AtomicBool) -> bool {
    !flag.swap(true, Ordering::Relaxed)
}
