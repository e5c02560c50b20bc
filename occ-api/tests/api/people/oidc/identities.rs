//! Whose account an identity is.

use futures_util::future::join_all;
use occ_core::control::FirstSignIn;
use occ_test_support::oidc_provider::Person;
use reqwest::Method;
use serde_json::json;

use super::{
    super::browser::{Browser, account},
    NOT_LINKED, accounts, begin, come_back, grace, link, scene, sign_in, whose,
};

#[tokio::test]
async fn an_identity_that_is_linked_signs_in_as_its_account() {
    let (served, provider) = scene(FirstSignIn::Refuse).await;
    let person = account(&served, "grace@example.com").await;
    served.world.store.take_audit();
    assert_eq!(sign_in(&served).await, Err((403, NOT_LINKED.to_owned())));
    let refused = served.world.store.take_audit();
    assert_eq!(
        (refused.len(), refused[0].reason_code.as_deref()),
        (1, Some("IDENTITY_NOT_LINKED"))
    );

    assert_eq!(
        link(&served, &person, &provider.issuer(), "grace|1")
            .await
            .status
            .as_u16(),
        204
    );
    let cookie = sign_in(&served).await.expect("a session");
    assert_eq!(whose(&served, cookie).await, person);
    // Exactly this subject of exactly this issuer.
    for subject in ["grace|2", "GRACE|1", "grace|1 "] {
        provider.set_person(Person {
            subject: subject.to_owned(),
            ..grace()
        });
        assert_eq!(sign_in(&served).await, Err((403, NOT_LINKED.to_owned())), "{subject}");
    }
    for (whom, issuer, subject, status) in [
        (person.as_str(), provider.issuer(), "grace|2", 409),
        (person.as_str(), "https://other.example".to_owned(), "grace|1", 204),
        ("prn_nobody", provider.issuer(), "grace|3", 404),
        (person.as_str(), String::new(), "x", 400),
        (person.as_str(), "https://third.example".to_owned(), "", 400),
    ] {
        assert_eq!(
            link(&served, whom, &issuer, subject).await.status.as_u16(),
            status,
            "{issuer} {subject}"
        );
    }
    let other = account(&served, "eve@example.com").await;
    assert_eq!(
        link(&served, &other, &provider.issuer(), "grace|1")
            .await
            .status
            .as_u16(),
        409,
        "it is Grace's"
    );
    // A disabled account is disabled for everybody.
    provider.set_person(grace());
    served
        .json(
            Method::PATCH,
            &format!("/accounts/{person}"),
            &json!({ "disabled": true }),
        )
        .await;
    assert_eq!(
        sign_in(&served).await,
        Err((403, "The account is disabled.".to_owned()))
    );
}

#[tokio::test]
async fn the_first_sign_in_is_as_it_was_configured() {
    let unverified = Person {
        email_verified: false,
        ..grace()
    };
    let (served, provider) = scene(FirstSignIn::LinkVerifiedEmail).await;
    assert_eq!(
        sign_in(&served).await,
        Err((403, NOT_LINKED.to_owned())),
        "no account has the address"
    );
    let person = account(&served, "grace@example.com").await;
    provider.set_person(unverified.clone());
    assert_eq!(sign_in(&served).await, Err((403, NOT_LINKED.to_owned())));
    provider.set_person(grace());
    let cookie = sign_in(&served).await.expect("a session");
    assert_eq!(whose(&served, cookie).await, person);
    // Once linked, the address counts no more.
    provider.set_person(Person {
        email: "other@example.com".to_owned(),
        ..unverified.clone()
    });
    let cookie = sign_in(&served).await.expect("a session");
    assert_eq!(whose(&served, cookie).await, person);
    // Another subject with the same address is somebody else.
    provider.set_person(Person {
        subject: "eve".to_owned(),
        ..grace()
    });
    assert_eq!(sign_in(&served).await.expect_err("a refusal").0, 409);

    let (served, provider) = scene(FirstSignIn::Create).await;
    provider.set_person(unverified);
    assert_eq!(sign_in(&served).await, Err((403, NOT_LINKED.to_owned())));
    provider.set_person(grace());
    let first = sign_in(&served).await.expect("a session");
    let second = sign_in(&served).await.expect("a session");
    assert_eq!(whose(&served, first.clone()).await, whose(&served, second).await);
    let browser = Browser {
        cookie: first,
        csrf: String::new(),
    };
    assert_eq!(
        browser.get(&served, "/installation").await.status.as_u16(),
        403,
        "nothing is granted"
    );
    let listed = served.send(Method::GET, "/accounts").await;
    let made = &listed.data()[0];
    assert_eq!(
        (&made["email"], &made["name"], &made["hasPassword"]),
        (&json!("grace@example.com"), &json!("Grace"), &json!(false))
    );
}

