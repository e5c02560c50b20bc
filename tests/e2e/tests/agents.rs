//! What a user does with the commands, and what they say when it cannot work. No test here needs the real OpenClaw.

use std::{fs, net::TcpListener, process::Stdio, thread, time::Duration};

use occ_e2e::{Home, Model, Ran, Up, document, eventually, id};
use occ_test_support::model_server::Behaviour;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};

const KEY: &str = "sk-agent-tests-0123456789";
const ABSENT: &str = "agt_00000000-0000-4000-8000-000000000000";

fn ready(home: &mut Home) -> Up {
    let up = Up::whole(home);
    eventually("the Namespace is ready", || {
        (home.json(["namespace", "show", "default"])["status"] == "ready").then_some(())
    });
    up
}

/// A command that is refused with this code.
fn refused(home: &Home, code: &str, arguments: &[&str]) -> String {
    let ran = home.occ([arguments, &["--output", "json"]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{arguments:?}: {ran:?}");
    let error: Value = serde_json::from_str(&ran.stderr).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(error["error"]["code"], code, "{arguments:?}: {error}");
    error["error"]["message"].as_str().unwrap().to_owned()
}

fn fails(ran: &Ran, texts: &[&str]) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for text in texts {
        assert!(ran.stderr.contains(text), "{text} is not in {}", ran.stderr);
    }
}

#[test]
fn namespaces_configurations_and_secrets_are_made_read_changed_and_deleted() {
    let mut home = Home::new();
    let up = ready(&mut home);

    let made = home.json(["namespace", "create", "team", "--wait"]);
    assert_eq!(
        (made["name"].as_str(), made["status"].as_str()),
        (Some("team"), Some("ready"))
    );
    assert_eq!(home.json(["namespace", "show", "team"])["id"], made["id"]);
    refused(&home, "RESOURCE_CONFLICT", &["namespace", "create", "team"]);

    let team = ["--namespace", "team"];
    let file = home.write("doc.yaml", "agents:\n  defaults: { model: openai/gpt-5 }\n");
    let file = file.display().to_string();
    let configuration = home.json([&["configuration", "create", &file][..], &team].concat());
    assert_eq!(
        configuration["values"],
        json!({ "agents": { "defaults": { "model": "openai/gpt-5" } } })
    );
    let configuration = id(&configuration).to_owned();
    let piped = home.pipe(
        [
            &["configuration", "update", &configuration, "-", "--output", "json"][..],
            &team,
        ]
        .concat(),
        r#"{ "agents": { "defaults": { "model": "openai/gpt-6" } } }"#,
    );
    assert_eq!(piped.json()["generation"], 2);
    // What the API alone judges reaches it as it was written.
    let twice = home.write("twice.json", r#"{"a":1,"a":2}"#).display().to_string();
    refused(
        &home,
        "INVALID_REQUEST",
        &[&["configuration", "create", &twice][..], &team].concat(),
    );

    let secret = home.pipe(
        [&["secret", "create", "s", "--output", "json"][..], &team].concat(),
        "first value\n",
    );
    let secret = id(&secret.json()).to_owned();
    let updated = home.pipe([&["secret", "update", "s"][..], &team].concat(), "second value");
    assert_eq!(updated.code, Some(0), "{updated:?}");
    let list = home.json([&["secret", "list"][..], &team].concat());
    assert_eq!(list[0]["id"], secret);
    assert_eq!(
        home.json(["secret", "list"]),
        json!([]),
        "another Namespace has none of it"
    );
    let bound = [
        &["configuration", "update", &configuration, &file, "--bind", "TOKEN=s"][..],
        &team,
    ];
    assert_eq!(
        home.json(bound.concat())["secretBindings"]["TOKEN"]["source"]["id"],
        secret
    );
    let used = refused(
        &home,
        "RESOURCE_CONFLICT",
        &[&["secret", "delete", "s"][..], &team].concat(),
    );
    assert!(!used.contains("value"), "{used}");
    refused(&home, "NAMESPACE_NOT_EMPTY", &["namespace", "delete", "team"]);

    for gone in [
        &["configuration", "delete", &configuration][..],
        &["secret", "delete", "s"],
    ] {
        assert_eq!(home.occ([gone, &team].concat()).code, Some(0));
    }
    assert_eq!(home.occ(["namespace", "delete", "team", "--wait"]).code, Some(0));
    refused(&home, "NOT_FOUND", &["namespace", "show", "team"]);
    refused(&home, "RESOURCE_CONFLICT", &["namespace", "create", "team"]);
    assert!(!home.transcript().contains(" value"), "no value was ever shown");
    up.stop();
}

#[test]
fn policy_and_keys_are_made_read_and_deleted() {
    let mut home = Home::new();
    let up = ready(&mut home);
    let role = home.json([
        "role",
        "create",
        "--permission",
        "secret:operate",
        "--permission",
        "secret:read",
    ]);
    let role = id(&role).to_owned();
    refused(
        &home,
        "INVALID_REQUEST",
        &["role", "create", "--permission", "installation:administer"],
    );
    assert_eq!(home.pipe(["secret", "create", "s"], KEY).code, Some(0));
    let file = home
        .write("d.json", &document("http://127.0.0.1:9/v1").to_string())
        .display()
        .to_string();
    let configuration = home.json(["configuration", "create", &file]);
    let agent = home.json(["agent", "create", "a", "--configuration", id(&configuration)]);
    let principal = agent["servicePrincipalId"].as_str().unwrap();
    let binding = home.json([
        "access-binding",
        "create",
        "--agent",
        "a",
        "--role",
        &role,
        "--resource",
        "secret:s",
    ]);
    assert_eq!(binding["subject"]["id"], principal);
    let list = home.json(["service-principal", "list"]);
    assert_eq!(
        (list[0]["id"].as_str(), &list[0]["agentId"]),
        (Some(principal), &agent["id"])
    );
    refused(&home, "RESOURCE_CONFLICT", &["role", "delete", &role]);
    assert_eq!(home.occ(["access-binding", "delete", id(&binding)]).code, Some(0));
    assert_eq!(home.occ(["role", "delete", &role]).code, Some(0));

    // A key for the administrator, confined to one Namespace, in a file of its own.
    let administrator = fs::read_to_string(home.data().join("administrator")).unwrap();
    let out = home.path().join("scoped.key").display().to_string();
    let create = [
        "key",
        "create",
        "--principal",
        administrator.trim(),
        "--name",
        "scoped",
        "--namespace",
        "default",
        "--expires-in",
        "1d",
        "--out",
        &out,
    ];
    let key = home.json(create);
    assert_eq!(key["keyFile"], out);
    assert!(!fs::read_to_string(&out).unwrap().is_empty());
    assert_eq!(home.occ(create).code, Some(2), "a file that exists is not overwritten");
    let with = |arguments: &[&str]| home.occ([&["--key-file", &out], arguments].concat());
    assert_eq!(with(&["agent", "list"]).code, Some(0));
    let foreign = with(&["installation", "show"]);
    assert!(
        foreign.code == Some(1) && foreign.stderr.contains("FORBIDDEN"),
        "{foreign:?}"
    );
    assert_eq!(home.occ(["key", "revoke", id(&key["key"])]).code, Some(0));
    let revoked = with(&["agent", "list"]);
    assert!(
        revoked.code == Some(1) && revoked.stderr.contains("UNAUTHENTICATED"),
        "{revoked:?}"
    );

    let agent_key = ["key", "create", "--principal", principal];
    refused(&home, "INVALID_REQUEST", &agent_key);
    up.stop();
}

#[test]
fn an_agents_draft_is_changed_field_by_field() {
    let mut home = Home::new();
    let up = ready(&mut home);
    let draft = home.draft("one", &document("http://127.0.0.1:9/v1"), KEY, &[]);
    let auth = home.json(["agent", "show", "one"])["harnessAuth"].clone();
    assert_eq!(auth["method"], "api_key");
    assert_eq!(
        home.json(["agent", "update", "one"])["harnessAuth"],
        auth,
        "what is not named is kept"
    );
    let dedicated = home.json(["agent", "update", "one", "--mode", "dedicated"]);
    assert_eq!(
        (dedicated["executionMode"].as_str(), &dedicated["harnessAuth"]),
        (Some("dedicated"), &auth)
    );
    let cleared = home.json(["agent", "update", &draft.agent, "--mode", "embedded", "--no-auth"]);
    assert_eq!(cleared["harnessAuth"], Value::Null);
    let text = home.occ(["agent", "list"]);
    assert!(
        text.stdout.starts_with("NAME ") && text.stdout.contains(&draft.agent),
        "{text:?}"
    );
    refused(&home, "RESOURCE_CONFLICT", &["agent", "deploy", "one"]);
    refused(&home, "NOT_FOUND", &["agent", "show", ABSENT]);
    refused(&home, "NOT_FOUND", &["agent", "show", "nobody"]);
    refused(&home, "NOT_FOUND", &["agent", "logs", "one", "7"]);
    let none = home.occ(["agent", "deployment-status", "one"]);
    fails(&none, &["no version yet"]);
    up.stop();
}

#[test]
fn a_missing_grant_names_who_lacks_what() {
    let mut home = Home::new();
    let up = ready(&mut home);
    assert_eq!(home.pipe(["secret", "create", "s"], KEY).code, Some(0));
    let file = home
        .write("d.json", &document("http://127.0.0.1:9/v1").to_string())
        .display()
        .to_string();
    let configuration = home.json(["configuration", "create", &file]);
    let agent = home.json([
        "agent",
        "create",
        "a",
        "--configuration",
        id(&configuration),
        "--api-key-secret",
        "s",
    ]);
    let message = refused(&home, "FORBIDDEN", &["agent", "deploy", "a"]);
    let secret = home.json(["secret", "show", "s"]);
    for named in [agent["servicePrincipalId"].as_str().unwrap(), id(&secret), "operate"] {
        assert!(message.contains(named), "{message}");
    }
    assert_eq!(home.json(["revision", "list", "a"]), json!([]));
    up.stop();
}

#[test]
fn a_program_that_is_missing_ends_the_deployment_and_says_so() {
    let mut home = Home::quick();
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let up = ready(&mut home);
    fs::remove_file(home.path().join("node")).unwrap();
    home.draft("one", &document(&model.base_url()), KEY, &[]);
    let ran = home.occ(["agent", "deploy", "one", "--wait"]);
    fails(
        &ran,
        &[
            "RUNTIME_STARTUP_FAILED",
            "EXECUTABLE_MISSING",
            "docs/reasons/RUNTIME_STARTUP_FAILED.md",
        ],
    );
    let status = home.json(["agent", "deployment-status", "one"]);
    assert_eq!(
        status["error"]["data"]["preparation"]["reason"], "EXECUTABLE_MISSING",
        "{status}"
    );
    // Repaired, the next version runs.
    fs::write(home.path().join("node"), include_str!("../fixture/openclaw.py")).unwrap();
    fs::set_permissions(
        home.path().join("node"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let ran = home.occ(["agent", "deploy", "one", "--wait"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    up.stop();
}

#[test]
fn a_check_that_exits_and_a_gateway_that_exits_have_codes_of_their_own() {
    let mut home = Home::quick();
    let exits = home.write("check-exits", "");
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let up = ready(&mut home);
    home.draft("one", &document(&model.base_url()), KEY, &[]);
    let ran = home.occ(["agent", "deploy", "one", "--wait"]);
    fails(
        &ran,
        &[
            "RUNTIME_MODEL_PROBE_FAILED",
            "Cause: PROCESS_EXIT exit-3",
            "docs/reasons/",
        ],
    );
    let shown = home.occ(["agent", "deployment-status", "one"]);
    assert!(
        shown.code == Some(0) && shown.stdout.contains("Cause: PROCESS_EXIT exit-3"),
        "{shown:?}"
    );

    fs::remove_file(exits).unwrap();
    home.write("refuses-to-start", "");
    let ran = home.occ(["agent", "deploy", "one", "--wait"]);
    fails(&ran, &["RUNTIME_STARTUP_FAILED", "COMPONENT_EXITED", "Exit status 7"]);
    let status = home.json(["agent", "deployment-status", "one"]);
    assert_eq!(status["error"]["data"]["preparation"]["exitStatus"], 7, "{status}");
    assert!(home.gateways().is_empty());
    up.stop();
}

#[test]
fn a_wait_that_takes_too_long_leaves_the_work_going_on() {
    let mut home = Home::quick();
    let model = Model::start(Behaviour::echo(), Some(KEY));
    ready(&mut home).stop();
    let api = Up::start(&home, ["--api-only"]);
    home.set("OCC_API", api.api());
    home.draft("one", &document(&model.base_url()), KEY, &[]);
    let ran = home.occ(["agent", "deploy", "one", "--wait", "--timeout", "1s"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("goes on"), "{ran:?}");
    assert!(ran.stderr.contains("0s queued"), "{ran:?}");
    let worker = Up::start(&home, ["--worker-only"]);
    let ran = home.occ(["agent", "deployment-status", "one", "--wait"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("succeeded"), "{ran:?}");
    worker.stop();
    api.stop();
}

#[test]
fn a_wait_outlives_a_restart_of_the_control_plane() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut home = Home::quick()
        .with("OCC_LISTEN", &free.to_string())
        .with("OCC_WORKER_LEASE_DURATION_MS", "1000");
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let up = ready(&mut home);
    let draft = home.draft("one", &document(&model.base_url()), KEY, &[]);
    let mut waiting = home.command(["agent", "deploy", "one", "--wait"]);
    let waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("it is admitted", || {
        (!home.json(["revision", "list", &draft.name]).as_array()?.is_empty()).then_some(())
    });
    up.kill();
    // Long enough to be asked in vain.
    thread::sleep(Duration::from_secs(1));
    let up = Up::whole(&mut home);
    let output = waiting.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("cannot be reached"), "{said}");
    up.stop();
}

#[test]
fn a_running_agent_is_talked_to_looked_at_and_ended() {
    let mut home = Home::quick();
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let up = ready(&mut home);
    let draft = home.draft("one", &document(&model.base_url()), KEY, &[]);
    let deployed = home.json(["agent", "deploy", "one", "--wait"]);
    assert_eq!(deployed["status"], "succeeded");

    let gateway = home.json(["agent", "gateway", "one"]);
    assert!(
        gateway["url"].as_str().unwrap().starts_with("http://127.0.0.1:"),
        "{gateway}"
    );
    assert_eq!(
        home.json(["agent", "chat", "one", "hello"]),
        json!({ "reply": "heard: hello" })
    );
    let logs = home.occ(["agent", "logs", "one", "--lines", "5"]);
    assert!(
        logs.stdout.lines().count() <= 5 && logs.stdout.contains("runtime.startup_phase"),
        "{logs:?}"
    );
    let checks = home.json(["agent", "diagnostics", "one"]);
    let checks = checks["checks"].as_array().unwrap();
    assert!(checks.iter().all(|check| check["status"] == "succeeded"), "{checks:?}");
    assert_eq!(
        home.json(["agent", "credentials", "one"]),
        json!({ "transportConfigured": true })
    );
    let revision = home.json(["revision", "show", "one"]);
    assert_eq!(
        (revision["revision"].as_u64(), &revision["id"]),
        (Some(1), &deployed["deploymentId"])
    );

    // Changing the Configuration changes no version.
    let file = home.write("other.json", r#"{"agents":{}}"#).display().to_string();
    home.json(["configuration", "update", &draft.configuration, &file]);
    assert_eq!(home.json(["revision", "show", "one"]), revision);

    let stopped = home.json(["agent", "stop", "one", "--wait"]);
    assert_eq!(
        (&stopped["activeRevisionId"], stopped["desiredRuntimeState"].as_str()),
        (&Value::Null, Some("stopped"))
    );
    assert!(home.workload().is_empty());
    refused(&home, "RESOURCE_CONFLICT", &["agent", "gateway", "one"]);
    fails(&home.occ(["agent", "chat", "one", "hello"]), &["stopped"]);
    assert_eq!(home.occ(["agent", "delete", "one", "--wait"]).code, Some(0));
    refused(&home, "NOT_FOUND", &["agent", "show", &draft.agent]);
    up.stop();
    // Its deletion is on record, and nothing else of it.
    assert_eq!(naming(&home, &draft.agent), ["audit", "work"]);
    assert!(naming(&home, &draft.configuration).contains(&"configurations".to_owned()));
}

/// The tables of a stopped control plane's database in which a row names this id.
fn naming(home: &Home, id: &str) -> Vec<String> {
    let address = format!("sqlite://{}", home.data().join("occ.db").display());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut db = SqliteConnection::connect(&address).await.unwrap();
        let columns =
            "SELECT t.name, group_concat('instr(CAST(\"' || c.name || '\" AS TEXT), ?1) > 0', ' OR ') AS named
            FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' GROUP BY t.name ORDER BY t.name";
        let tables = sqlx::query(columns).fetch_all(&mut db).await.unwrap();
        let mut found = Vec::new();
        for table in tables {
            let (name, named): (String, String) = (table.get(0), table.get(1));
            let count = format!("SELECT count(*) FROM \"{name}\" WHERE {named}");
            let count = sqlx::query_scalar(AssertSqlSafe(count)).bind(id);
            let count: i64 = count.fetch_one(&mut db).await.unwrap();
            if count > 0 {
                found.push(name);
            }
        }
        found
    })
}

#[test]
fn some_commands_need_no_server_and_make_nothing() {
    let home = Home::bare();
    let drivers = home.json(["drivers"]);
    let names = |kind: &str| {
        let of_kind = drivers.as_array().unwrap().iter().filter(|row| row["kind"] == kind);
        of_kind.map(|row| row["driver"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names("compute"), names("harness")),
        (vec!["process"], vec!["openclaw"])
    );
    let compute = drivers
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["kind"] == "compute")
        .unwrap();
    let capabilities = compute["capabilities"].as_array().unwrap();
    assert!(capabilities.contains(&json!("gateway_access")), "{capabilities:?}");
    assert_eq!(compute["settings"]["type"], "object");
    assert!(home.occ(["drivers"]).stdout.starts_with("KIND "));

    let explained = home.occ(["explain", "RUNTIME_MODEL_PROBE_FAILED"]);
    assert!(
        explained.stdout.contains("docs/reasons/RUNTIME_MODEL_PROBE_FAILED.md"),
        "{explained:?}"
    );
    assert_eq!(home.occ(["explain", "NO_SUCH_CODE"]).code, Some(1));

    let ran = home.occ(["agent", "list"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("occ up"),
        "there is no key yet: {ran:?}"
    );
    let help = home.occ(["--help"]);
    assert!(help.code == Some(0) && help.stdout.contains("Exit codes"), "{help:?}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing was written");
}
