//! Where resources are in the API.

use occ_core::id::{AgentId, NamespaceId};

pub(crate) fn namespace(namespace: NamespaceId) -> String {
    format!("/namespaces/{namespace}")
}

pub(crate) fn agents(namespace: NamespaceId) -> String {
    format!("/namespaces/{namespace}/agents")
}

pub(crate) fn agent(namespace: NamespaceId, agent: AgentId) -> String {
    format!("/namespaces/{namespace}/agents/{agent}")
}
