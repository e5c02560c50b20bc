//! The key file: how it is made, shared and refused.

mod rig;

use std::{fs, sync::Barrier, thread};

use occ_core::{
    driver::{FaultKind, SecretDriver as _},
    registry::BuildError,
};
use occ_secret_local::{KeyFileError, SecretLocal, Settings};
use rig::{Rig, chmod, fault, mode, secret};
use serde_json::Value;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(future)
}

fn refusal(built: Result<SecretLocal, BuildError>) -> String {
    match built {
        Err(BuildError::Unavailable(message)) => message,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn keys(rig: &Rig) -> usize {
    let file: Value = serde_json::from_slice(&fs::read(rig.key_file()).expect("read")).expect("JSON");
    file["keys"].as_array().expect("keys").len()
}

#[tokio::test]
async fn building_makes_nothing_and_preflight_makes_a_private_file() {
    let rig = Rig::new();
    let driver = rig.driver();
    assert_eq!(fs::read_dir(rig.data.path()).expect("read").count(), 0);
    driver.preflight(&rig.context()).await.expect("made");
    assert_eq!(mode(&rig.key_file()), 0o600);
    let directory = rig.key_file().parent().expect("a parent").to_owned();
    assert_eq!(mode(&directory), 0o700);
    let mut names: Vec<_> = fs::read_dir(&directory)
        .expect("read")
        .map(|entry| entry.expect("read").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["keys.json", "keys.json.made"], "no draft was left behind");
    let content = fs::read(rig.key_file()).expect("read");
    rig.driver().preflight(&rig.context()).await.expect("it is there");
    assert_eq!(fs::read(rig.key_file()).expect("read"), content);
}

#[tokio::test]
async fn a_file_that_is_gone_is_not_made_anew_by_a_process_that_never_saw_it() {
    let rig = Rig::new();
    rig.driver().preflight(&rig.context()).await.expect("made");
    fs::remove_file(rig.key_file()).expect("removed");
    let refused = rig.build("secret-local", Settings::default()).expect_err("it is gone");
    assert!(refused.to_string().contains("is gone"), "{refused}");
    assert!(!rig.key_file().exists());
}

#[tokio::test]
async fn the_settings_choose_another_place() {
    let rig = Rig::new();
    let elsewhere = rig.data.path().join("elsewhere/k.json");
    let settings = Settings {
        key_file: Some(elsewhere.clone()),
    };
    rig.build("secret-local", settings)
        .expect("it builds")
        .preflight(&rig.context())
        .await
        .expect("made");
    assert!(elsewhere.exists() && !rig.key_file().exists());
}

#[test]
fn an_id_that_is_no_folder_name_needs_a_key_file_setting() {
    let rig = Rig::new();
    for id in ["..", "a/b", ".hidden", "ü", "a b"] {
        assert!(
            matches!(rig.build(id, Settings::default()), Err(BuildError::Setting { .. })),
            "{id}"
        );
        let settings = Settings {
            key_file: Some(rig.key_file()),
        };
        assert!(rig.build(id, settings).is_ok(), "{id}");
    }
}

#[test]
fn drivers_that_start_together_agree_on_one_key() {
    let rig = Rig::new();
    let racers = 16;
    let barrier = Barrier::new(racers);
    let start = || {
        let (driver, secret) = (rig.driver(), secret(rig.secret.namespace_id));
        barrier.wait();
        let at = block_on(rig.create_for(&driver, &secret, "one")).expect("created");
        (secret, at)
    };
    let created: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = (0..racers).map(|_| scope.spawn(start)).collect();
        started
            .into_iter()
            .map(|racer| racer.join().expect("no panic"))
            .collect()
    });
    assert_eq!(keys(&rig), 1);
    assert_eq!(
        fs::read_dir(rig.key_file().parent().expect("a parent"))
            .expect("read")
            .count(),
        2,
        "the file and its mark"
    );
    let driver = rig.driver();
    for (secret, at) in created {
        block_on(driver.value(&rig.context(), &secret, &at)).expect("what each sealed opens");
    }
}

#[test]
fn rotations_at_the_same_time_lose_no_key() {
    let rig = Rig::new();
    let at = block_on(rig.create(&rig.driver(), "one")).expect("created");
    let racers = 8;
    let barrier = Barrier::new(racers);
    thread::scope(|scope| {
        for _ in 0..racers {
            scope.spawn(|| {
                barrier.wait();
                rig.driver().rotate().expect("rotated");
            });
        }
    });
    assert_eq!(keys(&rig), 1 + racers);
    assert_eq!(mode(&rig.key_file()), 0o600);
    assert_eq!(block_on(rig.value(&rig.driver(), &at)).as_deref(), Ok("one"));
}

