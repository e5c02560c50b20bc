//! Namespaces (spec/engine 1.4).

use super::{
    Answer, Caller, ControlPlane, CreateNamespace, Page, PageQuery,
    configurations::refuse_held,
    operation::{Operation, Scope},
    page::Cursor,
    retry::FailedDeletion,
};
use crate::{
    admission::{DetailCode, Refusal},
    audit::Authorization,
    driver::{Action, ResourceKind, ResourceRef},
    id::NamespaceId,
    reason::ApiCode,
    resource::{Namespace, NamespaceStatus},
    store::{Change, Expect, NamespaceRow, Slice, WorkState, Write},
    work::Target,
};

/// Statuses in which a Namespace takes new resources.
pub(super) const ACCEPTING: &[NamespaceStatus] = &[NamespaceStatus::Provisioning, NamespaceStatus::Ready];
/// Statuses in which a Namespace's policy may change.
pub(super) const LIVE: &[NamespaceStatus] = &[
    NamespaceStatus::Provisioning,
    NamespaceStatus::Ready,
    NamespaceStatus::Failed,
];
/// How many of a Namespace's resources a refusal looks at.
const CONTENTS_LIMIT: u32 = 100;

/// What a Namespace may own.
const OWNED: [ResourceKind; 6] = [
    ResourceKind::Agent,
    ResourceKind::Configuration,
    ResourceKind::Secret,
    ResourceKind::ServiceAccount,
    ResourceKind::Preset,
    ResourceKind::CredentialSource,
];

impl ControlPlane {
    /// Creates a Namespace and queues its provisioning.
    pub async fn create_namespace(&self, caller: &Caller, input: CreateNamespace) -> Answer<Namespace> {
        let op = self.operation(caller, "openclaw.namespaces.create", Scope::Installation);
        op.answer(async {
            let installation = self.known_installation().await?.id;
            if input.existing_namespace.as_deref().is_some_and(|name| !is_label(name)) {
                let refusal =
                    Refusal::invalid("existingNamespace must be 1 to 63 lower-case letters, digits and hyphens.");
                return Err(refusal.at("/existingNamespace", DetailCode::InvalidFormat));
            }
            let mut questions = vec![op.ask(Action::Create, ResourceRef::namespaces(installation))];
            if input.existing_namespace.is_some() {
                questions.push(op.ask(Action::Administer, ResourceRef::installation(installation)));
            }
            let namespace = Namespace {
                id: NamespaceId::random(),
                name: input.name,
                existing_namespace: input.existing_namespace,
                status: NamespaceStatus::Provisioning,
                created_at: self.store.now().await?,
            };
            let target = Target::NamespaceReady {
                namespace: namespace.id,
            };
            let mut tries = op.tries();
            loop {
                let allowed = op.require_all(questions.clone()).await?.swap_remove(0);
                if let Some(existing) = &namespace.existing_namespace {
                    let adoption = self.drivers.compute.namespace_adoption();
                    if !adoption.is_some_and(|adoption| adoption.accepts(existing)) {
                        return Err(Refusal::conflict(
                            "The selected Compute cannot adopt this existing namespace.",
                        ));
                    }
                }
                // The same request may have been done meanwhile.
                if let Some(first) = op.first_answer().await? {
                    return Ok(first);
                }
                let change = Change::new()
                    .write(Write::Namespace(namespace.clone()))
                    .write(Write::Enqueue(op.work(target)))
                    .audit(op.event(ResourceRef::namespace(namespace.id), &allowed));
                if tries.commit(op.answering(change, &namespace)?).await? {
                    return Ok(namespace);
                }
            }
        })
        .await
    }

    /// A Namespace.
    pub async fn namespace(&self, caller: &Caller, id: NamespaceId) -> Answer<Namespace> {
        let op = self.operation(caller, "openclaw.namespaces.read", Scope::Namespace(id));
        op.answer(async {
            op.require(Action::Read, ResourceRef::namespace(id)).await?;
            Ok(self.live_namespace(id).await?.namespace)
        })
        .await
    }

    /// The Namespaces that the caller may read, all of them.
    pub async fn namespaces(&self, caller: &Caller) -> Answer<Vec<Namespace>> {
        Ok(self.namespaces_page(caller, &PageQuery::ALL).await?.items)
    }

