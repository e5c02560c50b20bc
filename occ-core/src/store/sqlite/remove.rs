//! Removals, with the policy that named exactly what is removed (spec/engine 11).

use sqlx::SqliteConnection;

use super::fault::Refused;
use crate::{
    driver::ResourceKind,
    id::{AgentId, ConfigurationId, NamespaceId, SecretId},
    resource::OwnedKind,
    work::Target,
};

async fn run(db: &mut SqliteConnection, query: &'static str, id: &str) -> Result<u64, Refused> {
    Ok(sqlx::query(query).bind(id).execute(db).await?.rows_affected())
}

/// Bindings and restrictions of exactly this resource. Ids are unique over the kinds.
async fn policy_of(db: &mut SqliteConnection, kind: ResourceKind, id: &str) -> Result<(), Refused> {
    let queries = [
        "DELETE FROM access_bindings WHERE resource_id = ? AND resource_kind = ?",
        "DELETE FROM restrictions WHERE resource_id = ? AND kind = ?",
    ];
    for query in queries {
        sqlx::query(query)
            .bind(id)
            .bind(kind.as_str())
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

pub(super) async fn configuration(db: &mut SqliteConnection, id: ConfigurationId) -> Result<(), Refused> {
    let id = id.to_string();
    policy_of(db, ResourceKind::Configuration, &id).await?;
    match run(db, "DELETE FROM configurations WHERE id = ?", &id).await? {
        0 => Err(Refused::missing("Configuration")),
        _ => Ok(()),
    }
}

pub(super) async fn secret(db: &mut SqliteConnection, id: SecretId) -> Result<(), Refused> {
    let id = id.to_string();
    policy_of(db, ResourceKind::Secret, &id).await?;
    match run(db, "DELETE FROM secrets WHERE id = ?", &id).await? {
        0 => Err(Refused::missing("Secret")),
        _ => Ok(()),
    }
}

pub(super) async fn owned(db: &mut SqliteConnection, kind: OwnedKind, id: &str) -> Result<(), Refused> {
    policy_of(db, kind.resource_kind(), id).await?;
    match run(db, "DELETE FROM owned WHERE id = ?", id).await? {
        0 => Err(Refused::missing("resource")),
        _ => Ok(()),
    }
}

/// What an Agent leaves: its audit, and the claimed work that removes it, which is settled in the same change.
pub(super) async fn agent(db: &mut SqliteConnection, id: AgentId) -> Result<(), Refused> {
    let id = id.to_string();
    let query = "SELECT service_principal_id FROM agents WHERE id = ?";
    let principal: Option<String> = sqlx::query_scalar(query).bind(&id).fetch_optional(&mut *db).await?;
    let principal = principal.ok_or_else(|| Refused::missing("Agent"))?;
    policy_of(db, ResourceKind::Agent, &id).await?;
    let of_revisions = [
        "DELETE FROM access_bindings WHERE resource_kind = 'agent_revision'
            AND resource_id IN (SELECT id FROM revisions WHERE agent_id = ?)",
        "DELETE FROM restrictions WHERE kind = 'agent_revision'
            AND resource_id IN (SELECT id FROM revisions WHERE agent_id = ?)",
        "UPDATE agents SET active_revision_id = NULL WHERE id = ?",
        "DELETE FROM revisions WHERE agent_id = ?",
    ];
    for query in of_revisions {
        run(db, query, &id).await?;
    }
    let kept = format!("agent:{id}:reconcile:deleted");
    let query = "DELETE FROM work WHERE lane = ? AND key <> ?";
    sqlx::query(query).bind(&id).bind(kept).execute(&mut *db).await?;
    run(db, "DELETE FROM agents WHERE id = ?", &id).await?;
    run(
        db,
        "DELETE FROM access_bindings WHERE subject_kind = 'identity' AND subject_id = ?",
        &principal,
    )
    .await?;
    // Its keys go with it.
    run(db, "DELETE FROM principals WHERE id = ?", &principal).await?;
    Ok(())
}

/// Leaves the id and the name. The work that removes the Namespace is settled in the same change.
pub(super) async fn namespace(db: &mut SqliteConnection, id: NamespaceId) -> Result<(), Refused> {
    let kept = Target::NamespaceDeleted { namespace: id }.key();
    let id = id.to_string();
    let query = "UPDATE namespaces SET version = version + 1, status = 'deleted', existing_namespace = NULL,
            deletion_actor = NULL, created_at = NULL
        WHERE id = ? AND status = 'deleting'";
    if run(db, query, &id).await? == 0 {
        return Err(Refused::missing("deleting Namespace"));
    }
    policy_of(db, ResourceKind::Namespace, &id).await?;
    let policy = [
        "DELETE FROM access_bindings WHERE namespace_id = ?",
        "DELETE FROM access_bindings WHERE subject_kind = 'identity'
            AND subject_id IN (SELECT id FROM principals WHERE namespace_id = ?)",
        "DELETE FROM access_bindings WHERE subject_kind = 'group'
            AND subject_id IN (SELECT id FROM groups WHERE namespace_id = ?)",
        "DELETE FROM roles WHERE namespace_id = ?",
        "DELETE FROM restrictions WHERE namespace_id = ?",
        "DELETE FROM groups WHERE namespace_id = ?",
        "DELETE FROM service_keys WHERE namespace_id = ?",
        "DELETE FROM principals WHERE namespace_id = ?",
    ];
    for query in policy {
        run(db, query, &id).await?;
    }
    let query = "DELETE FROM work WHERE namespace_id = ? AND key <> ?";
    sqlx::query(query).bind(&id).bind(kept).execute(db).await?;
    Ok(())
}
