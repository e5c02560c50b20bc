//! The worker's pure core: what it looks at before it touches a version, and what it asks of IAM.
#![cfg(feature = "engine")]

mod pass_fixture;

use occ_core::{
    audit::{AuditKind, AuditOutcome, Authorization},
    driver::{Action, Decision, Evidence, ResourceKind},
    id::{AgentId, CredentialSourceId, NamespaceId, SecretId, ServiceAccountId},
    reason::Failure,
    resource::{
        AccountBinding, AccountCredential, AccountCredentialKind, HarnessAuth, HarnessAuthSnapshot, NamespaceStatus,
        ServiceAccount, SourceSnapshot, TokenSource,
    },
    store::Write,
    work::{Target, Transition},
    worker::{Authority, Outcome, Step},
};
use pass_fixture::{Answers, Scene};

#[test]
fn each_check_of_the_owners_and_identities_has_its_own_failure() {
    type Break = fn(&mut Scene);
    let cases: [(&str, Break, Failure); 12] = [
        ("namespace", |s| s.read.namespace = None, Failure::InvalidRevisionOwner),
        ("agent", |s| s.read.agent = None, Failure::InvalidRevisionOwner),
        (
            "agent of another namespace",
            |s| s.read.agent.as_mut().expect("an Agent").agent.namespace_id = NamespaceId::random(),
            Failure::InvalidRevisionOwner,
        ),
        (
            "version of another agent",
            |s| s.read.head.as_mut().expect("a version").agent_id = AgentId::random(),
            Failure::InvalidRevisionOwner,
        ),
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
fn the_loss_of_an_identity_is_recorded_as_a_denial() {
    for (authority, code) in [
        (Authority::ActorGone, "ACTOR_REVOKED"),
        (Authority::PrincipalGone, "INVALID_AGENT_PRINCIPAL"),
    ] {
        let run = Scene::replacement().run(&Answers {
            authority: Ok(authority),
            ..Answers::default()
        });
        let Outcome::Failed { audit, .. } = run.outcome else {
            panic!("it is refused")
        };
        let [event] = audit.as_slice() else {
            panic!("one event: {audit:?}")
        };
        assert_eq!(
            (event.kind, event.outcome),
            (AuditKind::AuthorizationDenial, AuditOutcome::Denied)
        );
        assert_eq!(event.reason_code.as_deref(), Some(code));
    }
}

#[test]
fn a_denial_is_recorded_with_the_question_and_its_answer() {
    let scene = Scene::replacement();
    let Step::Authorize(asked) = scene.pass().decide() else {
        panic!("it asks first")
    };
    let denied = Authorization {
        request: asked[0].clone(),
        decision: Decision {
            allowed: false,
            driver_id: "iam-native".to_owned(),
            evidence: Evidence::default(),
        },
    };
    let run = scene.run(&Answers {
        authority: Ok(Authority::Denied(Box::new(denied.clone()))),
        ..Answers::default()
    });
    let Outcome::Failed { audit, .. } = run.outcome else {
        panic!("it is refused")
    };
    assert_eq!(audit[0].authorization, Some(denied));
    assert_eq!(audit[0].resource, run.pass.claim.target.resource());
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
        account: None,
        source: None,
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

#[test]
fn a_deployment_asks_for_each_source_that_was_not_withdrawn_from_it() {
    let mut scene = Scene::first().withdrawing();
    let withdrawn = scene.read.sources[0].clone();
    let mut kept = withdrawn.clone();
    kept.id = CredentialSourceId::random();
    kept.withdrawals.clear();
    scene.read.sources.push(kept.clone());
    let revision = &mut scene.read.revision.as_mut().expect("a version").revision;
    revision.snapshot.credential_sources = [&withdrawn, &kept]
        .map(|source| SourceSnapshot {
            source_id: source.id,
            credential_gateway_id: source.gateway_id.clone(),
            source_type: source.kind.clone(),
            login_mode: None,
        })
        .to_vec();
    scene.target = Target::Revision {
        namespace: revision.namespace_id,
        agent: revision.agent_id,
        revision: revision.id,
    };
    let pass = scene.pass();
    let Step::Authorize(asked) = pass.decide() else {
        panic!("it asks first")
    };
    let of_sources = asked
        .iter()
        .filter(|request| request.resource.kind == ResourceKind::CredentialSource);
    let of_sources: Vec<_> = of_sources
        .map(|request| (request.principal.as_str(), request.action, request.resource.id.as_str()))
        .collect();
    let id = kept.id.to_string();
    assert_eq!(
        of_sources,
        [("prn_1", Action::Operate, &*id), ("spn_1", Action::Operate, &*id)]
    );
}

/// A version that authenticates with the issued token of an account, as it was admitted.
fn with_token() -> Scene {
    let mut scene = Scene::first();
    let id = ServiceAccountId::random();
    let secret = scene.read.secrets[0].clone();
    let account = ServiceAccount {
        id,
        namespace_id: secret.namespace_id,
        name: "shared".parse().expect("a name"),
        credential: Some(AccountCredential {
            kind: AccountCredentialKind::AccessToken,
            secret_id: secret.id,
        }),
        binding: Some(AccountBinding {
            backend_id: "chatgpt".parse().expect("an id"),
            driver_id: "accounts".to_owned(),
            account: None,
            tokens: Vec::new(),
        }),
        deleting: false,
        version: 1,
        created_at: secret.created_at,
    };
    let snapshot = &mut scene.read.revision.as_mut().expect("a version").revision.snapshot;
    snapshot.harness_auth.binding = HarnessAuth::CodexPat {
        source: TokenSource::ServiceAccount {
            namespace_id: secret.namespace_id,
            id,
        },
    };
    snapshot.harness_auth.account.clone_from(&account.binding);
    scene.read.account = Some(account);
    scene
}

#[test]
fn an_issued_token_must_still_be_the_one_that_was_frozen() {
    type Break = fn(&mut Scene);
    fn account(scene: &mut Scene) -> &mut ServiceAccount {
        scene.read.account.as_mut().expect("an account")
    }
    let cases: [(&str, Break, Failure); 6] = [
        ("gone", |s| s.read.account = None, Failure::HarnessAuthSourceUnavailable),
        (
            "being deleted",
            |s| account(s).deleting = true,
            Failure::HarnessAuthSourceUnavailable,
        ),
        (
            "without a token",
            |s| account(s).credential = None,
            Failure::HarnessAuthSourceUnavailable,
        ),
        (
            "another token",
            |s| account(s).credential.as_mut().expect("one").secret_id = SecretId::random(),
            Failure::HarnessAuthSourceChanged,
        ),
        (
            "another account at the provider",
            |s| account(s).binding.as_mut().expect("one").driver_id = "other".to_owned(),
            Failure::ServiceAccountBackendMismatch,
        ),
        (
            "another selection",
            |s| s.account_issuer = false,
            Failure::ServiceAccountBackendMismatch,
        ),
    ];
    assert!(matches!(
        with_token().run(&Answers::default()).transition(),
        Transition::Complete { .. }
    ));
    for (name, break_it, expected) in cases {
        let mut scene = with_token();
        break_it(&mut scene);
        let Transition::Fail { failure, .. } = scene.run(&Answers::default()).transition() else {
            panic!("{name}")
        };
        assert_eq!(failure, expected, "{name}");
    }
    let pass = with_token().pass();
    let Step::Authorize(asked) = pass.decide() else {
        panic!("it asks first")
    };
    let of_secrets = asked
        .iter()
        .filter(|request| request.resource.kind == ResourceKind::Secret);
    assert_eq!(of_secrets.count(), 0, "the account guards its token: {asked:?}");
}
