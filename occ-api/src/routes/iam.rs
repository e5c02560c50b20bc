//! The policy of the Installation and of its Namespaces: Roles, access bindings and the service principals that they can name.

use axum::{Router, routing::get};
use occ_core::{
    admission::Refusal,
    control::{CreateAccessBinding, CreateRole},
    id::NamespaceId,
};

use super::Handled;
use crate::{Api, call::Call, envelope::Reply};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/namespaces/{namespace}/iam/roles", get(roles).post(create_role))
        .route(
            "/namespaces/{namespace}/iam/roles/{role}",
            get(role).delete(delete_role),
        )
        .route(
            "/namespaces/{namespace}/iam/access-bindings",
            get(bindings).post(create_binding),
        )
        .route(
            "/namespaces/{namespace}/iam/access-bindings/{binding}",
            get(binding).delete(delete_binding),
        )
        .route("/iam/roles", get(roles).post(create_role))
        .route("/iam/roles/{role}", get(role).delete(delete_role))
        .route("/iam/access-bindings", get(bindings).post(create_binding))
        .route("/iam/access-bindings/{binding}", get(binding).delete(delete_binding))
        .route(
            "/namespaces/{namespace}/iam/service-principals",
            get(service_principals),
        )
}

/// Whose policy it is: the Namespace's in the path, or the Installation's.
fn scope_of(call: &Call) -> Result<Option<NamespaceId>, Refusal> {
    let named = !call.text("namespace").is_empty();
    named.then(|| call.id("namespace")).transpose()
}

async fn roles(call: Call) -> Handled {
    let scope = scope_of(&call)?;
    call.no_query()?;
    Ok(Reply::ok(call.plane.roles(&call.caller, scope).await?)?)
}

async fn create_role(call: Call) -> Handled {
    let scope = scope_of(&call)?;
    call.no_query()?;
    let input = call.body::<CreateRole>()?;
    Ok(Reply::created(
        call.plane.create_role(&call.caller, scope, input).await?,
    )?)
}

async fn role(call: Call) -> Handled {
    let scope = scope_of(&call)?;
    call.no_query()?;
    Ok(Reply::ok(
        call.plane.role(&call.caller, scope, call.text("role")).await?,
    )?)
}

async fn delete_role(call: Call) -> Handled {
    let scope = scope_of(&call)?;
    call.no_query()?;
    call.plane.delete_role(&call.caller, scope, call.text("role")).await?;
    Ok(Reply::Empty)
}

async fn bindings(call: Call) -> Handled {
    let scope = scope_of(&call)?;
    call.no_query()?;
    Ok(Reply::ok(call.plane.access_bindings(&call.caller, scope).await?)?)
}

async fn create_binding(call: Call) -> Handled {
    let scope = scope_of(&call)?;
    call.no_query()?;
    let input = call.body::<CreateAccessBinding>()?;
    Ok(Reply::created(
        call.plane.create_access_binding(&call.caller, scope, input).await?,
    )?)
}

async fn binding(call: Call) -> Handled {
    let scope = scope_of(&call)?;
    call.no_query()?;
    Ok(Reply::ok(
        call.plane
            .access_binding(&call.caller, scope, call.text("binding"))
            .await?,
    )?)
}

async fn delete_binding(call: Call) -> Handled {
    let scope = scope_of(&call)?;
    call.no_query()?;
    call.plane
        .delete_access_binding(&call.caller, scope, call.text("binding"))
        .await?;
    Ok(Reply::Empty)
}

async fn service_principals(call: Call) -> Handled {
    let namespace = call.id("namespace")?;
    call.no_query()?;
    Ok(Reply::ok(
        call.plane.service_principals(&call.caller, namespace).await?,
    )?)
}
