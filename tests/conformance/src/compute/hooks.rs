//! Other drivers' hooks around workloads (spec/contracts 7).

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use occ_core::{
    driver::{AgentRef, EffectResult, HookEnvironment, LifecycleHooks, OperationContext, RevisionRef},
    resource::Namespace,
};

use super::scene::Scene;

const VARIABLE: &str = "HOOKED";
const VALUE: &str = "opaque-conformance";

/// Records when it is called.
#[derive(Default)]
struct Recorder(Mutex<Vec<&'static str>>);

impl Recorder {
    fn called(&self, phase: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(phase);
    }

    fn was_called(&self, phase: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&phase)
    }
}

#[async_trait]
impl LifecycleHooks for Recorder {
    async fn after_namespace_prepared(&self, _: &OperationContext, _: &Namespace) -> EffectResult<()> {
        self.called("after namespace prepared");
        Ok(())
    }

    async fn before_workload_start(&self, _: &OperationContext, _: &RevisionRef) -> EffectResult<HookEnvironment> {
        self.called("before workload start");
        Ok([(VARIABLE.to_owned(), VALUE.to_owned())].into())
    }

    async fn before_workload_stop(&self, _: &OperationContext, _: &AgentRef) -> EffectResult<()> {
        self.called("before workload stop");
        Ok(())
    }

    async fn before_namespace_delete(&self, _: &OperationContext, _: &Namespace) -> EffectResult<()> {
        self.called("before namespace delete");
        Ok(())
    }
}

pub(super) async fn hooks_surround_a_workload(scene: &mut Scene) {
    let hooks = Arc::new(Recorder::default());
    let host = scene.driver.hook_host().expect("the rule needs hook_host");
    let name = &scene.namespace.name;
    assert_eq!(host.sandbox_namespace(name), host.sandbox_namespace(name), "it is pure");
    host.attach(vec![Arc::clone(&hooks) as _]);
    scene.provide().await;
    assert!(hooks.was_called("after namespace prepared"));
    assert!(!hooks.was_called("before workload start"));
    let version = scene.version(1);
    scene.deployed(&version).await;
    assert!(hooks.was_called("before workload start"));
    if scene.driver.gateway_access().is_some() {
        let answer = scene.ask(&version, &format!("/digest/{VARIABLE}")).await;
        let answer = answer.expect("the hook's variable reaches the workload");
        let wanted = occ_core::digest::hex(VALUE.as_bytes());
        assert_eq!(answer["sha256"].as_str(), Some(wanted.as_str()));
    }
    assert!(!hooks.was_called("before workload stop"));
    scene.stopped(&version).await;
    assert!(hooks.was_called("before workload stop"));
    scene.cleared().await;
    assert!(!hooks.was_called("before namespace delete"));
    scene.remove_namespace().await;
    assert!(hooks.was_called("before namespace delete"));
}
