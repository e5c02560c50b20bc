//! The routes, by resource (spec/engine 2.1).

mod accounts;
mod agent_tokens;
mod agents;
mod audit;
mod configurations;
mod events;
mod health;
mod iam;
mod installation;
mod namespaces;
mod oidc;
mod people;
mod plugins;
mod presets;
mod revisions;
mod secrets;
mod session;
mod sources;
mod workspace;

pub(crate) use agent_tokens::AgentTokenReply;
pub(crate) use agents::SavedAgentSchema;
pub(crate) use health::{Live, Ready};
pub(crate) use installation::IssuedKeyView;
pub(crate) use people::{
    CodeReply, Create as CreateAccount, Created as CreatedAccount, LinkIdentity, Update as UpdateAccount,
};
pub(crate) use secrets::{Create as CreateSecret, Update as UpdateSecret};
pub(crate) use session::{NewPassword, SessionReply, WithCode, WithPassword};
pub(crate) use workspace::Write as WriteWorkspaceFile;

use axum::Router;

use crate::{Api, envelope::Reply, reject::Rejected};

/// What a handler returns.
type Handled = Result<Reply, Rejected>;

/// Every route.
pub(crate) fn all() -> Router<Api> {
    Router::new()
        .merge(health::routes())
        .merge(installation::routes())
        .merge(session::routes())
        .merge(oidc::routes())
        .merge(people::routes())
        .merge(namespaces::routes())
        .merge(configurations::routes())
        .merge(secrets::routes())
        .merge(accounts::routes())
        .merge(presets::routes())
        .merge(sources::routes())
        .merge(workspace::routes())
        .merge(audit::routes())
        .merge(agents::routes())
        .merge(plugins::routes())
        .merge(agent_tokens::routes())
        .merge(revisions::routes())
        .merge(iam::routes())
}
