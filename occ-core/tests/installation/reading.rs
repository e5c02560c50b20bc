//! What a good file says, and files that cannot be read at all.

use std::{fs, path::Path};

use occ_core::{
    control::FirstSignIn,
    driver::DriverKind,
    installation::{FILE_MAX_BYTES, InstallationError, InstallationFile, LogLevel, SecretPlace, Unreadable},
};
use proptest::prelude::*;
use serde_json::json;

use crate::fixtures::file_with;

fn unreadable(path: &Path) -> Unreadable {
    match InstallationFile::read(path) {
        Err(InstallationError::Unreadable { file, problem }) => {
            assert_eq!(file, path.display().to_string());
            problem
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_says_which_driver_is_selected_for_each_kind_and_how() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("occ.yaml");
    fs::write(&path, file_with(&[])).unwrap();

    let file = InstallationFile::read(&path).unwrap();
    assert_eq!(file.origin(), path.display().to_string());
    assert_eq!(file.cluster(), Some("east"));
    assert_eq!(file.log_level(), LogLevel::Warn);
    let selected: Vec<_> = file
        .selections()
        .iter()
        .map(|s| (s.kind(), s.id(), s.driver()))
        .collect();
    assert_eq!(
        selected,
        [
            (DriverKind::Configuration, "cfg-main", "stub"),
            (DriverKind::Iam, "iam-main", "stub"),
            (DriverKind::Secret, "sec-main", "stub"),
            (DriverKind::Compute, "local", "stub"),
            (DriverKind::Harness, "openclaw", "stub"),
            (DriverKind::Harness, "codex", "stub"),
        ]
    );
    let settings = json!({ "tools": { "node": "/opt/node/bin/node" }, "pools": [{ "port": 8000 }, { "port": 8001 }] });
    assert_eq!(file.selections()[3].settings(), settings);
    assert_eq!(file.selections()[0].settings(), json!({}));
}

#[test]
fn occ_and_logging_may_be_left_out() {
    let text = file_with(&[("occ:\n  cluster: east\nlogging:\n  level: warn\n", "")]);
    let file = InstallationFile::parse(&text, "occ.yaml").unwrap();
    assert_eq!((file.cluster(), file.log_level()), (None, LogLevel::Info));
}

#[test]
fn the_configured_backends_are_read() {
    let text = format!("{}backend:\n  - {{ id: workspace ✓, type: chatgpt }}\n", file_with(&[]));
    let file = InstallationFile::parse(&text, "occ.yaml").unwrap();
    let ids: Vec<_> = file.backends().iter().map(|backend| backend.id.as_str()).collect();
    assert_eq!(ids, ["workspace ✓"]);
    assert!(
        InstallationFile::parse(&file_with(&[]), "occ.yaml")
            .unwrap()
            .backends()
            .is_empty()
    );
}

#[test]
fn the_identity_provider_is_read_with_where_its_secret_lies() {
    let read = |keys: &str| {
        let text = format!(
            "{}authentication:\n  oidc: {{ issuer: https://a.example, clientId: occ, publicUrl: https://occ.example{keys} }}\n",
            file_with(&[])
        );
        let file = InstallationFile::parse(&text, "occ.yaml").unwrap();
        file.oidc().unwrap().clone()
    };
    let plain = read("");
    assert_eq!(
        (
            plain.issuer.as_str(),
            plain.client_id.as_str(),
            plain.public_url.as_str()
        ),
        ("https://a.example", "occ", "https://occ.example")
    );
    assert_eq!((plain.client_secret, plain.first_sign_in), (None, FirstSignIn::Refuse));
    assert_eq!(plain.landing, None);
    assert_eq!(read(", afterSignIn: /console").landing.as_deref(), Some("/console"));
    let secret = |keys: &str| read(keys).client_secret.unwrap();
    assert_eq!(
        secret(", clientSecretFile: /run/secrets/occ"),
        SecretPlace::File("/run/secrets/occ".into())
    );
    assert_eq!(
        secret(", clientSecretEnvironment: OCC_OIDC"),
        SecretPlace::Environment("OCC_OIDC".to_owned())
    );
    for (word, first) in [
        ("refuse", FirstSignIn::Refuse),
        ("link-verified-email", FirstSignIn::LinkVerifiedEmail),
        ("create", FirstSignIn::Create),
    ] {
        assert_eq!(read(&format!(", firstSignIn: {word}")).first_sign_in, first);
    }
    for text in [file_with(&[]), format!("{}authentication: {{}}\n", file_with(&[]))] {
        assert_eq!(InstallationFile::parse(&text, "occ.yaml").unwrap().oidc(), None);
    }
}

#[test]
fn every_log_level_has_its_word() {
    for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error] {
        let text = file_with(&[("level: warn", &format!("level: {level}"))]);
        assert_eq!(InstallationFile::parse(&text, "occ.yaml").unwrap().log_level(), level);
    }
}

#[test]
fn settings_are_read_by_the_rules_of_yaml_1_2() {
    let settings = "tools: { a: no, b: 0755, c: 1_000, d: '1', e: 2026-01-01, f: ~, g: 1.5, h: true, i: 0x1F }";
    let text = file_with(&[(
        "configuration: {}\n  secret",
        &format!("configuration: {{ {settings} }}\n  secret"),
    )]);
    let file = InstallationFile::parse(&text, "occ.yaml").unwrap();
    let read = json!({
        "a": "no", "b": "0755", "c": "1_000", "d": "1", "e": "2026-01-01", "f": null, "g": 1.5, "h": true, "i": 31,
    });
    assert_eq!(file.selections()[1].settings()["tools"], read);
}

#[test]
fn nothing_is_taken_from_the_environment() {
    let text = file_with(&[("/opt/node/bin/node", "${HOME}/$PATH")]);
    let file = InstallationFile::parse(&text, "occ.yaml").unwrap();
    assert_eq!(file.selections()[3].settings()["tools"]["node"], "${HOME}/$PATH");
}

#[test]
fn the_largest_safe_integers_are_accepted() {
    let text = file_with(&[(
        "configuration: {}\n  secret",
        "configuration: { a: 9007199254740991, b: -9007199254740991 }\n  secret",
    )]);
    let file = InstallationFile::parse(&text, "occ.yaml").unwrap();
    assert_eq!(
        file.selections()[1].settings(),
        json!({ "a": 9_007_199_254_740_991_u64, "b": -9_007_199_254_740_991_i64 })
    );
}

#[test]
fn names_of_where_a_credential_lies_are_accepted() {
    let text = file_with(&[(
        "configuration: {}\n  secret",
        "configuration: { bearerTokenFile: /run/t, apiKeyPath: /run/k, credentialTtlSeconds: 5, maxTokens: 9, \
         servicePrincipalCredentials: disabled, passwordRequired: true, url: 'https://user@host:80/' }\n  secret",
    )]);
    assert!(InstallationFile::parse(&text, "occ.yaml").is_ok());
}

#[test]
fn debug_output_shows_no_settings() {
    let text = file_with(&[("/opt/node/bin/node", "/opt/canary")]);
    let file = InstallationFile::parse(&text, "occ.yaml").unwrap();
    assert!(!format!("{file:?}").contains("canary"));
}

#[test]
fn a_missing_file_is_said_to_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(unreadable(&dir.path().join("occ.yaml")), Unreadable::Missing);
}

