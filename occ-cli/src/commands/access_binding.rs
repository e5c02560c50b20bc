//! `occ access-binding`

use clap::{Args, Subcommand};
use occ_core::{
    driver::ResourceKind,
    iam::{AccessBinding, Subject},
    resource::PrincipalId,
};
use serde_json::json;

use super::{Context, role::kind_of};
use crate::{
    connect::{PolicyScope, Session},
    exit::Done,
    lookup::plain_id,
    output::Fields,
};

/// Access bindings: who is granted which Role, on what.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    scope: PolicyScope,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Grant a Role; the binding never changes.
    #[command(
        after_help = "An Agent may use a Secret once its own principal is granted secret:operate on it:
  role=$(occ role create --permission secret:operate --output json | jq -r .id)
  occ access-binding create --agent support --role \"$role\" --resource secret:openai-key

A second administrator, who has an account or a key of their own:
  occ access-binding create --installation --principal \"$grace\" --role \"$administrator\"

A Role of the Installation can be granted for one Namespace alone:
  occ access-binding create --namespace team --principal \"$grace\" --role \"$creator\""
    )]
    Create {
        /// The Role's id.
        #[arg(long, value_parser = plain_id)]
        role: String,
        /// Grant it to this Agent's own principal: the Agent's name or id.
        #[arg(long, required_unless_present = "principal")]
        agent: Option<String>,
        /// Grant it to this principal.
        #[arg(long, conflicts_with = "agent", value_name = "ID")]
        principal: Option<PrincipalId>,
        /// The one resource that the grant is confined to: KIND:NAME or KIND:ID [default: all of the Namespace].
        #[arg(long, value_name = "KIND:RESOURCE", value_parser = target)]
        resource: Option<(ResourceKind, String)>,
    },
    /// List the access bindings.
    List,
    /// Show an access binding.
    Show {
        /// Its id.
        #[arg(value_parser = plain_id)]
        binding: String,
    },
    /// Delete an access binding: what it granted is granted no more.
    Delete {
        /// Its id.
        #[arg(value_parser = plain_id)]
        binding: String,
    },
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let policy = noun.scope.open(cx.connection).await?;
    let client = policy.client();
    let path = policy.path("iam/access-bindings");
    match noun.verb {
        Verb::Create {
            role,
            agent,
            principal,
            resource,
        } => {
            let principal = match (principal, agent) {
                (Some(principal), _) => Some(principal),
                (None, Some(agent)) => Some(policy.session()?.agent(&agent).await?.service_principal_id),
                // Clap requires one of them.
                (None, None) => None,
            };
            let mut body = json!({ "principalId": principal, "roleId": role });
            if let Some((kind, text)) = resource {
                body["resource"] = json!({ "kind": kind, "id": resolve(policy.session()?, kind, text).await? });
            }
            let binding: AccessBinding = client.post(&path, &body).await?;
            cx.output.one(&binding, fields)
        }
        Verb::List => {
            let bindings: Vec<AccessBinding> = client.get(&path).await?;
            cx.output
                .list(&bindings, &["ID", "SUBJECT", "ROLE", "RESOURCE"], |binding| {
                    vec![
                        binding.id.clone(),
                        subject(&binding.subject),
                        binding.role_id.clone(),
                        resource_of(binding),
                    ]
                })
        }
        Verb::Show { binding } => {
            let binding: AccessBinding = client.get(&format!("{path}/{binding}")).await?;
            cx.output.one(&binding, fields)
        }
        Verb::Delete { binding } => {
            client.delete(&format!("{path}/{binding}")).await?;
            cx.output.done("deleted")
        }
    }
}

fn target(text: &str) -> Result<(ResourceKind, String), String> {
    let (kind, resource) = text
        .split_once(':')
        .ok_or("expected KIND:RESOURCE, such as secret:openai-key")?;
    Ok((kind_of(kind)?, resource.to_owned()))
}

/// The id behind a name, for the kinds that have names.
async fn resolve(session: &Session, kind: ResourceKind, text: String) -> Done<String> {
    Ok(match kind {
        ResourceKind::Agent => session.agent(&text).await?.id.to_string(),
        ResourceKind::Secret => session.secret(&text).await?.to_string(),
        _ => text,
    })
}

fn fields(binding: &AccessBinding) -> Fields {
    vec![
        ("id", binding.id.clone()),
        ("subject", subject(&binding.subject)),
        ("role", binding.role_id.clone()),
        ("resource", resource_of(binding)),
    ]
}

fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Identity(id) => id.to_string(),
        Subject::Group(id) => format!("group {id}"),
    }
}

fn resource_of(binding: &AccessBinding) -> String {
    let exact = binding.resource.as_ref();
    exact.map_or_else(String::new, |exact| format!("{}:{}", exact.kind.as_str(), exact.id))
}
