//! Configurations (spec/engine 1.5).

use super::{
    Answer, Caller, ConfigurationSummary, ControlPlane, CreateConfiguration, Page, PageQuery, Tag, UpdateConfiguration,
    commit::{Tries, Uncommitted},
    namespaces::ACCEPTING,
    operation::{Operation, Scope, effect, look},
    page::Cursor,
};
use crate::{
    admission::{DetailCode, Phrase, Refusal, deploy, draft, is_conflict, source},
    audit::{AuditEvent, Authorization},
    driver::{Action, DriverKind, OperationContext, ResourceKind, ResourceRef},
    iam::ExactResource,
    id::{ConfigurationId, NamespaceId},
    reason::ApiCode,
    resource::{Configuration, Document, NamespaceStatus, Secret, SecretBindings},
    store::{BindingsOf, Change, ConfigurationRow, Expect, Slice, Write},
};

impl ControlPlane {
    /// Creates a Configuration. Its document goes to the Configuration Driver, its record and its audit to the store, together.
    pub async fn create_configuration(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        input: CreateConfiguration,
    ) -> Answer<Configuration> {
        let op = self.operation(caller, "openclaw.configurations.create", Scope::Namespace(namespace));
        op.answer(async {
            check_bindings(namespace, &input.secret_bindings)?;
            let collection = ResourceRef::collection(ResourceKind::Configuration, namespace);
            let allowed = op.require(Action::Create, collection).await?;
            if let Some(first) = op.first_answer().await? {
                return Ok(first);
            }
            let id = ConfigurationId::random();
            let mut touched = false;
            match self.store_configuration(&op, allowed, id, &input, &mut touched).await {
                Ok(row) => Ok(with_document(row, input.values)),
                Err(Uncommitted::Certain(refusal)) => {
                    if touched {
                        self.forget_document(namespace, id).await;
                    }
                    // The same request may have been done meanwhile.
                    op.first_answer().await?.ok_or(refusal)
                }
                Err(unknown) => Err(unknown.into()),
            }
        })
        .await
    }

    /// `touched` turns true before the driver may have stored something.
    async fn store_configuration(
        &self,
        op: &Operation<'_>,
        mut allowed: Authorization,
        id: ConfigurationId,
        input: &CreateConfiguration,
        touched: &mut bool,
    ) -> Result<ConfigurationRow, Uncommitted> {
        let namespace = allowed.request.resource.namespace_id.ok_or_else(Refusal::not_found)?;
        let mut tries = op.tries();
        loop {
            let row = self.live_namespace(namespace).await?;
            draft::accepts(&row)?;
            let adopted = row.namespace.existing_namespace.is_some();
            if adopted && row.namespace.status != NamespaceStatus::Ready {
                return Err(Refusal::new(ApiCode::NamespaceNotReady).into());
            }
            let secrets = self.bound_secrets(op, namespace, &input.secret_bindings).await?;
            self.check_document(&input.values)?;
            let row = ConfigurationRow {
                id,
                namespace_id: namespace,
                kind: input.kind,
                generation: 1,
                secret_bindings: input.secret_bindings.clone(),
                deleting: false,
                created_at: self.store.now().await?,
            };
            let cx = self.context();
            *touched = true;
            effect(self.drivers.configuration.create(&cx, namespace, id, &input.values))
                .await
                .map_err(|e| Refusal::driver(DriverKind::Configuration, &e))?;
            allowed = op.still(allowed).await?;
            let accepting = if adopted { &[NamespaceStatus::Ready] } else { ACCEPTING };
            let change = bound(Change::new(), &secrets)
                .expect(Expect::NamespaceStatus(namespace, accepting))
                .write(Write::Configuration(row.clone()))
                .state(cx.state().take_staged())
                .audit(op.event(ResourceRef::configuration(namespace, id), &allowed));
            let change = op.answering(change, &with_document(row.clone(), input.values.clone()))?;
            if tries.commit(change).await? {
                return Ok(row);
            }
            allowed = op.require(Action::Create, allowed.request.resource).await?;
        }
    }

