//! Where everything is kept: a life on PostgreSQL with the API and the worker apart, migrations, and backups of the embedded file.

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _, process::ExitCode};

use libtest_mimic::{Arguments, Trial};
use occ_e2e::{Home, Model, Ran, Up, document, eventually};
use occ_test_support::{
    model_server::Behaviour,
    postgres::{Database, absent},
};
use serde_json::json;
use sqlx::{Connection as _, SqliteConnection};
use tokio::runtime::Runtime;

const KEY: &str = "sk-database-tests-0123456789";

fn main() -> ExitCode {
    let on_a_server: [(&str, fn()); 2] = [
        (
            "a_life_on_postgres_with_the_api_and_the_worker_apart",
            a_life_on_postgres_with_the_api_and_the_worker_apart,
        ),
        (
            "a_server_is_migrated_before_it_is_used",
            a_server_is_migrated_before_it_is_used,
        ),
    ];
    let embedded: [(&str, fn()); 3] = [
        (
            "a_pruning_says_first_what_it_would_remove",
            a_pruning_says_first_what_it_would_remove,
        ),
        (
            "a_backup_is_made_while_the_control_plane_runs",
            a_backup_is_made_while_the_control_plane_runs,
        ),
        ("a_password_is_no_argument", a_password_is_no_argument),
    ];
    let on_a_server = on_a_server.map(|(name, test)| match absent() {
        None => trial(name, test),
        // Named, so that nobody takes it for passed.
        Some(reason) => trial(&format!("{name} (skipped: {reason})"), test).with_ignored_flag(true),
    });
    let trials = on_a_server
        .into_iter()
        .chain(embedded.map(|(name, test)| trial(name, test)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

fn ended(ran: &Ran, code: i32, text: &str) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert!(ran.text().contains(text), "{text} is not in {ran:?}");
}

fn ready(home: &Home) {
    eventually("the Namespace is ready", || {
        (home.json(["namespace", "show", "default"])["status"] == "ready").then_some(())
    });
}

fn a_life_on_postgres_with_the_api_and_the_worker_apart() {
    let runtime = Runtime::new().unwrap();
    let database = runtime.block_on(Database::fresh());
    let mut home = Home::quick().with("DATABASE_URL", &database.url());
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let api = Up::start(&home, ["--api-only"]);
    home.set("OCC_API", api.api());
    let worker = Up::start(&home, ["--worker-only"]);
    ready(&home);

    home.draft("one", &document(&model.base_url()), KEY, &[]);
    assert_eq!(home.json(["agent", "deploy", "one", "--wait"])["status"], "succeeded");
    assert_eq!(
        home.json(["agent", "chat", "one", "hello"]),
        json!({ "reply": "heard: hello" })
    );

    // A worker that dies costs nothing that was accepted.
    worker.kill();
    let stopping = home.occ(["agent", "stop", "one"]);
    assert_eq!(stopping.code, Some(0), "{stopping:?}");
    let worker = Up::start(&home, ["--worker-only"]);
    eventually("the Agent stops", || home.workload().is_empty().then_some(()));
    assert_eq!(home.occ(["agent", "delete", "one", "--wait"]).code, Some(0));
    worker.stop();
    api.stop();
    assert!(!home.data().join("occ.db").exists(), "nothing is kept in a file");
}

fn a_server_is_migrated_before_it_is_used() {
    let runtime = Runtime::new().unwrap();
    let database = runtime.block_on(Database::empty());
    let home = Home::new();
    let named = ["--database".to_owned(), database.url()];
    let with = |arguments: &[&str]| {
        let named = named.each_ref().map(String::as_str);
        home.occ([arguments, &named].concat())
    };
    ended(&with(&["up", "--listen", "127.0.0.1:0"]), 5, "run `occ migrate up`");
    ended(&with(&["migrate", "status"]), 1, "run `occ migrate up`");
    ended(&with(&["migrate", "up"]), 0, "migrated from 0 to ");
    ended(&with(&["migrate", "up"]), 0, "nothing to do");
    let status = with(&["migrate", "status", "--output", "json"]).json();
    assert!(
        status["found"].is_u64() && status["found"] == status["known"],
        "{status}"
    );
    let up = Up::start(&home, &named);
    up.stop();
    let newer = "INSERT INTO occ.schema_version VALUES (999, now())";
    runtime.block_on(async {
        let mut db = database.raw().await;
        sqlx::raw_sql(newer).execute(&mut db).await.unwrap();
    });
    for arguments in [&["up", "--listen", "127.0.0.1:0"][..], &["migrate", "up"]] {
        ended(&with(arguments), 5, "has schema version 999");
    }
    ended(&with(&["migrate", "status"]), 1, "a newer program");
}

fn a_backup_is_made_while_the_control_plane_runs() {
    let mut home = Home::new();
    let up = Up::whole(&mut home);
    ready(&home);
    let copy = home.path().join("copy.db");
    let file = copy.display().to_string();
    ended(
        &home.occ(["backup", &file]),
        0,
        "The keys that seal Secrets are not in it",
    );
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    ended(&home.occ(["backup", &file]), 1, "exists already");
    ended(&home.occ(["restore", &file]), 5, "already runs a control plane");
    assert_eq!(home.json(["namespace", "create", "later", "--wait"])["status"], "ready");
    up.stop();
    ended(&home.occ(["restore", &file]), 1, "what came since would be lost");
    // The database is lost.
    fs::remove_file(home.data().join("occ.db")).unwrap();
    ended(&home.occ(["migrate", "status"]), 1, "run `occ migrate up`");
    ended(&home.occ(["restore", &file]), 0, "restored");
    let up = Up::whole(&mut home);
    let names = home.json(["namespace", "list"]);
    assert_eq!(
        (names.as_array().unwrap().len(), &names[0]["name"]),
        (1, &json!("default"))
    );
    up.stop();
    let mut spoilt = fs::OpenOptions::new().append(false).write(true).open(&copy).unwrap();
    spoilt.write_all(b"not a database at all").unwrap();
    assert_eq!(home.occ(["restore", &file]).code, Some(1));
}

fn a_pruning_says_first_what_it_would_remove() {
    let mut home = Home::new();
    let up = Up::whole(&mut home);
    ready(&home);
    up.stop();
    let path = home.data().join("occ.db");
    let asked = |statement: &'static str| {
        Runtime::new().unwrap().block_on(async {
            let address = format!("sqlite://{}", path.display());
            let mut db = SqliteConnection::connect(&address).await.unwrap();
            let answer: Option<i64> = sqlx::query_scalar(statement).fetch_optional(&mut db).await.unwrap();
            db.close().await.unwrap();
            answer
        })
    };
    // A stop that was done long ago.
    asked(
        "INSERT INTO work (key, kind, namespace_id, agent_id, operation, lane, actor, state, available_at, attempts, code, result,
            completed_at, created_at)
        SELECT 'old', 'agent_stopped', id, 'agt_00000000-0000-4000-8000-000000000000', '00000000-0000-4000-8000-000000000000',
            'agt_00000000-0000-4000-8000-000000000000', 'prn_1', 'succeeded', 1, 1, 'AGENT_STOPPED', '{}', 1, 1 FROM namespaces",
    );
    let kept = || asked("SELECT count(*) FROM work WHERE key = 'old'").unwrap();
    let said = |applied: bool, work: u64| json!({ "applied": applied, "work": work, "audit": null });
    let prune = ["prune", "--work-older-than", "30d"];
    for _ in 0..2 {
        assert_eq!(home.json(prune), said(false, 1));
        assert_eq!(kept(), 1, "a dry run changes nothing");
    }
    let apply = [&prune[..], &["--apply"]].concat();
    assert_eq!(home.json(&apply), said(true, 1));
    assert_eq!(kept(), 0);
    assert_eq!(home.json(&apply), said(true, 0));
    let recorded = "SELECT count(*) FROM audit WHERE action = 'openclaw.work.prune'";
    assert_eq!(asked(recorded), Some(1), "what was removed is recorded");
}

fn a_password_is_no_argument() {
    let home = Home::new();
    for url in [
        "postgres://occ:canary@127.0.0.1/occ",
        "postgres://127.0.0.1/occ?user=occ&password=canary",
    ] {
        for command in [&["up"][..], &["migrate", "status"]] {
            let ran = home.occ([command, &["--database", url]].concat());
            ended(&ran, 2, "DATABASE_URL");
            assert!(!ran.text().contains("canary"), "{ran:?}");
        }
    }
    let home = home.with("DATABASE_URL", "postgres://occ:canary@127.0.0.1:1/occ");
    let ran = home.occ(["migrate", "status"]);
    ended(&ran, 5, "127.0.0.1:1/occ cannot be reached");
    assert!(!ran.text().contains("canary"), "{ran:?}");
    ended(&home.occ(["backup", "copy.db"]), 2, "pg_dump");
}
