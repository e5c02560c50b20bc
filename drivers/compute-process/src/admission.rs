//! What process Compute can carry, judged before a version exists. Pure.

use occ_core::{
    driver::{ComputeAdmission, GatewayAuthMode, GatewaySettings, HarnessAuthRequest, Rejection, SettingRejection},
    resource::{ExecutionMode, HarnessAuthMethod},
};

/// The checks of this driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admission;

impl ComputeAdmission for Admission {
    fn harness_auth(&self, request: &HarnessAuthRequest<'_>) -> Result<(), Rejection> {
        if request.mode() != ExecutionMode::Embedded {
            return Err(Rejection::Unsupported(
                "Process Compute runs Agents in embedded execution mode only.",
            ));
        }
        match request.method {
            HarnessAuthMethod::ApiKey => Ok(()),
            HarnessAuthMethod::CodexPat => Err(Rejection::Unsupported(
                "Process Compute does not support the harnessAuth method codex_pat; use api_key.",
            )),
            HarnessAuthMethod::CredentialSource => Err(Rejection::Unsupported(
                "Process Compute does not support the harnessAuth method credential_source; use api_key.",
            )),
            HarnessAuthMethod::Runtime => Err(Rejection::Unsupported(
                "Process Compute does not support the harnessAuth method runtime; use api_key.",
            )),
        }
    }

    fn gateway_settings(&self, settings: &GatewaySettings) -> Result<(), SettingRejection> {
        let refuse = |setting, accepted| Err(SettingRejection { setting, accepted });
        if settings.tls_enabled {
            return refuse("gateway.tls.enabled", "must be omitted or false");
        }
        if settings.tailscale_enabled {
            return refuse("gateway.tailscale.mode", "must be omitted or off");
        }
        if settings.custom_bind_host.is_some() {
            return refuse("gateway.customBindHost", "must be omitted");
        }
        if !matches!(settings.bind.as_deref(), None | Some("auto" | "loopback")) {
            return refuse("gateway.bind", "must be omitted, auto or loopback");
        }
        if !matches!(settings.auth_mode, None | Some(GatewayAuthMode::Password)) {
            return refuse("gateway.auth.mode", "must be omitted or password");
        }
        if settings.password_set && !settings.password_is_generated {
            return refuse(
                "gateway.auth.password",
                "must be omitted or the environment reference of the generated password",
            );
        }
        if settings.port.is_some() {
            return refuse("gateway.port", "must be omitted: the Compute chooses the port");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use occ_core::resource::HarnessIdentity;

    use super::*;

    fn judge(mode: ExecutionMode, method: HarnessAuthMethod) -> Result<(), Rejection> {
        let harness = HarnessIdentity {
            id: "any".to_owned(),
            version: "1".to_owned(),
            mode,
        };
        Admission.harness_auth(&HarnessAuthRequest {
            harness: &harness,
            method,
            source_type: None,
            secret_bindings: 64,
        })
    }

    #[test]
    fn an_api_key_in_embedded_mode_is_all_that_is_carried() {
        use ExecutionMode::{Dedicated, Embedded};
        use HarnessAuthMethod::{ApiKey, CodexPat, CredentialSource, Runtime};
        assert_eq!(judge(Embedded, ApiKey), Ok(()));
        for (mode, method) in [
            (Dedicated, ApiKey),
            (Embedded, CodexPat),
            (Embedded, CredentialSource),
            (Embedded, Runtime),
            (Dedicated, Runtime),
        ] {
            assert!(
                matches!(judge(mode, method), Err(Rejection::Unsupported(_))),
                "{mode:?} {method:?}"
            );
        }
    }

    fn settings(change: impl FnOnce(&mut GatewaySettings)) -> GatewaySettings {
        let mut settings = GatewaySettings::default();
        change(&mut settings);
        settings
    }

    #[test]
    fn a_private_gateway_with_the_generated_password_is_accepted() {
        for settings in [
            settings(|_| ()),
            settings(|s| s.bind = Some("auto".to_owned())),
            settings(|s| s.bind = Some("loopback".to_owned())),
            settings(|s| s.auth_mode = Some(GatewayAuthMode::Password)),
            settings(|s| (s.password_set, s.password_is_generated) = (true, true)),
        ] {
            assert_eq!(Admission.gateway_settings(&settings), Ok(()), "{settings:?}");
        }
    }

    #[test]
    fn any_other_gateway_is_refused_by_the_setting() {
        let auth = |mode| settings(|s| s.auth_mode = Some(mode));
        for (settings, setting) in [
            (settings(|s| s.tls_enabled = true), "gateway.tls.enabled"),
            (settings(|s| s.tailscale_enabled = true), "gateway.tailscale.mode"),
            (settings(|s| s.bind = Some("lan".to_owned())), "gateway.bind"),
            (settings(|s| s.bind = Some(String::new())), "gateway.bind"),
            (
                settings(|s| s.custom_bind_host = Some("0.0.0.0".to_owned())),
                "gateway.customBindHost",
            ),
            (auth(GatewayAuthMode::None), "gateway.auth.mode"),
            (auth(GatewayAuthMode::Token), "gateway.auth.mode"),
            (auth(GatewayAuthMode::TrustedProxy), "gateway.auth.mode"),
            (auth(GatewayAuthMode::Unrecognized), "gateway.auth.mode"),
            (settings(|s| s.password_set = true), "gateway.auth.password"),
            (settings(|s| s.port = Some(18789)), "gateway.port"),
        ] {
            let refusal = Admission.gateway_settings(&settings).expect_err(setting);
            assert_eq!(refusal.setting, setting);
        }
    }
}
