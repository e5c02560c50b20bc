//! The gateway settings in neutral words (spec/drivers 1.11, spec/contracts 18.1).

use occ_core::{
    driver::{DocumentProblem, GatewayAuthMode, GatewaySettings},
    resource::Document,
};

use crate::{credential::reference, document::Place};

/// The environment variable of the generated password.
pub const PASSWORD_VARIABLE: &str = "OPENCLAW_GATEWAY_PASSWORD";

/// What the document says of its gateway. What it does not say stays open.
pub fn settings(document: &Document) -> Result<GatewaySettings, DocumentProblem> {
    let gateway = Place::root(document).get("gateway")?;
    let tailscale = gateway.path(&["tailscale", "mode"])?;
    let auth = gateway.get("auth")?;
    // Objects that a Compute may have its own words for; here only their shape counts.
    auth.path(&["trustedProxy", "userHeader"])?;
    auth.get("identityScopes")?.object()?;
    let password = auth.get("password")?;
    let owned = |place: Place<'_>| Ok::<_, DocumentProblem>(place.text()?.map(str::to_owned));
    Ok(GatewaySettings {
        tls_enabled: gateway.path(&["tls", "enabled"])?.boolean()? == Some(true),
        tailscale_enabled: !matches!(tailscale.text()?, None | Some("off")),
        bind: owned(gateway.get("bind")?)?,
        custom_bind_host: owned(gateway.get("customBindHost")?)?,
        auth_mode: auth_mode(&auth.get("mode")?),
        password_is_generated: is_generated(&password)?,
        password_set: password.exists(),
        port: gateway.get("port")?.port()?,
    })
}

fn auth_mode(mode: &Place<'_>) -> Option<GatewayAuthMode> {
    mode.exists().then(|| match mode.as_text() {
        Some("password") => GatewayAuthMode::Password,
        Some("trusted-proxy") => GatewayAuthMode::TrustedProxy,
        Some("token") => GatewayAuthMode::Token,
        Some("none") => GatewayAuthMode::None,
        _ => GatewayAuthMode::Unrecognized,
    })
}

/// Whether this is the environment reference to the generated password.
fn is_generated(password: &Place<'_>) -> Result<bool, DocumentProblem> {
    if let Some(text) = password.as_text() {
        return Ok(reference(text) == Some(PASSWORD_VARIABLE));
    }
    let is = |key: &str, wanted: &str| Ok::<_, DocumentProblem>(password.get(key)?.as_text() == Some(wanted));
    let provider = password.get("provider")?;
    let default = !provider.exists() || provider.as_text() == Some("default");
    Ok(default && is("source", "env")? && is("id", PASSWORD_VARIABLE)?)
}
