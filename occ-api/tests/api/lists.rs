//! Lists in pages, and what cannot be read.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use occ_core::{
    driver::{Action, ResourceKind, ResourceRef},
    store::sqlite::SqliteStore,
};
use occ_test_support::drivers::{Watch, World};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::served::Served;

fn names(list: &Value) -> Vec<String> {
    let items = list.as_array().expect("a list").iter();
    items
        .map(|item| item["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[tokio::test]
async fn pages_follow_each_other_without_what_may_not_be_read() {
    let served = Served::new().await;
    let mut secrets = Vec::new();
    for number in 0..7 {
        secrets.push(served.world.secret(&format!("s{number}"), "sk-test-0123456789").await);
    }
    let world = &served.world;
    for hidden in [secrets[0], secrets[3], secrets[6]] {
        let resource = ResourceRef::secret(world.namespace, hidden);
        world.iam.deny_exactly(&world.admin.principal, Action::Read, resource);
    }
    let path = served.path("/secrets");
    let mut cursor = String::new();
    let mut seen = Vec::new();
    for expected in [vec!["s1", "s2"], vec!["s4", "s5"]] {
        let page = served.send(Method::GET, &format!("{path}?limit=2{cursor}")).await;
        assert_eq!(names(page.data()), expected);
        seen.extend(names(page.data()));
        let next = page.body["meta"]["nextCursor"]
            .as_str()
            .map(|next| format!("&cursor={next}"));
        assert_eq!(next.is_some(), seen.len() < 4, "the last page says so: {}", page.body);
        cursor = next.unwrap_or_default();
    }
    assert_eq!(seen.len(), 4);
    assert_eq!(names(served.send(Method::GET, &path).await.data()), seen);
    for query in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=+5",
        "cursor=x",
        "cursor=1.",
        "limit=1&limit=2",
        "other=1",
    ] {
        let refused = served.send(Method::GET, &format!("{path}?{query}")).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (400, "INVALID_REQUEST"),
            "{query}"
        );
    }
}

/// Reads of lists of Secrets.
#[derive(Default)]
struct Reads(AtomicUsize);

impl Watch for Reads {
    fn called(&self, method: &'static str) {
        if method == "secrets" {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn a_page_is_read_in_parts_and_does_not_tell_what_was_left_out_of_it() {
    let served = Served::new().await;
    let world = &served.world;
    let mut secrets = Vec::new();
    for number in 0..120 {
        secrets.push(world.secret(&format!("s{number}"), "sk-test-0123456789").await);
    }
    let reads = Arc::new(Reads::default());
    world.store.watch(Arc::clone(&reads) as _);
    let path = served.path("/secrets?limit=1");
    let first = served.send(Method::GET, &path).await;
    assert_eq!(names(first.data()), ["s0"]);
    assert_eq!(reads.0.swap(0, Ordering::Relaxed), 1, "and no more of the list");

    // All but the first and the last are hidden: the page is as it is without them.
    let (last, hidden) = secrets.split_last().expect("Secrets");
    for hidden in &hidden[1..] {
        let resource = ResourceRef::secret(world.namespace, *hidden);
        world.iam.deny_exactly(&world.admin.principal, Action::Read, resource);
    }
    let few = served.send(Method::GET, &path).await;
    assert_eq!(
        (names(few.data()), &few.body["meta"]["nextCursor"]),
        (vec!["s0".to_owned()], &first.body["meta"]["nextCursor"],)
    );
    assert_eq!(reads.0.swap(0, Ordering::Relaxed), 3, "120 in parts of 50");
    let resource = ResourceRef::secret(world.namespace, *last);
    world.iam.deny_exactly(&world.admin.principal, Action::Read, resource);
    let one = served.send(Method::GET, &path).await;
    assert_eq!(names(one.data()), ["s0"]);
    assert_eq!(
        one.body["meta"].get("nextCursor"),
        None,
        "nothing follows that may be read"
    );
}

#[tokio::test]
async fn every_list_of_a_namespace_comes_in_pages() {
    let served = Served::new().await;
    let agent = served.world.deployable("a").await;
    served.world.deployable("b").await;
    for _ in 0..2 {
        served
            .send(Method::POST, &served.path(&format!("/agents/{}/deploy", agent.id)))
            .await;
        let name = format!("n{}", occ_core::id::RequestId::random());
        served.json(Method::POST, "/namespaces", &json!({ "name": name })).await;
        for (below, body) in [
            ("/service-accounts", json!({ "name": name })),
            ("/presets", json!({ "name": name, "settings": {} })),
        ] {
            served.json(Method::POST, &served.path(below), &body).await;
        }
    }
    let revisions = format!("/agents/{}/revisions", agent.id);
    let lists = [
        "/agents",
        "/configurations",
        "/secrets",
        "/service-accounts",
        "/presets",
        &revisions,
    ];
    let paths = lists.map(|below| served.path(below));
    for path in paths.iter().map(String::as_str).chain(["/namespaces"]) {
        let all = served.send(Method::GET, path).await;
        let all = all.data().as_array().expect("a list").clone();
        assert!(all.len() >= 2, "{path}");
        let first = served.send(Method::GET, &format!("{path}?limit=1")).await;
        assert_eq!(first.data(), &json!([all[0]]), "{path}");
        let next = first.body["meta"]["nextCursor"].as_str().expect("more").to_owned();
        let rest = served.send(Method::GET, &format!("{path}?cursor={next}")).await;
        assert_eq!(rest.data(), &json!(all[1..]), "{path}");
    }
}

/// A world over a file, and a connection of our own to it.
pub async fn on_disk() -> (Served, SqliteConnection, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("occ.db");
    let store = SqliteStore::open(&file).await.expect("it opens");
    let world = World::builder().store(Arc::new(store)).build().await;
    let database = SqliteConnectOptions::new()
        .filename(&file)
        .connect()
        .await
        .expect("a connection");
    (Served::over(world).await, database, directory)
}

pub async fn run(database: &mut SqliteConnection, statement: &'static str) {
    sqlx::raw_sql(statement).execute(database).await.expect("it runs");
}

#[tokio::test]
async fn a_saved_setting_that_cannot_be_read_is_left_out_and_named() {
    let (served, mut database, _directory) = on_disk().await;
    let broken = served.world.deployable("broken").await;
    let sound = served.world.deployable("sound").await;
    let agents = served.agents();
    let plugged = served.world.deployable("plugged").await;
    for agent in [&broken, &sound] {
        served
            .send(Method::POST, &format!("{agents}/{}/deploy", agent.id))
            .await;
    }
    // As an upgrade leaves a method behind that the program no longer knows.
    run(
        &mut database,
        r#"UPDATE agents SET harness_auth = '{"method":"oauth","source":"sk-canary"}' WHERE name = 'broken';
        DROP TRIGGER revisions_immutable;
        UPDATE revisions SET snapshot = CAST(replace(CAST(snapshot AS TEXT), '"api_key"', '"oauth"') AS BLOB)
            WHERE agent_id = (SELECT id FROM agents WHERE name = 'broken');
        UPDATE agents SET plugins = '{"no id": "sk-canary"}' WHERE name = 'plugged';"#,
    )
    .await;
    database.close().await.expect("it closes");
    let error = |field: &str| json!({ "code": "SAVED_CONFIGURATION_UNREADABLE", "field": field });

    let path = format!("{agents}/{}", broken.id);
    let detail = served.send(Method::GET, &path).await;
    assert_eq!(detail.status.as_u16(), 200, "{}", detail.body);
    assert_eq!(detail.data()["configurationReadError"], error("harnessAuth"));
    assert_eq!(detail.data().get("harnessAuth"), None, "left out, not defaulted");
    assert_eq!(detail.data()["name"], "broken");
    let listed = served.send(Method::GET, &agents).await;
    assert_eq!(listed.data()[0], *detail.data());
    assert_eq!(
        listed.data()[1]["harnessAuth"]["method"],
        "api_key",
        "its siblings are whole"
    );
    let other = served.send(Method::GET, &format!("{agents}/{}", plugged.id)).await;
    assert_eq!(other.data()["configurationReadError"], error("plugins"));
    assert_eq!(other.data().get("plugins"), None, "left out, not defaulted");
    let revisions = served.send(Method::GET, &format!("{path}/revisions")).await;
    let revision = &revisions.data()[0];
    assert_eq!(revision["configurationReadError"], error("harnessAuth"));
    let mut fields: Vec<_> = revision.as_object().expect("an object").keys().cloned().collect();
    fields.sort();
    assert_eq!(
        fields,
        [
            "agentId",
            "backendId",
            "configurationReadError",
            "createdAt",
            "id",
            "namespaceId",
            "revision"
        ]
    );
    let id = revision["id"].as_str().expect("an id");
    assert_eq!(
        served.send(Method::GET, &format!("{path}/revisions/{id}")).await.data(),
        revision
    );
    assert!(!listed.body.to_string().contains("canary") && !revisions.body.to_string().contains("canary"));

    // What goes by the settings needs them whole.
    let seen = served.send(Method::POST, &format!("{path}/deploy")).await;
    assert_eq!((seen.status.as_u16(), seen.code()), (409, "RESOURCE_CONFLICT"));
    let iam = &served.world.iam;
    iam.deny(&served.world.admin.principal, Action::Deploy, ResourceKind::Agent);
    let denied = served.send(Method::POST, &format!("{path}/deploy")).await;
    assert_eq!(
        (denied.status.as_u16(), denied.code()),
        (403, "FORBIDDEN"),
        "not even that it cannot be read"
    );
    iam.relent();
    assert_eq!(
        served
            .send(Method::POST, &format!("{agents}/{}/deploy", sound.id))
            .await
            .status
            .as_u16(),
        202
    );
}

#[tokio::test]
async fn the_audit_is_sealed_and_a_change_of_it_is_found() {
    let (served, mut database, _directory) = on_disk().await;
    served.world.deployable("a").await;
    let verify = "/installation/audit/verification";
    let first = served.send(Method::POST, verify).await;
    assert_eq!(first.data()["intact"], true, "{}", first.body);
    let again = served.send(Method::POST, verify).await;
    assert_eq!(again.data(), first.data(), "looking changes nothing");
    served.world.secret("late", "sk-test-0123456789").await;
    let later = served.send(Method::POST, verify).await;
    assert_eq!(
        later.data()["records"].as_u64(),
        first.data()["records"].as_u64().map(|n| n + 1)
    );

    let listed = served.send(Method::GET, "/installation/audit?limit=3").await;
    let records = listed.data().as_array().expect("a list").clone();
    assert_eq!(records[0]["event"]["action"], "openclaw.secrets.create");
    assert_eq!(records[0]["position"], later.data()["records"]);
    assert_eq!(records[0]["hash"], later.data()["head"]);
    let before = records[2]["sequence"].as_u64().expect("a number");
    let older = served
        .send(Method::GET, &format!("/installation/audit?limit=1&before={before}"))
        .await;
    assert_eq!(older.data()[0]["sequence"].as_u64(), Some(before - 1));
    let agents = served
        .send(
            Method::GET,
            "/installation/audit?action=openclaw.agents.create&outcome=success",
        )
        .await;
    assert_eq!(agents.data().as_array().map(Vec::len), Some(1));
    for query in ["before=x", "namespace=x", "outcome=x", "limit=0", "other=1"] {
        let refused = served.send(Method::GET, &format!("/installation/audit?{query}")).await;
        assert_eq!(refused.code(), "INVALID_REQUEST", "{query}");
    }

    // The database refuses by itself; somebody with the file goes around it.
    let tamper = "UPDATE audit SET actor = 'prn_somebody' WHERE sequence = 4";
    let refused = sqlx::query(tamper).execute(&mut database).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("append-only")));
    run(&mut database, "DROP TRIGGER audit_append_only").await;
    run(&mut database, tamper).await;
    let broken = served.send(Method::POST, verify).await;
    assert_eq!(
        (&broken.data()["intact"], &broken.data()["brokenAt"]),
        (&json!(false), &json!(4))
    );

    let world = &served.world;
    world.iam.deny(
        &world.admin.principal,
        Action::Administer,
        occ_core::driver::ResourceKind::Installation,
    );
    for (method, path) in [(Method::POST, verify), (Method::GET, "/installation/audit")] {
        assert_eq!(served.send(method, path).await.code(), "FORBIDDEN");
    }
}
