//! The worker's pure core: what it looks at before it touches a version, and what it asks of IAM.
#![cfg(feature = "engine")]

mod pass_fixture;

use occ_core::{
    driver::{Action, ResourceKind},
    id::ServiceAccountId,
    reason::Failure,
    resource::{HarnessAuth, HarnessAuthSnapshot, NamespaceStatus, TokenSource},
    store::Write,
    work::Transition,
    worker::Step,
};
use pass_fixture::{Answers, Scene};

#[test]
fn each_check_of_the_owners_and_identities_has_its_own_failure() {
    type Break = fn(&mut Scene);
    let cases: [(&str, Break, Failure); 10] = [
        ("namespace", |s| s.read.namespace = None, Failure::InvalidRevisionOwner),
        ("agent", |s| s.read.agent = None, Failure::InvalidRevisionOwner),
        (
            "not ready",
            |s| s.namespace_status(NamespaceStatus::Deleting),
            Failure::NamespaceNotReady,
        ),
        ("bytes", |s| s.intact = false, Failure::InvalidAdmittedRevision),
        (
            "harness",
            |s| s.harness_approved = false,
            Failure::HarnessDescriptorMismatch,
        ),
        (
            "compute",
            |s| "other".clone_into(&mut s.compute_id),
            Failure::ComputeDriverMismatch,
        ),
        ("backend", |s| s.backend_configured = false, Failure::BackendUnavailable),
        (
            "secret gone",
            |s| s.read.secrets.clear(),
            Failure::HarnessAuthSourceUnavailable,
        ),
        (
            "secret moved",
            |s| s.read.secrets[0].backend_ref.uid = "x".to_owned(),
            Failure::HarnessAuthSourceChanged,
        ),
        (
            "secret driver",
            |s| s.read.secrets[0].driver_id = "x".to_owned(),
            Failure::SecretDriverMismatch,
        ),
    ];
    for (name, break_it, expected) in cases {
        let mut scene = Scene::first();
        break_it(&mut scene);
        let Transition::Fail { failure, .. } = scene.run(&Answers::default()).transition() else {
            panic!("{name}")
        };
        assert_eq!(failure, expected, "{name}");
    }
}

#[test]
fn initial_files_need_a_compute_that_applies_them_and_are_completed_with_the_activation() {
    let mut scene = Scene::first();
    scene.stage_files();
    let run = scene.run(&Answers::default());
    assert!(run.steps.contains(&"DiscardSetup".to_owned()));
    assert!(
        run.writes()
            .any(|write| matches!(write, Write::CompleteWorkspaceSetup(_)))
    );

    scene.workspace_setup = false;
    assert!(matches!(
        scene.run(&Answers::default()).transition(),
        Transition::Fail {
            failure: Failure::WorkspaceSetupUnsupported,
            ..
        }
    ));
}

#[test]
fn whoever_deploys_must_still_read_the_account_behind_a_token() {
    let mut scene = Scene::first();
    let account = ServiceAccountId::random();
    let revision = &mut scene.read.revision.as_mut().expect("a version").revision;
    let namespace_id = revision.namespace_id;
    let source = TokenSource::ServiceAccount {
        namespace_id,
        id: account,
    };
    revision.snapshot.harness_auth = HarnessAuthSnapshot {
        binding: HarnessAuth::CodexPat { source },
        secret: None,
    };
    let pass = scene.pass();
    let Step::Authorize(asked) = pass.decide() else {
        panic!("it asks first")
    };
    let reads = asked.iter().filter(|request| {
        request.principal == pass.claim.actor
            && request.action == Action::Read
            && request.resource.kind == ResourceKind::ServiceAccount
            && request.resource.id == account.to_string()
    });
    assert_eq!(reads.count(), 1, "{asked:?}");
}
