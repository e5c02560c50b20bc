//! A Configuration Driver over the operation's records, with one flaw or none.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use occ_conformance::{
    Case,
    configuration::{Subject, suite},
};
use occ_core::{
    driver::{
        CONTRACT_VERSION, ConfigurationDriver, DriverIdentity, DriverKind, EffectError, EffectResult, Fault, FaultKind,
        OperationContext,
    },
    id::{ConfigurationId, NamespaceId},
    resource::Document,
};
use serde_json::{Value, json};
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    IdentityPerInstance,
    LosesPrecision,
    ForgetsOnRestart,
    OneDocumentForAll,
    IgnoresNamespace,
    MissingIsEmpty,
    SecondDeletionFails,
    LeavesTombstones,
    StartsAtZero,
    RepeatedUpdateFails,
    CreateReplaces,
    IgnoresGeneration,
    WritesAtOnce,
    UpdateMakesOne,
    SeesCommittedOnly,
}

struct Model {
    flaw: Flaw,
    identity: DriverIdentity,
    made_here: Mutex<bool>,
    /// What is written past the operation's records.
    aside: Mutex<Option<Value>>,
}

fn fault(kind: FaultKind) -> EffectError {
    Fault::new("keep a document", kind).into()
}

struct Found {
    generation: u64,
    document: Document,
    version: u64,
    gone: bool,
}

impl Model {
    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn key(&self, id: ConfigurationId) -> String {
        if self.is(Flaw::OneDocumentForAll) {
            "one".to_owned()
        } else {
            id.to_string()
        }
    }

    async fn find(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> EffectResult<Option<Found>> {
        if self.is(Flaw::ForgetsOnRestart) && !*self.made_here.lock().expect("no panic") {
            return Ok(None);
        }
        let Some(entry) = cx.state().get("configuration", &self.key(id)).await? else {
            return Ok(None);
        };
        let stored: Value = serde_json::from_slice(&entry.value).map_err(|_| fault(FaultKind::Corrupt))?;
        if stored["namespace"] != json!(namespace) && !self.is(Flaw::IgnoresNamespace) {
            return Err(EffectError::Ownership);
        }
        Ok(Some(Found {
            generation: stored["generation"].as_u64().expect("a number"),
            document: stored["document"].as_object().expect("an object").clone(),
            version: entry.version,
            gone: stored["gone"] == json!(true),
        }))
    }

    fn put(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
        version: Option<u64>,
        generation: u64,
        document: &Document,
    ) -> EffectResult<()> {
        *self.made_here.lock().expect("no panic") = true;
        let mut document = json!(document);
        if self.is(Flaw::LosesPrecision) {
            round(&mut document);
        }
        let stored = json!({ "namespace": namespace, "generation": generation, "document": document });
        cx.state()
            .put("configuration", &self.key(id), version, stored.to_string().into_bytes())
    }
}

/// Numbers as a 32-bit float keeps them.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64() {
                #[allow(clippy::cast_possible_truncation, reason = "it is the flaw")]
                let short = float as f32;
                *value = json!(short);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(round),
        Value::Object(object) => object.values_mut().for_each(round),
        _ => {}
    }
}

#[async_trait]
impl ConfigurationDriver for Model {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    async fn create(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
        document: &Document,
    ) -> EffectResult<()> {
        let first = u64::from(!self.is(Flaw::StartsAtZero));
        match self.find(cx, namespace, id).await? {
            None => self.put(cx, namespace, id, None, first, document),
            Some(found) if self.is(Flaw::CreateReplaces) => {
                self.put(cx, namespace, id, Some(found.version), first, document)
            }
            Some(found) if found.generation == first && found.document == *document => Ok(()),
            Some(_) => Err(fault(FaultKind::Conflict)),
        }
    }

