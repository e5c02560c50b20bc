//! Registration, and what a factory does with settings, through the public API.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use occ_core::{
    driver::{
        AccessRequest, CONTRACT_VERSION, ContractVersion, Decision, DriverIdentity, DriverKind, EffectResult, Evidence,
        IamDriver, Identity, OperationContext,
    },
    iam::NoPolicy,
    registry::{BuildError, Built, DriverFactory, HostServices, Registration, Registry, RegistryError},
    resource::PrincipalId,
};
use proptest::prelude::*;
use schemars::{JsonSchema, Schema, json_schema, schema_for};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, json};

/// Denies everything.
struct Closed {
    identity: DriverIdentity,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Settings {
    port: u16,
    on: bool,
    ratio: f64,
    mode: Mode,
    pools: Vec<Pool>,
    labels: BTreeMap<String, u8>,
    place: Option<Place>,
    colour: Option<Colour>,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Quick,
    Careful,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only whether they are accepted is of interest")]
struct Pool {
    size: u8,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[expect(dead_code, reason = "only whether they are accepted is of interest")]
enum Place {
    Here,
    There { distance: u32 },
}

/// A type that quotes what it refuses.
struct Colour;

impl<'de> Deserialize<'de> for Colour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "red" => Ok(Self),
            other => Err(D::Error::custom(format!(
                "invalid colour, expected red and not {other}"
            ))),
        }
    }
}

impl JsonSchema for Colour {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Colour".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl DriverFactory for Closed {
    const DRIVER: &'static str = "closed";
    const IMPLEMENTATION: &'static str = "test/closed";
    type Settings = Settings;

    fn build(identity: DriverIdentity, _: Settings, _: &HostServices) -> Result<Self, BuildError> {
        Ok(Self { identity })
    }
}

#[async_trait]
impl IamDriver for Closed {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }
    async fn lookup(&self, _: &OperationContext, _: &PrincipalId) -> EffectResult<Option<Identity>> {
        Ok(None)
    }
    async fn authorize(&self, _: &OperationContext, _: &AccessRequest) -> EffectResult<Decision> {
        Ok(Decision {
            allowed: false,
            driver_id: self.identity.id.clone(),
            evidence: Evidence::default(),
        })
    }
}

occ_core::register_iam!(Closed);

fn host() -> HostServices {
    HostServices::new(PathBuf::from("/nonexistent"), Arc::new(NoPolicy))
}

fn linked() -> Registration {
    Registry::linked()
        .unwrap()
        .find(DriverKind::Iam, "closed")
        .unwrap()
        .clone()
}

fn registry_of(registrations: impl IntoIterator<Item = Registration>) -> Result<Registry, RegistryError> {
    let mut registry = Registry::default();
    registrations
        .into_iter()
        .try_for_each(|r| registry.install(r))
        .map(|()| registry)
}

#[test]
fn a_driver_that_is_registered_by_macro_is_found_and_built() {
    let registration = linked();
    assert_eq!(registration.implementation, "test/closed");
    assert_eq!(registration.package, concat!("occ-core ", env!("CARGO_PKG_VERSION")));
    assert_eq!(registration.contract, CONTRACT_VERSION);

    let built = (registration.build)("mine", json!({ "port": 80 }), &host())
        .ok()
        .unwrap();
    let identity = DriverIdentity {
        kind: DriverKind::Iam,
        id: "mine".to_owned(),
        implementation: "test/closed".to_owned(),
        contract: CONTRACT_VERSION,
    };
    assert_eq!(built.identity(), &identity);
    assert!(matches!(built, Built::Iam(_)));
}

#[test]
fn a_second_driver_of_one_kind_and_name_is_refused_naming_both_crates() {
    let second = Registration {
        package: "other-crate 2.0.0",
        ..linked()
    };
    let refused = registry_of([linked(), second]).err().unwrap();
    assert_eq!(
        refused.to_string(),
        format!(
            "iam driver \"closed\" is registered twice, by occ-core {} and by other-crate 2.0.0: link one of them",
            env!("CARGO_PKG_VERSION")
        )
    );
}

#[test]
fn one_name_may_be_used_by_drivers_of_two_kinds() {
    let other_kind = Registration {
        kind: DriverKind::Secret,
        ..linked()
    };
    let registry = registry_of([linked(), other_kind]).unwrap();
    let kinds: Vec<_> = registry.registrations().iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [DriverKind::Iam, DriverKind::Secret]);
}

#[test]
fn an_unknown_name_lists_what_is_linked_for_the_kind_and_the_line_to_add() {
    let another = Registration {
        driver: "another",
        ..linked()
    };
    let registry = registry_of([linked(), another]).unwrap();
    let refused = registry.find(DriverKind::Iam, "missing").err().unwrap();
    assert_eq!(
        refused.to_string(),
        "no iam driver \"missing\" is linked; linked iam drivers: another, closed. \
         To link another, add its crate to the installation and name it in main.rs: use <crate> as _;"
    );
    let refused = registry.find(DriverKind::Compute, "closed").err().unwrap();
    assert!(
        refused.to_string().contains("linked compute drivers: none."),
        "{refused}"
    );
}

