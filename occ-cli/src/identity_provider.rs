//! The identity provider that the Installation file names: whether it can be one, and its secret from where that lies.

use std::{path::Path, sync::Arc};

use occ_api::{InvalidOidc, InvalidOrigin, Oidc, OidcSettings};
use occ_core::{
    installation::{OidcProvider, SecretPlace},
    secret_value::SecretValue,
};

use crate::{
    exit::{Done, Failure},
    input,
};

fn failed(key: &str, what: &str) -> Failure {
    let key = if key.is_empty() { "" } else { &format!(".{key}") };
    Failure::startup(format!("authentication.oidc{key}: {what}"))
}

/// Whether there can be such a provider. Neither it nor its secret is looked for.
pub(crate) fn check(named: &OidcProvider) -> Done {
    built(named, None).map(drop)
}

/// The provider. It is asked only once somebody signs in.
pub(crate) fn open(named: &OidcProvider) -> Done<Arc<Oidc>> {
    built(named, client_secret(named)?).map(Arc::new)
}

fn built(named: &OidcProvider, client_secret: Option<SecretValue>) -> Done<Oidc> {
    let public_url = named.public_url.parse();
    let settings = OidcSettings {
        issuer: named.issuer.clone(),
        client_id: named.client_id.clone(),
        client_secret,
        public_url: public_url.map_err(|error: InvalidOrigin| failed("publicUrl", &error.to_string()))?,
        landing: named.landing.as_deref().unwrap_or(OidcSettings::LANDING).to_owned(),
        first_sign_in: named.first_sign_in,
        timeout: OidcSettings::TIMEOUT,
    };
    Oidc::new(settings).map_err(|error| match error {
        InvalidOidc::Issuer => failed("issuer", &error.to_string()),
        InvalidOidc::Landing => failed("afterSignIn", &error.to_string()),
        InvalidOidc::Client => failed("", &error.to_string()),
    })
}

fn client_secret(named: &OidcProvider) -> Done<Option<SecretValue>> {
    let value = match &named.client_secret {
        None => return Ok(None),
        // `-` is a file here, and no standard input.
        Some(SecretPlace::File(path)) => input::secret(Some(&Path::new(".").join(path)))
            .map_err(|error| failed("clientSecretFile", &error.to_string()))?,
        Some(SecretPlace::Environment(name)) => {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty());
            let missing = || failed("clientSecretEnvironment", &format!("{name} is not set"));
            SecretValue::from(value.ok_or_else(missing)?)
        }
    };
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use occ_core::control::FirstSignIn;

    use super::*;

    fn named(issuer: &str, public_url: &str, client_secret: Option<SecretPlace>) -> OidcProvider {
        OidcProvider {
            issuer: issuer.to_owned(),
            client_id: "occ".to_owned(),
            client_secret,
            public_url: public_url.to_owned(),
            landing: None,
            first_sign_in: FirstSignIn::Refuse,
        }
    }

    #[test]
    fn what_is_wrong_is_said_by_its_key() {
        let (issuer, page) = ("https://accounts.example.com", "https://occ.example.com");
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| Some(SecretPlace::File(directory.path().join(name)));
        std::fs::write(directory.path().join("secret"), "canary-secret\n").unwrap();
        let landing = |place: &str| OidcProvider {
            landing: Some(place.to_owned()),
            ..named(issuer, page, None)
        };
        for (provider, said) in [
            (landing("/console?welcome"), None),
            (landing("//evil.example"), Some("afterSignIn")),
            (named(issuer, page, None), None),
            (named(issuer, page, file("secret")), None),
            (named("http://accounts.example.com", page, None), Some("issuer")),
            (named(issuer, "https://occ.example.com/path", None), Some("publicUrl")),
            (named(issuer, page, file("missing")), Some("clientSecretFile")),
            (
                named(
                    issuer,
                    page,
                    Some(SecretPlace::Environment("OCC_TEST_NOT_SET".to_owned())),
                ),
                Some("clientSecretEnvironment"),
            ),
        ] {
            match (open(&provider), said) {
                (Ok(opened), None) => assert!(!format!("{opened:?}").contains("canary")),
                (Err(failure), Some(key)) => {
                    let text = failure.to_string();
                    assert!(text.starts_with(&format!("authentication.oidc.{key}: ")), "{text}");
                }
                (opened, said) => panic!("{said:?}: {opened:?}"),
            }
        }
        // A check looks at no secret: it may lie on another host.
        assert!(check(&named(issuer, page, file("missing"))).is_ok());
        assert!(check(&named("no url", page, None)).is_err());
    }
}
