//! Names where people have names, ids where programs have ids.

use occ_core::{
    control::{RevisionRead, SecretView},
    id::{ConfigurationId, RevisionId, SecretId},
    resource::Agent,
};

use crate::{
    connect::{Session, missing},
    exit::{Done, Failure},
    paths,
};

impl Session {
    /// A path below the Namespace.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("{}/{rest}", paths::namespace(self.namespace))
    }

    /// The Agent with this name or id.
    pub(crate) async fn agent(&self, text: &str) -> Done<Agent> {
        if let Ok(id) = text.parse() {
            return Ok(self.client.get(&paths::agent(self.namespace, id)).await?);
        }
        let agents: Vec<Agent> = self.client.get(&paths::agents(self.namespace)).await?;
        let found = agents.into_iter().find(|agent| agent.name.as_str() == text);
        found.ok_or_else(|| missing("Agent", text))
    }

    /// The Secret with this name or id.
    pub(crate) async fn secret(&self, text: &str) -> Done<SecretId> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let secrets: Vec<SecretView> = self.client.get(&self.path("secrets")).await?;
        let found = secrets.iter().find(|secret| secret.name.as_str() == text);
        found.map(|secret| secret.id).ok_or_else(|| missing("Secret", text))
    }

    /// A version of an Agent by its number or id; the latest when none is named.
    pub(crate) async fn revision(&self, agent: &Agent, text: Option<&str>) -> Done<RevisionId> {
        if let Some(Ok(id)) = text.map(str::parse) {
            return Ok(id);
        }
        let path = format!("{}/revisions", paths::agent(self.namespace, agent.id));
        let revisions: Vec<RevisionRead> = self.client.get(&path).await?;
        let mut revisions = revisions.iter().map(RevisionRead::identity);
        let found = match text {
            Some(text) => revisions.find(|(_, number)| number.to_string() == text),
            None => revisions.max_by_key(|(_, number)| *number),
        };
        found.map(|(id, _)| id).ok_or_else(|| match text {
            Some(text) => missing("version", text),
            None => Failure::refused(format!("Agent {} has no version yet: deploy it", agent.name)),
        })
    }
}

/// A Configuration's id: Configurations have no names.
pub(crate) fn configuration(text: &str) -> Result<ConfigurationId, String> {
    text.parse()
        .map_err(|_| "a Configuration has no name: give its id, cfg_...".to_owned())
}

/// An id that stands in a path: a Role's or a binding's, whose form is the Installation's own.
pub(crate) fn plain_id(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !text.is_empty() && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("an id has letters, digits, _ and - alone".to_owned())
    }
}