#[test]
fn a_driver_for_a_contract_that_this_engine_does_not_speak_is_refused() {
    let ContractVersion { major, minor } = CONTRACT_VERSION;
    let newer = ContractVersion {
        major,
        minor: minor + 1,
    };
    let next = ContractVersion {
        major: major + 1,
        minor: 0,
    };
    let earlier = ContractVersion {
        major: major - 1,
        minor: 0,
    };
    for contract in [newer, next, earlier] {
        let refused = registry_of([Registration { contract, ..linked() }]).err().unwrap();
        assert!(
            matches!(&refused, RegistryError::Contract { wanted, .. } if *wanted == contract),
            "{refused}"
        );
        assert!(
            refused
                .to_string()
                .contains(&format!("was written for contract {contract}")),
            "{refused}"
        );
    }
    assert!(registry_of([linked()]).is_ok());
}

#[test]
fn a_driver_is_installed_explicitly_where_nothing_is_linked() {
    let mut registry = Registry::default();
    assert!(registry.find(DriverKind::Iam, "dynamic").is_err());
    let dynamic = Registration {
        driver: "dynamic",
        package: "libdynamic.so",
        ..linked()
    };
    registry.install(dynamic).unwrap();
    assert_eq!(
        registry.find(DriverKind::Iam, "dynamic").ok().unwrap().package,
        "libdynamic.so"
    );
}

#[test]
fn a_driver_with_open_settings_is_refused_with_the_place_in_its_schema() {
    #[derive(JsonSchema)]
    #[schemars(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Outer {
        inner: Open,
    }
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Open {
        name: String,
    }
    let open = Registration {
        schema: || schema_for!(Outer),
        ..linked()
    };
    let refused = registry_of([open]).err().unwrap();
    assert!(
        matches!(&refused, RegistryError::OpenSettings { pointer, .. } if pointer == "/$defs/Open"),
        "{refused}"
    );
    assert!(
        refused.to_string().starts_with("iam driver \"closed\" of occ-core"),
        "{refused}"
    );
}

fn refused(settings: Value) -> (String, String) {
    match (linked().build)("mine", settings, &host()) {
        Err(BuildError::Setting { path, expected }) => (path, expected),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn a_refused_setting_is_named_by_a_json_pointer_and_what_is_accepted() {
    for (settings, path, expected) in [
        (
            json!({ "port": 65_536 }),
            "/port",
            "expected an integer from 0 to 65535",
        ),
        (json!({ "on": "yes" }), "/on", "expected a boolean"),
        (json!({ "mode": "slow" }), "/mode", "expected `quick` or `careful`"),
        (
            json!({ "pools": [{ "size": 1 }, { "size": -1 }] }),
            "/pools/1/size",
            "expected an integer from 0 to 255",
        ),
        (json!({ "pools": [{}] }), "/pools/0", "missing setting `size`"),
        (
            json!({ "pools": [{ "size": 1, "sise": 2 }] }),
            "/pools/0/sise",
            "unknown setting; accepted: `size`",
        ),
        (json!({ "pools": {} }), "/pools", "expected a list"),
        (
            json!({ "labels": { "a/b~c": "x" } }),
            "/labels/a~1b~0c",
            "expected an integer from 0 to 255",
        ),
        (json!({ "colour": "blue" }), "/colour", "the value is not accepted"),
        (json!("text"), "", "expected a mapping"),
    ] {
        assert_eq!(refused(settings), (path.to_owned(), expected.to_owned()));
    }
}

proptest! {
    #[test]
    fn no_refusal_repeats_the_value(before in "\\PC{0,30}", after in "\\PC{0,30}", tricky in any::<bool>()) {
        let tail = if tricky { "\", expected u16" } else { "" };
        let value = format!("{before}CANARY{after}{tail}");
        for settings in [
            json!({ "port": value }),
            json!({ "on": value }),
            json!({ "ratio": value }),
            json!({ "mode": value }),
            json!({ "pools": value }),
            json!({ "pools": [value] }),
            json!({ "pools": [{ "size": value }] }),
            json!({ "labels": { "a": value } }),
            json!({ "place": value }),
            json!({ "place": { "kind": value } }),
            json!({ "place": { "kind": "there", "distance": value } }),
            json!({ "colour": value }),
            json!(value),
        ] {
            let (path, expected) = refused(settings);
            prop_assert!(!path.contains("CANARY") && !expected.contains("CANARY"), "{path}: {expected}");
        }
    }
}
