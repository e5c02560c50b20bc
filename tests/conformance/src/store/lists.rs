//! Lists in parts.

use std::{fmt::Debug, sync::Arc};

use occ_core::{
    id::PresetId,
    resource::{LaunchSettings, Namespace, NamespaceStatus, OwnedKind, Preset, SecretBindings},
    store::{Change, NewAccount, OwnedRow, SavedRevision, Slice, StoreResult, Write},
};

use super::{
    Subject,
    world::{World, configuration, principal, secret},
};
use occ_core::id::NamespaceId;

/// Reads a list whole, and in parts of two that follow each other; both must be the same.
async fn walk<T: PartialEq + Debug>(
    what: &str,
    read: impl AsyncFn(Slice) -> StoreResult<Vec<T>>,
    place: impl Fn(&T) -> (i64, String),
) {
    let whole = read(Slice::ALL).await.expect("a read");
    assert!(whole.len() >= 5, "{what}: {}", whole.len());
    assert!(whole.is_sorted_by_key(&place), "{what}");
    let (mut parts, mut after) = (Vec::new(), None);
    loop {
        let part = read(Slice { after, limit: 2 }).await.expect("a read");
        assert!(part.len() <= 2, "{what}");
        let Some(last) = part.last() else { break };
        after = Some(place(last));
        parts.extend(part);
    }
    assert_eq!(parts, whole, "{what}");
}

pub(super) async fn lists_are_read_in_parts_that_follow_each_other(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    // Several of one millisecond, which only their ids tell apart.
    let at = world.now().await;
    let mut change = Change::new();
    for number in 0..5 {
        let name = format!("n{number}");
        let preset = Preset {
            id: PresetId::random(),
            namespace_id: world.namespace,
            name: name.parse().expect("a name"),
            settings: LaunchSettings::default(),
            created_at: at,
        };
        let namespace = Namespace {
            id: NamespaceId::random(),
            name: name.parse().expect("a name"),
            existing_namespace: None,
            status: NamespaceStatus::Ready,
            created_at: at,
        };
        let person = principal(&format!("prn_{number}"));
        let account = NewAccount {
            principal: person.clone(),
            email: format!("{number}@example.com").parse().expect("an address"),
            password_hash: None,
            code: None,
        };
        change = change
            .write(Write::Principal(person, name.clone()))
            .write(Write::Account(account))
            .write(Write::Namespace(namespace))
            .write(Write::Secret(secret(world.namespace, &name, at)))
            .write(Write::Configuration(configuration(
                world.namespace,
                SecretBindings::new(),
                at,
            )))
            .write(Write::Agent(world.draft(&name, at), None))
            .write(Write::Owned(OwnedRow::preset(&preset, 1)));
    }
    world.commit(change).await;
    let agent = world.agent("deployed").await;
    for _ in 0..5 {
        world.deploy(&agent).await;
    }

    let (store, namespace) = (&world.store, world.namespace);
    walk(
        "Namespaces",
        async |slice| store.namespaces(&slice).await,
        |row| (row.namespace.created_at.as_millis(), row.namespace.id.to_string()),
    )
    .await;
    walk(
        "accounts",
        async |slice| store.accounts(&slice).await,
        |row| (row.created_at.as_millis(), row.principal.to_string()),
    )
    .await;
    walk(
        "Secrets",
        async |slice| store.secrets(namespace, &slice).await,
        |row| (row.created_at.as_millis(), row.id.to_string()),
    )
    .await;
    walk(
        "Configurations",
        async |slice| store.configurations(namespace, &slice).await,
        |row| (row.created_at.as_millis(), row.id.to_string()),
    )
    .await;
    walk(
        "Agents",
        async |slice| store.agents_in(namespace, &slice).await,
        |row| (row.agent.created_at.as_millis(), row.agent.id.to_string()),
    )
    .await;
    walk(
        "Presets",
        async |slice| store.all_owned(namespace, OwnedKind::Preset, &slice).await,
        |row| (row.created_at.as_millis(), row.id.clone()),
    )
    .await;
    let number = |saved: &SavedRevision| match saved {
        SavedRevision::Whole(revision) => (
            i64::try_from(revision.revision).expect("a small number"),
            revision.id.to_string(),
        ),
        SavedRevision::Unreadable { .. } => panic!("it can be read"),
    };
    walk(
        "versions",
        async |slice| store.saved_revisions(namespace, agent.id, &slice).await,
        number,
    )
    .await;
}
