//! What an installation says about its identity provider.

use std::time::Duration;

use occ_core::{control::FirstSignIn, secret_value::SecretValue};
use url::Url;

use crate::access::TrustedOrigin;

/// How people sign in through an identity provider.
#[derive(Debug, Clone)]
pub struct OidcSettings {
    /// The provider, exactly as it names itself: an https URL, or http on loopback.
    pub issuer: String,
    /// What the provider calls this installation.
    pub client_id: String,
    /// By what the provider recognises it; none for a public client, which PKCE protects alone.
    pub client_secret: Option<SecretValue>,
    /// The API's origin, as browsers call it.
    pub public_url: TrustedOrigin,
    /// Where a signed-in person is sent: a path of that origin. [`OidcSettings::LANDING`] shows the session.
    pub landing: String,
    /// What becomes of an identity that is linked to no account.
    pub first_sign_in: FirstSignIn,
    /// How long one request to the provider may take. [`OidcSettings::TIMEOUT`] unless there is a reason.
    pub timeout: Duration,
}

/// Settings that no provider can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOidc {
    /// Not an https URL, nor http on loopback.
    #[error("the issuer must be an https URL, or http on loopback")]
    Issuer,
    /// Not a path of the public URL.
    #[error("the place after signing in must be a path of the public URL, such as /")]
    Landing,
    /// The HTTP client could not be made.
    #[error("the HTTP client could not be set up")]
    Client,
}

impl OidcSettings {
    /// Who is signed in, with the CSRF token of the session.
    pub const LANDING: &str = "/api/auth/session";
    /// Ten seconds.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// The path of the public URL that a signed-in person is sent to. Browsers read `//host` and `/\host` as another place.
    pub(super) fn landing(&self) -> Result<String, InvalidOidc> {
        let home: Url = self.public_url.as_str().parse().map_err(|_| InvalidOidc::Landing)?;
        let place = home.join(&self.landing).map_err(|_| InvalidOidc::Landing)?;
        let path = &place[url::Position::BeforePath..];
        if !self.landing.starts_with('/') || place.origin() != home.origin() || path.starts_with("//") {
            return Err(InvalidOidc::Landing);
        }
        Ok(path.to_owned())
    }
}
