//! What can be seen of the Agent from outside.

use occ_core::driver::{GatewayEndpoint, RevisionContext};
use serde_json::Value;

use super::{Scene, watched};
use crate::patience::bounded;

impl Scene {
    /// Where the version's gateway is, if it is on the route.
    pub(in crate::compute) async fn endpoint(&self, version: &RevisionContext) -> Option<GatewayEndpoint> {
        let access = self.driver.gateway_access().expect("the rule needs gateway_access");
        let endpoint = bounded("endpoint", access.endpoint(&Self::cx(), &version.target)).await;
        watched("endpoint", endpoint).expect("a route can be looked up")
    }

    /// What the version's gateway answers; `None` when it is not on the route, or does not answer.
    pub(in crate::compute) async fn ask(&self, version: &RevisionContext, path: &str) -> Option<Value> {
        let endpoint = self.endpoint(version).await?;
        let body = self.subject.get(&endpoint, path).await?;
        Some(serde_json::from_slice(&body).expect("the component answers with JSON"))
    }

    /// What the version's gateway says that it is.
    pub(in crate::compute) async fn serving(&self, version: &RevisionContext) -> Option<String> {
        let answer = self.ask(version, "/version").await?;
        Some(answer["version"].as_str().expect("a version").to_owned())
    }

    /// The versions that were started in the Agent's workspace, as the gateway of `version` knows them.
    pub(in crate::compute) async fn starts(&self, version: &RevisionContext) -> Vec<String> {
        let answer = self.ask(version, "/starts").await.expect("the gateway answers");
        let starts = answer["starts"].as_array().expect("a list");
        starts
            .iter()
            .map(|start| start.as_str().expect("a version").to_owned())
            .collect()
    }

    pub(in crate::compute) async fn items(&self) -> Vec<(String, Vec<u8>)> {
        let inventory = self.subject.inventory().expect("the rule needs an inventory");
        let mut items = inventory.items().await;
        items.sort();
        items
    }
}
