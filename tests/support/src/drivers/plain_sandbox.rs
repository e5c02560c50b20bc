//! A Sandbox that confines nothing and transforms documents as a test says.

use async_trait::async_trait;
use occ_core::{
    driver::{
        DriverIdentity, DriverKind, EffectResult, OperationContext, RevisionRef, SandboxDriver, SandboxFacet, Terminal,
    },
    resource::{Document, HarnessIdentity, Namespace},
};

type Transform = fn(Document) -> Result<Document, Terminal>;

/// Applies one function to every document.
#[derive(Debug)]
pub struct PlainSandbox {
    identity: DriverIdentity,
    transform: Transform,
}

impl PlainSandbox {
    /// With this transformation.
    pub fn with(transform: Transform) -> Self {
        Self {
            identity: super::identity(DriverKind::Sandbox, "sandbox-plain", "occ/plain"),
            transform,
        }
    }
}

#[async_trait]
impl SandboxDriver for PlainSandbox {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn facets(&self) -> &[SandboxFacet] {
        &[SandboxFacet::Process]
    }

    fn configure_agent(&self, document: Document, _: &HarnessIdentity) -> Result<Document, Terminal> {
        (self.transform)(document)
    }

    async fn ensure_namespace(&self, _: &OperationContext, _: &Namespace) -> EffectResult<()> {
        Ok(())
    }

    async fn cleanup(&self, _: &OperationContext, _: &Namespace, _: Option<&RevisionRef>) -> EffectResult<()> {
        Ok(())
    }
}
