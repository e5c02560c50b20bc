//! The API over a database in memory and a Compute that runs nothing, for tools that test an API from outside. Prints where it
//! is and the administrator's key as one line of JSON, and ends with its standard input.

use std::{io::Write as _, net::SocketAddr};

use occ_core::control::{CreateAccount, CreateServiceKey};
use occ_test_support::drivers::World;
use tokio::io::AsyncReadExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let world = World::new().await;
    let agent = world.deployable("support").await;
    let revision = world
        .plane
        .deploy_agent(&world.admin, world.namespace, agent.id)
        .await?;
    let input = CreateServiceKey {
        principal_id: world.admin.principal.clone(),
        name: "example".parse()?,
        namespace_id: None,
        expires_in: None,
    };
    let account = CreateAccount {
        email: "grace@example.com".parse()?,
        name: "Grace".parse()?,
        principal_id: None,
        password: None,
    };
    let person = world.plane.create_account(&world.admin, account).await?.account;
    let key = world.plane.create_service_key(&world.admin, input).await?;
    let listener = occ_api::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let line = serde_json::json!({
        "api": format!("http://{}", listener.local_addr()?),
        "key": key.value.expose_str(),
        "namespace": world.namespace,
        "agent": agent.id,
        "revision": revision.id,
        "person": person.principal_id,
    });
    writeln!(std::io::stdout(), "{line}")?;
    let input_ends = async {
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    };
    occ_api::serve(listener, occ_api::router(world.plane.clone()), input_ends).await;
    Ok(())
}
