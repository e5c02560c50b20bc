//! A Secret Driver over the operation's records, with one flaw or none.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use occ_conformance::{
    Case,
    secret::{Damage, RecordDamage, Subject, suite},
};
use occ_core::{
    driver::{
        CONTRACT_VERSION, CompareAndSwap, DriverIdentity, DriverKind, EffectError, EffectResult, Fault, FaultKind,
        OperationContext, SecretDriver, SecretIdentity,
    },
    resource::BackendRef,
    secret_value::SecretValue,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    IdentityPerInstance,
    SecondLookFails,
    KeepsTextOnly,
    ShortensValues,
    ForgetsOnRestart,
    CreatesTwice,
    CreateOverwrites,
    UpdateMakesAnother,
    ResolvesToNothing,
    OneObjectForAll,
    SecondDeletionFails,
    UpdateMakesOne,
    NameIsIdentity,
    IgnoresKey,
    IgnoresNamespace,
    IgnoresSecret,
    IgnoresInstance,
    SwapsPrefixes,
    SwapsBlindly,
    SwapIgnoresIdentity,
    GuessesDamaged,
    KeepsClear,
    ErrorHoldsValue,
}

#[derive(Clone, Serialize, Deserialize)]
struct Record {
    driver: String,
    namespace: String,
    secret: String,
    uid: String,
    /// Each byte turned over, and a sum: a stand-in for a seal.
    value: Vec<u8>,
    sum: u64,
}

fn sum(record: &Record) -> u64 {
    let bytes = [&record.driver, &record.namespace, &record.secret, &record.uid];
    let names = bytes.iter().flat_map(|text| text.bytes());
    names.chain(record.value.iter().copied()).fold(7, |sum, byte| {
        u64::from(byte)
            .wrapping_add(sum)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(5)
    })
}

struct Model {
    flaw: Flaw,
    identity: DriverIdentity,
    looks: Mutex<u32>,
    made_here: Mutex<bool>,
}

fn fault(operation: &'static str, kind: FaultKind) -> EffectError {
    Fault::new(operation, kind).into()
}

