//! An Agent and what it needs, made as a user makes them.

use serde_json::{Value, json};

use crate::Home;

/// The names and ids of an Agent that can be deployed.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The Agent's name, also that of its Secret.
    pub name: String,
    /// The Agent's id.
    pub agent: String,
    /// Its Configuration's id.
    pub configuration: String,
}

/// A native document that works: one provider at `base_url`, one model, chat over HTTP.
pub fn document(base_url: &str) -> Value {
    json!({
        "gateway": {
            "mode": "local",
            "auth": {
                "mode": "password",
                "password": { "source": "env", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD" },
            },
            "http": { "endpoints": { "chatCompletions": { "enabled": true } } },
        },
        "agents": {
            "defaults": {
                "model": "openai/gpt-5",
                "skipBootstrap": true,
                "models": { "openai/gpt-5": { "agentRuntime": { "id": "openclaw" } } },
            },
        },
        "models": {
            "providers": {
                "openai": {
                    "baseUrl": base_url,
                    "api": "openai-responses",
                    "models": [{ "id": "gpt-5", "name": "gpt-5" }],
                },
            },
        },
    })
}

impl Home {
    /// Makes a Secret, a Configuration, an Agent of this name and the grant between them.
    ///
    /// # Panics
    /// When something of it is refused.
    pub fn draft(&self, name: &str, document: &Value, key: &str, further: &[&str]) -> Draft {
        let stored = self.pipe(["secret", "create", name], key);
        assert_eq!(stored.code, Some(0), "{stored:?}");
        let file = self.write(&format!("{name}.json"), &document.to_string());
        let configuration = self.json(["configuration", "create", &file.display().to_string()]);
        self.agent(name, id(&configuration), further)
    }

    /// Makes an Agent over a Configuration and a Secret of its name that exist.
    ///
    /// # Panics
    /// When it is refused.
    pub fn agent(&self, name: &str, configuration: &str, further: &[&str]) -> Draft {
        let create = [
            "agent",
            "create",
            name,
            "--api-key-secret",
            name,
            "--configuration",
            configuration,
        ];
        let agent = self.json([&create[..], further].concat());
        let role = self.json(["role", "create", "--permission", "secret:operate"]);
        let resource = format!("secret:{name}");
        let grant = [
            "access-binding",
            "create",
            "--agent",
            name,
            "--role",
            id(&role),
            "--resource",
            &resource,
        ];
        self.json(grant);
        Draft {
            name: name.to_owned(),
            agent: id(&agent).to_owned(),
            configuration: configuration.to_owned(),
        }
    }

    /// Admits the next version of an Agent, and says which.
    ///
    /// # Panics
    /// When it is refused.
    pub fn deploy(&self, draft: &Draft) -> String {
        id(&self.json(["agent", "deploy", &draft.name])).to_owned()
    }

    /// The status of a deployment.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn deployment(&self, draft: &Draft, revision: &str) -> Value {
        self.json(["agent", "deployment-status", &draft.name, revision])
    }
}

/// The id of what a command made.
///
/// # Panics
/// When it has none.
pub fn id(made: &Value) -> &str {
    made["id"].as_str().unwrap_or_else(|| panic!("no id: {made}"))
}
