//! `occ role`

use clap::{Args, Subcommand};
use occ_core::{
    driver::{Action, ResourceKind},
    iam::{Permission, Role},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Context;
use crate::{connect::PolicyScope, exit::Done, lookup::plain_id, output::Fields};

/// Roles: sets of permissions that access bindings grant.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    scope: PolicyScope,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create a Role; it never changes.
    #[command(
        after_help = "Example: occ role create --permission secret:operate --permission agent:read

A Role of the Installation may also permit to create, and what is the Installation's:
  occ role create --installation --permission installation:administer --permission namespace:create"
    )]
    Create {
        /// What it permits: KIND:ACTION. Repeatable.
        #[arg(long = "permission", required = true, value_name = "KIND:ACTION", value_parser = permission)]
        permissions: Vec<Permission>,
    },
    /// List the Roles.
    List,
    /// Show a Role.
    Show {
        /// Its id.
        #[arg(value_parser = plain_id)]
        role: String,
    },
    /// Delete a Role that no access binding grants.
    Delete {
        /// Its id.
        #[arg(value_parser = plain_id)]
        role: String,
    },
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let policy = noun.scope.open(cx.connection).await?;
    let client = policy.client();
    let path = policy.path("iam/roles");
    match noun.verb {
        Verb::Create { permissions } => {
            let role: Role = client.post(&path, &json!({ "permissions": permissions })).await?;
            cx.output.one(&role, fields)
        }
        Verb::List => {
            let roles: Vec<Role> = client.get(&path).await?;
            cx.output.list(&roles, &["ID", "PERMISSIONS"], |role| {
                vec![role.id.clone(), words(&role.permissions).join(" ")]
            })
        }
        Verb::Show { role } => {
            let role: Role = client.get(&format!("{path}/{role}")).await?;
            cx.output.one(&role, fields)
        }
        Verb::Delete { role } => {
            client.delete(&format!("{path}/{role}")).await?;
            cx.output.done("deleted")
        }
    }
}

fn fields(role: &Role) -> Fields {
    vec![
        ("id", role.id.clone()),
        ("permits", words(&role.permissions).join("\n")),
    ]
}

fn words(permissions: &[Permission]) -> Vec<String> {
    let text = |p: &Permission| format!("{}:{}", p.kind.as_str(), p.action.as_str());
    permissions.iter().map(text).collect()
}

fn permission(text: &str) -> Result<Permission, String> {
    let (kind, action) = text
        .split_once(':')
        .ok_or("expected KIND:ACTION, such as secret:operate")?;
    Ok(Permission {
        kind: kind_of(kind)?,
        action: known::<Action>(action).ok_or(
            "no such action; there are create, read, update, delete, deploy, operate, administer, read_logs and use",
        )?,
    })
}

/// A kind of resource by its word on the wire.
pub(super) fn kind_of(word: &str) -> Result<ResourceKind, String> {
    known(word).ok_or_else(|| {
        "no such kind; there are installation, namespace, configuration, preset, agent, agent_revision, secret, \
         credential_source and service_account"
            .to_owned()
    })
}

fn known<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(word.into()).ok()
}