impl Model {
    fn new(flaw: Flaw, id: &str) -> Self {
        let id = match flaw {
            Flaw::IdentityPerInstance => Uuid::new_v4().to_string(),
            _ => id.to_owned(),
        };
        Self {
            flaw,
            identity: DriverIdentity {
                kind: DriverKind::Secret,
                id,
                implementation: "conformance/model".to_owned(),
                contract: CONTRACT_VERSION,
            },
            looks: Mutex::default(),
            made_here: Mutex::default(),
        }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn key(&self, at: &str) -> String {
        if self.is(Flaw::OneObjectForAll) {
            "one".to_owned()
        } else {
            at.to_owned()
        }
    }

    async fn find(&self, cx: &OperationContext, name: &str) -> EffectResult<Option<(Record, u64)>> {
        let Some(entry) = cx.state().get("secret", &self.key(name)).await? else {
            return Ok(None);
        };
        let record: Result<Record, _> = serde_json::from_slice(&entry.value);
        let record = match record {
            Ok(record) if record.sum == sum(&record) || self.is(Flaw::GuessesDamaged) => record,
            _ => return Err(fault("read a record", FaultKind::Corrupt)),
        };
        Ok(Some((record, entry.version)))
    }

    /// The record, when everything that says whose it is is as wanted.
    async fn own(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
    ) -> EffectResult<(Record, u64)> {
        let Some((record, version)) = self.find(cx, &at.name).await? else {
            return Err(fault("find a record", FaultKind::Missing));
        };
        let right = [
            record.driver == self.identity.id || self.is(Flaw::IgnoresInstance),
            record.namespace == secret.namespace_id.to_string() || self.is(Flaw::IgnoresNamespace),
            record.secret == secret.id.to_string() || self.is(Flaw::IgnoresSecret),
            record.uid == at.uid || self.is(Flaw::NameIsIdentity),
            at.key == "value" || self.is(Flaw::IgnoresKey),
            at.namespace_name == "model",
        ];
        if right.contains(&false) {
            if self.is(Flaw::ErrorHoldsValue) {
                let text = String::from_utf8(turned(&record.value)).unwrap_or_default();
                return Err(fault(String::leak(text), FaultKind::Denied));
            }
            return Err(EffectError::Ownership);
        }
        Ok((record, version))
    }

    fn put(
        &self,
        cx: &OperationContext,
        name: &str,
        version: Option<u64>,
        mut record: Record,
        value: &SecretValue,
    ) -> EffectResult<()> {
        let mut bytes = value.expose().to_vec();
        if self.is(Flaw::KeepsTextOnly) {
            bytes = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
        }
        if self.is(Flaw::ShortensValues) {
            bytes.truncate(60_000);
        }
        record.value = turned(&bytes);
        record.sum = sum(&record);
        let mut written = serde_json::to_vec(&record).expect("JSON");
        if self.is(Flaw::KeepsClear) {
            written.extend(b" ");
            let mut clear = serde_json::to_value(&record).expect("JSON");
            clear["clear"] = String::from_utf8_lossy(&bytes).into_owned().into();
            written = serde_json::to_vec(&clear).expect("JSON");
        }
        cx.state().put("secret", &self.key(name), version, written)
    }
}

fn turned(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

fn reference(record: &Record) -> BackendRef {
    BackendRef {
        namespace_name: "model".to_owned(),
        name: record.secret.clone(),
        key: "value".to_owned(),
        uid: record.uid.clone(),
    }
}

#[async_trait]
impl SecretDriver for Model {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    async fn preflight(&self, _: &OperationContext) -> EffectResult<()> {
        let mut looks = self.looks.lock().expect("no panic");
        *looks += 1;
        if *looks > 1 && self.is(Flaw::SecondLookFails) {
            return Err(fault("look again", FaultKind::Conflict));
        }
        Ok(())
    }

    async fn create(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        value: &SecretValue,
    ) -> EffectResult<BackendRef> {
        *self.made_here.lock().expect("no panic") = true;
        let name = secret.id.to_string();
        let found = self.find(cx, &name).await?;
        let fresh = Record {
            driver: self.identity.id.clone(),
            namespace: secret.namespace_id.to_string(),
            secret: name.clone(),
            uid: Uuid::new_v4().to_string(),
            value: Vec::new(),
            sum: 0,
        };
        match found {
            None => {
                self.put(cx, &name, None, fresh.clone(), value)?;
                Ok(reference(&fresh))
            }
            Some((_, version)) if self.is(Flaw::CreatesTwice) => {
                self.put(cx, &name, Some(version), fresh.clone(), value)?;
                Ok(reference(&fresh))
            }
            Some((record, version)) if self.is(Flaw::CreateOverwrites) => {
                self.put(cx, &name, Some(version), record.clone(), value)?;
                Ok(reference(&record))
            }
            Some((record, _)) => {
                let at = reference(&record);
                self.own(cx, secret, &at).await?;
                Ok(at)
            }
        }
    }

    async fn update(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
        value: &SecretValue,
    ) -> EffectResult<()> {
        match self.own(cx, secret, at).await {
            Ok((mut record, version)) => {
                if self.is(Flaw::UpdateMakesAnother) {
                    record.uid = Uuid::new_v4().to_string();
                }
                self.put(cx, &at.name, Some(version), record, value)
            }
            Err(EffectError::Fault(_)) if self.is(Flaw::UpdateMakesOne) => {
                let record = Record {
                    driver: self.identity.id.clone(),
                    namespace: secret.namespace_id.to_string(),
                    secret: secret.id.to_string(),
                    uid: at.uid.clone(),
                    value: Vec::new(),
                    sum: 0,
                };
                self.put(cx, &at.name, None, record, value)
            }
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, cx: &OperationContext, secret: &SecretIdentity, at: &BackendRef) -> EffectResult<()> {
        if self.find(cx, &at.name).await?.is_none() && !self.is(Flaw::SecondDeletionFails) {
            return Ok(());
        }
        let (_, version) = self.own(cx, secret, at).await?;
        cx.state().delete("secret", &self.key(&at.name), version)
    }

    async fn resolve(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
    ) -> EffectResult<BackendRef> {
        let (record, _) = self.own(cx, secret, at).await?;
        let mut at = reference(&record);
        if self.is(Flaw::ResolvesToNothing) {
            at.uid.clear();
        }
        Ok(at)
    }

    async fn value(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
    ) -> EffectResult<SecretValue> {
        if self.is(Flaw::ForgetsOnRestart) && !*self.made_here.lock().expect("no panic") {
            return Err(fault("remember", FaultKind::Missing));
        }
        let (record, _) = self.own(cx, secret, at).await?;
        Ok(SecretValue::new(turned(&record.value)))
    }

    fn compare_and_swap(&self) -> Option<&dyn CompareAndSwap> {
        Some(self)
    }
}

#[async_trait]
impl CompareAndSwap for Model {
    async fn swap(
        &self,
        cx: &OperationContext,
        secret: &SecretIdentity,
        at: &BackendRef,
        expected: &SecretValue,
        value: &SecretValue,
    ) -> EffectResult<bool> {
        let (record, version) = match self.own(cx, secret, at).await {
            Err(EffectError::Ownership) if self.is(Flaw::SwapIgnoresIdentity) => self
                .find(cx, &at.name)
                .await?
                .ok_or_else(|| fault("find a record", FaultKind::Missing))?,
            other => other?,
        };
        let present = turned(&record.value);
        let same = match self.flaw {
            Flaw::SwapsPrefixes => present.starts_with(expected.expose()),
            _ => present == expected.expose(),
        };
        if same {
            // A write that names no version does not see the one that came between.
            let version = if self.is(Flaw::SwapsBlindly) {
                version + 1
            } else {
                version
            };
            self.put(cx, &at.name, Some(version), record, value)?;
        }
        Ok(same)
    }
}

struct Place(Flaw);

impl Subject for Place {
    fn driver(&self) -> Arc<dyn SecretDriver> {
        Arc::new(Model::new(self.0, "model"))
    }

    fn another(&self) -> Option<Arc<dyn SecretDriver>> {
        Some(Arc::new(Model::new(self.0, "another")))
    }

    fn damage(&self) -> Option<&dyn Damage> {
        Some(&RecordDamage)
    }
}

fn cases(flaw: Flaw) -> Vec<Case> {
    suite(move || Place(flaw))
}

#[test]
fn a_secret_driver_that_keeps_its_contract_keeps_every_rule() {
    super::keeps_every_rule(cases(Flaw::None));
}

#[test]
fn every_rule_for_secret_drivers_has_teeth() {
    let table = [
        (Flaw::IdentityPerInstance, "it_says_who_it_is"),
        (Flaw::SecondLookFails, "a_look_ahead_may_be_repeated"),
        (Flaw::KeepsTextOnly, "a_value_comes_back_to_the_last_byte"),
        (Flaw::ShortensValues, "the_longest_value_comes_back"),
        (Flaw::ForgetsOnRestart, "a_new_driver_reads_what_an_old_one_stored"),
        (Flaw::CreatesTwice, "a_repeated_create_adopts_its_own_object"),
        (
            Flaw::CreateOverwrites,
            "a_repeated_create_keeps_the_value_that_is_there",
        ),
        (
            Flaw::UpdateMakesAnother,
            "an_update_replaces_the_value_and_keeps_the_object",
        ),
        (Flaw::ResolvesToNothing, "a_reference_is_resolved_to_itself"),
        (Flaw::OneObjectForAll, "secrets_keep_apart"),
        (Flaw::SecondDeletionFails, "deletion_may_be_repeated"),
        (Flaw::UpdateMakesOne, "what_does_not_exist_is_an_error"),
        (Flaw::NameIsIdentity, "what_is_created_anew_is_another_object"),
        (Flaw::IgnoresKey, "every_part_of_a_reference_counts"),
        (Flaw::IgnoresNamespace, "another_namespace_is_refused"),
        (Flaw::IgnoresSecret, "another_secret_is_refused"),
        (Flaw::IgnoresInstance, "another_instance_neither_reads_nor_removes"),
        (
            Flaw::SwapsPrefixes,
            "a_swap_happens_only_if_the_value_is_the_expected_one",
        ),
        (Flaw::SwapsBlindly, "of_two_swaps_of_one_value_one_happens"),
        (Flaw::SwapIgnoresIdentity, "a_swap_of_another_object_is_refused"),
        (Flaw::GuessesDamaged, "a_spoilt_object_is_never_another_value"),
        (Flaw::KeepsClear, "no_value_is_in_a_reference_or_a_record"),
        (Flaw::ErrorHoldsValue, "no_error_holds_a_value"),
    ];
    super::every_rule_has_teeth(&table, cases);
}
