//! What may be asked at any time, and has no effect.

use std::{sync::Arc, thread};

use occ_core::driver::{
    CONTRACT_VERSION, ComputeDriver, DriverKind, GatewayAuthMode, GatewaySettings, HarnessAuthRequest, Rejection,
    RevisionRef, SettingRejection, capabilities,
};
use occ_core::resource::{ExecutionMode, HarnessAuthMethod, HarnessIdentity};

use super::scene::Scene;
use crate::canary::{self, spotless_error};

pub(super) async fn it_says_who_it_is(scene: &mut Scene) {
    let identity = scene.driver.identity().clone();
    assert_eq!(identity.kind, DriverKind::Compute);
    assert!(!identity.id.is_empty() && !identity.implementation.is_empty());
    assert!(CONTRACT_VERSION.accepts(identity.contract));
    scene.restart().await;
    assert_eq!(
        *scene.driver.identity(),
        identity,
        "revisions are pinned to an identity, so it outlives a restart"
    );
}

pub(super) async fn abilities_do_not_come_and_go(scene: &mut Scene) {
    let before = capabilities(&*scene.driver);
    scene.provide().await;
    scene.deployed(&scene.version(1)).await;
    assert_eq!(capabilities(&*scene.driver), before, "after an effect");
    scene.restart().await;
    assert_eq!(capabilities(&*scene.driver), before, "after a restart");
}

/// Everything that admission and the engine's pure core ask.
#[derive(Debug, PartialEq)]
struct Answers {
    auth: Vec<Result<(), Rejection>>,
    settings: Vec<Result<(), SettingRejection>>,
    profile: occ_core::driver::ComputeProfile,
    order: occ_core::driver::ActivationOrder,
    exclusive: bool,
    adopts: Vec<Option<bool>>,
}

fn harness_auths() -> Vec<(HarnessIdentity, HarnessAuthMethod, usize)> {
    let methods = [
        HarnessAuthMethod::ApiKey,
        HarnessAuthMethod::CodexPat,
        HarnessAuthMethod::CredentialSource,
        HarnessAuthMethod::Runtime,
    ];
    let mut all = Vec::new();
    for mode in [ExecutionMode::Embedded, ExecutionMode::Dedicated] {
        for method in methods {
            for bindings in [0, 1, 64] {
                let harness = HarnessIdentity {
                    id: "conformance".to_owned(),
                    version: "1.0.0".to_owned(),
                    mode,
                };
                all.push((harness, method, bindings));
            }
        }
    }
    all
}

/// Settings that differ from the ordinary in one place each; texts are canaries.
fn settings() -> Vec<GatewaySettings> {
    let ordinary = GatewaySettings {
        auth_mode: Some(GatewayAuthMode::Password),
        password_is_generated: true,
        password_set: true,
        ..GatewaySettings::default()
    };
    let text = || Some(canary::OTHER.to_owned());
    let modes = [
        GatewayAuthMode::TrustedProxy,
        GatewayAuthMode::Token,
        GatewayAuthMode::None,
        GatewayAuthMode::Unrecognized,
    ];
    let mut all = vec![GatewaySettings::default(), ordinary.clone()];
    all.extend(modes.map(|mode| GatewaySettings {
        auth_mode: Some(mode),
        ..ordinary.clone()
    }));
    all.extend([
        GatewaySettings {
            tls_enabled: true,
            ..ordinary.clone()
        },
        GatewaySettings {
            tailscale_enabled: true,
            ..ordinary.clone()
        },
        GatewaySettings {
            bind: text(),
            ..ordinary.clone()
        },
        GatewaySettings {
            custom_bind_host: text(),
            ..ordinary.clone()
        },
        GatewaySettings {
            password_is_generated: false,
            ..ordinary.clone()
        },
        GatewaySettings {
            port: Some(u64::MAX),
            ..ordinary
        },
    ]);
    all
}

/// Asked away from any runtime: a pure answer needs none.
fn answers(driver: Arc<dyn ComputeDriver>, target: RevisionRef) -> Answers {
    let ask = move || {
        let admission = driver.admission();
        let auth = harness_auths()
            .iter()
            .map(|(harness, method, secret_bindings)| {
                admission.harness_auth(&HarnessAuthRequest {
                    harness,
                    method: *method,
                    source_type: None,
                    secret_bindings: *secret_bindings,
                })
            })
            .collect();
        let names = ["default", "kube-system", "", canary::OTHER];
        Answers {
            auth,
            settings: settings().iter().map(|one| admission.gateway_settings(one)).collect(),
            profile: driver.profile(),
            order: driver.activation_order(),
            exclusive: driver.requires_stopped_predecessors(&target),
            adopts: names
                .map(|name| driver.namespace_adoption().map(|adoption| adoption.accepts(name)))
                .into(),
        }
    };
    thread::spawn(ask)
        .join()
        .expect("what is pure needs no runtime, and refuses instead of panicking")
}

pub(super) async fn what_admission_asks_has_no_effect_and_one_answer(scene: &mut Scene) {
    let target = scene.version(1).target;
    let items = async |scene: &Scene| match scene.subject.inventory() {
        Some(_) => scene.items().await,
        None => Vec::new(),
    };
    let before = items(scene).await;
    let first = answers(Arc::clone(&scene.driver), target.clone());
    assert_eq!(
        answers(Arc::clone(&scene.driver), target.clone()),
        first,
        "a second time"
    );
    assert_eq!(
        answers(scene.subject.driver(), target.clone()),
        first,
        "another instance"
    );
    assert_eq!(items(scene).await, before, "nothing was written");
    scene.provide().await;
    scene.deployed(&scene.version(2)).await;
    assert_eq!(answers(Arc::clone(&scene.driver), target), first, "after effects");
    for rejection in first.settings.into_iter().filter_map(Result::err) {
        assert!(!rejection.setting.is_empty() && !rejection.accepted.is_empty());
        assert!(rejection.to_string().chars().count() <= 256, "{rejection}");
        spotless_error("a refused setting", &rejection);
    }
    for rejection in first.auth.into_iter().filter_map(Result::err) {
        assert!(
            (1..=256).contains(&rejection.to_string().chars().count()),
            "{rejection}"
        );
        spotless_error("a refused authentication", &rejection);
    }
}
