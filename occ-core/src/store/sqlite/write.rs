//! What a change writes, one statement or a few each.

use sqlx::{SqliteConnection, query::Query, sqlite::SqliteArguments};

use super::{
    account,
    column::{json, number, word},
    enqueue,
    fault::Refused,
    owned, remove, settle,
};
use crate::{
    iam::{AccessBinding, Role, Subject},
    id::ConfigurationId,
    resource::{
        Agent, AgentRevision, BackendId, Installation, Namespace, NamespaceStatus, PrincipalId, Secret, WorkspaceSetup,
    },
    store::{
        ConfigurationRow, NewServiceKey, Write,
        row::resource::{plugins_of, secret_of, secrets_of, sources_of},
    },
    time::Timestamp,
};

type Statement<'q> = Query<'q, sqlx::Sqlite, SqliteArguments>;

async fn run(db: &mut SqliteConnection, statement: Statement<'_>) -> Result<u64, Refused> {
    Ok(statement.execute(db).await?.rows_affected())
}

/// Runs a statement that must find its row.
async fn change(db: &mut SqliteConnection, what: &'static str, statement: Statement<'_>) -> Result<(), Refused> {
    if run(db, statement).await? == 0 {
        Err(Refused::missing(what))
    } else {
        Ok(())
    }
}

