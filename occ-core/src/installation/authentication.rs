//! How people are recognised, as an Installation file says it.

use std::path::PathBuf;

use crate::control::FirstSignIn;

/// An identity provider that people sign in through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcProvider {
    /// The provider, exactly as it names itself.
    pub issuer: String,
    /// What the provider calls this installation.
    pub client_id: String,
    /// Where its secret lies; none for a public client.
    pub client_secret: Option<SecretPlace>,
    /// The API's origin, as browsers call it.
    pub public_url: String,
    /// Where a signed-in person is sent: a path of that origin. Their session is shown unless another is given.
    pub landing: Option<String>,
    /// What becomes of an identity that is linked to no account.
    pub first_sign_in: FirstSignIn,
}

/// Where a secret lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// In this file.
    File(PathBuf),
    /// In this environment variable of the control plane.
    Environment(String),
}