    /// A Configuration with its document.
    pub async fn configuration(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> Answer<Configuration> {
        let op = self.operation(caller, "openclaw.configurations.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::configuration(namespace, id))
                .await?;
            let mut tries = Tries::new(&*self.store);
            loop {
                let row = self.configuration_row(namespace, id).await?;
                match self.document(&self.context(), &row).await? {
                    Some((generation, document)) if generation == row.generation => {
                        return Ok(with_document(row, document));
                    }
                    _ if tries.is_last() => return Err(Refusal::driver_away(DriverKind::Configuration)),
                    // Changed or deleted between the two reads.
                    _ => tries.again().await?,
                }
            }
        })
        .await
    }

    /// The Configurations that the caller may read, all of them, without their documents. Needs `namespace:read`.
    pub async fn configurations(&self, caller: &Caller, namespace: NamespaceId) -> Answer<Vec<ConfigurationSummary>> {
        let page = self.configurations_page(caller, namespace, &PageQuery::ALL).await?;
        Ok(page.items)
    }

    /// The same, in pages, by creation.
    pub async fn configurations_page(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        query: &PageQuery,
    ) -> Answer<Page<ConfigurationSummary>> {
        let op = self.operation(caller, "openclaw.configurations.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::namespace(namespace)).await?;
            self.live_namespace(namespace).await?;
            let read = async |slice: Slice| self.store.configurations(namespace, &slice).await;
            let place = |row: &ConfigurationRow| Cursor {
                order: row.created_at.as_millis(),
                id: row.id.to_string(),
            };
            let page = op
                .page(query, read, place, |row| ResourceRef::configuration(namespace, row.id))
                .await?;
            Ok(page.map(Into::into))
        })
        .await
    }

    /// Makes a Configuration's next generation. Changes no version, and queues nothing.
    pub async fn update_configuration(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: ConfigurationId,
        input: UpdateConfiguration,
    ) -> Answer<Configuration> {
        let op = self.operation(caller, "openclaw.configurations.update", Scope::Namespace(namespace));
        op.answer(async {
            if let Some(bindings) = &input.secret_bindings {
                check_bindings(namespace, bindings)?;
            }
            let resource = ResourceRef::configuration(namespace, id);
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Update, resource.clone()).await?;
                let mut row = self.configuration_row(namespace, id).await?;
                if row.deleting {
                    return Err(Refusal::conflict("The Configuration is being deleted."));
                }
                let before = row.generation;
                op.on_state(&Tag::of_generation(before))?;
                if let Some(bindings) = &input.secret_bindings {
                    row.secret_bindings.clone_from(bindings);
                }
                row.generation += 1;
                let secrets = self.bound_secrets(&op, namespace, &row.secret_bindings).await?;
                self.check_document(&input.values)?;
                let cx = self.context();
                match effect(
                    self.drivers
                        .configuration
                        .update(&cx, namespace, id, before, &input.values),
                )
                .await
                {
                    Ok(()) => {}
                    Err(error) if is_conflict(&error) => {
                        tries.again().await?;
                        continue;
                    }
                    Err(error) => return Err(Refusal::driver(DriverKind::Configuration, &error)),
                }
                let allowed = op.still(allowed).await?;
                let change = bound(Change::new().expect(Expect::Configuration(id, before)), &secrets)
                    .write(Write::UpdateConfiguration(row.clone()))
                    .state(cx.state().take_staged())
                    .audit(op.event(resource.clone(), &allowed).with("generation", row.generation));
                if tries.commit(change).await? {
                    return Ok(with_document(row, input.values));
                }
            }
        })
        .await
    }

    /// Deletes a Configuration that no Agent refers to, and the access bindings on it.
    pub async fn delete_configuration(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> Answer<()> {
        let op = self.operation(caller, "openclaw.configurations.delete", Scope::Namespace(namespace));
        op.answer(async {
            let resource = ResourceRef::configuration(namespace, id);
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Delete, resource.clone()).await?;
                let row = self.configuration_row(namespace, id).await?;
                let consumers = self.store.configuration_consumers(namespace, id).await?;
                let consumers = consumers
                    .into_iter()
                    .map(|agent| ResourceRef::agent(namespace, agent))
                    .collect();
                refuse_referenced(&op, "The Configuration is still referenced by ", consumers).await?;
                if !row.deleting && !self.drivers.configuration.keeps_in_store() {
                    // Remembered before the document goes, so that a crash between the two is finished by a repetition.
                    let begun = ConfigurationRow { deleting: true, ..row };
                    let change = Change::new()
                        .expect(Expect::Configuration(id, begun.generation))
                        .expect(Expect::ConfigurationUnreferenced(id))
                        .write(Write::UpdateConfiguration(begun))
                        .audit(
                            op.event(allowed.request.resource.clone(), &allowed)
                                .with("phase", "begun"),
                        );
                    tries.commit(change).await?;
                    continue;
                }
                let cx = self.context();
                effect(self.drivers.configuration.delete(&cx, namespace, id))
                    .await
                    .map_err(|e| Refusal::driver(DriverKind::Configuration, &e))?;
                let allowed = op.still(allowed).await?;
                let exact = ExactResource {
                    kind: ResourceKind::Configuration,
                    id: id.to_string(),
                };
                let expected = if row.deleting {
                    Expect::ConfigurationDeleting(id)
                } else {
                    Expect::Configuration(id, row.generation)
                };
                let change = Change::new()
                    .expect(expected)
                    .expect(Expect::ConfigurationUnreferenced(id))
                    .write(Write::DeleteConfiguration(id))
                    .state(cx.state().take_staged());
                let change = self
                    .with_exact_bindings_removed(
                        change,
                        namespace,
                        &exact,
                        op.event(allowed.request.resource.clone(), &allowed),
                    )
                    .await?;
                if tries.commit(change).await? {
                    return Ok(());
                }
            }
        })
        .await
    }

    /// A Configuration's row; 404 when there is none.
    pub(super) async fn configuration_row(
        &self,
        namespace: NamespaceId,
        id: ConfigurationId,
    ) -> Answer<ConfigurationRow> {
        self.store
            .configuration(namespace, id)
            .await?
            .ok_or_else(Refusal::not_found)
    }

    async fn document(&self, cx: &OperationContext, row: &ConfigurationRow) -> Answer<Option<(u64, Document)>> {
        look(self.drivers.configuration.read(cx, row.namespace_id, row.id))
            .await
            .map_err(|e| Refusal::driver(DriverKind::Configuration, &e))
    }

    /// The caller's grants on the bound Secrets, then their records: each exists and is the selected driver's.
    async fn bound_secrets(
        &self,
        op: &Operation<'_>,
        namespace: NamespaceId,
        bindings: &SecretBindings,
    ) -> Answer<Vec<Secret>> {
        op.require_all(source::binding_requests(op.principal(), namespace, bindings))
            .await?;
        let ids: Vec<_> = bindings.values().map(|binding| binding.source.id).collect();
        let secrets = self.named_secrets(namespace, ids).await?;
        source::bindings_owned(&secrets, bindings, &self.drivers.secret.identity().id)?;
        Ok(secrets)
    }

    /// What the Harness says of a document that is saved: the one that it selects, or the first, which reads the same format.
    fn check_document(&self, document: &Document) -> Answer<()> {
        let selected = deploy::select(&self.drivers, document).ok();
        let selected = selected.and_then(|selection| self.drivers.harness(&selection.harness));
        match selected.or(self.drivers.harnesses.first()) {
            Some(harness) => harness
                .check_saved(document)
                .map_err(|problem| deploy::document_problem(&problem)),
            None => Ok(()),
        }
    }

    /// Takes back what a driver with a place of its own stored for a Configuration that does not exist.
    async fn forget_document(&self, namespace: NamespaceId, id: ConfigurationId) {
        if let Err(error) = effect(self.drivers.configuration.delete(&self.context(), namespace, id)).await {
            tracing::warn!(%id, %error, "a document without a Configuration could not be taken back");
        }
    }

    /// Removes the access bindings on exactly this resource with it, and names them in the audit (spec/engine 11).
    pub(super) async fn with_exact_bindings_removed(
        &self,
        mut change: Change,
        namespace: NamespaceId,
        exact: &ExactResource,
        event: AuditEvent,
    ) -> Answer<Change> {
        let bindings = self
            .store
            .access_bindings(Some(namespace), BindingsOf::Resource(exact))
            .await?;
        let ids: Vec<_> = bindings.into_iter().map(|binding| binding.id).collect();
        let event = if ids.is_empty() {
            event
        } else {
            event.with("accessBindingIds", ids.clone())
        };
        for id in ids {
            change = change.write(Write::DeleteAccessBinding(id));
        }
        Ok(change.audit(event))
    }
}

