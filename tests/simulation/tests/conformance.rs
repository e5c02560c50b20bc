//! The model of the store keeps the rules that it is the model of.

use std::{process::ExitCode, sync::Arc};

use async_trait::async_trait;
use occ_conformance::{
    run,
    store::{Recorded, Subject, suite},
};
use occ_core::store::Store;
use occ_simulation::memory::MemoryStore;

struct Memory(MemoryStore);

#[async_trait]
impl Subject for Memory {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    async fn second(&self) -> Arc<dyn Store> {
        self.store()
    }

    async fn audit(&self) -> Vec<Recorded> {
        let text = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let events = self.0.data().audit;
        events
            .iter()
            .map(|event| Recorded {
                id: event.id.to_string(),
                action: event.action.clone(),
                outcome: text(serde_json::to_value(event.outcome).expect("a word")),
                reason_code: event.reason_code.clone(),
                details: event.details.clone(),
            })
            .collect()
    }
}

fn main() -> ExitCode {
    run(suite(|| async {
        Arc::new(Memory(MemoryStore::default())) as Arc<dyn Subject>
    }))
}
