//! Deployment (seed: Agents, "Deployment admission"; spec/engine 3).

use std::collections::BTreeSet;

use occ_core::{
    admission::deploy::{CHECKS, Gathered},
    reason::ApiCode,
    resource::ExecutionMode,
    revision,
};

use crate::scene::Scene;

/// The order, with the code and a part of the words of each refusal.
const ORDER: &[(&str, ApiCode, &str)] = &[
    ("deploy_permission", ApiCode::Forbidden, "not authorized"),
    ("namespace_exists", ApiCode::NotFound, "not found"),
    ("agent_exists", ApiCode::NotFound, "not found"),
    ("namespace_ready", ApiCode::NamespaceNotReady, "not ready"),
    ("agent_active", ApiCode::AgentDeleting, "being deleted"),
    (
        "settings_readable",
        ApiCode::ResourceConflict,
        "cannot be read: plugins.",
    ),
    ("backend_configured", ApiCode::NotFound, "not found"),
    (
        "sandbox_topology",
        ApiCode::ResourceConflict,
        "dedicated Harnesses only",
    ),
    ("configuration_permission", ApiCode::Forbidden, "not authorized"),
    ("configuration_exists", ApiCode::NotFound, "not found"),
    (
        "configuration_document",
        ApiCode::DependencyUnavailable,
        "Configuration Driver",
    ),
    ("harness_selected", ApiCode::InvalidRequest, "selects no Harness"),
    ("harness_available", ApiCode::InvalidRequest, "execution mode"),
    ("harness_auth_present", ApiCode::ResourceConflict, "no harnessAuth"),
    ("harness_auth_permission", ApiCode::Forbidden, "You are not authorized"),
    (
        "secret_bindings_permission",
        ApiCode::Forbidden,
        "You are not authorized",
    ),
    (
        "harness_auth_supported",
        ApiCode::CredentialGatewayNotConfigured,
        "Credential Gateway",
    ),
    ("compute_topology", ApiCode::ResourceConflict, "delivers no credential"),
    ("sandbox_document", ApiCode::ResourceConflict, "changes which Harness"),
    ("plugins_supported", ApiCode::NotImplemented, "no Plugin Driver"),
    (
        "agent_principal",
        ApiCode::Forbidden,
        "The Agent service principal spn_agent is not authorized to operate secret sec_",
    ),
    (
        "harness_auth_secret",
        ApiCode::DependencyUnavailable,
        "Bind a Secret that is stored through the selected one",
    ),
    (
        "secret_bindings_secrets",
        ApiCode::DependencyUnavailable,
        "secretBindings",
    ),
    ("secrets_resolved", ApiCode::DependencyUnavailable, "no longer the one"),
    ("document_valid", ApiCode::InvalidRequest, "broken"),
    (
        "gateway_settings",
        ApiCode::ResourceConflict,
        "gateway.tls.enabled must be omitted or false",
    ),
    (
        "transport_credentials_kept",
        ApiCode::ResourceConflict,
        "operator must restore",
    ),
    (
        "transport_credentials_permission",
        ApiCode::Forbidden,
        "You are not authorized",
    ),
];

#[test]
fn the_order_is_the_specified_one() {
    let names: Vec<_> = CHECKS.iter().map(|(name, _)| *name).collect();
    let expected: Vec<_> = ORDER.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, expected);
}

#[test]
fn each_condition_alone_is_refused_by_its_own_check_in_its_own_words() {
    for (name, code, words) in ORDER {
        let scene = Scene::with(&BTreeSet::from([*name]));
        assert_eq!(scene.refused_by(), Some(*name), "{name}");
        let refusal = scene.admit().unwrap_err();
        assert_eq!(refusal.code(), *code, "{name}: {refusal}");
        assert!(refusal.message().contains(words), "{name}: {refusal}");
    }
}

#[test]
fn of_any_two_conditions_the_earlier_one_refuses() {
    for (index, (earlier, code, words)) in ORDER.iter().enumerate() {
        for (later, ..) in &ORDER[index + 1..] {
            let scene = Scene::with(&BTreeSet::from([*earlier, *later]));
            // A scene without a document's source, or with another method, cannot show every later fault; the earlier stays.
            assert_eq!(scene.refused_by(), Some(*earlier), "{earlier} and {later}");
            let refusal = scene.admit().unwrap_err();
            assert_eq!(refusal.code(), *code, "{earlier} and {later}: {refusal}");
            assert!(refusal.message().contains(words), "{earlier} and {later}: {refusal}");
        }
    }
}