#[test]
fn a_directory_is_said_to_be_one() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(unreadable(dir.path()), Unreadable::Directory);
}

#[test]
fn a_path_through_a_file_is_refused_by_the_operating_system() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plain");
    fs::write(&path, "").unwrap();
    assert!(matches!(unreadable(&path.join("occ.yaml")), Unreadable::Io(_)));
}

#[test]
fn a_file_of_one_mebibyte_is_read_and_a_byte_more_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("occ.yaml");
    let mut text = file_with(&[]);
    text.push_str("# ");
    text.push_str(&"x".repeat(usize::try_from(FILE_MAX_BYTES).unwrap() - text.len()));
    fs::write(&path, &text).unwrap();
    assert!(InstallationFile::read(&path).is_ok());

    text.push('x');
    fs::write(&path, &text).unwrap();
    assert_eq!(unreadable(&path), Unreadable::TooLarge);
    let parsed = InstallationFile::parse(&text, "occ.yaml");
    assert!(matches!(
        parsed,
        Err(InstallationError::Unreadable {
            problem: Unreadable::TooLarge,
            ..
        })
    ));
}

#[cfg(target_os = "linux")]
#[test]
fn an_endless_file_is_not_read_to_its_end() {
    assert_eq!(unreadable(Path::new("/dev/zero")), Unreadable::TooLarge);
}

#[test]
fn a_file_that_is_not_utf_8_is_refused_with_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("occ.yaml");
    let mut bytes = file_with(&[]).into_bytes();
    bytes.splice(5..5, *b"  # caf\xe9\n");
    fs::write(&path, &bytes).unwrap();
    assert_eq!(unreadable(&path), Unreadable::NotUtf8 { line: 2 });
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z0-9:{}\\[\\],&*!|>'\"%@`#?\\- \n\t~<]{0,200}") {
        let _ = InstallationFile::parse(&text, "occ.yaml");
    }

    #[test]
    fn no_damage_to_a_file_makes_the_reader_panic(at in 0_usize..450, with in "\\PC{0,4}", drop in 0_usize..8) {
        let text = file_with(&[]);
        let at = at.min(text.len());
        let end = (at + drop).min(text.len());
        let _ = InstallationFile::parse(&format!("{}{with}{}", &text[..at], &text[end..]), "occ.yaml");
    }
}
