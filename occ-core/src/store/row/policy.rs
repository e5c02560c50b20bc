//! Policy and service keys, as their rows have them.

use super::{Columns, Corrupt, Row};
use crate::{
    driver::{Identity, IdentityKind},
    iam::{AccessBinding, ExactResource, Restriction, Role, Subject},
    store::{NewServiceKey, ServiceKeyRow},
    time::Timestamp,
};

/// With columns `expired` and `disabled`, as the database's clock judges it.
pub(in crate::store) fn service_key(row: &impl Row) -> Result<ServiceKeyRow, Corrupt> {
    let row = Columns { row, of: "service key" };
    let expires_at: Option<i64> = row.optional_number("expires_at")?;
    let key = NewServiceKey {
        id: row.parsed("id")?,
        principal: row.parsed("principal_id")?,
        name: row.text("name")?,
        secret_hash: row.text("secret_hash")?,
        namespace_id: row.optional_parsed("namespace_id")?,
        expires_at: expires_at.map(Timestamp::from_millis),
    };
    Ok(ServiceKeyRow {
        key,
        expired: row.flag("expired")?,
        disabled: row.flag("disabled")?,
    })
}

pub(in crate::store) fn identity(row: &impl Row) -> Result<Identity, Corrupt> {
    let row = Columns { row, of: "principal" };
    let kind: IdentityKind = row.word("kind")?;
    Ok(Identity {
        id: row.parsed("id")?,
        kind,
        namespace_id: row.optional_parsed("namespace_id")?,
        agent_id: row.optional_parsed("agent_id")?,
    })
}

pub(in crate::store) fn binding(row: &impl Row) -> Result<AccessBinding, Corrupt> {
    let row = Columns {
        row,
        of: "access binding",
    };
    let subject = match row.text("subject_kind")?.as_str() {
        "identity" => Subject::Identity(row.parsed("subject_id")?),
        "group" => Subject::Group(row.text("subject_id")?),
        _ => return Err(row.corrupt()),
    };
    let resource = match row.optional_text("resource_id")? {
        Some(id) => Some(ExactResource {
            kind: row.word("resource_kind")?,
            id,
        }),
        None => None,
    };
    Ok(AccessBinding {
        id: row.text("id")?,
        namespace_id: row.optional_parsed("namespace_id")?,
        subject,
        role_id: row.text("role_id")?,
        resource,
    })
}

pub(in crate::store) fn role(row: &impl Row) -> Result<Role, Corrupt> {
    let row = Columns { row, of: "Role" };
    Ok(Role {
        id: row.text("id")?,
        namespace_id: row.optional_parsed("namespace_id")?,
        permissions: row.json("permissions")?,
    })
}

pub(in crate::store) fn restriction(row: &impl Row) -> Result<Restriction, Corrupt> {
    let row = Columns { row, of: "restriction" };
    Ok(Restriction {
        id: row.text("id")?,
        namespace_id: row.optional_parsed("namespace_id")?,
        action: row.word("action")?,
        kind: row.word("kind")?,
        resource_id: row.optional_text("resource_id")?,
    })
}
