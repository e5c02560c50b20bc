//! Signing in through an identity provider: authorization code with PKCE (docs/adr/0016).
//!
//! What binds an attempt to its browser is one random secret in a cookie of its own: the state, the nonce and the PKCE verifier are hashes
//! of it. Nothing is kept here meanwhile, so any process may finish what another began.

mod attempt;
mod exchange;
mod settings;

use std::{fmt, sync::Arc, time::Duration};

use occ_core::{
    admission::Refusal,
    control::{FirstSignIn, VerifiedIdentity},
    reason::ApiCode,
    secret_value::SecretValue,
};
use openidconnect::{
    AccessTokenHash, AuthorizationCode, ClientId, ClientSecret, CsrfToken, IssuerUrl, Nonce, OAuth2TokenResponse as _,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, TokenResponse as _,
    core::{CoreAuthenticationFlow, CoreClient, CoreJwsSigningAlgorithm as Alg, CoreProviderMetadata},
};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};
use url::Url;

pub(crate) use attempt::{Attempt, Returned};
use exchange::Exchange;
pub use settings::{InvalidOidc, OidcSettings};

/// Where the provider sends the browser back to.
pub(crate) const CALLBACK: &str = "/api/auth/oidc/callback";
/// How long somebody may take at the provider.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);
/// How long the provider's metadata and keys are believed.
const METADATA_FOR: Duration = Duration::from_mins(10);
/// Longest subject, in characters; the protocol has it.
const SUBJECT_MAX: usize = 255;
/// What an identity token may be signed with: never with a secret that both sides know, and never with nothing.
const ALGORITHMS: [Alg; 9] = [
    Alg::RsaSsaPkcs1V15Sha256,
    Alg::RsaSsaPkcs1V15Sha384,
    Alg::RsaSsaPkcs1V15Sha512,
    Alg::RsaSsaPssSha256,
    Alg::RsaSsaPssSha384,
    Alg::RsaSsaPssSha512,
    Alg::EcdsaP256Sha256,
    Alg::EcdsaP384Sha384,
    Alg::EdDsa,
];

/// A provider that people sign in through.
pub struct Oidc {
    settings: OidcSettings,
    issuer: IssuerUrl,
    redirect: RedirectUrl,
    /// Where a signed-in person is sent.
    landing: String,
    exchange: Exchange,
    known: Mutex<Option<(Instant, Arc<CoreProviderMetadata>)>>,
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oidc")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

fn away(what: &'static str) -> Refusal {
    tracing::warn!(what, "oidc.unavailable");
    Refusal::unavailable("The identity provider is unavailable.")
}

/// Which of it failed; what it said stays out of the log.
fn undiscovered<E: std::error::Error>(error: &openidconnect::DiscoveryError<E>) -> &'static str {
    use openidconnect::DiscoveryError as Error;
    match error {
        Error::Request(_) => "it did not answer, failed, answered with too much, or names a place without TLS",
        Error::Validation(_) => "its metadata name another issuer",
        _ => "its metadata or keys are none",
    }
}

fn invalid(what: &'static str) -> Refusal {
    tracing::warn!(what, "oidc.invalid-answer");
    Refusal::fixed(
        ApiCode::Unauthenticated,
        "The identity provider's answer is not valid. Sign in again.",
    )
}

impl Oidc {
    /// A provider with these settings. It is asked only once somebody signs in.
    pub fn new(settings: OidcSettings) -> Result<Self, InvalidOidc> {
        let issuer: Url = settings.issuer.parse().map_err(|_| InvalidOidc::Issuer)?;
        let redirect = format!("{}{CALLBACK}", settings.public_url.as_str());
        Ok(Self {
            issuer: IssuerUrl::new(settings.issuer.clone()).map_err(|_| InvalidOidc::Issuer)?,
            redirect: RedirectUrl::new(redirect).map_err(|_| InvalidOidc::Issuer)?,
            landing: settings.landing()?,
            exchange: Exchange::new(&issuer, settings.timeout)?,
            settings,
            known: Mutex::default(),
        })
    }

    pub(crate) const fn first_sign_in(&self) -> FirstSignIn {
        self.settings.first_sign_in
    }

    pub(crate) fn landing(&self) -> &str {
        &self.landing
    }

    /// The provider's metadata and keys; asked for anew when they are old or `stale`.
    async fn metadata(&self, stale: bool) -> Result<Arc<CoreProviderMetadata>, Refusal> {
        // Behind somebody who waits for a provider that is away, nobody waits for ever.
        let mut known = timeout(self.settings.timeout, self.known.lock())
            .await
            .map_err(|_| away("others wait for its metadata"))?;
        if let Some((at, metadata)) = known.as_ref().filter(|_| !stale)
            && at.elapsed() < METADATA_FOR
        {
            return Ok(Arc::clone(metadata));
        }
        let exchange = self.exchange.clone();
        let call = move |request| exchange.clone().send(request);
        // Checks that the document names exactly this issuer.
        let found = CoreProviderMetadata::discover_async(self.issuer.clone(), &call).await;
        let metadata = Arc::new(found.map_err(|error| away(undiscovered(&error)))?);
        if !self.exchange.is_safe(metadata.authorization_endpoint().url()) {
            return Err(away("its authorization endpoint is without TLS"));
        }
        *known = Some((Instant::now(), Arc::clone(&metadata)));
        Ok(metadata)
    }

