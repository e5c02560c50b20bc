//! Small resources, first answers, deletions that were begun, and the audit with its seals.

use std::sync::Arc;

use occ_core::{
    audit::{
        AuditOutcome,
        chain::{self, AuditQuery},
    },
    id::{CredentialSourceId, PresetId, ServiceAccountId},
    resource::{
        AccountCredential, AccountCredentialKind, AgentCredentialSource, CredentialSource, HarnessAuth, LaunchSettings,
        OwnedKind, Preset, ServiceAccount, SourceState, TokenSource,
    },
    store::{Change, CommitError, Expect, FirstAnswer, OwnedRow, Slice, Taken, Write},
};

use super::{Subject, world::World};

async fn account(world: &World, name: &str, secret: bool) -> ServiceAccount {
    ServiceAccount {
        id: ServiceAccountId::random(),
        namespace_id: world.namespace,
        name: name.parse().expect("a name"),
        credential: secret.then_some(AccountCredential {
            kind: AccountCredentialKind::ApiKey,
            secret_id: world.secret.id,
        }),
        binding: None,
        deleting: false,
        version: 1,
        created_at: world.now().await,
    }
}

async fn read(world: &World, account: &ServiceAccount) -> Option<ServiceAccount> {
    let row = world
        .store
        .owned(world.namespace, OwnedKind::ServiceAccount, &account.id.to_string())
        .await
        .expect("a read");
    row.map(|row| row.try_into().expect("it decodes"))
}

pub(super) async fn small_resources_read_back_and_are_fenced_by_their_version(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let mut first = account(&world, "shared", false).await;
    world.write(Write::Owned(OwnedRow::from(&first))).await;
    assert_eq!(read(&world, &first).await.as_ref(), Some(&first));
    let preset = Preset {
        id: PresetId::random(),
        namespace_id: world.namespace,
        name: "shared".parse().expect("a name"),
        settings: LaunchSettings::default(),
        created_at: world.now().await,
    };
    world.write(Write::Owned(OwnedRow::preset(&preset, 1))).await;
    let presets = world
        .store
        .all_owned(world.namespace, OwnedKind::Preset, &Slice::ALL)
        .await
        .expect("a read");
    assert_eq!(presets.len(), 1, "a name is unique among its kind only");
    let same = account(&world, "shared", false).await;
    let taken = world
        .refused(Change::new().write(Write::Owned(OwnedRow::from(&same))))
        .await;
    assert_eq!(taken, CommitError::NameTaken(Taken::Owned));

    let stale = Expect::Owned(first.id.to_string(), first.version);
    first.credential = account(&world, "x", true).await.credential;
    first.version += 1;
    let update = Change::new()
        .expect(stale.clone())
        .write(Write::UpdateOwned(OwnedRow::from(&first)));
    world.commit(update.clone()).await;
    assert_eq!(read(&world, &first).await.as_ref(), Some(&first));
    assert_eq!(world.refused(update).await, CommitError::Conflict(stale));
    let other = world
        .store
        .owned(world.namespace, OwnedKind::Preset, &first.id.to_string())
        .await;
    assert_eq!(other.expect("a read"), None, "an id is of its kind");
    let contents = world
        .store
        .namespace_contents(world.namespace, 100)
        .await
        .expect("a read");
    assert!(
        contents.contains(&("service_account", first.id.to_string())),
        "{contents:?}"
    );
    assert!(contents.contains(&("preset", preset.id.to_string())), "{contents:?}");

    world
        .write(Write::DeleteOwned(OwnedKind::ServiceAccount, first.id.to_string()))
        .await;
    assert_eq!(read(&world, &first).await, None);
}

