//! occ-core embedded without HTTP: a controller of one's own admits an Agent and drives it to an active version on the Compute
//! of `examples/new-compute-driver`, which only logs. `cargo run -p occ-example-custom-controller`.

use std::{error::Error, sync::Arc, time::Duration};

use occ_configuration_local as _;
use occ_core::{
    control::{Bootstrap, Caller, ControlPlane, CreateAccessBinding, CreateAgent, CreateConfiguration, CreateRole},
    installation::{InstallationFile, compose},
    registry::{HostServices, Registry},
    secret_value::SecretValue,
    store::sqlite::SqliteStore,
    work::Policy,
    worker::Worker,
};
use occ_example_new_compute_driver as _;
use occ_harness_openclaw as _;
use occ_iam_native as _;
use occ_secret_local as _;
use serde_json::{from_value, json};

const INSTALLATION: &str = "
drivers:
  configuration: { id: documents, driver: local }
  iam: { id: access, driver: native }
  secret: { id: secrets, driver: local }
  compute: { id: logging, driver: logging }
  harness: [{ id: openclaw, driver: openclaw }]
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let folder = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(folder.path().join("occ.db")).await?);
    let services = HostServices::new(folder.path().join("drivers"), store.clone());
    let file = InstallationFile::parse(INSTALLATION, "the example's installation")?;
    let drivers = Arc::new(compose(&file, &Registry::linked()?, &services)?);
    let plane = ControlPlane::new(store.clone(), drivers.clone());
    let worker = Worker::new(store, drivers, Policy::default()).start();

    // Your controller authenticates people by its own means; to OCC it says who asks.
    let first = plane
        .bootstrap(Bootstrap {
            name: "example".parse()?,
            administrator: "me".parse()?,
        })
        .await?;
    let (me, ns) = (Caller::new(first.administrator), first.namespace.id);
    let key = plane
        .create_secret(&me, ns, "key".parse()?, SecretValue::from("not a real key".to_owned()))
        .await?;
    let document = json!({ "agents": { "defaults": {
        "model": "openai/gpt-5", "models": { "openai/gpt-5": { "agentRuntime": { "id": "openclaw" } } } } } });
    let configuration: CreateConfiguration = from_value(json!({ "kind": "agent", "values": document }))?;
    let configuration = plane.create_configuration(&me, ns, configuration).await?;
    let agent: CreateAgent = from_value(json!({
        "name": "ticket-triage", "configurationId": configuration.id,
        "harnessAuth": { "method": "api_key", "source": key.reference } }))?;
    let agent = plane.create_agent(&me, ns, agent).await?;

    // An Agent's own principal is granted nothing by itself.
    let role: CreateRole = from_value(json!({ "permissions": [{ "action": "operate", "kind": "secret" }] }))?;
    let role = plane.create_role(&me, ns, role).await?;
    let binding: CreateAccessBinding = from_value(json!({
        "principalId": agent.service_principal_id, "roleId": role.id, "resource": { "kind": "secret", "id": key.id } }))?;
    plane.create_access_binding(&me, ns, binding).await?;

    let revision = loop {
        match plane.deploy_agent(&me, ns, agent.id).await {
            Ok(revision) => break revision,
            // The worker is still providing the Namespace.
            Err(refusal) if refusal.code().code() == "NAMESPACE_NOT_READY" => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(refusal) => return Err(refusal.into()),
        }
    };
    let deployment = loop {
        let deployment = plane.deployment(&me, ns, agent.id, revision.id).await?;
        if deployment.status.is_terminal() {
            break deployment;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    println!("{} revision {}: {:?}", agent.name, revision.revision, deployment.status);
    worker.shutdown().await;
    Ok(())
}
