//! Accounts, as administrators keep them.

use occ_core::{
    audit::AuditOutcome,
    control::CreateServiceKey,
    driver::{Action, ResourceKind},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::browser::{PASSWORD, account, administrator, ask, sign_in};
use crate::served::Served;

fn new(email: &str, more: &Value) -> Value {
    let mut body = json!({ "email": email, "name": "Grace", "password": PASSWORD });
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    body
}

#[tokio::test]
async fn an_account_is_made_for_a_person_once() {
    let served = Served::new().await;
    let agent = served.world.deployable("a").await;
    let (admin, spare) = (&served.world.admin.principal, json!({}));
    served.world.store.take_audit();
    for (body, status, at) in [
        (new("ada@example.com", &json!({ "principalId": admin })), 201, ""),
        (new("ada2@example.com", &json!({ "principalId": admin })), 409, ""),
        (new("ADA@example.com", &spare), 409, ""),
        (
            new("x@example.com", &json!({ "principalId": agent.service_principal_id })),
            400,
            "/principalId",
        ),
        (new("x@example.com", &json!({ "principalId": "prn_nobody" })), 404, ""),
        (
            new("x@example.com", &json!({ "password": "too short" })),
            400,
            "/password",
        ),
        (
            new("x@example.com", &json!({ "password": "x".repeat(257) })),
            400,
            "/password",
        ),
        (new("no address", &spare), 400, "/email"),
        (new("x@example.com", &json!({ "admin": true })), 400, "/admin"),
        (new("x@example.com", &json!({ "name": "" })), 400, "/name"),
    ] {
        let seen = served.json(Method::POST, "/accounts", &body).await;
        assert_eq!(
            (seen.status.as_u16(), seen.detail().0),
            (status, at),
            "{body}: {}",
            seen.body
        );
    }
    let audit = served.world.store.take_audit();
    assert_eq!(audit.len(), 1, "only what was done: {audit:?}");
    assert_eq!(audit[0].action, "openclaw.accounts.create");
    assert_eq!(audit[0].details["accountId"], admin.as_str());

    account(&served, "grace@example.com").await;
    let listed = served.send(Method::GET, "/accounts").await;
    let accounts = listed.data().as_array().expect("a list");
    let emails: Vec<_> = accounts.iter().map(|account| &account["email"]).collect();
    assert_eq!(emails, ["ada@example.com", "grace@example.com"]);
    assert_eq!(accounts[0]["name"], "Ada", "what the principal is called already");
    assert_eq!(
        (&accounts[1]["hasPassword"], &accounts[1]["disabled"]),
        (&json!(true), &json!(false))
    );
    assert!(accounts.iter().all(|account| account.get("passwordHash").is_none()));

    let first = served.send(Method::GET, "/accounts?limit=1").await;
    let next = first.body["meta"]["nextCursor"].as_str().expect("more");
    let second = served
        .send(Method::GET, &format!("/accounts?limit=1&cursor={next}"))
        .await;
    assert_eq!(second.data()[0], accounts[1]);
    assert_eq!(second.body["meta"].get("nextCursor"), None);
}

/// Every operation on accounts, with a body that is good.
fn operations(person: &str) -> [(Method, String, Option<Value>); 7] {
    [
        (Method::GET, "/accounts".to_owned(), None),
        (
            Method::POST,
            "/accounts".to_owned(),
            Some(new("new@example.com", &json!({}))),
        ),
        (
            Method::PATCH,
            format!("/accounts/{person}"),
            Some(json!({ "disabled": true })),
        ),
        (Method::POST, format!("/accounts/{person}/code"), None),
        (Method::DELETE, format!("/accounts/{person}/sessions"), None),
        (Method::DELETE, format!("/accounts/{person}/identities"), None),
        (
            Method::POST,
            format!("/accounts/{person}/identities"),
            Some(json!({ "issuer": "i", "subject": "s" })),
        ),
    ]
}

#[tokio::test]
async fn accounts_are_for_administrators_whether_they_exist_or_not() {
    let served = Served::new().await;
    administrator(&served).await;
    let person = account(&served, "grace@example.com").await;
    let stranger = crate::served::key_of(&served.world, &person.parse().expect("an id")).await;
    let scoped = CreateServiceKey {
        principal_id: served.world.admin.principal.clone(),
        name: "scoped".parse().expect("a name"),
        namespace_id: Some(served.world.namespace),
        expires_in: None,
    };
    let scoped = served
        .world
        .plane
        .create_service_key(&served.world.admin, scoped)
        .await
        .expect("a key");
    let scoped = scoped.value.expose_str().expect("text").to_owned();
    for key in [stranger, scoped] {
        for whose in [person.as_str(), "prn_nobody"] {
            for (method, path, body) in operations(whose) {
                served.world.store.take_audit();
                let url = format!("http://{}{path}", served.address);
                let request = served.http.request(method.clone(), url).header("x-api-key", &key);
                let request = body.iter().fold(request, RequestBuilder::json);
                let seen = ask(request).await;
                assert_eq!(
                    (seen.status.as_u16(), seen.code()),
                    (403, "FORBIDDEN"),
                    "{method} {path}"
                );
                let audit = served.world.store.take_audit();
                assert!(
                    audit.len() == 1 && audit[0].outcome == AuditOutcome::Denied,
                    "{method} {path}"
                );
            }
        }
    }
    // Nothing of it was done: the person still signs in.
    sign_in(&served, "grace@example.com").await;
    for (method, path, body) in operations("prn_nobody").into_iter().skip(2) {
        let request = served.request(method.clone(), &path);
        let seen = ask(body.iter().fold(request, RequestBuilder::json)).await;
        assert_eq!(seen.status.as_u16(), 404, "{method} {path}");
    }
    served.world.iam.deny(
        &served.world.admin.principal,
        Action::Administer,
        ResourceKind::Installation,
    );
    assert_eq!(served.send(Method::GET, "/accounts").await.status.as_u16(), 403);
}

#[tokio::test]
async fn nobody_disables_the_own_account() {
    let served = Served::new().await;
    administrator(&served).await;
    let path = format!("/accounts/{}", served.world.admin.principal);
    let own = served.json(Method::PATCH, &path, &json!({ "disabled": true })).await;
    assert_eq!((own.status.as_u16(), own.code()), (409, "RESOURCE_CONFLICT"));
    assert_eq!(
        served
            .json(Method::PATCH, &path, &json!({ "disabled": false }))
            .await
            .status
            .as_u16(),
        200
    );
}