    async fn read(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> EffectResult<Option<(u64, Document)>> {
        if self.is(Flaw::SeesCommittedOnly) {
            // What is staged is put back, so that only what is committed is seen.
            let staged = cx.state().take_staged();
            let found = self.find(cx, namespace, id).await?;
            for write in staged {
                if let Some(value) = write.value {
                    cx.state().put(&write.driver, &write.key, write.expected, value)?;
                }
            }
            return Ok(found.map(|found| (found.generation, found.document)));
        }
        if let Some(aside) = self.aside.lock().expect("no panic").clone() {
            return Ok(Some((2, aside.as_object().expect("an object").clone())));
        }
        match self.find(cx, namespace, id).await? {
            Some(found) if found.gone => Ok(None),
            Some(found) => Ok(Some((found.generation, found.document))),
            None if self.is(Flaw::MissingIsEmpty) => Ok(Some((1, Document::new()))),
            None => Ok(None),
        }
    }

    async fn update(
        &self,
        cx: &OperationContext,
        namespace: NamespaceId,
        id: ConfigurationId,
        generation: u64,
        document: &Document,
    ) -> EffectResult<()> {
        let Some(found) = self.find(cx, namespace, id).await? else {
            if self.is(Flaw::UpdateMakesOne) {
                return self.put(cx, namespace, id, None, 1, document);
            }
            return Err(fault(FaultKind::Missing));
        };
        if self.is(Flaw::WritesAtOnce) {
            *self.aside.lock().expect("no panic") = Some(json!(document));
            return Ok(());
        }
        let next = generation.checked_add(1).ok_or_else(|| fault(FaultKind::Conflict))?;
        let repeated = found.generation == next && found.document == *document;
        if repeated && !self.is(Flaw::RepeatedUpdateFails) {
            return Ok(());
        }
        if found.generation == generation || self.is(Flaw::IgnoresGeneration) {
            self.put(cx, namespace, id, Some(found.version), found.generation + 1, document)
        } else {
            Err(fault(FaultKind::Conflict))
        }
    }

    async fn delete(&self, cx: &OperationContext, namespace: NamespaceId, id: ConfigurationId) -> EffectResult<()> {
        match self.find(cx, namespace, id).await? {
            Some(found) if self.is(Flaw::LeavesTombstones) => {
                let stored = json!({ "namespace": namespace, "generation": 9, "document": {}, "gone": true });
                cx.state().put(
                    "configuration",
                    &self.key(id),
                    Some(found.version),
                    stored.to_string().into_bytes(),
                )
            }
            Some(found) => cx.state().delete("configuration", &self.key(id), found.version),
            None if self.is(Flaw::SecondDeletionFails) => Err(fault(FaultKind::Missing)),
            None => Ok(()),
        }
    }
}

struct Place(Flaw);

impl Subject for Place {
    fn driver(&self) -> Arc<dyn ConfigurationDriver> {
        let id = match self.0 {
            Flaw::IdentityPerInstance => Uuid::new_v4().to_string(),
            _ => "model".to_owned(),
        };
        Arc::new(Model {
            flaw: self.0,
            identity: DriverIdentity {
                kind: DriverKind::Configuration,
                id,
                implementation: "conformance/model".to_owned(),
                contract: CONTRACT_VERSION,
            },
            made_here: Mutex::default(),
            aside: Mutex::default(),
        })
    }
}

fn cases(flaw: Flaw) -> Vec<Case> {
    suite(move || Place(flaw))
}

#[test]
fn a_configuration_driver_that_keeps_its_contract_keeps_every_rule() {
    super::keeps_every_rule(cases(Flaw::None));
}

#[test]
fn every_rule_for_configuration_drivers_has_teeth() {
    let table = [
        (Flaw::IdentityPerInstance, "it_says_who_it_is"),
        (Flaw::LosesPrecision, "a_document_reads_back_as_it_was_written"),
        (Flaw::ForgetsOnRestart, "a_new_driver_reads_what_an_old_one_stored"),
        (Flaw::OneDocumentForAll, "documents_keep_apart"),
        (
            Flaw::IgnoresNamespace,
            "another_namespace_neither_reads_nor_changes_a_document",
        ),
        (Flaw::MissingIsEmpty, "what_does_not_exist_is_none"),
        (Flaw::SecondDeletionFails, "a_repeated_deletion_is_well"),
        (Flaw::LeavesTombstones, "a_deleted_document_may_be_created_anew"),
        (Flaw::StartsAtZero, "generations_start_at_one_and_grow_by_one"),
        (Flaw::RepeatedUpdateFails, "a_repeated_call_reports_that_it_is_done"),
        (Flaw::CreateReplaces, "a_create_does_not_replace_another_document"),
        (Flaw::IgnoresGeneration, "a_stale_generation_changes_nothing"),
        (Flaw::WritesAtOnce, "of_two_updates_of_one_generation_one_happens"),
        (Flaw::UpdateMakesOne, "an_update_makes_nothing"),
        (Flaw::SeesCommittedOnly, "an_operation_sees_its_own_write"),
    ];
    super::every_rule_has_teeth(&table, cases);
}
