//! What callers ask: of one thing, of all of a kind, and with a reference to another thing.

use occ_core::driver::Action::{self, Administer, Create, Delete, Deploy, Operate, Read, Update};
use serde_json::{Value, json};

use super::model::Kind;

/// A permission on the thing that is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    pub action: Action,
    pub kind: Kind,
}

const fn need(action: Action, kind: Kind) -> Need {
    Need { action, kind }
}

/// A request about one thing, `{id}`; `{agent}` is the Agent of the Namespace.
pub struct Call {
    pub method: &'static str,
    pub path: &'static str,
    pub kind: Kind,
    /// What it needs first. A need of another kind than its own is one on the Namespace's Agent.
    pub needs: &'static [Need],
    /// Whether it needs nothing else.
    pub only: bool,
    pub body: Option<fn(&Own) -> Value>,
}

/// Ids of the Namespace that is asked.
pub struct Own {
    pub namespace: String,
    pub configuration: String,
    pub secret: String,
}

macro_rules! call {
    ($method:literal $path:literal, $kind:ident, $needs:expr, $only:literal $(, $body:expr)?) => {
        Call {
            method: $method,
            path: $path,
            kind: Kind::$kind,
            needs: $needs,
            only: $only,
            body: call!(@body $($body)?),
        }
    };
    (@body) => { None };
    (@body $body:expr) => { Some($body) };
}

pub const CALLS: &[Call] = &[
    call!("GET" "/agents/{id}", Agent, &[need(Read, Kind::Agent)], true),
    call!("PATCH" "/agents/{id}", Agent, &[need(Update, Kind::Agent)], false,
        |own| json!({ "configurationId": own.configuration })),
    call!("DELETE" "/agents/{id}", Agent, &[need(Delete, Kind::Agent)], true),
    call!("POST" "/agents/{id}/deploy", Agent, &[need(Deploy, Kind::Agent)], false),
    call!("POST" "/agents/{id}/stop", Agent, &[need(Operate, Kind::Agent)], true),
    call!("GET" "/agents/{id}/gateway", Agent, &[need(Administer, Kind::Agent)], true),
    call!("GET" "/agents/{id}/workspace/files/SOUL.md", Agent, &[need(Read, Kind::Agent)], true),
    call!("PUT" "/agents/{id}/workspace/files/SOUL.md", Agent, &[need(Operate, Kind::Agent)], true,
        |_| json!({ "content": "words" })),
    call!("GET" "/agents/{id}/runtime-credentials", Agent, &[need(Read, Kind::Agent)], true),
    call!("POST" "/agents/{id}/runtime-credentials", Agent, &[need(Operate, Kind::Agent), need(Read, Kind::Agent)], true),
    call!("GET" "/agents/{id}/revisions", Agent, &[need(Read, Kind::Agent)], true),
    call!("GET" "/configurations/{id}", Configuration, &[need(Read, Kind::Configuration)], true),
    call!("PATCH" "/configurations/{id}", Configuration, &[need(Update, Kind::Configuration)], true,
        |_| json!({ "values": {} })),
    call!("DELETE" "/configurations/{id}", Configuration, &[need(Delete, Kind::Configuration)], true),
    call!("GET" "/secrets/{id}", Secret, &[need(Read, Kind::Secret)], true),
    call!("PATCH" "/secrets/{id}", Secret, &[need(Update, Kind::Secret)], true, |_| json!({ "value": "sk-changed-0123456789" })),
    call!("DELETE" "/secrets/{id}", Secret, &[need(Delete, Kind::Secret)], true),
    call!("GET" "/service-accounts/{id}", Account, &[need(Read, Kind::Account)], true),
    call!("PATCH" "/service-accounts/{id}/credential", Account, &[need(Update, Kind::Account)], false,
        |own| json!({ "kind": "api_key", "source": source(own, &own.secret) })),
    call!("POST" "/service-accounts/{id}/credentials", Account, &[need(Update, Kind::Account)], true, |_| json!({})),
    call!("DELETE" "/service-accounts/{id}", Account, &[need(Delete, Kind::Account)], true),
    call!("GET" "/presets/{id}", Preset, &[need(Read, Kind::Preset)], true),
    call!("PATCH" "/presets/{id}", Preset, &[need(Update, Kind::Preset)], true, |_| json!({ "name": "renamed" })),
    call!("DELETE" "/presets/{id}", Preset, &[need(Delete, Kind::Preset)], true),
    call!("GET" "/credential-sources/{id}", Source, &[need(Read, Kind::Source)], true),
    call!("PATCH" "/credential-sources/{id}", Source, &[need(Update, Kind::Source)], false, |_| json!({})),
    call!("DELETE" "/credential-sources/{id}", Source, &[need(Delete, Kind::Source)], true),
    call!("POST" "/agents/{agent}/credential-sources/{id}/withdraw", Source, &[need(Operate, Kind::Agent)], true),
    call!("GET" "/agents/{agent}/credential-sources/{id}/withdrawal", Source, &[need(Read, Kind::Agent)], true),
    call!("GET" "/agents/{agent}/revisions/{id}", Revision, &[need(Read, Kind::Revision)], true),
    call!("GET" "/agents/{agent}/deployments/{id}", Revision, &[need(Read, Kind::Revision)], true),
    call!("POST" "/agents/{agent}/deployments/{id}/diagnostics", Revision,
        &[need(Operate, Kind::Agent), need(Read, Kind::Agent), need(Read, Kind::Revision)], true),
    call!("POST" "/agents/{agent}/revisions/{id}/redeploy", Revision,
        &[need(Deploy, Kind::Agent), need(Read, Kind::Revision)], false),
];

