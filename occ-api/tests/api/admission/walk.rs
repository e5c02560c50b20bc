//! Every pair of a table, over one store: of any two conditions that fail, the earlier check refuses, in its own words, and nothing
//! is left behind.

use std::{collections::BTreeSet, sync::Arc};

use occ_core::store::Store;
use serde_json::json;

use super::{
    issued, mediated,
    scene::{Credentials, Scene, Stage},
    table::{self, Line},
};

/// What is asked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Operation {
    Deploy,
    Create,
    Update,
}

impl Operation {
    /// Its checks, in their order.
    pub const fn table(self, credentials: Credentials) -> &'static [Line] {
        match (self, credentials) {
            (Self::Deploy, Credentials::Delivered) => table::DEPLOY,
            (Self::Create, Credentials::Delivered) => table::CREATE,
            (Self::Update, Credentials::Delivered) => table::UPDATE,
            (Self::Deploy, Credentials::Mediated) => mediated::DEPLOY,
            (Self::Create, Credentials::Mediated) => mediated::CREATE,
            (Self::Update, Credentials::Mediated) => mediated::UPDATE,
            (Self::Deploy, Credentials::Issued) => issued::DEPLOY,
            (Self::Create, Credentials::Issued) => issued::CREATE,
            (Self::Update, Credentials::Issued) => issued::UPDATE,
        }
    }
}

impl Operation {
    /// Whether the line is not proved where credentials are delivered: it is not there, reads otherwise, or is about another kind of source.
    fn is_new(self, line: &Line, credentials: Credentials) -> bool {
        let of_source = ["harness_auth_permission", "current_auth_permission"].contains(&line.0);
        credentials == Credentials::Delivered || of_source || !self.table(Credentials::Delivered).contains(line)
    }
}

/// Every pair of a table, and every line alone. Of the other tables, every pair with a line that is new in it.
pub async fn walk(operation: Operation, credentials: Credentials, store: Arc<dyn Store>) {
    let table = operation.table(credentials);
    let stage = Stage::over(store, credentials).await;
    for (index, (earlier, status, code, words)) in table.iter().enumerate() {
        for later in &table[index..] {
            if !(operation.is_new(&table[index], credentials) || operation.is_new(later, credentials)) {
                continue;
            }
            let (later, ..) = later;
            stage.relent().await;
            let mut scene = Scene::new(&stage).await;
            if operation != Operation::Deploy {
                scene.body["draft"] = json!(true);
            }
            scene.fail(table, &BTreeSet::from([*earlier, *later])).await;
            let world = &stage.served.world;
            let before = (
                world
                    .store
                    .revisions(world.namespace, scene.agent.id)
                    .await
                    .expect("a read")
                    .len(),
                world.store.agents(world.namespace).await.expect("a read").len(),
                world
                    .store
                    .agent(world.namespace, scene.agent.id)
                    .await
                    .expect("a read"),
            );
            world.store.take_work();
            world.store.take_audit();
            let seen = match operation {
                Operation::Deploy => scene.deploy().await,
                Operation::Create => scene.create().await,
                Operation::Update => scene.update().await,
            };
            let case = format!("{earlier} and {later}: {}", seen.body);
            assert_eq!((seen.status.as_u16(), seen.code()), (*status, *code), "{case}");
            assert!(seen.message().contains(words), "{case}");
            let after = (
                world
                    .store
                    .revisions(world.namespace, scene.agent.id)
                    .await
                    .expect("a read")
                    .len(),
                world.store.agents(world.namespace).await.expect("a read").len(),
                world
                    .store
                    .agent(world.namespace, scene.agent.id)
                    .await
                    .expect("a read"),
            );
            assert_eq!(before, after, "{case}");
            assert!(world.store.take_work().is_empty(), "{case}");
            // A denial and a deployment into a Namespace that is not ready are recorded, and nothing else is.
            let recorded = usize::from(*status == 403 || *code == "NAMESPACE_NOT_READY");
            assert_eq!(world.store.take_audit().len(), recorded, "{case}");
        }
    }
}
