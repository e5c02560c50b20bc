//! Starting, ending and restarting a control plane, and everything that may be wrong with where it starts.

use std::{
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use occ_e2e::{Home, Ran, Up, binary, eventually};
use rustix::process::Signal;
use sqlx::{Connection as _, SqliteConnection};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// `occ up` that must not come up.
fn refused(home: &Home, arguments: &[&str]) -> String {
    let ran = home.occ([&["up", "--listen", "127.0.0.1:0"], arguments].concat());
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert_eq!(ran.stdout, "", "it never said that it is there");
    ran.stderr
}

fn namespaces(home: &Home) -> serde_json::Value {
    home.json(["namespace", "list"])
}

fn default_ready(home: &Home) {
    eventually("the default Namespace is ready", || {
        (namespaces(home)[0]["status"] == "ready").then_some(())
    });
}

#[test]
fn the_first_start_makes_a_private_place_and_an_administrator() {
    let mut home = Home::new();
    let up = Up::whole(&mut home);
    let data = home.data();
    assert_eq!(mode(&data), 0o700);
    for file in ["admin.key", "occ.db", "installation.yaml"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
    assert_eq!(up.said["keyFile"], data.join("admin.key").display().to_string());
    assert_eq!(up.said["dataDir"], data.display().to_string());
    default_ready(&home);
    let list = namespaces(&home);
    assert_eq!(list[0]["name"], "default");
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    assert_eq!(home.json(["installation", "show"])["name"], "local");
    up.stop();
}

#[test]
fn a_restart_keeps_the_key_and_everything_else() {
    let mut home = Home::new();
    let up = Up::whole(&mut home);
    default_ready(&home);
    let before = (
        fs::read(home.data().join("admin.key")).unwrap(),
        fs::read(home.data().join("installation.yaml")).unwrap(),
        namespaces(&home),
        home.json(["installation", "show"]),
    );
    up.stop();
    let up = Up::whole(&mut home);
    let after = (
        fs::read(home.data().join("admin.key")).unwrap(),
        fs::read(home.data().join("installation.yaml")).unwrap(),
        namespaces(&home),
        home.json(["installation", "show"]),
    );
    assert_eq!(before, after);
    // The same after an end that was not clean.
    up.kill();
    let up = Up::whole(&mut home);
    assert_eq!(namespaces(&home), before.2);
    up.stop();
}

#[test]
fn sigterm_and_sigint_are_clean_ends() {
    let mut home = Home::new();
    for signal in [Signal::TERM, Signal::INT] {
        let up = Up::whole(&mut home);
        let status = up.end(signal);
        assert_eq!(status.code(), Some(0), "{signal:?}");
        let left = ["occ.db-wal", "occ.db-shm"].map(|file| home.data().join(file).exists());
        assert_eq!(left, [false, false], "a clean end leaves no log to recover");
    }
    let ran = home.occ(["namespace", "list"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("occ up"), "{ran:?}");
}

/// Whatever is on disk when the first start is killed, the next one ends with one Installation and a key that opens it.
#[test]
fn a_first_start_that_is_killed_at_any_moment_is_finished_by_the_next() {
    for moment in [
        "installation.yaml",
        "occ.db",
        "set-up.lock",
        "bootstrap.pending",
        "administrator",
        "admin.new",
        "admin.key",
    ] {
        let mut home = Home::new();
        let mut first = home.command(["up", "--listen", "127.0.0.1:0"]);
        let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let path = home.data().join(moment);
        // Without a pause: some of these files are there for a moment only.
        while !path.exists() && !home.data().join("admin.key").exists() {
            assert!(first.try_wait().unwrap().is_none(), "it ended before {moment}");
        }
        first.kill().unwrap();
        first.wait().unwrap();
        let up = Up::whole(&mut home);
        default_ready(&home);
        assert_eq!(
            namespaces(&home).as_array().map(Vec::len),
            Some(1),
            "killed at {moment}"
        );
        assert!(!home.data().join("bootstrap.pending").exists(), "killed at {moment}");
        up.stop();
    }
}

#[test]
fn a_second_control_plane_on_one_directory_is_refused_and_the_first_goes_on() {
    let mut home = Home::new();
    let mut up = Up::whole(&mut home);
    for role in [&[][..], &["--api-only"], &["--worker-only"]] {
        let message = refused(&home, role);
        assert!(
            message.contains(&format!("process {} already runs", up.pid())),
            "{message}"
        );
        assert!(message.contains("--data-dir"), "{message}");
    }
    assert!(up.lives());
    default_ready(&home);
    // Killed, it frees the directory at once.
    up.kill();
    Up::whole(&mut home).stop();
}

#[test]
fn the_api_and_the_worker_may_be_two_processes() {
    let mut home = Home::new();
    let api = Up::start(&home, ["--api-only"]);
    home.set("OCC_API", api.api());
    // Nobody drives work: the Namespace waits, also for a worker that comes later.
    assert_eq!(namespaces(&home)[0]["status"], "provisioning");
    let worker = Up::start(&home, ["--worker-only"]);
    assert!(worker.said["api"].is_null());
    default_ready(&home);
    assert!(refused(&home, &["--api-only"]).contains(&format!("process {} ", api.pid())));
    assert!(refused(&home, &["--worker-only"]).contains(&format!("process {} ", worker.pid())));
    worker.stop();
    // The API alone still admits; the next worker does what was admitted.
    home.json(["namespace", "create", "later"]);
    let worker = Up::start(&home, ["--worker-only"]);
    eventually("the next worker provides the Namespace", || {
        let list = namespaces(&home);
        let later = list.as_array()?.iter().find(|row| row["name"] == "later")?;
        (later["status"] == "ready").then_some(())
    });
    api.stop();
    worker.stop();
}

#[test]
fn an_api_and_a_worker_that_start_together_set_up_one_installation() {
    let home = Home::new();
    let start = |role: &str| {
        let mut command = home.command(["up", "--output", "json", "--listen", "127.0.0.1:0", role]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [start("--api-only"), start("--worker-only")];
    eventually("the key is there", || {
        home.data().join("admin.key").exists().then_some(())
    });
    eventually("the set-up is over", || {
        (!home.data().join("bootstrap.pending").exists()).then_some(())
    });
    for mut child in both {
        assert!(child.try_wait().unwrap().is_none(), "{:?}", child.wait_with_output());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut home = home;
    Up::whole(&mut home).stop();
}

#[test]
fn a_port_that_is_taken_leaves_nothing_behind() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = home.occ(["up", "--listen", &address]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.stderr.contains(&address) && ran.stderr.contains("in use"),
        "{ran:?}"
    );
    assert!(!home.data().exists(), "nothing was written");
}

#[test]
fn a_wrong_installation_file_is_refused_with_its_place_and_without_its_values() {
    let mut home = Home::new();
    Up::whole(&mut home).stop();
    let stock = fs::read_to_string(home.data().join("installation.yaml")).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(stock.contains(from), "{from}\n{stock}");
        stock.replace(from, to)
    };
    let cases = [
        (
            changed("driver: process", "driver: canary-compute"),
            "drivers.compute.driver",
            "process",
        ),
        (
            changed("      tools:", "      tool: canary\n      tools:"),
            "drivers.compute.configuration",
            "tools",
        ),
        (
            changed("      tools:", "      stopGraceSeconds: canary\n      tools:"),
            "drivers.compute.configuration.stopGraceSeconds",
            "",
        ),
        (changed("  level: info", "  level: canary"), "logging.level", "debug"),
        (changed("  iam:", "  iem:"), "drivers", "iam"),
        (changed("drivers:", "drivers: ["), "", ""),
        ("a: \"canary".to_owned(), "", ""),
        (String::new(), "", ""),
    ];
    for (index, (text, path, accepted)) in cases.into_iter().enumerate() {
        let file = home.write(&format!("case-{index}.yaml"), &text);
        let shown = file.display().to_string();
        let check = home.occ(["installation", "check", "--config", &shown]);
        assert_eq!(check.code, Some(5), "{check:?}");
        let message = refused(&home, &["--config", &shown]);
        assert_eq!(message, check.stderr, "the check says what a start says");
        let line = message
            .split(&format!("{shown}:"))
            .nth(1)
            .unwrap_or_else(|| panic!("no file: {message}"));
        assert!(line.starts_with(|c: char| c.is_ascii_digit()), "no line: {message}");
        assert!(message.contains(path), "{path}: {message}");
        assert!(message.contains(accepted), "{accepted}: {message}");
        // A driver's name is no setting's value: it is what was not found.
        let message = message.replace("\"canary-compute\"", "");
        assert!(!message.contains("canary"), "{message}");
    }
    let missing = refused(&home, &["--config", "no-such.yaml"]);
    assert!(missing.contains("no-such.yaml"), "{missing}");
    // The directory itself is as it was.
    Up::whole(&mut home).stop();
}

#[test]
fn a_wrong_installation_file_makes_no_database() {
    let home = Home::new();
    let file = home.write("wrong.yaml", "drivers: {}\n");
    refused(&home, &["--config", &file.display().to_string()]);
    assert!(!home.data().join("occ.db").exists());
    assert!(!home.data().join("admin.key").exists());
}

#[test]
fn missing_tools_and_wrong_limits_are_named() {
    let home = Home::bare();
    let message = refused(&home, &[]);
    assert!(
        message.contains("OCC_NODE") || message.contains("OCC_OPENCLAW"),
        "{message}"
    );
    let home = Home::new().with("OCC_NODE", "/nowhere/node");
    let message = refused(&home, &[]);
    assert!(message.contains("OCC_NODE"), "{message}");
    assert!(!home.data().join("occ.db").exists());
    for (variable, value) in [
        ("OCC_WORKER_CONCURRENCY", "0"),
        ("OCC_WORKER_MAX_ATTEMPTS", "many"),
        ("OCC_WORKER_LEASE_DURATION_MS", "-1"),
        ("OCC_WORKER_POLL_INTERVAL_MS", "1.5"),
        ("OCC_WORKER_CONVERGENCE_TIMEOUT_MS", "99999999999999999999"),
        ("OCC_WORKER_EFFECT_TIMEOUT_MS", "0"),
    ] {
        let home = Home::new().with(variable, value);
        let message = refused(&home, &[]);
        assert!(message.contains(variable), "{message}");
        assert!(!home.data().exists(), "nothing was written");
    }
}

#[test]
fn a_directory_or_a_key_that_others_can_read_is_refused() {
    let mut home = Home::new();
    let up = Up::whole(&mut home);
    assert_eq!(home.pipe(["secret", "create", "s"], "a value").code, Some(0));

    let key = home.data().join("admin.key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let ran = home.occ(["namespace", "list"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("chmod 600"), "{ran:?}");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    up.stop();

    // What seals the secrets.
    let keys = home.data().join("drivers/secret/secret-local/keys.json");
    let sealed = fs::read(&keys).unwrap();
    fs::set_permissions(&keys, Permissions::from_mode(0o640)).unwrap();
    let message = refused(&home, &[]);
    assert!(message.contains("keys.json"), "{message}");
    fs::set_permissions(&keys, Permissions::from_mode(0o600)).unwrap();
    fs::write(&keys, "damaged").unwrap();
    let message = refused(&home, &[]);
    assert!(message.contains("keys.json"), "{message}");
    fs::write(&keys, sealed).unwrap();

    fs::set_permissions(home.data(), Permissions::from_mode(0o750)).unwrap();
    let message = refused(&home, &[]);
    assert!(message.contains("chmod 700"), "{message}");
    fs::set_permissions(home.data(), Permissions::from_mode(0o700)).unwrap();
    Up::whole(&mut home).stop();
}

#[test]
fn a_lost_administrator_key_is_replaced_on_the_host_alone() {
    let mut home = Home::new();
    let ran = home.occ(["key", "create"]);
    assert_eq!(ran.code, Some(5), "there is nothing to make a key for: {ran:?}");
    assert!(!home.data().exists(), "nothing was written");

    let up = Up::whole(&mut home);
    let first = fs::read_to_string(home.data().join("admin.key")).unwrap();
    fs::remove_file(home.data().join("admin.key")).unwrap();
    up.stop();
    let up = Up::whole(&mut home);
    assert!(
        !home.data().join("admin.key").exists(),
        "a restart never replaces a lost key by itself"
    );
    let ran = home.occ(["namespace", "list"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");

    // While the control plane runs.
    let made = home.json(["key", "create"]);
    assert_eq!(made["keyFile"], home.data().join("admin.key").display().to_string());
    assert_eq!(mode(&home.data().join("admin.key")), 0o600);
    assert_ne!(fs::read_to_string(home.data().join("admin.key")).unwrap(), first);
    default_ready(&home);
    up.stop();
}

/// A stopped control plane's database, changed by another program.
fn change(home: &Home, statement: &'static str) {
    let path = home.data().join("occ.db");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut connection = SqliteConnection::connect(&format!("sqlite://{}", path.display()))
            .await
            .unwrap();
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let mut home = Home::new();
    Up::whole(&mut home).stop();
    change(&home, "INSERT INTO schema_version (version, applied_at) VALUES (99, 0)");
    let before = fs::read(home.data().join("occ.db")).unwrap();
    let message = refused(&home, &[]);
    assert!(
        message.contains("occ.db")
            && message.contains("99")
            && message.contains("newer")
            && message.contains("--data-dir"),
        "{message}"
    );
    assert_eq!(fs::read(home.data().join("occ.db")).unwrap(), before);
    change(&home, "DELETE FROM schema_version WHERE version = 99");
    Up::whole(&mut home).stop();
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    for garbage in [b"garbage\n".to_vec(), vec![0x5a; 20_000]] {
        let home = Home::new();
        fs::create_dir(home.data()).unwrap();
        fs::set_permissions(home.data(), Permissions::from_mode(0o700)).unwrap();
        fs::write(home.data().join("occ.db"), &garbage).unwrap();
        let message = refused(&home, &[]);
        assert!(message.contains("occ.db") && message.contains("backup"), "{message}");
        assert_eq!(fs::read(home.data().join("occ.db")).unwrap(), garbage);
        assert!(!home.data().join("admin.key").exists());
    }
}

#[test]
fn a_database_that_another_program_keeps_locked_is_named() {
    let mut home = Home::new();
    Up::whole(&mut home).stop();
    let path = home.data().join("occ.db");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let holder = runtime.block_on(async {
        let mut connection = SqliteConnection::connect(&format!("sqlite://{}", path.display()))
            .await
            .unwrap();
        let hold = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE";
        sqlx::raw_sql(hold).execute(&mut connection).await.unwrap();
        connection
    });
    let message = refused(&home, &[]);
    assert!(message.contains("occ.db") && message.contains("locked"), "{message}");
    runtime.block_on(holder.close()).unwrap();
    Up::whole(&mut home).stop();
}

/// `occ up` in a mount namespace of its own, where the data directory is a small file system with these options.
fn on_mount(home: &Home, options: &str, prepare: &str) -> Ran {
    fs::create_dir_all(home.data()).unwrap();
    let script = format!(
        "mount -t tmpfs -o mode=700,{options} none '{data}' && {prepare} exec '{occ}' up --listen 127.0.0.1:0",
        data = home.data().display(),
        occ = binary("occ").display(),
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.env_clear().envs(
        home.command([""; 0])
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = command.stdin(Stdio::null()).output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Containers often forbid it; then the two tests below say so and prove nothing.
fn can_mount() -> bool {
    let script = "mount -t tmpfs none /mnt";
    let tried = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .output();
    let can = tried.is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("skipped: this machine permits no mount in a namespace of its own");
    }
    can
}

#[test]
fn a_full_disk_is_named() {
    if !can_mount() {
        return;
    }
    // Full at once, full when the database is made, and full when it is filled.
    for size in ["size=8k", "size=16k", "size=64k", "size=256k", "size=400k"] {
        let home = Home::new();
        let ran = on_mount(&home, size, "");
        assert_eq!(ran.code, Some(5), "{size}: {ran:?}");
        assert!(ran.stderr.contains("no space left"), "{size}: {ran:?}");
        assert_eq!(ran.stdout, "", "{size}: {ran:?}");
    }
}

#[test]
fn a_read_only_disk_is_named() {
    if !can_mount() {
        return;
    }
    let home = Home::new();
    let remount = format!("mount -o remount,ro none '{}' &&", home.data().display());
    let ran = on_mount(&home, "size=1m", &remount);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("read-only"), "{ran:?}");
}