/// All of a kind.
pub const COLLECTIONS: &[(&str, Kind)] = &[
    ("/agents", Kind::Agent),
    ("/configurations", Kind::Configuration),
    ("/secrets", Kind::Secret),
    ("/service-accounts", Kind::Account),
    ("/presets", Kind::Preset),
    ("/credential-sources", Kind::Source),
];

/// A request that names another thing in its body.
pub struct Reference {
    pub method: &'static str,
    pub path: &'static str,
    /// What is named.
    pub kind: Kind,
    /// What the caller needs of the thing, to be told anything of it.
    pub action: Action,
    /// What it needs to ask at all.
    pub asks: (Action, Kind),
    pub body: fn(&Own, &str) -> Value,
}

fn source(own: &Own, secret: &str) -> Value {
    json!({ "kind": "secret", "namespaceId": own.namespace, "id": secret })
}

pub const REFERENCES: &[Reference] = &[
    Reference {
        method: "POST",
        path: "/agents",
        kind: Kind::Configuration,
        action: Read,
        asks: (Create, Kind::Agent),
        body: |_, id| json!({ "name": "named", "configurationId": id }),
    },
    Reference {
        method: "POST",
        path: "/agents",
        kind: Kind::Secret,
        action: Operate,
        asks: (Create, Kind::Agent),
        body: |own, id| {
            let auth = json!({ "method": "api_key", "source": source(own, id) });
            json!({ "name": "named", "configurationId": own.configuration, "harnessAuth": auth })
        },
    },
    Reference {
        method: "PATCH",
        path: "/agents/{agent}",
        kind: Kind::Secret,
        action: Operate,
        asks: (Update, Kind::Agent),
        body: |own, id| {
            let auth = json!({ "method": "api_key", "source": source(own, id) });
            json!({ "configurationId": own.configuration, "harnessAuth": auth })
        },
    },
    Reference {
        method: "POST",
        path: "/configurations",
        kind: Kind::Secret,
        action: Operate,
        asks: (Create, Kind::Configuration),
        body: |own, id| {
            let binding = json!({ "SLACK_BOT_TOKEN": { "source": source(own, id) } });
            json!({ "kind": "agent", "values": {}, "secretBindings": binding })
        },
    },
    Reference {
        method: "POST",
        path: "/credential-sources",
        kind: Kind::Secret,
        action: Operate,
        asks: (Create, Kind::Source),
        body: |own, id| json!({ "name": "named", "type": "openai", "secrets": { "api_key": source(own, id) } }),
    },
    Reference {
        method: "POST",
        path: "/agents",
        kind: Kind::Source,
        action: Operate,
        asks: (Create, Kind::Agent),
        body: |own, id| {
            let auth = json!({ "method": "credential_source", "sourceId": id });
            json!({ "name": "named", "configurationId": own.configuration, "harnessAuth": auth })
        },
    },
    Reference {
        method: "PATCH",
        path: "/agents/{agent}",
        kind: Kind::Source,
        action: Operate,
        asks: (Update, Kind::Agent),
        body: |own, id| json!({ "configurationId": own.configuration, "credentialSources": [{ "sourceId": id }] }),
    },
    Reference {
        method: "POST",
        path: "/service-accounts",
        kind: Kind::Secret,
        action: Operate,
        asks: (Create, Kind::Account),
        body: |own, id| json!({ "name": "named", "credential": { "kind": "api_key", "source": source(own, id) } }),
    },
    Reference {
        method: "POST",
        path: "/agents",
        kind: Kind::Account,
        action: Read,
        asks: (Create, Kind::Agent),
        body: |own, id| {
            let account = json!({ "kind": "service_account", "namespaceId": own.namespace, "id": id });
            let auth = json!({ "method": "codex_pat", "source": account });
            json!({ "name": "named", "configurationId": own.configuration, "harnessAuth": auth })
        },
    },
];
