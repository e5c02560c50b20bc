//! Ids that no database can hold.

use std::sync::Arc;

use occ_core::store::Store;
use occ_test_support::drivers::World;
use reqwest::Method;
use serde_json::json;

use crate::served::Served;

/// What cannot be stored is not there, and is no fault of the database.
pub async fn are_not_found(store: Arc<dyn Store>) {
    let served = Served::over(World::builder().store(store).build().await).await;
    for path in ["/iam/roles/%00", "/iam/roles/role%00", "/iam/access-bindings/%00"] {
        for method in [Method::GET, Method::DELETE] {
            let seen = served.send(method.clone(), &served.path(path)).await;
            assert_eq!(seen.status.as_u16(), 404, "{method} {path}: {}", seen.body);
        }
    }
    let binding = json!({ "principalId": served.world.admin.principal, "roleId": "role\u{0}" });
    let seen = served
        .json(Method::POST, &served.path("/iam/access-bindings"), &binding)
        .await;
    assert_eq!(seen.status.as_u16(), 400, "{}", seen.body);
}

#[tokio::test]
async fn an_id_that_no_database_can_hold_is_not_found() {
    are_not_found(crate::served::store().await).await;
}