pub(super) async fn what_a_small_resource_names_and_what_names_it_is_seen(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let account = account(&world, "shared", true).await;
    world.write(Write::Owned(OwnedRow::from(&account))).await;
    let consumers = world
        .store
        .secret_consumers(world.namespace, world.secret.id)
        .await
        .expect("a read");
    assert_eq!(consumers.owned, [(OwnedKind::ServiceAccount, account.id.to_string())]);
    let unreferenced = Expect::SecretUnreferenced(world.secret.id);
    let refused = world.refused(Change::new().expect(unreferenced.clone())).await;
    assert_eq!(refused, CommitError::Conflict(unreferenced));

    let unreferenced = Expect::OwnedUnreferenced(account.id.to_string());
    world.commit(Change::new().expect(unreferenced.clone())).await;
    let mut draft = world.draft("triage", world.now().await);
    draft.harness_auth = Some(HarnessAuth::CodexPat {
        source: TokenSource::ServiceAccount {
            namespace_id: world.namespace,
            id: account.id,
        },
    });
    world.write(Write::Agent(draft, None)).await;
    let refused = world.refused(Change::new().expect(unreferenced.clone())).await;
    assert_eq!(refused, CommitError::Conflict(unreferenced));
}

pub(super) async fn a_credential_source_reads_back_and_whoever_names_it_is_seen(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let source = CredentialSource {
        id: CredentialSourceId::random(),
        namespace_id: world.namespace,
        name: "model".parse().expect("a name"),
        gateway_id: "broker".to_owned(),
        kind: "openai".parse().expect("a type"),
        config: [("host".parse().expect("a field"), "example.com".to_owned())].into(),
        secrets: [("key".parse().expect("a field"), world.secret.id)].into(),
        state: SourceState::Ready,
        registered: true,
        tellings: Vec::new(),
        withdrawals: Vec::new(),
        version: 1,
        created_at: world.now().await,
    };
    let id = source.id.to_string();
    world.write(Write::Owned(OwnedRow::from(&source))).await;
    let row = world
        .store
        .owned(world.namespace, OwnedKind::CredentialSource, &id)
        .await
        .expect("a read");
    let read: Option<CredentialSource> = row.map(|row| row.try_into().expect("it decodes"));
    assert_eq!(read.as_ref(), Some(&source));
    let contents = world.store.namespace_contents(world.namespace, 100).await;
    let contents = contents.expect("a read");
    assert!(contents.contains(&("credential_source", id.clone())), "{contents:?}");

    let unreferenced = Change::new().expect(Expect::OwnedUnreferenced(id));
    world.commit(unreferenced.clone()).await;
    let mut draft = world.draft("triage", world.now().await);
    world.write(Write::Agent(draft.clone(), None)).await;
    let auth = HarnessAuth::CredentialSource { source_id: source.id };
    let listed = vec![AgentCredentialSource { source_id: source.id }];
    for (auth, listed) in [(Some(auth), Vec::new()), (None, listed)] {
        draft.harness_auth = auth;
        draft.credential_sources = listed;
        world.write(Write::UpdateAgent(draft.clone())).await;
        let refused = world.refused(unreferenced.clone()).await;
        assert!(
            matches!(refused, CommitError::Conflict(Expect::OwnedUnreferenced(_))),
            "{refused:?}"
        );
    }
    draft.credential_sources.clear();
    world.write(Write::UpdateAgent(draft)).await;
    world.commit(unreferenced).await;
}

pub(super) async fn a_first_answer_is_kept_once(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let answer = |text: &str| FirstAnswer {
        principal: world.actor.clone(),
        key: "k".to_owned(),
        fingerprint: "0".repeat(64),
        answer: serde_json::json!({ "text": text }),
    };
    let unused = Expect::NoAnswer(world.actor.clone(), "k".to_owned());
    let change = |text| Change::new().expect(unused.clone()).write(Write::Answer(answer(text)));
    assert_eq!(world.store.first_answer(&world.actor, "k").await, Ok(None));
    world.commit(change("first")).await;
    assert_eq!(
        world.refused(change("second")).await,
        CommitError::Conflict(unused.clone())
    );
    assert_eq!(
        world.store.first_answer(&world.actor, "k").await,
        Ok(Some(answer("first")))
    );
    let other = "prn_other".parse().expect("an id");
    assert_eq!(
        world.store.first_answer(&other, "k").await,
        Ok(None),
        "a key is its principal's"
    );
}