#[tokio::test]
async fn a_file_that_others_can_read_is_refused_at_build_and_at_use() {
    let rig = Rig::new();
    let driver = rig.driver();
    let at = rig.create(&driver, "one").await.expect("created");
    for exposed in [0o640, 0o604, 0o660, 0o777, 0o610] {
        chmod(&rig.key_file(), exposed);
        let message = refusal(rig.build("secret-local", Settings::default()));
        assert!(message.contains(&rig.key_file().display().to_string()), "{message}");
        assert!(
            message.contains("chmod 600") && message.contains(&format!("{exposed:04o}")),
            "{message}"
        );
        assert_eq!(fault(rig.value(&driver, &at).await), FaultKind::Denied);
        assert_eq!(fault(rig.update(&driver, &at, "two").await), FaultKind::Denied);
        assert!(matches!(driver.rotate(), Err(KeyFileError::Exposed { .. })));
    }
    chmod(&rig.key_file(), 0o400);
    assert_eq!(rig.value(&driver, &at).await.as_deref(), Ok("one"));
}

#[tokio::test]
async fn a_directory_in_which_others_can_replace_the_file_is_refused() {
    let rig = Rig::new();
    rig.driver().preflight(&rig.context()).await.expect("made");
    let directory = rig.key_file().parent().expect("a parent").to_owned();
    chmod(&directory, 0o777);
    let message = refusal(rig.build("secret-local", Settings::default()));
    assert!(
        message.contains("directory") && message.contains("chmod 700"),
        "{message}"
    );
    for harmless in [0o755, 0o1777, 0o700] {
        chmod(&directory, harmless);
        assert!(rig.build("secret-local", Settings::default()).is_ok(), "{harmless:o}");
    }
}

#[tokio::test]
async fn a_file_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    let rig = Rig::new();
    rig.driver().preflight(&rig.context()).await.expect("made");
    std::os::unix::fs::chown(rig.key_file(), Some(4711), None).expect("chown");
    let message = refusal(rig.build("secret-local", Settings::default()));
    assert!(message.contains("another user (uid 4711)"), "{message}");
}

#[tokio::test]
async fn a_damaged_file_is_named_and_not_quoted_nor_replaced() {
    let rig = Rig::new();
    let driver = rig.driver();
    driver.preflight(&rig.context()).await.expect("made");
    let good = fs::read_to_string(rig.key_file()).expect("read");
    let key = good
        .split("\"key\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a key")
        .to_owned();
    let id = good
        .split("\"id\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("an id")
        .to_owned();
    let entry = good[good.find('[').expect("[") + 1..good.find(']').expect("]")].to_owned();
    for damaged in [
        String::new(),
        good[..good.len() / 2].to_owned(),
        format!("{{\"version\":1,\"keys\":[\"{key}\"]}}"),
        good.replace(&key, &key[4..]),
        good.replace(&key, &format!("{key}AAAA")),
        good.replace(&key, "!"),
        good.replace("\"version\":1", "\"version\":2"),
        good.replace(&entry, ""),
        good.replace(&entry, &format!("{entry},{entry}")),
        good.replace("\"keys\"", "\"kyes\""),
        good.replace('\n', &" ".repeat(70_000)),
    ] {
        fs::write(rig.key_file(), &damaged).expect("written");
        let message = refusal(rig.build("secret-local", Settings::default()));
        assert!(
            message.contains("is damaged") && message.contains("restore it from a backup"),
            "{message}"
        );
        assert!(message.contains(&rig.key_file().display().to_string()), "{message}");
        assert!(!message.contains(&key[4..]) && !message.contains(&id), "{message}");
        assert_eq!(fault(driver.preflight(&rig.context()).await), FaultKind::Corrupt);
        assert_eq!(fs::read_to_string(rig.key_file()).expect("read"), damaged);
    }
}

#[test]
fn what_is_no_file_is_refused_without_waiting_for_it() {
    let rig = Rig::new();
    let parent = rig.key_file().parent().expect("a parent").to_owned();
    fs::create_dir_all(&parent).expect("a directory");
    chmod(&parent, 0o700);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        rig.key_file(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("a pipe");
    let message = refusal(rig.build("secret-local", Settings::default()));
    assert!(message.contains("not a regular file"), "{message}");

    let file = rig.data.path().join("file");
    fs::write(&file, "").expect("written");
    for path in [rig.data.path().to_owned(), file.join("keys.json")] {
        let message = refusal(rig.build(
            "secret-local",
            Settings {
                key_file: Some(path.clone()),
            },
        ));
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_a_fault_of_the_operating_system() {
    let rig = Rig::new();
    // Nobody can make a directory there, not even root.
    let settings = Settings {
        key_file: Some("/proc/occ-keys/keys.json".into()),
    };
    match rig.build("secret-local", settings) {
        Ok(driver) => assert!(matches!(
            fault(driver.preflight(&rig.context()).await),
            FaultKind::Io(_)
        )),
        Err(error) => assert!(error.to_string().contains("cannot be written"), "{error}"),
    }
}
