//! One attempt to sign in, and what binds it to its browser.

use occ_core::{digest, randomness::secret_bytes};

/// The secret that binds an attempt to its browser.
pub(crate) struct Attempt(String);

/// What the provider sent the browser back with.
#[derive(Default)]
pub(crate) struct Returned {
    pub code: Option<String>,
    pub state: Option<String>,
    pub error: bool,
    pub issuer: Option<String>,
}

impl Attempt {
    pub(super) fn new() -> Self {
        Self(digest::hex(&secret_bytes()))
    }

    /// What the browser brought back. Without its full length anybody could know what is derived of it.
    pub(crate) fn presented(cookie: &str) -> Option<Self> {
        let full = cookie.len() == 64 && cookie.bytes().all(|b| b.is_ascii_hexdigit());
        full.then(|| Self(cookie.to_owned()))
    }

    /// For the cookie.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// What the provider gives back with the browser.
    pub(super) fn state(&self) -> String {
        self.derived("state")
    }

    /// What the identity token must say.
    pub(super) fn nonce(&self) -> String {
        self.derived("nonce")
    }

    /// What proves to the token endpoint that who began also finishes (PKCE).
    pub(super) fn verifier(&self) -> String {
        self.derived("pkce")
    }

    /// Hashes are compared, so that the time says nothing of the state.
    pub(super) fn began(&self, state: &str) -> bool {
        digest::hex(state.as_bytes()) == digest::hex(self.state().as_bytes())
    }

    fn derived(&self, purpose: &str) -> String {
        digest::hex(format!("occ oidc {purpose} {}", self.0).as_bytes())
    }
}