#[test]
fn everything_wrong_at_once_reads_as_a_lack_of_permission() {
    let all: BTreeSet<_> = ORDER.iter().map(|(name, ..)| *name).collect();
    assert_eq!(Scene::with(&all).admit().unwrap_err().code(), ApiCode::Forbidden);
}

#[test]
fn what_is_admitted_freezes_references_and_counts_on() {
    let scene = Scene::with(&BTreeSet::new());
    let admitted = scene.admit().unwrap();
    assert_eq!((admitted.number, admitted.provision_credentials), (1, false));
    let snapshot = admitted.snapshot;
    assert_eq!(snapshot.configuration_generation, 3);
    assert_eq!(
        (snapshot.harness.id.as_str(), snapshot.harness.mode),
        ("plain", ExecutionMode::Embedded)
    );
    assert_eq!(snapshot.compute.implementation, "occ/null");
    let auth = snapshot.harness_auth.secret.as_ref().unwrap();
    assert_eq!(auth.secret_driver_id, "secret-outside");
    assert_eq!(snapshot.secret_bindings.len(), 1);
    assert_eq!(snapshot.service_principal_id.as_str(), "spn_agent");
    let bytes = revision::canonical(&snapshot);
    assert_eq!(
        serde_json::from_slice::<occ_core::resource::Snapshot>(&bytes).unwrap(),
        snapshot
    );
}

#[test]
fn credentials_are_made_before_the_first_version_only() {
    let mut scene = Scene::with(&BTreeSet::new());
    scene.credentials = Some(Gathered::Known(false));
    assert!(scene.admit().unwrap().provision_credentials);
    scene.read.revisions = 1;
    assert_eq!(scene.admit().unwrap_err().code(), ApiCode::ResourceConflict);
    scene.credentials = None;
    assert!(
        !scene.admit().unwrap().provision_credentials,
        "a Compute that generates none needs none"
    );
    scene.credentials = Some(Gathered::NotAsked);
    assert_eq!(scene.admit().unwrap_err().code(), ApiCode::DependencyUnavailable);
}

#[test]
fn nothing_that_was_not_answered_is_granted() {
    let mut scene = Scene::with(&BTreeSet::new());
    scene.grants = occ_core::admission::Grants::default();
    assert_eq!(scene.admit().unwrap_err().code(), ApiCode::DependencyUnavailable);
    let mut scene = Scene::with(&BTreeSet::new());
    scene.secrets.clear();
    assert_eq!(scene.admit().unwrap_err().code(), ApiCode::DependencyUnavailable);
}

#[test]
fn a_document_of_another_generation_is_no_document() {
    let mut scene = Scene::with(&BTreeSet::new());
    scene.document = Gathered::Known(Some((2, occ_core::resource::Document::new())));
    assert_eq!(scene.admit().unwrap_err().code(), ApiCode::DependencyUnavailable);
    scene.document = Gathered::Known(None);
    assert_eq!(scene.admit().unwrap_err().code(), ApiCode::DependencyUnavailable);
}

#[test]
fn a_missing_secret_is_not_found_and_a_refusing_sandbox_is_a_conflict() {
    let refusal = Scene::with(&BTreeSet::from(["harness_auth_secret_exists"]))
        .admit()
        .unwrap_err();
    assert_eq!(refusal.code(), ApiCode::NotFound);
    let refusal = Scene::with(&BTreeSet::from(["sandbox_refuses"])).admit().unwrap_err();
    assert_eq!(refusal.code(), ApiCode::ResourceConflict);
    assert_eq!(
        refusal.message(),
        occ_core::reason::Failure::SandboxHarnessUnsupported.message()
    );
}

#[test]
fn a_refusal_of_the_document_points_into_it_and_quotes_no_value() {
    let refusal = Scene::with(&BTreeSet::from(["document_valid"])).admit().unwrap_err();
    assert_eq!(refusal.details()[0].path, "/values/broken");
    assert!(!refusal.message().contains("true"));
}