// One short arm a write.
#[allow(clippy::too_many_lines)]
pub(super) async fn apply(db: &mut SqliteConnection, now: Timestamp, write: &Write) -> Result<(), Refused> {
    match write {
        Write::Installation(installation) => self::installation(db, installation).await,
        Write::Principal(id, name) => {
            let query = "INSERT INTO principals (id, kind, name) VALUES (?, 'human', ?)";
            run(db, sqlx::query(query).bind(id.as_str()).bind(name)).await.map(drop)
        }
        Write::Role(role) => self::role(db, role).await,
        Write::AccessBinding(binding) => access_binding(db, binding).await,
        Write::DeleteRole(id) => change(db, "Role", sqlx::query("DELETE FROM roles WHERE id = ?").bind(id)).await,
        Write::DeleteAccessBinding(id) => run(db, sqlx::query("DELETE FROM access_bindings WHERE id = ?").bind(id))
            .await
            .map(drop),
        Write::ServiceKey(key) => service_key(db, now, key).await,
        Write::RevokeServiceKey(id) => {
            let query = "UPDATE service_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?";
            change(
                db,
                "service key",
                sqlx::query(query).bind(now.as_millis()).bind(id.to_string()),
            )
            .await
        }
        Write::Account(new) => account::insert(db, now, new).await,
        Write::AccountCode(principal, code) => account::code(db, now, principal, code).await,
        Write::AccountPassword(principal, hash) => account::password(db, principal, hash).await,
        Write::AccountDisabled(principal, disabled) => account::disabled(db, principal, *disabled).await,
        Write::Session(new) => account::begin(db, now, new).await,
        Write::TouchSession(id) => account::touch(db, now, *id).await,
        Write::EndSession(id) => account::end(db, *id).await,
        Write::EndSessions(principal) => account::end_all(db, principal).await,
        Write::FederatedIdentity {
            issuer,
            subject,
            principal,
        } => account::link(db, now, issuer, subject, principal).await,
        Write::UnlinkIdentities(principal) => account::unlink(db, principal).await,
        Write::AgentTokenKey(new) => account::keep_token_key(db, now, new).await,
        Write::Namespace(namespace) => self::namespace(db, namespace).await,
        Write::NamespaceStatus {
            id,
            status,
            deletion_actor,
        } => {
            // Whoever asked first stays, unless somebody takes over.
            let query = "UPDATE namespaces SET version = version + 1, status = ?2,
                    deletion_actor = CASE ?2 WHEN 'deleting' THEN coalesce(?3, deletion_actor) END
                WHERE id = ?1 AND status <> 'deleted'";
            let query = sqlx::query(query).bind(id.to_string()).bind(word(status)?);
            change(
                db,
                "Namespace",
                query.bind(deletion_actor.as_ref().map(PrincipalId::as_str)),
            )
            .await
        }
        Write::NamespaceTombstone(id) => remove::namespace(db, *id).await,
        Write::Configuration(row) => configuration(db, row).await,
        Write::UpdateConfiguration(row) => {
            let query = "UPDATE configurations SET generation = ?, secret_bindings = ?, deleting = ? WHERE id = ? AND namespace_id = ?";
            let query = sqlx::query(query)
                .bind(number(row.generation)?)
                .bind(json(&row.secret_bindings)?)
                .bind(row.deleting);
            change(
                db,
                "Configuration",
                query.bind(row.id.to_string()).bind(row.namespace_id.to_string()),
            )
            .await?;
            configuration_secrets(db, row).await
        }
        Write::DeleteConfiguration(id) => remove::configuration(db, *id).await,
        Write::Secret(secret) => self::secret(db, secret).await,
        Write::UpdateSecret(secret) => {
            let query = "UPDATE secrets SET name = ?, driver_id = ?, backend_ref = ?, version = ?, deleting = ?
                WHERE id = ? AND namespace_id = ?";
            let query = sqlx::query(query)
                .bind(secret.name.as_str())
                .bind(&secret.driver_id)
                .bind(json(&secret.backend_ref)?)
                .bind(number(secret.version)?)
                .bind(secret.deleting);
            change(
                db,
                "Secret",
                query.bind(secret.id.to_string()).bind(secret.namespace_id.to_string()),
            )
            .await
        }
        Write::DeleteSecret(id) => remove::secret(db, *id).await,
        Write::Owned(row) => owned::insert(db, row).await,
        Write::UpdateOwned(row) => owned::update(db, row).await,
        Write::DeleteOwned(kind, id) => remove::owned(db, *kind, id).await,
        Write::Answer(first) => owned::keep(db, now, first).await,
        Write::Agent(agent, setup) => self::agent(db, agent, setup.as_ref()).await,
        Write::UpdateAgent(agent) => update_agent(db, agent).await,
        Write::AgentState { id, desired, status } => {
            let query = "UPDATE agents SET version = version + 1, desired = ?, status = ? WHERE id = ?";
            let query = sqlx::query(query).bind(word(desired)?).bind(word(status)?);
            change(db, "Agent", query.bind(id.to_string())).await
        }
        Write::DropWorkspaceSetup(id) => {
            let query = "DELETE FROM workspace_setups WHERE agent_id = ? AND files IS NOT NULL";
            run(db, sqlx::query(query).bind(id.to_string())).await.map(drop)
        }
        Write::CompleteWorkspaceSetup(id) => {
            let query = "UPDATE workspace_setups SET files = NULL WHERE agent_id = ?";
            run(db, sqlx::query(query).bind(id.to_string())).await.map(drop)
        }
        Write::Revision { revision, bytes } => self::revision(db, revision, bytes).await,
        Write::ActiveRevision(agent, revision) => {
            let query = "UPDATE agents SET version = version + 1, active_revision_id = ? WHERE id = ?";
            let query = sqlx::query(query).bind(revision.map(|id| id.to_string()));
            change(db, "Agent", query.bind(agent.to_string())).await
        }
        Write::RevisionRetired(id) => {
            let query = "UPDATE revisions SET live = 0 WHERE id = ?";
            change(db, "AgentRevision", sqlx::query(query).bind(id.to_string())).await
        }
        Write::RemoveAgent(id) => remove::agent(db, *id).await,
        Write::Enqueue(work) => enqueue::enqueue(db, now, now, work).await,
        Write::EnqueueLater(work, delay) => enqueue::enqueue(db, now, now.plus(*delay), work).await,
        Write::Requeue(work) => enqueue::requeue(db, now, work).await,
        Write::Settle(token, transition) => settle::settle(db, now, *token, transition).await,
    }
}

async fn installation(db: &mut SqliteConnection, installation: &Installation) -> Result<(), Refused> {
    let query = "INSERT INTO installation (singleton, id, name, created_at) VALUES (1, ?, ?, ?)";
    let query = sqlx::query(query)
        .bind(installation.id.to_string())
        .bind(installation.name.as_str());
    run(db, query.bind(installation.created_at.as_millis())).await.map(drop)
}

async fn role(db: &mut SqliteConnection, role: &Role) -> Result<(), Refused> {
    let query = "INSERT INTO roles (id, namespace_id, permissions) VALUES (?, ?, ?)";
    let query = sqlx::query(query)
        .bind(&role.id)
        .bind(role.namespace_id.map(|id| id.to_string()));
    run(db, query.bind(json(&role.permissions)?)).await.map(drop)
}