pub(super) async fn a_deletion_that_was_begun_lets_nothing_new_refer(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let (id, generation) = (world.configuration.id, world.configuration.generation);
    let (usable, begun) = (Expect::Configuration(id, generation), Expect::ConfigurationDeleting(id));
    world.commit(Change::new().expect(usable.clone())).await;
    let refused = world.refused(Change::new().expect(begun.clone())).await;
    assert_eq!(refused, CommitError::Conflict(begun.clone()));
    let mut row = world.configuration.clone();
    row.deleting = true;
    world.write(Write::UpdateConfiguration(row)).await;
    assert_eq!(
        world.refused(Change::new().expect(usable.clone())).await,
        CommitError::Conflict(usable)
    );
    world
        .commit(Change::new().expect(begun).write(Write::DeleteConfiguration(id)))
        .await;
    let mut secret = world.secret.clone();
    (secret.deleting, secret.version) = (true, secret.version + 1);
    world.write(Write::UpdateSecret(secret.clone())).await;
    assert_eq!(world.store.secret(world.namespace, secret.id).await, Ok(Some(secret)));
}

pub(super) async fn the_audit_is_read_newest_first_and_filtered(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    for action in ["test.one", "test.two", "test.one"] {
        world.commit(Change::new().audit(world.event(action))).await;
    }
    let query = |query: AuditQuery| AuditQuery { limit: 10, ..query };
    let all = world
        .store
        .audit_records(&query(AuditQuery::default()))
        .await
        .expect("a read");
    let actions: Vec<_> = all.iter().map(|record| record.event.action.as_str()).collect();
    assert_eq!(actions, ["test.one", "test.two", "test.one"]);
    assert!(all.windows(2).all(|pair| pair[0].sequence > pair[1].sequence));
    let filters = [
        (
            AuditQuery {
                action: Some("test.one".to_owned()),
                ..AuditQuery::default()
            },
            2,
        ),
        (
            AuditQuery {
                actor: Some(world.actor.clone()),
                ..AuditQuery::default()
            },
            3,
        ),
        (
            AuditQuery {
                outcome: Some(AuditOutcome::Denied),
                ..AuditQuery::default()
            },
            0,
        ),
        (
            AuditQuery {
                namespace: Some(world.namespace),
                ..AuditQuery::default()
            },
            3,
        ),
        (
            AuditQuery {
                resource: Some(world.namespace.to_string()),
                ..AuditQuery::default()
            },
            3,
        ),
        (
            AuditQuery {
                before: Some(all[0].sequence),
                ..AuditQuery::default()
            },
            2,
        ),
    ];
    for (filter, count) in filters {
        let found = world.store.audit_records(&query(filter.clone())).await.expect("a read");
        assert_eq!(found.len(), count, "{filter:?}");
    }
    let one = AuditQuery {
        limit: 1,
        ..AuditQuery::default()
    };
    assert_eq!(world.store.audit_records(&one).await.expect("a read").len(), 1);
}

pub(super) async fn seals_follow_the_audit_without_gaps(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    for number in 0..5 {
        world
            .commit(Change::new().audit(world.event(&format!("test.n{number}"))))
            .await;
    }
    assert_eq!(world.store.seal_audit(2).await, Ok(2));
    assert_eq!(world.store.seal_audit(10).await, Ok(3));
    assert_eq!(world.store.seal_audit(10).await, Ok(0), "nothing is sealed twice");
    world.commit(Change::new().audit(world.event("test.late"))).await;
    let (ours, theirs) = (Arc::clone(&world.store), world.subject.second().await);
    let (first, second) = tokio::join!(ours.seal_audit(10), theirs.seal_audit(10));
    assert!(
        matches!((&first, &second), (Ok(1), Ok(0)) | (Ok(0), Ok(1))),
        "two sealers take turns: {first:?}, {second:?}"
    );
    let installation = world.store.installation().await.expect("a read").expect("it exists").id;
    let mut hash = chain::root(installation);
    let mut sealed = world.store.sealed_audit(0, 4).await.expect("a read");
    sealed.extend(world.store.sealed_audit(4, 100).await.expect("a read"));
    assert_eq!(sealed.len(), 6);
    for (position, record) in (1..).zip(sealed) {
        hash = chain::link(&hash, position, record.occurred_at, &record.event);
        let seal = record.seal.expect("it is sealed");
        assert_eq!((seal.position, seal.hash), (position, hash.clone()));
    }
}
