//! One document, and the operations on it.

use std::sync::Arc;

use occ_core::{
    driver::{ConfigurationDriver, EffectResult, MemoryState},
    id::{ConfigurationId, NamespaceId},
    resource::Document,
};
use serde_json::json;

use super::Subject;
use crate::records::{commit, context, watched};

pub(super) struct Scene {
    pub(super) subject: Box<dyn Subject>,
    pub(super) driver: Arc<dyn ConfigurationDriver>,
    pub(super) records: MemoryState,
    pub(super) namespace: NamespaceId,
    pub(super) id: ConfigurationId,
}

/// A document that holds this text.
pub(super) fn document(text: &str) -> Document {
    [("text".to_owned(), json!(text))].into_iter().collect()
}

impl Scene {
    pub(super) fn new(subject: Box<dyn Subject>) -> Self {
        Self {
            driver: subject.driver(),
            subject,
            records: MemoryState::default(),
            namespace: NamespaceId::random(),
            id: ConfigurationId::random(),
        }
    }

    /// The same place with another document's place in mind.
    pub(super) fn elsewhere(&self, namespace: NamespaceId, id: ConfigurationId) -> Self {
        Self {
            subject: Box::new(Same(Arc::clone(&self.driver))),
            driver: Arc::clone(&self.driver),
            records: self.records.clone(),
            namespace,
            id,
        }
    }

    pub(super) async fn create(&self, document: &Document) -> EffectResult<()> {
        let cx = context(&self.records);
        let done = self.driver.create(&cx, self.namespace, self.id, document).await;
        commit(&self.records, &cx, done)
    }

    pub(super) async fn update(&self, generation: u64, document: &Document) -> EffectResult<()> {
        let cx = context(&self.records);
        let done = self
            .driver
            .update(&cx, self.namespace, self.id, generation, document)
            .await;
        commit(&self.records, &cx, done)
    }

    pub(super) async fn delete(&self) -> EffectResult<()> {
        let cx = context(&self.records);
        let done = self.driver.delete(&cx, self.namespace, self.id).await;
        commit(&self.records, &cx, done)
    }

    pub(super) async fn read(&self) -> EffectResult<Option<(u64, Document)>> {
        let cx = context(&self.records);
        self.driver.read(&cx, self.namespace, self.id).await
    }

    /// The document that is stored, and its generation.
    pub(super) async fn stored(&self) -> Option<(u64, Document)> {
        self.read().await.expect("the document can be read")
    }
}

/// An error, in which nothing of a document may be.
pub(super) fn failed<T>(what: &str, result: EffectResult<T>) {
    let Err(error) = result.map(drop) else {
        panic!("{what} must fail")
    };
    watched::<()>(what, Err(error)).expect_err("it is the error");
}

struct Same(Arc<dyn ConfigurationDriver>);

impl Subject for Same {
    fn driver(&self) -> Arc<dyn ConfigurationDriver> {
        Arc::clone(&self.0)
    }
}
