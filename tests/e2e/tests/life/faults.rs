//! What may be wrong with a model provider or with a document, and what a user is told.

use occ_e2e::{Model, document};
use occ_test_support::model_server::Behaviour;
use serde_json::{Value, json};

use crate::scene::{Tools, over, place, ready};

const KEY: &str = "sk-life-0123456789abcdef";

/// Deploys against a model that behaves so, and returns how the deployment failed. Nothing of it runs afterwards.
fn failure(tools: &Tools, model: &Model, document: &Value, key: &str) -> Value {
    let mut home = tools.home();
    let up = ready(&mut home);
    let draft = home.draft("one", document, key, &[]);
    let revision = home.deploy(&draft);
    let over = over(&home, &draft, &revision);
    assert_eq!(over["status"], "failed", "{over}");
    assert!(home.gateways().is_empty(), "nothing serves");
    assert!(home.json(["agent", "show", "one"])["activeRevisionId"].is_null());
    let log = place(&home, &draft).join("revisions").join(&revision).join("logs");
    let shown = home.occ(["agent", "deployment-status", "one"]);
    let code = over["error"]["code"].as_str().expect("a failure has a code");
    assert!(shown.stdout.contains(&format!("docs/reasons/{code}.md")), "{shown:?}");
    assert!(log.exists(), "its log is kept");
    assert!(!home.transcript().contains(key), "the key is shown nowhere");
    let _ = model.requests();
    up.stop();
    over["error"].clone()
}

fn of_model(tools: &Tools, behaviour: Behaviour) -> Value {
    let model = Model::start(behaviour, Some(KEY));
    failure(tools, &model, &document(&model.base_url()), KEY)
}

fn cause(error: &Value) -> Value {
    assert_eq!(error["code"], "RUNTIME_MODEL_PROBE_FAILED", "{error}");
    let failure = &error["data"]["runtimeFailure"];
    assert_eq!(
        (&failure["component"], &failure["code"]),
        (&json!("gateway"), &json!("MODEL_PROBE_FAILED")),
        "{error}"
    );
    failure["cause"].clone()
}

pub fn wrong_key(tools: &Tools) {
    let model = Model::start(Behaviour::echo(), Some("sk-the-right-one-0123456789"));
    let error = failure(tools, &model, &document(&model.base_url()), KEY);
    assert_eq!(error["code"], "RUNTIME_AUTHENTICATION_FAILED", "{error}");
    assert!(error["data"]["runtimeFailure"]["cause"].is_null(), "{error}");
}

pub fn model_not_found(tools: &Tools) {
    let error = of_model(tools, Behaviour::ModelNotFound);
    assert_eq!(cause(&error), json!({ "kind": "PROBE_STATUS", "detail": "format" }));
}

pub fn rate_limit(tools: &Tools) {
    let error = of_model(tools, Behaviour::RateLimited { retry_after: None });
    assert_eq!(cause(&error), json!({ "kind": "PROBE_STATUS", "detail": "rate_limit" }));
}

pub fn garbage(tools: &Tools) {
    let error = of_model(tools, Behaviour::Garbage);
    assert_eq!(cause(&error), json!({ "kind": "PROBE_STATUS", "detail": "unknown" }));
}

pub fn hang(tools: &Tools) {
    let error = of_model(tools, Behaviour::Hang);
    assert_eq!(error["code"], "RUNTIME_MODEL_PROBE_TIMEOUT", "{error}");
}

/// `OpenClaw` reports it as a timeout.
pub fn refused(tools: &Tools) {
    let mut model = Model::start(Behaviour::echo(), Some(KEY));
    model.refuse_connections();
    let error = failure(tools, &model, &document(&model.base_url()), KEY);
    assert_eq!(error["code"], "RUNTIME_MODEL_PROBE_TIMEOUT", "{error}");
}

/// `OpenClaw` refuses a setting that it does not know, once it runs.
pub fn exit(tools: &Tools) {
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let mut document = document(&model.base_url());
    document["ui"] = json!({ "noSuchSetting": true });
    let error = failure(tools, &model, &document, KEY);
    assert_eq!(error["code"], "RUNTIME_STARTUP_FAILED", "{error}");
    let preparation = &error["data"]["preparation"];
    assert_eq!(preparation["reason"], "COMPONENT_EXITED", "{error}");
    assert_eq!(preparation["exitStatus"], 78, "{error}");
}