async fn access_binding(db: &mut SqliteConnection, binding: &AccessBinding) -> Result<(), Refused> {
    let (kind, subject) = match &binding.subject {
        Subject::Identity(id) => ("identity", id.as_str()),
        Subject::Group(id) => ("group", id.as_str()),
    };
    let query = "INSERT INTO access_bindings
            (id, namespace_id, subject_kind, subject_id, role_id, resource_kind, resource_id)
        VALUES (?, ?, ?, ?, ?, ?, ?)";
    let query = sqlx::query(query)
        .bind(&binding.id)
        .bind(binding.namespace_id.map(|id| id.to_string()))
        .bind(kind)
        .bind(subject)
        .bind(&binding.role_id)
        .bind(binding.resource.as_ref().map(|resource| resource.kind.as_str()))
        .bind(binding.resource.as_ref().map(|resource| resource.id.as_str()));
    run(db, query).await.map(drop)
}

async fn service_key(db: &mut SqliteConnection, now: Timestamp, key: &NewServiceKey) -> Result<(), Refused> {
    let query = "INSERT INTO service_keys (id, principal_id, name, secret_hash, namespace_id, expires_at, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?)";
    let query = sqlx::query(query)
        .bind(key.id.to_string())
        .bind(key.principal.as_str())
        .bind(&key.name)
        .bind(&key.secret_hash)
        .bind(key.namespace_id.map(|id| id.to_string()))
        .bind(key.expires_at.map(Timestamp::as_millis))
        .bind(now.as_millis());
    run(db, query).await.map(drop)
}

async fn namespace(db: &mut SqliteConnection, namespace: &Namespace) -> Result<(), Refused> {
    // A Namespace that is born deleting would have no one to answer for it.
    if namespace.status == NamespaceStatus::Deleting {
        return Err(Refused::missing("actor of a deletion"));
    }
    let query = "INSERT INTO namespaces (id, name, existing_namespace, status, version, created_at)
        VALUES (?, ?, ?, ?, 1, ?)";
    let query = sqlx::query(query)
        .bind(namespace.id.to_string())
        .bind(namespace.name.as_str())
        .bind(&namespace.existing_namespace)
        .bind(word(&namespace.status)?)
        .bind(namespace.created_at.as_millis());
    run(db, query).await.map(drop)
}

async fn configuration(db: &mut SqliteConnection, row: &ConfigurationRow) -> Result<(), Refused> {
    let query = "INSERT INTO configurations (id, namespace_id, kind, generation, secret_bindings, created_at)
        VALUES (?, ?, ?, ?, ?, ?)";
    let query = sqlx::query(query)
        .bind(row.id.to_string())
        .bind(row.namespace_id.to_string())
        .bind(word(&row.kind)?)
        .bind(number(row.generation)?)
        .bind(json(&row.secret_bindings)?)
        .bind(row.created_at.as_millis());
    run(db, query).await?;
    configuration_secrets(db, row).await
}

async fn configuration_secrets(db: &mut SqliteConnection, row: &ConfigurationRow) -> Result<(), Refused> {
    unbind_secrets(db, row.id).await?;
    for binding in row.secret_bindings.values() {
        let query =
            "INSERT INTO configuration_secrets (configuration_id, secret_id) VALUES (?, ?) ON CONFLICT DO NOTHING";
        run(
            db,
            sqlx::query(query)
                .bind(row.id.to_string())
                .bind(binding.source.id.to_string()),
        )
        .await?;
    }
    Ok(())
}

async fn unbind_secrets(db: &mut SqliteConnection, id: ConfigurationId) -> Result<(), Refused> {
    let query = "DELETE FROM configuration_secrets WHERE configuration_id = ?";
    run(db, sqlx::query(query).bind(id.to_string())).await.map(drop)
}

async fn secret(db: &mut SqliteConnection, secret: &Secret) -> Result<(), Refused> {
    let query = "INSERT INTO secrets (id, namespace_id, name, driver_id, backend_ref, version, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?)";
    let query = sqlx::query(query)
        .bind(secret.id.to_string())
        .bind(secret.namespace_id.to_string())
        .bind(secret.name.as_str())
        .bind(&secret.driver_id)
        .bind(json(&secret.backend_ref)?)
        .bind(number(secret.version)?)
        .bind(secret.created_at.as_millis());
    run(db, query).await.map(drop)
}

