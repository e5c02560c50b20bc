//! The gateway settings of a document in neutral words (spec/contracts 18.1).

mod rig;

use occ_core::driver::{GatewayAuthMode, GatewaySettings};
use occ_harness_openclaw::message;
use rig::{document, harness, with};
use serde_json::{Value, json};

fn settings(value: Value) -> GatewaySettings {
    harness().gateway_settings(&document(value)).expect("settings")
}

fn one(pointer: &str, value: Value) -> GatewaySettings {
    settings(with(json!({}), pointer, value))
}

#[test]
fn what_the_document_does_not_say_stays_open() {
    assert_eq!(settings(json!({})), GatewaySettings::default());
    assert_eq!(
        settings(json!({ "gateway": { "auth": {}, "tls": {}, "tailscale": {} } })),
        GatewaySettings::default()
    );
}

#[test]
fn each_setting_is_read() {
    let none = GatewaySettings::default;
    for (at, value, expected) in [
        (
            "/gateway/tls/enabled",
            json!(true),
            GatewaySettings {
                tls_enabled: true,
                ..none()
            },
        ),
        ("/gateway/tls/enabled", json!(false), none()),
        (
            "/gateway/tailscale/mode",
            json!("serve"),
            GatewaySettings {
                tailscale_enabled: true,
                ..none()
            },
        ),
        ("/gateway/tailscale/mode", json!("off"), none()),
        (
            "/gateway/bind",
            json!("lan"),
            GatewaySettings {
                bind: Some("lan".to_owned()),
                ..none()
            },
        ),
        (
            "/gateway/customBindHost",
            json!("0.0.0.0"),
            GatewaySettings {
                custom_bind_host: Some("0.0.0.0".to_owned()),
                ..none()
            },
        ),
        (
            "/gateway/port",
            json!(18789),
            GatewaySettings {
                port: Some(18789),
                ..none()
            },
        ),
    ] {
        assert_eq!(one(at, value.clone()), expected, "{at} {value}");
    }
}

#[test]
fn each_authentication_mode_has_its_word() {
    for (value, mode) in [
        (json!("password"), GatewayAuthMode::Password),
        (json!("trusted-proxy"), GatewayAuthMode::TrustedProxy),
        (json!("token"), GatewayAuthMode::Token),
        (json!("none"), GatewayAuthMode::None),
        (json!("oidc"), GatewayAuthMode::Unrecognized),
        (json!(5), GatewayAuthMode::Unrecognized),
    ] {
        assert_eq!(
            one("/gateway/auth/mode", value.clone()).auth_mode,
            Some(mode),
            "{value}"
        );
    }
}

#[test]
fn only_the_environment_reference_is_the_generated_password() {
    for (value, generated) in [
        (
            json!({ "source": "env", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD" }),
            true,
        ),
        (json!({ "source": "env", "id": "OPENCLAW_GATEWAY_PASSWORD" }), true),
        (json!("${OPENCLAW_GATEWAY_PASSWORD}"), true),
        (
            json!({ "source": "env", "provider": "other", "id": "OPENCLAW_GATEWAY_PASSWORD" }),
            false,
        ),
        (json!({ "source": "env", "provider": "default", "id": "OTHER" }), false),
        (
            json!({ "source": "file", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD" }),
            false,
        ),
        (json!("${OTHER}"), false),
        (json!("OPENCLAW_GATEWAY_PASSWORD"), false),
    ] {
        let found = one("/gateway/auth/password", value.clone());
        assert!(found.password_set, "{value}");
        assert_eq!(found.password_is_generated, generated, "{value}");
    }
}

#[test]
fn a_wrong_shape_is_named_where_it_is() {
    for (at, value, message) in [
        ("/gateway", json!("hunter2"), message::OBJECT),
        ("/gateway/auth", json!([]), message::OBJECT),
        ("/gateway/auth/trustedProxy", json!("hunter2"), message::OBJECT),
        ("/gateway/auth/identityScopes", json!("hunter2"), message::OBJECT),
        ("/gateway/auth/password", json!(5), message::OBJECT),
        ("/gateway/tls", json!(true), message::OBJECT),
        ("/gateway/tls/enabled", json!("yes"), message::BOOLEAN),
        ("/gateway/bind", json!(5), message::TEXT),
        ("/gateway/tailscale/mode", json!(false), message::TEXT),
        ("/gateway/port", json!("18789"), message::PORT),
        ("/gateway/port", json!(0), message::PORT),
        ("/gateway/port", json!(65_536), message::PORT),
        ("/gateway/port", json!({}), message::PORT),
    ] {
        let problem = harness()
            .gateway_settings(&document(with(json!({}), at, value)))
            .expect_err(at);
        assert_eq!((problem.pointer.as_str(), problem.message), (at, message));
    }
}
