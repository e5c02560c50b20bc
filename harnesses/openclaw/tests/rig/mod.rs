//! A Harness as an Installation builds it, and documents to give it.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::{collections::BTreeMap, sync::Arc};

use occ_core::{
    driver::{ComputeProfile, DocumentProblem, DriverKind, Harness, Listen, PlanInput},
    iam::NoPolicy,
    id::{ConfigurationId, NamespaceId, SecretId},
    plan::{Directory, Layout, WorkloadPlan},
    registry::{BuildError, Built, HostServices, Registry},
    resource::{
        BackendRef, ComputeIdentity, ConfigurationKind, Document, ExecutionMode, HarnessAuth, HarnessAuthSnapshot,
        HarnessIdentity, SecretSnapshot, SecretSource, SecretSourceKind, Snapshot,
    },
};
use occ_harness_openclaw as _;
use serde_json::{Value, json};

pub fn build(id: &str, settings: Value) -> Result<Arc<dyn Harness>, BuildError> {
    let host = HostServices::new(std::env::temp_dir(), Arc::new(NoPolicy));
    let registry = Registry::linked().expect("one Harness is linked");
    let registration = registry
        .find(DriverKind::Harness, "openclaw")
        .expect("the Harness is linked");
    match (registration.build)(id, settings, &host)? {
        Built::Harness(harness) => Ok(harness),
        _ => panic!("another kind"),
    }
}

pub fn harness() -> Arc<dyn Harness> {
    build("openclaw", json!({})).expect("it builds")
}

pub fn document(value: Value) -> Document {
    match value {
        Value::Object(object) => object,
        other => panic!("no document: {other}"),
    }
}

/// The usual document: an `OpenAI` model over its Responses API.
pub fn usual() -> Value {
    json!({
        "gateway": {
            "auth": {
                "mode": "password",
                "password": { "source": "env", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD" },
            },
            "http": { "endpoints": { "chatCompletions": { "enabled": true } } },
        },
        "agents": {
            "defaults": {
                "model": "openai/gpt-5",
                "models": { "openai/gpt-5": { "agentRuntime": { "id": "openclaw" } } },
            },
        },
        "models": {
            "providers": {
                "openai": {
                    "baseUrl": "https://api.openai.com/v1",
                    "api": "openai-responses",
                    "models": [{ "id": "gpt-5", "name": "gpt-5" }],
                },
            },
        },
    })
}

/// The usual document with `value` at `pointer`; objects on the way are made, and `null` removes.
pub fn with(mut base: Value, pointer: &str, value: Value) -> Value {
    let mut place = &mut base;
    let keys: Vec<String> = pointer[1..]
        .split('/')
        .map(|key| key.replace("~1", "/").replace("~0", "~"))
        .collect();
    let (last, way) = keys.split_last().expect("a key");
    for key in way {
        let object = place.as_object_mut().expect("an object");
        place = object.entry(key).or_insert_with(|| json!({}));
    }
    let object = place.as_object_mut().expect("an object");
    if value.is_null() {
        object.remove(last);
    } else {
        object.insert(last.clone(), value);
    }
    base
}

fn secret(id: &str) -> SecretSnapshot {
    SecretSnapshot {
        id: id.parse().expect("an id"),
        secret_driver_id: "secret-local".to_owned(),
        backend_ref: BackendRef {
            namespace_name: "locator-canary".to_owned(),
            name: "locator-canary".to_owned(),
            key: "locator-canary".to_owned(),
            uid: "locator-canary".to_owned(),
        },
    }
}

/// A snapshot with fixed ids.
pub fn snapshot(value: Value, bindings: &[&str]) -> Snapshot {
    let namespace_id: NamespaceId = "ns_123e4567-e89b-42d3-a456-426614174000".parse().expect("an id");
    let id: SecretId = "sec_123e4567-e89b-42d3-a456-426614174000".parse().expect("an id");
    let configuration_id: ConfigurationId = "cfg_123e4567-e89b-42d3-a456-426614174000".parse().expect("an id");
    let bindings = bindings.iter().map(|name| {
        let name = occ_core::resource::EnvName::try_from((*name).to_owned()).expect("a name");
        (name, secret("sec_00000000-0000-4000-8000-000000000000"))
    });
    Snapshot {
        backend_id: None,
        configuration_id,
        configuration_kind: ConfigurationKind::Agent,
        configuration_generation: 1,
        configuration: document(value),
        harness: HarnessIdentity {
            id: "openclaw".to_owned(),
            version: "1.0.0".to_owned(),
            mode: ExecutionMode::Embedded,
        },
        compute: ComputeIdentity {
            id: "compute-process".to_owned(),
            implementation: "occ/process".to_owned(),
        },
        sandbox_driver_id: None,
        credential_sources: Vec::new(),
        plugins: None,
        plugin_approvers: None,
        harness_auth: HarnessAuthSnapshot {
            binding: HarnessAuth::ApiKey {
                source: SecretSource {
                    kind: SecretSourceKind::Secret,
                    namespace_id,
                    id,
                },
            },
            secret: Some(secret("sec_123e4567-e89b-42d3-a456-426614174000")),
            account: None,
            source: None,
        },
        secret_bindings: bindings.collect(),
        service_principal_id: "service-principal".parse().expect("a principal"),
    }
}

pub fn plan(snapshot: &Snapshot, listen: Listen) -> Result<WorkloadPlan, DocumentProblem> {
    harness().plan(PlanInput {
        snapshot,
        compute: ComputeProfile { listen },
    })
}

/// A plan of the document on loopback.
pub fn plan_of(value: Value) -> WorkloadPlan {
    plan(&snapshot(value, &[]), Listen::Loopback).expect("a plan")
}

/// The gateway's document as it is planned.
pub fn rendered(plan: &WorkloadPlan) -> Value {
    let component = plan.gateway().expect("a gateway");
    let text = component.files[0]
        .content
        .resolve(&Layout::default())
        .expect("no places to fill");
    serde_json::from_str(&text).expect("JSON")
}

/// The probe's document as it is planned.
pub fn probed(plan: &WorkloadPlan) -> Value {
    let probe = plan
        .gateway()
        .and_then(|component| component.probe.as_ref())
        .expect("a probe");
    let text = probe.files[0]
        .content
        .resolve(&Layout::default())
        .expect("no places to fill");
    serde_json::from_str(&text).expect("JSON")
}

/// A layout below `root`, with these tools.
pub fn layout(root: &str, node: &str, openclaw: &str) -> Layout {
    let directory = |name: &str| format!("{root}/{name}");
    Layout {
        tools: [("node", node), ("openclaw", openclaw)]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        directories: BTreeMap::from([
            (Directory::Files, directory("files")),
            (Directory::State, directory("state")),
            (Directory::Workspace, directory("workspace")),
            (Directory::Home, directory("home")),
            (Directory::Temporary, directory("tmp")),
        ]),
        ports: [("gateway".to_owned(), 40_123)].into(),
    }
}
