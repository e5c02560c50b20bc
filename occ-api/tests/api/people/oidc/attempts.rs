//! What binds an attempt to its browser, and how many there may be.

use futures_util::future::join_all;
use occ_core::control::FirstSignIn;
use reqwest::StatusCode;

use super::{begin, come_back, scene};
use crate::served::Seen;

#[tokio::test]
async fn an_attempt_belongs_to_the_browser_that_began_it() {
    let (served, _provider) = scene(FirstSignIn::Create).await;
    let elsewhere = "The sign-in did not begin in this browser, or took too long. Begin again.";
    let (cookie, place) = begin(&served).await;
    let (other, other_place) = begin(&served).await;
    let derived_of_nothing = {
        let state = occ_core::digest::hex(b"occ oidc state ");
        place.replace(
            &place[place.find("state=").expect("a state")..][..70],
            &format!("state={state}"),
        )
    };
    for (number, (cookie, place)) in [
        (String::new(), place.clone()),
        (other.clone(), place.clone()),
        ("occ_oidc=".to_owned(), derived_of_nothing.clone()),
        (String::new(), derived_of_nothing),
        (cookie.clone(), place.replace("state=", "other=")),
        (cookie.clone(), "/api/auth/oidc/callback".to_owned()),
    ]
    .into_iter()
    .enumerate()
    {
        let seen = Seen::of(come_back(&served, &cookie, &place).await).await;
        assert_eq!((seen.status.as_u16(), seen.message()), (403, elsewhere), "{number}");
        assert!(!seen.headers.contains_key("set-cookie"));
    }
    // Somebody else's code with one's own state: the PKCE verifier is another.
    let code = |place: &str| {
        place
            .split('&')
            .find(|pair| pair.contains("code="))
            .expect("a code")
            .to_owned()
    };
    let crossed = place.replace(&code(&place), &code(&other_place));
    assert_eq!(come_back(&served, &cookie, &crossed).await.status().as_u16(), 401);
    let iss = place
        .split('&')
        .find(|pair| pair.starts_with("iss="))
        .expect("an issuer")
        .to_owned();
    let mixed_up = place.replace(&iss, "iss=https://evil.example");
    assert_eq!(come_back(&served, &cookie, &mixed_up).await.status().as_u16(), 401);
    let denied = format!("{}&error=access_denied", place.replace(&code(&place), "x=1"));
    assert_eq!(come_back(&served, &cookie, &denied).await.status().as_u16(), 403);
    assert_eq!(
        come_back(&served, &cookie, &place).await.status(),
        StatusCode::SEE_OTHER
    );
    let again = Seen::of(come_back(&served, &cookie, &place).await).await;
    assert_eq!(again.status.as_u16(), 401, "a code is good once");
    assert!(!again.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn attempts_are_limited_by_address_and_those_that_are_right_do_not_count() {
    let (served, _provider) = scene(FirstSignIn::Create).await;
    for _ in 0..24 {
        let (cookie, place) = begin(&served).await;
        let answer = come_back(&served, &cookie, &place).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    }
    // At once, so that a slow machine does not give them back in between.
    let tries = (0..40).map(|_| come_back(&served, "", "/api/auth/oidc/callback?code=x&state=y"));
    let mut limited = None;
    for answer in join_all(tries).await {
        let seen = Seen::of(answer).await;
        match seen.status.as_u16() {
            403 => {}
            429 => limited = Some(seen),
            status => panic!("{status}: {}", seen.body),
        }
    }
    let limited = limited.expect("a limit");
    assert_eq!(limited.code(), "SIGN_IN_RATE_LIMITED");
    assert!(limited.headers.contains_key("retry-after"));
}
