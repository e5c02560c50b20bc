//! `occ namespace`

use clap::{Args, Subcommand};
use occ_core::resource::{Name, Namespace, NamespaceStatus};
use serde_json::json;

use super::{Context, Wait, maybe, word};
use crate::{
    client::{CallError, Client},
    connect::{KeyHome, find_namespace},
    exit::{Done, Failure},
    output::Fields,
    paths, wait,
};
use occ_core::reason::ApiCode;

/// Namespaces: they own everything else.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    home: KeyHome,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create a Namespace; Compute then provides it.
    #[command(after_help = "Example: occ namespace create team-a --wait")]
    Create {
        /// Its name; never reusable, even after deletion.
        name: Name,
        /// A namespace of the Compute to adopt instead of creating one.
        #[arg(long, value_name = "NAME")]
        existing: Option<String>,
        #[command(flatten)]
        wait: Wait,
    },
    /// List the Namespaces that you may read.
    List,
    /// Show a Namespace.
    Show {
        /// Its name or id.
        namespace: String,
    },
    /// Delete an empty Namespace.
    Delete {
        /// Its name or id.
        namespace: String,
        #[command(flatten)]
        wait: Wait,
    },
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let client = noun.home.client(cx.connection)?;
    match noun.verb {
        Verb::Create { name, existing, wait } => {
            let body = json!({ "name": name, "existingNamespace": existing });
            let mut namespace: Namespace = client.post("/namespaces", &body).await?;
            if let Some(limit) = wait.limit() {
                namespace = ready(&client, &namespace, limit).await?;
            }
            cx.output.one(&namespace, fields)
        }
        Verb::List => {
            let namespaces: Vec<Namespace> = client.get("/namespaces").await?;
            cx.output.list(&namespaces, &["NAME", "ID", "STATUS"], |namespace| {
                vec![
                    namespace.name.to_string(),
                    namespace.id.to_string(),
                    word(namespace.status),
                ]
            })
        }
        Verb::Show { namespace } => {
            let id = find_namespace(&client, &namespace).await?;
            let namespace: Namespace = client.get(&paths::namespace(id)).await?;
            cx.output.one(&namespace, fields)
        }
        Verb::Delete { namespace, wait } => {
            let path = paths::namespace(find_namespace(&client, &namespace).await?);
            let answer = client.delete(&path).await?;
            let Some(limit) = wait.limit() else {
                let namespace: Namespace = serde_json::from_value(answer).map_err(Failure::refused)?;
                return cx.output.one(&namespace, fields);
            };
            wait::until(limit, "the Namespace is still being deleted", async |progress| {
                progress.show("deleting".to_owned());
                match client.get::<Namespace>(&path).await {
                    Ok(_) => Ok(None),
                    Err(error) if error.is(ApiCode::NotFound) => Ok(Some(())),
                    Err(CallError::Failed(failure)) => wait::survive(progress, failure),
                    Err(error) => Err(error.into()),
                }
            })
            .await?;
            cx.output.done("deleted")
        }
    }
}

async fn ready(client: &Client, namespace: &Namespace, limit: std::time::Duration) -> Done<Namespace> {
    let path = paths::namespace(namespace.id);
    wait::until(limit, "the Namespace is still being provided", async |progress| {
        let namespace = match client.get::<Namespace>(&path).await {
            Ok(namespace) => namespace,
            Err(CallError::Failed(failure)) => return wait::survive(progress, failure),
            Err(error) => return Err(error.into()),
        };
        progress.show(word(namespace.status));
        match namespace.status {
            NamespaceStatus::Ready => Ok(Some(namespace)),
            NamespaceStatus::Provisioning => Ok(None),
            NamespaceStatus::Failed | NamespaceStatus::Deleting => Err(Failure::refused(
                "the Namespace cannot be used: Compute did not provide it; see the control plane's log",
            )),
        }
    })
    .await
}

fn fields(namespace: &Namespace) -> Fields {
    let mut fields = vec![
        ("name", namespace.name.to_string()),
        ("id", namespace.id.to_string()),
        ("status", word(namespace.status)),
        ("created", namespace.created_at.to_string()),
    ];
    if namespace.existing_namespace.is_some() {
        fields.push(("adopted", maybe(namespace.existing_namespace.as_ref())));
    }
    fields
}