#[tokio::test]
async fn an_identity_that_was_taken_away_opens_nothing_more() {
    let (served, provider) = scene(FirstSignIn::Refuse).await;
    let person = account(&served, "grace@example.com").await;
    link(&served, &person, &provider.issuer(), "grace|1").await;
    let browser = Browser {
        cookie: sign_in(&served).await.expect("a session"),
        csrf: String::new(),
    };
    let path = format!("/accounts/{person}/identities");
    assert_eq!(served.send(Method::DELETE, &path).await.status.as_u16(), 204);
    assert!(!browser.is_signed_in(&served).await);
    assert_eq!(sign_in(&served).await, Err((403, NOT_LINKED.to_owned())));
    let other = account(&served, "eve@example.com").await;
    assert_eq!(
        link(&served, &other, &provider.issuer(), "grace|1")
            .await
            .status
            .as_u16(),
        204
    );
    let cookie = sign_in(&served).await.expect("a session");
    assert_eq!(whose(&served, cookie).await, other);
}

#[tokio::test]
async fn every_link_of_an_identity_is_in_the_audit() {
    let (served, provider) = scene(FirstSignIn::Create).await;
    served.world.store.take_audit();
    sign_in(&served).await.expect("a session");
    let audit = served.world.store.take_audit();
    let actions: Vec<_> = audit.iter().map(|event| event.action.as_str()).collect();
    assert_eq!(
        actions,
        [
            "openclaw.accounts.create",
            "openclaw.accounts.identities.create",
            "openclaw.sessions.create"
        ]
    );
    assert_eq!(audit[1].details["issuer"], provider.issuer());
    assert_eq!(audit[2].details["method"], "oidc");

    let (served, _provider) = scene(FirstSignIn::LinkVerifiedEmail).await;
    let person = account(&served, "grace@example.com").await;
    served.world.store.take_audit();
    sign_in(&served).await.expect("a session");
    let audit = served.world.store.take_audit();
    assert_eq!(
        (audit.len(), audit[0].details["accountId"].as_str()),
        (2, Some(person.as_str()))
    );
}

#[tokio::test]
async fn first_sign_ins_at_once_are_of_one_account() {
    let (served, _provider) = scene(FirstSignIn::Create).await;
    let mut begun = Vec::new();
    for _ in 0..4 {
        begun.push(begin(&served).await);
    }
    let back = begun.iter().map(|(cookie, place)| come_back(&served, cookie, place));
    let statuses: Vec<_> = join_all(back)
        .await
        .iter()
        .map(|answer| answer.status().as_u16())
        .collect();
    assert_eq!(statuses, [303; 4]);
    assert_eq!(accounts(&served).await, 1);
}

#[tokio::test]
async fn a_session_ends_when_its_person_signs_out() {
    let (served, _provider) = scene(FirstSignIn::Create).await;
    let mut browser = Browser {
        cookie: sign_in(&served).await.expect("a session"),
        csrf: "wrong".to_owned(),
    };
    let refused = browser
        .request(&served, Method::POST, "/api/auth/sign-out")
        .send()
        .await;
    assert_eq!(
        refused.expect("an answer").status().as_u16(),
        403,
        "a write needs the token"
    );
    let session = browser.get(&served, "/api/auth/session").await;
    session.data()["csrfToken"]
        .as_str()
        .expect("a token")
        .clone_into(&mut browser.csrf);
    let ended = browser
        .request(&served, Method::POST, "/api/auth/sign-out")
        .send()
        .await;
    assert_eq!(ended.expect("an answer").status().as_u16(), 204);
    assert!(!browser.is_signed_in(&served).await);
}