    /// The Namespaces that the caller may read, by creation. A key that opens one Namespace sees no other.
    pub async fn namespaces_page(&self, caller: &Caller, query: &PageQuery) -> Answer<Page<Namespace>> {
        let op = self.operation(caller, "openclaw.namespaces.list", Scope::Readable);
        op.answer(async {
            let place = |row: &NamespaceRow| Cursor {
                order: row.namespace.created_at.as_millis(),
                id: row.namespace.id.to_string(),
            };
            let read = async |slice: Slice| match caller.namespace {
                None => self.store.namespaces(&slice).await,
                Some(opened) => {
                    let rows = self.store.namespace(opened).await?.into_iter().collect();
                    let place =
                        |row: &NamespaceRow| (row.namespace.created_at.as_millis(), row.namespace.id.to_string());
                    Ok(slice.of(rows, place))
                }
            };
            let page = op.page(query, read, place, |row| ResourceRef::namespace(row.namespace.id));
            Ok(page.await?.map(|row| row.namespace))
        })
        .await
    }

    /// Deletes an empty Namespace, or repeats a failed deletion. While one is under way it changes nothing.
    pub async fn delete_namespace(&self, caller: &Caller, id: NamespaceId) -> Answer<Namespace> {
        let op = self.operation(caller, "openclaw.namespaces.delete", Scope::Namespace(id));
        op.answer(async {
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Delete, ResourceRef::namespace(id)).await?;
                let row = self.live_namespace(id).await?;
                let change = match row.namespace.status {
                    NamespaceStatus::Deleting => match self.retry_namespace(&op, &allowed, &row).await? {
                        Some(change) => change,
                        None => return Ok(row.namespace),
                    },
                    _ => self.begin_deletion(&op, &allowed, &row).await?,
                };
                if tries.commit(change).await? {
                    return Ok(Namespace {
                        status: NamespaceStatus::Deleting,
                        ..row.namespace
                    });
                }
            }
        })
        .await
    }

    /// The Namespace's row; 404 when there is none.
    pub(super) async fn live_namespace(&self, id: NamespaceId) -> Answer<NamespaceRow> {
        self.store.namespace(id).await?.ok_or_else(Refusal::not_found)
    }

    async fn begin_deletion(&self, op: &Operation<'_>, allowed: &Authorization, row: &NamespaceRow) -> Answer<Change> {
        let id = row.namespace.id;
        let contents = self.store.namespace_contents(id, CONTENTS_LIMIT).await?;
        let owned = contents.into_iter().filter_map(|(word, owned)| {
            Some(ResourceRef {
                kind: OWNED.into_iter().find(|kind| kind.as_str() == word)?,
                id: owned,
                namespace_id: Some(id),
            })
        });
        let code = ApiCode::NamespaceNotEmpty;
        refuse_held(op, code, "The Namespace still owns ", owned.collect()).await?;
        Ok(deletion(row, allowed)
            .expect(Expect::NamespaceEmpty(id))
            .write(Write::Enqueue(op.work(Target::NamespaceDeleted { namespace: id })))
            .audit(op.event(ResourceRef::namespace(id), allowed)))
    }

    /// The change that repeats a failed deletion; `None` while one is under way.
    async fn retry_namespace(
        &self,
        op: &Operation<'_>,
        allowed: &Authorization,
        row: &NamespaceRow,
    ) -> Answer<Option<Change>> {
        let id = row.namespace.id;
        let key = Target::NamespaceDeleted { namespace: id }.key();
        let Some(WorkState::Failed {
            actor: initiator,
            attempts,
            failure,
            ..
        }) = self.store.work_state(&key).await?
        else {
            return Ok(None);
        };
        let failed = FailedDeletion {
            initiator,
            attempts,
            failure,
        };
        failed.admit(op, allowed).await?;
        let mut event = failed.describe(op.event(ResourceRef::namespace(id), allowed));
        "openclaw.namespaces.delete.retry".clone_into(&mut event.action);
        let change = deletion(row, allowed)
            .write(Write::Requeue(op.work(Target::NamespaceDeleted { namespace: id })))
            .audit(event);
        Ok(Some(change))
    }
}

/// The status write: its precondition also fences two callers that repeat a deletion at once.
fn deletion(row: &NamespaceRow, allowed: &Authorization) -> Change {
    let id = row.namespace.id;
    Change::new()
        .expect(Expect::Namespace(id, row.version))
        .write(Write::NamespaceStatus {
            id,
            status: NamespaceStatus::Deleting,
            deletion_actor: Some(allowed.request.principal.clone()),
        })
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, at most 63.
fn is_label(name: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
}