/// Bindings have the right form already; here is what their form alone does not say.
fn check_bindings(namespace: NamespaceId, bindings: &SecretBindings) -> Answer<()> {
    if bindings.len() > Configuration::MAX_SECRET_BINDINGS {
        let refusal = Refusal::invalid("A Configuration may bind at most 64 Secrets.");
        return Err(refusal.at("/secretBindings", DetailCode::TooLong));
    }
    let foreign = bindings
        .iter()
        .find(|(_, binding)| binding.source.namespace_id != namespace);
    foreign.map_or(Ok(()), |(name, _)| {
        let refusal = Refusal::invalid("A bound Secret must belong to the Configuration's Namespace.");
        Err(refusal.at(
            &format!("/secretBindings/{name}/source/namespaceId"),
            DetailCode::InvalidValue,
        ))
    })
}

/// The change holds only while these Secrets are as they were read.
pub(super) fn bound(change: Change, secrets: &[Secret]) -> Change {
    secrets.iter().fold(change, |change, secret| {
        change.expect(Expect::Secret(secret.id, secret.version))
    })
}

fn with_document(row: ConfigurationRow, values: Document) -> Configuration {
    let ConfigurationRow {
        id,
        namespace_id,
        kind,
        generation,
        secret_bindings,
        deleting: _,
        created_at,
    } = row;
    Configuration {
        id,
        namespace_id,
        kind,
        generation,
        values,
        secret_bindings,
        created_at,
    }
}

/// 409 while something refers to the resource: names what the caller may read and counts the rest (spec/engine 1.6).
pub(super) async fn refuse_referenced(
    op: &Operation<'_>,
    beginning: &'static str,
    consumers: Vec<ResourceRef>,
) -> Answer<()> {
    refuse_held(op, ApiCode::ResourceConflict, beginning, consumers).await
}

/// The same with another code.
pub(super) async fn refuse_held(
    op: &Operation<'_>,
    code: ApiCode,
    beginning: &'static str,
    consumers: Vec<ResourceRef>,
) -> Answer<()> {
    if consumers.is_empty() {
        return Ok(());
    }
    let all = consumers.len();
    let readable = op.readable(consumers, Clone::clone).await?;
    let hidden = all - readable.len();
    let phrase = match (readable.len(), hidden) {
        (0, _) => Phrase::new(beginning)
            .id(&hidden)
            .text(" resources that you may not read."),
        (_, 0) => Phrase::new(beginning).list(&readable).text("."),
        _ => Phrase::new(beginning)
            .id(&hidden)
            .text(" resources that you may not read, and ")
            .list(&readable)
            .text("."),
    };
    Err(Refusal::saying(code, phrase))
}