    /// Where the browser goes, and what it brings back.
    pub(crate) async fn begin(&self) -> Result<(Url, Attempt), Refusal> {
        let metadata = self.metadata(false).await?;
        let attempt = Attempt::new();
        let client = CoreClient::from_provider_metadata((*metadata).clone(), self.client_id(), None)
            .set_redirect_uri(self.redirect.clone());
        let verifier = PkceCodeVerifier::new(attempt.verifier());
        let state = CsrfToken::new(attempt.state());
        let nonce = Nonce::new(attempt.nonce());
        let (url, ..) = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, || state, || nonce)
            .add_scope(Scope::new("email".to_owned()))
            .add_scope(Scope::new("profile".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        Ok((url, attempt))
    }

    fn client_id(&self) -> ClientId {
        ClientId::new(self.settings.client_id.clone())
    }

    /// Whom the provider recognised, once everything about its answer was verified.
    pub(crate) async fn finish(
        &self,
        attempt: Option<Attempt>,
        returned: Returned,
    ) -> Result<VerifiedIdentity, Refusal> {
        let state = returned.state.unwrap_or_default();
        let attempt = attempt.filter(|attempt| attempt.began(&state)).ok_or(Refusal::fixed(
            ApiCode::Forbidden,
            "The sign-in did not begin in this browser, or took too long. Begin again.",
        ))?;
        if returned.error {
            return Err(Refusal::fixed(
                ApiCode::Forbidden,
                "The identity provider refused the sign-in.",
            ));
        }
        if returned.issuer.is_some_and(|issuer| issuer != self.settings.issuer) {
            return Err(invalid("issuer of the response"));
        }
        let code = returned.code.ok_or_else(|| invalid("code"))?;
        let secret = self.settings.client_secret.as_ref();
        let secret = secret.and_then(SecretValue::expose_str);
        let metadata = self.metadata(false).await?;
        let client = CoreClient::from_provider_metadata(
            (*metadata).clone(),
            self.client_id(),
            secret.map(|secret| ClientSecret::new(secret.to_owned())),
        )
        .set_redirect_uri(self.redirect.clone());
        let exchange = self.exchange.clone();
        let call = move |request| exchange.clone().send(request);
        let exchanged = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|_| away("it names no token endpoint"))?
            .set_pkce_verifier(PkceCodeVerifier::new(attempt.verifier()))
            .request_async(&call)
            .await;
        let tokens = exchanged.map_err(|error| match error {
            openidconnect::RequestTokenError::Request(_) => away("its token endpoint did not answer"),
            _ => invalid("answer of the token endpoint"),
        })?;
        let token = tokens.id_token().ok_or_else(|| invalid("no identity token"))?;
        let nonce = Nonce::new(attempt.nonce());
        let who = match self.claims(&metadata, &tokens, token, &nonce) {
            // The provider may have changed its keys since they were fetched.
            None => self.claims(&*self.metadata(true).await?, &tokens, token, &nonce),
            who => who,
        };
        who.ok_or_else(|| invalid("identity token"))
    }

    /// Issuer, audience, signature, time, nonce, and the access token's hash: all of it, or nobody.
    fn claims(
        &self,
        metadata: &CoreProviderMetadata,
        tokens: &openidconnect::core::CoreTokenResponse,
        token: &openidconnect::core::CoreIdToken,
        nonce: &Nonce,
    ) -> Option<VerifiedIdentity> {
        let client = CoreClient::from_provider_metadata(metadata.clone(), self.client_id(), None);
        let verifier = client.id_token_verifier().set_allowed_algs(ALGORITHMS);
        let claims = token.claims(&verifier, nonce).ok()?;
        if let Some(expected) = claims.access_token_hash() {
            let (alg, key) = (token.signing_alg().ok()?, token.signing_key(&verifier).ok()?);
            let found = AccessTokenHash::from_token(tokens.access_token(), alg, key).ok()?;
            if found != *expected {
                return None;
            }
        }
        // A database could not keep every text.
        let subject = claims.subject().as_str();
        if !(1..=SUBJECT_MAX).contains(&subject.chars().count()) || subject.contains(char::is_control) {
            return None;
        }
        let email = claims.email().filter(|_| claims.email_verified() == Some(true));
        let name = claims.name().and_then(|name| name.get(None));
        Some(VerifiedIdentity {
            issuer: claims.issuer().as_str().to_owned(),
            subject: subject.to_owned(),
            verified_email: email.and_then(|email| email.as_str().parse().ok()),
            name: name.and_then(|name| name.as_str().parse().ok()),
        })
    }
}
