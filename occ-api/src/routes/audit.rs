//! The audit, for administrators.

use axum::{
    Router,
    routing::{get, post},
};
use occ_core::{
    admission::{DetailCode, Refusal},
    audit::chain::AuditQuery,
};

use super::Handled;
use crate::{
    Api,
    audit::AuditRecordView,
    call::{Call, limit},
    envelope::Reply,
};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/installation/audit", get(list))
        .route("/installation/audit/verification", post(verify))
}

async fn list(call: Call) -> Handled {
    let mut query = AuditQuery {
        limit: 200,
        ..AuditQuery::default()
    };
    let malformed = |name: &str| {
        let refusal = Refusal::invalid("A parameter of the query has not its form.");
        refusal.at(&format!("/{name}"), DetailCode::InvalidFormat)
    };
    let known = ["limit", "before", "namespace", "actor", "action", "resource", "outcome"];
    for (name, value) in call.query(&known)? {
        let name = name.as_str();
        match name {
            "limit" => query.limit = u32::try_from(limit(&value)?).unwrap_or(200),
            "before" => query.before = Some(value.parse::<u32>().map_err(|_| malformed(name))?.into()),
            "namespace" => query.namespace = Some(value.parse().map_err(|_| malformed(name))?),
            "actor" => query.actor = Some(value.parse().map_err(|_| malformed(name))?),
            "outcome" => {
                let outcome = serde_json::from_value(value.into()).map_err(|_| malformed(name))?;
                query.outcome = Some(outcome);
            }
            _ if value.is_empty() || value.len() > 200 => return Err(malformed(name).into()),
            "action" => query.action = Some(value),
            _ => query.resource = Some(value),
        }
    }
    let records = call.plane.audit_records(&call.caller, &query).await?;
    let views: Vec<_> = records.into_iter().map(AuditRecordView::from).collect();
    Ok(Reply::ok(views)?)
}

async fn verify(call: Call) -> Handled {
    call.no_query()?;
    Ok(Reply::ok(call.plane.verify_audit(&call.caller).await?)?)
}
