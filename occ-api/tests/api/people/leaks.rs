//! What proves who somebody is stays out of rows, logs, errors and debug prints.

use std::sync::Arc;

use occ_core::{
    control::{CodeAttempt, CreateAccount, Origin, PageQuery, PasswordAttempt, PasswordChange},
    id::RequestId,
    secret_value::SecretValue,
    store::sqlite::SqliteStore,
};
use occ_test_support::drivers::World;
use reqwest::Method;
use serde_json::json;

use super::browser::{Browser, PASSWORD, account, ask, sign_in, try_password};
use crate::{log, served::Served};

#[tokio::test]
async fn no_credential_of_a_person_is_written_anywhere() {
    let (log, first) = log::captured();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("occ.db");
    let store = Arc::new(SqliteStore::open(&path).await.expect("it opens"));
    let served = Served::over(World::builder().store(Arc::clone(&store) as _).build().await).await;

    let person = account(&served, "grace@example.com").await;
    let browser = sign_in(&served, "grace@example.com").await;
    let wrong = "canary-wrong-password";
    try_password(&served, "grace@example.com", wrong).await;
    try_password(&served, "canary-typed@example.com", wrong).await;
    let code = served.send(Method::POST, &format!("/accounts/{person}/code")).await;
    let code = code.data()["value"].as_str().expect("a code").to_owned();
    let new = "canary-new-password";
    let body = json!({ "currentPassword": PASSWORD, "newPassword": new });
    let second = Browser::of(&browser.post(&served, "/api/auth/password", &body).await);
    ask(browser.request(&served, Method::POST, "/api/auth/sign-out")).await;
    // Errors about what a body holds.
    let odd = json!({ "email": "x@example.com", "password": "canary-odd", "canary-field": "canary-value" });
    let errors = served.json(Method::POST, "/api/auth/sign-in/email", &odd).await;
    assert_eq!(errors.status.as_u16(), 400);

    let secret = |cookie: &str| cookie.rsplit_once('_').expect("two halves").1.to_owned();
    let secrets = [
        PASSWORD.to_owned(),
        wrong.to_owned(),
        new.to_owned(),
        "canary-typed".to_owned(),
        "canary-odd".to_owned(),
        "canary-value".to_owned(),
        secret(&browser.cookie),
        secret(&second.cookie),
        browser.csrf.clone(),
        second.csrf.clone(),
        secret(&code),
    ];
    let mut rows = std::fs::read(&path).expect("the database");
    rows.extend(std::fs::read(path.with_extension("db-wal")).unwrap_or_default());
    let log = log.bytes();
    assert!(
        !first || log.windows(12).any(|part| part == b"http.request"),
        "the log is looked at"
    );
    for secret in &secrets {
        for (place, bytes) in [("a row", &rows), ("the log", &log)] {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{place} holds {secret}");
        }
        assert!(!errors.body.to_string().contains(secret.as_str()));
    }
}

#[tokio::test]
async fn a_debug_print_shows_none() {
    let world = World::new().await;
    let value = |text: &str| SecretValue::from(text.to_owned());
    let email = || "grace@example.com".parse().expect("an address");
    let input = CreateAccount {
        email: email(),
        name: "Grace".parse().expect("a name"),
        principal_id: None,
        password: Some(value(PASSWORD)),
    };
    let mut printed = vec![format!("{input:?}")];
    let created = world
        .plane
        .create_account(&world.admin, input)
        .await
        .expect("an account");
    let code = world
        .plane
        .create_account_code(&world.admin, &created.account.principal_id)
        .await
        .expect("a code");
    let attempt = PasswordAttempt {
        email: email(),
        password: value(PASSWORD),
    };
    printed.push(format!("{attempt:?} {created:?} {code:?}"));
    let from = Origin {
        address: None,
        request: RequestId::random(),
    };
    let signed_in = world.plane.sign_in(attempt, from).await.expect("a session");
    let with_code = CodeAttempt {
        email: email(),
        code: code.value.clone(),
        new_password: value(PASSWORD),
    };
    let change = PasswordChange {
        current: value(PASSWORD),
        new: value(PASSWORD),
    };
    let listed = world.plane.accounts_of_people(&world.admin, &PageQuery::ALL).await;
    printed.push(format!("{signed_in:?} {with_code:?} {change:?} {listed:?}"));
    let printed = printed.concat();
    let token = signed_in.token.expose().expose_str().expect("text").to_owned();
    let csrf = signed_in.token.csrf();
    for secret in [
        PASSWORD,
        code.value.expose_str().expect("text"),
        token.rsplit_once('_').expect("two halves").1,
        csrf.expose_str().expect("text"),
        "argon2id",
    ] {
        assert!(!printed.contains(secret), "{secret}: {printed}");
    }
}
