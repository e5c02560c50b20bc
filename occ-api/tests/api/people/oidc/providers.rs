//! A provider that lies, talks nonsense, or is away.

use std::time::Duration;

use occ_core::control::FirstSignIn;
use occ_test_support::oidc_provider::{Algorithm, Lie};

use super::{super::browser::ask, accounts, begin, begin_url, come_back, impatient, scene, sign_in};
use crate::served::{Seen, Served};

const INVALID: &str = "The identity provider's answer is not valid. Sign in again.";
const AWAY: &str = "The identity provider is unavailable.";

fn away() -> (u16, String) {
    (503, AWAY.to_owned())
}

/// Beginning is refused because the provider cannot be asked.
async fn is_away(served: &Served) -> bool {
    let seen = ask(served.http.get(begin_url(served))).await;
    assert!(!seen.headers.contains_key("location") && !seen.headers.contains_key("set-cookie"));
    (seen.status.as_u16(), seen.code(), seen.message()) == (503, "DEPENDENCY_UNAVAILABLE", AWAY)
}

#[tokio::test]
async fn every_signature_that_is_taken_is_verified() {
    for algorithm in [Algorithm::EdDsa, Algorithm::Es256, Algorithm::Rs256] {
        let (served, provider) = scene(FirstSignIn::Create).await;
        provider.sign_with(algorithm);
        sign_in(&served)
            .await
            .unwrap_or_else(|refused| panic!("{algorithm:?}: {refused:?}"));
        for lie in [Lie::Tampered, Lie::AccessToken] {
            provider.lie(Some(lie));
            let refused = sign_in(&served).await;
            assert_eq!(refused, Err((401, INVALID.to_owned())), "{algorithm:?} {lie:?}");
        }
    }
}

#[tokio::test]
async fn a_provider_that_lies_is_not_believed() {
    let (served, provider) = scene(FirstSignIn::Create).await;
    for lie in [
        Lie::Issuer,
        Lie::Audience,
        Lie::TwoAudiences,
        Lie::Nonce,
        Lie::NoNonce,
        Lie::Expired,
        Lie::Key,
        Lie::Unsigned,
        Lie::SharedSecret,
        Lie::Tampered,
        Lie::Subject,
        Lie::LongSubject,
        Lie::NoToken,
        Lie::TokenPage,
        Lie::TokenMoved,
    ] {
        provider.lie(Some(lie));
        served.world.store.take_audit();
        assert_eq!(sign_in(&served).await, Err((401, INVALID.to_owned())), "{lie:?}");
        let audit = served.world.store.take_audit();
        assert_eq!(
            (audit.len(), audit[0].reason_code.as_deref()),
            (1, Some("IDENTITY_NOT_PROVED")),
            "{lie:?}"
        );
    }
    assert_eq!(accounts(&served).await, 0);
    provider.lie(None);
    sign_in(&served).await.expect("a session");
    // Keys that were changed since are fetched.
    provider.rotate();
    sign_in(&served).await.expect("a session");
    assert_eq!(accounts(&served).await, 1);
}

#[tokio::test]
async fn a_token_endpoint_that_fails_says_nothing_of_anybody() {
    let (served, provider) = scene(FirstSignIn::Create).await;
    for lie in [Lie::Failing, Lie::Busy, Lie::TokenFlood] {
        provider.lie(Some(lie));
        served.world.store.take_audit();
        assert_eq!(sign_in(&served).await, Err(away()), "{lie:?}");
        assert!(served.world.store.take_audit().is_empty(), "{lie:?}");
    }
    let (served, provider) = scene(FirstSignIn::Create).await;
    provider.lie(Some(Lie::MetadataTokenElsewhere));
    assert_eq!(sign_in(&served).await, Err(away()), "nothing is sent without TLS");
}

#[tokio::test]
async fn metadata_that_are_none_begin_nothing() {
    let (served, provider) = scene(FirstSignIn::Create).await;
    for lie in [
        Lie::Metadata,
        Lie::MetadataPage,
        Lie::MetadataMissing,
        Lie::MetadataFlood,
        Lie::MetadataElsewhere,
        Lie::KeysPage,
    ] {
        provider.lie(Some(lie));
        assert!(is_away(&served).await, "{lie:?}");
    }
    // It is asked again once it is as it should be.
    provider.lie(None);
    sign_in(&served).await.expect("a session");
}

#[tokio::test]
async fn a_provider_that_does_not_answer_is_not_waited_for_for_ever() {
    let patience = Duration::from_secs(2);
    let (served, provider) = impatient(patience).await;
    provider.lie(Some(Lie::MetadataSilent));
    // Nor by those who wait behind another.
    let (one, other) = tokio::join!(is_away(&served), is_away(&served));
    assert!(one && other);
    provider.lie(Some(Lie::TokenSilent));
    assert_eq!(sign_in(&served).await, Err(away()));
    provider.lie(None);
    sign_in(&served).await.expect("a session");
}

#[tokio::test]
async fn a_provider_that_goes_away_meanwhile_is_said_to_be_away() {
    let (served, provider) = scene(FirstSignIn::Create).await;
    let (cookie, place) = begin(&served).await;
    drop(provider);
    let seen = Seen::of(come_back(&served, &cookie, &place).await).await;
    assert_eq!(
        (seen.status.as_u16(), seen.message()),
        (503, "The identity provider is unavailable.")
    );
    assert!(!seen.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn a_provider_that_was_never_there_is_said_to_be_away() {
    let (served, provider) = scene(FirstSignIn::Create).await;
    drop(provider);
    assert!(is_away(&served).await);
}
