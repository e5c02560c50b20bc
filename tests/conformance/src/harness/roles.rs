//! Which component receives which secret (spec/contracts 9.6 and 10.5).

use std::collections::BTreeSet;

use occ_core::{
    plan::{Component, EnvValue, Role, SecretSlot},
    resource::HarnessAuthMethod,
};

use super::{Subject, sample::plans};

fn secret(value: &EnvValue) -> Option<&SecretSlot> {
    match value {
        EnvValue::Secret(slot) => Some(slot),
        EnvValue::Text(_) => None,
    }
}

/// The secrets of the component itself; those of its check are a part of them.
fn slots(component: &Component) -> BTreeSet<&SecretSlot> {
    let own: BTreeSet<_> = component.environment.values().filter_map(secret).collect();
    let check = component
        .probe
        .iter()
        .flat_map(|probe| probe.environment.values())
        .filter_map(secret);
    for slot in check {
        assert!(
            own.contains(slot),
            "{}: its check receives a secret that it does not",
            component.name
        );
    }
    let setup = component
        .workspace
        .iter()
        .flat_map(|workspace| workspace.environment.values());
    assert_eq!(
        setup.filter_map(secret).count(),
        0,
        "{}: setting a workspace up needs no secret",
        component.name
    );
    own
}

pub(super) fn credentials_follow_the_role(subject: &dyn Subject) {
    for (sample, planned) in plans(subject) {
        let delivered = match sample.method() {
            HarnessAuthMethod::ApiKey | HarnessAuthMethod::CodexPat => true,
            HarnessAuthMethod::CredentialSource | HarnessAuthMethod::Runtime => false,
        };
        let mut count = 0;
        for component in &planned.components {
            let receives = slots(component).contains(&SecretSlot::HarnessCredential);
            count += usize::from(receives);
            if component.role == Role::Gateway {
                assert!(!receives, "a dedicated gateway never receives the model's credential");
            }
        }
        assert_eq!(count > 0, delivered, "{:?}", sample.method());
    }
}

pub(super) fn bound_secrets_reach_the_gateway_alone(subject: &dyn Subject) {
    for (sample, planned) in plans(subject) {
        for name in &sample.bindings {
            let slot = SecretSlot::Binding(name.clone());
            for component in &planned.components {
                let receives = slots(component).contains(&slot);
                assert_eq!(receives, component.role != Role::Harness, "{}: {name}", component.name);
                if receives {
                    let value = component.environment.get(name.as_str());
                    assert_eq!(
                        value,
                        Some(&EnvValue::Secret(slot.clone())),
                        "it has the name that it is bound to"
                    );
                }
            }
        }
    }
}