async fn agent(db: &mut SqliteConnection, agent: &Agent, setup: Option<&WorkspaceSetup>) -> Result<(), Refused> {
    let query = "INSERT INTO principals (id, kind, namespace_id, agent_id) VALUES (?, 'service', ?, ?)";
    let query = sqlx::query(query)
        .bind(agent.service_principal_id.as_str())
        .bind(agent.namespace_id.to_string());
    run(db, query.bind(agent.id.to_string())).await?;
    let query = "INSERT INTO agents (id, namespace_id, name, service_principal_id, configuration_id, backend_id,
            harness_auth, secret_id, execution_mode, plugins, plugin_approvers, credential_sources, desired,
            active_revision_id, status, version, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)";
    let query = sqlx::query(query)
        .bind(agent.id.to_string())
        .bind(agent.namespace_id.to_string())
        .bind(agent.name.as_str())
        .bind(agent.service_principal_id.as_str())
        .bind(agent.configuration_id.to_string())
        .bind(agent.backend_id.as_ref().map(BackendId::as_str))
        .bind(agent.harness_auth.as_ref().map(json).transpose()?)
        .bind(secret_of(agent.harness_auth.as_ref()))
        .bind(word(&agent.execution_mode)?)
        .bind(plugins_of(agent).map(json).transpose()?)
        .bind(agent.plugin_approvers.as_ref().map(json).transpose()?)
        .bind(sources_of(agent).map(json).transpose()?)
        .bind(word(&agent.desired_runtime_state)?)
        .bind(agent.active_revision_id.map(|id| id.to_string()))
        .bind(word(&agent.status)?)
        .bind(agent.created_at.as_millis());
    run(db, query).await?;
    let Some(setup) = setup else { return Ok(()) };
    let query = "INSERT INTO workspace_setups (agent_id, id, defaults_id, files) VALUES (?, ?, ?, ?)";
    let query = sqlx::query(query)
        .bind(agent.id.to_string())
        .bind(setup.id.to_string())
        .bind(&setup.defaults_id)
        .bind(setup.files.as_ref().map(json).transpose()?);
    run(db, query).await.map(drop)
}

async fn update_agent(db: &mut SqliteConnection, agent: &Agent) -> Result<(), Refused> {
    let query = "UPDATE agents SET version = version + 1, name = ?, configuration_id = ?, backend_id = ?,
            harness_auth = ?, secret_id = ?, execution_mode = ?, plugins = ?, plugin_approvers = ?,
            credential_sources = ?, desired = ?, status = ?
        WHERE id = ? AND namespace_id = ?";
    let query = sqlx::query(query)
        .bind(agent.name.as_str())
        .bind(agent.configuration_id.to_string())
        .bind(agent.backend_id.as_ref().map(BackendId::as_str))
        .bind(agent.harness_auth.as_ref().map(json).transpose()?)
        .bind(secret_of(agent.harness_auth.as_ref()))
        .bind(word(&agent.execution_mode)?)
        .bind(plugins_of(agent).map(json).transpose()?)
        .bind(agent.plugin_approvers.as_ref().map(json).transpose()?)
        .bind(sources_of(agent).map(json).transpose()?)
        .bind(word(&agent.desired_runtime_state)?)
        .bind(word(&agent.status)?);
    change(
        db,
        "Agent",
        query.bind(agent.id.to_string()).bind(agent.namespace_id.to_string()),
    )
    .await
}

async fn revision(db: &mut SqliteConnection, revision: &AgentRevision, bytes: &[u8]) -> Result<(), Refused> {
    let query = "INSERT INTO revisions (id, namespace_id, agent_id, number, snapshot, digest, live, created_at)
        VALUES (?, ?, ?, ?, ?, ?, 1, ?)";
    let query = sqlx::query(query)
        .bind(revision.id.to_string())
        .bind(revision.namespace_id.to_string())
        .bind(revision.agent_id.to_string())
        .bind(number(revision.revision)?)
        .bind(bytes)
        .bind(&revision.digest)
        .bind(revision.created_at.as_millis());
    run(db, query).await?;
    for secret in secrets_of(revision) {
        let query = "INSERT INTO revision_secrets (revision_id, secret_id) VALUES (?, ?)";
        run(db, sqlx::query(query).bind(revision.id.to_string()).bind(secret)).await?;
    }
    Ok(())
}
