//! What every wrapper of a store passes on.

/// Hands the signatures of the store's methods that change no work to the macro `then`, which writes them; `extra` are those of the
/// others that it writes alike.
#[macro_export]
macro_rules! store_reads {
    ($then:ident $($extra:tt)*) => {
        $then! {
            fn now(&self) -> ::occ_core::store::StoreResult<::occ_core::time::Timestamp>;
            fn installation(&self) -> ::occ_core::store::StoreResult<Option<::occ_core::resource::Installation>>;
            fn namespace(&self, id: ::occ_core::id::NamespaceId) -> ::occ_core::store::StoreResult<Option<::occ_core::store::NamespaceRow>>;
            fn namespaces(&self, slice: &::occ_core::store::Slice) -> ::occ_core::store::StoreResult<Vec<::occ_core::store::NamespaceRow>>;
            fn namespace_contents(&self, id: ::occ_core::id::NamespaceId, limit: u32) -> ::occ_core::store::StoreResult<Vec<(&'static str, String)>>;
            fn configuration(&self, namespace: ::occ_core::id::NamespaceId, id: ::occ_core::id::ConfigurationId) -> ::occ_core::store::StoreResult<Option<::occ_core::store::ConfigurationRow>>;
            fn configurations(&self, namespace: ::occ_core::id::NamespaceId, slice: &::occ_core::store::Slice) -> ::occ_core::store::StoreResult<Vec<::occ_core::store::ConfigurationRow>>;
            fn secret(&self, namespace: ::occ_core::id::NamespaceId, id: ::occ_core::id::SecretId) -> ::occ_core::store::StoreResult<Option<::occ_core::resource::Secret>>;
            fn secrets(&self, namespace: ::occ_core::id::NamespaceId, slice: &::occ_core::store::Slice) -> ::occ_core::store::StoreResult<Vec<::occ_core::resource::Secret>>;
            fn secret_consumers(&self, namespace: ::occ_core::id::NamespaceId, id: ::occ_core::id::SecretId) -> ::occ_core::store::StoreResult<::occ_core::store::Consumers>;
            fn configuration_consumers(&self, namespace: ::occ_core::id::NamespaceId, id: ::occ_core::id::ConfigurationId) -> ::occ_core::store::StoreResult<Vec<::occ_core::id::AgentId>>;
            fn agent(&self, namespace: ::occ_core::id::NamespaceId, id: ::occ_core::id::AgentId) -> ::occ_core::store::StoreResult<Option<::occ_core::store::AgentRow>>;
            fn agents(&self, namespace: ::occ_core::id::NamespaceId) -> ::occ_core::store::StoreResult<Vec<::occ_core::store::AgentRow>>;
            fn revision(&self, namespace: ::occ_core::id::NamespaceId, agent: ::occ_core::id::AgentId, id: ::occ_core::id::RevisionId) -> ::occ_core::store::StoreResult<Option<::occ_core::store::RevisionRow>>;
            fn revisions(&self, namespace: ::occ_core::id::NamespaceId, agent: ::occ_core::id::AgentId) -> ::occ_core::store::StoreResult<Vec<::occ_core::store::RevisionRow>>;
            fn deploy_read(&self, query: &::occ_core::store::DeployQuery) -> ::occ_core::store::StoreResult<::occ_core::store::DeployRead>;
            fn deployment(&self, namespace: ::occ_core::id::NamespaceId, agent: ::occ_core::id::AgentId, revision: ::occ_core::id::RevisionId) -> ::occ_core::store::StoreResult<Option<::occ_core::store::DeploymentRow>>;
            fn work_state(&self, key: &str) -> ::occ_core::store::StoreResult<Option<::occ_core::store::WorkState>>;
            fn service_key(&self, id: ::occ_core::id::ServiceKeyId) -> ::occ_core::store::StoreResult<Option<::occ_core::store::ServiceKeyRow>>;
            fn account(&self, name: ::occ_core::store::AccountName<'_>) -> ::occ_core::store::StoreResult<Option<::occ_core::store::AccountRow>>;
            fn accounts(&self, slice: &::occ_core::store::Slice) -> ::occ_core::store::StoreResult<Vec<::occ_core::store::AccountRow>>;
            fn session(&self, id: ::occ_core::id::SessionId) -> ::occ_core::store::StoreResult<Option<::occ_core::store::SessionRow>>;
            fn agent_token_key(&self, id: ::occ_core::id::AgentTokenKeyId) -> ::occ_core::store::StoreResult<Option<::occ_core::store::AgentTokenKeyRow>>;
            fn roles(&self, scope: Option<::occ_core::id::NamespaceId>) -> ::occ_core::store::StoreResult<Vec<::occ_core::iam::Role>>;
            fn role(&self, scope: Option<::occ_core::id::NamespaceId>, id: &str) -> ::occ_core::store::StoreResult<Option<::occ_core::iam::Role>>;
            fn access_bindings(&self, scope: Option<::occ_core::id::NamespaceId>, of: ::occ_core::store::BindingsOf<'_>) -> ::occ_core::store::StoreResult<Vec<::occ_core::iam::AccessBinding>>;
            fn service_principals(&self, namespace: ::occ_core::id::NamespaceId) -> ::occ_core::store::StoreResult<Vec<::occ_core::driver::Identity>>;
            fn revision_owner(&self, namespace: ::occ_core::id::NamespaceId, id: ::occ_core::id::RevisionId) -> ::occ_core::store::StoreResult<Option<::occ_core::id::AgentId>>;
            fn owned(&self, namespace: ::occ_core::id::NamespaceId, kind: ::occ_core::resource::OwnedKind, id: &str) -> ::occ_core::store::StoreResult<Option<::occ_core::store::OwnedRow>>;
            fn all_owned(&self, namespace: ::occ_core::id::NamespaceId, kind: ::occ_core::resource::OwnedKind, slice: &::occ_core::store::Slice) -> ::occ_core::store::StoreResult<Vec<::occ_core::store::OwnedRow>>;
            fn first_answer(&self, principal: &::occ_core::resource::PrincipalId, key: &str) -> ::occ_core::store::StoreResult<Option<::occ_core::store::FirstAnswer>>;
            fn audit_records(&self, query: &::occ_core::audit::chain::AuditQuery) -> ::occ_core::store::StoreResult<Vec<::occ_core::audit::chain::AuditRecord>>;
            fn sealed_audit(&self, after: u64, limit: u32) -> ::occ_core::store::StoreResult<Vec<::occ_core::audit::chain::AuditRecord>>;
            fn audit_anchor(&self) -> ::occ_core::store::StoreResult<Option<::occ_core::audit::chain::Seal>>;
            fn prunable_audit(&self, older_than: ::std::time::Duration) -> ::occ_core::store::StoreResult<u64>;
            fn prune_audit(&self, older_than: ::std::time::Duration, limit: u32) -> ::occ_core::store::StoreResult<u64>;
            fn prunable_work(&self, older_than: ::std::time::Duration) -> ::occ_core::store::StoreResult<u64>;
            fn prune_work(&self, older_than: ::std::time::Duration, limit: u32) -> ::occ_core::store::StoreResult<u64>;
            fn seal_audit(&self, limit: u32) -> ::occ_core::store::StoreResult<u32>;
            fn selected(&self) -> ::occ_core::store::StoreResult<Vec<::occ_core::work::NewWork>>;
            fn next_due(&self) -> ::occ_core::store::StoreResult<Option<::std::time::Duration>>;
            fn queue_depth(&self) -> ::occ_core::store::StoreResult<::occ_core::store::QueueDepth>;
            $($extra)*
        }
    };
}
